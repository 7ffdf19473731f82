package tmux

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/internal/proc"
)

const (
	sessionHead = "phux-"
	// arriveTime is how long a pane may take from its birth to the gate, and startTime from the
	// gate to its program: the guard in between looks for conversations.
	arriveTime = 20 * time.Second
	startTime  = 20 * time.Second
	undoTime   = 10 * time.Second
	parallel   = 8
)

// ErrBuild is wrapped where what tmux made is not what was asked for: nothing of it is left.
var ErrBuild = errors.New("tmux made something else than was asked for")

// Create makes a session whole or leaves nothing; see host.Host.
func (h *Host) Create(ctx context.Context, c host.CreateSession) (*host.Created, error) {
	out, err := h.create(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("create session %q: %w", c.Name, err)
	}
	return out, nil
}

func (h *Host) create(ctx context.Context, c host.CreateSession) (*host.Created, error) {
	if err := h.checkSelf(); err != nil {
		return nil, err
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	p, running, err := h.ready(ctx)
	if err != nil {
		return nil, err
	}
	if near := sessionName(c.Name, p.version); near != c.Name {
		return nil, &NameError{Name: c.Name, Nearest: near}
	}
	if err := readyAside(&c, p); err != nil {
		return nil, err
	}
	if c.Dir == "" {
		c.Dir = h.home()
	}
	b := &build{h: h, c: c, id: sessionHead + newNonce()[:16], version: p.version}
	if err := b.plan(p.baseIndex); err != nil {
		return nil, err
	}
	sweep(h.opt.RuntimeDir)
	batches := b.batches()
	if b.tx, err = begin(h.opt.RuntimeDir, b.id, batches); err != nil {
		return nil, err
	}
	defer b.tx.end()
	for i, m := range b.ours {
		if err := m.enroll(b.tx, i*batches/max(len(b.ours), 1)); err != nil {
			return nil, err
		}
	}
	if len(b.ours) < b.total() {
		stop, err := b.reaper()
		if err != nil {
			return nil, err
		}
		defer stop()
	}
	if !running && len(b.windows) == 1 && c.Windows[0].Index < 0 && !stands(c, b.windows) {
		// What base-index will be is known when the configuration was read.
		b.windows[0].index = unnumbered
	}
	if err := b.make(ctx, running, len(p.sessions) > 0); err != nil {
		// Panes that wait learn of it by the gate, at the end of the transaction.
		b.undo()
		b.takeBack()
		if !running && ctx.Err() == nil && !errors.Is(err, host.ErrDangerous) {
			if why := h.diedOf(ctx, p); why != nil {
				return nil, why
			}
		}
		return nil, err
	}
	b.showClients(ctx)
	b.start(ctx)
	return b.created(), nil
}

func (h *Host) checkSelf() error {
	if h.opt.Self == "" || h.opt.RuntimeDir == "" {
		return fmt.Errorf("%w: no program or no runtime directory for panes", host.ErrRequest)
	}
	return nil
}

func (h *Host) home() string {
	if d := h.opt.Getenv("HOME"); filepath.IsAbs(d) {
		return d
	}
	return "/"
}

// ready probes the server, and refuses one that could not do it or would die of it. Where none
// runs, the client's version stands in.
func (h *Host) ready(ctx context.Context) (p probed, running bool, err error) {
	p, err = h.probe(ctx)
	if errors.Is(err, host.ErrNoServer) {
		p = probed{text: h.clientVersion(ctx)}
		if p.text == "" {
			return p, false, fmt.Errorf("%w: %q does not say its version", host.ErrOlderHost, h.tool.binary)
		}
		p.version = parseVersion(p.text)
		if !p.version.supported() {
			return p, false, p.refuse()
		}
		return p, false, nil
	}
	if err != nil {
		return p, false, err
	}
	return p, true, p.refuse()
}

// diedOf says which setting a server that we started died of, if it did: the configuration is not
// known before it is read, and it may make the server end by itself, or die of its own sessions.
func (h *Host) diedOf(ctx context.Context, p probed) error {
	if _, err := h.probe(ctx); !errors.Is(err, host.ErrNoServer) {
		return nil
	}
	out, err := h.tool.run(ctx, "", "start-server", then, "show-options", "-sv", "exit-unattached")
	switch {
	case strings.TrimSpace(string(out)) == "on":
		return fmt.Errorf("%w: exit-unattached is on, and a server that nobody is attached to ends at once; attach first (tmux new-session)", host.ErrDangerous)
	case errors.Is(err, host.ErrNoServer) && p.version.manualKills():
		return fmt.Errorf("%w: tmux %s dies while it reads its configuration, as it does of a new session there with window-size manual", host.ErrDangerous, p.text)
	case errors.Is(err, host.ErrNoServer):
		return fmt.Errorf("%w: tmux %s ends while it reads its configuration", host.ErrDangerous, p.text)
	}
	return nil
}

// build is one session on its way.
type build struct {
	h       *Host
	c       host.CreateSession
	id      string // of the transaction, and the temporary name
	version version
	windows []builtWindow
	ours    []*made // the panes that pass the gate
	tx      *transaction
	session string // "$3", once known
	inst    host.Instance
}

func (b *build) plan(baseIndex int) error {
	taken := make(map[int]bool)
	for _, w := range b.c.Windows {
		if w.Index >= 0 {
			taken[w.Index] = true
		}
	}
	next := baseIndex
	for _, w := range b.c.Windows {
		layout, err := layoutString(w.Layout, len(w.Panes))
		if err != nil {
			return err
		}
		bw := builtWindow{spec: w, index: w.Index, layout: layout}
		if w.Index < 0 {
			for taken[next] {
				next++
			}
			taken[next] = true
			bw.index = next
		}
		for _, p := range w.Panes {
			for k := range p.Meta {
				if _, err := optionOf(k); err != nil {
					return err
				}
			}
			m := newMade(p, b.c.Dir)
			bw.panes = append(bw.panes, m)
			if !m.plain {
				b.ours = append(b.ours, m)
			}
		}
		b.windows = append(b.windows, bw)
	}
	return nil
}

func (b *build) total() int {
	n := 0
	for _, w := range b.windows {
		n += len(w.panes)
	}
	return n
}

func (b *build) batches() int {
	p := b.c.Parallel
	if p == 0 {
		p = parallel
	}
	return min((len(b.ours)+p-1)/p, maxBatches)
}

// make builds, looks, waits for the panes and commits. After an error nothing has started.
func (b *build) make(ctx context.Context, running, sessions bool) error {
	v, h := b.version, b.h
	l := buildList(b.id, h.opt.Self, b.c, b.windows, v)
	m := newMark()
	exact := v.escapesOutput()
	lines := fire(b.id, l, v)
	if !running && v.firesLists() {
		// The configuration is not known yet, and may say what kills this server.
		at := " -t " + word(nowhere(m)) + " "
		store, run, forget := firing(b.id, l, v)
		lines = slices.Concat(store, []string{
			"display-message -p" + at + word(probeFormat(m)),
			"if-shell -F" + at + word("#{?"+dangerous+",0,1}") + " " + word(run),
		}, forget)
	}
	if !v.firesLists() {
		unlock, err := h.lockSlot(ctx)
		if err != nil {
			return err
		}
		defer unlock()
		if !sessions {
			// Firing a hook kills such a server while it has no session.
			lines = []string{l.String()}
		}
	}
	lines = append(lines, "set-option -gu @"+b.id+"-d", "list-panes -s -t "+word("="+b.id+":")+" -F "+word(rowFormat(m, exact)))
	var out []byte
	var err error
	if running {
		out, err = h.tool.script(ctx, lines)
	} else {
		out, err = h.tool.run(ctx, strings.Join(lines, "\n")+"\n", "start-server", then, "source-file", "-")
	}
	if p, perr := parseProbe(out, m); perr == nil {
		if err := p.refuse(); err != nil {
			return err
		}
	}
	rows, perr := parseRows(string(out), m, exact)
	if perr != nil {
		return errors.Join(err, perr)
	}
	if w := &b.windows[0]; w.index == unnumbered && len(rows) > 0 {
		w.index = rows[0].windowIndex
	}
	if len(rows) > 0 {
		b.session = rows[0].sessionID
		b.inst = instance(rows[0].socket(), rows[0].pid, rows[0].start)
		h.saw(parseVersion(rows[0].version))
	}
	// A hook of the user's may have failed beside us: what was made is what counts.
	if verr := b.verify(rows, false); verr != nil {
		return errors.Join(verr, err)
	}
	if err := b.arrive(ctx); err != nil {
		return err
	}
	return b.commit(ctx, m, exact)
}

func (b *build) commit(ctx context.Context, m string, exact bool) error {
	l := commitList(b.id, b.session, b.h.opt.Self, b.c, b.windows)
	lines := append(fire(b.id, l, b.version), "set-option -gu @"+b.id+"-t",
		"list-panes -s -t "+word(b.session+":")+" -F "+word(rowFormat(m, exact)))
	out, err := b.h.tool.script(ctx, lines)
	rows, perr := parseRows(string(out), m, exact)
	if perr != nil {
		return errors.Join(err, perr)
	}
	if verr := b.verify(rows, true); verr != nil {
		if errors.Is(err, host.ErrSessionExists) {
			return host.ErrSessionExists
		}
		return errors.Join(verr, err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := b.tx.commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	b.h.remember(rows)
	return nil
}

// verify compares what a listing shows with what was asked for: every pane once, in its window
// and at its place, with its own token. Before the commit it learns the ids, after it it insists
// on them, and looks at the names too. Windows that a hook of the user's added are not ours to
// judge.
func (b *build) verify(rows []row, committed bool) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrBuild, fmt.Sprintf(format, args...))
	}
	if len(rows) == 0 {
		return bad("the session is not there")
	}
	byIndex := make(map[int][]*row)
	for i := range rows {
		r := &rows[i]
		if r.sessionID != b.session {
			return bad("the session is another")
		}
		byIndex[r.windowIndex] = append(byIndex[r.windowIndex], r)
	}
	switch name, tx := rows[0].sessionName(), rows[0].building(); {
	case !committed && tx != b.id:
		return bad("the session is not marked")
	case committed && name != b.c.Name:
		return &NameError{Name: b.c.Name}
	case committed && tx != "":
		return bad("the session is still marked")
	}
	for i := range b.windows {
		w := &b.windows[i]
		got := byIndex[w.index]
		if len(got) != len(w.panes) {
			return bad("window %d has %d panes, not %d", w.index, len(got), len(w.panes))
		}
		slices.SortFunc(got, func(a, b *row) int { return a.paneIndex - b.paneIndex })
		if len(w.spec.Layout.String()) < maxLayout {
			c, ids, err := parseLayout(got[0].layout)
			if err != nil {
				return bad("window %d: %v", w.index, err)
			}
			if c.String() != flatten(w.spec.Layout).String() {
				return bad("window %d has the layout %s, not %s", w.index, c, flatten(w.spec.Layout))
			}
			for n, id := range ids {
				if idNumber(got[n].paneID) != id {
					return bad("window %d: its panes are not in their cells", w.index)
				}
			}
		}
		if committed && w.id != got[0].windowID {
			return bad("window %d is another", w.index)
		}
		w.id = got[0].windowID
		for n, p := range w.panes {
			if err := p.found(got[n], b.h.program(), committed); err != nil {
				return bad("window %d, pane %d: %v", w.index, n, err)
			}
		}
	}
	return nil
}

