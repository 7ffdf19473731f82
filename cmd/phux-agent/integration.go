package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/phux-agent/phux-agent/config"
	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/internal/ui"
	"github.com/phux-agent/phux-agent/plugin"
)

func (a *app) integrationVerb() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "integration",
		Short: "List, write, lint, test, enable and disable integrations",
		Long: `An integration is a template that says how one agent is started, resumed and
recognised. Every id belongs to exactly one enabled plugin, or it is refused.`,
		Example: `  phux-agent integration list
  phux-agent integration show claude-code
  phux-agent integration lint integrations/my-agent.toml`,
		Annotations: exits("0 done", "1 failed", "2 usage", "4 refused"),
	})
	add := func(use, short, long, example string, args cobra.PositionalArgs, run func(*cobra.Command, []string) error, exit ...string) *cobra.Command {
		c := &cobra.Command{Use: use, Short: short, Long: long, Example: example, Args: args, RunE: run, Annotations: exits(exit...)}
		cmd.AddCommand(c)
		return c
	}
	cmd.AddCommand(a.integrationNew())
	add("list", "List the integrations and their owners", "", "  phux-agent integration list\n  phux-agent integration list --json",
		cobra.NoArgs, func(*cobra.Command, []string) error { return a.integrationList() }, "0 listed", "2 usage")
	add("show ID", "Show what an integration says of its agent", "", "  phux-agent integration show claude-code",
		cobra.ExactArgs(1), func(_ *cobra.Command, args []string) error { return a.integrationShow(args[0]) },
		"0 shown", "2 usage", "4 it does not resolve to one trusted, enabled owner").ValidArgsFunction = a.completeIntegrations
	add("lint FILE…", "Check templates: what is wrong, and what looks wrong", `Check templates before anybody relies on them: what would be refused, with line,
caret and what to write instead, and what loads but looks wrong: unknown keys,
options that pick a conversation by time or fork it at every restore, shells, ids
without a pattern, facts that nobody verified, what is still to be filled in.
Warnings do not change the exit status.`, "  phux-agent integration lint integrations/my-agent.toml",
		cobra.MinimumNArgs(1), func(_ *cobra.Command, args []string) error { return a.integrationLint(args) },
		"0 nothing is wrong, warnings aside", "1 one would be refused", "2 usage")
	cmd.AddCommand(a.integrationTest(), a.integrationFake())
	add("enable ID", "Use an integration again", "", "  phux-agent integration enable codex", cobra.ExactArgs(1),
		func(_ *cobra.Command, args []string) error { return a.integrationSwitch(args[0], true) },
		"0 enabled", "1 there is none", "2 usage")
	add("disable ID", "Neither launch nor restore an integration", "", "  phux-agent integration disable codex", cobra.ExactArgs(1),
		func(_ *cobra.Command, args []string) error { return a.integrationSwitch(args[0], false) },
		"0 disabled", "1 there is none", "2 usage")
	return cmd
}

// integrationDoc is one integration in JSON.
type integrationDoc struct {
	ID         string       `json:"id"`
	PluginID   string       `json:"plugin_id"`
	Name       string       `json:"name"`
	File       string       `json:"file"`
	Enabled    bool         `json:"enabled"`
	Restorable bool         `json:"restorable"`
	Mints      bool         `json:"mints"`
	Verified   []string     `json:"verified"`
	Error      string       `json:"error"`
	Warnings   []warningDoc `json:"warnings"`
}

type warningDoc struct {
	Line int    `json:"line"`
	Text string `json:"text"`
}

func integrationOf(in plugin.Integration) integrationDoc {
	d := integrationDoc{ID: in.ID, PluginID: in.PluginID, File: in.File, Enabled: in.Enabled, Error: text(in.Err)}
	if t := in.Template; t != nil {
		d.Name, d.Verified, d.Restorable, d.Mints = t.DisplayName, t.CLI.Verified, t.Restorable() == nil, t.CanMint()
	}
	for _, w := range in.Warnings {
		d.Warnings = append(d.Warnings, warningDoc{w.Line, w.Text})
	}
	return d
}

func (a *app) integrationList() error {
	reg, err := a.registry()
	if err != nil {
		return err
	}
	var all []plugin.Integration
	for _, p := range reg.Plugins() {
		all = append(all, p.Integrations...)
	}
	slices.SortStableFunc(all, func(x, y plugin.Integration) int { return strings.Compare(x.ID, y.ID) })
	if a.json {
		doc := struct {
			SchemaVersion int              `json:"schema_version"`
			Integrations  []integrationDoc `json:"integrations"`
		}{SchemaVersion: schemaVersion}
		for _, in := range all {
			doc.Integrations = append(doc.Integrations, integrationOf(in))
		}
		return writeDocument(a.stdout, doc)
	}
	t := ui.NewTable("INTEGRATION", "STATE", "COMES BACK", "PROGRAM", "PLUGIN")
	for _, in := range all {
		own, rerr := reg.Resolve(in.ID)
		back, program := "", ""
		if in.Template != nil {
			program = a.program(in.Template)
			switch {
			case in.Template.Restorable() != nil:
				back = "no"
			case rerr == nil && own.Restorable() != nil:
				back = "not verified"
			case in.Template.CanMint() || len(in.Template.Identity.MintCommand) > 0:
				back = "yes"
			default:
				back = "once it has said its id"
			}
		}
		t.Row(in.ID, integrationState(in, rerr), back, program, in.PluginID)
		if in.Err != nil {
			t.Note(in.Err.Error(), a.width())
		}
	}
	return t.Write(a.stdout, "")
}

