// Package atomicfile replaces and creates files durably: a temporary file in the same
// directory, written, synced, closed, renamed, and the directory synced. Whatever happens, and
// wherever the power goes, the name holds its old content whole or its new content whole.
//
// A file that it writes has mode 0600 whatever the umask. A target that exists and is not a
// regular file (a link, a directory, a device) is refused, never followed.
//
// A writer that was killed leaves a temporary file. Its name embeds the final name, and its
// owner holds a lock on it for as long as it lives; so the next writer of the same name can
// tell a leftover from a neighbour's work, and removes only the former.
package atomicfile

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Mode of every file, DirMode of every directory that is made here.
const (
	Mode    fs.FileMode = 0o600
	DirMode fs.FileMode = 0o700
)

// NotRegularError refuses a target that is not a regular file.
type NotRegularError struct {
	Path string
	Mode fs.FileMode
}

func (e *NotRegularError) Error() string {
	kind := "not a regular file"
	switch {
	case e.Mode&fs.ModeSymlink != 0:
		kind = "a symbolic link"
	case e.Mode.IsDir():
		kind = "a directory"
	}
	return fmt.Sprintf("%q is %s", e.Path, kind)
}

// Replace makes path hold data, durably, whether it existed or not.
func Replace(path string, data []byte) error { return Writer{}.Replace(path, data) }

// Create makes path hold data, durably, and fails with fs.ErrExist if path is taken: of several
// that create one name, one wins, and the loser changed nothing.
func Create(path string, data []byte) error { return Writer{}.Create(path, data) }

// MkdirAll makes dir and what is missing above it, each 0700 whatever the umask and durable.
// What exists already is left as it is.
func MkdirAll(dir string) error { return Writer{}.MkdirAll(dir) }

// Sweep removes leftovers of dead writers from dir, of every final name that match accepts.
func Sweep(dir string, match func(final string) bool) error { return Writer{}.Sweep(dir, match) }

// Writer is the same on a file system of the caller's choosing, so that tests can let it fail.
// The zero value writes to the real one.
type Writer struct{ FS FS }

func (w Writer) fs() FS {
	if w.FS == nil {
		return System
	}
	return w.FS
}

// Replace is the function Replace.
func (w Writer) Replace(path string, data []byte) error {
	if err := w.replace(path, data); err != nil {
		return fmt.Errorf("replace %q: %w", path, err)
	}
	return nil
}

func (w Writer) replace(path string, data []byte) error {
	if err := w.checkTarget(path, false); err != nil {
		return err
	}
	temp, unlock, err := w.write(path, data)
	if err != nil {
		return err
	}
	defer unlock()
	if err := w.fs().Rename(temp, path); err != nil {
		w.discard(temp)
		return err
	}
	return w.syncDir(filepath.Dir(path))
}

// Create is the function Create.
func (w Writer) Create(path string, data []byte) error {
	if err := w.create(path, data); err != nil {
		return fmt.Errorf("create %q: %w", path, err)
	}
	return nil
}

func (w Writer) create(path string, data []byte) error {
	if err := w.checkTarget(path, true); err != nil {
		return err
	}
	temp, unlock, err := w.write(path, data)
	if err != nil {
		return err
	}
	defer unlock()
	err = w.fs().Link(temp, path)
	if noLinks(err) {
		// A file system without hard links: the same promise in one step, where the system has it.
		if err = w.fs().RenameExcl(temp, path); err == nil {
			return w.syncDir(filepath.Dir(path))
		}
	}
	if err != nil {
		w.discard(temp)
		return err
	}
	w.discard(temp) // the file is there under its own name
	return w.syncDir(filepath.Dir(path))
}

func (w Writer) checkTarget(path string, absent bool) error {
	switch fi, err := w.fs().Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !fi.Mode().IsRegular():
		return &NotRegularError{Path: path, Mode: fi.Mode()}
	case absent:
		return fs.ErrExist
	}
	return nil
}

// write leaves a synced, closed temporary file beside path that holds data, locked until unlock
// is called, or nothing. The lock must last until the file has its final name: without it, a
// neighbour would take it for a leftover.
func (w Writer) write(path string, data []byte) (temp string, unlock func(), err error) {
	dir := filepath.Dir(path)
	stem := stemOf(filepath.Base(path))
	if err := w.sweep(dir, func(s string) bool { return s == stem }); err != nil {
		return "", nil, err
	}
	f, temp, lock, err := w.openTemp(dir, stem)
	if err != nil {
		return "", nil, err
	}
	unlock = func() {
		if lock != nil {
			_ = lock.Close()
		}
	}
	if err := fill(f, data); err != nil {
		_ = f.Close()
		w.discard(temp)
		unlock()
		return "", nil, err
	}
	if err := f.Close(); err != nil {
		w.discard(temp)
		unlock()
		return "", nil, fmt.Errorf("close: %w", err)
	}
	return temp, unlock, nil
}

// discard takes a temporary file away. That it could not is no news beside what made us do it:
// the next writer sweeps it.
func (w Writer) discard(temp string) { _ = w.fs().Remove(temp) }

