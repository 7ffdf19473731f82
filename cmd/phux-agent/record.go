package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

func (a *app) recordVerb() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "record",
		Short: "Show or forget what a pane would be restored as",
		Long: `Show or forget what a pane would be restored as. A PANE is %N as tmux names it,
session:window.pane, or a pane key as ps --json shows it.`,
		Example: `  phux-agent record show work:1.0
  phux-agent record forget %3`,
		Annotations: exits("0 done", "1 no such pane, or several", "2 usage", "5 no host, or no server"),
	})
	cmd.AddCommand(&cobra.Command{
		Use:         "show PANE",
		Short:       "Show a pane's record, live identity and launch facts",
		Example:     "  phux-agent record show work:1.0\n  phux-agent record show %3 --json",
		Args:        cobra.ExactArgs(1),
		RunE:        func(cmd *cobra.Command, args []string) error { return a.recordShow(cmd, args[0]) },
		Annotations: exits("0 shown, also where the pane has no record", "1 no such pane, or several", "2 usage", "5 no host, or no server"),
	}, &cobra.Command{
		Use:   "forget PANE",
		Short: "Take a pane's record away; its program runs on",
		Long: `Take a pane's record away: the next save has the pane without a conversation, and
a restore makes a shell of it. The program in the pane runs on, and the agent's
own conversation is not touched.`,
		Example:     "  phux-agent record forget work:1.0",
		Args:        cobra.ExactArgs(1),
		RunE:        func(cmd *cobra.Command, args []string) error { return a.recordForget(cmd, args[0]) },
		Annotations: exits("0 forgotten, or there was none", "1 no such pane, several, or somebody else changed the record", "2 usage", "5 no host, or no server"),
	})
	return cmd
}

// recordDocument is what record --json prints.
type recordDocument struct {
	SchemaVersion int                    `json:"schema_version"`
	Terminal      string                 `json:"terminal"`
	Session       string                 `json:"session"`
	Window        int                    `json:"window"`
	Index         int                    `json:"index"`
	Origin        string                 `json:"origin"`
	Record        *metadata.AgentSession `json:"record"`
	RecordError   string                 `json:"record_error"`
	Agent         *metadata.Agent        `json:"agent"`
	Launch        *metadata.LaunchFacts  `json:"launch"`
	Forgotten     bool                   `json:"forgotten"`
}

var origins = map[host.Origin]string{
	host.Foreign: "foreign", host.Ours: "ours", host.Ended: "ended", host.Replaced: "replaced",
	host.Bound: "bound", host.BoundGone: "bound-gone",
}

func (a *app) pane(cmd *cobra.Command, arg string) (*hosted, spot, recordDocument, error) {
	h, err := a.host(cmd.Context())
	if err != nil {
		return nil, spot{}, recordDocument{}, err
	}
	s, err := findPane(cmd.Context(), h.Host, arg)
	if err != nil {
		return nil, spot{}, recordDocument{}, err
	}
	doc := recordDocument{
		SchemaVersion: schemaVersion, Terminal: s.Pane.Terminal.ID, Session: s.Session, Window: s.Window,
		Index: s.Pane.Index, Origin: origins[s.Pane.Origin],
	}
	if b := s.Pane.Meta[metadata.KeyAgentSession]; len(b) > 0 {
		if r, err := metadata.DecodeAgentSession(b); err != nil {
			doc.RecordError = err.Error()
		} else {
			doc.Record = &r
		}
	}
	if r, err := metadata.DecodeAgent(s.Pane.Meta[metadata.KeyAgent]); err == nil {
		doc.Agent = &r
	}
	if f, err := metadata.DecodeLaunchFacts(s.Pane.Meta[metadata.KeyAgentLaunch]); err == nil {
		doc.Launch = &f
	}
	return h, s, doc, nil
}

func (a *app) recordShow(cmd *cobra.Command, arg string) error {
	_, s, doc, err := a.pane(cmd, arg)
	if err != nil {
		return err
	}
	if a.json {
		return writeDocument(a.stdout, doc)
	}
	a.say("pane          %s (%s), %s", s, doc.Terminal, doc.Origin)
	switch {
	case doc.RecordError != "":
		a.say("record        invalid: %s", doc.RecordError)
	case doc.Record == nil:
		a.say("record        none: a restore makes a shell of this pane")
	default:
		a.say("conversation  %s", doc.Record.NativeID)
		a.say("integration   %s of plugin %s", doc.Record.IntegrationID, doc.Record.PluginID)
	}
	if f := doc.Launch; f != nil {
		lines := [][2]string{
			{"key", f.PaneKey},
			{"profile", f.Profile},
			{"directory", a.tilde(f.LaunchDir)},
			{"unconfirmed", f.Unconfirmed},
			{"not kept", quoteAll(f.NotPreserved)},
		}
		if !f.ConfirmedAt.IsZero() {
			at := ago(f.ConfirmedAt, a.now())
			if f.ConfirmedBy != "" {
				at += ", by its " + f.ConfirmedBy
			}
			lines = append(lines, [2]string{"confirmed", at})
		}
		if f.OwnerPID > 0 {
			lines = append(lines, [2]string{"process", fmt.Sprint(f.OwnerPID)})
		}
		for _, l := range lines {
			if l[1] != "" {
				a.say("%-13s %s", l[0], l[1])
			}
		}
		for _, id := range f.Previous {
			a.say("%-13s %s", "earlier", id)
		}
		if len(f.Previous) > 0 && f.IntegrationID != "" {
			a.say("  an earlier one comes back by: phux-agent launch %s --resume ID", shellQuote(f.IntegrationID))
		}
	}
	return nil
}

func (a *app) recordForget(cmd *cobra.Command, arg string) error {
	h, s, doc, err := a.pane(cmd, arg)
	if err != nil {
		return err
	}
	// First what says which agent was launched here: else the next look would ask that agent
	// which conversation it has open, and adopt it again. The pane keeps its key.
	if doc.Launch != nil && (doc.Launch.IntegrationID != "" || doc.Launch.Pending) {
		kept, err := metadata.LaunchFacts{PaneKey: doc.Launch.PaneKey}.Encode()
		if err == nil {
			err = h.Swap(cmd.Context(), s.Pane.Terminal, metadata.KeyAgentLaunch, s.Pane.Meta[metadata.KeyAgentLaunch], kept)
		}
		if err != nil {
			return fmt.Errorf("forget the record of pane %s: %w", s, err)
		}
		doc.Forgotten = true
	}
	if old := s.Pane.Meta[metadata.KeyAgentSession]; len(old) > 0 {
		if err := h.Swap(cmd.Context(), s.Pane.Terminal, metadata.KeyAgentSession, old, nil); err != nil {
			return fmt.Errorf("forget the record of pane %s: %w", s, err)
		}
		doc.Forgotten = true
	}
	if a.json {
		return writeDocument(a.stdout, doc)
	}
	switch {
	case !doc.Forgotten:
		a.say("pane %s has no record", s)
	case doc.Record == nil && doc.RecordError == "":
		a.say("forgot which agent was launched in pane %s", s)
	case doc.Record == nil:
		a.say("forgot the invalid record of pane %s", s)
	default:
		a.say("forgot %s on pane %s", doc.Record.Identity(), s)
	}
	return nil
}
