package archive

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/phux-agent/phux-agent/internal/atomicfile"
)

// Store is one server's history: immutable generation files below Dir, written durably under a
// lock, named so that order is their name. Any number of processes may use one at a time.
//
// Order is the number, never a time: a clock that jumps changes nothing of it.
type Store struct {
	Dir string // $XDG_STATE_HOME/phux-agent/archives/<server>
	Now func() time.Time
	// Uptime is the time since this machine was started, by a clock that nobody sets; 0 where that
	// is not known. Nil asks the system.
	Uptime func() time.Duration

	// Machine is this machine's fingerprint, for a home that several machines share: generations
	// of another one are passed over by Best and named. Empty means that it is not known.
	Machine string
	// PendingAge bounds how long a session is carried on; zero means DefaultPendingAge.
	PendingAge time.Duration
	// OwnDir remembers what was exported; empty means a directory below Dir.
	OwnDir string

	fs atomicfile.FS // nil: the real one
}

// DefaultPendingAge is how long a session is carried on unless the user says otherwise.
const DefaultPendingAge = 30 * 24 * time.Hour

// DefaultWait is how long a save waits for another one.
const DefaultWait = 10 * time.Second

// State of a generation: what it was judged when it was written, and the decisions beside it.
type State string

const (
	Good     State = "good"
	HeldNone State = "held: empty"
	HeldFew  State = "held: shrunk"
	// Settling: a save by itself that lost a conversation a moment ago, as the first save in a
	// shutdown does. It becomes good by itself, and nobody need be told.
	Settling State = "held: settling"
	Corrupt  State = "corrupt"
	// Edited: it can be read, and its bytes are not those that this store wrote. Best passes over
	// it, no save carries anything of it on, and a restore that names it treats it as imported.
	Edited State = "edited"
)

// Words of Held.State.
const (
	heldEmpty    = "empty"
	heldShrunk   = "shrunk"
	heldSettling = "settling"
)

// Entry is one generation as listed.
type Entry struct {
	Generation uint64
	Path       string
	Digest     string // sha256:…
	Size       int64
	SavedAt    time.Time
	State      State
	Reason     string // in words; empty where there is nothing to say
	Name       string // of a named save, else empty
	Archive    *Archive
	Err        error // of a corrupt one
	// Dismissed names the sessions of this archive that the user declined or forgot: they are
	// not to be restored unless asked for.
	Dismissed []string
}

// Saved is what Save did. Archive is what the file holds: pending sessions, number and links
// included.
type Saved struct {
	Entry
	// TextsErr is why the texts could not be kept: the generation is there all the same.
	TextsErr  error
	Unchanged bool // equal to the last but for times, number and prev: nothing was written
}

// Base is a moment in a store's life, to be taken before a snapshot and given to the save of it.
// Comparable; it means nothing else.
type Base struct {
	Generation uint64
	Saves      uint64
}

// SaveOptions of one save.
type SaveOptions struct {
	Name   string // a named save is never pruned
	Accept bool   // write the decision that makes a held generation good
	// Base, where it is not nil, refuses the save with ErrStaleWriter if anybody saved since it
	// was taken: the snapshot may be older than theirs.
	Base *Base
	// Auto: nobody asked for this save. While a restore runs in another process it is refused
	// with a *BusyError, to be silent about.
	Auto bool
	// Declined names pending sessions (by either name) that shall not be carried on. That is
	// remembered, as Decline does.
	Declined []string
	// KeepTexts: Texts, and those of what is carried on, are kept beside the generation, also of a
	// save that finds nothing else changed. Otherwise what is there stays; nil Texts are not known,
	// and what is there of an unchanged generation stays too.
	KeepTexts bool
	Texts     []Text
	// Wait bounds the wait for another save: zero means DefaultWait, less than zero not to wait.
	Wait time.Duration
}

// Save is SaveContext without a context.
func (s Store) Save(a *Archive, o SaveOptions) (Saved, error) {
	return s.SaveContext(context.Background(), a, o)
}

// SaveContext numbers the archive, links it to its predecessor, carries on what the last host
// life held and this one does not have (pending), judges it, and writes it durably. What a
// points to is not changed. a holds live sessions only.
//
// ErrStaleWriter where o.Base is behind, *BusyError where another save keeps the lock for
// longer than o.Wait, *FormatError where the archive cannot be written. Whatever the error, no
// generation that was there has changed.
func (s Store) SaveContext(ctx context.Context, a *Archive, o SaveOptions) (Saved, error) {
	saved, err := s.lockedSave(ctx, a, o)
	if err != nil {
		return Saved{}, fmt.Errorf("save %q: %w", s.Dir, err)
	}
	return saved, nil
}

