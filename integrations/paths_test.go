package integrations

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func env(pairs ...string) Env {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func TestExpandRoot(t *testing.T) {
	home := env("HOME", "/h", "D", "/d", "EMPTY", "", "TILDE", "~/x", "REL", "x", "DOTS", "/a/../b/", "NUL", "/a\x00")
	for in, want := range map[string]string{
		"~":                           "/h",
		"~/.claude":                   "/h/.claude",
		"/abs/":                       "/abs",
		"${D}":                        "/d",
		"${D:-~/.claude}":             "/d",
		"${NO:-~/.claude}":            "/h/.claude",
		"${EMPTY:-~/.claude}":         "/h/.claude",
		"${NO:-~}/x":                  "/h/x",
		"${NO:-${D}/y}/x":             "/d/y/x",
		"${NO:-${EMPTY:-~/.local}}/x": "/h/.local/x",
		"${DOTS}":                     "/b",
		"/x/${D}":                     "/x/d",
		"/x~":                         "/x~",
		"/x/${NO:-~}":                 "/x/~", // a ~ expands at the front alone
		"${D}${NO:-~}":                "/d~",
		"${HOME}/x":                   "/h/x",
		"/a//b/./c":                   "/a/b/c",
		"/a:-b":                       "/a:-b",
		"${NO:-/a:-b}":                "/a:-b",
		"/plain/}":                    "/plain/}",
	} {
		if got, err := ExpandRoot(in, home); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", in, got, err, want)
		}
	}
	for _, in := range []string{
		"", "x", "./x", "${REL}", "${TILDE}", "${NO}", "${NO:-}", "${NO:-x}", "${EMPTY}", "~user", "~user/x", "$D", "${D", "${}", "${:-/x}", "${A B:-/x}", "${NUL}", "$", "/x/$y",
		"${A:-${B:-${C:-${E:-${F:-${G:-/x}}}}}}",
	} {
		if got, err := ExpandRoot(in, home); err == nil {
			t.Errorf("%s: got %q", in, got)
		}
	}
	var unset *UnsetError
	if _, err := ExpandRoot("${NO}/x", home); !errors.As(err, &unset) || unset.Name != "NO" {
		t.Errorf("got %v", err)
	}
	if _, err := ExpandRoot("~/x", env("HOME", "")); !errors.As(err, &unset) || unset.Name != "HOME" {
		t.Errorf("got %v", err)
	}
	if got, err := ExpandRoot("~/x", env("HOME", "h")); err == nil {
		t.Errorf("a relative home: %q", got)
	}
}

func FuzzExpandRoot(f *testing.F) {
	f.Add("${A:-~/.x}/y", "/a", "/h")
	f.Add("${A:-${B:-~}}", "", "h")
	f.Add("~/${A}", "${A}", "/h")
	f.Fuzz(func(t *testing.T, root, a, home string) {
		got, err := ExpandRoot(root, env("A", a, "HOME", home))
		if err == nil && (!filepath.IsAbs(got) || filepath.Clean(got) != got) {
			t.Fatalf("%q", got)
		}
	})
}

func TestTranscriptPatterns(t *testing.T) {
	c := Transcript{Paths: []string{"projects/*/${PHUX_AGENT_SESSION_ID}.jsonl", "tmp/*/session-*-${PHUX_AGENT_SESSION_ID:8}.jsonl", "sessions/*/${PHUX_AGENT_SESSION_ID}"}}
	want := []string{
		`/h/\[x\*]/projects/*/` + v4 + ".jsonl",
		`/h/\[x\*]/tmp/*/session-*-` + v4[:8] + ".jsonl",
		`/h/\[x\*]/sessions/*/` + v4,
	}
	if diff := cmp.Diff(want, c.Patterns("/h/[x*]/", v4)); diff != "" {
		t.Error(diff)
	}
	for _, id := range []string{"", "..", "a/b", "*", "[a]"} {
		if got := c.Patterns("/h", id); got != nil {
			t.Errorf("%q: %q", id, got)
		}
	}
}

