package capture

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/memory"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
)

func TestStates(t *testing.T) {
	type want struct {
		state, durability, record string
		restorable                bool
		saying                    string
	}
	for _, c := range []struct {
		name string
		spec spec
		set  func(r *rig, t host.Terminal)
		want want
	}{
		{"a shell", spec{}, nil, want{state: Shell}},
		{"a program", spec{}, func(r *rig, p host.Terminal) { must(r.t, r.host.SetCommand(p, "htop")) }, want{state: Program}},
		{
			"confirmed", agent(idA), func(r *rig, p host.Terminal) { r.proves(p, idA) },
			want{Running, Present, idA, true, ""},
		},
		{
			"confirmed in another spelling", agent(idA), func(r *rig, p host.Terminal) { r.proves(p, strings.ToUpper(idA)) },
			want{Running, Present, idA, true, ""},
		},
		{"unknown", agent(idA), nil, want{Running, Present, idA, true, "unconfirmed since its launch: nothing is known of it"}},
		{"unknown, and confirmed before", spec{integration: "demo", id: idA, mode: host.Program, facts: func(f *metadata.LaunchFacts) {
			f.ConfirmedAt = when.Add(-3 * time.Hour)
		}}, nil, want{Running, Present, idA, true, ", 3 hours ago: nothing is known of it"}},
		{
			"proving an id that is none", agent(idA), func(r *rig, p host.Terminal) { r.proves(p, "latest") },
			want{Running, Present, idA, true, "the template refuses"},
		},
		{
			"never prompted", agent(idA), func(r *rig, p host.Terminal) { r.gone[idA] = true; r.proves(p, idA) },
			want{Running, NeverPrompted, idA, true, ""},
		},
		{"never prompted, of a CLI that then cannot", spec{integration: "late", id: idA, mode: host.Program}, func(r *rig, p host.Terminal) {
			r.gone[idA] = true
			r.proves(p, idA)
		}, want{Running, NeverPrompted, idA, false, "no prompt yet"}},
		{"never prompted, of one that can until its file is there", spec{integration: "until", id: idA, mode: host.Program}, func(r *rig, p host.Terminal) {
			r.gone[idA] = true
			r.proves(p, idA)
		}, want{Running, NeverPrompted, idA, true, ""}},
		{"never prompted, and its file is there", spec{integration: "until", id: idA, mode: host.Program}, func(r *rig, p host.Terminal) {
			r.begun[idA] = true
			r.proves(p, idA)
		}, want{Running, NeverPrompted, idA, false, "no prompt yet"}},
		{"never prompted and waiting, and its file is there", spec{integration: "until", id: idA, mode: host.Placeholder, facts: func(f *metadata.LaunchFacts) {
			f.Durability, f.Store = NeverPrompted, "/home/demo/.demo"
		}}, func(r *rig, p host.Terminal) { r.begun[idA], r.env["HOME"] = true, "/home/demo" }, want{Pending, NeverPrompted, idA, false, "no prompt yet"}},
		{
			"without an id yet",
			spec{integration: "late", mode: host.Program},
			nil,
			want{Running, "", "", false, "no id yet: nothing is known of it"},
		},
		{
			"of a CLI that cannot resume",
			spec{integration: "plain", mode: host.Program},
			nil,
			want{Running, "", "", false, ""},
		},
		{
			"without a transcript",
			spec{integration: "blind", id: idA, mode: host.Program},
			nil,
			want{Running, Unknown, idA, true, "unconfirmed"},
		},
		{
			"of an integration that is not installed",
			spec{integration: "other", id: idA, mode: host.Program},
			nil,
			want{Running, Unknown, idA, false, "integration-missing"},
		},
		{
			"of another owner",
			spec{integration: "demo", mode: host.Program, raw: []byte(`{"plugin_id":"evil","integration_id":"demo","native_id":"` + idA + `"}`)},
			nil,
			want{Running, Unknown, idA, false, "owner-changed"},
		},
		{
			"with a record that is broken",
			spec{integration: "demo", mode: host.Program, raw: []byte(`{"plugin_id":"p"}`)},
			nil,
			want{Running, "", "", false, "left out"},
		},
		{
			"ended, a shell after it", agent(idA), func(r *rig, p host.Terminal) { must(r.t, r.host.Exit(p, host.Exit{})) },
			want{Ended, Unknown, idA, false, "ended"},
		},
		{"ended, and held", spec{integration: "demo", id: idA, mode: host.Program, after: "hold"}, func(r *rig, p host.Terminal) {
			must(r.t, r.host.Exit(p, host.Exit{}))
		}, want{Ended, Unknown, idA, false, "ended"}},
		{
			"ended before the last restore",
			spec{integration: "demo", id: idA, mode: host.Shell, facts: func(f *metadata.LaunchFacts) { f.Ended = true }},
			nil,
			want{Ended, Unknown, idA, false, "ended"},
		},
		{
			"ended, and never proven",
			spec{integration: "late", mode: host.Shell, facts: func(f *metadata.LaunchFacts) { f.Ended = true }},
			nil,
			want{Ended, "", "", false, "never proven"},
		},
		{
			"exited", agent(idA), func(r *rig, p host.Terminal) { must(r.t, r.host.Exit(p, host.Exit{Status: 42})) },
			want{Exited, Unknown, idA, true, "status 42"},
		},
		{
			"killed", agent(idA), func(r *rig, p host.Terminal) { must(r.t, r.host.Exit(p, host.Exit{Status: -1, Signal: "SIGKILL"})) },
			want{Exited, Unknown, idA, true, "SIGKILL"},
		},
		{
			"died since the snapshot", agent(idA), func(r *rig, p host.Terminal) { must(r.t, r.host.SetPID(p, memory.FirstPID)) },
			want{Exited, Unknown, idA, true, "how is not known"},
		},
		{"ended by its own account", agent(idA), func(r *rig, p host.Terminal) {
			r.answers[r.live(p).PID] = owner.Answer{Kind: owner.Gone}
		}, want{Exited, Present, idA, true, "how is not known"}},
		{
			"replaced", agent(idA), func(r *rig, p host.Terminal) { must(r.t, r.host.Respawn(p, "htop")) },
			want{Replaced, Unknown, idA, false, "another program"},
		},
		{"a placeholder", spec{integration: "demo", id: idA, mode: host.Placeholder, facts: func(f *metadata.LaunchFacts) {
			f.Pending, f.Durability = true, Present
		}}, func(r *rig, p host.Terminal) { r.gone[idA] = true }, want{Pending, Present, idA, true, "waits"}},
		{"a placeholder that became its agent", spec{integration: "demo", id: idA, mode: host.Program, facts: func(f *metadata.LaunchFacts) {
			f.Pending, f.Durability = true, NeverPrompted
		}}, func(r *rig, p host.Terminal) { r.proves(p, idA) }, want{Running, Present, idA, true, ""}},
		{"bound", spec{}, func(r *rig, p host.Terminal) {
			pid := r.sleeper()
			must(r.t, r.host.Bind(context.Background(), p, pid, r.ident(pid).Start, r.pane(agent(idA)).Meta))
		}, want{Running, Present, idA, true, "unconfirmed"}},
		{"bound, and gone", spec{}, func(r *rig, p host.Terminal) {
			must(r.t, r.host.Bind(context.Background(), p, 1, 1, r.pane(agent(idA)).Meta))
			must(r.t, r.host.EndBound(p))
		}, want{Ended, Unknown, idA, false, "ended"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			p := r.session("work", c.spec)[0]
			if c.set != nil {
				c.set(r, p)
			}
			got := r.look()[p]
			g := want{got.State, got.Durability, "", got.Restorable, got.Reason}
			if got.Record != nil {
				g.record = got.Record.NativeID
			}
			if !strings.Contains(g.saying, c.want.saying) || c.want.saying == "" && c.want.restorable && g.saying != "" {
				t.Errorf("reason %q, wanted %q", g.saying, c.want.saying)
			}
			g.saying = c.want.saying
			if diff := cmp.Diff(c.want, g, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\n%+v", diff, got)
			}
			if got.Changed != "" {
				t.Errorf("changed: %s", got.Changed)
			}
		})
	}
}

