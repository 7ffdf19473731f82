package tmux

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

func (s *stage) see(term host.Terminal) *host.Pane {
	s.t.Helper()
	w, err := s.host.Snapshot(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, ses := range w.Sessions {
		for _, win := range ses.Windows {
			for i := range win.Panes {
				if win.Panes[i].Terminal.ID == term.ID {
					return &win.Panes[i]
				}
			}
		}
	}
	return nil
}

func (s *stage) spawn(p host.PaneSpec) host.Started {
	s.t.Helper()
	out, err := s.host.Spawn(s.t.Context(), host.Spawn{Session: "mine", Background: true, Pane: p})
	if err != nil || out.Err != nil {
		s.t.Fatal(err, out)
	}
	return *out
}

// TestRespawn: the program of a pane that is respawned is pane-exec again, with its payload
// spent: it finds what the record is now.
func TestRespawn(t *testing.T) {
	s := newStage(t)
	s.start()
	out := s.spawn(logged(s.dir, "old"))
	if err := s.host.Swap(t.Context(), out.Terminal, metadata.KeyAgentSession, []byte("old"), []byte("new")); err != nil {
		t.Fatal(err)
	}
	s.tmux("respawn-pane", "-k", "-t", out.Terminal.ID)
	s.until(func() string {
		text, err := s.host.LastWords(t.Context(), out.Terminal, 4096)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.ReplaceAll(text, "\n", ""), fmt.Sprintf("respawned %s with %q", out.Nonce, meta(ks, "new"))) {
			return "it says " + text
		}
		return ""
	})
	if p := s.see(out.Terminal); p.Origin != host.Ours || !p.Waiting || string(p.Meta[metadata.KeyAgentSession]) != "new" {
		t.Errorf("%+v", p)
	}
}

// TestShellAfter: after exit 0 comes the user's shell, which takes its pane along when it ends.
func TestShellAfter(t *testing.T) {
	s := newStage(t, `set -g default-command 'echo the user shell; read x'`)
	s.start()
	p := logged(s.dir, "x")
	p.Start.Argv = []string{"/bin/sh", "-c", "exit 0"}
	p.Start.AfterExit = "shell"
	p.Start.Dir = "/usr"
	out := s.spawn(p)
	s.until(func() string {
		text, err := s.host.LastWords(t.Context(), out.Terminal, 4096)
		if err != nil || !strings.Contains(text, "the user shell") {
			return fmt.Sprintf("%q %v %+v\n%s", text, err, s.see(out.Terminal), s.tmux("show-options", "-p", "-t", out.Terminal.ID)+s.tmux("show-hooks", "-p", "-t", out.Terminal.ID))
		}
		return ""
	})
	if p := s.see(out.Terminal); p.Origin != host.Ended || p.Dead || p.Dir != "/usr" || p.Nonce != out.Nonce || string(p.Meta[metadata.KeyAgentSession]) != "x" {
		t.Errorf("%+v", p)
	}
	s.tmux("send-keys", "-t", out.Terminal.ID, "Enter")
	s.until(func() string {
		if p := s.see(out.Terminal); p != nil {
			return fmt.Sprintf("it is still there: %+v", p)
		}
		return ""
	})
}

// TestPayloadIsTakenOnce: two that come for one payload: one gets it.
func TestPayloadIsTakenOnce(t *testing.T) {
	tx, err := begin(t.TempDir(), "x", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.end()
	for range 200 {
		if err := tx.put(nonceA, fullPayload()); err != nil {
			t.Fatal(err)
		}
		if i, err := os.Stat(tx.dir + "/" + payloadFile + nonceA); err != nil || i.Mode().Perm() != 0o600 {
			t.Fatalf("%v %v", i, err)
		}
		wins := make(chan bool, 8)
		begin := make(chan struct{})
		for range cap(wins) {
			go func() {
				<-begin
				_, err := takePayload(tx.dir, nonceA)
				wins <- err == nil
			}()
		}
		close(begin)
		n := 0
		for range cap(wins) {
			if <-wins {
				n++
			}
		}
		if n != 1 {
			t.Fatalf("%d took it", n)
		}
	}
	if i, err := os.Stat(tx.dir); err != nil || i.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", i, err)
	}
}

