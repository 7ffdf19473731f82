package embedded

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/phux-agent/phux-agent/internal/ui"
)

// screen is the emulator: what stands on a terminal of the kind that TERM=xterm-256color names. It
// keeps the cells of the screen with their looks, and above it the text of lines that went.
//
// Libraries were measured first (see docs/decisions): at 0.5 to 7 MB/s they cannot follow a
// program that writes, and they weigh several times as much.
type screen struct {
	parser
	cols, rows int
	main, alt  grid
	on         *grid // the one of the two that is shown
	history    []past
	begin      int  // of history, which is a ring
	still      bool // the tables are not swept
	pen        style
	wrap       bool // the cursor stands behind the last column
	top, end   int  // scroll region: rows top to end-1
	tabs       []bool
	modes      modes
	charsets   [2]bool // line drawing
	shift      int
	saved      [2]cursor // of main and alt
	title      string
	titles     []string
	last       rune // for REP
	clusters   []string
	extras     []extra      // the first is none
	reply      func([]byte) // answers a program's question; may be nil
}

type grid struct {
	rows []line
	x, y int
}

type line struct {
	cells   []cell
	wrapped bool // it goes on in the next one
}

// cell is one character cell. ch is 0 where nothing was written, wideTail in the right half of a
// wide character, and below that the number of a cluster of several characters.
type cell struct {
	ch    rune
	style style
}

const wideTail = -1

type style struct {
	fg, bg colour
	flags  uint16
	extra  uint16 // number in the table of extras; 0 is none
}

// extra is what few cells have: an underline of another colour, a link.
type extra struct {
	under colour
	link  string // what follows OSC 8;
}

// colour is 0 by default, else its kind in the top byte: 1 indexed, 2 direct.
type colour uint32

const (
	indexed colour = 1 << 24
	direct  colour = 2 << 24
)

const (
	bold uint16 = 1 << iota
	faint
	italic
	underline
	blink
	inverse
	hidden
	strike
	overline
	// The kind of an underline, where it is not the plain one: double, curly, dotted or dashed.
	kinds = 7 << 9
)

func kindOf(flags uint16) int { return int(flags & kinds >> 9) }

func withKind(flags uint16, kind int) uint16 { return flags&^kinds | uint16(kind)<<9 }

type modes struct {
	appCursor, appKeypad, origin, noWrap, insert, newline, noCursor bool
	altScreen                                                       bool
	paste, focus                                                    bool
	mouse                                                           int // 0, 9, 1000, 1002 or 1003
	mouseForm                                                       int // 0, 1005, 1006, 1015 or 1016
	cursorShape                                                     int
	otherKeys                                                       int       // xterm's modifyOtherKeys
	kitty                                                           [2]stack  // the keyboard's flags, of main and alt
	others                                                          [8]toggle // by otherModes
}

// stack is the flags of the kitty keyboard protocol: what is set now, and what was pushed below.
type stack struct {
	now, n int
	below  [8]int
}

func (s *stack) push(flags int) {
	if s.n == len(s.below) {
		copy(s.below[:], s.below[1:])
		s.n--
	}
	s.below[s.n] = s.now
	s.n, s.now = s.n+1, flags
}

func (s *stack) pop(n int) {
	if n = min(n, s.n+1); n > s.n {
		*s = stack{}
		return
	}
	s.n -= n
	s.now = s.below[s.n]
}

// toggle is a mode that has no meaning here, but one for the terminal of whoever looks.
type toggle uint8

const (
	untouched toggle = iota
	off
	on
)

// otherModes are those that are only remembered.
var otherModes = [8]int{5, 12, 45, 1007, 2027, 2031, 2048, 1036}

type cursor struct {
	x, y     int
	pen      style
	origin   bool
	charsets [2]bool
	shift    int
}

// maxClusters bounds the table of clusters; beyond it, marks are left out. So are extras.
const (
	maxClusters = 4096
	maxCluster  = 64 // bytes
	maxExtras   = 1024
	maxLink     = 2048 // bytes
)

// newScreen is a screen of that size. reply answers the questions of a program: it may be nil,
// and must not call the screen.
func newScreen(cols, rows int, reply func([]byte)) *screen {
	s := &screen{reply: reply}
	s.size(max(cols, 1), max(rows, 1))
	s.reset()
	return s
}

func (s *screen) size(cols, rows int) {
	s.cols, s.rows = cols, rows
	s.tabs = make([]bool, cols)
	for i := 8; i < cols; i += 8 {
		s.tabs[i] = true
	}
}

