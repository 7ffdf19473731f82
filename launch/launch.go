// Package launch establishes an identity, claims it, and spawns a pane with its record in one
// host transaction. Create and resume are two operations, and cleanup removes only what this
// very call made.
package launch

import (
	"context"
	"errors"
	"time"

	"github.com/phux-agent/phux-agent/config"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
	"github.com/phux-agent/phux-agent/plugin"
)

var errNotBuilt = errors.New("not built yet")

// Env is where a launch works.
type Env struct {
	Host     host.Host
	Registry *plugin.Registry
	Config   *config.Config
	Claims   owner.Claims
	Getenv   integrations.Env // the caller's environment
	Now      func() time.Time
}

// Request is one launch.
type Request struct {
	Integration string
	Resume      string // native id; empty creates
	Profile     string
	Dir         string // absolute
	Extra       []string
	// Where.
	Here       bool
	Place      host.Place
	Session    string        // created where missing
	Target     host.Terminal // for splits
	Background bool
}

// Draft is what a launch would do: data. Print shows it, Do does it.
type Draft struct {
	Owner        plugin.Owner
	Action       string // "created" | "resumed"
	Record       *metadata.AgentSession
	Facts        metadata.LaunchFacts
	Start        host.Start
	Restorable   bool
	Reason       string // why not, and how it will become so
	NotPreserved []string
	Notes        []string // e.g. an inherited native_env was ignored
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

// Prepare resolves, checks every refusal, mints or takes the identity, and builds the start.
// Nothing outside this process changes, except that mint_command runs (bounded, in Dir).
func Prepare(ctx context.Context, e Env, r Request) (*Draft, error) { return nil, errNotBuilt }

// Do claims, spawns and reads back; on failure it undoes exactly what it did.
func Do(ctx context.Context, e Env, r Request, d *Draft) (*Result, error) { return nil, errNotBuilt }
