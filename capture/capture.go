// Package capture turns a live workspace into an archive: one snapshot, the observation of each
// agent's owner, and the durability of each conversation.
package capture

import (
	"context"
	"errors"
	"time"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
	"github.com/phux-agent/phux-agent/plugin"
)

var errNotBuilt = errors.New("not built yet")

// Request names what a capture works with.
type Request struct {
	Host     host.Host
	Registry *plugin.Registry
	Claims   owner.Claims
	Now      func() time.Time
	Machine  string // fingerprint
	// Write lets the capture put proven changes back on the panes (rotation, adoption) by
	// compare-and-swap. ps does it too; --plan does not.
	Write bool
}

// Pane is what capture learnt of one pane; ps prints it.
type Pane struct {
	Terminal   host.Terminal
	Session    string
	Window     int
	Index      int
	Cwd        string
	Record     *metadata.AgentSession
	Facts      metadata.LaunchFacts
	Agent      *metadata.Agent
	State      string // "running" | "ended" | "exited" | "replaced" | "pending" | "shell" | "program"
	Durability string
	Restorable bool
	Reason     string // in words; empty where there is nothing to say
	Changed    string // what this capture changed on the pane: "adopted", "rotated from X"
	Err        error  // a record that was left out
}

// Look observes every pane and returns them in order, with the snapshot they came from.
func Look(ctx context.Context, r Request) (*host.Workspace, []Pane, error) {
	return nil, nil, errNotBuilt
}

// Capture is Look and then the archive of it. Left names the panes whose record was left out.
func Capture(ctx context.Context, r Request) (a *archive.Archive, panes []Pane, err error) {
	return nil, nil, errNotBuilt
}
