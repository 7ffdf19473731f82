package embedded

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/phux-agent/phux-agent/internal/ui"
)

// past is a line above the screen: its text with its looks, which begins and ends without any. Where it
// was wrapped, the blanks at its end are there, and the next one goes on with it.
type past struct {
	text    string
	wrapped bool
}

// Resize gives the screen another size. Lines of the main screen that were wrapped are wrapped anew,
// those above it included, so that nothing is lost of what is narrowed and made wide again; a screen
// that was full stays full. Of the other screen what fits is kept: its program draws it anew.
func (s *screen) Resize(cols, rows int) {
	cols, rows = max(cols, 1), max(rows, 1)
	if cols == s.cols && rows == s.rows {
		return
	}
	wrap := false
	if s.main.rows != nil {
		wrap = s.reflow(cols, rows) && s.on == &s.main
	}
	if s.alt.rows != nil {
		s.alt.clip(cols, rows)
	}
	s.size(cols, rows)
	s.top, s.end, s.wrap = 0, rows, wrap
	for i := range s.saved {
		s.saved[i].x, s.saved[i].y = min(s.saved[i].x, cols-1), min(s.saved[i].y, rows-1)
	}
}

// clip keeps what fits, and the cursor on it.
func (g *grid) clip(cols, rows int) {
	if over := g.y - (rows - 1); over > 0 {
		g.rows = g.rows[over:]
		g.y -= over
	}
	next := blankRows(cols, rows)
	for i := range min(rows, len(g.rows)) {
		n := copy(next[i].cells, g.rows[i].cells)
		if n > 0 && n < len(g.rows[i].cells) && g.rows[i].cells[n].ch == wideTail {
			next[i].cells[n-1] = cell{}
		}
	}
	g.rows, g.x = next, min(g.x, cols-1)
}

func blankRows(cols, rows int) []line {
	out := make([]line, rows)
	all := make([]cell, rows*cols)
	for i := range out {
		out[i].cells = all[i*cols : (i+1)*cols : (i+1)*cols]
	}
	return out
}

// spot is a place that goes with the text that it stands in.
type spot struct {
	x, y int // of the screen as it was, and then as it is
	at   int // in its text
	text int // the number of it, -1 of one that is not found
}

// reflow wraps the main screen anew, and says whether its cursor stands behind the last column.
func (s *screen) reflow(cols, rows int) (wrap bool) {
	g := &s.main
	s.still = true // cells are held here, which no sweep of the tables would see
	defer func() { s.still = false }()
	s.history, s.begin = slices.Concat(s.history[s.begin:], s.history[:s.begin]), 0

	// The cursor, and where it is saved: while the other screen is shown that is the one to come back to.
	spots := [2]spot{{x: g.x, y: g.y, text: -1}, {x: s.saved[0].x, y: s.saved[0].y, text: -1}}
	if s.wrap && s.on == g {
		spots[0].x++
	}
	cursor := &spots[0]
	if s.on != g {
		cursor = &spots[1]
	}
	used := cursor.y
	for y := len(g.rows) - 1; y > used; y-- {
		if slices.ContainsFunc(g.rows[y].cells, func(c cell) bool { return c != cell{} }) {
			used = y
		}
	}
	full := used == len(g.rows)-1

	texts := [][]cell{nil}
	if n := len(s.history); n > 0 && s.history[n-1].wrapped {
		texts[0] = s.recall(s.lastText())
	}
	for y := range used + 1 {
		l := &g.rows[y]
		n := len(texts) - 1
		for i := range spots {
			if spots[i].y == y {
				spots[i].text, spots[i].at = n, len(texts[n])+spots[i].x
			}
		}
		end := len(l.cells)
		on := l.wrapped && y < used
		for end > 0 && l.cells[end-1] == (cell{}) && (!on || end == len(l.cells)) {
			end-- // of a wrapped one it is where a wide character did not fit
		}
		texts[n] = append(texts[n], l.cells[:end]...)
		if !on && y < used {
			texts = append(texts, nil)
		}
	}

	var next []line
	for n, t := range texts {
		starts := breaks(t, cols)
		for i := range spots {
			p := &spots[i]
			if p.text != n {
				continue
			}
			piece := len(starts) - 1
			for piece > 0 && starts[piece] > p.at {
				piece--
			}
			// Behind the text it stands where it stood, as far as there is room.
			if p.y, p.x = len(next)+piece, p.at-starts[piece]; p.x >= cols && (p.x > cols || p.at != len(t)) {
				p.x = cols - 1
			}
		}
		next = appendPieces(next, t, starts, cols)
	}

	switch over := len(next) - rows; {
	case over > 0:
		over = min(over, cursor.y)
		for i := range over {
			s.remember(&next[i])
		}
		next = next[over:]
		next = next[:min(rows, len(next))]
		spots[0].y, spots[1].y = spots[0].y-over, spots[1].y-over
	case over < 0 && full:
		above := s.pull(-over, cols)
		next = append(above, next...)
		spots[0].y, spots[1].y = spots[0].y+len(above), spots[1].y+len(above)
	}
	for i := len(next); i < rows; i++ {
		next = append(next, line{cells: make([]cell, cols)})
	}
	g.rows = next
	wrap = spots[0].x == cols
	for i := range spots {
		spots[i].x, spots[i].y = min(spots[i].x, cols-1), min(max(spots[i].y, 0), rows-1)
	}
	g.x, g.y = spots[0].x, spots[0].y
	if spots[1].text >= 0 {
		s.saved[0].x, s.saved[0].y = spots[1].x, spots[1].y
	}
	return wrap
}

