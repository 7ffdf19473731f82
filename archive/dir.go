package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"

	"github.com/phux-agent/phux-agent/internal/atomicfile"
)

// Names in a store's directory.
const (
	lockFile        = "lock"
	restoreLockFile = "restore.lock"
	lastFile        = "last"
	ownDir          = "own"
	acceptSuffix    = ".accept"
	dismissSuffix   = ".dismiss-"
	textsSuffix     = ".scrollback"
	digits          = 20
)

const (
	letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	maxName = 64
)

// validName accepts [A-Za-z0-9][A-Za-z0-9._-]{0,63} that does not end in .json. It and its like
// are no expressions, for those would be compiled at every start of the program, in every pane.
func validName(s string) bool {
	return s != "" && len(s) <= maxName && strings.Trim(s, letters+"._-") == "" && strings.IndexByte(letters, s[0]) >= 0 &&
		!strings.HasSuffix(s, ".json")
}

// isDismissal accepts what follows the number in a dismissal's name.
func isDismissal(rest string) bool {
	sum, ok := strings.CutPrefix(rest, dismissSuffix)
	return ok && len(sum) == 16 && strings.Trim(sum, "0123456789abcdef") == ""
}

// slot is one generation's file, by its name.
type slot struct {
	n    uint64
	name string
}

func (s slot) file() string {
	if s.name == "" {
		return fmt.Sprintf("%0*d.json", digits, s.n)
	}
	return fmt.Sprintf("%0*d-%s.json", digits, s.n, s.name)
}

// numbered splits a file name of ours into its number and the rest.
func numbered(file string) (n uint64, rest string, ok bool) {
	if len(file) < digits || strings.Trim(file[:digits], "0123456789") != "" {
		return 0, "", false
	}
	n, err := strconv.ParseUint(file[:digits], 10, 64)
	return n, file[digits:], err == nil && n > 0
}

func parseSlot(file string) (slot, bool) {
	n, rest, ok := numbered(file)
	if !ok {
		return slot{}, false
	}
	rest, ok = strings.CutSuffix(rest, ".json")
	switch {
	case !ok:
		return slot{}, false
	case rest == "":
		return slot{n: n}, true
	case rest[0] != '-' || !validName(rest[1:]):
		return slot{}, false
	}
	return slot{n, rest[1:]}, true
}

// listing is what the names in a store's directory say, and its small files.
type listing struct {
	slots    []slot // by number
	highest  uint64 // number in any name of ours
	accepts  map[uint64]bool
	dismiss  []string // files
	texts    map[uint64]bool
	leftover bool
	last     last
	s        Store
}

// last is a hint about the last save, kept beside the generations and written in place, without
// waiting for the disk: it may be old, torn or gone. Nothing follows it: a number that it names may be gone. It lets a number never be
// used again, a writer that is behind be found, and a loss be said.
type last struct {
	Generation uint64    `json:"generation"`
	Saves      uint64    `json:"saves"`
	At         time.Time `json:"at"`
	Digest     string    `json:"digest,omitzero"`  // of the newest generation's file, as it was written or read whole
	Removed    bool      `json:"removed,omitzero"` // the newest one was removed on purpose
}

// list reads the directory; one that is not there is empty.
func (s Store) list() (*listing, error) {
	l := &listing{accepts: map[uint64]bool{}, texts: map[uint64]bool{}, s: s}
	f, err := os.Open(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	// Before the names: else a save in between is one whose file is gone.
	if b, err := s.read(lastFile, lastSize); err == nil {
		if json.Unmarshal(b, &l.last) != nil {
			l.last = last{}
		}
	}
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if atomicfile.IsTemp(name) {
			l.leftover = true
			continue
		}
		n, rest, ok := numbered(name)
		if !ok {
			continue
		}
		l.highest = max(l.highest, n)
		if sl, ok := parseSlot(name); ok {
			l.slots = append(l.slots, sl)
			continue
		}
		switch {
		case rest == acceptSuffix:
			l.accepts[n] = true
		case rest == textsSuffix:
			l.texts[n] = true
		case isDismissal(rest):
			l.dismiss = append(l.dismiss, name)
		}
	}
	slices.SortFunc(l.slots, func(a, b slot) int { return strings.Compare(a.file(), b.file()) })
	slices.Sort(l.dismiss)
	return l, nil
}

func (l *listing) newest() uint64 {
	if len(l.slots) == 0 {
		return 0
	}
	return l.slots[len(l.slots)-1].n
}

// top is the highest number that was ever used, as far as can be told.
func (l *listing) top() uint64 { return max(l.highest, l.last.Generation) }

func (l *listing) base() Base { return Base{l.top(), l.last.Saves} }

// remember notes a save. It is a hint: that it could not be written is no failure of the save.
func (s Store) remember(l *listing, n uint64, digest string, now time.Time) {
	v := last{Generation: n, Saves: l.last.Saves + 1, At: now, Digest: digest}
	if n < l.last.Generation {
		v.Generation, v.Digest, v.Removed = l.last.Generation, l.last.Digest, l.last.Removed
	}
	s.writeLast(v)
}

// lastSize is more than a hint can take: it is written over the old one in one piece.
const lastSize = 512

func (s Store) writeLast(v last) {
	b, err := json.Marshal(v)
	if err != nil || len(b) >= lastSize {
		return
	}
	f, err := s.openShared(lastFile)
	if err != nil {
		return
	}
	line := bytes.Repeat([]byte{' '}, lastSize)
	line[lastSize-1] = '\n'
	copy(line, b)
	_, _ = f.WriteAt(line, 0)
	_ = f.Close()
}

