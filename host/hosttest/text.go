package hosttest

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/phux-agent/phux-agent/host"
)

// dirs are names of directories that no host may read as anything else.
var dirs = []string{
	"plain", "with space", "it's", `q"uote`, "#{pid}", "#(touch x)", "#", "##", "#[fg=red]", "end;", ";", "new\nline", "ünïcödé 漢字", "-x", "~", "{a}", "a:b.c", "%1", "back\\slash", "tab\tbed", "end ",
}

// names are names of windows and titles that no host may read as anything else.
var names = []string{
	"plain", "with space", "it's", `q"uote`, "#{pid}", "#(touch x)", "#S", "##", "#[fg=red]", "end;", ";", "ünïcödé 漢字 🙂", "-x", "~", "{a}", "=x", "@1", "%1", "$1", "+", "!", "0", "a\\b", "$HOME", "a.b:c", " a ",
}

// mustHold are names of sessions that every host holds; what else there is may be refused.
var mustHold = []string{"plain", "with space", "#{pid}", "#(touch x)", "ünïcödé", "it's", "end;"}

var textTests = []test{
	{name: "window names", run: func(r *rig) {
		c := host.CreateSession{Name: "work"}
		var asked []string
		for i, name := range names {
			if r.shows("window", name) {
				asked = append(asked, name)
				c.Windows = append(c.Windows, windowOf(name, r.stay(fmt.Sprintf("w%d", i))))
			}
		}
		r.create(c)
		var got []string
		for _, w := range r.session("work").Windows {
			got = append(got, w.Name)
		}
		if !slices.Equal(got, asked) {
			r.t.Errorf("created: %q, not %q", got, asked)
		}
		for i, name := range asked {
			r.spawn(host.Spawn{Session: "work", WindowName: name, Pane: r.stay(fmt.Sprintf("s%d", i))})
			s := r.session("work")
			if got := s.Windows[len(s.Windows)-1].Name; got != name {
				r.t.Errorf("spawned: %q, not %q", got, name)
			}
		}
	}},
	{name: "titles", run: func(r *rig) {
		var panes []host.PaneSpec
		var asked []string
		for i, name := range names {
			if r.shows("title", name) {
				asked = append(asked, name)
				p := r.stay(fmt.Sprintf("p%d", i))
				p.Title = name
				panes = append(panes, p)
			}
		}
		r.create(sessionOf("work", panes...))
		for i, p := range r.session("work").Windows[0].Panes {
			if p.Title != asked[i] {
				r.t.Errorf("title %q, not %q", p.Title, asked[i])
			}
		}
	}},
	{name: "session names", run: func(r *rig) {
		r.create(r.one("base"))
		for _, name := range names {
			before := len(r.names())
			_, err := r.Host.Create(r.ctx, sessionOf(name, r.stay("p")))
			if err != nil {
				if !errors.Is(err, host.ErrName) || slices.Contains(mustHold, name) {
					r.t.Errorf("%q: %v", name, err)
				}
				if got := r.names(); len(got) != before {
					r.t.Errorf("%q is refused, and leaves %q", name, got)
				}
				continue
			}
			if got := r.names(); !slices.Contains(got, name) || len(got) != before+1 {
				r.t.Errorf("%q: there are %q", name, got)
				continue
			}
			// And it is found again by exactly that name.
			r.spawn(host.Spawn{Session: name, Pane: r.stay("q")})
			if n := len(r.session(name).Windows); n != 2 {
				r.t.Errorf("%q has %d windows", name, n)
			}
			if _, err := r.Host.Create(r.ctx, sessionOf(name, r.stay("late"))); !errors.Is(err, host.ErrSessionExists) {
				r.t.Errorf("%q again: %v", name, err)
			}
		}
		r.neverRan("late")
	}},
	{name: "session directories", run: func(r *rig) {
		for i, name := range dirs {
			c := r.one(fmt.Sprintf("s%d", i))
			c.Dir = r.dir(name)
			r.create(c)
			if got := r.session(c.Name).Dir; got != c.Dir && r.shows("dir", c.Dir) {
				r.t.Errorf("directory %q, not %q", got, c.Dir)
			}
			if entries, err := os.ReadDir(c.Dir); err != nil || len(entries) > 0 {
				r.t.Errorf("%q has %v, %v", c.Dir, entries, err)
			}
		}
	}},
}