func (s Store) lockedSave(ctx context.Context, a *Archive, o SaveOptions) (Saved, error) {
	if o.Name != "" && !validName(o.Name) {
		return Saved{}, fmt.Errorf("%w: %q", ErrName, o.Name)
	}
	if err := s.makeDir(s.Dir); err != nil {
		return Saved{}, err
	}
	if o.Auto {
		if who, busy := s.Restoring(); busy && who.PID != os.Getpid() {
			return Saved{}, &BusyError{who}
		}
	}
	unlock, err := s.lock(ctx, lockFile, "save", o.Wait)
	if err != nil {
		return Saved{}, err
	}
	defer unlock()
	return s.save(a, o)
}

// save does the work, with the lock held.
func (s Store) save(a *Archive, o SaveOptions) (Saved, error) {
	l, err := s.list()
	if err != nil {
		return Saved{}, err
	}
	s.sweep(l)
	h := s.history(l, &a.Host)
	m := s.moment()
	now := m.now

	next := *a
	next.Held, next.Content, next.Distinct, next.Counts = nil, "", "", nil
	if next.SavedAt.IsZero() {
		next.SavedAt = now
	}
	c := newCarrier(a, h, l, o.Declined, now, s.pendingAge())
	next.Sessions = append(slices.Clip(a.Sessions), c.carry()...)
	f, err := fit(&next)
	if err != nil {
		return Saved{}, err
	}
	text := f.body()
	f.Content, f.Distinct, f.Counts = text.content, text.distinct, f.counts()

	if e := h.last; e != nil && !h.broken && e.Archive.Host.Instance == f.Host.Instance && (o.Name == "" || o.Name == e.Name) && contentOf(e.Archive) == f.Content {
		return s.unchanged(l, h, f, o, c, m)
	}
	if o.Base != nil && *o.Base != l.base() {
		return Saved{}, ErrStaleWriter
	}
	n := l.top()
	if n == math.MaxUint64 {
		return Saved{}, errors.New("the numbers of generations are used up")
	}
	n++
	f.Generation, f.Prev = n, h.newest
	f.Held = s.judge(l, f, h, c, o, m)
	b, err := f.file(text)
	if err != nil {
		return Saved{}, err
	}
	// Decisions first: they mean nothing until the generation is there, and its number is not
	// used again if it never comes.
	if err := s.dismiss(n, c.declined, now); err != nil {
		return Saved{}, err
	}
	accepted := f.Held != nil && o.Accept
	if accepted {
		if err := s.writeDecision(n, acceptSuffix, decision{Generation: n, At: now, By: "save --accept"}); err != nil {
			return Saved{}, err
		}
	}
	sl := slot{n: n, name: o.Name}
	path := filepath.Join(s.Dir, sl.file())
	if err := s.writer().Create(path, b); err != nil {
		return Saved{}, err
	}
	digest := Digest(b)
	s.remember(l, n, digest, now)
	e := Entry{
		Generation: n, Path: path, Digest: digest, Size: int64(len(b)), SavedAt: f.SavedAt,
		State: stateOf(f.Held, accepted), Name: o.Name, Archive: f,
	}
	if f.Held != nil {
		e.Reason = f.Held.Reason
	}
	return Saved{Entry: e, TextsErr: s.saveTexts(e, o, c, false)}, nil
}

// unchanged is a save that says what the last one said. It is evidence all the same: what was
// held because it might have been a shutdown, and still is so, was none.
func (s Store) unchanged(l *listing, h *history, f *Archive, o SaveOptions, c *carrier, m moment) (Saved, error) {
	e, now := *h.last, m.now
	if h.headOnly {
		// What was not read is what was to be saved, but for the times in it.
		f.SavedAt, f.Generation, f.Prev = e.SavedAt, e.Generation, e.Archive.Prev
		e.Archive, e.Dismissed = f, l.dismissedIn(f)
	}
	if err := s.dismiss(e.Generation, c.declined, now); err != nil {
		return Saved{}, err
	}
	by := ""
	switch {
	case e.State == Good || e.Archive.Held == nil:
	case o.Accept:
		by = "save --accept"
	case s.judge(l, f, h, c, o, m) != nil:
	case e.Archive.Held.State == heldSettling && !o.Auto:
		by = "save"
	default:
		by = "a later save found the same"
	}
	if by != "" {
		if err := s.writeDecision(e.Generation, acceptSuffix, decision{Generation: e.Generation, At: now, By: by}); err != nil {
			return Saved{}, err
		}
		e.State = Good
	}
	s.remember(l, e.Generation, h.newest, now)
	return Saved{Entry: e, Unchanged: true, TextsErr: s.saveTexts(e, o, c, true)}, nil
}

// countsOf counts an archive that was read whole, and believes one of which the head was read.
func countsOf(e *Entry) *Counts {
	if e.Archive.Sessions == nil && e.Archive.Counts != nil {
		return e.Archive.Counts
	}
	return e.Archive.counts()
}

func stateOf(h *Held, accepted bool) State {
	if h == nil || accepted {
		return Good
	}
	return State("held: " + h.State)
}

// contentOf is an archive's content digest: as it says, or computed for one that does not say.
func contentOf(a *Archive) string {
	if a.Content != "" {
		return a.Content
	}
	f, err := fit(a)
	if err != nil {
		return ""
	}
	return f.body().content
}

