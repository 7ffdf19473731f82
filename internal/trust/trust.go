// Package trust decides whether somebody else could change what a path leads to.
//
// It looks at every component from / down: each must be owned by the user or by root and must
// not be writable by others. A directory that others may write to is passed only where its
// sticky bit keeps them from replacing an entry that is ours. Group write is accepted for a
// group in which nobody but the user (and root) is a member, so that umask 002 systems work.
package trust

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxLinks bounds the symbolic links followed on one path, as the kernel does.
const maxLinks = 40

// Error says which component of a path somebody else could change, and why.
type Error struct {
	Path  string      // the component, absolute
	Owner int         // its owner's uid, -1 where unknown
	Mode  fs.FileMode // its mode
	Why   string      // "is owned by uid 1001", "is writable by others", …
	Fix   string      // a command that repairs it; empty where there is none
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s %s (mode %s)", e.Path, e.Why, e.Mode)
}

// A Checker remembers what it has looked at, so that a set of files below one directory costs
// one walk. It serves one load; its zero value is ready. It is not for concurrent use.
type Checker struct {
	seen   map[string]error // intermediate directories
	groups *groups
	uid    int
	init   bool
}

func (c *Checker) start() {
	if !c.init {
		c.seen, c.uid, c.init = make(map[string]error), os.Geteuid(), true
	}
}

// Check walks an absolute path and returns where it leads, without symbolic links. The error is
// a *Error, or what the system said of a component that cannot be read.
func (c *Checker) Check(path string) (resolved string, err error) {
	c.start()
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("check trust of %q: the path is not absolute", path)
	}
	rest := split(filepath.Clean(path))
	at, links := "/", 0
	if err := c.component("/", false); err != nil {
		return "", err
	}
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		if name == ".." { // of a link's target; at holds no links, so its parent is its name's parent
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			if links++; links > maxLinks {
				return "", &fs.PathError{Op: "resolve", Path: path, Err: syscall.ELOOP}
			}
			if err := c.owner(next, info); err != nil {
				return "", err
			}
			target, err := os.Readlink(next)
			if err != nil {
				return "", err
			}
			if filepath.IsAbs(target) {
				at = "/"
			}
			rest = append(split(target), rest...)
			continue
		}
		if len(rest) > 0 {
			if err := c.component(next, false); err != nil {
				return "", err
			}
		}
		at = next
	}
	return at, c.component(at, true)
}

// split takes a path apart, keeping "..", which must be applied after links are resolved.
func split(path string) []string {
	var parts []string
	for p := range strings.SplitSeq(path, "/") {
		if p != "" && p != "." {
			parts = append(parts, p)
		}
	}
	return parts
}

func (c *Checker) component(path string, last bool) error {
	if !last {
		if err, ok := c.seen[path]; ok {
			return err
		}
	}
	info, err := os.Lstat(path)
	if err == nil {
		err = c.info(path, info, last)
	}
	if !last {
		c.seen[path] = err
	}
	return err
}

// info judges one file or directory by what was found at path. Where last is false a sticky
// bit suffices, because the entry that follows is checked to be ours.
func (c *Checker) info(path string, info fs.FileInfo, last bool) error {
	if err := c.owner(path, info); err != nil {
		return err
	}
	mode := info.Mode()
	if mode.Perm()&0o022 == 0 || !last && mode&fs.ModeSticky != 0 {
		return nil
	}
	uid, gid := ids(info)
	bad := &Error{Path: path, Owner: uid, Mode: mode}
	if mode.Perm()&0o002 != 0 {
		bad.Why, bad.Fix = "is writable by others", "chmod o-w "+quote(path)
		return bad
	}
	if c.groups == nil {
		c.groups = readGroups("/etc/passwd", "/etc/group")
	}
	if why := c.groups.shared(gid, c.uid); why != "" {
		bad.Why, bad.Fix = "is writable by "+why, "chmod g-w "+quote(path)
		return bad
	}
	if hasACL(path) {
		bad.Why, bad.Fix = "is writable by its group and has an access list besides", "setfacl -b "+quote(path)
		return bad
	}
	return nil
}

func (c *Checker) owner(path string, info fs.FileInfo) error {
	uid, _ := ids(info)
	if uid == c.uid || uid == 0 {
		return nil
	}
	return &Error{
		Path: path, Owner: uid, Mode: info.Mode(),
		Why: fmt.Sprintf("is owned by uid %d, who is neither you (uid %d) nor root", uid, c.uid),
	}
}

// ErrTooLarge is returned for a file above the size that a caller allows.
var ErrTooLarge = errors.New("the file is too large")

// ReadFile checks a file like Check and reads it. The file itself must not be a symbolic link;
// what is read is what was checked, for owner and mode are looked at again on the open file.
// Over max bytes it is ErrTooLarge.
func (c *Checker) ReadFile(path string, max int64) ([]byte, error) {
	c.start()
	dir, err := c.Check(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	path = filepath.Join(dir, filepath.Base(path))
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, &Error{Path: path, Owner: -1, Mode: fs.ModeSymlink, Why: "is a symbolic link"}
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &Error{Path: path, Owner: -1, Mode: info.Mode(), Why: "is not a regular file"}
	}
	if err := c.info(path, info, true); err != nil {
		return nil, err
	}
	if info.Size() > max {
		return nil, fmt.Errorf("read %s (%d bytes, at most %d): %w", path, info.Size(), max, ErrTooLarge)
	}
	b, err := io.ReadAll(io.LimitReader(f, max+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > max {
		return nil, fmt.Errorf("read %s (at most %d bytes): %w", path, max, ErrTooLarge)
	}
	return b, nil
}

func ids(info fs.FileInfo) (uid, gid int) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid), int(st.Gid)
	}
	return -1, -1
}

// quote makes a path safe to paste into a shell.
func quote(path string) string {
	if strings.IndexFunc(path, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("/._-+@", r)
	}) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
