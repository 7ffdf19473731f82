package tmux

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/phux-agent/phux-agent/host"
)

// Spawn adds one pane to an existing session, or leaves nothing; see host.Host.
func (h *Host) Spawn(ctx context.Context, s host.Spawn) (*host.Started, error) {
	out, err := h.spawn(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("spawn: %w", err)
	}
	return out, nil
}

func (h *Host) spawn(ctx context.Context, s host.Spawn) (*host.Started, error) {
	if err := h.checkSelf(); err != nil {
		return nil, err
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	for k := range s.Pane.Meta {
		if _, err := optionOf(k); err != nil {
			return nil, err
		}
	}
	n := &spawning{h: h, spec: s, id: sessionHead + newNonce()[:16], mark: newMark()}
	if err := n.resolve(ctx); err != nil {
		return nil, err
	}
	dir := s.Pane.Start.Dir
	if dir == "" {
		dir = h.home()
	}
	n.pane = newMade(s.Pane, dir)
	sweep(h.opt.RuntimeDir)
	batches := 1
	if n.pane.plain {
		batches = 0
	}
	var err error
	if n.tx, err = begin(h.opt.RuntimeDir, n.id, batches); err != nil {
		return nil, err
	}
	defer n.tx.end()
	if err := n.pane.enroll(n.tx, 0); err != nil {
		return nil, err
	}
	if err := n.make(ctx); err != nil {
		n.undo()
		return nil, err
	}
	if !n.pane.plain {
		start(ctx, n.tx, []*made{n.pane})
	}
	out := n.pane.started(n.inst, n.tx)
	return &out, nil
}

// spawning is one pane on its way into a session.
type spawning struct {
	h       *Host
	spec    host.Spawn
	id      string
	mark    string
	session string // the target of a new window, up to its ':'
	pane    *made
	tx      *transaction
	inst    host.Instance
	created string // id of the new pane, once known
}

// resolve finds the session by its exact name. A name that no reading of tmux's target syntax
// could take for anything else goes as it is, and what came of it is compared afterwards.
func (n *spawning) resolve(ctx context.Context) error {
	if n.spec.Place != host.NewWindow {
		if !validID(n.spec.Target.ID, '%') {
			return host.ErrNoTerminal
		}
		return n.h.sameLife(n.spec.Target)
	}
	if simpleName(n.spec.Session) {
		n.session = "=" + n.spec.Session
		return nil
	}
	p, err := n.h.probe(ctx)
	if err != nil {
		return err
	}
	id, ok := p.sessions[n.spec.Session]
	if !ok {
		return host.ErrNoSession
	}
	n.session = id
	return nil
}

func simpleName(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || i > 0 && (c == '-' || c == ' ') {
			continue
		}
		return false
	}
	return s != ""
}

// list makes the pane, and looks at it. A split in the background names no target that would
// outlive it in this list: it is settled by its id, in a second one.
func (n *spawning) list() (l list, settled bool) {
	self := n.h.opt.Self
	dirs, text := variables{name: "@" + n.id + "-d"}, variables{name: "@" + n.id + "-t"}
	dir := dirs.put(&l, n.pane.dir)
	said := n.mark + "[#{session_id} #{window_id} #{pane_id}" + n.mark + "]"
	target := ""
	switch {
	case n.spec.Place == host.NewWindow && n.spec.Background:
		target = n.session + ":{end}."
		l.add(append([]string{"new-window", "-d", "-a", "-t", n.session + ":{end}", "-P", "-F", said, "-c", dir}, n.pane.argv(self)...)...)
	case n.spec.Place == host.NewWindow:
		l.add(append([]string{"new-window", "-t", n.session + ":", "-P", "-F", said, "-c", dir}, n.pane.argv(self)...)...)
	default:
		way := "-v"
		if n.spec.Place == host.SplitH {
			way = "-h"
		}
		split := []string{"split-window", way, "-t", n.spec.Target.ID, "-P", "-F", said, "-c", dir}
		if !n.spec.Background {
			l.add(append(split, n.pane.argv(self)...)...)
			break
		}
		split = append(split, "-d")
		var as, zoomed list
		as.add(append(split, n.pane.argv(self)...)...)
		// A zoomed pane that the user looks at stays zoomed.
		zoomed.add(append(append(split, "-Z"), n.pane.argv(self)...)...)
		l.add("if-shell", "-F", "-t", n.spec.Target.ID, "#{window_zoomed_flag}", zoomed.String(), as.String())
		l.add("list-panes", "-t", n.spec.Target.ID, "-F", n.format())
		return l, false
	}
	n.settle(&l, &text, target)
	return l, true
}

func (n *spawning) format() string { return rowFormat(n.mark, n.h.seenVersion().escapesOutput()) }

func (n *spawning) settle(l *list, text *variables, target string) {
	at := func(words ...string) []string {
		if target != "" {
			words = append(words, "-t", target)
		}
		return words
	}
	n.pane.settle(l, target, n.h.opt.Self)
	if t := n.spec.Pane.Title; t != "" {
		l.show(t, text, func(f string) []string { return at("select-pane", "-T", f) })
	}
	if w := n.spec.WindowName; w != "" && n.spec.Place == host.NewWindow {
		l.show(w, text, func(f string) []string { return append(at("rename-window"), "--", f) })
	}
	l.add(at("list-panes", "-F", n.format())...)
}

