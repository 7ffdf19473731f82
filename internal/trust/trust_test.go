package trust

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func tree(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	must(t, os.Chmod(dir, 0o700))
	must(t, os.MkdirAll(filepath.Join(dir, "a/b"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "a/b/f"), []byte("x"), 0o644))
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func check(p string) error {
	var c Checker
	_, err := c.Check(p)
	return err
}

func TestCheck(t *testing.T) {
	dir := tree(t)
	p := func(s string) string { return filepath.Join(dir, s) }
	if err := check(p("a/b/f")); err != nil {
		t.Fatal(err) // also: a sticky /tmp above is passed
	}
	var te *Error
	for _, c := range []struct {
		name string
		do   func() error
		undo func() error
		path string
		at   string // component named; empty: trusted
	}{
		{"world-writable file", func() error { return os.Chmod(p("a/b/f"), 0o646) }, func() error { return os.Chmod(p("a/b/f"), 0o644) }, "a/b/f", "a/b/f"},
		{"world-writable parent", func() error { return os.Chmod(p("a"), 0o777) }, func() error { return os.Chmod(p("a"), 0o755) }, "a/b/f", "a"},
		{"sticky parent", func() error { return os.Chmod(p("a"), 0o777|os.ModeSticky) }, func() error { return os.Chmod(p("a"), 0o755) }, "a/b/f", ""},
		{"sticky itself", func() error { return os.Chmod(p("a"), 0o777|os.ModeSticky) }, func() error { return os.Chmod(p("a"), 0o755) }, "a", "a"},
		{"link to trusted", func() error { return os.Symlink("a/b", p("l")) }, func() error { return os.Remove(p("l")) }, "l/f", ""},
		{"link up", func() error { return os.Symlink("..", p("a/b/up")) }, func() error { return os.Remove(p("a/b/up")) }, "a/b/up", ""},
		{"link loop", func() error { return os.Symlink("l", p("l")) }, func() error { return os.Remove(p("l")) }, "l", "?"},
		{"absent", func() error { return nil }, func() error { return nil }, "none", "?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			must(t, c.do())
			defer func() { must(t, c.undo()) }()
			err := check(p(c.path))
			switch {
			case c.at == "":
				if err != nil {
					t.Errorf("refused: %v", err)
				}
			case c.at == "?":
				if err == nil {
					t.Error("passed")
				}
			case !errors.As(err, &te) || te.Path != p(c.at):
				t.Errorf("got %v, want a refusal of %s", err, p(c.at))
			}
		})
	}
	if err := check("a/b"); err == nil {
		t.Error("a relative path passed")
	}
}

func TestCheckLinkIntoUntrusted(t *testing.T) {
	dir := tree(t)
	open := filepath.Join(dir, "open")
	must(t, os.MkdirAll(filepath.Join(open, "x"), 0o755))
	must(t, os.Chmod(open, 0o777))
	must(t, os.Symlink(filepath.Join(open, "x"), filepath.Join(dir, "link")))
	var te *Error
	if err := check(filepath.Join(dir, "link")); !errors.As(err, &te) || te.Path != open {
		t.Errorf("got %v", err)
	}
	must(t, os.Chmod(open, 0o755))
	must(t, os.Symlink("..", filepath.Join(open, "x", "up")))
	must(t, os.Chmod(open, 0o757))
	if err := check(filepath.Join(dir, "open/x/up")); !errors.As(err, &te) || te.Path != open {
		t.Errorf("a link up into an open directory: %v", err)
	}
}

func TestCheckForeignOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give a file away")
	}
	dir := tree(t)
	must(t, os.Chown(filepath.Join(dir, "a"), 4711, 0))
	var te *Error
	if err := check(filepath.Join(dir, "a/b/f")); !errors.As(err, &te) || te.Owner != 4711 {
		t.Errorf("got %v", err)
	}
	must(t, os.Chown(filepath.Join(dir, "a"), 0, 0))
	must(t, os.Symlink("a", filepath.Join(dir, "l")))
	must(t, os.Lchown(filepath.Join(dir, "l"), 4711, 0))
	if err := check(filepath.Join(dir, "l/b")); !errors.As(err, &te) {
		t.Errorf("somebody else's link: %v", err)
	}
}

func TestReadFile(t *testing.T) {
	dir := tree(t)
	var c Checker
	f := filepath.Join(dir, "a/b/f")
	if b, err := c.ReadFile(f, 1); err != nil || string(b) != "x" {
		t.Fatalf("%q %v", b, err)
	}
	if _, err := c.ReadFile(f, 0); !errors.Is(err, ErrTooLarge) {
		t.Errorf("over the bound: %v", err)
	}
	var te *Error
	must(t, os.Symlink("f", filepath.Join(dir, "a/b/l")))
	if _, err := c.ReadFile(filepath.Join(dir, "a/b/l"), 1); !errors.As(err, &te) {
		t.Errorf("a link: %v", err)
	}
	if _, err := c.ReadFile(filepath.Join(dir, "a/b"), 1); !errors.As(err, &te) {
		t.Errorf("a directory: %v", err)
	}
	must(t, os.Chmod(f, 0o666))
	if _, err := c.ReadFile(f, 1); !errors.As(err, &te) {
		t.Errorf("world-writable: %v", err)
	}
}

func TestGroups(t *testing.T) {
	dir := t.TempDir()
	passwd, group := filepath.Join(dir, "passwd"), filepath.Join(dir, "group")
	must(t, os.WriteFile(passwd, []byte("root:x:0:0::/:\nann:x:1000:1000::/:\nbob:x:1001:1001::/:\neve:x:1002:1000::/:\ncid:x:1003:2003::/:\n"), 0o644))
	must(t, os.WriteFile(group, []byte("root:x:0:\nann:x:1000:\nbob:x:1001:\nstaff:x:50:bob\ncid:x:2003:cid,root\nwheel:x:1003:\n"), 0o644))
	g := readGroups(passwd, group)
	for _, c := range []struct {
		gid, uid int
		want     string // part of the reason; empty: private
	}{
		{1001, 1001, ""},
		{2003, 1003, ""},    // same name, another number; root may be in it
		{1000, 1000, "eve"}, // somebody else's primary group
		{50, 1001, "not your private group"},
		{77, 1001, "not in /etc/group"},
		{1001, 9999, "not in /etc/passwd"},
		{0, 1001, ""},
	} {
		got := g.shared(c.gid, c.uid)
		if c.want == "" && got != "" || c.want != "" && !strings.Contains(got, c.want) {
			t.Errorf("group %d of uid %d: %q, want %q", c.gid, c.uid, got, c.want)
		}
	}
}
