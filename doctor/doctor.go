// Package doctor looks for what would keep a pane from coming back as itself, before it does: a
// table of small checks over facts that the caller has gathered, each finding graded and with a
// remedy; and the rehearsal of a power cut on a server of its own.
//
// It changes nothing, and asks nothing itself: Examine is pure over Facts.
package doctor

import (
	"errors"
	"slices"
	"time"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/capture"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/plugin"
	"github.com/phux-agent/phux-agent/restore"
)

// Grade says how much a finding matters.
type Grade string

const (
	OK   Grade = "ok"
	Note Grade = "note" // worth knowing; nothing has to be done
	Warn Grade = "warn" // some pane may not come back as it was
	Fail Grade = "fail" // panes will not come back, or nothing works
)

// Finding is what one check found.
type Finding struct {
	Check  string `json:"check"`
	Grade  Grade  `json:"grade"`
	Text   string `json:"text"`
	Remedy string `json:"remedy"`        // what to do, a command where one does it; empty where there is nothing to do
	Pane   string `json:"pane,omitzero"` // SESSION:WINDOW.PANE, where it is about one; Text names it so: "pane PLACE"
}

// Facts are everything that the checks know. What could not be found out is an error in its place.
type Facts struct {
	Now     time.Time
	Server  string // the flags that lead to this server again, with a space after; may be empty
	Program Program
	Config  error
	State   Directory
	Runtime Directory
	Host    Host
	History History
	Panes   []capture.Pane
	Unseen  error // why the panes are not known; nil where no server runs
	Plugins []plugin.Plugin
	Agents  []Agent
	Reboot  *restore.Report // what a restore of the live workspace, or of the last good generation, would do after a reboot
	Stage   error           // why that is not known
}

// Program is this program.
type Program struct {
	Self   string
	OnPath string // where PATH finds it; empty where it does not
	Same   bool   // both are one file
	Trust  error  // who else could change it
}

// Directory is one that we write to.
type Directory struct {
	Path      string
	Err       error // it cannot be used
	Free      uint64
	Temporary bool // of the runtime directory: a fallback, for XDG_RUNTIME_DIR is not set
}

// Host is the multiplexer that is meant.
type Host struct {
	Kind string
	Info host.Info
	Err  error
}

// History is the generations of the server.
type History struct {
	Best    archive.Choice
	Entries []archive.Entry
	Err     error // archive.ErrNone where nothing was saved yet
	// Saving is true where saves happen by themselves; SavingWhy says why not, where somebody knows.
	Saving    bool
	SavingWhy string
}

// Agent is an agent's program, as one integration starts it.
type Agent struct {
	Integration string
	Plugin      string
	Used        bool   // a pane or the last good generation holds a record of it
	Program     string // absolute; empty where ProgramErr is set
	ProgramErr  error
	Version     string // as it says; empty where it was not asked or did not tell
	Verified    []string
	MinVersion  string
	Unverified  error   // it is not resumed until the user says so
	Unmet       []Unmet // requirements that do not hold
	Hooks       string  // state of its hooks, one of hooks'; empty where it declares none
	NeedsHooks  bool    // only its hook proves which conversation is open
}

// Unmet is a requirement that does not hold.
type Unmet struct{ At, Detail, Consequence, Remedy string }

// unconfigured are the checks that mean something without a configuration.
var unconfigured = []string{"program", "configuration", "directories"}

// Examine runs every check that the facts allow. Findings stand in the order of the checks, each of which says at
// least one thing.
func Examine(f Facts) []Finding {
	var out []Finding
	for _, c := range checks {
		found := []Finding{{Grade: Note, Text: "not looked at: the configuration does not read"}}
		if f.Config == nil || slices.Contains(unconfigured, c.name) {
			found = c.look(&f)
		}
		for i := range found {
			found[i].Check = c.name
		}
		out = append(out, found...)
	}
	return out
}

// Worst is the gravest grade of findings.
func Worst(findings []Finding) Grade {
	worst, order := OK, map[Grade]int{OK: 0, Note: 1, Warn: 2, Fail: 3}
	for _, f := range findings {
		if order[f.Grade] > order[worst] {
			worst = f.Grade
		}
	}
	return worst
}

// nothing reports a history in which nothing was saved yet.
func (h History) nothing() bool { return errors.Is(h.Err, archive.ErrNone) && len(h.Entries) == 0 }
