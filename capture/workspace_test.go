package capture

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/memory"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
)

func (r *rig) capture() *archive.Archive {
	r.t.Helper()
	a, _, err := Capture(context.Background(), r.req)
	must(r.t, err)
	// What is written is read again, by the exact reader.
	b, err := a.Encode()
	must(r.t, err)
	back, err := archive.Decode(b)
	must(r.t, err)
	return back
}

func TestCaptureIsTheWorkspace(t *testing.T) {
	r := newRig(t)
	ps := r.session("work", agent(idA), spec{}, spec{integration: "demo", id: idB, mode: host.Placeholder, facts: func(f *metadata.LaunchFacts) {
		f.Pending, f.Durability = true, NeverPrompted
	}})
	r.session("api", spec{})
	r.proves(ps[0], idA)
	must(t, r.host.SetTitle(ps[1], "τ \x1b[31m"))
	must(t, r.host.Edit(ps[1], func(p *host.Pane) { p.Dir, p.DirGone, p.Command = "/gone", true, "vim" }))
	must(t, r.host.EditWindow(ps[0], func(w *host.Window) { w.Zoomed, w.AutomaticName = true, true }))
	must(t, r.host.Select(ps[1]))

	a := r.capture()
	wantHost := archive.Host{Kind: "memory", Version: a.Host.Version, Server: "memory-memory", Instance: a.Host.Instance, Boot: "boot-1", Machine: "machine"}
	if diff := cmp.Diff(wantHost, a.Host); diff != "" || len(a.Host.Instance) != 32 {
		t.Error(diff)
	}
	if !a.SavedAt.Equal(when) || a.Generation != 0 || a.Prev != "" {
		t.Errorf("%+v", a)
	}
	if len(a.Sessions) != 2 || a.Sessions[0].Name != "api" || a.Sessions[1].Name != "work" {
		t.Fatalf("%+v", a.Sessions)
	}
	s := a.Sessions[1]
	if !s.Active || a.Sessions[0].Active || s.Cwd != "/src" || s.Pending != nil {
		t.Errorf("%+v", s)
	}
	w := s.Windows[0]
	live, _ := findWindow(r, ps[0])
	if w.Name != "w-work" || !w.Active || !w.Zoomed || !w.AutomaticName || w.Cells != live.Layout.String() || w.Index != live.Index {
		t.Errorf("%+v", w)
	}
	if cells, err := host.ParseCells(w.Cells, 3); err != nil || cells.Cols != 200 {
		t.Errorf("%+v, %v", cells, err)
	}
	if err := w.Layout.Check(3); err != nil {
		t.Error(err)
	}
	f := r.facts(ps[0])
	want := []archive.Pane{
		{
			Title: w.Panes[0].Title, Cwd: "/src", Program: "demo-agent", Cols: 66, Rows: 50,
			AgentSession: &metadata.AgentSession{PluginID: "demo.agents", IntegrationID: "demo", NativeID: idA},
			Agent: &archive.Agent{
				Key: f.PaneKey, Profile: "loud", LaunchCwd: "/launch", Durability: Present, State: Running,
				ConfirmedAt: when, NotPreserved: []string{"--once"},
			},
		},
		{Active: true, Title: "τ \x1b[31m", Cwd: "/gone", Program: "vim", Cols: 66, Rows: 50},
		{
			Title: w.Panes[2].Title, Cwd: "/src", Program: "phux-agent", Cols: 66, Rows: 50,
			AgentSession: &metadata.AgentSession{PluginID: "demo.agents", IntegrationID: "demo", NativeID: idB},
			Agent: &archive.Agent{
				Key: r.facts(ps[2]).PaneKey, Profile: "loud", LaunchCwd: "/launch", Durability: NeverPrompted, State: Pending,
				NotPreserved: []string{"--once"},
			},
		},
	}
	for i := range want {
		want[i].Cols, want[i].Rows = r.live(ps[i]).Cols, r.live(ps[i]).Rows
	}
	if diff := cmp.Diff(want, w.Panes); diff != "" {
		t.Error(diff)
	}
	if live, pending := a.Records(); live != 1 || pending != 1 {
		t.Errorf("%d live records, %d pending", live, pending)
	}
}

