package embedded

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/metadata"
)

// session, window and terminal are held under the server's lock. Ids grow within one life of the
// server and are never used again.
type session struct {
	id, name, dir string
	created       time.Time
	windows       []*window // by index
	current       *window
}

type window struct {
	id, name  string
	index     int
	automatic bool
	zoomed    bool
	layout    host.Cell
	panes     []*terminal // in the order of the layout's leaves
	active    *terminal
	session   *session
}

type terminal struct {
	id     string
	window *window // nil before it is published and after it is gone
	title  string
	meta   scope
	nonce  string
	origin host.Origin
	after  string // "shell" | "hold" | "close", after exit 0
	closes bool   // a plain shell, or the one after a program: it takes its terminal along
	// replaced: its program came in the place of another, and where it does not start a shell does.
	replaced bool
	waits    bool   // its process is ours until it becomes the program
	dir      string // the last that is known
	child    *child
	dead     bool
	exit     *host.Exit
	bound    proc.ID // of origin Bound

	out output
	in  input
}

// scope holds the values of a terminal, or the server's own.
type scope map[metadata.Key][]byte

func (s scope) clone() map[metadata.Key][]byte {
	out := make(map[metadata.Key][]byte, len(s))
	for k, v := range s {
		out[k] = bytes.Clone(v)
	}
	return out
}

// fits says whether the scope has room for the value.
func (s scope) fits(k metadata.Key, v []byte) error {
	if _, ok := s[k]; !ok && len(s) >= maxKeys {
		return fmt.Errorf("%w: %d values in one scope", ErrBusy, maxKeys)
	}
	total := len(v) - len(s[k])
	for _, old := range s {
		total += len(old)
	}
	if total > maxScope {
		return fmt.Errorf("%w: %d bytes of values in one scope", ErrBusy, maxScope)
	}
	return nil
}

func newScope(m map[metadata.Key][]byte) (scope, error) {
	s := make(scope, len(m))
	for k, v := range m {
		if err := s.fits(k, v); err != nil {
			return nil, err
		}
		s[k] = bytes.Clone(v)
	}
	return s, nil
}

// plain says that nothing is asked of the pane but a shell.
func plain(p host.PaneSpec) bool {
	s := p.Start
	return s.Mode == host.Shell && len(p.Meta) == 0 && len(s.Argv) == 0 && len(s.Set) == 0 &&
		len(s.Unset) == 0 && len(s.Guard) == 0 && s.AfterExit == ""
}

// draft is a terminal that nobody sees yet, its process at the gate.
type draft struct {
	*terminal
	spec host.PaneSpec
}

// build forks one pane. Whatever fails leaves nothing.
func (s *Server) build(spec host.PaneSpec, sessionDir string, cols, rows int) (*draft, error) {
	meta := spec.Meta
	if s.opt.Older {
		meta = nil // as a server that knows no field 9
	}
	values, err := newScope(meta)
	if err == nil {
		err = checkSize(cols, rows)
	}
	if err != nil {
		return nil, err
	}
	t := &terminal{
		title: spec.Title, meta: values, after: spec.Start.AfterExit, dir: spec.Start.Dir,
		waits: spec.Start.Mode != host.Shell, origin: host.Ours,
	}
	switch {
	case plain(spec):
		t.origin, t.closes = host.Foreign, true
	case spec.Start.Mode == host.Shell:
		t.origin = host.Ended
	}
	if t.origin != host.Foreign {
		t.nonce = newNonce()
	}
	s.mu.Lock()
	if err := s.roomFor(1); err != nil {
		s.mu.Unlock()
		return nil, err
	}
	s.building++
	t.id = terminalID(s.ids.terminal)
	s.ids.terminal++
	s.mu.Unlock()
	start := spec.Start
	if t.dir == "" {
		t.dir = firstDir([]string{sessionDir, s.home})
		if start.Mode != host.Placeholder {
			start.Dir = t.dir
		}
	}
	t.out.cols, t.out.rows = cols, rows
	t.out.answer = func(b []byte) { _ = t.in.send(b) } // a program that does not read gets no answers
	t.child, err = s.reaper.fork(s.paneArgv(), boot{
		start: &start, nonce: t.nonce, meta: t.meta, dirs: []string{t.dir, sessionDir, s.home},
		env: paneEnv(s.env, t.id, s.opt.Socket), cols: cols, rows: rows,
	})
	if err != nil {
		s.discard(nil)
		return nil, err
	}
	return &draft{t, spec}, nil
}

