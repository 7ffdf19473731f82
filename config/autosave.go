package config

import "time"

// Autosave says whether and when the host has its workspace saved by itself.
type Autosave struct {
	// Enabled: launch, restore and the tmux plugin turn it on for the server that they work with.
	Enabled bool // default true
	// DebounceSeconds is how long after a change the save comes; what changes meanwhile is in it.
	DebounceSeconds int // default 5
	// HeartbeatMinutes is the time between two saves that come without a change.
	HeartbeatMinutes int // default 15
}

// DefaultAutosave is that of somebody who has configured none.
var DefaultAutosave = Autosave{Enabled: true, DebounceSeconds: 5, HeartbeatMinutes: 15}

// Debounce is DebounceSeconds.
func (a Autosave) Debounce() time.Duration { return time.Duration(a.DebounceSeconds) * time.Second }

// Heartbeat is HeartbeatMinutes.
func (a Autosave) Heartbeat() time.Duration { return time.Duration(a.HeartbeatMinutes) * time.Minute }

type autosaveForm struct {
	Enabled   *bool `toml:"enabled"`
	Debounce  *int  `toml:"debounce_seconds"`
	Heartbeat *int  `toml:"heartbeat_minutes"`
}
