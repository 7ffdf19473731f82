package embedded

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func written(cols, rows int, text string) *screen {
	s := newScreen(cols, rows, nil)
	s.Write([]byte(text))
	return s
}

func TestScreen(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"lines":              {"one\r\ntwo", "one\ntwo"},
		"wrap":               {"0123456789abc", "0123456789\nabc"},
		"wrap is pending":    {"0123456789\r\nabc", "0123456789\nabc"},
		"cursor":             {"\x1b[2;3Hx\x1b[Hy", "y\n  x"},
		"erase line":         {"abcdef\x1b[3D\x1b[K", "abc"},
		"erase to cursor":    {"abcdef\x1b[3D\x1b[1K", "    ef"},
		"erase screen":       {"abc\r\ndef\x1b[2Jx", "\n   x"},
		"insert":             {"abc\x1b[2D\x1b[2@", "a  bc"},
		"delete":             {"abcdef\x1b[5D\x1b[2P", "adef"},
		"insert line":        {"a\r\nb\x1b[H\x1b[L", "\na\nb"},
		"delete line":        {"a\r\nb\r\nc\x1b[H\x1b[M", "b\nc"},
		"region":             {"1\r\n2\r\n3\r\n4\x1b[2;3r\x1b[3;1H\nx", "1\n3\nx\n4"},
		"down into a region": {"\x1b[2;3r\x1b[H\x1b[9Bx", "\n\nx"},
		"up into a region":   {"\x1b[2;3r\x1b[5H\x1b[9Ax", "\nx"},
		"below a region":     {"\x1b[2;3r\x1b[4H\x1b[9Bx", "\n\n\n\nx"},
		"reverse index":      {"1\r\n2\x1b[H\x1bMx", "x\n1\n2"},
		"tab":                {"a\tb", "a       b"},
		"wide":               {"漢字ab", "漢字ab"},
		"wide at the edge":   {"012345678漢", "012345678\n漢"},
		"half overwritten":   {"漢\x1b[2Gx", " x"},
		"mark":               {"e\u0301x", "e\u0301x"},
		"split UTF-8":        {"\xe6", ""},
		"invalid":            {"a\xffb", "a\uFFFDb"},
		"line drawing":       {"\x1b(0lqk\x1b(Bq", "┌─┐q"},
		"sgr is no text":     {"\x1b[1;31mred\x1b[38;2;1;2;3mx\x1b[m", "redx"},
		"osc is no text":     {"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b", "ab"},
		"dcs is no text":     {"\x1bPq#1~~\x1b\\a", "a"},
		"alt":                {"main\x1b[?1049h\x1b[Halt", "alt"},
		"back from alt":      {"main\x1b[?1049h\x1b[Halt\x1b[?1049lx", "mainx"},
		"repeat":             {"a\x1b[3bc", "aaaac"},
		"cancelled":          {"\x1b[3\x18a", "a"},
		"control within":     {"ab\x1b[\r1Cc", "ac"},
		"scrolled":           {"1\r\n2\r\n3\r\n4\r\n5\r\n6", "2\n3\n4\n5\n6"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := written(10, 5, c.in).Text(0); got != c.want {
				t.Errorf("%q, not %q", got, c.want)
			}
		})
	}
}

func TestScrollback(t *testing.T) {
	s := newScreen(20, 3, nil)
	for i := range Scrollback + 100 {
		fmt.Fprintf(writer{s}, "line %d\r\n", i)
	}
	lines := strings.Split(s.Text(Scrollback), "\n")
	if len(lines) != Scrollback+2 || lines[0] != fmt.Sprintf("line %d", 98) {
		t.Errorf("%d lines, the first %q", len(lines), lines[0])
	}
	if got := s.Text(1); got != fmt.Sprintf("line %d\nline %d\nline %d", Scrollback+97, Scrollback+98, Scrollback+99) {
		t.Errorf("%q", got)
	}
}

type writer struct{ s *screen }

func (w writer) Write(b []byte) (int, error) { w.s.Write(b); return len(b), nil }

func TestAnswers(t *testing.T) {
	for ask, want := range map[string]string{
		"ab\x1b[6n": "\x1b[1;3R", "\x1b[5n": "\x1b[0n", "\x1b[c": "\x1b[?62;22c", "\x1b[18t": "\x1b[8;5;10t", "\x1b[?2026$p": "\x1b[?2026;0$y",
	} {
		var got bytes.Buffer
		s := newScreen(10, 5, func(b []byte) { got.Write(b) })
		s.Write([]byte(ask))
		if got.String() != want {
			t.Errorf("%q is answered by %q, not %q", ask, got.String(), want)
		}
	}
}