// roomFor says whether that many terminals more may be.
func (s *Server) roomFor(n int) error {
	switch {
	case s.closing:
		return errClosing
	case len(s.terminals)+s.building+n > maxTerminals:
		return fmt.Errorf("%w: %d terminals", ErrBusy, maxTerminals)
	}
	return nil
}

// discard takes a draft away that will not be published; its process leaves.
func (s *Server) discard(d *draft) {
	if d != nil {
		s.reaper.hangup(d.child)
	}
	s.mu.Lock()
	s.building--
	s.mu.Unlock()
}

// arrive waits until every pane is at its gate.
func arrive(ctx context.Context, drafts []*draft) error {
	timer := time.NewTimer(arriveTime)
	defer timer.Stop()
	for _, d := range drafts {
		select {
		case <-d.child.here:
			if !d.child.arrived {
				return fmt.Errorf("start a pane: its process ended before its time")
			}
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", errCancelled, context.Cause(ctx))
		case <-timer.C:
			return fmt.Errorf("start a pane: %w", context.DeadlineExceeded)
		}
	}
	return nil
}

// Bounds of a start: how long a pane may take to its gate, and from there to its program.
const (
	arriveTime = 30 * time.Second
	startTime  = 30 * time.Second
)

// enter publishes a draft. The lock is held: from its end on, whoever sees the terminal sees its
// values.
func (s *Server) enter(d *draft, w *window) {
	s.building--
	d.window = w
	s.terminals[d.id] = d.terminal
}

// run opens the gates of what is published, so many at once, and says what became of each.
func (s *Server) run(drafts []*draft, parallel int) []host.Started {
	if parallel <= 0 {
		parallel = 8
	}
	out := make([]host.Started, len(drafts))
	turns := make(chan struct{}, min(parallel, 64))
	done := make(chan struct{})
	// The first process of each: once it is pumped, a terminal whose program ends at once may
	// have another.
	first := make([]*child, len(drafts))
	for i, d := range drafts {
		first[i] = d.child
	}
	for i, d := range drafts {
		go s.pump(d.terminal, first[i])
	}
	for i, d := range drafts {
		turns <- struct{}{}
		go func() {
			out[i] = s.through(d, first[i])
			<-turns
			done <- struct{}{}
		}()
	}
	for range drafts {
		<-done
	}
	return out
}

func (s *Server) through(d *draft, c *child) host.Started {
	st := host.Started{Terminal: host.Terminal{Instance: s.inst, ID: d.id}, Nonce: d.nonce, PID: c.pid}
	c.open()
	timer := time.NewTimer(startTime)
	defer timer.Stop()
	select {
	case <-c.settled:
		if c.fault != "" {
			st.Err = errors.New(c.fault)
		}
	case <-timer.C:
		st.Err = errors.New("it was not seen to start in time")
	}
	s.mu.Lock()
	st.Meta = d.meta.clone()
	s.mu.Unlock()
	return st
}

// create makes a session whole, or nothing.
func (s *Server) create(ctx context.Context, c host.CreateSession) (*host.Created, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	leave, err := s.reserve(ctx, c.Name)
	if err != nil {
		return nil, err
	}
	published := false
	var drafts []*draft
	defer func() {
		leave()
		if !published {
			for _, d := range drafts {
				s.discard(d)
			}
		}
	}()
	dir := c.Dir
	if dir == "" {
		dir = s.home
	}
	for _, w := range c.Windows {
		leaves := leavesOf(w.Layout)
		for i, p := range w.Panes {
			if ctx.Err() != nil {
				return nil, fmt.Errorf("%w: %w", errCancelled, context.Cause(ctx))
			}
			d, err := s.build(p, dir, leaves[i].Cols, leaves[i].Rows)
			if err != nil {
				return nil, err
			}
			drafts = append(drafts, d)
		}
	}
	if err := arrive(ctx, drafts); err != nil {
		return nil, err
	}

	s.mu.Lock()
	switch {
	case s.closing:
		err = errClosing
	case ctx.Err() != nil:
		err = fmt.Errorf("%w: %w", errCancelled, context.Cause(ctx))
	case s.session(c.Name) != nil:
		err = host.ErrSessionExists
	}
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	se := &session{id: "$" + strconv.Itoa(s.ids.session), name: c.Name, dir: dir, created: time.Now()}
	s.ids.session++
	next := 0
	for _, spec := range c.Windows {
		w := s.newWindow(se, spec.Name, spec.AutomaticName, cloneCell(spec.Layout))
		w.index, w.zoomed = spec.Index, spec.Zoomed && len(spec.Panes) > 1
		for range spec.Panes {
			s.enter(drafts[next], w)
			w.panes = append(w.panes, drafts[next].terminal)
			next++
		}
		w.active = w.panes[spec.Active]
		se.windows = append(se.windows, w)
	}
	se.current = se.windows[c.Active]
	for _, w := range se.windows {
		if w.index < 0 {
			w.index = se.free()
		}
	}
	se.sort()
	s.sessions = append(s.sessions, se)
	s.last = se
	published = true
	s.changed(fields{eventWhat: "created", eventName: se.name})
	s.mu.Unlock()

	started := s.run(drafts, c.Parallel)
	out := &host.Created{Session: se.id}
	next = 0
	for _, spec := range c.Windows {
		out.Windows = append(out.Windows, started[next:next+len(spec.Panes)])
		next += len(spec.Panes)
	}
	return out, nil
}

