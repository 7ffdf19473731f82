// Package dirs finds the XDG directories, reading the environment when asked and not before.
package dirs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// name is the last element of each directory.
const name = "phux-agent"

// Dirs are absolute paths of phux-agent's own directories. None is created by looking.
type Dirs struct {
	Home    string // the user's home directory
	Config  string // $XDG_CONFIG_HOME/phux-agent
	Data    string // $XDG_DATA_HOME/phux-agent
	State   string // $XDG_STATE_HOME/phux-agent
	Runtime string // $XDG_RUNTIME_DIR/phux-agent, else a private fallback
}

// Find reads the XDG variables. A relative value is ignored, as the XDG base directory
// specification says. The runtime directory is $XDG_RUNTIME_DIR where that is a directory of
// ours, else /run/user/UID where it is, else /tmp/phux-agent-UID whatever TMPDIR says: all panes
// of a user must meet in one place. Without a home directory it is an error.
func Find(getenv func(string) string) (Dirs, error) {
	home := getenv("HOME")
	if !filepath.IsAbs(home) {
		u, err := user.Current()
		if err != nil || !filepath.IsAbs(u.HomeDir) {
			return Dirs{}, errors.New("find the home directory: HOME is not set to an absolute path")
		}
		home = u.HomeDir
	}
	home = filepath.Clean(home)
	base := func(variable, fallback string) string {
		if v := getenv(variable); filepath.IsAbs(v) {
			return filepath.Join(v, name)
		}
		return filepath.Join(home, fallback, name)
	}
	return Dirs{
		Home:    home,
		Config:  base("XDG_CONFIG_HOME", ".config"),
		Data:    base("XDG_DATA_HOME", ".local/share"),
		State:   base("XDG_STATE_HOME", ".local/state"),
		Runtime: runtimeDir(getenv("XDG_RUNTIME_DIR"), "/run/user", "/tmp", os.Getuid()),
	}, nil
}

func runtimeDir(xdg, run, tmp string, uid int) string {
	id := strconv.Itoa(uid)
	for _, base := range []string{xdg, filepath.Join(run, id)} {
		if filepath.IsAbs(base) && ours(base, uid) {
			return filepath.Join(base, name)
		}
	}
	return filepath.Join(tmp, name+"-"+id)
}

// ours reports whether base is a directory of the user that others cannot write to.
func ours(base string, uid int) bool {
	info, err := os.Stat(base)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o002 != 0 {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == uid
}

// IsPrivate reports whether path is a directory that is ours alone already.
func IsPrivate(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// ForeignError says that a private directory is not ours alone.
type ForeignError struct {
	Path string
	Why  string
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("use private directory %s: %s", e.Path, e.Why)
}

// Private makes path a directory that is ours alone (0700, whatever the umask), with its
// parents. One that somebody else made, or a symbolic link in its place, is a *ForeignError; a
// mode that lets others in is narrowed where the directory is ours.
func Private(path string) error {
	if !filepath.IsAbs(path) {
		return &ForeignError{Path: path, Why: "the path is not absolute"}
	}
	err := os.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		err = os.Mkdir(path, 0o700)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return &ForeignError{Path: path, Why: "it is not a directory"}
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) != os.Geteuid() {
		return &ForeignError{Path: path, Why: "somebody else owns it"}
	}
	if info.Mode().Perm() != 0o700 {
		return os.Chmod(path, 0o700)
	}
	return nil
}
