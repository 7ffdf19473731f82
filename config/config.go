// Package config reads the user's configuration, and the file beside it that verbs write.
package config

import (
	"errors"

	"github.com/phux-agent/phux-agent/integrations"
)

var errNotBuilt = errors.New("not built yet")

// Config is $XDG_CONFIG_HOME/phux-agent/config.toml and, laid over it, plugins.toml beside it,
// which verbs write and people need not.
type Config struct {
	Host            string // "" | "tmux" | "embedded"
	SaveAfterLaunch bool   // default true
	Keep            Keep
	Restore         Restore
	Plugins         []PluginEntry // [[plugins]] and those added by verb
	OffPlugins      []string
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
}

// Load reads the configuration of dir ($XDG_CONFIG_HOME/phux-agent). Absent files are defaults;
// an invalid one is an error with file, line and caret, and unknown keys are an error with a
// "did you mean".
func Load(dir string) (*Config, error) { return nil, errNotBuilt }

// Profile returns the named profile for an integration; name "" and "default" always exist
// (empty unless configured). ok is false where a named one does not exist.
func (c *Config) Profile(name, integrationID string) (integrations.Profile, bool) {
	return integrations.Profile{}, false
}

// Edit changes the verbs' own file, durably and under a lock.
func Edit(dir string, change func(*Edits) error) error { return errNotBuilt }

// Edits is what verbs write.
type Edits struct {
	Plugins         []string
	OffPlugins      []string
	OffIntegrations []string
}
