// Package restore brings a workspace back: Make is pure (archive, host view and facts become one
// verdict per pane), Apply does what the plan says and reports what it observed.
//
// What a pane will run comes from the integration that is installed, enabled and trusted now.
// Of the archive, a native id fills its one argument; names, titles and directories are data.
package restore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/config"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
	"github.com/phux-agent/phux-agent/plugin"
)

// Options of one restore.
type Options struct {
	Only     []string          // archived session names; empty means all
	Strict   bool              // a circumstance refuses the session instead of making a placeholder
	Import   bool              // consent to an archive that this machine's store did not write
	FromHost bool              // consent to an archive of another machine
	Owners   map[string]string // OLD -> NEW plugin id, for this run
	NoWait   bool              // do not watch whether the agents stay
	Fill     bool              // idle shells that stand where agents belong, in sessions that are there, take them
	// Panes names panes, by pane key or as SESSION:WINDOW.PANE of the archive: their sessions are
	// restored, and the agents of others in them wait to be asked.
	Panes []string
	// Mode is what this restore does with every agent; empty leaves it to the configuration, in
	// which case what Only and Panes name is resumed: naming is asking.
	Mode config.Mode
	// Unattended: nobody may be there, as at boot. The boot mode of the configuration holds
	// besides, and of an old archive nothing is resumed unasked.
	Unattended bool
	NoHusk     bool // a session that is one idle shell is not set aside either
}

// Env is where a restore works.
type Env struct {
	Host     host.Host
	Registry *plugin.Registry
	Config   *config.Config
	Claims   owner.Claims
	Getenv   integrations.Env // the caller's environment; its PATH finds the programs
	Now      func() time.Time
	Machine  string // fingerprint of this machine, as archives carry it
	// Info of the host, where the caller has asked just now; nil asks again. Apply asks by itself.
	Info *host.Info

	// Hooked reports an agent whose hook calls us already: what it does not confirm, an install
	// would not mend. Nil knows of none.
	Hooked func(*integrations.Template) bool

	// Runtime is a private directory for what panes are handed once; empty hands them nothing.
	Runtime string

	// Lock makes this the only restore of the server, and autosave silent, until unlock.
	// Apply takes it; nil means that no other can be there.
	Lock func() (unlock func(), err error)
	// Save writes the restore's own generation: the last act of an Apply that made something.
	// The lock is still held. Nil skips it.
	Save func(ctx context.Context) error
	// Watch returns when settle is over or all of the processes have ended before (nil), or when
	// ctx is done (its error): WatchProcesses, where terminals are processes of this machine. Nil
	// waits settle out.
	Watch func(ctx context.Context, pids []int, settle time.Duration) error
	// Idle proves that a pane is an idle shell, or says what does not hold: IdleShell, where
	// terminals are processes of this machine. Nil proves nothing, and no pane is filled.
	Idle func(p host.Pane) error
	// Husk proves that the only pane of a session is a shell that nobody uses, in this life of the
	// server, whose process it is given: HuskShell. Nil proves nothing, and no session is set aside.
	Husk func(p host.Pane, server int) error
}

// Source is the archive and where it came from.
type Source struct {
	Archive *archive.Archive
	Path    string
	Own     bool           // this machine's store knows that it wrote these bytes
	Notices []Notice       // of how it was chosen
	Texts   []archive.Text // what stood on its panes, where that is to be shown again
}

// Notice is what is to be known of a source before anything starts.
type Notice struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// The kinds of notices. The vocabulary is open.
const (
	OtherBoot    = "other-boot"    // the machine was started since: the ordinary case
	OtherLife    = "other-life"    // same boot, and another life of the server
	SameServer   = "same-server"   // the server that it was saved from still runs
	OtherMachine = "other-machine" //
	Old          = "old"           // older than the configuration's old_days
	PassedOver   = "passed-over"   // a newer generation that is not good
	FileGone     = "file-gone"     // a newer generation whose file is gone
)

// Plan is what a restore would do. Data; refused by Apply when the host has moved on.
type Plan struct {
	Source   Source
	Options  Options
	Host     host.Info
	Sessions []SessionPlan
	Notes    []string // about the whole: imported directories, mapped owners
	Notices  []Notice // of the source: to be said before anything starts
}

// What a plan does with a session.
const (
	Create       = "create"
	SkipExisting = "skip-existing"
	Refuse       = "refuse"
)

// SessionPlan is one archived session.
type SessionPlan struct {
	Name     string // as archived
	HostName string // as the host can hold it
	Action   string // Create, SkipExisting, Fill or Refuse
	Reason   string
	Panes    []PanePlan
	Fillable int // of SkipExisting: how many of its idle shells Options.Fill would put agents into

	aside  *host.Aside         // what makes room for it
	create *host.CreateSession // of Create; Apply fills in what only it knows
}

