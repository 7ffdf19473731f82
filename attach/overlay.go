package attach

import (
	"context"
	"fmt"
	"strings"

	"github.com/phux-agent/phux-agent/internal/ui"
)

// overlay is something of ours on the screen, while the view is let go.
type overlay interface {
	// lines is what to draw, at most rows lines; status overlays draw one line at the bottom.
	lines(c *client, cols, rows int) (lines []string, bottom bool)
	// key answers with what comes next: itself, another overlay, or nil for the terminal again.
	key(ctx context.Context, c *client, key string) (overlay, error)
}

// cover puts an overlay over the terminal. The view is let go, so that nothing is written under
// what we draw.
func (c *client) cover(o overlay) {
	c.leave()
	c.over = o
	c.draw()
}

func (c *client) draw() {
	cols, rows := c.screen.size()
	lines, bottom := c.over.lines(c, cols, rows)
	var b strings.Builder
	at := 1
	if bottom {
		at = rows
	} else {
		b.WriteString(settle + "\x1b[2J")
	}
	b.WriteString("\x1b7\x1b[?25l")
	for i, l := range lines {
		fmt.Fprintf(&b, "\x1b[%d;1H\x1b[m", at+i)
		if bottom {
			b.WriteString("\x1b[7m")
		}
		b.WriteString(fit(l, cols, bottom) + "\x1b[m")
	}
	b.WriteString("\x1b8")
	c.screen.write([]byte(b.String()))
}

// fit cuts a line to the width, or fills it up.
func fit(s string, cols int, fill bool) string {
	s = ui.Escape(s)
	r := []rune(s)
	if len(r) > cols {
		return string(r[:cols])
	}
	if fill {
		return s + strings.Repeat(" ", cols-len(r))
	}
	return s
}

// press hands a key to the overlay.
func (c *client) press(ctx context.Context, key string) (ended, error) {
	if _, ok := c.over.(status); ok {
		if err := c.show(ctx, c.at); err != nil {
			return c.next(ctx, true)
		}
		if key == string(rune(c.o.Prefix)) {
			return "", c.view.Input([]byte{c.o.Prefix}) // twice: the program gets it once
		}
		if r := []rune(key); len(r) == 1 {
			return c.command(ctx, r[0])
		}
		return "", nil
	}
	next, err := c.over.key(ctx, c, key)
	if err != nil {
		return "", c.again(ctx, err)
	}
	if next == nil {
		// The overlay may have shown another terminal already.
		if c.view == nil {
			if err := c.show(ctx, c.at); err != nil {
				return c.next(ctx, true)
			}
		}
		return "", nil
	}
	c.over = next
	c.draw()
	return "", nil
}

// status is the one line at the bottom, while the prefix waits for its key.
type status struct{}

func (status) lines(c *client, cols, _ int) ([]string, bool) {
	const keys = "d detach  n/p next/previous  w list  c shell  ? help "
	p, err := c.here(context.Background())
	if err != nil {
		return []string{" phux-agent  " + keys}, true
	}
	left := fmt.Sprintf(" %s  %s  ", p, p.what)
	if p.dead {
		left += "ended, R starts it again  "
	}
	// The directory is what gives way: its end says most.
	room := cols - len([]rune(ui.Escape(left))) - len(keys) - 1
	dir := []rune(ui.Escape(p.dir))
	switch {
	case room < 8:
		return []string{left + keys}, true
	case len(dir) > room:
		dir = append([]rune("…"), dir[len(dir)-room+1:]...)
	}
	return []string{left + string(dir) + strings.Repeat(" ", room-len(dir)+1) + keys}, true
}

func (status) key(context.Context, *client, string) (overlay, error) { return nil, nil }

// message is something that went wrong, until a key is pressed.
type message string

func (m message) lines(*client, int, int) ([]string, bool) { return []string{" " + string(m)}, true }

func (message) key(context.Context, *client, string) (overlay, error) { return nil, nil }

// confirm asks before something that cannot be undone.
type confirm struct {
	question string
	yes      func(context.Context) error
}

func (q confirm) lines(*client, int, int) ([]string, bool) {
	return []string{" " + q.question + " (y/n)"}, true
}

func (q confirm) key(ctx context.Context, _ *client, key string) (overlay, error) {
	if key == "y" {
		return nil, q.yes(ctx)
	}
	return nil, nil
}

// text is help, or the scrollback with a pager's keys.
type text struct {
	text  []string
	top   int
	pager bool
}

func (t text) lines(_ *client, _, rows int) ([]string, bool) {
	page := rows - 1
	top := min(max(t.top, 0), max(0, len(t.text)-page))
	out := append([]string(nil), t.text[top:min(top+page, len(t.text))]...)
	for len(out) < page {
		out = append(out, "")
	}
	foot := " any key: back"
	if t.pager {
		foot = fmt.Sprintf(" lines %d-%d of %d   up/down, PgUp/PgDn, g/G: move   q: back", top+1, min(top+page, len(t.text)), len(t.text))
	}
	return append(out, foot), false
}

func (t text) key(_ context.Context, c *client, key string) (overlay, error) {
	if !t.pager {
		return nil, nil
	}
	_, rows := c.screen.size()
	page := rows - 1
	end := max(0, len(t.text)-page)
	switch key {
	case "q", "esc", "enter":
		return nil, nil
	case "up", "k":
		t.top--
	case "down", "j":
		t.top++
	case "pgup", "b":
		t.top -= page
	case "pgdn", " ", "f":
		t.top += page
	case "home", "g":
		t.top = 0
	case "end", "G":
		t.top = end
	}
	t.top = min(max(t.top, 0), end)
	return t, nil
}

// list chooses a terminal.
type list struct {
	places []place
	at     int
}

func (l list) lines(_ *client, _, rows int) ([]string, bool) {
	out := []string{" choose a terminal: up/down, Enter; q: back", ""}
	room := max(1, rows-len(out))
	top := max(0, l.at-room+1)
	for i := top; i < len(l.places) && i < top+room; i++ {
		p := l.places[i]
		mark := "  "
		if i == l.at {
			mark = "> "
		}
		line := fmt.Sprintf("%s%-16s %-14s %s", mark, p, p.what, p.dir)
		if p.dead {
			line += "  (ended)"
		}
		out = append(out, line)
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
		if len(l.places) == 0 {
			return nil, nil
		}
		return nil, c.show(ctx, l.places[l.at].terminal)
	}
	return l, nil
}

func help(prefix byte) string {
	p := name(prefix)
	return strings.Join([]string{
		"", "  phux-agent attach: keys", "",
		"  " + p + " d      detach: everything goes on without you",
		"  " + p + " n, p   next, previous terminal",
		"  " + p + " w      choose a terminal from a list",
		"  " + p + " c      a new shell in this session",
		"  " + p + " x      kill this terminal (asks)",
		"  " + p + " R      start the program of an ended terminal again",
		"  " + p + " [      scrollback",
		"  " + p + " ?      this help",
		"  " + p + " " + p + "  the key itself, for the program", "",
		"  Agents that ended keep their record: phux-agent ps", "",
	}, "\n")
}
