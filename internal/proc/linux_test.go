//go:build linux

package proc

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The test binary plays the processes that are looked at: it says "ready", waits for its input
// to end, and exits.
func TestMain(m *testing.M) {
	if path, ok := os.LookupEnv("PROC_TEST_CHILD"); ok {
		if path != "" {
			f, err := os.Create(path)
			if err != nil {
				os.Exit(3)
			}
			defer f.Close()
		}
		os.Stdout.WriteString("ready\n")
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type child struct {
	*exec.Cmd
	in io.WriteCloser
	id ID
}

func start(t *testing.T, path string, args ...string) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{Cmd: exec.Command(exe, args...)}
	c.Env = append(os.Environ(), "PROC_TEST_CHILD="+path)
	if c.in, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	// Its own process session: the leader of the test's may live outside a container's process
	// namespace, and is 0 there.
	c.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	if s, err := bufio.NewReader(out).ReadString('\n'); s != "ready\n" {
		t.Fatal(s, err)
	}
	i, err := Stat(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	c.id = i.ID()
	return c
}

func TestHasChild(t *testing.T) {
	c := start(t, filepath.Join(t.TempDir(), "held"))
	if has, err := HasChild(c.id.PID); has || err != nil {
		t.Errorf("of one that started nothing: %v, %v", has, err)
	}
	cmd := exec.Command("sh", "-c", "echo; sleep 100; :")
	out, err := cmd.StdoutPipe()
	if err := errors.Join(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	_, _ = out.Read(make([]byte, 1))
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if has, err := HasChild(cmd.Process.Pid); has {
			break
		} else if err != nil || time.Now().After(deadline) {
			t.Fatalf("a shell that waits for a program: %v, %v", has, err)
		}
	}
	if _, err := HasChild(1 << 30); !errors.Is(err, ErrGone) {
		t.Error(err)
	}
}

func TestOneProcess(t *testing.T) {
	held := filepath.Join(t.TempDir(), "held file")
	c := start(t, held, "an argument", "", "x")
	i, err := Stat(c.id.PID)
	if err != nil || i.PPID != os.Getpid() || i.Session != c.id.PID || i.Group != c.id.PID || i.Dead() {
		t.Errorf("%+v %v", i, err)
	}
	args, err := Cmdline(c.id.PID)
	if err != nil || !slices.Equal(args[1:], []string{"an argument", "", "x"}) {
		t.Errorf("%q %v", args, err)
	}
	env, err := Environ(c.id.PID)
	if err != nil || !slices.Contains(env, "PROC_TEST_CHILD="+held) {
		t.Errorf("%q %v", env, err)
	}
	mine, _ := Exe(os.Getpid())
	if exe, err := Exe(c.id.PID); err != nil || exe != mine {
		t.Errorf("%q %v, want %q", exe, err, mine)
	}
	find := func() (OpenFile, bool) {
		files, err := OpenFiles(c.id.PID)
		if err != nil {
			t.Fatal(err)
		}
		n := slices.IndexFunc(files, func(f OpenFile) bool { return f.Target == held })
		if n < 0 {
			return OpenFile{}, false
		}
		return files[n], true
	}
	if f, ok := find(); !ok || f.Deleted {
		t.Errorf("%+v %v", f, ok)
	}
	if err := os.Remove(held); err != nil {
		t.Fatal(err)
	}
	if f, ok := find(); !ok || !f.Deleted {
		t.Errorf("deleted: %+v %v", f, ok)
	}
	if age := time.Since(Time(c.id.Start)); age < -time.Second || age > time.Minute {
		t.Errorf("it started %v ago", age)
	}
	table, err := ReadTable()
	if err != nil || !table.Alive(c.id) {
		t.Fatal("the table has not the child", err)
	}
	if !slices.ContainsFunc(table.Descendants(os.Getpid()), func(i Info) bool { return i.PID == c.id.PID }) {
		t.Error("the child is not below its parent")
	}
}

func TestAZombieAndALaterProcessAreNotAlive(t *testing.T) {
	c := start(t, "")
	if !Alive(c.id) {
		t.Fatal("not alive")
	}
	if Alive(ID{c.id.PID, c.id.Start + 1}) {
		t.Error("another start time, and alive")
	}
	if err := Signal(ID{c.id.PID, c.id.Start + 1}, unix.SIGKILL); !errors.Is(err, ErrGone) {
		t.Error("another start time, and signalled:", err)
	}
	if !Alive(c.id) {
		t.Fatal("the signal reached another process than the one meant")
	}
	c.in.Close()
	// Nobody has waited for it: WatchExit returns on its death, and it stays a zombie.
	got, err := WatchExit(context.Background(), []ID{c.id}, time.Minute)
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	if i, err := Stat(c.id.PID); err != nil || !i.Dead() {
		t.Errorf("%+v %v", i, err)
	}
	if Alive(c.id) {
		t.Error("a zombie is alive")
	}
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := Stat(c.id.PID); !errors.Is(err, ErrGone) {
		t.Error(err)
	}
	for _, err := range []error{
		Signal(c.id, unix.SIGTERM),
		func() error { _, err := OpenFiles(c.id.PID); return err }(),
		func() error { _, err := Cmdline(c.id.PID); return err }(),
	} {
		if !errors.Is(err, ErrGone) {
			t.Error(err)
		}
	}
}

func TestWatchExit(t *testing.T) {
	a, b, dead := start(t, ""), start(t, ""), start(t, "")
	dead.in.Close()
	_ = dead.Wait()
	ids := []ID{a.id, dead.id, b.id, {PID: -1}}
	got, err := WatchExit(context.Background(), ids, time.Millisecond)
	if err != nil || !slices.Equal(got, []ID{dead.id, {PID: -1}}) {
		t.Errorf("after a moment: %v %v", got, err)
	}
	b.in.Close()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = WatchExit(context.Background(), []ID{b.id}, time.Minute)
		cancel()
	}()
	got, err = WatchExit(ctx, ids, time.Minute)
	if !errors.Is(err, context.Canceled) || !slices.Contains(got, dead.id) || slices.Contains(got, a.id) {
		t.Errorf("cancelled: %v %v", got, err)
	}
	if err := Signal(a.id, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	got, err = WatchExit(context.Background(), ids, time.Minute)
	if err != nil || !slices.Equal(got, ids) {
		t.Errorf("at last: %v %v", got, err)
	}
	if got, err := WatchExit(context.Background(), nil, time.Minute); err != nil || got != nil {
		t.Errorf("nobody: %v %v", got, err)
	}
}

func TestMachine(t *testing.T) {
	boot, err := BootID()
	if err != nil || len(boot) != 36 {
		t.Error(boot, err)
	}
	a, b := fingerprint(strings.Repeat("a", 32)), fingerprint(strings.Repeat("b", 32))
	if a == b || len(a) != 32 || strings.Contains(a, "aaaa") {
		t.Error(a, b)
	}
	if id, err := MachineID(); err == nil {
		if raw, _ := os.ReadFile("/etc/machine-id"); id == strings.TrimSpace(string(raw)) {
			t.Error("the machine id itself is given away")
		}
	}
}

func BenchmarkReadTable(b *testing.B) {
	for b.Loop() {
		if _, err := ReadTable(); err != nil {
			b.Fatal(err)
		}
	}
}
