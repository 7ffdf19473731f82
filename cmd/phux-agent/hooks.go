package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/phux-agent/phux-agent/hooks"
	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/internal/foreign"
	"github.com/phux-agent/phux-agent/plugin"
)

func (a *app) hooksVerb() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "hooks",
		Short: "Let agents tell when their conversation changes",
		Long: `Let agents tell when their conversation changes, by an entry in their own settings
of this user, as each integration declares it. What is written is one entry;
everything else in the file keeps its bytes, and uninstall takes the entry out
again. Never a project's file, and never another program's entries.

Agents that keep a file which shows the open conversation are right at every save
without it; the others are confirmed by their hook alone.`,
		Example: `  phux-agent hooks status
  phux-agent hooks install gemini-cli --dry-run
  phux-agent hooks install
  phux-agent hooks uninstall`,
		Annotations: exits("0 done", "2 usage", "3 some files were refused", "4 refused; nothing was changed"),
	})
	add := func(use, short, long, example string, run func(dry bool, args []string) error, dry bool) {
		var dryRun bool
		c := &cobra.Command{
			Use: use, Short: short, Long: long, Example: example, ValidArgsFunction: a.completeIntegrations,
			RunE:        func(_ *cobra.Command, args []string) error { return run(dryRun, args) },
			Annotations: exits("0 done, or there was nothing to do", "2 usage", "3 some files were refused", "4 refused; nothing was changed"),
		}
		if dry {
			c.Flags().BoolVar(&dryRun, "dry-run", false, "show the edit, and change nothing")
		}
		cmd.AddCommand(c)
	}
	add("install [INTEGRATION…]", "Write the entries", `Write the entries of these integrations, or of every one whose program is
installed. A file as it was before is kept in the state directory, and put back
by uninstall. Five installs leave one entry.`,
		"  phux-agent hooks install\n  phux-agent hooks install codex --dry-run",
		func(dry bool, args []string) error { return a.hooksEdit(args, true, dry) }, true)
	add("uninstall [INTEGRATION…]", "Take the entries out again", `Take out what install wrote, of these integrations or of all. Where nobody else
has written the file meanwhile, it gets back the very bytes that it had.`,
		"  phux-agent hooks uninstall",
		func(dry bool, args []string) error { return a.hooksEdit(args, false, dry) }, true)
	add("status [INTEGRATION…]", "Show which entries are there", "", "  phux-agent hooks status\n  phux-agent hooks status --json",
		func(_ bool, args []string) error { return a.hooksStatus(args) }, false)
	return cmd
}

// hookDoc is one file in the documents of hooks --json.
type hookDoc struct {
	Integration string   `json:"integration"`
	Path        string   `json:"path"`
	State       string   `json:"state"` // installed, missing, partial, stale, elsewhere, refused
	Changed     bool     `json:"changed"`
	Reason      string   `json:"reason"`
	Others      []string `json:"others"`
	Note        string   `json:"note"`
}

func docOf(e hooks.Edit) hookDoc {
	return hookDoc{e.Integration, e.Path, e.State, e.Changed, e.Reason, append([]string{}, e.Others...), e.Note}
}

func (a *app) hooksEnv() (hooks.Env, error) {
	d, err := a.dirs()
	if err != nil {
		return hooks.Env{}, err
	}
	self, err := a.ownPath()
	return hooks.Env{Getenv: a.lookup, Program: self, State: filepath.Join(d.State, "hooks")}, err
}

// hookSet reports an agent whose own files call this program at all of its hook's events.
func (a *app) hookSet(t *integrations.Template) bool {
	env, err := a.hooksEnv()
	if err != nil {
		return false
	}
	edits, err := env.Plan(t, true)
	return err == nil && !slices.ContainsFunc(edits, func(e hooks.Edit) bool { return e.State != hooks.Installed })
}

// ownPath is this program as others are to call it: as PATH has it, where that is the same file,
// for such a name outlives an upgrade.
func (a *app) ownPath() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	at, err := plugin.LookProgram("phux-agent", a.getenv("PATH"))
	if err != nil {
		return self, nil
	}
	if sameFile(at, self) {
		return at, nil
	}
	return self, nil
}

// sameFile reports two paths of one file, links followed.
func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// hooked are the integrations that were named, or all that declare hooks; with present only those
// whose program is installed.
func (a *app) hooked(args []string, present bool) ([]*integrations.Template, error) {
	reg, err := a.registry()
	if err != nil {
		return nil, err
	}
	var out []*integrations.Template
	if len(args) > 0 {
		for _, id := range args {
			own, err := reg.Resolve(id)
			if err != nil {
				return nil, err
			}
			if len(own.Template.Hooks) == 0 {
				return nil, fmt.Errorf("hooks of %q: %w", id, hooks.ErrNone)
			}
			out = append(out, own.Template)
		}
		return out, nil
	}
	for _, t := range a.enabled(reg) {
		if len(t.Hooks) > 0 && (!present || a.installed(t)) {
			out = append(out, t)
		}
	}
	return out, nil
}

// enabled are the templates that resolve to an owner, by id.
func (a *app) enabled(reg *plugin.Registry) []*integrations.Template {
	var ids []string
	for _, p := range reg.Plugins() {
		for _, in := range p.Integrations {
			ids = append(ids, in.ID)
		}
	}
	slices.Sort(ids)
	var out []*integrations.Template
	for _, id := range slices.Compact(ids) {
		if own, err := reg.Resolve(id); err == nil {
			out = append(out, own.Template)
		}
	}
	return out
}

