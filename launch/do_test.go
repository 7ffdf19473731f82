package launch

import (
	"bytes"
	"context"
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/memory"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
)

func (r *rig) do(q Request) (*Draft, *Result, error) {
	r.t.Helper()
	d := r.prepare(q)
	res, err := Do(context.Background(), r.e, q, d)
	return d, res, err
}

func TestDo(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(r *rig, q *Request)
	}{
		{"in a session that is not there", func(*rig, *Request) {}},
		{"in a session that is there", func(r *rig, q *Request) { r.session("work") }},
		{"beside another session", func(r *rig, q *Request) { r.session("other") }},
		{"beside a pane", func(r *rig, q *Request) { q.Place, q.Target = host.SplitH, r.session("work") }},
		{"below a pane, in the session that it is in", func(r *rig, q *Request) {
			q.Place, q.Target, q.Session = host.SplitV, r.session("work"), ""
		}},
		{"on an older host", func(r *rig, q *Request) { r.session("work"); r.host.SetOlder(true) }},
		{"with its session, on an older host", func(r *rig, q *Request) { r.host.SetOlder(true) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			q := r.request("demo")
			c.set(r, &q)
			before := r.panes()
			d, res, err := r.do(q)
			must(t, err)
			want := &Result{Action: Created, Terminal: res.Terminal, Session: "work", Record: d.Record, Restorable: true, NotPreserved: []string{}}
			if diff := cmp.Diff(want, res); diff != "" {
				t.Error(diff)
			}
			after := r.panes()
			if len(after) != len(before)+1 {
				t.Fatalf("%d panes, and %d before", len(after), len(before))
			}
			p := after[res.Terminal]
			rec, err := metadata.DecodeAgentSession(p.Meta[metadata.KeyAgentSession])
			must(t, err)
			facts, err := metadata.DecodeLaunchFacts(p.Meta[metadata.KeyAgentLaunch])
			must(t, err)
			agent, err := metadata.DecodeAgent(p.Meta[metadata.KeyAgent])
			must(t, err)
			if rec != *d.Record || facts.PaneKey != d.Facts.PaneKey || facts.Epoch != 1 || agent.Name != "demo" {
				t.Errorf("record %+v, facts %+v, agent %+v", rec, facts, agent)
			}
			// The pane's own process would take the claim over by the ticket in its guard.
			claims := r.claims()
			if len(claims) != 1 || claims[0].Identity != rec.Identity() || claims[0].Place.PaneKey != facts.PaneKey {
				t.Fatalf("claims %+v", claims)
			}
			guard, err := owner.DecodeGuard(r.host.Started()[len(r.host.Started())-1].Guard)
			must(t, err)
			if guard.Ticket != claims[0].Ticket || guard.Identity != rec.Identity() || guard.Expect != owner.Absent {
				t.Errorf("guard %+v", guard)
			}
		})
	}
}

// lying is a host whose answers about new panes are edited.
type lying struct {
	host.Host
	edit func(*host.Started)
}

func (l lying) Spawn(ctx context.Context, s host.Spawn) (*host.Started, error) {
	st, err := l.Host.Spawn(ctx, s)
	if err == nil {
		l.edit(st)
	}
	return st, err
}

func (l lying) Create(ctx context.Context, c host.CreateSession) (*host.Created, error) {
	made, err := l.Host.Create(ctx, c)
	if err == nil {
		l.edit(&made.Windows[0][0])
	}
	return made, err
}

