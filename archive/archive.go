// Package archive holds the workspace archive: its format (schema 2, schema 1 read), its exact
// validation, and the durable history of generations on disk. docs/archive-format.md is the
// same in words.
//
// An archive is not authority: nothing read from one becomes a program, an argument (the id's
// own slot aside), an environment value, a format, a shell word or a write target.
package archive

import (
	"fmt"
	"time"

	"github.com/phux-agent/phux-agent/metadata"
)

// SchemaVersion is what we write.
const SchemaVersion = 2

// Limits of an archive, on reading and on writing. A file beyond one is refused whole; nothing
// is cut off it. Lengths are bytes of UTF-8.
const (
	MaxSize        = 16 << 20 // of the file
	MaxDepth       = 512      // containers nested, in what is skipped too
	MaxSessions    = 1024
	MaxWindows     = 4096 // of all sessions
	MaxPanes       = 8192 // of all windows
	MaxWindowPanes = 512  // of one window
	MaxLayoutDepth = 122  // nodes nested: what phux's reader can take at that place
	MaxName        = 1024 // of a session, a window, or one word about the host
	MaxText        = 4096 // of a title, a program's name, a reason
	MaxPath        = 4096 // of a directory
	MaxCells       = 64 << 10
	MaxArg         = 64 << 10 // of one element of a command
	MaxArgs        = 1024     // elements of a command
	MaxProcessArgs = 256      // arguments of a process
	MaxProcess     = 32 << 10 // of them all, with one byte more for each
	MaxWord        = 120      // of a state, a durability, a profile's name, a fingerprint
	MaxSide        = 65535    // columns or rows
	MaxIndex       = 1<<31 - 1
)

// Archive is one workspace as saved.
type Archive struct {
	SchemaVersion int       `json:"schema_version"`
	SavedAt       time.Time `json:"saved_at"` // UTC, to the millisecond; zero in phux's archives
	Generation    uint64    `json:"generation"`
	Prev          string    `json:"prev"` // digest of the generation before: "sha256:…", or empty
	Host          Host      `json:"host"`
	Held          *Held     `json:"held,omitempty"`    // why it is not to be used unasked; nil when good
	Content       string    `json:"content,omitzero"`  // digest of what it says but for times, number and prev: a hint
	Distinct      string    `json:"distinct,omitzero"` // digest of what tells it from another for pruning: a hint
	Counts        *Counts   `json:"counts,omitempty"`  // of what is in it: a hint
	Sessions      []Session `json:"sessions"`
}

