package embedded

import (
	"bytes"
	"strings"
)

// asker takes a program's questions out of its output: what a terminal answers as if somebody had
// typed it. Of several who look one alone gets them, for a program that asks once reads one answer.
// A sequence is held back until it is known whether it is one.
type asker struct {
	held    []byte // a sequence that is begun, from its ESC on
	through bool   // in a string that is too long for a question: it passes
	kind    byte   // of that string
}

// maxQuestion bounds what is held back, in bytes. What is longer is no question.
const maxQuestion = 1024

const (
	bel       = 0x07
	enq       = 0x05
	can       = 0x18
	sub       = 0x1a
	esc       = 0x1b
	stringEnd = "\x1b\\" // of a string
)

// strain returns b without questions. It may return b itself.
func (a *asker) strain(b []byte) []byte {
	if !a.begun() && bytes.IndexByte(b, esc) < 0 && bytes.IndexByte(b, enq) < 0 {
		return b
	}
	out := make([]byte, 0, len(a.held)+len(b))
	for len(b) > 0 {
		switch {
		case a.through:
			n := bytes.IndexFunc(b, func(r rune) bool { return r == esc || r == can || r == sub || r == bel && a.kind == ']' })
			if n < 0 {
				return append(out, b...)
			}
			if out, a.through = append(out, b[:n]...), false; b[n] == esc {
				out = append(out, stringEnd...) // or, where a question follows, nothing would end it
			}
			b = b[n:]
		case len(a.held) == 0:
			n := bytes.IndexByte(b, esc)
			if n < 0 {
				n = len(b)
			}
			if e := bytes.IndexByte(b[:n], enq); e >= 0 {
				out, b = append(out, b[:e]...), b[e+1:]
				continue
			}
			if out, b = append(out, b[:n]...), b[n:]; len(b) > 0 {
				a.held, b = append(a.held, esc), b[1:]
			}
		default:
			out = a.take(out, b[0])
			b = b[1:]
		}
	}
	return out
}

// take adds a byte to what is held back, and appends what is known to be no question.
func (a *asker) take(out []byte, c byte) []byte {
	isString := len(a.held) > 1 && isStringKind(a.held[1])
	last := a.held[len(a.held)-1]
	switch {
	case isString && last == esc && len(a.held) > 2:
		body := a.held[:len(a.held)-1]
		if c == '\\' {
			a.held = append(a.held, c)
			return a.decide(out, asksByString(body[1:]))
		}
		// The string ends all the same, and another sequence begins.
		if !asksByString(body[1:]) {
			out = append(append(out, body...), stringEnd...)
		}
		a.held = append(a.held[:0], esc)
		return a.take(out, c)
	case c == can || c == sub:
		a.held = append(a.held, c)
		return a.decide(out, false)
	case isString && c == bel && a.held[1] == ']':
		a.held = append(a.held, c)
		return a.decide(out, asksByString(a.held[1:len(a.held)-1]))
	case isString:
	case c == esc: // which gives up what was begun
		a.held = append(a.held[:0], esc)
		return out
	case c < 0x20 || c == 0x7f:
		return append(out, c) // a control acts at once, wherever it stands
	}
	if a.held = append(a.held, c); len(a.held) > maxQuestion {
		if isString && c == esc {
			return out // perhaps its end, which the next byte says
		}
		a.through, a.kind = isString, a.held[1]
		return a.decide(out, false)
	}
	switch {
	case isString || len(a.held) == 2 && (c == '[' || isStringKind(c)):
		return out
	case a.held[1] == '[':
		if c >= 0x40 && c <= 0x7e {
			return a.decide(out, asksByCSI(a.held[2:]))
		}
		return out
	case c <= 0x2f:
		return out
	}
	return a.decide(out, string(a.held) == "\x1bZ")
}

// decide ends what is held back.
func (a *asker) decide(out []byte, question bool) []byte {
	if !question {
		out = append(out, a.held...)
	}
	a.held = a.held[:0]
	return out
}

// begun says that the output so far ends within a sequence.
func (a *asker) begun() bool { return len(a.held) > 0 || a.through }

// resume puts the asker behind output that ends with an unfinished sequence; long says that it is
// a string of which only the introduction is known.
func (a *asker) resume(begun []byte, long bool) {
	*a = asker{}
	switch {
	case len(begun) == 0 || begun[0] != esc:
	case long && len(begun) > 1:
		a.through, a.kind = true, begun[1]
	default:
		a.strain(begun)
	}
}

func isStringKind(c byte) bool { return strings.IndexByte("]P_^X", c) >= 0 }

// asksByCSI is of what stands between ESC [ and the end.
func asksByCSI(s []byte) bool {
	final, rest := s[len(s)-1], string(s[:len(s)-1])
	key := ""
	if rest != "" && rest[0] >= '<' && rest[0] <= '?' {
		key, rest = rest[:1], rest[1:]
	}
	params := strings.TrimRight(rest, " !\"#$%&'()*+,-./")
	key += rest[len(params):] + string(final)
	params = strings.TrimLeft(params, "0")
	switch key {
	case "c", ">c", "=c", // device attributes
		"n", "?n", // status and place of the cursor
		"$p", "?$p", // a mode
		">q",                                                                   // name and version
		"?u", "?m", "?S", "x", "*y", "$w", "$u", "&u", "\"v", "'|", "#R", "#|": // the keyboard, graphics, reports
		return true
	case "t":
		if end := strings.IndexAny(params, ";:"); end >= 0 {
			params = params[:end]
		}
		switch params {
		case "11", "13", "14", "15", "16", "18", "19", "20", "21":
			return true
		}
	}
	return false
}

// asksByString is of what stands between ESC and the end of a string: its kind first.
func asksByString(s []byte) bool {
	text := string(s[1:])
	switch s[0] {
	case ']':
		code, rest, _ := strings.Cut(text, ";")
		if code == "0" || code == "1" || code == "2" { // a title may be anything
			return false
		}
		for field := range strings.SplitSeq(rest, ";") {
			if field == "?" || strings.HasSuffix(field, "=?") {
				return true
			}
		}
	case 'P':
		text = strings.TrimLeft(text, "0123456789;")
		return strings.HasPrefix(text, "+q") || strings.HasPrefix(text, "$q")
	case '_':
		control, _, _ := strings.Cut(text, ";")
		if rest, ok := strings.CutPrefix(control, "G"); ok {
			for field := range strings.SplitSeq(rest, ",") {
				if field == "a=q" {
					return true
				}
			}
		}
	}
	return false
}