// reserve waits for its turn with a name. Whoever has it and fails makes way for the next.
func (s *Server) reserve(ctx context.Context, name string) (leave func(), err error) {
	for {
		s.mu.Lock()
		wait, taken := s.names[name]
		switch {
		case s.closing:
			err = errClosing
		case s.session(name) != nil:
			err = host.ErrSessionExists
		case !taken:
			mine := make(chan struct{})
			s.names[name] = mine
			s.mu.Unlock()
			return func() {
				s.mu.Lock()
				delete(s.names, name)
				s.mu.Unlock()
				close(mine)
			}, nil
		}
		s.mu.Unlock()
		if err != nil {
			return nil, err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", errCancelled, context.Cause(ctx))
		}
	}
}

// spawn adds one terminal with its record.
func (s *Server) spawn(ctx context.Context, sp host.Spawn) (*host.Started, error) {
	if err := sp.Check(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	dir, cols, rows, err := s.place(sp)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	d, err := s.build(sp.Pane, dir, cols, rows)
	if err != nil {
		return nil, err
	}
	if err := arrive(ctx, []*draft{d}); err != nil {
		s.discard(d)
		return nil, err
	}
	s.mu.Lock()
	if ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", errCancelled, context.Cause(ctx))
	} else if s.closing {
		err = errClosing
	} else {
		err = s.seat(sp, d)
	}
	s.mu.Unlock()
	if err != nil {
		s.discard(d)
		return nil, err
	}
	st := s.run([]*draft{d}, 1)[0]
	return &st, nil
}

// place says whether the spawn could be carried out, and with which directory and size.
func (s *Server) place(sp host.Spawn) (dir string, cols, rows int, err error) {
	if sp.Place == host.NewWindow {
		se := s.session(sp.Session)
		if se == nil {
			return "", 0, 0, host.ErrNoSession
		}
		size := se.current.layout
		return se.dir, size.Cols, size.Rows, nil
	}
	t := s.terminals[sp.Target.ID]
	if t == nil {
		return "", 0, 0, host.ErrNoTerminal
	}
	layout, _, at, err := t.window.split(t, sp.Place)
	if err != nil {
		return "", 0, 0, err
	}
	leaf := leavesOf(layout)[at]
	return t.window.session.dir, leaf.Cols, leaf.Rows, nil
}

// seat puts the draft where the spawn wants it, and publishes it.
func (s *Server) seat(sp host.Spawn, d *draft) error {
	if sp.Place == host.NewWindow {
		se := s.session(sp.Session)
		if se == nil {
			return host.ErrNoSession
		}
		w := s.newWindow(se, sp.WindowName, sp.WindowName == "", host.Cell{Cols: d.out.cols, Rows: d.out.rows})
		w.index, w.panes, w.active = se.free(), []*terminal{d.terminal}, d.terminal
		s.enter(d, w)
		se.windows = append(se.windows, w)
		se.sort()
		if !sp.Background {
			se.current, s.last = w, se
		}
		s.changed(fields{eventWhat: "created", eventTerm: d.id, eventName: se.name})
		return nil
	}
	t := s.terminals[sp.Target.ID]
	if t == nil {
		return host.ErrNoTerminal
	}
	w := t.window
	layout, order, _, err := w.split(t, sp.Place)
	if err != nil {
		return err
	}
	s.enter(d, w)
	w.arrange(append(slices.Clone(w.panes), d.terminal), order, layout)
	w.zoomed = false
	if !sp.Background {
		w.active = d.terminal
	}
	s.resizePanes(w)
	s.changed(fields{eventWhat: "created", eventTerm: d.id, eventName: w.session.name})
	return nil
}

