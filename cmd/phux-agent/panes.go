package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

// spot is a pane with the place where it stands.
type spot struct {
	Session string
	Window  int
	Pane    host.Pane
}

// String is the place as people write it: session:window.pane.
func (s spot) String() string { return fmt.Sprintf("%s:%d.%d", s.Session, s.Window, s.Pane.Index) }

// paneError is a PANE argument that names no pane, or several.
type paneError struct {
	Arg  string
	Many []string // places; nil where there is none
}

func (e *paneError) Error() string {
	if len(e.Many) > 0 {
		return fmt.Sprintf("find pane %q: it names %s", e.Arg, strings.Join(e.Many, " and "))
	}
	return fmt.Sprintf("find pane %q: there is none", e.Arg)
}

// findPane finds the pane that an argument names: %N, session:window.pane, session:window (its
// active pane), or a pane key. Names are exact; what names several is an error.
func findPane(ctx context.Context, h host.Host, arg string) (spot, error) {
	w, err := h.Snapshot(ctx)
	if err != nil {
		return spot{}, fmt.Errorf("find pane %q: %w", arg, err)
	}
	return pickPane(w, arg)
}

func pickPane(w *host.Workspace, arg string) (spot, error) {
	session, rest, isPlace := cutLast(arg, ":")
	window, pane, hasPane := cutLast(rest, ".")
	if !hasPane {
		window, pane = rest, ""
	}
	var found []spot
	seen := make(map[host.Terminal]bool)
	for _, s := range w.Sessions {
		for _, win := range s.Windows {
			for _, p := range win.Panes {
				var hit bool
				switch {
				case strings.HasPrefix(arg, "%"):
					hit = p.Terminal.ID == arg
				case isPlace:
					hit = s.Name == session && matchWindow(win, window) &&
						(pane == strconv.Itoa(p.Index) || pane == "" && p.Active)
				default:
					f, err := metadata.DecodeLaunchFacts(p.Meta[metadata.KeyAgentLaunch])
					hit = err == nil && arg != "" && f.PaneKey == arg
				}
				// A window that several sessions show has its panes once.
				if hit && !seen[p.Terminal] {
					seen[p.Terminal] = true
					found = append(found, spot{s.Name, win.Index, p})
				}
			}
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return spot{}, &paneError{Arg: arg}
	}
	e := &paneError{Arg: arg}
	for _, f := range found {
		e.Many = append(e.Many, fmt.Sprintf("%s (%s)", f, f.Pane.Terminal.ID))
	}
	return spot{}, e
}

// matchWindow goes by index where the text is a number, else by exact name.
func matchWindow(w host.Window, text string) bool {
	if n, err := strconv.Atoi(text); err == nil {
		return w.Index == n
	}
	return text != "" && w.Name == text
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// sessionsOf names the sessions that show a terminal: the one that the user looked at last
// first.
func sessionsOf(w *host.Workspace, t host.Terminal) []string {
	var out []string
	for _, s := range w.Sessions {
		shows := slices.ContainsFunc(s.Windows, func(win host.Window) bool {
			return slices.ContainsFunc(win.Panes, func(p host.Pane) bool { return p.Terminal == t })
		})
		switch {
		case shows && s.Active:
			out = append([]string{s.Name}, out...)
		case shows:
			out = append(out, s.Name)
		}
	}
	return out
}
