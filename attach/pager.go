package attach

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/phux-agent/phux-agent/internal/ui"
)

// pager shows lines with their looks, a page at a time: the scrollback, or help.
type pager struct {
	lines []string
	top   int
	help  bool

	asking bool   // for what to look for
	typed  string // so far
	query  string
	found  int // the line of the match that was gone to, plus 1
	note   string
}

func (t pager) draw(_ context.Context, _ *client, cols, rows int) ([]string, bool) {
	page := max(1, rows-1)
	top := min(max(t.top, 0), max(0, len(t.lines)-page))
	out := make([]string, 0, rows)
	for i := top; i < top+page; i++ {
		l := ""
		if i < len(t.lines) {
			l = t.lines[i]
		}
		if shown := marked(withoutLooks(l), t.query, i+1 == t.found); t.query != "" && shown != "" {
			l = shown
		}
		out = append(out, cutLooks(l, cols))
	}
	var foot string
	switch {
	case t.asking:
		foot = "/" + ui.Escape(t.typed) + "_"
	case t.help && len(t.lines) <= page:
		foot = " any key: back"
	default:
		foot = fmt.Sprintf(" lines %d-%d of %d", top+1, min(top+page, len(t.lines)), len(t.lines))
		if t.note != "" {
			foot += "   " + t.note
		}
		foot += "   up/down, PgUp/PgDn, g/G: move   /: search, n/N: older/newer   q: back"
	}
	return append(out, "\x1b[7m"+ui.Clip(foot, cols)), false
}

func (t pager) key(_ context.Context, c *client, key string) (overlay, error) {
	_, rows := c.screen.size()
	page := max(1, rows-1)
	end := max(0, len(t.lines)-page)
	t.note = ""
	if t.asking {
		return t.ask(key, page), nil
	}
	if t.help && end == 0 {
		return nil, nil
	}
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
	case "/", "?":
		t.asking, t.typed = true, ""
	case "n":
		t = t.search(-1, page)
	case "N":
		t = t.search(1, page)
	}
	t.top = min(max(t.top, 0), end)
	return t, nil
}

// ask takes a key of what to look for.
func (t pager) ask(key string, page int) pager {
	switch key {
	case "esc":
		t.asking = false
	case "enter":
		if t.asking, t.query, t.found = false, t.typed, 0; t.query != "" {
			t = t.search(-1, page)
		}
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(t.typed)
		t.typed = t.typed[:len(t.typed)-n]
	default:
		if r := []rune(key); len(r) == 1 && unicode.IsPrint(r[0]) {
			t.typed += key
		}
	}
	return t
}

// search goes to the next match: upwards, from the end of what is shown, by -1, and downwards by 1.
func (t pager) search(step, page int) pager {
	if t.query == "" {
		return t
	}
	from := min(t.top+page, len(t.lines))
	if t.found > 0 {
		from = t.found - 1
	} else if step > 0 {
		from = t.top - 1
	}
	for i := from + step; i >= 0 && i < len(t.lines); i += step {
		if matches(withoutLooks(t.lines[i]), t.query) {
			t.found = i + 1
			if i < t.top || i >= t.top+page {
				t.top = min(max(i-page/2, 0), max(0, len(t.lines)-page))
			}
			return t
		}
	}
	t.note = "no more of " + ui.Escape(t.query)
	return t
}

// matches ignores capitals where the query has none.
func matches(l, query string) bool {
	if query == strings.ToLower(query) {
		l = strings.ToLower(l)
	}
	return strings.Contains(l, query)
}

// marked is a line with its matches inverse, or empty where there are none; the one that was gone to
// is underlined as well.
func marked(l, query string, here bool) string {
	if query == "" || !matches(l, query) {
		return ""
	}
	low := l
	if query == strings.ToLower(query) {
		if low = strings.ToLower(l); len(low) != len(l) {
			return "\x1b[7m" + l + "\x1b[m"
		}
	}
	look := "\x1b[7m"
	if here {
		look = "\x1b[4;7m"
	}
	var b strings.Builder
	for {
		i := strings.Index(low, query)
		if i < 0 {
			return b.String() + l
		}
		b.WriteString(l[:i] + look + l[i:i+len(query)] + "\x1b[m")
		l, low = l[i+len(query):], low[i+len(query):]
	}
}

// cutLooks cuts a line to so many cells. Looks stay; any other control is shown.
func cutLooks(l string, cols int) string {
	var b strings.Builder
	w := 0
	for len(l) > 0 {
		if n := look(l); n > 0 {
			b.WriteString(l[:n])
			l = l[n:]
			continue
		}
		_, n := utf8.DecodeRuneInString(l)
		c := ui.Escape(l[:n])
		if w += ui.Width(c); w > cols {
			break
		}
		b.WriteString(c)
		l = l[n:]
	}
	return b.String() + "\x1b[m"
}

// look is the length of the SGR sequence that l begins with, 0 where there is none.
func look(l string) int {
	if !strings.HasPrefix(l, "\x1b[") {
		return 0
	}
	n := 2
	for n < len(l) && (l[n] >= '0' && l[n] <= '9' || l[n] == ';' || l[n] == ':') {
		n++
	}
	if n == len(l) || l[n] != 'm' {
		return 0
	}
	return n + 1
}

func withoutLooks(l string) string {
	if strings.IndexByte(l, esc) < 0 {
		return l
	}
	var b strings.Builder
	for len(l) > 0 {
		if n := look(l); n > 0 {
			l = l[n:]
			continue
		}
		b.WriteByte(l[0])
		l = l[1:]
	}
	return b.String()
}
