package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/capture"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/launch"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/restore"
)

type launchFlags struct {
	session, target, cwd, profile, resume string
	newWindow, splitH, splitV, here       bool
	print, wait                           bool
	orPlain                               bool // of the shell functions: where --here cannot be, the agent is run as it is
}

func (a *app) launchVerb() *cobra.Command {
	var f launchFlags
	cmd := &cobra.Command{
		Use:   "launch INTEGRATION [flags] [-- EXTRA…]",
		Short: "Start an agent in a pane, under a conversation that we know",
		Long: `Start an agent in a pane, under a conversation that we know.

Inside tmux the agent gets a new window of the current session; outside, a
session named after the directory, and the command that attaches to it is
printed. With --session it goes there, and the session is created if missing.
With --here it takes the calling pane, so that a shell function works; then what
is no start of the agent's interface runs as it is, without a record.

A new conversation is never an old one: where the conversation exists, or runs
already, launch refuses, and --resume ID is the way. EXTRA arguments are handed
to the agent this once; for arguments that a restore brings back, use a profile
of the configuration. Afterwards the workspace is saved, unless the
configuration says save_after_launch = false.

The pane is looked at once more at the end: an agent that is gone by then is said
to be, with its last words. --wait watches it first, as a restore does.`,
		Example: `  phux-agent launch claude-code
  phux-agent launch codex --split-h
  phux-agent launch claude-code --session api --cwd ~/src/api --profile work
  phux-agent launch claude-code --resume 0b5c1f6e-5d0c-4f6e-9a55-3f1f1c9d1f10
  phux-agent launch codex --print -- --model gpt-5.2`,
		Args: func(cmd *cobra.Command, args []string) error {
			n := len(args)
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				n = dash
			}
			if n != 1 {
				return fmt.Errorf("launch takes one INTEGRATION, and the agent's own arguments after --; got %d", n)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.launch(cmd, f, args[0], args[1:])
		},
		Annotations: exits("0 the agent runs", "1 it could not be started", "2 usage", "3 it started, and was gone again at the last look",
			"4 refused by trust, ownership or policy; nothing was created", "5 no host"),
		ValidArgsFunction: a.completeIntegrations,
	}
	fl := cmd.Flags()
	fl.StringVar(&f.session, "session", "", "in the session `NAME`, created if missing")
	fl.BoolVar(&f.newWindow, "new-window", false, "in a new window (the default)")
	fl.BoolVar(&f.splitH, "split-h", false, "beside the target pane")
	fl.BoolVar(&f.splitV, "split-v", false, "below the target pane")
	fl.BoolVar(&f.here, "here", false, "in the calling pane; the shell gets it back afterwards")
	fl.BoolVar(&f.orPlain, "or-untouched", false, "with --here: run the agent as it is where that cannot be")
	_ = fl.MarkHidden("or-untouched") // the functions of shim know it
	fl.StringVar(&f.target, "target", "", "split this `PANE`, or go to its session: %N, session:window.pane or a pane key")
	fl.StringVar(&f.cwd, "cwd", "", "where the agent works: a `DIR` (default: this one)")
	fl.StringVar(&f.profile, "profile", "", "with the profile `NAME` of the configuration")
	fl.StringVar(&f.resume, "resume", "", "the existing conversation `ID`, not a new one")
	fl.BoolVar(&f.print, "print", false, "show what would run, and start nothing")
	fl.BoolVar(&f.wait, "wait", false, "watch whether the agent stays before saying that it runs")
	exclude(cmd, "new-window split-h split-v here", "here session", "here target", "wait here", "wait print")
	return cmd
}

