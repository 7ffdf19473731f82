package atomicfile_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/phux-agent/phux-agent/internal/atomicfile"
	"github.com/phux-agent/phux-agent/internal/atomicfile/faultfs"
)

const (
	before = "the old content, whole"
	after  = "the new content, whole, and a little longer than the old one"
)

type verb struct {
	name string
	old  string // content before; empty: absent
	do   func(atomicfile.Writer, string) error
}

func verbs() []verb {
	replace := func(w atomicfile.Writer, p string) error { return w.Replace(p, []byte(after)) }
	create := func(w atomicfile.Writer, p string) error { return w.Create(p, []byte(after)) }
	return []verb{
		{"replace", before, replace},
		{"replace absent", "", replace},
		{"create", "", create},
	}
}

func setUp(t *testing.T, v verb) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if v.old != "" {
		if err := os.WriteFile(path, []byte(v.old), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(b)
}

// countSteps runs v without a fault.
func countSteps(t *testing.T, v verb) int {
	t.Helper()
	f := &faultfs.FS{}
	path := setUp(t, v)
	if err := v.do(atomicfile.Writer{FS: f}, path); err != nil {
		t.Fatal(err)
	}
	if got := content(t, path); got != after {
		t.Fatalf("content is %q", got)
	}
	return len(f.Steps())
}

func noLeftovers(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != filepath.Base(path) {
			t.Errorf("left over: %s", e.Name())
		}
	}
}

// At every step, every fault: the name holds the old content or the new one, never a part, and
// success is said only of the new one.
func TestFaultAtEachStep(t *testing.T) {
	faults := map[string]faultfs.Fault{
		"ENOSPC":                {Err: unix.ENOSPC},
		"EIO":                   {Err: unix.EIO},
		"EINTR":                 {Err: unix.EINTR},
		"short write, said":     {Err: unix.ENOSPC, Short: true},
		"short write, not said": {Short: true},
		"crash":                 {Crash: true},
	}
	for _, v := range verbs() {
		n := countSteps(t, v)
		for name, fault := range faults {
			for k := 1; k <= n; k++ {
				t.Run(fmt.Sprintf("%s/%s/%d", v.name, name, k), func(t *testing.T) {
					path := setUp(t, v)
					f := &faultfs.FS{Decide: faultfs.At(k, fault)}
					err := v.do(atomicfile.Writer{FS: f}, path)
					got := content(t, path)
					if got != v.old && got != after {
						t.Fatalf("step %v: torn: %q (error %v)", f.Steps()[k-1], got, err)
					}
					if err == nil && got != after {
						t.Fatalf("step %v: success was said of %q", f.Steps()[k-1], got)
					}
					// The next writer goes through, and takes away what a dead one left.
					if v.name == "create" && got == after {
						return
					}
					if err := v.do(atomicfile.Writer{}, path); err != nil {
						t.Fatalf("the next writer: %v", err)
					}
					if got := content(t, path); got != after {
						t.Fatalf("after the next writer: %q", got)
					}
					noLeftovers(t, path)
				})
			}
		}
	}
}

// A power loss at each step, with and without the directory changes that were not synced yet;
// and after success, when nothing may be lost any more.
func TestPowerLoss(t *testing.T) {
	for _, v := range verbs() {
		n := countSteps(t, v)
		for k := 1; k <= n+1; k++ {
			for _, names := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d/names=%v", v.name, k, names), func(t *testing.T) {
					path := setUp(t, v)
					f := &faultfs.FS{Decide: faultfs.At(k, faultfs.Fault{Crash: true})}
					err := v.do(atomicfile.Writer{FS: f}, path)
					f.PowerLoss(names)
					got := content(t, path)
					if got != v.old && got != after {
						t.Fatalf("torn: %q", got)
					}
					if err == nil && got != after {
						t.Fatalf("success was said, and the power loss left %q", got)
					}
				})
			}
		}
	}
}

func TestSyncUnsupportedIsTolerated(t *testing.T) {
	for _, v := range verbs() {
		for _, errno := range []unix.Errno{unix.EINVAL, unix.ENOTSUP} {
			path := setUp(t, v)
			f := &faultfs.FS{Decide: func(s faultfs.Step) faultfs.Fault {
				if strings.HasPrefix(s.Op, "sync") {
					return faultfs.Fault{Err: errno}
				}
				return faultfs.Fault{}
			}}
			if err := v.do(atomicfile.Writer{FS: f}, path); err != nil {
				t.Errorf("%s: %v", v.name, err)
			}
			if got := content(t, path); got != after {
				t.Errorf("%s: %q", v.name, got)
			}
		}
	}
}

func TestWithoutLinksOrLocks(t *testing.T) {
	decide := func(s faultfs.Step) faultfs.Fault {
		switch s.Op {
		case "link":
			return faultfs.Fault{Err: unix.EPERM}
		case "lock":
			return faultfs.Fault{Err: unix.ENOLCK}
		}
		return faultfs.Fault{}
	}
	path := filepath.Join(t.TempDir(), "file")
	w := atomicfile.Writer{FS: &faultfs.FS{Decide: decide}}
	if err := w.Create(path, []byte(after)); err != nil {
		t.Fatal(err)
	}
	if err := w.Create(path, []byte(before)); !errors.Is(err, fs.ErrExist) {
		t.Fatalf("second create: %v", err)
	}
	if got := content(t, path); got != after {
		t.Fatalf("content %q", got)
	}
	noLeftovers(t, path)
}

