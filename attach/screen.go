package attach

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/term"

	"github.com/phux-agent/phux-agent/internal/ui"
)

const (
	// plain puts the keyboard and the mouse back, so that keys come as we know them: no mouse, no
	// focus, no paste marks, no other forms of keys. It draws nothing.
	plain = "\x1b[?1l\x1b>\x1b[?9l\x1b[?1000l\x1b[?1001l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l" +
		"\x1b[?2004l\x1b[?2031l\x1b[?2048l\x1b[>4m\x1b[m\x1b[=0;1u"
	// settle brings a person's terminal to a known state: the main screen, no region, plain keys,
	// a visible cursor of the person's own shape.
	settle = "\x18\x1b\\\x1b[?2026l\x1b[=0;1u\x1b[?1049l\x1b[?47l\x1b[r\x1b[m\x1b]8;;\x1b\\\x1b[?7h\x1b[?6l\x1b[?5l\x1b[?45l\x1b[?2027l\x1b[4l\x1b[20l" +
		"\x1b[0 q\x1b[?25h\x1b(B\x1b)B\x0f" + plain
)

// screen is the person's terminal.
type screen struct {
	in, out   *os.File
	before    *term.State
	resized   chan os.Signal
	continued chan os.Signal
	killed    chan os.Signal
	restored  bool
}

func open(in, out *os.File) (*screen, error) {
	if in == nil || out == nil || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return nil, ErrNotTerminal
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	s := &screen{
		in: in, out: out, before: before,
		resized: make(chan os.Signal, 1), continued: make(chan os.Signal, 1), killed: make(chan os.Signal, 1),
	}
	signal.Notify(s.resized, syscall.SIGWINCH)
	signal.Notify(s.continued, syscall.SIGCONT)
	signal.Notify(s.killed, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT)
	return s, nil
}

// begin keeps what stands on the screen, by moving it into the scrollback, and the title, where
// the terminal keeps one.
func (s *screen) begin() {
	_, rows := s.size()
	s.write([]byte("\x1b[22;2t\x1b[" + strconv.Itoa(rows) + ";1H" + strings.Repeat("\n", rows)))
}

// again is for a client that was stopped: the shell has put the terminal back meanwhile.
func (s *screen) again() { _, _ = term.MakeRaw(int(s.in.Fd())) }

// restore puts the terminal back. It may be called more than once, and is deferred, so that a
// panic puts it back too.
func (s *screen) restore() {
	if s.restored {
		return
	}
	s.restored = true
	signal.Stop(s.resized)
	signal.Stop(s.continued)
	signal.Stop(s.killed)
	_, rows := s.size()
	s.write([]byte(settle + "\x1b[<9u\x1b[23;2t\x1b[" + strconv.Itoa(rows) + ";1H\x1b[2K\r\n"))
	_ = term.Restore(int(s.in.Fd()), s.before) // Best effort: the terminal may be gone.
}

func (s *screen) size() (cols, rows int) {
	cols, rows, err := term.GetSize(int(s.out.Fd()))
	if err != nil || cols < 1 || rows < 1 {
		return 80, 24
	}
	return cols, rows
}

func (s *screen) settle() { s.write([]byte(settle)) }

func (s *screen) title(t string) { s.write(fmt.Appendf(nil, "\x1b]2;%s\x07", ui.Escape(t))) }

func (s *screen) write(b []byte) {
	_, _ = s.out.Write(b) // Best effort: a terminal that is gone ends the input too.
}
