package memory

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

// Step is a point at which a call can be made to fail.
type Step string

// The first group stands at the beginning of a call, before anything is done.
const (
	StepInfo      Step = "info"
	StepSnapshot  Step = "snapshot"
	StepCreate    Step = "create"
	StepSpawn     Step = "spawn"
	StepSwap      Step = "swap"
	StepKill      Step = "kill"
	StepBind      Step = "bind"
	StepFocus     Step = "focus"
	StepLastWords Step = "last-words"

	// Within Create and Spawn, in this order. What fails up to StepCommit leaves nothing.
	StepStore    Step = "store"     // before one value of one pane is stored
	StepReadBack Step = "read-back" // before it is compared with what was asked
	StepCommit   Step = "commit"    // before the session or the pane is there
	StepStart    Step = "start"     // before a program starts: the error becomes Started.Err
)

// Call says where a step stands. Only what the step has is set.
type Call struct {
	Step     Step
	Create   *host.CreateSession
	Spawn    *host.Spawn
	Start    *host.Start
	Terminal host.Terminal
	Key      metadata.Key
	Value    []byte
}

func (h *Host) step(ctx context.Context, c Call) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	h.mu.Lock()
	hook, err := h.hook, h.faults[c.Step]
	h.mu.Unlock()
	if err != nil {
		return err
	}
	if hook != nil {
		return hook(ctx, c)
	}
	return nil
}

// Fail makes every later step of that name return the error; nil ends it.
func (h *Host) Fail(s Step, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults[s] = err
}

// Hook is called before each step, without any lock held: it may use the host. What it
// returns, the step returns; nil ends it. There is one hook.
func (h *Host) Hook(hook func(context.Context, Call) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hook = hook
}

// Tamper makes the host hold something else than it was given, for read-backs that differ; nil
// ends it. It must not use the host.
func (h *Host) Tamper(tamper func(metadata.Key, []byte) []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tamper = tamper
}

// SetName names the server. Hosts of two names are two servers.
func (h *Host) SetName(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.name = name
}

// SetOlder makes it a host that cannot store a record inside a spawn: Info says so, and a
// record in a spawn is ignored.
func (h *Host) SetOlder(older bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.older = older
}

// SetHolds says which names of sessions and windows this host can hold: an error refuses one.
// It must not use the host.
func (h *Host) SetHolds(holds func(name string) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holds = holds
}

// SetClock makes the host read another clock.
func (h *Host) SetClock(now func() time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = now
}

// Restart ends the server's life: everything is gone, ids begin anew with the next session, and
// terminals of before are stale.
func (h *Host) Restart() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open, h.last = nil, nil
	h.prune()
}

// Reboot is Restart on a machine that was started anew.
func (h *Host) Reboot() {
	h.Restart()
	h.mu.Lock()
	defer h.mu.Unlock()
	n, err := strconv.Atoi(h.boot[len("boot-"):])
	if err == nil {
		h.boot = "boot-" + strconv.Itoa(n+1)
	}
}

// Edit changes what a later Snapshot says of a terminal, in any way that a test needs. The
// terminal, its place and its size are not taken over.
func (h *Host) Edit(t host.Terminal, edit func(*host.Pane)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, p, err := h.find(t)
	if err != nil {
		return fmt.Errorf("edit %s: %w", t.ID, err)
	}
	keep := p.Terminal
	edit(&p.Pane)
	p.Terminal = keep
	if p.Meta == nil {
		p.Meta = make(map[metadata.Key][]byte)
	}
	return nil
}

// EditWindow is Edit for the window of a terminal: Name, AutomaticName and Zoomed are taken
// over, and a Layout of the same panes.
func (h *Host) EditWindow(t host.Terminal, edit func(*host.Window)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	w, _, err := h.find(t)
	if err != nil {
		return fmt.Errorf("edit the window of %s: %w", t.ID, err)
	}
	v := host.Window{ID: w.id, Name: w.name, Zoomed: w.zoomed, AutomaticName: w.automatic, Layout: clone(w.layout)}
	edit(&v)
	if err := v.Layout.Check(len(w.panes)); err != nil {
		return fmt.Errorf("edit the window of %s: %w", t.ID, err)
	}
	w.name, w.zoomed, w.automatic, w.layout = v.Name, v.Zoomed, v.AutomaticName, clone(v.Layout)
	return nil
}

// EditSession is Edit for a session: Name, Dir, Attached and Created are taken over.
func (h *Host) EditSession(name string, edit func(*host.Session)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.session(name)
	if s == nil {
		return fmt.Errorf("edit session %q: %w", name, host.ErrNoSession)
	}
	v := host.Session{ID: s.id, Name: s.name, Group: s.group, Dir: s.dir, Attached: s.attached, Created: s.created}
	edit(&v)
	if v.Name != s.name && h.session(v.Name) != nil {
		return fmt.Errorf("edit session %q: %w", name, host.ErrSessionExists)
	}
	s.name, s.dir, s.attached, s.created = v.Name, v.Dir, v.Attached, v.Created
	return nil
}

// Rename gives a session another name.
func (h *Host) Rename(name, to string) error {
	return h.EditSession(name, func(s *host.Session) { s.Name = to })
}

// SetTitle, SetDir, SetPID and SetCommand change what Snapshot says of a terminal.
func (h *Host) SetTitle(t host.Terminal, title string) error {
	return h.Edit(t, func(p *host.Pane) { p.Title = title })
}

