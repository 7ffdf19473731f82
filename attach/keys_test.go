package attach

import (
	"strings"
	"testing"
)

// typing feeds pieces and returns what the program gets and what was ours, in order.
func typing(prefix byte, pieces ...string) (program string, ours []string) {
	k := keys{prefix: prefix}
	pending := false
	for _, piece := range pieces {
		b := []byte(piece)
		for len(b) > 0 {
			if pending {
				var key string
				whole := false
				if key, b, whole = nextKey(b); !whole {
					key = "begun"
				}
				ours = append(ours, key)
				pending = false
				continue
			}
			text, hit, rest := k.feed(b)
			program += string(text)
			pending, b = len(hit) > 0, rest
		}
	}
	return program, ours
}

func TestKeys(t *testing.T) {
	for _, tt := range []struct {
		name    string
		pieces  []string
		program string
		ours    string
	}{
		{"plain", []string{"ls -l\r"}, "ls -l\r", ""},
		{"prefix and key in one read", []string{"a\x02db"}, "ab", "d"},
		{"prefix and key in two reads", []string{"a\x02", "nb"}, "ab", "n"},
		{"a key that sends a sequence", []string{"\x02\x1b[A."}, ".", "up"},
		{"a character of several bytes", []string{"\x02ü."}, ".", "ü"},
		{"pasted", []string{"\x1b[200~x\x02dy\x1b[201~\x02?"}, "\x1b[200~x\x02dy\x1b[201~", "?"},
		{"pasted, marks divided", []string{"\x1b[20", "0~\x02", "d\x1b[2", "01~\x02p"}, "\x1b[200~\x02d\x1b[201~", "p"},
		{"an escape before a mark", []string{"\x1b\x1b[200~\x02\x1b\x1b[201~\x02c"}, "\x1b\x1b[200~\x02\x1b\x1b[201~", "c"},
		{"no mark", []string{"\x1b[20~\x02w"}, "\x1b[20~", "w"},
		{"as kitty writes it", []string{"a\x1b[98;5ud\x1b[98;5:3ub"}, "a\x1b[98;5:3ub", "d"},
		{"with a lock of capitals on", []string{"\x1b[98;69u\x1b[100u"}, "", "d"},
		{"as xterm writes it", []string{"\x1b[27;5;98~n"}, "", "n"},
		{"with more than Ctrl", []string{"\x1b[98;7u"}, "\x1b[98;7u", ""},
		{"another key as kitty writes it", []string{"\x1b[97;5u\x1b[98u\x1b[98;5~"}, "\x1b[97;5u\x1b[98u\x1b[98;5~", ""},
		{"pasted as kitty writes it", []string{"\x1b[200~\x1b[98;5u\x1b[201~"}, "\x1b[200~\x1b[98;5u\x1b[201~", ""},
		{"the mouse is no key", []string{"\x02\x1b[<0;3;4M."}, ".", ""},
		{"a key that is not whole", []string{"\x02\x1b[1;"}, "", "begun"},
		{"invalid byte", []string{"\x02\xffz"}, "z", "\ufffd"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			program, ours := typing(2, tt.pieces...)
			if program != tt.program || strings.Join(ours, " ") != tt.ours {
				t.Errorf("program got %q, ours %q; want %q, %q", program, ours, tt.program, tt.ours)
			}
		})
	}
}

// FuzzKeys: nothing typed is lost or made up, whatever comes in whatever pieces.
func FuzzKeys(f *testing.F) {
	f.Add("a\x02db", 1)
	f.Add("\x1b[200~\x02\x1b[201~\x02[", 3)
	f.Fuzz(func(t *testing.T, s string, cut int) {
		if strings.IndexByte(s, 2) < 0 {
			cut = min(max(cut, 0), len(s))
			if program, ours := typing(2, s[:cut], s[cut:]); program != s || ours != nil {
				t.Errorf("%q became %q and %q", s, program, ours)
			}
			return
		}
		typing(2, s)
	})
}

func TestParsePrefix(t *testing.T) {
	for s, want := range map[string]byte{"C-a": 1, "^B": 2, "Ctrl-z": 26, "C-[": 0, "C-m": 0, "a": 0, "": 0, "C-": 0} {
		if got, ok := ParsePrefix(s); got != want || ok != (want != 0) {
			t.Errorf("ParsePrefix(%q) = %d, %v; want %d", s, got, ok, want)
		}
	}
}

// Keys in every form that a program may have chosen are the same keys to us; what is no key is none.
func TestNextKey(t *testing.T) {
	for in, want := range map[string]string{
		"a": "a", "é": "é", "\r": "enter", "\x7f": "backspace", "\x1b[A": "up", "\x1bOB": "down", "\x1b[1;5A": "up", "\x1b[5;2~": "pgup",
		"\x1b[100u": "d", "\x1b[100;2u": "D", "\x1b[47:63;2u": "?", "\x1b[98;5u": "\x02", "\x1b[27u": "esc", "\x1b[27;5;98~": "\x02",
		"\x1b[100;1:3u": "", "\x1b[57442;5u": "", "\x1b[I": "", "\x1b[200~": "", "\x1b[<64;1;1M": "", "\x1b[M !!": "", "\x1bx": "", "\x1b\x1b": "esc",
		"\x1b": "begun", "\x1b[": "begun", "\x1b[1;": "begun", "\xc3": "begun", "\x1bO": "begun", "\x1b[M!": "begun",
	} {
		key, rest, whole := nextKey([]byte(in))
		if !whole {
			key = "begun"
		}
		if key != want || whole && len(rest) > 0 && in != "\x1b\x1b" {
			t.Errorf("%q is %q, and %q is left; want %q", in, key, rest, want)
		}
	}
}

func FuzzNextKey(f *testing.F) {
	f.Add([]byte("\x1b[98;5:3ux"))
	f.Add([]byte("\x1b[200~\x1b\x1bO"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) > 0 {
			_, rest, whole := nextKey(b)
			if whole && len(rest) >= len(b) {
				t.Fatalf("%q does not get shorter", b)
			}
			if !whole {
				if rest != nil {
					t.Fatalf("%q: not whole, and %q", b, rest)
				}
				return
			}
			b = rest
		}
	})
}
