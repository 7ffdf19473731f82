package tmux

import (
	"strings"
	"testing"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/hosttest"
)

func TestHost(t *testing.T) {
	hosttest.Run(t, func(t *testing.T) *hosttest.Harness {
		s := newStage(t)
		return &hosttest.Harness{
			Host:    s.host,
			Second:  func(*testing.T) host.Host { return s.open() },
			Restart: func(*testing.T) { s.tmux("kill-server") },
			Caps:    hosttest.Caps{Shows: func(what, text string) bool { return shows(s.version(), what, text) }},
			Move:    func(_ *testing.T, term host.Terminal) { s.tmux("break-pane", "-d", "-s", term.ID) },
			Respawn: func(_ *testing.T, term host.Terminal) {
				s.tmux("respawn-pane", "-k", "-t", term.ID, "sleep", "1000")
			},
		}
	})
}

// shows says what this tmux does not show byte for byte.
func shows(v version, what, text string) bool {
	return !(what == "window" && strings.ContainsAny(text, "\x00"))
}
