package host

import (
	"context"
	"fmt"
)

// Namer is what a host offers whose session names are narrower than the ones that other hosts,
// or other versions of it, can hold.
type Namer interface {
	// SessionName returns the nearest name that this host can hold, which is the name itself
	// where it can hold it byte for byte. It must not depend on which sessions exist.
	SessionName(name string) string
}

// Labeler is what a host offers that can show a short text of ours in its own status line.
type Labeler interface {
	// Label replaces the text, which the host shows as it is: one line without controls. It makes
	// no terminal and starts no server: ErrNoServer where none runs.
	Label(ctx context.Context, text string) error
}

// Environer is what a host may offer: the environment that its next pane would start with,
// before anything of ours is laid over it. A restore looks for conversations as that pane
// would; without it, or where no server runs, the caller's own environment stands in, and the
// guard in the pane has the last word.
type Environer interface {
	// Environ returns KEY=VALUE pairs, or ErrNoServer.
	Environ(ctx context.Context) ([]string, error)
}

// Historian is what a host offers that remembers what stood on its terminals.
type Historian interface {
	// History returns, of each terminal that is there, its screen and at most so many lines above it
	// as one text with its looks as SGR sequences; a program's full screen is left out, and
	// what stands below it is in. As the host says it: whoever prints it cleans it (ui.Looks). It asks
	// as few questions as it can.
	History(ctx context.Context, terminals []Terminal, lines int) (map[Terminal]string, error)
}

// Looker is what a host offers whose Info and Snapshot cost one question each, and less
// together.
type Looker interface {
	// ServerName is Info.Server, which is known before the server is asked.
	ServerName() string
	// Look is Info and Snapshot of one life of the server, or ErrNoServer, or ErrChanged.
	Look(ctx context.Context) (Info, *Workspace, error)
}

// Look asks a host for Info and Snapshot of one life of its server: in one question of a Looker.
// Errors are those of Snapshot.
func Look(ctx context.Context, h Host) (Info, *Workspace, error) {
	if l, ok := h.(Looker); ok {
		return l.Look(ctx)
	}
	w, err := h.Snapshot(ctx)
	if err != nil {
		return Info{}, nil, err
	}
	i, err := h.Info(ctx)
	switch {
	case err != nil:
		return Info{}, nil, err
	case !i.Running:
		return Info{}, nil, ErrNoServer
	case i.Instance != w.Instance:
		return Info{}, nil, fmt.Errorf("%w: its server is another one now", ErrChanged)
	}
	return i, w, nil
}