func (a *app) installed(t *integrations.Template) bool {
	if len(t.Launch.Command) == 0 {
		return false
	}
	_, err := plugin.LookProgram(t.Launch.Command[0], a.getenv("PATH"))
	return err == nil
}

func (a *app) hooksEdit(args []string, install, dry bool) error {
	env, err := a.hooksEnv()
	if err != nil {
		return err
	}
	ts, err := a.hooked(args, install)
	if err != nil {
		return err
	}
	var docs []hookDoc
	changed, bad := 0, 0
	for _, t := range ts {
		edits, err := a.hooksOf(env, t, install, dry)
		if err != nil {
			return err
		}
		for _, e := range edits {
			docs = append(docs, docOf(e))
			switch {
			case e.State == hooks.Refused:
				bad++
			case e.Changed:
				changed++
			}
			if !a.json {
				a.sayEdit(e, install, dry)
			}
		}
	}
	if a.json {
		err = writeDocument(a.stdout, struct {
			SchemaVersion int       `json:"schema_version"`
			DryRun        bool      `json:"dry_run"`
			Hooks         []hookDoc `json:"hooks"`
		}{schemaVersion, dry, append([]hookDoc{}, docs...)})
		if err != nil {
			return err
		}
	} else if len(docs) == 0 {
		a.say("no installed agent has hooks to write")
	}
	switch {
	case bad > 0 && changed == 0 && bad == len(docs):
		return &statusError{code: refused}
	case bad > 0:
		return &statusError{code: partial}
	}
	return nil
}

// hooksOf plans and, unless it is dry, applies. Who writes the file at the same moment is given
// way to, and the plan is made anew.
func (a *app) hooksOf(env hooks.Env, t *integrations.Template, install, dry bool) ([]hooks.Edit, error) {
	for n := 1; ; n++ {
		edits, err := env.Plan(t, install)
		if err != nil || dry {
			return edits, err
		}
		again := false
		for i := range edits {
			err := env.Apply(edits[i])
			if errors.Is(err, foreign.ErrChanged) && n < retries {
				again = true
				break
			}
			if err != nil { // the other files have nothing to do with it
				edits[i].State, edits[i].Reason, edits[i].Changed, edits[i].Remove = hooks.Refused, err.Error(), false, false
			}
		}
		if !again {
			return edits, nil
		}
	}
}

func (a *app) sayEdit(e hooks.Edit, install, dry bool) {
	path := a.tilde(e.Path)
	switch {
	case e.State == hooks.Refused:
		a.say("%-12s %s: left alone: %s", e.Integration, path, e.Reason)
	case !e.Changed && install:
		a.say("%-12s %s: %s already", e.Integration, path, e.State)
	case !e.Changed:
		a.say("%-12s %s: nothing of ours in it", e.Integration, path)
	case e.Remove && dry:
		a.say("%-12s %s: would be removed", e.Integration, path)
	case e.Remove:
		a.say("%-12s %s: removed", e.Integration, path)
	case dry:
		a.say("%-12s %s: would become", e.Integration, path)
	default:
		a.say("%-12s %s: written", e.Integration, path)
	}
	if dry && e.Changed && !e.Remove {
		for _, line := range lineDiff(e.Before, e.After) {
			a.say("  %s", line)
		}
	}
	for _, o := range e.Others {
		a.say("  calls another phux-agent too: %s", o)
	}
	if e.Note != "" && install {
		a.say("  %s", e.Note)
	}
}

// lineDiff shows what changed between two texts: one stretch of lines, with a line on each side.
func lineDiff(before, after string) []string {
	x, y := strings.Split(before, "\n"), strings.Split(after, "\n")
	if before == "" {
		x = nil
	}
	head := 0
	for head < len(x) && head < len(y) && x[head] == y[head] {
		head++
	}
	tail := 0
	for tail < len(x)-head && tail < len(y)-head && x[len(x)-1-tail] == y[len(y)-1-tail] {
		tail++
	}
	var out []string
	if head > 0 {
		out = append(out, "  "+x[head-1])
	}
	for _, l := range x[head : len(x)-tail] {
		out = append(out, "- "+l)
	}
	for _, l := range y[head : len(y)-tail] {
		out = append(out, "+ "+l)
	}
	if tail > 0 {
		out = append(out, "  "+x[len(x)-tail])
	}
	return out
}

func (a *app) hooksStatus(args []string) error {
	env, err := a.hooksEnv()
	if err != nil {
		return err
	}
	ts, err := a.hooked(args, false)
	if err != nil {
		return err
	}
	docs := []hookDoc{}
	for _, t := range ts {
		edits, err := env.Plan(t, true)
		if err != nil {
			return err
		}
		for _, e := range edits {
			e.Changed, e.Note = false, ""
			docs = append(docs, docOf(e))
			if a.json {
				continue
			}
			a.say("%-12s %-10s %s", e.Integration, e.State, a.tilde(e.Path))
			if e.Reason != "" {
				a.say("  %s", e.Reason)
			}
			for _, o := range e.Others {
				a.say("  calls another phux-agent: %s", o)
			}
		}
	}
	log, refusal := a.hookNotes()
	if !a.json {
		if log != "" {
			a.say("what reports changed, and which were refused: %s", a.tilde(log))
		}
		if refusal != "" {
			a.say("  the last refusal: %s", refusal)
		}
		return nil
	}
	return writeDocument(a.stdout, struct {
		SchemaVersion int       `json:"schema_version"`
		Hooks         []hookDoc `json:"hooks"`
		Log           string    `json:"log"`          // the file; empty where no report was noted yet
		Refusal       string    `json:"last_refusal"` // its last line that says refused
	}{schemaVersion, docs, log, refusal})
}
