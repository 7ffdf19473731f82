package owner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/metadata"
)

// lastWait is how long a killed process may take to be gone: only the kernel is left to wait for.
const lastWait = 5 * time.Second

// Reap ends an orphan (SIGTERM to every survivor, then SIGKILL after the grace), and refuses
// to touch anything that is not proven to be one, with a *NotOrphanError: an owner whose
// terminal is there, a reservation, what only a registry or an argument points at, nobody.
//
// It returns the processes that have ended. An error beside them says who is left.
func (o *Observer) Reap(ctx context.Context, c Claims, t *integrations.Template, id metadata.Identity, grace time.Duration) ([]Process, error) {
	claim, err := c.Get(id)
	if err != nil {
		return nil, fmt.Errorf("reap %q: %w: %w", id, &NotOrphanError{Live{Kind: NotLive, Note: err.Error()}}, err)
	}
	live := o.claimed(claim, t, id)
	if live.Kind != Orphan {
		if live.Kind == NotLive {
			live = o.suspected(c, t, id)
		}
		return nil, fmt.Errorf("reap %q: %w", id, &NotOrphanError{live})
	}
	var ended []Process
	// A process may have forked while it was told to end: the table is read again until it has
	// no survivor.
	for range 3 {
		table, err := proc.ReadTable()
		if err != nil {
			return ended, fmt.Errorf("reap %q: %w", id, err)
		}
		left := o.orphans(table, *claim, t, id)
		if len(left) == 0 {
			return ended, nil
		}
		done, err := end(ctx, left, grace)
		ended = append(ended, done...)
		if err != nil {
			return ended, fmt.Errorf("reap %q: %w", id, err)
		}
	}
	return ended, fmt.Errorf("reap %q: it starts new processes faster than they are ended", id)
}

// orphans are the processes to end: the claim's own, if it lives without its terminal, and the
// survivors of its process session.
func (o *Observer) orphans(table *proc.Table, c Claim, t *integrations.Template, id metadata.Identity) []proc.ID {
	var out []proc.ID
	if now, ok := table.Get(c.Process.PID); ok && now.Start == c.Process.Start && !now.Dead() {
		if kindOf(c, now) != Orphan {
			return nil
		}
		out = append(out, now.ID())
	}
	for _, i := range o.survivors(table, c, t, id) {
		if !slices.Contains(out, i.ID()) {
			out = append(out, i.ID())
		}
	}
	return out
}

// end tells every process to end, and kills after the grace what did not.
func end(ctx context.Context, ids []proc.ID, grace time.Duration) ([]Process, error) {
	var ended []Process
	for _, step := range []struct {
		signal unix.Signal
		wait   time.Duration
	}{{unix.SIGTERM, grace}, {unix.SIGKILL, lastWait}} {
		for _, id := range ids {
			if err := proc.Signal(id, step.signal); err != nil && !errors.Is(err, proc.ErrGone) {
				return ended, err
			}
		}
		gone, err := proc.WatchExit(ctx, ids, step.wait)
		for _, id := range gone {
			ended = append(ended, Process(id))
		}
		ids = slices.DeleteFunc(ids, func(id proc.ID) bool { return slices.Contains(gone, id) })
		if len(ids) == 0 {
			return ended, nil
		}
		if err != nil {
			return ended, fmt.Errorf("process %d still runs: %w", ids[0].PID, err)
		}
	}
	return ended, fmt.Errorf("process %d still runs", ids[0].PID)
}
