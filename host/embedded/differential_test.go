package embedded

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/phux-agent/phux-agent/internal/looks"
	"github.com/phux-agent/phux-agent/internal/ui"
)

// eye is a real tmux with one pane that shows what bytes make, for comparing.
type eye struct {
	t      testing.TB
	in     io.WriteCloser // of a control client
	out    *bufio.Reader
	pipe   *os.File // to the pane's terminal
	shown  int
	width  int
	height int
}

func newEye(t testing.TB, cols, rows int) *eye {
	t.Helper()
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		t.Skip("no tmux to compare with")
	}
	dir, err := os.MkdirTemp("", "phux")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	fifo, socket := filepath.Join(dir, "bytes"), filepath.Join(dir, "s")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	e := &eye{t: t, width: cols, height: rows}
	if e.pipe, err = os.OpenFile(fifo, os.O_RDWR, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.pipe.Close() })
	cmd := exec.Command(tmux, "-u", "-S", socket, "-f", "/dev/null", "-C", "new-session", "-x", strconv.Itoa(cols), "-y", strconv.Itoa(rows),
		"stty raw -echo; exec cat "+fifo)
	cmd.Env = append(os.Environ(), "TMUX=", "LC_ALL=C.UTF-8", "TERM=xterm-256color", "HOME="+dir)
	if e.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	e.out = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = exec.Command(tmux, "-S", socket, "kill-server").Run()
		e.in.Close()
		_ = cmd.Wait()
	})
	e.reply() // to new-session
	for _, c := range []string{
		"refresh-client -f no-output", "set -g status off", "set -g set-titles off", "set -g allow-rename off", fmt.Sprintf("refresh-client -C %d,%d", cols, rows),
	} {
		e.ask(c)
	}
	until(t, func() string {
		if got := e.ask("display-message -p '#{pane_width} #{pane_height}'"); got != fmt.Sprintf("%d %d", cols, rows) {
			return "the pane is " + got
		}
		return ""
	})
	return e
}

// ask gives tmux one command and returns what it prints.
func (e *eye) ask(command string) string {
	if _, err := io.WriteString(e.in, command+"\n"); err != nil {
		e.t.Fatal(err)
	}
	return e.reply()
}

func (e *eye) reply() string {
	var b strings.Builder
	within := false
	for {
		l, err := e.out.ReadString('\n')
		if err != nil {
			e.t.Fatalf("tmux: %v after %q", err, b.String())
		}
		switch {
		case strings.HasPrefix(l, "%begin "):
			within = true
		case strings.HasPrefix(l, "%end ") && within:
			return strings.TrimSuffix(b.String(), "\n")
		case strings.HasPrefix(l, "%error ") && within:
			e.t.Fatalf("tmux: %s", b.String())
		case within:
			b.WriteString(l)
		}
	}
}

const facts = "#{cursor_x},#{cursor_y} shown=#{cursor_flag} alt=#{alternate_on} insert=#{insert_flag} wrap=#{wrap_flag} origin=#{origin_flag} " +
	"keypad=#{keypad_flag} keys=#{keypad_cursor_flag} mouse=#{mouse_standard_flag}#{mouse_button_flag}#{mouse_all_flag} sgr=#{mouse_sgr_flag} " +
	"region=#{scroll_region_upper}-#{scroll_region_lower}"

// cut ends what a stream may have begun.
const cut = "\x18\x1b\\"

// show lets tmux take bytes on a fresh screen, and returns what stands there and the facts.
func (e *eye) show(b []byte) (lines []string, state string) {
	e.t.Helper()
	e.shown++
	title := fmt.Sprintf("shown-%d", e.shown)
	all := slices.Concat([]byte(cut+"\x1b[?1049l\x1b[?1000;1002;1003;1006l\x1bc"), b, []byte(cut+"\x1b]2;"+title+"\x1b\\"))
	if _, err := e.pipe.Write(all); err != nil {
		e.t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); e.ask("display-message -p '#{pane_title}'") != title; time.Sleep(200 * time.Microsecond) {
		if time.Now().After(end) {
			e.t.Fatal("tmux does not come to the end of the bytes")
		}
	}
	state = e.ask("display-message -p '" + facts + "'")
	return strings.Split(e.ask("capture-pane -epN"), "\n"), state
}

