package tmux

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A transaction is a private directory that the maker of panes and the panes share:
//
//	gate      byte 0 is locked while the maker lives; byte 2i+2 while batch i may not start yet.
//	          "GO" in it is the commit: without it nothing starts, whatever is unlocked
//	fN        the FIFO of batch N: the panes write "start NONCE" and "fail NONCE REASON" into it,
//	          and close it by becoming their program
//	p.NONCE   a payload; whoever unlinks it has taken it
//
// Locks are POSIX record locks: they end with their process, and no child inherits them. Every
// second byte is used because the kernel would join neighbouring locks, and wake all who wait.
type transaction struct {
	dir   string
	gate  int
	fifos []*fifo
}

type fifo struct {
	fd      int
	partial []byte
	eof     bool
}

const (
	txHead      = "t."
	newHead     = ".new."
	gateFile    = "gate"
	goWord      = "GO"
	staleAge    = time.Minute
	maxBatches  = 400
	maxReason   = 2048
	payloadFile = "p."
)

func lockAt(batch int) int64 { return int64(2*batch + 2) }

func setLock(fd int, cmd int, kind int16, at int64) error {
	l := unix.Flock_t{Type: kind, Whence: 0, Start: at, Len: 1}
	for {
		if err := unix.FcntlFlock(uintptr(fd), cmd, &l); err != unix.EINTR {
			return err
		}
	}
}

// runtimeDir makes the private directory, and refuses one that others can enter.
func runtimeDir(dir string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("runtime directory %q is not an absolute path", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return fmt.Errorf("runtime directory %q: %w", dir, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != uid() {
		return fmt.Errorf("runtime directory %q is not a directory of this user", dir)
	}
	if st.Mode&0o077 != 0 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return fmt.Errorf("runtime directory %q: %w", dir, err)
		}
	}
	return nil
}

// begin makes a transaction of that many batches. It appears under its name with its gate
// locked: what is not locked is left by a maker that died.
func begin(runtime, id string, batches int) (*transaction, error) {
	if err := runtimeDir(runtime); err != nil {
		return nil, err
	}
	tmp, dir := filepath.Join(runtime, newHead+id), filepath.Join(runtime, txHead+id)
	if err := os.Mkdir(tmp, 0o700); err != nil {
		return nil, err
	}
	t := &transaction{dir: tmp, gate: -1}
	err := func() (err error) {
		if t.gate, err = unix.Open(tmp+"/"+gateFile, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600); err != nil {
			return err
		}
		if err := setLock(t.gate, unix.F_SETLK, unix.F_WRLCK, 0); err != nil {
			return err
		}
		for i := range batches {
			if err := setLock(t.gate, unix.F_SETLK, unix.F_WRLCK, lockAt(i)); err != nil {
				return err
			}
			path := t.fifo(i)
			if err := unix.Mkfifo(path, 0o600); err != nil {
				return err
			}
			fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			t.fifos = append(t.fifos, &fifo{fd: fd})
		}
		return os.Rename(tmp, dir)
	}()
	if err != nil {
		t.end()
		return nil, fmt.Errorf("make %q: %w", dir, err)
	}
	t.dir = dir
	mine.Store(dir, true)
	return t, nil
}

// mine are this process's own transactions. To look at the lock of one would drop it: a record
// lock ends when its process closes any descriptor of the file.
var mine sync.Map

func (t *transaction) fifo(batch int) string { return t.dir + "/f" + strconv.Itoa(batch) }

// put writes one payload.
func (t *transaction) put(nonce string, p payload) error {
	b, err := p.encode()
	if err != nil {
		return err
	}
	fd, err := unix.Open(t.dir+"/"+payloadFile+nonce, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("write a payload: %w", err)
	}
	for len(b) > 0 {
		n, err := unix.Write(fd, b)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			unix.Close(fd)
			return fmt.Errorf("write a payload: %w", err)
		}
		b = b[n:]
	}
	if err := unix.Close(fd); err != nil {
		return fmt.Errorf("write a payload: %w", err)
	}
	return nil
}

// commit writes the word without which nothing starts. From here on all panes start, even if
// this process dies: then all at once.
func (t *transaction) commit() error {
	n, err := unix.Pwrite(t.gate, []byte(goWord), 0)
	if err == nil && n != len(goWord) {
		err = unix.ENOSPC
	}
	return err
}