func (s *screen) reset() {
	s.unwrapPast()
	s.main, s.alt = s.newGrid(), grid{}
	s.on = &s.main
	s.pen, s.wrap, s.top, s.end = style{}, false, 0, s.rows
	s.clusters, s.extras = nil, nil
	s.modes, s.charsets, s.shift, s.saved = modes{}, [2]bool{}, 0, [2]cursor{}
}

func (s *screen) newGrid() grid {
	g := grid{rows: make([]line, s.rows)}
	all := make([]cell, s.rows*s.cols)
	for i := range g.rows {
		g.rows[i].cells = all[i*s.cols : (i+1)*s.cols : (i+1)*s.cols]
	}
	return g
}

// remember puts a line above the screen.
func (s *screen) remember(l *line) {
	next := past{s.lineLooks(l), l.wrapped}
	if len(s.history) < Scrollback {
		s.history = append(s.history, next)
		return
	}
	s.history[s.begin] = next
	s.begin = (s.begin + 1) % len(s.history)
}

func (s *screen) lineText(l *line) string {
	end := len(l.cells)
	for end > 0 && (l.cells[end-1].ch == 0 || l.cells[end-1].ch == ' ') {
		end--
	}
	if end == 0 {
		return ""
	}
	b := make([]byte, 0, end+8)
	for i := range l.cells[:end] {
		if ch := l.cells[i].ch; ch > 0 && ch < utf8.RuneSelf {
			b = append(b, byte(ch))
		} else {
			b = s.appendText(b, ch)
		}
	}
	return string(b)
}

func (s *screen) appendText(b []byte, ch rune) []byte {
	switch {
	case ch == 0:
		return append(b, ' ')
	case ch == wideTail:
		return b
	case ch < 0:
		return append(b, s.clusters[-int(ch)-2]...)
	case ch < utf8.RuneSelf:
		return append(b, byte(ch))
	}
	return utf8.AppendRune(b, ch)
}

// lineLooks is lineText with the looks, as SGR sequences; a line begins and ends without any. One that
// goes on in the next has its blanks.
func (s *screen) lineLooks(l *line) string {
	end := len(l.cells)
	if l.wrapped {
		if end > 0 && l.cells[end-1] == (cell{}) { // a wide character did not fit
			end--
		}
	} else {
		for end > 0 && (l.cells[end-1].ch == 0 || l.cells[end-1].ch == ' ') && l.cells[end-1].style == (style{}) {
			end--
		}
	}
	if end == 0 {
		return ""
	}
	b := make([]byte, 0, end+8)
	pen := style{}
	for i := range l.cells[:end] {
		c := &l.cells[i]
		if c.style != pen && c.ch != wideTail {
			pen = c.style
			b = s.appendStyle(b, pen)
		}
		if c.ch > 0 && c.ch < utf8.RuneSelf {
			b = append(b, byte(c.ch))
		} else {
			b = s.appendText(b, c.ch)
		}
	}
	if pen != (style{}) {
		b = append(b, "\x1b[m"...)
	}
	return string(b)
}

// withoutLooks takes the SGR sequences out of what lineLooks made, and the blanks at the end.
func withoutLooks(s string) string {
	if strings.IndexByte(s, 0x1b) < 0 {
		return s
	}
	var b strings.Builder
	for {
		text, rest, more := strings.Cut(s, "\x1b[")
		b.WriteString(text)
		if !more {
			return strings.TrimRight(b.String(), " ")
		}
		_, s, _ = strings.Cut(rest, "m")
	}
}

// Text is the screen, with the scrollback above it.
func (s *screen) Text(history int) string { return s.lines(history, false) }

// Looks is Text with the looks of it, as SGR sequences: each line begins and ends without any.
func (s *screen) Looks(history int) string { return s.lines(history, true) }

// Below is Looks of the terminal without the full screen that a program may have over it.
func (s *screen) Below(history int) string {
	on, over := s.on, s.modes.altScreen
	defer func() { s.on, s.modes.altScreen = on, over }()
	s.on, s.modes.altScreen = &s.main, false
	return s.lines(history, true)
}

