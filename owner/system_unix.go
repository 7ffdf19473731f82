//go:build unix

package owner

import (
	"errors"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

func ownedBy(info fs.FileInfo, uid int) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == uid
}

// groupExists asks the kernel, in one call, whether the process group of a dead owner has any
// process left. A survivor that is an agent's own process shares it: only shells with job control
// put their children elsewhere.
func groupExists(c Claim) bool {
	g := c.Group
	if g == 0 {
		g = c.Session
	}
	return g > 1 && !errors.Is(unix.Kill(-g, 0), unix.ESRCH)
}

// directoryOnly opens a directory or nothing, and never waits for a pipe in its place.
const directoryOnly = syscall.O_RDONLY | syscall.O_DIRECTORY | syscall.O_NONBLOCK | syscall.O_CLOEXEC

func readable(path string) bool { return unix.Access(path, unix.R_OK) == nil }
