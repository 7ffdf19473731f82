package archive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"

	"github.com/phux-agent/phux-agent/internal/atomicfile"
)

// whoText is what a lock's owner writes into it, for people.
type whoText struct {
	What    string    `json:"what"`
	PID     int       `json:"pid"`
	Machine string    `json:"machine,omitzero"`
	Since   time.Time `json:"since"`
}

// lock takes one of the store's locks: the kernel's, so it dies with its owner and is never
// stolen. wait as in SaveOptions.
func (s Store) lock(ctx context.Context, file, what string, wait time.Duration) (unlock func(), err error) {
	if wait == 0 {
		wait = DefaultWait
	}
	f, err := s.openShared(file)
	if err != nil {
		return nil, err
	}
	held := false
	defer func() {
		if !held {
			_ = f.Close()
		}
	}()
	deadline := time.Now().Add(wait)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		ok, err := tryFlock(f)
		if err != nil {
			return nil, fmt.Errorf("lock %q: %w", f.Name(), err)
		}
		if ok {
			break
		}
		if !time.Now().Before(deadline) {
			return nil, &BusyError{s.who(f, what)}
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), &BusyError{s.who(f, what)})
		case <-time.After(pause):
		}
	}
	held = true
	if b, err := json.Marshal(whoText{what, os.Getpid(), s.Machine, s.now()}); err == nil {
		// For people only: that it cannot be written stops nobody.
		_ = f.Truncate(0)
		_, _ = f.WriteAt(append(b, '\n'), 0)
	}
	return func() {
		_ = f.Truncate(0)
		_ = f.Close()
	}, nil
}

// openShared opens a file that is written in place, private whatever the umask.
func (s Store) openShared(file string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(s.Dir, file), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, atomicfile.Mode)
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(atomicfile.Mode); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func tryFlock(f *os.File) (bool, error) {
	for {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, unix.EINTR):
			return false, err
		}
	}
}

// who reads what a lock's owner says of itself; what stands for one that says nothing.
func (s Store) who(f *os.File, what string) Who {
	b := make([]byte, 1024)
	n, _ := f.ReadAt(b, 0)
	var t whoText
	if json.Unmarshal(b[:n], &t) != nil || t.PID <= 0 || !isWord(t.What) || !isWord(t.Machine) {
		return Who{What: what}
	}
	w := Who{What: t.What, PID: t.PID, Since: t.Since}
	if t.Machine != s.Machine {
		w.Machine = t.Machine
	}
	return w
}

// Restoring says who holds Lock, if anybody does.
func (s Store) Restoring() (Who, bool) {
	f, err := os.OpenFile(filepath.Join(s.Dir, restoreLockFile), os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return Who{}, false
	}
	defer func() { _ = f.Close() }()
	if ok, err := tryFlock(f); ok || err != nil {
		return Who{}, false
	}
	return s.who(f, "restore"), true
}