// breaks are the cells at which the lines of a text begin. A wide character is not divided; one that is
// wider than a line is left alone in it.
func breaks(t []cell, cols int) []int {
	starts := []int{0}
	for at := 0; len(t)-at > cols; {
		n := cols
		if t[at+n].ch == wideTail && n > 1 {
			n--
		}
		at += n
		starts = append(starts, at)
	}
	return starts
}

func appendPieces(to []line, t []cell, starts []int, cols int) []line {
	for i, at := range starts {
		end := len(t)
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		l := line{cells: make([]cell, cols), wrapped: i+1 < len(starts)}
		copy(l.cells, t[at:end])
		if cols == 1 && (l.cells[0].ch == wideTail || end < len(t) && t[end].ch == wideTail) {
			l.cells[0] = cell{} // there is no room for it at all
		}
		to = append(to, l)
	}
	return to
}

// pull takes so many lines off the end of what is above the screen.
func (s *screen) pull(n, cols int) (out []line) {
	for len(out) < n && len(s.history) > 0 {
		t := s.recall(s.lastText())
		lines := appendPieces(nil, t, breaks(t, cols), cols)
		rest := max(len(lines)-(n-len(out)), 0)
		for i := range rest {
			s.remember(&lines[i])
		}
		out = append(lines[rest:], out...)
	}
	return out
}

// lastText takes the last text off what is above the screen, all of its lines. The ring begins at 0.
func (s *screen) lastText() string {
	n := len(s.history) - 1
	for n > 0 && s.history[n-1].wrapped {
		n--
	}
	var b strings.Builder
	for _, l := range s.history[n:] {
		b.WriteString(l.text)
	}
	s.history = s.history[:n]
	return b.String()
}

// recall makes cells of a text with looks.
func (s *screen) recall(text string) []cell {
	over := *s
	over.parser, over.modes, over.charsets, over.pen, over.wrap = parser{}, modes{noWrap: true}, [2]bool{}, style{}, false
	over.cols, over.rows, over.top, over.end = len(text)+1, 1, 0, 1
	g := grid{rows: blankRows(over.cols, 1)}
	over.on, over.reply = &g, nil
	over.take([]byte(text))
	s.clusters, s.extras = over.clusters, over.extras
	return g.rows[0].cells[:g.x]
}

// wrapText appends the lines of a text with looks in a window of so many columns. Each SGR sequence
// in it says all of a look, as those of lineLooks do.
func wrapText(to []string, text string, cols int) []string {
	if len(text) <= cols {
		return append(to, trimLine(text))
	}
	pen, w, last, joined := "", 0, 0, false
	var b strings.Builder
	for len(text) > 0 {
		if text[0] == esc {
			n := strings.IndexByte(text, 'm') + 1
			if n == 0 {
				n = len(text)
			}
			if pen = text[:n]; pen == "\x1b[m" {
				pen = ""
			}
			b.WriteString(text[:n])
			text = text[n:]
			continue
		}
		r, n := utf8.DecodeRuneInString(text)
		c := ui.RuneWidth(r)
		if joined {
			c = 0 // with the one before it
		}
		joined = r == ui.Joiner && last == 2
		if c > 0 {
			last = c
		}
		if w+c > cols && w > 0 {
			if pen != "" {
				b.WriteString("\x1b[m")
			}
			to = append(to, trimLine(b.String()))
			b.Reset()
			b.WriteString(pen)
			w = 0
		}
		b.WriteString(text[:n])
		w += c
		text = text[n:]
	}
	return append(to, trimLine(b.String()))
}

func trimLine(l string) string { return strings.TrimRight(l, " ") }

// above are the last n lines of what is above the screen, as wide as that.
func (s *screen) above(n int) []string {
	var out []string
	var text []string // of one text, from its end
	for i := len(s.history) - 1; i >= 0 && len(out) < n; i-- {
		l := s.history[(s.begin+i)%len(s.history)]
		text = append(text, l.text)
		if i > 0 && s.history[(s.begin+i-1)%len(s.history)].wrapped {
			continue
		}
		slices.Reverse(text)
		lines := wrapText(nil, strings.Join(text, ""), s.cols)
		slices.Reverse(lines)
		out, text = append(out, lines...), text[:0]
	}
	if len(out) > n {
		out = out[:n]
	}
	slices.Reverse(out)
	return out
}
