package attach

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// keys tells the person's typing from the keys that are ours. What is pasted (between the marks
// of a bracketed paste) is typing whatever it holds.
type keys struct {
	prefix byte
	paste  bool
	seen   int // how much of a paste mark stands at the end of what was fed
}

const (
	esc        = 0x1b
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// feed takes bytes up to the prefix key: text goes to the program. hit is the prefix key in the
// form that it came in, which the program may have chosen; rest is ours then.
func (k *keys) feed(b []byte) (text, hit, rest []byte) {
	for i, c := range b {
		mark := pasteBegin
		if k.paste {
			mark = pasteEnd
		}
		switch {
		case c == mark[k.seen]:
			k.seen++
			if k.seen == len(mark) {
				k.paste, k.seen = !k.paste, 0
			}
		case c == mark[0]:
			k.seen = 1
		default:
			k.seen = 0
		}
		if k.paste {
			continue
		}
		if c == k.prefix {
			return b[:i], b[i : i+1], b[i+1:]
		}
		if c != esc {
			continue
		}
		if n := sequence(b[i:]); n > 0 && k.isPrefix(string(b[i:i+n])) {
			k.seen = 0
			return b[:i], b[i : i+n], b[i+n:]
		}
	}
	return b, nil, nil
}

// sequence is the length of the CSI that b begins with; 0 where there is none, or not all of it.
func sequence(b []byte) int {
	if len(b) < 3 || b[1] != '[' {
		return 0
	}
	for i := 2; i < len(b); i++ {
		if b[i] >= 0x40 && b[i] <= 0x7e {
			return i + 1
		}
		if b[i] < 0x20 || b[i] > 0x7e {
			return 0
		}
	}
	return 0
}

const (
	shift    = 1
	alt      = 2
	ctrl     = 4
	locks    = 64 | 128 // of capitals and of numbers
	released = 3
)

// typedKey is a key as kitty's protocol and xterm's modifyOtherKeys write it.
type typedKey struct {
	code, shifted rune
	mods, event   int
}

func readKey(seq string) (typedKey, bool) {
	final, params := seq[len(seq)-1], strings.Split(seq[2:len(seq)-1], ";")
	number := func(i, sub int) int {
		if i >= len(params) {
			return 0
		}
		fields := strings.Split(params[i], ":")
		if sub >= len(fields) {
			return 0
		}
		n, _ := strconv.Atoi(fields[sub])
		return n
	}
	k := typedKey{mods: max(number(1, 0)-1, 0) &^ locks, event: number(1, 1)}
	switch {
	case final == 'u' && params[0] != "":
		k.code, k.shifted = rune(number(0, 0)), rune(number(0, 1))
	case final == '~' && params[0] == "27" && len(params) == 3:
		k.code = rune(number(2, 0))
	default:
		return k, false
	}
	return k, k.code > 0
}

func (k *keys) isPrefix(seq string) bool {
	t, ok := readKey(seq)
	if !ok || t.mods != ctrl || t.event == released {
		return false
	}
	code := rune(k.prefix) | 0x40
	return t.code == code || t.code == unicode.ToLower(code) || k.prefix == 0 && t.code == ' '
}

var sequenceNames = map[string]string{
	"A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end",
	"1~": "home", "7~": "home", "4~": "end", "8~": "end", "5~": "pgup", "6~": "pgdn",
}

// nextKey takes one key off what was typed: a character, or the name of a key ("up", "down", "pgup",
// "pgdn", "home", "end", "esc", "enter", "backspace"). What is no key (the mouse, the focus, a key that
// is let go) is empty. whole is false where the rest of it has not come yet.
func nextKey(b []byte) (key string, rest []byte, whole bool) {
	if b[0] != esc {
		if !utf8.FullRune(b) {
			return "", nil, false
		}
		r, n := utf8.DecodeRune(b)
		return keyOf(r), b[n:], true
	}
	switch {
	case len(b) == 1:
		return "", nil, false
	case b[1] == esc:
		return "esc", b[1:], true
	case b[1] == 'O':
		if len(b) < 3 {
			return "", nil, false
		}
		return sequenceNames[string(b[2:3])], b[3:], true
	case b[1] != '[': // with Alt
		if !utf8.FullRune(b[1:]) {
			return "", nil, false
		}
		_, n := utf8.DecodeRune(b[1:])
		return "", b[1+n:], true
	case len(b) > 2 && b[2] == 'M': // the mouse in its old form
		if len(b) < 6 {
			return "", nil, false
		}
		return "", b[6:], true
	}
	n := sequence(b)
	if n == 0 {
		const most = 64 // bytes of a sequence: what is longer is none
		if len(b) > most || b[len(b)-1] < 0x20 {
			return "", b[len(b):], true
		}
		return "", nil, false
	}
	seq := string(b[:n])
	b = b[n:]
	if t, ok := readKey(seq); ok {
		switch {
		case t.event == released || t.code >= 0xe000 && t.code < 0xf900 || t.mods&alt != 0:
			return "", b, true
		case t.mods&ctrl != 0 && t.code >= '@' && t.code < 0x7f:
			return string(t.code & 0x1f), b, true
		case t.mods&shift != 0 && t.shifted != 0:
			return string(t.shifted), b, true
		case t.mods&shift != 0:
			return string(unicode.ToUpper(t.code)), b, true
		}
		return keyOf(t.code), b, true
	}
	// With modifiers it is the same key: ESC [ 1 ; 5 A.
	params, final := seq[2:n-1], seq[n-1:]
	if first, _, more := strings.Cut(params, ";"); more {
		if params = first; final != "~" {
			params = ""
		}
	}
	return sequenceNames[params+final], b, true
}

func keyOf(r rune) string {
	switch r {
	case '\r', '\n':
		return "enter"
	case 0x7f, 0x08:
		return "backspace"
	case esc:
		return "esc"
	}
	return string(r)
}

// name is a prefix key as people write it.
func name(prefix byte) string {
	if prefix < 0x20 {
		return "Ctrl-" + strings.ToLower(string(rune(prefix+0x40)))
	}
	return string(rune(prefix))
}

// ParsePrefix reads "C-a", "Ctrl-a" or "^A".
func ParsePrefix(s string) (byte, bool) {
	for _, lead := range []string{"C-", "Ctrl-", "ctrl-", "^"} {
		if rest, ok := strings.CutPrefix(s, lead); ok && len(rest) == 1 {
			c := strings.ToUpper(rest)[0]
			if c >= '@' && c <= '_' && c != '[' && c != 'M' && c != 'J' {
				return c - 0x40, true
			}
		}
	}
	return 0, false
}
