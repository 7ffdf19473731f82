package attach

import (
	"bytes"
	"strings"
)

// keys tells the person's typing from the keys that are ours. What is pasted (between the marks
// of a bracketed paste) is typing whatever it holds.
type keys struct {
	prefix byte
	paste  bool
	seen   int // how much of a paste mark stands at the end of what was fed
}

const (
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// feed takes bytes up to the prefix key: text goes to the program; after the prefix (hit) rest is
// ours, else it is empty.
func (k *keys) feed(b []byte) (text []byte, hit bool, rest []byte) {
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
			continue
		case c == mark[0]:
			k.seen = 1
			continue
		default:
			k.seen = 0
		}
		if c == k.prefix && !k.paste {
			return b[:i], true, b[i+1:]
		}
	}
	return b, false, nil
}

// nextKey takes one key off what was typed: a character, or the name of a key that sends a
// sequence ("up", "down", "pgup", "pgdn", "home", "end", "esc").
func nextKey(b []byte) (key string, rest []byte) {
	for seq, name := range map[string]string{
		"\x1b[A": "up", "\x1b[B": "down", "\x1bOA": "up", "\x1bOB": "down", "\x1b[5~": "pgup", "\x1b[6~": "pgdn",
		"\x1b[H": "home", "\x1b[F": "end", "\x1b[1~": "home", "\x1b[4~": "end", "\r": "enter", "\n": "enter",
	} {
		if bytes.HasPrefix(b, []byte(seq)) {
			return name, b[len(seq):]
		}
	}
	if b[0] == 0x1b {
		if len(b) > 1 && (b[1] == '[' || b[1] == 'O') {
			// A sequence that we have no name for: all of it.
			end := 2
			for end < len(b) && (b[end] < 0x40 || b[end] > 0x7e) {
				end++
			}
			return "unknown", b[min(end+1, len(b)):]
		}
		return "esc", b[1:]
	}
	r := []rune(string(b))
	n := len(string(r[:1]))
	if n > len(b) { // an invalid byte is one key
		n = 1
	}
	return string(r[0]), b[n:]
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
