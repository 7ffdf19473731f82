package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/phux-agent/phux-agent/capture"
	"github.com/phux-agent/phux-agent/internal/ui"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/status"
)

func (a *app) psVerb() *cobra.Command {
	var all, watch bool
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List the agent panes, and whether a restore brings each back",
		Long: `List the agent panes: where each is, which conversation it has, its state, and
whether a restore would bring it back. Like save, it asks each agent which
conversation it has open, and puts what is proven on the pane. Where an agent's
hooks are installed it says what the agent is doing: idle, working, waiting for a
person, done.

--watch shows it again at each change until q or Ctrl-C; with --json it prints one
document a line.`,
		Example: `  phux-agent ps
  phux-agent ps --all
  phux-agent ps --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if watch {
				return a.psWatch(cmd.Context(), all)
			}
			return a.ps(cmd.Context(), all)
		},
		Annotations: exits("0 listed", "1 the workspace cannot be read", "2 usage", "5 no host, or no server"),
	}
	cmd.Flags().BoolVar(&all, "all", false, "list panes without an agent as well")
	cmd.Flags().BoolVar(&watch, "watch", false, "show it again at each change, until interrupted")
	return cmd
}

// psPane is one pane of ps --json, which lists every pane.
type psPane struct {
	Terminal   string                 `json:"terminal"`
	Session    string                 `json:"session"`
	Window     int                    `json:"window"`
	Index      int                    `json:"index"`
	Cwd        string                 `json:"cwd"`
	Record     *metadata.AgentSession `json:"record"`
	Agent      *metadata.Agent        `json:"agent"`
	State      string                 `json:"state"`
	Durability string                 `json:"durability"`
	Restorable bool                   `json:"restorable"`
	Reason     string                 `json:"reason"`
	Key        string                 `json:"key"`
	Profile    string                 `json:"profile"`
	Changed    string                 `json:"changed"`
	Hint       string                 `json:"hint"`
}

// psDocument is what ps --json prints.
type psDocument struct {
	SchemaVersion int      `json:"schema_version"`
	Panes         []psPane `json:"panes"`
}

func (a *app) ps(ctx context.Context, all bool) error {
	panes, err := a.lookAt(ctx)
	if err != nil {
		return err
	}
	if a.json {
		return writeDocument(a.stdout, a.documentOf(panes))
	}
	return a.sayPanes(a.stdout, panes, all, a.width())
}

// lookAt is one look at every pane, as ps lists them.
func (a *app) lookAt(ctx context.Context) ([]capture.Pane, error) {
	h, err := a.lookable(ctx)
	if err != nil {
		return nil, noServer("list panes", err)
	}
	req, err := a.captureRequest(h)
	if err != nil {
		return nil, err
	}
	began := a.now()
	a.takeIn(ctx, h, req)
	_, panes, err := capture.Look(ctx, req)
	if err != nil {
		return nil, noServer("list panes", err)
	}
	a.glanced(ctx, h, panes, nil, began)
	return panes, nil
}

func (a *app) documentOf(panes []capture.Pane) psDocument {
	doc := psDocument{SchemaVersion: schemaVersion}
	for _, p := range panes {
		doc.Panes = append(doc.Panes, psPane{
			p.Terminal.ID, p.Session, p.Window, p.Index, p.Cwd, p.Record, p.Agent, p.State, p.Durability,
			p.Restorable, reasonOf(p), p.Facts.PaneKey, p.Facts.Profile, p.Changed, a.hookHint(p),
		})
	}
	return doc
}

// stateOf is a pane's state for people: of an agent that runs, also what it is doing, where its
// hooks tell.
func stateOf(p capture.Pane) string {
	if p.State == capture.Running && p.Agent != nil {
		if s := p.Agent.EffectiveState(); s != status.Unknown {
			return p.State + ", " + stateWord(s)
		}
	}
	return p.State
}

// reasonOf says what is wrong with a pane, or worth a word.
func reasonOf(p capture.Pane) string {
	if p.Err != nil {
		return errors.Join(p.Err).Error()
	}
	return p.Reason
}

// hookHint is what would make a running agent tell which conversation it has open, where nothing
// proves it.
func (a *app) hookHint(p capture.Pane) string {
	id := p.Facts.IntegrationID
	if p.Record != nil {
		id = p.Record.IntegrationID
	}
	if p.State != capture.Running || p.Facts.Unconfirmed == "" || id == "" {
		return ""
	}
	reg, err := a.registry()
	if err != nil {
		return ""
	}
	own, err := reg.Resolve(id)
	if err != nil || !own.Template.HookTells() || a.hookSet(own.Template) {
		return ""
	}
	return fmt.Sprintf("phux-agent hooks install %s, and it tells from then on which conversation is open", shellQuote(id))
}

func (a *app) sayPanes(w io.Writer, panes []capture.Pane, all bool, width int) error {
	type row struct{ place, state, agent, id, dir, note, hint string }
	var rows []row
	agents := 0
	for _, p := range panes {
		agent, id := p.Facts.IntegrationID, ""
		if p.Record != nil {
			agent, id = p.Record.IntegrationID, p.Record.NativeID
		}
		isAgent := agent != "" || p.Err != nil
		if !isAgent && !all {
			continue
		}
		if isAgent {
			agents++
		}
		note := reasonOf(p)
		if p.Changed != "" {
			note = joinNotes(p.Changed, note)
		}
		if isAgent && !p.Restorable {
			note = joinNotes("not restorable", note)
		}
		rows = append(rows, row{fmt.Sprintf("%s:%d.%d", p.Session, p.Window, p.Index), stateOf(p), agent, id, p.Cwd, note, a.hookHint(p)})
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintf(w, "no agent runs in %s\n", plural(len(panes), "pane"))
		return err
	}
	used := [4]int{len("PANE"), len("STATE"), len("AGENT"), len("CONVERSATION")}
	for _, r := range rows {
		for i, s := range []string{r.place, r.state, r.agent, r.id} {
			used[i] = max(used[i], ui.Width(ui.Escape(s)))
		}
	}
	room := width - used[0] - used[1] - used[2] - used[3] - 8
	withDir := width == 0 || room >= len("DIRECTORY")+3
	header := []string{"PANE", "STATE", "AGENT", "CONVERSATION"}
	if withDir {
		header = append(header, "DIRECTORY")
	}
	t := ui.NewTable(header...)
	for _, r := range rows {
		cells := []string{r.place, r.state, r.agent, r.id}
		if withDir {
			dir := a.tilde(r.dir)
			if width > 0 {
				dir = ui.ClipLeft(ui.Escape(dir), room)
			}
			cells = append(cells, dir)
		}
		t.Row(cells...)
		if r.note != "" {
			t.Note(r.note, max(width, 0))
		}
		if r.hint != "" {
			t.Note("→ "+r.hint, max(width, 0))
		}
	}
	return t.Write(w, "")
}

func joinNotes(a, b string) string {
	if b == "" {
		return a
	}
	return a + ": " + b
}

// tilde shortens the home directory, for people.
func (a *app) tilde(path string) string {
	d, err := a.dirs()
	if err != nil || d.Home == "/" {
		return path
	}
	if path == d.Home {
		return "~"
	}
	if len(path) > len(d.Home) && path[:len(d.Home)] == d.Home && path[len(d.Home)] == '/' {
		return "~" + path[len(d.Home):]
	}
	return path
}
