package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// decision is a small file beside a generation; the generation itself never changes. It counts
// only if it can be read, says the number that its name says, and is within bounds.
type decision struct {
	Generation uint64    `json:"generation"`
	At         time.Time `json:"at"`
	By         string    `json:"by,omitzero"`
	Sessions   []waiting `json:"sessions,omitempty"` // dismissed
}

func (s Store) writeDecision(n uint64, suffix string, d decision) error {
	b, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return s.writer().Replace(filepath.Join(s.Dir, fmt.Sprintf("%0*d%s", digits, n, suffix)), append(b, '\n'))
}

func (s Store) readDecision(file string) (decision, error) {
	b, err := s.readSmall(file)
	if err != nil {
		return decision{}, err
	}
	return parseDecision(file, b)
}

func parseDecision(file string, b []byte) (d decision, err error) {
	if err := json.Unmarshal(b, &d); err != nil {
		return d, err
	}
	if n, _, ok := numbered(file); !ok || d.Generation != n || len(d.Sessions) > MaxSessions || !isWord(d.By) {
		return d, &FormatError{Reason: "not a decision about its generation"}
	}
	return d, nil
}

// accepted says whether a generation was accepted, and why a decision does not count.
func (s Store) accepted(l *listing, n uint64) (ok bool, why string) {
	if !l.accepts[n] {
		return false, ""
	}
	d, err := s.readDecision(fmt.Sprintf("%0*d%s", digits, n, acceptSuffix))
	if err != nil {
		return false, fmt.Sprintf("the decision to accept it cannot be read: %v", err)
	}
	if d.By == "" {
		return true, "accepted"
	}
	return true, "accepted by " + d.By
}

// dismissed is every session that was declined or forgotten. A file that cannot be read dismisses
// nothing: what is offered again can be dismissed again.
func (l *listing) dismissed() map[waiting]bool {
	out := map[waiting]bool{}
	for _, file := range l.dismiss {
		d, err := l.s.readDecision(file)
		if err != nil {
			continue
		}
		for _, w := range d.Sessions {
			out[w] = true
		}
	}
	return out
}

func (l *listing) dismissedIn(a *Archive) (names []string) {
	if len(l.dismiss) == 0 {
		return nil
	}
	dismissed := l.dismissed()
	for i := range a.Sessions {
		s := &a.Sessions[i]
		if dismissed[s.waiting(a.Generation)] {
			names = append(names, s.Name)
		}
	}
	return names
}

func (s *Session) waiting(generation uint64) waiting {
	w := waiting{s.OwnName(), generation}
	if s.Pending != nil {
		w.From = s.Pending.From
	}
	return w
}

// dismiss remembers that sessions shall not be carried on, beside generation n. What it says is
// in its name, so that saying it twice is saying it once.
func (s Store) dismiss(n uint64, ws []waiting, now time.Time) error {
	if len(ws) == 0 {
		return nil
	}
	b, err := json.Marshal(ws)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(b)
	return s.writeDecision(n, dismissSuffix+hex.EncodeToString(sum[:8]), decision{Generation: n, At: now, Sessions: ws})
}