func TestDurabilityOfTheDeadIsAskedInTheSameStoreOnly(t *testing.T) {
	r := newRig(t)
	own, err := r.req.Registry.Resolve("demo")
	must(t, err)
	store := owner.Store(own.Template, r.req.Getenv)
	with := func(store string) spec {
		s := agent(idA)
		s.facts = func(f *metadata.LaunchFacts) { f.Store = store }
		return s
	}
	for name, c := range map[string]struct{ store, want string }{
		"same": {store, Present}, "other": {"sha256:other", Unknown}, "unknown": {"", Unknown},
	} {
		p := r.session(name, with(c.store))[0]
		must(t, r.host.Exit(p, host.Exit{Status: 1}))
		if got := r.look()[p].Durability; got != c.want {
			t.Errorf("%s: %s", name, got)
		}
		must(t, r.host.Kill(context.Background(), p))
	}
}

func TestConfirmed(t *testing.T) {
	r := newRig(t)
	p := r.session("work", agent(idA))[0]
	r.proves(p, idA)
	got := r.look()[p]
	if !got.Facts.ConfirmedAt.Equal(when) || got.Facts.Unconfirmed != "" {
		t.Errorf("%+v", got.Facts)
	}
	if c := r.claimed(idA); c == nil || c.Process != r.ident(r.live(p).PID) || c.Place.Terminal != p.ID {
		t.Errorf("the lost claim was not rebuilt: %+v", c)
	}
	if f := r.facts(p); !f.ConfirmedAt.Equal(when) {
		t.Errorf("the pane does not remember: %+v", f)
	}
}

