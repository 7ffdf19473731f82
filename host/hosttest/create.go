package hosttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

// whole is a session of windows × panes, each with its record and program NAME-W-P.
func (r *rig) whole(name string, windows, panes int) host.CreateSession {
	c := host.CreateSession{Name: name}
	for w := range windows {
		var specs []host.PaneSpec
		for p := range panes {
			specs = append(specs, r.stay(fmt.Sprintf("%s-%d-%d", name, w, p)))
		}
		c.Windows = append(c.Windows, windowOf(fmt.Sprintf("w%d", w), specs...))
	}
	return c
}

func programsOf(c host.CreateSession) []string {
	var names []string
	for w := range c.Windows {
		for p := range c.Windows[w].Panes {
			names = append(names, fmt.Sprintf("%s-%d-%d", c.Name, w, p))
		}
	}
	return names
}

// lacks says in what a session is not what was asked for: windows and panes in order, each pane
// with its own values.
func lacks(s *host.Session, c host.CreateSession) string {
	if len(s.Windows) != len(c.Windows) {
		return fmt.Sprintf("%d windows, not %d", len(s.Windows), len(c.Windows))
	}
	for w, spec := range c.Windows {
		got := s.Windows[w]
		if len(got.Panes) != len(spec.Panes) {
			return fmt.Sprintf("window %d has %d panes, not %d", w, len(got.Panes), len(spec.Panes))
		}
		for p := range spec.Panes {
			if diff := cmp.Diff(spec.Panes[p].Meta, got.Panes[p].Meta); diff != "" {
				return fmt.Sprintf("window %d pane %d: values differ (-want +got):\n%s", w, p, diff)
			}
		}
	}
	return ""
}

// observe polls snapshots, from several clients, until stopped; see reports what is wrong
// with one.
func (r *rig) observe(see func(*host.Workspace) string) (stop func()) {
	ctx, cancel := context.WithCancel(r.ctx)
	var all sync.WaitGroup
	var once sync.Once
	polls := make([]int, 4)
	begun := make(chan struct{}, len(polls))
	for i := range polls {
		h := r.Host
		if i%2 == 1 {
			h = r.second()
		}
		all.Go(func() {
			for ctx.Err() == nil {
				w, err := look(ctx, h)
				if polls[i]++; polls[i] == 1 {
					begun <- struct{}{}
				}
				var wrong string
				switch {
				case ctx.Err() != nil:
					return
				case errors.Is(err, host.ErrNoServer):
					continue
				case err != nil:
					wrong = err.Error()
				default:
					wrong = see(w)
				}
				if wrong != "" {
					once.Do(func() { r.t.Errorf("an observer saw: %s", wrong) })
					return
				}
			}
		})
	}
	for range polls {
		<-begun
	}
	return func() {
		r.t.Helper()
		cancel()
		all.Wait()
		for i, n := range polls {
			if n < 2 {
				r.t.Errorf("observer %d looked %d times: nothing was observed", i, n)
			}
		}
	}
}

