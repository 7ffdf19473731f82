package embedded

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// A real tmux takes as many cells for each character that Unicode knows as we do. What is here besides
// differs between versions of tmux (and other terminals), and is said in docs/embedded.md.
func TestWidthsAsTmux(t *testing.T) {
	const cols, rows = 40, 40
	e := newEye(t, cols, rows)
	var all []rune
	for r := rune(0xa1); r < 0x30000; r++ {
		switch {
		case r >= 0x3500 && r < 0x4d00, r >= 0x4f00 && r < 0x9f00, r >= 0xad00 && r < 0xd700, r >= 0x17100 && r < 0x18b00, r >= 0x20100 && r < 0x2fa00:
			continue // more of the same
		case r >= 0x1f3fb && r <= 0x1f3ff:
			continue // a skin tone is of one picture with what it follows; tmux before 3.5 shows it beside
		case r == 0x200d, r >= 0xfe00 && r <= 0xfe0f:
			continue // of sequences, below
		case unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Cf):
			all = append(all, r)
		}
	}
	var bad []string
	for chunk := range slices.Chunk(all, rows) {
		text := make([]string, len(chunk))
		for i, r := range chunk {
			text[i] = "a" + string(r)
		}
		ours, theirs := e.cells(text)
		for i, r := range chunk {
			if ours[i] != theirs[i] {
				bad = append(bad, fmt.Sprintf("%U tmux %d ours %d", r, theirs[i]-1, ours[i]-1))
			}
		}
	}
	t.Logf("%d characters, %d differ", len(all), len(bad))
	if len(bad) > len(all)/100 { // its Unicode may be another version's
		t.Errorf("%d of %d characters differ: %s…", len(bad), len(all), strings.Join(bad[:min(len(bad), 60)], ", "))
	}
	// Sequences of several characters: what all versions of tmux show alike.
	var seqs []string
	for _, q := range []string{
		"e\u0301", "e\u0301\u0302", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "\U0001f1e9", "\u23f0\ufe0e",
		"\u1112\u1161", "\u1112\u1161\u11ab", "\u0915\u093f", "\u0915\u094d\u0937", "\u0e01\u0e33", "a\u200bb", "\u03bb\u0304",
		"\U0001f3f4\u200d\u2620\ufe0f", "\u65e5\u672c\u8a9e", "\uff21\uff71",
	} {
		seqs = append(seqs, q, q+q, "漢"+q)
	}
	for chunk := range slices.Chunk(seqs, rows) {
		ours, theirs := e.cells(chunk)
		for i := range chunk {
			if ours[i] != theirs[i] {
				t.Errorf("%+q: tmux %d ours %d", chunk[i], theirs[i], ours[i])
			}
		}
	}
}

// cells is how many cells each text takes on a line of its own, by our screen and by tmux.
func (e *eye) cells(texts []string) (ours, theirs []int) {
	e.t.Helper()
	var b strings.Builder
	for i, text := range texts {
		fmt.Fprintf(&b, "\x1b[%d;1H%s\x1b[1Kx", i+1, text) // all of it is erased, and an x stands behind
	}
	lines, _ := e.show([]byte(b.String()))
	s := newScreen(e.width, e.height, nil)
	s.Write([]byte(b.String()))
	for i := range texts {
		ours = append(ours, strings.IndexByte(s.lineText(&s.on.rows[i]), 'x'))
		theirs = append(theirs, strings.IndexByte(lines[i], 'x'))
	}
	return ours, theirs
}
