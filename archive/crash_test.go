package archive

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/phux-agent/phux-agent/internal/atomicfile/faultfs"
)

// The test binary as a writer: it saves workspaces into a store, and may kill itself with
// SIGKILL just before its k-th step.
const (
	writerDir   = "ARCHIVE_TEST_WRITER_DIR"
	writerVerb  = "ARCHIVE_TEST_WRITER_VERB"
	writerKill  = "ARCHIVE_TEST_WRITER_KILL_AT"
	writerTimes = "ARCHIVE_TEST_WRITER_TIMES"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerDir); dir != "" {
		if err := writeAsTold(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func writeAsTold(dir string) error {
	s := Store{Dir: dir, Now: time.Now, Machine: "m"}
	if k, err := strconv.Atoi(os.Getenv(writerKill)); err == nil {
		s.fs = &faultfs.FS{Decide: func(st faultfs.Step) faultfs.Fault {
			if st.N == k {
				_ = unix.Kill(os.Getpid(), unix.SIGKILL)
				select {}
			}
			return faultfs.Fault{}
		}}
	} else {
		s.fs = faultfs.NoSync
	}
	times, _ := strconv.Atoi(os.Getenv(writerTimes))
	for i := range max(times, 1) {
		var err error
		switch verb := os.Getenv(writerVerb); verb {
		case "accept":
			_, err = s.Save(ws("L1"), SaveOptions{Accept: true})
		case "decline":
			_, err = s.Save(ws("L2", "0"), SaveOptions{Declined: []string{"work"}})
		case "forget":
			err = s.Forget("work")
		case "prune":
			_, err = s.Prune(1, 0)
		case "export":
			_, err = s.Export(ws("L1", "export=e"), filepath.Join(dir, "..", "export.json"))
		case "remove":
			err = s.Remove(1)
		default:
			_, err = s.Save(ws("L1", fmt.Sprintf("%s%d=a,b,c", verb, i)), SaveOptions{})
		}
		if err != nil {
			return err
		}
		fmt.Println(i)
	}
	return nil
}

func (b *bench) writer(verb string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), writerDir+"="+b.Dir, writerVerb+"="+verb)
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = os.Stderr
	return cmd
}

// sound fails unless every generation can be read, numbers rise, nothing is left over after
// another save, and that save is found.
func (b *bench) sound(after string) {
	b.Helper()
	for _, e := range b.entries() {
		if e.State == Corrupt {
			b.Fatalf("%s: generation %d: %v", after, e.Generation, e.Err)
		}
	}
	got, err := b.Save(ws("L1", "after=z,y,x,w"), SaveOptions{})
	if err != nil {
		b.Fatalf("%s: the next save: %v", after, err)
	}
	if c := b.best(); c.Generation != got.Generation {
		b.Fatalf("%s: saved %d, best is %d", after, got.Generation, c.Generation)
	}
	names, err := os.ReadDir(b.Dir)
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range names {
		if strings.Contains(n.Name(), ".tmp-") {
			b.Fatalf("%s: left over: %s", after, n.Name())
		}
	}
}

func (b *bench) entries() []Entry {
	b.Helper()
	list, err := b.List()
	if err != nil {
		b.Fatal(err)
	}
	return list
}

func (b *bench) seed() {
	b.Helper()
	b.save(ws("L1", "work=a,b,c"))
	b.save(ws("L1", "work=a,b,d"))
}

var crashVerbs = []string{"save", "accept", "decline", "forget", "prune", "remove", "export"}

// F1: SIGKILL just before every step that touches the disk, of every verb that writes.
func TestKillAtEachStep(t *testing.T) {
	t.Parallel()
	for _, verb := range crashVerbs {
		t.Run(verb, func(t *testing.T) {
			for k := 1; ; k++ {
				b := newBench(t)
				b.seed()
				before, err := os.ReadFile(filepath.Join(b.Dir, "00000000000000000002.json"))
				if err != nil {
					t.Fatal(err)
				}
				err = b.writer(verb, fmt.Sprint(writerKill, "=", k)).Run()
				var exit *exec.ExitError
				if err != nil && !(errors.As(err, &exit) && exit.ProcessState.Sys().(interface{ Signaled() bool }).Signaled()) {
					t.Fatal(err)
				}
				if after, readErr := os.ReadFile(filepath.Join(b.Dir, "00000000000000000002.json")); readErr != nil || string(after) != string(before) {
					t.Fatalf("step %d: the last good generation was touched: %v", k, readErr)
				}
				b.sound(fmt.Sprintf("%s killed at step %d", verb, k))
				if err == nil {
					if k < 3 {
						t.Fatalf("only %d steps", k)
					}
					return
				}
			}
		})
	}
}

