// Command phux-agent brings AI coding agents back after a reboot, each to its own conversation
// in its own pane.
package main

import "os"

// version is stamped by the build: -ldflags "-X main.version=…".
var version string

func main() { os.Exit(run(os.Args, os.Environ(), os.Stdin, os.Stdout, os.Stderr)) }
