package archive

import "fmt"

// Page returns at most most generations whose numbers are below n, newest first; the newest ones
// where n is 0. It reads no others.
func (s Store) Page(n uint64, most int) ([]Entry, error) {
	l, err := s.list()
	if err != nil {
		return nil, fmt.Errorf("list %q: %w", s.Dir, err)
	}
	var out []Entry
	for i := len(l.slots) - 1; i >= 0 && len(out) < most; i-- {
		if n == 0 || l.slots[i].n < n {
			out = append(out, s.entry(l, l.slots[i]))
		}
	}
	return out, nil
}
