package foreign

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "dotfiles", "settings.json")
	must(t, os.Mkdir(filepath.Dir(real), 0o755))
	must(t, os.WriteFile(real, []byte("old"), 0o640))
	must(t, os.Chmod(real, 0o640))
	link := filepath.Join(dir, "settings.json")
	must(t, os.Symlink("dotfiles/settings.json", link))
	f, err := Read(link)
	must(t, err)
	if f.Target != real || string(f.Data) != "old" {
		t.Fatalf("%+v", f)
	}
	_, err = f.Replace([]byte("new"))
	must(t, err)
	info, err := os.Lstat(link)
	must(t, err)
	if info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced")
	}
	info, err = os.Stat(real)
	must(t, err)
	if b, _ := os.ReadFile(real); string(b) != "new" || info.Mode().Perm() != 0o640 {
		t.Errorf("%q, %v", b, info.Mode())
	}
	// Two tools at once: who read before the other wrote writes nothing.
	if _, err := f.Replace([]byte("late")); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
	if err := f.Remove(); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
	if names, _ := filepath.Glob(filepath.Join(filepath.Dir(real), ".phux*")); len(names) > 0 {
		t.Errorf("left: %q", names)
	}
}

func TestReplaceMakesWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "b", "x.js")
	f, err := Read(path)
	must(t, err)
	if f.Exists {
		t.Error("it exists")
	}
	late, err := Read(path)
	must(t, err)
	made, err := f.Replace([]byte("x"))
	if err != nil || len(made) != 2 {
		t.Fatal(made, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	if _, err := late.Replace([]byte("y")); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
	must(t, os.Remove(path))
	Unmake(made)
	if _, err := os.Stat(filepath.Join(dir, "a")); !os.IsNotExist(err) {
		t.Error("the directories stay")
	}
}

func TestReadRefuses(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.WriteFile(at("ro"), []byte("x"), 0o400))
	must(t, os.WriteFile(at("twice"), []byte("x"), 0o600))
	must(t, os.Link(at("twice"), at("other")))
	must(t, os.Mkdir(at("dir"), 0o700))
	must(t, os.Symlink("nowhere", at("dangling")))
	must(t, os.Symlink("loop", at("loop")))
	must(t, os.WriteFile(at("huge"), nil, 0o600))
	must(t, os.Truncate(at("huge"), MaxFile+1))
	must(t, os.Symlink("ro", at("link")))
	must(t, os.Symlink("nowhere", at("away")))
	must(t, syscall.Mkfifo(at("fifo"), 0o600))
	for name, want := range map[string]string{
		"ro": "read-only", "twice": "hard links", "dir": "not a regular file", "dangling": "not there",
		"loop": "cannot be reached", "away/b/x": "away leads to nowhere, which is not there", "ro/x": "cannot be reached: not a directory", "fifo": "not a regular file", "huge": "longer than", "link": "read-only",
	} {
		var refusal *Refusal
		if _, err := Read(at(name)); !errors.As(err, &refusal) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// Somebody writes after the last look at the file, and before ours takes its place: theirs stays.
func TestReplaceGivesWayInTheLastMoment(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.json")
	for _, whole := range []bool{true, false} { // by a rename, as most programs do, and in place
		must(t, os.WriteFile(path, []byte("{}"), 0o600))
		f, err := Read(path)
		must(t, err)
		f.moment = func() {
			if !whole {
				must(t, os.WriteFile(path, []byte("theirs"), 0o600))
				return
			}
			must(t, os.WriteFile(path+".new", []byte("theirs"), 0o600))
			must(t, os.Rename(path+".new", path))
		}
		if _, err := f.Replace([]byte("ours")); !errors.Is(err, ErrChanged) {
			t.Error(err)
		}
		if b, err := os.ReadFile(path); string(b) != "theirs" || err != nil {
			t.Errorf("%q, %v", b, err)
		}
		if names, _ := os.ReadDir(dir); len(names) != 1 {
			t.Errorf("left: %v", names)
		}
	}
}

// A fifo that stands in its place by now is waited for by nobody.
func TestReplaceWaitsForNobody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.json")
	must(t, os.WriteFile(path, []byte("{}"), 0o600))
	f, err := Read(path)
	must(t, err)
	must(t, os.Remove(path))
	must(t, syscall.Mkfifo(path, 0o600))
	if _, err := f.Replace([]byte("ours")); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Error(info, err)
	}
}

// A directory on the way is a link that leads nowhere, or comes to be there meanwhile: neither is
// ours to take away.
func TestNothingOfOthersIsUnmade(t *testing.T) {
	dir := t.TempDir()
	f, err := Read(filepath.Join(dir, "a", "x.json"))
	must(t, err)
	must(t, os.Symlink("nowhere", filepath.Join(dir, "a")))
	if _, err := f.Replace([]byte("ours")); err == nil {
		t.Error("it was written")
	}
	if to, err := os.Readlink(filepath.Join(dir, "a")); to != "nowhere" {
		t.Errorf("the link is gone: %v", err)
	}
}
