package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/config"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/internal/dirs"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/internal/ui"
	"github.com/phux-agent/phux-agent/owner"
	"github.com/phux-agent/phux-agent/plugin"
)

// app is one run of the program: its streams, its environment, and the global flags. What a verb
// needs of the machine is opened when the verb asks for it.
type app struct {
	environ        []string
	stdin          io.Reader
	stdout, stderr io.Writer

	socketName, socketPath string
	hostKind               string
	json                   bool

	// payloads is, in a pane, the directory below the runtime directory of whoever made it: a
	// server may have been started with another environment, and claims must be in one place.
	payloads string

	found *dirs.Dirs
	conf  *config.Config
	reg   *plugin.Registry
}

func (a *app) lookup(name string) (string, bool) {
	for i := len(a.environ) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(a.environ[i], name+"="); ok {
			return v, true
		}
	}
	return "", false
}

func (a *app) getenv(name string) string {
	v, _ := a.lookup(name)
	return v
}

func (a *app) dirs() (dirs.Dirs, error) {
	if a.found == nil {
		d, err := dirs.Find(a.getenv)
		if err != nil {
			return dirs.Dirs{}, err
		}
		if base := filepath.Dir(a.payloads); strings.HasPrefix(filepath.Base(base), "phux-agent") && dirs.IsPrivate(base) {
			d.Runtime = base
		}
		a.found = &d
	}
	return *a.found, nil
}

func (a *app) config() (*config.Config, error) {
	if a.conf == nil {
		d, err := a.dirs()
		if err != nil {
			return nil, err
		}
		if a.conf, err = config.Load(d.Config); err != nil {
			return nil, err
		}
	}
	return a.conf, nil
}

// registry is the set of packages, as it was when this run first asked.
func (a *app) registry() (*plugin.Registry, error) {
	if a.reg != nil {
		return a.reg, nil
	}
	d, err := a.dirs()
	if err != nil {
		return nil, err
	}
	c, err := a.config()
	if err != nil {
		return nil, err
	}
	src := plugin.Source{DataDir: d.Data, Off: plugin.Off{Plugins: c.OffPlugins, Integrations: c.OffIntegrations}, Unverified: c.Restore.AllowUnverified}
	for _, p := range c.Plugins {
		src.Added = append(src.Added, p.Path)
	}
	a.reg, err = plugin.Load(src)
	return a.reg, err
}

// runtime makes the runtime directory, which holds claims and what panes are handed.
func (a *app) runtime() (string, error) {
	d, err := a.dirs()
	if err != nil {
		return "", err
	}
	return d.Runtime, dirs.Private(d.Runtime)
}

func (a *app) claims() (owner.Claims, error) {
	dir, err := a.runtime()
	return owner.Claims{Dir: filepath.Join(dir, "claims")}, err
}

// store is the history of the server that info describes.
func (a *app) store(info host.Info) (archive.Store, error) {
	d, err := a.dirs()
	if err != nil {
		return archive.Store{}, err
	}
	c, err := a.config()
	if err != nil {
		return archive.Store{}, err
	}
	base := filepath.Join(d.State, "archives")
	return archive.Store{
		Dir: filepath.Join(base, info.Server), Now: a.now, Machine: machine(),
		PendingAge: time.Duration(c.Restore.PendingDays) * 24 * time.Hour,
		// One memory for all servers: what was exported from one may be restored on another.
		OwnDir: filepath.Join(base, ".exported"),
	}, nil
}

// machine is the fingerprint of this machine, empty where the system does not tell.
func machine() string {
	id, err := proc.MachineID()
	if err != nil {
		return ""
	}
	return id
}

// abs makes a path of the command line absolute as the caller spells it, links kept: an agent
// files its conversations under the spelling.
func (a *app) abs(path string) (string, error) {
	if filepath.IsAbs(path) {
		return filepath.Clean(path), nil
	}
	wd, err := os.Getwd() // $PWD where that is true
	if err != nil {
		return "", fmt.Errorf("find the current directory: %w", err)
	}
	return filepath.Join(wd, path), nil
}

// width is the number of columns that a person sees, 0 where nobody looks.
func (a *app) width() int {
	f := file(a.stdout)
	if f == nil {
		return 0
	}
	w, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return w
}

// say prints a line of a result. Arguments that are strings or errors are escaped.
func (a *app) say(format string, args ...any) { printSafe(a.stdout, format, args...) }

// warn prints a line beside the result, on standard error.
func (a *app) warn(format string, args ...any) {
	printSafe(a.stderr, "phux-agent: warning: "+format, args...)
}

func printSafe(w io.Writer, format string, args ...any) {
	for i, arg := range args {
		switch v := arg.(type) {
		case string:
			args[i] = ui.Escape(v)
		case error:
			args[i] = ui.Escape(v.Error())
		case fmt.Stringer:
			args[i] = ui.Escape(v.String())
		}
	}
	fmt.Fprintf(w, format+"\n", args...)
}

// plural counts things: "1 pane", "2 panes".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// ago says a time for a person.
func ago(t, now time.Time) string {
	d := now.Sub(t)
	switch {
	case t.IsZero():
		return "at an unknown time"
	case d < 0:
		return "in the future"
	case d < time.Minute:
		return "just now"
	case d < 2*time.Hour:
		return plural(int(d.Minutes()), "minute") + " ago"
	case d < 48*time.Hour:
		return plural(int(d.Hours()), "hour") + " ago"
	}
	return plural(int(d.Hours()/24), "day") + " ago"
}

// shellQuote makes a word safe to paste into a shell.
func shellQuote(s string) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("/._-+=@%:,", r)
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
