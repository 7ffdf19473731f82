package launch

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/phux-agent/phux-agent/internal/ui"
	"github.com/phux-agent/phux-agent/plugin"
)

// Bounds of one mint_command.
const (
	// It makes one conversation, and starts the agent's program two times to do so: opencode took 11
	// to 18 s for it where six processes waited for each processor. The bound is for one that hangs.
	mintTime   = time.Minute
	mintOutput = 64 << 10
)

var (
	errMintEmpty = errors.New("it printed nothing")
	errMintLines = errors.New("it printed more than one line")
	errMintLong  = fmt.Errorf("it printed more than %d bytes", mintOutput)
	errMintTime  = fmt.Errorf("it did not end within %v", mintTime)
)

// mintRun runs a mint_command once and returns the one line that it printed.
func mintRun(ctx context.Context, argv []string, dir string, env *environment, caller []string) (string, error) {
	path, _ := env.get("PATH")
	program, err := plugin.LookProgram(argv[0], path)
	if err != nil {
		return "", &ProgramError{Program: argv[0], Path: path, Err: err}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, mintTime, errMintTime)
	defer cancel()

	var stdout, stderr bounded
	stdout.max, stderr.max = mintOutput, 4<<10
	stdout.over = cancel
	cmd := exec.CommandContext(ctx, program, argv[1:]...)
	cmd.Dir = dir
	cmd.Env = env.environ(caller)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// A group of its own, so that what it started ends with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second

	err = cmd.Run()
	switch {
	case stdout.full:
		err = errMintLong
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	if err != nil {
		return "", &MintError{Program: program, Stderr: ui.Escape(clip(stderr.String(), 400)), Err: err}
	}
	out := strings.TrimSuffix(strings.TrimSuffix(stdout.String(), "\n"), "\r")
	switch {
	case out == "":
		return "", &MintError{Program: program, Stderr: ui.Escape(clip(stderr.String(), 400)), Err: errMintEmpty}
	case strings.ContainsAny(out, "\r\n"):
		return "", &MintError{Program: program, Err: errMintLines}
	}
	return out, nil
}

// bounded keeps at most max bytes; over is called once more come.
type bounded struct {
	buf  []byte // not a bytes.Buffer, whose ReadFrom knows no bound
	max  int
	full bool
	over func()
}

func (b *bounded) Write(p []byte) (int, error) {
	room := min(len(p), b.max-len(b.buf))
	b.buf = append(b.buf, p[:room]...)
	if room < len(p) && !b.full {
		b.full = true
		if b.over != nil {
			b.over()
		}
	}
	return len(p), nil
}

func (b *bounded) String() string { return string(b.buf) }

func clip(s string, most int) string {
	s = strings.TrimSpace(s)
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// environ is the whole environment that a helper of this launch gets.
func (v *environment) environ(caller []string) []string {
	var out []string
	for _, kv := range caller {
		name, _, _ := strings.Cut(kv, "=")
		if _, set := v.set[name]; set {
			continue
		}
		if s, ok := v.get(name); ok {
			out = append(out, name+"="+s)
		}
	}
	set, _ := v.lists()
	return append(out, set...)
}
