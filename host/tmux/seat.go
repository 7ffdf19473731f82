package tmux

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

// ErrLeft is returned by Enter, and by Wait, where this process has nothing (more) to do in its
// pane: it ends with status 0 and without a word.
var ErrLeft = errors.New("nothing to start here")

// Seat is a pane between its birth and its program. It implements launch.Seat.
type Seat struct {
	birth   birth
	start   *host.Start
	meta    map[metadata.Key][]byte
	environ []string
	batch   int
	gate    int
	fifo    int
}

// Enter takes this process's place in its pane: args are the words after "pane-exec", environ
// is the environment that the pane was given.
//
// With a payload (which only the first to come gets) it tells the maker that it is here. Without
// one it is a respawn: Start is nil, and Meta is read from the server's current options. With
// --after it is the shell that follows a program that ended. ErrLeft where the pane was never
// committed, or where args ask for another service of ours that is done by the time Enter returns.
func Enter(args []string, environ []string) (*Seat, error) {
	if len(args) > 0 && args[0] == reapFlag {
		return nil, reap(args[1:], environ)
	}
	b, err := parseBirth(args)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", verb, err)
	}
	s := &Seat{birth: b, meta: b.meta, environ: environ, gate: -1, fifo: -1}
	if b.after {
		s.release()
		s.start = &host.Start{Mode: host.Shell}
		s.defaultCommand()
		return s, nil
	}
	p, err := takePayload(b.dir, b.nonce)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return s, s.respawned()
	case err != nil:
		return nil, fmt.Errorf("%s: %w", verb, err)
	}
	s.start, s.batch = &p.start, p.batch
	if err := s.arrive(); err != nil {
		s.leave()
		return nil, fmt.Errorf("%w: %w", ErrLeft, err)
	}
	if p.start.Mode == host.Shell && len(p.start.Argv) == 0 {
		s.defaultCommand()
	}
	return s, nil
}

func takePayload(dir, nonce string) (payload, error) {
	path := dir + "/" + payloadFile + nonce
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return payload{}, err
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	if err := unix.Unlink(path); err != nil {
		return payload{}, err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxPayload+1))
	if err != nil {
		return payload{}, err
	}
	return decodePayload(b)
}

// arrive says that the pane is here. It fails where the maker is gone.
func (s *Seat) arrive() error {
	var err error
	if s.gate, err = unix.Open(s.birth.dir+"/"+gateFile, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0); err != nil {
		return err
	}
	if s.fifo, err = unix.Open(s.birth.dir+"/f"+strconv.Itoa(s.batch), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0); err != nil {
		return err
	}
	return s.say("start " + s.birth.nonce)
}

func (s *Seat) say(line string) error {
	for {
		_, err := unix.Write(s.fifo, []byte(line+"\n"))
		if err == unix.EINTR {
			continue
		}
		if err == unix.EAGAIN { // the maker reads slowly; the line is shorter than PIPE_BUF
			time.Sleep(time.Millisecond)
			continue
		}
		return err
	}
}

// Start is what the pane was made to run; nil on a respawn.
func (s *Seat) Start() *host.Start { return s.start }

// Meta is the pane's current metadata: of a birth what it was born with.
func (s *Seat) Meta() map[metadata.Key][]byte { return s.meta }

// Nonce is the pane's birth nonce.
func (s *Seat) Nonce() string { return s.birth.nonce }

// Ended says that this is the shell after a program that ended.
func (s *Seat) Ended() bool { return s.birth.after }

// Wait returns when the pane is committed and its turn has come. Where it never will be, the
// pane is taken away and ErrLeft returned.
func (s *Seat) Wait() error {
	if s.gate < 0 {
		return nil
	}
	err := setLock(s.gate, unix.F_SETLKW, unix.F_RDLCK, lockAt(s.batch))
	if err == nil {
		var b [len(goWord)]byte
		var n int
		n, err = unix.Pread(s.gate, b[:], 0)
		if err == nil && (n != len(goWord) || string(b[:]) != goWord) {
			err = errors.New("the session was not committed")
		}
	}
	// Closing gives the lock back; the gate is close-on-exec besides.
	unix.Close(s.gate)
	s.gate = -1
	if err != nil {
		s.leave()
		return fmt.Errorf("%w: %w", ErrLeft, err)
	}
	if s.start.Mode == host.Placeholder {
		// It stands; nothing is going to close it by an exec.
		s.hush()
	}
	return nil
}

// Fail tells the maker that the program does not start, and why.
func (s *Seat) Fail(reason string) {
	if s.fifo < 0 {
		return
	}
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "")
	}
	_ = s.say("fail " + s.birth.nonce + " " + b64.EncodeToString([]byte(reason)))
	s.hush()
}

func (s *Seat) hush() {
	if s.fifo >= 0 {
		unix.Close(s.fifo)
		s.fifo = -1
	}
}

// Close takes the pane away.
func (s *Seat) Close() { s.leave() }

