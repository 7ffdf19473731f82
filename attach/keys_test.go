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
				key, b = nextKey(b)
				ours = append(ours, key)
				pending = false
				continue
			}
			text, hit, rest := k.feed(b)
			program += string(text)
			pending, b = hit, rest
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
