package fakeagent

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/term"
)

// tui is an agent as most look: the alternate screen, true colour, wide characters, the mouse, paste
// marks, focus and kitty's keys asked for, a log in a scroll region. What it is typed it shows, in
// quotes; l adds to the log, ? asks where the cursor is, q ends it. It stands for what a person sees,
// and keeps no conversation.
func (r *run) tui() int {
	in, ok := r.in.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return r.refuse(1, "tui: no terminal")
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return r.refuse(1, "tui: %v", err)
	}
	defer term.Restore(int(in.Fd()), before)
	fmt.Fprint(r.out, "\x1b[?1049h\x1b[>1u\x1b[?1002h\x1b[?1006h\x1b[?1004h\x1b[?2004h\x1b[?1h\x1b[5 q\x1b]2;the tui\x07")
	defer fmt.Fprint(r.out, "\x1b[r\x1b[0 q\x1b[?1l\x1b[?2004l\x1b[?1004l\x1b[?1006l\x1b[?1002l\x1b[<u\x1b[?1049l")
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	typed := make(chan string)
	go func() {
		for {
			b := make([]byte, 1024)
			n, err := in.Read(b)
			if n > 0 {
				typed <- string(b[:n])
			}
			if err != nil {
				close(typed)
				return
			}
		}
	}()
	r.log("start")
	last, lines := "", 0
	draw := func() {
		cols, rows, err := term.GetSize(int(in.Fd()))
		if err != nil {
			return
		}
		var b strings.Builder
		b.WriteString("\x1b[?25l\x1b[r\x1b[m\x1b[2J")
		fmt.Fprintf(&b, "\x1b[1;1H\x1b[38;2;255;136;0m┌%s┐", strings.Repeat("─", max(0, cols-2)))
		fmt.Fprintf(&b, "\x1b[2;1H│\x1b[m \x1b[1mtui\x1b[m size %dx%d\x1b[2;%dH\x1b[38;2;255;136;0m│", cols, rows, cols)
		fmt.Fprintf(&b, "\x1b[3;1H└%s┘\x1b[m", strings.Repeat("─", max(0, cols-2)))
		b.WriteString("\x1b[4;1H\x1b[48;5;236m\x1b[3mwide 日本語 한국 \x1b[m emoji 😀🚀 combining e\u0301 o\u0308 \x1b[4:3munder\x1b[m \x1b[9mgone\x1b[m \x1b[7m inverse \x1b[m")
		fmt.Fprintf(&b, "\x1b[5;1Hinput %q", last)
		fmt.Fprintf(&b, "\x1b[%d;1H\x1b[44;97m%-*s\x1b[m", rows, cols, " status ") // the last line, whole
		fmt.Fprintf(&b, "\x1b[7;%dr\x1b[7;1H\x1b[?25h", rows-1)
		fmt.Fprint(r.out, b.String())
		lines = 0
	}
	draw()
	for {
		select {
		case <-resized:
			draw()
		case s, ok := <-typed:
			if !ok {
				r.log("exit")
				return 0
			}
			// Keys may come together, and after the word that the window has the focus.
			keys := strings.TrimPrefix(strings.TrimPrefix(s, "\x1b[O"), "\x1b[I")
			if keys == "" || strings.Trim(keys, "ql?") != "" {
				last = s
				fmt.Fprintf(r.out, "\x1b7\x1b[5;1H\x1b[2Kinput %q\x1b8", last)
				continue
			}
			for _, key := range keys {
				switch key {
				case 'q':
					r.log("exit")
					return 0
				case 'l':
					lines++
					fmt.Fprintf(r.out, "\x1b[32mlog %d\x1b[m\r\n", lines)
				case '?':
					fmt.Fprint(r.out, "\x1b[5;9H\x1b[6n")
				}
			}
		}
	}
}
