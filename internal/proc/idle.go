package proc

import (
	"errors"
	"fmt"
	"slices"
)

// ErrNotIdle is wrapped by every answer that a process is not proven to be an idle shell.
var ErrNotIdle = errors.New("it is not an idle shell")

func notIdle(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrNotIdle, fmt.Sprintf(format, args...))
}

// shells are the names of programs that wait for commands and hold nothing else; editors are those
// of them that edit a line by themselves, so that the terminal shows whether they are at a prompt.
var (
	shells  = []string{"sh", "bash", "zsh", "fish", "dash", "ash", "ksh", "ksh93", "mksh", "oksh", "yash", "tcsh", "csh", "elvish", "nu", "xonsh"}
	editors = []string{"bash", "zsh", "fish"}
)

// IsShell reports that a program of that name is a shell.
func IsShell(name string) bool { return slices.Contains(shells, name) }

// IdleShell proves as far as the system can tell that the process is a shell at its prompt: it
// leads its process session, it sleeps, it has no children, it is itself in the foreground of its
// terminal, and, where it edits its lines, the terminal is in the mode in which it does so. tty is
// the terminal's path. An error that wraps ErrNotIdle says what does not hold.
//
// What cannot be told is a line that was typed and not entered.
func IdleShell(pid int, tty string) (ID, error) {
	i, err := Stat(pid)
	if err != nil {
		return ID{}, fmt.Errorf("%w: %w", ErrNotIdle, err)
	}
	switch {
	case i.Dead():
		return ID{}, notIdle("it has ended")
	case !IsShell(i.Comm):
		return ID{}, notIdle("it is %q", i.Comm)
	case i.Session != i.PID || i.TTY == 0:
		return ID{}, notIdle("it does not lead its terminal")
	case i.Front != i.Group:
		return ID{}, notIdle("something else is in the foreground of its terminal")
	case i.State != 'S':
		return ID{}, notIdle("it works on something (state %c)", i.State)
	}
	if n, err := children(pid); err != nil {
		return ID{}, fmt.Errorf("%w: whether it has children cannot be told: %w", ErrNotIdle, err)
	} else if n > 0 {
		return ID{}, notIdle("%d processes run below it", n)
	}
	if slices.Contains(editors, i.Comm) {
		if edits, err := editsLine(tty); err != nil {
			return ID{}, fmt.Errorf("%w: its terminal does not tell: %w", ErrNotIdle, err)
		} else if !edits {
			return ID{}, notIdle("it is not at its prompt")
		}
	}
	return i.ID(), nil
}
