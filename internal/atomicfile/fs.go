package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// FS is what a durable write asks of a file system, a step a method. Names are paths as given.
type FS interface {
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	Lstat(name string) (fs.FileInfo, error)
	ReadNames(dir string) ([]string, error) // in no order
	Link(old, new string) error             // fs.ErrExist where new is taken
	Rename(old, new string) error           // replaces new
	RenameExcl(old, new string) error       // fs.ErrExist where new is taken, else errors.ErrUnsupported where it cannot
	Remove(name string) error
	Mkdir(name string, perm fs.FileMode) error // perm whatever the umask
	SyncDir(dir string) error
}

// File is an open file of an FS.
type File interface {
	io.Writer
	Chmod(fs.FileMode) error
	Stat() (fs.FileInfo, error)
	Sync() error
	Close() error
	// TryLock takes the exclusive lock on the file, or returns nil where another has it. The lock
	// outlives Close, and dies with the process. An error means that there are no locks here.
	TryLock() (io.Closer, error)
}

// System is the real file system.
var System FS = system{}

type system struct{}

func (system) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return systemFile{f}, nil
}

func (system) Lstat(name string) (fs.FileInfo, error) { return os.Lstat(name) }
func (system) Link(old, new string) error             { return os.Link(old, new) }
func (system) Rename(old, new string) error           { return os.Rename(old, new) }
func (system) RenameExcl(old, new string) error       { return renameExcl(old, new) }
func (system) Remove(name string) error               { return os.Remove(name) }

func (system) ReadNames(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return f.Readdirnames(-1)
}

func (system) Mkdir(name string, perm fs.FileMode) error {
	if err := os.Mkdir(name, perm); err != nil {
		return err
	}
	return os.Chmod(name, perm)
}

func (system) SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

type systemFile struct{ *os.File }

func (f systemFile) TryLock() (io.Closer, error) {
	// flock belongs to the open file, not to the descriptor: a second descriptor keeps it.
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	lock := os.NewFile(uintptr(fd), f.Name())
	for {
		switch err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); {
		case err == nil:
			return lock, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return nil, lock.Close()
		case errors.Is(err, unix.EINTR):
		default:
			return nil, errors.Join(fmt.Errorf("lock: %w", err), lock.Close())
		}
	}
}