// Base returns the moment that it is now. A store that does not exist yet has one, too.
func (s Store) Base() (Base, error) {
	l, err := s.list()
	if err != nil {
		return Base{}, fmt.Errorf("read %q: %w", s.Dir, err)
	}
	return l.base(), nil
}

// List returns every generation, newest first, with its state. It reads them all.
func (s Store) List() ([]Entry, error) {
	l, err := s.list()
	if err != nil {
		return nil, fmt.Errorf("list %q: %w", s.Dir, err)
	}
	var out []Entry
	for i := len(l.slots) - 1; i >= 0; i-- {
		out = append(out, s.entry(l, l.slots[i]))
	}
	return out, nil
}

// Choice is the generation that a restore would use.
type Choice struct {
	Entry
	Newer []Entry // held, edited, corrupt or another machine's: above it, to be named aloud
	// Missing is the number of the newest generation that was written, where its file is gone
	// and nobody removed it through us; else 0.
	Missing uint64
}

// Best picks the newest good generation: of this machine if there is one, else of any. ErrNone
// where there is none; Newer and Missing then say what there is.
func (s Store) Best() (c Choice, err error) {
	for n := 0; ; n++ {
		var pruned bool
		if c, pruned, err = s.best(); !pruned || n == listAgain {
			return c, err
		}
	}
}

// listAgain bounds how often a history is listed again of which something was pruned meanwhile.
const listAgain = 10

// best is Best of one listing; pruned reports that something of it was gone when it was read.
func (s Store) best() (c Choice, pruned bool, err error) {
	l, err := s.list()
	if err != nil {
		return Choice{}, false, fmt.Errorf("read %q: %w", s.Dir, err)
	}
	if l.last.Generation > l.newest() && !l.last.Removed {
		c.Missing = l.last.Generation
	}
	var foreign *Choice
	for i := len(l.slots) - 1; i >= 0; i-- {
		e := s.entry(l, l.slots[i])
		pruned = pruned || errors.Is(e.Err, fs.ErrNotExist)
		if e.State == Good && sameMachine(s.Machine, e.Archive.Host.Machine) {
			c.Entry = e
			return c, pruned, nil
		}
		if e.State == Good {
			e.Reason = "it was saved on another machine"
			if foreign == nil {
				foreign = &Choice{e, slices.Clone(c.Newer), c.Missing}
			}
		}
		c.Newer = append(c.Newer, e)
	}
	if foreign != nil {
		return *foreign, pruned, nil
	}
	return c, pruned, fmt.Errorf("read %q: %w", s.Dir, ErrNone)
}

// sameMachine: one that is not known is no other.
func sameMachine(a, b string) bool { return a == "" || b == "" || a == b }

// Get returns one generation by number, whatever its state; ErrNoGeneration where there is none.
func (s Store) Get(n uint64) (Entry, error) {
	return s.find(fmt.Sprintf("generation %d", n), func(sl slot) bool { return sl.n == n })
}

// Named returns the newest generation of that name; ErrNoGeneration where there is none.
func (s Store) Named(name string) (Entry, error) {
	return s.find(fmt.Sprintf("generation named %q", name), func(sl slot) bool { return sl.name == name && name != "" })
}

func (s Store) find(what string, match func(slot) bool) (Entry, error) {
	l, err := s.list()
	if err != nil {
		return Entry{}, fmt.Errorf("read %q: %w", s.Dir, err)
	}
	for i := len(l.slots) - 1; i >= 0; i-- {
		if match(l.slots[i]) {
			return s.entry(l, l.slots[i]), nil
		}
	}
	return Entry{}, fmt.Errorf("%s: %w", what, ErrNoGeneration)
}

// Lock is held by a restore for its whole run, so that autosave is silent and a second restore
// is told who runs: a *BusyError. unlock must be called.
func (s Store) Lock(what string) (unlock func(), err error) {
	if err := s.makeDir(s.Dir); err != nil {
		return nil, fmt.Errorf("lock %q: %w", s.Dir, err)
	}
	// A moment's patience, for whoever only looks (Restoring) holds it for that moment.
	unlock, err = s.lock(context.Background(), restoreLockFile, what, 200*time.Millisecond)
	if err != nil {
		return nil, fmt.Errorf("lock %q: %w", s.Dir, err)
	}
	return unlock, nil
}

func (s Store) now() time.Time {
	if s.Now == nil {
		return fitTime(time.Now())
	}
	return fitTime(s.Now())
}

func (s Store) pendingAge() time.Duration {
	if s.PendingAge == 0 {
		return DefaultPendingAge
	}
	return s.PendingAge
}

func (s Store) writer() atomicfile.Writer { return atomicfile.Writer{FS: s.fs} }

// makeDir makes a directory of the store, and private if it was not.
func (s Store) makeDir(dir string) error {
	if err := s.writer().MkdirAll(dir); err != nil {
		return err
	}
	fi, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if fi.Mode().Perm() != atomicfile.DirMode {
		return os.Chmod(dir, atomicfile.DirMode)
	}
	return nil
}
