package archive

import (
	"fmt"
	"path/filepath"
)

// editedReason is what is said of a generation whose bytes are not those that were written.
const editedReason = "not the bytes that were written"

// edited says why the bytes of a generation, which can be read, are not those that this store
// wrote; empty where they are. What was written is known, in this order, from
//
//   - the last save, of the newest generation,
//   - the next generation's prev, of an older one (not of a next one that is itself edited),
//   - the memory in own/, where the next one was removed through us.
//
// Where nothing of these says anything (a power loss took the word of the last save, or somebody
// removed the next file by hand), the file's own content digest must be that of what it says.
//
// This finds a slip, a merge and a file that was put there: not somebody who can write all of the
// directory, and takes the trouble.
func (s Store) edited(l *listing, sl slot, a *Archive, digest string) string {
	if known, by := s.written(l, sl, digest); known != "" {
		switch {
		case known == digest, s.exported(digest):
			return ""
		case by == 0:
			return editedReason
		}
		return fmt.Sprintf("%s, as generation %d knows them", editedReason, by)
	}
	if s.exported(digest) || a.Content != "" && a.Content == bodyContent(a) {
		return ""
	}
	return editedReason
}

// written is the digest of a generation as it was written, and the number of the generation that
// knows it, 0 for the word of the last save. It is empty where nothing says it. have is the
// digest of what is there now.
func (s Store) written(l *listing, sl slot, have string) (digest string, by uint64) {
	if l.last.Generation == sl.n && !l.last.Removed {
		return l.last.Digest, 0
	}
	next, ok := l.after(sl.n)
	if !ok {
		return "", 0
	}
	head, err := s.head(next)
	if err != nil || head.Prev == "" {
		return "", 0
	}
	if head.Prev == have {
		return have, next.n
	}
	// They disagree. A next one that was edited is no witness, and neither is one that was
	// written when another generation stood between the two.
	if next.n != sl.n+1 {
		return "", 0
	}
	e := s.bytesOf(next)
	if e.Err != nil || s.edited(l, next, e.Archive, e.Digest) != "" {
		return "", 0
	}
	return head.Prev, next.n
}

// after is the generation that follows a number.
func (l *listing) after(n uint64) (slot, bool) {
	for _, sl := range l.slots {
		if sl.n > n {
			return sl, true
		}
	}
	return slot{}, false
}

// bytesOf reads one generation whole, and judges nothing of it but that it is one.
func (s Store) bytesOf(sl slot) Entry {
	e := Entry{Generation: sl.n, Name: sl.name, Path: filepath.Join(s.Dir, sl.file())}
	b, err := s.read(sl.file(), MaxSize)
	if err == nil {
		e.Digest, e.Size = Digest(b), int64(len(b))
		e.Archive, err = Decode(b)
	}
	if err == nil && e.Archive.Generation != sl.n {
		err = &FormatError{Reason: fmt.Sprintf("the file says that it is generation %d", e.Archive.Generation)}
	}
	if err != nil {
		e.Err, e.Archive = err, nil
	}
	return e
}

// bodyContent is the content digest of what an archive says, whatever digest it names.
func bodyContent(a *Archive) string {
	b := *a
	b.Content = ""
	return contentOf(&b)
}

// exported reports whether a digest is in the memory of what was written here.
func (s Store) exported(digest string) bool {
	if len(digest) <= len(digestHead) {
		return false
	}
	own := s
	own.Dir = s.ownDir()
	f, _, err := own.open(digest[len(digestHead):])
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}

const digestHead = "sha256:"

// keepWord remembers what a generation that goes knows of the one before it, if that is there.
func (s Store) keepWord(l *listing, sl slot) error {
	var before slot
	for _, b := range l.slots {
		if b.n < sl.n {
			before = b
		}
	}
	head, err := s.head(sl)
	if before.n == 0 || err != nil || !isDigest(head.Prev) || s.exported(head.Prev) {
		return nil // there is none, or it cannot say
	}
	if before.n != sl.n-1 {
		b, err := s.read(before.file(), MaxSize)
		if err != nil || Digest(b) != head.Prev {
			return nil // it knows another one, that went before
		}
	}
	return s.rememberDigest(head.Prev)
}