// found checks one pane against its row, and takes its id and its values from it.
func (m *made) found(r *row, program string, committed bool) error {
	id := judge(r.paneID, r.startCommand(), r.options(), program, alive)
	switch {
	case committed && m.pane != r.paneID:
		return errors.New("it is another pane")
	case r.dead:
		return errors.New("it died at once")
	case m.plain && id.origin != host.Foreign:
		return errors.New("it holds a record")
	case m.plain:
		m.pane, m.pid = r.paneID, r.panePID
		return nil
	case id.origin != host.Ours || id.nonce != m.nonce || id.birth.after:
		return errors.New("its start command is not ours")
	}
	want := m.spec.Meta
	if !committed {
		// The live identity is an option that the commit sets.
		want = maps.Clone(want)
		maps.DeleteFunc(want, func(k metaKey, _ []byte) bool { return !inToken(k) })
	}
	if !maps.EqualFunc(want, id.meta, func(a, b []byte) bool { return string(a) == string(b) }) {
		return errors.New("its record is not the one that was given")
	}
	m.pane, m.pid, m.meta = r.paneID, r.panePID, id.meta
	return nil
}

// arrive waits until every pane of ours stands at the gate.
func (b *build) arrive(ctx context.Context) error { return arrive(ctx, b.tx, b.ours) }

