package host

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The test binary plays the process that becomes a program: START_TEST names the case.
func TestMain(m *testing.M) {
	c, ok := startCases()[os.Getenv("START_TEST")]
	if !ok {
		os.Exit(m.Run())
	}
	err := c.Exec(os.Environ(), "nonce1")
	os.Stdout.WriteString("failed: " + err.Error() + "\n")
	os.Exit(7)
}

func startCases() map[string]Start {
	dir := os.Getenv("START_TEST_DIR")
	return map[string]Start{
		"env": {
			Mode: Program, Argv: []string{"/usr/bin/env"}, Dir: dir,
			Set: []string{"A=over", "PHUX_CLAUDE_SESSION_ID=mine"}, Unset: []string{"GONE"},
		},
		"argv":   {Mode: Program, Argv: []string{"/bin/sh", "-c", `pwd -P; for a; do printf '<%s>' "$a"; done`, "sh", "", "a b;", "$HOME", "\n"}, Dir: dir},
		"stay":   {Mode: Program, Argv: []string{"/bin/pwd"}},
		"no dir": {Mode: Program, Argv: []string{"/bin/pwd"}, Dir: dir + "/missing"},
		"noexec": {Mode: Program, Argv: []string{dir + "/text"}},
		"absent": {Mode: Program, Argv: []string{dir + "/absent"}},
		"shell":  {Mode: Shell, Dir: dir},
	}
}

func become(t *testing.T, name, dir string, env ...string) (string, int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append([]string{"START_TEST=" + name, "START_TEST_DIR=" + dir, "PATH=/usr/bin:/bin"}, env...)
	cmd.Dir = "/"
	cmd.Stdin = strings.NewReader("")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func TestExec(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "a dir #{pid} '$x")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/text", []byte("no program\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	out, _ := become(t, "env", dir, "A=1", "A=2", "GONE=1", "PHUX_X_SESSION_ID=theirs", "PHUX_SESSION_ID=theirs",
		"PHUX_CLAUDE_SESSION_ID=theirs", "PHUX_AGENT_BIRTH=older", "OLDPWD=/old", "PWD=/wrong", "KEEP=kept")
	want := map[string]string{
		"A": "over", "KEEP": "kept", "PWD": dir, "PHUX_CLAUDE_SESSION_ID": "mine", "PHUX_AGENT_BIRTH": "nonce1",
		"PATH": "/usr/bin:/bin", "START_TEST": "env", "START_TEST_DIR": dir,
	}
	got := make(map[string]string)
	for _, l := range strings.Split(strings.TrimSuffix(out, "\n"), "\n") {
		k, v, _ := strings.Cut(l, "=")
		if _, twice := got[k]; twice {
			t.Errorf("%s twice", k)
		}
		got[k] = v
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if out, _ := become(t, "argv", dir); out != dir+"\n<><a b;><$HOME><\n>" {
		t.Errorf("%q", out)
	}
	if out, _ := become(t, "stay", dir); out != "/\n" {
		t.Errorf("%q", out)
	}
	for name, want := range map[string]error{"no dir": syscall.ENOENT, "noexec": syscall.ENOEXEC, "absent": syscall.ENOENT} {
		out, code := become(t, name, dir, "HOME=/")
		if code != 7 || !strings.Contains(out, want.Error()) {
			t.Errorf("%s: %d %q", name, code, out)
		}
	}
	script := filepath.Join(t.TempDir(), "myshell")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho \"$0 $# $PWD\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if out, _ := become(t, "shell", dir, "SHELL="+script); !strings.HasSuffix(out, " 0 "+dir+"\n") {
		t.Errorf("%q", out)
	}
}

func TestExecRefuses(t *testing.T) {
	for _, s := range []Start{
		{Mode: Program},
		{Mode: Program, Argv: []string{"relative"}},
		{Mode: Shell, Argv: []string{"relative"}},
		{Mode: Placeholder},
		{Mode: Program, Argv: []string{"/bin/true"}, Dir: "relative"},
	} {
		if err := s.Exec(nil, ""); !errors.Is(err, ErrRequest) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	var start *StartError
	if err := (Start{Mode: Program, Argv: []string{"/bin/true"}, Dir: t.TempDir() + "/absent"}).Exec(nil, ""); !errors.As(err, &start) || start.Op != "enter" || !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestNativeEnvNames(t *testing.T) {
	for name, want := range map[string]bool{
		"PHUX_SESSION_ID": true, "PHUX_CODEX_SESSION_ID": true, "PHUX__SESSION_ID": true,
		"PHUX_SESSION": false, "XPHUX_A_SESSION_ID": false, "PHUX_A_SESSION_IDS": false, "_SESSION_ID": false,
	} {
		if got := IsNativeEnv(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
