package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/capture"
	"github.com/phux-agent/phux-agent/config"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/internal/ui"
	"github.com/phux-agent/phux-agent/restore"
)

type restoreFlags struct {
	generation, shown                                  uint64
	name                                               string
	only, owners                                       []string
	plan, strict, importing, fromHost, decline, noWait bool
	fill                                               bool

	panes, ids                   []string
	mode                         string
	noHusk, previous, unattended bool
	brief                        bool
}

func (a *app) restoreVerb() *cobra.Command {
	var f restoreFlags
	cmd := &cobra.Command{
		Use:   "restore [FILE | --generation N | --name NAME] [flags]",
		Short: "Bring the workspace back, every pane on its own conversation",
		Long: `Bring the workspace back: sessions, windows, layouts, and every pane on its own
conversation. Without a FILE it is the newest good generation of this server's
history; held ones above it are named. --previous is the one before it; after a
restore, the one before that restore.

What a pane runs comes from the integration that is installed and trusted now.
Sessions that exist are left alone, so a second restore starts nothing twice.
Every pane gets a verdict. A pane whose agent cannot start for a circumstance (no
directory, no program, no conversation) becomes a placeholder that says why,
keeps the record, and tries again on Enter; where trust or ownership stands in
the way, its session is not created.

[restore] mode in the configuration says what becomes of an agent that could be
resumed: auto resumes it, ask leaves a placeholder that resumes it on Enter, and
manual one that does so by word only. What --only and --pane name is resumed:
naming is asking. With --pane the session comes whole, and its other agents wait
to be asked. --id names a pane by its conversation, also by one that it had before
(record show and archive show list them): it comes back on that one, and what it
had last is listed from then on.

A session of a saved name that is one idle shell, as terminal emulators make them
at login, is renamed aside, and its clients are shown the restored one. Panes that
ran a program of [programs] run it again.

An archive that this machine did not write is imported: --import is the consent,
and it runs with default profiles only. So is a generation that was edited since.`,
		Example: `  phux-agent restore --plan
  phux-agent restore
  phux-agent restore --only api --only web
  phux-agent restore --pane work:1.0
  phux-agent restore --id 0f0a7c1e-5f0b-4c55-9a52-0a5f4f1f3b11 --plan
  phux-agent restore --previous --plan
  phux-agent restore --mode ask
  phux-agent restore --generation 41 --plan --json
  phux-agent restore workspace.json --import`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.restoreAnew(cmd, f, args) },
		Annotations: exits("0 every pane as asked, sessions that exist already included", "1 failed", "2 usage",
			"3 partial: a placeholder, a refusal beside successes, an agent that exited",
			"4 refused by trust, ownership or policy; nothing was created", "5 no host", "124 timed out"),
	}
	fl := cmd.Flags()
	fl.Uint64Var(&f.generation, "generation", 0, "the generation with this `NUMBER`")
	fl.StringVar(&f.name, "name", "", "the save kept under this `NAME`")
	fl.BoolVar(&f.plan, "plan", false, "say what would be done, start nothing; same exit code")
	fl.StringArrayVar(&f.only, "only", nil, "only this `SESSION`; may be repeated")
	fl.StringArrayVar(&f.panes, "pane", nil, "only this `PANE`'s session, and in it this agent: SESSION:WINDOW.PANE as archived, or a pane key; may be repeated")
	fl.StringArrayVar(&f.ids, "id", nil, "only the pane that has this conversation `ID`, or had it before, on that conversation; may be repeated")
	fl.BoolVar(&f.previous, "previous", false, "the good generation before the one that would be chosen, or before the last restore")
	fl.StringVar(&f.mode, "mode", "", "`MODE` for every agent, over the configuration: auto, ask or manual")
	fl.BoolVar(&f.noHusk, "no-husk", false, "do not set aside a session of a saved name that is one idle shell")
	fl.BoolVar(&f.unattended, "unattended", false, "nobody is there: boot_mode holds, and of an old archive nothing is resumed unasked")
	fl.BoolVar(&f.strict, "strict", false, "refuse a session rather than make a placeholder in it")
	fl.BoolVar(&f.importing, "import", false, "consent to an archive that this machine did not write")
	fl.BoolVar(&f.fromHost, "from-host", false, "consent to an archive of another machine")
	fl.StringArrayVar(&f.owners, "owner", nil, "`OLD=NEW`: records of plugin OLD are of NEW, this once")
	fl.BoolVar(&f.decline, "decline", false, "restore nothing, and carry what waits no further")
	fl.BoolVar(&f.fill, "fill", false, "in sessions that are there, put agents into idle shells that stand in their places")
	fl.BoolVar(&f.brief, "brief", false, "a line for each session, and the panes that are not as asked")
	fl.Uint64Var(&f.shown, "shown", 0, "the newest good generation as it was shown to a person: this `NUMBER`")
	_ = fl.MarkHidden("shown")
	fl.BoolVar(&f.noWait, "no-wait", false, "do not watch whether the agents stay")
	sets := []string{"generation name", "shown generation", "shown name", "shown previous", "generation previous", "name previous", "mode unattended"}
	for _, other := range []string{"brief", "shown", "pane", "id", "mode", "no-husk", "unattended", "previous", "plan", "only", "strict", "import", "from-host", "owner", "fill", "no-wait"} {
		sets = append(sets, "decline "+other)
	}
	exclude(cmd, sets...)
	_ = cmd.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions([]string{"auto", "ask", "manual"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) restore(cmd *cobra.Command, f restoreFlags, args []string) error {
	ctx := cmd.Context()
	o := restore.Options{Only: f.only, Strict: f.strict, Import: f.importing, FromHost: f.fromHost, NoWait: f.noWait, Fill: f.fill, Owners: map[string]string{}}
	o.Panes, o.Mode, o.Unattended = f.panes, config.Mode(f.mode), f.unattended
	o.NoHusk = f.noHusk
	if f.mode != "" && !o.Mode.Valid() {
		return usage(cmd, "--mode %q: write auto, ask or manual", f.mode)
	}
	for _, m := range f.owners {
		old, now, ok := strings.Cut(m, "=")
		if !ok || old == "" || now == "" {
			return usage(cmd, "--owner %q: write OLD=NEW, two plugin ids", m)
		}
		if have, ok := o.Owners[old]; ok && have != now {
			return usage(cmd, "--owner names two owners for %q", old)
		}
		o.Owners[old] = now
	}
	if len(args) > 0 && (cmd.Flags().Changed("generation") || cmd.Flags().Changed("name") || f.previous) {
		return usage(cmd, "FILE, --generation, --name and --previous exclude one another")
	}
	if len(args) > 0 && f.decline {
		return usage(cmd, "--decline is about generations, not about a FILE")
	}
	h, err := a.host(ctx)
	if err != nil {
		return err
	}
	a.warnSettings(h)
	store, err := a.store(h.info)
	if err != nil {
		return err
	}
	src, choice, err := a.source(cmd, store, f, args)
	if err != nil {
		return err
	}
	if f.decline {
		return a.decline(h, store, choice)
	}
	e, err := a.restoreEnv(ctx, h, store)
	if err != nil {
		return err
	}
	e.Save = a.saveRestored(h, store, choice.Generation, f.previous)
	if len(f.ids) > 0 {
		var names []string
		if src.Archive, names, err = restore.Earlier(src.Archive, f.ids, o); err != nil {
			return err
		}
		o.Panes = append(o.Panes, names...)
	}
	facts, err := restore.Gather(ctx, e, src, o)
	if err != nil {
		return err
	}
	plan, err := restore.Make(src, facts, o)
	if err != nil {
		return err
	}
	v := restoreView{app: a, h: h, choice: choice, src: src, report: plan.Dry(), dry: f.plan, brief: f.brief, host: h.info.Server}
	if !a.json {
		v.head() // before anything starts
	}
	if !f.plan {
		var report *restore.Report
		if report, err = restore.Apply(ctx, e, plan); report == nil {
			return err
		}
		a.keepSaved(ctx, h)
		v.report = report
	}
	if rerr := v.print(); rerr != nil {
		return rerr
	}
	a.hintFill(v.report)
	if err != nil {
		return err
	}
	return restoreStatus(v.report)
}

// hintFill says what puts agents into the shells that stand where they belong, as tmux-resurrect
// leaves them.
func (a *app) hintFill(r *restore.Report) {
	n := 0
	for _, s := range r.Sessions {
		n += s.Fillable
	}
	switch {
	case n == 1:
		a.hint("an idle shell stands where an agent belongs: phux-agent %srestore --fill puts it there (--plan shows it first)", a.serverFlags())
	case n > 1:
		a.hint("idle shells stand where %d agents belong: phux-agent %srestore --fill puts them there (--plan shows it first)", n, a.serverFlags())
	}
}

// restoreStatus is the exit code that a report deserves.
func restoreStatus(r *restore.Report) error {
	switch r.Outcome() {
	case restore.Done:
		return nil
	case restore.Partial:
		return &statusError{code: partial}
	case restore.Refused:
		return &statusError{code: refused}
	}
	return &statusError{code: failed}
}

// chosen is the generation that a restore works from; its Generation is 0 for a file.
type chosen struct {
	archive.Entry
	newer   []archive.Entry
	missing uint64   // a generation above it whose file is gone
	left    []string // sessions that were declined or forgotten
}

// source reads the archive: a file, a generation by number or name, or the newest good one.
func (a *app) source(cmd *cobra.Command, store archive.Store, f restoreFlags, args []string) (restore.Source, chosen, error) {
	if len(args) > 0 {
		ar, b, path, err := a.readArchive(args[0])
		if err != nil {
			return restore.Source{}, chosen{}, err
		}
		return restore.Source{Archive: ar, Path: path, Own: store.Own(b)}, chosen{Entry: archive.Entry{Path: path, SavedAt: ar.SavedAt, Archive: ar}}, nil
	}
	var c chosen
	var err error
	switch {
	case cmd.Flags().Changed("generation"):
		c.Entry, err = store.Get(f.generation)
	case cmd.Flags().Changed("name"):
		c.Entry, err = store.Named(f.name)
	case f.previous:
		var before archive.Choice
		before, err = store.Previous()
		c.Entry = before.Entry
	default:
		var best archive.Choice
		if best, err = store.Best(); err == nil && f.shown > 0 && f.shown != best.Generation {
			// A save came between the look and the word.
			c.Entry, err = store.Get(f.shown)
			break
		}
		c = chosen{Entry: best.Entry, newer: best.Newer, missing: best.Missing}
		a.warnNewer(c)
	}
	if err != nil {
		return restore.Source{}, chosen{}, fmt.Errorf("choose a generation: %w", err)
	}
	if c.Err != nil {
		return restore.Source{}, chosen{}, fmt.Errorf("read generation %d (%s): %w", c.Generation, c.Path, c.Err)
	}
	src := restore.Source{Archive: c.Archive, Path: c.Path, Own: c.State != archive.Edited, Notices: c.notices(a.now())}
	if !src.Own {
		a.warn("generation %d is %s: it is treated as imported", c.Generation, editedWords(c.Entry))
	}
	if !cmd.Flags().Changed("generation") && !cmd.Flags().Changed("name") && !f.previous {
		src.Archive, c.left = without(c.Archive, c.Dismissed, f.only)
	}
	src.Texts = a.texts(store, c.Entry)
	return src, c, nil
}

// texts is what stood on a generation's panes, where the configuration wants it shown.
func (a *app) texts(store archive.Store, e archive.Entry) []archive.Text {
	c, err := a.config()
	if err != nil || c.Scrollback.Lines == 0 {
		return nil
	}
	texts, err := store.Texts(e)
	if err != nil {
		a.warn("the scrollback of generation %d is not shown: %v", e.Generation, err)
	}
	return texts
}

// without is the archive without the sessions that were declined or forgotten, but for those
// that are asked for by name.
func without(ar *archive.Archive, dismissed, only []string) (*archive.Archive, []string) {
	var left []string
	out := *ar
	out.Sessions = nil
	for _, s := range ar.Sessions {
		if slices.Contains(dismissed, s.Name) && !slices.Contains(only, s.Name) {
			left = append(left, s.Name)
			continue
		}
		out.Sessions = append(out.Sessions, s)
	}
	if left == nil {
		return ar, nil
	}
	return &out, left
}

// editedWords say what is wrong with an edited generation.
func editedWords(e archive.Entry) string { return string(e.State) + ": " + e.Reason }

// passedOver says why a newer generation is.
func passedOver(n archive.Entry, now time.Time) string {
	why := string(n.State)
	switch {
	case n.Reason != "":
		why += ": " + n.Reason
	case n.Err != nil:
		why += ": " + n.Err.Error()
	}
	return fmt.Sprintf("generation %d (saved %s) is newer and is passed over, %s", n.Generation, ago(n.SavedAt, now), why)
}

func fileGone(n uint64) string {
	return fmt.Sprintf("generation %d was written, and its file is gone", n)
}

// notices are warnNewer for programs.
func (c chosen) notices(now time.Time) (out []restore.Notice) {
	for _, n := range c.newer {
		out = append(out, restore.Notice{Kind: restore.PassedOver, Text: passedOver(n, now)})
	}
	if c.missing > 0 {
		out = append(out, restore.Notice{Kind: restore.FileGone, Text: fileGone(c.missing)})
	}
	return out
}

// warnNewer names aloud what is above the generation that is used.
func (a *app) warnNewer(c chosen) {
	losses, first := 0, uint64(0) // beyond the newest: a slow shutdown leaves one for each save in it
	said := false
	for _, n := range c.newer {
		if n.State == archive.HeldFew || n.State == archive.Settling {
			if said {
				losses, first = losses+1, n.Generation
				continue
			}
			said = true
		}
		a.warn("%s", passedOver(n, a.now()))
		if n.State == archive.Edited {
			a.warn("  to restore it all the same: phux-agent %srestore --generation %d --import", a.serverFlags(), n.Generation)
		}
	}
	if losses > 0 {
		a.warn("so %s, from generation %d on (phux-agent %sarchive list)", map[bool]string{true: "is one before it", false: fmt.Sprintf("are %d before it", losses)}[losses == 1], first, a.serverFlags())
	}
	if c.missing > 0 {
		a.warn("%s", fileGone(c.missing))
	}
}

// maxArchive bounds what is read of a file or of standard input; archive.Decode has the bounds
// of its content.
const maxArchive = 64 << 20

// readArchive reads an archive file, or standard input where it is "-".
func (a *app) readArchive(file string) (*archive.Archive, []byte, string, error) {
	var r io.Reader = a.stdin
	path := "-"
	if file != "-" {
		var err error
		if path, err = a.abs(file); err != nil {
			return nil, nil, "", err
		}
		fh, err := os.Open(path)
		if err != nil {
			return nil, nil, "", fmt.Errorf("read archive: %w", err)
		}
		defer fh.Close()
		if info, err := fh.Stat(); err == nil && info.IsDir() {
			return nil, nil, "", fmt.Errorf("read archive %s: it is a directory", path)
		}
		r = fh
	}
	b, err := io.ReadAll(io.LimitReader(r, maxArchive+1))
	if err != nil {
		return nil, nil, "", fmt.Errorf("read archive %s: %w", path, err)
	}
	if len(b) > maxArchive {
		return nil, nil, "", fmt.Errorf("read archive %s: over %d bytes", path, maxArchive)
	}
	ar, err := archive.Decode(b)
	if err != nil {
		return nil, nil, "", fmt.Errorf("read archive %s: %w", path, err)
	}
	return ar, b, path, nil
}

func (a *app) decline(h *hosted, store archive.Store, c chosen) error {
	instance := ""
	if h.info.Running {
		instance = capture.InstanceDigest(h.info.Instance)
	}
	if err := store.DeclineWaiting(c.Generation, instance); err != nil {
		return err
	}
	if a.json {
		return writeDocument(a.stdout, struct {
			SchemaVersion int    `json:"schema_version"`
			Declined      uint64 `json:"declined"`
		}{schemaVersion, c.Generation})
	}
	a.say("declined generation %d: later saves carry nothing of it on", c.Generation)
	a.say("  it stays where it is, for restore --generation %d", c.Generation)
	return nil
}

func (a *app) restoreEnv(ctx context.Context, h *hosted, store archive.Store) (restore.Env, error) {
	e := restore.Env{Host: h.Host, Info: &h.info, Getenv: a.lookup, Now: a.now, Machine: machine(), Watch: restore.WatchProcesses, Idle: restore.IdleShell, Husk: restore.HuskShell, Hooked: a.hookSet}
	var err error
	if e.Config, err = a.config(); err != nil {
		return e, err
	}
	if e.Registry, err = a.registry(); err != nil {
		return e, err
	}
	if e.Claims, err = a.claims(); err != nil {
		return e, err
	}
	if e.Runtime, err = a.runtime(); err != nil {
		return e, err
	}
	e.Lock = func() (func(), error) { return store.Lock("restore") }
	e.Save = a.saveRestored(h, store, 0, false)
	return e, nil
}

// saveRestored is the last act of a restore: its own generation. from is the one that it was made
// from, 0 for a file; it is remembered, and stays until the restore has proved itself.
func (a *app) saveRestored(h *hosted, store archive.Store, from uint64, previous bool) func(context.Context) error {
	return func(ctx context.Context) error {
		s, err := a.openSaver(ctx, h)
		if err != nil {
			return err
		}
		if from == 0 {
			_, err = s.save(ctx, saveOptions{})
			return err
		}
		// Before the save, which prunes.
		made := archive.Restored{Generation: from, Previous: previous}
		if err := store.RememberRestore(made); err != nil {
			return err
		}
		done, err := s.save(ctx, saveOptions{})
		if err != nil {
			return err
		}
		made.Own, made.Instance = done.saved.Generation, done.archive.Host.Instance
		return store.RememberRestore(made)
	}
}

// restoreView prints a report.
type restoreView struct {
	app    *app
	h      *hosted
	choice chosen
	src    restore.Source
	report *restore.Report
	dry    bool
	brief  bool
	host   string
}

func (v *restoreView) print() error {
	if v.app.json {
		return writeDocument(v.app.stdout, v.report)
	}
	if v.brief {
		fmt.Fprintln(v.app.stdout)
	}
	for _, s := range v.report.Sessions {
		v.session(s)
	}
	v.summary()
	return nil
}

func (v *restoreView) head() {
	verb := "restore"
	if v.dry {
		verb = "plan"
	}
	a := v.app
	when := "saved " + ago(v.choice.SavedAt, a.now())
	if !v.choice.SavedAt.IsZero() {
		when += " (" + v.choice.SavedAt.Local().Format("2006-01-02 15:04") + ")"
	}
	if v.choice.Generation > 0 {
		a.say("%s of generation %d, %s, on %s", verb, v.choice.Generation, when, v.host)
	} else {
		a.say("%s of %s, %s, on %s", verb, v.src.Path, when, v.host)
	}
	for _, n := range v.report.Notices {
		if n.Kind == restore.PassedOver || n.Kind == restore.FileGone {
			continue // which was warned of
		}
		for _, line := range v.wrap(n.Text, 2) {
			a.say("  %s", line)
		}
	}
	if len(v.choice.left) > 0 {
		a.say("  declined or forgotten, and left out: %s", strings.Join(v.choice.left, ", "))
	}
	for _, n := range v.report.Notes {
		for _, line := range v.wrap(n, 2) {
			a.say("  %s", line)
		}
	}
}

func (v *restoreView) wrap(s string, indent int) []string {
	s = ui.Escape(s)
	if w := v.app.width(); w > 0 {
		return ui.Wrap(s, max(w-indent, 20))
	}
	return []string{s}
}

func (v *restoreView) session(s restore.SessionReport) {
	a := v.app
	if !v.brief {
		fmt.Fprintln(a.stdout)
	}
	action := map[string]string{restore.Create: "create", restore.SkipExisting: "skip", restore.Fill: "fill", restore.Refuse: "refuse"}[s.Action]
	if done := map[string]string{restore.Create: "created", restore.Fill: "filled"}[s.Action]; !v.dry && s.Error == "" && done != "" {
		action = done
	}
	if !v.dry && s.Error != "" {
		action = "failed"
	}
	if v.brief {
		action += "  " + v.tally(s)
	}
	a.say("%s  %s", s.Name, strings.TrimRight(action, " "))
	if s.Reason != "" && (!v.brief || s.Action == restore.Refuse || s.Error != "" || s.Aside != "" || s.Fillable > 0) {
		for _, line := range v.wrap(s.Reason, 2) {
			a.say("  %s", line)
		}
	}
	t := ui.NewTable()
	for _, p := range s.Panes {
		what := string(p.Verdict)
		if p.Result != nil && *p.Result == restore.Exited {
			what += ", exited"
		}
		who, id := "", ""
		if p.Record != nil {
			who, id = p.Record.IntegrationID, p.Record.NativeID
		}
		if id == "" {
			id = a.tilde(p.Dir)
		}
		if v.brief && (s.Action == restore.SkipExisting || v.asWanted(p) || v.dry && (p.Verdict.Starts() || p.Verdict == restore.ProgramPane) || p.Verdict == restore.AlreadyLive) {
			continue
		}
		t.Row(fmt.Sprintf("%d.%d", p.Window, p.Index), what, who, id)
		width := max(a.width()-2, 0)
		if p.Reason != "" && (v.dry || !v.asWanted(p)) {
			t.Note(p.Reason, width)
		} else if p.Unconfirmed != "" {
			t.Note(p.Unconfirmed, width)
		}
		if p.Hint != "" {
			t.Note("→ "+p.Hint, width)
		}
		if p.Command != "" && p.Record == nil && p.Verdict != restore.ProgramPane && !proc.IsShell(p.Command) {
			t.Note("ran, as saved and not run again: "+p.Command, width)
		}
		if len(p.NotPreserved) > 0 && p.Verdict.Starts() {
			t.Note("not brought back: "+quoteAll(p.NotPreserved), width)
		}
	}
	_ = t.Write(a.stdout, "  ")
}

// tally counts the panes of a session in words.
func (v *restoreView) tally(s restore.SessionReport) string {
	var agents, others int
	for _, p := range s.Panes {
		if p.Record != nil {
			agents++
		} else {
			others++
		}
	}
	var parts []string
	if agents > 0 {
		parts = append(parts, plural(agents, "agent"))
	}
	if others > 0 {
		parts = append(parts, plural(others, "other pane"))
	}
	return strings.Join(parts, ", ")
}

// asWanted: what came back and runs needs no reason; the plan, and --json, have it.
func (v *restoreView) asWanted(p restore.PaneReport) bool {
	return p.Verdict.Starts() && p.Result != nil && *p.Result == restore.Running || p.Verdict == restore.ShellPane ||
		p.Verdict == restore.ProgramPane && p.Result != nil && *p.Result == restore.Running
}

func (v *restoreView) summary() {
	a := v.app
	var created, filled, skipped, refused, failed, agents, shells, waiting, exited, asked, programs int
	for _, s := range v.report.Sessions {
		switch {
		case s.Error != "":
			failed++
			continue
		case s.Action == restore.Refuse:
			refused++
			continue
		case s.Action == restore.SkipExisting:
			skipped++
			continue
		}
		if s.Action == restore.Fill {
			filled++
		} else {
			created++
		}
		for _, p := range s.Panes {
			switch {
			case s.Action == restore.Fill && !p.Verdict.Starts(): // left as it is
			case p.Result != nil && *p.Result == restore.Exited:
				exited++
			case p.Verdict == restore.AskPane, p.Verdict == restore.ManualPane:
				asked++
			case p.Verdict.Circumstance() || p.Result != nil && *p.Result == restore.Waits:
				waiting++
			case p.Verdict.Starts():
				agents++
			case p.Verdict == restore.ProgramPane:
				programs++
			default:
				shells++
			}
		}
	}
	var parts []string
	verb, fill := "created", "filled"
	if v.dry {
		verb, fill = "to create", "to fill"
	}
	for _, p := range []struct {
		n    int
		text string
	}{{created, verb}, {filled, fill}, {skipped, "left alone"}, {refused, "refused"}, {failed, "failed"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.text))
		}
	}
	line := plural(len(v.report.Sessions), "session")
	if len(parts) > 0 {
		line += ": " + strings.Join(parts, ", ")
	}
	parts = nil
	running := "running"
	if v.dry {
		running = "to start"
	}
	for _, p := range []struct {
		n    int
		text string
	}{{agents, running}, {exited, "exited"}, {asked, "waiting to be asked"}} {
		if p.n > 0 {
			parts = append(parts, plural(p.n, "agent")+" "+p.text)
		}
	}
	if waiting > 0 {
		parts = append(parts, plural(waiting, "placeholder"))
	}
	if programs > 0 {
		parts = append(parts, plural(programs, "program"))
	}
	if shells > 0 {
		parts = append(parts, plural(shells, "shell"))
	}
	fmt.Fprintln(a.stdout)
	a.say("%s", line)
	if len(parts) > 0 {
		a.say("panes: %s", strings.Join(parts, ", "))
	}
	if !v.dry && created > 0 && !a.attached(v.h.info) {
		for _, s := range v.report.Sessions {
			if s.Action == restore.Create && s.Error == "" {
				if cmd := attachHint(v.h.info, v.h.sessionName(s.Name)); cmd != "" {
					a.say("attach: %s", cmd)
				}
				break
			}
		}
	}
}