func (s *screen) lines(history int, looks bool) string {
	var b strings.Builder
	if !s.modes.altScreen { // what is above belongs to the other screen
		for _, l := range s.above(history) {
			if !looks {
				l = withoutLooks(l)
			}
			b.WriteString(l)
			b.WriteByte('\n')
		}
	}
	for i := range s.on.rows {
		if looks {
			b.WriteString(trimLine(s.lineLooks(&s.on.rows[i])))
		} else {
			b.WriteString(s.lineText(&s.on.rows[i]))
		}
		b.WriteByte('\n')
	}
	return strings.TrimRight(b.String(), "\n")
}

func (s *screen) Cursor() (col, row int, shown bool) { return s.on.x, s.on.y, !s.modes.noCursor }

func (s *screen) Title() string { return s.title }

func (s *screen) FullScreen() bool { return s.modes.altScreen }

func (s *screen) AppCursor() bool { return s.modes.appCursor }

// ascii writes a run of plain characters.
func (s *screen) ascii(b []byte) {
	if s.charsets[s.shift] || s.modes.insert {
		for _, c := range b {
			s.put(rune(c))
		}
		return
	}
	g := s.on
	s.last = rune(b[len(b)-1])
	for len(b) > 0 {
		if s.wrap || g.x >= s.cols {
			s.wrapLine()
		}
		l := &g.rows[g.y]
		n := min(len(b), s.cols-g.x)
		cells := l.cells[g.x : g.x+n]
		s.unpair(l, g.x, g.x+n)
		for i := range cells {
			cells[i] = cell{rune(b[i]), s.pen}
		}
		b = b[n:]
		if g.x += n; g.x == s.cols {
			g.x, s.wrap = s.cols-1, !s.modes.noWrap
			if s.modes.noWrap && len(b) > 0 {
				l.cells[g.x] = cell{rune(b[len(b)-1]), s.pen}
				return
			}
		}
	}
}

// unpair clears the halves of wide characters that a write to from…to leaves alone.
func (s *screen) unpair(l *line, from, to int) {
	if from > 0 && from < len(l.cells) && l.cells[from].ch == wideTail {
		l.cells[from-1] = cell{}
	}
	if to > 0 && to < len(l.cells) && l.cells[to].ch == wideTail {
		l.cells[to] = cell{}
	}
}

func (s *screen) wrapLine() {
	g := s.on
	s.wrap = false
	g.rows[g.y].wrapped = true
	g.x = 0
	s.index()
}

const drawing = "◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·"

var drawn = []rune(drawing)

func (s *screen) put(r rune) {
	if s.charsets[s.shift] && r >= 0x60 && r < 0x7f {
		r = drawn[r-0x60]
	}
	w := ui.RuneWidth(r)
	if w == 0 || s.joins() {
		s.mark(r)
		return
	}
	g := s.on
	if s.wrap {
		s.wrapLine()
	}
	if w == 2 && g.x == s.cols-1 {
		if s.modes.noWrap || s.cols < 2 {
			return
		}
		s.wrapLine()
	}
	l := &g.rows[g.y]
	if s.modes.insert {
		s.insertCells(w)
	}
	s.unpair(l, g.x, g.x+w)
	l.cells[g.x] = cell{r, s.pen}
	if w == 2 {
		l.cells[g.x+1] = cell{wideTail, s.pen}
	}
	s.last = r
	if g.x += w; g.x >= s.cols {
		g.x, s.wrap = s.cols-1, !s.modes.noWrap
	}
}

// joins says that the wide character before the cursor ends in a joiner: what follows is of one
// picture with it.
func (s *screen) joins() bool {
	if len(s.clusters) == 0 {
		return false
	}
	x := s.on.x - 1
	if s.wrap {
		x = s.on.x
	}
	l := s.on.rows[s.on.y].cells
	if x < 1 || l[x].ch != wideTail || l[x-1].ch >= wideTail {
		return false
	}
	return strings.HasSuffix(s.clusters[-int(l[x-1].ch)-2], string(rune(ui.Joiner)))
}

// mark adds a character without width to the one before the cursor.
func (s *screen) mark(r rune) {
	g := s.on
	x := g.x - 1
	if s.wrap {
		x = g.x
	}
	if x < 0 {
		return
	}
	l := &g.rows[g.y]
	if l.cells[x].ch == wideTail && x > 0 {
		x--
	}
	c := &l.cells[x]
	if c.ch == 0 {
		c.ch = ' '
	}
	old := s.appendText(nil, c.ch)
	if len(old) >= maxCluster {
		return
	}
	if len(s.clusters) >= maxClusters {
		if !s.still {
			s.sweepClusters()
		}
		if len(s.clusters) >= maxClusters {
			return
		}
	}
	s.clusters = append(s.clusters, string(utf8.AppendRune(old, r)))
	c.ch = rune(-len(s.clusters) - 1)
}

