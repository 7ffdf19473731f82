package integrations

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files of testdata/refused")

// base is a natively restorable template of the smallest size.
const base = `id = "demo"
[launch]
command = ["demo"]
[session_identity]
mode = "native-or-phux"
restore = "external-cli"
native_env = "PHUX_DEMO_SESSION_ID"
resume_args = ["--resume", "${PHUX_AGENT_SESSION_ID}"]
`

func mustParse(t testing.TB, src string) *Template {
	t.Helper()
	tmpl, _, err := Parse("demo.toml", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

// with returns base with one text replaced.
func with(t testing.TB, old, new string) string {
	t.Helper()
	if !strings.Contains(base, old) {
		t.Fatalf("base has no %q", old)
	}
	return strings.Replace(base, old, new, 1)
}

// Each file of testdata/refused is refused with exactly the text beside it.
func TestRefused(t *testing.T) {
	files, err := filepath.Glob("testdata/refused/*.toml")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".toml"), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = Parse(filepath.Base(file), src)
			if err == nil {
				t.Fatal("it loads")
			}
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("%T is no *Error", err)
			}
			golden := strings.TrimSuffix(file, ".toml") + ".txt"
			got := err.Error() + "\n"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Templates in phux's own shape load without a change and without a warning.
func TestPhuxShape(t *testing.T) {
	files, _ := filepath.Glob("testdata/phux-shape/*.toml")
	if len(files) != 4 {
		t.Fatalf("%d files", len(files))
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tmpl, warnings, err := Parse(file, src)
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v %v", file, warnings, err)
			continue
		}
		if err := tmpl.Restorable(); err != nil {
			t.Error(err)
		}
		hasFresh := bytes.Contains(src, []byte("fresh_args"))
		if tmpl.CanMint() != hasFresh {
			t.Errorf("%s: CanMint %v", file, tmpl.CanMint())
		}
		c, err := tmpl.Build(Request{Op: Resume, ID: "7c5f3a52-0000-4000-8000-000000000001", PluginRoot: "/plugins/x"})
		if err != nil {
			t.Error(err)
			continue
		}
		if c.Argv[0] != "sh" || c.Argv[1] != "/plugins/x/scripts/wrap.sh" || c.Argv[len(c.Argv)-1] != "7c5f3a52-0000-4000-8000-000000000001" {
			t.Errorf("%s: %q", file, c.Argv)
		}
		if tmpl.Identity.NativeEnv != strings.TrimSpace(tmpl.Identity.NativeEnv) || c.Set[tmpl.Identity.NativeEnv] == "" {
			t.Errorf("%s: native_env %q", file, tmpl.Identity.NativeEnv)
		}
	}
}

// What phux accepts, as read from its source; refusals are in testdata/refused.
func TestPhuxAccepts(t *testing.T) {
	for name, src := range map[string]string{
		"PHUX_SESSION_ID":             with(t, "PHUX_DEMO_SESSION_ID", "PHUX_SESSION_ID"),
		"shell, not restorable":       "id = \"d\"\n[launch]\ncommand = [\"sh\", \"-c\", \"x\"]\n",
		"shell, mode phux":            "id = \"d\"\n[launch]\ncommand = [\"sh\", \"-lc\", \"x\"]\n[session_identity]\nmode = \"phux\"\nrestore = \"phux-session\"\nnative_env = \"PHUX_D_SESSION_ID\"\n",
		"shell with fixed source":     with(t, `["demo"]`, `["/bin/bash", "${PHUX_PLUGIN_ROOT}/w.sh"]`),
		"nodejs is not on the list":   with(t, `["demo"]`, `["nodejs", "x"]`),
		"schema_version 99":           "schema_version = 99\n[future]\nx = 1\n" + "\n" + "[other]\ny = [1, {z = 2}]\n" + "[launch]\ncommand = [\"a\"]\n" + "[agent_identity]\nname = \"  \"\n",
		"no launch":                   "id = \"d\"\n",
		"id is trimmed":               "id = \" d \"\n",
		"empty argument":              with(t, `["demo"]`, `["demo", "", " "]`),
		"pattern free template":       base,
		"dots in a plugin's argument": with(t, `["demo"]`, `["demo", "${PHUX_PLUGIN_ROOT}/../x"]`),
	} {
		if name == "schema_version 99" {
			src = "id = \"d\"\n" + src
		}
		tmpl, _, err := Parse("d.toml", []byte(src))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if tmpl.ID != strings.TrimSpace(tmpl.ID) {
			t.Errorf("%s: id %q", name, tmpl.ID)
		}
	}
}

