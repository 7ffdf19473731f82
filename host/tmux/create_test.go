package tmux

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

// sessions are all that tmux itself knows, ours in the making included.
func (s *stage) sessions() []string {
	out, err := exec.Command(testTmux(s.t), "-S", s.socket, "list-sessions", "-F", "#{session_name}").Output()
	if err != nil {
		return nil
	}
	return strings.Fields(string(out))
}

func ran(t testing.TB, log string) []string {
	t.Helper()
	entries, err := os.ReadDir(log)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// TestMakerIsKilled kills the process that makes a session (or a pane) at many moments: then
// either all of it is there and every program runs, once, or nothing is left and none ran.
func TestMakerIsKilled(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"agents", "shells", "mixed", "spawn"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := &stage{}
			var whole, nothing int
			rounds := 14
			if testing.Short() {
				rounds = 5
			}
			// The first round is not killed, and says how long a making takes.
			full := time.Duration(0)
			for round := range rounds {
				s = newBareStage(t)
				s.start()
				log := filepath.Join(s.dir, "log")
				if err := os.Mkdir(log, 0o700); err != nil {
					t.Fatal(err)
				}
				cmd := exec.Command(self, "make-session", testTmux(t), s.socket, s.runtime, kind, log)
				cmd.Env = s.env()
				var out bytes.Buffer
				cmd.Stdout = &out
				begun := time.Now()
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				if round > 0 {
					// The second round is killed at once: nothing can be there then.
					time.Sleep(full * time.Duration(round-1) / time.Duration(rounds))
					_ = cmd.Process.Kill()
				}
				err := cmd.Wait()
				if round == 0 {
					full = time.Since(begun)
					if err != nil {
						t.Fatal(err, out.String())
					}
				}
				wantRuns := map[string]int{"agents": 9, "shells": 0, "mixed": 6, "spawn": 1}[kind]
				s.until(func() string {
					names, runs := s.sessions(), ran(t, log)
					slices.Sort(names)
					there := slices.Equal(names, []string{"mine", "victim"})
					for _, name := range runs {
						if b, err := os.ReadFile(filepath.Join(log, name)); err != nil || len(b) == 0 {
							return name + " is about to run"
						}
					}
					panes := len(strings.Fields(s.tmux("list-panes", "-a", "-F", "#{pane_id}")))
					if kind == "spawn" {
						there = slices.Equal(names, []string{"mine"}) && panes == 2
					}
					gone := slices.Equal(names, []string{"mine"}) && panes == 1
					switch {
					case gone && len(runs) == 0:
						nothing++
						return ""
					case gone:
						t.Fatalf("round %d: nothing is there, and %v ran", round, runs)
					case there && len(runs) == wantRuns && (kind == "spawn" || panes == 10):
						whole++
						return ""
					}
					return fmt.Sprintf("round %d: sessions %v, %d panes, %v ran\n%s", round, names, panes, runs, s.tmux("list-panes", "-a", "-F", "#{session_name} #{pane_id} #{pane_dead} #{pane_current_command} #{pane_start_command}"))
				})
				for _, name := range ran(t, log) {
					if b, err := os.ReadFile(filepath.Join(log, name)); err != nil || len(b) != 1 {
						t.Errorf("round %d: %s ran %d times, %v", round, name, len(b), err)
					}
				}
			}
			t.Logf("%d whole, %d nothing", whole, nothing)
			if whole == 0 || nothing == 0 {
				t.Errorf("%d whole, %d nothing: not every moment was met", whole, nothing)
			}
		})
	}
}

// TestServerIsKilled: no program runs that was not committed, no payload is left.
func TestServerIsKilled(t *testing.T) {
	for round := range 12 {
		s := newBareStage(t)
		s.start()
		log := filepath.Join(s.dir, fmt.Sprintf("log%d", round))
		if err := os.Mkdir(log, 0o700); err != nil {
			t.Fatal(err)
		}
		i, err := s.host.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := s.host.Create(t.Context(), victim("agents", log))
			done <- err
		}()
		time.Sleep(time.Duration(round) * 8 * time.Millisecond)
		_ = syscall.Kill(i.Instance.PID, syscall.SIGKILL)
		err = <-done
		if err != nil && len(ran(t, log)) > 0 {
			t.Errorf("round %d: %v, and %v ran", round, err, ran(t, log))
		}
		left, _ := os.ReadDir(s.runtime)
		for _, e := range left {
			if strings.HasPrefix(e.Name(), txHead) || strings.HasPrefix(e.Name(), newHead) {
				t.Errorf("round %d: %s is left", round, e.Name())
			}
		}
	}
}

