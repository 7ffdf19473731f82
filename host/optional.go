package host

import "context"

// Namer is what a host offers whose session names are narrower than the ones that other hosts,
// or other versions of it, can hold.
type Namer interface {
	// SessionName returns the nearest name that this host can hold, which is the name itself
	// where it can hold it byte for byte. It must not depend on which sessions exist.
	SessionName(name string) string
}

// Environer is what a host may offer: the environment that its next pane would start with,
// before anything of ours is laid over it. A restore looks for conversations as that pane
// would; without it, or where no server runs, the caller's own environment stands in, and the
// guard in the pane has the last word.
type Environer interface {
	// Environ returns KEY=VALUE pairs, or ErrNoServer.
	Environ(ctx context.Context) ([]string, error)
}