// Counts lets a save pass over the sessions of the one before it.
type Counts struct {
	Live    int `json:"live"`    // records, as Archive.Records counts them
	Pending int `json:"pending"` // "
	Carried int `json:"carried"` // pending sessions
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

// Held says why a save did not take the last good generation's place when it was written.
type Held struct {
	State   string `json:"state"`           // "empty" | "shrunk" | "settling"
	Reason  string `json:"reason"`          // in words
	Against uint64 `json:"against"`         // the last good generation of that moment
	Uptime  int64  `json:"uptime,omitzero"` // seconds since boot at that moment, for clocks may be set
}

type Session struct {
	Name    string   `json:"name"` // any text but blank, control characters included: the host says what it can hold
	Active  bool     `json:"active"`
	Cwd     string   `json:"cwd,omitzero"`      // the session's own directory (phux's field); absolute
	Command []string `json:"command,omitempty"` // phux's field: read and shown, never written, never run
	Pending *Pending `json:"pending,omitempty"` // carried on, not seen on the live server
	Windows []Window `json:"windows"`
}

// Pending says since when a session waits to be restored, and from which generation.
type Pending struct {
	Since time.Time `json:"since"`
	From  uint64    `json:"from"` // where it was live last
	// Waited is how long saves have seen it wait, in seconds: what a clock that jumps adds is bounded.
	Waited int64 `json:"waited,omitzero"`
	// Name is the session's own name where Session.Name had to be another, because a live
	// session has taken it; empty where they are the same.
	Name string `json:"name,omitzero"`
}

// OwnName is the name that a session had when it was live.
func (s *Session) OwnName() string {
	if s.Pending != nil && s.Pending.Name != "" {
		return s.Pending.Name
	}
	return s.Name
}

type Window struct {
	Name          string  `json:"name"`
	Index         int     `json:"index"` // -1 where the archive names none (phux's)
	Active        bool    `json:"active"`
	Zoomed        bool    `json:"zoomed"`
	AutomaticName bool    `json:"automatic_name,omitzero"`
	Layout        *Layout `json:"layout,omitempty"` // as read: whoever uses it checks it (Layout.Check)
	Cells         string  `json:"cells,omitzero"`   // host.Cell's text form; as read, likewise
	Panes         []Pane  `json:"panes"`
}

// The words of a Layout.
const (
	KindPane   = "pane"
	KindSplit  = "split"
	Horizontal = "horizontal"
	Vertical   = "vertical"
)

// Layout is phux's binary tree.
type Layout struct {
	Kind  string  `json:"kind"` // "pane" | "split"
	Pane  int     `json:"pane"`
	Dir   string  `json:"dir"`   // "horizontal" | "vertical"
	Ratio float64 `json:"ratio"` // of the left one; single precision, any finite number in a file
	Left  *Layout `json:"left"`
	Right *Layout `json:"right"`
}

// Check reports why a layout is not one of a window with that many panes: every node is of a
// known kind, every pane stands in it once, and it nests no deeper than phux can read. The
// ratio of a checked layout lies between 0 and 1, both excluded.
func (l *Layout) Check(panes int) error {
	seen := make([]bool, panes)
	if err := l.check(seen, 1); err != nil {
		return err
	}
	for i, s := range seen {
		if !s {
			return fmt.Errorf("pane %d is not in the layout", i)
		}
	}
	return nil
}

func (l *Layout) check(seen []bool, depth int) error {
	switch {
	case l == nil:
		return fmt.Errorf("a half is missing")
	case depth > MaxLayoutDepth:
		return fmt.Errorf("nested more than %d deep", MaxLayoutDepth)
	case l.Kind == KindPane:
		if l.Pane < 0 || l.Pane >= len(seen) {
			return fmt.Errorf("pane %d of %d", l.Pane, len(seen))
		}
		if seen[l.Pane] {
			return fmt.Errorf("pane %d stands twice", l.Pane)
		}
		seen[l.Pane] = true
		return nil
	case l.Kind != KindSplit:
		return fmt.Errorf("kind %q", l.Kind)
	case l.Dir != Horizontal && l.Dir != Vertical:
		return fmt.Errorf("direction %q", l.Dir)
	case !(float32(l.Ratio) > 0 && float32(l.Ratio) < 1): // not a number fails too
		return fmt.Errorf("ratio %v", l.Ratio)
	}
	if err := l.Left.check(seen, depth+1); err != nil {
		return err
	}
	return l.Right.check(seen, depth+1)
}

type Pane struct {
	Active       bool                   `json:"active"`
	Title        string                 `json:"title,omitzero"`
	Cwd          string                 `json:"cwd,omitzero"`       // absolute
	CwdError     string                 `json:"cwd_error,omitzero"` // why the directory was left out
	Command      []string               `json:"command"`            // phux would run it: always null in ours; shown, never run
	Program      string                 `json:"program,omitzero"`   // foreground program's name, for people only
	Process      *Process               `json:"process,omitempty"`  // what ran, where the user's configuration lists it
	Cols         int                    `json:"cols"`
	Rows         int                    `json:"rows"`
	AgentSession *metadata.AgentSession `json:"agent_session,omitempty"`
	Agent        *Agent                 `json:"agent,omitempty"`
}

// Process is the program in the foreground of a pane at the save, where the user's configuration
// lists programs that may run again. It names the entry and holds arguments, and no program: which
// one that is, is the configuration's to say. Only of an own archive is it looked at.
type Process struct {
	Program string   `json:"program"` // its name in the configuration
	Args    []string `json:"args"`    // as the process had them, exactly; without what the configuration gives by itself
}

// States of an Agent.
const (
	StateRunning  = "running"
	StateEnded    = "ended"
	StateExited   = "exited"
	StateReplaced = "replaced"
	StatePending  = "pending" // a placeholder: its record waits to be restored
)

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

// Records returns how many records the archive holds: live ones, and pending ones (of a session
// that is carried on, or of a placeholder).
func (a *Archive) Records() (live, pending int) {
	for _, p := range a.records() {
		if p.pending {
			pending++
		} else {
			live++
		}
	}
	return live, pending
}

// counts counts.
func (a *Archive) counts() *Counts {
	c := &Counts{}
	c.Live, c.Pending = a.Records()
	for i := range a.Sessions {
		if a.Sessions[i].Pending != nil {
			c.Carried++
		}
	}
	return c
}

// heldRecord is one record and whether it waits.
type heldRecord struct {
	id      metadata.Identity
	pending bool
}

func (a *Archive) records() (out []heldRecord) {
	for i := range a.Sessions {
		s := &a.Sessions[i]
		s.eachPane(func(p *Pane) {
			if p.AgentSession != nil {
				waits := s.Pending != nil || p.Agent != nil && p.Agent.State == StatePending
				out = append(out, heldRecord{p.AgentSession.Identity(), waits})
			}
		})
	}
	return out
}

func (s *Session) eachPane(do func(*Pane)) {
	for i := range s.Windows {
		for j := range s.Windows[i].Panes {
			do(&s.Windows[i].Panes[j])
		}
	}
}