// A look that writes remembers on each pane at once that its conversation was seen, and keeps the
// confirmations fresh, one a look, the oldest first.
func TestConfirmationsAreRenewedOneALook(t *testing.T) {
	r := newRig(t)
	ps := r.session("work", agent(idA), agent(idB), agent(idC))
	for i, id := range []string{idA, idB, idC} {
		r.proves(ps[i], id)
	}
	swaps := 0
	r.host.Hook(func(_ context.Context, c memory.Call) error {
		if c.Step == memory.StepSwap {
			swaps++
		}
		return nil
	})
	r.look()
	for _, p := range ps {
		if f := r.facts(p); f.Durability != Present {
			t.Errorf("%s does not remember that its conversation was seen: %+v", p.ID, f)
		}
	}
	if r.look(); swaps != 3 {
		t.Errorf("%d swaps, where nothing was old", swaps)
	}
	r.req.Now = func() time.Time { return when.Add(refresh) }
	for n := 1; n <= 3; n++ {
		r.look()
		if swaps != 3+n {
			t.Errorf("%d swaps after %d looks", swaps, n)
		}
	}
	if r.look(); swaps != 6 {
		t.Errorf("%d swaps, where nothing was old", swaps)
	}
}

func TestRotation(t *testing.T) {
	r := newRig(t)
	p := r.session("work", agent(idA))[0]
	r.look() // claims idA
	r.proves(p, idB)
	got := r.look()[p]
	if got.Record.NativeID != idB || got.Changed != "rotated from "+idA || !got.Restorable {
		t.Fatalf("%+v", got)
	}
	if r.record(p) != idB {
		t.Error("the pane still holds the old record")
	}
	f := r.facts(p)
	if diff := cmp.Diff([]string{idA}, f.Previous); diff != "" {
		t.Error(diff)
	}
	if f.OwnerPID != r.live(p).PID || !f.ConfirmedAt.Equal(when) || f.PaneKey == "" || f.Profile != "loud" {
		t.Errorf("%+v", f)
	}
	if r.claimed(idA) != nil || r.claimed(idB) == nil {
		t.Error("the claim did not move along")
	}
	r.proves(p, idC)
	r.look()
	if diff := cmp.Diff([]string{idB, idA}, r.facts(p).Previous); diff != "" {
		t.Error(diff)
	}
	if again := r.look()[p]; again.Changed != "" || r.record(p) != idC {
		t.Errorf("%+v", again)
	}
}