// program says where the agent's program is now.
func (a *app) program(t *integrations.Template) string {
	if len(t.Launch.Command) == 0 {
		return "none"
	}
	name := t.Launch.Command[0]
	if strings.Contains(name, "/") {
		return filepath.Base(name)
	}
	if _, err := plugin.LookProgram(name, a.getenv("PATH")); err != nil {
		return name + " (not installed)"
	}
	return name
}

func integrationState(in plugin.Integration, resolve error) string {
	if !in.Enabled {
		return "disabled"
	}
	var re *plugin.ResolveError
	if errors.As(resolve, &re) {
		return strings.TrimPrefix(string(re.Reason), "integration-")
	}
	return "enabled"
}

func (a *app) integrationShow(id string) error {
	reg, err := a.registry()
	if err != nil {
		return err
	}
	own, err := reg.Resolve(id)
	if err != nil {
		return err
	}
	var in plugin.Integration
	for _, p := range reg.Plugins() {
		for _, x := range p.Integrations {
			if x.ID == id && x.Template == own.Template {
				in = x
			}
		}
	}
	t := own.Template
	if a.json {
		return writeDocument(a.stdout, struct {
			SchemaVersion int `json:"schema_version"`
			integrationDoc
			Root       string   `json:"root"`
			Command    []string `json:"command"`
			ResumeArgs []string `json:"resume_args"`
			FreshArgs  []string `json:"fresh_args"`
			Never      []string `json:"never"`
		}{schemaVersion, integrationOf(in), own.Root, t.Launch.Command, t.Identity.ResumeArgs, t.Identity.FreshArgs, t.Identity.Never})
	}
	name := t.DisplayName
	if name == "" {
		name = t.ID
	}
	a.say("%s (%s)", name, t.ID)
	for _, l := range [][2]string{
		{"plugin", own.PluginID},
		{"file", a.tilde(in.File)},
		{"runs", quoteAll(t.Launch.Command)},
		{"resumes", quoteAll(t.Identity.ResumeArgs)},
		{"begins", quoteAll(t.Identity.FreshArgs)},
		{"mints by", quoteAll(t.Identity.MintCommand)},
		{"refuses", quoteAll(t.Identity.Never)},
		{"verified", strings.Join(t.CLI.Verified, " ")},
	} {
		if l[1] != "" {
			a.say("  %-9s %s", l[0], l[1])
		}
	}
	var unverified *plugin.UnverifiedError
	switch err := own.Restorable(); {
	case errors.As(err, &unverified):
		a.say("  a restore refuses it, for it was run on no version; to allow it: %s", unverified.Allow())
	case err != nil:
		a.say("  a restore cannot bring it back: %v", err)
	}
	for _, r := range t.Require {
		a.say("  wants     %s %s = %s (at %s): or else %s", r.File, r.JSON, fmt.Sprint(r.Equals), r.At, r.Consequence)
	}
	for _, w := range in.Warnings {
		a.say("  warning   line %d: %s", w.Line, w.Text)
	}
	return nil
}

func (a *app) integrationLint(files []string) error {
	type lint struct {
		File     string       `json:"file"`
		Error    string       `json:"error"`
		Warnings []warningDoc `json:"warnings"`
	}
	var out []lint
	var first error
	for _, f := range files {
		l := lint{File: f}
		b, err := os.ReadFile(f)
		if err == nil {
			var ws []integrations.Warning
			ws, err = integrations.Lint(f, b)
			for _, w := range ws {
				l.Warnings = append(l.Warnings, warningDoc{w.Line, w.Text})
			}
		}
		if l.Error = text(err); err != nil && first == nil {
			first = &lintError{err}
		}
		out = append(out, l)
	}
	if a.json {
		if err := writeDocument(a.stdout, struct {
			SchemaVersion int    `json:"schema_version"`
			Files         []lint `json:"files"`
		}{schemaVersion, out}); err != nil {
			return err
		}
		return first
	}
	for _, l := range out {
		for _, w := range l.Warnings {
			a.say("%s:%d: warning: %s", l.File, w.Line, w.Text)
		}
		switch {
		case l.Error != "" && len(out) > 1:
			fmt.Fprintln(a.stdout, ui.EscapeLines(l.Error))
		case l.Error == "" && len(l.Warnings) == 0:
			a.say("%s: nothing to say", l.File)
		}
	}
	return first
}

func (a *app) integrationSwitch(id string, on bool) error {
	c, err := a.config()
	if err != nil {
		return err
	}
	if !slices.Contains(c.OffIntegrations, id) {
		reg, err := a.registry()
		if err != nil {
			return err
		}
		if _, err := reg.Resolve(id); err != nil {
			var re *plugin.ResolveError
			if errors.As(err, &re) && re.Reason == plugin.Missing {
				return err
			}
		}
	}
	if err := a.editPlugins(func(e *config.Edits) error {
		e.OffIntegrations = switched(e.OffIntegrations, id, on)
		return nil
	}); err != nil {
		return err
	}
	return a.doneDocument(onOff(on), id)
}

// completeIntegrations offers the ids that resolve, for the shell's completion.
func (a *app) completeIntegrations(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	reg, err := a.registry()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var ids []string
	for _, p := range reg.Plugins() {
		for _, in := range p.Integrations {
			if in.Enabled && in.Err == nil {
				ids = append(ids, in.ID+"\t"+in.Template.DisplayName)
			}
		}
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// lintError is a template that would be refused.
type lintError struct{ Err error }

func (e *lintError) Error() string { return e.Err.Error() }
func (e *lintError) Unwrap() error { return e.Err }
