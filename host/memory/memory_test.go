package memory_test

import (
	"os"
	"testing"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/hosttest"
	"github.com/phux-agent/phux-agent/host/memory"
)

func TestMain(m *testing.M) {
	if code, ok := hosttest.Main(os.Args[1:], os.Stdout); ok {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

func TestHost(t *testing.T) {
	hosttest.Run(t, func(t *testing.T) *hosttest.Harness {
		h := memory.New()
		return &hosttest.Harness{
			Host:    h,
			Restart: func(*testing.T) { h.Restart() },
			Caps:    hosttest.Caps{NoPrograms: true},
			Move: func(t *testing.T, term host.Terminal) {
				if err := h.Move(term, "work", -1); err != nil {
					t.Fatal(err)
				}
			},
			Respawn: func(t *testing.T, term host.Terminal) {
				if err := h.Respawn(term, "vim"); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

func TestTheSuiteSeesFaults(t *testing.T) {
	hosttest.Prove(t, "TestHost", hosttest.Caps{NoPrograms: true})
}
