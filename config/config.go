// Package config reads the user's configuration, and the file beside it that verbs write.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/internal/trust"
)

// The files of the configuration directory.
const (
	File      = "config.toml"  // people write it
	EditsFile = "plugins.toml" // verbs write it
)

// MaxFile bounds each of them, in bytes.
const MaxFile = 1 << 20

// Config is $XDG_CONFIG_HOME/phux-agent/config.toml and, laid over it, plugins.toml beside it,
// which verbs write and people need not.
type Config struct {
	Host            string // "" | "tmux" | "embedded"
	SaveAfterLaunch bool   // default true
	AdoptAtSave     bool   // default true: agents that were started by hand are taken in, by proof
	AttachPrefix    string // the key that leads out of an attached terminal, "C-b" unless set; checked by its user
	Keep            Keep
	Autosave        Autosave
	Restore         Restore
	Scrollback      Scrollback
	Plugins         []PluginEntry // [[plugins]] and those added by verb
	Notify          Notify
	OffPlugins      []string
	OffIntegrations []string
	Programs        map[string]Program // [programs.NAME], by name
	profiles        map[string]map[string]integrations.Profile
	modes           map[string]map[string]Mode // of [profiles.NAME.INTEGRATION]
}

type PluginEntry struct {
	Path  string
	Added bool // by verb, so `plugin remove` may take it away
}

// Keep bounds what pruning leaves of a workspace's history.
type Keep struct {
	Generations int // distinct good ones, default 50
	Days        int // default 90
}

// Scrollback says whether the text on terminals is saved, and shown again.
type Scrollback struct {
	Lines int // of a pane: above its screen, and all that is kept; 0, the default, is none, at most 10000
}

// Restore holds the user's bounds on a restore.
type Restore struct {
	Parallel     int // agents started at once, default 8
	SettleMillis int // default 2000
	DeadlineSecs int // default 30
	PendingDays  int // a pending session older than this is dropped from later saves, default 30
	// AllowUnverified names integrations of the first-party package that may be resumed although
	// their templates were run on no version.
	AllowUnverified []string
	Mode            Mode            // what a restore does with an agent's pane by itself, default Auto
	BootMode        Mode            // at boot, never less careful than this; default Auto
	Modes           map[string]Mode // by integration id, over Mode
	OldDays         int             // an archive older than this is said to be old, and asked about at boot; default 7
	Husk            bool            // default true: an idle shell that stands where a session belongs is set aside
}

// Mode is what a restore does by itself with the pane of an agent that it could resume. Each is
// more careful than the one before it.
type Mode string

const (
	Auto   Mode = "auto"   // the agent is resumed
	Ask    Mode = "ask"    // the pane says what it would run, and resumes on Enter
	Manual Mode = "manual" // the pane says what it would run, and resumes only when asked by word
)

var modes = []Mode{Auto, Ask, Manual}

// Valid reports a mode that there is.
func (m Mode) Valid() bool { return slices.Contains(modes, m) }

// Careful is the more careful of two modes; an empty one is Auto.
func (m Mode) Careful(o Mode) Mode {
	return modes[max(slices.Index(modes, m), slices.Index(modes, o), 0)]
}

// Program is one that a restore may run again in the pane where it ran at the save.
type Program struct {
	Name    string
	Command []string // Command[0] is looked up in PATH when it is wanted, unless it is absolute
	// SavedArgs: what follows are the arguments that the process had at the save; else none.
	SavedArgs bool
}

// Default is the configuration of somebody who has written none.
func Default() *Config {
	return &Config{
		SaveAfterLaunch: true,
		AdoptAtSave:     true,
		Keep:            Keep{Generations: 50, Days: 90},
		Autosave:        DefaultAutosave,
		Restore: Restore{
			Parallel: 8, SettleMillis: 2000, DeadlineSecs: 30, PendingDays: 30,
			Mode: Auto, BootMode: Auto, OldDays: 7, Husk: true,
		},
	}
}

// Load reads the configuration of dir ($XDG_CONFIG_HOME/phux-agent). Absent files are defaults;
// an invalid one is a *FileError with file, line and caret, and unknown keys are an error with a
// "did you mean". A file that somebody else could write is a *trust.Error and is not used.
func Load(dir string) (*Config, error) {
	c := Default()
	var check trust.Checker
	b, path, err := read(&check, filepath.Join(dir, File))
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if err := decode(path, b, c); err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	b, path, err = read(&check, filepath.Join(dir, EditsFile))
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	edits, err := decodeEdits(path, b)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	for _, p := range edits.Plugins {
		c.Plugins = append(c.Plugins, PluginEntry{Path: p, Added: true})
	}
	c.OffPlugins, c.OffIntegrations = edits.OffPlugins, edits.OffIntegrations
	return c, nil
}

// read returns the content of a configuration file, nil where there is none. The file may be a
// symbolic link, as dotfile managers make them, to a place that is trusted as well.
func read(check *trust.Checker, file string) (b []byte, path string, err error) {
	resolved, err := check.Check(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, file, nil
	}
	if err != nil {
		return nil, file, err
	}
	b, err = check.ReadFile(resolved, MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, file, nil
	}
	return b, file, err
}

// DefaultProfile is the name of the profile that is used where none is asked for.
const DefaultProfile = "default"

// Profile returns the named profile for an integration; name "" and "default" always exist
// (empty unless configured). ok is false where a named one does not exist for the integration.
func (c *Config) Profile(name, integrationID string) (integrations.Profile, bool) {
	if name == "" {
		name = DefaultProfile
	}
	if p, ok := c.profiles[name][integrationID]; ok {
		return p, true
	}
	return integrations.Profile{Name: name}, name == DefaultProfile
}

// ModeOf is what a restore does with an agent of this integration and profile: the profile's own
// word, else the integration's, else the one for all.
func (c *Config) ModeOf(profile, integrationID string) Mode {
	if profile == "" {
		profile = DefaultProfile
	}
	if m := c.modes[profile][integrationID]; m != "" {
		return m
	}
	if m := c.Restore.Modes[integrationID]; m != "" {
		return m
	}
	return c.Restore.Mode.Careful(Auto)
}

// Profiles returns the names of the profiles that exist for an integration, sorted, without
// "default" unless that is configured.
func (c *Config) Profiles(integrationID string) []string {
	var names []string
	for name, of := range c.profiles {
		if _, ok := of[integrationID]; ok {
			names = append(names, name)
		}
	}
	return sorted(names)
}
