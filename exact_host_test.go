package phuxagent_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/embedded"
)

// exactHost is what TestExact needs of the host that it is on.
type exactHost interface {
	flags() []string // of phux-agent
	scene() []string // of what plays the person
	// panes are the ids of all terminals, by their places.
	panes(s *stage) map[string]string
	// active is the terminal that a person of that session looks at.
	active(s *stage, session string) string
	// arrange gives the panes of a terminal's window even shares, where the host does that.
	arrange(s *stage, id string)
	// layout is everything of the workspace that a person sees, ids and process ids aside.
	layout(s *stage) string
	// shuffle does to the workspace what people do with this host.
	shuffle(s *stage, rng *rand.Rand, panes map[string]launched)
}

type exactTmux struct{}

func (exactTmux) flags() []string { return nil }
func (exactTmux) scene() []string { return nil }

func (exactTmux) panes(s *stage) map[string]string {
	s.Helper()
	out := map[string]string{}
	for _, l := range strings.Split(s.tmux("list-panes", "-a", "-F", "#{pane_id} #{session_name}:#{window_index}.#{pane_index}"), "\n") {
		id, place, _ := strings.Cut(l, " ")
		out[place] = id
	}
	return out
}

func (exactTmux) active(s *stage, session string) string {
	s.Helper()
	return s.tmux("display-message", "-p", "-t", "="+session+":", "#{pane_id}")
}

func (exactTmux) arrange(s *stage, id string) {
	s.Helper()
	s.tmux("select-layout", "-t", id, "tiled")
}

// A name that tmux makes up follows the program in the pane half a second late, so it says only
// that.
func (exactTmux) layout(s *stage) string {
	s.Helper()
	windows := s.tmux("list-windows", "-a", "-F", "#{session_name}:#{window_index} #{?#{automatic-rename},(automatic),#{window_name}} active=#{window_active} zoom=#{window_zoomed_flag} #{window_width}x#{window_height}")
	cells := s.tmux("list-panes", "-a", "-F", "#{session_name}:#{window_index}.#{pane_index} #{pane_left},#{pane_top} #{pane_width}x#{pane_height} active=#{pane_active}")
	return windows + "\n" + cells
}

// swap, move, break, join, renumber, respawn.
func (h exactTmux) shuffle(s *stage, rng *rand.Rand, panes map[string]launched) {
	s.Helper()
	ids := slices.Sorted(maps.Keys(panes))
	pick := func() string { return ids[rng.IntN(len(ids))] }
	for range 4 {
		if a, b := pick(), pick(); a != b {
			s.tmux("swap-pane", "-d", "-s", a, "-t", b)
		}
	}
	windows := strings.Split(s.tmux("list-windows", "-a", "-F", "#{window_id} #{window_panes} #{session_name}"), "\n")
	for _, w := range windows {
		f := strings.Fields(w)
		if f[1] != "1" && rng.IntN(3) == 0 {
			s.tmux("break-pane", "-d", "-s", f[0]+".", "-t", "="+f[2]+":")
			break
		}
	}
	s.tmux("move-window", "-r", "-t", "=work0:")
	s.tmux("rename-window", "-t", "=work1:", fmt.Sprintf("w%d ##{pid} $(x); ünï", rng.IntN(100)))
	if z := pick(); true {
		s.tmux("resize-pane", "-Z", "-t", z)
		s.tmux("select-pane", "-t", z)
	}
	s.respawned(h, panes, func(id string) { s.tmux("respawn-pane", "-k", "-t", id) })
}

type exactEmbedded struct{}

func (exactEmbedded) flags() []string { return []string{"--host", "embedded"} }
func (exactEmbedded) scene() []string { return []string{onEmbedded} }

// with runs f on a connection to the server, with what it holds.
func (exactEmbedded) with(s *stage, f func(ctx context.Context, c *embedded.Client, w *host.Workspace) error) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := embedded.Dial(ctx, embedded.SocketPath(filepath.Join(s.Getenv("XDG_RUNTIME_DIR"), "phux-agent"), embedded.DefaultName))
	check(s, err)
	defer c.Close()
	w, err := c.Snapshot(ctx)
	check(s, err)
	check(s, f(ctx, c, w))
}

