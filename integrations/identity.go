package integrations

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/phux-agent/phux-agent/metadata"
)

// IDError is the refusal of a native id by a template or by the record's bounds.
type IDError struct {
	Integration string
	ID          string
	Problem     string // empty where Err says it
	Err         error  // a *metadata.BoundError, or nil
}

func (e *IDError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("native id %s of %q: %s", quote(e.ID), e.Integration, bare(e.Err))
	}
	return fmt.Sprintf("native id %s of %q: %s", quote(e.ID), e.Integration, e.Problem)
}

func (e *IDError) Unwrap() error { return e.Err }

// The reasons of Restorable, wrapped.
var (
	ErrNotLaunchable = errors.New("the template has no [launch] command")
	ErrNotRestorable = errors.New("the template resumes no native id")
)

// Restorable returns nil where the template can resume a native id by an external CLI.
func (t *Template) Restorable() error {
	s := t.Identity
	switch {
	case len(t.Launch.Command) == 0:
		return fmt.Errorf("integration %q: %w", t.ID, ErrNotLaunchable)
	case s.Mode != "native-or-phux" || s.Restore != "external-cli" || len(s.ResumeArgs) == 0:
		return fmt.Errorf("integration %q: %w", t.ID, ErrNotRestorable)
	}
	return nil
}

// maxPathID bounds an id that becomes a part of a file's name, which ends at 255 bytes.
const maxPathID = 200

// CheckID checks a native id against the record's bounds, the template's anchored pattern and
// (where the id enters a path) path safety. It is called at every use of an id; the error is
// an *IDError.
func (t *Template) CheckID(id string) error {
	if err := metadata.CheckNativeID("native_id", id); err != nil {
		return &IDError{Integration: t.ID, ID: id, Err: err}
	}
	re, err := compileID(t.Identity.IDPattern)
	if err != nil {
		return &IDError{Integration: t.ID, ID: id, Problem: "the template's id_pattern " + err.Error()}
	}
	if re != nil && !re.MatchString(id) {
		return &IDError{Integration: t.ID, ID: id, Problem: "does not match id_pattern " + quote(t.Identity.IDPattern)}
	}
	if t.idInPath() && !pathSafe(id) {
		return &IDError{Integration: t.ID, ID: id, Problem: `cannot be part of a file name: no / \ * ? [ ] or .., no leading dot, at most ` + fmt.Sprint(maxPathID) + " bytes"}
	}
	return nil
}

func pathSafe(id string) bool {
	return len(id) <= maxPathID && !strings.ContainsAny(id, `/\*?[]`) && !strings.Contains(id, "..") && !strings.HasPrefix(id, ".")
}

// idInPath reports whether the id becomes a part of a path that is looked up.
func (t *Template) idInPath() bool {
	if t.Transcript != nil {
		for _, p := range t.Transcript.Paths {
			if strings.Contains(p, slotIDOpen) {
				return true
			}
		}
	}
	for _, o := range t.Observe {
		if strings.Contains(o.Path, slotIDOpen) {
			return true
		}
	}
	return false
}

// NormalizeID returns the id as the CLI stores it (uuid: lower case), after CheckID.
func (t *Template) NormalizeID(id string) (string, error) {
	if err := t.CheckID(id); err != nil {
		return "", err
	}
	if t.Identity.IDPattern == "uuid" {
		return strings.ToLower(id), nil
	}
	return id, nil
}

// What becomes of an id that was started and never prompted, SessionIdentity.NeverPrompted: the
// same id can be started afresh; or only as long as nothing is in the store under it; or not.
const (
	FreshAgain     = "fresh"
	FreshUntilFile = "fresh-until-file"
	Lost           = "lost"
)

// StartsAgain reports that an id which was started and never prompted can be started afresh. begun
// says that something is in the store under it.
func (t *Template) StartsAgain(begun bool) bool {
	s := t.Identity
	return len(s.FreshArgs) > 0 && (s.NeverPrompted == FreshAgain || s.NeverPrompted == FreshUntilFile && !begun)
}

// CanMint reports whether a fresh identity may be minted: the template has fresh_args, and its
// pattern allows a random lower-case UUID. Without a pattern it does, as in phux.
func (t *Template) CanMint() bool {
	if t.Identity.FreshArgs == nil {
		return false
	}
	const one, other = "00000000-0000-4000-8000-000000000000", "f9e8d7c6-b5a4-4fff-bfff-ffffffffffff"
	return t.CheckID(one) == nil && t.CheckID(other) == nil
}

// Mint returns a fresh lower-case random UUIDv4, or an error where CanMint is false.
func (t *Template) Mint() (string, error) {
	if !t.CanMint() {
		return "", fmt.Errorf("mint an id for %q: the template has no fresh_args over a UUID", t.ID)
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return "", fmt.Errorf("mint an id for %q: %w", t.ID, err)
	}
	if err := t.CheckID(id.String()); err != nil {
		return "", fmt.Errorf("mint: %w", err)
	}
	return id.String(), nil
}

// ParseMinted reads what mint_command or fork_command printed: exactly one line that is an id
// of this template, blank lines aside. Anything else is refused, for guessing which of several
// lines is the id is guessing.
func (t *Template) ParseMinted(output []byte) (string, error) {
	const most = 64 << 10
	if len(output) > most {
		return "", fmt.Errorf("read a minted id of %q: %d bytes printed, want one line", t.ID, len(output))
	}
	var id string
	for _, line := range bytes.Split(output, []byte("\n")) {
		switch word := string(bytes.TrimRight(line, "\r")); {
		case strings.TrimSpace(word) == "":
		case id != "":
			return "", fmt.Errorf("read a minted id of %q: more than one line printed, want the id alone", t.ID)
		default:
			id = word
		}
	}
	if id == "" {
		return "", fmt.Errorf("read a minted id of %q: nothing printed, want the id", t.ID)
	}
	id, err := t.NormalizeID(id)
	if err != nil {
		return "", fmt.Errorf("read a minted id: %w", err)
	}
	return id, nil
}
