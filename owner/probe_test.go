//go:build linux

package owner

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestProbe(t *testing.T) {
	one, hooked := pidFileAgent(t), hookAgent(t)
	short := idA[:8]
	for _, tc := range []struct {
		name   string
		hooked bool
		make   func(t *testing.T, dir string)
		want   Presence
		detail string
	}{
		{"nothing", false, nil, Absent, "nothing at"},
		{"a file", false, files("projects/-src/" + idA + ".jsonl=x"), Present, "1 bytes"},
		{"another id's file", false, files("projects/-src/" + idB + ".jsonl=x"), Absent, ""},
		{"zero bytes", false, files("projects/-src/" + idA + ".jsonl="), Begun, "is empty (0 bytes)"},
		{"zero bytes beside a file", false, files("projects/a/"+idA+".jsonl=", "projects/b/"+idA+".jsonl=x"), Present, ""},
		{"a file in the place of a directory", false, files("projects/other=x"), Absent, ""},
		{"a pipe", false, func(t *testing.T, dir string) {
			must(t, syscall.Mkfifo(filepath.Join(dir, "projects/-src", idA+".jsonl"), 0o600))
		}, Begun, "is not a file"},
		{"a directory", false, func(t *testing.T, dir string) {
			must(t, os.Mkdir(filepath.Join(dir, "projects/-src", idA+".jsonl"), 0o700))
		}, Present, ""},
		{"a circle of links", false, func(t *testing.T, dir string) {
			must(t, os.Symlink("loop", filepath.Join(dir, "projects/loop")))
			must(t, os.Symlink(idA+".jsonl", filepath.Join(dir, "projects/-src", idA+".jsonl")))
		}, Begun, ""},
		{"a store that is not there", false, func(t *testing.T, dir string) { must(t, os.RemoveAll(dir)) }, Absent, ""},
		{"a conversation", true, files("tmp/p/chats/session-1-" + short + `.jsonl={"sessionId":"` + idA + "\"}\n{\"type\":\"gemini\"}\n"), Present, ""},
		{"a stub", true, files("tmp/p/chats/session-1-" + short + `.jsonl={"sessionId":"` + idA + "\"}\n{\"type\":\"user\"}\n"), Begun, "no reply"},
		{"a stub beside it", true, files(
			"tmp/p/chats/session-1-"+short+`.jsonl={"sessionId":"`+idA+"\"}\n{\"type\":\"gemini\"}\n",
			"tmp/p/chats/session-2-"+short+`.jsonl={"sessionId":"`+idA+"\"}\n",
		), Present, "session-1"},
		{"another conversation of the same short id", true, files("tmp/p/chats/session-1-" + short + `.jsonl={"sessionId":"` + short + "-1111-4111-8111-000000000000\"}\n{\"type\":\"gemini\"}\n"), Begun, "another conversation"},
		{"a header that is none", true, files("tmp/p/chats/session-1-" + short + `.jsonl=hello` + "\n{\"type\":\"gemini\"}\n"), CannotTell, "not JSON"},
		{"a header without the id", true, files("tmp/p/chats/session-1-" + short + ".jsonl={}\n{\"type\":\"gemini\"}\n"), CannotTell, "/sessionId"},
		{"a header without an end", true, files("tmp/p/chats/session-1-" + short + `.jsonl={"x":"` + strings.Repeat("y", maxHead)), CannotTell, "longer"},
		{"a repeated name in the header", true, files("tmp/p/chats/session-1-" + short + `.jsonl={"a":1,"a":2,"sessionId":"` + idA + "\"}\n{\"type\":\"gemini\"}\n"), Present, ""},
		{"more files than are looked at", true, func(t *testing.T, dir string) {
			var many []string
			for n := range maxMatches + 1 {
				many = append(many, "tmp/p/chats/session-"+strings.Repeat("x", n+1)+"-"+short+`.jsonl={"sessionId":"`+idA+"\"}\n")
			}
			files(many...)(t, dir)
		}, CannotTell, "too many"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir, _, env := store(t)
			if tc.make != nil {
				tc.make(t, dir)
			}
			tmpl := one
			if tc.hooked {
				tmpl = hooked
			}
			p, detail := Probe(tmpl, idA, env)
			if p != tc.want || detail == "" || !strings.Contains(detail, tc.detail) {
				t.Errorf("%s (%s), want %s (%s)", p, detail, tc.want, tc.detail)
			}
		})
	}
	none := func(string) (string, bool) { return "", false }
	if p, detail := Probe(one, idA, none); p != CannotTell || detail == "" {
		t.Errorf("no root: %s (%s)", p, detail)
	}
	if p, _ := Probe(one, idA, func(string) (string, bool) { return "relative", true }); p != CannotTell {
		t.Errorf("a relative root: %s", p)
	}
	_, _, env := store(t)
	if p, _ := Probe(one, "../*", env); p != CannotTell {
		t.Errorf("an id that is a pattern: %s", p)
	}
	if p, _ := Probe(nil, idA, env); p != CannotTell {
		t.Errorf("no template: %s", p)
	}
}