func findWindow(r *rig, at host.Terminal) (host.Window, bool) {
	w, err := r.host.Snapshot(context.Background())
	must(r.t, err)
	for _, s := range w.Sessions {
		for _, win := range s.Windows {
			for _, p := range win.Panes {
				if p.Terminal == at {
					return win, true
				}
			}
		}
	}
	return host.Window{}, false
}

// A store that sees no change writes nothing: a second capture differs in its times alone.
func TestCaptureIsStable(t *testing.T) {
	r := newRig(t)
	ps := r.session("work", agent(idA), agent(idB), spec{})
	r.proves(ps[0], idA)
	r.req.Machine = "m"
	first := r.capture()
	for n := 1; n <= 3; n++ {
		now := when.Add(time.Duration(n) * time.Hour)
		r.req.Now = func() time.Time { return now }
		again := r.capture()
		again.SavedAt = first.SavedAt
		for i := range again.Sessions[0].Windows[0].Panes {
			if g := again.Sessions[0].Windows[0].Panes[i].Agent; g != nil {
				g.ConfirmedAt = first.Sessions[0].Windows[0].Panes[i].Agent.ConfirmedAt
			}
		}
		if diff := cmp.Diff(first, again); diff != "" {
			t.Fatal(diff)
		}
	}
}

// One record that cannot be read is left out with its reason; everything else is saved.
func TestABrokenRecordIsLeftOut(t *testing.T) {
	r := newRig(t)
	ps := r.session("work", agent(idA), spec{integration: "demo", mode: host.Program, raw: []byte(`{"plugin_id":"p","integration_id":"i","native_id":"-x"}`)}, agent(idB))
	a, panes, err := Capture(context.Background(), r.req)
	must(t, err)
	var left []string
	for _, p := range panes {
		if p.Err != nil {
			left = append(left, p.Terminal.ID)
		}
	}
	if diff := cmp.Diff([]string{ps[1].ID}, left); diff != "" {
		t.Error(diff)
	}
	got := a.Sessions[0].Windows[0].Panes
	if got[1].AgentSession != nil || got[1].Agent.RecordError == "" || got[1].Agent.IntegrationID != "demo" || got[1].Agent.Key != r.facts(ps[1]).PaneKey {
		t.Errorf("%+v", got[1].Agent)
	}
	if got[0].AgentSession == nil || got[2].AgentSession == nil {
		t.Error("the others are gone too")
	}
	if raw := r.live(ps[1]).Meta[metadata.KeyAgentSession]; len(raw) == 0 {
		t.Error("the broken record was taken from its pane")
	}
}

func TestFactsThatAreBrokenAreMadeAnew(t *testing.T) {
	r := newRig(t)
	p := r.session("work", agent(idA))[0]
	must(t, r.host.Edit(p, func(p *host.Pane) { p.Meta[metadata.KeyAgentLaunch] = []byte("{") }))
	got := r.look()[p]
	if got.Record == nil || got.Facts.PaneKey == "" || r.facts(p).PaneKey != got.Facts.PaneKey {
		t.Errorf("%+v", got)
	}
	if again := r.look()[p]; again.Facts.PaneKey != got.Facts.PaneKey {
		t.Error("the key changes with each look")
	}
}

func TestAPlaceholderThatRunsIsNotPendingOnItsPaneEither(t *testing.T) {
	r := newRig(t)
	p := r.session("work", spec{integration: "demo", id: idA, mode: host.Program, facts: func(f *metadata.LaunchFacts) { f.Pending = true }})[0]
	r.look()
	if r.facts(p).Pending {
		t.Error("it still says pending")
	}
}

