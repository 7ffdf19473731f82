package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/hosttest"
	"github.com/phux-agent/phux-agent/internal/proc"
)

// The test binary is phux-agent in terminals, the server, the suite's program, and a client that
// is killed.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 2 && os.Args[1] == "pane-exec":
		os.Exit(paneExec())
	case len(os.Args) > 2 && os.Args[1] == "serve":
		os.Exit(serve(os.Args[2], os.Args[3:]))
	case len(os.Args) > 2 && os.Args[1] == "order":
		h, err := New(testOptions(os.Args[2]))
		if err == nil {
			err = hosttest.Serve(context.Background(), h, os.Stdin)
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if code, ok := hosttest.Main(os.Args[1:], os.Stdout); ok {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// paneExec is what the pane-exec verb does, without guards and placeholders of substance.
func paneExec() int {
	s, err := Enter()
	if errors.Is(err, ErrLeft) {
		return 0
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	if err := s.Wait(); err != nil {
		return 0
	}
	start := s.Start()
	if start == nil {
		fmt.Printf("respawned %s with %q\n", s.Nonce(), s.Meta())
		time.Sleep(time.Hour)
		return 0
	}
	if start.Mode == host.Placeholder {
		fmt.Println(start.Reason)
		time.Sleep(time.Hour)
		return 0
	}
	err = start.Exec(os.Environ(), s.Nonce())
	s.Fail(err.Error())
	fmt.Println(err)
	return 1
}

func serve(socket string, flags []string) int {
	self, _ := os.Executable()
	opt := ServerOptions{
		Name: "test", Socket: socket, Self: self, Environ: os.Environ(), Version: "test",
		Ready: func() { Announce(os.Environ(), nil) }, Idle: time.Hour,
	}
	for _, f := range flags {
		opt.Older = opt.Older || f == "older"
		if f == "brief" {
			opt.Idle = 20 * time.Millisecond
		}
	}
	s, err := NewServer(opt)
	if err == nil {
		err = s.Serve(context.Background())
	}
	if err != nil {
		Announce(os.Environ(), err)
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func testOptions(socket string, flags ...string) Options {
	self, _ := os.Executable()
	return Options{
		Name: "test", Socket: socket, Log: os.Getenv("EMBEDDED_TEST_LOG"), Version: "test",
		Command: append([]string{self, "serve", socket}, flags...), Environ: os.Environ(), Getenv: os.Getenv,
	}
}

// stage is one private server.
type stage struct {
	t      testing.TB
	socket string
	host   *Host
}

func newStage(t testing.TB, flags ...string) *stage {
	t.Helper()
	dir, err := os.MkdirTemp("", "phux") // a socket's path has a short limit
	if err != nil {
		t.Fatal(err)
	}
	if tt, ok := t.(interface{ Setenv(k, v string) }); ok {
		tt.Setenv("SHELL", "/bin/sh")
		tt.Setenv("ENV", "")
		tt.Setenv("HOME", dir)
	}
	s := &stage{t: t, socket: filepath.Join(dir, "run", "s.sock")}
	opt := testOptions(s.socket, flags...)
	opt.Log = filepath.Join(dir, "state", "log")
	if s.host, err = New(opt); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.stop()
		if b, _ := os.ReadFile(opt.Log); len(b) > 0 && t.Failed() {
			t.Logf("the server says: %s", b)
		}
		_ = os.RemoveAll(dir)
	})
	return s
}

func (s *stage) start() *Client {
	s.t.Helper()
	if err := s.host.Start(context.Background()); err != nil {
		s.t.Fatal(err)
	}
	return s.dial()
}

func (s *stage) dial() *Client {
	s.t.Helper()
	c, err := s.host.Dial(context.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	return c
}

// stop ends the server, and waits for what ran in its terminals.
func (s *stage) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c, err := s.host.Dial(ctx)
	if err != nil {
		return
	}
	defer c.Close()
	var pids []int
	if w, err := c.Snapshot(ctx); err == nil {
		for _, se := range w.Sessions {
			for _, win := range se.Windows {
				for _, p := range win.Panes {
					pids = append(pids, p.PID)
				}
			}
		}
	}
	if err := c.Shutdown(ctx); err != nil {
		s.t.Errorf("shutdown: %v", err)
	}
	for _, pid := range append(pids, c.Instance.PID) {
		for running(pid) && ctx.Err() == nil {
			time.Sleep(2 * time.Millisecond)
		}
	}
}

// running is false of a zombie, which an orphan may stay where nobody counts it.
func running(pid int) bool {
	i, err := proc.Stat(pid)
	return err == nil && !i.Dead()
}

func until(t testing.TB, lacks func() string) {
	t.Helper()
	last := ""
	for end := time.Now().Add(time.Minute); ; {
		if last = lacks(); last == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatal(last)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
