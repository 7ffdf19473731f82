package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/embedded"
	"github.com/phux-agent/phux-agent/host/tmux"
	"github.com/phux-agent/phux-agent/internal/ui"
	"github.com/phux-agent/phux-agent/launch"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
	"github.com/phux-agent/phux-agent/restore"
)

// paneExec is what runs in a pane between its birth and its agent. args are the words after the
// verb. Where all is well it does not return: the process becomes the agent.
func paneExec(args, environ []string, stdin io.Reader, stdout io.Writer) int {
	seat, look, err := enter(args, environ)
	if left(err) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stdout, "phux-agent: error: %s\n", ui.EscapeLines(err.Error()))
		return failed
	}
	// Each time by a new look: between two presses of Enter the user may have mended it.
	revive := func(ctx context.Context) (host.Start, error) {
		a := look()
		a.stdin, a.stdout, a.stderr = stdin, stdout, stdout
		return a.revive(ctx, seat)
	}
	var held *launch.Held
	err = launch.Become(context.Background(), seat, environ, revive, stdin, stdout)
	switch {
	case err == nil, errors.Is(err, launch.ErrLeave), left(err):
		return 0
	case errors.As(err, &held): // its reason stands on the screen already
		return failed
	}
	fmt.Fprintf(stdout, "phux-agent: error: %s\n", ui.EscapeLines(err.Error()))
	return failed
}

func left(err error) bool { return errors.Is(err, tmux.ErrLeft) || errors.Is(err, embedded.ErrLeft) }

// enter takes the pane's seat on the host that started it; look makes an app that works with
// that host.
func enter(args, environ []string) (seat launch.Seat, look func() *app, err error) {
	if len(args) > 0 && args[0] == embedded.Flag {
		s, err := embedded.Enter()
		return s, func() *app {
			a := &app{environ: environ, hostKind: embedded.Kind}
			a.payloads = a.getenv(embedded.EnvSocket) // which is in the same directory
			return a
		}, err
	}
	s, err := tmux.Enter(args, environ)
	return s, func() *app { return &app{environ: environ, payloads: payloads(args)} }, err
}

// paneID is the pane that this process was started in, as its host names it.
func (a *app) paneID(h *hosted) string {
	if h.info.Kind == embedded.Kind {
		return a.getenv(embedded.EnvTerminal)
	}
	return a.getenv("TMUX_PANE")
}

// payloads is the directory that the pane's words name, where its payload was.
func payloads(args []string) string {
	if n := len(args); n > 0 && filepath.IsAbs(args[n-1]) {
		return args[n-1]
	}
	return ""
}

// revive answers what the pane's record resolves to now: a respawned pane, and Enter in a
// placeholder. What the pane holds at this moment counts, not what it held when it was born.
func (a *app) revive(ctx context.Context, seat launch.Seat) (host.Start, error) {
	meta := seat.Meta()
	h, err := a.host(ctx)
	var self owner.Place
	var here host.Terminal
	e := restore.Env{Getenv: a.lookup, Now: a.now, Machine: machine(), Watch: restore.WatchProcesses}
	if err == nil {
		e.Host = h.Host
		self = owner.Place{Host: h.info.Server, Terminal: a.paneID(h)}
		if s, err := findPane(ctx, h.Host, self.Terminal); err == nil && s.Pane.Nonce == seat.Nonce() {
			meta, here = s.Pane.Meta, s.Pane.Terminal
		}
	}
	shell := host.Start{Mode: host.Shell}
	raw := meta[metadata.KeyAgentSession]
	if len(raw) == 0 {
		// Forgotten, or never one. What stands here from now on is a shell, and no agent.
		if here.ID != "" {
			_ = sayEnded(ctx, h, here, meta[metadata.KeyAgentLaunch]) // it only describes
		}
		return shell, nil
	}
	rec, err := metadata.DecodeAgentSession(raw)
	if err != nil {
		return host.Start{}, fmt.Errorf("read the pane's record: %w", err)
	}
	facts, err := metadata.DecodeLaunchFacts(meta[metadata.KeyAgentLaunch])
	if err != nil {
		facts = metadata.LaunchFacts{} // it explains, and decides nothing
	}
	if e.Config, err = a.config(); err != nil {
		return host.Start{}, err
	}
	if e.Registry, err = a.registry(); err != nil {
		return host.Start{}, err
	}
	if e.Claims, err = a.claims(); err != nil {
		return host.Start{}, err
	}
	start, _, err := restore.One(ctx, e, rec, facts, self)
	return start, err
}

// sayEnded notes on a pane that its agent is over.
func sayEnded(ctx context.Context, h *hosted, t host.Terminal, old []byte) error {
	facts, err := metadata.DecodeLaunchFacts(old)
	if err != nil || facts.Ended {
		return err
	}
	facts.Ended = true
	b, err := facts.Encode()
	if err != nil {
		return err
	}
	return h.Swap(ctx, t, metadata.KeyAgentLaunch, old, b)
}