// same compares everything that a painted screen must share with its original.
func same(a, b *screen) string {
	look := func(s *screen) string {
		var out strings.Builder
		style := func(st style) string { // the tables may be in another order
			e := s.extraOf(st)
			st.extra = 0
			return fmt.Sprintf("%v%v", st, e)
		}
		fmt.Fprintf(&out, "%d,%d %v %v %d-%d %+v pen %s %v %d %q\n", s.on.x, s.on.y, s.wrap, s.modes, s.top, s.end, s.charsets, style(s.pen), s.shift, len(s.alt.rows), s.title)
		for _, c := range s.saved[:min(len(s.alt.rows), 1)+1] {
			fmt.Fprintf(&out, "saved %d,%d %v %s %v %d\n", c.x, c.y, c.origin, style(c.pen), c.charsets, c.shift)
		}
		for _, g := range []*grid{&s.main, &s.alt} {
			for i := range g.rows {
				for _, c := range g.rows[i].cells {
					ch := string(s.appendText(nil, c.ch))
					st := c.style
					if c.ch == wideTail {
						continue
					}
					fmt.Fprintf(&out, "%s%v", ch, st)
				}
				out.WriteByte('\n')
			}
		}
		return out.String()
	}
	if x, y := look(a), look(b); x != y {
		lx, ly := strings.Split(x, "\n"), strings.Split(y, "\n")
		for i := range lx {
			if i >= len(ly) || lx[i] != ly[i] {
				return fmt.Sprintf("line %d:\n%s\n%s", i, lx[i], ly[i])
			}
		}
	}
	return ""
}

func painted(s *screen, dirty string) *screen {
	next := written(s.cols, s.rows, dirty)
	next.Write(s.Paint())
	return next
}

// FuzzScreen: no output can break the emulator, cutting it anywhere makes no difference, and
// what is painted is what stands there.
func FuzzScreen(f *testing.F) {
	for _, s := range []string{"", "abc", "\x1b[31mred", "\x1b[?1049h\x1b[2;4r\x1b[?6hx", "漢字\x1b[2Gx\x1b[1@", "\x1b[38;5;300m\x1b[48:2::1:2:3m", "e\u0301\u0301", "\x1b(0qqq\x0e", "\x1b[999999999999b", "\x1b[5;2r\x1b[L\x1b[99M", "\x1b]2;t\x1b\\", "\x1b[?1000;1006h", "\x1b[;;;;;;m", "\x1b#8\x1b[3J", "0123456789", "\x1b[>1u\x1b[>31u\x1b[?1049h\x1b[=5u", "\x1b[4:3;58;5;9mx\x1b]8;;http://x\x1b\\y", "\x1b[3g\x1b[5G\x1bH", "\x1b[3;4H\x1b[1m\x1b7\x1b[m", "\x1b[>4;2m\x1b[?12h"} {
		f.Add([]byte(s), uint8(10), uint8(5), uint16(1))
	}
	f.Add([]byte("\xe6\xa200"), uint8(10), uint8(0), uint16(1)) // bad bytes, cut between
	f.Add([]byte("\xf0\x80x"), uint8(10), uint8(0), uint16(1))
	f.Fuzz(func(t *testing.T, b []byte, cols, rows uint8, cut uint16) {
		if len(b) > 4096 || cols > 100 || rows > 50 {
			return
		}
		s := newScreen(int(cols), int(rows), func([]byte) {})
		s.Write(b)
		at := int(cut) % (len(b) + 1)
		other := newScreen(int(cols), int(rows), nil)
		other.Write(b[:at])
		other.Write(b[at:])
		if diff := same(s, other); diff != "" {
			t.Fatalf("cut at %d: %s", at, diff)
		}
		if next := painted(s, "dirty\x1b[?1049h\x1b[7m\x1b[2;3r\x1b[?1;6;1000;2004h\x1b(0\x1b[>4;2m\x1b[>5u\x1b[3g\x1b[4;9m\x1b7"); s.parser.state == ground {
			if s.title == "" {
				next.title = ""
			}
			if diff := same(s, next); diff != "" {
				t.Fatalf("painted: %s", diff)
			}
		}
		s.Resize(int(rows), int(cols))
		if next := painted(s, ""); s.parser.state == ground {
			if s.title == "" {
				next.title = ""
			}
			if diff := same(s, next); diff != "" {
				t.Fatalf("painted after a resize: %s", diff)
			}
		}
		s.Write(b)
		s.Resize(int(cols)+7, max(int(rows)/2, 1))
		s.Write(b)
		s.Lost()
		_ = s.Text(Scrollback)
		_ = s.Paint()
	})
}

