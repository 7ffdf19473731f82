package archive

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Saves, each of which prunes, beside one another: none is lost, no number is given twice, and the newest good one is
// whole at every moment.
func TestSavesRaceWithPrune(t *testing.T) {
	b := newBench(t)
	b.Now, b.Uptime = time.Now, nil
	b.save(ws("L1", "work=a"))
	stop := make(chan struct{})
	var looks, saves sync.WaitGroup
	looks.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			// A file may be pruned between the list and the look; the newest is not.
			if c, err := b.Best(); err != nil || len(c.Archive.Sessions) != 1 || c.Missing > 0 {
				t.Errorf("best: %v, %+v", err, c.Entry)
				return
			}
		}
	})
	var mu sync.Mutex
	seen := map[uint64]string{}
	for w := range 4 {
		saves.Go(func() {
			for i := range 25 {
				name := fmt.Sprintf("w%d-%d", w, i)
				got, err := b.Save(ws("L1", name+"=a"), SaveOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if was, twice := seen[got.Generation]; twice {
					t.Errorf("generation %d is %s and %s", got.Generation, was, name)
				}
				seen[got.Generation] = name
				mu.Unlock()
				if _, err := b.Prune(3, time.Hour); err != nil {
					t.Error(err)
				}
			}
		})
	}
	saves.Wait()
	close(stop)
	looks.Wait()
	if c := b.best(); c.Generation != 101 {
		t.Errorf("the last is %d", c.Generation)
	}
}

// A state directory that is a link to another disk's is a state directory; one that cannot be written
// refuses, and what is there stays readable.
func TestStrangeDirectories(t *testing.T) {
	b := newBench(t)
	real := filepath.Join(t.TempDir(), "disk")
	if err := os.MkdirAll(real, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, filepath.Dir(b.Dir)); err != nil {
		t.Fatal(err)
	}
	b.save(ws("L1", "work=a"))
	b.save(ws("L1", "work=b"))
	if got := generations(t, b.Store); len(got) != 2 {
		t.Errorf("by way of a link: %v", got)
	}
	if os.Geteuid() == 0 {
		t.Skip("root writes everywhere")
	}
	if err := os.Chmod(b.Dir, 0o500); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(b.Dir, 0o700) }()
	if c := b.best(); c.Generation != 2 {
		t.Errorf("read only: best is %d", c.Generation)
	}
}

// Ten thousand generations are many, and no more than that: the next save, which reads one of them, the choice, and the
// pruning down to the bounds.
func TestTenThousandGenerations(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes ten thousand files")
	}
	b := newBench(t)
	first := b.save(ws("L1", "work=a"))
	text, err := os.ReadFile(first.Path)
	if err != nil {
		t.Fatal(err)
	}
	for n := 2; n <= 10000; n++ {
		a, err := Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		a.Generation, a.Prev, a.Distinct, a.Sessions[0].Name = uint64(n), "", "", fmt.Sprint("w", n)
		enc, err := a.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(b.Dir, slot{n: uint64(n)}.file()), enc, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.save(ws("L1", "last=a")); got.Generation != 10001 {
		t.Errorf("saved %d", got.Generation)
	}
	if c := b.best(); c.Generation != 10001 {
		t.Errorf("best is %d", c.Generation)
	}
	if _, err := b.Prune(50, 0); err != nil {
		t.Fatal(err)
	}
	if got := generations(t, b.Store); len(got) > 120 {
		t.Errorf("%d are left", len(got))
	}
}
