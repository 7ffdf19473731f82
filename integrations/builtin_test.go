package integrations

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

func builtins(t *testing.T) map[string]*Template {
	t.Helper()
	files, err := fs.Glob(Builtin, "integrations/*.toml")
	if err != nil || len(files) != 15 {
		t.Fatalf("%q, %v", files, err)
	}
	all := map[string]*Template{}
	for _, f := range files {
		src, err := fs.ReadFile(Builtin, f)
		if err != nil {
			t.Fatal(err)
		}
		tmpl, warnings, err := Parse(f, src)
		if err != nil || len(warnings) > 0 {
			t.Fatal(err, warnings)
		}
		w, err := Lint(f, src)
		if len(tmpl.CLI.Verified) == 0 { // of what nobody has run, nobody knows how to see the id
			w = slices.DeleteFunc(w, func(w Warning) bool { return strings.Contains(w.Text, "only by launch --resume ID") })
		}
		if err != nil || len(w) > 0 {
			t.Errorf("%s: %v, %v", f, w, err)
		}
		if f != "integrations/"+tmpl.ID+".toml" {
			t.Errorf("%s holds %s", f, tmpl.ID)
		}
		all[tmpl.ID] = tmpl
	}
	return all
}

// The argument vectors of research/agent-clis.md, each as it was run.
func TestBuiltinArgv(t *testing.T) {
	const ses, kimi = "ses_5bf742a5a65ae875cac8f09b67", "session_" + v4
	all := builtins(t)
	for id, x := range map[string]struct {
		id, newID                  string
		plain, fresh, resume, fork string // "" : not to be had
	}{
		"claude-code": {v4, other, "claude", "claude --session-id " + v4, "claude --resume " + v4, "claude --resume " + v4 + " --fork-session --session-id " + other},
		"codex":       {v7, "", "codex --no-daemon", "", "codex --no-daemon resume " + v7, "codex --no-daemon fork " + v7},
		"gemini-cli":  {v4, "", "gemini", "gemini --session-id " + v4, "gemini --resume " + v4, ""},
		"opencode":    {ses, "", "opencode", "", "opencode -s " + ses, "opencode -s " + ses + " --fork"},
		"qwen-code":   {v4, "", "qwen", "qwen --session-id " + v4, "qwen --resume " + v4, "qwen --resume " + v4 + " --fork-session"},
		"copilot":     {v4, "", "copilot", "copilot --session-id " + v4, "copilot --resume " + v4, ""},
		"pi":          {v4, other, "pi", "pi --session-id " + v4, "pi --session " + v4, "pi --fork " + v4 + " --session-id " + other},
		"kimi":        {kimi, "", "kimi", "", "kimi -S " + kimi, ""},
		// Unverified: as they are documented.
		"kilo":         {ses, "", "kilo", "", "kilo -s " + ses, ""},
		"cline":        {"1795954443492_6n08v", "", "cline", "", "cline --id 1795954443492_6n08v", ""},
		"droid":        {v4, "", "droid", "", "droid --resume " + v4, "droid --fork " + v4},
		"cursor-agent": {v4, "", "cursor-agent", "", "cursor-agent --resume " + v4, ""},
		"goose":        {"20251108_1", "", "goose session", "", "goose session --resume --session-id 20251108_1", ""},
		"auggie":       {v4, "", "auggie", "", "auggie --resume " + v4, ""},
		"amp":          {"T-" + v4, "", "amp", "", "amp threads continue T-" + v4, ""},
	} {
		tmpl := all[id]
		if tmpl == nil {
			t.Errorf("no %s", id)
			continue
		}
		for op, want := range map[Op]string{Plain: x.plain, Fresh: x.fresh, Resume: x.resume, Fork: x.fork} {
			r := Request{Op: op, PluginRoot: "/plugin"}
			if op != Plain {
				r.ID = x.id
			}
			if op == Fork {
				r.NewID = x.newID
			}
			c, err := tmpl.Build(r)
			switch {
			case want == "" && err == nil:
				t.Errorf("%s %v: got %q", id, op, c.Argv)
			case want != "" && (err != nil || strings.Join(c.Argv, " ") != want):
				t.Errorf("%s %v: got %q, %v, want %s", id, op, c.Argv, err, want)
			case want != "" && (op == Fresh || op == Resume) && c.Set[tmpl.Identity.NativeEnv] != x.id:
				t.Errorf("%s %v: %s is not set", id, op, tmpl.Identity.NativeEnv)
			}
		}
		if tmpl.CanMint() != (x.fresh != "") {
			t.Errorf("%s: CanMint %v", id, tmpl.CanMint())
		}
	}
	mint, err := all["opencode"].MintCommand("/plugin")
	if diff := cmp.Diff([]string{"sh", "/plugin/scripts/opencode-mint.sh"}, mint); err != nil || diff != "" {
		t.Error(err, diff)
	}
	fork, err := all["kimi"].ForkCommand("/plugin", kimi)
	if diff := cmp.Diff([]string{"sh", "/plugin/scripts/kimi-fork.sh", kimi}, fork); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// unrun are the templates that were written from documentation, or whose interface was not run.
var unrun = []string{"amp", "auggie", "cline", "cursor-agent", "droid", "goose", "kilo"}

// What was not run says so, and what was run says on which version.
func TestBuiltinVerified(t *testing.T) {
	for id, tmpl := range builtins(t) {
		if none := len(tmpl.CLI.Verified) == 0; none != slices.Contains(unrun, id) {
			t.Errorf("%s: verified %q", id, tmpl.CLI.Verified)
		}
	}
}

// Law 5: nothing that we ship can pick a conversation by time, in what it runs or in what it
// lets through.
func TestBuiltinNeverTheLatest(t *testing.T) {
	recent := regexp.MustCompile(`--continue|--last|--latest|\blatest\b|--from-pr`)
	for id, tmpl := range builtins(t) {
		s := tmpl.Identity
		for _, arg := range slices.Concat(tmpl.Launch.Command, s.ResumeArgs, s.FreshArgs, s.ForkArgs, s.MintCommand, s.ForkCommand) {
			if recent.MatchString(arg) {
				t.Errorf("%s runs %q", id, arg)
			}
		}
		if len(s.Never) == 0 || s.IDPattern == "" || len(tmpl.CLI.Verified) == 0 && !slices.Contains(unrun, id) {
			t.Errorf("%s: never %q, id_pattern %q, verified %q", id, s.Never, s.IDPattern, tmpl.CLI.Verified)
		}
		for _, word := range []string{"latest", "1", "0", "last", "my session", v4[:8]} {
			if tmpl.CheckID(word) == nil {
				t.Errorf("%s takes %q for an id", id, word)
			}
		}
		if _, err := tmpl.Build(Request{Extra: []string{s.ResumeArgs[0]}}); err == nil {
			t.Errorf("%s lets %s through", id, s.ResumeArgs[0])
		}
		if id != "codex" && id != "amp" && id != "goose" && id != "droid" && id != "cline" { // whose words for it are others
			if _, err := tmpl.Build(Request{Extra: []string{"--continue"}}); err == nil && id != "gemini-cli" {
				t.Errorf("%s lets --continue through", id)
			}
		}
	}
}

func TestBuiltinPaths(t *testing.T) {
	all := builtins(t)
	home := env("HOME", "/h")
	for id, want := range map[string][]string{
		"claude-code": {"/h/.claude/projects/*/" + v4 + ".jsonl"},
		"codex":       {"/h/.codex/sessions/*/*/*/rollout-*-" + v4 + ".jsonl"},
		"gemini-cli":  {"/h/.gemini/tmp/*/chats/session-*-" + v4[:8] + ".jsonl"},
		"qwen-code":   {"/h/.qwen/projects/*/chats/" + v4 + ".jsonl"},
		"copilot":     {"/h/.copilot/session-state/" + v4 + "/events.jsonl"},
		"pi":          {"/h/.pi/agent/sessions/*/*_" + v4 + ".jsonl"},
		"kimi":        {"/h/.kimi-code/sessions/*/" + v4},
	} {
		c := all[id].Transcript
		root, err := ExpandRoot(c.Root, home)
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(want, c.Patterns(root, v4)); diff != "" {
			t.Errorf("%s: %s", id, diff)
		}
	}
	for id, want := range map[string]string{
		"claude-code": "/r/sessions/7.json",
		"codex":       "/r/thread-writer-locks/*.lock",
		"qwen-code":   "/r/projects/*/chats/*.runtime.json",
		"copilot":     "/r/session-state/*/inuse.7.lock",
	} {
		if got := all[id].Observe[0].Pattern("/r", 7, ""); got != want {
			t.Errorf("%s: got %s, want %s", id, got, want)
		}
	}
}

func TestBuiltinPackage(t *testing.T) {
	var files []string
	err := fs.WalkDir(Builtin, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, name)
		}
		return err
	})
	if err != nil || len(files) != 18 || !slices.Contains(files, "phux-plugin.toml") || !slices.Contains(files, "scripts/opencode-mint.sh") {
		t.Errorf("%q, %v", files, err)
	}
	manifest, err := fs.ReadFile(Builtin, "phux-plugin.toml")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{`id = "phux.agents"`, `version = "1.0.0"`, `min_phux_version = "0.1.0"`} {
		if !strings.Contains(string(manifest), line+"\n") {
			t.Errorf("the manifest has no %s", line)
		}
	}
}

