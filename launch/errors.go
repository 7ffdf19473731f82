package launch

import (
	"errors"
	"fmt"

	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/metadata"
)

// DirError refuses a directory that the agent cannot be started in. Verdict is restore's word
// for it: "cwd-missing" or "cwd-unreadable".
type DirError struct {
	Dir, Verdict string
	Err          error
}

func (e *DirError) Error() string {
	return fmt.Sprintf("enter directory %q: %s: %v", e.Dir, e.Verdict, e.Err)
}
func (e *DirError) Unwrap() error { return e.Err }

// ProfileError names a profile that the configuration does not have.
type ProfileError struct{ Profile, Integration string }

func (e *ProfileError) Error() string {
	return fmt.Sprintf("use profile %q for %q: profile-missing: no [profiles.%s.%s] in the configuration",
		e.Profile, e.Integration, e.Profile, e.Integration)
}

// ProgramError names an agent whose program is not on the PATH that was used.
type ProgramError struct {
	Program, Path string
	Err           error
}

func (e *ProgramError) Error() string {
	return fmt.Sprintf("find program %q: binary-missing: %v", e.Program, e.Err)
}
func (e *ProgramError) Unwrap() error { return e.Err }

// RequirementError is a [[require]] of the template that does not hold outside.
type RequirementError struct {
	Integration string
	Require     integrations.Require
	Detail      string // what was found
}

func (e *RequirementError) Error() string {
	s := fmt.Sprintf("launch %q: requirement-unmet: %s", e.Integration, e.Detail)
	if e.Require.Consequence != "" {
		s += "; else " + e.Require.Consequence
	}
	return s
}

// ExistsError refuses to create an identity whose conversation exists: create is not resume.
type ExistsError struct {
	Identity metadata.Identity
	Detail   string // what was seen
}

func (e *ExistsError) Error() string {
	return fmt.Sprintf("create %q: its conversation exists: %s", e.Identity, e.Detail)
}

// AbsentError refuses to resume an identity whose conversation is not there.
type AbsentError struct {
	Identity metadata.Identity
	Detail   string // where was looked
	// Doubt: the probe could not tell, and this agent shows a live empty prompt for an id that
	// it does not know, so it is never resumed on doubt.
	Doubt bool
}

func (e *AbsentError) Error() string {
	if e.Doubt {
		return fmt.Sprintf("resume %q: unknown-blank: whether its conversation exists cannot be told (%s), and this agent opens an empty one for an unknown id",
			e.Identity, e.Detail)
	}
	return fmt.Sprintf("resume %q: transcript-missing: %s", e.Identity, e.Detail)
}

// NotRestorableError refuses --resume for an integration that cannot resume a native id.
type NotRestorableError struct {
	Integration string
	Err         error
}

func (e *NotRestorableError) Error() string {
	return fmt.Sprintf("resume an identity of %q: not-restorable: %v", e.Integration, e.Err)
}
func (e *NotRestorableError) Unwrap() error { return e.Err }

// IDError is a native id that the template's pattern, or the record's bounds, refuse.
type IDError struct {
	Integration, ID string
	Err             error
}

func (e *IDError) Error() string {
	return fmt.Sprintf("use id %q for %q: %v", e.ID, e.Integration, e.Err)
}
func (e *IDError) Unwrap() error { return e.Err }

// MintError is a mint_command that did not print exactly one id. Nothing was created here; the
// agent's own store may hold what the command made.
type MintError struct {
	Program string
	Stderr  string // its last words, bounded
	Err     error
}

func (e *MintError) Error() string {
	s := fmt.Sprintf("mint an identity with %q: %v", e.Program, e.Err)
	if e.Stderr != "" {
		s += ": " + e.Stderr
	}
	return s
}
func (e *MintError) Unwrap() error { return e.Err }

// StartError says that the pane was made and its agent did not start. Left is set where the pane
// could not be removed again.
type StartError struct {
	Terminal string
	Err      error
	Left     error
}

func (e *StartError) Error() string {
	return fmt.Sprintf("start the agent in %s: %v%s", e.Terminal, e.Err, left(e.Left))
}
func (e *StartError) Unwrap() error { return e.Err }

// ReadBackError says that the host did not hold the record's exact bytes after the spawn. The
// pane was removed, or Left says why not.
type ReadBackError struct {
	Terminal string
	Key      metadata.Key
	Left     error
	Err      error // nil: it was read, and it differs
}

func (e *ReadBackError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("store the record of %s: %v%s", e.Terminal, e.Err, left(e.Left))
	}
	return fmt.Sprintf("read back %s of %s: the host holds other bytes than were stored%s", e.Key, e.Terminal, left(e.Left))
}
func (e *ReadBackError) Unwrap() error { return e.Err }

func left(err error) string {
	if err == nil {
		return "; the pane was removed"
	}
	return fmt.Sprintf("; the pane could not be removed: %v", err)
}

// ErrHere is wrapped by every refusal of --here.
var ErrHere = errors.New("the calling terminal cannot take the agent")