func (w Writer) openTemp(dir, stem string) (f File, temp string, lock io.Closer, err error) {
	for range 100 {
		temp := filepath.Join(dir, tempName(stem))
		f, err := w.fs().OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, Mode)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, "", nil, err
		}
		lock, err := f.TryLock()
		if err != nil {
			return f, temp, nil, nil // no locks here: then nobody can sweep either
		}
		if lock != nil {
			// A sweeper may have been here between our open and our lock.
			_, err := w.fs().Lstat(temp)
			if err == nil {
				return f, temp, lock, nil
			}
			_ = lock.Close()
			if !errors.Is(err, fs.ErrNotExist) {
				_ = f.Close()
				w.discard(temp)
				return nil, "", nil, err
			}
		}
		_ = f.Close()
	}
	return nil, "", nil, fmt.Errorf("open a temporary file in %q: %w", dir, fs.ErrExist)
}

// fill writes data and makes it durable. The size is checked because a short write that the
// system does not own up to must not become a file that we rename into place.
func fill(f File, data []byte) error {
	if err := f.Chmod(Mode); err != nil {
		return fmt.Errorf("chmod: %w", err)
	}
	n, err := f.Write(data)
	if err == nil && n != len(data) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	fi, err := f.Stat()
	if err != nil {
		return fmt.Errorf("stat: %w", err)
	}
	if fi.Size() != int64(len(data)) {
		return fmt.Errorf("write: %d of %d bytes arrived: %w", fi.Size(), len(data), io.ErrShortWrite)
	}
	if err := f.Sync(); err != nil && !syncUnsupported(err) {
		return fmt.Errorf("sync: %w", err)
	}
	return nil
}

func (w Writer) syncDir(dir string) error {
	if err := w.fs().SyncDir(dir); err != nil && !syncUnsupported(err) {
		return fmt.Errorf("sync directory %q: %w", dir, err)
	}
	return nil
}

// Remove removes a file durably. That it is not there is not an error.
func (w Writer) Remove(path string) error {
	if err := w.fs().Remove(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return fmt.Errorf("remove %q: %w", path, err)
	}
	return w.syncDir(filepath.Dir(path))
}

// MkdirAll is the function MkdirAll.
func (w Writer) MkdirAll(dir string) error {
	if err := w.mkdirAll(filepath.Clean(dir)); err != nil {
		return fmt.Errorf("make directory %q: %w", dir, err)
	}
	return nil
}

func (w Writer) mkdirAll(dir string) error {
	err := w.fs().Mkdir(dir, DirMode)
	if errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir {
		if err := w.mkdirAll(filepath.Dir(dir)); err != nil {
			return err
		}
		err = w.fs().Mkdir(dir, DirMode)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		// It, or what it links to, must be a directory; a user may keep his state elsewhere.
		fi, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if !fi.IsDir() {
			return &NotRegularError{Path: dir, Mode: fi.Mode()}
		}
		return nil
	case err != nil:
		return err
	}
	return w.syncDir(filepath.Dir(dir))
}

// Sweep is the function Sweep.
func (w Writer) Sweep(dir string, match func(final string) bool) error {
	if err := w.sweep(dir, match); err != nil {
		return fmt.Errorf("sweep %q: %w", dir, err)
	}
	return nil
}

func (w Writer) sweep(dir string, match func(stem string) bool) error {
	names, err := w.fs().ReadNames(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if stem, ok := tempStem(name); ok && match(stem) {
			w.sweepOne(filepath.Join(dir, name))
		}
	}
	return nil
}

// sweepOne removes a temporary file if its owner is dead. Whatever it cannot do is left to the
// next one: a leftover costs a little space and nothing else.
func (w Writer) sweepOne(path string) {
	if fi, err := w.fs().Lstat(path); err != nil || !fi.Mode().IsRegular() {
		return
	}
	f, err := w.fs().OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	if lock, err := f.TryLock(); err == nil && lock != nil {
		_ = w.fs().Remove(path)
		_ = lock.Close()
	}
}

const tempMark = ".tmp-"

// maxStem leaves room for the mark in the 255 bytes of a name.
const maxStem = 200

// stemOf is what a temporary name embeds of a final one: all of it, unless it is too long.
func stemOf(base string) string {
	if len(base) <= maxStem {
		return base
	}
	sum := sha256.Sum256([]byte(base))
	return strings.ToValidUTF8(base[:maxStem-33], "") + "-" + hex.EncodeToString(sum[:16])
}

func tempName(stem string) string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return "." + stem + tempMark + hex.EncodeToString(b[:])
}

// tempStem recognises exactly what tempName makes.
func tempStem(name string) (stem string, ok bool) {
	rest, ok := strings.CutPrefix(name, ".")
	if !ok || len(rest) < len(tempMark)+16+1 {
		return "", false
	}
	stem, mark, nonce := rest[:len(rest)-len(tempMark)-16], rest[len(rest)-len(tempMark)-16:len(rest)-16], rest[len(rest)-16:]
	if mark != tempMark || strings.Trim(nonce, "0123456789abcdef") != "" {
		return "", false
	}
	return stem, true
}

// IsTemp reports whether name (without a directory) is one of our temporary files.
func IsTemp(name string) bool {
	_, ok := tempStem(name)
	return ok
}

// syncUnsupported: some file systems cannot sync (a directory, mostly); there is nothing more
// that we could do there.
func syncUnsupported(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP)
}

func noLinks(err error) bool {
	return errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EMLINK)
}