// TestPaneLeaves: a pane that stands at the gate of a maker that dies takes itself away, though
// it was already told to remain on exit.
func TestPaneLeaves(t *testing.T) {
	s := newStage(t)
	s.start()
	n := &spawning{h: s.host, spec: host.Spawn{Session: "mine", Background: true, Pane: logged(s.dir, "never")}, id: sessionHead + newNonce()[:16], mark: newMark()}
	if err := n.resolve(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.pane = newMade(n.spec.Pane, "/")
	var err error
	if n.tx, err = begin(s.runtime, n.id, 1); err != nil {
		t.Fatal(err)
	}
	if err := n.pane.enroll(n.tx, 0); err != nil {
		t.Fatal(err)
	}
	l, _ := n.list()
	rows, err := n.fire(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.verify(rows, true); err != nil {
		t.Fatal(err)
	}
	if err := arrive(t.Context(), n.tx, []*made{n.pane}); err != nil {
		t.Fatal(err)
	}
	term := host.Terminal{ID: n.pane.pane}
	if p := s.see(term); p == nil || !p.Waiting || p.Origin != host.Ours || string(p.Meta[metadata.KeyAgentSession]) != "never" {
		t.Errorf("at the gate: %+v", p)
	}
	n.tx.end()
	s.until(func() string {
		if p := s.see(term); p != nil {
			return fmt.Sprintf("it is still there: %+v", p)
		}
		return ""
	})
	if _, err := os.Stat(filepath.Join(s.dir, "never")); err == nil {
		t.Error("its program ran")
	}
}

// TestUnreapedPane: a pane's process that has ended before its gate is not waited for, though nobody
// has counted it (in a container its parent may never).
func TestUnreapedPane(t *testing.T) {
	tx, err := begin(t.TempDir(), sessionHead+newNonce()[:16], 1)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.end()
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	err = arrive(t.Context(), tx, []*made{{nonce: newNonce(), pid: cmd.Process.Pid, pane: "%7"}})
	if !errors.Is(err, ErrBuild) || !strings.Contains(err.Error(), "%7 ended") {
		t.Error(err)
	}
}

// TestGate: a pane that no maker waits for leaves, and one whose maker ends without a commit.
func TestGate(t *testing.T) {
	run := t.TempDir()
	sit := func(tx *transaction) *Seat {
		t.Helper()
		p := fullPayload()
		p.batch = 0
		if err := tx.put(nonceA, p); err != nil {
			t.Fatal(err)
		}
		s, err := Enter(birth{nonce: nonceA, dir: tx.dir}.args()[1:], nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	tx, err := begin(run, "x", 1)
	if err != nil {
		t.Fatal(err)
	}
	// Record locks do not hold against their own process: what is tested is the word in the gate.
	if err := sit(tx).Wait(); !errors.Is(err, ErrLeft) {
		t.Errorf("without the word: %v", err)
	}
	s := sit(tx)
	if err := tx.commit(); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(); err != nil {
		t.Errorf("with the word: %v", err)
	}
	s.Fail("because\nof this")
	var got []paneWord
	if err := tx.wait(t.Context(), []int{0}, func(w paneWord) { got = append(got, w) }, func() bool { return len(got) == 3 }, func() bool { return true }); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]paneWord{{start: true, nonce: nonceA}, {start: true, nonce: nonceA}, {nonce: nonceA, reason: "because\nof this"}}, got, cmp.AllowUnexported(paneWord{})); d != "" {
		t.Error(d)
	}
	tx.end()

	tx, err = begin(run, "y", 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.put(nonceA, payload{}); err != nil {
		t.Fatal(err)
	}
	tx.fifos[0].close()
	if _, err := Enter(birth{nonce: nonceA, dir: tx.dir}.args()[1:], nil); !errors.Is(err, ErrLeft) {
		t.Errorf("nobody listens: %v", err)
	}
	tx.end()
}

// TestSweep: what a maker that died left is removed, once it is no longer young; what is alive
// and what is not ours stays.
func TestSweep(t *testing.T) {
	run := t.TempDir()
	mineTx, err := begin(run, "mine", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer mineTx.end()
	old := time.Now().Add(-2 * staleAge)
	for _, name := range []string{"t.dead", "t.young", ".new.dead", "other", "slot.x"} {
		if err := os.Mkdir(filepath.Join(run, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(run, name, gateFile), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if name != "t.young" {
			if err := os.Chtimes(filepath.Join(run, name), old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Chtimes(mineTx.dir, old, old); err != nil {
		t.Fatal(err)
	}
	sweep(run)
	if d := cmp.Diff([]string{"other", "slot.x", "t.mine", "t.young"}, ran(t, run)); d != "" {
		t.Error(d)
	}
}

func TestRuntimeDirIsPrivate(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := runtimeDir(dir); err != nil {
		t.Error(err)
	}
	if i, _ := os.Stat(dir); i.Mode().Perm() != 0o700 {
		t.Error(i.Mode())
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if err := runtimeDir(link); err == nil {
		t.Error("a link is taken")
	}
}

// TestCaller: the pane that we are in, and none that only the environment names.
func TestCaller(t *testing.T) {
	s := newStage(t)
	s.start()
	self := s.host.opt.Self
	ask := func(env ...string) string {
		t.Helper()
		file := filepath.Join(s.dir, "caller")
		_ = os.Remove(file)
		words := append([]string{"new-window", "-d", "-t", "mine:", "--", "/usr/bin/env"}, env...)
		s.tmux(append(words, "sh", "-c", `"$0" say-caller "$1" "$2" "$3"; exit`, self, testTmux(t), s.socket, file)...)
		var out []byte
		s.until(func() string {
			var err error
			if out, err = os.ReadFile(file); err != nil {
				return err.Error()
			}
			return ""
		})
		return string(out)
	}
	if got := ask(); !strings.HasPrefix(got, "%1 $0 mine") {
		t.Errorf("in a pane: %q", got)
	}
	none := host.ErrNoTerminal.Error()
	for what, env := range map[string][]string{
		"another's pane":      {"TMUX_PANE=%0"},
		"no such pane":        {"TMUX_PANE=%99"},
		"a target":            {"TMUX_PANE=mine:0.0"},
		"no pane":             {"-u", "TMUX_PANE"},
		"not inside":          {"-u", "TMUX"},
		"another server life": {"TMUX=" + s.socket + ",1,0"},
		"no TMUX of ours":     {"TMUX=x"},
	} {
		if got := ask(env...); !strings.Contains(got, none) {
			t.Errorf("%s: %q", what, got)
		}
	}
	// Not in a pane at all, but with the whole environment of one.
	pid := s.tmux("display-message", "-p", "#{pid}")
	cmd := exec.Command(self, "say-caller", testTmux(t), s.socket, filepath.Join(s.dir, "out"))
	cmd.Env = append(os.Environ(), "TMUX="+s.socket+","+pid+",0", "TMUX_PANE=%0")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(s.dir, "out")); err != nil || !strings.Contains(string(got), none) {
		t.Errorf("outside: %q, %v", got, err)
	}
}

// TestServerEnvironment: a server that we start hands nothing of where we were to its panes.
func TestServerEnvironment(t *testing.T) {
	for k, v := range map[string]string{"TMUX": "/nowhere,1,0", "TMUX_PANE": "%42", host.BirthEnv: "x", "PHUX_CLAUDE_SESSION_ID": "x", "STAYS": "a\nb'\"$`\\"} {
		t.Setenv(k, v)
	}
	s := newStage(t)
	c := victim("shells", s.dir)
	if _, err := s.host.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	env, err := s.host.Environ(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for _, kv := range env {
		k, v, _ := strings.Cut(kv, "=")
		got[k] = v
	}
	for _, k := range []string{"TMUX", "TMUX_PANE", host.BirthEnv, "PHUX_CLAUDE_SESSION_ID"} {
		if v, ok := got[k]; ok {
			t.Errorf("%s=%s", k, v)
		}
	}
	if !s.version().escapesOutput() && got["STAYS"] != "a\nb'\"$`\\" {
		t.Errorf("%q", got["STAYS"])
	}
	if got["HOME"] == "" {
		t.Error(env)
	}
}

func TestLastWords(t *testing.T) {
	for s, want := range map[string]string{
		"":                       "",
		"a  \n\n\n":              "a",
		"\x1b[31mred\x1b[0m":     "[31mred[0m",
		"\n a\u202eb\u200f\x9b ": " ab\uFFFD",
		"ünï":                    "ünï",
	} {
		if got := tail(s, 100); got != want {
			t.Errorf("%q is %q, not %q", s, got, want)
		}
	}
	if got := tail("xüü", 3); got != "ü" {
		t.Errorf("%q", got)
	}
	if got := tail("abc", 0); got != "" {
		t.Errorf("%q", got)
	}
}

// TestObituary: what tmux writes below a program that has ended is no word of the program's.
func TestObituary(t *testing.T) {
	for name, settings := range map[string][]string{
		"default": nil, "styled": {`set -g remain-on-exit-format "#[fg=red]gone #{pane_dead_status}"`}, "none": {`set -g remain-on-exit-format ""`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, settings...)
			s.start()
			p := logged(s.dir, "x")
			p.Start.Argv = []string{"/bin/sh", "-c", "echo no good; exit 3"}
			out := s.spawn(p)
			s.until(func() string {
				if p := s.see(out.Terminal); p == nil || !p.Dead || p.Exit == nil || p.Exit.Status != 3 {
					return fmt.Sprintf("it is %+v", p)
				}
				return ""
			})
			s.until(func() string {
				if text, err := s.host.LastWords(t.Context(), out.Terminal, 4096); err != nil || text != "no good" {
					return fmt.Sprintf("%q, %v", text, err)
				}
				return ""
			})
		})
	}
	for _, c := range [][3]string{
		{"a\nPane is d", "Pane is dead (status 1)", "a\n"}, // as wide as the pane
		{"a\nb", "", "a\nb"},
		{"a\nPane is dead (signal TERM, x)\n\n", "", "a\n"},
		{"a\nb\n", "gone", "a\nb"},
		{"", "gone", ""},
	} {
		if got := withoutObituary(c[0], c[1]); got != c[2] {
			t.Errorf("%q with %q is %q", c[0], c[1], got)
		}
	}
}
