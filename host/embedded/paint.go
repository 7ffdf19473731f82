package embedded

import (
	"fmt"
	"strconv"
)

// Paint makes any terminal of the screen's size show it: it puts every mode that it knows into
// the state that it has here, clears, and draws.
func (s *screen) Paint() []byte {
	b := make([]byte, 0, 4096)
	// Back to a known state: the main screen, no region, no looks, wrapping, plain characters.
	b = append(b, "\x1b[?1049l\x1b[!p\x1b[r\x1b[m\x1b(B\x1b)B\x0f\x1b[?6l\x1b[4l\x1b[?7h\x1b[?25l"...)
	b = s.paintGrid(b, &s.main)
	if s.modes.altScreen {
		b = fmt.Appendf(b, "\x1b[%d;%dH\x1b[?1049h", s.main.y+1, s.main.x+1)
		b = s.paintGrid(b, &s.alt)
	}
	b = s.paintModes(b)
	if s.title != "" {
		b = fmt.Appendf(b, "\x1b]2;%s\x07", s.title)
	}
	return b
}

func (s *screen) paintGrid(b []byte, g *grid) []byte {
	b = append(b, "\x1b[m\x1b[H\x1b[2J"...)
	pen := style{}
	for y := range g.rows {
		cells := g.rows[y].cells
		end := len(cells)
		for end > 0 && cells[end-1] == (cell{}) {
			end--
		}
		if end == 0 {
			continue
		}
		b = append(b, "\x1b["...)
		b = strconv.AppendInt(b, int64(y+1), 10)
		b = append(b, 'H')
		for _, c := range cells[:end] {
			if c.ch == wideTail {
				continue
			}
			if c.style != pen {
				pen = c.style
				b = appendStyle(b, pen)
			}
			b = s.appendText(b, c.ch)
		}
	}
	return append(b, "\x1b[m"...)
}

func appendStyle(b []byte, s style) []byte {
	b = append(b, "\x1b[0"...)
	for i, code := range [...]byte{'1', '2', '3', '4', '5', '7', '8', '9'} {
		if s.flags&(1<<i) != 0 {
			b = append(b, ';', code)
		}
	}
	b = appendColour(b, s.fg, 30)
	b = appendColour(b, s.bg, 40)
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

func (s *screen) paintModes(b []byte) []byte {
	m := s.modes
	set := func(on bool, code string) {
		final := byte('l')
		if on {
			final = 'h'
		}
		b = append(append(append(b, "\x1b["...), code...), final)
	}
	set(m.appCursor, "?1")
	set(!m.noWrap, "?7")
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
	set(m.insert, "4")
	set(m.newline, "20")
	if m.appKeypad {
		b = append(b, "\x1b="...)
	} else {
		b = append(b, "\x1b>"...)
	}
	b = fmt.Appendf(b, "\x1b[%d q", m.cursorShape)
	if s.top != 0 || s.end != s.rows {
		b = fmt.Appendf(b, "\x1b[%d;%dr", s.top+1, s.end)
	}
	set(m.origin, "?6")
	y := s.on.y
	if m.origin {
		y -= s.top
	}
	b = fmt.Appendf(b, "\x1b[%d;%dH", y+1, s.on.x+1)
	b = appendStyle(b, s.pen)
	for i, on := range s.charsets {
		if on {
			b = append(b, "\x1b"+string("()"[i])+"0"...)
		}
	}
	if s.shift == 1 {
		b = append(b, 0x0e)
	}
	set(!m.noCursor, "?25")
	return b
}
