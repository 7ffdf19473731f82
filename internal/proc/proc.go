// Package proc reads the process table: start time, ancestry, arguments, environment, open
// files, and the machine's boot id. Linux; elsewhere every answer is ErrUnsupported.
package proc
