package hooks

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/internal/foreign"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// bed is a home directory with a phux-agent in it.
type bed struct {
	t    *testing.T
	home string
	env  Env
}

func newBed(t *testing.T) *bed {
	b := &bed{t: t, home: t.TempDir()}
	b.env = Env{State: filepath.Join(b.home, "state"), Getenv: func(name string) (string, bool) {
		switch name {
		case "HOME":
			return b.home, true
		case "PATH":
			return filepath.Join(b.home, "bin"), true
		}
		return "", false
	}}
	b.env.Program = b.program("bin")
	return b
}

// program makes a phux-agent in a directory below the home.
func (b *bed) program(dir string) string {
	b.t.Helper()
	path := filepath.Join(b.home, dir, "phux-agent")
	must(b.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(b.t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755))
	return path
}

func (b *bed) template(id string) *integrations.Template {
	b.t.Helper()
	name := "integrations/" + id + ".toml"
	src, err := fs.ReadFile(integrations.Builtin, name)
	must(b.t, err)
	t, _, err := integrations.Parse(name, src)
	must(b.t, err)
	return t
}

func (b *bed) do(e Env, id string, install bool) Edit {
	b.t.Helper()
	eds, err := e.Plan(b.template(id), install)
	must(b.t, err)
	if len(eds) != 1 {
		b.t.Fatalf("%d edits", len(eds))
	}
	if eds[0].State == Refused {
		b.t.Errorf("refused: %s", eds[0].Reason)
	}
	must(b.t, e.Apply(eds[0]))
	return eds[0]
}

func (b *bed) state(id string) string {
	b.t.Helper()
	eds, err := b.env.Plan(b.template(id), true)
	must(b.t, err)
	return eds[0].State
}

