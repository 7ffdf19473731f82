package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/internal/ui"
	"github.com/phux-agent/phux-agent/status"
)

// A watch looks at the summary's file often, for that costs one stat, and hooks write it at every
// change of a state; at the whole server it looks seldom, and never for more than a fiftieth of
// its time, so that a server of any size does not feel it.
const (
	glanceEvery = 200 * time.Millisecond
	lookEvery   = 2 * time.Second
	lookShare   = 50
)

// psWatch shows ps again at each change, until it is interrupted.
func (a *app) psWatch(ctx context.Context, all bool) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	out := file(a.stdout)
	live := !a.json && out != nil && term.IsTerminal(int(out.Fd())) && a.getenv("TERM") != "dumb"
	resized := make(chan os.Signal, 1)
	if live {
		signal.Notify(resized, syscall.SIGWINCH)
		defer signal.Stop(resized)
		back, err := a.takeScreen(out, stop)
		if err != nil {
			return err
		}
		defer back()
	}
	watched := a.summaryFile()
	last := ""
	for {
		began := a.now()
		text, err := a.psText(ctx, all, live)
		took := time.Since(began)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, host.ErrChanged):
			text = last
		case err != nil && last == "":
			return err
		case errors.Is(err, host.ErrNoServer):
			text = "no server is running\n"
			if a.json {
				return err
			}
		case err != nil:
			return err
		}
		if text != last || live && len(text) > 0 && last == "" {
			if err := a.showAgain(out, text, live, last != ""); err != nil {
				return err
			}
			last = text
		}
		stamp := stampOf(watched)
		next := time.Now().Add(max(lookEvery, lookShare*took))
		for stampOf(watched) == stamp && time.Now().Before(next) {
			select {
			case <-ctx.Done():
				return nil
			case <-resized:
				last = "" // it is laid out anew
				next = time.Now()
			case <-time.After(glanceEvery):
			}
		}
	}
}

// summaryFile is where hooks note what changes; empty where that is not known.
func (a *app) summaryFile() string {
	h, err := a.openHost()
	if err != nil {
		return ""
	}
	d, err := a.dirs()
	if err != nil {
		return ""
	}
	server, err := serverName(h)
	if err != nil {
		return ""
	}
	return status.File(d.Runtime, server)
}

// stampOf tells one content of a file from the next: it is replaced, never written to.
func stampOf(path string) uint64 {
	var st syscall.Stat_t
	if path == "" || syscall.Stat(path, &st) != nil {
		return 0
	}
	return uint64(st.Ino)
}

// psText is what one look shows.
func (a *app) psText(ctx context.Context, all, live bool) (string, error) {
	panes, err := a.lookAt(ctx)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	if a.json {
		err = writeLine(&b, a.documentOf(panes))
		return b.String(), err
	}
	width := a.width()
	err = a.sayPanes(&b, panes, all, width)
	return b.String(), err
}

// showAgain replaces what stands on a terminal, and elsewhere prints it below an empty line.
func (a *app) showAgain(out *os.File, text string, live, again bool) error {
	if !live {
		if again && !a.json {
			text = "\n" + text
		}
		_, err := io.WriteString(a.stdout, text)
		return err
	}
	w, h, err := term.GetSize(int(out.Fd()))
	if err != nil || w <= 0 || h <= 0 {
		w, h = 80, 24
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	foot := "q or Ctrl-C leaves"
	if most := max(h-1, 1); len(lines) > most {
		foot = fmt.Sprintf("%d more lines; %s", len(lines)-most, foot)
		lines = lines[:most]
	}
	var b strings.Builder
	b.WriteString("\x1b[H")
	for _, l := range lines {
		b.WriteString(ui.Clip(l, w) + "\x1b[K\r\n")
	}
	b.WriteString("\x1b[J")
	if h > 1 {
		fmt.Fprintf(&b, "\x1b[%d;1H%s\x1b[K", h, ui.Clip(foot, w-1))
	}
	_, err = io.WriteString(a.stdout, b.String())
	return err
}

// takeScreen shows the other screen, without a cursor, and reads keys: q, Ctrl-C and Ctrl-D call
// leave. What it returns puts everything back.
func (a *app) takeScreen(out *os.File, leave func()) (back func(), err error) {
	in := file(a.stdin)
	var old *term.State
	if in != nil && term.IsTerminal(int(in.Fd())) {
		if old, err = term.MakeRaw(int(in.Fd())); err != nil {
			return nil, fmt.Errorf("watch: %w", err)
		}
		go func() {
			b := make([]byte, 64)
			for {
				n, err := in.Read(b)
				if err != nil || bytes.ContainsAny(b[:n], "q\x03\x04") {
					leave()
					return
				}
			}
		}()
	}
	_, _ = io.WriteString(out, "\x1b[?1049h\x1b[?25l\x1b[2J")
	return func() {
		_, _ = io.WriteString(out, "\x1b[?25h\x1b[?1049l")
		if old != nil {
			_ = term.Restore(int(in.Fd()), old)
		}
	}, nil
}
