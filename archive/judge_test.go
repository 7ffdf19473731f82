package archive

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// auto is a save that nobody asked for.
var auto = SaveOptions{Auto: true}

func (b *bench) wantJudged(got Saved, want State) {
	b.Helper()
	if got.State != want {
		b.Errorf("%q is %s, want %s: %s", said(got.Archive), got.State, want, got.Reason)
	}
}

// live is a workspace of n conversations, each in a session of its own.
func live(n int) *Archive {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("s%d=c%d", i, i))
	}
	return ws("L1", append(names, "shells")...)
}

// A shutdown takes its time, and a save comes after each loss: however slowly it goes and however
// little goes at a time, none of them takes the place of what was there before.
func TestASlowShutdownIsHeld(t *testing.T) {
	for _, step := range []time.Duration{0, time.Second, 5 * time.Second, ShutdownTime / 10} {
		t.Run(step.String(), func(t *testing.T) {
			b := newBench(t)
			full := b.save(live(10), auto)
			b.clock = b.clock.Add(time.Hour)
			for n := 9; n >= 0; n-- {
				got := b.saveNow(live(n), auto)
				if got.State == Good {
					t.Errorf("with %d of 10 left it is good", n)
				}
				b.clock = b.clock.Add(step)
			}
			if c := b.best(); c.Generation != full.Generation || len(c.Newer) != 10 {
				t.Errorf("a restore takes %d, and passes %d over", c.Generation, len(c.Newer))
			}
			// And the next life begins with everything.
			got := b.save(ws("L2", "0"), auto)
			if live, pending := got.Archive.Records(); live != 0 || pending != 10 || got.State != Good {
				t.Errorf("%d live, %d pending, %s", live, pending, got.State)
			}
		})
	}
}

// What somebody closes and keeps working without is held for a while, and not for ever.
func TestWhatAPersonClosesSettles(t *testing.T) {
	t.Run("one pane", func(t *testing.T) {
		b := newBench(t)
		b.save(live(10), auto)
		b.wantJudged(b.save(live(9), auto), Settling)
		b.clock = b.clock.Add(ShutdownTime - time.Second)
		b.wantJudged(b.saveNow(live(9), auto), Settling)
		b.clock = b.clock.Add(time.Second)
		got := b.saveNow(live(9), auto)
		b.wantJudged(got, Good)
		if !got.Unchanged || b.best().Generation != got.Generation {
			t.Errorf("%+v", got)
		}
	})
	t.Run("eight at once, and work goes on", func(t *testing.T) {
		b := newBench(t)
		b.save(live(10), auto)
		b.wantJudged(b.save(live(2), auto), HeldFew)
		for i := range 3 { // windows come and go
			a := live(2)
			a.Sessions[0].Windows[0].Name = fmt.Sprint(i)
			b.clock = b.clock.Add(ShutdownTime / 3)
			got := b.saveNow(a, auto)
			if want := map[bool]State{true: Good, false: HeldFew}[i == 2]; got.State != want {
				t.Errorf("window %d: %s, want %s", i, got.State, want)
			}
		}
	})
	t.Run("each loss by itself", func(t *testing.T) {
		b := newBench(t)
		b.save(live(10), auto)
		b.wantJudged(b.save(live(9), auto), Settling)
		b.clock = b.clock.Add(ShutdownTime / 2)
		b.wantJudged(b.saveNow(live(8), auto), Settling)
		b.clock = b.clock.Add(ShutdownTime / 2) // the first has settled, the second has not
		b.wantJudged(b.saveNow(live(8), auto), Settling)
		b.clock = b.clock.Add(ShutdownTime / 2)
		b.wantJudged(b.saveNow(live(8), auto), Good)
	})
	t.Run("what was there again begins anew", func(t *testing.T) {
		b := newBench(t)
		b.save(live(10), auto)
		b.wantJudged(b.save(live(9), auto), Settling)
		a := live(8) // another is gone, and the first is back
		a.Sessions = append(a.Sessions, live(10).Sessions[9])
		b.clock = b.clock.Add(ShutdownTime / 2)
		b.wantJudged(b.saveNow(a, auto), Settling)
		b.clock = b.clock.Add(ShutdownTime / 2)
		b.wantJudged(b.saveNow(live(8), auto), Settling)
	})
	t.Run("one after the other, for a long time", func(t *testing.T) {
		b := newBench(t)
		b.save(live(60), auto)
		var got Saved
		n := 59
		for ; n > 40; n-- {
			b.clock = b.clock.Add(time.Minute)
			if got = b.saveNow(live(n), auto); got.State == Good {
				break
			}
		}
		if n > 59-int(ShutdownTime/time.Minute) || n <= 40 {
			t.Errorf("with %d left: %s", n, got.State)
		}
	})
	t.Run("a launch shows that somebody is there", func(t *testing.T) {
		b := newBench(t)
		b.save(live(10), auto)
		a := live(9)
		a.Sessions = append(a.Sessions, ws("L1", "new=n").Sessions...)
		b.wantJudged(b.saveNow(a, auto), Good)
	})
	t.Run("not where most is gone", func(t *testing.T) {
		b := newBench(t)
		b.save(live(10), auto)
		a := live(2)
		a.Sessions = append(a.Sessions, ws("L1", "new=n").Sessions...)
		b.wantJudged(b.saveNow(a, auto), HeldFew)
	})
	t.Run("a save that is asked for", func(t *testing.T) {
		b := newBench(t)
		b.save(live(10), auto)
		b.wantJudged(b.saveNow(live(9)), Good)
		b.wantJudged(b.saveNow(live(8), auto), Settling)
		got := b.saveNow(live(8))
		b.wantJudged(got, Good)
		if !got.Unchanged {
			t.Errorf("%+v", got)
		}
		b.wantJudged(b.saveNow(live(2)), HeldFew)
	})
}

