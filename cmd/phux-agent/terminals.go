package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/embedded"
	"github.com/phux-agent/phux-agent/internal/ui"
)

// The verbs that drive the terminals of the embedded host from a script: new, send, read, kill.
// tmux has its own.

func (a *app) newVerb() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "new [SESSION]",
		Short: "Make a session with a shell on the embedded host",
		Long: `Make a session with a shell on the embedded host, named after the directory
unless a name is given. The server starts by itself. attach shows it.`,
		Example:     "  phux-agent new work\n  phux-agent new work --cwd ~/src/api",
		Args:        cobra.MaximumNArgs(1),
		RunE:        func(cmd *cobra.Command, args []string) error { return a.new(cmd, args, dir) },
		Annotations: exits("0 it is there", "1 failed, or the name is taken", "2 usage"),
	}
	cmd.Flags().StringVar(&dir, "cwd", "", "the directory of the shell; this one unless given")
	return cmd
}

func (a *app) new(cmd *cobra.Command, args []string, dir string) error {
	if dir == "" {
		dir = "."
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return usage(cmd, "%q is not a directory", dir)
	}
	name := filepath.Base(dir)
	if len(args) > 0 {
		name = args[0]
	}
	h, err := a.embedded()
	if err != nil {
		return err
	}
	created, err := h.Create(cmd.Context(), host.CreateSession{Name: name, Dir: dir, Windows: []host.WindowSpec{{
		Layout: host.Cell{Cols: 80, Rows: 24}, AutomaticName: true,
		Panes: []host.PaneSpec{{Start: host.Start{Mode: host.Shell, Dir: dir}}},
	}}})
	if err != nil {
		return a.onEmbedded(fmt.Sprintf("new session %q", name), err)
	}
	t := created.Windows[0][0]
	if t.Err != nil {
		return t.Err
	}
	if a.json {
		return writeDocument(a.stdout, struct {
			SchemaVersion int    `json:"schema_version"`
			Session       string `json:"session"`
			Terminal      string `json:"terminal"`
		}{schemaVersion, name, t.Terminal.ID})
	}
	a.say("made session %s with a shell in %s", name, dir)
	a.say("  attach: %s", a.embeddedCommand("attach "+shellQuote(name)))
	return nil
}

func (a *app) sendVerb() *cobra.Command {
	var how typing
	cmd := &cobra.Command{
		Use:   "send PANE [TEXT...]",
		Short: "Type into a terminal of the embedded host",
		Long: `Type into a terminal of the embedded host: the texts, with one blank between
them, and Enter after them with --enter. With --keys each is the name of a key
(Enter, Escape, Tab, Up, PgDn, F5, C-c, M-x, S-Tab) or one character; with --hex
they are bytes. For scripts and tests; restoring an agent never types.`,
		Example:     "  phux-agent send work:0.0 --enter -- make test\n  phux-agent send work:0.0 --keys C-c Up Enter\n  phux-agent send work:0.0 --stdin < file",
		Args:        cobra.MinimumNArgs(1),
		RunE:        func(cmd *cobra.Command, args []string) error { return a.send(cmd, args, how) },
		Annotations: exits("0 it was handed to the terminal", "1 failed, or no such pane", "2 usage", "5 no server runs"),
	}
	f := cmd.Flags()
	f.BoolVar(&how.enter, "enter", false, "press Enter afterwards")
	f.BoolVar(&how.keys, "keys", false, "the texts are names of keys")
	f.BoolVar(&how.hex, "hex", false, "the texts are bytes, two digits each")
	f.BoolVar(&how.stdin, "stdin", false, "type what standard input has")
	exclude(cmd, "keys hex stdin")
	return cmd
}

// typing is how send takes its texts.
type typing struct{ enter, keys, hex, stdin bool }

// maxSend bounds what send reads from standard input, in bytes.
const maxSend = 64 << 20

