package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestUnsynced(t *testing.T) {
	dir := t.TempDir()
	path, temp := filepath.Join(dir, "f"), filepath.Join(dir, "f.tmp")
	for _, text := range []string{"one", "two", ""} {
		if err := Unsynced(path, temp, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != text {
			t.Errorf("%q, %v", b, err)
		}
	}
	if i, err := os.Stat(path); err != nil || i.Mode() != 0o600 {
		t.Errorf("%v, %v", i.Mode(), err)
	}
	// Where it cannot take the name, nothing is left beside it.
	taken := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(taken, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Unsynced(taken, temp, nil); err == nil {
		t.Error("a directory was replaced")
	}
	if _, err := os.Lstat(temp); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a temporary file is left: %v", err)
	}
}