// sweep removes what killed writers left. Leftovers harm nobody: errors are for the next one.
func (s Store) sweep(l *listing) {
	if l.leftover {
		_ = s.writer().Sweep(s.Dir, func(string) bool { return true })
	}
	for n := range l.texts {
		// Its generation was removed, by hand or by somebody who was killed then.
		if !slices.ContainsFunc(l.slots, func(sl slot) bool { return sl.n == n }) {
			_ = s.writer().Remove(filepath.Join(s.Dir, textsFile(n)))
		}
	}
}

// open opens a file of the store for reading: a regular one, no link.
func (s Store) open(file string) (*os.File, int64, error) {
	f, err := os.OpenFile(filepath.Join(s.Dir, file), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, 0, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = &atomicfile.NotRegularError{Path: f.Name(), Mode: fi.Mode()}
	}
	if err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	return f, fi.Size(), nil
}

func (s Store) read(file string, most int64) ([]byte, error) {
	f, size, err := s.open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if size > most {
		return nil, &FormatError{Reason: fmt.Sprintf("%d bytes, at most %d", size, most)}
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, err
	}
	return b, nil
}

// maxSmall bounds what lies beside the generations.
const maxSmall = 256 << 10

func (s Store) readSmall(file string) ([]byte, error) { return s.read(file, maxSmall) }

// entry reads one generation whole and says what it is.
func (s Store) entry(l *listing, sl slot) Entry {
	e := s.bytesOf(sl)
	if e.Err != nil {
		e.State, e.Reason = Corrupt, e.Err.Error()
		return e
	}
	e.SavedAt = e.Archive.SavedAt
	accepted, why := false, ""
	if e.Archive.Held != nil {
		accepted, why = s.accepted(l, sl.n)
		e.Reason = e.Archive.Held.Reason
	}
	e.State = stateOf(e.Archive.Held, accepted)
	if why != "" {
		e.Reason += "; " + why
	}
	if why := s.edited(l, sl, e.Archive, e.Digest); why != "" {
		e.State, e.Reason = Edited, why
	}
	e.Dismissed = l.dismissedIn(e.Archive)
	return e
}

// head reads what stands before the sessions of a generation.
func (s Store) head(sl slot) (*Archive, error) {
	f, size, err := s.open(sl.file())
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if size > MaxSize {
		return nil, &FormatError{Reason: fmt.Sprintf("%d bytes, at most %d", size, MaxSize)}
	}
	return decodeHead(f)
}

// history is what a save must know of the generations before it, of its own machine.
type history struct {
	newest   string  // digest of the newest file as it was written; empty where that is not known
	broken   bool    // the newest file cannot be read as a generation, or was edited
	last     *Entry  // the newest that can be read
	good     *Entry  // the newest good one
	held     []Entry // held ones above good that say something of it, newest first
	headOnly bool    // last and good are the newest, and only its head was read
}

// history reads as little as it can: in the life of every day, the head of one file.
func (s Store) history(l *listing, now *Host) *history {
	h := &history{}
	if e := s.sameAgain(l, now); e != nil {
		return &history{newest: e.Digest, last: e, good: e, headOnly: true}
	}
	for i := len(l.slots) - 1; i >= 0 && h.good == nil; i-- {
		sl := l.slots[i]
		newest := i == len(l.slots)-1
		if !newest {
			head, err := s.head(sl)
			if err == nil && (!sameMachine(now.Machine, head.Host.Machine) ||
				h.last != nil && head.Held != nil && head.Held.State == heldEmpty && !l.accepts[sl.n]) {
				continue
			}
		}
		e := s.entry(l, sl)
		if newest {
			h.newest, h.broken = e.Digest, e.State == Corrupt || e.State == Edited
			if h.broken && l.last.Generation == sl.n && l.last.Digest != "" {
				h.newest = l.last.Digest // never what somebody made of it
			} else if e.State == Edited {
				h.newest = ""
			}
		}
		if e.State == Corrupt || e.State == Edited || !sameMachine(now.Machine, e.Archive.Host.Machine) {
			continue
		}
		if h.last == nil {
			h.last = &e
		}
		if e.State == Good {
			h.good = &e
		} else {
			h.held = append(h.held, e)
		}
	}
	return h
}

// sameAgain is the newest generation where its sessions need not be read: its bytes are those
// that were written or read whole before, it is a good one of this very host life, and it
// carries nothing.
func (s Store) sameAgain(l *listing, now *Host) *Entry {
	if len(l.slots) == 0 || l.last.Generation != l.newest() || l.last.Digest == "" {
		return nil
	}
	sl := l.slots[len(l.slots)-1]
	b, err := s.read(sl.file(), MaxSize)
	if err != nil || Digest(b) != l.last.Digest {
		return nil
	}
	a, err := decodeHead(bytes.NewReader(b))
	if err != nil || a.Generation != sl.n || a.Held != nil || a.Counts == nil || a.Counts.Carried > 0 || a.Content == "" ||
		a.Host.Instance != now.Instance || !sameMachine(now.Machine, a.Host.Machine) {
		return nil
	}
	return &Entry{
		Generation: sl.n, Name: sl.name, Path: filepath.Join(s.Dir, sl.file()), Digest: l.last.Digest, Size: int64(len(b)),
		SavedAt: a.SavedAt, State: Good, Archive: a,
	}
}
