package launch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/internal/ui"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
)

// reviveTime bounds one attempt to find out what a record resolves to now.
const reviveTime = 30 * time.Second

// screenWidth is what fits every terminal that people use.
const screenWidth = 78

// placeholder is the calm screen of a pane whose agent cannot be started now. It returns nil
// where the user closes it, and a *Held where its terminal is gone or the context ends; the
// record stays with the pane in any case.
func (b *body) placeholder(ctx context.Context, start host.Start) error {
	// Caught, not ignored: an ignored signal would stay ignored in the agent.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTSTP)
	defer signal.Stop(signals)

	lines := newLines(b.in)
	b.screen(start)
	for {
		b.say(promptLine(start.Ask))
		line, err := b.next(ctx, start.Ask, lines, signals)
		if err != nil {
			return &Held{Err: fmt.Errorf("wait for the user: %w", err)}
		}
		word := strings.ToLower(strings.TrimSpace(line))
		switch {
		case start.Ask == host.AskWord && word == "":
			b.say("  Type resume and press Enter.\n")
		case word == "", start.Ask == host.AskWord && word == askWord:
			if start.Ask == "" {
				b.say("\n  Trying again ...\n")
			} else {
				b.say("\n  Resuming ...\n")
			}
			next, became, err := b.again(ctx)
			switch {
			case became:
				return nil
			case err != nil:
				start.Reason, start.Hint, start.Ask = err.Error(), "", ""
			default:
				start = next
			}
			b.screen(start)
		case word == "s":
			b.shell(ctx, start)
			b.screen(start)
		case word == "q":
			if c, ok := b.seat.(Closer); ok {
				c.Close()
			}
			return nil
		default:
			b.say(map[bool]string{false: "  Enter, s or q.\n", true: "  resume, s or q.\n"}[start.Ask == host.AskWord])
		}
	}
}

// askWord asks a placeholder that Enter alone does not.
const askWord = "resume"

func promptLine(ask string) string {
	key := "Enter: try again"
	switch ask {
	case host.AskEnter:
		key = "Enter: resume it"
	case host.AskWord:
		key = askWord + ": resume it"
	}
	return "  " + key + "   s: a shell here   q: close this pane > "
}

