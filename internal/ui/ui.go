// Package ui makes text from outside safe to print, and lays out the tables that verbs print.
package ui