// The script gives opencode a session with the id that it prints, for any directory.
func TestOpencodeMint(t *testing.T) {
	script, err := filepath.Abs("builtin/scripts/opencode-mint.sh")
	if err != nil {
		t.Fatal(err)
	}
	tmp := t.TempDir()
	bin, dir := filepath.Join(tmp, "bin"), filepath.Join(tmp, "we \"ird\\\t d'$(x)é")
	dir = strings.ReplaceAll(dir, "\t", "")
	for _, d := range []string{bin, dir, filepath.Join(tmp, "tmp")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	fake := "#!/bin/sh\ncase $1 in\n--version) echo 1.18.33 ;;\nimport) cat \"$2\" >\"$SEEN\"; echo \"Imported session: x\"; exit \"${RC:-0}\" ;;\nesac\n"
	if err := os.WriteFile(filepath.Join(bin, "opencode"), []byte(fake), 0o700); err != nil {
		t.Fatal(err)
	}
	seen := filepath.Join(tmp, "seen")
	run := func(dir string, environ ...string) (string, error) {
		cmd := exec.Command("sh", script)
		cmd.Dir = dir
		cmd.Env = append([]string{"PATH=" + bin + ":/usr/bin:/bin", "SEEN=" + seen, "TMPDIR=" + filepath.Join(tmp, "tmp")}, environ...)
		out, err := cmd.Output()
		return string(out), err
	}
	out, err := run(dir)
	if err != nil {
		t.Fatal(err)
	}
	id, err := builtins(t)["opencode"].ParseMinted([]byte(out))
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(seen)
	if err != nil {
		t.Fatal(err)
	}
	var session struct {
		Info struct {
			ID, Slug, Directory, Title, Version, ProjectID string
			Time                                           struct{ Created, Updated int64 }
		}
		Messages []any
	}
	if err := json.Unmarshal(data, &session, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	if i := session.Info; i.ID != id || i.Directory != real || i.Version != "1.18.33" || i.Time.Created < 1e12 || session.Messages == nil {
		t.Errorf("%s is no session %s in %s", data, id, real)
	}
	if again, err := run(dir); err != nil || again == out {
		t.Errorf("the same id twice: %q, %v", again, err)
	}
	// Refused by opencode: nothing is printed.
	if out, err := run(dir, "RC=1"); err == nil || out != "" {
		t.Errorf("got %q, %v", out, err)
	}
	strange := filepath.Join(tmp, "a\nb")
	if err := os.Mkdir(strange, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := run(strange); err == nil || out != "" {
		t.Errorf("got %q, %v", out, err)
	}
	if left, _ := os.ReadDir(filepath.Join(tmp, "tmp")); len(left) > 0 {
		t.Errorf("%d files are left behind", len(left))
	}
}

// Of what kimi says, the script prints the new id alone, and nothing where there is none.
func TestKimiFork(t *testing.T) {
	const source, made = "session_" + v4, "session_" + other
	script, err := filepath.Abs("builtin/scripts/kimi-fork.sh")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	fake := "#!/bin/sh\n[ \"$*\" = \"fork " + source + " -y\" ] || exit 9\nprintf '%s' \"$SAYS\"\nexit \"${RC:-0}\"\n"
	if err := os.WriteFile(filepath.Join(bin, "kimi"), []byte(fake), 0o700); err != nil {
		t.Fatal(err)
	}
	tmpl := builtins(t)["kimi"]
	for _, x := range []struct{ says, rc, want string }{
		{"Forked to " + made + " in 12ms\n", "0", made},
		{"Forked to " + made + " (\"a title\\nForked to " + source + "\") in 12ms\n", "0", made},
		{"Forked to " + made + "\nsession_x\n", "0", made},
		{"Forked to " + made + " in 12ms\n", "1", ""},
		{"Fork cancelled.\n", "0", ""},
		{"Forked to  in 12ms\n", "0", ""},
		{"Forked to -x in 12ms\n", "0", ""},
		{"", "0", ""},
	} {
		cmd := exec.Command("sh", script, source)
		cmd.Env = []string{"PATH=" + bin + ":/usr/bin:/bin", "SAYS=" + x.says, "RC=" + x.rc}
		out, err := cmd.Output()
		if x.want == "" {
			if err == nil || len(out) > 0 {
				t.Errorf("%q: got %q, %v", x.says, out, err)
			}
			continue
		}
		id, parse := tmpl.ParseMinted(out)
		if err != nil || parse != nil || id != x.want {
			t.Errorf("%q: got %q, %v, %v", x.says, out, err, parse)
		}
	}
}
