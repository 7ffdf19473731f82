package launch

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/memory"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/metadata"
)

var errExec = errors.New("exec format error")

func (r *rig) here(q Request, terminal host.Terminal) (*Draft, error) {
	r.t.Helper()
	q.Here = true
	d := r.prepare(q)
	return d, Here(context.Background(), r.e, q, d, terminal, []string{"PATH=" + r.bin})
}

func TestHere(t *testing.T) {
	r := newRig(t)
	terminal := r.session("work")
	var seen host.Pane
	var start host.Start
	var nonce string
	r.e.exec = func(s host.Start, environ []string, n string) error {
		seen, start, nonce = r.panes()[terminal.ID], s, n
		if claims := r.claims(); len(claims) != 1 || claims[0].Process.PID != os.Getpid() || claims[0].Reserved {
			t.Errorf("claims at the exec: %+v", claims)
		}
		return nil
	}
	d, _ := r.here(r.request("demo"), terminal)
	self, err := proc.Self()
	must(t, err)
	if seen.Origin != host.Bound || seen.BoundPID != self.PID || seen.BoundStart != self.Start {
		t.Fatalf("%+v", seen)
	}
	rec, err := metadata.DecodeAgentSession(seen.Meta[metadata.KeyAgentSession])
	must(t, err)
	facts, err := metadata.DecodeLaunchFacts(seen.Meta[metadata.KeyAgentLaunch])
	must(t, err)
	if rec != *d.Record || facts.OwnerPID != self.PID || facts.OwnerStart != self.Start {
		t.Errorf("record %+v, facts %+v", rec, facts)
	}
	if diff := cmp.Diff(d.Start.Argv, start.Argv); diff != "" {
		t.Error(diff)
	}
	if nonce != d.Facts.PaneKey {
		t.Errorf("nonce %q", nonce)
	}
}

func TestHereUndoes(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(r *rig)
	}{
		{"the agent is no program", func(*rig) {}},
		{"the binding fails", func(r *rig) { r.host.Fail(memory.StepBind, errExec) }},
		{"the host stores something else", func(r *rig) {
			r.host.Tamper(func(k metadata.Key, v []byte) []byte {
				if k == metadata.KeyAgentSession {
					return append(v, ' ')
				}
				return v
			})
		}},
		{"the conversation came meanwhile", func(r *rig) {
			r.e.mint = func(*templateT) (string, error) { return idA, nil }
			r.host.Hook(func(_ context.Context, c memory.Call) error {
				if c.Step == memory.StepBind {
					r.converse(idA)
				}
				return nil
			})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			terminal := r.session("work")
			ran := false
			r.e.exec = func(host.Start, []string, string) error { ran = true; return errExec }
			c.set(r)
			if _, err := r.here(r.request("demo"), terminal); err == nil {
				t.Fatal("no error")
			}
			if ran != (c.name == "the agent is no program") {
				t.Errorf("the agent was started: %v", ran)
			}
			p := r.panes()[terminal.ID]
			if len(p.Meta) != 0 && c.name != "the host stores something else" {
				t.Errorf("left on the pane: %q", p.Meta)
			}
			if got := r.claims(); len(got) != 0 {
				t.Errorf("left claims: %+v", got)
			}
			if len(r.panes()) != 1 {
				t.Error("the caller's pane is gone")
			}
		})
	}
}

func TestHereRefuses(t *testing.T) {
	r := newRig(t)
	r.e.exec = func(host.Start, []string, string) error { t.Error("it ran"); return nil }
	shell := r.session("work")
	_, res, err := r.do(r.request("demo"))
	must(t, err)
	agent := r.host.Terminals()[res.Terminal]
	bound := r.session("bound")
	must(t, r.host.Bind(context.Background(), bound, 1, 1, map[metadata.Key][]byte{metadata.KeyAgent: []byte(`{"name":"x"}`)}))

	for name, terminal := range map[string]host.Terminal{"nowhere": {}, "an agent's pane": agent, "a bound pane": bound} {
		if _, err := r.here(r.request("demo"), terminal); !errors.Is(err, ErrHere) {
			t.Errorf("%s: %v", name, err)
		}
	}
	gone := shell
	gone.ID = "%99"
	if _, err := r.here(r.request("demo"), gone); !errors.Is(err, host.ErrNoTerminal) {
		t.Error(err)
	}
	r.e.Host = struct{ host.Host }{r.host}
	if _, err := r.here(r.request("demo"), shell); !errors.Is(err, ErrHere) {
		t.Error(err)
	}
	r.e.Host = nil
	if _, err := r.here(r.request("demo"), shell); !errors.Is(err, ErrHere) {
		t.Error(err)
	}
	if got := len(r.claims()); got != 1 {
		t.Errorf("%d claims, where the agent has the only one", got)
	}
}

func TestHereAfterAnAgentEnded(t *testing.T) {
	r := newRig(t)
	_, res, err := r.do(r.request("demo"))
	must(t, err)
	terminal := r.host.Terminals()[res.Terminal]
	must(t, r.host.Exit(terminal, host.Exit{}))
	ran := false
	r.e.exec = func(host.Start, []string, string) error { ran = true; return nil }
	_, _ = r.here(r.request("demo"), terminal)
	if !ran {
		t.Error("the shell after an agent cannot take another one")
	}
}
