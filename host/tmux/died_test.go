package tmux

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

// What people have run when a pane dies runs for our panes too, each time; what takes panes away does
// not, for the shell, or the last words and the record, stand there.
func TestDiedHooksOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		after, status string
		dead          string // of the pane, at last; empty where it is gone
	}{
		"a shell follows": {"shell", "0", "0"},
		"it failed":       {"shell", "3", "1"},
		"it closes":       {"close", "0", ""},
		"it is held":      {"hold", "0", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.start()
			log := filepath.Join(s.dir, "died")
			if err := os.Mkdir(log, 0o700); err != nil {
				t.Fatal(err)
			}
			at := filepath.Join(log, "at")
			s.tmux("set-hook", "-g", "pane-died[3]", "run-shell \"echo '#{pane_id} #{pane_dead_status}' >>"+at+"\"")
			p := host.PaneSpec{
				Start: host.Start{Mode: host.Program, Argv: []string{"/bin/sh", "-c", "read line; exit " + c.status}, AfterExit: c.after},
				Meta:  map[metadata.Key][]byte{metadata.KeyAgentSession: []byte("r")},
			}
			made, err := s.host.Spawn(t.Context(), host.Spawn{Session: "mine", Pane: p})
			if err != nil {
				t.Fatal(err)
			}
			id := made.Terminal.ID
			died := func() int {
				b, _ := os.ReadFile(at)
				return strings.Count(string(b), id+" "+c.status+"\n")
			}
			dead := func() string {
				out := s.tmux("list-panes", "-a", "-f", "#{==:#{pane_id},"+id+"}", "-F", "#{pane_dead}")
				return out
			}
			s.tmux("send-keys", "-t", id, "Enter")
			s.until(func() string { s.wake(); return lacking(died() != 1, "the user's hook") })
			s.until(func() string { return lacking(dead() != c.dead, "what follows: "+dead()) })
			if c.dead != "1" || c.after == "hold" {
				return
			}
			// It stands there for the next time, and one that kills panes does not run.
			s.tmux("set-hook", "-g", "pane-died[7]", "killp")
			s.tmux("respawn-pane", "-t", id, "exit "+c.status)
			s.until(func() string { s.wake(); return lacking(dead() != c.dead, "the second end") })
			s.tmux("set-hook", "-gu", "pane-died[7]")
			s.tmux("respawn-pane", "-t", id, "exit "+c.status)
			s.until(func() string { s.wake(); return lacking(died() != 2, "the user's hook once more") })
		})
	}
}

// wake has the server look for children whose end it missed, as Debian's 3.3a does.
func (s *stage) wake() {
	_, _ = s.host.Snapshot(s.t.Context())
}