// sweepClusters keeps those that still stand on a screen.
func (s *screen) sweepClusters() {
	var kept []string
	for _, g := range []*grid{&s.main, &s.alt} {
		for i := range g.rows {
			for n := range g.rows[i].cells {
				if c := &g.rows[i].cells[n]; c.ch < wideTail {
					kept = append(kept, s.clusters[-int(c.ch)-2])
					c.ch = rune(-len(kept) - 1)
				}
			}
		}
	}
	s.clusters = kept
}

// index moves down, and scrolls where that leaves the region.
func (s *screen) index() {
	g := s.on
	switch {
	case g.y == s.end-1:
		s.scroll(1)
	case g.y < s.rows-1:
		g.y++
	}
}

func (s *screen) reverseIndex() {
	g := s.on
	switch {
	case g.y == s.top:
		s.scrollDown(s.top, 1)
	case g.y > 0:
		g.y--
	}
}

// scroll moves the region up by n lines.
func (s *screen) scroll(n int) {
	g := s.on
	if n = min(n, s.end-s.top); g == &s.main && s.top == 0 {
		for i := range n {
			s.remember(&g.rows[i])
		}
	}
	s.scrollUp(s.top, n)
}

// scrollUp takes n lines out at a row of the region, and adds as many at its end.
func (s *screen) scrollUp(at, n int) {
	g := s.on
	n = min(n, s.end-at)
	region := g.rows[at:s.end]
	if at > 0 {
		g.rows[at-1].wrapped = false // it went on in what goes
	}
	if n == 1 { // by far the most
		first := region[0]
		copy(region, region[1:])
		region[len(region)-1] = first
	} else {
		rotate(region, n)
	}
	for i := len(region) - n; i < len(region); i++ {
		s.blank(&region[i])
	}
}

func (s *screen) scrollDown(at, n int) {
	g := s.on
	n = min(n, s.end-at)
	region := g.rows[at:s.end]
	s.unwrap(at) // something comes between
	rotate(region, len(region)-n)
	region[len(region)-1].wrapped = false
	for i := range n {
		s.blank(&region[i])
	}
}

// rotate moves the first n to the end.
func rotate(l []line, n int) {
	slices.Reverse(l[:n])
	slices.Reverse(l[n:])
	slices.Reverse(l)
}

// unwrap ends the line before row y: it does not go on there any more.
func (s *screen) unwrap(y int) {
	switch {
	case y > 0:
		s.on.rows[y-1].wrapped = false
	case s.on == &s.main:
		s.unwrapPast()
	}
}

func (s *screen) unwrapPast() {
	if n := len(s.history); n > 0 {
		s.history[(s.begin+n-1)%n].wrapped = false
	}
}

func (s *screen) blank(l *line) {
	s.erase(l, 0, len(l.cells))
	l.wrapped = false
}

func (s *screen) erase(l *line, from, to int) {
	if from, to = max(from, 0), min(to, len(l.cells)); from >= to {
		return
	}
	s.unpair(l, from, to)
	if s.pen.bg == 0 {
		clear(l.cells[from:to])
		return
	}
	for i := from; i < to; i++ {
		l.cells[i] = cell{0, style{bg: s.pen.bg}}
	}
}

func (s *screen) insertCells(n int) {
	g := s.on
	l := g.rows[g.y].cells
	n = min(n, s.cols-g.x)
	s.unpair(&g.rows[g.y], g.x, g.x)
	copy(l[g.x+n:], l[g.x:])
	s.erase(&g.rows[g.y], g.x, g.x+n)
	if l[s.cols-1].ch != wideTail && s.cols > 1 && width2(l[s.cols-1].ch) {
		l[s.cols-1] = cell{}
	}
}

// width2 says whether a cell's character is a wide one that has lost its right half.
func width2(ch rune) bool { return ch > 0 && ui.RuneWidth(ch) == 2 }

func (s *screen) deleteCells(n int) {
	g := s.on
	l := g.rows[g.y].cells
	n = min(n, s.cols-g.x)
	s.unpair(&g.rows[g.y], g.x, g.x+n)
	copy(l[g.x:], l[g.x+n:])
	s.erase(&g.rows[g.y], s.cols-n, s.cols)
}

