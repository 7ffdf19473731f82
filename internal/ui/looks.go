package ui

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Looks makes a terminal's text from outside safe to print on another terminal: printable text
// and colours stay, and nothing that moves, names, links, asks or erases. Of escape sequences
// only SGR (ESC [ digits m) is left; what a program drew with the line drawing set becomes the
// characters that it showed. Bytes that are not UTF-8 become U+FFFD; a tab becomes blanks.
//
// Each line of the answer ends with a line feed and begins and ends without a colour. Blanks at
// the ends of lines, and empty lines at both ends of the text, are left out. Of what is more than
// that many lines or bytes, the end is kept, whole lines of it.
func Looks(text string, lines, bytes int) string {
	c := cleaner{text: text}
	var out []string
	for !c.done {
		out = append(out, c.line())
		// Now and then, so that what is thrown away is not held.
		if len(out) > 2*lines+1024 {
			out = append(out[:0:0], out[len(out)-lines-1:]...)
		}
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	from, size := len(out), 0
	for from > 0 && len(out)-from < lines && size+len(out[from-1])+1 <= bytes {
		from--
		size += len(out[from]) + 1
	}
	for from < len(out) && out[from] == "" {
		from++
	}
	if from == len(out) {
		return ""
	}
	return strings.Join(out[from:], "\n") + "\n"
}

const (
	sgrReset = "\x1b[0m"
	// maxSGR bounds the parameters of one sequence, in bytes.
	maxSGR = 1024
	// maxWord bounds what a pen keeps of one colour, so that a pen is always within maxSGR.
	maxWord = 32
	// lineDrawing is what the bytes from 0x60 on show in the line drawing set.
	lineDrawing = "◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·"
)

var drawing = []rune(lineDrawing)

type cleaner struct {
	text  string
	at    int
	done  bool
	pen   pen
	dirty bool // SGR was put into this line, and no reset since
	drawn bool // the line drawing set is on
}

// line reads one line and returns it clean.
func (c *cleaner) line() string {
	var b strings.Builder
	start := c.pen.String()
	b.WriteString(start)
	c.dirty = start != ""
	end, dirty, column := 0, false, 0
	put := func(r rune) {
		b.WriteRune(r)
		column += RuneWidth(r)
		if r != ' ' {
			end, dirty = b.Len(), c.dirty
		}
	}
	for c.at < len(c.text) {
		r, n := utf8.DecodeRuneInString(c.text[c.at:])
		switch {
		case r == '\n':
			c.at++
			return ended(b.String()[:end], dirty)
		case r == 0x1b:
			if s := c.escape(); s != "" {
				c.pen.set(s[2 : len(s)-1])
				c.dirty = s != sgrReset && s != "\x1b[m"
				b.WriteString(s)
			}
			continue
		case r >= 0x80 && r < 0xa0:
			// A control of one character, in its long form.
			c.at += n
			c.control(byte(r) - 0x40)
			continue
		case r == 0x0e || r == 0x0f:
			c.drawn = r == 0x0e
		case r == '\t':
			for stop := column/8*8 + 8; column < stop; {
				put(' ')
			}
		case unsafe(r):
		case c.drawn && r >= 0x60 && r < 0x7f:
			put(drawing[r-0x60])
		default:
			put(r) // U+FFFD for what is not UTF-8
		}
		c.at += n
	}
	c.done = true
	return ended(b.String()[:end], dirty)
}

// ended is a line that leaves no colour behind it.
func ended(line string, dirty bool) string {
	if dirty {
		line += sgrReset
	}
	return line
}

// escape passes over one escape sequence, and returns it where it is SGR.
func (c *cleaner) escape() string {
	c.at++ // ESC
	if c.at == len(c.text) {
		return ""
	}
	if b := c.text[c.at]; b >= 0x40 && b < 0x60 {
		c.at++
		return c.control(b)
	}
	// ESC, any number of intermediates, and one that ends it.
	for c.at < len(c.text) && c.text[c.at] >= 0x20 && c.text[c.at] < 0x30 {
		c.at++
	}
	if c.at < len(c.text) && c.text[c.at] >= 0x30 && c.text[c.at] < 0x7f {
		c.at++
	}
	return ""
}

// control passes over what follows ESC and that byte.
func (c *cleaner) control(b byte) string {
	switch b {
	case '[':
		start := c.at
		for c.at < len(c.text) && c.text[c.at] >= 0x20 && c.text[c.at] < 0x40 {
			c.at++
		}
		params := c.text[start:c.at]
		if c.at == len(c.text) || c.text[c.at] < 0x40 || c.text[c.at] >= 0x7f {
			return "" // broken off
		}
		c.at++
		if c.text[c.at-1] == 'm' && len(params) <= maxSGR && strings.Trim(params, "0123456789;:") == "" {
			return "\x1b[" + params + "m"
		}
	case 'P', 'X', ']', '^', '_':
		// A string, which ends with BEL or ESC \ (or its short form); here with the line at the latest.
		for c.at < len(c.text) && c.text[c.at] != '\n' {
			switch rest := c.text[c.at:]; {
			case rest[0] == 0x07:
				c.at++
				return ""
			case strings.HasPrefix(rest, "\x1b\\"), strings.HasPrefix(rest, "\u009c"):
				c.at += 2
				return ""
			case rest[0] == 0x18, rest[0] == 0x1a:
				return ""
			}
			c.at++
		}
	}
	return ""
}

// pen is what SGR sequences have left on, by what they are about. Parameters that it does not know
// hold for the line that they stand in.
type pen [13]string

// The places of a pen.
const (
	penFore = iota
	penBack
	penLine // the colour of an underline
	penAttr // and eight more: of SGR 1 to 9
	penOver = penAttr + 9
)

func (p *pen) String() string {
	var on []string
	for _, s := range p {
		if s != "" {
			on = append(on, s)
		}
	}
	if on == nil {
		return ""
	}
	return "\x1b[" + strings.Join(on, ";") + "m"
}

// set takes the parameters of one sequence.
func (p *pen) set(params string) {
	words := strings.Split(params, ";")
	for i := 0; i < len(words); i++ {
		if len(words[i]) > maxWord {
			return
		}
		first, _, _ := strings.Cut(words[i], ":")
		n, _ := strconv.Atoi(first)
		switch at := n % 10; {
		case n == 0:
			*p = pen{}
		case n < 10:
			p[penAttr+n-1] = words[i]
			if words[i] == "4:0" {
				p[penAttr+3] = ""
			}
		case n == 21:
			p[penAttr+3] = words[i]
		case n == 22:
			p[penAttr], p[penAttr+1] = "", ""
		case n > 22 && n < 30:
			p[penAttr+at-1] = ""
			if n == 25 {
				p[penAttr+5] = ""
			}
		case n == 38, n == 48, n == 58:
			to := map[int]int{38: penFore, 48: penBack, 58: penLine}[n]
			more := 0
			if words[i] == first && i+1 < len(words) {
				more = map[string]int{"5": 2, "2": 4}[words[i+1]]
			}
			if more == 0 && words[i] == first || i+more >= len(words) {
				return // broken
			}
			if all := strings.Join(words[i:i+more+1], ";"); len(all) <= maxWord {
				p[to] = all
			}
			i += more
		case n == 39:
			p[penFore] = ""
		case n == 49:
			p[penBack] = ""
		case n == 59:
			p[penLine] = ""
		case n >= 30 && n < 38, n >= 90 && n < 98:
			p[penFore] = words[i]
		case n >= 40 && n < 48, n >= 100 && n < 108:
			p[penBack] = words[i]
		case n == 53:
			p[penOver] = words[i]
		case n == 55:
			p[penOver] = ""
		}
	}
}