// What cannot be read is not absent. The test runs as the user that cannot.
func TestProbeUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root can read everything; the glob's errors are tested by TestGlobErrors")
	}
	dir, _, env := store(t)
	must(t, os.Chmod(filepath.Join(dir, "projects"), 0))
	defer os.Chmod(filepath.Join(dir, "projects"), 0o700)
	if p, detail := Probe(pidFileAgent(t), idA, env); p != CannotTell || detail == "" {
		t.Errorf("%s (%s)", p, detail)
	}
}

// A directory whose name is too long for the system gives an error for every user.
func TestGlobErrors(t *testing.T) {
	dir := t.TempDir()
	for _, pattern := range []string{
		filepath.Join(dir, strings.Repeat("x", 300), "*"),
		filepath.Join(dir, strings.Repeat("x", 300)),
	} {
		if found, err := glob(pattern, 4); err == nil || found != nil {
			t.Errorf("%v %v", found, err)
		}
	}
	if _, err := glob(filepath.Join(dir, "[", "x"), 4); err != nil {
		t.Errorf("nothing to match a broken pattern with: %v", err)
	}
	must(t, os.WriteFile(filepath.Join(dir, "[*"), nil, 0o600))
	if found, err := glob(filepath.Join(dir, `\[\*`), 4); err != nil || len(found) != 1 {
		t.Errorf("%v %v", found, err)
	}
	if _, err := glob(filepath.Join(dir, "["), 4); err == nil {
		t.Error("a broken pattern is no error")
	}
	if found, err := glob("/", 4); err != nil || len(found) != 1 {
		t.Errorf("%v %v", found, err)
	}
}

func TestContainsOverTheEdge(t *testing.T) {
	for _, at := range []int{0, 1, 64<<10 - 3, 64 << 10, 64<<10 + 3, 200 << 10} {
		budget := int64(maxSearch)
		found, whole, err := contains(strings.NewReader(strings.Repeat("x", at)+"needle"), "needle", &budget)
		if !found || !whole || err != nil {
			t.Errorf("at %d: %v %v %v", at, found, whole, err)
		}
	}
	budget := int64(1 << 10)
	if found, whole, err := contains(strings.NewReader(strings.Repeat("x", 1<<20)), "needle", &budget); found || whole || err != nil {
		t.Errorf("over the budget: %v %v %v", found, whole, err)
	}
}

func TestStore(t *testing.T) {
	dir, _, env := store(t)
	one := pidFileAgent(t)
	real, err := filepath.EvalSymlinks(dir)
	must(t, err)
	a := Store(one, env)
	if a == "" || len(a) <= 120 && len(real) <= 120 && a != real {
		t.Errorf("%q, want %q", a, real)
	}
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(dir, link))
	at := func(path string) string { return Store(one, func(string) (string, bool) { return path, true }) }
	if b := at(link); b != a {
		t.Errorf("by another way: %q, want %q", b, a)
	}
	if b := at("/tmp/not/there/yet"); b != "/tmp/not/there/yet" {
		t.Error(b)
	}
	long := "/" + strings.Repeat("x", 200)
	if b, c := at(long), at(long+"y"); b == c || len(b) > 120 || !strings.HasPrefix(b, "sha256:") {
		t.Error(b, c)
	}
	if b := at("relative"); b != "" {
		t.Error(b)
	}
}

func files(list ...string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		for _, f := range list {
			path, content, _ := strings.Cut(f, "=")
			path = filepath.Join(dir, path)
			must(t, os.MkdirAll(filepath.Dir(path), 0o700))
			must(t, os.WriteFile(path, []byte(content), 0o600))
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
