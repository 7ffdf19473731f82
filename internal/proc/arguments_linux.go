package proc

import "fmt"

// Arguments returns the arguments of a process exactly, empty ones at the end included, as far as
// it has not written over them: ErrRewritten where that shows. The kernel's list is read, never a
// line of text.
func Arguments(id ID) ([]string, error) {
	b, err := readBounded(id.PID, "cmdline", MaxCmdline)
	if err != nil {
		return nil, err
	}
	if !Alive(id) {
		return nil, fmt.Errorf("read cmdline of process %d: %w", id.PID, ErrGone)
	}
	args, err := parseArguments(b)
	if err != nil {
		return nil, fmt.Errorf("read cmdline of process %d: %w", id.PID, err)
	}
	return args, nil
}
