package main

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/status"
)

const goodState = archive.Good

// statusVerbName is what status lines call every few seconds: like paneExecVerb it is looked for
// before everything else, where its arguments are simple.
const statusVerbName = "status"

func (a *app) statusVerb() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "One line about the agents, for a status line",
		Long: `One line about the agents of a server, for a status line: how many run, how many
wait for a person, and since when something is not saved.

It asks nobody: it reads one small file that save, ps, launch, restore and the
agents' hooks keep. What may be no longer true is said to be. Without any process
at all, tmux shows the same by #{@phux-agent-status}.

A FORMAT has slots between braces: {agents} {working} {waiting} {done} {idle}
{unsaved} {overdue} {saved} {generation} {age} {text} {server}; {{ is a brace.`,
		Example: `  phux-agent status
  phux-agent status --format '{waiting}/{agents}'
  phux-agent status --json`,
		Args:        cobra.NoArgs,
		RunE:        func(cmd *cobra.Command, _ []string) error { return a.status(format) },
		Annotations: exits("0 printed; an empty line where there is nothing to say", "1 the file cannot be read", "2 usage", "5 no host"),
	}
	cmd.Flags().StringVar(&format, "format", "", "what to print: a `FORMAT` with slots")
	return cmd
}

// statusDocument is what status --json prints.
type statusDocument struct {
	SchemaVersion int       `json:"schema_version"`
	Server        string    `json:"server"`
	Text          string    `json:"text"`
	Age           string    `json:"age"` // why it may be no longer true, or ""
	At            time.Time `json:"at,omitzero"`
	status.Counts
	SavedAt      time.Time `json:"saved_at,omitzero"`
	Generation   uint64    `json:"generation"`
	UnsavedSince time.Time `json:"unsaved_since,omitzero"`
	// OverdueSince is when a save by itself was due, where autosave is on and does not come.
	OverdueSince time.Time      `json:"overdue_since,omitzero"`
	Panes        []status.Agent `json:"panes"`
}

func (a *app) status(format string) error {
	h, err := a.openHost()
	if err != nil {
		return err
	}
	d, err := a.dirs()
	if err != nil {
		return err
	}
	server, err := serverName(h)
	if err != nil {
		return err
	}
	s, err := status.Read(status.File(d.Runtime, server))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s = &status.Summary{Server: server}
	case err != nil:
		return err
	}
	age := s.Age(a.now(), func(pid int) bool {
		return !proc.Ended(pid) // one that nobody reaps is gone all the same
	})
	overdue := s.Overdue(a.now(), proc.Awake())
	if age == status.NoServer { // nothing runs there, and whose saves would be due?
		overdue, s.UnsavedSince, s.Agents = time.Time{}, time.Time{}, nil
	}
	if a.json {
		panes := s.Agents
		if panes == nil {
			panes = []status.Agent{}
		}
		return writeDocument(a.stdout, statusDocument{
			schemaVersion, server, s.Line(overdue, time.Local), age, s.At, s.Count(), s.SavedAt, s.Generation, s.UnsavedSince, overdue, panes,
		})
	}
	if format != "" {
		text, err := s.Format(format, age, overdue, time.Local)
		if err != nil {
			return err
		}
		a.say("%s", text)
		return nil
	}
	text := s.Line(overdue, time.Local)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		text = ""
	case age == status.NoServer:
		text = age
	case age != "" && text != "":
		text += " (" + age + ")"
	}
	a.say("%s", text)
	return nil
}

// serverName is the server that a host is, without asking it.
func serverName(h *hosted) (string, error) {
	if h.info.Server != "" {
		return h.info.Server, nil
	}
	if n, ok := h.Host.(interface{ ServerName() string }); ok {
		return n.ServerName(), nil
	}
	return "", fmt.Errorf("status: %w", errNoSummary)
}

// plainStatus runs `status` where it stands alone, or with a format, for a status line: nothing of
// the front door is built for it. ok is false where there is more to understand.
func plainStatus(args []string, a *app, out *output) (code int, ok bool) {
	format := ""
	for len(args) > 0 {
		switch {
		case args[0] == "--json":
			a.json, args = true, args[1:]
		case args[0] == "--format" && len(args) > 1:
			format, args = args[1], args[2:]
		default:
			return 0, false
		}
	}
	return a.report(out.judge(a, a.status(format))), true
}
