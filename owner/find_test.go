//go:build linux

package owner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/phux-agent/phux-agent/internal/proc"
)

func TestFindByRegistry(t *testing.T) {
	dir, environ, env := store(t)
	c := claims(t)
	one := enact(t, environ, []string{"onefile"}, part{Files: []string{filepath.Join(dir, "sessions", "PID.json") + "=" + session(idA, "sdk-cli", "START")}}, false)
	lock := enact(t, environ, []string{"daemon"}, part{Locks: []string{filepath.Join(dir, "locks", idB+".lock")}}, false)
	use := enact(t, environ, []string{"inuser"}, part{Files: []string{filepath.Join(dir, "state", idB, "inuse.PID.lock") + "="}}, false)
	run := enact(t, environ, []string{"runtimer"}, part{Files: []string{
		filepath.Join(dir, "projects/-src/chats", idB+".runtime.json") + `={"pid":PID,"started_at":NOW}`,
	}}, false)
	o := observer(t)
	for _, tc := range []struct {
		what string
		got  Live
		want *fake
	}{
		{"one file, a headless run too", o.Find(c, pidFileAgent(t), identity("onefile", idA), env), one},
		{"one file, another id", o.Find(c, pidFileAgent(t), identity("onefile", idB), env), nil},
		{"a lock, whoever holds it", o.Find(c, lockAgent(t), identity("locker", idB), env), lock},
		{"a lock, another id", o.Find(c, lockAgent(t), identity("locker", idA), env), nil},
		{"in use", o.Find(c, inuseAgent(t), identity("inuser", idB), env), use},
		{"in use, another id", o.Find(c, inuseAgent(t), identity("inuser", idA), env), nil},
		{"runtime", o.Find(c, runtimeAgent(t), identity("runtimer", idB), env), run},
	} {
		switch {
		case tc.want == nil && tc.got.Kind != NotLive:
			t.Errorf("%s: %+v", tc.what, tc.got)
		case tc.want != nil && (tc.got.Kind != Registry || tc.got.Process != tc.want.Process || tc.got.Command == ""):
			t.Errorf("%s: %+v, want %+v", tc.what, tc.got, tc.want.Process)
		}
	}
	// A leftover file of a process that was killed.
	one.kill(t)
	if got := observer(t).Find(c, pidFileAgent(t), identity("onefile", idA), env); got.Kind != NotLive {
		t.Errorf("a leftover: %+v", got)
	}
	// A process that only has the number: the file is of another start time.
	path := filepath.Join(dir, "sessions", fmt.Sprintf("%d.json", lock.PID))
	if err := os.WriteFile(path, []byte(strings.Replace(session(idA, "cli", fmt.Sprint(lock.Start-1)), "PID", fmt.Sprint(lock.PID), 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := observer(t).Find(c, pidFileAgent(t), identity("onefile", idA), env); got.Kind != NotLive {
		t.Errorf("a reused number: %+v", got)
	}
}

func TestFindByArguments(t *testing.T) {
	dir, environ, env := store(t)
	c, id, tmpl := claims(t), identity("onefile", idA), pidFileAgent(t)
	find := func() Live { t.Helper(); return observer(t).Find(c, tmpl, id, env) }
	for _, args := range [][]string{
		{"phux-agent", "launch", "onefile", "--resume", idA},
		{"tmux", "new-window", "--", "onefile", "--resume", idA},
		{"grep", "-r", idA},
		{"onefile", "--resume", idA + "x"},
		{"onefile", "--note=" + idA},
		{idA},
	} {
		f := enact(t, environ, args, part{}, false)
		if got := find(); got.Kind != NotLive {
			t.Errorf("%q is taken for the agent: %+v", args, got)
		}
		f.kill(t)
	}
	f := enact(t, environ, []string{"node", "/opt/other/name.js", "--resume", idA, "\x1b[2J" + strings.Repeat("x", 500)}, part{}, false)
	if got := find(); got.Kind != Suspected || got.Process != f.Process || strings.Contains(got.Command, "\x1b") || len(got.Command) > maxCommand {
		t.Errorf("%+v", got)
	}
	f.kill(t)
	// An agent that was launched with A and is in B now, by proof.
	rotated := enact(t, environ, []string{"onefile", "--session-id", idA},
		part{Files: []string{filepath.Join(dir, "sessions", "PID.json") + "=" + session(idB, "cli", "START")}}, false)
	if got := find(); got.Kind != NotLive {
		t.Errorf("what it has left is %+v", got)
	}
	if got := observer(t).Find(c, tmpl, identity("onefile", idB), env); got.Kind != Registry || got.Process != rotated.Process {
		t.Errorf("what it is in is %+v", got)
	}
	rotated.kill(t)
	// A fork: the id in its arguments is what it was made from, its claim says what it is.
	fork := enact(t, environ, []string{"onefile", "--resume", idA, "--fork-session", "--session-id", idB}, part{}, false)
	if got := find(); got.Kind != Suspected {
		t.Errorf("%+v", got)
	}
	owns(t, c, identity("onefile", idB), fork)
	if got := find(); got.Kind != NotLive {
		t.Errorf("what it was forked from is %+v", got)
	}
}

// An agent that survives the hangup, wrapper and child, is an orphan: not free, and to be reaped.
func TestOrphanOfAClosedTerminal(t *testing.T) {
	_, environ, env := store(t)
	c, id, tmpl := claims(t), identity("hooked", idA), hookAgent(t)
	f := enact(t, environ, []string{"hooked", "--session-id", idA}, part{IgnoreHUP: true, Child: &part{IgnoreHUP: true}}, true)
	owns(t, c, id, f)
	got := observer(t).Find(c, tmpl, id, env)
	if got.Kind != Claimed || got.Process != f.Process || !strings.HasPrefix(got.TTY, "/dev/pts/") || got.Place.Terminal != "%7" {
		t.Fatalf("%+v", got)
	}
	var not *NotOrphanError
	if ended, err := observer(t).Reap(t.Context(), c, tmpl, id, time.Second); !errors.As(err, &not) || not.Live.Kind != Claimed || ended != nil {
		t.Fatalf("a live owner is reaped: %v %v", ended, err)
	}
	if !proc.Alive(proc.ID(f.Process)) {
		t.Fatal("it is dead")
	}
	f.tty.Close()
	until(t, "the terminal is gone", func() bool { i, err := proc.Stat(f.PID); return err == nil && i.TTY == 0 })
	o := observer(t)
	if got := o.Find(c, tmpl, id, env); got.Kind != Orphan || got.Process != f.Process {
		t.Errorf("%+v", got)
	}
	var live *LiveError
	if _, err := c.Reserve(id, Place{}); !errors.As(err, &live) || live.Live.Kind != Orphan {
		t.Errorf("an orphan's identity is reserved: %v", err)
	}
	ended, err := o.Reap(t.Context(), c, tmpl, id, 10*time.Second)
	if err != nil || len(ended) != 2 || !slices.Contains(ended, f.Process) {
		t.Errorf("%v %v", ended, err)
	}
	if got := observer(t).Find(c, tmpl, id, env); got.Kind != NotLive {
		t.Errorf("%+v", got)
	}
	if _, err := c.Reserve(id, Place{}); err != nil {
		t.Error(err)
	}
}

// The owner was killed and its child goes on; what the agent's shell tool left running does not count.
func TestSurvivors(t *testing.T) {
	_, environ, env := store(t)
	c, id, tmpl := claims(t), identity("hooked", idA), hookAgent(t)
	f := enact(t, environ, []string{"hooked", "--session-id", idA}, part{
		Child:  &part{IgnoreHUP: true, IgnoreAll: true},
		Nested: [][]string{{"devserver", "--port", "80"}}, Inner: &part{IgnoreHUP: true},
	}, false)
	owns(t, c, id, f)
	f.kill(t)
	o := observer(t)
	got := o.Find(c, tmpl, id, env)
	if got.Kind != Orphan || got.Process == f.Process || !strings.HasPrefix(got.Command, "hooked") {
		t.Fatalf("%+v", got)
	}
	if _, err := c.Reserve(id, Place{}); !errors.Is(err, ErrLive) {
		t.Errorf("a survivor's identity is reserved: %v", err)
	}
	// Many reservations in a row read the table once, and it knows nothing of an owner that is
	// younger than the reading.
	stale := c.Batch()
	stale.memo.table = new(proc.Table)
	if _, err := stale.Reserve(id, Place{}); !errors.Is(err, ErrLive) {
		t.Errorf("a survivor that is younger than the reading is not seen: %v", err)
	}
	claim, err := c.Get(id)
	if err != nil {
		t.Fatal(err)
	}
	older := *claim
	older.Process.Start = 1
	if err := writeClaim(filepath.Join(c.Dir, fileName(id)), older); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Batch().Reserve(id, Place{}); !errors.Is(err, ErrLive) {
		t.Errorf("a survivor's identity is reserved in a batch: %v", err)
	}
	if won, err := stale.Reserve(id, Place{}); err != nil {
		t.Errorf("the table was read again: %v", err)
	} else if err := c.Release(won); err != nil {
		t.Error(err)
	}
	if err := writeClaim(filepath.Join(c.Dir, fileName(id)), *claim); err != nil {
		t.Fatal(err)
	}
	// It ignores SIGTERM: only the kill after the grace ends it. The server is left alone.
	ended, err := o.Reap(t.Context(), c, tmpl, id, time.Millisecond)
	if err != nil || len(ended) != 1 || ended[0] != got.Process {
		t.Errorf("%v %v", ended, err)
	}
	o = observer(t)
	server := slices.IndexFunc(o.table.All(), func(i proc.Info) bool { return i.Session == f.PID && !i.Dead() })
	if server < 0 || o.args(o.table.All()[server])[0] != "devserver" {
		t.Error("the server of the agent's shell tool is gone")
	}
	if got := o.Find(c, tmpl, id, env); got.Kind != NotLive {
		t.Errorf("a server is taken for the agent: %+v", got)
	}
	if _, err := o.Reap(t.Context(), c, tmpl, id, 0); !errors.Is(err, ErrNotOrphan) {
		t.Error(err)
	}
	if _, err := c.Reserve(id, Place{}); err != nil {
		t.Error(err)
	}
}

// launch --here: the shell leads the process session. What the user starts in it afterwards is
// no survivor.
func TestTheShellAfterTheAgent(t *testing.T) {
	_, environ, env := store(t)
	c, id, tmpl := claims(t), identity("hooked", idA), hookAgent(t)
	shell := enact(t, environ, []string{"sh"}, part{Nested: [][]string{{"hooked"}}, Inner: &part{}}, false)
	// An agent that was there before, in a group of its own.
	claim := Claim{Identity: id, Process: Process{shell.PID, 1}, Session: shell.PID, Group: 1 << 22, Epoch: 1, Ticket: "t"}
	claim.Process.PID = claim.Group
	claim.Boot, _ = proc.BootID()
	if err := c.prepare(); err != nil {
		t.Fatal(err)
	}
	if err := writeClaim(filepath.Join(c.Dir, fileName(id)), claim); err != nil {
		t.Fatal(err)
	}
	if got := observer(t).Find(c, tmpl, id, env); got.Kind != NotLive {
		t.Errorf("%+v", got)
	}
}

// A session's number is free for another process only when nobody is left in it.
func TestNobodySurvivesAReusedNumber(t *testing.T) {
	_, environ, env := store(t)
	c, id, tmpl := claims(t), identity("hooked", idA), hookAgent(t)
	later := enact(t, environ, []string{"hooked", "--session-id", idB}, part{Child: &part{}}, false)
	claim := Claim{Identity: id, Process: Process{later.PID, 1}, Session: later.PID, Group: later.PID, Epoch: 1, Ticket: "t", Program: "hooked"}
	claim.Boot, _ = proc.BootID()
	must(t, c.prepare())
	must(t, writeClaim(filepath.Join(c.Dir, fileName(id)), claim))
	if got := observer(t).Find(c, tmpl, id, env); got.Kind != NotLive {
		t.Errorf("%+v", got)
	}
	if _, err := observer(t).Reap(t.Context(), c, tmpl, id, 0); !errors.Is(err, ErrNotOrphan) {
		t.Error(err)
	}
	if _, err := c.Reserve(id, Place{}); err != nil {
		t.Error(err)
	}
}

func TestReapRefusesWhatIsOnlySuspected(t *testing.T) {
	_, environ, _ := store(t)
	c, id, tmpl := claims(t), identity("hooked", idA), hookAgent(t)
	f := enact(t, environ, []string{"hooked", "--resume", idA}, part{}, false)
	var not *NotOrphanError
	if _, err := observer(t).Reap(t.Context(), c, tmpl, id, 0); !errors.As(err, &not) || not.Live.Process != f.Process {
		t.Error(err)
	}
	if !proc.Alive(proc.ID(f.Process)) {
		t.Error("it was ended")
	}
}

// Find serves several workers at once; the race detector judges.
func TestFindAtOnce(t *testing.T) {
	_, environ, env := store(t)
	c, tmpl := claims(t), pidFileAgent(t)
	f := enact(t, environ, []string{"onefile", "--resume", idA}, part{}, false)
	o := observer(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for _, id := range []string{idA, idB} {
				o.Find(c, tmpl, identity("onefile", id), env)
				o.Find(c, lockAgent(t), identity("locker", id), env)
			}
			o.Observe(tmpl, f.Process)
		})
	}
	wg.Wait()
}

// One observer reads each registry once, however many identities are asked for.
func BenchmarkFind(b *testing.B) {
	t := &testing.T{}
	dir := b.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sessions"), 0o700); err != nil {
		b.Fatal(err)
	}
	tmpl := pidFileAgent(t)
	env := func(string) (string, bool) { return dir, true }
	c := Claims{Dir: filepath.Join(dir, "claims")}
	for b.Loop() {
		o, err := NewObserver()
		if err != nil {
			b.Fatal(err)
		}
		for n := range 200 {
			if got := o.Find(c, tmpl, identity("onefile", fmt.Sprintf("11111111-1111-4111-8111-%012d", n)), env); got.Kind != NotLive {
				b.Fatal(got)
			}
		}
	}
}
