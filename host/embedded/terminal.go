package embedded

import (
	"context"
	"fmt"

	"github.com/phux-agent/phux-agent/host"
)

// pump is the one goroutine of a terminal: it carries the output of its program, and of what
// follows it.
func (s *Server) pump(t *terminal, c *child) {
	buf := make([]byte, 16<<10)
	for c != nil {
		t.in.to(c.ptmx)
		for {
			n, err := c.ptmx.read(buf, t.out.watched() > 0)
			if n > 0 {
				t.out.deliver(t.id, buf[:n])
			}
			if err != nil {
				break // all have closed it, or the terminal was killed
			}
		}
		status := <-c.exited
		c.ptmx.Close()
		c = s.ended(t, c, status)
	}
}

// ended decides what becomes of a terminal whose program ended: the process that follows it,
// where one does.
func (s *Server) ended(t *terminal, c *child, st exitStatus) *child {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.window == nil || t.child != c || s.closing {
		return nil
	}
	t.dead, t.exit = true, st.exit()
	good := st.status == 0 && st.signal == 0
	unstarted := false
	select {
	case <-c.settled:
		unstarted = t.replaced && c.fault != ""
	default:
	}
	switch {
	case t.closes, good && t.after == "close":
		s.remove(t)
		return nil
	case good && t.after == "shell", t.after == "shell-always", unstarted:
		b := boot{
			start: &host.Start{Mode: host.Shell, Dir: firstDir([]string{t.dir, t.window.session.dir, s.home})},
			nonce: t.nonce, meta: t.meta.clone(), after: true,
		}
		if next, err := s.follow(t, b); err == nil {
			t.origin, t.closes = host.Ended, true
			return next
		}
	}
	s.changed(fields{eventWhat: "exited", eventTerm: t.id, eventName: t.window.session.name})
	return nil
}

// follow starts another process in a terminal. The lock is held: the terminal is there, and so
// nothing has to be taken back.
func (s *Server) follow(t *terminal, b boot) (*child, error) {
	b.dirs = []string{t.dir, t.window.session.dir, s.home}
	b.env = paneEnv(s.env, t.id, s.opt.Socket)
	b.cols, b.rows = t.out.size()
	next, err := s.reaper.fork(s.paneArgv(), b)
	if err != nil {
		s.log.Warn("start a process", "terminal", t.id, "error", err)
		return nil, err
	}
	t.child, t.dead, t.exit = next, false, nil
	go func() {
		<-next.here
		if next.arrived {
			next.open()
		}
	}()
	return next, nil
}

var errAlive = fmt.Errorf("%w: its program still runs", host.ErrConflict)

// respawn starts a pane again whose program has ended: it finds out what its record resolves to
// now. A pane without one gets a shell.
func (s *Server) respawn(ctx context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.terminals[id]
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", errCancelled, context.Cause(ctx))
	case t == nil:
		return host.ErrNoTerminal
	case !t.dead:
		return errAlive
	}
	next, err := s.follow(t, boot{nonce: t.nonce, meta: t.meta.clone()})
	if err != nil {
		return err
	}
	t.waits = true
	go s.pump(t, next)
	return nil
}

func (s *Server) kill(id string) error {
	s.mu.Lock()
	t := s.terminals[id]
	if t == nil {
		s.mu.Unlock()
		return host.ErrNoTerminal
	}
	s.remove(t)
	s.mu.Unlock()
	s.reaper.hangup(t.child)
	return nil
}

func (s *Server) killSession(name string) error {
	s.mu.Lock()
	se := s.session(name)
	if se == nil {
		s.mu.Unlock()
		return host.ErrNoSession
	}
	var gone []*terminal
	for _, w := range se.windows {
		gone = append(gone, w.panes...)
	}
	for _, t := range gone {
		s.remove(t)
	}
	s.mu.Unlock()
	for _, t := range gone {
		s.reaper.hangup(t.child)
	}
	return nil
}

// drop lets the viewers of a terminal go that is gone. The lock is held.
func (s *Server) drop(t *terminal) {
	frame := fields{keyKind: kindEvent, eventWhat: "closed", eventTerm: t.id}.frame()
	for p := range s.peers {
		v := p.viewers[t.id]
		if v == nil {
			delete(p.watches, t.id)
			continue
		}
		delete(p.viewers, t.id)
		delete(p.watches, t.id)
		t.out.detach(v)
		if !p.events { // who asked for events gets it with them
			p.push(frame)
		}
	}
}

