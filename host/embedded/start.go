package embedded

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
	"sync"
	"syscall"
	"time"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/internal/dirs"
)

// readyEnv names the descriptor on which a server that was started in the background says that
// clients can come, or why not.
const readyEnv = "PHUX_AGENT_SERVER_READY"

// StartError is a server that did not start, in its own words.
type StartError struct{ Reason string }

func (e *StartError) Error() string { return "start a server: " + e.Reason }

// startTimeout bounds how long a start waits for its server, or for another that is ending.
const startTimeout = 15 * time.Second

// begin starts a server in the background, detached from us: a session of its own, no terminal,
// its words in a log. Where another one comes to run meanwhile, that is as good.
func begin(ctx context.Context, command, environ []string, log, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		c, err := Dial(ctx, socket)
		if err == nil {
			c.Close()
			return nil
		}
		if !errors.Is(err, host.ErrNoServer) {
			return err
		}
		if err = spawnServer(command, environ, log); err != nil && !errors.Is(err, ErrRunning) {
			return err
		}
		if err == nil {
			return nil
		}
		// One is about to serve, or about to end.
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func spawnServer(command, environ []string, logPath string) error {
	if len(command) == 0 {
		return errors.New("start a server: no command")
	}
	log, err := openLog(logPath)
	if err != nil { // a state directory that cannot be written to: terminals can be had all the same
		if log, err = openLog(""); err != nil {
			return fmt.Errorf("start a server: %w", err)
		}
	}
	defer log.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start a server: %w", err)
	}
	defer r.Close()
	cmd := exec.Command(command[0], command[1:]...)
	for _, kv := range environ {
		if !strings.HasPrefix(kv, readyEnv+"=") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, readyEnv+"=3")
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	w.Close()
	if err != nil {
		return fmt.Errorf("start a server: %w", err)
	}
	go func() { _ = cmd.Wait() }() // it outlives us, or is counted by us
	_ = r.SetReadDeadline(time.Now().Add(startTimeout))
	said, err := io.ReadAll(io.LimitReader(r, 4096))
	switch word := strings.TrimSpace(string(said)); {
	case word == "ready":
		return nil
	case word == ErrRunning.Error():
		return ErrRunning
	case word != "":
		return &StartError{word}
	case err != nil:
		return fmt.Errorf("start a server: %w", err)
	}
	return &StartError{"it ended at once; its words are in " + logPath}
}

// maxLog is the size at which a log is begun anew, in bytes, and what one life of a server adds to it.
const maxLog = 1 << 20

// BoundLog is a log of which one life of a server writes at most so much: whoever makes the server write
// fills no disk.
func BoundLog(w io.Writer) io.Writer { return &boundLog{w: w, left: maxLog} }

type boundLog struct {
	mu   sync.Mutex
	w    io.Writer
	left int
}

func (l *boundLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left <= 0 {
		return len(b), nil
	}
	if l.left -= len(b); l.left <= 0 {
		_, _ = io.WriteString(l.w, "the log is full, and no more is written\n")
		return len(b), nil
	}
	return l.w.Write(b)
}

func openLog(path string) (*os.File, error) {
	if path == "" {
		return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	}
	if err := dirs.Private(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if i, err := os.Lstat(path); err == nil && i.Size() > maxLog {
		_ = os.Rename(path, path+".old")
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
}

// Announce tells whoever started this process in the background, if anybody did, that its server
// serves (nil), or why it does not. It may be called once.
func Announce(environ []string, err error) {
	for _, kv := range environ {
		v, ok := strings.CutPrefix(kv, readyEnv+"=")
		fd, nerr := strconv.Atoi(v)
		if !ok || nerr != nil || fd < 3 {
			continue
		}
		f := os.NewFile(uintptr(fd), "ready")
		word := "ready"
		switch {
		case errors.Is(err, ErrRunning):
			word = ErrRunning.Error()
		case err != nil:
			word = err.Error()
		}
		_, _ = io.WriteString(f, word+"\n")
		f.Close()
		return
	}
}
