package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/phux-agent/phux-agent/internal/nearest"
)

// keyNames are the keys that send types by name, with what a terminal of the kind that TERM names
// (xterm-256color) sends. Letters stand in for a final byte that modifiers go before.
var keyNames = map[string]string{
	"enter": "\r", "tab": "\t", "escape": "\x1b", "esc": "\x1b", "space": " ", "backspace": "\x7f", "bspace": "\x7f",
	"up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "home": "\x1b[H", "end": "\x1b[F",
	"insert": "\x1b[2~", "delete": "\x1b[3~", "pgup": "\x1b[5~", "pageup": "\x1b[5~", "pgdn": "\x1b[6~", "pagedown": "\x1b[6~",
	"f1": "\x1bOP", "f2": "\x1bOQ", "f3": "\x1bOR", "f4": "\x1bOS", "f5": "\x1b[15~", "f6": "\x1b[17~", "f7": "\x1b[18~", "f8": "\x1b[19~",
	"f9": "\x1b[20~", "f10": "\x1b[21~", "f11": "\x1b[23~", "f12": "\x1b[24~",
}

// keyError is a word that names no key.
type keyError struct{ Word, Near string }

func (e *keyError) Error() string {
	if e.Near != "" {
		return fmt.Sprintf("%q is no key; did you mean %s?", e.Word, e.Near)
	}
	return fmt.Sprintf("%q is no key: write Enter, Up, F5, C-c, M-x, or one character", e.Word)
}

// keyBytes is what a key sends: one character, or a name, with C-, M- and S- before it. appCursor is
// the terminal's mode of that name.
func keyBytes(word string, appCursor bool) ([]byte, error) {
	mods, rest := 0, word
	for len(rest) > 2 && rest[1] == '-' {
		bit, ok := map[byte]int{'S': 1, 'M': 2, 'C': 4}[rest[0]&^0x20]
		if !ok {
			break
		}
		mods, rest = mods|bit, rest[2:]
	}
	var b []byte
	r, n := utf8.DecodeRuneInString(rest)
	seq, named := keyNames[strings.ToLower(rest)]
	switch {
	case n > 0 && n == len(rest) && r != utf8.RuneError:
		if mods&1 != 0 {
			rest = strings.ToUpper(rest)
		}
		b = []byte(rest)
		if mods&4 != 0 {
			switch c := b[0] &^ 0x20; {
			case len(b) == 1 && c >= '@' && c <= '_':
				b = []byte{c & 0x1f}
			case len(b) == 1 && b[0] == ' ':
				b = []byte{0}
			case len(b) == 1 && b[0] == '?':
				b = []byte{0x7f}
			default:
				return nil, &keyError{Word: word}
			}
		}
	case named && len(seq) == 1:
		switch b = []byte(seq); {
		case seq == "\t" && mods&1 != 0:
			b = []byte("\x1b[Z")
		case seq == " " && mods&4 != 0:
			b = []byte{0}
		}
	case named && mods != 0:
		final := seq[len(seq)-1:]
		number := strings.TrimSuffix(seq[2:], final)
		if number == "" {
			number = "1"
		}
		return fmt.Appendf(nil, "\x1b[%s;%d%s", number, mods+1, final), nil
	case named && appCursor && len(seq) == 3 && seq[1] == '[':
		return []byte("\x1bO" + seq[2:]), nil
	case named:
		return []byte(seq), nil
	default:
		near := nearest.Word(rest, slices.Sorted(maps.Keys(keyNames)))
		return nil, &keyError{Word: word, Near: near}
	}
	if mods&2 != 0 {
		b = append([]byte{0x1b}, b...)
	}
	return b, nil
}