// PanePlan is one archived pane. Panes stand in the order of the archive.
type PanePlan struct {
	Window       int // the window's index, as archived; its position where the archive has none
	Index        int // position in its window
	Verdict      Verdict
	Reason       string
	Hint         string
	Record       *metadata.AgentSession
	Command      string // as archived: shown, never run
	Title        string
	Dir          string // where it starts; for an agent, where it was launched
	Previous     []string
	NotPreserved []string
	Unconfirmed  string // since when its record is not proven, and why; empty where it is
	Start        host.Start
	Program      []string // of ProgramPane: what it runs
	Would        Verdict  // of AskPane and ManualPane: what it would be once it is asked

	key          AgentKey
	after        string               // what its template says of exit 0, also where it waits first
	window, pane int                  // place in the session's create
	facts        metadata.LaunchFacts // to be stored; the pane key may still be wanting
	store        bool                 // facts are stored
	carry        bool                 // the record is stored
	text         *archive.Text        // what stood there
	agent        *agentStart          // of Resume and FreshSameID
	fill         *target              // of a pane that is there, and is replaced
	name         *metadata.Agent      // the live identity to store
	archived     metadata.LaunchFacts // of an agent that starts: as they were archived
}

// agentStart is what Apply needs to claim the identity and to build the guard.
type agentStart struct {
	template *integrations.Template
	identity metadata.Identity
	expect   owner.Presence
	fallback string // a directory that exists, should this pane become a placeholder after all
}

// UnknownSessionError is a usage error: --only named what the archive does not hold.
type UnknownSessionError struct {
	Unknown []string
	Have    []string
}

func (e *UnknownSessionError) Error() string {
	return fmt.Sprintf("no session %s in the archive, which holds %s", quoted(e.Unknown), quoted(e.Have))
}

func quoted(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(q, ", ")
}

// UnknownPaneError is a usage error: --pane named what the archive does not hold.
type UnknownPaneError struct{ Unknown []string }

func (e *UnknownPaneError) Error() string {
	return fmt.Sprintf("no pane %s in the archive", quoted(e.Unknown))
}

// named reports whether Options.Panes names a pane; number is its window's.
func (o Options) named(s *archive.Session, number, index int, p *archive.Pane) bool {
	return p.Agent != nil && p.Agent.Key != "" && slices.Contains(o.Panes, p.Agent.Key) ||
		slices.Contains(o.Panes, paneName(s, number, index))
}

func paneName(s *archive.Session, number, index int) string {
	return fmt.Sprintf("%s:%d.%d", s.Name, number, index)
}

// eachNumbered goes through a session's panes, by what names them: their window's number, and their
// place in it.
func eachNumbered(s *archive.Session, do func(number, index int, p *archive.Pane)) {
	number := numbering(s)
	for w := range s.Windows {
		for i := range s.Windows[w].Panes {
			do(number[w], i, &s.Windows[w].Panes[i])
		}
	}
}

// ofPanes are the sessions that hold what Options.Panes names.
func ofPanes(a *archive.Archive, o Options) ([]*archive.Session, error) {
	var out []*archive.Session
	unknown := slices.Clone(o.Panes)
	for i := range a.Sessions {
		s := &a.Sessions[i]
		found := false
		eachNumbered(s, func(number, index int, p *archive.Pane) {
			if !o.named(s, number, index, p) {
				return
			}
			found = true
			unknown = slices.DeleteFunc(unknown, func(n string) bool {
				return n == paneName(s, number, index) || p.Agent != nil && n == p.Agent.Key
			})
		})
		if found && (len(o.Only) == 0 || slices.Contains(o.Only, s.Name)) {
			out = append(out, s)
		}
	}
	if len(unknown) > 0 {
		return nil, &UnknownPaneError{unknown}
	}
	return out, nil
}

// selected returns the sessions that the options ask for, in the order of the archive.
func selected(a *archive.Archive, o Options) ([]*archive.Session, error) {
	if len(o.Panes) > 0 {
		return ofPanes(a, o)
	}
	var out []*archive.Session
	have := make([]string, 0, len(a.Sessions))
	for i := range a.Sessions {
		s := &a.Sessions[i]
		have = append(have, s.Name)
		if len(o.Only) == 0 || slices.Contains(o.Only, s.Name) {
			out = append(out, s)
		}
	}
	var unknown []string
	for _, n := range o.Only {
		if !slices.Contains(have, n) && !slices.Contains(unknown, n) {
			unknown = append(unknown, n)
		}
	}
	if unknown != nil {
		return nil, &UnknownSessionError{Unknown: unknown, Have: have}
	}
	return out, nil
}
