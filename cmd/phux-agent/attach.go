package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/phux-agent/phux-agent/attach"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/embedded"
)

func (a *app) attachVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "attach [SESSION]",
		Short: "Show a session of the embedded host in this terminal",
		Long: `Show a session of the embedded host in this terminal: one of its terminals at a
time, with every byte as its program wrote it. Ctrl-b leads out of it (attach_prefix
in the configuration chooses another key): Ctrl-b d detaches, Ctrl-b ? lists the
keys. Sessions on tmux are shown by tmux attach-session.`,
		Example:     "  phux-agent attach\n  phux-agent attach work\n  phux-agent -L other attach work",
		Args:        cobra.MaximumNArgs(1),
		RunE:        func(cmd *cobra.Command, args []string) error { return a.attach(cmd, args) },
		Annotations: exits("0 detached, or the last terminal has ended", "1 failed", "2 usage, or not in a terminal", "5 no server runs"),
	}
}

func (a *app) attach(cmd *cobra.Command, args []string) error {
	conf, err := a.config()
	if err != nil {
		return err
	}
	o := attach.Options{}
	if len(args) > 0 {
		o.Session = args[0]
	}
	if conf.AttachPrefix != "" {
		ok := false
		if o.Prefix, ok = attach.ParsePrefix(conf.AttachPrefix); !ok {
			return usage(cmd, "attach_prefix %q in the configuration is no key: write it as C-a", conf.AttachPrefix)
		}
	}
	c, err := a.dial(cmd.Context())
	if err != nil {
		return err
	}
	defer c.Close()
	why, err := attach.Run(cmd.Context(), shown{c}, o, file(a.stdin), file(a.stdout))
	if err != nil {
		return fmt.Errorf("attach: %w", err)
	}
	a.say("[%s]", why)
	return nil
}

// dial connects to the server of the embedded host that is meant; none is started.
func (a *app) dial(ctx context.Context) (*embedded.Client, error) {
	h, err := a.embedded()
	if err != nil {
		return nil, err
	}
	c, err := h.Dial(ctx)
	if err != nil {
		name, _, _ := a.embeddedServer()
		return nil, fmt.Errorf("server %q of the embedded host: %w", name, err)
	}
	return c, nil
}

// shown is the embedded client as attach wants it.
type shown struct{ *embedded.Client }

func (s shown) Open(ctx context.Context, t host.Terminal, cols, rows int) (attach.View, error) {
	v, _, _, err := s.Attach(ctx, t, cols, rows)
	if err != nil {
		return nil, err
	}
	w := view{View: v, events: make(chan attach.Event), left: make(chan struct{})}
	go w.pass()
	return w, nil
}

func (s shown) Text(ctx context.Context, t host.Terminal) (string, error) {
	screen, err := s.Read(ctx, t, -1)
	return screen.Text, err
}

func (s shown) Shell(ctx context.Context, session, dir string) (host.Terminal, error) {
	started, err := s.Spawn(ctx, host.Spawn{Place: host.NewWindow, Session: session, Pane: host.PaneSpec{Start: host.Start{Mode: host.Shell, Dir: dir}}})
	if err != nil {
		return host.Terminal{}, err
	}
	return started.Terminal, started.Err
}

// view passes a terminal's events on; sizes are attach's own business.
type view struct {
	*embedded.View
	events chan attach.Event
	left   chan struct{}
}

func (v view) pass() {
	defer close(v.events)
	for e := range v.View.Events() {
		if len(e.Output) == 0 && !e.Closed {
			continue
		}
		select {
		case v.events <- attach.Event{Output: e.Output, Closed: e.Closed}:
		case <-v.left:
			return
		}
	}
}

func (v view) Events() <-chan attach.Event { return v.events }

func (v view) Detach() error {
	close(v.left)
	return v.View.Detach()
}
