package hosttest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

// Seen by an observer, every pane has exactly the record that was given with it, and no record
// stands twice.
func consistent(w *host.Workspace, wanted map[string]bool) string {
	seen := make(map[string]host.Terminal)
	for _, s := range w.Sessions {
		for _, win := range s.Windows {
			for _, p := range win.Panes {
				rec := string(p.Meta[metadata.KeyAgentSession])
				if rec == "" {
					return fmt.Sprintf("pane %s of %s without a record (%+v)", p.Terminal.ID, s.Name, p)
				}
				if !wanted[rec] {
					return fmt.Sprintf("pane %s with a record that nobody gave: %q", p.Terminal.ID, rec)
				}
				if at, twice := seen[rec]; twice {
					return fmt.Sprintf("panes %s and %s with the record %q", at.ID, p.Terminal.ID, rec)
				}
				seen[rec] = p.Terminal
			}
		}
	}
	return ""
}

var spawnTests = []test{
	replaceTest,
	{name: "record from the first instant", run: func(r *rig) {
		const n = 24
		wanted := map[string]bool{string(record("base")): true}
		for i := range n {
			wanted[string(record(fmt.Sprintf("p%d", i)))] = true
		}
		base := r.create(r.one("base")).Windows[0][0].Terminal
		stop := r.observe(func(w *host.Workspace) string { return consistent(w, wanted) })
		for i := range n {
			s := host.Spawn{Session: "base", Background: i%2 == 0, Pane: r.stay(fmt.Sprintf("p%d", i))}
			switch i % 4 {
			case 2:
				s.Place, s.Target = host.SplitH, base
			case 3:
				s.Place, s.Target = host.SplitV, base
			}
			out, err := r.Host.Spawn(r.ctx, s)
			if err != nil {
				r.t.Errorf("spawn %d: %v", i, err)
				break
			}
			if i%4 >= 2 {
				// So that there is room for the next.
				if err := r.Host.Kill(r.ctx, out.Terminal); err != nil {
					r.t.Error(err)
				}
			}
		}
		stop()
	}},
	{name: "from many sides", run: func(r *rig) {
		const n = 16
		r.create(r.one("base"))
		clients := []host.Host{r.Host, r.second()}
		var all sync.WaitGroup
		outs, errs := make([]*host.Started, n), make([]error, n)
		for i := range n {
			s := host.Spawn{Session: "base", Pane: r.stay(fmt.Sprintf("p%d", i))}
			all.Go(func() { outs[i], errs[i] = clients[i%2].Spawn(r.ctx, s) })
		}
		all.Wait()
		w := r.snapshot()
		for i := range n {
			if errs[i] != nil {
				r.t.Errorf("spawn %d: %v", i, errs[i])
				continue
			}
			p := pane(w, outs[i].Terminal)
			if p == nil || string(p.Meta[metadata.KeyAgentSession]) != string(record(fmt.Sprintf("p%d", i))) {
				r.t.Errorf("spawn %d: %+v", i, p)
			}
			if !r.Caps.NoPrograms {
				if run := r.ran(fmt.Sprintf("p%d", i)); run.PID != outs[i].PID {
					r.t.Errorf("spawn %d: pid %d, the program is %d", i, outs[i].PID, run.PID)
				}
			}
		}
	}},
	{name: "window", run: func(r *rig) {
		base := r.create(r.one("work"))
		back := r.spawn(host.Spawn{Session: "work", WindowName: "back", Background: true, Pane: r.stay("a")})
		s := r.session("work")
		if len(s.Windows) != 2 || !s.Windows[0].Active || s.Windows[1].Active || s.Windows[1].Name != "back" || s.Windows[1].AutomaticName {
			r.t.Errorf("in the background: %+v", s.Windows)
		}
		front := r.spawn(host.Spawn{Session: "work", Pane: r.stay("b")})
		s = r.session("work")
		if len(s.Windows) != 3 || !s.Windows[2].Active || !s.Windows[2].AutomaticName {
			r.t.Errorf("in the foreground: %+v", s.Windows)
		}
		for w, t := range []host.Terminal{base.Windows[0][0].Terminal, back.Terminal, front.Terminal} {
			if len(s.Windows[w].Panes) != 1 || s.Windows[w].Panes[0].Terminal != t {
				r.t.Errorf("window %d: %+v", w, s.Windows[w].Panes)
			}
		}
	}},
	{name: "split", run: func(r *rig) {
		base := r.create(r.one("work")).Windows[0][0].Terminal
		beside := r.spawn(host.Spawn{Place: host.SplitH, Target: base, Pane: r.stay("a")})
		below := r.spawn(host.Spawn{Place: host.SplitV, Target: base, Background: true, Pane: r.stay("b")})
		w := r.session("work").Windows[0]
		if len(w.Panes) != 3 {
			r.t.Fatalf("%d panes", len(w.Panes))
		}
		for i, want := range []host.Terminal{base, below.Terminal, beside.Terminal} {
			if w.Panes[i].Terminal != want {
				r.t.Errorf("pane %d is %v, not %v", i, w.Panes[i].Terminal, want)
			}
			if active := w.Panes[i].Active; active != (want == beside.Terminal) {
				r.t.Errorf("pane %d: active is %v", i, active)
			}
		}
		l := w.Layout
		if err := l.Check(3); err != nil {
			r.t.Fatal(err)
		}
		if l.Dir != host.Horizontal || len(l.Children) != 2 || l.Children[0].Dir != host.Vertical || l.Children[1].Dir != host.Leaf {
			r.t.Errorf("layout %v", l)
		}
		for i, p := range w.Panes {
			if diff := cmp.Diff(record([]string{"work", "b", "a"}[i]), p.Meta[metadata.KeyAgentSession]); diff != "" {
				r.t.Errorf("pane %d: %s", i, diff)
			}
		}
	}},
	{name: "nowhere", run: func(r *rig) {
		out := r.create(r.one("work"))
		gone := r.spawn(host.Spawn{Session: "work", Pane: r.stay("gone")}).Terminal
		if err := r.Host.Kill(r.ctx, gone); err != nil {
			r.t.Fatal(err)
		}
		id := r.session("work").ID
		var names []string
		// None of these is a session, though each is something that a host might look up.
		for i, name := range []string{"wor", "workx", "Work", "=work", "work:", "work:0", "w*", "*", "?ork", id, "{last}", "!", "@0", "%0", out.Windows[0][0].Terminal.ID, "$0", "-d", " work", "work;"} {
			pane := fmt.Sprintf("n%d", i)
			names = append(names, pane)
			if _, err := r.Host.Spawn(r.ctx, host.Spawn{Session: name, Pane: r.stay(pane)}); !errors.Is(err, host.ErrNoSession) {
				r.t.Errorf("into session %q: %v", name, err)
			}
		}
		if _, err := r.Host.Spawn(r.ctx, host.Spawn{Place: host.SplitV, Target: gone, Pane: r.stay("n")}); !errors.Is(err, host.ErrNoTerminal) {
			r.t.Errorf("beside what is gone: %v", err)
		}
		for name, s := range map[string]host.Spawn{
			"no session":  {Pane: r.stay("n")},
			"no target":   {Place: host.SplitH, Pane: r.stay("n")},
			"no place":    {Place: 9, Session: "work", Pane: r.stay("n")},
			"no program":  {Session: "work", Pane: host.PaneSpec{Start: host.Start{Mode: host.Program}}},
			"window name": {Session: "work", WindowName: "a\nb", Pane: r.stay("n")},
		} {
			if _, err := r.Host.Spawn(r.ctx, s); !errors.Is(err, host.ErrRequest) && !errors.Is(err, host.ErrName) {
				r.t.Errorf("%s: %v", name, err)
			}
		}
		if s := r.session("work"); len(s.Windows) != 1 || len(s.Windows[0].Panes) != 1 {
			r.t.Errorf("left: %+v", s.Windows)
		}
		r.neverRan(append(names, "n")...)
	}},
	{name: "no space", run: func(r *rig) {
		// A split of what cannot be split fails, and leaves nothing.
		c := r.one("work")
		c.Windows[0].Layout = host.Cell{Cols: 40, Rows: 10}
		at := r.create(c).Windows[0][0].Terminal
		for i := range 40 {
			name := fmt.Sprintf("p%d", i)
			_, err := r.Host.Spawn(r.ctx, host.Spawn{Place: host.SplitV, Target: at, Pane: r.stay(name)})
			if err == nil {
				continue
			}
			if !errors.Is(err, host.ErrNoSpace) {
				r.t.Errorf("split %d: %v", i, err)
			}
			if got := len(r.session("work").Windows[0].Panes); got != i+1 {
				r.t.Errorf("split %d fails, and there are %d panes", i, got)
			}
			r.neverRan(name)
			return
		}
		r.t.Error("40 panes in ten rows")
	}},
}