func (a *app) launch(cmd *cobra.Command, f launchFlags, integration string, extra []string) error {
	ctx := cmd.Context()
	if cmd.Flags().Changed("resume") && f.resume == "" {
		return usage(cmd, "--resume needs the id of a conversation")
	}
	if f.here && !f.print && f.resume == "" {
		if t := a.untouched(integration, extra); t != nil {
			return a.plain(t, extra)
		}
	}
	h, err := a.host(ctx)
	if err != nil && !f.print {
		return err
	}
	e, err := a.launchEnv(h)
	if err != nil {
		return err
	}
	r := launch.Request{Integration: integration, Resume: f.resume, Profile: f.profile, Extra: extra, Dry: f.print, Here: f.here}
	if r.Dir, err = a.abs(f.cwd); err != nil {
		return err
	}
	if h != nil {
		a.warnSettings(h)
	}
	var self host.Terminal
	var in string // the session of it
	switch {
	case f.here:
		if self, in, err = ownTerminal(ctx, h, f.print); err != nil {
			return a.orPlain(f, integration, extra, err)
		}
	case h != nil:
		if err := a.place(cmd, h, f, &r); err != nil {
			return err
		}
	}
	d, err := launch.Prepare(ctx, e, r)
	if err != nil {
		return err
	}
	for _, n := range d.Notes {
		a.warn("%s", n)
	}
	if f.print {
		return a.printDraft(d)
	}
	if f.here {
		// After the exec there is nobody left to say or save anything.
		e.Bound = func(ctx context.Context) {
			if a.json {
				_ = a.launched(h, integration, stayed{}, launch.Result{
					Action: d.Action, Terminal: self.ID, Session: in, Record: d.Record,
					Restorable: d.Restorable, Reason: d.Reason, NotPreserved: d.NotPreserved,
				})
			} else {
				a.sayNotPreserved(d.NotPreserved)
			}
			a.saveAfterLaunch(ctx, h)
		}
		return a.orPlain(f, integration, extra, launch.Here(ctx, e, r, d, self, a.environ))
	}
	res, err := launch.Do(ctx, e, r, d)
	if err != nil {
		return err
	}
	if f.wait {
		a.settle(ctx, h, res.Terminal)
	}
	saved := a.saveAfterLaunch(ctx, h)
	st := a.stays(ctx, h, res.Terminal, saved)
	if err := a.launched(h, integration, st, *res); err != nil {
		return err
	}
	if st.Result != restore.Running {
		return &statusError{code: partial}
	}
	return nil
}

// stayed is what the last look at a launched agent found. It is empty for --here, which has
// nobody left to look.
type stayed struct {
	Result string `json:"result,omitzero"`        // "running" or "exited"; absent where the look failed
	How    string `json:"result_reason,omitzero"` // how it ended, with its last words
}

// maxLastWords bounds what is shown of an agent's last words.
const maxLastWords = 1000

// settle watches an agent for as long as a restore would.
func (a *app) settle(ctx context.Context, h *hosted, id string) {
	d := 2 * time.Second
	if c, err := a.config(); err == nil && c.Restore.SettleMillis > 0 {
		d = time.Duration(c.Restore.SettleMillis) * time.Millisecond
	}
	if s, err := findPane(ctx, h.Host, id); err == nil && !s.Pane.Dead && s.Pane.PID > 0 {
		_ = restore.WatchProcesses(ctx, []int{s.Pane.PID}, d)
	}
}

// stays says whether the agent is there: as the save saw it, which looked anyway, or by a look of
// its own.
func (a *app) stays(ctx context.Context, h *hosted, id string, saved *saveDone) stayed {
	if saved != nil {
		for _, p := range saved.panes {
			if p.Terminal.ID == id && p.State == capture.Running {
				return stayed{Result: restore.Running}
			}
		}
	}
	w, err := h.Snapshot(ctx)
	if err != nil && !errors.Is(err, host.ErrNoServer) {
		a.warn("whether the agent runs was not seen: %v", err)
		return stayed{}
	}
	gone := stayed{Result: restore.Exited, How: "its pane is gone"}
	if err != nil {
		return gone
	}
	s, err := pickPane(w, id)
	if err != nil {
		return gone
	}
	p := s.Pane
	how := ""
	switch {
	case p.Origin == host.Replaced:
		how = "another program was put in its place"
	case p.Origin == host.Ended:
		how = "it exited with 0"
	case p.Dead && p.Exit != nil && p.Exit.Signal != "":
		how = "it was ended by signal " + p.Exit.Signal
	case p.Dead && p.Exit != nil && p.Exit.Status >= 0:
		how = fmt.Sprintf("it exited with %d", p.Exit.Status)
	case p.Dead:
		how = "it exited"
	default:
		return stayed{Result: restore.Running}
	}
	if r, ok := h.Host.(host.Reader); ok {
		if words, err := r.LastWords(ctx, p.Terminal, maxLastWords); err == nil && strings.TrimSpace(words) != "" {
			how += ": " + strings.Join(strings.Fields(words), " ")
		}
	}
	return stayed{Result: restore.Exited, How: how}
}

// launched prints what was observed.
func (a *app) launched(h *hosted, integration string, st stayed, res launch.Result) error {
	if !a.json {
		a.sayLaunched(h, integration, st, res)
		return nil
	}
	return writeDocument(a.stdout, struct {
		SchemaVersion int `json:"schema_version"`
		launch.Result
		stayed
	}{schemaVersion, res, st})
}