// facts of a screen of ours, in the same words.
func (s *screen) facts() string {
	n := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	m := s.modes
	x := s.on.x
	if s.wrap {
		x = s.cols // as tmux counts
	}
	return fmt.Sprintf("%d,%d shown=%d alt=%d insert=%d wrap=%d origin=%d keypad=%d keys=%d mouse=%d%d%d sgr=%d region=%d-%d", x, s.on.y, n(!m.noCursor), n(m.altScreen),
		n(m.insert), n(!m.noWrap), n(m.origin), n(m.appKeypad), n(m.appCursor), n(m.mouse == 1000), n(m.mouse == 1002), n(m.mouse == 1003), n(m.mouseForm == 1006), s.top, s.end-1)
}

// differs says where two pictures differ.
func differs(ours, theirs []string) string {
	var a, b looks.Pen
	for i := range max(len(ours), len(theirs)) {
		var x, y []looks.Cell
		if i < len(ours) {
			x = looks.Line(ours[i], &a)
		}
		if i < len(theirs) {
			y = looks.Line(theirs[i], &b)
		}
		if !slices.Equal(x, y) {
			return fmt.Sprintf("line %d:\n ours %q\n tmux %q", i, x, y)
		}
	}
	return ""
}

// asTmux compares what tmux makes of bytes, what we make of them, and what tmux makes of our
// painting of that, which is what a person sees who attaches again.
func (e *eye) asTmux(b []byte) error {
	e.t.Helper()
	s := newScreen(e.width, e.height, nil)
	s.Write(b)
	lines, state := e.show(b)
	ours := strings.Split(s.Looks(0), "\n")
	if d := differs(ours, lines); d != "" {
		return errors.New(d)
	}
	s.Write([]byte(cut))
	if got := s.facts(); got != state {
		return fmt.Errorf("\n ours %s\n tmux %s", got, state)
	}
	s = newScreen(e.width, e.height, nil)
	s.Write(b)
	again, painted := e.show(s.Paint())
	if d := differs(again, lines); d != "" {
		return fmt.Errorf("painted anew: %s", d)
	}
	if painted != state {
		return fmt.Errorf("painted anew:\n ours %s\n tmux %s", painted, state)
	}
	return nil
}

