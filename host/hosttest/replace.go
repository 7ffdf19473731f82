package hosttest

import (
	"errors"
	"maps"
	"slices"

	"github.com/phux-agent/phux-agent/host"
)

// replaceTest is of spawnTests: a program of ours takes the place of a terminal's own while that is what
// was said, with its record, and of the terminal nothing is taken away.
var replaceTest = test{name: "replace", run: func(r *rig) {
	replacer, ok := r.Host.(host.Replacer)
	if !ok {
		r.t.Skip("this body replaces nothing")
	}
	c := r.one("work")
	c.Windows[0].Panes[0] = host.PaneSpec{Start: host.Start{Mode: host.Shell}}
	at := r.create(c).Windows[0][0].Terminal
	var p host.Pane
	r.until(func() string {
		p = *r.pane(at)
		if !r.Caps.NoPrograms && !slices.Contains([]string{"sh", "bash", "dash", "ash", "zsh", "fish", "ksh"}, p.Command) {
			return "a shell: it is " + p.Command
		}
		return ""
	})
	if !p.IsVacant() {
		r.t.Fatalf("a shell is not vacant: %+v", p)
	}
	was := host.Occupant{PID: p.PID, Command: p.Command}
	agent := r.stay("agent")
	for _, bad := range []struct {
		what string
		at   func(*host.Terminal)
		was  func(*host.Occupant)
		spec host.PaneSpec
		want error
	}{
		{"another process", nil, func(o *host.Occupant) { o.PID++ }, r.stay("never"), host.ErrOccupied},
		{"another program", nil, func(o *host.Occupant) { o.Command = "other" }, r.stay("never"), host.ErrOccupied},
		{"a shell", nil, nil, host.PaneSpec{Start: host.Start{Mode: host.Shell}}, host.ErrRequest},
		{"no such terminal", func(t *host.Terminal) { t.ID = "%999" }, nil, r.stay("never"), host.ErrNoTerminal},
		{"another life", func(t *host.Terminal) { t.Instance.PID++ }, nil, r.stay("never"), host.ErrStale},
	} {
		t, o := at, was
		if bad.at != nil {
			bad.at(&t)
		}
		if bad.was != nil {
			bad.was(&o)
		}
		if _, err := replacer.Replace(r.ctx, t, o, bad.spec); !errors.Is(err, bad.want) && !(bad.want == host.ErrNoTerminal && errors.Is(err, host.ErrOccupied)) {
			r.t.Errorf("%s: %v, wanted %v", bad.what, err, bad.want)
		}
		if now := r.pane(at); now == nil || now.PID != p.PID || now.Origin != host.Foreign || len(now.Meta) > 0 {
			r.t.Errorf("%s: the terminal is %+v", bad.what, now)
		}
	}
	stop := r.observe(func(w *host.Workspace) string {
		for _, s := range w.Sessions {
			for _, win := range s.Windows {
				for _, q := range win.Panes {
					if q.Terminal == at && q.Origin == host.Ours && !maps.EqualFunc(q.Meta, agent.Meta, slices.Equal) {
						return "the program is seen without its record"
					}
				}
			}
		}
		return ""
	})
	st, err := replacer.Replace(r.ctx, at, was, agent)
	stop()
	if err != nil || st.Err != nil || st.Terminal != at || !maps.EqualFunc(st.Meta, agent.Meta, slices.Equal) {
		r.t.Fatalf("%+v, %v", st, err)
	}
	now := r.pane(at)
	if now == nil || now.Origin != host.Ours || now.Dead || now.PID == p.PID || now.PID != st.PID || !maps.EqualFunc(now.Meta, agent.Meta, slices.Equal) {
		r.t.Errorf("afterwards it is %+v", now)
	}
	if !r.Caps.NoPrograms {
		r.ran("agent")
		r.neverRan("never")
	}
	if _, err := replacer.Replace(r.ctx, at, was, r.stay("never")); !errors.Is(err, host.ErrOccupied) {
		r.t.Errorf("a second time: %v", err)
	}
}}