func (a *app) launchEnv(h *hosted) (launch.Env, error) {
	var e launch.Env
	var err error
	if h != nil {
		e.Host, e.Info = h.Host, &h.info
	}
	if e.Config, err = a.config(); err != nil {
		return e, err
	}
	if e.Registry, err = a.registry(); err != nil {
		return e, err
	}
	if e.Claims, err = a.claims(); err != nil {
		return e, err
	}
	e.Getenv, e.Now = a.lookup, a.now
	return e, nil
}

// orPlain runs the agent as it is, said with the reason, where a shell function asked for --here in
// a terminal that cannot take it: one that is no pane but has a pane's environment (a program that
// was started from one opened it), or one in which an agent runs already. A name that no longer
// starts its program would be worse than a conversation without a record.
func (a *app) orPlain(f launchFlags, integration string, extra []string, err error) error {
	var notIn *notInPaneError
	if !f.orPlain || f.print || f.resume != "" || !errors.As(err, &notIn) && !errors.Is(err, launch.ErrHere) {
		return err
	}
	t := a.template(integration)
	if t == nil {
		return err
	}
	a.warn("%v; it is started as it is, without a record", err)
	return a.plain(t, extra)
}

// ownTerminal is the terminal that we run in, for --here, and its session.
func ownTerminal(ctx context.Context, h *hosted, dry bool) (host.Terminal, string, error) {
	if dry {
		return host.Terminal{}, "", nil
	}
	c, err := h.caller(ctx)
	if errors.Is(err, host.ErrNoTerminal) || errors.Is(err, host.ErrNoServer) {
		return host.Terminal{}, "", &notInPaneError{What: "--here"}
	}
	return c.terminal, c.session, err
}

// place says where the agent goes: by the pane that was named, else by the session that was
// named, else by the pane that we are in, else by the directory.
func (a *app) place(cmd *cobra.Command, h *hosted, f launchFlags, r *launch.Request) error {
	ctx := cmd.Context()
	switch {
	case f.splitH:
		r.Place = host.SplitH
	case f.splitV:
		r.Place = host.SplitV
	default:
		r.Place = host.NewWindow
	}
	if f.session != "" {
		r.Session = h.sessionName(f.session)
		if r.Session != f.session {
			a.warn("this host writes the session's name as %s", r.Session)
		}
	}
	switch {
	case f.target != "":
		return placeByPane(cmd, h, f.target, r)
	case r.Session != "" && r.Place == host.NewWindow:
		return nil
	case r.Session != "":
		w, err := h.Snapshot(ctx)
		if err != nil {
			return fmt.Errorf("split in session %q: %w", r.Session, err)
		}
		t, ok := activePane(w, r.Session)
		if !ok {
			return fmt.Errorf("split in session %q: %w", r.Session, host.ErrNoSession)
		}
		r.Target = t
		return nil
	}
	c, err := h.caller(ctx)
	switch {
	case err == nil:
		r.Target, r.Session = c.terminal, c.session
		return nil
	case !errors.Is(err, host.ErrNoTerminal) && !errors.Is(err, host.ErrNoServer):
		return err
	case r.Place != host.NewWindow:
		return usage(cmd, "outside a pane a split needs --target PANE or --session NAME")
	}
	base := filepath.Base(r.Dir)
	if base == "/" {
		base = "root"
	}
	r.Session = h.sessionName(base)
	return nil
}

func placeByPane(cmd *cobra.Command, h *hosted, arg string, r *launch.Request) error {
	w, err := h.Snapshot(cmd.Context())
	if err != nil {
		return fmt.Errorf("find pane %q: %w", arg, err)
	}
	s, err := pickPane(w, arg)
	if err != nil {
		return err
	}
	r.Target = s.Pane.Terminal
	in := sessionsOf(w, s.Pane.Terminal)
	switch {
	case r.Session == "":
		r.Session = in[0]
	case !slices.Contains(in, r.Session):
		return usage(cmd, "pane %s is in session %q, not in %q", arg, in[0], r.Session)
	}
	return nil
}

func activePane(w *host.Workspace, session string) (host.Terminal, bool) {
	for _, s := range w.Sessions {
		if s.Name != session {
			continue
		}
		for _, win := range s.Windows {
			for _, p := range win.Panes {
				if win.Active && p.Active {
					return p.Terminal, true
				}
			}
		}
	}
	return host.Terminal{}, false
}

