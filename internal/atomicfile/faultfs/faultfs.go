// Package faultfs is a file system for tests of durable writes: the real one, with a fault at a
// chosen step, and with a power loss that takes away whatever was not synced.
package faultfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/phux-agent/phux-agent/internal/atomicfile"
)

// ErrCrashed answers every call after a crash: the process is gone, nothing that it would do
// reaches the disk.
var ErrCrashed = errors.New("the process has crashed")

// Fault is what happens at one step. The zero value is nothing.
type Fault struct {
	Err   error // the step fails so and does nothing
	Short bool  // of a write: half arrives; with Err it is said, without it is not
	Crash bool  // the process ends just before the step
}

// Step is one call.
type Step struct {
	N    int // from 1
	Op   string
	Path string
}

// FS counts the steps and asks Decide about each. Safe for concurrent use.
type FS struct {
	Decide func(Step) Fault

	mu       sync.Mutex
	n        int
	crashed  bool
	steps    []Step
	open     map[*file]bool
	locks    []io.Closer
	unsynced map[string]bool // paths whose data is not on the disk
	undo     []undo          // directory changes that are not on the disk, oldest first
}

type undo struct {
	dir string
	do  func()
}

// At returns a Decide that does f at step n.
func At(n int, f Fault) func(Step) Fault {
	return func(s Step) Fault {
		if s.N == n {
			return f
		}
		return Fault{}
	}
}

// Steps returns what was called so far.
func (f *FS) Steps() []Step {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Step(nil), f.steps...)
}

// PowerLoss ends the process and takes away what was not synced: data always; directory changes
// where names is true, for a disk may have them or not.
func (f *FS) PowerLoss(names bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.crash()
	for path := range f.unsynced {
		_ = os.Truncate(path, 0)
	}
	f.unsynced = nil
	if names {
		for i := len(f.undo) - 1; i >= 0; i-- {
			f.undo[i].do()
		}
	}
	f.undo = nil
}

func (f *FS) crash() {
	f.crashed = true
	for o := range f.open {
		_ = o.File.Close()
	}
	for _, l := range f.locks {
		_ = l.Close() // locks die with their process
	}
	f.open, f.locks = nil, nil
}

// step returns what shall happen, with the lock held until done is called.
func (f *FS) step(op, path string) (ft Fault, done func(), err error) {
	f.mu.Lock()
	if f.crashed {
		f.mu.Unlock()
		return ft, nil, ErrCrashed
	}
	f.n++
	s := Step{f.n, op, path}
	f.steps = append(f.steps, s)
	if f.Decide != nil {
		ft = f.Decide(s)
	}
	if ft.Crash {
		f.crash()
		f.mu.Unlock()
		return ft, nil, ErrCrashed
	}
	if ft.Err != nil && !ft.Short {
		f.mu.Unlock()
		return ft, nil, &fs.PathError{Op: op, Path: path, Err: ft.Err}
	}
	return ft, f.mu.Unlock, nil
}

func (f *FS) changed(path string, do func()) {
	f.undo = append(f.undo, undo{filepath.Dir(path), do})
}

func (f *FS) OpenFile(name string, flag int, perm fs.FileMode) (atomicfile.File, error) {
	_, done, err := f.step("open", name)
	if err != nil {
		return nil, err
	}
	defer done()
	in, err := atomicfile.System.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	o := &file{File: in, fs: f, path: name}
	if f.open == nil {
		f.open = map[*file]bool{}
	}
	f.open[o] = true
	if flag&os.O_CREATE != 0 {
		f.mark(name)
		f.changed(name, func() { _ = os.Remove(name) })
	}
	return o, nil
}

func (f *FS) mark(path string) {
	if f.unsynced == nil {
		f.unsynced = map[string]bool{}
	}
	f.unsynced[path] = true
}

func (f *FS) Lstat(name string) (fs.FileInfo, error) {
	_, done, err := f.step("lstat", name)
	if err != nil {
		return nil, err
	}
	defer done()
	return os.Lstat(name)
}

