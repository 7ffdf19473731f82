package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/picker"
)

type pickFlags struct {
	generation uint64
	list       bool
}

func (a *app) pickVerb() *cobra.Command {
	var f pickFlags
	cmd := &cobra.Command{
		Use:   "pick",
		Short: "Choose what to restore, where to go, or what to launch",
		Long: `Choose from what runs and what was saved: restore everything, a session or one
agent, look at an older generation, go to a pane, or launch a new agent. Before
anything happens it says what would happen, by the same plan as restore --plan.

Keys and mouse; ? lists them. It works in a pane, over SSH and in a popup (tmux
display-popup -E -w 90% -h 90% phux-agent pick). Where there is no terminal to draw on (or TERM is dumb, or --list is given) it is a
numbered list, and reads a number from standard input.`,
		Example: `  phux-agent pick
  phux-agent pick --generation 41
  phux-agent pick --list
  phux-agent pick --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.pick(cmd, f) },
		Annotations: exits("0 done, or nothing was chosen", "1 failed", "2 usage",
			"3 partial, as restore and launch say it", "4 refused, likewise", "5 no host"),
	}
	fl := cmd.Flags()
	fl.Uint64Var(&f.generation, "generation", 0, "begin with the generation of this `NUMBER`")
	fl.BoolVar(&f.list, "list", false, "a numbered list, also in a terminal")
	return cmd
}

func (a *app) pick(cmd *cobra.Command, f pickFlags) error {
	ctx := cmd.Context()
	if cmd.Flags().Changed("generation") && f.generation == 0 {
		return usage(cmd, "--generation counts from 1")
	}
	src := &pickSource{app: a}
	in, out := file(a.stdin), file(a.stdout)
	if a.json || f.list || !a.drawable() {
		d, err := src.Data(ctx, f.generation)
		if err != nil {
			return err
		}
		if a.json {
			return writeDocument(a.stdout, d)
		}
		agents, err := src.Agents(ctx)
		if err != nil {
			return err
		}
		choices, err := picker.List(a.stdout, d, agents, a.width())
		if err != nil {
			return err
		}
		c, err := picker.Ask(a.stdin, a.stderr, choices)
		if err != nil {
			return usage(cmd, "%w", err)
		}
		return a.picked(cmd, c)
	}
	_, noColor := a.lookup("NO_COLOR")
	noColor = noColor && a.getenv("NO_COLOR") != ""
	d, err := a.dirs()
	if err != nil {
		return err
	}
	c, err := picker.Run(ctx, src, picker.Options{Color: !noColor, Generation: f.generation, Environ: a.environ, Home: d.Home, Attaches: a.outside(cmd)}, in, out)
	if err != nil {
		return err
	}
	err = a.picked(cmd, c)
	a.linger(ctx, c, err)
	return err
}

// linger keeps the words on the screen of a popup, which would close over them.
func (a *app) linger(ctx context.Context, c picker.Choice, err error) {
	if err == nil || c.Act == picker.Nothing || a.getenv("TMUX") == "" {
		return
	}
	h, herr := a.openHost()
	if herr != nil {
		return
	}
	if _, herr := h.caller(ctx); !errors.Is(herr, host.ErrNoTerminal) {
		return // a pane, whose words stay
	}
	var status *statusError
	if !errors.As(err, &status) {
		a.warn("%v", err)
	}
	fmt.Fprint(a.stderr, "phux-agent: Enter closes this")
	_, _ = bufio.NewReader(a.stdin).ReadString('\n')
}

// picked does what was chosen, by the verb that does it.
func (a *app) picked(cmd *cobra.Command, c picker.Choice) error {
	switch c.Act {
	case picker.RestoreAll, picker.RestoreSession, picker.RestorePane:
		return a.pickedRestore(cmd, c)
	case picker.Resume:
		args := []string{c.Pane.Agent, "--resume", c.Pane.ID, "--session", c.Session}
		if c.Pane.Dir != "" {
			args = append(args, "--cwd", c.Pane.Dir)
		}
		if c.Pane.Profile != "" {
			args = append(args, "--profile", c.Pane.Profile)
		}
		return a.pickedLaunch(cmd, args, c.Session)
	case picker.Launch:
		args := []string{c.Agent}
		if c.Session != "" {
			args = append(args, "--session", c.Session)
		}
		if c.Dir != "" {
			args = append(args, "--cwd", c.Dir)
		}
		return a.pickedLaunch(cmd, args, c.Session)
	case picker.Jump:
		if a.outside(cmd) {
			return a.goIn(cmd, c)
		}
		return a.jump(cmd.Context(), c.Session, func(s string, p host.Pane) bool { return p.Terminal.ID == c.Pane.Terminal })
	}
	return nil
}

// outside reports a person before a terminal that no multiplexer of ours has: going to a pane is
// attaching there.
func (a *app) outside(cmd *cobra.Command) bool {
	list, _ := cmd.Flags().GetBool("list")
	return !list && a.drawable() && a.getenv("TMUX") == "" && !a.inPane()
}

// drawable reports a terminal that the picker can draw on.
func (a *app) drawable() bool {
	return a.getenv("TERM") != "dumb" && isTerminal(a.stdin) && isTerminal(a.stdout)
}

// goIn shows a pane in this terminal, in the place of this program where the host has one for that.
func (a *app) goIn(cmd *cobra.Command, c picker.Choice) error {
	h, err := a.host(cmd.Context())
	if err != nil {
		return err
	}
	w, err := h.Snapshot(cmd.Context())
	if err != nil {
		return fmt.Errorf("go to a pane of %q: %w", c.Session, err)
	}
	for _, s := range w.Sessions {
		for _, win := range s.Windows {
			for _, p := range win.Panes {
				if p.Terminal.ID != c.Pane.Terminal {
					continue
				}
				if t, ok := h.Host.(interface {
					AttachArgv(session string, window int, t host.Terminal) []string
				}); ok {
					argv := t.AttachArgv(s.Name, win.Index, p.Terminal)
					return fmt.Errorf("attach: %w", syscall.Exec(argv[0], argv, a.environ))
				}
				if f, ok := h.Host.(host.Focuser); ok {
					if err := f.Focus(cmd.Context(), p.Terminal); err != nil {
						return err
					}
				}
				return a.attach(cmd, []string{s.Name})
			}
		}
	}
	return fmt.Errorf("go to a pane of %q: %w", c.Session, host.ErrNoTerminal)
}

// runVerb runs another verb as it would run by itself.
func (a *app) runVerb(cmd, verb *cobra.Command, args []string) error {
	verb.SetContext(cmd.Context())
	if err := verb.ParseFlags(args); err != nil {
		return fmt.Errorf("pick: %w", err)
	}
	return verb.RunE(verb, verb.Flags().Args())
}

func (a *app) pickedRestore(cmd *cobra.Command, c picker.Choice) error {
	var args []string
	if c.Generation > 0 {
		flag := "--shown"
		if c.Asked {
			flag = "--generation"
		}
		args = append(args, flag, strconv.FormatUint(c.Generation, 10))
	}
	switch c.Act {
	case picker.RestoreSession:
		args = append(args, "--only", c.Session)
	case picker.RestorePane:
		args = append(args, "--pane", fmt.Sprintf("%s:%d.%d", c.Session, c.Window, c.Pane.Index))
	}
	err := a.runVerb(cmd, a.restoreVerb(), args)
	var partly *statusError
	if err != nil && !(errors.As(err, &partly) && partly.code == partial) || c.Act == picker.RestoreAll {
		return err
	}
	h, herr := a.host(cmd.Context())
	if herr != nil || !a.attached(h.info) {
		return err
	}
	name := cmp.Or(c.As, h.sessionName(c.Session))
	found := func(s string, p host.Pane) bool {
		if s != name {
			return false
		}
		rec, derr := metadata.DecodeAgentSession(p.Meta[metadata.KeyAgentSession])
		return c.Act == picker.RestoreSession || derr == nil && rec.NativeID == c.Pane.ID && rec.IntegrationID == c.Pane.Agent
	}
	return errors.Join(err, a.jump(cmd.Context(), name, found))
}

func (a *app) pickedLaunch(cmd *cobra.Command, args []string, session string) error {
	before := map[string]bool{}
	h, err := a.host(cmd.Context())
	if err != nil {
		return err
	}
	if w, err := h.Snapshot(cmd.Context()); err == nil {
		eachPane(w, func(_ string, p host.Pane) bool { before[p.Terminal.ID] = true; return false })
	}
	if err := a.runVerb(cmd, a.launchVerb(), args); err != nil {
		return err
	}
	if h, err = a.host(cmd.Context()); err != nil || !a.attached(h.info) {
		return err
	}
	return a.jump(cmd.Context(), session, func(_ string, p host.Pane) bool { return !before[p.Terminal.ID] })
}

func eachPane(w *host.Workspace, do func(session string, p host.Pane) bool) bool {
	for _, s := range w.Sessions {
		for _, win := range s.Windows {
			for _, p := range win.Panes {
				if do(s.Name, p) {
					return true
				}
			}
		}
	}
	return false
}

// jump puts the first pane that is meant before the person's eyes; where that is not within the
// server, it says how to get there.
func (a *app) jump(ctx context.Context, session string, meant func(session string, p host.Pane) bool) error {
	h, err := a.host(ctx)
	if err != nil {
		return err
	}
	w, err := h.Snapshot(ctx)
	if err != nil {
		return fmt.Errorf("go to a pane of %q: %w", session, err)
	}
	var found *host.Pane
	eachPane(w, func(s string, p host.Pane) bool {
		if meant(s, p) {
			found = &p
			session = s
		}
		return found != nil
	})
	if found == nil {
		return fmt.Errorf("go to a pane of %q: %w", session, host.ErrNoTerminal)
	}
	f, ok := h.Host.(host.Focuser)
	if ok && a.attached(h.info) {
		return f.Focus(ctx, found.Terminal)
	}
	a.say("pane %s of session %s", found.Terminal.ID, session)
	if cmd := attachHint(h.info, session); cmd != "" {
		a.say("attach: %s", cmd)
	}
	return nil
}