func (s *screen) control(c byte) {
	g := s.on
	switch c {
	case 0x08:
		s.wrap = false
		g.x = max(g.x-1, 0)
	case 0x09:
		s.tab(1)
	case 0x0a, 0x0b, 0x0c:
		s.wrap = false
		if s.modes.newline {
			g.x = 0
		}
		s.index()
	case 0x0d:
		s.wrap = false
		g.x = 0
	case 0x0e:
		s.shift = 1
	case 0x0f:
		s.shift = 0
	}
}

func (s *screen) tab(n int) {
	g := s.on
	for ; n > 0 && g.x < s.cols-1; n-- {
		for g.x++; g.x < s.cols-1 && !s.tabs[g.x]; g.x++ {
		}
	}
}

func (s *screen) tabBack(n int) {
	g := s.on
	for ; n > 0 && g.x > 0; n-- {
		for g.x--; g.x > 0 && !s.tabs[g.x]; g.x-- {
		}
	}
}

func (s *screen) escape(c byte) {
	switch c {
	case '7':
		s.save()
	case '8':
		s.restore()
	case 'D':
		s.wrap = false
		s.index()
	case 'E':
		s.wrap, s.on.x = false, 0
		s.index()
	case 'M':
		s.wrap = false
		s.reverseIndex()
	case 'H':
		s.tabs[s.on.x] = true
	case 'c':
		s.reset()
		s.size(s.cols, s.rows)
	case '=':
		s.modes.appKeypad = true
	case '>':
		s.modes.appKeypad = false
	}
}

func (s *screen) escInter(inter, c byte) {
	switch {
	case inter == '(' || inter == ')':
		s.charsets[inter-'('] = c == '0'
	case inter == '#' && c == '8':
		for i := range s.on.rows {
			for n := range s.on.rows[i].cells {
				s.on.rows[i].cells[n] = cell{ch: 'E'}
			}
		}
	}
}

// keyboard is the kitty keyboard's flags of the screen that is shown.
func (s *screen) keyboard() *stack {
	if s.modes.altScreen {
		return &s.modes.kitty[1]
	}
	return &s.modes.kitty[0]
}

func (s *screen) slot() *cursor {
	if s.modes.altScreen {
		return &s.saved[1]
	}
	return &s.saved[0]
}

func (s *screen) save() {
	*s.slot() = cursor{s.on.x, s.on.y, s.pen, s.modes.origin, s.charsets, s.shift}
}

func (s *screen) restore() {
	c := *s.slot()
	s.on.x, s.on.y, s.wrap = min(c.x, s.cols-1), min(c.y, s.rows-1), false
	s.pen, s.modes.origin, s.charsets, s.shift = c.pen, c.origin, c.charsets, c.shift
}

// moveTo counts from 0, and from the region where the origin is there.
func (s *screen) moveTo(x, y int) {
	top, end := 0, s.rows
	if s.modes.origin {
		top, end = s.top, s.end
		y += top
	}
	s.on.x, s.on.y, s.wrap = min(max(x, 0), s.cols-1), min(max(y, top), end-1), false
}

func (s *screen) moveBy(dx, dy int) {
	g := s.on
	top, end := 0, s.rows
	if g.y >= s.top { // the region is not left, and not crossed
		top = s.top
	}
	if g.y < s.end {
		end = s.end
	}
	g.x, g.y, s.wrap = min(max(g.x+dx, 0), s.cols-1), min(max(g.y+dy, top), end-1), false
}

