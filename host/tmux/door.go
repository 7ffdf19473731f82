package tmux

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/phux-agent/phux-agent/host"
)

// CommandError is a tmux that ended with an error, in its own words.
type CommandError struct {
	Exit   int
	Stderr string
	err    error // host.ErrNoServer and the like, where the words say so
}

func (e *CommandError) Error() string {
	if e.Stderr == "" {
		return fmt.Sprintf("tmux ended with status %d", e.Exit)
	}
	return "tmux: " + e.Stderr
}

func (e *CommandError) Unwrap() error { return e.err }

// tool is how one server is spoken to: the binary, the arguments that choose the server, and
// the environment. It is the one door through which this package starts a tmux.
type tool struct {
	binary string
	server []string // -L NAME or -S PATH
	env    []string
}

// clientEnv is the environment of every tmux that we start. A server that is started by it hands
// it to all of its panes: so nothing in it may say that we are inside a pane, or who we are.
func clientEnv(environ []string, tmpdir string) []string {
	out := make([]string, 0, len(environ)+1)
	for _, kv := range environ {
		k, _, _ := strings.Cut(kv, "=")
		switch {
		case k == "TMUX", k == "TMUX_PANE", k == "TMUX_TMPDIR", k == host.BirthEnv, host.IsNativeEnv(k):
		default:
			out = append(out, kv)
		}
	}
	if tmpdir != "" {
		out = append(out, "TMUX_TMPDIR="+tmpdir)
	}
	return out
}

// then stands between two commands of one run; no argument can be it.
const then = "\x00"

// run executes one tmux and returns what it printed. With a script, the script is its standard
// input. Words on stderr with status 0 are no error.
func (t tool) run(ctx context.Context, script string, words ...string) ([]byte, error) {
	args := make([]string, 0, len(t.server)+len(words)+1)
	args = append(append(args, "-u"), t.server...)
	for _, w := range words {
		if w == then {
			args = append(args, ";")
			continue
		}
		args = append(args, argument(w))
	}
	cmd := exec.CommandContext(ctx, t.binary, args...)
	cmd.Env = t.env
	// A client's directory is where tmux starts what has none of its own; the caller's may not
	// even exist.
	cmd.Dir = "/"
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	stdout.Grow(64 << 10)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if script != "" {
		cmd.Stdin = strings.NewReader(script)
	}
	err := cmd.Run()
	if err == nil {
		return stdout.Bytes(), nil
	}
	if ctx.Err() != nil {
		return stdout.Bytes(), context.Cause(ctx)
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return nil, err
	}
	return stdout.Bytes(), commandError(exit.ExitCode(), stderr.String())
}

// script runs a list of lines as tmux reads a file: each line is a list of its own.
func (t tool) script(ctx context.Context, lines []string) ([]byte, error) {
	return t.run(ctx, strings.Join(lines, "\n")+"\n", "source-file", "-")
}

func commandError(exit int, stderr string) error {
	e := &CommandError{Exit: exit, Stderr: strings.TrimSpace(stderr)}
	if len(e.Stderr) > 4096 {
		e.Stderr = e.Stderr[:4096]
	}
	for _, line := range strings.Split(e.Stderr, "\n") {
		switch {
		case strings.HasPrefix(line, "no server running on "),
			strings.HasPrefix(line, "error connecting to ") && (strings.HasSuffix(line, "(No such file or directory)") || strings.HasSuffix(line, "(Connection refused)")),
			line == "server exited unexpectedly", line == "lost server":
			e.err = host.ErrNoServer
		case strings.HasPrefix(line, "duplicate session: "):
			e.err = host.ErrSessionExists
		case strings.Contains(line, "no space for"), strings.HasSuffix(line, "pane too small"):
			e.err = host.ErrNoSpace
		case strings.HasPrefix(line, "can't find pane"):
			e.err = host.ErrNoTerminal
		case strings.HasPrefix(line, "can't find session"):
			e.err = host.ErrNoSession
		default:
			continue
		}
		break
	}
	return e
}

func uid() int { return os.Getuid() }

func selfPID() int { return os.Getpid() }