// hostile are what a user's hooks may do beside us.
var hostile = map[string]string{
	"blocks":         `set-hook -g after-new-window 'run-shell "sleep 0.1"' ; set-hook -g after-split-window 'run-shell "sleep 0.1"' ; set-hook -g after-set-option 'run-shell "sleep 0.02"'`,
	"new windows":    `set-hook -g after-new-window 'new-window -d sleep 1000' ; set-hook -g after-new-session 'new-window -d sleep 1000'`,
	"splits":         `set-hook -g after-split-window 'split-window -d sleep 1000' ; set-hook -g after-new-window 'split-window sleep 1000'`,
	"kills":          `set-hook -g after-split-window 'kill-pane' ; set-hook -g after-new-window 'kill-window' ; set-hook -g after-select-layout 'kill-pane'`,
	"renames":        `set-hook -g after-new-session 'rename-session other' ; set-hook -g after-new-window 'rename-window other' ; set-hook -g after-rename-session 'rename-session again'`,
	"relayouts":      `set-hook -g after-split-window 'select-layout even-horizontal' ; set-hook -g after-select-layout 'select-layout even-vertical' ; set-hook -g window-linked 'select-layout tiled'`,
	"selects":        `set-hook -g after-new-window 'select-window -t 0' ; set-hook -g after-split-window 'select-pane -t 0' ; set-hook -g after-select-pane 'last-pane'`,
	"kills sessions": `set-hook -g after-new-session 'kill-session' ; set-hook -g after-list-panes 'kill-session -t nobody'`,
	"prints":         `set-hook -g after-set-option 'display-message -p words' ; set-hook -g after-list-panes 'display-message -p more'`,
	"pane died":      `set-hook -g pane-died 'kill-pane' ; set-option -g remain-on-exit on`,
	"settings":       `set -g base-index 1 ; set -g pane-base-index 1 ; set -g renumber-windows on ; set -g automatic-rename off ; set -g allow-rename on ; set -g pane-border-status top ; set -g destroy-unattached on ; set -g status off ; set -g window-size smallest ; set -g mode-keys vi ; set -g default-terminal screen`,
}

func TestHostileHooks(t *testing.T) {
	for name, hooks := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newBareStage(t)
			s.start()
			s.tmux("set-environment", "-g", "x", "y")
			conf := filepath.Join(s.dir, "hooks")
			if err := os.WriteFile(conf, []byte(strings.ReplaceAll(hooks, " ; set", "\nset")+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			// A client that stays, so that destroy-unattached leaves the user's own session.
			cmd := exec.Command(testTmux(t), "-S", s.socket, "-C", "attach", "-t", "mine")
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { in.Close(); _ = cmd.Wait() }()
			s.until(func() string {
				if s.tmux("list-clients") == "" {
					return "nobody is attached"
				}
				return ""
			})
			if out, err := exec.Command(testTmux(t), "-S", s.socket, "source-file", conf).CombinedOutput(); err != nil {
				t.Fatalf("%v %s", err, out)
			}
			log := filepath.Join(s.dir, "log")
			if err := os.Mkdir(log, 0o700); err != nil {
				t.Fatal(err)
			}
			c := victim("mixed", log)
			for i := range c.Windows {
				c.Windows[i].Name = fmt.Sprintf("name%d", i)
				c.Windows[i].Active = i
			}
			c.Active = 1
			c.Windows[2].Zoomed = true
			out, err := s.host.Create(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			w, err := s.host.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(w.Sessions, func(s host.Session) bool { return s.Name == "victim" })
			if at < 0 {
				t.Fatalf("it is not there: %v", s.sessions())
			}
			got := w.Sessions[at]
			if len(got.Windows) != 3 {
				t.Fatalf("%d windows", len(got.Windows))
			}
			for i, win := range got.Windows {
				if win.Index != i+3 || win.Name != fmt.Sprintf("name%d", i) || win.Active != (i == 1) || win.Zoomed != (i == 2) || len(win.Panes) != 3 {
					t.Errorf("window %d: %+v", i, win)
					continue
				}
				if win.Layout.String() != c.Windows[i].Layout.String() {
					t.Errorf("window %d: %v", i, win.Layout)
				}
				for n, p := range win.Panes {
					if p.Terminal != out.Windows[i][n].Terminal || p.Active != (n == i) {
						t.Errorf("window %d pane %d: %+v", i, n, p)
					}
				}
			}
			if n := len(ran(t, log)); n != 6 {
				s.until(func() string {
					if n := len(ran(t, log)); n != 6 {
						return fmt.Sprintf("%d programs", n)
					}
					return ""
				})
			}
			spawned, err := s.host.Spawn(t.Context(), host.Spawn{Session: "victim", Background: true, Pane: logged(log, "spawned")})
			if err != nil {
				t.Fatal(err)
			}
			if string(spawned.Meta[metadata.KeyAgentSession]) != "spawned" || spawned.Err != nil {
				t.Errorf("%+v", spawned)
			}
			split, err := s.host.Spawn(t.Context(), host.Spawn{Place: host.SplitH, Target: out.Windows[0][0].Terminal, Pane: logged(log, "split")})
			if err != nil || split.Err != nil {
				t.Fatal(err, split)
			}
			for _, name := range s.sessions() {
				if strings.HasPrefix(name, sessionHead) {
					t.Errorf("%s is left", name)
				}
			}
		})
	}
}