func (h *Host) SetDir(t host.Terminal, dir string) error {
	return h.Edit(t, func(p *host.Pane) { p.Dir = dir })
}

func (h *Host) SetPID(t host.Terminal, pid int) error {
	return h.Edit(t, func(p *host.Pane) { p.PID = pid })
}

func (h *Host) SetCommand(t host.Terminal, command string) error {
	return h.Edit(t, func(p *host.Pane) { p.Command = command })
}

// Say puts text on a terminal's screen, below what is there.
func (h *Host) Say(t host.Terminal, text string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, p, err := h.find(t)
	if err != nil {
		return fmt.Errorf("say on %s: %w", t.ID, err)
	}
	p.text += text
	return nil
}

// Exit ends the program of a terminal. What follows is as its Start said: a shell, a dead pane
// that is held, or nothing. A shell's end closes the pane.
func (h *Host) Exit(t host.Terminal, e host.Exit) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	w, p, err := h.find(t)
	if err != nil {
		return fmt.Errorf("exit in %s: %w", t.ID, err)
	}
	clean := e == host.Exit{}
	switch {
	case p.Dead:
		return fmt.Errorf("exit in %s: it is dead already", t.ID)
	case p.Origin != host.Ours, clean && p.start.AfterExit == "close":
		h.remove(w, p)
	case clean && p.start.AfterExit == "shell", p.start.AfterExit == "shell-always":
		h.pids++
		p.Origin, p.Command, p.PID, p.Waiting = host.Ended, "sh", h.pids, false
	default:
		p.Dead, p.Exit, p.Waiting = true, &e, false
	}
	return nil
}

// Respawn puts another program into a terminal that we made, as a user can.
func (h *Host) Respawn(t host.Terminal, command string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, p, err := h.find(t)
	if err != nil {
		return fmt.Errorf("respawn %s: %w", t.ID, err)
	}
	h.pids++
	p.PID, p.Command, p.Dead, p.Exit, p.Waiting = h.pids, command, false, nil, false
	if p.Origin == host.Ours || p.Origin == host.Ended {
		p.Origin = host.Replaced
	}
	return nil
}

// EndBound ends the process that a terminal's metadata is bound to.
func (h *Host) EndBound(t host.Terminal) error {
	return h.Edit(t, func(p *host.Pane) {
		if p.Origin == host.Bound {
			p.Origin = host.BoundGone
		}
	})
}

// Move takes a terminal out of its window into a new one of a session, at an index; -1 is the
// next free one.
func (h *Host) Move(t host.Terminal, session string, index int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	w, p, err := h.find(t)
	if err != nil {
		return fmt.Errorf("move %s: %w", t.ID, err)
	}
	to := h.session(session)
	if to == nil {
		return fmt.Errorf("move %s to %q: %w", t.ID, session, host.ErrNoSession)
	}
	if index < 0 {
		index = to.links.free()
	} else if slices.ContainsFunc(to.links.at, func(l link) bool { return l.index == index }) {
		return fmt.Errorf("move %s to %q: index %d is in use", t.ID, session, index)
	}
	alone := &window{
		name: w.name, automatic: w.automatic, panes: []*pane{p}, active: p,
		layout: host.Cell{Cols: w.layout.Cols, Rows: w.layout.Rows},
	}
	h.enter(alone)
	to.links.at = append(to.links.at, link{index, alone})
	h.remove(w, p)
	return nil
}

// Exchange swaps the places of two terminals.
func (h *Host) Exchange(a, b host.Terminal) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	wa, pa, err := h.find(a)
	if err != nil {
		return fmt.Errorf("exchange %s: %w", a.ID, err)
	}
	wb, pb, err := h.find(b)
	if err != nil {
		return fmt.Errorf("exchange %s: %w", b.ID, err)
	}
	ia, ib := slices.Index(wa.panes, pa), slices.Index(wb.panes, pb)
	wa.panes[ia], wb.panes[ib] = pb, pa
	for _, w := range []*window{wa, wb} {
		if !slices.Contains(w.panes, w.active) {
			w.active = w.panes[0]
		}
	}
	return nil
}

// Select makes a terminal the active one of its window, and its window and session the current
// ones.
func (h *Host) Select(t host.Terminal) error { return h.Focus(context.Background(), t) }

// Group adds a session that shares the windows of another.
func (h *Host) Group(with, name string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.session(with)
	switch {
	case s == nil:
		return fmt.Errorf("group with %q: %w", with, host.ErrNoSession)
	case h.session(name) != nil:
		return fmt.Errorf("group %q: %w", name, host.ErrSessionExists)
	}
	if s.group == "" {
		s.group = s.name
	}
	grouped := *s
	grouped.id, grouped.name, grouped.created, grouped.attached = "$"+strconv.Itoa(h.sessions), name, h.now(), 0
	h.open = append(h.open, &grouped)
	h.sessions++
	return nil
}

// Link shows the window of a terminal in another session too.
func (h *Host) Link(t host.Terminal, session string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	w, _, err := h.find(t)
	if err != nil {
		return fmt.Errorf("link %s: %w", t.ID, err)
	}
	to := h.session(session)
	if to == nil {
		return fmt.Errorf("link %s to %q: %w", t.ID, session, host.ErrNoSession)
	}
	to.links.at = append(to.links.at, link{to.links.free(), w})
	return nil
}
