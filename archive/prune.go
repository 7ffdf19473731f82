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

// Prune removes generations beyond keep distinct good ones, and those older than age, and says
// which (without their content). Two that differ only in what changes by itself (titles, foreground programs, what is
// active) are not distinct. Of held and corrupt ones the newest keep stay, within age.
//
// It never removes a named one, a host life's last good one, or one of the newest five distinct
// good ones, however old the clock says they are. keep below 1 means no bound of number, age
// below 1 none of age. It reads the beginnings of the files, and whole only what it is about to
// remove or to rely on.
func (s Store) Prune(keep int, age time.Duration) (removed []Entry, err error) {
	if l, err := s.list(); err == nil && len(l.slots) == 0 {
		return nil, nil
	}
	err = s.decide("prune", func(l *listing) error {
		removed, err = s.prune(l, keep, age)
		return err
	})
	return removed, err
}

func (s Store) prune(l *listing, keep int, age time.Duration) (removed []Entry, err error) {
	if len(l.slots) > 0 && (keep < 1 || len(l.slots) <= keep) {
		// Nothing is beyond the number; the first one is the oldest, as clocks go.
		if head, err := s.head(l.slots[0]); err == nil && (age < 1 || s.now().Sub(head.SavedAt) <= age) {
			return nil, nil
		}
	}
	p := pruner{keep: keep, age: age, now: s.now(), distinct: map[string]bool{}, last: map[string]uint64{}}
	for i := len(l.slots) - 1; i >= 0; i-- {
		sl := l.slots[i]
		head, err := s.head(sl)
		if err == nil && head.Held != nil {
			if ok, _ := s.accepted(l, sl.n); !ok {
				err = errHeld
			}
		}
		if !p.beyond(head, err, sl) || sl.name != "" || sl.n == l.newest() {
			continue
		}
		e := Entry{Generation: sl.n, Name: sl.name, Path: filepath.Join(s.Dir, sl.file()), State: Corrupt, Err: err}
		if head != nil {
			e.SavedAt, e.State = head.SavedAt, stateOf(head.Held, err == nil)
		}
		if err == nil && !p.relied(s, l, head.Host.Instance, sl.n) {
			continue
		}
		if err := s.keepWord(l, sl); err != nil {
			return removed, err
		}
		if err := s.removeDecisions(l, sl.n); err != nil {
			return removed, err
		}
		if err := s.writer().Remove(e.Path); err != nil {
			return removed, err
		}
		removed = append(removed, e)
	}
	return removed, nil
}

var errHeld = errors.New("held")

// pruner counts generations from the newest down.
type pruner struct {
	keep      int
	age       time.Duration
	now       time.Time
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

// beyond says whether a generation is past the bounds.
func (p *pruner) beyond(head *Archive, err error, sl slot) bool {
	old := head != nil && p.age > 0 && p.now.Sub(head.SavedAt) > p.age
	if err != nil {
		p.bad++
		return old || p.keep > 0 && p.bad > p.keep
	}
	p.good++
	key := head.Distinct
	if key == "" {
		key = sl.file()
	}
	if p.distinct[key] {
		return old || p.keep > 0 && p.good > p.keep
	}
	if p.keep > 0 && len(p.distinct) >= p.keep || old && len(p.distinct) >= keepAlways {
		return true
	}
	p.distinct[key] = true
	return false
}
