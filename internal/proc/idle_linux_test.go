package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// shell starts a shell that leads a terminal of its own.
func shell(t *testing.T, name string, args ...string) (pid int, tty string, in *os.File) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TERM=xterm", "PS1=$ "}
	ptmx, slave, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tty = slave.Name()
	slave.Close()
	go func() { // what it says is read, or it would wait
		buf := make([]byte, 4096)
		for {
			if _, err := ptmx.Read(buf); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		ptmx.Close()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	return cmd.Process.Pid, tty, ptmx
}

func TestIdleShell(t *testing.T) {
	becomes := func(t *testing.T, pid int, tty, want string) {
		t.Helper()
		var err error
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			_, err = IdleShell(pid, tty)
			if want == "" && err == nil || want != "" && err != nil && errors.Is(err, ErrNotIdle) && strings.Contains(err.Error(), want) {
				return
			}
		}
		t.Fatalf("it is %v, and not %q", err, want)
	}
	for _, c := range []struct{ name, line, want string }{
		{"sh", "sleep 1000", "foreground"},
		{"sh", "sleep 1000 &", "processes run below it"},
		{"sh", "while :; do :; done", "works on something"},
		{"sh", "exec sleep 1000", `it is "sleep"`},
		{"bash", "sleep 1000 & echo", "processes run below it"},
		{"bash", "read x", "not at its prompt"},
		{"bash", "cat", "foreground"},
	} {
		t.Run(c.name+" "+c.line, func(t *testing.T) {
			args := []string{"-i"}
			if c.name == "bash" {
				args = []string{"--norc", "--noprofile", "-i"}
			}
			pid, tty, in := shell(t, c.name, args...)
			becomes(t, pid, tty, "")
			fmt.Fprintf(in, "%s\n", c.line)
			becomes(t, pid, tty, c.want)
		})
	}
	if _, err := IdleShell(os.Getpid(), "/dev/null"); !errors.Is(err, ErrNotIdle) {
		t.Errorf("this test is an idle shell: %v", err)
	}
	if _, err := IdleShell(1<<22+1, "/dev/null"); !errors.Is(err, ErrNotIdle) {
		t.Errorf("nobody is an idle shell: %v", err)
	}
}