// stream makes output such as programs write, and some that no program does. What terminals do not
// agree on (a control while a wrap is pending) it leaves out, and so it follows with a screen.
func stream(r *rand.Rand, cols, rows, pieces int) [][]byte {
	var b [][]byte
	s := newScreen(cols, rows, nil)
	n := func(max int) int { return 1 + r.IntN(max) }
	saved := false
	origin := r.IntN(2) == 0 // what of it the other screen keeps is another matter
	add := func(format string, args ...any) {
		piece := fmt.Appendf(nil, format, args...)
		if s.modes.insert && len(piece) > s.cols-s.on.x {
			return // tmux loses a character where it inserts and wraps
		}
		s.Write(piece)
		b = append(b, piece)
	}
	wide := r.IntN(3) == 0
	for range pieces {
		if s.wrap && r.IntN(3) > 0 {
			add("\r")
		}
		kind := r.IntN(27)
		if wide && slices.Contains([]int{7, 8, 9, 10, 13, 15, 16, 18, 24}, kind) {
			kind = 2 // what becomes of half a character is another matter
		}
		switch kind {
		case 0, 1:
			add("%s", strings.Repeat(string(rune('a'+r.IntN(26))), n(12)))
		case 2:
			of := 7
			if wide {
				of = 11
			}
			add("%s", []string{"hello world ", "0123456789", "é", "─│┌", "ok ✓ ", "→", "Ω", "日本語", "한국", "e\u0301", "😀"}[r.IntN(of)])
		case 3:
			add("\r\n")
		case 4:
			x, y := n(cols), n(rows)
			if wide {
				x = 1
			}
			add("\x1b[%d;%dH", y, x)
		case 5:
			var codes []string
			for range n(3) {
				codes = append(codes, []string{
					"0", "1", "2", "3", "4", "5", "7", "8", "9", "22", "23", "24", "25", "27", "28", "29", "39", "49",
					strconv.Itoa(30 + r.IntN(8)), strconv.Itoa(40 + r.IntN(8)), strconv.Itoa(90 + r.IntN(8)), strconv.Itoa(100 + r.IntN(8)),
					fmt.Sprintf("38;5;%d", r.IntN(256)), fmt.Sprintf("48;5;%d", r.IntN(256)), fmt.Sprintf("38;2;%d;%d;%d", r.IntN(256), r.IntN(256), r.IntN(256)),
					fmt.Sprintf("48:2::%d:%d:%d", r.IntN(256), r.IntN(256), r.IntN(256)), "4:3", "21", "53", "55", "4:0", "58;5;9", "59", "58:2::1:2:3",
				}[r.IntN(34)])
			}
			add("\x1b[%sm", strings.Join(codes, ";"))
		case 6:
			add("\x1b[m")
		case 7:
			if !s.wrap {
				add("\x1b[%dK", r.IntN(3))
			}
		case 8:
			if !s.wrap {
				add("\x1b[%dJ", r.IntN(3))
			}
		case 9:
			if !s.wrap && s.on.y >= s.top && s.on.y < s.end {
				add("\r\x1b[%d%c", n(4), "LM"[r.IntN(2)])
			}
		case 10:
			if !s.wrap && s.on.x < cols-6 { // 3.3a does not insert what fills the line
				add("\x1b[%d%c", n(6), "@PX"[r.IntN(3)])
			}
		case 11:
			if s.modes.origin { // where the cursor goes then is another matter
				add("\x1b[?6l")
			}
			top := n(rows - 1)
			add("\x1b[%d;%dr", top, top+n(rows-top))
		case 12:
			if !s.modes.origin {
				add("\x1b[r")
			}
		case 13:
			if !s.wrap {
				add("%s", []string{"\x1bM", "\x1bD", "\x1bE", "\n"}[r.IntN(4)])
			}
		case 14:
			// Some have one place to save it for both screens, and some have that of 1049, too.
			if i := r.IntN(2); !s.modes.altScreen && !origin && (i == 0 || saved) {
				add("%s", []string{"\x1b7", "\x1b8"}[i])
				saved = true
			}
		case 15:
			add("\x1b[%d%c", n(3), "ST"[r.IntN(2)])
		case 16:
			if !s.wrap {
				add("\x1b[%d%c", n(8), "ABCDEF"[r.IntN(6)])
			}
		case 17:
			if !s.wrap && !wide {
				add("\x1b[%d%c", n(min(rows, cols)), "Gd"[r.IntN(2)])
			}
		case 18:
			if !s.wrap && s.on.x > 0 {
				add("%s", []string{"\t", "\x1b[Z", "\b"}[r.IntN(3)])
			}
		case 19:
			add("\x1b[?%d%c", []int{1, 7, 25, 1000, 1002, 1006, 2004, 1004}[r.IntN(8)], "hl"[r.IntN(2)])
		case 20:
			switch set := r.IntN(3) == 0; {
			case origin:
			case set && !s.modes.altScreen:
				add("\r\x1b[?1049h")
				saved = false
			case s.modes.altScreen:
				add("\r\x1b[?1049l")
			}
		case 21:
			add("%s", []string{"\x1b(0lqqk\x1b(B", "\x1b(0x  x\x1b(B", "\x1b)0\x0etu\x0f"}[r.IntN(3)])
		case 22:
			of := 4
			if wide {
				of = 2
			} else if origin {
				of = 6
			}
			add("%s", []string{"\x1b=", "\x1b>", "\x1b[4h", "\x1b[4l", "\x1b[?6h", "\x1b[?6l"}[r.IntN(of)])
		case 23:
			add("%s", []string{"\x1b]2;title\x07", "\x1b]8;;http://x\x1b\\", "\x1bP1$r0m\x1b\\", "\x1b[>4;2m", "\x1b[?2026h", "\x1b[?2026l", "\x1b[2 q"}[r.IntN(7)])
		case 24:
			if left := cols - s.on.x; !s.wrap && left > 2 && s.last != 0 && ui.RuneWidth(s.last) == 1 && r.IntN(2) == 0 {
				add("z\x1b[%db", n(left-2))
			}
		case 25:
			if !s.wrap {
				add("%s", []string{"\x1bH", "\x1b[g", "\x1b[3g"}[r.IntN(3)])
			}
		case 26:
			add("%s", strings.Repeat("wrap it around the edge of the screen ", n(2)))
		}
	}
	return b
}

