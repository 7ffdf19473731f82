package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/phux-agent/phux-agent/capture"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/tmux"
	"github.com/phux-agent/phux-agent/internal/ui"
)

// The keys of the plugin below the prefix, where nobody says others: resurrect's, and one that tmux
// leaves free.
const (
	saveKey    = "C-s"
	restoreKey = "C-r"
	pickerKey  = "A"
)

func (a *app) tmuxVerb() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "tmux",
		Short: "The tmux plugin: keys, popups, autosave",
		Long: `The tmux plugin: phux-agent.tmux, which a plugin manager runs when tmux starts, calls
phux-agent tmux plug. That binds keys below the prefix, and turns autosave on:

  prefix C-s  save            @phux-agent-save-key
  prefix C-r  restore, after  @phux-agent-restore-key
              a look at the plan
  prefix A    pick            @phux-agent-picker-key

A key that is bound already is left to whom it belongs, and that is said, unless the
option names it. off binds none. Other options: @phux-agent-autosave (on, off),
@phux-agent-popup (on, off: a window instead), @phux-agent-status-right (off, on: show
#{@phux-agent-status} at the end of the status line), @phux-agent-binary.`,
		Example: `  phux-agent tmux plug
  phux-agent tmux status
  phux-agent tmux uninstall`,
		Annotations: exits("0 done", "1 failed", "2 usage", "5 no host, or no server"),
	})
	add := func(use, short, long, example string, hidden bool, n int, run func(ctx context.Context, args []string) error) {
		cmd.AddCommand(&cobra.Command{
			Use: use, Short: short, Long: long, Example: example, Hidden: hidden, Args: cobra.RangeArgs(min(n, 1), n),
			RunE:        func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), args) },
			Annotations: exits("0 done", "1 failed", "2 usage", "5 no host, or no server"),
		})
	}
	add("plug", "Put the plugin in place on the server that runs", `Bind the keys and turn autosave on, as the options of the server say. Once more
changes nothing.`, "  phux-agent tmux plug\n  phux-agent tmux plug --json", false, 0, a.tmuxPlug)
	add("uninstall", "Take keys, hooks and options away again", `Take everything of the plugin off the server that runs: keys, hooks, options. For
good, remove its line from the configuration of tmux as well.`, "  phux-agent tmux uninstall", false, 0, a.tmuxUninstall)
	add("status", "Say what of the plugin is in place", "", "  phux-agent tmux status\n  phux-agent tmux status --json", false, 0, a.tmuxStatus)
	add("key WHAT [CLIENT]", "What a key runs", "", "", true, 2, a.tmuxKey)
	return cmd
}

// tmuxDocument is what the verbs of the plugin print with --json.
type tmuxDocument struct {
	SchemaVersion int       `json:"schema_version"`
	Server        string    `json:"server"`
	Plugged       bool      `json:"plugged"`
	Program       string    `json:"program"`
	Keys          []keyDoc  `json:"keys"`
	Autosave      string    `json:"autosave"` // on, off
	Neighbours    []string  `json:"neighbours"`
	Notes         []string  `json:"notes"`
	At            time.Time `json:"at"`
}

type keyDoc struct {
	Does  string `json:"does"`  // save, restore, pick
	Key   string `json:"key"`   // empty: none is bound
	Taken string `json:"taken"` // what the key that it would have runs instead
}

// plugSettings decides what is bound: pure.
func plugSettings(s *tmux.Setup) (p tmux.Plug, keys []keyDoc, notes []string) {
	p.Popup, p.Status = s.Options["popup"] != "off", s.Options["status-right"] == "on"
	choose := func(does, option, usual string) string {
		key, asked := s.Options[option]
		if !asked {
			key = usual
		}
		if key == "off" || key == "none" {
			keys = append(keys, keyDoc{Does: does})
			return ""
		}
		if by, bound := s.Keys[key]; bound && !s.Ours[key] && !asked {
			keys = append(keys, keyDoc{Does: does, Taken: by})
			notes = append(notes, fmt.Sprintf("prefix %s is bound already, so nothing is bound to %s: set -g @phux-agent-%s KEY", key, does, option))
			return ""
		}
		keys = append(keys, keyDoc{Does: does, Key: key})
		return key
	}
	p.Keys.Save = choose("save", "save-key", saveKey)
	p.Keys.Restore = choose("restore", "restore-key", restoreKey)
	p.Keys.Picker = choose("pick", "picker-key", pickerKey)
	return p, keys, notes
}

