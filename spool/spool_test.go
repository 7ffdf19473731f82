//go:build linux

package spool

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/phux-agent/phux-agent/owner"
)

var (
	noon  = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	agent = owner.Process{PID: 700, Start: 70}
	other = owner.Process{PID: 800, Start: 80}
)

// told is a note of the agent's own, of a hook that has ended.
func told(second int, id string, agent owner.Process) *Note {
	return &Note{
		At: noon.Add(time.Duration(second) * time.Second), Integration: "gemini-cli", Event: "SessionStart", ID: id,
		From: owner.Line{Process: owner.Process{PID: 900 + second, Start: 1}, Above: []owner.Link{
			{Process: owner.Process{PID: 600, Start: 60}, Args: []string{"sh", "-c", "x"}, Comm: "sh", Exe: "/bin/dash"}, {Process: agent, Comm: "gemini"},
		}},
	}
}

func box(t *testing.T, notes ...*Note) Box {
	t.Helper()
	b := Box{Dir: filepath.Join(t.TempDir(), "run", "tmux-default")}
	for _, n := range notes {
		if err := b.Put(n); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func ids(notes []*Note) string {
	var out []string
	for _, n := range notes {
		out = append(out, n.ID)
	}
	return strings.Join(out, " ")
}

func TestPutAndLeft(t *testing.T) {
	first, second := told(1, "a", agent), told(2, "b", agent)
	b := box(t, second, first)
	left := b.Left()
	if ids(left) != "a b" || left[0].From.Above[1].Process != agent || left[0].From.Above[0].Args[2] != "x" || !left[0].At.Equal(first.At) {
		t.Fatalf("%+v", left)
	}
	b.Remove(left[0])
	b.Remove(left[0])
	if b.Remove(nil); ids(b.Left()) != "b" || b.Empty() {
		t.Errorf("after one was removed: %s", ids(b.Left()))
	}
	if info, err := os.Stat(b.Dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if b.Remove(second); !b.Empty() {
		t.Error("not empty")
	}
}

// While its hook runs, a note is nobody else's.
func TestLeftIsOfTheEnded(t *testing.T) {
	cmd := exec.Command("sleep", "300")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	n := told(1, "a", agent)
	n.From.Process = owner.LineOf(cmd.Process.Pid).Process
	b := box(t, n)
	if left := b.Left(); len(left) != 0 || b.Empty() {
		t.Errorf("its hook runs: %s", ids(left))
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if ids(b.Left()) != "a" {
		t.Error("its hook has ended")
	}
}

func TestSettle(t *testing.T) {
	for _, c := range []struct {
		name  string
		which int
		want  error
		left  string
	}{
		{"the oldest, and a later one came", 0, ErrLater, "a x b c"},
		{"the last", 3, nil, "x c"},
	} {
		t.Run(c.name, func(t *testing.T) {
			notes := []*Note{told(1, "a", agent), told(2, "x", other), told(3, "b", agent), told(4, "c", agent)}
			b := box(t, notes...)
			if err := b.Settle(notes[c.which], agent); !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Errorf("%v, want %v", err, c.want)
			}
			if got := ids(b.Left()); got != c.left {
				t.Errorf("left %q, want %q", got, c.left)
			}
		})
	}
	// Gone meanwhile: something later has counted already.
	n := told(1, "a", agent)
	b := box(t, n)
	b.Remove(n)
	if err := b.Settle(n, agent); !errors.Is(err, ErrLater) {
		t.Error(err)
	}
	// Another integration's is not about this one.
	mine, theirs := told(2, "a", agent), told(1, "b", agent)
	theirs.Integration = "codex"
	b = box(t, mine, theirs)
	if err := b.Settle(mine, agent); err != nil || ids(b.Left()) != "b a" {
		t.Errorf("%v, left %q", err, ids(b.Left()))
	}
}

func TestBounds(t *testing.T) {
	var notes []*Note
	for n := range MaxNotes + 3 {
		notes = append(notes, told(n+1, "n"+string(rune('A'+n%26)), agent))
	}
	b := box(t, notes...)
	if left := b.Left(); len(left) != MaxNotes || !left[0].At.Equal(notes[3].At) {
		t.Errorf("%d are left, the first of %v", len(left), left[0].At)
	}
	long := told(99, "a", agent)
	for range 64 {
		l := owner.Link{Process: agent}
		for range 8 {
			l.Args = append(l.Args, strings.Repeat("x", 1024))
		}
		long.From.Above = append(long.From.Above, l)
	}
	if err := b.Put(long); err == nil {
		t.Error("a note without bounds")
	}
	if err := (Box{}).Put(told(1, "a", agent)); err == nil || !(Box{}).Empty() || len((Box{}).Left()) != 0 {
		t.Error("a box that is nowhere")
	}
}

// What is no note goes, and harms none that is one.
func TestStrangers(t *testing.T) {
	b := box(t, told(1, "a", agent))
	stamp := told(2, "b", agent)
	data, err := json.Marshal(stamp)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"00000000000000000001-1.json": "{}", "00000000000000000002-1.json": "", "x.json": string(data),
		"00000000000000000003-1.json": string(data), "00000000000000000004-1.json": strings.Repeat(" ", MaxNote+1),
		"00000000000000000005-1.json": `{"at":"2026-11-29T12:00:00Z","integration":"x","id":"--continue","from":{"pid":1,"start":1,"above":[]}}`,
	} {
		if err := os.WriteFile(filepath.Join(b.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(b.Dir, "00000000000000000006-1.json")); err != nil {
		t.Fatal(err)
	}
	if got := ids(b.Left()); got != "a" {
		t.Errorf("%q", got)
	}
	if names, _ := b.names(); len(names) != 1 {
		t.Errorf("%q are still there", names)
	}
	if err := os.Chmod(b.Dir, 0o770); err != nil {
		t.Fatal(err)
	}
	if len(b.Left()) != 0 {
		t.Error("a directory that others may write to")
	}
}

func FuzzDecode(f *testing.F) {
	good, err := json.Marshal(told(1, "a", agent))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"at":"0001-01-01T00:00:00Z","integration":"x","id":"y","from":{"pid":-1,"start":0,"above":null}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := decode(data)
		if err != nil {
			return
		}
		again, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		if m, err := decode(again); err != nil || m.ID != n.ID || !m.At.Equal(n.At) || m.From.PID != n.From.PID {
			t.Errorf("%v: %s", err, again)
		}
	})
}
