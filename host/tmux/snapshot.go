package tmux

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/metadata"
)

// Snapshot is one list-panes: one consistent view. Sessions that are being built are not in it.
// A window that several sessions show is in the oldest of them. Its panes stand in the order of
// its layout, which is that of their indexes where nothing was moved about. A layout that cannot
// be read (more than tmux prints, only floating panes) is the zero Cell.
func (h *Host) Snapshot(ctx context.Context) (*host.Workspace, error) {
	rows, err := h.list(ctx, "-a")
	if err != nil {
		return nil, fmt.Errorf("operation %q: %w", "snapshot", err)
	}
	if len(rows) == 0 {
		// A server without a session prints nothing, not even who it is.
		p, err := h.probe(ctx)
		if err != nil {
			return nil, fmt.Errorf("operation %q: %w", "snapshot", err)
		}
		return &host.Workspace{Instance: p.instance}, nil
	}
	w := h.workspace(rows)
	h.remember(rows)
	return w, nil
}

// Look is Info and Snapshot in one run of tmux.
func (h *Host) Look(ctx context.Context) (host.Info, *host.Workspace, error) {
	var p probed
	var perr error
	rows, err := h.listAfter(ctx, probeWords, func(out []byte, m string) { p, perr = parseProbe(out, m) }, "-a")
	if errors.Is(err, host.ErrNoServer) {
		return host.Info{}, nil, fmt.Errorf("operation %q: %w", "look", err)
	}
	if err == nil && perr == nil && len(rows) > 0 {
		if w := h.workspace(rows); w.Instance == p.instance {
			h.remember(rows)
			return h.about(p), w, nil
		}
	}
	// A server without a session, and whatever else is not plain, is asked one by one.
	w, err := h.Snapshot(ctx)
	if err != nil {
		return host.Info{}, nil, err
	}
	i, err := h.Info(ctx)
	switch {
	case err != nil:
		return host.Info{}, nil, err
	case !i.Running:
		return host.Info{}, nil, fmt.Errorf("operation %q: %w", "look", host.ErrNoServer)
	case i.Instance.PID != w.Instance.PID || i.Instance.Start != w.Instance.Start:
		return host.Info{}, nil, fmt.Errorf("operation %q: %w: its server is another one now", "look", host.ErrChanged)
	}
	return i, w, nil
}

// list runs one list-panes. A tmux that escapes what it prints is asked again, in a form that
// survives it, where something was escaped; and in that form at once from then on.
func (h *Host) list(ctx context.Context, words ...string) ([]row, error) {
	return h.listAfter(ctx, nil, nil, words...)
}

// listAfter is list behind another command of the same run: first returns that command, and
// heard gets all that was printed, each time anew. Both have the mark of the run; both may be nil.
func (h *Host) listAfter(ctx context.Context, first func(m string) []string, heard func(out []byte, m string), words ...string) ([]row, error) {
	exact, woken := h.seenVersion().escapesOutput(), false
	for {
		m := newMark()
		var run []string
		if first != nil {
			run = append(first(m), then)
		}
		run = append(append(append(run, "list-panes"), words...), "-F", rowFormat(m, exact))
		out, err := h.tool.run(ctx, "", run...)
		if heard != nil {
			heard(out, m)
		}
		if e := (*CommandError)(nil); errors.As(err, &e) && e.Stderr == "no current target" && words[0] == "-a" {
			return nil, nil // a server without a session
		}
		rows, perr := parseRows(string(out), m, exact)
		switch {
		case errors.Is(err, host.ErrNoServer):
			return nil, err
		case len(rows) == 0 && err != nil:
			// Beside a listing that is there an error is that of a hook of the user's.
			return nil, err
		case perr != nil:
			return nil, perr
		}
		if len(rows) > 0 {
			h.saw(parseVersion(rows[0].version))
		}
		again := false
		if !exact && needsExact(rows) {
			exact, again = true, true
		}
		if !woken && unreaped(rows) && unix.Kill(rows[0].pid, unix.SIGCHLD) == nil {
			woken, again = true, true
		}
		if !again {
			return rows, nil
		}
	}
}

