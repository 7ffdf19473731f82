package owner

import (
	"errors"
	"fmt"

	"github.com/phux-agent/phux-agent/metadata"
)

var (
	// ErrLive is wrapped by every refusal because the identity is owned.
	ErrLive = errors.New("the identity is live")
	// ErrTicket is wrapped where a reservation is not held any more: it was given back, or another
	// launch or restore has claimed the identity since. The pane that carries the ticket has to be
	// resumed anew.
	ErrTicket = errors.New("the reservation is not held any more")
	// ErrNotOrphan is wrapped by every refusal to end a process that is not proven an orphan.
	ErrNotOrphan = errors.New("not an orphan")
	// ErrFlipped is wrapped where a conversation came or went between the plan and the start.
	ErrFlipped = errors.New("the conversation is not as it was planned")
	// ErrDirectory is wrapped where the directory of claims cannot be trusted with them.
	ErrDirectory = errors.New("the runtime directory is not private")
)

// LiveError says who owns it.
type LiveError struct {
	Identity metadata.Identity
	Live     Live
}

func (e *LiveError) Error() string { return "the identity is live: " + e.Live.String() }
func (e *LiveError) Unwrap() error { return ErrLive }

// NotOrphanError says why a process was not ended.
type NotOrphanError struct{ Live Live }

func (e *NotOrphanError) Error() string { return "not an orphan: " + e.Live.String() }
func (e *NotOrphanError) Unwrap() error { return ErrNotOrphan }

// FlippedError says what the plan saw and what the gate sees.
type FlippedError struct {
	Expect, Now Presence
	Detail      string
}

func (e *FlippedError) Error() string {
	return fmt.Sprintf("the conversation was %s when this was planned, and is %s now (%s)", e.Expect, e.Now, e.Detail)
}
func (e *FlippedError) Unwrap() error { return ErrFlipped }

// DirectoryError names a directory that others could write to or put in our place.
type DirectoryError struct{ Path, Reason string }

func (e *DirectoryError) Error() string { return fmt.Sprintf("%s: %s", e.Path, e.Reason) }
func (e *DirectoryError) Unwrap() error { return ErrDirectory }
