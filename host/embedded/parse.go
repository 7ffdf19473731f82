package embedded

import (
	"bytes"
	"unicode/utf8"
)

// The parser takes bytes apart as terminals do: text, controls, and the sequences of ECMA-48. It
// keeps what one write leaves unfinished for the next, within bounds.

type parseState uint8

const (
	ground   parseState = iota
	escape              // after ESC
	escInter            // after ESC and an intermediate
	csi                 // after ESC [
	csiSkip             // in a CSI that is no such thing
	str                 // in OSC, DCS, SOS, PM or APC
	strEsc              // after ESC in one
)

const (
	maxParams = 32
	maxString = 4096 // bytes of an OSC that are kept
)

type parser struct {
	state   parseState
	kind    byte // of the string: ']' for OSC; others are skipped
	private byte // '?', '>', '<' or '=' of a CSI
	inter   byte // the last intermediate
	params  [maxParams]int
	sub     [maxParams]bool // a parameter that belongs to the one before it (after ':')
	n       int
	text    []byte
	partial [utf8.UTFMax]byte
	pending int
	raw     []byte // of a sequence that is not over, up to maxQuestion
	long    bool   // it is longer
}

// Write takes output.
func (s *screen) Write(b []byte) {
	s.take(b)
	s.parser.keep(b)
}

// keep remembers what of a write is a sequence that is not over.
func (p *parser) keep(b []byte) {
	if p.state == ground {
		p.raw, p.long = p.raw[:0], false
		return
	}
	end := len(b)
	if p.state == strEsc && end > 0 {
		end-- // its last ESC is not where it began
	}
	if n := bytes.LastIndexByte(b[:end], esc); n >= 0 {
		p.raw, p.long, b = p.raw[:0], false, b[n:]
	}
	for _, c := range b {
		// A control within a sequence has acted already.
		if p.state < str && c < 0x20 && c != esc {
			continue
		}
		if len(p.raw) >= maxQuestion {
			p.long = p.state >= str
			break
		}
		p.raw = append(p.raw, c)
	}
}

// Begun is what has been read of a character or a sequence that is not over. Of a long string it is
// the beginning, and long is true.
func (p *parser) Begun() (b []byte, long bool) {
	switch {
	case p.pending > 0:
		return p.partial[:p.pending], false
	case p.long && p.state == strEsc:
		return append(p.raw[:2:2], esc), true
	case p.long:
		return p.raw[:2], true
	}
	return p.raw, false
}

func (s *screen) take(b []byte) {
	p := &s.parser
	for i := 0; i < len(b); {
		if p.state == ground {
			if p.pending > 0 {
				i += s.finish(b[i:])
				continue
			}
			c := b[i]
			if c >= 0x20 && c < 0x7f {
				end := i + 1
				for end < len(b) && b[end] >= 0x20 && b[end] < 0x7f {
					end++
				}
				s.ascii(b[i:end])
				i = end
				continue
			}
			if c >= 0x80 {
				if !utf8.FullRune(b[i:]) {
					p.pending = copy(p.partial[:], b[i:])
					return
				}
				r, n := utf8.DecodeRune(b[i:])
				s.put(r)
				i += n
				continue
			}
		}
		s.step(b[i])
		i++
	}
}

// finish completes a character that a write left unfinished, and says how many bytes that took.
// What is none is as many bad bytes, as it is within one write.
func (s *screen) finish(b []byte) int {
	p := &s.parser
	bad := func() {
		n := p.pending
		p.pending = 0
		for range n {
			s.put(utf8.RuneError)
		}
	}
	for n := 0; n < len(b); n++ {
		if utf8.RuneStart(b[n]) { // the beginning of another
			bad()
			return n
		}
		p.partial[p.pending] = b[n]
		p.pending++
		if !utf8.FullRune(p.partial[:p.pending]) {
			continue
		}
		if r, size := utf8.DecodeRune(p.partial[:p.pending]); size > 1 {
			p.pending = 0
			s.put(r)
		} else {
			bad()
		}
		return n + 1
	}
	return len(b)
}

// Lost gives up what was begun.
func (s *screen) Lost() {
	s.parser.state, s.parser.pending = ground, 0
	s.parser.raw, s.parser.long = s.parser.raw[:0], false
	s.pen = style{}
}

func (s *screen) step(c byte) {
	p := &s.parser
	// Controls act anywhere but in strings.
	if p.state < str {
		switch {
		case c == 0x1b:
			p.state, p.inter = escape, 0
			return
		case c == 0x18 || c == 0x1a:
			p.state = ground
			return
		case c < 0x20:
			s.control(c)
			return
		case c == 0x7f:
			return
		}
	}
	switch p.state {
	case escape, escInter:
		s.afterEscape(c)
	case csi:
		s.inCSI(c)
	case csiSkip:
		if c >= 0x40 && c <= 0x7e {
			p.state = ground
		}
	case str:
		switch {
		case c == 0x1b:
			p.state = strEsc
		case c == 0x07 && p.kind == ']':
			p.state = ground
			s.osc()
		case c == 0x18 || c == 0x1a:
			p.state = ground
		case len(p.text) < maxString:
			p.text = append(p.text, c)
		}
	case strEsc:
		if p.kind == ']' {
			s.osc()
		}
		p.state = ground
		if c != '\\' {
			p.state, p.inter = escape, 0
			s.step(c)
		}
	}
}

func (s *screen) afterEscape(c byte) {
	p := &s.parser
	switch {
	case c >= 0x20 && c <= 0x2f:
		p.inter, p.state = c, escInter
		return
	case p.state == escInter:
		p.state = ground
		s.escInter(p.inter, c)
		return
	}
	switch c {
	case '[':
		p.state, p.private, p.inter, p.n = csi, 0, 0, 0
		p.params[0], p.sub[0] = -1, false
	case ']', 'P', 'X', '^', '_':
		p.state, p.kind, p.text = str, c, p.text[:0]
	default:
		p.state = ground
		s.escape(c)
	}
}

func (s *screen) inCSI(c byte) {
	p := &s.parser
	switch {
	case p.inter != 0 && c < 0x40: // after an intermediate comes the end
		p.state = csiSkip
	case c >= '0' && c <= '9':
		v := max(p.params[p.n], 0)*10 + int(c-'0')
		p.params[p.n] = min(v, 99999)
	case c == ';' || c == ':':
		if p.n+1 >= maxParams {
			p.state = csiSkip
			return
		}
		p.n++
		p.params[p.n], p.sub[p.n] = -1, c == ':'
	case c >= 0x3c && c <= 0x3f:
		if p.n > 0 || p.params[0] >= 0 || p.private != 0 {
			p.state = csiSkip
			return
		}
		p.private = c
	case c >= 0x20 && c <= 0x2f:
		p.inter = c
	case c >= 0x40 && c <= 0x7e:
		p.state = ground
		s.csi(c)
	default:
		p.state = csiSkip
	}
}

// arg is a parameter, or what it is where it was left out.
func (p *parser) arg(i, missing int) int {
	if i > p.n || p.params[i] < 0 {
		return missing
	}
	return p.params[i]
}

// count is a parameter that counts: none and 0 are 1.
func (p *parser) count(i int) int { return max(p.arg(i, 1), 1) }