func TestSharedWindowsAreSavedOnce(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(r *rig, home host.Terminal)
		want map[string][]string // session: the records in it
	}{
		{
			"a group, by name", func(r *rig, _ host.Terminal) { must(r.t, r.host.Group("work", "view")) },
			map[string][]string{"view": {idA}},
		},
		{"a group, however the user came", func(r *rig, p host.Terminal) {
			must(r.t, r.host.Group("work", "a-view"))
			must(r.t, r.host.Select(p))
		}, map[string][]string{"a-view": {idA}}},
		{"linked into a later session", func(r *rig, p host.Terminal) {
			r.host.SetClock(func() time.Time { return when.Add(time.Hour) })
			r.session("a-later", agent(idB))
			must(r.t, r.host.Link(p, "a-later"))
		}, map[string][]string{"work": {idA}, "a-later": {idB}}},
		{"linked between sessions of one moment", func(r *rig, p host.Terminal) {
			r.session("a-twin", agent(idB))
			must(r.t, r.host.Link(p, "a-twin"))
		}, map[string][]string{"a-twin": {idB, idA}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			home := r.session("work", agent(idA))[0]
			c.set(r, home)
			a := r.capture()
			got := map[string][]string{}
			active := 0
			for _, s := range a.Sessions {
				shown := false
				for _, w := range s.Windows {
					shown = shown || w.Active
					for _, p := range w.Panes {
						got[s.Name] = append(got[s.Name], p.AgentSession.NativeID)
					}
				}
				if !shown {
					t.Errorf("no window of %s is active", s.Name)
				}
				if s.Active {
					active++
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if active != 1 {
				t.Errorf("%d active sessions", active)
			}
			_, panes, err := Look(context.Background(), r.req)
			must(t, err)
			seen := map[string]bool{}
			for _, p := range panes {
				if seen[p.Terminal.ID] {
					t.Errorf("%s stands twice", p.Terminal.ID)
				}
				seen[p.Terminal.ID] = true
				if len(got[p.Session]) == 0 {
					t.Errorf("%s is listed in %s, which is not saved", p.Terminal.ID, p.Session)
				}
			}
		})
	}
}

func TestAWorkspaceThatChangesIsSaidSo(t *testing.T) {
	r := newRig(t)
	r.session("work", spec{})
	r.req.Info = nil
	r.host.Fail(memory.StepInfo, host.ErrChanged)
	if _, _, err := Capture(context.Background(), r.req); !errors.Is(err, host.ErrChanged) {
		t.Error(err)
	}
}

// A shutdown tells agents to end, and some do so with 0: a save that nobody asked for does not take
// that for a person's wish before a minute has passed.
func TestWhatEndedJustNowIsNotAWish(t *testing.T) {
	r := newRig(t)
	ps := r.session("work", agent(idA), spec{integration: "demo", id: idB, mode: host.Shell, facts: func(f *metadata.LaunchFacts) { f.Ended = true }})
	must(t, r.host.Exit(ps[0], host.Exit{}))
	shell := r.sleeper()
	must(t, r.host.SetPID(ps[0], shell))
	r.births = map[int]time.Time{shell: when.Add(-archive.ShutdownTime + time.Second), r.live(ps[1]).PID: when}
	states := func() (out []string) {
		t.Helper()
		for _, p := range r.capture().Sessions[0].Windows[0].Panes {
			if p.AgentSession == nil {
				t.Errorf("a record is gone: %+v", p)
				continue
			}
			out = append(out, p.Agent.State)
		}
		return out
	}
	if got := states(); !slices.Equal(got, []string{Ended, Ended}) {
		t.Errorf("a person's save: %q", got)
	}
	r.req.Auto = true
	if got := states(); !slices.Equal(got, []string{Exited, Ended}) {
		t.Errorf("within the minute: %q", got)
	}
	r.births[shell] = when.Add(-archive.ShutdownTime)
	if got := states(); !slices.Equal(got, []string{Ended, Ended}) {
		t.Errorf("after it: %q", got)
	}
	delete(r.births, shell)
	if got := states(); !slices.Equal(got, []string{Ended, Ended}) {
		t.Errorf("where nobody knows when: %q", got)
	}
}

// Where the pane does not show when its agent ended (held, or in a shell that is older than it), the
// first look says so, and later ones count from that.
func TestWhatIsFirstSeenEndedIsNotAWish(t *testing.T) {
	r := newRig(t)
	held := agent(idA)
	held.after = "hold"
	at := r.session("work", held)[0]
	here := r.session("here", spec{})[0]
	pid := r.sleeper()
	must(t, r.host.Bind(t.Context(), here, pid, r.ident(pid).Start, r.pane(agent(idB)).Meta))
	now := when
	r.req.Now = func() time.Time { return now }
	r.req.Auto = true
	states := func(want string) {
		t.Helper()
		for _, s := range r.capture().Sessions {
			if p := s.Windows[0].Panes[0]; p.Agent == nil || p.Agent.State != want {
				t.Errorf("%s: %+v, want %s", s.Name, p.Agent, want)
			}
		}
	}
	states(Running)
	must(t, r.host.Exit(at, host.Exit{}))
	must(t, r.host.EndBound(here))
	now = now.Add(time.Hour)
	states(Exited)
	now = now.Add(archive.ShutdownTime - time.Second)
	states(Exited)
	now = now.Add(time.Second)
	states(Ended)
	now = now.Add(-365 * 24 * time.Hour) // a clock that was set back makes nobody wait for a year
	states(Ended)
	r.req.Auto = false
	states(Ended)
	if f := r.facts(here); !f.GoneAt.Equal(when.Add(time.Hour)) {
		t.Errorf("%+v", f)
	}
}

// A conversation that went on elsewhere is saved once.
func TestAnEndedRecordYieldsToTheOneThatWentOn(t *testing.T) {
	for _, c := range []struct {
		name   string
		epochs [2]uint64
		end    func(r *rig, ps []host.Terminal)
		keeps  int
	}{
		{"running after ended", [2]uint64{1, 2}, func(r *rig, ps []host.Terminal) { must(r.t, r.host.Exit(ps[0], host.Exit{})) }, 1},
		{"running after exited", [2]uint64{2, 1}, func(r *rig, ps []host.Terminal) { must(r.t, r.host.Exit(ps[0], host.Exit{Status: 1})) }, 1},
		{"ended after exited", [2]uint64{1, 2}, func(r *rig, ps []host.Terminal) {
			must(r.t, r.host.Exit(ps[0], host.Exit{Status: 1}))
			must(r.t, r.host.Exit(ps[1], host.Exit{}))
		}, 1},
		{"exited after ended", [2]uint64{2, 1}, func(r *rig, ps []host.Terminal) {
			must(r.t, r.host.Exit(ps[0], host.Exit{Status: 1}))
			must(r.t, r.host.Exit(ps[1], host.Exit{}))
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			var specs []spec
			for _, e := range c.epochs {
				s := agent(idA)
				s.facts = func(f *metadata.LaunchFacts) { f.Epoch = e }
				specs = append(specs, s)
			}
			ps := r.session("work", specs...)
			c.end(r, ps)
			got := r.capture().Sessions[0].Windows[0].Panes
			for i, p := range got {
				if held := p.AgentSession != nil; held != (i == c.keeps) {
					t.Errorf("pane %d: %+v", i, p)
				}
			}
			if lost := got[1-c.keeps].Agent; lost == nil || len(lost.Previous) != 1 || lost.Previous[0] != idA {
				t.Errorf("%+v", lost)
			}
		})
	}
}

func TestClaimsAreRebuiltForWhatRuns(t *testing.T) {
	r := newRig(t)
	ps := r.session("work", agent(idA), agent(idB), spec{integration: "demo", id: idC, mode: host.Placeholder})
	must(t, r.host.Exit(ps[1], host.Exit{}))
	r.look()
	if c := r.claimed(idA); c == nil || c.Process != r.ident(r.live(ps[0]).PID) || c.Place != (owner.Place{Host: "memory-memory", Terminal: ps[0].ID, PaneKey: r.facts(ps[0]).PaneKey}) {
		t.Errorf("%+v", c)
	}
	if r.claimed(idB) != nil || r.claimed(idC) != nil {
		t.Error("what does not run was claimed")
	}
}

// What was there once was not never prompted: a lost file is a lost conversation, and no leave to
// begin another one under its id.
func TestALostConversationWasNotNeverPrompted(t *testing.T) {
	r := newRig(t)
	p := r.session("work", agent(idA))[0]
	r.gone[idA] = true
	if got := r.look()[p].Durability; got != NeverPrompted {
		t.Errorf("before its first prompt: %s", got)
	}
	delete(r.gone, idA)
	r.look()
	r.gone[idA] = true
	for range 2 {
		if got := r.look()[p].Durability; got != Present {
			t.Errorf("after it was lost: %s", got)
		}
	}
	r.proves(p, idB)
	r.gone[idB] = true
	if got := r.look()[p]; got.Changed == "" || got.Durability != NeverPrompted {
		t.Errorf("of the next conversation: %+v", got)
	}
}