func TestRefusesWhatIsNotARegularFile(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte(before), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func(string) error{
		"link":          func(p string) error { return os.Symlink(victim, p) },
		"dangling link": func(p string) error { return os.Symlink(filepath.Join(dir, "nowhere"), p) },
		"directory":     func(p string) error { return os.Mkdir(p, 0o700) },
		"fifo":          func(p string) error { return unix.Mkfifo(p, 0o600) },
	} {
		path := filepath.Join(dir, "target-"+name)
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		for verb, do := range map[string]func(string, []byte) error{"replace": atomicfile.Replace, "create": atomicfile.Create} {
			var not *atomicfile.NotRegularError
			if err := do(path, []byte(after)); !errors.As(err, &not) || not.Path != path {
				t.Errorf("%s over a %s: %v", verb, name, err)
			}
		}
	}
	if got := content(t, victim); got != before {
		t.Errorf("the file behind the link holds %q", got)
	}
}

func TestModesWhateverTheUmask(t *testing.T) {
	for _, mask := range []int{0, 0o777} {
		old := unix.Umask(mask)
		dir := filepath.Join(t.TempDir(), "a", "b")
		err := errors.Join(atomicfile.MkdirAll(dir), atomicfile.Replace(filepath.Join(dir, "f"), []byte("x")),
			atomicfile.Create(filepath.Join(dir, "g"), []byte("x")))
		unix.Umask(old)
		if err != nil {
			t.Fatal(err)
		}
		for p, want := range map[string]fs.FileMode{dir: 0o700, filepath.Dir(dir): 0o700, filepath.Join(dir, "f"): 0o600, filepath.Join(dir, "g"): 0o600} {
			fi, err := os.Stat(p)
			if err != nil {
				t.Fatal(err)
			}
			if fi.Mode().Perm() != want {
				t.Errorf("umask %o: %s has mode %o", mask, p, fi.Mode().Perm())
			}
		}
	}
}

func TestMkdirAllIsDurable(t *testing.T) {
	root := t.TempDir()
	f := &faultfs.FS{}
	dir := filepath.Join(root, "a", "b", "c")
	if err := (atomicfile.Writer{FS: f}).MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	f.PowerLoss(true)
	if _, err := os.Stat(dir); err != nil {
		t.Fatal(err)
	}
}

// A living neighbour's temporary file is not a leftover.
func TestSweepSparesTheLiving(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	swept := false
	f := &faultfs.FS{}
	f.Decide = func(s faultfs.Step) faultfs.Fault {
		if s.Op == "rename" && !swept { // the first writer is complete, and about to rename
			swept = true
			if err := atomicfile.Replace(path, []byte(before)); err != nil {
				t.Error(err)
			}
		}
		return faultfs.Fault{}
	}
	// The temporary file must be locked until it is renamed, or the inner writer takes it away.
	if err := (atomicfile.Writer{FS: f}).Replace(path, []byte(after)); err != nil {
		t.Fatal(err)
	}
	if got := content(t, path); got != after {
		t.Fatal(got)
	}
	noLeftovers(t, path)
}

func TestSweepTakesOnlyItsOwn(t *testing.T) {
	dir := t.TempDir()
	keep := []string{".other.tmp-0123456789abcdef", ".file.tmp-0123456789abcdeg", ".file.tmp-0123", "file.tmp-0123456789abcdef", ".file.tmp-0123456789abcdef~"}
	for _, name := range append(keep, ".file.tmp-0123456789abcdef") {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/", filepath.Join(dir, ".file.tmp-fedcba9876543210")); err != nil {
		t.Fatal(err)
	}
	keep = append(keep, ".file.tmp-fedcba9876543210")
	if err := atomicfile.Replace(filepath.Join(dir, "file"), []byte("x")); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(keep)+1 {
		t.Errorf("%d entries, want %d: %v", len(entries), len(keep)+1, entries)
	}
}

func TestLongNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), strings.Repeat("ä", 127))
	if err := atomicfile.Create(path, []byte(after)); err != nil {
		t.Fatal(err)
	}
	if got := content(t, path); got != after {
		t.Fatal(got)
	}
}

func TestCreateHasOneWinner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	var wg sync.WaitGroup
	var wins atomic.Int32
	for i := range 20 {
		wg.Go(func() {
			switch err := atomicfile.Create(path, fmt.Appendf(nil, "writer %d", i)); {
			case err == nil:
				wins.Add(1)
			case !errors.Is(err, fs.ErrExist):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if wins.Load() != 1 {
		t.Errorf("%d winners", wins.Load())
	}
	noLeftovers(t, path)
}

func TestReplaceInParallel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := atomicfile.Replace(path, []byte(strings.Repeat(string(rune('a'+i)), 10000))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got := content(t, path)
	if len(got) != 10000 || strings.Trim(got, got[:1]) != "" {
		t.Errorf("torn: %d bytes", len(got))
	}
	noLeftovers(t, path)
}

func TestShortWriteIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f := &faultfs.FS{Decide: func(s faultfs.Step) faultfs.Fault { return faultfs.Fault{Short: s.Op == "write"} }}
	if err := (atomicfile.Writer{FS: f}).Create(path, []byte(after)); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("error %v", err)
	}
	noLeftovers(t, path)
}
