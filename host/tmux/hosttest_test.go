package tmux

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/hosttest"
	"github.com/phux-agent/phux-agent/internal/proc"
)

func TestHost(t *testing.T) {
	hosttest.Run(t, func(t *testing.T) *hosttest.Harness {
		s := newStage(t)
		return &hosttest.Harness{
			Host:    s.host,
			Second:  func(*testing.T) host.Host { return s.open() },
			Restart: func(t *testing.T) { s.end(t) },
			Caps:    hosttest.Caps{Shows: func(what, text string) bool { return shows(s.version(), what, text) }},
			Move:    func(_ *testing.T, term host.Terminal) { s.tmux("break-pane", "-d", "-s", term.ID) },
			Respawn: func(_ *testing.T, term host.Terminal) {
				s.tmux("respawn-pane", "-k", "-t", term.ID, "sleep", "1000")
			},
		}
	})
}

// end ends the server and waits for its process: one that is dying still answers at times.
func (s *stage) end(t *testing.T) {
	t.Helper()
	pid, err := strconv.Atoi(s.tmux("display-message", "-p", "#{pid}"))
	if err != nil {
		t.Fatal(err)
	}
	was, err := proc.Stat(pid)
	if err != nil {
		t.Fatal(err)
	}
	s.tmux("kill-server")
	deadline := time.Now().Add(time.Minute)
	for proc.Alive(was.ID()) {
		if time.Now().After(deadline) {
			t.Fatalf("tmux server %d does not end", pid)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// shows says what this tmux does not show byte for byte.
func shows(v version, what, text string) bool {
	return !(what == "window" && strings.ContainsAny(text, "\x00"))
}
