package archive

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// keepAlways is how many distinct good generations no age removes: a clock that is wrong for
// once must not empty a history.
const keepAlways = 5

// Remove deletes one generation and what was decided about it. The last good one of a host life
// is a *LastGoodError; ForceRemove deletes that too. Its number is not used again.
func (s Store) Remove(n uint64) error { return s.remove(n, false) }

// ForceRemove is Remove of whatever it is.
func (s Store) ForceRemove(n uint64) error { return s.remove(n, true) }

func (s Store) remove(n uint64, force bool) error {
	return s.decide("remove", func(l *listing) error {
		var found []slot
		for _, sl := range l.slots {
			if sl.n == n {
				found = append(found, sl)
			}
		}
		if len(found) == 0 {
			return fmt.Errorf("generation %d: %w", n, ErrNoGeneration)
		}
		for _, sl := range found {
			if e := s.entry(l, sl); !force && e.State == Good && s.lastGood(l, e.Archive.Host.Instance) <= n {
				return &LastGoodError{Generation: n, Instance: e.Archive.Host.Instance}
			}
		}
		if n == l.newest() {
			s.writeLast(last{Generation: l.top(), Saves: l.last.Saves + 1, At: s.now(), Removed: true})
		}
		if err := s.removeDecisions(l, n); err != nil {
			return err
		}
		for _, sl := range found {
			if err := s.keepWord(l, sl); err != nil {
				return err
			}
			if err := s.writer().Remove(filepath.Join(s.Dir, sl.file())); err != nil {
				return err
			}
		}
		return nil
	})
}

// lastGood is the number of a host life's last good generation, 0 where it has none. Its whole
// file was read, or is known by its digest: a good beginning is not enough to rely on.
func (s Store) lastGood(l *listing, instance string) uint64 {
	for i := len(l.slots) - 1; i >= 0; i-- {
		head, err := s.head(l.slots[i])
		if err != nil || head.Host.Instance != instance {
			continue
		}
		if i == len(l.slots)-1 && s.sameAgain(l, &head.Host) != nil || s.entry(l, l.slots[i]).State == Good {
			return l.slots[i].n
		}
	}
	return 0
}

// Judgement is what pruning does with one generation, and why. Its Entry is without content.
type Judgement struct {
	Entry
	Goes bool
	Why  string // in words
}

// Prune removes generations beyond keep distinct good ones, and those older than age, and says
// which (without their content). Two that differ only in what changes by itself (titles, foreground programs, what is
// active) are not distinct. Of held and corrupt ones the newest keep stay, within age.
//
// It never removes a named one, a host life's last good one, the one that the last restore was
// made from until that proved itself (Restored), or one of the newest five distinct
// good ones, however old the clock says they are. keep below 1 means no bound of number, age
// below 1 none of age. It reads the beginnings of the files, and whole only what it is about to
// remove or to rely on.
func (s Store) Prune(keep int, age time.Duration) (removed []Entry, err error) {
	if l, err := s.list(); err == nil && s.withinBounds(l, keep, age) {
		return nil, nil
	}
	all, err := s.PruneNow(keep, age)
	for _, j := range all {
		if j.Goes {
			removed = append(removed, j.Entry)
		}
	}
	return removed, err
}

// PruneNow is Prune that says of every generation what became of it, newest first. Beside an
// error, only what is said to be gone is.
func (s Store) PruneNow(keep int, age time.Duration) (out []Judgement, err error) {
	if l, err := s.list(); err == nil && len(l.slots) == 0 {
		return nil, nil
	}
	err = s.decide("prune", func(l *listing) error {
		out = s.judgements(l, keep, age, true)
		for i := range out {
			if !out[i].Goes {
				continue
			}
			if err := s.take(l, slot{out[i].Generation, out[i].Name}); err != nil {
				for j := i; j < len(out); j++ {
					out[j].Goes = false
				}
				return err
			}
		}
		return nil
	})
	return out, err
}

// PrunePlan says what PruneNow would do, newest first, and changes nothing.
func (s Store) PrunePlan(keep int, age time.Duration) ([]Judgement, error) {
	l, err := s.list()
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", s.Dir, err)
	}
	return s.judgements(l, keep, age, false), nil
}

// withinBounds says by one look that nothing can go: there are no more than that many, and the
// first one, which is the oldest as clocks go, is young enough.
func (s Store) withinBounds(l *listing, keep int, age time.Duration) bool {
	if len(l.slots) == 0 {
		return true
	}
	if keep > 0 && len(l.slots) > keep {
		return false
	}
	head, err := s.head(l.slots[0])
	return err == nil && (age < 1 || s.now().Sub(head.SavedAt) <= age)
}

