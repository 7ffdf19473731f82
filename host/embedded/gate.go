package embedded

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

// The gate is a socket pair between the server and a starting pane, on the pane's descriptor 3.
// The server sends what the pane is to become; the pane says that it is here; the server opens
// the gate once the terminal is published. The pane closes the gate by becoming its program, for
// it is close-on-exec; or it says why that failed; or that it stands, as a placeholder.
//
// A pane whose gate ends before it was opened leaves without a word: so ends every pane of a
// create that was given up, or whose server died.
const gateFD = 3

// Words on the gate: key 0.
const (
	gatePayload = 1
	gateHere    = 2
	gateGo      = 3
	gateFail    = 4
	gateStands  = 5

	gateStart  = 2 // none in a payload is a respawn
	gateNonce  = 3
	gateRecord = 9
	gateMeta   = 11
	gateAfter  = 4 // the shell that follows a program which ended
	gateReason = 5
)

// maxGate bounds what goes through a gate, in bytes.
const maxGate = 4 << 20

// child is one process on its way into a terminal, and then the process of that terminal.
type child struct {
	pid    int
	ptmx   *master
	tty    string
	gate   *os.File
	exited chan exitStatus // one value, from the reaper

	here    chan struct{} // closed once the pane is at its gate, or never will be
	arrived bool          // whether it is; to be read after here
	settled chan struct{} // closed once it is known whether the program starts
	fault   string        // why it did not; to be read after settled
	stands  bool          // it is a placeholder; to be read after settled
	through chan struct{} // closed once nothing of ours is left in the process
}

type exitStatus struct {
	status int
	signal syscall.Signal // 0 where none
}

func (e exitStatus) exit() *host.Exit {
	if e.signal != 0 {
		return &host.Exit{Status: -1, Signal: unix.SignalName(e.signal)}
	}
	return &host.Exit{Status: e.status}
}

// boot is what a process is started with.
type boot struct {
	start      *host.Start
	nonce      string
	meta       map[metadata.Key][]byte
	after      bool
	dirs       []string // the first that can be entered
	env        []string
	cols, rows int
}

func (b boot) payload() fields {
	f := fields{
		keyKind: gatePayload, gateNonce: b.nonce, gateAfter: b.after,
		gateRecord: b.meta[metadata.KeyAgentSession], gateMeta: metaFields(b.meta),
	}
	if b.start != nil {
		// A map that is not empty: a start of zero values is one, too.
		s := startFields(*b.start)
		s[0] = true
		f[gateStart] = s
	}
	return f
}

// fork starts the program argv at its gate, in a pty of its own.
func (r *reaper) fork(argv []string, b boot) (*child, error) {
	ptmx, tty, err := openPTY(b.cols, b.rows)
	if err != nil {
		return nil, err
	}
	defer tty.Close()
	ours, theirs, err := socketPair()
	if err != nil {
		ptmx.Close()
		return nil, err
	}
	defer unix.Close(theirs)
	c := &child{
		ptmx: ptmx, tty: tty.Name(), gate: os.NewFile(uintptr(ours), "gate"), exited: make(chan exitStatus, 1),
		here: make(chan struct{}), settled: make(chan struct{}), through: make(chan struct{}),
	}
	fd := tty.Fd() // blocking from here on, as programs expect it
	attr := &syscall.ProcAttr{
		Dir: firstDir(b.dirs), Env: b.env, Files: []uintptr{fd, fd, fd, uintptr(theirs)},
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0},
	}
	if err := r.start(c, argv, attr); err != nil {
		c.close()
		return nil, err
	}
	go c.attend(b.payload())
	return c, nil
}

func winsize(cols, rows int) *pty.Winsize {
	return &pty.Winsize{Cols: uint16(min(max(cols, 1), host.MaxSide)), Rows: uint16(min(max(rows, 1), host.MaxSide))}
}

func socketPair() (ours, theirs int, err error) {
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return 0, 0, fmt.Errorf("make a gate: %w", err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		unix.Close(fds[0])
		unix.Close(fds[1])
		return 0, 0, fmt.Errorf("make a gate: %w", err)
	}
	return fds[0], fds[1], nil
}

func firstDir(dirs []string) string {
	for _, d := range dirs {
		var st unix.Stat_t
		if d != "" && unix.Stat(d, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && unix.Access(d, unix.X_OK) == nil {
			return d
		}
	}
	return "/"
}

// attend keeps the gate: it hands the payload over, and hears what becomes of it.
func (c *child) attend(payload fields) {
	defer func() {
		c.gate.Close()
		select {
		case <-c.here:
		default:
			close(c.here)
		}
		close(c.through) // first: whoever hears that it settled may ask whether it is through
		select {
		case <-c.settled:
		default:
			close(c.settled)
		}
	}()
	if _, err := c.gate.Write(payload.frame()); err != nil {
		return
	}
	for {
		f, err := readFrame(c.gate, maxGate)
		if err != nil {
			// Closed by the exec; or by the end of the process, which its status tells.
			return
		}
		r := reading{fields: f}
		switch r.number(keyKind) {
		case gateHere:
			if !c.arrived {
				c.arrived = true
				close(c.here)
			}
		case gateFail:
			if c.arrived && c.fault == "" && !c.stands {
				c.fault = r.text(gateReason)
				if c.fault == "" {
					c.fault = "it does not say why"
				}
				close(c.settled)
			}
		case gateStands:
			if c.arrived && c.fault == "" && !c.stands {
				c.stands = true
				close(c.settled)
			}
		}
	}
}

// open lets the pane through its gate.
func (c *child) open() {
	_, _ = c.gate.Write(fields{keyKind: gateGo}.frame())
}

// close takes away what the server holds of a child: without an open gate it leaves, and with
// its terminal it is hung up.
func (c *child) close() {
	c.gate.Close()
	c.ptmx.Close()
}

// reaper waits for the children of one server: one goroutine for all of them, woken by SIGCHLD.
type reaper struct {
	mu       sync.Mutex
	children map[int]*child
}

// start forks while the table is held, so that no child ends before it stands there.
func (r *reaper) start(c *child, argv []string, attr *syscall.ProcAttr) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := syscall.ForkExec(argv[0], argv, attr)
	if err != nil {
		return fmt.Errorf("start %q: %w", argv[0], err)
	}
	c.pid = pid
	r.children[pid] = c
	return nil
}

