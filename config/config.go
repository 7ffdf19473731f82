// Package config reads the user's configuration, and the file beside it that verbs write.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

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
	Restore         Restore
	Autosave        Autosave
	Plugins         []PluginEntry // [[plugins]] and those added by verb
	OffPlugins      []string
	Notify          Notify
	OffIntegrations []string
	profiles        map[string]map[string]integrations.Profile
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

// Restore holds the user's bounds on a restore.
type Restore struct {
	Parallel     int // agents started at once, default 8
	SettleMillis int // default 2000
	DeadlineSecs int // default 30
	PendingDays  int // a pending session older than this is dropped from later saves, default 30
	// AllowUnverified names integrations of the first-party package that may be resumed although
	// their templates were run on no version.
	AllowUnverified []string
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
