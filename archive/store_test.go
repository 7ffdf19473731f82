package archive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/phux-agent/phux-agent/internal/atomicfile"
	"github.com/phux-agent/phux-agent/internal/atomicfile/faultfs"
)

// history for tests: a store with a clock, and a workspace that is easily said.
type bench struct {
	testing.TB
	Store
	clock time.Time
	set   time.Duration // by how much somebody set the clock
}

func newBench(t testing.TB) *bench {
	b := &bench{TB: t, clock: noon}
	up := func() time.Duration { return b.clock.Sub(noon) + 1000*time.Hour }
	b.Store = Store{Uptime: up, Dir: filepath.Join(t.TempDir(), "archives", "tmux-default"), Now: func() time.Time { return b.clock.Add(b.set) }, Machine: "m", fs: faultfs.NoSync}
	return b
}

// ws is a workspace of one host life. A session is "name" or "name=id,id,…"; an id that ends in
// "?" is a placeholder's, one that ends in "." has ended.
func ws(instance string, sessions ...string) *Archive {
	a := &Archive{Host: Host{Kind: "tmux", Instance: instance, Machine: "m"}}
	for i, text := range sessions {
		name, ids, _ := strings.Cut(text, "=")
		w := Window{Name: "w", Index: 1, Panes: []Pane{{Cwd: "/src", Cols: 80, Rows: 24}}}
		for _, id := range strings.Split(ids, ",") {
			if id == "" {
				continue
			}
			g := &Agent{State: StateRunning, ConfirmedAt: noon}
			if n, ok := strings.CutSuffix(id, "?"); ok {
				id, g.State = n, StatePending
			}
			if n, ok := strings.CutSuffix(id, "."); ok {
				id, g.State = n, StateEnded
			}
			w.Panes = append(w.Panes, Pane{AgentSession: record(id), Agent: g})
		}
		a.Sessions = append(a.Sessions, Session{Name: name, Active: i == 0, Windows: []Window{w}})
	}
	return a
}

// said is what an archive holds, in the words of ws; pending sessions in brackets.
func said(a *Archive) (out []string) {
	for _, s := range a.Sessions {
		var ids []string
		s.eachPane(func(p *Pane) {
			if p.AgentSession != nil {
				ids = append(ids, p.AgentSession.NativeID)
			}
		})
		text := s.Name
		if len(ids) > 0 {
			text += "=" + strings.Join(ids, ",")
		}
		if s.Pending != nil {
			text = fmt.Sprintf("[%s from %d]", text, s.Pending.From)
		}
		out = append(out, text)
	}
	return out
}

// save saves so much later than the last time that what was new is so no more.
func (b *bench) save(a *Archive, o ...SaveOptions) Saved {
	b.Helper()
	b.clock = b.clock.Add(ShutdownTime)
	return b.saveNow(a, o...)
}

func (b *bench) saveNow(a *Archive, o ...SaveOptions) Saved {
	b.Helper()
	got, err := b.Save(a, append(o, SaveOptions{})[0])
	if err != nil {
		b.Fatal(err)
	}
	return got
}

func (b *bench) best() Choice {
	b.Helper()
	c, err := b.Best()
	if err != nil {
		b.Fatal(err)
	}
	return c
}

func (b *bench) wantSaid(a *Archive, want ...string) {
	b.Helper()
	if d := cmp.Diff(want, said(a)); d != "" {
		b.Error(d)
	}
}

func TestSaveNumbersLinksAndReads(t *testing.T) {
	b := newBench(t)
	if _, err := b.Best(); !errors.Is(err, ErrNone) {
		t.Fatalf("an empty store: %v", err)
	}
	first := b.save(ws("L1", "work=a"))
	second := b.save(ws("L1", "work=a,b"))
	if first.Generation != 1 || second.Generation != 2 || first.Archive.Prev != "" || second.Archive.Prev != first.Digest {
		t.Errorf("%d %d prev %q, digest %q", first.Generation, second.Generation, second.Archive.Prev, first.Digest)
	}
	got, err := b.Get(2)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(second.Entry, got, equateEmpty); d != "" {
		t.Error(d)
	}
	file, err := os.ReadFile(second.Path)
	if err != nil || Digest(file) != second.Digest || int64(len(file)) != second.Size {
		t.Errorf("the file is not what was said of it: %v", err)
	}
	if err := readAsPhux(file); err != nil {
		t.Error(err)
	}
	list, err := b.List()
	if err != nil || len(list) != 2 || list[0].Generation != 2 || list[1].Generation != 1 {
		t.Errorf("%v %v", list, err)
	}
	if _, err := b.Get(3); !errors.Is(err, ErrNoGeneration) {
		t.Error(err)
	}
}