// reap takes the status of every child that has ended.
func (r *reaper) reap() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for pid, c := range r.children {
		var ws syscall.WaitStatus
		n, err := syscall.Wait4(pid, &ws, syscall.WNOHANG, nil)
		switch {
		case err == nil && n == 0, errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			c.exited <- exitStatus{status: -1}
		case ws.Signaled():
			c.exited <- exitStatus{signal: ws.Signal()}
		default:
			c.exited <- exitStatus{status: ws.ExitStatus()}
		}
		delete(r.children, pid)
	}
}

// hangup ends what runs in a terminal as the end of a terminal does. A child that was counted
// already is not signalled: its number may be another's.
func (r *reaper) hangup(c *child) {
	c.close()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.children[c.pid] == c {
		for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGCONT} {
			_ = unix.Kill(-c.pid, sig)
		}
	}
}

func (r *reaper) alive() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.children)
}

// Flag is the word after pane-exec that says that the pane is one of this host's.
const Flag = "--embedded"

// ErrLeft is returned by Enter, and by Wait, where this process has nothing (more) to do in its
// pane: it ends with status 0 and without a word.
var ErrLeft = errors.New("nothing to start here")

// Seat is a pane between its birth and its program. It implements launch.Seat.
type Seat struct {
	gate  *os.File
	start *host.Start
	meta  map[metadata.Key][]byte
	nonce string
	after bool
}

// Enter takes this process's place in its pane, by the gate on descriptor 3: it reads what to
// become and tells the server that it is here. ErrLeft where the server is gone.
func Enter() (*Seat, error) {
	unix.CloseOnExec(gateFD)
	var st unix.Stat_t
	if err := unix.Fstat(gateFD, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return nil, fmt.Errorf("pane-exec: no gate on descriptor %d", gateFD)
	}
	return enter(os.NewFile(gateFD, "gate"))
}

// enter is Enter by any gate.
func enter(gate *os.File) (*Seat, error) {
	s := &Seat{gate: gate}
	f, err := readFrame(s.gate, maxGate)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
		return nil, fmt.Errorf("%w: %w", ErrLeft, err)
	}
	if err != nil {
		return nil, fmt.Errorf("pane-exec: %w", err)
	}
	r := reading{fields: f}
	if r.number(keyKind) != gatePayload {
		return nil, fmt.Errorf("pane-exec: %w: no payload", ErrFrame)
	}
	s.nonce, s.after = r.text(gateNonce), r.flag(gateAfter)
	if m := r.sub(gateStart); m != nil {
		start, err := readStart(m)
		if err == nil {
			err = start.Check()
		}
		if err != nil {
			return nil, fmt.Errorf("pane-exec: %w", err)
		}
		s.start = &start
	}
	record, list := r.data(gateRecord), r.maps(gateMeta)
	if r.err != nil {
		return nil, fmt.Errorf("pane-exec: %w", r.err)
	}
	if s.meta, err = readMeta(record, list); err != nil {
		return nil, fmt.Errorf("pane-exec: %w", err)
	}
	if err := s.say(fields{keyKind: gateHere}); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLeft, err)
	}
	return s, nil
}

func (s *Seat) say(f fields) error {
	_, err := s.gate.Write(f.frame())
	return err
}

// Start is what the pane was made to run; nil on a respawn.
func (s *Seat) Start() *host.Start { return s.start }

// Meta is the pane's metadata as it was when this process was started.
func (s *Seat) Meta() map[metadata.Key][]byte { return s.meta }

// Nonce is the pane's birth nonce; empty in a plain shell.
func (s *Seat) Nonce() string { return s.nonce }

// Ended says that this is the shell after a program that ended.
func (s *Seat) Ended() bool { return s.after }

// Wait returns when the terminal is published and its turn has come, or ErrLeft.
func (s *Seat) Wait() error {
	f, err := readFrame(s.gate, maxGate)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLeft, err)
	}
	r := reading{fields: f}
	if r.number(keyKind) != gateGo {
		return fmt.Errorf("%w: the gate says %d", ErrLeft, r.number(keyKind))
	}
	if s.start == nil || s.start.Mode == host.Placeholder {
		// It stands until it becomes its program, which closes the gate.
		_ = s.say(fields{keyKind: gateStands})
	}
	return nil
}

// Fail tells the server that the program does not start, and why.
func (s *Seat) Fail(reason string) {
	const most = 2048
	if len(reason) > most {
		reason = reason[:most]
	}
	_ = s.say(fields{keyKind: gateFail, gateReason: []byte(reason)})
}

// paneEnv is the environment of every process in a terminal.
func paneEnv(base []string, terminal, socket string) []string {
	return append(append(make([]string, 0, len(base)+3), base...), EnvTerminal+"="+terminal, EnvSocket+"="+socket)
}

func terminalID(n int) string { return "%" + strconv.Itoa(n) }
