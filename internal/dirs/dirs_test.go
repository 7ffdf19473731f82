package dirs

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func env(m map[string]string) func(string) string { return func(k string) string { return m[k] } }

func TestFind(t *testing.T) {
	run := t.TempDir()
	for _, c := range []struct {
		name string
		env  map[string]string
		want Dirs
	}{
		{
			"defaults",
			map[string]string{"HOME": "/h", "XDG_RUNTIME_DIR": run},
			Dirs{"/h", "/h/.config/phux-agent", "/h/.local/share/phux-agent", "/h/.local/state/phux-agent", run + "/phux-agent"},
		},
		{
			"set",
			map[string]string{"HOME": "/h/", "XDG_CONFIG_HOME": "/c", "XDG_DATA_HOME": "/d/", "XDG_STATE_HOME": "/s", "XDG_RUNTIME_DIR": run},
			Dirs{"/h", "/c/phux-agent", "/d/phux-agent", "/s/phux-agent", run + "/phux-agent"},
		},
		{
			"relative is ignored",
			map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "c", "XDG_DATA_HOME": "./d", "XDG_STATE_HOME": "../s", "XDG_RUNTIME_DIR": run},
			Dirs{"/h", "/h/.config/phux-agent", "/h/.local/share/phux-agent", "/h/.local/state/phux-agent", run + "/phux-agent"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Find(env(c.env))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRuntimeFallback(t *testing.T) {
	base, uid := t.TempDir(), os.Getuid()
	good, open := filepath.Join(base, "good"), filepath.Join(base, "open")
	for _, d := range []string{good, open} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	tmp := "/tmp/phux-agent-7"
	for _, c := range []struct{ name, xdg, want string }{
		{"ours", good, good + "/phux-agent"},
		{"unset", "", tmp},
		{"relative", "good", tmp},
		{"gone", base + "/none", tmp},
		{"open to all", open, tmp},
		{"a file", "/etc/passwd", tmp},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := uid
			if c.want == tmp {
				u = 7 // no such directory below run
			}
			if c.name == "open to all" {
				u = uid
				if got := runtimeDir(c.xdg, base+"/run", "/tmp", u); got == open+"/phux-agent" {
					t.Error("a directory that all may write to was used")
				}
				return
			}
			if got := runtimeDir(c.xdg, base+"/run", "/tmp", u); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestPrivate(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	base := t.TempDir()
	mode := func(p string) os.FileMode {
		t.Helper()
		info, err := os.Lstat(p)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	deep := filepath.Join(base, "a/b/c")
	if err := Private(deep); err != nil || mode(deep) != 0o700 {
		t.Fatalf("%v, mode %v", err, mode(deep))
	}
	if err := os.Chmod(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Private(deep); err != nil || mode(deep) != 0o700 {
		t.Fatalf("a wide one is narrowed: %v, mode %v", err, mode(deep))
	}
	var fe *ForeignError
	link := filepath.Join(base, "link")
	if err := os.Symlink(deep, link); err != nil {
		t.Fatal(err)
	}
	if err := Private(link); !errors.As(err, &fe) {
		t.Errorf("a link: %v", err)
	}
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Private(file); !errors.As(err, &fe) {
		t.Errorf("a file: %v", err)
	}
	if os.Getuid() == 0 {
		theirs := filepath.Join(base, "theirs")
		if err := os.Mkdir(theirs, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(theirs, 4711, 4711); err != nil {
			t.Fatal(err)
		}
		if err := Private(theirs); !errors.As(err, &fe) {
			t.Errorf("somebody else's: %v", err)
		}
	}
	if err := Private("rel"); !errors.As(err, &fe) {
		t.Errorf("relative: %v", err)
	}
}
