package memory

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

// Create implements host.Host.
func (h *Host) Create(ctx context.Context, c host.CreateSession) (*host.Created, error) {
	out, err := h.create(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("create session %q: %w", c.Name, err)
	}
	return out, nil
}

func (h *Host) create(ctx context.Context, c host.CreateSession) (*host.Created, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if err := h.step(ctx, Call{Step: StepCreate, Create: &c}); err != nil {
		return nil, err
	}
	h.mu.Lock()
	err := h.holds(c.Name)
	if old := h.session(c.Name); err == nil && old != nil && (c.Aside == nil || old.id != c.Aside.Session) {
		err = host.ErrSessionExists
	}
	h.mu.Unlock()
	if err != nil {
		return nil, err
	}

	// Built where nobody sees it: whatever fails before the commit leaves nothing.
	s := &session{name: c.Name, dir: c.Dir, links: new(links)}
	var made [][]*pane
	for _, spec := range c.Windows {
		h.mu.Lock()
		err := h.holds(spec.Name)
		h.mu.Unlock()
		if err != nil {
			return nil, err
		}
		w := &window{name: spec.Name, automatic: spec.AutomaticName, zoomed: spec.Zoomed, layout: clone(spec.Layout)}
		if w.automatic && w.name == "" {
			w.name = "sh"
		}
		for _, p := range spec.Panes {
			built, err := h.build(ctx, p)
			if err != nil {
				return nil, err
			}
			w.panes = append(w.panes, built)
		}
		w.active = w.panes[spec.Active]
		s.links.at = append(s.links.at, link{spec.Index, w})
		made = append(made, w.panes)
	}
	s.current = s.links.at[c.Active].window
	// Those that ask for an index get it; the others get what is free.
	for i := range s.links.at {
		if s.links.at[i].index < 0 {
			s.links.at[i].index = s.links.free()
		}
	}
	for _, panes := range made {
		for _, p := range panes {
			if err := h.readBack(ctx, p); err != nil {
				return nil, err
			}
		}
	}
	if err := h.step(ctx, Call{Step: StepCommit, Create: &c}); err != nil {
		return nil, err
	}

	h.mu.Lock()
	if old := h.session(c.Name); old != nil {
		if !h.setAside(old, c.Aside) {
			h.mu.Unlock()
			return nil, host.ErrSessionExists
		}
		s.attached, old.attached = old.attached, 0
	}
	h.begin()
	s.id, s.created = "$"+strconv.Itoa(h.sessions), h.now()
	h.sessions++
	for _, l := range s.links.at {
		h.enter(l.window)
		for _, p := range l.panes {
			h.seat(p)
		}
	}
	h.open = append(h.open, s)
	h.last = s
	h.mu.Unlock()

	out := &host.Created{Session: s.id}
	for _, panes := range made {
		var started []host.Started
		for _, p := range panes {
			started = append(started, h.run(ctx, p))
		}
		out.Windows = append(out.Windows, started)
	}
	return out, nil
}

// Spawn implements host.Host.
func (h *Host) Spawn(ctx context.Context, s host.Spawn) (*host.Started, error) {
	p, err := h.spawn(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("spawn: %w", err)
	}
	started := h.run(ctx, p)
	return &started, nil
}

func (h *Host) spawn(ctx context.Context, s host.Spawn) (*pane, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if err := h.step(ctx, Call{Step: StepSpawn, Spawn: &s}); err != nil {
		return nil, err
	}
	if err := h.place(s, nil); err != nil {
		return nil, err
	}
	p, err := h.build(ctx, s.Pane)
	if err != nil {
		return nil, err
	}
	if err := h.readBack(ctx, p); err != nil {
		return nil, err
	}
	if err := h.step(ctx, Call{Step: StepCommit, Spawn: &s}); err != nil {
		return nil, err
	}
	if err := h.place(s, p); err != nil {
		return nil, err
	}
	return p, nil
}

// place puts a pane where the spawn wants it; nil only asks whether that could be done.
func (h *Host) place(s host.Spawn, p *pane) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.Place == host.NewWindow {
		switch in := h.session(s.Session); {
		case !h.running:
			return host.ErrNoServer
		case in == nil:
			return host.ErrNoSession
		case s.WindowName != "" && h.holds(s.WindowName) != nil:
			return h.holds(s.WindowName)
		case p != nil:
			size := in.current.layout
			w := &window{
				name: s.WindowName, automatic: s.WindowName == "", active: p, panes: []*pane{p},
				layout: host.Cell{Cols: size.Cols, Rows: size.Rows},
			}
			if w.automatic {
				w.name = "sh"
			}
			h.enter(w)
			h.seat(p)
			in.links.at = append(in.links.at, link{in.links.free(), w})
			if !s.Background {
				in.current, h.last = w, in
			}
		}
		return nil
	}
	w, target, err := h.find(s.Target)
	if err != nil {
		return err
	}
	tree := w.layout.Tree()
	at := &tree
	for n := range walk(&tree) {
		if n.Dir == host.Leaf && n.Pane == slices.Index(w.panes, target) {
			at = n
		}
	}
	dir := host.Horizontal
	if s.Place == host.SplitV {
		dir = host.Vertical
	}
	*at = host.Tree{Dir: dir, Ratio: 0.5, Left: &host.Tree{Pane: at.Pane}, Right: &host.Tree{Pane: len(w.panes)}}
	layout, err := tree.Cell(w.layout.Cols, w.layout.Rows, len(w.panes)+1)
	if err != nil {
		return err
	}
	if p != nil {
		h.seat(p)
		w.arrange(append(slices.Clone(w.panes), p), tree, layout)
		w.zoomed = false
		if !s.Background {
			w.active = p
		}
	}
	return nil
}