// SIGKILL at a moment of nobody's choosing, in 200 saves.
func TestKillAtRandom(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.seed()
	for saves := 0; saves < 200; {
		cmd := b.writer(fmt.Sprintf("s%d-", saves), writerTimes+"=1000000")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewScanner(out)
		for range 1 + rand.IntN(15) {
			in.Scan()
			saves++
		}
		for range rand.IntN(20000) { // somewhere in the next one
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for in.Scan() {
			saves++
		}
		_ = cmd.Wait()
		if c := b.best(); c.State != Good || len(c.Newer) != 0 {
			t.Fatalf("best is %d, newer %v", c.Generation, c.Newer)
		}
	}
	list := b.entries()
	for i, e := range list {
		if i+1 < len(list) && e.Archive.Prev != list[i+1].Digest {
			t.Fatalf("generation %d does not follow %d", e.Generation, list[i+1].Generation)
		}
	}
	b.sound("killed at random")
}

// ENOSPC, short writes, a failing disk and a crash at every step of every verb, and power loss.
func TestFaultAtEachStep(t *testing.T) {
	faults := map[string]faultfs.Fault{
		"ENOSPC":                {Err: unix.ENOSPC},
		"short write, said":     {Err: unix.ENOSPC, Short: true},
		"short write, not said": {Short: true},
		"EIO":                   {Err: unix.EIO},
		"power loss":            {Crash: true},
		"power loss, names too": {Crash: true},
	}
	verbs := map[string]func(s Store, dir string) (Saved, error){
		"save":   func(s Store, _ string) (Saved, error) { return s.Save(ws("L1", "new=a,b,e"), SaveOptions{}) },
		"accept": func(s Store, _ string) (Saved, error) { return s.Save(ws("L1"), SaveOptions{Accept: true}) },
		"decline": func(s Store, _ string) (Saved, error) {
			return s.Save(ws("L2", "0"), SaveOptions{Declined: []string{"work"}})
		},
		"forget": func(s Store, _ string) (Saved, error) { return Saved{}, s.Forget("work") },
		"export": func(s Store, dir string) (Saved, error) {
			return s.Export(ws("L1", "x=x"), filepath.Join(dir, "x.json"))
		},
		"prune":  func(s Store, _ string) (Saved, error) { _, err := s.Prune(1, 0); return Saved{}, err },
		"remove": func(s Store, _ string) (Saved, error) { return Saved{}, s.Remove(1) },
	}
	for verb, do := range verbs {
		for name, fault := range faults {
			t.Run(verb+"/"+name, func(t *testing.T) {
				for k := 1; ; k++ {
					b := newBench(t)
					b.seed()
					f := &faultfs.FS{Decide: faultfs.At(k, fault)}
					s := b.Store
					s.fs = f
					dir := t.TempDir()
					got, err := do(s, dir)
					steps := f.Steps()
					if strings.HasPrefix(name, "power loss") {
						f.PowerLoss(strings.HasSuffix(name, "too"))
					}
					after := fmt.Sprintf("step %d", k)
					if k <= len(steps) {
						after = fmt.Sprintf("%v", steps[k-1])
					}
					if err == nil && verb == "save" {
						if e, err := b.Get(got.Generation); err != nil || e.Digest != got.Digest {
							t.Fatalf("%s: success was said, and there is %v %v", after, e.State, err)
						}
					}
					if err == nil && verb == "accept" && b.best().Generation != got.Generation {
						t.Fatalf("%s: accepted, and best is %d", after, b.best().Generation)
					}
					if err == nil && verb == "export" {
						if x, err := os.ReadFile(got.Path); err != nil || Digest(x) != got.Digest || !b.Own(x) {
							t.Fatalf("%s: exported, and there is %d bytes, %v", after, len(x), err)
						}
					}
					if _, err := os.Stat(filepath.Join(dir, "x.json")); err == nil {
						x, err := os.ReadFile(filepath.Join(dir, "x.json"))
						if err != nil || !b.Own(x) {
							t.Fatalf("%s: an export that is not own, or not whole: %v", after, err)
						}
					}
					if c := b.best(); c.Generation < 2 {
						t.Fatalf("%s: best is %d", after, c.Generation)
					}
					b.sound(after)
					if k > len(steps) {
						if err != nil {
							t.Fatalf("without a fault: %v", err)
						}
						return
					}
				}
			})
		}
	}
}

// F7: twenty at once, to one name and to none: one history, nothing twice, nothing refused.
func TestTwentyAtOnce(t *testing.T) {
	t.Parallel()
	for _, same := range []bool{true, false} {
		t.Run(fmt.Sprintf("same=%v", same), func(t *testing.T) {
			b := newBench(t)
			var wg sync.WaitGroup
			for i := range 20 {
				verb := "same"
				if !same {
					verb = fmt.Sprintf("writer%d-", i)
				}
				cmd := b.writer(verb)
				wg.Go(func() {
					if err := cmd.Run(); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			list := b.entries()
			want := 20
			if same {
				want = 1
			}
			if len(list) != want {
				t.Fatalf("%d generations, want %d", len(list), want)
			}
			seen := map[string]bool{}
			for i, e := range list {
				if e.State == Corrupt || e.Generation != uint64(len(list)-i) || seen[said(e.Archive)[0]] {
					t.Errorf("generation %d (place %d): %s %v", e.Generation, i, e.State, said(e.Archive))
				}
				seen[said(e.Archive)[0]] = true
				if i+1 < len(list) && e.Archive.Prev != list[i+1].Digest {
					t.Errorf("generation %d does not follow %d", e.Generation, list[i+1].Generation)
				}
			}
			b.sound("twenty at once")
		})
	}
}

// Twenty that capture, save, and start again when they are behind: nobody's work is overwritten
// by an older look.
func TestStaleWritersAtOnce(t *testing.T) {
	b := newBench(t)
	var mu sync.Mutex
	workspace := 0 // what the host would show
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for {
				base, err := b.Base()
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				workspace++
				look := workspace
				mu.Unlock()
				_, err = b.Save(ws("L1", fmt.Sprintf("look%06d=a", look)), SaveOptions{Base: &base})
				if err == nil {
					return
				}
				if !errors.Is(err, ErrStaleWriter) {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	list := b.entries()
	if len(list) != 20 {
		t.Fatalf("%d generations", len(list))
	}
	for i := range len(list) - 1 {
		if newer, older := said(list[i].Archive)[0], said(list[i+1].Archive)[0]; newer <= older {
			t.Errorf("%s was written over %s", newer, older)
		}
	}
}