func (s *Server) newWindow(se *session, name string, automatic bool, layout host.Cell) *window {
	w := &window{id: "@" + strconv.Itoa(s.ids.window), name: name, automatic: automatic, layout: layout, session: se}
	s.ids.window++
	return w
}

// split is the window's geometry with one pane more beside the terminal: the order in which its
// panes then stand (the new one is the last number), and where the new one stands.
func (w *window) split(t *terminal, place host.Place) (layout host.Cell, order []int, at int, err error) {
	tree := w.layout.Tree()
	n := len(w.panes)
	dir := host.Horizontal
	if place == host.SplitV {
		dir = host.Vertical
	}
	eachNode(&tree, func(node *host.Tree) {
		if node.Dir == host.Leaf && node.Pane == slices.Index(w.panes, t) {
			*node = host.Tree{Dir: dir, Ratio: 0.5, Left: &host.Tree{Pane: node.Pane}, Right: &host.Tree{Pane: n}}
		}
	})
	if n >= host.MaxPanes {
		return host.Cell{}, nil, 0, fmt.Errorf("%w: %d panes in one window", host.ErrNoSpace, n)
	}
	layout, err = tree.Cell(w.layout.Cols, w.layout.Rows, n+1)
	if err != nil {
		return host.Cell{}, nil, 0, err
	}
	order = tree.Order()
	return layout, order, slices.Index(order, n), nil
}

// eachNode visits the nodes that were there when it came to them: what f puts in place of one is
// not visited.
func eachNode(t *host.Tree, f func(*host.Tree)) {
	if t == nil {
		return
	}
	left, right := t.Left, t.Right
	f(t)
	eachNode(left, f)
	eachNode(right, f)
}

func (w *window) arrange(panes []*terminal, order []int, layout host.Cell) {
	w.layout, w.panes = layout, make([]*terminal, 0, len(order))
	for _, n := range order {
		w.panes = append(w.panes, panes[n])
	}
}

// resizePanes gives every terminal of the window its cell's size, but for those that somebody
// looks at.
func (s *Server) resizePanes(w *window) {
	for i, leaf := range leavesOf(w.layout) {
		w.panes[i].out.resize(leaf.Cols, leaf.Rows, w.panes[i].child.ptmx, false)
	}
}

// remove takes a terminal out of the state; its neighbour gets the space.
func (s *Server) remove(t *terminal) {
	w := t.window
	if w == nil {
		return
	}
	at := slices.Index(w.panes, t)
	name := w.session.name
	delete(s.terminals, t.id)
	t.window = nil
	rest := slices.Delete(slices.Clone(w.panes), at, at+1)
	if len(rest) == 0 {
		s.removeWindow(w)
	} else {
		tree := w.layout.Tree()
		eachNode(&tree, func(n *host.Tree) {
			for _, side := range [][2]*host.Tree{{n.Left, n.Right}, {n.Right, n.Left}} {
				if side[0] != nil && side[0].Dir == host.Leaf && side[0].Pane == at {
					*n = *side[1]
					return
				}
			}
		})
		eachNode(&tree, func(n *host.Tree) {
			if n.Dir == host.Leaf && n.Pane > at {
				n.Pane--
			}
		})
		layout, err := tree.Cell(w.layout.Cols, w.layout.Rows, len(rest))
		if err != nil {
			// Cannot be: what fitted with one pane more fits. An even division always does.
			if layout, err = host.Split(w.layout.Cols, w.layout.Rows, len(rest)); err != nil {
				layout = w.layout
			}
			tree = layout.Tree()
		}
		w.arrange(rest, tree.Order(), layout)
		w.zoomed = false
		if w.active == t {
			w.active = w.panes[min(at, len(w.panes)-1)]
		}
		s.resizePanes(w)
	}
	s.drop(t)
	s.changed(fields{eventWhat: "closed", eventTerm: t.id, eventName: name})
}

func (s *Server) removeWindow(w *window) {
	se := w.session
	at := slices.Index(se.windows, w)
	se.windows = slices.Delete(se.windows, at, at+1)
	if len(se.windows) > 0 {
		if se.current == w {
			se.current = se.windows[min(at, len(se.windows)-1)]
		}
		return
	}
	s.sessions = slices.DeleteFunc(s.sessions, func(x *session) bool { return x == se })
	if s.last == se {
		s.last = nil
		if n := len(s.sessions); n > 0 {
			s.last = s.sessions[n-1]
		}
	}
}