// The patterns find exactly the file of the id, in a root whose name is a pattern itself.
func TestPatternsOnDisk(t *testing.T) {
	root := filepath.Join(t.TempDir(), `we[i]r*d\ ?`)
	file := filepath.Join(root, "projects", "-src", v4+".jsonl")
	for _, f := range []string{file, filepath.Join(root, "projects", "-src", other+".jsonl")} {
		if err := os.MkdirAll(filepath.Dir(f), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := filepath.Glob(Transcript{Paths: []string{"projects/*/${PHUX_AGENT_SESSION_ID}.jsonl"}}.Patterns(root, v4)[0])
	if diff := cmp.Diff([]string{file}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func TestObserve(t *testing.T) {
	for _, x := range []struct {
		path string
		pid  int
		id   string
		want string
		file string // one that it matches
		from string // the id in it
	}{
		{"${root}/sessions/${PID}.json", 12, "", "/r/sessions/12.json", "/r/sessions/12.json", ""},
		{"${root}/sessions/${PID}.json", 0, "", "/r/sessions/[0-9]*.json", "/r/sessions/12.json", ""},
		{"${root}/locks/${PHUX_AGENT_SESSION_ID}.lock", 12, "", "/r/locks/*.lock", "/r/locks/" + v7 + ".lock", v7},
		{"locks/${PHUX_AGENT_SESSION_ID}.lock", 0, v7, "/r/locks/" + v7 + ".lock", "/r/locks/" + v7 + ".lock", v7},
		{"${root}/s/${PHUX_AGENT_SESSION_ID}/inuse.${PID}.lock", 7, "", "/r/s/*/inuse.7.lock", "/r/s/" + v4 + "/inuse.7.lock", v4},
		{"p/*/chats/${PHUX_AGENT_SESSION_ID}.runtime.json", 7, "", "/r/p/*/chats/*.runtime.json", "/r/p/-a.b/chats/" + v4 + ".runtime.json", v4},
		{"${PHUX_AGENT_SESSION_ID}/${PHUX_AGENT_SESSION_ID}.x", 0, "", "/r/*/*.x", "/r/a/a.x", "a"},
		{"a?/${PHUX_AGENT_SESSION_ID}", 0, "", "/r/a?/*", "/r/ab/x", "x"},
	} {
		o := Observe{Path: x.path}
		got := o.Pattern("/r", x.pid, x.id)
		if got != x.want {
			t.Errorf("%s: got %s, want %s", x.path, got, x.want)
		}
		if ok, err := filepath.Match(got, x.file); !ok || err != nil {
			t.Errorf("%s: %s is not matched: %v", x.path, x.file, err)
		}
		id, ok := o.IDFromPath("/r", x.pid, x.file)
		if id != x.from || ok != (x.from != "") {
			t.Errorf("%s: %q, %v, want %q", x.path, id, ok, x.from)
		}
	}
	o := Observe{Path: "${root}/s/${PHUX_AGENT_SESSION_ID}/inuse.${PID}.lock"}
	for _, file := range []string{
		"/r/s/a/inuse.8.lock", "/r/s/a/inuse.07.lock", "/r/s/a/b/inuse.7.lock", "/x/s/a/inuse.7.lock", "/r/s/a/inuse.7.lock.bak", "/r/s/a/inuse.7.lock\n", "/r/s//inuse.7.lock", "s/a/inuse.7.lock", "/r/s/../inuse.7.lock", "",
	} {
		if id, ok := o.IDFromPath("/r", 7, file); ok {
			t.Errorf("%s: %q", file, id)
		}
	}
	if id, ok := (Observe{Path: "${PHUX_AGENT_SESSION_ID}/${PHUX_AGENT_SESSION_ID}.x"}).IDFromPath("/r", 0, "/r/a/b.x"); ok {
		t.Errorf("two ids in one path: %q", id)
	}
	if pid, ok := o.PIDFromPath("/r", "a", "/r/s/a/inuse.7.lock"); !ok || pid != 7 {
		t.Errorf("got %d, %v", pid, ok)
	}
	if pid, ok := o.PIDFromPath("/r", "b", "/r/s/a/inuse.7.lock"); ok {
		t.Errorf("another id's: %d", pid)
	}
	if got := o.Pattern("/r", 7, "../x"); got != "" {
		t.Errorf("got %s", got)
	}
	if got := (Observe{Kind: "hook"}).Pattern("/r", 7, ""); got != "" {
		t.Errorf("got %s", got)
	}
	if got := o.Pattern("/", 7, "a"); got != "/s/a/inuse.7.lock" {
		t.Errorf("got %s", got)
	}
}

func FuzzPaths(f *testing.F) {
	f.Add("${root}/s/${PHUX_AGENT_SESSION_ID}/x.${PID}", "/r", "a", "/r/s/a/x.7", 7)
	f.Add("a-*-${PHUX_AGENT_SESSION_ID:8}", "/r[", "é", "/r/a-b-c", 0)
	f.Fuzz(func(t *testing.T, path, root, id, file string, pid int) {
		o := Observe{Path: path}
		if got := o.Pattern(root, pid, id); got != "" {
			if _, err := filepath.Match(got, file); err != nil {
				t.Fatalf("%q: %v", got, err)
			}
		}
		if got, ok := o.IDFromPath(root, pid, file); ok && !pathSafe(got) {
			t.Fatalf("%q", got)
		}
		for _, p := range (Transcript{Paths: []string{path}}).Patterns(root, id) {
			if _, err := filepath.Match(p, file); err != nil {
				t.Fatalf("%q: %v", p, err)
			}
		}
	})
}
