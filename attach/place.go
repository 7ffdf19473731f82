package attach

import (
	"context"
	"fmt"
	"slices"

	"github.com/phux-agent/phux-agent/host"
)

// place is a terminal with where it stands.
type place struct {
	terminal host.Terminal
	session  string
	window   int
	index    int
	active   bool // of its session
	last     bool // it is in the session that was looked at last
	title    string
	what     string
	dir      string
	dead     bool
	exit     string // how, of a dead one: empty or " (…)"
}

func (p place) String() string { return fmt.Sprintf("%s:%d.%d", p.session, p.window, p.index) }

// places lists the terminals in the order of sessions, windows and panes.
func (c *client) places(ctx context.Context) ([]place, error) {
	w, err := c.srv.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	var out []place
	seen := map[host.Terminal]bool{}
	for _, s := range w.Sessions {
		for _, win := range s.Windows {
			for _, p := range win.Panes {
				if seen[p.Terminal] {
					continue
				}
				seen[p.Terminal] = true
				out = append(out, place{
					terminal: p.Terminal, session: s.Name, window: win.Index, index: p.Index,
					active: win.Active && p.Active, last: s.Active,
					title: p.Title, what: p.Command, dir: p.Dir, dead: p.Dead, exit: exitWords(p.Exit),
				})
			}
		}
	}
	return out, nil
}

func exitWords(e *host.Exit) string {
	switch {
	case e == nil:
		return ""
	case e.Signal != "":
		return fmt.Sprintf(" (by signal %s)", e.Signal)
	}
	return fmt.Sprintf(" (exit status %d)", e.Status)
}

// begin is the terminal that an attach shows first: the active one of the session, which is the
// one looked at last unless it is named.
func begin(places []place, session string) (place, error) {
	if len(places) == 0 {
		return place{}, host.ErrNoSession
	}
	candidates := slices.DeleteFunc(slices.Clone(places), func(p place) bool {
		return session != "" && p.session != session || session == "" && !p.last
	})
	if len(candidates) == 0 && session != "" {
		return place{}, fmt.Errorf("session %q: %w", session, host.ErrNoSession)
	}
	for _, p := range append(candidates, places...) {
		if p.active {
			return p, nil
		}
	}
	return append(candidates, places...)[0], nil
}

// beside is the terminal to show where one has ended: the one before it in its session, else the
// next, else any.
func beside(places []place, p place) (place, bool) {
	places = slices.DeleteFunc(slices.Clone(places), func(o place) bool { return o.terminal == p.terminal })
	if len(places) == 0 {
		return place{}, false
	}
	best := -1
	for i, o := range places {
		if o.session == p.session && (best < 0 || o.window < p.window || o.window == p.window && o.index < p.index) {
			best = i
		}
	}
	return places[max(best, 0)], true
}

func find(places []place, t host.Terminal) int {
	return slices.IndexFunc(places, func(p place) bool { return p.terminal == t })
}

// here is the terminal that is shown, as it is now.
func (c *client) here(ctx context.Context) (place, error) {
	places, err := c.places(ctx)
	if err != nil {
		return place{}, err
	}
	i := find(places, c.at.terminal)
	if i < 0 {
		return place{}, host.ErrNoTerminal
	}
	c.at = places[i]
	return c.at, nil
}
