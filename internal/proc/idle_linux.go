package proc

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// children counts the processes below pid, whoever's they are where the kernel lists them.
func children(pid int) (int, error) {
	// Of all threads: a shell has one, and a child belongs to the thread that made it.
	if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid)); err == nil && len(bytes.Fields(b)) > 0 {
		return len(bytes.Fields(b)), nil
	}
	t, err := ReadTable()
	if err != nil {
		return 0, err
	}
	return len(t.Children(pid)), nil
}

// editsLine reports a terminal whose reader gets each key by itself and echoes none: what a line
// editor sets before it waits for a line, and takes back before it runs one.
func editsLine(tty string) (bool, error) {
	fd, err := unix.Open(tty, unix.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, fmt.Errorf("open %q: %w", tty, err)
	}
	defer unix.Close(fd)
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return false, fmt.Errorf("modes of %q: %w", tty, err)
	}
	return t.Lflag&(unix.ICANON|unix.ECHO) == 0, nil
}
