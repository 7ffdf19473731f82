package archive

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/phux-agent/phux-agent/metadata"
)

// restoredFile says from which generation the last restore was made.
const restoredFile = "restored"

// Restored is what is remembered of the last restore that made something: the generation that it
// was made from is not pruned until a later save holds all of its conversations as running.
type Restored struct {
	Generation uint64    `json:"generation"`        // it was made from
	Own        uint64    `json:"own,omitzero"`      // its last act; 0 until that is written
	Instance   string    `json:"instance,omitzero"` // of the life in which it was made, as Host.Instance
	At         time.Time `json:"at"`
	Previous   bool      `json:"previous,omitzero"` // it stepped back: Previous steps back further
	Proven     uint64    `json:"proven,omitzero"`   // the save that holds everything as running
	Checked    uint64    `json:"checked,omitzero"`  // no generation up to this one does
}

// LastRestore is the last restore that was remembered. One that cannot be read is none.
func (s Store) LastRestore() (Restored, bool) {
	b, err := s.readSmall(restoredFile)
	if err != nil {
		return Restored{}, false
	}
	var r Restored
	if json.Unmarshal(b, &r) != nil || r.Generation == 0 || !isWord(r.Instance) || len(r.Instance) > MaxName {
		return Restored{}, false
	}
	return r, true
}

// RememberRestore writes what is to be remembered of a restore: before its own save without Own,
// so that no pruning of that save takes away what it was made from, and after it with.
func (s Store) RememberRestore(r Restored) error {
	return s.decide("remember the restore", func(*listing) error {
		r.At = s.now()
		return s.writeRestored(r)
	})
}

func (s Store) writeRestored(r Restored) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return s.writer().Replace(filepath.Join(s.Dir, restoredFile), append(b, '\n'))
}

// unproven says whether the last restore was made from generation n, and no later save holds all
// of its conversations as running. With note, what was found is remembered.
func (s Store) unproven(l *listing, n uint64, note bool) bool {
	r, ok := s.LastRestore()
	if !ok || r.Generation != n || r.Proven > 0 {
		return false
	}
	source, err := s.at(l, n)
	if err != nil {
		return false // it cannot be read: nothing is kept by keeping it
	}
	wanted := source.toCome()
	found := r
	for i := len(l.slots) - 1; i >= 0 && l.slots[i].n > max(n, r.Checked) && found.Proven == 0; i-- {
		e := s.entry(l, l.slots[i])
		found.Checked = max(found.Checked, e.Generation)
		if e.State == Good && e.Archive.holdsRunning(wanted, l.dismissed()) {
			found.Proven = e.Generation
		}
	}
	if note && found != r {
		_ = s.writeRestored(found) // it is found again
	}
	return found.Proven == 0
}

// awaited is a record that a restore brings back, and the session that it was in.
type awaited struct {
	id      metadata.Identity
	session waiting
}

// toCome are the records of a generation that a restore brings back.
func (e *Entry) toCome() (out []awaited) {
	for i := range e.Archive.Sessions {
		s := &e.Archive.Sessions[i]
		s.eachPane(func(p *Pane) {
			if p.AgentSession == nil || p.Agent != nil && (p.Agent.State == StateEnded || p.Agent.State == StateReplaced) {
				return
			}
			out = append(out, awaited{p.AgentSession.Identity(), s.waiting(e.Generation)})
		})
	}
	return out
}

// holdsRunning reports that every record is in the archive as running, or as an earlier id of one
// that is, or was declined or forgotten.
func (a *Archive) holdsRunning(wanted []awaited, dismissed map[waiting]bool) bool {
	running := map[metadata.Identity]bool{}
	for i := range a.Sessions {
		s := &a.Sessions[i]
		s.eachPane(func(p *Pane) {
			if s.Pending != nil || p.AgentSession == nil || p.Agent == nil || p.Agent.State != StateRunning {
				return
			}
			id := p.AgentSession.Identity()
			running[id] = true
			for _, earlier := range p.Agent.Previous {
				running[metadata.Identity{IntegrationID: id.IntegrationID, NativeID: earlier}] = true
			}
		})
	}
	for _, w := range wanted {
		if !running[w.id] && !dismissed[w.session] {
			return false
		}
	}
	return true
}

// Previous is the good generation before the one that Best picks: where a restore was made in its
// host life, the one before that restore's own save, and where that restore stepped back itself,
// the one before what it was made from. One that says what the passed one says is passed too.
// ErrNoGeneration where there is none.
func (s Store) Previous() (Choice, error) {
	best, err := s.Best()
	if err != nil {
		return best, err
	}
	l, err := s.list()
	if err != nil {
		return Choice{}, fmt.Errorf("read %q: %w", s.Dir, err)
	}
	below := best.Generation
	if r, ok := s.LastRestore(); ok && r.Own > 0 && r.Own <= below && r.Instance == best.Archive.Host.Instance {
		below = r.Own
		if r.Previous {
			below = r.Generation
		}
	}
	e, err := s.before(l, below)
	if err != nil {
		return Choice{}, err
	}
	return Choice{Entry: e}, nil
}

// Before is the newest good generation of this machine below n that says something else than n
// does. ErrNoGeneration where there is none.
func (s Store) Before(n uint64) (Entry, error) {
	l, err := s.list()
	if err != nil {
		return Entry{}, fmt.Errorf("read %q: %w", s.Dir, err)
	}
	return s.before(l, n)
}

func (s Store) before(l *listing, n uint64) (Entry, error) {
	says := ""
	for _, sl := range l.slots {
		if head, err := s.head(sl); sl.n == n && err == nil {
			says = head.Distinct
		}
	}
	for i := len(l.slots) - 1; i >= 0; i-- {
		if l.slots[i].n >= n {
			continue
		}
		e := s.entry(l, l.slots[i])
		if e.State != Good || !sameMachine(s.Machine, e.Archive.Host.Machine) || says != "" && e.Archive.Distinct == says {
			continue
		}
		return e, nil
	}
	return Entry{}, fmt.Errorf("a good generation before %d: %w", n, ErrNoGeneration)
}