// A conversation that was left for another one in its pane is not lost, nor is one that had ended.
func TestWhatIsNoLoss(t *testing.T) {
	pane := func(id string, previous ...string) *Archive {
		a := ws("L1", "work="+id, "other=b")
		a.Sessions[0].Windows[0].Panes[1].Agent.Key = "k1"
		a.Sessions[0].Windows[0].Panes[1].Agent.Previous = previous
		return a
	}
	b := newBench(t)
	b.save(pane("a"), auto)
	b.wantJudged(b.saveNow(pane("c", "a"), auto), Good)
	// But it is no sign of a person either: another pane is gone beside it.
	a := pane("d", "c", "a")
	a.Sessions = a.Sessions[:1]
	b.wantJudged(b.saveNow(a, auto), Settling)

	b = newBench(t)
	b.save(ws("L1", "work=a.,b", "other=c"), auto)
	b.wantJudged(b.saveNow(ws("L1", "work=b", "other=c"), auto), Good)
	b.wantJudged(b.saveNow(ws("L1", "work=b", "moved=c"), auto), Good)
	b.wantJudged(b.saveNow(ws("L1", "work=b?", "moved=c"), auto), Good)
}

// A conversation that was left by a /clear, and taken up again in a pane of its own, is lost with that
// pane, whatever the one lists that had it before.
func TestLossOfAConversationThatAnotherPaneHadBefore(t *testing.T) {
	full := func() *Archive {
		a := ws("L1", "work=new,old", "other=b")
		for i, p := range a.Sessions[0].Windows[0].Panes[1:] {
			p.Agent.Key = fmt.Sprint("k", i)
		}
		a.Sessions[0].Windows[0].Panes[1].Agent.Previous = []string{"old"}
		return a
	}
	b := newBench(t)
	b.save(full(), auto)
	lost := full()
	w := &lost.Sessions[0].Windows[0]
	w.Panes = w.Panes[:2]
	b.wantJudged(b.saveNow(lost, auto), Settling)
	// And is carried on where its pane is not back.
	lost.Host.Instance = "L2"
	if d := cmp.Diff([]string{"work=new", "other=b", "[work (pending 1)=old from 1]"}, said(b.saveNow(lost, auto).Archive)); d != "" {
		t.Error(d)
	}
}

// The clock may be set in the middle of a shutdown: what counts is one that nobody sets, and where
// that is not known, or in the files of an earlier version, the other.
func TestLossesAndTheClock(t *testing.T) {
	for _, set := range []time.Duration{-365 * 24 * time.Hour, 365 * 24 * time.Hour} {
		b := newBench(t)
		full := b.save(live(10), auto)
		for n := 9; n > 0; n-- {
			b.wantHeld(b.saveNow(live(n), auto))
			b.set += set
			b.clock = b.clock.Add(time.Second)
		}
		if c := b.best(); c.Generation != full.Generation {
			t.Errorf("a restore takes %d", c.Generation)
		}
	}
	b := newBench(t)
	b.Uptime = func() time.Duration { return 0 }
	b.save(live(10), auto)
	got := b.save(live(9), auto)
	b.wantJudged(got, Settling)
	if text := string(mustEncode(t, got.Archive)); strings.Contains(text, "uptime") {
		t.Error("a time that is not known is written")
	}
	b.clock = b.clock.Add(ShutdownTime)
	b.wantJudged(b.saveNow(live(9), auto), Good)
}

func (b *bench) wantHeld(got Saved) {
	b.Helper()
	if got.State == Good {
		b.Errorf("%q is good", said(got.Archive))
	}
}
