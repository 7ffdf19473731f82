// Package foreign edits files that belong to other programs and to their user: a settings file of
// an agent, a shell's start-up file. What is changed is a few bytes; everything else keeps its
// bytes, its order and its comments.
package foreign

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// MaxFile bounds a file that is edited, in bytes.
const MaxFile = 4 << 20

// Refusal says why a file is left alone.
type Refusal struct{ Path, Reason string }

func (e *Refusal) Error() string { return fmt.Sprintf("%s: %s", e.Path, e.Reason) }

// ErrChanged is wrapped where somebody else wrote the file between our reading and our writing.
var ErrChanged = errors.New("the file was changed meanwhile")

// File is one file as it was read.
type File struct {
	Path   string // as it was named
	Target string // with links resolved: what is written
	Exists bool
	Data   []byte
	mode   fs.FileMode
	moment func() // for tests: between the last look and the write
}

// Read reads a file whole, through links. One that is not there is no error; one that we would
// not write is a *Refusal: somebody else's, read-only, with several names, too large, no file.
func Read(path string) (*File, error) {
	f := &File{Path: path, Target: path, mode: 0o600}
	target, err := resolve(path)
	if err != nil {
		return nil, &Refusal{path, "it cannot be reached: " + short(err)}
	}
	f.Target = target
	h, err := os.OpenFile(target, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, &Refusal{path, "it cannot be read: " + short(err)}
	}
	defer h.Close()
	info, err := h.Stat()
	if err != nil {
		return nil, &Refusal{path, "it cannot be read: " + short(err)}
	}
	st, _ := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return nil, &Refusal{path, "it is not a regular file"}
	case st != nil && int(st.Uid) != os.Geteuid():
		return nil, &Refusal{path, "it belongs to another user"}
	case st != nil && st.Nlink > 1:
		return nil, &Refusal{path, "it has several names (hard links), and only one of them would get the change"}
	case info.Mode().Perm()&0o200 == 0:
		return nil, &Refusal{path, "it is read-only; somebody else keeps it, or chmod u+w it"}
	case info.Size() > MaxFile:
		return nil, &Refusal{path, fmt.Sprintf("it is longer than %d bytes", MaxFile)}
	}
	b, err := io.ReadAll(io.LimitReader(h, MaxFile+1))
	if err != nil {
		return nil, &Refusal{path, "it cannot be read: " + short(err)}
	}
	if len(b) > MaxFile {
		return nil, &Refusal{path, fmt.Sprintf("it is longer than %d bytes", MaxFile)}
	}
	f.Exists, f.Data, f.mode = true, b, info.Mode().Perm()
	return f, nil
}

// resolve follows links, also to a file that is not there yet.
func resolve(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return real, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if to, err := os.Readlink(path); err == nil {
		return "", fmt.Errorf("it leads to %s, which is not there", to)
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil { // what is missing below it is to be made
			rest, err := filepath.Rel(dir, path)
			return filepath.Join(real, rest), err
		}
		if to, err := os.Readlink(dir); err == nil {
			return "", fmt.Errorf("%s leads to %s, which is not there", dir, to)
		}
		if dir == filepath.Dir(dir) {
			return path, nil
		}
	}
}

func short(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// Replace makes the file hold data, whole or not at all, with the mode that it had; a new one is
// the user's alone. It returns the directories that it made, outermost first. ErrChanged where the
// file is not as it was read.
func (f *File) Replace(data []byte) (made []string, err error) {
	dir := filepath.Dir(f.Target)
	if made, err = mkdirs(dir); err != nil {
		return made, fmt.Errorf("write %q: %w", f.Path, err)
	}
	if err := f.replace(dir, data); err != nil {
		unmake(made)
		return nil, fmt.Errorf("write %q: %w", f.Path, err)
	}
	return made, nil
}

func (f *File) replace(dir string, data []byte) error {
	tmp, err := os.CreateTemp(dir, ".phux-agent-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // where it was not renamed
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Chmod(f.mode)
	}
	if err == nil {
		err = tmp.Sync()
	}
	if err := errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	if err := f.same(f.Target); err != nil {
		return err
	}
	if f.moment != nil {
		f.moment()
	}
	if !f.Exists {
		// Who came first stays.
		if err := os.Link(tmp.Name(), f.Target); errors.Is(err, fs.ErrExist) {
			return ErrChanged
		} else if err == nil {
			return nil
		}
		return os.Rename(tmp.Name(), f.Target)
	}
	// The two change places, so that what was taken away can be looked at: who wrote in the last
	// moment has it back.
	if err := exchange(tmp.Name(), f.Target); err != nil {
		return os.Rename(tmp.Name(), f.Target) // a file system that cannot
	}
	if err := f.same(tmp.Name()); err != nil {
		return errors.Join(err, exchange(tmp.Name(), f.Target))
	}
	return nil
}

// same checks that the file at a path is as this one was read.
func (f *File) same(path string) error {
	now, err := readRegular(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !f.Exists:
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case err != nil || !f.Exists || !bytes.Equal(now, f.Data):
		return ErrChanged
	}
	return nil
}

// readRegular reads a file that is one, and waits for nobody.
func readRegular(path string) ([]byte, error) {
	h, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	if info, err := h.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, ErrChanged)
	}
	return io.ReadAll(io.LimitReader(h, MaxFile+1))
}

// Remove takes the file away, if it is as it was read.
func (f *File) Remove() error {
	err := f.same(f.Target)
	if err == nil && f.Exists {
		err = os.Remove(f.Target)
	}
	if err != nil {
		return fmt.Errorf("remove %q: %w", f.Path, err)
	}
	return nil
}

// mkdirs makes a directory with what is missing above it.
func mkdirs(dir string) (made []string, err error) {
	var missing []string
	for d := dir; ; d = filepath.Dir(d) {
		info, err := os.Stat(d)
		if err == nil && !info.IsDir() {
			return nil, fmt.Errorf("%s is not a directory", d)
		}
		if err == nil || d == filepath.Dir(d) {
			break
		}
		missing = append([]string{d}, missing...)
	}
	for _, d := range missing {
		switch err := os.Mkdir(d, 0o700); {
		case err == nil:
			made = append(made, d)
		case !errors.Is(err, fs.ErrExist):
			unmake(made)
			return nil, err
		} // one that somebody else made meanwhile is theirs, and so is a link that leads nowhere
	}
	return made, nil
}

// Unmake removes directories that Replace made, as far as they are empty.
func Unmake(made []string) { unmake(made) }

func unmake(made []string) {
	for i := len(made) - 1; i >= 0; i-- {
		if os.Remove(made[i]) != nil {
			return
		}
	}
}