// take removes one file, with what was decided about it. What it knows of the one before it is
// remembered.
func (s Store) take(l *listing, sl slot) error {
	if err := s.keepWord(l, sl); err != nil {
		return err
	}
	if err := s.removeDecisions(l, sl.n); err != nil {
		return err
	}
	return s.writer().Remove(filepath.Join(s.Dir, sl.file()))
}

func (s Store) judgements(l *listing, keep int, age time.Duration, note bool) (out []Judgement) {
	now := s.now()
	p := pruner{keep: keep, age: age, now: now, later: now, distinct: map[string]bool{}, last: map[string]uint64{}}
	for i := len(l.slots) - 1; i >= 0; i-- {
		sl := l.slots[i]
		head, err := s.head(sl)
		if err == nil && head.Held != nil {
			if ok, _ := s.accepted(l, sl.n); !ok {
				err = errHeld
			}
		}
		j := Judgement{Entry: Entry{Generation: sl.n, Name: sl.name, Path: filepath.Join(s.Dir, sl.file()), State: Corrupt, Err: err}}
		if head != nil {
			j.SavedAt, j.State = head.SavedAt, stateOf(head.Held, err == nil)
		}
		p.see(head)
		j.Goes, j.Why = p.beyond(head, err, sl)
		spared := ""
		switch {
		case !j.Goes:
		case sl.name != "":
			spared = "it has a name"
		case sl.n == l.newest():
			spared = "it is the newest"
		case err == nil && !p.relied(s, l, head.Host.Instance, sl.n):
			spared = "it is the last good one of its server's life"
		case s.unproven(l, sl.n, note):
			spared = "the last restore was made from it, and no later save holds all of its conversations as running"
		}
		if spared != "" {
			j.Goes, j.Why = false, spared
		}
		out = append(out, j)
	}
	return out
}

var errHeld = errors.New("held")

// pruner counts generations from the newest down.
type pruner struct {
	keep      int
	age       time.Duration
	now       time.Time
	later     time.Time       // when the one above was saved
	passed    time.Duration   // since then, as the saves above saw time pass
	distinct  map[string]bool // good ones that are kept for what they say
	good, bad int
	last      map[string]uint64 // of a host life: its last good generation, seen to be one
}

// relied says whether a host life has a good generation above n that was read whole.
func (p *pruner) relied(s Store, l *listing, instance string, n uint64) bool {
	top, known := p.last[instance]
	if !known {
		top = s.lastGood(l, instance)
		p.last[instance] = top
	}
	return top > n
}

// see takes the time of the next generation down.
func (p *pruner) see(head *Archive) {
	if head == nil || head.SavedAt.IsZero() {
		return
	}
	p.passed += passed(head.SavedAt, p.later, p.age)
	p.later = head.SavedAt
}

// beyond says whether a generation is past the bounds, and why it is or is not.
func (p *pruner) beyond(head *Archive, err error, sl slot) (goes bool, why string) {
	// By the clock, and by what saves saw of it: one that was set forward must not empty a history.
	old := head != nil && p.age > 0 && p.now.Sub(head.SavedAt) > p.age && p.passed > p.age
	aged := fmt.Sprintf("it is older than %s", many(int(p.age/(24*time.Hour)), "day"))
	if err != nil {
		p.bad++
		switch {
		case p.keep > 0 && p.bad > p.keep:
			return true, fmt.Sprintf("%d newer ones that are not good stay", p.keep)
		case old:
			return true, aged
		}
		return false, "within the bounds"
	}
	p.good++
	key := head.Distinct
	if key == "" {
		key = sl.file()
	}
	if p.distinct[key] {
		switch same := "a newer one says the same"; {
		case p.keep > 0 && p.good > p.keep:
			return true, fmt.Sprintf("%s, and %d newer good ones are there", same, p.keep)
		case old:
			return true, same + ", and " + aged
		}
		return false, "within the bounds"
	}
	switch {
	case p.keep > 0 && len(p.distinct) >= p.keep:
		return true, fmt.Sprintf("%d newer good ones that differ stay", p.keep)
	case old && len(p.distinct) >= keepAlways:
		return true, aged
	}
	p.distinct[key] = true
	if old {
		return false, fmt.Sprintf("one of the newest %d good ones that differ, whatever their age", keepAlways)
	}
	return false, "within the bounds"
}