// maxViews is how many terminals one client may look at.
const maxViews = 64

// attach makes the client a viewer, or gives its view another size.
func (s *Server) attach(p *peer, id string, cols, rows int, begin bool) (fields, error) {
	if err := checkSize(cols, rows); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.terminals[id]
	if t == nil {
		return nil, host.ErrNoTerminal
	}
	v := p.viewers[id]
	switch {
	case begin && v != nil:
		return nil, fmt.Errorf("%w: it is attached already", host.ErrConflict)
	case !begin && v == nil:
		return nil, fmt.Errorf("%w: it is not attached", host.ErrConflict)
	case begin && len(p.viewers) >= maxViews:
		return nil, fmt.Errorf("%w: %d terminals of one client", ErrBusy, maxViews)
	}
	if begin {
		v = &viewer{peer: p, terminal: t}
		p.viewers[id] = v
		s.last, t.window.session.current, t.window.active = t.window.session, t.window, t
	}
	if begin {
		v.cols, v.rows = cols, rows
		t.out.attach(v)
		s.fit(t) // the size first, so that the first picture has it
		p.after = func() { t.out.repaint(v) }
	} else {
		t.out.look(v, cols, rows)
		s.fit(t)
		p.after = func() { t.out.release(v) }
	}
	c, r := t.out.size()
	return fields{termCols: c, termRows: r}, nil
}

// hold lets a view show nothing until it is given a size again; its window counts all the same.
func (s *Server) hold(p *peer, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := p.viewers[id]
	if v == nil {
		return fmt.Errorf("%w: it is not attached", host.ErrConflict)
	}
	v.terminal.out.hold(v)
	return nil
}

// fit gives a terminal the smallest size of those who look. The lock is held.
func (s *Server) fit(t *terminal) {
	cols, rows, ok := t.out.fit()
	if !ok || t.window == nil || !t.out.resize(cols, rows, t.child.ptmx, true) {
		return
	}
	if len(t.window.panes) == 1 {
		t.window.layout = host.Cell{Cols: cols, Rows: rows}
	}
	frame := fields{keyKind: kindEvent, eventWhat: "resized", eventTerm: t.id, eventCols: cols, eventRows: rows}.frame()
	for p := range s.peers {
		if p.viewers[t.id] != nil {
			p.push(frame)
		}
	}
}

// leave ends a view. The lock is held.
func (s *Server) leave(v *viewer) {
	t := v.terminal
	t.out.detach(v)
	delete(v.peer.viewers, t.id)
	s.fit(t)
}

func (s *Server) input(id string, b []byte) error {
	s.mu.Lock()
	t := s.terminals[id]
	dead := t != nil && t.dead
	s.mu.Unlock()
	switch {
	case t == nil:
		return host.ErrNoTerminal
	case dead:
		return ErrDead
	}
	return t.in.send(b)
}

func (s *Server) read(id string, lines int, looks, below bool) (fields, error) {
	s.mu.Lock()
	t := s.terminals[id]
	s.mu.Unlock()
	if t == nil {
		return nil, host.ErrNoTerminal
	}
	if lines < 0 || lines > Scrollback {
		lines = Scrollback
	}
	out := fields{}
	t.out.see(func(e emulator) {
		col, row, shown := e.Cursor()
		text := e.Text
		if looks {
			text = e.Looks
		}
		if below {
			text = e.Below
		}
		out[screenText], out[screenCursor], out[screenRow], out[screenHidden] = []byte(text(lines)), col, row, !shown
		out[screenKeys] = e.AppCursor()
		out[screenTitle] = e.Title()
	})
	out[termCols], out[termRows] = t.out.size()
	return out, nil
}

func (s *Server) focus(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.terminals[id]
	if t == nil {
		return host.ErrNoTerminal
	}
	w := t.window
	w.active, w.session.current, s.last = t, w, w.session
	s.changed(fields{eventWhat: "focus", eventTerm: id, eventName: w.session.name})
	return nil
}