// Streams as programs write them, compared cell by cell with a real tmux.
func TestScreenAsTmuxShows(t *testing.T) {
	const cols, rows = 40, 12
	e := newEye(t, cols, rows)
	seed, n := uint64(1), 150
	if s := os.Getenv("EMBEDDED_SEED"); s != "" { // to look for more: the first seed, and how many
		fmt.Sscan(s, &seed, &n)
	}
	bad := 0
	for i := range n {
		r := rand.New(rand.NewPCG(seed+uint64(i), 1))
		b := stream(r, cols, rows, 5+r.IntN(40))
		if err := e.asTmux(slices.Concat(b...)); err != nil {
			small := slices.Concat(e.smaller(b)...)
			t.Errorf("seed %d: %q\n%v\nof %q\n%v", seed+uint64(i), small, e.asTmux(small), slices.Concat(b...), err)
			if bad++; bad > 5 {
				return
			}
		}
	}
}

// smaller leaves out of a stream what does not matter.
func (e *eye) smaller(b [][]byte) [][]byte {
	for size := len(b) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(b); {
			next := slices.Concat(b[:at], b[at+size:])
			if e.asTmux(slices.Concat(next...)) != nil {
				b = next
			} else {
				at += size
			}
		}
	}
	return b
}

// A window of another size shows in its corner what the screen shows, whatever was drawn between two
// pictures, and keys reach the program as it asked for them.
func TestPictures(t *testing.T) {
	const cols, rows = 40, 12
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		s, window := newScreen(cols, rows, nil), newScreen(cols+9, rows+4, nil)
		window.Write([]byte("dirty\x1b[?1049h\x1b[2;3r\x1b[7m\x1b[?6h\x1b(0"))
		var p picture
		for range 8 {
			s.Write(slices.Concat(stream(r, cols, rows, r.IntN(12))...))
			window.Write(s.Picture(&p, cols+9, rows+4))
			if b := s.Picture(&p, cols+9, rows+4); len(b) > 0 {
				t.Fatalf("seed %d: nothing has changed, and there is a picture %q", seed, b)
			}
			for y, l := range s.on.rows {
				for x, c := range l.cells {
					got := window.on.rows[y].cells[x]
					same := string(s.appendText(nil, c.ch)) == string(window.appendText(nil, got.ch)) && s.extraOf(c.style) == window.extraOf(got.style)
					c.style.extra, got.style.extra = 0, 0
					if !same || c.style != got.style {
						t.Fatalf("seed %d: at %d,%d %v, and in the window %v", seed, x, y, c, got)
					}
				}
				if c := window.on.rows[y].cells[cols]; c.ch != '·' {
					t.Fatalf("seed %d: beside line %d %q", seed, y, c.ch)
				}
			}
			if s.on.x != window.on.x || s.on.y != window.on.y || s.modes.altScreen != window.modes.altScreen || s.modes.mouse != window.modes.mouse ||
				s.modes.paste != window.modes.paste || s.modes.appCursor != window.modes.appCursor || s.modes.noCursor != window.modes.noCursor {
				t.Fatalf("seed %d: %d,%d %+v, and the window %d,%d %+v", seed, s.on.x, s.on.y, s.modes, window.on.x, window.on.y, window.modes)
			}
		}
	}
}
