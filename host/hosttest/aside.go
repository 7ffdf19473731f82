package hosttest

import (
	"errors"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/host"
)

// setAsideTest is of createTests: a session makes room while it is what was said, and nothing of it is
// ended.
var setAsideTest = test{name: "set aside", run: func(r *rig) {
	if _, ok := r.Host.(host.Asider); !ok {
		r.t.Skip("this body sets nothing aside")
	}
	old := r.create(r.one("work")).Windows[0][0]
	p := r.pane(old.Terminal)
	was := r.session("work")
	aside := host.Aside{Session: was.ID, Terminal: old.Terminal, Occupant: host.Occupant{PID: p.PID, Command: p.Command}, Name: "work-1"}
	for what, change := range map[string]func(*host.Aside){
		"another process":           func(a *host.Aside) { a.Occupant.PID++ },
		"another program":           func(a *host.Aside) { a.Occupant.Command = "other" },
		"another session":           func(a *host.Aside) { a.Session = "$999" },
		"a name that somebody has":  func(a *host.Aside) { a.Name = "work" },
		"a pane of no life of ours": func(a *host.Aside) { a.Terminal.ID = "%999" },
	} {
		c := r.one("work")
		a := aside
		change(&a)
		c.Aside = &a
		if _, err := r.Host.Create(r.ctx, c); err == nil {
			r.t.Errorf("%s: it was made", what)
		}
		if d := cmp.Diff([]string{"work"}, r.names()); d != "" || r.session("work").ID != was.ID {
			r.t.Errorf("%s: the sessions are %s", what, d)
		}
	}
	c := r.one("work")
	c.Aside = &aside
	r.create(c)
	names := r.names()
	slices.Sort(names)
	if d := cmp.Diff([]string{"work", "work-1"}, names); d != "" {
		r.t.Fatal(d)
	}
	left := r.session("work-1")
	if left.ID != was.ID || !left.Aside || r.session("work").Aside || r.session("work").ID == was.ID {
		r.t.Errorf("set aside: %+v", left)
	}
	if q := r.pane(old.Terminal); q == nil || q.PID != p.PID || q.Dead {
		r.t.Errorf("its pane is %+v", q)
	}
	// Where nobody has the name any more, there is nothing to set aside.
	again := r.one("more")
	again.Aside = &aside
	if _, err := r.Host.Create(r.ctx, again); errors.Is(err, host.ErrSessionExists) {
		r.t.Errorf("a name that is free: %v", err)
	}
}}
