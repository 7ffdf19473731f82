// Package atomicfile replaces and creates files durably: a temporary file in the same
// directory, written, synced, closed, renamed, and the directory synced.
package atomicfile
