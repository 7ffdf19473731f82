package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/phux-agent/phux-agent/config"
	"github.com/phux-agent/phux-agent/hooks"
	"github.com/phux-agent/phux-agent/host"
)

func (a *app) uninstallVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "uninstall",
		Short: "Take out everything that was written, and leave the archives",
		Long: `Take out everything that phux-agent wrote: its entries in the agents' settings, its
functions in the shells' start-up files, the unit that restores at login, its keys,
hooks and options on the tmux servers that run, and its own files. What other
programs and people wrote is left as it is, byte for byte.

What stays is named: the archives, a configuration that you wrote, plugins that you
added, and the program itself. Agents that run are not touched, and keep their panes;
the program must stay until they have ended, for their panes call it.`,
		Example:     "  phux-agent uninstall\n  phux-agent uninstall --json",
		Args:        cobra.NoArgs,
		RunE:        func(cmd *cobra.Command, _ []string) error { return a.uninstall(cmd.Context()) },
		Annotations: exits("0 done", "2 usage", "3 something could not be taken out; it is named"),
	}
}

// takenOut is one line of uninstall's document.
type takenOut struct {
	What   string `json:"what"`  // hooks, shell functions, boot unit, tmux, files
	Where  string `json:"where"` // a path, or a server
	State  string `json:"state"` // removed, left, failed
	Reason string `json:"reason"`
}

const (
	wasRemoved = "removed"
	wasLeft    = "left"
	wasFailed  = "failed"
)

func (a *app) uninstall(ctx context.Context) error {
	if _, err := a.dirs(); err != nil {
		return err
	}
	var out []takenOut
	note := func(what, where, state string, err error) {
		t := takenOut{what, where, state, ""}
		if err != nil {
			t.State, t.Reason = wasFailed, err.Error()
		}
		out = append(out, t)
	}
	a.removeHooks(note)
	a.removeShims(note)
	a.removeBoot(ctx, note)
	a.removeFromServers(ctx, note)
	unreached := a.unreached() // before the notes of them go
	a.removeFiles(note)
	out = append(out, unreached...)
	for _, l := range a.left() {
		out = append(out, takenOut{What: "files", Where: l[0], State: wasLeft, Reason: l[1]})
	}
	var err error
	if a.json {
		err = writeDocument(a.stdout, struct {
			SchemaVersion int        `json:"schema_version"`
			Items         []takenOut `json:"items"`
		}{schemaVersion, out})
	} else {
		for _, t := range out {
			line := fmt.Sprintf("%-8s %s: %s", t.State, t.What, a.tilde(t.Where))
			if t.Reason != "" {
				line += " (" + t.Reason + ")"
			}
			a.say("%s", line)
		}
	}
	if err != nil {
		return err
	}
	for _, t := range out {
		if t.State == wasFailed {
			return &statusError{code: partial}
		}
	}
	return nil
}

type noteFunc func(what, where, state string, err error)

func (a *app) removeHooks(note noteFunc) {
	env, err := a.hooksEnv()
	if err != nil {
		note("hooks", "", wasFailed, err)
		return
	}
	ts, err := a.hooked(nil, false)
	if err != nil {
		note("hooks", "", wasFailed, err)
		return
	}
	for _, t := range ts {
		edits, err := a.hooksOf(env, t, false, false)
		if err != nil {
			note("hooks", t.ID, wasFailed, err)
			continue
		}
		for _, e := range edits {
			switch {
			case e.State == hooks.Refused:
				if _, err := os.Lstat(e.Path); err == nil {
					note("hooks", e.Path, wasFailed, errors.New(e.Reason))
				}
			case e.Changed:
				note("hooks", e.Path, wasRemoved, nil)
			}
		}
	}
}

func (a *app) removeShims(note noteFunc) {
	for _, kind := range shellKinds {
		path, err := a.rcFile(kind)
		if err != nil {
			continue // no home of that shell
		}
		before, _ := os.ReadFile(path)
		quiet := *a
		quiet.stdout = new(bytes.Buffer)
		if err := quiet.shimEdit(kind, false); err != nil {
			note("shell functions", path, wasFailed, err)
		} else if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
			note("shell functions", path, wasRemoved, nil)
		}
	}
}

