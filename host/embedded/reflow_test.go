package embedded

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/phux-agent/phux-agent/internal/ui"
)

// texts is what stands on a main screen and above it, each line whole, wherever it is wrapped.
func (s *screen) texts() []string {
	var out []string
	open := false
	add := func(text string, wrapped bool) {
		if open {
			out[len(out)-1] += text
		} else {
			out = append(out, text)
		}
		open = wrapped
	}
	n := len(s.history)
	for i := range n {
		l := s.history[(s.begin+i)%n]
		add(l.text, l.wrapped)
	}
	for i := range s.main.rows {
		l := &s.main.rows[i]
		text := s.lineLooks(l)
		add(text, l.wrapped)
	}
	for i := range out {
		// Where a look goes on over an edge it is said again.
		out[i] = trimLine(strings.TrimSuffix(trimLine(plainLooks(out[i])), `<"">`))
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

// plainLooks says a look once, however often it is set.
func plainLooks(l string) string {
	var b strings.Builder
	said, now := "", ""
	for len(l) > 0 {
		if l[0] == esc {
			n := strings.IndexByte(l, 'm') + 1
			if now = l[:n]; now == "\x1b[m" || now == "\x1b[0m" {
				now = ""
			}
			l = l[n:]
			continue
		}
		if now != said {
			fmt.Fprintf(&b, "<%q>", now)
			said = now
		}
		b.WriteByte(l[0])
		l = l[1:]
	}
	return b.String()
}

func TestReflow(t *testing.T) {
	for name, c := range map[string]struct {
		in         string
		cols, rows int
		want       string
		x, y       int
	}{
		"narrow":               {"0123456789\r\nabc", 5, 5, "01234\n56789\nabc", 3, 2},
		"wide":                 {"0123456789abcde\r\nx", 20, 5, "0123456789abcde\nx", 1, 1},
		"cursor within":        {"0123456789\x1b[8G", 5, 5, "01234\n56789", 2, 1},
		"cursor behind":        {"ab\x1b[8G", 5, 5, "ab", 4, 0},
		"wrap is pending":      {"0123456789", 5, 5, "01234\n56789", 5, 1},
		"blanks count":         {"ab      cd  ef", 7, 5, "ab\n cd  ef", 7, 1},
		"a wide one at an end": {"012345678漢x", 12, 5, "012345678漢x", 0, 0},
		"none is divided":      {"漢漢漢漢漢", 5, 5, "漢漢\n漢漢\n漢", 2, 2},
		"looks":                {"\x1b[31m0123456789\x1b[m", 5, 5, "01234\n56789", 5, 1},
		"half full stays":      {"1\r\n0123456789\r\n3", 5, 5, "1\n01234\n56789\n3", 1, 3},
		"what is full":         {"1\r\n2\r\n0123456789\r\n4\r\n5", 5, 5, "2\n01234\n56789\n4\n5", 1, 4},
		"lower":                {"1\r\n2\r\n3\r\n4\r\n5", 10, 3, "3\n4\n5", 1, 2},
		"room below goes":      {"1\r\n2", 10, 3, "1\n2", 1, 1},
		"higher, from above":   {"1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7", 10, 7, "1\n2\n3\n4\n5\n6\n7", 1, 6},
		"what was cleared":     {"0123456789abc\r\n1\r\n2\r\n3\r\n4\x1b[2J\x1b[Hx", 20, 5, "x", 1, 0},
		"higher, not full":     {"1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7\x1b[2J\x1b[Hx", 10, 7, "x", 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := written(10, 5, c.in)
			s.Resize(c.cols, c.rows)
			x := s.on.x
			if s.wrap {
				x++
			}
			if c.x == 0 {
				c.x = x
			}
			if got := s.Text(0); got != c.want || s.on.y != c.y || x != c.x {
				t.Errorf("%q, cursor %d,%d; not %q, %d,%d", got, x, s.on.y, c.want, c.x, c.y)
			}
		})
	}
}

// Whatever stands above the cursor is there again once a window that was narrow is wide again, in
// any number of steps, its looks and where the cursor stands included.
func TestNothingIsLostOfWhatIsNarrowed(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 3))
		s := newScreen(40, 12, nil)
		for range r.IntN(60) {
			switch r.IntN(8) {
			case 0:
				s.Write([]byte("\r\n"))
			case 1:
				s.Write([]byte("漢字かな한국"))
			case 2:
				fmt.Fprintf(writer{s}, "\x1b[%d;%dm", 30+r.IntN(8), r.IntN(9))
			case 3:
				s.Write([]byte("\x1b[m\x1b[4:3;58;5;9mune\u0301 ligne\x1b[m"))
			case 4:
				s.Write([]byte("   "))
			case 5:
				fmt.Fprintf(writer{s}, "\x1b]8;;http://x/%d\x1b\\a link\x1b]8;;\x1b\\", r.IntN(5))
			default:
				s.Write([]byte(strings.Repeat("some words of it ", 1+r.IntN(6))))
			}
		}
		s.Write([]byte("END"))
		before := s.texts()
		for range 5 {
			cols, rows := 2+r.IntN(90), 1+r.IntN(30)
			s.Resize(cols, rows)
			at := fmt.Sprintf("seed %d, %dx%d", seed, cols, rows)
			got := s.texts()
			for i := range max(len(got), len(before)) {
				if i < len(got) && i < len(before) && got[i] != before[i] {
					n := 0
					for n < min(len(got[i]), len(before[i])) && got[i][n] == before[i][n] {
						n++
					}
					t.Fatalf("%s: line %d, from %d on\n%.90q\nwas\n%.90q", at, i, n, got[i][n:], before[i][n:])
				}
				if i >= len(got) || i >= len(before) {
					t.Fatalf("%s: %d lines, and before %d; of line %d\n%q\nwas\n%q", at, len(got), len(before), i, got[min(i, len(got)-1)], before[min(i, len(before)-1)])
				}
			}
			// The cursor stands behind the last word.
			x := s.on.x
			if s.wrap {
				x++
			}
			if x == 0 && s.on.y == 0 {
				continue
			}
			l := s.on.rows[s.on.y].cells[:x]
			if x == 0 {
				l = s.on.rows[s.on.y-1].cells
			}
			if c := l[len(l)-1]; c.ch != 'D' {
				t.Fatalf("%s: before the cursor stands %q", at, s.appendText(nil, c.ch))
			}
			for _, l := range strings.Split(s.Text(Scrollback), "\n") {
				if w := textWidth(l); w > cols {
					t.Fatalf("%s: a line of %d cells: %q", at, w, l)
				}
			}
		}
	}
}

func textWidth(l string) (w int) {
	for _, r := range l {
		w += ui.RuneWidth(r)
	}
	return w
}