func (b *body) next(ctx context.Context, ask string, lines *lines, signals <-chan os.Signal) (string, error) {
	answer := lines.ask()
	for {
		select {
		case l := <-answer:
			lines.got()
			return l.text, l.err
		case <-signals:
			b.say("\n  The record stays with this pane. q closes it.\n" + promptLine(ask))
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// screen draws the placeholder: what waits here, why, and what to do.
func (b *body) screen(start host.Start) {
	var s strings.Builder
	s.WriteString("\n  phux-agent: an agent waits here\n\n")
	b.who(&s, start)
	field(&s, "why", start.Reason)
	field(&s, "what to do", start.Hint)
	s.WriteString("\n  The record stays with this pane, and every save carries it on.\n\n")
	b.say(s.String())
}

// held is what stays on the screen of a pane whose agent was not started.
func (b *body) held(start host.Start, err error) {
	var s strings.Builder
	if b.seat.Meta()[metadata.KeyAgentLaunch] == nil && b.seat.Meta()[metadata.KeyAgentSession] == nil {
		s.WriteString("\n  phux-agent: the program was not started\n\n")
		field(&s, "why", err.Error())
		field(&s, "directory", start.Dir)
		b.say(s.String())
		return
	}
	s.WriteString("\n  phux-agent: the agent was not started\n\n")
	b.who(&s, start)
	field(&s, "why", err.Error())
	field(&s, "what to do", advice(err))
	s.WriteString("\n  The record stays with this pane; respawning it tries again.\n\n")
	b.say(s.String())
}

func (b *body) who(s *strings.Builder, start host.Start) {
	meta := b.seat.Meta()
	if raw := meta[metadata.KeyAgentSession]; raw != nil {
		rec, err := metadata.DecodeAgentSession(raw)
		if err != nil {
			field(s, "record", fmt.Sprintf("cannot be read: %v", err))
		} else {
			field(s, "agent", rec.IntegrationID+", of plugin "+rec.PluginID)
			field(s, "id", rec.NativeID)
		}
	}
	dir := start.Dir
	if facts, err := metadata.DecodeLaunchFacts(meta[metadata.KeyAgentLaunch]); err == nil {
		if meta[metadata.KeyAgentSession] == nil && facts.IntegrationID != "" {
			field(s, "agent", facts.IntegrationID+", without an id yet")
		}
		if dir == "" {
			dir = facts.LaunchDir
		}
		if facts.Profile != "" {
			field(s, "profile", facts.Profile)
		}
	}
	field(s, "directory", dir)
}

// advice says what to do about an error of the guard.
func advice(err error) string {
	if live := new(owner.LiveError); errors.As(err, &live) {
		return "Go on where it runs, or end it there; then respawn this pane."
	}
	return ""
}

// field writes one labelled value, wrapped; nothing of it can reach the terminal as a control.
func field(s *strings.Builder, label, value string) {
	if value == "" {
		return
	}
	const indent = 14
	for i, line := range wrap(ui.Escape(value), screenWidth-indent) {
		if i > 0 {
			label = ""
		}
		fmt.Fprintf(s, "  %-*s%s\n", indent-2, label, line)
	}
}

// wrap is ui.Wrap that also breaks a word which is longer than a line, such as an id.
func wrap(text string, width int) []string {
	var out []string
	for _, line := range ui.Wrap(text, width) {
		for ui.Width(line) > width {
			n, cells := 0, 0
			for i, r := range line {
				if cells += ui.Width(string(r)); cells > width {
					break
				}
				n = i + len(string(r))
			}
			if n == 0 {
				break
			}
			out, line = append(out, line[:n]), line[n:]
		}
		out = append(out, line)
	}
	return out
}

func (b *body) say(text string) { _, _ = io.WriteString(b.out, text) }

// shell runs the user's shell as a child, so that the pane's process stays ours and its record
// stays pending.
func (b *body) shell(ctx context.Context, start host.Start) {
	path, ok := lookup(b.environ, "SHELL")
	if !ok || !strings.HasPrefix(path, "/") {
		path = "/bin/sh"
	}
	cmd := exec.CommandContext(ctx, path)
	for _, kv := range b.environ {
		if name, _, _ := strings.Cut(kv, "="); !host.IsNativeEnv(name) {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Dir = start.Dir
	if info, err := os.Stat(start.Dir); err != nil || !info.IsDir() {
		cmd.Dir, _ = lookup(b.environ, "HOME")
		b.say(fmt.Sprintf("\n  %s cannot be entered; the shell starts in %s.\n", ui.Escape(start.Dir), ui.Escape(cmd.Dir)))
	}
	b.say("\n  Leave the shell to come back here.\n\n")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = b.in, b.out, b.out

	restore := keepTerminal(b.in)
	err := cmd.Run()
	restore()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		b.say(fmt.Sprintf("\n  The shell did not start: %s\n", ui.Escape(err.Error())))
	}
}

// keepTerminal remembers the modes of a terminal and who is in its foreground. A shell that was
// killed leaves both as they were in its own life.
func keepTerminal(in io.Reader) (restore func()) {
	f, ok := in.(*os.File)
	if !ok {
		return func() {}
	}
	fd := int(f.Fd())
	state, err := term.GetState(fd)
	if err != nil {
		return func() {}
	}
	return func() {
		signal.Ignore(syscall.SIGTTOU) // taking the foreground back is what it would stop
		_ = unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, unix.Getpgrp())
		_ = term.Restore(fd, state)
		signal.Reset(syscall.SIGTTOU)
	}
}

// lines reads a line when it is asked to and not before, so that nothing is taken from a shell
// that runs meanwhile.
type lines struct {
	r    *bufio.Reader
	out  chan line
	busy bool
}

type line struct {
	text string
	err  error
}

func newLines(in io.Reader) *lines {
	return &lines{r: bufio.NewReaderSize(in, 1024), out: make(chan line, 1)}
}

func (l *lines) ask() <-chan line {
	if !l.busy {
		l.busy = true
		go func() { l.out <- l.read() }()
	}
	return l.out
}

func (l *lines) got() { l.busy = false }

// read takes one line; of one that is too long, the beginning.
func (l *lines) read() line {
	text, err := l.r.ReadSlice('\n')
	first := string(text)
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = l.r.ReadSlice('\n')
	}
	return line{text: first, err: err}
}

func isSelf(p owner.Process) bool {
	self, err := proc.Self()
	return err == nil && p.PID == self.PID && p.Start == self.Start
}
