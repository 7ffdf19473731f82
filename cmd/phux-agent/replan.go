package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/phux-agent/phux-agent/restore"
)

// replans bounds how often a restore looks anew.
const replans = 3

// restoreAnew is restore, which looks again where the server was started or ended between its look
// and its work: at login a terminal starts one at the same moment. Nothing has been done by then. What
// was read from standard input cannot be read again.
func (a *app) restoreAnew(cmd *cobra.Command, f restoreFlags, args []string) error {
	for tries := 1; ; tries++ {
		err := a.restore(cmd, f, args)
		var stale *restore.StaleError
		if !errors.As(err, &stale) || tries == replans || len(args) > 0 && args[0] == "-" {
			return err
		}
		a.warn("%v: looking again", stale)
	}
}
