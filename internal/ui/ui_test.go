package ui

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"plain äöü 日本":     "plain äöü 日本",
		"a\x1b[31mb":       `a\x1b[31mb`,
		"a\nb\tc\r":        `a\nb\tc\r`,
		"a\x7fb\u0085c":    `a\x7fb\x85c`,
		"\u202eevil\u2066": `\u202eevil\u2066`,
		"\u200b\ufeff":     `\u200b\ufeff`,
		"\xff\xc3":         `\xff\xc3`,
		"\ufffd":           "\ufffd",
		"\U000e0041":       `\U000e0041`,
		`a\b`:              `a\b`,
		"\x00":             `\x00`,
	} {
		if got := Escape(in); got != want {
			t.Errorf("Escape(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("a\x1b]0;x\a\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := Escape(s)
		if !utf8.ValidString(got) {
			t.Errorf("%q is not UTF-8", got)
		}
		for _, r := range got {
			if r < 0x20 || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
				t.Errorf("%q holds %U", got, r)
			}
		}
		if Escape(got) != got {
			t.Errorf("%q is escaped again", got)
		}
	})
}

func TestTable(t *testing.T) {
	tab := NewTable("ONE", "TWO", "THREE")
	tab.Row("日本", "x\x1b", "end")
	tab.Row("a", "", "")
	var b strings.Builder
	if err := tab.Write(&b, "  "); err != nil {
		t.Fatal(err)
	}
	want := "  ONE   TWO    THREE\n  日本  x\\x1b  end\n  a\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestClip(t *testing.T) {
	for _, c := range []struct {
		in          string
		width       int
		right, left string
	}{
		{"short", 5, "short", "short"},
		{"longer", 5, "long…", "…nger"},
		{"日本語", 5, "日本…", "…本語"},
		{"日本語", 4, "日…", "…語"},
	} {
		if got := Clip(c.in, c.width); got != c.right {
			t.Errorf("Clip(%q, %d) = %q, want %q", c.in, c.width, got, c.right)
		}
		if got := ClipLeft(c.in, c.width); got != c.left {
			t.Errorf("ClipLeft(%q, %d) = %q, want %q", c.in, c.width, got, c.left)
		}
	}
	if got := strings.Join(Wrap("a bb ccc dddd", 6), "|"); got != "a bb|ccc|dddd" {
		t.Errorf("Wrap: %q", got)
	}
}
