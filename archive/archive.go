// Package archive holds the workspace archive: its format (schema 2, schema 1 read), its exact
// validation, and the durable history of generations on disk.
//
// An archive is not authority: nothing read from one becomes a program, an argument (the id's
// own slot aside), an environment value, a format, a shell word or a write target.
package archive

import (
	"errors"
	"time"

	"github.com/phux-agent/phux-agent/metadata"
)

var errNotBuilt = errors.New("not built yet")

// SchemaVersion is what we write.
const SchemaVersion = 2

// Archive is one workspace as saved.
type Archive struct {
	SchemaVersion int       `json:"schema_version"`
	SavedAt       time.Time `json:"saved_at"`
	Generation    uint64    `json:"generation"`
	Prev          string    `json:"prev"` // digest of the generation before: "sha256:…", or empty
	Host          Host      `json:"host"`
	Sessions      []Session `json:"sessions"`
}

// Host is where an archive was saved.
type Host struct {
	Kind     string `json:"kind"`
	Version  string `json:"version"`
	Server   string `json:"server"`
	Instance string `json:"instance"` // digest of the server's life; never used as authority
	Boot     string `json:"boot"`
	Machine  string `json:"machine"` // fingerprint of /etc/machine-id
}

type Session struct {
	Name    string   `json:"name"`
	Active  bool     `json:"active"`
	Cwd     string   `json:"cwd,omitzero"`      // the session's own directory (phux's field)
	Command []string `json:"command,omitempty"` // phux's field: read and shown, never written, never run
	Pending *Pending `json:"pending,omitempty"` // carried on, not seen on the live server
	Windows []Window `json:"windows"`
}

// Pending says since when a session waits to be restored, and from which generation.
type Pending struct {
	Since time.Time `json:"since"`
	From  uint64    `json:"from"`
}

type Window struct {
	Name          string  `json:"name"`
	Index         int     `json:"index"`
	Active        bool    `json:"active"`
	Zoomed        bool    `json:"zoomed"`
	AutomaticName bool    `json:"automatic_name,omitzero"`
	Layout        *Layout `json:"layout,omitempty"`
	Cells         string  `json:"cells,omitzero"` // host.Cell's text form
	Panes         []Pane  `json:"panes"`
}

// Layout is phux's binary tree.
type Layout struct {
	Kind  string  `json:"kind"` // "pane" | "split"
	Pane  int     `json:"pane"`
	Dir   string  `json:"dir"` // "horizontal" | "vertical"
	Ratio float64 `json:"ratio"`
	Left  *Layout `json:"left"`
	Right *Layout `json:"right"`
}

type Pane struct {
	Active       bool                   `json:"active"`
	Title        string                 `json:"title,omitzero"`
	Cwd          string                 `json:"cwd,omitzero"`
	Command      []string               `json:"command"`          // phux would run it: always null in ours; shown, never run
	Program      string                 `json:"program,omitzero"` // foreground program's name, for people only
	Cols         int                    `json:"cols"`
	Rows         int                    `json:"rows"`
	AgentSession *metadata.AgentSession `json:"agent_session,omitempty"`
	Agent        *Agent                 `json:"agent,omitempty"`
}

// Agent is what we know besides of an agent pane. phux ignores it.
type Agent struct {
	Key           string    `json:"key"`
	PluginID      string    `json:"plugin_id,omitzero"`      // where there is no record yet
	IntegrationID string    `json:"integration_id,omitzero"` // "
	Profile       string    `json:"profile,omitzero"`
	LaunchCwd     string    `json:"launch_cwd,omitzero"`
	Store         string    `json:"store,omitzero"`
	Durability    string    `json:"durability,omitzero"` // "present" | "never-prompted" | "unknown"
	State         string    `json:"state,omitzero"`      // "running" | "ended" | "exited" | "replaced" | "pending"
	ConfirmedAt   time.Time `json:"confirmed_at,omitzero"`
	Unconfirmed   string    `json:"unconfirmed,omitzero"`
	Previous      []string  `json:"previous,omitempty"`
	NotPreserved  []string  `json:"not_preserved,omitempty"`
	RecordError   string    `json:"record_error,omitzero"` // why this pane's record was left out
}

// Decode reads schema 1 and 2 (ours and phux's), with limits on size, depth and counts, and
// validates every field. An unknown later schema is a *VersionError, and nothing is guessed.
func Decode(b []byte) (*Archive, error) { return nil, errNotBuilt }

// Encode returns the one form that we write.
func (a *Archive) Encode() ([]byte, error) { return nil, errNotBuilt }

// VersionError names a schema that this program cannot read.
type VersionError struct{ Found int }

func (e *VersionError) Error() string { return "" }

// Records returns how many records the archive holds: live ones and pending ones.
func (a *Archive) Records() (live, pending int) { return 0, 0 }