// arrange puts the panes in the order in which the tree has them.
func (w *window) arrange(panes []*pane, tree host.Tree, layout host.Cell) {
	w.panes, w.layout = nil, layout
	for _, n := range tree.Order() {
		w.panes = append(w.panes, panes[n])
	}
}

func walk(t *host.Tree) func(func(*host.Tree) bool) {
	return func(yield func(*host.Tree) bool) {
		var down func(*host.Tree) bool
		down = func(t *host.Tree) bool {
			return t == nil || yield(t) && down(t.Left) && down(t.Right)
		}
		down(t)
	}
}

// build makes a pane that nobody sees, its record stored.
func (h *Host) build(ctx context.Context, spec host.PaneSpec) (*pane, error) {
	p := &pane{start: spec.Start, Pane: host.Pane{
		Title: spec.Title, Dir: spec.Start.Dir, Origin: host.Ours, Meta: make(map[metadata.Key][]byte),
	}}
	switch spec.Start.Mode {
	case host.Shell:
		p.Command = "sh"
		// Without a value of ours nothing tells the shell from any other.
		p.Origin = host.Foreign
		if len(spec.Meta) > 0 {
			p.Origin = host.Ended
		}
	case host.Program:
		p.Command, p.Waiting = filepath.Base(spec.Start.Argv[0]), true
	case host.Placeholder:
		p.Command, p.Waiting, p.text = "phux-agent", true, spec.Start.Reason+"\n"+spec.Start.Hint+"\n"
	}
	h.mu.Lock()
	older := h.older
	if p.Origin != host.Foreign {
		h.nonces++
		p.Nonce = fmt.Sprintf("%032x", h.nonces)
	}
	h.mu.Unlock()
	if older {
		return p, nil
	}
	for k, v := range spec.Meta {
		if err := h.step(ctx, Call{Step: StepStore, Start: &spec.Start, Key: k, Value: v}); err != nil {
			return nil, err
		}
		h.mu.Lock()
		p.Meta[k] = h.hold(k, v)
		h.mu.Unlock()
	}
	p.wanted = cloneMeta(spec.Meta)
	return p, nil
}

func (h *Host) readBack(ctx context.Context, p *pane) error {
	for k, v := range p.wanted {
		if err := h.step(ctx, Call{Step: StepReadBack, Start: &p.start, Key: k, Value: v}); err != nil {
			return err
		}
		if !bytes.Equal(p.Meta[k], v) {
			return fmt.Errorf("the host holds another %s than was stored", k)
		}
	}
	return nil
}

// enter and seat give a window and a pane their ids in this life.
func (h *Host) enter(w *window) {
	w.id = "@" + strconv.Itoa(h.windows)
	h.windows++
}

func (h *Host) seat(p *pane) {
	p.Terminal = host.Terminal{Instance: h.instance(), ID: "%" + strconv.Itoa(h.panes)}
	p.TTY = "/memory/tty" + strconv.Itoa(h.panes)
	h.panes++
	h.pids++
	p.PID = h.pids
}

// run starts the program of a pane that everybody sees.
func (h *Host) run(ctx context.Context, p *pane) host.Started {
	err := h.step(ctx, Call{Step: StepStart, Terminal: p.Terminal, Start: &p.start})
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.start.Mode == host.Program {
		p.Waiting = false
	}
	if err != nil {
		p.Dead, p.Exit = true, &host.Exit{Status: 1}
	} else {
		h.started = append(h.started, p.start)
	}
	return host.Started{Terminal: p.Terminal, Nonce: p.Nonce, PID: p.PID, Err: err, Meta: cloneMeta(p.Meta)}
}

// free is the lowest index that no window has.
func (l *links) free() int {
	for i := 0; ; i++ {
		if !slices.ContainsFunc(l.at, func(l link) bool { return l.index == i }) {
			return i
		}
	}
}

// remove takes a pane out of its window; its neighbour gets the space.
func (h *Host) remove(w *window, p *pane) {
	at := slices.Index(w.panes, p)
	rest := slices.Delete(slices.Clone(w.panes), at, at+1)
	if len(rest) == 0 {
		w.panes = nil
		h.prune()
		return
	}
	tree := w.layout.Tree()
	for n := range walk(&tree) {
		for _, side := range [][2]*host.Tree{{n.Left, n.Right}, {n.Right, n.Left}} {
			if side[0] != nil && side[0].Dir == host.Leaf && side[0].Pane == at {
				*n = *side[1]
				break
			}
		}
	}
	for n := range walk(&tree) {
		if n.Dir == host.Leaf && n.Pane > at {
			n.Pane--
		}
	}
	layout, err := tree.Cell(w.layout.Cols, w.layout.Rows, len(rest))
	if err != nil {
		// What fitted with one pane more fits.
		layout = w.layout
	}
	w.arrange(rest, tree, layout)
	w.zoomed = false
	if w.active == p {
		w.active = w.panes[min(at, len(w.panes)-1)]
	}
}