func (a *app) send(cmd *cobra.Command, args []string, how typing) error {
	texts := args[1:]
	var b []byte
	switch {
	case how.stdin && len(texts) > 0:
		return usage(cmd, "--stdin takes no texts besides")
	case how.stdin:
		var err error
		if b, err = io.ReadAll(io.LimitReader(a.stdin, maxSend+1)); err != nil {
			return fmt.Errorf("send: read standard input: %w", err)
		}
		if len(b) > maxSend {
			return usage(cmd, "standard input is longer than %d MiB", maxSend>>20)
		}
	case how.hex:
		var err error
		if b, err = hex.DecodeString(strings.ReplaceAll(strings.Join(texts, ""), " ", "")); err != nil {
			return usage(cmd, "--hex: %w", err)
		}
	case how.keys:
		for _, k := range texts { // before anything is typed
			if _, err := keyBytes(k, false); err != nil {
				return usage(cmd, "--keys: %w", err)
			}
		}
	case len(texts) == 0 && !how.enter:
		return usage(cmd, "nothing to type: give a text, --enter or --stdin")
	default:
		b = []byte(strings.Join(texts, " "))
	}
	c, err := a.dial(cmd.Context())
	if err != nil {
		return err
	}
	defer c.Close()
	w, err := c.Snapshot(cmd.Context())
	if err != nil {
		return err
	}
	at, err := pickPane(w, args[0])
	if err != nil {
		return a.onEmbedded("send", err)
	}
	if how.keys {
		screen, err := c.Read(cmd.Context(), at.Pane.Terminal, 0)
		if err != nil {
			return a.onEmbedded(fmt.Sprintf("send to %s", at), err)
		}
		for _, k := range texts {
			key, err := keyBytes(k, screen.AppCursor)
			if err != nil {
				return usage(cmd, "--keys: %w", err)
			}
			b = append(b, key...)
		}
	}
	if how.enter {
		b = append(b, '\r')
	}
	if err := typeInto(cmd.Context(), c, at.Pane.Terminal, b); err != nil {
		return a.onEmbedded(fmt.Sprintf("send to %s", at), err)
	}
	return nil
}

const (
	sendPiece = 64 << 10
	// sendPause and sendPatience are of a program that does not read what was typed before.
	sendPause    = 20 * time.Millisecond
	sendPatience = 10 * time.Second
)

// typeInto types piece by piece, and waits for a program that is slow to read.
func typeInto(ctx context.Context, c *embedded.Client, t host.Terminal, b []byte) error {
	deadline := time.Now().Add(sendPatience)
	for {
		n := min(len(b), sendPiece)
		err := c.Input(ctx, t, b[:n])
		switch {
		case err == nil:
			if b = b[n:]; len(b) == 0 {
				return nil
			}
			deadline = time.Now().Add(sendPatience)
			continue
		case !errors.Is(err, embedded.ErrBusy) || time.Now().After(deadline):
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(sendPause):
		}
	}
}

func (a *app) readVerb() *cobra.Command {
	var how reading
	cmd := &cobra.Command{
		Use:   "read PANE",
		Short: "Print what stands on a terminal of the embedded host",
		Long: `Print what stands on a terminal of the embedded host, as text, or with its colours
by --looks. With --wait-for, wait until a line matches.`,
		Example:     "  phux-agent read work:0.0\n  phux-agent read work:0.0 --history 1000\n  phux-agent read work:0.0 --wait-for '^ok' --timeout 1m",
		Args:        cobra.ExactArgs(1),
		RunE:        func(cmd *cobra.Command, args []string) error { return a.read(cmd, args[0], how) },
		Annotations: exits("0 it was printed", "1 failed, or no such pane", "2 usage", "5 no server runs", "124 nothing matched in time"),
	}
	cmd.Flags().IntVar(&how.history, "history", 0, "this many `LINES` of the scrollback above, too; -1 is all of it")
	cmd.Flags().BoolVar(&how.looks, "looks", false, "with colours and other looks, as escape sequences")
	cmd.Flags().StringVar(&how.waitFor, "wait-for", "", "wait until a line matches this `REGEXP`")
	cmd.Flags().DurationVar(&how.timeout, "timeout", 30*time.Second, "how long to wait")
	return cmd
}

// reading is what read is asked for.
type reading struct {
	history int
	looks   bool
	waitFor string
	timeout time.Duration
}

// waitError is a screen on which nothing matched in time.
type waitError struct {
	Pane, Pattern string
	Timeout       time.Duration
}

func (e *waitError) Error() string {
	return fmt.Sprintf("read %s: no line matched %q within %v", e.Pane, e.Pattern, e.Timeout)
}

func (e *waitError) Unwrap() error { return context.DeadlineExceeded }