// decide runs do under the lock of the store.
func (s Store) decide(what string, do func(*listing) error) error {
	if err := s.makeDir(s.Dir); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	unlock, err := s.lock(context.Background(), lockFile, what, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer unlock()
	l, err := s.list()
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := do(l); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Accept makes a held generation good. One that is good already stays so; a corrupt one, never
// good, is its error.
func (s Store) Accept(n uint64) error {
	return s.decide("accept", func(l *listing) error {
		e, err := s.at(l, n)
		if err != nil || e.State == Good {
			return err
		}
		return s.writeDecision(n, acceptSuffix, decision{Generation: n, At: s.now()})
	})
}

// Decline says that nothing of generation n shall be carried on. The generation stays, and a
// restore that names it can still use it. Where the server whose generation it is still runs,
// DeclineWaiting is meant.
func (s Store) Decline(n uint64) error { return s.DeclineWaiting(n, "") }

// DeclineWaiting is Decline, but of a generation of the host life that runs now, whose instance
// is given, only of what is pending in it: what is live there is not the question.
func (s Store) DeclineWaiting(n uint64, instance string) error {
	return s.decide("decline", func(l *listing) error {
		e, err := s.at(l, n)
		if err != nil {
			return err
		}
		var ws []waiting
		for i := range e.Archive.Sessions {
			x := &e.Archive.Sessions[i]
			if x.Pending != nil || instance == "" || e.Archive.Host.Instance != instance {
				ws = append(ws, x.waiting(n))
			}
		}
		return s.dismiss(n, ws, s.now())
	})
}

// Forget says that a session shall not be carried on: of the last good generation the one that is
// listed under that name, else the ones whose own name it is; where it has none, of the held ones
// above it likewise. ErrNoSession where none is. A session that is live stays in what is saved
// while it lives.
func (s Store) Forget(session string) error {
	return s.decide("forget", func(l *listing) error {
		h := s.history(l, &Host{Machine: s.Machine, Instance: noInstance})
		sources := h.held
		if h.good != nil {
			sources = append([]Entry{*h.good}, sources...)
		}
		for _, e := range sources {
			var listed, own []waiting
			for i := range e.Archive.Sessions {
				x := &e.Archive.Sessions[i]
				switch {
				case x.Name == session:
					listed = append(listed, x.waiting(e.Generation))
				case x.OwnName() == session:
					own = append(own, x.waiting(e.Generation))
				}
			}
			if len(listed) == 0 {
				listed = own
			}
			if len(listed) > 0 {
				if err := s.dismiss(e.Generation, listed, s.now()); err != nil {
					return err
				}
				return s.forgetTexts(l, listed)
			}
		}
		return fmt.Errorf("%q: %w", session, ErrNoSession)
	})
}

// noInstance is the instance of no host life.
const noInstance = "\x00"

// at is a generation that can be read.
func (s Store) at(l *listing, n uint64) (Entry, error) {
	for _, sl := range l.slots {
		if sl.n == n {
			e := s.entry(l, sl)
			return e, e.Err
		}
	}
	return Entry{}, fmt.Errorf("generation %d: %w", n, ErrNoGeneration)
}

// removeDecisions takes away what was decided about a generation that goes, and the texts beside
// it. What was dismissed
// stays dismissed: it speaks of sessions, which later generations may carry.
func (s Store) removeDecisions(l *listing, n uint64) error {
	if l.texts[n] {
		if err := s.writer().Remove(filepath.Join(s.Dir, textsFile(n))); err != nil {
			return err
		}
	}
	if !l.accepts[n] {
		return nil
	}
	return s.writer().Remove(filepath.Join(s.Dir, fmt.Sprintf("%0*d%s", digits, n, acceptSuffix)))
}

// Export writes an archive to a file of the user's choosing, whole or not at all, and remembers
// its digest as own. It is exported as it is: give it Saved.Archive for one with pending
// sessions. A path that is not a regular file is refused.
func (s Store) Export(a *Archive, path string) (Saved, error) {
	b, err := a.Encode()
	if err != nil {
		return Saved{}, fmt.Errorf("export %q: %w", path, err)
	}
	f, err := Decode(b)
	if err != nil {
		return Saved{}, fmt.Errorf("export %q: %w", path, err)
	}
	// First the memory, then the file: no file is ours that we do not know.
	if err := s.Remember(b); err != nil {
		return Saved{}, fmt.Errorf("export %q: %w", path, err)
	}
	if err := s.writer().Replace(path, b); err != nil {
		return Saved{}, fmt.Errorf("export: %w", err)
	}
	return Saved{Entry: Entry{
		Generation: f.Generation, Path: path, Digest: Digest(b), Size: int64(len(b)), SavedAt: f.SavedAt, State: Good, Archive: f,
	}}, nil
}

// Remember makes bytes own that are written where Export does not reach: to standard output.
func (s Store) Remember(b []byte) error {
	return s.rememberDigest(Digest(b))
}

func (s Store) rememberDigest(digest string) error {
	dir := s.ownDir()
	if err := s.makeDir(dir); err != nil {
		return fmt.Errorf("remember: %w", err)
	}
	text := fmt.Sprintf("{\"at\":%q}\n", s.now().Format(time.RFC3339))
	if err := s.writer().Replace(filepath.Join(dir, strings.TrimPrefix(digest, digestHead)), []byte(text)); err != nil {
		return fmt.Errorf("remember: %w", err)
	}
	return nil
}

func (s Store) ownDir() string {
	if s.OwnDir != "" {
		return s.OwnDir
	}
	return filepath.Join(s.Dir, ownDir)
}

// Own reports whether this store wrote these exact bytes: it exported them, or they are a
// generation that it still has, as it was written.
func (s Store) Own(b []byte) bool {
	digest := Digest(b)
	if s.exported(digest) {
		return true
	}
	a, err := Decode(b)
	if err != nil {
		return false
	}
	l, err := s.list()
	if err != nil {
		return false
	}
	for _, sl := range l.slots {
		if sl.n != a.Generation {
			continue
		}
		if there, err := s.read(sl.file(), MaxSize); err == nil && string(there) == string(b) {
			return s.edited(l, sl, a, digest) == ""
		}
	}
	return false
}