// equateEmpty: a decoded list is empty where a built one may be nil.
var equateEmpty = cmp.FilterValues(func(a, b []Window) bool { return len(a) == 0 && len(b) == 0 }, cmp.Ignore())

func TestModesWhateverTheUmask(t *testing.T) {
	for _, mask := range []int{0, 0o077} {
		b := newBench(t)
		old := unix.Umask(mask)
		b.save(ws("L1", "work=a"))
		b.save(ws("L1"), SaveOptions{Accept: true})
		_, err := b.Export(ws("L1", "x"), filepath.Join(b.Dir, "..", "export.json"))
		unlock, lockErr := b.Lock("restore")
		unix.Umask(old)
		if err := errors.Join(err, lockErr); err != nil {
			t.Fatal(err)
		}
		unlock()
		err = filepath.Walk(filepath.Dir(b.Dir), func(p string, fi os.FileInfo, err error) error {
			want := atomicfile.Mode
			if err == nil && fi.IsDir() {
				want = atomicfile.DirMode
			}
			if err == nil && fi.Mode().Perm() != want {
				t.Errorf("umask %o: %s has mode %o", mask, p, fi.Mode().Perm())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestADirectoryThatWasOpenIsClosed(t *testing.T) {
	b := newBench(t)
	if err := os.MkdirAll(b.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	b.save(ws("L1", "work=a"))
	if fi, err := os.Stat(b.Dir); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", fi.Mode(), err)
	}
}

// E13: identical saves do not consume history.
func TestUnchangedIsNotWritten(t *testing.T) {
	b := newBench(t)
	b.save(ws("L1", "work=a"))
	first := b.save(ws("L1", "work=b"))
	for range 100 {
		a := ws("L1", "work=b")
		a.SavedAt = b.clock
		a.Sessions[0].Windows[0].Panes[1].Agent.ConfirmedAt = b.clock
		got := b.save(a)
		if !got.Unchanged || got.Generation != first.Generation || got.State != Good {
			t.Fatalf("%+v", got)
		}
	}
	if list, err := b.List(); err != nil || len(list) != 2 {
		t.Fatalf("%d generations, %v", len(list), err)
	}
	if got := b.save(ws("L2", "work=b")); got.Unchanged {
		t.Error("another life's equal workspace was not written")
	}
}

func TestNamed(t *testing.T) {
	b := newBench(t)
	b.save(ws("L1", "work=a"))
	named := b.save(ws("L1", "work=a"), SaveOptions{Name: "before-upgrade.2"})
	if named.Unchanged || named.Generation != 2 {
		t.Fatalf("%+v", named)
	}
	if again := b.save(ws("L1", "work=a"), SaveOptions{Name: "before-upgrade.2"}); !again.Unchanged {
		t.Error("the same name for the same content was written twice")
	}
	if plain := b.save(ws("L1", "work=a")); !plain.Unchanged {
		t.Error("a named save does not count as the last one")
	}
	b.save(ws("L1", "work=b"))
	newer := b.save(ws("L1", "work=c"), SaveOptions{Name: "before-upgrade.2"})
	got, err := b.Named("before-upgrade.2")
	if err != nil || got.Generation != newer.Generation {
		t.Errorf("%d %v", got.Generation, err)
	}
	if _, err := b.Named(""); !errors.Is(err, ErrNoGeneration) {
		t.Errorf("no name: %v", err)
	}
	for _, name := range []string{"..", "a/b", "-x", ".x", "a b", "a\n", strings.Repeat("a", 65), "é", "a.json"} {
		if _, err := b.Save(ws("L1", "x"), SaveOptions{Name: name}); !errors.Is(err, ErrName) {
			t.Errorf("name %q: %v", name, err)
		}
	}
}

func TestHeldEmpty(t *testing.T) {
	b := newBench(t)
	good := b.save(ws("L1", "work=a", "other"))
	held := b.save(ws("L1", "other"))
	if held.State != HeldNone || !strings.Contains(held.Reason, "generation 1 has 1") {
		t.Fatalf("%s: %s", held.State, held.Reason)
	}
	// However long it stays so: only the user can say that this is right.
	b.clock = b.clock.Add(time.Hour)
	if again := b.save(ws("L1", "other")); !again.Unchanged || again.State != HeldNone {
		t.Errorf("%+v", again)
	}
	b.save(ws("L1", "another"))
	c := b.best()
	if c.Generation != good.Generation || len(c.Newer) != 2 || c.Newer[0].State != HeldNone {
		t.Fatalf("best is %d, newer %v", c.Generation, c.Newer)
	}
	// A save that says the same and accepts needs no new generation.
	if got := b.save(ws("L1", "another"), SaveOptions{Accept: true}); !got.Unchanged || got.State != Good {
		t.Errorf("%+v", got)
	}
	if c := b.best(); c.Generation != 3 || !strings.Contains(c.Reason, "accepted") {
		t.Errorf("best is %d: %s", c.Generation, c.Reason)
	}
	// The next empty one follows an empty one.
	if got := b.save(ws("L1", "more")); got.State != Good {
		t.Errorf("%s: %s", got.State, got.Reason)
	}
}

func TestAcceptAtOnce(t *testing.T) {
	b := newBench(t)
	b.save(ws("L1", "work=a"))
	if got := b.save(ws("L1"), SaveOptions{Accept: true}); got.State != Good || got.Generation != 2 {
		t.Errorf("%+v", got)
	}
	if c := b.best(); c.Generation != 2 {
		t.Errorf("best is %d", c.Generation)
	}
}

func TestAcceptLater(t *testing.T) {
	b := newBench(t)
	b.save(ws("L1", "work=a"))
	held := b.save(ws("L1"))
	if err := b.Accept(held.Generation); err != nil {
		t.Fatal(err)
	}
	if c := b.best(); c.Generation != 2 || c.State != Good {
		t.Errorf("best is %d", c.Generation)
	}
	if err := b.Accept(7); !errors.Is(err, ErrNoGeneration) {
		t.Error(err)
	}
	// A decision that cannot be read is none, and is said.
	path := filepath.Join(b.Dir, "00000000000000000002.accept")
	for _, text := range []string{"", "{", `{"generation":3}`, `[]`, strings.Repeat(" ", maxSmall+1)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if c := b.best(); c.Generation != 1 || len(c.Newer) != 1 || !strings.Contains(c.Newer[0].Reason, "cannot be read") {
			t.Errorf("decision %.20q: best is %d, newer %+v", text, c.Generation, c.Newer)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(b.Dir, "00000000000000000001.json"), path); err != nil {
		t.Fatal(err)
	}
	if c := b.best(); c.Generation != 1 {
		t.Error("a link was followed")
	}
}

func TestHeldShrunk(t *testing.T) {
	full := func() *Archive { return ws("L1", "work=a,b", "other=c,d") }
	t.Run("half is not more than half", func(t *testing.T) {
		b := newBench(t)
		b.save(full())
		if got := b.saveNow(ws("L1", "work=a,b")); got.State != Good {
			t.Errorf("%s: %s", got.State, got.Reason)
		}
	})
	t.Run("ended is not gone", func(t *testing.T) {
		b := newBench(t)
		b.save(full())
		if got := b.saveNow(ws("L1", "work=a.,b.", "other=c.,d.")); got.State != Good {
			t.Errorf("%s: %s", got.State, got.Reason)
		}
	})
	t.Run("another life", func(t *testing.T) {
		b := newBench(t)
		b.save(full())
		if got := b.saveNow(ws("L2", "work=a")); got.State != Good {
			t.Errorf("%s: %s", got.State, got.Reason)
		}
	})
	t.Run("a later equal save confirms", func(t *testing.T) {
		b := newBench(t)
		good := b.save(full())
		held := b.save(ws("L1", "work=a"))
		if held.State != HeldFew || !strings.Contains(held.Reason, "3 of the 4") {
			t.Fatalf("%s: %s", held.State, held.Reason)
		}
		b.clock = b.clock.Add(ShutdownTime - time.Second)
		if got := b.saveNow(ws("L1", "work=a")); got.State != HeldFew || !got.Unchanged {
			t.Fatalf("too early: %+v", got)
		}
		if c := b.best(); c.Generation != good.Generation || len(c.Newer) != 1 {
			t.Fatalf("best is %d", c.Generation)
		}
		before, err := os.ReadFile(held.Path)
		if err != nil {
			t.Fatal(err)
		}
		b.clock = b.clock.Add(time.Second)
		if got := b.saveNow(ws("L1", "work=a")); got.State != Good || !got.Unchanged {
			t.Fatalf("%+v", got)
		}
		if c := b.best(); c.Generation != held.Generation {
			t.Errorf("best is %d", c.Generation)
		}
		if after, err := os.ReadFile(held.Path); err != nil || string(after) != string(before) {
			t.Error("the generation was edited")
		}
	})
	t.Run("a later different save confirms itself", func(t *testing.T) {
		b := newBench(t)
		b.save(full())
		b.save(ws("L1", "work=a"))
		if got := b.save(ws("L1", "renamed=a")); got.State != Good {
			t.Errorf("%s: %s", got.State, got.Reason)
		}
	})
	t.Run("in a row of quick saves the first one counts", func(t *testing.T) {
		b := newBench(t)
		b.save(full())
		b.save(ws("L1", "s0=a"))
		var got Saved
		for i := range 6 {
			b.clock = b.clock.Add(ShutdownTime / 6)
			got = b.saveNow(ws("L1", fmt.Sprintf("s%d=a", i+1)))
			if i < 5 && got.State != HeldFew {
				t.Fatalf("after %d sixths: %s", i+1, got.State)
			}
		}
		if got.State != Good {
			t.Errorf("after that time: %s: %s", got.State, got.Reason)
		}
	})
	t.Run("still shrinking is held again", func(t *testing.T) {
		b := newBench(t)
		b.save(ws("L1", "work=a,b,c,d,e,f,g,h,i"))
		if got := b.save(ws("L1", "work=a,b,c,d")); got.State != HeldFew {
			t.Fatal(got.State)
		}
		if got := b.save(ws("L1", "work=a")); got.State != HeldFew {
			t.Fatal(got.State)
		}
		if c := b.best(); c.Generation != 1 {
			t.Errorf("best is %d", c.Generation)
		}
	})
	t.Run("what grows back is good", func(t *testing.T) {
		b := newBench(t)
		b.save(full())
		b.save(ws("L1", "work=a"))
		if got := b.saveNow(ws("L1", "work=a,b", "other=c")); got.State != Good {
			t.Errorf("%s: %s", got.State, got.Reason)
		}
	})
	t.Run("however long ago the last good one was", func(t *testing.T) {
		// Autosave every five minutes: what went away in between may have gone a second ago.
		b := newBench(t)
		b.save(full())
		b.clock = b.clock.Add(5 * time.Minute)
		if got := b.saveNow(ws("L1", "work=a")); got.State != HeldFew {
			t.Error(got.State)
		}
	})
	for _, set := range []time.Duration{-365 * 24 * time.Hour, 365 * 24 * time.Hour} {
		t.Run(fmt.Sprintf("a clock that was set by %s", set), func(t *testing.T) {
			b := newBench(t)
			b.save(full())
			b.save(ws("L1", "work=a"))
			b.set = set
			b.clock = b.clock.Add(ShutdownTime - time.Second)
			if got := b.saveNow(ws("L1", "x=a")); got.State != HeldFew {
				t.Errorf("the clock was set, and a shutdown is over: %s", got.State)
			}
			b.clock = b.clock.Add(time.Second)
			if got := b.saveNow(ws("L1", "y=a")); got.State != Good {
				t.Errorf("held for ever: %s: %s", got.State, got.Reason)
			}
		})
	}
}

// E1, E3, E14, F4.
func TestBestPassesOverWhatCannotBeRead(t *testing.T) {
	spoil := map[string]func(path string) error{
		"empty":        func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"truncated":    func(p string) error { return os.Truncate(p, 300) },
		"NULs":         func(p string) error { return os.WriteFile(p, make([]byte, 1000), 0o600) },
		"other JSON":   func(p string) error { return os.WriteFile(p, []byte(`{"schema_version":2}`), 0o600) },
		"later schema": func(p string) error { return os.WriteFile(p, []byte(`{"schema_version":3}`), 0o600) },
		"another's number": func(p string) error {
			b, err := os.ReadFile(filepath.Join(filepath.Dir(p), "00000000000000000001.json"))
			return errors.Join(err, os.WriteFile(p, b, 0o600))
		},
		"a link": func(p string) error {
			return errors.Join(os.Rename(p, p+".away"), os.Symlink(p+".away", p))
		},
		"a directory": func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o700)) },
		"a fifo":      func(p string) error { return errors.Join(os.Remove(p), unix.Mkfifo(p, 0o600)) },
	}
	for name, do := range spoil {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.save(ws("L1", "work=a"))
			newest := b.save(ws("L1", "work=b"))
			if err := do(newest.Path); err != nil {
				t.Fatal(err)
			}
			c := b.best()
			if c.Generation != 1 || len(c.Newer) != 1 || c.Newer[0].State != Corrupt || c.Newer[0].Reason == "" || c.Newer[0].Err == nil {
				t.Fatalf("best is %d, newer %+v", c.Generation, c.Newer)
			}
			// The same workspace again: the history must end in something that can be read.
			got := b.save(ws("L1", "work=a"))
			if got.Unchanged || got.Generation != 3 || got.State != Good {
				t.Errorf("%+v", got)
			}
			if c := b.best(); c.Generation != 3 || len(c.Newer) != 0 {
				t.Errorf("best is %d", c.Generation)
			}
		})
	}
}

// A whole head over a broken body is no generation to be equal to.
func TestABrokenBodyIsWrittenAgain(t *testing.T) {
	b := newBench(t)
	b.save(ws("L1", "work=a"))
	newest := b.save(ws("L1", "work=b"))
	if err := os.Truncate(newest.Path, newest.Size-20); err != nil {
		t.Fatal(err)
	}
	if got := b.save(ws("L1", "work=b")); got.Unchanged || got.Generation != 3 {
		t.Errorf("%+v", got)
	}
	if c := b.best(); c.Generation != 3 {
		t.Error(c.Generation)
	}
}

// What a save says without having read the last one's sessions is what reading them says.
func TestUnchangedSaysWhatIsThere(t *testing.T) {
	b := newBench(t)
	b.save(ws("L1", "work=a", "other=b,c?"))
	quick := b.save(ws("L1", "work=a", "other=b,c?"))
	there, err := b.Get(1)
	if err != nil || !quick.Unchanged {
		t.Fatal(quick.Unchanged, err)
	}
	if d := cmp.Diff(there, quick.Entry, equateEmpty); d != "" {
		t.Error(d)
	}
}

func TestAMissingNewestIsSaid(t *testing.T) {
	b := newBench(t)
	b.save(ws("L1", "work=a"))
	newest := b.save(ws("L1", "work=b"))
	if err := os.Remove(newest.Path); err != nil {
		t.Fatal(err)
	}
	c := b.best()
	if c.Generation != 1 || c.Missing != 2 {
		t.Errorf("best is %d, missing %d", c.Generation, c.Missing)
	}
	if got := b.save(ws("L1", "work=c")); got.Generation != 3 {
		t.Errorf("number %d was used again", got.Generation)
	}
	// The hint may say anything, or be gone.
	for _, text := range []string{"", "{", `{"generation":"x"}`, "\x00\x00"} {
		if err := os.WriteFile(filepath.Join(b.Dir, lastFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if c := b.best(); c.Generation != 3 || c.Missing != 0 {
			t.Errorf("hint %q: best is %d, missing %d", text, c.Generation, c.Missing)
		}
	}
}

func TestForeignNames(t *testing.T) {
	b := newBench(t)
	b.save(ws("L1", "work=a"))
	for _, name := range []string{
		"1.json", "00000000000000000000.json", "99999999999999999999.json", "00000000000000000009.json~", "00000000000000000009-.json",
		"00000000000000000009--x.json", "00000000000000000009-a b.json", "x00000000000000000009.json", "notes.txt", "latest.json",
	} {
		if err := os.WriteFile(filepath.Join(b.Dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := b.List(); err != nil || len(list) != 1 {
		t.Errorf("%v %v", list, err)
	}
}

func TestNumbersUsedUp(t *testing.T) {
	b := newBench(t)
	b.save(ws("L1", "work=a"))
	if err := os.WriteFile(filepath.Join(b.Dir, "18446744073709551615.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Save(ws("L1", "work=b"), SaveOptions{}); err == nil {
		t.Error("a number after the last one")
	}
	if c := b.best(); c.Generation != 1 {
		t.Error(c.Generation)
	}
}

// N2: two machines, one home.
func TestMachines(t *testing.T) {
	b := newBench(t)
	mine := b.save(ws("L1", "work=a"))
	other := ws("X1", "theirs=x")
	other.Host.Machine = "other"
	got := b.save(other)
	b.wantSaid(got.Archive, "theirs=x")
	c := b.best()
	if c.Generation != mine.Generation || len(c.Newer) != 1 || !strings.Contains(c.Newer[0].Reason, "another machine") {
		t.Errorf("best is %d, newer %+v", c.Generation, c.Newer)
	}
	if got := b.save(ws("L1", "work=a")); !got.Unchanged || got.Generation != mine.Generation {
		t.Errorf("%+v", got)
	}
	got = b.save(ws("L2", "new=n"))
	b.wantSaid(got.Archive, "new=n", "[work=a from 1]")
	// Where there is only theirs, it is what there is.
	alone := newBench(t)
	alone.save(other)
	if c := alone.best(); c.Generation != 1 {
		t.Error(c.Generation)
	}
}

func TestStaleWriter(t *testing.T) {
	b := newBench(t)
	base, err := b.Base()
	if err != nil {
		t.Fatal(err)
	}
	b.save(ws("L1", "work=a"), SaveOptions{Base: &base})
	if _, err := b.Save(ws("L1", "older=x"), SaveOptions{Base: &base}); !errors.Is(err, ErrStaleWriter) {
		t.Fatalf("a stale writer: %v", err)
	}
	// It says what is there already: nothing to refuse.
	if got, err := b.Save(ws("L1", "work=a"), SaveOptions{Base: &base}); err != nil || !got.Unchanged {
		t.Fatalf("%+v %v", got, err)
	}
	// A save that wrote nothing was newer all the same.
	if base, err = b.Base(); err != nil {
		t.Fatal(err)
	}
	b.save(ws("L1", "work=a"))
	if _, err := b.Save(ws("L1", "older=x"), SaveOptions{Base: &base}); !errors.Is(err, ErrStaleWriter) {
		t.Fatalf("older than a save that changed nothing: %v", err)
	}
	// So was a removal.
	b.save(ws("L1", "work=b"))
	if base, err = b.Base(); err != nil {
		t.Fatal(err)
	}
	if err := b.ForceRemove(2); err != nil {
		t.Fatal(err)
	}
	b.save(ws("L1", "work=c"))
	if _, err := b.Save(ws("L1", "older=x"), SaveOptions{Base: &base}); !errors.Is(err, ErrStaleWriter) {
		t.Fatalf("a number that was used again: %v", err)
	}
	if base, err = b.Base(); err != nil {
		t.Fatal(err)
	}
	if got := b.save(ws("L1", "newer=x"), SaveOptions{Base: &base}); got.Unchanged {
		t.Error(got)
	}
}

func TestLocks(t *testing.T) {
	b := newBench(t)
	b.save(ws("L1", "work=a"))
	unlock, err := b.Lock("restore")
	if err != nil {
		t.Fatal(err)
	}
	var busy *BusyError
	if _, err := b.Lock("restore"); !errors.As(err, &busy) || busy.Who.PID != os.Getpid() || busy.Who.What != "restore" || !strings.Contains(err.Error(), fmt.Sprintf("another restore is running (pid %d)", os.Getpid())) {
		t.Errorf("a second restore: %v", err)
	}
	if who, ok := b.Restoring(); !ok || who.What != "restore" || !who.Since.Equal(b.clock) {
		t.Errorf("%+v %v", who, ok)
	}
	// The restore's own last act, and a save that somebody asked for.
	b.save(ws("L1", "work=b"), SaveOptions{Auto: true})
	b.save(ws("L1", "work=c"))
	unlock()
	if who, ok := b.Restoring(); ok {
		t.Errorf("%+v", who)
	}
	unlock, err = b.Lock("restore")
	if err != nil {
		t.Fatal(err)
	}
	unlock()

	release, err := b.lock(t.Context(), lockFile, "save", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Save(ws("L1", "x"), SaveOptions{Wait: -1}); !errors.As(err, &busy) || busy.Who.What != "save" {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.SaveContext(ctx, ws("L1", "x"), SaveOptions{}); !errors.As(err, &busy) || !errors.Is(err, ctx.Err()) {
		t.Errorf("%v", err)
	}
	// Whoever waits gets it.
	done := make(chan error)
	go func() {
		_, err := b.Save(ws("L1", "x"), SaveOptions{})
		done <- err
	}()
	release()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestLockTextIsOnlyText(t *testing.T) {
	b := newBench(t)
	unlock, err := b.Lock("restore")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	for _, text := range []string{"", "garbage", `{"pid":-1}`, `{"pid":1,"what":"a\u001b[2J"}`, strings.Repeat("x", 4096)} {
		if err := os.WriteFile(filepath.Join(b.Dir, restoreLockFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var busy *BusyError
		if _, err := b.Lock("restore"); !errors.As(err, &busy) || busy.Who != (Who{What: "restore"}) {
			t.Errorf("text %.20q: %v", text, err)
		}
	}
}

func TestExportAndOwn(t *testing.T) {
	b := newBench(t)
	saved := b.save(ws("L1", "work=a"))
	file, err := os.ReadFile(saved.Path)
	if err != nil {
		t.Fatal(err)
	}
	if !b.Own(file) {
		t.Error("a generation is not own")
	}
	path := filepath.Join(t.TempDir(), "export.json")
	out, err := b.Export(saved.Archive, path)
	if err != nil {
		t.Fatal(err)
	}
	exported, err := os.ReadFile(path)
	if err != nil || out.Digest != Digest(exported) {
		t.Fatal(err)
	}
	other := b.save(ws("L1", "work=b"))
	if err := b.ForceRemove(saved.Generation); err != nil {
		t.Fatal(err)
	}
	if !b.Own(exported) {
		t.Error("an export is not own once its generation is gone")
	}
	changed := []byte(strings.Replace(string(exported), `"native_id": "a"`, `"native_id": "b"`, 1))
	if string(changed) == string(exported) || b.Own(changed) {
		t.Error("a changed export is own")
	}
	forged := mustEncode(t, other.Archive)
	forged = append(forged, ' ')
	if b.Own(forged) || b.Own(nil) || newBench(t).Own(exported) {
		t.Error("own without having been written")
	}
	text := mustEncode(t, ws("L1", "stdout=x"))
	if b.Own(text) {
		t.Error("own before it was remembered")
	}
	if err := b.Remember(text); err != nil || !b.Own(text) {
		t.Error(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	var not *atomicfile.NotRegularError
	if _, err := b.Export(saved.Archive, link); !errors.As(err, &not) {
		t.Errorf("through a link: %v", err)
	}
}

func TestRemove(t *testing.T) {
	b := newBench(t)
	b.save(ws("L1", "work=a"))
	b.save(ws("L1", "work=b"))
	b.save(ws("L2", "work=c"))
	b.save(ws("L2"), SaveOptions{Declined: []string{"work"}}) // held: empty
	var lastGood *LastGoodError
	for _, n := range []uint64{2, 3} {
		if err := b.Remove(n); !errors.As(err, &lastGood) || lastGood.Generation != n {
			t.Errorf("generation %d: %v", n, err)
		}
	}
	for _, n := range []uint64{1, 4} {
		if err := b.Remove(n); err != nil {
			t.Errorf("generation %d: %v", n, err)
		}
	}
	if err := b.Remove(1); !errors.Is(err, ErrNoGeneration) {
		t.Error(err)
	}
	if c := b.best(); c.Generation != 3 || c.Missing != 0 {
		t.Errorf("best is %d, missing %d", c.Generation, c.Missing)
	}
	if err := b.ForceRemove(3); err != nil {
		t.Fatal(err)
	}
	if c := b.best(); c.Generation != 2 {
		t.Error(c.Generation)
	}
	if got := b.save(ws("L2", "work=d")); got.Generation != 5 {
		t.Errorf("number %d was used again", got.Generation)
	}
}

func generations(t testing.TB, s Store) (out []uint64) {
	t.Helper()
	list, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		out = append(out, e.Generation)
	}
	slices.Reverse(out)
	return out
}

func TestPrune(t *testing.T) {
	const day = 24 * time.Hour
	b := newBench(t)
	if got, err := b.Prune(3, day); err != nil || got != nil {
		t.Fatal(got, err)
	}
	if _, err := os.Stat(b.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("pruning nothing made a directory")
	}
	b.save(ws("L0", "old=z"))                                            // 1: a life's last good
	b.save(ws("L1", "work=a"))                                           // 2
	b.save(ws("L1", "work=b"), SaveOptions{Name: "keep", Declined: nil}) // 3: named
	for i := range 5 {
		b.save(ws("L1", fmt.Sprintf("work=c%d", i))) // 4…8
	}
	if _, err := b.Prune(3, 0); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]uint64{1, 3, 6, 7, 8}, generations(t, b.Store)); d != "" {
		t.Error(d)
	}
	// Titles change by themselves: not distinct.
	for i := range 10 {
		a := ws("L1", "work=c4")
		a.Sessions[0].Windows[0].Panes[0].Title = fmt.Sprint(i)
		b.save(a) // 9…18
	}
	if _, err := b.Prune(3, 0); err != nil {
		t.Fatal(err)
	}
	// Of the distinct ones 18, 7, 6; of those that are not, the newest three files.
	if d := cmp.Diff([]uint64{1, 3, 6, 7, 16, 17, 18}, generations(t, b.Store)); d != "" {
		t.Error(d)
	}
	// By age, and not by one clock that is far ahead.
	b.clock = b.clock.Add(1000 * day)
	removed, err := b.Prune(50, day)
	if err != nil || len(removed) > 0 {
		t.Errorf("by a clock that is far ahead: %d, %v", len(removed), err)
	}
	for range 20 {
		b.clock = b.clock.Add(day/8 - ShutdownTime)
		a := ws("L1", "work=c4")
		a.Sessions[0].Windows[0].Panes[0].Title = b.clock.String()
		b.save(a) // 19…38
	}
	removed, err = b.Prune(50, day)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]uint64{1, 3, 6, 7, 30, 31, 32, 33, 34, 35, 36, 37, 38}, generations(t, b.Store)); d != "" {
		t.Errorf("%s removed %d", d, len(removed))
	}
}

// The last good one of a life is what can be read, not what looks good from its beginning.
func TestPruneRelyingOnABrokenOne(t *testing.T) {
	b := newBench(t)
	b.save(ws("L1", "work=a"))
	newer := b.save(ws("L1", "work=b"))
	for i := range 3 {
		b.save(ws("L2", fmt.Sprintf("work=c%d", i)))
	}
	if err := os.Truncate(newer.Path, newer.Size-20); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Prune(1, 0); err != nil {
		t.Fatal(err)
	}
	if got := generations(t, b.Store); !slices.Contains(got, 1) {
		t.Errorf("left are %v", got)
	}
}

func TestLeftoversAreSwept(t *testing.T) {
	b := newBench(t)
	b.save(ws("L1", "work=a"))
	left := filepath.Join(b.Dir, ".00000000000000000002.json.tmp-0123456789abcdef")
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.save(ws("L1", "work=a"))
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Error("a leftover stays")
	}
}

func TestClockJumpsDoNotBreakOrder(t *testing.T) {
	b := newBench(t)
	for i, hour := range []int{0, -1000, 5000, -9000, 1} {
		b.clock = noon.Add(time.Duration(hour) * time.Hour)
		got := b.saveNow(ws("L1", fmt.Sprintf("work=%d", i)))
		if c := b.best(); c.Generation != got.Generation || got.Generation != uint64(i+1) {
			t.Errorf("clock %d h: saved %d, best is %d", hour, got.Generation, c.Generation)
		}
	}
}