func (f *FS) ReadNames(dir string) ([]string, error) {
	_, done, err := f.step("readdir", dir)
	if err != nil {
		return nil, err
	}
	defer done()
	return atomicfile.System.ReadNames(dir)
}

func (f *FS) Link(old, new string) error { return f.move("link", old, new, os.Link) }
func (f *FS) RenameExcl(old, new string) error {
	return f.move("rename-excl", old, new, atomicfile.System.RenameExcl)
}
func (f *FS) Rename(old, new string) error { return f.move("rename", old, new, os.Rename) }

func (f *FS) move(op, old, new string, do func(old, new string) error) error {
	_, done, err := f.step(op, new)
	if err != nil {
		return err
	}
	defer done()
	before, readErr := os.ReadFile(new)
	if err := do(old, new); err != nil {
		return err
	}
	if f.unsynced[old] {
		f.mark(new)
		if op != "link" {
			delete(f.unsynced, old)
		}
	}
	f.changed(new, func() {
		if op != "link" {
			_ = os.Link(new, old)
		}
		_ = os.Remove(new)
		if readErr == nil {
			_ = os.WriteFile(new, before, atomicfile.Mode)
		}
	})
	return nil
}

func (f *FS) Remove(name string) error {
	_, done, err := f.step("remove", name)
	if err != nil {
		return err
	}
	defer done()
	before, readErr := os.ReadFile(name)
	if err := os.Remove(name); err != nil {
		return err
	}
	f.changed(name, func() {
		if readErr == nil {
			_ = os.WriteFile(name, before, atomicfile.Mode)
		}
	})
	return nil
}

func (f *FS) Mkdir(name string, perm fs.FileMode) error {
	_, done, err := f.step("mkdir", name)
	if err != nil {
		return err
	}
	defer done()
	if err := atomicfile.System.Mkdir(name, perm); err != nil {
		return err
	}
	f.changed(name, func() { _ = os.RemoveAll(name) })
	return nil
}

func (f *FS) SyncDir(dir string) error {
	_, done, err := f.step("sync-dir", dir)
	if err != nil {
		return err
	}
	defer done()
	kept := f.undo[:0]
	for _, u := range f.undo {
		if u.dir != filepath.Clean(dir) {
			kept = append(kept, u)
		}
	}
	f.undo = kept
	return nil
}

type file struct {
	atomicfile.File
	fs   *FS
	path string
}

func (o *file) Write(b []byte) (int, error) {
	ft, done, err := o.fs.step("write", o.path)
	if err != nil {
		return 0, err
	}
	defer done()
	if ft.Short {
		n, err := o.File.Write(b[:len(b)/2])
		if err == nil {
			err = ft.Err
		}
		if err == nil {
			n = len(b) // the lie that only a look at the size finds
		}
		return n, err
	}
	return o.File.Write(b)
}

func (o *file) Chmod(m fs.FileMode) error {
	_, done, err := o.fs.step("chmod", o.path)
	if err != nil {
		return err
	}
	defer done()
	return o.File.Chmod(m)
}

func (o *file) Stat() (fs.FileInfo, error) {
	_, done, err := o.fs.step("stat", o.path)
	if err != nil {
		return nil, err
	}
	defer done()
	return o.File.Stat()
}

func (o *file) Sync() error {
	_, done, err := o.fs.step("sync", o.path)
	if err != nil {
		return err
	}
	defer done()
	delete(o.fs.unsynced, o.path)
	return nil
}

func (o *file) TryLock() (io.Closer, error) {
	_, done, err := o.fs.step("lock", o.path)
	if err != nil {
		return nil, err
	}
	defer done()
	lock, err := o.File.TryLock()
	if lock != nil {
		o.fs.locks = append(o.fs.locks, lock)
	}
	return lock, err
}

func (o *file) Close() error {
	_, done, err := o.fs.step("close", o.path)
	if err != nil {
		if !errors.Is(err, ErrCrashed) {
			_ = o.File.Close()
		}
		return err
	}
	defer done()
	delete(o.fs.open, o)
	return o.File.Close()
}
