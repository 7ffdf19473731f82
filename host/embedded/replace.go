package embedded

import (
	"context"
	"fmt"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/internal/proc"
)

var _ host.Replacer = (*Host)(nil)

// Replace is host.Replacer.
func (h *Host) Replace(ctx context.Context, t host.Terminal, was host.Occupant, p host.PaneSpec) (out *host.Started, err error) {
	if err := checkReplace(was, p); err != nil {
		return nil, failed("replace", err)
	}
	err = h.with(ctx, "replace", func(c *Client) error {
		if err := c.mine(t); err != nil {
			return err
		}
		f := paneFields(p)
		f[keyKind], f[spawnTarget], f[replacePID], f[replaceCommand] = kindReplace, t.ID, was.PID, []byte(was.Command)
		answer, err := c.settle(ctx, f)
		if err != nil {
			return err
		}
		st, err := readStarted(answer, c.Instance)
		out = &st
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func checkReplace(was host.Occupant, p host.PaneSpec) error {
	if err := p.Check(); err != nil {
		return err
	}
	if p.Start.Mode != host.Program || was.PID <= 0 || was.Command == "" {
		return fmt.Errorf("%w: a program in the place of %q", host.ErrRequest, was.Command)
	}
	return nil
}

func readReplace(f fields) (id string, was host.Occupant, p host.PaneSpec, err error) {
	if p, err = readPane(f); err != nil {
		return "", was, p, err
	}
	r := reading{fields: f}
	id, was = r.text(spawnTarget), host.Occupant{PID: r.number(replacePID), Command: r.text(replaceCommand)}
	if r.err != nil {
		return "", was, p, r.err
	}
	return id, was, p, checkReplace(was, p)
}

// clean brings a terminal whose program is taken away to where the next one may begin.
const clean = "\x18\x1b\\\x1b[!p\x1b[?1l\x1b>\x1b[?2004l\x1b[?1004l\x1b[m\r\n"

// replace puts another program in the place of a terminal's own, if that is still what was said. The
// new process waits at its gate before anything is ended, as that of a spawn does.
func (s *Server) replace(ctx context.Context, id string, was host.Occupant, spec host.PaneSpec) (*host.Started, error) {
	meta := spec.Meta
	if s.opt.Older {
		meta = nil
	}
	values, err := newScope(meta)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	t := s.terminals[id]
	if t == nil {
		s.mu.Unlock()
		return nil, host.ErrNoTerminal
	}
	b := boot{start: &spec.Start, nonce: newNonce(), meta: values, env: paneEnv(s.env, id, s.opt.Socket)}
	b.dirs = []string{spec.Start.Dir, t.dir, t.window.session.dir, s.home}
	b.cols, b.rows = t.out.size()
	err = s.occupied(t, was)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	next, err := s.reaper.fork(s.paneArgv(), b)
	if err != nil {
		return nil, err
	}
	if err := arrive(ctx, []*draft{{terminal: &terminal{child: next}}}); err != nil {
		s.reaper.hangup(next)
		return nil, err
	}
	s.mu.Lock()
	switch {
	case s.terminals[id] != t:
		err = host.ErrNoTerminal
	case s.closing:
		err = errClosing
	case ctx.Err() != nil:
		err = fmt.Errorf("%w: %w", errCancelled, context.Cause(ctx))
	default:
		err = s.occupied(t, was)
	}
	if err != nil {
		s.mu.Unlock()
		s.reaper.hangup(next)
		return nil, err
	}
	before := t.child
	t.child, t.meta, t.nonce, t.origin, t.bound = next, values, b.nonce, host.Ours, proc.ID{}
	t.after, t.closes, t.waits, t.replaced = spec.Start.AfterExit, false, true, true
	if spec.Title != "" {
		t.title = spec.Title
	}
	if spec.Start.Dir != "" {
		t.dir = spec.Start.Dir
	}
	if cols, rows := t.out.size(); cols != b.cols || rows != b.rows {
		setSize(next.ptmx, cols, rows)
	}
	for k, v := range values {
		s.announce(id, string(k), v)
	}
	s.changed(fields{eventWhat: "replaced", eventTerm: id, eventName: t.window.session.name})
	s.mu.Unlock()
	s.reaper.hangup(before)
	t.out.deliver(id, []byte(clean))
	go s.pump(t, next)
	st := s.through(&draft{terminal: t}, next)
	return &st, nil
}

// occupied refuses a terminal that does not hold any more what is said. The lock is held.
func (s *Server) occupied(t *terminal, was host.Occupant) error {
	if t.dead || t.child.pid != was.PID || t.bound != (proc.ID{}) || t.origin != host.Foreign {
		return host.ErrOccupied
	}
	if i, err := proc.Stat(foreground(t.child)); err != nil || i.Comm != was.Command {
		return host.ErrOccupied
	}
	full := false
	t.out.see(func(e emulator) { full = e.FullScreen() })
	if full {
		return host.ErrOccupied
	}
	return nil
}
