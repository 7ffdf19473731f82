package foreign

import (
	"strings"
	"testing"
)

// lined is a text whose last line has an end: what stands behind it is a line of its own.
func lined(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + newline(text)
}

func TestBlock(t *testing.T) {
	for _, text := range []string{"", "a\n", "a", "a\r\nb\r\n", "a\r\nb", "\n\n", "# >>> phux-agent other >>>\nx\n# <<< phux-agent other <<<\n"} {
		with, err := SetBlock(text, "x", "one\ntwo\n")
		if err != nil {
			t.Fatal(err)
		}
		if body, found, err := Block(with, "x"); err != nil || !found || body != "one\ntwo" {
			t.Errorf("%q: %q, %v, %v", text, body, found, err)
		}
		if again, err := SetBlock(with, "x", "one\ntwo"); err != nil || again != with {
			t.Errorf("%q: not the same again: %q, %q, %v", text, with, again, err)
		}
		if strings.Contains(text, "\r\n") && strings.Contains(strings.ReplaceAll(with, "\r\n", ""), "\n") {
			t.Errorf("mixed line ends: %q", with)
		}
		other, err := SetBlock(with+"later\n", "x", "three")
		if err != nil || strings.Count(other, ">>>")-strings.Count(text, ">>>") != 2 {
			t.Errorf("%q, %v", other, err)
		}
		if out, found, err := RemoveBlock(other, "x"); err != nil || !found || out != lined(text)+"later\n" {
			t.Errorf("%q: %q, %v, %v", text, out, found, err)
		}
		if out, _, err := RemoveBlock(with, "x"); err != nil || out != text {
			t.Errorf("%q: %q, %v", text, out, err)
		}
	}
	for text, want := range map[string]string{
		"# >>> phux-agent x >>>\n": "no end",
		"# >>> phux-agent x >>>\n# <<< phux-agent x <<<\n# >>> phux-agent x >>>\n# <<< phux-agent x <<<\n": "twice",
	} {
		if _, err := SetBlock(text, "x", "b"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
		if _, _, err := RemoveBlock(text, "x"); err == nil {
			t.Errorf("%q: removed", text)
		}
	}
}
