// Package restore brings a workspace back: Plan is pure (archive, host view and facts become one
// verdict per pane), Apply does what the plan says and reports what it observed.
package restore

import (
	"context"
	"errors"
	"time"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/config"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
	"github.com/phux-agent/phux-agent/plugin"
)

var errNotBuilt = errors.New("not built yet")

// Verdict is one word of design §11.
type Verdict string

// What will happen.
const (
	Resume      Verdict = "resume"
	FreshSameID Verdict = "fresh-same-id"
	ShellPane   Verdict = "shell"
	EndedPane   Verdict = "ended"
)

// Authority: the session is not created. The first six are plugin.Reason's words.
const (
	NotRestorable     Verdict = "not-restorable"
	InvalidRecord     Verdict = "invalid-record"
	ForeignMachine    Verdict = "foreign-machine"
	HostUnsupported   Verdict = "host-unsupported"
	DuplicateIdentity Verdict = "duplicate-identity"
)

// Circumstance: the session is created, the pane is a placeholder.
const (
	CwdMissing        Verdict = "cwd-missing"
	CwdUnreadable     Verdict = "cwd-unreadable"
	BinaryMissing     Verdict = "binary-missing"
	TranscriptMissing Verdict = "transcript-missing"
	NeverDurable      Verdict = "never-durable"
	AlreadyLive       Verdict = "already-live"
	RequirementUnmet  Verdict = "requirement-unmet"
	ProfileMissing    Verdict = "profile-missing"
	UnknownBlank      Verdict = "unknown-blank"
)

// Options of one restore.
type Options struct {
	Only     []string
	Strict   bool
	Import   bool
	FromHost bool
	Owners   map[string]string // OLD -> NEW plugin id, for this run
	NoWait   bool
}

// Env is where a restore works.
type Env struct {
	Host     host.Host
	Registry *plugin.Registry
	Config   *config.Config
	Claims   owner.Claims
	Getenv   integrations.Env
	Now      func() time.Time
	Machine  string
}

// Source is the archive and where it came from.
type Source struct {
	Archive *archive.Archive
	Path    string
	Own     bool
}

// Plan is what a restore would do. Data; refused by Apply when the host has moved on.
type Plan struct {
	Source   Source
	Options  Options
	Host     host.Info
	Sessions []SessionPlan
	Notes    []string
}

type SessionPlan struct {
	Name   string
	Action string // "create" | "skip-existing" | "refuse"
	Reason string
	Panes  []PanePlan
	create *host.CreateSession
}

type PanePlan struct {
	Window  int
	Index   int
	Verdict Verdict
	Reason  string
	Hint    string
	Record  *metadata.AgentSession
	Command string // as archived: shown, never run
	Start   host.Start
}

// Gather collects what Plan must know: view, resolutions, probes, liveness, directories.
// Plan itself is pure.
func Gather(ctx context.Context, e Env, src Source, o Options) (*Facts, error) {
	return nil, errNotBuilt
}

// Facts is what Gather found.
type Facts struct{}

// Make is the pure function of design §11.
func Make(src Source, f *Facts, o Options) (*Plan, error) { return nil, errNotBuilt }

// Report is what Apply observed; it is the plan with results.
type Report struct {
	Source   string          `json:"source"`
	Sessions []SessionReport `json:"sessions"`
}

type SessionReport struct {
	Name   string       `json:"name"`
	Action string       `json:"action"`
	Reason string       `json:"reason"`
	Panes  []PaneReport `json:"panes"`
}

type PaneReport struct {
	Window  int                    `json:"window"`
	Index   int                    `json:"index"`
	Verdict Verdict                `json:"verdict"`
	Reason  string                 `json:"reason"`
	Hint    string                 `json:"hint"`
	Record  *metadata.AgentSession `json:"record"`
	Result  *string                `json:"result"` // "running" | "exited" | "placeholder" | "shell" | null
}

// Apply creates each missing session whole, watches every agent until it runs or exits, and
// reports.
func Apply(ctx context.Context, e Env, p *Plan) (*Report, error) { return nil, errNotBuilt }

// Dry is the report of a plan that was not applied.
func (p *Plan) Dry() *Report { return nil }

// Outcome is what exit code a report deserves: Done, Partial or Refused.
type Outcome int

const (
	Done Outcome = iota
	Partial
	Refused
)

func (r *Report) Outcome() Outcome { return Done }

// One re-resolves and plans a single pane from its current record: a respawned pane and a
// placeholder's Enter. The start is either the agent or a placeholder that says why.
func One(ctx context.Context, e Env, rec metadata.AgentSession, facts metadata.LaunchFacts, self owner.Place) (host.Start, PanePlan, error) {
	return host.Start{}, PanePlan{}, errNotBuilt
}