func (b *bed) write(rel, text string) string {
	b.t.Helper()
	path := filepath.Join(b.home, rel)
	must(b.t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(b.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return string(b)
}

var files = map[string]string{
	"claude-code": ".claude/settings.json", "codex": ".codex/hooks.json", "gemini-cli": ".gemini/settings.json",
	"qwen-code": ".qwen/settings.json", "copilot": ".copilot/hooks/phux-agent.json", "kimi": ".kimi-code/config.toml",
	"opencode": ".config/opencode/plugin/phux-agent.js", "pi": ".pi/agent/extensions/phux-agent.ts",
}

// Every integration: where nothing was there, nothing is left, and five installs are one.
func TestInstallFromNothing(t *testing.T) {
	for id, file := range files {
		t.Run(id, func(t *testing.T) {
			b := newBed(t)
			path := filepath.Join(b.home, file)
			if s := b.state(id); s != Missing {
				t.Errorf("before: %s", s)
			}
			if ed := b.do(b.env, id, true); !ed.Changed || ed.Path != path {
				t.Errorf("%+v", ed)
			}
			first := read(t, path)
			if s := b.state(id); s != Installed || !strings.Contains(first, b.env.Program) || strings.Contains(first, "${COMMAND}") || strings.Contains(first, "${PHUX_AGENT}") {
				t.Errorf("after: %s\n%s", s, first)
			}
			for range 4 {
				if ed := b.do(b.env, id, true); ed.Changed || ed.State != Installed {
					t.Errorf("again: %+v", ed)
				}
			}
			if again := read(t, path); again != first {
				t.Errorf("again:\n%s", again)
			}
			b.do(b.env, id, false)
			if _, err := os.Stat(path); !os.IsNotExist(err) {
				t.Errorf("it stays: %s", read(t, path))
			}
			top := filepath.Join(b.home, strings.Split(file, "/")[0])
			if _, err := os.Stat(top); !os.IsNotExist(err) {
				t.Errorf("%s stays", top)
			}
			if ed := b.do(b.env, id, false); ed.Changed {
				t.Errorf("uninstalled twice: %+v", ed)
			}
			if left, _ := os.ReadDir(b.env.State); len(left) > 0 {
				t.Errorf("%d files of state stay", len(left))
			}
		})
	}
}

var wild = map[string]string{
	"empty":             "",
	"an empty object":   "{}",
	"an empty object 2": "{\n}\n",
	"no newline":        "{\n  \"model\": \"opus\"\n}",
	"comments":          "// mine\n{\n  // the model\n  \"model\": \"opus\", // no comma after this:\n  \"env\": {\"A\": \"b\"} /* here */\n}\n",
	"CRLF":              "{\r\n\t\"model\": \"opus\",\r\n\t\"hooks\": {\r\n\t}\r\n}\r\n",
	"a mark":            "\uFEFF{\"model\": \"opus\"}\n",
	"order and numbers": "{\n    \"z\": 1e2,\n    \"a\": 1.0,\n    \"m\": \"\\u00e4\\/\"\n}\n",
	"theirs":            "{\n  \"hooks\": {\n    \"SessionStart\": [\n      {\"matcher\": \"startup\", \"hooks\": [{\"type\": \"command\", \"command\": \"~/bin/hello --hook\"}]}\n    ],\n    \"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}]\n  }\n}\n",
	"comma at the end":  "{\n  \"hooks\": {\"SessionStart\": [\"x\",],},\n}\n",
	"repeats elsewhere": "{\"env\": {\"A\": 1, \"A\": 2}, \"hooks\": {\"Stop\": []}}",
}

func TestInWildFiles(t *testing.T) {
	for name, text := range wild {
		for _, id := range []string{"claude-code", "gemini-cli"} {
			t.Run(name+"/"+id, func(t *testing.T) {
				b := newBed(t)
				path := b.write(files[id], text)
				must(t, os.Chmod(path, 0o644))
				ed := b.do(b.env, id, true)
				got := read(t, path)
				if ed.State != Missing || !strings.Contains(got, "hook "+id+" SessionStart") {
					t.Fatalf("%+v\n%s", ed, got)
				}
				if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
					t.Error(info.Mode(), err)
				}
				rest := got
				for i := range len(text) {
					at := strings.IndexByte(rest, text[i])
					if at < 0 {
						t.Fatalf("byte %d is gone:\n%s", i, got)
					}
					rest = rest[at+1:]
				}
				b.do(b.env, id, true)
				if again := read(t, path); again != got {
					t.Errorf("again: %s", cmp.Diff(got, again))
				}
				b.do(b.env, id, false)
				if back := read(t, path); back != text {
					t.Errorf("uninstalled: %s", cmp.Diff(text, back))
				}
			})
		}
	}
}

// Somebody else writes the file between install and uninstall: what they wrote stays, and ours goes.
func TestUninstallAmongOthers(t *testing.T) {
	for name, text := range wild {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			path := b.write(files["claude-code"], text)
			b.do(b.env, "claude-code", true)
			j, err := foreign.ParseJSON(read(t, path))
			must(t, err)
			theirs, _, err := j.Append("/hooks/SessionStart", `{"hooks":[{"command":"theirs"}]}`)
			must(t, err)
			must(t, os.WriteFile(path, []byte(theirs), 0o600))
			b.do(b.env, "claude-code", false)
			got := read(t, path)
			if strings.Contains(got, "phux-agent") || !strings.Contains(got, "theirs") {
				t.Errorf("%s", got)
			}
			if _, err := foreign.ParseJSON(got); err != nil {
				t.Errorf("%v\n%s", err, got)
			}
			for i, rest := 0, got; i < len(text); i++ {
				at := strings.IndexByte(rest, text[i])
				if at < 0 {
					t.Fatalf("byte %d is gone:\n%s", i, got)
				}
				rest = rest[at+1:]
			}
		})
	}
}

// Where somebody changed something else, what an install made goes, containers too.
func TestUninstallAfterAnotherChange(t *testing.T) {
	b := newBed(t)
	path := b.write(files["claude-code"], "{\n  \"model\": \"opus\"\n}\n")
	b.do(b.env, "claude-code", true)
	must(t, os.WriteFile(path, []byte(strings.Replace(read(t, path), "opus", "sonnet", 1)), 0o600))
	b.do(b.env, "claude-code", false)
	if diff := cmp.Diff("{\n  \"model\": \"sonnet\"\n}\n", read(t, path)); diff != "" {
		t.Error(diff)
	}
}