// saveAfterLaunch saves the workspace, unless the configuration says no. A restore that runs at
// the moment saves by itself. That it fails is said, and is no failure of the launch.
// What it saw is returned, nil where it saw nothing.
func (a *app) saveAfterLaunch(ctx context.Context, h *hosted) *saveDone {
	a.keepSaved(ctx, h)
	c, err := a.config()
	if err != nil || !c.SaveAfterLaunch {
		a.unsaved(ctx, h)
		return nil // Prepare has read the configuration
	}
	s, err := a.openSaver(ctx, h)
	var d *saveDone
	if err == nil {
		d, err = s.save(ctx, saveOptions{auto: true})
	}
	switch {
	case err != nil:
		a.unsaved(ctx, h)
		a.warn("the workspace was not saved: %v", err)
	case d != nil && d.saved.State != archive.Good && d.saved.State != archive.Settling:
		a.warn("the save is %s: %s (phux-agent %ssave --accept keeps it)", string(d.saved.State), d.saved.Reason, a.serverFlags())
	}
	return d
}

func (a *app) sayLaunched(h *hosted, integration string, st stayed, res launch.Result) {
	id := ""
	if res.Record != nil {
		id = " " + res.Record.NativeID
	}
	if st.Result == restore.Exited {
		a.say("%s %s%s, and it is gone: %s", res.Action, integration, id, st.How)
	} else {
		a.say("%s %s%s", res.Action, integration, id)
	}
	a.say("  pane %s of session %s", res.Terminal, res.Session)
	if st.Result == restore.Exited && st.How == "its pane is gone" {
		return // there is nothing to go to, or to restore
	}
	if !res.Restorable {
		a.say("  not restorable yet: %s", res.Reason)
	} else if res.Reason != "" {
		a.say("  %s", res.Reason)
	}
	a.sayNotPreserved(res.NotPreserved)
	if !a.attached(h.info) {
		if cmd := attachHint(h.info, res.Session); cmd != "" {
			a.say("  attach: %s", cmd)
		}
	}
}

func (a *app) sayNotPreserved(args []string) {
	if len(args) > 0 {
		a.warn("a restore will not bring back: %s (a profile would)", quoteAll(args))
	}
}

func quoteAll(args []string) string {
	out := make([]string, len(args))
	for i, arg := range args {
		out[i] = shellQuote(arg)
	}
	return strings.Join(out, " ")
}

// draft is the document of launch --print. Values of the environment are not in it: profiles
// hold secrets.
type draft struct {
	SchemaVersion int                    `json:"schema_version"`
	Action        string                 `json:"action"`
	Argv          []string               `json:"argv"`
	Cwd           string                 `json:"cwd"`
	EnvSet        []string               `json:"env_set"`
	EnvUnset      []string               `json:"env_unset"`
	PluginID      string                 `json:"plugin_id"`
	Profile       string                 `json:"profile"`
	Record        *metadata.AgentSession `json:"record"`
	Restorable    bool                   `json:"restorable"`
	Reason        string                 `json:"reason"`
	NotPreserved  []string               `json:"not_preserved"`
}

func (a *app) printDraft(d *launch.Draft) error {
	names := make(map[string]bool)
	for _, kv := range d.Start.Set {
		n, _, _ := strings.Cut(kv, "=")
		names[n] = true
	}
	doc := draft{
		SchemaVersion: schemaVersion, Action: d.Action, Argv: d.Start.Argv, Cwd: d.Start.Dir,
		EnvSet: slices.Sorted(maps.Keys(names)), EnvUnset: d.Start.Unset, PluginID: d.Owner.PluginID,
		Profile: d.Facts.Profile, Record: d.Record, Restorable: d.Restorable, Reason: d.Reason, NotPreserved: d.NotPreserved,
	}
	if a.json {
		return writeDocument(a.stdout, doc)
	}
	a.say("argv:  %s", quoteAll(doc.Argv))
	a.say("cwd:   %s", doc.Cwd)
	if len(doc.EnvSet) > 0 {
		a.say("set:   %s (values not shown)", strings.Join(doc.EnvSet, " "))
	}
	if len(doc.EnvUnset) > 0 {
		a.say("unset: %s", strings.Join(doc.EnvUnset, " "))
	}
	a.say("from:  plugin %s", doc.PluginID)
	switch {
	case doc.Record != nil:
		a.say("would be %s as %s", doc.Action, doc.Record.NativeID)
	default:
		a.say("would be %s without an identity: %s", doc.Action, doc.Reason)
	}
	a.sayNotPreserved(doc.NotPreserved)
	return nil
}

// notInPaneError is a verb that needs the pane it runs in, and is not in one.
type notInPaneError struct{ What string }

func (e *notInPaneError) Error() string { return e.What + ": this is not a pane of the host's server" }
