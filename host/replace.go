package host

import (
	"context"
	"errors"

	"github.com/phux-agent/phux-agent/metadata"
)

// Replacer is what a host offers that can put a program of ours in the place of a terminal's own.
type Replacer interface {
	// Replace ends what runs in a terminal and starts the pane's program there, with its record,
	// in one transaction: no observer sees the program without the record. It does so only while
	// the occupant is still there, and is what the host shows in the foreground: else ErrOccupied,
	// and nothing has changed. Where it fails later, a shell takes the place; of the terminal
	// itself nothing is ever taken away. Only for a Program.
	Replace(ctx context.Context, t Terminal, was Occupant, p PaneSpec) (*Started, error)
}

// Occupant is what a terminal must still hold at the moment in which it is replaced.
type Occupant struct {
	PID     int    // of the process that the host started
	Command string // the foreground program, as Snapshot names it
}

// ErrOccupied refuses to replace what is not there any more.
var ErrOccupied = errors.New("something else is in the terminal now")

// IsVacant reports a pane whose program was not started by us, that runs, and that holds no value of
// ours. Whether it may be replaced is more than a host can know.
func (p Pane) IsVacant() bool {
	return p.Origin == Foreign && !p.Dead && p.PID > 0 && len(p.Meta[metadata.KeyAgentSession]) == 0 && len(p.Meta[metadata.KeyAgentLaunch]) == 0
}