// A failure leaves nothing of the call: no pane, no claim. What was there before stays.
func TestDoUndoesWhatItDid(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		name string
		set  func(r *rig)
		want func(error) bool
	}{
		{
			"the spawn fails", func(r *rig) { r.host.Fail(memory.StepSpawn, boom); r.host.Fail(memory.StepCreate, boom) },
			func(err error) bool { return errors.Is(err, boom) },
		},
		{
			"the store fails", func(r *rig) { r.host.Fail(memory.StepStore, boom) },
			func(err error) bool { return errors.Is(err, boom) },
		},
		{
			"the agent does not start", func(r *rig) { r.host.Fail(memory.StepStart, boom) },
			func(err error) bool { return is[*StartError](err) && errors.Is(err, boom) },
		},
		{"one byte of the record differs", func(r *rig) {
			r.e.Host = lying{r.host, func(s *host.Started) { s.Meta[metadata.KeyAgentSession][3] ^= 1 }}
		}, is[*ReadBackError]},
		{"the record is read back without its last byte", func(r *rig) {
			r.e.Host = lying{r.host, func(s *host.Started) {
				s.Meta[metadata.KeyAgentSession] = bytes.TrimSuffix(s.Meta[metadata.KeyAgentSession], []byte("}"))
			}}
		}, is[*ReadBackError]},
		{"the record is not read back", func(r *rig) {
			r.e.Host = lying{r.host, func(s *host.Started) { delete(s.Meta, metadata.KeyAgentSession) }}
		}, is[*ReadBackError]},
		{"the facts differ", func(r *rig) {
			r.e.Host = lying{r.host, func(s *host.Started) { s.Meta[metadata.KeyAgentLaunch] = []byte("{}") }}
		}, is[*ReadBackError]},
		{
			"an older host cannot store", func(r *rig) { r.host.SetOlder(true); r.host.Fail(memory.StepSwap, boom) },
			func(err error) bool { return is[*ReadBackError](err) && errors.Is(err, boom) },
		},
		{"an older host stores something else", func(r *rig) {
			r.host.SetOlder(true)
			r.host.Tamper(func(k metadata.Key, v []byte) []byte { return append(v, ' ') })
		}, is[*ReadBackError]},
		{"an older host whose pane holds a record already", func(r *rig) {
			r.host.SetOlder(true)
			r.e.Host = lying{r.host, func(s *host.Started) {
				must(r.t, r.host.Edit(s.Terminal, func(p *host.Pane) {
					p.Meta[metadata.KeyAgentSession] = []byte(`{"plugin_id":"p","integration_id":"i","native_id":"n"}`)
				}))
			}}
		}, func(err error) bool { return is[*ReadBackError](err) && errors.Is(err, host.ErrConflict) }},
	} {
		for _, session := range []string{"work", "other"} { // the request's, or one beside it
			t.Run(c.name+"/"+session, func(t *testing.T) {
				r := newRig(t)
				r.session(session)
				other := metadata.Identity{IntegrationID: "demo", NativeID: idB}
				must(t, r.e.Claims.Rebuild(other, r.sleeper(), owner.Place{Terminal: "%9"}))
				before, claims := r.panes(), r.claims()
				c.set(r)
				_, res, err := r.do(r.request("demo"))
				if res != nil || !c.want(err) {
					t.Fatalf("result %v, error %v", res, err)
				}
				if diff := cmp.Diff(before, r.panes()); diff != "" {
					t.Errorf("panes: %s", diff)
				}
				if diff := cmp.Diff(claims, r.claims()); diff != "" {
					t.Errorf("claims: %s", diff)
				}
			})
		}
	}
}

func TestDoUndoesAlsoWhenItIsGivenUp(t *testing.T) {
	r := newRig(t)
	r.session("work")
	before := r.panes()
	ctx, cancel := context.WithCancel(context.Background())
	r.e.Host = lying{r.host, func(s *host.Started) { s.Err = context.Canceled; cancel() }}
	q := r.request("demo")
	_, err := Do(ctx, r.e, q, r.prepare(q))
	if e, ok := errors.AsType[*StartError](err); !ok || e.Left != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, r.panes()); diff != "" {
		t.Error(diff)
	}
}

