package embedded

import (
	"os"
	"os/exec"
	"testing"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/hosttest"
)

func TestHost(t *testing.T) {
	hosttest.Run(t, func(t *testing.T) *hosttest.Harness {
		s := newStage(t)
		return &hosttest.Harness{
			Host: s.host,
			Second: func(t *testing.T) host.Host {
				h, err := New(s.host.opt)
				if err != nil {
					t.Fatal(err)
				}
				return h
			},
			Restart: func(*testing.T) { s.stop() },
			Child: func(t *testing.T) *exec.Cmd {
				self, err := os.Executable()
				if err != nil {
					t.Fatal(err)
				}
				return exec.Command(self, "order", s.socket)
			},
		}
	})
}