// What a real tmux makes of the same bytes.
func TestScreenAsTmux(t *testing.T) {
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		t.Skip("no tmux")
	}
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	random := rand.New(rand.NewPCG(7, 7))
	pieces := []string{
		"hello ", "x", "0123456789", "\r\n", "\n", "\r", "\b", "\t", "\x1b[H", "\x1b[3;7H", "\x1b[10;60H", "\x1b[A", "\x1b[2B", "\x1b[5C", "\x1b[4D",
		"\x1b[K", "\x1b[1K", "\x1b[J", "\x1b[1J", "\r\x1b[L", "\r\x1b[2M", "\x1b[3P", "\x1b[2@", "\x1b[4X", "\x1b[3;9r", "\x1b[r", "\x1bM", "\x1bD", "\x1bE",
		"\x1b7", "\x1b8", "\x1b[1;31m", "\x1b[m", "漢字", "é", "\x1b[S", "\x1b[2T", "\x1b[7G", "\x1b[5d", "a long run of text that goes over the edge of the screen and on in the next line, as text does",
	}
	const n = 12
	for i := range n {
		var b strings.Builder
		for range 60 {
			piece := pieces[random.IntN(len(pieces))]
			// Outside of the region tmux inserts lines all the same, where others do not.
			if i%2 == 0 && strings.HasPrefix(piece, "\r\x1b[") || i%2 == 1 && piece == "\x1b[3;9r" {
				continue
			}
			b.WriteString(piece)
		}
		file := filepath.Join(dir, fmt.Sprintf("in%d", i))
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"-u", "-S", socket, "-f", "/dev/null", "new-session", "-d", "-s", fmt.Sprint(i), "-x", "80", "-y", "24", fmt.Sprintf("stty raw -echo; cat %s; touch %s.done; sleep 100", file, file)}
		if i == 0 {
			args = append(args, ";", "set", "-g", "status", "off")
		}
		if out, err := exec.Command(tmux, args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	defer exec.Command(tmux, "-S", socket, "kill-server").Run()
	for i := range n {
		file := filepath.Join(dir, fmt.Sprintf("in%d", i))
		in, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		until(t, func() string {
			if _, err := os.Stat(file + ".done"); err != nil {
				return "cat is not through"
			}
			return ""
		})
		size, err := exec.Command(tmux, "-S", socket, "display-message", "-p", "-t", fmt.Sprintf("=%d:", i), "#{pane_height} #{cursor_x} #{cursor_y}").Output()
		if err != nil {
			t.Fatal(err)
		}
		var rows, x, y int
		fmt.Sscan(string(size), &rows, &x, &y)
		s := newScreen(80, rows, nil)
		s.Write(in)
		want := ""
		for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			out, err := exec.Command(tmux, "-u", "-S", socket, "capture-pane", "-p", "-t", fmt.Sprintf("=%d:", i)).Output()
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(string(out), "\n")
			for n := range lines {
				lines[n] = strings.TrimRight(lines[n], " ")
			}
			if want = strings.TrimRight(strings.Join(lines, "\n"), "\n"); want == s.Text(0) {
				break
			}
		}
		if got := s.Text(0); got != want {
			t.Errorf("%d: of %q\nours:\n%s\ntmux:\n%s", i, in, got, want)
		}
		if s.on.x != x && !s.wrap || s.on.y != y {
			t.Errorf("%d: of %q the cursor is at %d,%d, of tmux at %d,%d", i, in, s.on.x, s.on.y, x, y)
		}
	}
}

func BenchmarkScreen(b *testing.B) {
	var plain, looks bytes.Buffer
	for i := 0; plain.Len() < 1<<20; i++ {
		fmt.Fprintf(&plain, "%06d the quick brown fox jumps over the lazy dog and so on\r\n", i)
	}
	for i := 0; looks.Len() < 1<<20; i++ {
		fmt.Fprintf(&looks, "\x1b[%d;%dH\x1b[38;5;%dmcell %d\x1b[0m \x1b[1;32mok\x1b[m", i%24+1, i%70+1, i%256, i)
	}
	for name, d := range map[string][]byte{"plain": plain.Bytes(), "looks": looks.Bytes(), "wide": bytes.Repeat([]byte("漢字かな─┐é"), 1<<16)} {
		b.Run(name, func(b *testing.B) {
			s := newScreen(80, 24, nil)
			b.SetBytes(int64(len(d)))
			for b.Loop() {
				s.Write(d)
			}
		})
	}
}
