//go:build linux

package capture

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/metadata"
)

// kill ends an agent, and waits for its end.
func (r *rig) kill(pid int) {
	r.t.Helper()
	must(r.t, syscall.Kill(pid, syscall.SIGKILL))
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if i, err := proc.Stat(pid); err != nil || i.Dead() {
			return
		}
	}
	r.t.Fatalf("process %d does not end", pid)
}

func (r *rig) state(t host.Terminal) string {
	r.t.Helper()
	raw, ok := r.live(t).Meta[metadata.KeyAgent]
	if !ok {
		return ""
	}
	a, err := metadata.DecodeAgent(raw)
	must(r.t, err)
	return a.State
}

// A state is told by the owner's own report, and by no other; and it says nothing of identities.
func TestHearState(t *testing.T) {
	for place, c := range map[string]struct {
		script string
		ours   bool
	}{
		"own process": {ownTree, true}, "child": {childTree, true}, "grandchild": {grandTree, true},
		"nested": {nestedTree, false}, "daemon": {daemonTree, false}, "its agent": {daemonAgent, false},
	} {
		for _, integration := range []string{"told", "both"} {
			t.Run(place+"/"+integration, func(t *testing.T) {
				t.Parallel()
				r := newRig(t).real()
				root, reporter := r.tree(c.script)
				panes := r.session("work", spec2(integration, idA), spec2(integration, idB))
				must(t, r.host.SetPID(panes[0], root))
				if integration == "both" {
					r.keeps(root, idA)
				}
				h, err := r.hear(integration, "Busy", reporter, idC)
				if r.record(panes[0]) != idA || r.record(panes[1]) != idB || r.state(panes[1]) != unknownState {
					t.Errorf("a record, or the neighbour: %s, %s is %s", r.record(panes[0]), r.record(panes[1]), r.state(panes[1]))
				}
				if !c.ours {
					var refused *RefusedError
					if !errors.As(err, &refused) || h.Told || r.state(panes[0]) != unknownState {
						t.Errorf("%+v, %v; the state is %s", h, err, r.state(panes[0]))
					}
					return
				}
				if err != nil || !h.Told || h.Was.State != unknownState || h.Live.State != "working" || r.state(panes[0]) != "working" ||
					h.Owner != r.ident(root) || h.Terminal != panes[0] || h.Session != "work" || h.Integration != integration {
					t.Errorf("%+v, %v; the state is %s", h, err, r.state(panes[0]))
				}
				if h, err = r.hear(integration, "Ask", reporter, idA); err != nil || h.Was.State != "working" || h.Live.State != "blocked" || h.Live.EffectiveAttention() != "high" {
					t.Errorf("%+v, %v", h, err)
				}
				// A look keeps it, for the process that spoke.
				if p := r.look()[panes[0]]; p.Agent == nil || p.Agent.State != "blocked" || p.Owner != r.ident(root) {
					t.Errorf("%+v", p)
				}
			})
		}
	}
}

// A state is over with its agent: another process in the pane, or none, and it is taken back, also
// from the pane, by whoever looks and may write.
func TestStateEndsWithItsAgent(t *testing.T) {
	for name, end := range map[string]func(r *rig, p host.Terminal){
		"another process": func(r *rig, p host.Terminal) { must(r.t, r.host.SetPID(p, r.sleeper())) },
		"gone":            func(r *rig, p host.Terminal) { must(r.t, r.host.SetPID(p, r.gonePID())) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t).real()
			root, reporter := r.tree(ownTree)
			p := r.session("work", spec2("told", idA))[0]
			must(t, r.host.SetPID(p, root))
			if _, err := r.hear("told", "Ask", reporter, idA); err != nil || r.state(p) != "blocked" {
				t.Fatalf("%v, %s", err, r.state(p))
			}
			r.kill(root)
			end(r, p)
			r.req.Write = false
			if got := r.look()[p]; got.Agent.State != unknownState || got.Agent.Attention != "" || r.state(p) != "blocked" {
				t.Errorf("%+v; the pane holds %s", got.Agent, r.state(p))
			}
			r.req.Write = true
			r.look()
			if r.state(p) != unknownState {
				t.Errorf("the pane holds %s", r.state(p))
			}
			if got := r.record(p); got != idA {
				t.Errorf("the record is %q", got)
			}
		})
	}
}

// An event that only tells of a state is no refusal where the conversation cannot be confirmed.
func TestStateBesideAnUnconfirmedConversation(t *testing.T) {
	r := newRig(t).real()
	root, reporter := r.tree(ownTree)
	p := r.session("work", spec2("both", idA))[0]
	must(t, r.host.SetPID(p, root)) // it keeps nothing that proves
	h, err := r.hear("both", "Busy", reporter, idA)
	if !h.Told || r.state(p) != "working" || r.record(p) != idA {
		t.Errorf("%+v, %v; %s", h, err, r.state(p))
	}
}
