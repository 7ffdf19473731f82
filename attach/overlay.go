package attach

import (
	"context"
	"fmt"
	"strings"

	"github.com/phux-agent/phux-agent/internal/ui"
)

// overlay is something of ours on the screen, while the view is held.
type overlay interface {
	// draw says what to draw, at most rows lines of cols cells; bottom is of one line at the
	// bottom, with the terminal above it.
	draw(ctx context.Context, c *client, cols, rows int) (lines []string, bottom bool)
	// key answers with what comes next: itself, another overlay, or nil for the terminal again.
	key(ctx context.Context, c *client, key string) (overlay, error)
}

// cover puts an overlay over the terminal. The view is held, so that nothing is written under
// what we draw, and keys come plainly.
func (c *client) cover(ctx context.Context, o overlay) {
	if c.over == nil {
		c.hold(ctx)
	}
	c.over = o
	c.draw(ctx)
}

func (c *client) draw(ctx context.Context) {
	cols, rows := c.screen.size()
	lines, bottom := c.over.draw(ctx, c, cols, rows)
	var b strings.Builder
	at := 1
	if bottom {
		at = rows
		b.WriteString(plain + "\x1b[r\x1b[?6l\x1b[4l\x1b(B\x0f\x1b[?25l")
	} else {
		b.WriteString(settle + "\x1b[?25l\x1b[2J")
	}
	for i, l := range lines {
		fmt.Fprintf(&b, "\x1b[%d;1H\x1b[m", at+i)
		if bottom {
			l = "\x1b[7m" + l + strings.Repeat(" ", max(0, cols-ui.Width(withoutLooks(l))))
		}
		b.WriteString(l + "\x1b[m")
	}
	c.screen.write([]byte(b.String()))
}

// press hands a key to the overlay.
func (c *client) press(ctx context.Context, key string) (Why, error) {
	if key == "" { // no key
		return 0, nil
	}
	if s, ok := c.over.(status); ok {
		c.over = nil
		if key == string(rune(c.o.Prefix)) {
			why, err := c.again(ctx)
			if why != 0 || err != nil || c.view == nil {
				return why, err
			}
			return c.trouble(ctx, c.view.Input(s.hit)) // twice: the program gets it once
		}
		return c.command(ctx, key)
	}
	before := c.view
	next, err := c.over.key(ctx, c, key)
	switch {
	case err != nil && gone(err):
		return c.next(ctx)
	case err != nil:
		return c.say(ctx, err)
	case next != nil:
		c.over = next
		c.draw(ctx)
		return 0, nil
	case c.view != before: // it has shown another one
		return 0, nil
	}
	return c.again(ctx)
}

// line makes text one line of at most so many cells.
func line(s string, cols int) string { return ui.Clip(ui.Escape(s), cols) }

// status is the one line at the bottom, while the prefix waits for its key.
type status struct{ hit []byte }

func (status) draw(ctx context.Context, c *client, cols, _ int) ([]string, bool) {
	const keys = "d detach  n/p next/previous  w list  c shell  [ scrollback  ? help "
	short := "d detach  ? help "
	p, err := c.here(ctx)
	if err != nil {
		return []string{line(" phux-agent  "+keys, cols)}, true
	}
	left := ui.Escape(fmt.Sprintf(" %s  %s  ", p, p.what))
	if p.dead {
		left += "ended" + p.exit + ", R starts it again  "
	}
	// The directory is what gives way, then the longer list of keys.
	room, right := cols-ui.Width(left)-len(keys)-1, keys
	if room < 8 {
		if room = cols - ui.Width(left) - len(short) - 1; room < 0 {
			return []string{line(left+short, cols)}, true
		}
		right = short
	}
	dir := ""
	if room >= 8 {
		dir = ui.ClipLeft(ui.Escape(p.dir), room)
	}
	return []string{left + dir + strings.Repeat(" ", max(0, cols-ui.Width(left)-ui.Width(dir)-len(right))) + right}, true
}

func (status) key(context.Context, *client, string) (overlay, error) { return nil, nil }

// message is something to know, until a key is pressed.
type message string

func (m message) draw(_ context.Context, _ *client, cols, _ int) ([]string, bool) {
	return []string{line(" "+string(m), cols)}, true
}

func (message) key(ctx context.Context, c *client, key string) (overlay, error) {
	if key == string(rune(c.o.Prefix)) {
		return status{hit: []byte(key)}, nil
	}
	return nil, nil
}

// confirm asks before something that cannot be undone.
type confirm struct {
	question string
	yes      func(context.Context) error
}

func (q confirm) draw(_ context.Context, c *client, cols, _ int) ([]string, bool) {
	return []string{line(fmt.Sprintf(" %s: %s (y/n)", c.at, q.question), cols)}, true
}

func (q confirm) key(ctx context.Context, _ *client, key string) (overlay, error) {
	if key == "y" || key == "Y" {
		return nil, q.yes(ctx)
	}
	return nil, nil
}

// list chooses a terminal.
type list struct {
	places []place
	at     int
}

func (l list) draw(_ context.Context, _ *client, cols, rows int) ([]string, bool) {
	out := []string{line(" choose a terminal: up/down, Enter; q: back", cols), ""}
	room := max(1, rows-len(out))
	top := max(0, l.at-room+1)
	wide := 0
	for _, p := range l.places {
		wide = max(wide, ui.Width(ui.Escape(p.String())))
	}
	for i := top; i < len(l.places) && i < top+room; i++ {
		p := l.places[i]
		mark := "  "
		if i == l.at {
			mark = "> "
		}
		at := ui.Clip(ui.Escape(p.String()), 40)
		text := mark + at + strings.Repeat(" ", max(0, min(wide, 40)-ui.Width(at))) + fmt.Sprintf("  %-12s ", ui.Escape(p.what))
		if p.dead {
			text += "(ended) "
		}
		text += ui.Escape(p.dir)
		if p.title != "" {
			text += "  " + ui.Escape(p.title)
		}
		if text = ui.Clip(text, cols); i == l.at {
			text = "\x1b[7m" + text + "\x1b[m"
		}
		out = append(out, text)
	}
	return out, false
}

func (l list) key(ctx context.Context, c *client, key string) (overlay, error) {
	switch key {
	case "q", "esc":
		return nil, nil
	case "up", "k":
		l.at = max(0, l.at-1)
	case "down", "j":
		l.at = min(len(l.places)-1, l.at+1)
	case "home", "g":
		l.at = 0
	case "end", "G":
		l.at = len(l.places) - 1
	case "enter":
		if len(l.places) == 0 || l.places[l.at].terminal == c.at.terminal {
			return nil, nil
		}
		return nil, c.show(ctx, l.places[l.at])
	}
	return l, nil
}

func help(prefix byte) []string {
	p := name(prefix)
	return []string{
		"", "  phux-agent attach: keys", "",
		"  " + p + " d        detach: everything goes on without you",
		"  " + p + " n, p, l  next, previous, last terminal",
		"  " + p + " w        choose a terminal from a list",
		"  " + p + " c        a new shell in this session",
		"  " + p + " x        kill this terminal (asks)",
		"  " + p + " R        start the program of an ended terminal again",
		"  " + p + " [        scrollback: move, and / to search",
		"  " + p + " ?        this help",
		"  " + p + " " + p + "   the key itself, for the program", "",
		"  Agents that ended keep their record: phux-agent ps", "",
	}
}
