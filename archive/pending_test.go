package archive

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/phux-agent/phux-agent/metadata"
)

func TestPending(t *testing.T) {
	type step struct {
		live []string // instance, sessions…
		want []string // what the generation says
	}
	for name, steps := range map[string][]step{
		"a new life starts with what the last one held": {
			{[]string{"L1", "work=a,b", "shells"}, []string{"work=a,b", "shells"}},
			{[]string{"L2", "0"}, []string{"0", "[work=a,b from 1]", "[shells from 1]"}},
			{[]string{"L2", "0", "x=c"}, []string{"0", "x=c", "[work=a,b from 1]", "[shells from 1]"}},
			{[]string{"L3", "0"}, []string{"0", "[x=c from 3]", "[work=a,b from 1]", "[shells from 1]"}},
		},
		"restored sessions are no longer pending": {
			{[]string{"L1", "work=a,b", "other=c"}, []string{"work=a,b", "other=c"}},
			{[]string{"L2", "0"}, []string{"0", "[work=a,b from 1]", "[other=c from 1]"}},
			{[]string{"L2", "0", "work=a,b"}, []string{"0", "work=a,b", "[other=c from 1]"}},
			{[]string{"L2", "0", "work=a,b", "other=c"}, []string{"0", "work=a,b", "other=c"}},
		},
		"a placeholder's record is not pending twice": {
			{[]string{"L1", "work=a,b"}, []string{"work=a,b"}},
			{[]string{"L2", "work=a,b?"}, []string{"work=a,b"}},
			{[]string{"L3", "0"}, []string{"0", "[work=a,b from 2]"}},
		},
		"a session of this life that was closed is gone": {
			{[]string{"L1", "work=a", "other=b"}, []string{"work=a", "other=b"}},
			{[]string{"L1", "work=a"}, []string{"work=a"}},
			{[]string{"L2", "work=a"}, []string{"work=a"}},
		},
		"a conversation that came back elsewhere leaves the pending session": {
			{[]string{"L1", "work=a,b"}, []string{"work=a,b"}},
			{[]string{"L2", "x=a"}, []string{"x=a", "[work=b from 1]"}},
			{[]string{"L2", "x=a", "y=b"}, []string{"x=a", "y=b"}},
		},
		"a name that was taken by hand": {
			{[]string{"L1", "work=a,b"}, []string{"work=a,b"}},
			{[]string{"L2", "work=c"}, []string{"work=c", "[work (pending 1)=a,b from 1]"}},
			{[]string{"L2", "work=c", "work (pending 1)"}, []string{"work=c", "work (pending 1)", "[work (pending 1, 2)=a,b from 1]"}},
			// its own again as soon as it is free
			{[]string{"L2", "x=c"}, []string{"x=c", "[work=a,b from 1]"}},
		},
		"two pending sessions of one name": {
			{[]string{"L1", "work=a"}, []string{"work=a"}},
			{[]string{"L2", "work=b"}, []string{"work=b", "[work (pending 1)=a from 1]"}},
			{[]string{"L3", "0"}, []string{"0", "[work=b from 2]", "[work (pending 1)=a from 1]"}},
			{[]string{"L3", "0", "work=b"}, []string{"0", "work=b", "[work (pending 1)=a from 1]"}},
			{[]string{"L3", "0", "work=b,a"}, []string{"0", "work=b,a"}},
		},
		"shells under a name that exists": {
			{[]string{"L1", "0", "work=a"}, []string{"0", "work=a"}},
			{[]string{"L2", "0"}, []string{"0", "[work=a from 1]"}},
		},
		"ended records are carried too": {
			{[]string{"L1", "work=a."}, []string{"work=a"}},
			{[]string{"L2", "0"}, []string{"0", "[work=a from 1]"}},
		},
		"what only a held generation saw": {
			{[]string{"L1", "work=a,b", "other=c,d"}, []string{"work=a,b", "other=c,d"}},
			{[]string{"L1", "work=new"}, []string{"work=new"}}, // held: shrunk
			{[]string{"L2", "0"}, []string{"0", "[work=a,b from 1]", "[other=c,d from 1]", "[work (pending 2)=new from 2]"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			for i, s := range steps {
				got := b.save(ws(s.live[0], s.live[1:]...))
				if d := cmp.Diff(s.want, said(got.Archive)); d != "" {
					t.Fatalf("step %d: %s", i+1, d)
				}
				onDisk, err := b.Get(got.Generation)
				if err != nil || cmp.Diff(s.want, said(onDisk.Archive)) != "" {
					t.Fatalf("step %d: on disk: %v %v", i+1, said(onDisk.Archive), err)
				}
				b.clock = b.clock.Add(-30 * time.Second)
			}
		})
	}
}

// A pane that came back on a conversation that it had before lists the one that it had last: nothing
// waits. Another pane's list says nothing of it.
func TestPendingOfAPaneThatWentBack(t *testing.T) {
	for _, c := range []struct {
		key, integration string
		want             []string
	}{
		{"the-pane", "claude-code", []string{"work=old"}},
		{"another", "claude-code", []string{"work=old", "[work (pending 1)=new from 1]"}},
		{"", "claude-code", []string{"work=old", "[work (pending 1)=new from 1]"}},
		{"the-pane", "codex", []string{"work=old", "[work (pending 1)=new from 1]"}},
	} {
		b := newBench(t)
		saved := ws("L1", "work=new")
		saved.Sessions[0].Windows[0].Panes[1].Agent.Key = "the-pane"
		b.save(saved)
		back := ws("L2", "work=old")
		p := &back.Sessions[0].Windows[0].Panes[1]
		p.Agent.Key, p.Agent.Previous, p.AgentSession.IntegrationID = c.key, []string{"new"}, c.integration
		if d := cmp.Diff(c.want, said(b.save(back).Archive)); d != "" {
			t.Errorf("pane %q of %s: %s", c.key, c.integration, d)
		}
	}
}

func TestPendingKeepsEverythingOfASession(t *testing.T) {
	b := newBench(t)
	a := full()
	a.Host.Instance, a.Sessions = "L1", a.Sessions[:1]
	first := b.save(a)
	got := b.save(ws("L2", "0"))
	want := first.Archive.Sessions[0]
	want.Active, want.Pending = false, &Pending{Since: b.clock, From: 1}
	if d := cmp.Diff(want, got.Archive.Sessions[1]); d != "" {
		t.Error(d)
	}
	since := b.clock
	got = b.save(ws("L2", "1"))
	if p := got.Archive.Sessions[1].Pending; !p.Since.Equal(since) {
		t.Errorf("waits since %v, want %v", p.Since, since)
	}
}

func TestPendingOwnName(t *testing.T) {
	b := newBench(t)
	b.save(ws("L1", "work=a"))
	got := b.save(ws("L2", "work=c"))
	if s := got.Archive.Sessions[1]; s.Name != "work (pending 1)" || s.OwnName() != "work" || s.Pending.Name != "work" {
		t.Errorf("%+v", s)
	}
	long := strings.Repeat("ä", MaxName/2)
	b = newBench(t)
	b.save(ws("L1", long+"=a"))
	got = b.save(ws("L2", long+"=c"))
	if s := got.Archive.Sessions[1]; s.OwnName() != long || len(s.Name) > MaxName || !strings.HasSuffix(s.Name, "ä (pending 1)") {
		t.Errorf("%d bytes: %q", len(s.Name), s.Name[len(s.Name)-20:])
	}
}

func TestDecline(t *testing.T) {
	b := newBench(t)
	b.save(ws("L1", "work=a", "other=b"))
	if err := b.Decline(1); err != nil {
		t.Fatal(err)
	}
	if c := b.best(); c.Generation != 1 || !slices.Equal(c.Dismissed, []string{"work", "other"}) {
		t.Errorf("best is %d, dismissed %v", c.Generation, c.Dismissed)
	}
	got := b.save(ws("L2", "0"))
	b.wantSaid(got.Archive, "0")
	if got.State != Good {
		t.Errorf("an empty workspace by consent: %s: %s", got.State, got.Reason)
	}
}

func TestDeclineWaiting(t *testing.T) {
	b := newBench(t)
	b.save(ws("L1", "work=a"))
	b.save(ws("L2", "new=n"))
	if err := b.DeclineWaiting(2, "L2"); err != nil {
		t.Fatal(err)
	}
	got := b.save(ws("L3", "0"))
	b.wantSaid(got.Archive, "0", "[new=n from 2]")
	got = b.save(ws("L3", "1"))
	b.wantSaid(got.Archive, "1", "[new=n from 2]")
}

func TestDeclinedBySave(t *testing.T) {
	b := newBench(t)
	b.save(ws("L1", "work=a", "other=b"))
	got := b.save(ws("L2", "0"), SaveOptions{Declined: []string{"work", "no such"}})
	b.wantSaid(got.Archive, "0", "[other=b from 1]")
	// It is remembered: also where the generation that left it out is not the one built on.
	if err := os.Remove(got.Path); err != nil {
		t.Fatal(err)
	}
	got = b.save(ws("L2", "1"))
	b.wantSaid(got.Archive, "1", "[other=b from 1]")
}

func TestForget(t *testing.T) {
	b := newBench(t)
	b.save(ws("L1", "work=a", "other=b"))
	b.save(ws("L2", "work=c"))
	b.wantSaid(b.best().Archive, "work=c", "[work (pending 1)=a from 1]", "[other=b from 1]")
	if err := b.Forget("work (pending 1)"); err != nil {
		t.Fatal(err)
	}
	got := b.save(ws("L2", "work=d"))
	b.wantSaid(got.Archive, "work=d", "[other=b from 1]")
	// The live one of that name was not meant.
	got = b.save(ws("L3", "0"))
	b.wantSaid(got.Archive, "0", "[work=d from 3]", "[other=b from 1]")
	if err := b.Forget("other"); err != nil {
		t.Fatal(err)
	}
	got = b.save(ws("L3", "1"))
	b.wantSaid(got.Archive, "1", "[work=d from 3]")
	// A later session of that name is another one.
	b.save(ws("L3", "other=e"))
	got = b.save(ws("L4", "0"))
	b.wantSaid(got.Archive, "0", "[other=e from 6]", "[work=d from 3]")
	if err := b.Forget("nobody"); err == nil || !strings.Contains(err.Error(), "no such session") {
		t.Error(err)
	}
}

func TestForgetByOwnName(t *testing.T) {
	b := newBench(t)
	b.save(ws("L1", "work=a"))
	b.save(ws("L2", "work=c"))
	b.save(ws("L2", "x=c", "y=d"))
	b.wantSaid(b.best().Archive, "x=c", "y=d", "[work=a from 1]")
	b.save(ws("L2", "work=z"), SaveOptions{Accept: true})
	b.save(ws("L3", "work=q"))
	b.wantSaid(b.best().Archive, "work=q", "[work (pending 4)=z from 4]", "[work (pending 1)=a from 1]")
}

func TestSpoiltDismissalsDismissNothing(t *testing.T) {
	b := newBench(t)
	b.save(ws("L1", "work=a"))
	if err := b.Forget("work"); err != nil {
		t.Fatal(err)
	}
	l, err := b.list()
	if err != nil || len(l.dismiss) != 1 {
		t.Fatal(l.dismiss, err)
	}
	path := b.Dir + "/" + l.dismiss[0]
	for _, text := range []string{"", "{", `{"generation":9,"sessions":[{"session":"work","from":1}]}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got := b.save(ws("L2", fmt.Sprintf("s%d", len(text))))
		if !slices.Contains(said(got.Archive), "[work=a from 1]") {
			t.Errorf("%q: %v", text, said(got.Archive))
		}
	}
}

func TestTooOld(t *testing.T) {
	const day = 24 * time.Hour
	b := newBench(t)
	b.save(ws("L1", "work=a"))
	b.clock = b.clock.Add(300 * day) // the machine was off: the wait begins now
	got := b.save(ws("L2", "0"))
	b.wantSaid(got.Archive, "0", "[work=a from 1]")
	for i := range 10 {
		b.clock = b.clock.Add(3 * day)
		got = b.save(ws("L2", fmt.Sprint("n", i))) // the last is the first that is too late; one wrong clock must not decide
		b.wantSaid(got.Archive, fmt.Sprint("n", i), "[work=a from 1]")
	}
	got = b.save(ws("L2", "last"))
	b.wantSaid(got.Archive, "last")
	if got.State != Good {
		t.Errorf("%s: %s", got.State, got.Reason)
	}
}

// A clock that stays wrong, and one that is set again and again: what waits is carried on.
func TestAClockThatStaysAheadLosesNothing(t *testing.T) {
	const year = 365 * 24 * time.Hour
	b := newBench(t)
	b.save(ws("L1", "work=a"))
	for i, set := range []time.Duration{0, year, year, year, 0, 2 * year, 2 * year, -year, 2 * year} {
		b.set = set
		got := b.save(ws(fmt.Sprintf("L%d", 2+i/3), fmt.Sprint(i)))
		if !slices.Contains(said(got.Archive), "[work=a from 1]") {
			t.Fatalf("save %d, with the clock set by %s: %q", i, set, said(got.Archive))
		}
	}
}

func TestAClockThatIsWrongForOnceLosesNothing(t *testing.T) {
	for _, jump := range []time.Duration{-50 * 365 * 24 * time.Hour, 70 * 365 * 24 * time.Hour} {
		b := newBench(t)
		b.save(ws("L1", "work=a"))
		right := b.clock
		b.clock = b.clock.Add(jump)
		b.saveNow(ws("L2", "0"))
		b.clock = right.Add(time.Hour)
		b.saveNow(ws("L2", "1"))
		got := b.save(ws("L2", "2"))
		b.wantSaid(got.Archive, "2", "[work=a from 1]")
	}
}

// Whatever people do between saves and reboots: a conversation that a server held when it died is
// in every later generation, until it is forgotten, or lives again and is closed then.
func TestNothingIsLost(t *testing.T) {
	names := []string{"work", "other", "0", "work (pending 1)"}
	rapid.Check(t, func(r *rapid.T) {
		b := newBench(t)
		life, fresh := 1, 0
		live := map[string][]string{}
		waits, forgotten := map[string]bool{}, map[string]bool{}
		capture := func() *Archive {
			a := ws(fmt.Sprint("L", life))
			for _, name := range slices.Sorted(maps.Keys(live)) {
				a.Sessions = append(a.Sessions, ws("", name+"="+strings.Join(live[name], ",")).Sessions...)
			}
			return a
		}
		ids := func(a *Archive) map[string]bool {
			out := map[string]bool{}
			for _, x := range a.records() {
				out[x.id.NativeID] = true
			}
			return out
		}
		newestGood := func() Choice {
			c, err := b.Best()
			if err != nil {
				r.Fatal(err)
			}
			return c
		}
		save := func() {
			b.clock = b.clock.Add(time.Duration(rapid.IntRange(1, 100).Draw(r, "seconds")) * time.Second)
			got, err := b.Save(capture(), SaveOptions{})
			if err != nil {
				r.Fatal(err)
			}
			if got.Generation == 0 || got.State == Corrupt {
				r.Fatalf("%+v", got)
			}
			have := ids(got.Archive)
			for id := range waits {
				if !have[id] {
					r.Fatalf("conversation %s is lost: %v", id, said(got.Archive))
				}
			}
			seen := map[metadata.Identity]string{}
			for _, s := range got.Archive.Sessions {
				s.eachPane(func(p *Pane) {
					if p.AgentSession == nil {
						return
					}
					if by, ok := seen[p.AgentSession.Identity()]; ok {
						r.Fatalf("%s stands in %q and %q", p.AgentSession.NativeID, by, s.Name)
					}
					seen[p.AgentSession.Identity()] = s.Name
				})
			}
			for _, s := range live {
				for _, id := range s {
					delete(waits, id)
					delete(forgotten, id) // it lives again
				}
			}
		}
		live["0"] = nil
		save()
		r.Repeat(map[string]func(*rapid.T){
			"launch": func(r *rapid.T) {
				name := rapid.SampledFrom(names).Draw(r, "name")
				fresh++
				live[name] = append(live[name], fmt.Sprintf("id%d", fresh))
			},
			"close": func(r *rapid.T) { delete(live, rapid.SampledFrom(names).Draw(r, "name")) },
			"restore": func(r *rapid.T) {
				for _, s := range newestGood().Archive.Sessions {
					if _, there := live[s.Name]; there || s.Pending == nil || !rapid.Bool().Draw(r, "this one") {
						continue
					}
					running := map[string]bool{}
					for _, l := range live {
						for _, id := range l {
							running[id] = true
						}
					}
					var back []string
					s.eachPane(func(p *Pane) {
						if p.AgentSession != nil && !running[p.AgentSession.NativeID] {
							back = append(back, p.AgentSession.NativeID)
						}
					})
					live[s.Name] = back
				}
				save()
			},
			"save": func(*rapid.T) { save() },
			"reboot": func(*rapid.T) {
				c := newestGood()
				for _, e := range append(c.Newer, c.Entry) {
					maps.Copy(waits, ids(e.Archive))
				}
				for id := range forgotten {
					delete(waits, id)
				}
				life++
				clear(live)
				live["0"] = nil
			},
			"forget": func(r *rapid.T) {
				for _, s := range newestGood().Archive.Sessions {
					if s.Pending == nil || !rapid.Bool().Draw(r, "this one") {
						continue
					}
					if err := b.Forget(s.Name); err != nil {
						r.Fatal(err)
					}
					s.eachPane(func(p *Pane) {
						if p.AgentSession != nil {
							delete(waits, p.AgentSession.NativeID)
							forgotten[p.AgentSession.NativeID] = true
						}
					})
					return
				}
			},
		})
	})
}
