// Package memory is a host in memory: it keeps every promise of host.Host but one, for it runs
// no program. Tests of launch, capture and restore drive it: they make each step fail, let a
// program end, move and rename what stands, and end the server's life.
package memory

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

// Kind is the kind of this host.
const Kind = "memory"

// FirstPID is the pid of the first program that a host "starts". It is above the highest pid of
// Linux, so that nobody takes one of these for a process of the machine.
const FirstPID = 1 << 23

// Host is one host and all lives of its server. Its methods may be called concurrently.
type Host struct {
	mu    sync.Mutex
	name  string
	boot  string
	older bool
	holds func(string) error
	now   func() time.Time

	hook   func(context.Context, Call) error
	faults map[Step]error
	tamper func(metadata.Key, []byte) []byte

	life     int
	running  bool
	pids     int
	nonces   int
	panes    int // ids given in this life
	windows  int
	sessions int
	open     []*session
	last     *session // the one looked at last
	started  []host.Start
}

var (
	_ host.Host    = (*Host)(nil)
	_ host.Reader  = (*Host)(nil)
	_ host.Binder  = (*Host)(nil)
	_ host.Focuser = (*Host)(nil)
)

// New returns a host whose server does not run yet: the first Create starts it, and the end of
// its last session ends it.
func New() *Host {
	return &Host{
		name: Kind, boot: "boot-1", now: time.Now, pids: FirstPID - 1,
		holds:  func(string) error { return nil },
		faults: make(map[Step]error),
	}
}

// Within one life ids grow and are never used again; with the life they begin anew.
type session struct {
	id, name, dir string
	attached      int
	aside         bool
	created       time.Time
	group         string
	links         *links
	current       *window
}

// links are the windows of a session; sessions of one group share them.
type links struct{ at []link }

type link struct {
	index int
	*window
}

type window struct {
	id, name  string
	automatic bool
	zoomed    bool
	layout    host.Cell
	panes     []*pane
	active    *pane
}

type pane struct {
	host.Pane
	start host.Start
	text  string // on its screen
	// wanted is what a spawn asked to be stored.
	wanted map[metadata.Key][]byte
}

func (h *Host) instance() host.Instance {
	if !h.running {
		return host.Instance{}
	}
	return host.Instance{
		Kind: Kind, Socket: "/memory/" + h.name, PID: FirstPID + 1000000 + h.life,
		Start: "life-" + strconv.Itoa(h.life), Boot: h.boot,
	}
}

// begin starts a life where none is.
func (h *Host) begin() {
	if h.running {
		return
	}
	h.running, h.life = true, h.life+1
	h.panes, h.windows, h.sessions = 0, 0, 0
}

// prune removes windows without panes and sessions without windows, and ends a life that has
// no session.
func (h *Host) prune() {
	var open []*session
	for _, s := range h.open {
		s.links.at = slices.DeleteFunc(s.links.at, func(l link) bool { return len(l.panes) == 0 })
		if len(s.links.at) == 0 {
			continue
		}
		if !slices.ContainsFunc(s.links.at, func(l link) bool { return l.window == s.current }) {
			s.current = s.links.at[0].window
		}
		open = append(open, s)
	}
	h.open = open
	if h.last != nil && !slices.Contains(open, h.last) {
		h.last = nil
		if len(open) > 0 {
			h.last = open[0]
		}
	}
	if len(open) == 0 {
		h.running = false
	}
}

