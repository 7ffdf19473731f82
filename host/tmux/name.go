package tmux

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/phux-agent/phux-agent/host"
)

// NameError says that this tmux cannot hold a session name byte for byte.
type NameError struct {
	Name    string
	Nearest string // one that it can hold; empty where that is not known
}

func (e *NameError) Error() string {
	return fmt.Sprintf("tmux cannot hold the session name %q as it is", e.Name)
}

// Is makes a NameError a host.ErrName.
func (e *NameError) Is(err error) bool { return err == host.ErrName }

// SessionName returns the nearest name that every tmux, or this one where it is a later one that
// can hold more, holds byte for byte: the name itself where that is so. Periods and colons end a
// target's parts up to 3.6b, and tmux makes them '_'; controls it would show as escapes.
func (h *Host) SessionName(name string) string { return sessionName(name, h.likelyVersion()) }

func sessionName(name string, v version) string {
	if name == "" {
		return "_"
	}
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(name, "_") {
		switch {
		case unicode.IsControl(r), (r == '.' || r == ':') && !v.freeNames():
			b.WriteByte('_')
		default:
			b.WriteRune(r)
		}
	}
	out := b.String()
	for len(out) > host.MaxName {
		_, n := utf8.DecodeLastRuneInString(out)
		out = out[:len(out)-n]
	}
	return out
}

// heldName undoes what tmux does to a name that it is given: it doubles each backslash, and
// writes one before a '$' that a letter follows. What it cannot show it holds as an escape; that
// stays, so that a name that we report never holds a control character.
func heldName(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (s[i+1] == '\\' || s[i+1] == '$') {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
