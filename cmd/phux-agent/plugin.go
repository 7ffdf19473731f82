package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/phux-agent/phux-agent/config"
	"github.com/phux-agent/phux-agent/internal/ui"
	"github.com/phux-agent/phux-agent/plugin"
)

func (a *app) pluginVerb() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "plugin",
		Short: "List, add, remove, enable, disable and validate plugins",
		Long: `A plugin is a directory with a phux-plugin.toml and integrations/*.toml. It may come
from this program (phux.agents), from $XDG_DATA_HOME/phux-agent/plugins, or from
where plugin add registered it; never from the current project by itself. Only a
plugin that nobody else can write to is used.`,
		Example: `  phux-agent plugin list
  phux-agent plugin validate ~/src/my-agents
  phux-agent plugin add ~/src/my-agents`,
		Annotations: exits("0 done", "1 failed", "2 usage", "4 the plugin is not trusted"),
	})
	add := func(use, short, long, example string, args cobra.PositionalArgs, run func(*cobra.Command, []string) error, exit ...string) {
		cmd.AddCommand(&cobra.Command{Use: use, Short: short, Long: long, Example: example, Args: args, RunE: run, Annotations: exits(exit...)})
	}
	add("list", "List the plugins, and what is wrong with any", "", "  phux-agent plugin list\n  phux-agent plugin list --json",
		cobra.NoArgs, func(*cobra.Command, []string) error { return a.pluginList() }, "0 listed", "2 usage")
	add("add DIR", "Register a plugin where it lies", `Register a plugin where it lies. Nothing is copied: what you change there holds at
once. It is refused where it is not valid, or where somebody else could write to it.`,
		"  phux-agent plugin add ~/src/my-agents", cobra.ExactArgs(1),
		func(_ *cobra.Command, args []string) error { return a.pluginAdd(args[0]) },
		"0 added, or added before", "1 it is not a plugin", "2 usage", "4 it is not trusted")
	add("remove ID", "Take back a plugin add; nothing is deleted", "", "  phux-agent plugin remove my.agents", cobra.ExactArgs(1),
		func(_ *cobra.Command, args []string) error { return a.pluginRemove(args[0]) },
		"0 removed", "1 plugin add did not add it", "2 usage")
	add("enable ID", "Use a plugin again", "", "  phux-agent plugin enable my.agents", cobra.ExactArgs(1),
		func(_ *cobra.Command, args []string) error { return a.pluginSwitch(args[0], true) },
		"0 enabled", "1 there is none", "2 usage")
	add("disable ID", "Use nothing of a plugin", "", "  phux-agent plugin disable my.agents", cobra.ExactArgs(1),
		func(_ *cobra.Command, args []string) error { return a.pluginSwitch(args[0], false) },
		"0 disabled", "1 there is none", "2 usage")
	add("validate DIR", "Say everything that is wrong with a plugin", "", "  phux-agent plugin validate ~/src/my-agents", cobra.ExactArgs(1),
		func(_ *cobra.Command, args []string) error { return a.pluginValidate(args[0]) },
		"0 valid and trusted", "1 not valid", "2 usage", "4 not trusted")
	return cmd
}

// pluginDoc is one plugin of plugin list --json.
type pluginDoc struct {
	ID           string           `json:"id"`
	Name         string           `json:"name"`
	Version      string           `json:"version"`
	Root         string           `json:"root"`
	Origin       string           `json:"origin"`
	Enabled      bool             `json:"enabled"`
	Error        string           `json:"error"`
	Warnings     []string         `json:"warnings"`
	Integrations []integrationDoc `json:"integrations"`
}