func (s *screen) csi(c byte) {
	p, g := &s.parser, s.on
	switch {
	case p.inter == '!' && c == 'p': // soft reset
		s.modes.origin, s.modes.insert, s.modes.noCursor, s.modes.appCursor, s.modes.appKeypad = false, false, false, false, false
		s.modes.noWrap, s.top, s.end, s.pen = false, 0, s.rows, style{}
		s.charsets, s.shift, s.saved[0], s.saved[1] = [2]bool{}, 0, cursor{}, cursor{}
		return
	case p.inter == ' ' && c == 'q':
		s.modes.cursorShape = min(p.arg(0, 0), 6)
		return
	case p.inter == '$' && c == 'p':
		s.answer("\x1b[%s%d;0$y", prefix(p.private), p.arg(0, 0))
		return
	case p.inter != 0:
		return
	case p.private != 0:
		s.private(c)
		return
	}
	switch c {
	case '@':
		s.wrap = false
		s.insertCells(p.count(0))
	case 'A':
		s.moveBy(0, -p.count(0))
	case 'B', 'e':
		s.moveBy(0, p.count(0))
	case 'C', 'a':
		s.moveBy(p.count(0), 0)
	case 'D':
		s.moveBy(-p.count(0), 0)
	case 'E':
		s.moveBy(-g.x, p.count(0))
	case 'F':
		s.moveBy(-g.x, -p.count(0))
	case 'G', '`':
		g.x, s.wrap = min(p.count(0), s.cols)-1, false
	case 'H', 'f':
		s.moveTo(p.count(1)-1, p.count(0)-1)
	case 'I':
		s.wrap = false
		s.tab(min(p.count(0), s.cols))
	case 'Z':
		s.wrap = false
		s.tabBack(min(p.count(0), s.cols))
	case 'J':
		s.eraseScreen(p.arg(0, 0))
	case 'K':
		s.eraseLine(p.arg(0, 0))
	case 'L', 'M':
		if g.y < s.top || g.y >= s.end {
			return
		}
		g.x, s.wrap = 0, false
		s.unwrap(g.y)
		if c == 'L' {
			s.scrollDown(g.y, p.count(0))
		} else {
			s.scrollUp(g.y, p.count(0))
		}
	case 'P':
		s.wrap = false
		s.deleteCells(p.count(0))
	case 'S':
		s.scroll(p.count(0))
	case 'T':
		s.scrollDown(s.top, p.count(0))
	case 'X':
		s.wrap = false
		s.erase(&g.rows[g.y], g.x, g.x+min(p.count(0), s.cols))
	case 'b':
		if s.last != 0 {
			for range min(p.count(0), s.cols*s.rows) {
				s.put(s.last)
			}
		}
	case 'c':
		s.answer("\x1b[?62;22c")
	case 'd':
		s.moveTo(g.x, p.count(0)-1)
	case 'g':
		switch p.arg(0, 0) {
		case 0:
			s.tabs[g.x] = false
		case 3:
			clear(s.tabs)
		}
	case 'h', 'l':
		for i := range p.n + 1 {
			switch p.arg(i, 0) {
			case 4:
				s.modes.insert = c == 'h'
			case 20:
				s.modes.newline = c == 'h'
			}
		}
	case 'm':
		s.sgr()
	case 'n':
		switch p.arg(0, 0) {
		case 5:
			s.answer("\x1b[0n")
		case 6:
			y := g.y
			if s.modes.origin {
				y -= s.top
			}
			s.answer("\x1b[%d;%dR", y+1, g.x+1)
		}
	case 'r':
		top, end := p.count(0)-1, min(max(p.arg(1, s.rows), 0), s.rows)
		if end == 0 {
			end = s.rows
		}
		if top+1 < end {
			s.top, s.end = top, end
			s.moveTo(0, 0)
		}
	case 's':
		s.save()
	case 'u':
		s.restore()
	case 't':
		switch p.arg(0, 0) {
		case 18:
			s.answer("\x1b[8;%d;%dt", s.rows, s.cols)
		case 22:
			if len(s.titles) < 16 {
				s.titles = append(s.titles, s.title)
			}
		case 23:
			if n := len(s.titles); n > 0 {
				s.title, s.titles = s.titles[n-1], s.titles[:n-1]
			}
		}
	}
}

func prefix(private byte) string {
	if private == 0 {
		return ""
	}
	return string(rune(private))
}

func (s *screen) answer(format string, args ...any) {
	if s.reply != nil {
		s.reply(fmt.Appendf(nil, format, args...))
	}
}

func (s *screen) private(c byte) {
	p := &s.parser
	switch {
	case p.private == '>' && c == 'c':
		s.answer("\x1b[>41;0;0c")
	case p.private == '>' && c == 'q':
		s.answer("\x1bP>|phux-agent\x1b\\")
	case p.private == '?' && c == 'n' && p.arg(0, 0) == 6:
		s.answer("\x1b[?%d;%dR", s.on.y+1, s.on.x+1)
	case p.private == '?' && c == 'J':
		s.eraseScreen(p.arg(0, 0))
	case p.private == '?' && c == 'K':
		s.eraseLine(p.arg(0, 0))
	case p.private == '>' && c == 'm':
		switch p.arg(0, 4) {
		case 4:
			s.modes.otherKeys = min(p.arg(1, 0), 3)
		}
	case p.private == '>' && c == 'n' && p.arg(0, 0) == 4:
		s.modes.otherKeys = 0
	case c == 'u' && p.private != '?':
		k := s.keyboard()
		switch flags := p.arg(0, 0) & 31; p.private {
		case '>':
			k.push(flags)
		case '<':
			k.pop(max(p.arg(0, 1), 1))
		case '=':
			switch p.arg(1, 1) {
			case 1:
				k.now = flags
			case 2:
				k.now |= flags
			case 3:
				k.now &^= flags
			}
		}
	case p.private == '?' && (c == 'h' || c == 'l'):
		for i := range p.n + 1 {
			s.mode(p.arg(i, 0), c == 'h')
		}
	}
}

