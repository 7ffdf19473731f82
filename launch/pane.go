package launch

import (
	"context"
	"io"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

// Seat is a pane between its birth and its agent, as the host hands it over (tmux.Enter).
type Seat interface {
	// Start is what the pane was made to run; nil on a respawn, when the payload is spent.
	Start() *host.Start
	// Meta is the pane's current metadata.
	Meta() map[metadata.Key][]byte
	Nonce() string
	// Wait returns when the whole session is committed, or an error when it never will be:
	// then the pane must leave without a word.
	Wait() error
	// Fail tells the one who made the pane that its program does not start, and why.
	Fail(reason string)
}

// Become runs in the pane: it waits for the gate, passes the guard, and execs. Without a
// payload, and on Enter in a placeholder, revive answers what the record resolves to now. It
// returns only where the pane stays ours or ends.
func Become(ctx context.Context, s Seat, environ []string, revive func(context.Context) (host.Start, error), in io.Reader, out io.Writer) error {
	return errNotBuilt
}