func pluginOf(p plugin.Plugin) pluginDoc {
	d := pluginDoc{ID: p.ID, Name: p.Name, Version: p.Version, Root: p.Root, Origin: p.Origin, Enabled: p.Enabled, Error: text(p.Err), Warnings: p.Warnings}
	for _, in := range p.Integrations {
		d.Integrations = append(d.Integrations, integrationOf(in))
	}
	return d
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (a *app) pluginList() error {
	reg, err := a.registry()
	if err != nil {
		return err
	}
	if a.json {
		doc := struct {
			SchemaVersion int         `json:"schema_version"`
			Plugins       []pluginDoc `json:"plugins"`
		}{SchemaVersion: schemaVersion}
		for _, p := range reg.Plugins() {
			doc.Plugins = append(doc.Plugins, pluginOf(p))
		}
		return writeDocument(a.stdout, doc)
	}
	t := ui.NewTable("PLUGIN", "VERSION", "STATE", "INTEGRATIONS", "DIRECTORY")
	for _, p := range reg.Plugins() {
		where := a.tilde(p.Root)
		if p.Origin == plugin.Embedded {
			where = "in this program"
		}
		t.Row(p.ID, p.Version, pluginState(p), fmt.Sprint(len(p.Integrations)), where)
		if p.Err != nil {
			t.Note(p.Err.Error(), a.width())
			continue
		}
		for _, w := range p.Warnings {
			t.Note("warning: "+w, a.width())
		}
		for _, in := range p.Integrations {
			if in.Err != nil {
				t.Note(in.ID+": "+in.Err.Error(), a.width())
			}
		}
	}
	return t.Write(a.stdout, "")
}

func pluginState(p plugin.Plugin) string {
	var te *plugin.TrustError
	switch {
	case !p.Enabled:
		return "disabled"
	case errors.As(p.Err, &te):
		return "untrusted"
	case p.Err != nil:
		return "invalid"
	}
	return "enabled"
}

func (a *app) editPlugins(change func(*config.Edits) error) error {
	d, err := a.dirs()
	if err != nil {
		return err
	}
	return config.Edit(d.Config, change)
}

func (a *app) pluginAdd(dir string) error {
	path, err := a.abs(dir)
	if err != nil {
		return err
	}
	p := plugin.LoadDir(path)
	if p.Err != nil {
		return p.Err
	}
	reg, err := a.registry()
	if err != nil {
		return err
	}
	for _, have := range reg.Plugins() {
		if have.ID == p.ID && have.Err == nil && have.Root != p.Root {
			return &duplicatePluginError{ID: p.ID, Have: have.Root, New: p.Root}
		}
	}
	if err := a.editPlugins(func(e *config.Edits) error {
		e.Plugins = append(e.Plugins, p.Root)
		e.OffPlugins = slices.DeleteFunc(e.OffPlugins, func(id string) bool { return id == p.ID })
		return nil
	}); err != nil {
		return err
	}
	if a.json {
		return writeDocument(a.stdout, struct {
			SchemaVersion int       `json:"schema_version"`
			Plugin        pluginDoc `json:"plugin"`
		}{schemaVersion, pluginOf(p)})
	}
	a.say("added %s %s with %s", p.ID, p.Version, plural(len(p.Integrations), "integration"))
	for _, in := range p.Integrations {
		if in.Err != nil {
			a.warn("%s cannot be used: %v", in.ID, in.Err)
		}
	}
	return nil
}

// addedRoots returns the registered directories that hold the plugin.
func (a *app) addedRoots(id string) ([]string, error) {
	c, err := a.config()
	if err != nil {
		return nil, err
	}
	reg, err := a.registry()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range c.Plugins {
		if !e.Added {
			continue
		}
		resolved, err := filepath.EvalSymlinks(e.Path)
		if err != nil {
			resolved = e.Path
		}
		for _, p := range reg.Plugins() {
			if p.ID == id && (p.Root == resolved || p.Root == e.Path) {
				out = append(out, e.Path)
			}
		}
		if e.Path == id && !slices.Contains(out, e.Path) { // a directory that is gone has no id
			out = append(out, e.Path)
		}
	}
	return out, nil
}

func (a *app) pluginRemove(id string) error {
	roots, err := a.addedRoots(id)
	if err != nil {
		return err
	}
	if len(roots) == 0 {
		known, err := a.findPlugin(id)
		if err != nil {
			return err
		}
		return &notAddedError{ID: id, Origin: known.Origin, Root: known.Root}
	}
	if err := a.editPlugins(func(e *config.Edits) error {
		e.Plugins = slices.DeleteFunc(e.Plugins, func(p string) bool { return slices.Contains(roots, p) })
		return nil
	}); err != nil {
		return err
	}
	return a.doneDocument("removed", id)
}

func (a *app) findPlugin(id string) (plugin.Plugin, error) {
	reg, err := a.registry()
	if err != nil {
		return plugin.Plugin{}, err
	}
	for _, p := range reg.Plugins() {
		if p.ID == id {
			return p, nil
		}
	}
	return plugin.Plugin{}, &unknownPluginError{ID: id}
}

func (a *app) pluginSwitch(id string, on bool) error {
	c, err := a.config()
	if err != nil {
		return err
	}
	if !slices.Contains(c.OffPlugins, id) { // else it may be gone, and enable clears the trace
		if _, err := a.findPlugin(id); err != nil {
			return err
		}
	}
	if err := a.editPlugins(func(e *config.Edits) error {
		e.OffPlugins = switched(e.OffPlugins, id, on)
		return nil
	}); err != nil {
		return err
	}
	return a.doneDocument(onOff(on), id)
}

func switched(off []string, id string, on bool) []string {
	off = slices.DeleteFunc(off, func(x string) bool { return x == id })
	if !on {
		off = append(off, id)
	}
	return off
}

func onOff(on bool) string {
	if on {
		return "enabled"
	}
	return "disabled"
}

func (a *app) pluginValidate(dir string) error {
	path, err := a.abs(dir)
	if err != nil {
		return err
	}
	p := plugin.LoadDir(path)
	err = p.Err
	if err == nil {
		for _, in := range p.Integrations {
			if in.Err != nil {
				err = &invalidPluginError{Root: p.Root, Err: in.Err}
				break
			}
		}
	}
	if a.json {
		if werr := writeDocument(a.stdout, struct {
			SchemaVersion int       `json:"schema_version"`
			Valid         bool      `json:"valid"`
			Plugin        pluginDoc `json:"plugin"`
		}{schemaVersion, err == nil, pluginOf(p)}); werr != nil {
			return werr
		}
		return err
	}
	for _, w := range p.Warnings {
		a.warn("%s: %s", filepath.Join(p.Root, plugin.ManifestFile), w)
	}
	for _, in := range p.Integrations {
		for _, w := range in.Warnings {
			a.warn("%s:%d: %s", in.File, w.Line, w.Text)
		}
		if p.Err == nil && in.Err != nil && in.Err != errors.Unwrap(err) {
			a.warn("%s cannot be used: %v", in.ID, in.Err)
		}
	}
	if err != nil {
		return err
	}
	a.say("%s %s is valid: %s", p.ID, p.Version, plural(len(p.Integrations), "integration"))
	return nil
}

type unknownPluginError struct{ ID string }

func (e *unknownPluginError) Error() string {
	return fmt.Sprintf("find plugin %q: there is none", e.ID)
}

type notAddedError struct{ ID, Origin, Root string }

func (e *notAddedError) Error() string {
	return fmt.Sprintf("remove plugin %q: plugin add did not add it (it is %s, %s)", e.ID, e.Origin, e.Root)
}

type duplicatePluginError struct{ ID, Have, New string }

func (e *duplicatePluginError) Error() string {
	return fmt.Sprintf("add plugin %q in %s: there is one of that id in %s", e.ID, e.New, e.Have)
}

type invalidPluginError struct {
	Root string
	Err  error
}

func (e *invalidPluginError) Error() string {
	return fmt.Sprintf("validate plugin %s: %v", e.Root, e.Err)
}
func (e *invalidPluginError) Unwrap() error { return e.Err }
