package archive

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// The generation that the last restore was made from outlives its bounds until a later save holds
// all of its conversations as running.
func TestAnUnprovenRestoreKeepsItsSource(t *testing.T) {
	for _, c := range []struct {
		name  string
		then  func(b *bench)
		stays bool
	}{
		{"nothing since", func(*bench) {}, true},
		{"a part of it runs", func(b *bench) { b.save(running(ws("L2", "work=a", "new=x"))) }, true},
		{"all of it waits", func(b *bench) { b.save(pendingAll(ws("L2", "work=a,b"))) }, true},
		{"all of it runs", func(b *bench) { b.save(running(ws("L2", "work=a,b"))) }, false},
		{"elsewhere", func(b *bench) { b.save(running(ws("L2", "there=b", "here=a"))) }, false},
		{"it went on", func(b *bench) {
			a := running(ws("L2", "work=a,c"))
			a.Sessions[0].Windows[0].Panes[2].Agent.Previous = []string{"b"}
			b.save(a)
		}, false},
		{"the rest was declined", func(b *bench) {
			b.save(running(ws("L2", "work=a", "z=z")))
			if err := b.Decline(3); err != nil {
				t.Fatal(err)
			}
			b.save(running(ws("L2", "work=a", "z=y")))
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.save(ws("L1", "old=o"))    // 1
			b.save(ws("L1", "work=y"))   // 2
			b.save(ws("L1", "work=a,b")) // 3: restored from
			b.save(ws("L1", "work=a,c")) // 4: its life's last good one
			if err := b.RememberRestore(Restored{Generation: 3, Own: 5, Instance: "L2"}); err != nil {
				t.Fatal(err)
			}
			b.save(pendingAll(ws("L2", "work=a,b", "first=f"))) // 5
			c.then(b)
			for i := range 3 {
				b.save(pendingAll(ws("L2", "work=a,b", "x="+string(rune('p'+i)))))
			}
			plan, err := b.PrunePlan(1, 0)
			if err != nil {
				t.Fatal(err)
			}
			if r, _ := b.LastRestore(); r.Proven != 0 || r.Checked != 0 {
				t.Errorf("a plan wrote %+v", r)
			}
			done, err := b.PruneNow(1, 0)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.EqualFunc(plan, done, func(x, y Judgement) bool { return x.Generation == y.Generation && x.Goes == y.Goes && x.Why == y.Why }) {
				t.Errorf("the plan %v, and what was done %v", plan, done)
			}
			left := generations(t, b.Store)
			if slices.Contains(left, 3) != c.stays || !slices.Contains(left, 4) || slices.Contains(left, 2) {
				t.Errorf("left are %v", left)
			}
			if r, _ := b.LastRestore(); (r.Proven > 0) == c.stays {
				t.Errorf("remembered: %+v", r)
			}
		})
	}
}

func running(a *Archive) *Archive { return inState(a, StateRunning) }

func pendingAll(a *Archive) *Archive { return inState(a, StatePending) }

func inState(a *Archive, state string) *Archive {
	for i := range a.Sessions {
		a.Sessions[i].eachPane(func(p *Pane) {
			if p.AgentSession == nil {
				return
			}
			if p.Agent == nil {
				p.Agent = &Agent{}
			}
			p.Agent.State = state
		})
	}
	return a
}

func TestPrevious(t *testing.T) {
	b := newBench(t)
	want := func(what string, n uint64) {
		t.Helper()
		c, err := b.Previous()
		if n == 0 {
			if !errors.Is(err, ErrNoGeneration) && !errors.Is(err, ErrNone) {
				t.Errorf("%s: %d, %v", what, c.Generation, err)
			}
			return
		}
		if err != nil || c.Generation != n {
			t.Errorf("%s: %d, %v, want %d", what, c.Generation, err, n)
		}
	}
	want("of nothing", 0)
	b.save(ws("L1", "work=a")) // 1
	want("of one", 0)
	b.save(ws("L1", "work=b")) // 2
	a := ws("L1", "work=b")
	a.Sessions[0].Windows[0].Panes[0].Title = "another"
	b.save(a) // 3 says what 2 says
	want("before one that says the same", 1)
	b.save(ws("L1", "work=c")) // 4
	want("before the newest", 3)
	remember := func(r Restored) {
		t.Helper()
		if err := b.RememberRestore(r); err != nil {
			t.Fatal(err)
		}
	}
	b.save(ws("L2", "work=c")) // 5: a restore's own
	remember(Restored{Generation: 4, Own: 5, Instance: "L2"})
	b.save(ws("L2", "work=d")) // 6
	b.save(ws("L2", "work=e")) // 7
	want("before the restore's own", 4)
	remember(Restored{Generation: 4, Own: 5, Instance: "L2", Previous: true})
	want("further back than the step before", 3)
	remember(Restored{Generation: 4, Own: 5, Instance: "L1"})
	want("a restore of another life is over", 6)
	remember(Restored{Generation: 4})
	want("a restore that has not ended", 6)
}

func TestWhatIsNoMemoryOfARestore(t *testing.T) {
	b := newBench(t)
	b.save(ws("L1", "work=a"))
	for _, text := range []string{"", "{", `{"generation":0}`, `{"generation":1,"instance":"a\u0007"}`, `[]`} {
		if err := os.WriteFile(filepath.Join(b.Dir, restoredFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if r, ok := b.LastRestore(); ok {
			t.Errorf("%q: %+v", text, r)
		}
	}
	if _, err := b.PruneNow(1, time.Hour); err != nil {
		t.Error(err)
	}
}