// unreaped reports a pane that is dead and has no status. A tmux that is built with utempter (as
// Debian's 3.3a) can miss the signal of a child while it takes back the login record, and then
// learns of the end, and runs pane-died, with the next child that ends. The signal that it missed
// is all that it needs.
func unreaped(rows []row) bool {
	for i := range rows {
		if r := &rows[i]; r.dead && r.status == "" && r.signal == "" && parseVersion(r.version).diedSignal() {
			return true
		}
	}
	return false
}

func programName(path string) string { return filepath.Base(path) }

func alive(pid int, start uint64) bool { return proc.Alive(proc.ID{PID: pid, Start: start}) }

// idNumber orders ids by age: "$10" is younger than "$9".
func idNumber(id string) int {
	n, _ := strconv.Atoi(strings.TrimLeft(id, "$@%"))
	return n
}

func (h *Host) workspace(rows []row) *host.Workspace {
	inst := instance(rows[0].socket(), rows[0].pid, rows[0].start)
	w := &host.Workspace{Instance: inst}

	owner := owners(rows)
	sessions := make(map[string]int)
	type at struct{ session, window int }
	windows := make(map[string]at)
	var active, lastSeen int64 = -1, -1
	layouts := make(map[string]string)
	for i := range rows {
		r := &rows[i]
		if r.building() != "" {
			continue
		}
		si, ok := sessions[r.sessionID]
		if !ok {
			si = len(w.Sessions)
			sessions[r.sessionID] = si
			w.Sessions = append(w.Sessions, host.Session{
				ID: r.sessionID, Name: r.sessionName(), Group: r.group(), Dir: r.sessionPath(),
				Attached: r.attached, Created: time.Unix(r.created, 0).UTC(), Aside: r.aside(),
			})
			// Somebody looks at an attached one now; of several, at the one attached last.
			seen := r.lastAttached
			if r.attached > 0 {
				seen += 1 << 40
			}
			if seen > lastSeen {
				active, lastSeen = int64(si), seen
			}
		}
		if owner[r.windowID] != r.place() {
			continue
		}
		wi, ok := windows[r.windowID]
		s := &w.Sessions[si]
		if !ok {
			wi = at{si, len(s.Windows)}
			windows[r.windowID] = wi
			layouts[r.windowID] = r.layout
			s.Windows = append(s.Windows, host.Window{
				ID: r.windowID, Name: r.windowName(), Index: r.windowIndex, Active: r.windowActive,
				Zoomed: r.zoomed, AutomaticName: r.automatic, Linked: r.linked,
			})
		}
		win := &s.Windows[wi.window]
		win.Panes = append(win.Panes, h.pane(r, inst))
	}
	if active >= 0 {
		w.Sessions[active].Active = true
	}
	for i := range w.Sessions {
		s := &w.Sessions[i]
		for n := range s.Windows {
			setLayout(&s.Windows[n], layouts[s.Windows[n].ID])
		}
		slices.SortFunc(s.Windows, func(a, b host.Window) int { return cmp.Compare(a.Index, b.Index) })
	}
	slices.SortFunc(w.Sessions, func(a, b host.Session) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(idNumber(a.ID), idNumber(b.ID)))
	})
	return w
}

// place is where a session shows a window.
type place struct {
	session string
	index   int
}

func (r *row) place() place { return place{r.sessionID, r.windowIndex} }