func (s *screen) mode(n int, set bool) {
	m := &s.modes
	switch n {
	case 1:
		m.appCursor = set
	case 6:
		m.origin = set
		s.moveTo(0, 0)
	case 7:
		m.noWrap = !set
		s.wrap = s.wrap && set
	case 25:
		m.noCursor = !set
	case 66:
		m.appKeypad = set
	case 9, 1000, 1002, 1003:
		if set {
			m.mouse = n
		} else {
			m.mouse = 0
		}
	case 1005, 1006, 1015, 1016:
		if set {
			m.mouseForm = n
		} else if m.mouseForm == n {
			m.mouseForm = 0
		}
	case 1004:
		m.focus = set
	case 2004:
		m.paste = set
	case 5, 12, 45, 1007, 2027, 2031, 2048, 1036:
		i := slices.Index(otherModes[:], n)
		if m.others[i] = off; set {
			m.others[i] = on
		}
	case 47, 1047, 1049:
		if n == 1049 && set {
			s.save()
		}
		s.setAlt(set)
		if n == 1049 && !set {
			s.restore()
		}
	case 1048:
		if set {
			s.save()
		} else {
			s.restore()
		}
	}
}

func (s *screen) setAlt(set bool) {
	if s.modes.altScreen == set {
		return
	}
	s.wrap = false
	x, y := s.on.x, s.on.y
	if s.modes.altScreen = set; set {
		s.alt = s.newGrid()
		s.on = &s.alt
	} else {
		s.on, s.alt = &s.main, grid{}
		s.modes.kitty[1] = stack{}
	}
	s.on.x, s.on.y = x, y
}

func (s *screen) eraseScreen(what int) {
	g := s.on
	s.wrap = false
	switch what {
	case 0:
		if g.x == 0 {
			s.unwrap(g.y)
		}
		s.eraseLine(0)
		for i := g.y + 1; i < s.rows; i++ {
			s.blank(&g.rows[i])
		}
	case 1:
		s.unwrap(0)
		for i := range g.y {
			s.blank(&g.rows[i])
		}
		s.eraseLine(1)
	case 2:
		s.unwrap(0)
		for i := range g.rows {
			s.blank(&g.rows[i])
		}
	case 3:
		s.history, s.begin = nil, 0
	}
}

func (s *screen) eraseLine(what int) {
	g := s.on
	l := &g.rows[g.y]
	s.wrap = false
	switch what {
	case 0:
		s.erase(l, g.x, s.cols)
		l.wrapped = false
	case 1:
		s.unwrap(g.y)
		s.erase(l, 0, g.x+1)
	case 2:
		s.unwrap(g.y)
		s.blank(l)
	}
}

func (s *screen) sgr() {
	p := &s.parser
	flags := [...]uint16{1: bold, 2: faint, 3: italic, 4: underline, 5: blink, 6: blink, 7: inverse, 8: hidden, 9: strike}
	for i := 0; i <= p.n; i++ {
		v := p.arg(i, 0)
		if p.sub[i] {
			continue
		}
		if i < p.n && p.sub[i+1] && v != 4 && v != 38 && v != 48 && v != 58 {
			continue // no such thing
		}
		switch {
		case v == 0:
			link := s.extraOf(s.pen).link // a link goes on until it is ended
			s.pen = style{}
			if link != "" {
				s.setExtra(extra{link: link})
			}
		case v == 4 || v == 21:
			kind := 0
			if v == 21 {
				kind = 1
			} else if i < p.n && p.sub[i+1] {
				if kind = p.arg(i+1, 1) - 1; kind < 0 || kind > 4 {
					s.pen.flags = withKind(s.pen.flags, 0) &^ underline
					continue
				}
			}
			s.pen.flags = withKind(s.pen.flags, kind) | underline
		case v <= 9:
			s.pen.flags |= flags[v]
		case v == 22:
			s.pen.flags &^= bold | faint
		case v == 25:
			s.pen.flags &^= blink
		case v == 24:
			s.pen.flags = withKind(s.pen.flags, 0) &^ underline
		case v >= 23 && v <= 29 && v != 26:
			s.pen.flags &^= flags[v-20]
		case v == 53:
			s.pen.flags |= overline
		case v == 55:
			s.pen.flags &^= overline
		case v >= 30 && v <= 37:
			s.pen.fg = indexed | colour(v-30)
		case v == 38:
			i += s.colour(i, &s.pen.fg)
		case v == 39:
			s.pen.fg = 0
		case v >= 40 && v <= 47:
			s.pen.bg = indexed | colour(v-40)
		case v == 48:
			i += s.colour(i, &s.pen.bg)
		case v == 49:
			s.pen.bg = 0
		case v == 58:
			e := s.extraOf(s.pen)
			i += s.colour(i, &e.under)
			s.setExtra(e)
		case v == 59:
			e := s.extraOf(s.pen)
			e.under = 0
			s.setExtra(e)
		case v >= 90 && v <= 97:
			s.pen.fg = indexed | colour(v-90+8)
		case v >= 100 && v <= 107:
			s.pen.bg = indexed | colour(v-100+8)
		}
	}
}