// Info implements host.Host.
func (h *Host) Info(ctx context.Context) (host.Info, error) {
	if err := h.step(ctx, Call{Step: StepInfo}); err != nil {
		return host.Info{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return host.Info{
		Kind: Kind, Version: "1", Server: "memory-" + h.name, Running: h.running,
		Instance: h.instance(), AtomicRecord: !h.older,
	}, nil
}

// Snapshot implements host.Host.
func (h *Host) Snapshot(ctx context.Context) (*host.Workspace, error) {
	if err := h.step(ctx, Call{Step: StepSnapshot}); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.running {
		return nil, host.ErrNoServer
	}
	w := &host.Workspace{Instance: h.instance()}
	for _, s := range h.open {
		out := host.Session{
			ID: s.id, Name: s.name, Group: s.group, Dir: s.dir, Active: s == h.last,
			Attached: s.attached, Created: s.created, Aside: s.aside,
		}
		for _, l := range s.links.at {
			out.Windows = append(out.Windows, h.window(s, l))
		}
		slices.SortFunc(out.Windows, func(a, b host.Window) int { return a.Index - b.Index })
		w.Sessions = append(w.Sessions, out)
	}
	slices.SortFunc(w.Sessions, func(a, b host.Session) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return w, nil
}

func (h *Host) window(s *session, l link) host.Window {
	out := host.Window{
		ID: l.id, Name: l.name, Index: l.index, Active: l.window == s.current, Zoomed: l.zoomed,
		AutomaticName: l.automatic, Layout: clone(l.layout),
	}
	places := 0
	seen := make(map[*links]bool)
	for _, other := range h.open {
		if seen[other.links] {
			continue
		}
		seen[other.links] = true
		for _, o := range other.links.at {
			if o.window == l.window {
				places++
			}
		}
	}
	out.Linked = places > 1
	sizes := leaves(l.layout)
	for i, p := range l.panes {
		v := p.view()
		v.Index, v.Active = i, p == l.active
		v.Cols, v.Rows = sizes[i].Cols, sizes[i].Rows
		out.Panes = append(out.Panes, v)
	}
	return out
}

// view is a copy that shares nothing with the pane.
func (p *pane) view() host.Pane {
	v := p.Pane
	v.Meta = cloneMeta(p.Meta)
	if p.Exit != nil {
		e := *p.Exit
		v.Exit = &e
	}
	return v
}

func cloneMeta(m map[metadata.Key][]byte) map[metadata.Key][]byte {
	out := make(map[metadata.Key][]byte, len(m))
	for k, v := range m {
		out[k] = bytes.Clone(v)
	}
	return out
}

func clone(c host.Cell) host.Cell {
	c.Children = slices.Clone(c.Children)
	for i := range c.Children {
		c.Children[i] = clone(c.Children[i])
	}
	return c
}

func leaves(c host.Cell) []host.Cell {
	if c.Dir == host.Leaf {
		return []host.Cell{c}
	}
	var out []host.Cell
	for _, k := range c.Children {
		out = append(out, leaves(k)...)
	}
	return out
}

// find returns a terminal of this life.
func (h *Host) find(t host.Terminal) (*window, *pane, error) {
	switch {
	case !h.running:
		return nil, nil, host.ErrNoServer
	case t.Instance != h.instance():
		return nil, nil, host.ErrStale
	}
	for _, s := range h.open {
		for _, l := range s.links.at {
			for _, p := range l.panes {
				if p.Terminal.ID == t.ID {
					return l.window, p, nil
				}
			}
		}
	}
	return nil, nil, host.ErrNoTerminal
}

func (h *Host) session(name string) *session {
	for _, s := range h.open {
		if s.name == name {
			return s
		}
	}
	return nil
}

// Swap implements host.Host.
func (h *Host) Swap(ctx context.Context, t host.Terminal, k metadata.Key, old, new []byte) error {
	if err := host.CheckValue(k, new); err != nil {
		return err
	}
	if err := h.step(ctx, Call{Step: StepSwap, Terminal: t, Key: k, Value: new}); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, p, err := h.find(t)
	if err != nil {
		return fmt.Errorf("swap %s of %s: %w", k, t.ID, err)
	}
	if !bytes.Equal(p.Meta[k], old) {
		return fmt.Errorf("swap %s of %s: %w", k, t.ID, host.ErrConflict)
	}
	if len(new) == 0 {
		delete(p.Meta, k)
	} else {
		p.Meta[k] = h.hold(k, new)
	}
	return nil
}

// hold is what the server keeps of a value.
func (h *Host) hold(k metadata.Key, v []byte) []byte {
	v = bytes.Clone(v)
	if h.tamper != nil {
		v = h.tamper(k, v)
	}
	return v
}

// Kill implements host.Host.
func (h *Host) Kill(ctx context.Context, t host.Terminal) error {
	if err := h.step(ctx, Call{Step: StepKill, Terminal: t}); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	w, p, err := h.find(t)
	if err != nil {
		return fmt.Errorf("kill %s: %w", t.ID, err)
	}
	h.remove(w, p)
	return nil
}

// Bind implements host.Binder.
func (h *Host) Bind(ctx context.Context, t host.Terminal, pid int, start uint64, meta map[metadata.Key][]byte) error {
	for k, v := range meta {
		if err := host.CheckValue(k, v); err != nil {
			return err
		}
	}
	if err := h.step(ctx, Call{Step: StepBind, Terminal: t}); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, p, err := h.find(t)
	if err != nil {
		return fmt.Errorf("bind %s: %w", t.ID, err)
	}
	p.Origin, p.Nonce, p.BoundPID, p.BoundStart = host.Bound, "", pid, start
	p.Meta = make(map[metadata.Key][]byte)
	for k, v := range meta {
		if len(v) > 0 {
			p.Meta[k] = h.hold(k, v)
		}
	}
	return nil
}

// Focus implements host.Focuser.
func (h *Host) Focus(ctx context.Context, t host.Terminal) error {
	if err := h.step(ctx, Call{Step: StepFocus, Terminal: t}); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	w, p, err := h.find(t)
	if err != nil {
		return fmt.Errorf("focus %s: %w", t.ID, err)
	}
	w.active = p
	for _, s := range h.open {
		if slices.ContainsFunc(s.links.at, func(l link) bool { return l.window == w }) {
			s.current, h.last = w, s
			break
		}
	}
	return nil
}

// LastWords implements host.Reader.
func (h *Host) LastWords(ctx context.Context, t host.Terminal, most int) (string, error) {
	if err := h.step(ctx, Call{Step: StepLastWords, Terminal: t}); err != nil {
		return "", err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, p, err := h.find(t)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", t.ID, err)
	}
	return p.text[max(0, len(p.text)-most):], nil
}

// Started returns what would have run, in order: every start of a pane that this host made and
// whose program was not made to fail.
func (h *Host) Started() []host.Start {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.started)
}

// Terminals returns every terminal of this life by its id.
func (h *Host) Terminals() map[string]host.Terminal {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make(map[string]host.Terminal)
	for _, s := range h.open {
		for _, l := range s.links.at {
			for _, p := range l.panes {
				out[p.Terminal.ID] = p.Terminal
			}
		}
	}
	return maps.Clone(out)
}
