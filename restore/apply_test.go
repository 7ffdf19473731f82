package restore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/config"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/memory"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
)

// stage is a world with a host to restore it on.
type stage struct {
	*world
	h      *memory.Host
	e      Env
	during func() // what happens while the agents are watched
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{world: newWorld(t), h: memory.New()}
	claims := t.TempDir()
	if err := os.Chmod(claims, 0o700); err != nil {
		t.Fatal(err)
	}
	s.e = Env{
		Host: s.h, Claims: owner.Claims{Dir: claims}, Now: time.Now, Machine: "m1",
		Getenv: func(string) (string, bool) { return "", false },
		Config: &config.Config{Restore: config.Restore{DeadlineSecs: 20, Husk: true}},
		Watch: func(ctx context.Context, _ []int, _ time.Duration) error {
			if s.during != nil {
				s.during()
				s.during = nil
			}
			return ctx.Err()
		},
	}
	s.see()
	return s
}

// see is the part of Gather that looks at the host.
func (s *stage) see() {
	s.t.Helper()
	info, err := s.h.Info(context.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	s.f.Host = info
	if s.f.View, err = view(context.Background(), s.h); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) apply() *Report {
	s.t.Helper()
	r, err := Apply(context.Background(), s.e, s.plan())
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// identities counts how often each identity was started.
func (s *stage) identities() map[string]int {
	n := map[string]int{}
	for _, st := range s.h.Started() {
		if st.Mode == host.Program {
			n[st.Argv[len(st.Argv)-1]]++
		}
	}
	return n
}

// free reports whether an identity can be reserved, and gives it back.
func (s *stage) free(id string) bool {
	s.t.Helper()
	c, err := s.e.Claims.Reserve(metadata.Identity{IntegrationID: "claude-code", NativeID: id}, owner.Place{})
	if err != nil {
		return false
	}
	if err := s.e.Claims.Release(c); err != nil {
		s.t.Fatal(err)
	}
	return true
}

// reserve makes an identity live.
func (s *stage) reserve(id string) {
	s.t.Helper()
	if _, err := s.e.Claims.Reserve(metadata.Identity{IntegrationID: "claude-code", NativeID: id}, owner.Place{}); err != nil {
		s.t.Fatal(err)
	}
}

// paneOf is the host's pane that holds an id.
func (s *stage) paneOf(id string) host.Pane {
	s.t.Helper()
	v, err := view(context.Background(), s.h)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, se := range v.Sessions {
		for _, w := range se.Windows {
			for _, p := range w.Panes {
				if rec, err := metadata.DecodeAgentSession(p.Meta[metadata.KeyAgentSession]); err == nil && rec.NativeID == id {
					return p
				}
			}
		}
	}
	s.t.Fatalf("no pane holds %s", id)
	return host.Pane{}
}

func result(p PaneReport) string {
	if p.Result == nil {
		return "null"
	}
	return *p.Result
}

func results(r *Report) []string {
	var out []string
	for _, s := range r.Sessions {
		for _, p := range s.Panes {
			out = append(out, fmt.Sprintf("%s %s:%d.%d %s %s", s.Action, s.Name, p.Window, p.Index, p.Verdict, result(p)))
		}
	}
	return out
}

func wantResults(t *testing.T, r *Report, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, results(r)); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

func TestApply(t *testing.T) {
	s := newStage(t)
	s.add("other", s.pane("claude-code", id2))
	s.f.Talks[TalkKey{key("claude-code"), id2}] = Talk{Presence: owner.Absent}
	var saved int
	locked := false
	s.e.Lock = func() (func(), error) { locked = true; return func() { locked = false }, nil }
	s.e.Save = func(context.Context) error {
		if !locked {
			t.Error("saved outside of the lock")
		}
		saved++
		return nil
	}
	r := s.apply()
	wantResults(t, r, "create work:1.0 resume running", "create work:1.1 shell shell", "create other:0.0 transcript-missing placeholder")
	if r.Outcome() != Partial {
		t.Errorf("outcome %d, want partial", r.Outcome())
	}
	if saved != 1 || locked {
		t.Errorf("saved %d times, locked %t", saved, locked)
	}

	p := s.paneOf(id1)
	if got, want := p.Meta[metadata.KeyAgentSession], encode(t, *s.first().AgentSession); !bytes.Equal(got, want) {
		t.Errorf("record %s, want %s", got, want)
	}
	f, err := metadata.DecodeLaunchFacts(p.Meta[metadata.KeyAgentLaunch])
	if err != nil || f.PaneKey != testKey || f.Pending || f.Epoch == 0 {
		t.Errorf("facts %+v, %v", f, err)
	}
	a, err := metadata.DecodeAgent(p.Meta[metadata.KeyAgent])
	if err != nil || a.Name != "claude" {
		t.Errorf("agent %+v, %v", a, err)
	}
	f, err = metadata.DecodeLaunchFacts(s.paneOf(id2).Meta[metadata.KeyAgentLaunch])
	if err != nil || f.PaneKey == testKey || !f.Pending || f.Durability != "present" {
		t.Errorf("facts of the placeholder %+v, %v", f, err)
	}

	// Twice starts nothing twice.
	before := len(s.h.Started())
	s.see()
	r = s.apply()
	wantResults(t, r, "skip-existing work:1.0 already-live null", "skip-existing work:1.1 shell null", "skip-existing other:0.0 pending null")
	if got := len(s.h.Started()); got != before || r.Outcome() != Done || saved != 1 {
		t.Errorf("started %d more, outcome %d, saved %d", got-before, r.Outcome(), saved)
	}
}

// Each agent starts with a guard that holds the ticket of its claim and what its probe said.
func TestGuard(t *testing.T) {
	s := newStage(t)
	s.first().Agent.Durability = "never-prompted"
	s.talk(id1, func(t *Talk) { t.Presence = owner.Absent })
	claimed := ""
	s.h.Hook(func(_ context.Context, c memory.Call) error {
		if c.Step == memory.StepCreate {
			got, err := s.e.Claims.Get(metadata.Identity{IntegrationID: "claude-code", NativeID: id1})
			if err != nil || got == nil || !got.Reserved {
				t.Errorf("created before it was reserved: %+v, %v", got, err)
				return nil
			}
			claimed = got.Ticket
		}
		return nil
	})
	s.apply()
	g, err := owner.DecodeGuard(s.h.Started()[0].Guard)
	if err != nil {
		t.Fatal(err)
	}
	want := owner.Guard{
		Identity: metadata.Identity{IntegrationID: "claude-code", NativeID: id1}, Ticket: claimed,
		Place: owner.Place{Host: s.f.Host.Server, PaneKey: testKey}, Claims: s.e.Claims.Dir, Expect: owner.Absent,
		Root: "${CLAUDE_CONFIG_DIR:-~/.claude}", Paths: []string{"projects/*/${PHUX_AGENT_SESSION_ID}.jsonl"}, Program: g.Program,
	}
	if diff := cmp.Diff(want, g); diff != "" || claimed == "" {
		t.Errorf("guard (-want +got):\n%s", diff)
	}
}

func TestStalePlans(t *testing.T) {
	s := newStage(t)
	p := s.plan()
	if _, err := s.h.Create(context.Background(), host.CreateSession{Name: "mine", Windows: []host.WindowSpec{{
		Name: "w", Index: -1, Layout: leaf(80, 24, 0), Panes: []host.PaneSpec{{}},
	}}}); err != nil {
		t.Fatal(err)
	}
	r, err := Apply(context.Background(), s.e, p)
	var stale *StaleError
	if !errors.As(err, &stale) || r != nil {
		t.Fatalf("got %v", err)
	}
	s.see()
	p = s.plan()
	s.h.Restart()
	if _, err = Apply(context.Background(), s.e, p); !errors.As(err, &stale) {
		t.Fatalf("got %v", err)
	}
	if n := s.identities(); len(n) != 0 || !s.free(id1) {
		t.Errorf("a stale plan started %v", n)
	}
}

func TestLockedRestoreDoesNothing(t *testing.T) {
	s := newStage(t)
	busy := errors.New("somebody restores")
	s.e.Lock = func() (func(), error) { return nil, busy }
	if _, err := Apply(context.Background(), s.e, s.plan()); !errors.Is(err, busy) || len(s.h.Started()) != 0 {
		t.Fatalf("got %v", err)
	}
}

func TestSessionThatAppearsMeanwhileWins(t *testing.T) {
	s := newStage(t)
	s.add("other", s.pane("claude-code", id2))
	s.shellSession("mine") // the server runs already
	once := false
	s.h.Hook(func(ctx context.Context, c memory.Call) error {
		if c.Step != memory.StepCommit || c.Create.Name != "work" || once {
			return nil
		}
		once = true
		ask := host.CreateSession{Name: "work", Windows: []host.WindowSpec{{Name: "w", Index: -1, Layout: leaf(80, 24, 0), Panes: []host.PaneSpec{{Title: "the user's own"}}}}}
		_, err := s.h.Create(ctx, ask)
		return err
	})
	r := s.apply()
	wantResults(t, r, "skip-existing work:1.0 pending null", "skip-existing work:1.1 shell null", "create other:0.0 resume running")
	if !strings.Contains(r.Sessions[0].Reason, "meanwhile") || r.Outcome() != Done {
		t.Errorf("%q, outcome %d", r.Sessions[0].Reason, r.Outcome())
	}
	if diff := cmp.Diff(map[string]int{id2: 1}, s.identities()); diff != "" {
		t.Error(diff)
	}
	if !s.free(id1) {
		t.Error("the loser keeps its claim")
	}
}

// Law 8: what came alive since the plan was made is not started a second time.
func TestIdentityThatCameAliveSinceThePlan(t *testing.T) {
	for _, strict := range []bool{false, true} {
		s := newStage(t)
		s.add("other", s.pane("claude-code", id2))
		s.o.Strict = strict
		s.reserve(id1)
		r := s.apply()
		if strict {
			wantResults(t, r, "refuse work:1.0 already-live null", "refuse work:1.1 shell null", "create other:0.0 resume running")
		} else {
			wantResults(t, r, "create work:1.0 already-live placeholder", "create work:1.1 shell shell", "create other:0.0 resume running")
			f, err := metadata.DecodeLaunchFacts(s.paneOf(id1).Meta[metadata.KeyAgentLaunch])
			if err != nil || !f.Pending {
				t.Errorf("the placeholder's record does not wait: %+v, %v", f, err)
			}
		}
		if r.Outcome() != Partial || r.Sessions[0].Panes[0].Hint == "" {
			t.Errorf("outcome %d, hint %q", r.Outcome(), r.Sessions[0].Panes[0].Hint)
		}
		if diff := cmp.Diff(map[string]int{id2: 1}, s.identities()); diff != "" {
			t.Error(diff)
		}
	}
}

func TestFailureLeavesNothing(t *testing.T) {
	broken := errors.New("no room")
	for _, step := range []memory.Step{memory.StepCreate, memory.StepStore, memory.StepReadBack, memory.StepCommit} {
		s := newStage(t)
		s.add("other", s.pane("claude-code", id2))
		s.h.Fail(step, broken)
		s.e.Save = func(context.Context) error { t.Error("saved a restore that made nothing"); return nil }
		r := s.apply()
		if r.Outcome() != Failed || r.Sessions[0].Error == "" || !strings.Contains(r.Sessions[0].Reason, "nothing of it is left") {
			t.Errorf("%s: outcome %d, %+v", step, r.Outcome(), r.Sessions[0])
		}
		if len(s.h.Started()) != 0 || !s.free(id1) || !s.free(id2) {
			t.Errorf("%s: started %v", step, s.identities())
		}
		// And the next one does it all.
		s.h.Fail(step, nil)
		s.see()
		s.e.Save = nil
		if r := s.apply(); r.Outcome() != Done {
			t.Errorf("%s: %v", step, results(r))
		}
	}
}

// A restore that breaks off at any step of any call can be run again: everything is there once.
func TestRunAgainAfterEveryStep(t *testing.T) {
	for n := 0; ; n++ {
		s := newStage(t)
		s.add("b", s.pane("claude-code", id2))
		s.add("c", s.pane("claude-code", id3))
		step := 0
		ctx, stop := context.WithCancel(context.Background())
		p := s.plan()
		s.h.Hook(func(context.Context, memory.Call) error {
			if step++; step == n+1 {
				stop()
				return context.Canceled
			}
			return nil
		})
		_, err := Apply(ctx, s.e, p)
		s.h.Hook(nil)
		stop()
		if step <= n {
			if err != nil {
				t.Fatal(err)
			}
			if n < 10 {
				t.Fatalf("only %d steps", n)
			}
			return
		}
		// The claims of those that run are their own processes' in life; here nobody took them.
		for id := range s.identities() {
			if c, err := s.e.Claims.Get(metadata.Identity{IntegrationID: "claude-code", NativeID: id}); err == nil && c != nil {
				if err := s.e.Claims.Release(*c); err != nil {
					t.Fatal(err)
				}
			}
		}
		s.see()
		r := s.apply()
		for id, k := range s.identities() {
			if k != 1 {
				t.Errorf("broken off at step %d: %s was started %d times", n, id, k)
			}
		}
		v, err := view(context.Background(), s.h)
		if err != nil || len(v.Sessions) != 3 {
			t.Errorf("broken off at step %d: %d sessions, %v: %v", n, len(v.Sessions), err, results(r))
		}
	}
}

// lying is a host that says it stored other bytes than it was given.
type lying struct {
	*memory.Host
	in string // the session of which it lies
}

func (l lying) Create(ctx context.Context, c host.CreateSession) (*host.Created, error) {
	out, err := l.Host.Create(ctx, c)
	if err == nil && c.Name == l.in {
		for _, w := range out.Windows {
			for _, p := range w {
				if b := p.Meta[metadata.KeyAgentSession]; b != nil {
					p.Meta[metadata.KeyAgentSession] = append(bytes.Clone(b), ' ')
				}
			}
		}
	}
	return out, err
}

func TestReadBackThatDiffersIsRemoved(t *testing.T) {
	s := newStage(t)
	s.add("other", s.pane("claude-code", id2))
	s.e.Host = lying{s.h, "work"}
	r := s.apply()
	wantResults(t, r, "create work:1.0 resume null", "create work:1.1 shell null", "create other:0.0 resume running")
	if !strings.Contains(r.Sessions[0].Error, "read back") || r.Outcome() != Partial {
		t.Errorf("outcome %d, %q", r.Outcome(), r.Sessions[0].Error)
	}
	v, err := view(context.Background(), s.h)
	if err != nil || len(v.Sessions) != 1 || v.Sessions[0].Name != "other" {
		t.Errorf("%+v, %v", v.Sessions, err)
	}
	if !s.free(id1) {
		t.Error("the claim is kept")
	}
}

func TestAgentThatDoesNotStart(t *testing.T) {
	s := newStage(t)
	s.h.Hook(func(_ context.Context, c memory.Call) error {
		if c.Step == memory.StepStart && c.Start.Mode == host.Program {
			return errors.New("the conversation was present, and is absent now")
		}
		return nil
	})
	r := s.apply()
	wantResults(t, r, "create work:1.0 resume exited", "create work:1.1 shell shell")
	if p := r.Sessions[0].Panes[0]; !strings.Contains(p.Reason, "absent now") || r.Outcome() != Partial {
		t.Errorf("%q, outcome %d", p.Reason, r.Outcome())
	}
	if !s.free(id1) {
		t.Error("the claim is kept")
	}
	s.paneOf(id1) // law 9: the record is there still
}

// Law 12: success is claimed only for what was seen running.
func TestWatch(t *testing.T) {
	do := func(s *stage, f func(host.Terminal) error) {
		if err := f(s.paneOf(id1).Terminal); err != nil {
			s.t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, want string
		says       []string
		during     func(s *stage)
	}{
		{"lives", Running, nil, func(*stage) {}},
		{"dies with words", Exited, []string{"with 1", "No conversation found / with that id"}, func(s *stage) {
			do(s, func(t host.Terminal) error {
				return errors.Join(s.h.Say(t, "  No conversation\tfound \n\n with that id\n"), s.h.Exit(t, host.Exit{Status: 1}))
			})
		}},
		{"dies with very many words", Exited, []string{"…"}, func(s *stage) {
			do(s, func(t host.Terminal) error {
				return errors.Join(s.h.Say(t, strings.Repeat("é", 5000)), s.h.Exit(t, host.Exit{Status: 1}))
			})
		}},
		{"dies by a signal", Exited, []string{"signal killed"}, func(s *stage) {
			do(s, func(t host.Terminal) error { return s.h.Exit(t, host.Exit{Status: -1, Signal: "killed"}) })
		}},
		{"ends", Exited, []string{"with 0"}, func(s *stage) {
			do(s, func(t host.Terminal) error { return s.h.Exit(t, host.Exit{}) })
		}},
		{"is closed", Exited, []string{"gone"}, func(s *stage) {
			do(s, func(t host.Terminal) error { return s.h.Kill(context.Background(), t) })
		}},
		{"is replaced", Exited, []string{"another program"}, func(s *stage) {
			do(s, func(t host.Terminal) error { return s.h.Respawn(t, "vi") })
		}},
		{"loses its server", Exited, []string{"gone"}, func(s *stage) { s.h.Restart() }},
		{"is late", Running, nil, func(s *stage) {
			do(s, func(t host.Terminal) error { return s.h.Edit(t, func(p *host.Pane) { p.Waiting = true }) })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, watched := newStage(t), 0
			s.during = func() { c.during(s) }
			if c.name == "is late" {
				// Its agent waits from the beginning on.
				inner := s.e.Watch
				s.e.Watch = func(ctx context.Context, pids []int, settle time.Duration) error {
					if watched++; watched == 2 {
						do(s, func(t host.Terminal) error { return s.h.Edit(t, func(p *host.Pane) { p.Waiting = false }) })
					}
					return inner(ctx, pids, settle)
				}
			}
			r := s.apply()
			p := r.Sessions[0].Panes[0]
			if c.name == "is late" && watched != 2 {
				t.Errorf("said after %d looks, want 2", watched)
			}
			if result(p) != c.want {
				t.Fatalf("%s (%s), want %s", result(p), p.Reason, c.want)
			}
			for _, w := range c.says {
				if !strings.Contains(p.Reason, w) {
					t.Errorf("%q lacks %q", p.Reason, w)
				}
			}
			if len(p.Reason) > 2*maxWords {
				t.Errorf("%d bytes of reason", len(p.Reason))
			}
			want := Done
			if c.want == Exited {
				want = Partial
				if p.Hint == "" {
					t.Error("no hint")
				}
			}
			if r.Outcome() != want {
				t.Errorf("outcome %d, want %d", r.Outcome(), want)
			}
		})
	}
}

func TestNotSeenRunningInTime(t *testing.T) {
	s := newStage(t)
	s.e.Watch = func(context.Context, []int, time.Duration) error { return context.DeadlineExceeded }
	r := s.apply()
	if p := r.Sessions[0].Panes[0]; p.Result != nil || !strings.Contains(p.Reason, "not seen running") {
		t.Errorf("%s, %q", result(p), p.Reason)
	}
}

func TestNoWait(t *testing.T) {
	s := newStage(t)
	s.o.NoWait = true
	s.e.Watch = func(context.Context, []int, time.Duration) error { t.Error("watched"); return nil }
	r := s.apply()
	wantResults(t, r, "create work:1.0 resume null", "create work:1.1 shell shell")
	if r.Outcome() != Done {
		t.Errorf("outcome %d", r.Outcome())
	}
}

func TestPaneKeysAreNotShared(t *testing.T) {
	s := newStage(t)
	a, b := s.pane("claude-code", id2), s.pane("claude-code", id3)
	b.Agent.Key = "an evil key\n"
	s.add("other", a, b)
	s.apply()
	s.add("third", s.pane("claude-code", id4))
	s.see()
	s.apply()
	seen := map[string]bool{}
	for _, id := range []string{id1, id2, id3, id4} {
		f, err := metadata.DecodeLaunchFacts(s.paneOf(id).Meta[metadata.KeyAgentLaunch])
		if err != nil || seen[f.PaneKey] {
			t.Errorf("%s: %+v, %v", id, f, err)
		}
		seen[f.PaneKey] = true
	}
	if !seen[testKey] {
		t.Error("the first pane lost its key")
	}
}

// Archived facts that break a bound explain less; they do not stop the record.
func TestFactsThatBreakABound(t *testing.T) {
	s := newStage(t)
	a := s.first().Agent
	a.LaunchCwd, a.Store, a.Durability = "/src/a", strings.Repeat("s", 4000), "present\n"
	a.Previous = append(slices.Repeat([]string{id2}, 40), "-x", "")
	a.Unconfirmed, a.NotPreserved = strings.Repeat("é", 4000), slices.Repeat([]string{"x"}, 4000)
	s.talk(id1, func(t *Talk) { t.Presence = owner.Absent })
	r := s.apply()
	wantResults(t, r, "create work:1.0 transcript-missing placeholder", "create work:1.1 shell shell")
	f, err := metadata.DecodeLaunchFacts(s.paneOf(id1).Meta[metadata.KeyAgentLaunch])
	if err != nil || !f.Pending || f.LaunchDir != "/src/a" {
		t.Errorf("%+v, %v", f, err)
	}
}

// E10: what a restore made can be restored again, and an ended agent stays ended.
func TestEndedPaneKeepsItsRecord(t *testing.T) {
	s := newStage(t)
	s.first().Agent.State = "ended"
	r := s.apply()
	wantResults(t, r, "create work:1.0 ended shell", "create work:1.1 shell shell")
	f, err := metadata.DecodeLaunchFacts(s.paneOf(id1).Meta[metadata.KeyAgentLaunch])
	if err != nil || !f.Ended || f.Pending {
		t.Errorf("%+v, %v", f, err)
	}
	if n := s.identities(); len(n) != 0 || r.Outcome() != Done {
		t.Errorf("started %v, outcome %d", n, r.Outcome())
	}
}

func TestReportJSON(t *testing.T) {
	s := newStage(t)
	s.add("other")
	s.session(1).Windows = nil
	b, err := json.Marshal(s.plan().Dry(), json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"schema_version":1,"source":"/gen/42","saved_at":"2026-11-29T11:55:00Z","notices":[],"sessions":[` +
		`{"name":"work","action":"create","reason":"","panes":[` +
		`{"window":1,"index":0,"verdict":"resume","reason":"its conversation is there; seen","hint":"",` +
		`"record":{"plugin_id":"phux.agents","integration_id":"claude-code","native_id":"` + id1 + `"},"result":null,"cwd":"/src/a","command":"node"},` +
		`{"window":1,"index":1,"verdict":"shell","reason":"","hint":"","record":null,"result":null,"cwd":"/src/b","title":"a shell"}]},` +
		`{"name":"other","action":"create","reason":"","panes":[]}]}`
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOutcome(t *testing.T) {
	exited, running := Exited, Running
	pane := func(v Verdict, r *string) []PaneReport { return []PaneReport{{Verdict: v, Result: r}} }
	ok := SessionReport{Action: Create, Panes: pane(Resume, &running)}
	for _, c := range []struct {
		name string
		want Outcome
		s    []SessionReport
	}{
		{"nothing", Done, nil},
		{"all well", Done, []SessionReport{ok}},
		{"all there", Done, []SessionReport{{Action: SkipExisting, Panes: pane(AlreadyLive, nil)}}},
		{"a placeholder", Partial, []SessionReport{ok, {Action: Create, Panes: pane(CwdMissing, nil)}}},
		{"an exit", Partial, []SessionReport{{Action: Create, Panes: pane(Resume, &exited)}}},
		{"a refusal beside a success", Partial, []SessionReport{ok, {Action: Refuse}}},
		{"a refusal beside one that is there", Refused, []SessionReport{{Action: SkipExisting}, {Action: Refuse}}},
		{"a refusal", Refused, []SessionReport{{Action: Refuse}}},
		{"a failure", Failed, []SessionReport{{Action: Create, Error: "x"}, {Action: Refuse}}},
		{"a failure beside a success", Partial, []SessionReport{{Action: Create, Error: "x"}, ok}},
	} {
		if got := (&Report{Sessions: c.s}).Outcome(); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