// beside says what there is to know of other plugins that save or restore.
func (a *app) beside(s *tmux.Setup) []string {
	if len(s.Neighbours) == 0 {
		return nil
	}
	notes := []string{fmt.Sprintf("%s is here too: it brings shells and layouts, phux-agent brings agents; what it made is taken by phux-agent restore --fill", strings.Join(s.Neighbours, " with "))}
	if typed := a.typedAgents(s.Processes); len(typed) > 0 {
		notes = append(notes, fmt.Sprintf("it types %s into its panes, which starts agents on no known conversation: take that out of @resurrect-processes", strings.Join(typed, ", ")))
	}
	return notes
}

// typedAgents are the programs of agents that @resurrect-processes names.
func (a *app) typedAgents(processes string) []string {
	reg, err := a.registry()
	if err != nil || processes == "" {
		return nil
	}
	words := strings.FieldsFunc(processes, func(r rune) bool { return strings.ContainsRune(" \t\"'~>-", r) })
	var out []string
	for _, t := range a.enabled(reg) {
		if len(t.Launch.Command) > 0 && (slices.Contains(words, t.Launch.Command[0]) || processes == ":all:") {
			out = append(out, t.Launch.Command[0])
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (a *app) tmuxPlug(ctx context.Context, _ []string) error {
	h, err := a.tmux()
	if err != nil {
		return err
	}
	s, err := h.Setup(ctx)
	if err != nil {
		return noServer("plug", err)
	}
	p, keys, notes := plugSettings(s)
	if p.Program, err = a.ownPath(); err != nil {
		return err
	}
	beside := a.beside(s)
	notes = append(notes, beside...)
	if told := strings.Join(notes, "\n"); told != s.Told {
		// Once in a life of the server, and again where there is something else to say.
		p.Told = strings.ReplaceAll(told, "\n", "; ")
		if p.Told != s.Told && len(notes) > 0 {
			p.Message = plugMessage(keys, s.Neighbours)
		}
	}
	// Once in a life of the server, and what is true when somebody comes: a restore may have been by then.
	p.Greet = s.Program == "" && a.waitingAgents(ctx) > 0
	on, err := a.plugAutosave(ctx, h, s)
	if err != nil {
		notes = append(notes, "autosave is not on: "+err.Error())
		p.Message = "phux-agent: autosave is not on: " + err.Error()
	}
	if err := h.Plug(ctx, s, p); err != nil {
		return err
	}
	a.rememberSocket(h)
	return a.sayPlugged(tmuxDocument{
		Server: h.ServerName(), Plugged: true, Program: p.Program, Keys: keys, Autosave: on, Neighbours: s.Neighbours, Notes: notes,
	})
}

// plugMessage is the notes in a line that fits a narrow client, and where they stand in full.
func plugMessage(keys []keyDoc, neighbours []string) string {
	usual := map[string]string{"save": saveKey, "restore": restoreKey, "pick": pickerKey}
	var taken, parts []string
	for _, k := range keys {
		if k.Taken != "" {
			taken = append(taken, usual[k.Does])
		}
	}
	switch len(taken) {
	case 0:
	case 1:
		parts = append(parts, "prefix "+taken[0]+" is bound already")
	default:
		parts = append(parts, "prefix "+strings.Join(taken, ", ")+" are bound already")
	}
	if len(parts) == 0 && len(neighbours) > 0 {
		parts = append(parts, neighbours[0]+" is here too")
	}
	return "phux-agent: " + strings.Join(parts, "; ") + ": phux-agent tmux status"
}

// waitingAgents is how many conversations were saved, are not here, and would be brought by a restore.
func (a *app) waitingAgents(ctx context.Context) int {
	h, best, ok := a.best(ctx)
	if !ok {
		return 0
	}
	ar, _ := without(best.Archive, best.Dismissed, nil)
	live, pending := ar.Records()
	if h.info.Running && ar.Host.Instance == capture.InstanceDigest(h.info.Instance) {
		return pending
	}
	return live + pending
}

// keyGreet says on a client that agents wait to be restored, where some do.
func (a *app) keyGreet(ctx context.Context, client string) error {
	n := a.waitingAgents(ctx)
	if n == 0 {
		return nil
	}
	h, err := a.tmux()
	if err != nil {
		return err
	}
	s, err := h.Setup(ctx)
	if err != nil {
		return err
	}
	how := "phux-agent restore"
	if _, keys, _ := plugSettings(s); len(keys) > 1 && keys[1].Key != "" {
		how = "prefix " + keys[1].Key
	}
	what := plural(n, "agent") + " wait"
	if n == 1 {
		what += "s"
	}
	_ = h.Say(ctx, client, fmt.Sprintf("phux-agent: %s to be restored: %s", what, how)) // the client may be gone
	return nil
}

// plugAutosave turns autosave on, unless somebody said no: the option, the configuration, or a
// person on this very server.
func (a *app) plugAutosave(ctx context.Context, h *tmux.Host, s *tmux.Setup) (string, error) {
	c, err := a.config()
	if err != nil {
		return "off", err
	}
	st, err := h.AutosaveState(ctx)
	if err != nil {
		return "off", err
	}
	option := s.Options["autosave"]
	switch {
	case option == "off":
		if st.Setting == host.SettingOn {
			err = h.StopAutosave(ctx)
		}
		return "off", err
	case option == "" && (!c.Autosave.Enabled || st.Setting == host.SettingOff):
		return "off", nil
	}
	want, err := a.autosaveOf()
	if err == nil {
		err = h.SetAutosave(ctx, want)
	}
	if err != nil {
		return "off", err
	}
	return "on", nil
}

func (a *app) sayPlugged(doc tmuxDocument) error {
	doc.SchemaVersion, doc.At = schemaVersion, a.now().UTC()
	doc.Keys, doc.Neighbours, doc.Notes = append([]keyDoc{}, doc.Keys...), append([]string{}, doc.Neighbours...), append([]string{}, doc.Notes...)
	if a.json {
		return writeDocument(a.stdout, doc)
	}
	if !doc.Plugged {
		a.say("the plugin is not in place on %s", doc.Server)
	} else {
		a.say("the plugin is in place on %s", doc.Server)
		for _, k := range doc.Keys {
			switch {
			case k.Key != "":
				a.say("  prefix %-4s %s", k.Key, k.Does)
			case k.Taken != "":
				a.say("  no key for %s: %s", k.Does, k.Taken)
			default:
				a.say("  no key for %s", k.Does)
			}
		}
	}
	a.say("  autosave is %s", doc.Autosave)
	for _, n := range doc.Notes {
		a.say("  %s", n)
	}
	return nil
}

func (a *app) tmuxStatus(ctx context.Context, _ []string) error {
	h, err := a.tmux()
	if err != nil {
		return err
	}
	s, err := h.Setup(ctx)
	if err != nil {
		return noServer("look at the plugin", err)
	}
	st, err := h.AutosaveState(ctx)
	if err != nil {
		return err
	}
	doc := tmuxDocument{Server: h.ServerName(), Plugged: s.Program != "", Program: s.Program, Autosave: "off", Neighbours: s.Neighbours, Notes: a.beside(s)}
	if st.Setting == host.SettingOn {
		doc.Autosave = "on"
	}
	if doc.Plugged {
		_, doc.Keys, _ = plugSettings(s)
		for i := range doc.Keys { // what is there, not what would be
			if k := &doc.Keys[i]; k.Key != "" && !s.Ours[k.Key] {
				k.Taken, k.Key = s.Keys[k.Key], ""
			}
		}
		if info, err := os.Stat(s.Program); err != nil || info.IsDir() {
			doc.Notes = append(doc.Notes, s.Program+", which its keys run, is not there any more: phux-agent tmux plug")
		}
	}
	return a.sayPlugged(doc)
}

func (a *app) tmuxUninstall(ctx context.Context, _ []string) error {
	h, err := a.tmux()
	if err != nil {
		return err
	}
	s, err := h.Setup(ctx)
	if err != nil {
		return noServer("unplug", err)
	}
	if err := h.ForgetAutosave(ctx); err != nil {
		return err
	}
	if err := h.Unplug(ctx, s); err != nil {
		return err
	}
	if a.json {
		return a.sayPlugged(tmuxDocument{Server: h.ServerName(), Autosave: "off"})
	}
	a.say("keys, hooks and options of the plugin are gone from %s", h.ServerName())
	a.say("  for good: take its line out of the configuration of tmux")
	d, err := a.dirs()
	if err == nil {
		a.say("  what was saved stays in %s", a.tilde(d.State))
	}
	return nil
}

// tmuxKey is what a key of the plugin runs: save says its result on the client, the others have a
// popup or a window of their own.
func (a *app) tmuxKey(ctx context.Context, args []string) error {
	a.hostKind = tmux.Kind
	client := ""
	if len(args) > 1 {
		client = args[1]
	}
	switch args[0] {
	case "save":
		return a.keySave(ctx, client)
	case "greet":
		return a.keyGreet(ctx, client)
	case "restore":
		return a.keyRestore(ctx)
	case "pick":
		return a.again(ctx, "pick")
	}
	return &usageError{Command: "phux-agent tmux", Err: fmt.Errorf("no key runs %q", args[0])}
}

func (a *app) keySave(ctx context.Context, client string) error {
	h, err := a.tmux()
	if err != nil {
		return err
	}
	line := ""
	s, err := a.openSaver(ctx, nil)
	if err == nil {
		var done *saveDone
		if done, err = s.save(ctx, saveOptions{}); err == nil {
			doc := done.document()
			line = fmt.Sprintf("phux-agent: saved generation %d: %s, %s", doc.Generation, plural(doc.Panes, "pane"), plural(doc.Records, "conversation"))
			if doc.Unchanged {
				line = fmt.Sprintf("phux-agent: nothing has changed since generation %d", doc.Generation)
			}
			if doc.Reason != "" {
				line += "; " + doc.State + ": " + doc.Reason
			}
		}
	}
	if err != nil {
		line = "phux-agent: not saved: " + err.Error()
	}
	_ = h.Say(ctx, client, line) // the client may be gone
	return nil
}

// again runs another verb as if it had been called with the same global flags.
func (a *app) again(ctx context.Context, args ...string) error {
	b := &app{environ: a.environ, stdin: a.stdin, stdout: a.stdout, stderr: a.stderr}
	var flags []string
	if a.hostKind != "" {
		flags = append(flags, "--host", a.hostKind)
	}
	switch {
	case a.socketName != "":
		flags = append(flags, "-L", a.socketName)
	case a.socketPath != "":
		flags = append(flags, "-S", a.socketPath)
	}
	root := b.root()
	root.SetArgs(append(flags, args...))
	return root.ExecuteContext(ctx)
}

// keyRestore shows the plan, asks, and restores. It stays until its reader has seen the end. What is
// restored is the generation that was shown, whatever autosave does meanwhile.
func (a *app) keyRestore(ctx context.Context) error {
	in := bufio.NewReader(a.stdin)
	ask := func(prompt string) string {
		fmt.Fprint(a.stdout, prompt)
		line, err := in.ReadString('\n')
		if err != nil && line == "" {
			return "n"
		}
		return strings.ToLower(strings.TrimSpace(line))
	}
	verb := []string{"restore", "--brief"}
	if n := a.bestGeneration(ctx); n > 0 {
		verb = append(verb, "--shown", strconv.FormatUint(n, 10))
	}
	var status *statusError
	run := func(more ...string) error {
		err := a.fitted(ctx, slices.Concat(verb, more)...)
		if err != nil && !errors.As(err, &status) {
			a.report(err)
		}
		return err
	}
	if err := run("--plan"); err != nil && (status == nil || status.code == refused) {
		ask("\nEnter closes this. ")
		return nil
	}
	switch ask("\nRestore? y: yes   f: yes, and fill idle shells   p: pick   Enter: no > ") {
	case "y", "yes":
		_ = run()
	case "f", "fill":
		_ = run("--fill")
	case "p", "pick":
		return a.again(ctx, "pick")
	default:
		return nil
	}
	ask("\nEnter closes this. ")
	return nil
}

// bestGeneration is the one that a restore would use; 0 where that cannot be told.
func (a *app) bestGeneration(ctx context.Context) uint64 {
	_, best, ok := a.best(ctx)
	if !ok {
		return 0
	}
	return best.Generation
}

// fitted runs another verb, and shows as much of what it says as there is room for: a popup does not
// scroll. How it begins and how it ends is what tells most.
func (a *app) fitted(ctx context.Context, args ...string) error {
	var said bytes.Buffer
	b := *a
	b.stdout, b.stderr = &said, &said
	err := b.again(ctx, args...)
	lines := strings.Split(strings.TrimRight(said.String(), "\n"), "\n")
	wide, high := 0, 0
	if f := file(a.stdout); f != nil {
		wide, high, _ = term.GetSize(int(f.Fd())) // none of what is no terminal
	}
	if keep := high - 4; high > 0 && keep > 6 && len(lines) > keep {
		end := 4
		cut := len(lines) - keep + 1
		lines = slices.Concat(lines[:keep-end-1], []string{fmt.Sprintf("… %d more lines: phux-agent %s", cut, strings.Join(args[:1], " ")+" --plan, or p for the picker")}, lines[len(lines)-end:])
	}
	for _, l := range lines {
		if wide > 0 {
			l = ui.Clip(l, wide)
		}
		fmt.Fprintln(a.stdout, l)
	}
	return err
}