// Whatever the user does to the rest of the file while our entries are in it, an uninstall leaves
// what the same would have made of the file without them.
func TestUninstallAfterEdits(t *testing.T) {
	styles := map[string]func(string) string{
		"as it is": func(s string) string { return s },
		"two":      func(s string) string { return indent(s, "  ") + "\n" },
		"four":     func(s string) string { return indent(s, "    ") },
		"tab":      func(s string) string { return indent(s, "\t") + "\n" },
		"CRLF":     func(s string) string { return strings.ReplaceAll(indent(s, "  "), "\n", "\r\n") + "\r\n" },
	}
	docs := map[string]string{
		"no hooks":     `{"model":"opus","env":{"A":"b"}}`,
		"no members":   `{}`,
		"empty hooks":  `{"model":"opus","hooks":{}}`,
		"empty array":  `{"hooks":{"SessionStart":[]},"model":"opus"}`,
		"theirs":       `{"hooks":{"SessionStart":[{"hooks":[{"command":"say hi","type":"command"}]}],"Stop":[]},"model":"opus"}`,
		"others alone": `{"hooks":{"PreToolUse":[{"hooks":[{"command":"x"}]}]},"model":"opus"}`,
	}
	into := func(pointer, value string) func(*testing.T, string) string {
		return func(t *testing.T, s string) string {
			j, err := foreign.ParseJSON(s)
			must(t, err)
			out, _, err := j.Append(pointer, value)
			must(t, err)
			return out
		}
	}
	first := func(t *testing.T, s string) string { // a member before all others
		at := strings.IndexByte(s, '{') + 1
		end := at + len(s[at:]) - len(strings.TrimLeft(s[at:], " \t\r\n"))
		return s[:end] + `"first": 1,` + cmpOr(s[at:end], " ") + s[end:]
	}
	edits := map[string]func(*testing.T, string) string{
		"a value":                 func(_ *testing.T, s string) string { return strings.Replace(s, "opus", "sonnet", 1) },
		"a member before":         first,
		"a hook behind ours":      into("/hooks/SessionStart", `{"hooks":[{"command":"theirs"}]}`),
		"a hook of another event": into("/hooks/PreCompact", `{"hooks":[{"command":"theirs"}]}`),
		"a list behind":           into("/permissions/allow", `"Bash"`),
		"twice":                   func(t *testing.T, s string) string { return into("/z", `1`)(t, into("/hooks/SessionStart", `2`)(t, s)) },
		"laid out anew":           func(_ *testing.T, s string) string { return indent(s, "   ") },
	}
	for name, doc := range docs {
		for style, lay := range styles {
			for what, edit := range edits {
				text := lay(doc)
				if doc == "{}" && what != "a value" {
					continue // where its first member begins is the editor's choice
				}
				if !strings.Contains(doc, "SessionStart") && (what == "a hook behind ours" || what == "twice") || !strings.Contains(doc, `"hooks":{"`) && what == "a hook of another event" {
					continue // the same
				}
				t.Run(strings.Join([]string{name, style, what}, "/"), func(t *testing.T) {
					b := newBed(t)
					path := b.write(files["claude-code"], text)
					b.do(b.env, "claude-code", true)
					must(t, os.WriteFile(path, []byte(edit(t, read(t, path))), 0o600))
					b.do(b.env, "claude-code", false)
					if diff := cmp.Diff(edit(t, text), read(t, path)); diff != "" {
						t.Error(diff)
					}
				})
			}
		}
	}
}

func indent(s, unit string) string {
	v := jsontext.Value(s).Clone()
	if err := v.Indent(jsontext.WithIndent(unit)); err != nil {
		panic(err)
	}
	return string(v)
}