// each visits every terminal with its place.
func (h exactEmbedded) each(s *stage, f func(place string, se *host.Session, w *host.Window, p *host.Pane)) {
	s.Helper()
	h.with(s, func(_ context.Context, _ *embedded.Client, w *host.Workspace) error {
		for i := range w.Sessions {
			se := &w.Sessions[i]
			for n := range se.Windows {
				win := &se.Windows[n]
				for k := range win.Panes {
					f(fmt.Sprintf("%s:%d.%d", se.Name, win.Index, k), se, win, &win.Panes[k])
				}
			}
		}
		return nil
	})
}

func (h exactEmbedded) panes(s *stage) map[string]string {
	s.Helper()
	out := map[string]string{}
	h.each(s, func(place string, _ *host.Session, _ *host.Window, p *host.Pane) { out[place] = p.Terminal.ID })
	return out
}

func (h exactEmbedded) active(s *stage, session string) (id string) {
	s.Helper()
	h.each(s, func(_ string, se *host.Session, w *host.Window, p *host.Pane) {
		if se.Name == session && w.Active && p.Active {
			id = p.Terminal.ID
		}
	})
	return id
}

func (exactEmbedded) arrange(*stage, string) {} // a split halves its pane

func (h exactEmbedded) layout(s *stage) string {
	s.Helper()
	var out strings.Builder
	h.each(s, func(place string, _ *host.Session, w *host.Window, p *host.Pane) {
		name := w.Name
		if w.AutomaticName {
			name = "(automatic)"
		}
		fmt.Fprintf(&out, "%s %s %dx%d active=%v of %s active=%v zoom=%v %s\n", place, p.Dir, p.Cols, p.Rows, p.Active, name, w.Active, w.Zoomed, w.Layout.String())
	})
	return out.String()
}

// A shell opened and another one closed, which leaves gaps between the windows; one looked at last
// and another one; an agent killed and its pane respawned.
func (h exactEmbedded) shuffle(s *stage, rng *rand.Rand, panes map[string]launched) {
	s.Helper()
	var shells []host.Terminal
	var all []host.Pane
	h.each(s, func(_ string, _ *host.Session, _ *host.Window, p *host.Pane) {
		if _, agent := panes[p.Terminal.ID]; !agent {
			shells = append(shells, p.Terminal)
		}
		all = append(all, *p)
	})
	h.with(s, func(ctx context.Context, c *embedded.Client, w *host.Workspace) error {
		for i := range 2 {
			dir := filepath.Dir(s.dir("shells/x"))
			sp := host.Spawn{Session: fmt.Sprintf("work%d", rng.IntN(4)), Background: i == 0, WindowName: fmt.Sprintf("w%d #{pid} $(x); ünï", rng.IntN(100))}
			sp.Pane = host.PaneSpec{Start: host.Start{Mode: host.Shell, Dir: dir}}
			if _, err := c.Spawn(ctx, sp); err != nil {
				return err
			}
		}
		if len(shells) > 1 {
			if err := c.Kill(ctx, shells[rng.IntN(len(shells))]); err != nil {
				return err
			}
		}
		for range 3 {
			if t := all[rng.IntN(len(all))].Terminal; !slices.Contains(shells, t) {
				if err := c.Focus(ctx, t); err != nil {
					return err
				}
			}
		}
		return nil
	})
	s.respawned(h, panes, func(id string) {
		var at host.Pane
		h.each(s, func(_ string, _ *host.Session, _ *host.Window, p *host.Pane) {
			if p.Terminal.ID == id {
				at = *p
			}
		})
		check(s, syscall.Kill(at.PID, syscall.SIGKILL))
		await(s, "the end of the agent", func() (bool, string) {
			dead := false
			h.each(s, func(_ string, _ *host.Session, _ *host.Window, p *host.Pane) {
				dead = dead || p.Terminal.ID == id && p.Dead
			})
			return dead, id
		})
		h.with(s, func(ctx context.Context, c *embedded.Client, _ *host.Workspace) error {
			return c.Respawn(ctx, at.Terminal)
		})
	})
}