func arrive(ctx context.Context, tx *transaction, panes []*made) error {
	if len(panes) == 0 {
		return nil
	}
	byNonce := make(map[string]*made, len(panes))
	for _, m := range panes {
		byNonce[m.nonce] = m
	}
	missing := len(panes)
	deadline := time.Now().Add(arriveTime)
	var gone *made
	err := tx.wait(ctx, tx.all(), func(w paneWord) {
		if m := byNonce[w.nonce]; m != nil && w.start && !m.came {
			m.came = true
			missing--
		}
	}, func() bool { return missing == 0 }, func() bool {
		for _, m := range panes {
			if !m.came && proc.Ended(m.pid) {
				gone = m
				return false
			}
		}
		return time.Now().Before(deadline)
	})
	switch {
	case err != nil:
		return err
	case gone != nil:
		return fmt.Errorf("%w: pane %s ended before its program", ErrBuild, gone.pane)
	case missing > 0:
		return fmt.Errorf("%w: %d panes did not come to the gate", ErrBuild, missing)
	}
	return nil
}

func (t *transaction) all() []int {
	out := make([]int, len(t.fifos))
	for i := range out {
		out[i] = i
	}
	return out
}

// start releases the batches one after the other and sees each program started. Nothing can be
// undone any more: what does not start is said of its pane.
func (b *build) start(ctx context.Context) { start(ctx, b.tx, b.ours) }