func TestDefaults(t *testing.T) {
	got := mustParse(t, base)
	want := &Template{
		File: "demo.toml", SchemaVersion: 1, ID: "demo",
		Launch: Launch{Command: []string{"demo"}, WorkingDirectory: "workspace", AfterExit: "shell"},
		Identity: SessionIdentity{
			Mode: "native-or-phux", Restore: "external-cli", NativeEnv: "PHUX_DEMO_SESSION_ID",
			ResumeArgs: []string{"--resume", slotID}, ResumeCwd: "launch", NeverPrompted: "lost", UnknownID: "exits",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	fresh := mustParse(t, base+"fresh_args = [\"--id\", \"${PHUX_AGENT_SESSION_ID}\"]\n")
	if fresh.Identity.NeverPrompted != "fresh" {
		t.Errorf("never_prompted %q", fresh.Identity.NeverPrompted)
	}
}

func TestUnknownKeysAreWarnings(t *testing.T) {
	_, warnings, err := Parse("demo.toml", []byte(base+`fresh_arg = []
Resume_args = "x"
survives_hangup = true
zzz = 1
detect = 1

[transcrpt]
root = "x"

[detect]
comand = "x"

[[observe]]
kind = "hook"
on = ["A"]
id = "/id"
wher = 1

[package_things]
x = 1
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Warning{
		{9, `unknown key "fresh_arg" in [session_identity]; did you mean fresh_args?`},
		{10, `unknown key "Resume_args" in [session_identity]; did you mean resume_args?`},
		{11, `unknown key "survives_hangup" in [session_identity]; it belongs in [launch]`},
		{12, `unknown key "zzz" in [session_identity]`},
		{13, `unknown key "detect" in [session_identity]; it belongs at the top, before the first table`},
		{15, `unknown key "transcrpt"; did you mean transcript?`},
		{19, `unknown key "comand" in [detect]; did you mean command?`},
		{25, `unknown key "wher" in [observe]; did you mean where?`},
	}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Error(diff)
	}
}

func TestErrorText(t *testing.T) {
	_, _, err := Parse("x/demo.toml", []byte(with(t, `["--resume", "${PHUX_AGENT_SESSION_ID}"]`, "[\n\t# é\n\t\"--resume=${PHUX_AGENT_SESSION_ID}\",\n]")))
	want := "x/demo.toml:10:2: session_identity.resume_args[0]: the session id must be an argument of its own; write \"--resume\", \"${PHUX_AGENT_SESSION_ID}\"\n" +
		"   10 |  \"--resume=${PHUX_AGENT_SESSION_ID}\",\n" +
		"      |  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^"
	if err == nil {
		t.Fatal("it loads")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Error(diff)
	}
}

func TestErrorShowsNoControls(t *testing.T) {
	e := &Error{File: "f", Line: 1, Column: 3, Width: 1, Problem: "p", Source: "a\t\x1b[2J\u202eb\xff"}
	if want := "f:1:3: p\n    1 | a ·[2J·b·\n      |   ^"; e.Error() != want {
		t.Errorf("%q", e.Error())
	}
}

// A small file must not make the TOML library work for minutes.
func TestDeepFilesAreCheap(t *testing.T) {
	for _, src := range []string{
		strings.Repeat("a.", 30_000) + "b = 1",
		"[" + strings.Repeat("a.", 30_000) + "b]",
		"x = " + strings.Repeat("[", 60_000),
		"x = " + strings.Repeat("{a=", 20_000),
		"x = { " + strings.Repeat("a.", 30_000) + "b = 1 }",
		strings.Repeat("'a' . ", 10_000) + "b = 1",
	} {
		if _, _, err := Parse("f", []byte(src)); err == nil || !strings.Contains(err.Error(), "nested too deeply") {
			t.Errorf("%.40s…: %v", src, err)
		}
	}
	if _, _, err := Parse("f", bytes.Repeat([]byte("\n"), MaxTemplate+1)); err == nil {
		t.Error("a file over the bound loads")
	}
}

func FuzzParse(f *testing.F) {
	for _, glob := range []string{"testdata/*/*.toml", "builtin/integrations/*.toml"} {
		files, _ := filepath.Glob(glob)
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			if len(src) < 3000 { // long ones make the fuzzer minimise for ever
				f.Add(src)
			}
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		tmpl, _, err := Parse("f.toml", src)
		if _, lint := Lint("f.toml", src); (lint == nil) != (err == nil) {
			t.Fatalf("Parse says %v, Lint says %v", err, lint)
		}
		if err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("%T is no *Error", err)
			}
			return
		}
		// What loads keeps the laws: the id is one whole argument, and nothing else changes.
		id, other := "7c5f3a52-0000-4000-8000-000000000001", "7c5f3a52-0000-4000-8000-000000000002"
		for _, op := range []Op{Fresh, Resume, Fork} {
			a, errA := tmpl.Build(Request{Op: op, ID: id, PluginRoot: "/r"})
			b, errB := tmpl.Build(Request{Op: op, ID: other, PluginRoot: "/r"})
			if errA != nil || errB != nil {
				continue
			}
			differ := 0
			for i := range a.Argv {
				if a.Argv[i] != b.Argv[i] {
					differ++
					if i == 0 || a.Argv[i] != id || b.Argv[i] != other {
						t.Fatalf("%v: %q, %q", op, a.Argv, b.Argv)
					}
				}
			}
			if differ != 1 || len(a.Argv) != len(b.Argv) {
				t.Fatalf("%v: the id fills %d arguments of %q", op, differ, a.Argv)
			}
		}
	})
}