// colour reads what follows a 38 or 48 at i, in either form, and says how many parameters that
// were.
func (s *screen) colour(i int, to *colour) int {
	p := &s.parser
	n := 0 // of subparameters
	for i+n+1 <= p.n && p.sub[i+n+1] {
		n++
	}
	switch p.arg(i+1, -1) {
	case 5:
		if v := p.arg(i+2, -1); v < 0 || v > 255 {
			*to = 0
		} else {
			*to = indexed | colour(v)
		}
		if n > 0 {
			return n
		}
		return min(2, p.n-i)
	case 2:
		at := i + 2
		if n >= 5 { // with a colour space between
			at++
		}
		if r, g, b := p.arg(at, -1), p.arg(at+1, -1), p.arg(at+2, -1); min(r, g, b) >= 0 && max(r, g, b) <= 255 {
			*to = direct | colour(r<<16|g<<8|b)
		}
		if n > 0 {
			return n
		}
		return min(4, p.n-i)
	}
	return n
}

func (s *screen) extraOf(st style) extra {
	if st.extra == 0 {
		return extra{}
	}
	return s.extras[st.extra]
}

// setExtra gives the pen an extra. Where the table is full it has none.
func (s *screen) setExtra(e extra) {
	s.pen.extra = 0
	if e == (extra{}) {
		return
	}
	if i := slices.Index(s.extras, e); i > 0 {
		s.pen.extra = uint16(i)
		return
	}
	if len(s.extras) >= maxExtras {
		if !s.still {
			s.sweepExtras()
		}
		if len(s.extras) >= maxExtras {
			return
		}
	}
	if s.extras == nil {
		s.extras = make([]extra, 1, 4)
	}
	s.extras = append(s.extras, e)
	s.pen.extra = uint16(len(s.extras) - 1)
}

// sweepExtras keeps those that are still in use.
func (s *screen) sweepExtras() {
	kept := make([]extra, 1)
	moved := make(map[uint16]uint16)
	keep := func(st *style) {
		if st.extra == 0 {
			return
		}
		to, ok := moved[st.extra]
		if !ok {
			kept = append(kept, s.extras[st.extra])
			to = uint16(len(kept) - 1)
			moved[st.extra] = to
		}
		st.extra = to
	}
	for _, g := range []*grid{&s.main, &s.alt} {
		for i := range g.rows {
			for n := range g.rows[i].cells {
				keep(&g.rows[i].cells[n].style)
			}
		}
	}
	keep(&s.pen)
	for i := range s.saved {
		keep(&s.saved[i].pen)
	}
	s.extras = kept
}

const maxTitle = 256

func (s *screen) osc() {
	code, text, ok := strings.Cut(string(s.parser.text), ";")
	if code == "8" && ok {
		e := s.extraOf(s.pen)
		if e.link = ""; !strings.HasSuffix(text, ";") && len(text) <= maxLink && strings.IndexFunc(text, unicode.IsControl) < 0 && utf8.ValidString(text) {
			e.link = text
		}
		s.setExtra(e)
		return
	}
	if !ok || code != "0" && code != "2" || len(text) > maxString-8 {
		return
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if len(text) > maxTitle {
		text = strings.ToValidUTF8(text[:maxTitle], "")
	}
	s.title = text
}