func (s *Server) session(name string) *session {
	for _, se := range s.sessions {
		if se.name == name {
			return se
		}
	}
	return nil
}

// free is the lowest index that no window has.
func (se *session) free() int {
	for i := 0; ; i++ {
		if !slices.ContainsFunc(se.windows, func(w *window) bool { return w.index == i }) {
			return i
		}
	}
}

func (se *session) sort() {
	slices.SortStableFunc(se.windows, func(a, b *window) int { return cmp.Compare(a.index, b.index) })
}

func leavesOf(c host.Cell) []host.Cell {
	if c.Dir == host.Leaf {
		return []host.Cell{c}
	}
	var out []host.Cell
	for _, k := range c.Children {
		out = append(out, leavesOf(k)...)
	}
	return out
}

func cloneCell(c host.Cell) host.Cell {
	c.Children = slices.Clone(c.Children)
	for i := range c.Children {
		c.Children[i] = cloneCell(c.Children[i])
	}
	return c
}

// snapshot is one consistent view: all that is ours under one hold of the lock, and then what the
// processes tell.
func (s *Server) snapshot() *host.Workspace {
	type asked struct {
		pane *host.Pane
		t    *terminal
		c    *child
	}
	var ask []asked
	s.mu.Lock()
	w := &host.Workspace{Instance: s.inst, Sessions: make([]host.Session, 0, len(s.sessions))}
	for _, se := range s.sessions {
		out := host.Session{
			ID: se.id, Name: se.name, Dir: se.dir, Active: se == s.last, Created: se.created,
			Windows: make([]host.Window, 0, len(se.windows)),
		}
		for _, win := range se.windows {
			v := host.Window{
				ID: win.id, Name: win.name, Index: win.index, Active: win == se.current, Zoomed: win.zoomed,
				AutomaticName: win.automatic, Layout: cloneCell(win.layout), Panes: make([]host.Pane, len(win.panes)),
			}
			for i, t := range win.panes {
				v.Panes[i] = t.view(s.inst)
				v.Panes[i].Index, v.Panes[i].Active = i, t == win.active
				out.Attached += t.out.watched()
				ask = append(ask, asked{&v.Panes[i], t, t.child})
			}
			out.Windows = append(out.Windows, v)
		}
		w.Sessions = append(w.Sessions, out)
	}
	s.mu.Unlock()

	dirs := make([]string, len(ask))
	for i, a := range ask {
		look(a.pane, a.c)
		if title := a.t.out.shownTitle(); title != "" {
			a.pane.Title = title
		}
		dirs[i] = a.pane.Dir
	}
	s.mu.Lock()
	for i, a := range ask {
		if a.t.child == a.c && !a.pane.Dead {
			a.t.dir = dirs[i]
		}
	}
	s.mu.Unlock()
	for i := range w.Sessions {
		for n := range w.Sessions[i].Windows {
			win := &w.Sessions[i].Windows[n]
			if at := slices.IndexFunc(win.Panes, func(p host.Pane) bool { return p.Active }); win.AutomaticName && at >= 0 {
				if c := win.Panes[at].Command; c != "" {
					win.Name = strings.ToValidUTF8(c, "\uFFFD")
				}
			}
		}
	}
	slices.SortFunc(w.Sessions, func(a, b host.Session) int { return strings.Compare(a.Name, b.Name) })
	return w
}

func (t *terminal) view(here host.Instance) host.Pane {
	p := host.Pane{
		Terminal: host.Terminal{Instance: here, ID: t.id}, Title: t.title, Dir: t.dir, TTY: t.child.tty, PID: t.child.pid,
		Dead: t.dead, Origin: t.origin, Nonce: t.nonce, Meta: t.meta.clone(),
	}
	p.Cols, p.Rows = t.out.size()
	if t.exit != nil {
		e := *t.exit
		p.Exit = &e
	}
	if t.waits && !t.dead {
		select {
		case <-t.child.through:
		default:
			p.Waiting = true
		}
	}
	if t.bound != (proc.ID{}) {
		p.Nonce, p.BoundPID, p.BoundStart = "", t.bound.PID, t.bound.Start
		if p.Origin = host.Bound; !proc.Alive(t.bound) {
			p.Origin = host.BoundGone
		}
	}
	return p
}