// owners says where each window belongs, which several sessions may show: to the oldest of them;
// within one session to its lowest index. A session that would be left without any keeps the one of
// its lowest index, where that leaves its owner another: it would come back from no archive else.
func owners(rows []row) map[string]place {
	owner := make(map[string]place)
	lowest := make(map[string]*row) // by session
	var order []string
	for i := range rows {
		r := &rows[i]
		if r.building() != "" {
			continue
		}
		p := r.place()
		o, ok := owner[r.windowID]
		if !ok || idNumber(p.session) < idNumber(o.session) || p.session == o.session && p.index < o.index {
			owner[r.windowID] = p
		}
		l := lowest[r.sessionID]
		if l == nil {
			order = append(order, r.sessionID)
		}
		if l == nil || r.windowIndex < l.windowIndex {
			lowest[r.sessionID] = r
		}
	}
	owned, shared := make(map[string]int), make(map[string]bool)
	for _, o := range owner {
		owned[o.session]++
		shared[lowest[o.session].group()] = true
	}
	slices.SortFunc(order, func(a, b string) int { return cmp.Compare(idNumber(a), idNumber(b)) })
	for _, session := range order {
		r := lowest[session]
		// Sessions of one group show the same windows: one of them is enough.
		if g := r.group(); owned[session] > 0 || g != "" && shared[g] {
			continue
		}
		if o := owner[r.windowID]; owned[o.session] > 1 {
			owned[o.session]--
			owned[session]++
			owner[r.windowID] = r.place()
			shared[r.group()] = true
		}
	}
	return owner
}

// setLayout reads the geometry, and puts the panes in the order of its leaves.
func setLayout(w *host.Window, s string) {
	slices.SortFunc(w.Panes, func(a, b host.Pane) int { return cmp.Compare(a.Index, b.Index) })
	c, ids, err := parseLayout(s)
	if err != nil || len(ids) != len(w.Panes) {
		return
	}
	by := make(map[int]int, len(ids))
	for i, p := range w.Panes {
		by[idNumber(p.Terminal.ID)] = i
	}
	order := make([]host.Pane, 0, len(ids))
	for _, id := range ids {
		i, ok := by[id]
		if !ok {
			return
		}
		delete(by, id)
		order = append(order, w.Panes[i])
	}
	w.Layout, w.Panes = c, order
}

const deleted = " (deleted)"

func (h *Host) pane(r *row, inst host.Instance) host.Pane {
	p := host.Pane{
		Terminal: host.Terminal{Instance: inst, ID: r.paneID},
		Index:    r.paneIndex, Active: r.paneActive, Title: r.title(), Dir: r.currentPath(),
		Command: r.currentCommand(), TTY: r.tty, PID: r.panePID, Cols: r.cols, Rows: r.rows, Dead: r.dead,
	}
	if dir, ok := strings.CutSuffix(p.Dir, deleted); ok {
		// A directory may really be called that.
		if _, err := os.Stat(p.Dir); errors.Is(err, os.ErrNotExist) {
			p.Dir, p.DirGone = dir, true
		}
	}
	if r.dead {
		p.Exit = r.exit()
	}
	id := judge(r.paneID, r.startCommand(), r.options(), h.program(), alive)
	p.Origin, p.Nonce, p.Meta, p.BoundPID, p.BoundStart = id.origin, id.nonce, id.meta, id.pid, id.start
	p.Waiting = id.origin == host.Ours && !r.dead && h.waiting(r, id.meta)
	return p
}

func (r *row) exit() *host.Exit {
	if n, err := strconv.Atoi(r.status); err == nil {
		return &host.Exit{Status: n}
	}
	if r.signal != "" {
		return &host.Exit{Status: -1, Signal: signalName(r.signal)}
	}
	if !parseVersion(r.version).diedSignal() {
		return &host.Exit{Status: -1} // a signal; 3.2a does not say which
	}
	return nil
}

func (h *Host) program() string { return programName(h.opt.Self) }

// waiting looks whether the pane's process is still our own. The name of the foreground program
// tells most panes apart without a look at the process; not a placeholder, which may have a shell
// before it.
func (h *Host) waiting(r *row, meta map[metadata.Key][]byte) bool {
	name := h.program()
	placeholder := bytes.Contains(meta[metadata.KeyAgentLaunch], []byte(`"pending"`))
	if !placeholder && r.currentCommand() != "" && !strings.HasPrefix(name, r.currentCommand()) && !strings.HasPrefix(r.currentCommand(), name) && !strings.HasPrefix(r.currentCommand(), verbProgram) {
		return false
	}
	b, err := cmdline(r.panePID)
	if err != nil {
		return false
	}
	args := bytes.SplitN(b, []byte{0}, 3)
	return len(args) == 3 && ourName(filepath.Base(string(args[0])), name) && string(args[1]) == verb
}