// TestDangerousSetting: with a global window-size of manual, some versions die of any new window.
func TestDangerousSetting(t *testing.T) {
	s := newStage(t)
	s.start()
	// A window's own size is no danger.
	s.tmux("set-option", "-w", "-t", "mine:", "window-size", "manual")
	if _, err := s.host.Spawn(t.Context(), host.Spawn{Session: "mine", Background: true, Pane: logged(s.dir, "x")}); err != nil {
		t.Error(err)
	}
	s.tmux("set-option", "-gw", "window-size", "manual")
	log := filepath.Join(s.dir, "log")
	if err := os.Mkdir(log, 0o700); err != nil {
		t.Fatal(err)
	}
	want := s.version().manualKills()
	check := func(what string, err error) {
		t.Helper()
		if want != errors.Is(err, host.ErrDangerous) || !want && err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := s.host.Create(t.Context(), victim("agents", log))
	check("create", err)
	_, err = s.open().Spawn(t.Context(), host.Spawn{Session: "mine", Pane: logged(log, "x")})
	check("spawn", err)
	if i, err := s.host.Info(t.Context()); err != nil || !i.Running || want != (len(i.Warnings) > 0) {
		t.Errorf("%+v, %v", i, err)
	}
	if n := len(ran(t, log)); want && n > 0 {
		t.Errorf("%d programs ran", n)
	}
}

// TestFreshServerDies: what a server that we start dies of is named, if the configuration says it.
func TestFreshServerDies(t *testing.T) {
	for name, conf := range map[string][]string{
		"exit-unattached": {"set -s exit-unattached on"},
		"window-size":     {"set -g window-size manual", "new-session -d -s mine"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, conf...)
			log := filepath.Join(s.dir, "log")
			if err := os.Mkdir(log, 0o700); err != nil {
				t.Fatal(err)
			}
			_, err := s.host.Create(t.Context(), victim("agents", log))
			if name == "window-size" && !s.host.likelyVersion().manualKills() {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, host.ErrDangerous) || !strings.Contains(err.Error(), name) {
				t.Error(err)
			}
			if n := len(ran(t, log)); n > 0 {
				t.Errorf("%d programs ran", n)
			}
		})
	}
}

// TestNoHelper: where panes cannot run us, the create fails and leaves nothing.
func TestNoHelper(t *testing.T) {
	s := newStage(t)
	s.start()
	s.host.opt.Self = filepath.Join(s.dir, "absent")
	c := victim("agents", s.dir)
	if _, err := s.host.Create(t.Context(), c); !errors.Is(err, ErrBuild) {
		t.Error(err)
	}
	if _, err := s.host.Spawn(t.Context(), host.Spawn{Session: "mine", Pane: logged(s.dir, "x")}); !errors.Is(err, ErrBuild) {
		t.Error(err)
	}
	if got := s.sessions(); !slices.Equal(got, []string{"mine"}) || s.tmux("list-panes", "-a", "-F", "#{pane_id}") != "%0" {
		t.Errorf("left: %v, %s", got, s.tmux("list-panes", "-a"))
	}
}

// TestShellsAreTmuxsOwn: a shell pane is started by tmux with the user's default-command, so that
// it can be respawned; the first pane's directory is its own.
func TestShellsAreTmuxsOwn(t *testing.T) {
	s := newStage(t, `set -g default-command 'echo mine; exec sleep 1000'`)
	c := victim("shells", s.dir)
	c.Dir = "/var"
	c.Windows[0].Panes[0].Start.Dir = "/etc"
	out, err := s.host.Create(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for w, row := range out.Windows {
		for p, started := range row {
			if started.Nonce != "" || started.Err != nil || len(started.Meta) > 0 {
				t.Errorf("%+v", started)
			}
			if got := s.tmux("display-message", "-p", "-t", started.Terminal.ID, "#{pane_start_command}"); !strings.Contains(got, "echo mine") {
				t.Errorf("it runs %q", got)
			}
			want := c.Windows[w].Panes[p].Start.Dir
			s.until(func() string {
				if dir, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", started.PID)); dir != want {
					return fmt.Sprintf("window %d pane %d is in %q, not %q", w, p, dir, want)
				}
				return ""
			})
		}
	}
	if got := s.tmux("display-message", "-p", "-t", "victim", "#{session_path}"); got != "/var" {
		t.Error(got)
	}
	s.tmux("respawn-pane", "-k", "-t", out.Windows[0][1].Terminal.ID)
	if got := s.tmux("show-options", "-A", "-t", "victim", "renumber-windows"); !strings.Contains(got, "off") {
		t.Error(got)
	}
	if got := s.tmux("show-options", "-t", "victim"); strings.Contains(got, txOption+" ") || strings.Contains(got, "renumber") {
		t.Errorf("left: %s", got)
	}
	if got := s.tmux("show-options", "-g"); strings.Contains(got, "@phux") {
		t.Errorf("left: %s", got)
	}
}
