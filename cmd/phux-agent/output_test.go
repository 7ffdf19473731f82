package main

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
)

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

// TestLostOutput: no verb ends with success whose words did not arrive.
func TestLostOutput(t *testing.T) {
	full := brokenWriter{syscall.ENOSPC}
	for _, args := range [][]string{{"version"}, {"version", "--json"}, {"--help"}, {"integration", "show", "codex"}, {"man"}} {
		for _, c := range []struct {
			out  io.Writer
			said bool
		}{{full, true}, {brokenWriter{syscall.EPIPE}, false}} {
			var stderr bytes.Buffer
			environ := []string{"HOME=" + t.TempDir(), "XDG_RUNTIME_DIR=" + t.TempDir(), "PATH="}
			code := run(append([]string{"phux-agent"}, args...), environ, strings.NewReader(""), c.out, &stderr)
			if code != failed || c.said != strings.Contains(stderr.String(), "no space left") || !c.said && stderr.Len() > 0 {
				t.Errorf("%q into %v: %d, %s", args, c.out, code, stderr.String())
			}
		}
	}
}

func TestJudgeOutput(t *testing.T) {
	own, status := errors.New("own"), &statusError{code: partial}
	for _, c := range []struct {
		lost, err error
		code      int
		said      string
	}{
		{nil, nil, done, ""},
		{nil, status, partial, ""},
		{syscall.ENOSPC, nil, failed, "no space left"},
		{syscall.ENOSPC, status, partial, "no space left"},
		{syscall.ENOSPC, own, failed, "own"},
		{syscall.EPIPE, nil, failed, ""},
		{syscall.EPIPE, status, partial, ""},
		{syscall.EPIPE, own, failed, "own"},
	} {
		var stderr bytes.Buffer
		a := &app{stderr: &stderr}
		o := &output{err: c.lost}
		code := a.report(o.judge(a, c.err))
		if code != c.code || !strings.Contains(stderr.String(), c.said) || c.said == "" && stderr.Len() > 0 {
			t.Errorf("%v, %v: %d, %s", c.lost, c.err, code, stderr.String())
		}
	}
}
