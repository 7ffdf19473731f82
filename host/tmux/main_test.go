package tmux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/hosttest"
	"github.com/phux-agent/phux-agent/internal/proc"
)

// The test binary is phux-agent in panes, the suite's program, and a maker that is killed.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == verb:
		os.Exit(paneExec(os.Args[2:]))
	case len(os.Args) > 1 && os.Args[1] == "make-session":
		os.Exit(makeSession(os.Args[2:]))
	case len(os.Args) > 1 && os.Args[1] == "say-caller":
		os.Exit(sayCaller(os.Args[2:]))
	}
	if code, ok := hosttest.Main(os.Args[1:], os.Stdout); ok {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// paneExec is what the pane-exec verb does, without guards and placeholders of substance.
func paneExec(args []string) int {
	s, err := Enter(args, os.Environ())
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

// testTmux is the tmux under test.
func testTmux(t testing.TB) string {
	t.Helper()
	b := os.Getenv("PHUX_TEST_TMUX")
	if b == "" {
		b = "tmux"
	}
	path, err := exec.LookPath(b)
	if err != nil {
		t.Skipf("no tmux: %v", err)
	}
	return path
}

// stage is one private tmux server.
type stage struct {
	t       testing.TB
	dir     string
	socket  string
	runtime string
	config  string
	host    *Host
}

// newStage makes a private server's surroundings; the server starts with the first create, or
// with start, and then reads the configuration.
func newStage(t testing.TB, config ...string) *stage {
	t.Helper()
	b := testTmux(t)
	// A socket's path has a short limit.
	dir, err := os.MkdirTemp("", "phux")
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, dir: dir, socket: filepath.Join(dir, "s"), runtime: filepath.Join(dir, "run"), config: filepath.Join(home, ".tmux.conf")}
	if err := os.WriteFile(s.config, []byte(strings.Join(config, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if tt, ok := t.(interface{ Setenv(k, v string) }); ok {
		tt.Setenv("HOME", home)
		tt.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
		tt.Setenv("SHELL", "/bin/sh")
		tt.Setenv("ENV", "")
	}
	t.Cleanup(func() {
		// What runs in the panes is gone before the test's directories are removed.
		out, _ := exec.Command(b, "-S", s.socket, "list-panes", "-a", "-F", "#{pane_pid}").Output()
		_ = exec.Command(b, "-S", s.socket, "kill-server").Run()
		for _, f := range strings.Fields(string(out)) {
			pid, _ := strconv.Atoi(f)
			for end := time.Now().Add(5 * time.Second); running(pid) && time.Now().Before(end); {
				time.Sleep(2 * time.Millisecond)
			}
		}
		_ = os.RemoveAll(dir)
	})
	s.host = s.open()
	return s
}

func (s *stage) open() *Host {
	s.t.Helper()
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	h, err := New(Options{Tmux: testTmux(s.t), Path: s.socket, Self: self, RuntimeDir: s.runtime})
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}

// tmux runs a tmux command as a user would.
func (s *stage) tmux(args ...string) string {
	s.t.Helper()
	out, err := exec.Command(testTmux(s.t), append([]string{"-u", "-S", s.socket}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

func (s *stage) version() version { return parseVersion(s.host.clientVersion(context.Background())) }

// start starts the server with a session of the user's own.
func (s *stage) start() {
	s.tmux("new-session", "-d", "-s", "mine", "-x", "80", "-y", "24", "sleep", "1000")
}

func (s *stage) until(lacks func() string) {
	s.t.Helper()
	last := ""
	for end := time.Now().Add(20 * time.Second); ; {
		if last = lacks(); last == "" {
			return
		}
		if time.Now().After(end) {
			s.t.Fatal(last)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// running is false of a zombie, which an orphan may stay where nobody counts it.
func running(pid int) bool {
	i, err := proc.Stat(pid)
	return err == nil && !i.Dead()
}

func makeSession([]string) int { return 1 }
func sayCaller([]string) int   { return 1 }
