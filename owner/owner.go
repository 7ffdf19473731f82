// Package owner knows who runs an identity on this machine: claims, the observation of
// processes by what templates declare, transcript probes, and liveness.
//
// Proof is a pid and its start time, an open file, a file that names the pid. Environment,
// directory, focus, title and newest file are none.
package owner

import (
	"context"
	"errors"
	"time"

	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/metadata"
)

var errNotBuilt = errors.New("not built yet")

// Process is a pid that cannot be mistaken for a later one.
type Process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks since boot, field 22 of /proc/PID/stat
}

// Place says where an owner is, for people and for `already-live`.
type Place struct {
	Host     string `json:"host,omitzero"`     // Info.Server
	Terminal string `json:"terminal,omitzero"` // "%3"
	PaneKey  string `json:"pane_key,omitzero"`
}

// Claim is the content of one claim file: who runs an identity now.
type Claim struct {
	Identity metadata.Identity `json:"identity"`
	Process  Process           `json:"process"`
	Session  int               `json:"session"` // process session id, to find survivors
	Boot     string            `json:"boot"`
	Place    Place             `json:"place"`
	Epoch    uint64            `json:"epoch"`  // grows with each claim of the identity
	Ticket   string            `json:"ticket"` // random; who holds it may take the claim over
	Reserved bool              `json:"reserved"`
	At       time.Time         `json:"at"`
}

// Claims is the directory of claims: below the runtime directory, so that a reboot clears it.
type Claims struct{ Dir string }

// ErrLive is wrapped by every refusal because the identity is owned.
var ErrLive = errors.New("the identity is live")

// LiveError says who owns it.
type LiveError struct{ Live Live }

func (e *LiveError) Error() string { return "" }
func (e *LiveError) Unwrap() error { return ErrLive }

// Reserve claims an identity for the calling process until a starting pane takes it over with
// the ticket. A *LiveError where it is owned by a live process (or by an earlier reservation
// whose process lives).
func (c Claims) Reserve(id metadata.Identity, place Place) (Claim, error) {
	return Claim{}, errNotBuilt
}

// Release gives a reservation back, if the ticket still holds it.
func (c Claims) Release(claim Claim) error { return errNotBuilt }

// Take makes the calling process the owner: by ticket where there is one, else afresh, under
// the same rules as Reserve. The process then execs the agent, and pid and start time stay.
func (c Claims) Take(id metadata.Identity, ticket string, place Place) (Claim, error) {
	return Claim{}, errNotBuilt
}

// Rebuild writes the claim of a process that runs the identity but lost its claim (a cleared
// runtime directory): the pane's birth token and its live pid are the proof.
func (c Claims) Rebuild(id metadata.Identity, p Process, place Place) error { return errNotBuilt }

// List returns every readable claim.
func (c Claims) List() ([]Claim, error) { return nil, errNotBuilt }

// Presence answers whether a conversation exists. Never a way to choose one.
type Presence string

const (
	Present    Presence = "present"
	Absent     Presence = "absent"
	CannotTell Presence = "cannot tell"
)

// Probe looks for the id's conversation in the template's transcript store, as the pane's
// environment names it. detail says what was looked at, with size and time for a person.
func Probe(t *integrations.Template, id string, env integrations.Env) (p Presence, detail string) {
	return CannotTell, ""
}

// Store fingerprints the expanded transcript root, so that a changed configuration directory
// is seen. Empty where the template has no transcript.
func Store(t *integrations.Template, env integrations.Env) string { return "" }

// Answer is what an observation proved.
type Answer struct {
	Kind   AnswerKind
	ID     string // for Confirmed
	Reason string // for Unknown
	By     string // the observer that proved it
}

type AnswerKind string

const (
	Confirmed AnswerKind = "confirmed"
	Gone      AnswerKind = "ended"
	Unknown   AnswerKind = "unknown"
)

// Observer reads processes. One Observer serves one verb: it reads the process table once.
type Observer struct{}

// NewObserver reads the process table.
func NewObserver() (*Observer, error) { return nil, errNotBuilt }

// Observe says which conversation the agent that root became (or started) has open now.
func (o *Observer) Observe(t *integrations.Template, root Process) Answer {
	return Answer{Kind: Unknown}
}

// Live is who runs an identity.
type Live struct {
	Kind    LiveKind
	Process Process
	Place   Place
	Command string // for people, bounded
}

type LiveKind string

const (
	NotLive   LiveKind = ""
	Claimed   LiveKind = "claimed"   // claim alive
	Orphan    LiveKind = "orphan"    // claim dead, its process session has survivors
	Registry  LiveKind = "registry"  // the provider's own registry names a live process
	Suspected LiveKind = "suspected" // an argv carries the id
	Starting  LiveKind = "starting"  // reserved by a living launch or restore
)

// Find decides in order: claim alive; survivors of a dead claim; the provider's registry;
// an argv that carries the id.
func (o *Observer) Find(c Claims, t *integrations.Template, id metadata.Identity, env integrations.Env) Live {
	return Live{}
}

// Reap ends an orphan (SIGTERM to every survivor, then SIGKILL after the grace), and refuses
// to touch anything that is not proven to be one.
func (o *Observer) Reap(ctx context.Context, c Claims, t *integrations.Template, id metadata.Identity, grace time.Duration) ([]Process, error) {
	return nil, errNotBuilt
}

// Guard is what a starting pane must prove and claim just before it becomes the agent. It is
// carried in host.Start.Guard.
type Guard struct {
	Identity metadata.Identity `json:"identity"`
	Ticket   string            `json:"ticket,omitzero"`
	Place    Place             `json:"place,omitzero"`
	Claims   string            `json:"claims"` // directory
	// Expect is what the plan's probe said; the gate probes again and refuses if it flipped.
	Expect Presence `json:"expect,omitzero"`
	Root   string   `json:"root,omitzero"` // the template's transcript declaration, expanded later in the pane's environment
	Paths  []string `json:"paths,omitempty"`
	HeadID string   `json:"head_id,omitzero"`
	Has    string   `json:"has,omitzero"`
}

// NewGuard builds the guard for a template and an id.
func NewGuard(t *integrations.Template, id metadata.Identity, ticket string, place Place, c Claims, expect Presence) Guard {
	return Guard{}
}

// Encode and DecodeGuard carry a guard through a payload.
func (g Guard) Encode() ([]byte, error)   { return nil, errNotBuilt }
func DecodeGuard(b []byte) (Guard, error) { return Guard{}, errNotBuilt }

// Pass proves and claims, in the process that is about to exec the agent.
func (g Guard) Pass(env integrations.Env) error { return errNotBuilt }