func (a *app) removeBoot(ctx context.Context, note noteFunc) {
	// Each server may have a unit of its own.
	for _, of := range a.servers() {
		s, err := of.service()
		if err != nil {
			note("boot unit", of.socketName, wasFailed, err)
			continue
		}
		file, _, err := of.bootFile(s, runtime.GOOS == "darwin")
		if err != nil {
			note("boot unit", of.socketName, wasFailed, err)
			continue
		}
		if b, err := ourFile(file); err == nil && b == nil {
			continue
		}
		quiet := *of
		quiet.stdout = new(bytes.Buffer)
		note("boot unit", file, wasRemoved, quiet.bootUninstall(ctx))
		if dir := filepath.Dir(file); filepath.Base(dir) == "user" { // systemd's, where it is empty now
			_ = os.Remove(dir)
			_ = os.Remove(filepath.Dir(dir))
		}
	}
}

// servers are apps for the tmux server that is meant, and for each whose history we know by name.
func (a *app) servers() []*app {
	out := []*app{a}
	d, err := a.dirs()
	if err != nil {
		return out
	}
	entries, err := os.ReadDir(filepath.Join(d.State, "archives"))
	if err != nil {
		return out
	}
	for _, e := range entries {
		name, ok := strings.CutPrefix(e.Name(), "tmux-L-")
		if !ok {
			continue
		}
		name, err := url.PathUnescape(name) // as the host escapes it
		if err != nil || name == a.socketName {
			continue
		}
		of := *a
		of.socketName, of.socketPath = name, ""
		out = append(out, &of)
	}
	return out
}

func (a *app) removeFromServers(ctx context.Context, note noteFunc) {
	done := map[string]bool{}
	for _, of := range append(a.servers(), a.onSockets()...) {
		h, err := of.tmux()
		if err != nil {
			return // without tmux nothing of ours is on it
		}
		if done[h.Socket()] {
			continue
		}
		done[h.Socket()] = true
		where := h.ServerName()
		if of.socketPath != "" {
			where = of.socketPath
		}
		s, err := h.Setup(ctx)
		if errors.Is(err, host.ErrNoServer) {
			continue
		}
		if err != nil {
			note("tmux", where, wasFailed, err)
			continue
		}
		note("tmux", where, wasRemoved, errors.Join(h.ForgetAutosave(ctx), h.Unplug(ctx, s)))
	}
}

// onSockets are apps for the servers whose sockets were noted.
func (a *app) onSockets() (out []*app) {
	for _, path := range a.sockets() {
		of := *a
		of.socketName, of.socketPath = "", path
		out = append(out, &of)
	}
	return out
}

// unreached are servers on a socket's path: their histories hold a digest of it, which does not lead
// there. They are named, but for those whose sockets were noted.
func (a *app) unreached() (out []takenOut) {
	d, err := a.dirs()
	if err != nil {
		return nil
	}
	reached := map[string]bool{}
	for _, of := range append(a.onSockets(), a) {
		if h, err := of.tmux(); err == nil {
			reached[h.ServerName()] = true
		}
	}
	entries, _ := os.ReadDir(filepath.Join(d.State, "archives"))
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "tmux-S-") && !reached[e.Name()] {
			out = append(out, takenOut{"tmux", e.Name(), wasLeft, "a server on a path that is not known: where it runs, phux-agent -S PATH tmux uninstall"})
		}
	}
	return out
}

// removeFiles takes our own files away, but for the archives. Claims of agents that run stay: they
// keep a second one off the same conversation, and a reboot clears them.
func (a *app) removeFiles(note noteFunc) {
	d, err := a.dirs()
	if err != nil {
		return
	}
	remove := func(path string) {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return
		}
		note("files", path, wasRemoved, os.RemoveAll(path))
	}
	remove(filepath.Join(d.Data, "first-party"))
	for _, name := range []string{config.EditsFile, config.EditsFile + ".lock"} {
		remove(filepath.Join(d.Config, name))
	}
	entries, _ := os.ReadDir(d.State) // where there is none, nothing is to be removed
	for _, e := range entries {
		if e.Name() != "archives" {
			remove(filepath.Join(d.State, e.Name()))
		}
	}
	for _, dir := range []string{d.Data, d.Config, d.State} {
		_ = os.Remove(dir) // where it is empty now
	}
}

// left is what stays, and why: path and reason.
func (a *app) left() (out [][2]string) {
	d, err := a.dirs()
	if err != nil {
		return nil
	}
	self, _ := os.Executable()
	for _, l := range [][2]string{
		{filepath.Join(d.State, "archives"), "the archives: remove them when you will not restore any more"},
		{filepath.Join(d.Config, config.File), "you wrote it"},
		{filepath.Join(d.Data, "plugins"), "you added them"},
		{d.Runtime, "claims of agents that run; a reboot clears it"},
		{self, "the program: remove it once its panes have ended"},
	} {
		if _, err := os.Lstat(l[0]); err == nil {
			out = append(out, l)
		}
	}
	return out
}