// One identity has one owner: neither create nor resume takes what a live process claims.
func TestDoRefusesWhatIsLive(t *testing.T) {
	r := newRig(t)
	r.converse(idA)
	r.session("work")
	before := r.panes()
	id := metadata.Identity{IntegrationID: "demo", NativeID: idA}
	p := r.sleeper()
	must(t, r.e.Claims.Rebuild(id, p, owner.Place{Host: "tmux-default", Terminal: "%7"}))
	claims := r.claims()

	r.e.mint = func(*templateT) (string, error) { return idA, nil }
	for _, q := range []Request{{Resume: idA}, {}} {
		q.Integration, q.Dir, q.Session = "demo", r.dir, "work"
		if q.Resume == "" {
			must(t, os.RemoveAll(r.home+"/.demo"))
		}
		_, res, err := r.do(q)
		live, ok := errors.AsType[*owner.LiveError](err)
		if res != nil || !ok {
			t.Fatalf("resume %q: result %v, error %v", q.Resume, res, err)
		}
		if live.Live.Process != p || live.Live.Place.Terminal != "%7" {
			t.Errorf("%+v", live.Live)
		}
	}
	if diff := cmp.Diff(before, r.panes()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(claims, r.claims()); diff != "" {
		t.Error(diff)
	}
}

func TestDoResumes(t *testing.T) {
	r := newRig(t)
	r.converse(idA)
	q := r.request("demo")
	q.Resume = idA
	_, res, err := r.do(q)
	must(t, err)
	if res.Action != Resumed || res.Record.NativeID != idA {
		t.Errorf("%+v", res)
	}
	guard, err := owner.DecodeGuard(r.host.Started()[0].Guard)
	must(t, err)
	if guard.Expect != owner.Present {
		t.Errorf("guard %+v", guard)
	}
}

func TestDoWithoutARecord(t *testing.T) {
	r := newRig(t)
	_, res, err := r.do(r.request("late"))
	must(t, err)
	if res.Record != nil || res.Restorable || res.Reason == "" {
		t.Errorf("%+v", res)
	}
	p := r.panes()[res.Terminal]
	if _, ok := p.Meta[metadata.KeyAgentSession]; ok {
		t.Error("a record came from nowhere")
	}
	facts, err := metadata.DecodeLaunchFacts(p.Meta[metadata.KeyAgentLaunch])
	must(t, err)
	if facts.IntegrationID != "late" || facts.PluginID != "demo.agents" {
		t.Errorf("%+v", facts)
	}
	if len(r.claims()) != 0 || r.host.Started()[0].Guard != nil {
		t.Error("nothing was to be claimed")
	}
}

func TestDoNotesALongPromptInPart(t *testing.T) {
	r := newRig(t)
	q := r.request("demo")
	q.Extra = []string{"--short", string(bytes.Repeat([]byte("prompt "), 2000)), "bad \xff utf8"}
	d, res, err := r.do(q)
	must(t, err)
	if diff := cmp.Diff(q.Extra, res.NotPreserved); diff != "" {
		t.Error(diff)
	}
	if got := d.Start.Argv[len(d.Start.Argv)-1]; got != q.Extra[2] {
		t.Errorf("argument %q", got)
	}
	facts, err := metadata.DecodeLaunchFacts(r.panes()[res.Terminal].Meta[metadata.KeyAgentLaunch])
	must(t, err)
	if diff := cmp.Diff([]string{"--short"}, facts.NotPreserved); diff != "" {
		t.Error(diff)
	}
}

// Two launches that race for a session's name end in one session with two panes.
func TestDoRacesForASession(t *testing.T) {
	r := newRig(t)
	raced := false
	r.host.Hook(func(_ context.Context, c memory.Call) error {
		if c.Step == memory.StepCreate && !raced {
			raced = true
			r.session("work")
		}
		return nil
	})
	_, res, err := r.do(r.request("demo"))
	must(t, err)
	if got := len(r.panes()); got != 2 || res.Session != "work" {
		t.Errorf("%d panes, %+v", got, res)
	}
}
