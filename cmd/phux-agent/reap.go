package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
)

func (a *app) reapVerb() *cobra.Command {
	var grace time.Duration
	cmd := &cobra.Command{
		Use:   "reap INTEGRATION/ID",
		Short: "End an agent that outlived its pane and holds a conversation",
		Long: `End an agent that outlived its pane and still holds its conversation, as some
agents do when their terminal goes away. What still runs of it gets SIGTERM and,
after the grace, SIGKILL. Nothing is touched that is not proven to be such an
orphan: an agent in a living pane is not.`,
		Example:     "  phux-agent reap gemini-cli/3b1f7c1e-98a4-4a0e-8f0e-0d6a4c0b5a11",
		Args:        cobra.ExactArgs(1),
		RunE:        func(cmd *cobra.Command, args []string) error { return a.reap(cmd, args[0], grace) },
		Annotations: exits("0 it has ended", "1 it could not be ended", "2 usage", "4 it is not an orphan; nothing was touched"),
	}
	cmd.Flags().DurationVar(&grace, "grace", 5*time.Second, "how long it may take to end by itself")
	return cmd
}

func (a *app) reap(cmd *cobra.Command, arg string, grace time.Duration) error {
	id, err := metadata.ParseIdentity(arg)
	if err != nil {
		return usage(cmd, "%w", err)
	}
	reg, err := a.registry()
	if err != nil {
		return err
	}
	own, err := reg.Resolve(id.IntegrationID)
	if err != nil {
		return err
	}
	claims, err := a.claims()
	if err != nil {
		return err
	}
	o, err := owner.NewObserver()
	if err != nil {
		return err
	}
	ended, err := o.Reap(cmd.Context(), claims, own.Template, id, grace)
	if err != nil {
		return err
	}
	if a.json {
		return writeDocument(a.stdout, struct {
			SchemaVersion int             `json:"schema_version"`
			IntegrationID string          `json:"integration_id"`
			NativeID      string          `json:"native_id"`
			Ended         []owner.Process `json:"ended"`
		}{schemaVersion, id.IntegrationID, id.NativeID, ended})
	}
	for _, p := range ended {
		a.say("ended pid %d", p.PID)
	}
	if len(ended) == 0 {
		a.say("nothing of %s was left", id)
	}
	return nil
}