func (a *app) read(cmd *cobra.Command, arg string, how reading) error {
	re, err := regexp.Compile("(?m)" + how.waitFor)
	if err != nil {
		return usage(cmd, "--wait-for: %w", err)
	}
	c, err := a.dial(cmd.Context())
	if err != nil {
		return err
	}
	defer c.Close()
	w, err := c.Snapshot(cmd.Context())
	if err != nil {
		return err
	}
	at, err := pickPane(w, arg)
	if err != nil {
		return a.onEmbedded("read", err)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), how.timeout)
	defer cancel()
	late := &waitError{at.String(), how.waitFor, how.timeout}
	// The screen itself is asked, again and again: what is waited for may have stood there before.
	for {
		screen, err := c.Read(ctx, at.Pane.Terminal, how.history)
		if err == nil && (how.waitFor == "" || re.MatchString(screen.Text)) {
			if how.looks {
				screen, err = c.ReadLooks(cmd.Context(), at.Pane.Terminal, how.history)
			}
			if err == nil {
				return a.sayScreen(at.String(), screen, how.looks)
			}
		}
		switch {
		case err != nil && how.waitFor != "" && errors.Is(err, context.DeadlineExceeded) && cmd.Context().Err() == nil:
			return late
		case err != nil:
			return a.onEmbedded(fmt.Sprintf("read %s", at), err)
		}
		select {
		case <-ctx.Done():
			if cause := context.Cause(cmd.Context()); cause != nil {
				return fmt.Errorf("read %s: %w", at, cause)
			}
			return late
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (a *app) sayScreen(at string, screen embedded.Screen, looks bool) error {
	if a.json {
		type cursor struct {
			Col   int  `json:"col"`
			Row   int  `json:"row"`
			Shown bool `json:"shown"`
		}
		return writeDocument(a.stdout, struct {
			SchemaVersion int    `json:"schema_version"`
			Pane          string `json:"pane"`
			Cols          int    `json:"cols"`
			Rows          int    `json:"rows"`
			Text          string `json:"text"`
			Cursor        cursor `json:"cursor"`
			Title         string `json:"title"`
		}{schemaVersion, at, screen.Cols, screen.Rows, screen.Text, cursor{screen.Col, screen.Row, !screen.Hidden}, screen.Title})
	}
	for _, line := range strings.Split(strings.TrimRight(screen.Text, "\n"), "\n") {
		if looks {
			line = safeLooks(line)
		} else {
			line = ui.Escape(line)
		}
		fmt.Fprintln(a.stdout, line)
	}
	return nil
}

var sgr = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\x1b\[[0-9;:]*m`) })

// safeLooks escapes all of a line but its looks.
func safeLooks(line string) string {
	var b strings.Builder
	for {
		at := sgr().FindStringIndex(line)
		if at == nil {
			b.WriteString(ui.Escape(line))
			return b.String()
		}
		b.WriteString(ui.Escape(line[:at[0]]) + line[at[0]:at[1]])
		line = line[at[1]:]
	}
}

func (a *app) killVerb() *cobra.Command {
	var session bool
	cmd := &cobra.Command{
		Use:   "kill PANE",
		Short: "End a terminal of the embedded host, or a session with --session",
		Long: `End a terminal of the embedded host and its program; with --session a whole
session. Its record goes with it: save before, if it is to come back.`,
		Example:     "  phux-agent kill work:0.0\n  phux-agent kill --session work",
		Args:        cobra.ExactArgs(1),
		RunE:        func(cmd *cobra.Command, args []string) error { return a.kill(cmd, args[0], session) },
		Annotations: exits("0 it has ended", "1 failed, or no such session or pane", "2 usage", "5 no server runs"),
	}
	cmd.Flags().BoolVar(&session, "session", false, "the argument is the exact name of a session")
	return cmd
}

func (a *app) kill(cmd *cobra.Command, arg string, session bool) error {
	c, err := a.dial(cmd.Context())
	if err != nil {
		return err
	}
	defer c.Close()
	what := "session " + arg
	if session {
		err = c.KillSession(cmd.Context(), arg)
	} else {
		var w *host.Workspace
		if w, err = c.Snapshot(cmd.Context()); err != nil {
			return err
		}
		var at spot
		if at, err = pickPane(w, arg); err != nil {
			return a.onEmbedded("kill", err)
		}
		what = "pane " + at.String()
		err = c.Kill(cmd.Context(), at.Pane.Terminal)
	}
	if err != nil && !errors.Is(err, host.ErrNoTerminal) {
		return a.onEmbedded("kill "+what, err)
	}
	if a.json {
		return writeDocument(a.stdout, struct {
			SchemaVersion int    `json:"schema_version"`
			Ended         string `json:"ended"`
		}{schemaVersion, what})
	}
	a.say("ended %s", what)
	return nil
}