func TestAdoption(t *testing.T) {
	r := newRig(t)
	p := r.session("work", spec{integration: "late", mode: host.Program})[0]
	r.proves(p, idA)
	got := r.look()[p]
	want := &metadata.AgentSession{PluginID: "demo.agents", IntegrationID: "late", NativeID: idA}
	if diff := cmp.Diff(want, got.Record); diff != "" || got.Changed != "adopted" || !got.Restorable {
		t.Fatalf("%+v", got)
	}
	if r.record(p) != idA || r.claimed(idA) == nil {
		t.Error("it is not on the pane, or not claimed")
	}
	if f := r.facts(p); len(f.Previous) != 0 || f.OwnerPID != r.live(p).PID {
		t.Errorf("%+v", f)
	}
}

// Nothing that is learnt of one pane takes what another pane holds.
func TestNoReportMovesARecordToAnotherPane(t *testing.T) {
	elsewhere := func(r *rig, id string) {
		pid := r.sleeper()
		must(r.t, r.req.Claims.Rebuild(metadata.Identity{IntegrationID: "demo", NativeID: id}, r.ident(pid), owner.Place{Terminal: "%77"}))
	}
	for _, c := range []struct {
		name  string
		specs []spec
		set   func(r *rig, ps []host.Terminal)
		want  []string // records afterwards
		says  []string // per pane; what its reason says
	}{
		{"a rotation onto what another holds", []spec{agent(idA), agent(idB)}, func(r *rig, ps []host.Terminal) {
			r.proves(ps[0], idB)
		}, []string{idA, idB}, []string{"which pane %1 holds", ""}},
		{"a rotation onto what another proves", []spec{agent(idA), agent(idB)}, func(r *rig, ps []host.Terminal) {
			r.proves(ps[0], idB)
			r.proves(ps[1], idB)
		}, []string{idA, idB}, []string{"which pane %1 holds", ""}},
		{"an adoption of what another holds", []spec{{integration: "demo", mode: host.Program}, agent(idB)}, func(r *rig, ps []host.Terminal) {
			r.proves(ps[0], idB)
		}, []string{"", idB}, []string{"which pane %1 holds", ""}},
		{"two onto the same new one", []spec{agent(idA), agent(idB)}, func(r *rig, ps []host.Terminal) {
			r.proves(ps[0], idC)
			r.proves(ps[1], idC)
		}, []string{idA, idB}, []string{"which pane %1 holds", "which pane %0 holds"}},
		{"onto what is live elsewhere", []spec{agent(idA)}, func(r *rig, ps []host.Terminal) {
			elsewhere(r, idB)
			r.proves(ps[0], idB)
		}, []string{idA}, []string{"%77"}},
		{"an adoption of what is live elsewhere", []spec{{integration: "demo", mode: host.Program}}, func(r *rig, ps []host.Terminal) {
			elsewhere(r, idB)
			r.proves(ps[0], idB)
		}, []string{""}, []string{"%77"}},
		{"a chain whose end does not move", []spec{agent(idA), agent(idB), agent(idC)}, func(r *rig, ps []host.Terminal) {
			r.proves(ps[0], idB)
			r.proves(ps[1], idC)
		}, []string{idA, idB, idC}, []string{"holds", "which pane %2 holds", ""}},
		{"a chain that moves on", []spec{agent(idA), agent(idB)}, func(r *rig, ps []host.Terminal) {
			r.proves(ps[0], idB)
			r.proves(ps[1], idC)
		}, []string{idB, idC}, []string{"", ""}},
		{"an exchange", []spec{agent(idA), agent(idB)}, func(r *rig, ps []host.Terminal) {
			r.look()
			r.proves(ps[0], idB)
			r.proves(ps[1], idA)
		}, []string{idB, idA}, []string{"", ""}},
		{"onto what an ended agent left", []spec{agent(idA), agent(idB)}, func(r *rig, ps []host.Terminal) {
			must(r.t, r.host.Exit(ps[1], host.Exit{}))
			r.proves(ps[0], idB)
		}, []string{idB, idB}, []string{"", "went on in pane %0"}},
		{"a pane whose program was replaced proves nothing", []spec{agent(idA)}, func(r *rig, ps []host.Terminal) {
			must(r.t, r.host.Respawn(ps[0], "other"))
			must(r.t, r.host.SetPID(ps[0], r.sleeper()))
			r.proves(ps[0], idB)
		}, []string{idA}, []string{"another program"}},
		{"a placeholder proves nothing", []spec{{integration: "demo", id: idA, mode: host.Placeholder}}, func(r *rig, ps []host.Terminal) {
			must(r.t, r.host.SetPID(ps[0], r.sleeper()))
			r.proves(ps[0], idB)
		}, []string{idA}, []string{"waits"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			ps := r.session("work", c.specs...)
			c.set(r, ps)
			got := r.look()
			for i, p := range ps {
				if r.record(p) != c.want[i] {
					t.Errorf("%s holds %q, wanted %q (%s)", p.ID, r.record(p), c.want[i], got[p].Reason)
				}
				if !strings.Contains(got[p].Reason, c.says[i]) {
					t.Errorf("%s says %q, wanted %q", p.ID, got[p].Reason, c.says[i])
				}
			}
		})
	}
}

