package tmux

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/phux-agent/phux-agent/host"
)

var _ host.Replacer = (*Host)(nil)

// Replace is host.Replacer. tmux compares and respawns in one list that no hook enters. The
// transaction is committed before: a maker that dies after the respawn leaves an agent with its
// record, and not a pane that would have to go away.
func (h *Host) Replace(ctx context.Context, t host.Terminal, was host.Occupant, p host.PaneSpec) (*host.Started, error) {
	out, err := h.replace(ctx, t, was, p)
	if err != nil {
		return nil, fmt.Errorf("replace: %s: %w", t.ID, err)
	}
	return out, nil
}

func (h *Host) replace(ctx context.Context, t host.Terminal, was host.Occupant, p host.PaneSpec) (*host.Started, error) {
	if err := h.checkSelf(); err != nil {
		return nil, err
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	if p.Start.Mode != host.Program || was.PID <= 0 || was.Command == "" || !plain(was.Command) {
		return nil, fmt.Errorf("%w: a program in the place of %q", host.ErrRequest, was.Command)
	}
	for k := range p.Meta {
		if _, err := optionOf(k); err != nil {
			return nil, err
		}
	}
	if !validID(t.ID, '%') {
		return nil, host.ErrNoTerminal
	}
	if err := h.sameLife(t); err != nil {
		return nil, err
	}
	now, err := h.probe(ctx)
	switch {
	case err != nil:
		return nil, err
	case now.instance != t.Instance:
		return nil, host.ErrStale
	case !now.version.supported():
		return nil, now.refuse()
	}
	r := &replacing{h: h, terminal: t, was: was, pane: newMade(p, h.home()), id: sessionHead + newNonce()[:16], version: now.version}
	r.pane.pane = t.ID
	sweep(h.opt.RuntimeDir)
	if r.tx, err = begin(h.opt.RuntimeDir, r.id, 1); err != nil {
		return nil, err
	}
	defer r.tx.end()
	if err := r.pane.enroll(r.tx, 0); err != nil {
		return nil, err
	}
	if err := r.tx.commit(); err != nil {
		return nil, err
	}
	if err := r.respawn(ctx); err != nil {
		return nil, err
	}
	start(ctx, r.tx, []*made{r.pane})
	out := r.pane.started(t.Instance, r.tx)
	return &out, nil
}

// replacing is one program on its way into a terminal.
type replacing struct {
	h        *Host
	terminal host.Terminal
	was      host.Occupant
	pane     *made
	tx       *transaction
	id       string
	version  version
}

// run fires a list where no hook enters it.
func (r *replacing) run(ctx context.Context, l list) ([]byte, error) {
	if !r.version.firesLists() {
		unlock, err := r.h.lockSlot(ctx)
		if err != nil {
			return nil, err
		}
		defer unlock()
	}
	return r.h.tool.script(ctx, append(fire(r.id, l, r.version), "set-option -gu @"+r.id+"-t"))
}

// respawn puts our program there, and sees it at the gate with its record.
func (r *replacing) respawn(ctx context.Context) error {
	at, m, exact := r.terminal.ID, newMark(), r.version.escapesOutput()
	var there, whole list
	there.add(append([]string{"respawn-pane", "-k", "-t", at}, r.pane.argv(r.h.opt.Self)...)...)
	r.pane.settle(&there, at, r.h.opt.Self)
	if title := r.pane.spec.Title; title != "" {
		text := variables{name: "@" + r.id + "-t"}
		there.show(title, &text, func(f string) []string { return []string{"select-pane", "-t", at, "-T", f} })
	}
	there.add("list-panes", "-t", at, "-F", rowFormat(m, exact))
	same := "#{&&:" + sameServer(r.terminal.Instance) + ",#{&&:#{==:#{pane_pid}," + strconv.Itoa(r.was.PID) + "},#{&&:#{==:#{pane_current_command}," + r.was.Command + "},#{==:#{pane_dead}#{pane_in_mode}#{alternate_on},000}}}}"
	whole.add("if-shell", "-F", "-t", at, same, there.String(), "display-message -p "+m+"occupied")
	out, err := r.run(ctx, whole)
	if bytes.Contains(out, []byte(m+"occupied")) {
		return host.ErrOccupied
	}
	rows, perr := parseRows(string(out), m, exact)
	if perr != nil || len(rows) == 0 {
		r.undo()
		if perr == nil {
			perr = err
		}
		if perr == nil {
			perr = host.ErrNoTerminal
		}
		return perr
	}
	for i := range rows {
		if rows[i].paneID != at {
			continue
		}
		if err = r.pane.found(&rows[i], r.h.program(), true); err == nil {
			err = arrive(ctx, r.tx, []*made{r.pane})
		}
		if err != nil {
			r.undo()
			return fmt.Errorf("%w: %w", ErrBuild, err)
		}
		r.h.remember(rows)
		return nil
	}
	r.undo()
	return host.ErrNoTerminal
}

// undo puts a shell where our program stands and waits; where it does not stand, nothing is done.
func (r *replacing) undo() {
	ctx, cancel := context.WithTimeout(context.Background(), undoTime)
	defer cancel()
	at := r.terminal.ID
	shell := birth{nonce: newNonce(), after: true, dir: r.tx.dir}
	var l, mine list
	for _, o := range options {
		mine.add("set-option", "-pu", "-t", at, o.name)
	}
	mine.add("set-option", "-pu", "-t", at, "remain-on-exit")
	mine.add("set-hook", "-pu", "-t", at, "pane-died")
	mine.add("set-option", "-pu", "-t", at, diedOption)
	mine.add(append([]string{"respawn-pane", "-k", "-t", at, "--", r.h.opt.Self}, shell.args()...)...)
	l.add("if-shell", "-F", "-t", at, "#{m:* "+r.pane.nonce+" *,#{pane_start_command}}", mine.String())
	_, _ = r.run(ctx, l)
	r.h.forget(r.terminal)
}
