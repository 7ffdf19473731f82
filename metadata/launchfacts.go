package metadata

import "time"

// LaunchFacts is phux.agent-launch/v1: what a launch or a restore knew about the pane it made.
// It explains and it helps to find the owner; it never decides what runs.
type LaunchFacts struct {
	PaneKey       string    `json:"pane_key"`                // stable over generations; 26 characters of base32, ours
	PluginID      string    `json:"plugin_id,omitzero"`      // of the launch, also where no record exists yet
	IntegrationID string    `json:"integration_id,omitzero"` // "
	Profile       string    `json:"profile,omitzero"`        // the name only; empty means "default"
	LaunchDir     string    `json:"launch_cwd,omitzero"`     // absolute; the agent is resumed here
	Store         string    `json:"store,omitzero"`          // fingerprint of the expanded transcript root
	OwnerPID      int       `json:"owner_pid,omitzero"`      // the process that pane-exec became
	OwnerStart    uint64    `json:"owner_start,omitzero"`    // its start time, in clock ticks since boot
	ConfirmedAt   time.Time `json:"confirmed_at,omitzero"`   // when the record was last proven; UTC
	Unconfirmed   string    `json:"unconfirmed,omitzero"`    // why the last observation did not confirm it
	Previous      []string  `json:"previous,omitempty"`      // earlier native ids, newest first, at most MaxPrevious
	NotPreserved  []string  `json:"not_preserved,omitempty"` // extra arguments that a restore will not bring back
	Pending       bool      `json:"pending,omitzero"`        // the pane is a placeholder: its record waits to be restored
	Durability    string    `json:"durability,omitzero"`     // as archived for a pending record
	Ended         bool      `json:"ended,omitzero"`          // the pane came back as a shell: its record's agent had ended by itself, is shown and carried, and is not started
	Epoch         uint64    `json:"epoch,omitzero"`          // number of the claim under which the owner runs
}

// MaxPrevious bounds LaunchFacts.Previous.
const MaxPrevious = 16

// Agent is the live identity phux.agent/v1. Vocabularies are open; only the name is required.
type Agent struct {
	Name      string `json:"name"`
	Kind      string `json:"kind,omitzero"`
	State     string `json:"state,omitzero"`
	Attention string `json:"attention,omitzero"`
	Session   string `json:"session,omitzero"`
}
