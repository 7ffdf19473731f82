package embedded

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/internal/proc"
)

const deleted = " (deleted)"

// look asks the system what stands in the foreground of a terminal: its name and directory. What
// cannot be told stays as it was.
func look(p *host.Pane, c *child) {
	if p.Dead {
		return
	}
	pid := foreground(c)
	i, err := proc.Stat(pid)
	if err != nil {
		pid = c.pid
		if i, err = proc.Stat(pid); err != nil {
			return
		}
	}
	p.Command = i.Comm
	dir, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
	if err != nil {
		return
	}
	p.Dir, p.DirGone = dir, false
	if real, ok := strings.CutSuffix(dir, deleted); ok {
		// A directory may really be called that.
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
			p.Dir, p.DirGone = real, true
		}
	}
}

// foreground is the process group that the terminal listens to; the child's own where it cannot
// be told.
func foreground(c *child) int {
	group := c.pid
	_ = c.ptmx.raw.Control(func(fd uintptr) {
		if g, err := unix.IoctlGetInt(int(fd), unix.TIOCGPGRP); err == nil && g > 0 {
			group = g
		}
	})
	return group
}