func start(ctx context.Context, tx *transaction, panes []*made) {
	byNonce := make(map[string]*made, len(panes))
	for _, m := range panes {
		byNonce[m.nonce] = m
	}
	for i, f := range tx.fifos {
		if err := tx.release(i); err != nil {
			break
		}
		deadline := time.Now().Add(startTime)
		_ = tx.wait(ctx, []int{i}, func(w paneWord) {
			if m := byNonce[w.nonce]; m != nil && !w.start {
				m.fault = w.reason
			}
		}, func() bool { return false }, func() bool { return time.Now().Before(deadline) })
		if ctx.Err() != nil {
			// They have the word to start: let them all, and wait no longer.
			for n := i + 1; n < len(tx.fifos); n++ {
				_ = tx.release(n)
			}
			break
		}
		_ = f
	}
}

func (b *build) created() *host.Created {
	out := &host.Created{Session: b.session}
	for _, w := range b.windows {
		var row []host.Started
		for _, m := range w.panes {
			row = append(row, m.started(b.inst, b.tx))
		}
		out.Windows = append(out.Windows, row)
	}
	return out
}

func (m *made) started(inst host.Instance, tx *transaction) host.Started {
	s := host.Started{Terminal: host.Terminal{Instance: inst, ID: m.pane}, Nonce: m.nonce, PID: m.pid, Meta: m.meta}
	switch {
	case m.plain:
	case m.fault != "":
		s.Err = &Failure{Reason: m.fault}
	case !tx.fifos[m.batch].eof:
		s.Err = errUnseen
	}
	return s
}

// undo takes away what was built, and only that.
func (b *build) undo() {
	ctx, cancel := context.WithTimeout(context.Background(), undoTime)
	defer cancel()
	removeBuilding(ctx, b.h.tool, b.id)
}

// removeBuilding kills the session that a transaction made, wherever it has come to; false where
// there is none.
func removeBuilding(ctx context.Context, t tool, id string) bool {
	m := newMark()
	out, err := t.run(ctx, "", "list-windows", "-a", "-F", m+"#{session_id} #{window_id} #{window_zoomed_flag} #{"+madeOption+"}"+m)
	if err != nil {
		return false
	}
	var l list
	session := ""
	for i, f := range strings.Split(string(out), m) {
		w := strings.Split(f, " ")
		if i%2 == 0 || len(w) != 4 || onSession(w[0], w[3]) != id || !validID(w[0], '$') || !validID(w[1], '@') {
			continue
		}
		session = w[0]
		if w[2] == "1" {
			// 3.4 dies of killing a zoomed window.
			l.add("resize-pane", "-Z", "-t", w[1])
		}
	}
	if session == "" {
		return false
	}
	l.add("kill-session", "-t", session)
	_, err = t.script(ctx, []string{l.String()})
	return err == nil
}

// reaper starts the process that takes the session away if this one dies before the commit.
func (b *build) reaper() (stop func(), err error) {
	t := b.h.tool
	cmd := exec.Command(b.h.opt.Self, verb, reapFlag, t.binary, t.server[0], t.server[1], b.id, b.tx.dir)
	cmd.Env = t.env
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("run %q: %w", b.h.opt.Self, err)
	}
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}, nil
}

// lockSlot holds the one hook slot of this server against other makers.
func (h *Host) lockSlot(ctx context.Context) (unlock func(), err error) {
	if err := runtimeDir(h.opt.RuntimeDir); err != nil {
		return nil, err
	}
	path := filepath.Join(h.opt.RuntimeDir, "slot."+h.server)
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	for {
		err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { unix.Close(fd) }, nil
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR {
			unix.Close(fd)
			return nil, &os.PathError{Op: "lock", Path: path, Err: err}
		}
		select {
		case <-ctx.Done():
			unix.Close(fd)
			return nil, context.Cause(ctx)
		case <-time.After(2 * time.Millisecond):
		}
	}
}