// release lets a batch pass.
func (t *transaction) release(batch int) error {
	return setLock(t.gate, unix.F_SETLK, unix.F_UNLCK, lockAt(batch))
}

// end closes everything and removes the directory. Without a commit every pane that waits leaves.
func (t *transaction) end() {
	for _, f := range t.fifos {
		f.close()
	}
	if t.gate >= 0 {
		unix.Close(t.gate)
		t.gate = -1
	}
	_ = os.RemoveAll(t.dir)
	mine.Delete(t.dir)
}

func (f *fifo) close() {
	if f.fd >= 0 {
		unix.Close(f.fd)
		f.fd = -1
	}
}

// word is one line that a pane wrote.
type paneWord struct {
	start  bool
	nonce  string
	reason string
}

// wait reads what panes of the given batches write, until done says so, every batch is at its
// end, or until returns false; it is asked whenever nothing came for a moment.
func (t *transaction) wait(ctx context.Context, batches []int, each func(paneWord), done, until func() bool) error {
	buf := make([]byte, 16<<10)
	for !done() {
		var fds []unix.PollFd
		var open []*fifo
		for _, b := range batches {
			if f := t.fifos[b]; !f.eof {
				fds = append(fds, unix.PollFd{Fd: int32(f.fd), Events: unix.POLLIN})
				open = append(open, f)
			}
		}
		if len(fds) == 0 {
			return nil
		}
		n, err := unix.Poll(fds, 20)
		if err != nil && err != unix.EINTR {
			return fmt.Errorf("wait for panes: %w", err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if n <= 0 {
			if !until() {
				return nil
			}
			continue
		}
		for i, p := range fds {
			if p.Revents == 0 {
				continue
			}
			n, err := unix.Read(open[i].fd, buf)
			switch {
			case err == unix.EINTR || err == unix.EAGAIN:
			case err != nil:
				return fmt.Errorf("wait for panes: %w", err)
			case n == 0:
				open[i].eof = true
			default:
				open[i].take(buf[:n], each)
			}
		}
	}
	return nil
}

func (f *fifo) take(b []byte, each func(paneWord)) {
	f.partial = append(f.partial, b...)
	for {
		line, rest, ok := bytes.Cut(f.partial, []byte{'\n'})
		if !ok {
			break
		}
		f.partial = rest
		if w, ok := parsePaneWord(string(line)); ok {
			each(w)
		}
	}
	if len(f.partial) > 2*maxReason {
		f.partial = nil
	}
}

func parsePaneWord(line string) (paneWord, bool) {
	kind, rest, _ := strings.Cut(line, " ")
	nonce, reason, _ := strings.Cut(rest, " ")
	if !validNonce(nonce) {
		return paneWord{}, false
	}
	switch kind {
	case "start":
		return paneWord{start: true, nonce: nonce}, reason == ""
	case "fail":
		b, err := b64.DecodeString(reason)
		return paneWord{nonce: nonce, reason: string(b)}, err == nil
	}
	return paneWord{}, false
}

// sweep removes what makers that died left behind: payloads may hold secrets. A young one is
// left alone, for a pane that finds no payload would take itself for a respawn.
func sweep(runtime string) {
	entries, err := os.ReadDir(runtime)
	if err != nil {
		return
	}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, txHead) && !strings.HasPrefix(name, newHead) {
			continue
		}
		i, err := e.Info()
		if err != nil || time.Since(i.ModTime()) < staleAge {
			continue
		}
		dir := filepath.Join(runtime, name)
		if !makerAlive(dir) {
			_ = os.RemoveAll(dir)
		}
	}
}

func makerAlive(dir string) bool {
	if _, ok := mine.Load(dir); ok {
		return true
	}
	fd, err := unix.Open(dir+"/"+gateFile, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return !errors.Is(err, unix.ENOENT)
	}
	defer unix.Close(fd)
	l := unix.Flock_t{Type: unix.F_WRLCK, Start: 0, Len: 1}
	if err := unix.FcntlFlock(uintptr(fd), unix.F_GETLK, &l); err != nil {
		return true
	}
	return l.Type != unix.F_UNLCK
}

// Failure says why a pane that is there did not start its program, in the pane's own words.
type Failure struct{ Reason string }

func (e *Failure) Error() string { return "the program did not start: " + e.Reason }

var errUnseen = fmt.Errorf("the program was not seen to start: %w", context.DeadlineExceeded)
