package tmux

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

// The floor of each benchmark stands beside it: run them together, without the race detector.

func benchSession(name string, windows, panes int, spec host.PaneSpec) host.CreateSession {
	c := host.CreateSession{Name: name, Dir: "/", Parallel: 8}
	for w := range windows {
		layout, err := host.Split(200, 60, panes)
		if err != nil {
			panic(err)
		}
		ws := host.WindowSpec{Name: fmt.Sprintf("w%d", w), Index: -1, Layout: layout}
		for range panes {
			ws.Panes = append(ws.Panes, spec)
		}
		c.Windows = append(c.Windows, ws)
	}
	return c
}

func agentPane() host.PaneSpec {
	sleep, _ := exec.LookPath("sleep")
	return host.PaneSpec{
		Start: host.Start{Mode: host.Program, Argv: []string{sleep, "1000"}, Dir: "/tmp", AfterExit: "shell"},
		Meta: map[metadata.Key][]byte{
			metadata.KeyAgentSession: []byte(`{"plugin_id":"phux.agents","integration_id":"claude-code","native_id":"0b1c2d3e-4f50-4a6b-8c7d-9e0f1a2b3c4d"}`),
			metadata.KeyAgentLaunch:  []byte(`{"pane_key":"abcdefghijklmnopqrstuvwxyz","plugin_id":"phux.agents","integration_id":"claude-code","launch_cwd":"/tmp","store":"0123456789abcdef"}`),
		},
	}
}

func BenchmarkSnapshot(b *testing.B) {
	for _, n := range []int{50, 200} {
		s := newStage(b)
		b.Setenv("HOME", s.dir)
		if _, err := s.host.Create(b.Context(), benchSession("bench", n/4, 4, agentPane())); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("bare/%d", n), func(b *testing.B) {
			format := rowFormat(newMark(), false)
			for b.Loop() {
				if _, err := exec.Command(testTmux(b), "-u", "-S", s.socket, "list-panes", "-a", "-F", format).Output(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("host/%d", n), func(b *testing.B) {
			for b.Loop() {
				w, err := s.host.Snapshot(b.Context())
				if err != nil || len(w.Sessions) != 1 {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCreate(b *testing.B) {
	for _, n := range []int{50, 200} {
		b.Run(fmt.Sprintf("bare/%d", n), func(b *testing.B) {
			s := newStage(b)
			s.start()
			var script strings.Builder
			script.WriteString("new-session -d -s bench -x 200 -y 60 sleep 1000\n")
			for w := range n / 4 {
				if w > 0 {
					fmt.Fprintf(&script, "new-window -d -t bench:%d sleep 1000\n", w)
				}
				for range 3 {
					fmt.Fprintf(&script, "split-window -t bench:%d. sleep 1000\n", w)
				}
				fmt.Fprintf(&script, "select-layout -t bench:%d tiled\n", w)
			}
			for b.Loop() {
				cmd := exec.Command(testTmux(b), "-u", "-S", s.socket, "source-file", "-")
				cmd.Stdin = strings.NewReader(script.String())
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v %s", err, out)
				}
				b.StopTimer()
				s.tmux("kill-session", "-t", "bench")
				b.StartTimer()
			}
		})
		for name, spec := range map[string]host.PaneSpec{"shells": {Start: host.Start{Dir: "/tmp"}}, "agents": agentPane()} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				s := newStage(b, "set -g default-command 'exec sleep 1000'")
				s.start()
				for b.Loop() {
					if _, err := s.host.Create(b.Context(), benchSession("bench", n/4, 4, spec)); err != nil {
						b.Fatal(err)
					}
					b.StopTimer()
					s.tmux("kill-session", "-t", "bench")
					b.StartTimer()
				}
			})
		}
	}
}

func BenchmarkSpawn(b *testing.B) {
	s := newStage(b)
	s.start()
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			id := s.tmux("new-window", "-d", "-t", "mine:", "-P", "-F", "#{window_id}", "sleep", "1000")
			b.StopTimer()
			s.tmux("kill-window", "-t", id)
			b.StartTimer()
		}
	})
	b.Run("host", func(b *testing.B) {
		for b.Loop() {
			out, err := s.host.Spawn(b.Context(), host.Spawn{Session: "mine", Background: true, Pane: agentPane()})
			if err != nil || out.Err != nil {
				b.Fatal(err, out)
			}
			b.StopTimer()
			if err := s.host.Kill(context.Background(), out.Terminal); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
}

// BenchmarkPaneExec is the start-up of a pane, from its exec to its program, with the payload
// and the gate; beside it the program alone.
func BenchmarkPaneExec(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	run, err := exec.LookPath("true")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command(run).Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("host", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			m := newMade(host.PaneSpec{Start: host.Start{Mode: host.Program, Argv: []string{run}}, Meta: agentPane().Meta}, "/")
			t, err := begin(b.TempDir(), "x"+m.nonce, 1)
			if err != nil {
				b.Fatal(err)
			}
			if err := m.enroll(t, 0); err != nil {
				b.Fatal(err)
			}
			_ = t.commit()
			_ = t.release(0)
			b.StartTimer()
			if out, err := exec.Command(self, m.birth.args()...).CombinedOutput(); err != nil {
				b.Fatalf("%v %s", err, out)
			}
			b.StopTimer()
			t.end()
			b.StartTimer()
		}
	})
}
