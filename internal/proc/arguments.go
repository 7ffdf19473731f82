package proc

import (
	"bytes"
	"errors"
)

// ErrRewritten is a process that wrote over its arguments.
var ErrRewritten = errors.New("the process wrote over its arguments")

// parseArguments takes apart what the kernel shows of a process's arguments, each of which ends
// with a NUL: empty ones are arguments too.
func parseArguments(b []byte) ([]string, error) {
	if len(b) == 0 || b[len(b)-1] != 0 {
		return nil, ErrRewritten
	}
	var out []string
	for _, w := range bytes.Split(b[:len(b)-1], []byte{0}) {
		out = append(out, string(w))
	}
	return out, nil
}
