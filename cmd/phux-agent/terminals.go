package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/phux-agent/phux-agent/host"
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
		return err
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
	a.say("  attach: phux-agent --host embedded attach %s", shellQuote(name))
	return nil
}

func (a *app) sendVerb() *cobra.Command {
	var enter bool
	cmd := &cobra.Command{
		Use:   "send PANE TEXT...",
		Short: "Type into a terminal of the embedded host",
		Long: `Type into a terminal of the embedded host: the texts, with one blank between
them, and Enter after them with --enter. For scripts and tests; restoring an agent
never types.`,
		Example:     "  phux-agent send work:0.0 --enter -- make test\n  phux-agent send work:0.0 $'\\003'",
		Args:        cobra.MinimumNArgs(1),
		RunE:        func(cmd *cobra.Command, args []string) error { return a.send(cmd, args, enter) },
		Annotations: exits("0 it was handed to the terminal", "1 failed", "2 usage, or no such pane", "5 no server runs"),
	}
	cmd.Flags().BoolVar(&enter, "enter", false, "press Enter afterwards")
	return cmd
}

func (a *app) send(cmd *cobra.Command, args []string, enter bool) error {
	text := strings.Join(args[1:], " ")
	if enter {
		text += "\r"
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
		return err
	}
	if err := c.Input(cmd.Context(), at.Pane.Terminal, []byte(text)); err != nil {
		return fmt.Errorf("send to %s: %w", at, err)
	}
	return nil
}

func (a *app) readVerb() *cobra.Command {
	var history int
	var waitFor string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "read PANE",
		Short: "Print what stands on a terminal of the embedded host",
		Long: `Print what stands on a terminal of the embedded host, as text. With --wait-for,
wait until a line matches.`,
		Example:     "  phux-agent read work:0.0\n  phux-agent read work:0.0 --history 1000\n  phux-agent read work:0.0 --wait-for '^ok' --timeout 1m",
		Args:        cobra.ExactArgs(1),
		RunE:        func(cmd *cobra.Command, args []string) error { return a.read(cmd, args[0], history, waitFor, timeout) },
		Annotations: exits("0 it was printed", "1 failed", "2 usage, or no such pane", "5 no server runs", "124 nothing matched in time"),
	}
	cmd.Flags().IntVar(&history, "history", 0, "this many `LINES` of the scrollback above, too; -1 is all of it")
	cmd.Flags().StringVar(&waitFor, "wait-for", "", "wait until a line matches this `REGEXP`")
	cmd.Flags().DurationVar(&timeout, "timeout", 30*time.Second, "how long to wait")
	return cmd
}

func (a *app) read(cmd *cobra.Command, arg string, history int, waitFor string, timeout time.Duration) error {
	re, err := regexp.Compile("(?m)" + waitFor)
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
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
	defer cancel()
	// The screen itself is asked, again and again: what is waited for may have stood there before.
	for {
		screen, err := c.Read(ctx, at.Pane.Terminal, history)
		if err != nil {
			return fmt.Errorf("read %s: %w", at, err)
		}
		if waitFor == "" || re.MatchString(screen.Text) {
			return a.sayScreen(at.String(), screen.Text, screen.Cols, screen.Rows)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("read %s: wait for %q: %w", at, waitFor, context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (a *app) sayScreen(at, text string, cols, rows int) error {
	if a.json {
		return writeDocument(a.stdout, struct {
			SchemaVersion int    `json:"schema_version"`
			Pane          string `json:"pane"`
			Cols          int    `json:"cols"`
			Rows          int    `json:"rows"`
			Text          string `json:"text"`
		}{schemaVersion, at, cols, rows, text})
	}
	for line := range bytes.Lines([]byte(strings.TrimRight(text, "\n") + "\n")) {
		a.say("%s", bytes.TrimSuffix(line, []byte("\n")))
	}
	return nil
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
		Annotations: exits("0 it has ended", "1 failed, or no such session", "2 usage, or no such pane", "5 no server runs"),
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
			return err
		}
		what = "pane " + at.String()
		err = c.Kill(cmd.Context(), at.Pane.Terminal)
	}
	if err != nil && !errors.Is(err, host.ErrNoTerminal) {
		return fmt.Errorf("kill %s: %w", what, err)
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
