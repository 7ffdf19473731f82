package archive

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrNone: there is no good generation.
	ErrNone = errors.New("no good generation")
	// ErrNoGeneration: there is no generation of that number or name.
	ErrNoGeneration = errors.New("no such generation")
	// ErrNoSession: no session of that name waits or could wait.
	ErrNoSession = errors.New("no such session")
	// ErrStaleWriter: somebody saved after the snapshot that this save was built from. Take a new
	// snapshot and save that.
	ErrStaleWriter = errors.New("a newer save was written after this one's snapshot")
	// ErrName: a named save's name is not 1 to 64 of A-Z a-z 0-9 . _ - beginning with a letter or digit.
	ErrName = errors.New("not a name for a save")
)

// VersionError names a schema that this program cannot read. Nothing else of the file was read.
type VersionError struct{ Found int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("schema version %d; this program reads 1 and %d", e.Found, SchemaVersion)
}

// FormatError says where an archive is not one.
type FormatError struct {
	Pointer string // JSON pointer into the file; empty for the whole
	Reason  string
	Err     error
}

func (e *FormatError) Error() string {
	s := e.Reason
	if e.Err != nil {
		if s != "" {
			s += ": "
		}
		s += e.Err.Error()
	}
	if e.Pointer != "" {
		return fmt.Sprintf("at %q: %s", e.Pointer, s)
	}
	return s
}

func (e *FormatError) Unwrap() error { return e.Err }

// BusyError: another process holds the lock.
type BusyError struct {
	Who Who
}

func (e *BusyError) Error() string {
	what := e.Who.What
	if what == "" {
		what = "phux-agent"
	}
	if e.Who.PID == 0 {
		return fmt.Sprintf("another %s is running", what)
	}
	if e.Who.Machine != "" {
		return fmt.Sprintf("another %s is running (pid %d on machine %.12s)", what, e.Who.PID, e.Who.Machine)
	}
	return fmt.Sprintf("another %s is running (pid %d)", what, e.Who.PID)
}

// Who holds a lock, as it says itself: for people, never authority.
type Who struct {
	What    string // "save", "restore", …
	PID     int    // 0 where it did not say
	Machine string // fingerprint, where the store knows it
	Since   time.Time
}

// LastGoodError refuses to remove the last good generation of a host life.
type LastGoodError struct {
	Generation uint64
	Instance   string
}

func (e *LastGoodError) Error() string {
	return fmt.Sprintf("generation %d is the last good one of its server's life", e.Generation)
}
