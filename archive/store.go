package archive

import (
	"errors"
	"time"
)

var errNotBuilt = errors.New("not built yet")

// Store is one server's history: immutable generation files below Dir, written durably under a
// lock, named so that order is their name.
type Store struct {
	Dir string // $XDG_STATE_HOME/phux-agent/archives/<server>
	Now func() time.Time
}

// State of a generation, derived from it, its predecessors and the decisions beside it.
type State string

const (
	Good     State = "good"
	HeldNone State = "held: empty"
	HeldFew  State = "held: shrunk"
	Corrupt  State = "corrupt"
)

// Entry is one generation as listed.
type Entry struct {
	Generation uint64
	Path       string
	Digest     string // sha256:…
	Size       int64
	SavedAt    time.Time
	State      State
	Reason     string
	Name       string // of a named save, else empty
	Archive    *Archive
	Err        error
}

// Saved is what Save did.
type Saved struct {
	Entry
	Unchanged bool // equal to the last but for times, number and prev: nothing was written
}

// SaveOptions of one save.
type SaveOptions struct {
	Name   string // a named save is never pruned
	Accept bool   // write the decision that makes a held generation good
}

// Save numbers the archive, links it to its predecessor, carries on what the last host life
// held and this one does not have yet (pending), and writes it durably. base is the generation
// that the caller built on; a writer that is behind is refused with ErrStaleWriter.
func (s Store) Save(a *Archive, o SaveOptions) (Saved, error) { return Saved{}, errNotBuilt }

// List returns every generation, newest first, with its state.
func (s Store) List() ([]Entry, error) { return nil, errNotBuilt }

// Choice is the generation that a restore would use.
type Choice struct {
	Entry
	Newer []Entry // held or corrupt ones above it, to be named aloud
}

// Best picks the newest good generation. ErrNone where there is none.
func (s Store) Best() (Choice, error) { return Choice{}, errNotBuilt }

// Get returns one generation by number; Named by name.
func (s Store) Get(n uint64) (Entry, error)      { return Entry{}, errNotBuilt }
func (s Store) Named(name string) (Entry, error) { return Entry{}, errNotBuilt }

// Export writes an archive to a file of the user's choosing and remembers its digest as own.
func (s Store) Export(a *Archive, path string) (Saved, error) { return Saved{}, errNotBuilt }

// Own reports whether this machine's store wrote these exact bytes.
func (s Store) Own(b []byte) bool { return false }

// Accept, Decline and Forget write decisions beside the generations; Remove deletes one
// generation (never the last good one of a host life without force).
func (s Store) Accept(n uint64) error       { return errNotBuilt }
func (s Store) Decline(n uint64) error      { return errNotBuilt }
func (s Store) Forget(session string) error { return errNotBuilt }
func (s Store) Remove(n uint64) error       { return errNotBuilt }

// Prune applies age and number; it never removes a named one or a host life's last good.
func (s Store) Prune(keep int, age time.Duration) (removed []Entry, err error) {
	return nil, errNotBuilt
}

// Lock is held by a restore for its whole run, so that autosave is silent and a second restore
// is told who runs. unlock must be called.
func (s Store) Lock(what string) (unlock func(), err error) { return nil, errNotBuilt }
