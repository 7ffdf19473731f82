package embedded

import (
	"fmt"
	"strconv"
	"strings"
)

// reset brings a terminal to a known state: the main screen, no region, no looks, wrapping, plain
// characters and keys. The cursor is hidden.
const reset = "\x1b[?2026l\x1b[<9u\x1b[?1049l\x1b[!p\x1b[>4m\x1b[m\x1b[r\x1b(B\x1b)B\x0f\x1b[?6l\x1b[4l\x1b[20l\x1b[?7h\x1b[?25l"

// Paint makes any terminal of the screen's size show it: it puts every mode that it knows into
// the state that it has here, clears, and draws.
func (s *screen) Paint() []byte {
	b := make([]byte, 0, 4096)
	b = append(b, reset...)
	b = s.paintGrid(b, &s.main)
	b = s.paintSaved(b, s.saved[0])
	b = s.paintKeyboard(b, s.modes.kitty[0])
	if s.modes.altScreen {
		b = append(b, "\x1b[?1049h"...) // the cursor is the one that is saved
		b = s.paintGrid(b, &s.alt)
		b = s.paintSaved(b, s.saved[1])
		b = s.paintKeyboard(b, s.modes.kitty[1])
	}
	b = s.paintTabs(s.paintInput(b))
	return s.paintOutput(b)
}

// picture is what a window shows that has not the screen's size, and so cannot have its bytes.
type picture struct {
	cols, rows int // of the screen
	alt        bool
	lines      []string
	rest       string // modes and cursor
}

// Picture makes a window of that size, which shows p, show the screen in its left upper corner; the
// zero picture is a window that may show anything. It may be empty.
func (s *screen) Picture(p *picture, cols, rows int) []byte {
	var b []byte
	if p.cols != s.cols || p.rows != s.rows || p.alt != s.modes.altScreen {
		*p = picture{cols: s.cols, rows: s.rows, alt: s.modes.altScreen, lines: make([]string, s.rows)}
		b = append(b, reset...)
		b = append(b, "\x1b[?7l"...)
		if p.alt {
			b = append(b, "\x1b[?1049h"...)
		}
		b = append(b, "\x1b[H\x1b[2J\x1b[2m"...)
		for y := range rows { // the rest of the window is nobody's
			x := s.cols
			if y >= s.rows {
				x = 0
			}
			if x < cols {
				b = fmt.Appendf(b, "\x1b[%d;%dH%s", y+1, x+1, strings.Repeat("·", cols-x))
			}
		}
		b = append(b, "\x1b[m"...)
	}
	for y := range min(s.rows, rows) {
		l := string(s.paintLine(nil, s.on, y))
		if l == p.lines[y] {
			continue
		}
		if len(b) == 0 {
			b = append(b, "\x1b[?25l"...)
		}
		if p.lines[y] != "" {
			b = fmt.Appendf(b, "\x1b[%d;1H\x1b[%dX", y+1, s.cols)
		}
		b = append(b, l...)
		p.lines[y] = l
	}
	rest := fmt.Appendf(s.paintKeyboard(s.paintInput(nil), *s.keyboard()), "\x1b[%d;%dH\x1b[?25h", s.on.y+1, s.on.x+1)
	if s.modes.noCursor {
		rest[len(rest)-1] = 'l'
	}
	if string(rest) == p.rest && len(b) == 0 {
		return nil
	}
	p.rest = string(rest)
	return append(b, rest...)
}

func (s *screen) paintGrid(b []byte, g *grid) []byte {
	b = append(b, "\x1b[m\x1b[H\x1b[2J"...)
	for y := range g.rows {
		b = s.paintLine(b, g, y)
	}
	return b
}

// paintLine draws a line upon an empty one. No looks are left set.
func (s *screen) paintLine(b []byte, g *grid, y int) []byte {
	cells := g.rows[y].cells
	end := len(cells)
	for end > 0 && cells[end-1] == (cell{}) {
		end--
	}
	if end == 0 {
		return b
	}
	b = append(b, "\x1b["...)
	b = strconv.AppendInt(b, int64(y+1), 10)
	b = append(b, 'H')
	pen := style{}
	for _, c := range cells[:end] {
		if c.ch == wideTail {
			continue
		}
		if c.style != pen {
			b = s.appendLooks(b, pen, c.style)
			pen = c.style
		}
		b = s.appendText(b, c.ch)
	}
	if pen != (style{}) {
		b = s.appendLooks(b, pen, style{})
	}
	return b
}

// paintSaved saves the cursor that the program has saved.
func (s *screen) paintSaved(b []byte, c cursor) []byte {
	if c.origin {
		b = append(b, "\x1b[?6h"...)
	}
	b = fmt.Appendf(b, "\x1b[%d;%dH", c.y+1, c.x+1)
	b = s.appendLooks(b, style{}, c.pen)
	b = appendCharsets(b, c.charsets, c.shift)
	b = append(b, "\x1b7"...)
	b = appendCharsets(b, [2]bool{}, 0)
	if c.origin {
		b = append(b, "\x1b[?6l"...)
	}
	return s.appendLooks(b, c.pen, style{})
}

func appendCharsets(b []byte, sets [2]bool, shift int) []byte {
	for i, drawing := range sets {
		set := byte('B')
		if drawing {
			set = '0'
		}
		b = append(b, 0x1b, "()"[i], set)
	}
	return append(b, [...]byte{0x0f, 0x0e}[shift])
}

func (s *screen) paintKeyboard(b []byte, k stack) []byte {
	all := append(k.below[:k.n:k.n], k.now)
	b = fmt.Appendf(b, "\x1b[<9u\x1b[=%d;1u", all[0])
	for _, flags := range all[1:] {
		b = fmt.Appendf(b, "\x1b[>%du", flags)
	}
	return b
}