var createTests = []test{
	setAsideTest,
	{name: "whole", run: func(r *rig) {
		c := r.whole("work", 3, 3)
		out := r.create(c)
		s := r.session("work")
		if s.ID != out.Session || out.Session == "" {
			r.t.Errorf("session %q, snapshot says %q", out.Session, s.ID)
		}
		if diff := lacks(s, c); diff != "" {
			r.t.Fatal(diff)
		}
		nonces := make(map[string]bool)
		for w := range c.Windows {
			for p := range c.Windows[w].Panes {
				started, got := out.Windows[w][p], s.Windows[w].Panes[p]
				if started.Terminal != got.Terminal || started.Nonce != got.Nonce || started.PID != got.PID {
					r.t.Errorf("window %d pane %d: started %+v, seen %+v", w, p, started, got)
				}
				if started.Nonce == "" || nonces[started.Nonce] || got.PID == 0 {
					r.t.Errorf("window %d pane %d: nonce %q, pid %d", w, p, started.Nonce, got.PID)
				}
				nonces[started.Nonce] = true
				if diff := cmp.Diff(c.Windows[w].Panes[p].Meta, started.Meta); diff != "" {
					r.t.Errorf("window %d pane %d read back:\n%s", w, p, diff)
				}
				if got.Origin != host.Ours || got.Waiting || got.Dead || got.Exit != nil {
					r.t.Errorf("window %d pane %d is %+v", w, p, got)
				}
			}
		}
		if r.Caps.NoPrograms {
			return
		}
		for w := range c.Windows {
			for p := range c.Windows[w].Panes {
				run := r.ran(fmt.Sprintf("work-%d-%d", w, p))
				if started := out.Windows[w][p]; run.PID != started.PID {
					r.t.Errorf("window %d pane %d: pid %d, the program is %d", w, p, started.PID, run.PID)
				}
			}
		}
	}},
	{name: "seen whole or not at all", run: func(r *rig) {
		var asked []host.CreateSession
		for i := range 6 {
			asked = append(asked, r.whole(fmt.Sprintf("s%d", i), 2, 3))
		}
		stop := r.observe(func(w *host.Workspace) string {
			for i := range w.Sessions {
				s := &w.Sessions[i]
				at := slices.IndexFunc(asked, func(c host.CreateSession) bool { return c.Name == s.Name })
				if at < 0 {
					return fmt.Sprintf("a session %q that nobody asked for", s.Name)
				}
				if diff := lacks(s, asked[at]); diff != "" {
					return fmt.Sprintf("session %q: %s", s.Name, diff)
				}
			}
			return ""
		})
		for _, c := range asked {
			r.create(c)
		}
		stop()
	}},
	{name: "name in use", run: func(r *rig) {
		first := r.whole("work", 1, 2)
		r.create(first)
		before := r.snapshot()
		late := r.whole("work", 1, 2)
		for p := range late.Windows[0].Panes {
			late.Windows[0].Panes[p] = r.stay(fmt.Sprintf("late-%d", p))
		}
		if _, err := r.Host.Create(r.ctx, late); !errors.Is(err, host.ErrSessionExists) {
			r.t.Errorf("create: %v", err)
		}
		after := r.snapshot()
		if len(after.Sessions) != 1 || lacks(&after.Sessions[0], first) != "" || after.Sessions[0].ID != before.Sessions[0].ID {
			r.t.Errorf("after: %+v", after.Sessions)
		}
		r.neverRan("late-0", "late-1")
	}},
	{name: "one winner", run: func(r *rig) {
		clients := []host.Host{r.Host, r.second()}
		r.create(r.one("base"))
		for round := range 8 {
			name := fmt.Sprintf("race%d", round)
			var all sync.WaitGroup
			errs := make([]error, 4)
			asked := make([]host.CreateSession, len(errs))
			for i := range errs {
				asked[i] = r.whole(name, 1, 2)
				for p := range asked[i].Windows[0].Panes {
					asked[i].Windows[0].Panes[p] = r.stay(fmt.Sprintf("%s-by%d-%d", name, i, p))
				}
				all.Go(func() { _, errs[i] = clients[i%2].Create(r.ctx, asked[i]) })
			}
			all.Wait()
			winner := -1
			for i, err := range errs {
				switch {
				case err == nil && winner < 0:
					winner = i
				case err == nil:
					r.t.Fatalf("round %d has two winners", round)
				case !errors.Is(err, host.ErrSessionExists):
					r.t.Errorf("round %d: %v", round, err)
				}
			}
			if winner < 0 {
				r.t.Fatalf("round %d has no winner: %v", round, errs)
			}
			if diff := lacks(r.session(name), asked[winner]); diff != "" {
				r.t.Fatalf("round %d: %s", round, diff)
			}
			if got := len(r.names()); got != round+2 {
				r.t.Errorf("round %d leaves %v", round, r.names())
			}
			if r.Caps.NoPrograms {
				continue
			}
			for i := range errs {
				for p := range 2 {
					name := fmt.Sprintf("%s-by%d-%d", name, i, p)
					if i == winner {
						r.ran(name)
					} else if len(r.runs(name)) > 0 {
						r.t.Errorf("the loser's %s ran", name)
					}
				}
			}
		}
	}},
	{name: "side by side", run: func(r *rig) {
		clients := []host.Host{r.Host, r.second()}
		asked := make([]host.CreateSession, 6)
		errs := make([]error, len(asked))
		var all sync.WaitGroup
		for i := range asked {
			asked[i] = r.whole(fmt.Sprintf("s%d", i), 2, 2)
			all.Go(func() { _, errs[i] = clients[i%2].Create(r.ctx, asked[i]) })
		}
		all.Wait()
		for i, err := range errs {
			if err != nil {
				r.t.Errorf("session %d: %v", i, err)
			} else if diff := lacks(r.session(asked[i].Name), asked[i]); diff != "" {
				r.t.Errorf("session %d: %s", i, diff)
			}
		}
	}},
	{name: "refused leaves nothing", run: func(r *rig) {
		r.create(r.one("base"))
		for name, spoil := range map[string]func(*host.CreateSession){
			"no name":              func(c *host.CreateSession) { c.Name = "" },
			"name is no text":      func(c *host.CreateSession) { c.Name = "a\xffb" },
			"name with a newline":  func(c *host.CreateSession) { c.Name = "a\nb" },
			"no windows":           func(c *host.CreateSession) { c.Windows = nil },
			"active window":        func(c *host.CreateSession) { c.Active = 2 },
			"active pane":          func(c *host.CreateSession) { c.Windows[1].Active = -1 },
			"index twice":          func(c *host.CreateSession) { c.Windows[0].Index, c.Windows[1].Index = 4, 4 },
			"no layout":            func(c *host.CreateSession) { c.Windows[1].Layout = host.Cell{} },
			"layout of fewer":      func(c *host.CreateSession) { c.Windows[1].Layout = host.Cell{Cols: 80, Rows: 24} },
			"layout does not fill": func(c *host.CreateSession) { c.Windows[1].Layout.Cols++ },
			"no panes":             func(c *host.CreateSession) { c.Windows[1].Panes = nil },
			"zero byte":            func(c *host.CreateSession) { c.Windows[1].Panes[1].Start.Argv[3] = "a\x00b" },
			"no program":           func(c *host.CreateSession) { c.Windows[1].Panes[1].Start.Argv = nil },
			"relative program":     func(c *host.CreateSession) { c.Windows[1].Panes[1].Start.Argv[0] = "sh" },
			"relative directory":   func(c *host.CreateSession) { c.Windows[1].Panes[1].Start.Dir = "tmp" },
			"environment":          func(c *host.CreateSession) { c.Windows[1].Panes[1].Start.Set = []string{"=x"} },
			"record too long": func(c *host.CreateSession) {
				c.Windows[1].Panes[1].Meta[metadata.KeyAgentSession] = bytes.Repeat([]byte("x"), metadata.MaxRecord+1)
			},
		} {
			c := r.whole("doomed", 2, 2)
			spoil(&c)
			if _, err := r.Host.Create(r.ctx, c); !errors.Is(err, host.ErrRequest) && !errors.Is(err, host.ErrLayout) && !errors.Is(err, host.ErrName) {
				r.t.Errorf("%s: %v", name, err)
			}
			if got := r.names(); !slices.Equal(got, []string{"base"}) {
				r.t.Fatalf("%s leaves %q", name, got)
			}
		}
		r.neverRan(programsOf(r.whole("doomed", 2, 2))...)
	}},
	{name: "given up", run: func(r *rig) {
		// The context ends at some point of the create: then it is whole, or nothing is there
		// and no program starts.
		r.create(r.one("base"))
		var never []string
		gone := 0
		for i := range 20 {
			c := r.whole(fmt.Sprintf("s%d", i), 2, 3)
			ctx, cancel := context.WithTimeout(r.ctx, time.Duration(i)*2*time.Millisecond)
			_, err := r.Host.Create(ctx, c)
			cancel()
			if err == nil {
				if diff := lacks(r.session(c.Name), c); diff != "" {
					r.t.Errorf("create %d succeeds: %s", i, diff)
				}
				continue
			}
			gone++
			never = append(never, programsOf(c)...)
			r.until(func() string {
				if slices.Contains(r.names(), c.Name) {
					return fmt.Sprintf("create %d fails with %v, and leaves its session", i, err)
				}
				return ""
			})
		}
		if gone == 0 {
			r.t.Error("no create was given up: nothing was tested")
		}
		r.neverRan(never...)
		for _, name := range r.names() {
			if name != "base" && name != "barrier" && name[0] != 's' {
				r.t.Errorf("a session %q is left", name)
			}
		}
	}},
	{name: "indexes, active, zoom", run: func(r *rig) {
		c := r.whole("work", 3, 3)
		for w, index := range []int{7, 3, 12} {
			c.Windows[w].Index, c.Windows[w].Active = index, w
		}
		c.Active = 1
		c.Windows[2].Zoomed = true
		out := r.create(c)
		s := r.session("work")
		if len(s.Windows) != 3 {
			r.t.Fatalf("%d windows", len(s.Windows))
		}
		for at, w := range []int{1, 0, 2} {
			got, spec := s.Windows[at], c.Windows[w]
			if got.Index != spec.Index || got.Name != spec.Name || got.Active != (w == c.Active) || got.Zoomed != spec.Zoomed || got.AutomaticName {
				r.t.Errorf("window %d is %+v", at, got)
			}
			if diff := cmp.Diff(spec.Layout, got.Layout); diff != "" {
				r.t.Errorf("window %d: layout (-want +got):\n%s", at, diff)
			}
			for p := range got.Panes {
				if got.Panes[p].Terminal != out.Windows[w][p].Terminal || got.Panes[p].Active != (p == spec.Active) {
					r.t.Errorf("window %d pane %d is %+v", at, p, got.Panes[p])
				}
				if p > 0 && got.Panes[p].Index <= got.Panes[p-1].Index {
					r.t.Errorf("window %d: panes are not in order of their index", at)
				}
			}
		}
	}},
	{name: "next free index", run: func(r *rig) {
		r.create(r.whole("work", 3, 1))
		var last int
		for i, w := range r.session("work").Windows {
			if w.Name != fmt.Sprintf("w%d", i) || i > 0 && w.Index <= last {
				r.t.Errorf("window %d is %q at %d", i, w.Name, w.Index)
			}
			last = w.Index
		}
	}},
	{name: "automatic name", run: func(r *rig) {
		c := r.whole("work", 2, 1)
		c.Windows[0].AutomaticName = true
		r.create(c)
		for i, w := range r.session("work").Windows {
			if w.AutomaticName != (i == 0) {
				r.t.Errorf("window %d: automatic is %v", i, w.AutomaticName)
			}
		}
	}},
	{name: "session directory", run: func(r *rig) {
		c := r.one("work")
		c.Dir = r.dir("session dir")
		r.create(c)
		if got := r.session("work").Dir; got != c.Dir {
			r.t.Errorf("directory is %q, not %q", got, c.Dir)
		}
	}},
	{name: "kill", run: func(r *rig) {
		out := r.create(r.whole("work", 2, 2))
		r.create(r.one("base"))
		gone := out.Windows[0][1].Terminal
		if err := r.Host.Kill(r.ctx, gone); err != nil {
			r.t.Fatal(err)
		}
		w := r.snapshot()
		if pane(w, gone) != nil {
			r.t.Error("the pane is still there")
		}
		for _, kept := range []host.Terminal{out.Windows[0][0].Terminal, out.Windows[1][0].Terminal, out.Windows[1][1].Terminal} {
			if pane(w, kept) == nil {
				r.t.Errorf("%v is gone", kept)
			}
		}
		if err := r.Host.Kill(r.ctx, gone); !errors.Is(err, host.ErrNoTerminal) {
			r.t.Errorf("kill of what is gone: %v", err)
		}
		if err := r.Host.Swap(r.ctx, gone, metadata.KeyAgent, nil, []byte("x")); !errors.Is(err, host.ErrNoTerminal) {
			r.t.Errorf("swap of what is gone: %v", err)
		}
		for _, t := range []host.Terminal{out.Windows[0][0].Terminal, out.Windows[1][0].Terminal, out.Windows[1][1].Terminal} {
			if err := r.Host.Kill(r.ctx, t); err != nil {
				r.t.Fatal(err)
			}
		}
		if got := r.names(); !slices.Equal(got, []string{"base"}) {
			r.t.Errorf("sessions %q", got)
		}
		next := r.spawn(host.Spawn{Session: "base", Pane: r.stay("next")})
		if next.Terminal == gone {
			r.t.Error("a terminal id was given twice")
		}
		for _, id := range []string{"", "%", "%99999", "0", "base", "=base:0.0", "%0;kill-server", "-a"} {
			t := next.Terminal
			t.ID = id
			if err := r.Host.Kill(r.ctx, t); !errors.Is(err, host.ErrNoTerminal) {
				r.t.Errorf("kill of %q: %v", id, err)
			}
		}
		if n := len(r.session("base").Windows); n != 2 {
			r.t.Errorf("%d windows", n)
		}
	}},
}
