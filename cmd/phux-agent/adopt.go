package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/phux-agent/phux-agent/capture"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/launch"
)

func (a *app) adoptVerb() *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:   "adopt PANE INTEGRATION",
		Short: "Take in an agent that was started by hand",
		Long: `Take in an agent that was started by hand in a pane, or one that chose its own id
and has none on record yet: from then on a restore brings it back.

The agent is asked which conversation it has open, where its integration says
how. Where it does not show it, --id says it: then the conversation must be in
the agent's store, and nobody else may run it. Save does the same by itself for
the agents that show it, unless the configuration says adopt_at_save = false.

A PANE is %N as tmux names it, session:window.pane, or a pane key.`,
		Example: `  phux-agent adopt %3 claude-code
  phux-agent adopt work:1.0 opencode --id ses_5bf742a5a65ae875cac8f09b67`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("id") && id == "" {
				return usage(cmd, "--id needs the id of a conversation")
			}
			return a.adopt(cmd.Context(), args[0], args[1], id)
		},
		Annotations: exits("0 adopted", "1 no such pane, or several", "2 usage",
			"4 refused: no such agent runs in it, or nothing shows its conversation", "5 no host, or no server"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			if len(args) != 1 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return a.completeIntegrations(cmd, nil, word)
		},
	}
	cmd.Flags().StringVar(&id, "id", "", "the conversation `ID`, where the agent does not show it")
	return cmd
}

func (a *app) adopt(ctx context.Context, pane, integration, id string) error {
	h, err := a.host(ctx)
	if err != nil {
		return err
	}
	if !h.info.Running {
		return fmt.Errorf("adopt: %w", host.ErrNoServer)
	}
	s, err := findPane(ctx, h.Host, pane)
	if err != nil {
		return err
	}
	req, err := a.captureRequest(h)
	if err != nil {
		return err
	}
	got, err := capture.Adopt(ctx, req, capture.Adoption{Terminal: s.Pane.Terminal, Integration: integration, ID: id})
	if err != nil {
		return err
	}
	res := launch.Result{
		Action: launch.Adopted, Terminal: got.Terminal.ID, Session: s.Session, Record: got.Record,
		Restorable: got.Restorable, Reason: got.Reason, NotPreserved: []string{},
	}
	if a.json {
		if err := a.launched(h, integration, stayed{}, res); err != nil {
			return err
		}
	} else {
		a.say("adopted %s %s", integration, got.Record.NativeID)
		a.say("  pane %s of session %s", res.Terminal, res.Session)
		switch {
		case !res.Restorable:
			a.say("  not restorable: %s", res.Reason)
		case res.Reason != "":
			a.say("  %s", res.Reason)
		}
	}
	a.saveAfterLaunch(ctx, h)
	return nil
}
