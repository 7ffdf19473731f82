package launch

import (
	"context"
	"errors"
	"fmt"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
)

// Here makes the calling process the agent of the terminal that it runs in: it claims the
// identity for its own pid, binds the record to that pid and start time, reads it back, and
// execs. The shell that called stays the parent, and gets its terminal back afterwards.
//
// It does not return where it succeeds; whatever must be said is said before. An error means
// that nothing is left: no claim, no binding. environ is the whole environment of the caller.
func Here(ctx context.Context, e Env, r Request, d *Draft, terminal host.Terminal, environ []string) error {
	if e.Host == nil || terminal.ID == "" {
		return fmt.Errorf("launch --here: %w: it belongs to no multiplexer", ErrHere)
	}
	binder, ok := e.Host.(host.Binder)
	if !ok {
		return fmt.Errorf("launch --here: %w: this host binds no record to a program that it did not start", ErrHere)
	}
	info, err := e.info(ctx)
	if err != nil {
		return fmt.Errorf("launch --here: %w", err)
	}
	self, err := proc.Self()
	if err != nil {
		return fmt.Errorf("launch --here: %w", err)
	}
	if err := e.vacant(ctx, terminal, self.PID); err != nil {
		return fmt.Errorf("launch --here: %w", err)
	}
	d.Facts.OwnerPID, d.Facts.OwnerStart = self.PID, self.Start
	s, err := e.stage(d, owner.Place{Host: info.Server, Terminal: terminal.ID})
	if err != nil {
		return err
	}
	if err := binder.Bind(ctx, terminal, self.PID, self.Start, s.meta); err != nil {
		return errors.Join(fmt.Errorf("launch --here: %w", err), s.release())
	}
	err = s.become(ctx, terminal, self.PID, environ)
	return errors.Join(err, s.unbind(ctx, terminal), s.release())
}

// vacant refuses a terminal that holds a live agent, or a record that waits for its own.
func (e Env) vacant(ctx context.Context, t host.Terminal, pid int) error {
	w, err := e.Host.Snapshot(ctx)
	if err != nil {
		return err
	}
	pane, _ := findPane(w, t)
	if pane == nil {
		return host.ErrNoTerminal
	}
	facts, _ := metadata.DecodeLaunchFacts(pane.Meta[metadata.KeyAgentLaunch])
	holds := !facts.Ended && (facts.PaneKey != "" || pane.Meta[metadata.KeyAgentSession] != nil)
	switch {
	case pane.Origin == host.Ours && pane.Waiting && holds:
		return fmt.Errorf("%w: an agent waits in it to be restored", ErrHere)
	case pane.Origin == host.Ours && !pane.Dead && holds:
		return fmt.Errorf("%w: an agent runs in it already, as pid %d", ErrHere, pane.PID)
	case pane.Origin == host.Bound && pane.BoundPID != pid:
		return fmt.Errorf("%w: an agent runs in it already, as pid %d", ErrHere, pane.BoundPID)
	}
	return nil
}

// become is the last stretch: read back, pass the guard as any starting pane does, exec.
func (s *stage) become(ctx context.Context, t host.Terminal, pid int, environ []string) error {
	pane, _ := s.find(ctx, t)
	switch {
	case pane == nil:
		return fmt.Errorf("launch --here: read back the record of %s: %w", t.ID, host.ErrNoTerminal)
	case pane.Origin != host.Bound || pane.BoundPID != pid:
		return fmt.Errorf("launch --here: read back the record of %s: it is not bound to this process", t.ID)
	}
	if key, ok := differs(s.meta, pane.Meta); ok {
		return fmt.Errorf("launch --here: read back %s of %s: the host holds other bytes than were stored", key, t.ID)
	}
	if s.claim != nil {
		if err := s.guard.Pass(future(s.start, environ)); err != nil {
			return fmt.Errorf("launch --here: %w", err)
		}
	}
	if s.e.Bound != nil {
		s.e.Bound(ctx)
	}
	exec := s.e.exec
	if exec == nil {
		exec = host.Start.Exec
	}
	// A terminal that is not ours has no birth nonce; the pane key says the same to whoever
	// inherits it: this identity is the agent's, not yours.
	if err := exec(s.start, environ, s.paneKey); err != nil {
		return fmt.Errorf("launch --here: %w", err)
	}
	return nil
}

// unbind takes the values away again that Bind put there.
func (s *stage) unbind(ctx context.Context, t host.Terminal) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	var errs []error
	for _, key := range keys {
		if value, ok := s.meta[key]; ok {
			err := s.e.Host.Swap(ctx, t, key, value, nil)
			if err != nil && !errors.Is(err, host.ErrNoTerminal) && !errors.Is(err, host.ErrStale) {
				errs = append(errs, fmt.Errorf("remove %s from %s: %w", key, t.ID, err))
			}
		}
	}
	return errors.Join(errs...)
}
