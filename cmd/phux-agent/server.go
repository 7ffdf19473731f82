package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/embedded"
)

func (a *app) serverVerb() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Start, stop and look at the server of the embedded host",
		Long: `Start, stop and look at the server of the embedded host, which holds terminals
where there is no tmux. It starts by itself when something is launched or restored
there, and ends when it is told to, or a minute after its last session. -L NAME
names one of several.`,
		Example: `  phux-agent server status
  phux-agent -L work server stop`,
		Annotations: exits("2 usage"),
	}
	cmd.AddCommand(a.serverStart(), a.serverStop(), a.serverStatus(), a.serverRun())
	return group(cmd)
}

func (a *app) serverStart() *cobra.Command {
	return &cobra.Command{
		Use:     "start",
		Short:   "Start the server in the background",
		Long:    "Start the server in the background. Where it runs already, that is as good.",
		Example: "  phux-agent server start\n  phux-agent -L work server start",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := a.embedded()
			if err != nil {
				return err
			}
			if err := h.Start(cmd.Context()); err != nil {
				return err
			}
			return a.sayServer(cmd.Context(), h)
		},
		Annotations: exits("0 it runs", "1 failed", "2 usage", "5 it does not start"),
	}
}

func (a *app) serverStatus() *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Say whether the server runs, and what it holds",
		Long:    "Say whether the server runs, and what it holds. Looking does not start one.",
		Example: "  phux-agent server status\n  phux-agent server status --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := a.embedded()
			if err != nil {
				return err
			}
			return a.sayServer(cmd.Context(), h)
		},
		Annotations: exits("0 it runs", "1 failed", "2 usage", "5 it does not run"),
	}
}

func (a *app) sayServer(ctx context.Context, h *embedded.Host) error {
	name, socket, err := a.embeddedServer()
	if err != nil {
		return err
	}
	c, err := h.Dial(ctx)
	if err != nil {
		return fmt.Errorf("server %q: %w", name, err)
	}
	defer c.Close()
	w, err := c.Snapshot(ctx)
	if err != nil {
		return fmt.Errorf("server %q: %w", name, err)
	}
	panes := 0
	for _, s := range w.Sessions {
		for _, win := range s.Windows {
			panes += len(win.Panes)
		}
	}
	if a.json {
		return writeDocument(a.stdout, struct {
			SchemaVersion int    `json:"schema_version"`
			Name          string `json:"name"`
			Socket        string `json:"socket"`
			PID           int    `json:"pid"`
			Version       string `json:"version"`
			Sessions      int    `json:"sessions"`
			Panes         int    `json:"panes"`
		}{schemaVersion, name, socket, c.Instance.PID, c.Program, len(w.Sessions), panes})
	}
	a.say("server %s runs as pid %d (%s)", name, c.Instance.PID, c.Program)
	a.say("  %s with %s", plural(len(w.Sessions), "session"), plural(panes, "pane"))
	a.say("  socket %s", socket)
	return nil
}

func (a *app) serverStop() *cobra.Command {
	return &cobra.Command{
		Use:   "stop",
		Short: "End the server, and with it every terminal that it holds",
		Long: `End the server, and with it every terminal that it holds: their programs are
hung up, as when a terminal is closed. Save before, and restore brings the agents
back.`,
		Example: "  phux-agent server stop",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := a.embedded()
			if err != nil {
				return err
			}
			name, _, err := a.embeddedServer()
			if err != nil {
				return err
			}
			c, err := h.Dial(cmd.Context())
			if err != nil {
				return fmt.Errorf("server %q: %w", name, err)
			}
			defer c.Close()
			if err := c.Shutdown(cmd.Context()); err != nil {
				return fmt.Errorf("server %q: %w", name, err)
			}
			if !a.json {
				a.say("server %s has ended", name)
				return nil
			}
			return writeDocument(a.stdout, struct {
				SchemaVersion int    `json:"schema_version"`
				Name          string `json:"name"`
				Ended         int    `json:"ended_pid"`
			}{schemaVersion, name, c.Instance.PID})
		},
		Annotations: exits("0 it has ended", "1 failed", "2 usage", "5 none was running"),
	}
}

func (a *app) serverRun() *cobra.Command {
	var idle time.Duration
	var older bool
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Be the server, in the foreground",
		Long: `Be the server, in the foreground, and write its log to standard error: for a
service manager, or to see what it does. server start runs this in the background.`,
		Example: "  phux-agent server run\n  phux-agent -L work server run --idle 24h",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := a.serve(cmd.Context(), idle, older)
			if err != nil {
				embedded.Announce(a.environ, err)
			}
			return err
		},
		Annotations: exits("0 it was told to end, or was idle", "1 failed, or a server of that name runs", "2 usage", "5 no socket can be there"),
	}
	cmd.Flags().DurationVar(&idle, "idle", embedded.DefaultIdle, "how long a server without a session stays")
	// For tests: a server as it was before records went with the spawn.
	cmd.Flags().BoolVar(&older, "older", false, "be an older host")
	_ = cmd.Flags().MarkHidden("older") // it is there
	return cmd
}

func (a *app) serve(ctx context.Context, idle time.Duration, older bool) error {
	name, socket, err := a.embeddedServer()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	debug.SetGCPercent(100) // it lives long, unlike a verb
	// Where a few terminals write without end, each keeps a processor of Go's busy, and a key for
	// another would wait for its turn; with more of them than processors the system gives it one.
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 2)
	s, err := embedded.NewServer(embedded.ServerOptions{
		Name: name, Socket: socket, Self: self, Environ: a.environ, Version: programVersion(), Idle: idle, Older: older,
		Saves: a.serverSaves(name),
		Log:   slog.New(slog.NewTextHandler(embedded.BoundLog(a.stderr), nil)),
		Ready: func() { embedded.Announce(a.environ, nil) },
	})
	if err != nil {
		return err
	}
	err = s.Serve(ctx)
	if errors.Is(err, host.ErrNoServer) {
		return nil
	}
	return err
}
