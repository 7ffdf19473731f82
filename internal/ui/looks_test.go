package ui

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLooks(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"text":         {"one\ntwo  \n\n", "one\ntwo\n"},
		"nothing":      {"  \n\n \x1b[41m  ", ""},
		"colour":       {"a \x1b[31mred\x1b[39m b", "a \x1b[31mred\x1b[39m b\x1b[0m\n"},
		"goes on":      {"\x1b[1;31mred\nstill\x1b[0m not", "\x1b[1;31mred\x1b[0m\n\x1b[31;1mstill\x1b[0m not\n"},
		"reset first":  {"\x1b[1mx\x1b[0;32my\nz", "\x1b[1mx\x1b[0;32my\x1b[0m\n\x1b[32mz\x1b[0m\n"},
		"ends":         {"\x1b[1;31;48;5;9mx\x1b[39my\x1b[22m\n1\x1b[49m\n2", "\x1b[1;31;48;5;9mx\x1b[39my\x1b[0m\n\x1b[48;5;9m1\x1b[0m\n2\n"},
		"kinds":        {"\x1b[38:2::1:2:3mx\x1b[mz", "\x1b[38:2::1:2:3mx\x1b[mz\n"},
		"cursor":       {"a\x1b[2J\x1b[H\x1b[5;5Hb\x1b7\x1b8\x1bMc", "abc\n"},
		"private":      {"a\x1b[>4;2mb\x1b[?2004hc\x1b[0 md\x1b[!pe", "abcde\n"},
		"title":        {"a\x1b]0;owned\x07b\x1b]2;owned\x1b\\c", "abc\n"},
		"link":         {"\x1b]8;;http://evil/\x1b\\text\x1b]8;;\x1b\\", "text\n"},
		"clipboard":    {"a\x1b]52;c;b3duZWQ=\nb", "a\nb\n"},
		"strings":      {"a\x1bPq#0\x1b\\b\x1b_G\x1b\\c\x1b^x\x1b\\d\x1bXy\x1b\\e", "abcde\n"},
		"eight bits":   {"a\u009b31mb\u009d0;owned\u009cc\u0090x\u009cd", "abcd\n"},
		"raw bytes":    {"a\x9b31mb\xff", "a\uFFFD31mb\uFFFD\n"},
		"controls":     {"a\rb\x08c\x07d\x00e\x7ff", "abcdef\n"},
		"bidi":         {"a\u202eb\u2066c\u200bd", "abcd\n"},
		"drawing":      {"\x0elqk\x0flqk", "┌─┐lqk\n"},
		"sets":         {"a\x1b(0b\x1b)Bc\x1b#8d", "abcd\n"},
		"tab":          {"a\tb\n漢\tb", "a       b\n漢      b\n"},
		"broken off":   {"a\x1b[31", "a\n"},
		"broken by":    {"a\x1b[31\x1b[32mb", "a\x1b[32mb\x1b[0m\n"},
		"esc at end":   {"a\x1b", "a\n"},
		"twice":        {"a\x1b\x1b[31mb", "a\x1b[31mb\x1b[0m\n"},
		"long numbers": {"a\x1b[" + strings.Repeat("1;", 600) + "mb", "ab\n"},
		"the blanks":   {"a\x1b[41m   \nb", "a\n\x1b[41mb\x1b[0m\n"},
		"wide":         {"漢字 e\u0301", "漢字 e\u0301\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Looks(c.in, 100, 1000); got != c.want {
				t.Errorf("Looks(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
	long := strings.Repeat("0123456789\n", 5000)
	if got := Looks(long+"end\n", 3, 1000); got != "0123456789\n0123456789\nend\n" {
		t.Errorf("lines: %q", got)
	}
	if got := Looks(long+"end\n", 5000, 30); got != "0123456789\n0123456789\nend\n" {
		t.Errorf("bytes: %q", got)
	}
	if got := Looks(long, 0, 30); got != "" {
		t.Errorf("no lines: %q", got)
	}
}

func FuzzLooks(f *testing.F) {
	for _, s := range []string{"a\x1b[31mb\n", "\x1b]0;t\x07x", "\x0elqk", "\u009b1m", "\x1b[1m\x1b[38;5;1mx\n\ny\t\x1b[mz", "\xff\x1b"} {
		f.Add(s, 10, 200)
	}
	f.Fuzz(func(t *testing.T, s string, lines, bytes int) {
		lines, bytes = min(max(lines, 0), 1000), min(max(bytes, 0), 1<<16)
		got := Looks(s, lines, bytes)
		if len(got) > bytes || strings.Count(got, "\n") > lines || !utf8.ValidString(got) {
			t.Fatalf("%d bytes, %d lines, of %d, %d", len(got), strings.Count(got, "\n"), bytes, lines)
		}
		if again := Looks(got, lines, bytes); again != got {
			t.Fatalf("not settled: %q, then %q", got, again)
		}
		// By a reader of its own: nothing but text, line feeds, and ESC [ digits m.
		for _, line := range strings.Split(got, "\n") {
			for line != "" {
				if rest, ok := strings.CutPrefix(line, "\x1b["); ok {
					params, rest, ok := strings.Cut(rest, "m")
					if !ok || strings.Trim(params, "0123456789;:") != "" {
						t.Fatalf("a sequence that is no colour: %q", got)
					}
					line = rest
					continue
				}
				r, n := utf8.DecodeRuneInString(line)
				if r < 0x20 || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
					t.Fatalf("a control %q in %q", r, got)
				}
				line = line[n:]
			}
		}
	})
}