// A record that somebody changes while it is looked at is looked at again; nothing is overwritten.
func TestConflict(t *testing.T) {
	r := newRig(t)
	p := r.session("work", agent(idA))[0]
	r.proves(p, idB)
	forgot := false
	r.host.Hook(func(ctx context.Context, c memory.Call) error {
		if c.Step == memory.StepSwap && !forgot {
			forgot = true
			return r.host.Swap(ctx, p, metadata.KeyAgentSession, r.live(p).Meta[metadata.KeyAgentSession], nil)
		}
		return nil
	})
	got := r.look()[p]
	if got.Changed != "adopted" || r.record(p) != idB {
		t.Errorf("%+v", got)
	}

	r = newRig(t)
	p = r.session("work", agent(idA))[0]
	r.proves(p, idB)
	r.host.Hook(func(_ context.Context, c memory.Call) error {
		if c.Step == memory.StepSwap && c.Key == metadata.KeyAgentSession {
			return host.ErrConflict
		}
		return nil
	})
	got = r.look()[p]
	if got.Record.NativeID != idA || got.Changed != "" || !strings.Contains(got.Reason, "could not be recorded") {
		t.Errorf("%+v", got)
	}
}

func TestALookThatDoesNotWriteChangesNothing(t *testing.T) {
	r := newRig(t)
	ps := r.session("work", agent(idA), spec{integration: "late", mode: host.Program})
	r.proves(ps[0], idB)
	r.proves(ps[1], idC)
	r.req.Write = false
	r.host.Fail(memory.StepSwap, errors.New("it wrote"))
	got := r.look()
	if got[ps[0]].Record.NativeID != idB || got[ps[1]].Record.NativeID != idC {
		t.Errorf("what is proven is not said: %+v", got)
	}
	if got[ps[0]].Changed != "" || r.record(ps[0]) != idA || r.record(ps[1]) != "" || r.claimed(idB) != nil {
		t.Error("it wrote")
	}
}

func TestOnlyAgentsAreObserved(t *testing.T) {
	r := newRig(t)
	r.session("shells", spec{}, spec{}, spec{})
	p := r.session("ended", agent(idA))[0]
	must(t, r.host.Exit(p, host.Exit{}))
	r.look()
	if r.seen != 0 {
		t.Errorf("%d observations", r.seen)
	}
}

func TestLookSaysWhatTheHostSays(t *testing.T) {
	r := newRig(t)
	if _, _, err := Look(context.Background(), r.req); !errors.Is(err, host.ErrNoServer) {
		t.Error(err)
	}
	r.session("work", spec{})
	r.host.Fail(memory.StepSnapshot, host.ErrChanged)
	if _, _, err := Capture(context.Background(), r.req); !errors.Is(err, host.ErrChanged) {
		t.Error(err)
	}
}
