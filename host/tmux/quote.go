package tmux

import (
	"strings"
)

// word writes one argument so that tmux's own parser reads back the same bytes, on one line.
// Control bytes leave the quotes as octal escapes: a raw newline would end a line where a
// backslash stands before it, whatever the quotes, and a raw 0xff is the end of the file.
func word(s string) string {
	if s != "" && plain(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	b.WriteByte('\'')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\'':
			b.WriteString(`'\''`)
		case c < ' ' || c == 0x7f || c == 0xff:
			b.WriteString(`'"\`)
			b.WriteByte('0' + c>>6)
			b.WriteByte('0' + c>>3&7)
			b.WriteByte('0' + c&7)
			b.WriteString(`"'`)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

// plain reports that tmux's parser gives no byte of s a meaning.
func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' && i > 0 || c == '_' || c == '/' || c == '.' && i > 0 {
			continue
		}
		// The flags of commands.
		if c == '-' && len(s) > 1 {
			continue
		}
		return false
	}
	return true
}

// list is a list of tmux commands, run as one.
type list []string

// add appends one command. Every element is one argument, byte for byte.
func (l *list) add(words ...string) {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = word(w)
	}
	*l = append(*l, strings.Join(quoted, " "))
}

// String is the list on one line: what follows a command that fails is not run.
func (l list) String() string { return strings.Join(l, " ; ") }

// argument escapes what goes to tmux as an argument of the process: a ';' at the end of one
// would end the command there.
func argument(s string) string {
	if strings.HasSuffix(s, ";") {
		return s[:len(s)-1] + `\;`
	}
	return s
}