// appendLooks goes from one look to another, links included.
func (s *screen) appendLooks(b []byte, from, to style) []byte {
	if link := s.extraOf(to).link; link != s.extraOf(from).link {
		if link == "" {
			link = ";"
		}
		b = append(append(append(b, "\x1b]8;"...), link...), "\x1b\\"...)
	}
	return s.appendStyle(b, to)
}

// appendStyle sets a look, whatever was set before.
func (s *screen) appendStyle(b []byte, to style) []byte {
	b = append(b, "\x1b[0"...)
	for i, code := range [...]byte{'1', '2', '3', '4', '5', '7', '8', '9'} {
		if to.flags&(1<<i) == 0 {
			continue
		}
		b = append(b, ';', code)
		if kind := kindOf(to.flags); code == '4' && kind > 0 {
			b = append(b, ':', byte('1'+kind))
		}
	}
	if to.flags&overline != 0 {
		b = append(b, ";53"...)
	}
	b = appendColour(b, to.fg, 30)
	b = appendColour(b, to.bg, 40)
	switch under := s.extraOf(to).under; {
	case under&direct != 0:
		b = fmt.Appendf(b, ";58:2::%d:%d:%d", under>>16&255, under>>8&255, under&255)
	case under != 0:
		b = fmt.Appendf(b, ";58:5:%d", under&255)
	}
	return append(b, 'm')
}

func appendColour(b []byte, c colour, base int) []byte {
	v := int(c & 0xffffff)
	switch {
	case c == 0:
		return b
	case c&direct != 0:
		return fmt.Appendf(b, ";%d;2;%d;%d;%d", base+8, v>>16, v>>8&255, v&255)
	case v < 8:
		return fmt.Appendf(b, ";%d", base+v)
	case v < 16:
		return fmt.Appendf(b, ";%d", base+60+v-8)
	}
	return fmt.Appendf(b, ";%d;5;%d", base+8, v)
}

func appendMode(b []byte, on bool, code string) []byte {
	final := byte('l')
	if on {
		final = 'h'
	}
	return append(append(append(b, "\x1b["...), code...), final)
}

// paintInput sets the modes of what is typed, and what else does not matter to what is drawn.
func (s *screen) paintInput(b []byte) []byte {
	m := s.modes
	set := func(on bool, code string) { b = appendMode(b, on, code) }
	set(m.appCursor, "?1")
	set(m.focus, "?1004")
	set(m.paste, "?2004")
	for _, n := range []int{9, 1000, 1002, 1003} {
		if m.mouse != n {
			set(false, "?"+strconv.Itoa(n))
		}
	}
	for _, n := range []int{1005, 1006, 1015, 1016} {
		set(m.mouseForm == n, "?"+strconv.Itoa(n))
	}
	if m.mouse != 0 {
		set(true, "?"+strconv.Itoa(m.mouse))
	}
	if m.appKeypad {
		b = append(b, "\x1b="...)
	} else {
		b = append(b, "\x1b>"...)
	}
	for i, mode := range otherModes {
		if m.others[i] != untouched {
			set(m.others[i] == on, "?"+strconv.Itoa(mode))
		}
	}
	if m.otherKeys != 0 {
		b = fmt.Appendf(b, "\x1b[>4;%dm", m.otherKeys)
	}
	b = fmt.Appendf(b, "\x1b[%d q", m.cursorShape)
	if s.title != "" {
		b = fmt.Appendf(b, "\x1b]2;%s\x07", s.title)
	}
	return b
}

// paintOutput sets the modes of what is drawn, and the cursor.
func (s *screen) paintOutput(b []byte) []byte {
	m := s.modes
	set := func(on bool, code string) { b = appendMode(b, on, code) }
	set(!m.noWrap, "?7")
	if s.top != 0 || s.end != s.rows {
		b = fmt.Appendf(b, "\x1b[%d;%dr", s.top+1, s.end)
	}
	set(m.origin, "?6")
	b = s.paintCursor(b)
	set(m.insert, "4")
	set(m.newline, "20")
	b = s.appendLooks(b, style{}, s.pen)
	b = appendCharsets(b, s.charsets, s.shift)
	set(!m.noCursor, "?25")
	return b
}

// paintCursor moves to where the cursor is. Where it stands behind the last column, the character
// there is written anew, so that the next one wraps.
func (s *screen) paintCursor(b []byte) []byte {
	x, y := s.on.x, s.on.y
	last := &s.on.rows[y].cells[x]
	if s.wrap && last.ch == wideTail && x > 0 {
		x--
		last = &s.on.rows[y].cells[x]
	}
	row := y
	if s.modes.origin {
		row = max(row-s.top, 0)
	}
	b = fmt.Appendf(b, "\x1b[%d;%dH", row+1, x+1)
	if s.wrap {
		b = s.appendLooks(b, style{}, last.style)
		b = s.appendText(b, last.ch)
		b = s.appendLooks(b, last.style, style{})
	}
	return b
}

// paintTabs sets the tab stops where they are not those of a fresh terminal.
func (s *screen) paintTabs(b []byte) []byte {
	fresh := true
	for i, stop := range s.tabs {
		fresh = fresh && stop == (i > 0 && i%8 == 0)
	}
	if fresh {
		return b
	}
	b = append(b, "\x1b[3g"...)
	for i, stop := range s.tabs {
		if stop {
			b = fmt.Appendf(b, "\x1b[%dG\x1bH", i+1)
		}
	}
	return b
}