func cmpOr(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

// An upgrade that listens to more events, after the user changed something: what the first install
// made goes all the same.
func TestUpgradeAfterAnotherChange(t *testing.T) {
	b := newBed(t)
	path := b.write(files["claude-code"], "{\n  \"model\": \"opus\"\n}\n")
	old := b.template("claude-code")
	old.Hooks[0].Events = old.Hooks[0].Events[:1]
	eds, err := b.env.Plan(old, true)
	must(t, err)
	must(t, b.env.Apply(eds[0]))
	must(t, os.WriteFile(path, []byte(strings.Replace(read(t, path), "opus", "sonnet", 1)), 0o600))
	if ed := b.do(b.env, "claude-code", true); ed.State != Partial || !ed.Changed {
		t.Fatalf("%+v", ed)
	}
	b.do(b.env, "claude-code", false)
	if diff := cmp.Diff("{\n  \"model\": \"sonnet\"\n}\n", read(t, path)); diff != "" {
		t.Error(diff)
	}
}

// A file of a known form that would be none with our block in it is left alone.
func TestBlockThatFindsNoPlace(t *testing.T) {
	b := newBed(t)
	for text, want := range map[string]string{
		"hooks = []\n":      "it would be no TOML",
		"model = \"x\n":     "it would be no TOML",
		"hooks = { a = 1 }": "it would be no TOML",
	} {
		path := b.write(files["kimi"], text)
		eds, err := b.env.Plan(b.template("kimi"), true)
		must(t, err)
		if eds[0].State != Refused || !strings.Contains(eds[0].Reason, want) || eds[0].Changed || read(t, path) != text {
			t.Errorf("%q: %+v", text, eds[0])
		}
	}
	b.write(files["kimi"], "[[hooks]]\nevent = \"Stop\"\n")
	if ed := b.do(b.env, "kimi", true); ed.State != Missing {
		t.Errorf("%+v", ed)
	}
}

func TestSpellings(t *testing.T) {
	b := newBed(t)
	must(t, os.Symlink(b.env.Program, filepath.Join(b.home, "link-phux-agent")))
	must(t, os.Mkdir(filepath.Join(b.home, "l"), 0o700))
	must(t, os.Symlink(b.env.Program, filepath.Join(b.home, "l", "phux-agent")))
	for _, spelling := range []string{
		b.env.Program, "'" + b.env.Program + "'", `\"` + b.env.Program + `\"`, "~/bin/phux-agent", "$HOME/bin/phux-agent",
		"phux-agent", b.home + "/l/phux-agent", b.home + "/bin/../bin/phux-agent",
	} {
		var events []string
		for _, event := range b.template("claude-code").Hooks[0].Events {
			events = append(events, `"`+event+`": [{"hooks": [{"type": "command", "command": "`+spelling+` hook claude-code `+event+`"}]}]`)
		}
		path := b.write(files["claude-code"], `{"hooks": {`+strings.Join(events, ", ")+`}}`)
		if ed := b.do(b.env, "claude-code", true); ed.Changed || ed.State != Installed {
			t.Errorf("%s: %+v", spelling, ed)
		}
		b.do(b.env, "claude-code", false)
		if got := read(t, path); strings.Contains(got, "phux-agent") {
			t.Errorf("%s: %s", spelling, got)
		}
	}
	// Several of ours become one; what only looks like us is left alone.
	us := b.env.Program + " hook claude-code SessionStart"
	path := b.write(files["claude-code"], `{"hooks": {"SessionStart": [{"hooks": [{"command": "`+us+`"}, {"command": "theirs"}]}, {"hooks": [{"command": "`+us+`"}]}, {"command": "echo phux-agent hook claude-code"}, {"command": "`+us+` | tee x"}]}}`)
	b.do(b.env, "claude-code", true)
	if got := read(t, path); strings.Count(got, us) != 2 || !strings.Contains(got, "theirs") || !strings.Contains(got, "tee x") {
		t.Errorf("%s", got)
	}
	b.do(b.env, "claude-code", false)
	if got := read(t, path); strings.Count(got, us) != 1 || !strings.Contains(got, "theirs") || !strings.Contains(got, "tee x") || !strings.Contains(got, "echo phux-agent") {
		t.Errorf("%s", got)
	}
}

// Two prefixes stand side by side: neither sweeps the other's call.
func TestTwoPrefixes(t *testing.T) {
	for id := range files {
		t.Run(id, func(t *testing.T) {
			b := newBed(t)
			other := b.env
			other.Program, other.State = b.program("opt/bin"), filepath.Join(b.home, "other-state")
			path := filepath.Join(b.home, files[id])
			for range 3 {
				b.do(b.env, id, true)
				b.do(other, id, true)
			}
			got := read(t, path)
			both := strings.Contains(got, other.Program)
			if !strings.Contains(got, b.env.Program) {
				t.Fatalf("swept:\n%s", got)
			}
			b.do(other, id, false)
			if got := read(t, path); !strings.Contains(got, b.env.Program) || strings.Contains(got, other.Program) {
				t.Errorf("%s", got)
			}
			if both {
				b.do(other, id, true)
				b.do(b.env, id, false)
				if got := read(t, path); strings.Contains(got, b.env.Program+" ") || !strings.Contains(got, other.Program) {
					t.Errorf("%s", got)
				}
			}
			// One that is gone is replaced.
			b.do(b.env, id, false)
			b.do(other, id, true)
			must(t, os.Remove(other.Program))
			if s := b.state(id); s != Stale {
				t.Errorf("%s", s)
			}
			b.do(b.env, id, true)
			if got := read(t, path); strings.Contains(got, other.Program) || !strings.Contains(got, b.env.Program) {
				t.Errorf("%s", got)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct{ name, id, text, want string }{
		{"invalid", "claude-code", "{\"a\": 1,,}", "line 1, column 9"},
		{"a conflict", "claude-code", "<<<<<<< HEAD\n{}\n", "line 1"},
		{"twice", "claude-code", `{"hooks": {}, "hooks": {}}`, "/hooks stands in it twice"},
		{"no array", "claude-code", `{"hooks": {"SessionStart": {}}}`, "is no array"},
		{"a list", "claude-code", `[]`, "array without element"},
		{"not ours", "opencode", "export const Mine = 1\n", "it is not ours"},
		{"a block without end", "kimi", "# >>> phux-agent hooks kimi >>>\n", "no end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBed(t)
			path := b.write(files[c.id], c.text)
			for _, install := range []bool{true, false} {
				eds, err := b.env.Plan(b.template(c.id), install)
				must(t, err)
				if eds[0].State != Refused || !strings.Contains(eds[0].Reason, c.want) || eds[0].Changed {
					t.Errorf("%+v, want %q", eds[0], c.want)
				}
				must(t, b.env.Apply(eds[0]))
			}
			if got := read(t, path); got != c.text {
				t.Errorf("%q", got)
			}
		})
	}
	b := newBed(t)
	path := b.write(files["claude-code"], "{}")
	must(t, os.Chmod(path, 0o400))
	if eds, err := b.env.Plan(b.template("claude-code"), true); err != nil || eds[0].State != Refused || !strings.Contains(eds[0].Reason, "read-only") {
		t.Errorf("%+v, %v", eds, err)
	}
	if _, err := b.env.Plan(&integrations.Template{ID: "x"}, true); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
}

// Another program writes between our plan and our write: theirs stays, and nothing of ours.
func TestTwoToolsFight(t *testing.T) {
	b := newBed(t)
	path := b.write(files["claude-code"], "{}")
	eds, err := b.env.Plan(b.template("claude-code"), true)
	must(t, err)
	must(t, os.WriteFile(path, []byte(`{"theirs": 1}`), 0o600))
	if err := b.env.Apply(eds[0]); !errors.Is(err, foreign.ErrChanged) {
		t.Error(err)
	}
	if got := read(t, path); got != `{"theirs": 1}` {
		t.Error(got)
	}
	// The failed install is no install: an uninstall of what is there now changes nothing.
	b.do(b.env, "claude-code", false)
	if got := read(t, path); got != `{"theirs": 1}` {
		t.Error(got)
	}
}

func TestSymlinkedFile(t *testing.T) {
	b := newBed(t)
	real := b.write("dotfiles/claude.json", "{\n  \"a\": 1\n}\n")
	must(t, os.Mkdir(filepath.Join(b.home, ".claude"), 0o700))
	must(t, os.Symlink("../dotfiles/claude.json", filepath.Join(b.home, ".claude/settings.json")))
	b.do(b.env, "claude-code", true)
	if !strings.Contains(read(t, real), "hook claude-code") {
		t.Error("the target was not written")
	}
	b.do(b.env, "claude-code", false)
	info, err := os.Lstat(filepath.Join(b.home, ".claude/settings.json"))
	must(t, err)
	if info.Mode()&os.ModeSymlink == 0 || read(t, real) != "{\n  \"a\": 1\n}\n" {
		t.Errorf("%v %q", info.Mode(), read(t, real))
	}
}

func TestProgramWithAwkwardPath(t *testing.T) {
	b := newBed(t)
	b.env.Program = b.program(`it's a "dir"`)
	for id := range files {
		b.do(b.env, id, true)
		if s := b.state(id); s != Installed {
			t.Errorf("%s: %s", id, s)
		}
		if ed := b.do(b.env, id, true); ed.Changed {
			t.Errorf("%s: again %+v", id, ed)
		}
		text := []byte(read(t, filepath.Join(b.home, files[id])))
		if !bytes.Contains(text, []byte(`\"dir\"`)) {
			t.Errorf("%s: %s", id, text)
		}
		b.do(b.env, id, false)
	}
}