// make builds the pane, looks at it, waits for it at the gate, and commits.
func (n *spawning) make(ctx context.Context) error {
	l, settled := n.list()
	rows, err := n.fire(ctx, l)
	if err != nil {
		return err
	}
	if !settled {
		if err := n.verify(rows, false); err != nil {
			return err
		}
		var second list
		n.settle(&second, &variables{name: "@" + n.id + "-t"}, n.pane.pane)
		if rows, err = n.fire(ctx, second); err != nil {
			return err
		}
	}
	if err := n.verify(rows, true); err != nil {
		return err
	}
	if n.pane.plain {
		return nil
	}
	if err := arrive(ctx, n.tx, []*made{n.pane}); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	n.h.remember(rows)
	return n.tx.commit()
}

// dangerous is a format that is 1 where a new window would kill the server: version.manualKills.
const dangerous = "#{&&:#{==:#{window-size},manual},#{m/r:^3[.][3456],#{version}}}"

// fire runs a list where no hook enters it, in the server life that is meant, and only where it
// does not kill the server. A tmux that cannot do it so is told by its own answer.
func (n *spawning) fire(ctx context.Context, l list) ([]row, error) {
	h, m := n.h, n.mark
	var out []byte
	var err error
	if v := h.seenVersion(); v.known() && !v.firesLists() {
		out, err = n.fireSlot(ctx, l)
	} else {
		life := "1"
		if n.spec.Place != host.NewWindow {
			life = sameServer(n.spec.Target.Instance)
		}
		cond := "#{?#{m/r:^([012][.]|3[.][012]),#{version}},0,#{?" + dangerous + ",0," + life + "}}"
		name := "@" + n.id
		out, err = h.tool.script(ctx, []string{
			"set-option -g " + name + " " + word(l.String()),
			"display-message -p -t " + word(nowhere(m)) + " " + word(probeFormat(m)),
			"if-shell -F -t " + word(nowhere(m)) + " " + word(cond) + " " + word("set-hook -R "+name),
			"set-option -gu " + name,
			"set-option -gu " + name + "-d",
			"set-option -gu " + name + "-t",
		})
		p, perr := parseProbe(out, m)
		if perr != nil {
			return nil, errors.Join(err, perr)
		}
		known := h.seenVersion()
		h.saw(p.version)
		n.inst = p.instance
		if err := p.refuse(); err != nil {
			return nil, err
		}
		if life != "1" && p.instance != n.spec.Target.Instance {
			return nil, host.ErrStale
		}
		switch {
		case !p.version.firesLists():
			out, err = n.fireSlot(ctx, l)
		case p.version.escapesOutput() && !known.escapesOutput():
			// What was listed cannot be read back exactly; ask again so that it can.
			if at := n.said(out); at != "" {
				rows, lerr := h.list(ctx, "-t", at)
				return rows, lerr
			}
		}
	}
	n.said(out)
	rows, perr := parseRows(string(out), m, h.seenVersion().escapesOutput())
	if perr != nil {
		return nil, errors.Join(err, perr)
	}
	if len(rows) == 0 && err != nil {
		return nil, err
	}
	return rows, nil
}

// said takes the new pane's id from what new-window or split-window printed.
func (n *spawning) said(out []byte) string {
	_, s, _ := strings.Cut(string(out), n.mark+"[")
	s, _, ok := strings.Cut(s, n.mark+"]")
	if f := strings.Split(s, " "); ok && len(f) == 3 && validID(f[2], '%') {
		n.created = f[2]
	}
	return n.created
}

func (n *spawning) fireSlot(ctx context.Context, l list) ([]byte, error) {
	unlock, err := n.h.lockSlot(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	p, err := n.h.probe(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.refuse(); err != nil {
		return nil, err
	}
	if n.spec.Place != host.NewWindow && p.instance != n.spec.Target.Instance {
		return nil, host.ErrStale
	}
	if len(p.sessions) == 0 {
		return nil, host.ErrNoSession
	}
	n.inst = p.instance
	return n.h.tool.script(ctx, append(fire(n.id, l, p.version), "set-option -gu @"+n.id+"-d", "set-option -gu @"+n.id+"-t"))
}

// verify finds the new pane in the listing of its window, and compares it.
func (n *spawning) verify(rows []row, settled bool) error {
	for i := range rows {
		r := &rows[i]
		if n.created == "" || r.paneID != n.created {
			continue
		}
		if n.spec.Place == host.NewWindow && r.sessionName() != n.spec.Session {
			return fmt.Errorf("%w: it is in session %q", ErrBuild, r.sessionName())
		}
		n.inst = instance(r.socket(), r.pid, r.start)
		// What is settled holds its options besides, so it is not what an unsettled one must be.
		n.pane.pane = n.created
		if err := n.pane.found(r, n.h.program(), settled); err != nil {
			return fmt.Errorf("%w: %w", ErrBuild, err)
		}
		return nil
	}
	return fmt.Errorf("%w: the pane is not there", ErrBuild)
}

// undo removes the pane, which is known by its nonce, or (a plain shell) by the id that its
// creation printed.
func (n *spawning) undo() {
	ctx, cancel := context.WithTimeout(context.Background(), undoTime)
	defer cancel()
	pane := n.created
	if pane == "" && !n.pane.plain {
		rows, err := n.h.list(ctx, "-a")
		if err != nil {
			return
		}
		for i := range rows {
			if b, ok := parseStartCommand(rows[i].startCommand(), n.h.program()); ok && b.nonce == n.pane.nonce {
				pane = rows[i].paneID
				n.inst = instance(rows[i].socket(), rows[i].pid, rows[i].start)
			}
		}
	}
	if pane != "" {
		_ = n.h.Kill(ctx, host.Terminal{Instance: n.inst, ID: pane})
	}
}