// release lets the pane end with what runs in it from now on, as the user's other panes do. Where
// the server does not answer, the pane stays when its shell ends.
func (s *Seat) release() {
	t, pane, err := inside(s.environ)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, _ = t.run(ctx, "", "set-option", "-pu", "-t", pane, "remain-on-exit")
}

// leave takes away the pane that this process is the program of: remain-on-exit would keep it.
func (s *Seat) leave() {
	t, pane, err := inside(s.environ)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, _ = t.run(ctx, "", "if-shell", "-F", "-t", pane, "#{==:#{pane_pid},"+strconv.Itoa(os.Getpid())+"}", "kill-pane -t "+pane)
}

// inside is the server whose pane this process is in, by the environment that it gave us.
func inside(environ []string) (tool, string, error) {
	get := func(name string) (v string) {
		for _, kv := range environ {
			if k, w, ok := strings.Cut(kv, "="); ok && k == name {
				v = w
			}
		}
		return v
	}
	f := strings.Split(get("TMUX"), ",")
	pane := get("TMUX_PANE")
	if len(f) != 3 || !filepath.IsAbs(f[0]) || !validID(pane, '%') {
		return tool{}, "", errors.New("not in a pane of tmux")
	}
	// The server's own binary speaks its protocol, whatever PATH holds.
	binary, err := os.Readlink("/proc/" + f[1] + "/exe")
	if err != nil || !strings.HasPrefix(filepath.Base(binary), "tmux") || strings.HasSuffix(binary, " (deleted)") {
		if binary, err = exec.LookPath("tmux"); err != nil {
			return tool{}, "", err
		}
	}
	return tool{binary: binary, server: []string{"-S", f[0]}, env: clientEnv(environ, "")}, pane, nil
}

func validID(s string, sigil byte) bool {
	if len(s) < 2 || s[0] != sigil {
		return false
	}
	_, err := strconv.ParseUint(s[1:], 10, 32)
	return err == nil
}

// respawned reads what the pane's metadata is now. A pane whose payload was swept away before it
// came, in a session that was never committed, leaves.
func (s *Seat) respawned() error {
	t, pane, err := inside(s.environ)
	if err != nil {
		return nil // what it was born with stands
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	m := newMark()
	f := make([]string, 0, len(options)+4)
	f = append(f, "#{pane_id}", "#{session_id}", "#{"+txOption+"}", "#{pane_start_command}")
	for _, o := range options {
		f = append(f, "#{"+o.name+"}")
	}
	out, err := t.run(ctx, "", "display-message", "-p", "-t", pane, m+"{"+strings.Join(f, m)+m+"}")
	if err != nil {
		return nil
	}
	_, rest, _ := strings.Cut(string(out), m+"{")
	rest, _, _ = strings.Cut(rest, m+"}")
	v := strings.Split(rest, m)
	if len(v) != len(f) || v[0] != pane {
		return nil
	}
	if onSession(v[1], v[2]) != "" {
		s.leave()
		return fmt.Errorf("%w: the session was not committed", ErrLeft)
	}
	id := judge(pane, v[3], [len(options)]string{v[4], v[5], v[6]}, programName(os.Args[0]), alive)
	if id.nonce == s.birth.nonce {
		s.meta = id.meta
	}
	return nil
}

// defaultCommand makes the shell the one that tmux would start: the default-command, by the
// shell, where the user has set one.
func (s *Seat) defaultCommand() {
	t, pane, err := inside(s.environ)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	m := newMark()
	out, err := t.run(ctx, "", "display-message", "-p", "-t", pane, m+"{#{default-command}"+m+"}")
	if err != nil {
		return
	}
	_, rest, _ := strings.Cut(string(out), m+"{")
	command, _, _ := strings.Cut(rest, m+"}")
	if command == "" {
		return
	}
	shell := "/bin/sh"
	for _, kv := range s.environ {
		if v, ok := strings.CutPrefix(kv, "SHELL="); ok && filepath.IsAbs(v) {
			shell = v
		}
	}
	s.start.Argv = []string{shell, "-c", command}
}

// reap waits for the maker of a session of plain shells to end, and takes the session away if
// it was not committed: such panes have no process of ours that would leave by itself.
func reap(args []string, environ []string) error {
	if len(args) != 5 || (args[1] != "-L" && args[1] != "-S") || !filepath.IsAbs(args[0]) || !filepath.IsAbs(args[4]) {
		return fmt.Errorf("%s: %w", verb, errToken)
	}
	t := tool{binary: args[0], server: args[1:3], env: environ}
	gate, err := unix.Open(args[4]+"/"+gateFile, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return ErrLeft
	}
	if err := setLock(gate, unix.F_SETLKW, unix.F_RDLCK, 0); err != nil {
		return ErrLeft
	}
	var b [len(goWord)]byte
	if n, err := unix.Pread(gate, b[:], 0); err == nil && n == len(goWord) && string(b[:]) == goWord {
		return ErrLeft
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	// Its client may still be on its way to the server.
	for range 50 {
		if removeBuilding(ctx, t, args[3]) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	_ = os.RemoveAll(args[4])
	return ErrLeft
}
