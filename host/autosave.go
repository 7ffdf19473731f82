package host

import (
	"context"
	"strings"
	"time"
)

// Autosaver is what a host offers that has a program of ours called when what it holds changes,
// and from time to time without a change.
type Autosaver interface {
	// SetAutosave turns it on, or sets it anew; what stands in its place and is not ours is a
	// *TakenError, and nothing is changed. ErrNoServer where none runs.
	SetAutosave(ctx context.Context, a Autosave) error
	// StopAutosave takes away exactly what SetAutosave made, and remembers for this life of the
	// server that it was turned off. A call that was due already may still come, and is told by
	// Tick that it is nobody's any more.
	StopAutosave(ctx context.Context) error
	// AutosaveState says what is there. ErrNoServer where no server runs.
	AutosaveState(ctx context.Context) (AutosaveState, error)
	// Tick is what a call asks first: false where it is of a setting that was replaced or turned
	// off. With a, which a heartbeat gives, the setting is made whole again (a configuration that
	// was read again may have wiped it) and the next heartbeat is armed.
	Tick(ctx context.Context, token string, a *Autosave) (current bool, err error)
	// Again has one call with ChangeTick come so much later, also where nothing changes meanwhile: what
	// came of this one is to be looked at once more. One that is armed already does for both. Of a
	// setting that was replaced or turned off nothing is armed.
	Again(ctx context.Context, token string, after time.Duration) error
}

// Autosave is what is called, and when.
type Autosave struct {
	// Command is the program, absolute, with its words; the host adds two: the token of this
	// setting, and ChangeTick or BeatTick. What it prints and how it ends is nobody's.
	Command []string
	// Debounce is how long after a change the call comes: one for all that changes meanwhile. In
	// whole seconds, at least one.
	Debounce time.Duration
	// Heartbeat is the time between two calls without a change. In whole seconds, at least one.
	Heartbeat time.Duration
}

// Why a call comes.
const (
	ChangeTick = "change"
	BeatTick   = "beat"
)

// AutosaveState is what a server holds of it.
type AutosaveState struct {
	Setting Setting
	Token   string        // of SettingOn
	Program string        // what is called; empty where it is not on
	Wanted  int           // hooks, or what else calls us
	Present int           // of them, those that are in place
	Taken   []string      // what stands where ours belong, and is not ours
	Armed   time.Time     // when a call for a change was armed last; zero where never
	Beat    time.Time     // when the heartbeat was armed last
	Every   time.Duration // between two heartbeats; 0 where that is not known
}

// Setting of a server's autosave.
type Setting string

const (
	SettingOn  Setting = "on"
	SettingOff Setting = "off" // somebody turned it off, in this life of the server
	SettingNo  Setting = ""    // nobody said
)

// TakenError says that what autosave needs is used by somebody else.
type TakenError struct{ What []string }

func (e *TakenError) Error() string {
	return "it is used by somebody else: " + strings.Join(e.What, ", ")
}
