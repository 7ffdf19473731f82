// Package launch establishes an identity, claims it, and spawns a pane with its record in one
// host transaction. Create and resume are two operations, and cleanup removes only what this
// very call made.
//
// Prepare decides and Do acts; Here is Do for the calling terminal. Become is the other end:
// what runs in a pane between its birth and its agent.
package launch

import (
	"context"
	"time"

	"github.com/phux-agent/phux-agent/config"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
	"github.com/phux-agent/phux-agent/plugin"
)

// Env is where a launch works.
type Env struct {
	Host host.Host // nil only for Prepare, and for a Here that will refuse
	// Info of the host, where the caller has asked already; nil asks again.
	Info     *host.Info
	Registry *plugin.Registry
	Config   *config.Config
	Claims   owner.Claims
	Getenv   integrations.Env // the caller's environment
	Now      func() time.Time
	// Bound is called by Here when the record is bound and the identity claimed, just before the
	// exec: the last moment at which this process can say or save anything. May be nil.
	Bound func(context.Context)

	// For tests: nil means the real thing.
	find func(*integrations.Template, metadata.Identity, integrations.Env) (owner.Live, error)
	mint func(*integrations.Template) (string, error)
	exec func(s host.Start, environ []string, nonce string) error
}

func (e Env) getenv(name string) (string, bool) {
	if e.Getenv == nil {
		return "", false
	}
	return e.Getenv(name)
}

// Request is one launch.
type Request struct {
	Integration string
	Resume      string // native id; empty creates
	Profile     string
	Dir         string // absolute, as the caller spells it: a symlinked spelling is kept
	Extra       []string
	// Dry asks for a draft that nobody will act on: a mint_command is not run, and said.
	Dry bool
	// Where.
	Here       bool
	Place      host.Place
	Session    string        // created where missing
	Target     host.Terminal // for splits
	Background bool
}

// What a launch did.
const (
	Created = "created"
	Resumed = "resumed"
	Adopted = "adopted" // of the adopt verb
)

// Draft is what a launch would do: data. Print shows it, Do does it.
type Draft struct {
	Owner        plugin.Owner
	Action       string // "created" | "resumed"
	Record       *metadata.AgentSession
	Facts        metadata.LaunchFacts
	Start        host.Start // without its guard, which Do adds with the claim
	Restorable   bool
	Reason       string // why not, and how it will become so
	NotPreserved []string
	Notes        []string // e.g. an inherited native_env was ignored

	expect owner.Presence // what the probe said
}

// Result is what was observed after a launch.
type Result struct {
	Action       string                 `json:"action"`
	Terminal     string                 `json:"terminal"`
	Session      string                 `json:"session"`
	Record       *metadata.AgentSession `json:"record"`
	Restorable   bool                   `json:"restorable"`
	Reason       string                 `json:"reason"`
	NotPreserved []string               `json:"not_preserved"`
}
