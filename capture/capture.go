// Package capture turns a live workspace into an archive: one snapshot, the observation of each
// agent's owner, and the durability of each conversation.
//
// A record changes here only on proof from the process that owns the pane: Look first collects
// what was proven of every pane, then decides, so that no report about one pane can take what
// another one holds. What is not proven stays as it was, and is said to be unconfirmed.
package capture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/config"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
	"github.com/phux-agent/phux-agent/plugin"
)

// Request names what a capture works with.
type Request struct {
	Host     host.Host
	Registry *plugin.Registry
	Claims   owner.Claims
	Now      func() time.Time
	Machine  string // fingerprint
	// Info of the host, where the caller has asked already; nil asks with the look.
	Info *host.Info
	// Getenv is the caller's environment, in which a conversation is looked for whose process
	// is gone, and only where its store is provably the same. Nil means the process's own.
	Getenv integrations.Env
	// Write lets the capture put proven changes back on the panes (rotation, adoption) by
	// compare-and-swap, and rebuild lost claims. ps does it too; --plan does not.
	Write bool
	// Adopt takes in the agents that somebody started by hand in a shell, where what the agent
	// keeps proves which conversation it has open.
	Adopt bool
	// Programs may run again after a restore: of a pane that runs one, the arguments are saved.
	Programs map[string]config.Program
	// Auto: nobody asked for this save. What ended within archive.ShutdownTime may have been ended by
	// a shutdown, and is archived as failed: a restore brings it back. A later save knows better.
	Auto bool

	proofs proofs // for tests: nil means this machine's processes
}

// The states of a pane.
const (
	Running  = "running"  // its agent runs
	Ended    = "ended"    // its agent ended by itself; a shell may stand there
	Exited   = "exited"   // its agent failed, or nobody knows how it ended
	Replaced = "replaced" // somebody put another program into the pane
	Pending  = "pending"  // a placeholder: the record waits to be restored
	Shell    = "shell"    // no agent of ours
	Program  = "program"  // "
)

// The durability of a conversation.
const (
	Present       = "present"
	NeverPrompted = "never-prompted" // nothing of it is in its store now
	Unknown       = "unknown"
)

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
	Durability string // "present" | "never-prompted" | "unknown"; empty without a record
	Restorable bool
	Reason     string        // in words; empty where there is nothing to say
	Changed    string        // what this capture changed on the pane: "adopted", "rotated from X"
	Err        error         // a record that was left out
	Owner      owner.Process // its agent, while it runs
	Title      string
	Command    string // name of the foreground program
}

// attempts bounds how often a look starts again because someone else changed a record meanwhile.
const attempts = 3

// Look observes every pane and returns them in order, with the snapshot they came from. A pane
// that several sessions show stands once, with the session that an archive saves it with.
//
// Errors are the host's: ErrNoServer, ErrChanged. A pane that cannot be understood is no error
// of the look; it says so itself.
func Look(ctx context.Context, r Request) (*host.Workspace, []Pane, error) {
	l, err := look(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	return l.workspace, l.flat(), nil
}

// Capture is Look and then the archive of it, without number and predecessor, which the store
// gives. Panes whose record was left out have Err set.
func Capture(ctx context.Context, r Request) (a *archive.Archive, panes []Pane, err error) {
	l, err := look(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	a, err = l.archive(ctx)
	if err != nil {
		return nil, nil, err
	}
	return a, l.flat(), nil
}

func look(ctx context.Context, r Request) (*view, error) {
	if r.Now == nil {
		r.Now = time.Now
	}
	if r.Getenv == nil {
		r.Getenv = os.LookupEnv
	}
	for n := 1; ; n++ {
		w, info, err := r.see(ctx)
		if err != nil {
			return nil, fmt.Errorf("look at the workspace: %w", err)
		}
		l := newView(r, w)
		l.info = info
		if l.proofs == nil {
			l.proofs = newMachine(r.Now)
		}
		l.observe()
		l.decide()
		err = l.write(ctx, n == attempts)
		if errors.Is(err, host.ErrConflict) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look at the workspace: %w", err)
		}
		l.conclude()
		if l.Write {
			l.claim(ctx)
			l.renew(ctx)
			l.clear(ctx)
		}
		return l, nil
	}
}

// see is the snapshot with the host's Info: the caller's, or that of the very look where both are
// one question. Else it is nil, and asked for where it is wanted.
func (r *Request) see(ctx context.Context) (*host.Workspace, *host.Info, error) {
	if _, one := r.Host.(host.Looker); !one || r.Info != nil {
		w, err := r.Host.Snapshot(ctx)
		return w, r.Info, err
	}
	i, w, err := host.Look(ctx, r.Host)
	return w, &i, err
}
