package restore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// DirState is what a directory of the archive is now.
type DirState int

const (
	DirMissing    DirState = iota // not there, or not a directory, or not named by an absolute path
	DirUnreadable                 // there, and this user may not enter or read it
	DirThere
)

// Dir is the state of one directory.
type Dir struct {
	State   DirState
	Own     bool   // it belongs to this user
	Detail  string // why it is not DirThere
	Nearest string // the nearest parent that can be entered; empty where that is only the root
}

// dir looks at a directory once.
func (f *Facts) dir(path string) {
	if path == "" {
		return
	}
	if _, known := f.Dirs[path]; !known {
		f.Dirs[path] = lookDir(path)
	}
}

func lookDir(path string) Dir {
	if !filepath.IsAbs(path) || strings.IndexByte(path, 0) >= 0 {
		return Dir{Detail: "it is not an absolute path"}
	}
	d := Dir{}
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.IsDir():
		d.Detail = "it is not a directory"
	case err == nil:
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			d.Own = int(st.Uid) == os.Geteuid()
		}
		if err = unix.Access(path, unix.R_OK|unix.X_OK); err == nil {
			d.State = DirThere
			return d
		}
		d.State, d.Detail = DirUnreadable, err.Error()
	case errors.Is(err, fs.ErrPermission):
		d.State, d.Detail = DirUnreadable, "a parent may not be entered"
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		d.Detail = "it does not exist"
	default:
		d.Detail = plain(err)
	}
	// Spelled as it is in the archive: a symlinked parent keeps its name.
	for p := filepath.Dir(filepath.Clean(path)); p != "/" && p != "."; p = filepath.Dir(p) {
		if info, err := os.Stat(p); err == nil && info.IsDir() && unix.Access(p, unix.X_OK) == nil {
			d.Nearest = p
			break
		}
	}
	return d
}

// plain is an error without the path that its reader has before him already.
func plain(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}
