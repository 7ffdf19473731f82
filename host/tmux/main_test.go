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
	"github.com/phux-agent/phux-agent/metadata"
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
	s := newBareStage(t, config...)
	for _, kv := range s.env() {
		k, v, _ := strings.Cut(kv, "=")
		t.Setenv(k, v)
	}
	s.host = s.open()
	return s
}

// newBareStage is the same for tests that run beside each other, which cannot set their
// environment: it goes into the host's door.
func newBareStage(t testing.TB, config ...string) *stage {
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
	h.tool.env = append(h.tool.env, s.env()...)
	return h
}

// env is the surroundings that a server is started in.
func (s *stage) env() []string {
	home := filepath.Dir(s.config)
	return []string{"HOME=" + home, "XDG_CONFIG_HOME=" + home + "/.config", "SHELL=/bin/sh", "ENV=", "PATH=" + os.Getenv("PATH")}
}

// tmux runs a tmux command as a user would.
func (s *stage) tmux(args ...string) string {
	s.t.Helper()
	cmd := exec.Command(testTmux(s.t), append([]string{"-u", "-S", s.socket}, args...)...)
	cmd.Env = append(os.Environ(), s.env()...)
	out, err := cmd.CombinedOutput()
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

// makeSession is a maker of its own process: it makes victim in the given way.
func makeSession(args []string) int {
	self, _ := os.Executable()
	h, err := New(Options{Tmux: args[0], Path: args[1], Self: self, RuntimeDir: args[2]})
	if err == nil {
		switch args[3] {
		case "spawn":
			_, err = h.Spawn(context.Background(), host.Spawn{Session: "mine", Pane: logged(args[4], "0")})
		default:
			_, err = h.Create(context.Background(), victim(args[3], args[4]))
		}
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// logged is a pane whose program says in the directory log that it ran.
func logged(log, name string) host.PaneSpec {
	return host.PaneSpec{
		Start: host.Start{Mode: host.Program, Argv: []string{"/bin/sh", "-c", `echo >>"$0/$1"; exec sleep 1000`, log, name}},
		Meta:  map[metadata.Key][]byte{metadata.KeyAgentSession: []byte(name)},
	}
}

// victim is a session of three windows of three panes each: all agents, all shells, or mixed.
func victim(kind, log string) host.CreateSession {
	c := host.CreateSession{Name: "victim", Parallel: 2}
	for w := range 3 {
		layout, err := host.Split(120, 40, 3)
		if err != nil {
			panic(err)
		}
		ws := host.WindowSpec{Name: "w", Index: w + 3, Layout: layout}
		for p := range 3 {
			spec := logged(log, fmt.Sprintf("%d-%d", w, p))
			if kind == "shells" || kind == "mixed" && p == 1 {
				spec = host.PaneSpec{Start: host.Start{Dir: "/usr"}}
			}
			ws.Panes = append(ws.Panes, spec)
		}
		c.Windows = append(c.Windows, ws)
	}
	return c
}

// sayCaller writes what Caller answers into a file.
func sayCaller(args []string) int {
	h, err := New(Options{Tmux: args[0], Path: args[1]})
	if err != nil {
		return 1
	}
	here, err := h.Caller(context.Background())
	text := here.Terminal.ID + " " + here.SessionID + " " + here.Session
	if err != nil {
		text = "error: " + err.Error()
	}
	if os.WriteFile(args[2]+".tmp", []byte(text), 0o600) != nil || os.Rename(args[2]+".tmp", args[2]) != nil {
		return 1
	}
	return 0
}
