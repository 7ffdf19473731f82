package plugin

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const tmpl = `id = "ID"
[launch]
command = ["agent"]
[session_identity]
mode = "native-or-phux"
restore = "external-cli"
native_env = "PHUX_X_SESSION_ID"
resume_args = ["--resume", "${PHUX_AGENT_SESSION_ID}"]
`

func builtinFS() fstest.MapFS {
	return fstest.MapFS{
		ManifestFile:             {Data: []byte("id = \"phux.agents\"\nname = \"n\"\nversion = \"1\"\n")},
		"integrations/one.toml":  {Data: []byte(strings.ReplaceAll(tmpl, "\"ID\"", "\"one\""))},
		"scripts/wrap.sh":        {Data: []byte("#!/bin/sh\n")},
		"integrations/notes.txt": {Data: []byte("x")},
		"template.go":            {Data: []byte("package x")},
	}
}

// pack writes a package and returns its directory.
func pack(t *testing.T, base, dir, id string, integrations ...string) string {
	t.Helper()
	root := filepath.Join(base, dir)
	must(t, os.MkdirAll(filepath.Join(root, "integrations"), 0o755))
	put(t, filepath.Join(root, ManifestFile), "id = \""+id+"\"\nname = \"n\"\nversion = \"1\"\nmin_phux_version = \"0.1\"\n")
	for _, in := range integrations {
		put(t, filepath.Join(root, "integrations", in+".toml"), strings.ReplaceAll(tmpl, "\"ID\"", "\""+in+"\""))
	}
	return root
}

func put(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o644))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func home(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o700))
	return dir
}

func load(t *testing.T, src Source) *Registry {
	t.Helper()
	if src.Builtin == nil {
		src.Builtin = fstest.MapFS{ManifestFile: {Data: []byte("id = \"phux.agents\"\nname = \"n\"\nversion = \"1\"\n")}}
	}
	r, err := Load(src)
	must(t, err)
	return r
}

func reason(err error) Reason {
	var re *ResolveError
	if errors.As(err, &re) {
		return re.Reason
	}
	return ""
}

func TestParseManifest(t *testing.T) {
	ok := "id = \"a.b\"\nname = \"n\"\nversion = \"1\"\n"
	for _, c := range []struct {
		name, text, want string // want: part of the error; "": accepted
		warnings         []string
	}{
		{"least", ok, "", nil},
		{"phux's keys", ok + "min_phux_version = \"0.22\"\ndescription = \"d\"\n[[actions]]\nid = \"x\"\n[[widgets]]\nany = 1\n", "", nil},
		{"unknown", ok + "colour = \"red\"\n", "", []string{`unknown key "colour"`}},
		{"other platform", ok + "platforms = [\"plan9\"]\n", "", []string{`platforms does not name "linux"`}},
		{"no id", "name = \"n\"\nversion = \"1\"\n", "id is missing", nil},
		{"wrong case", "ID = \"x\"\nname = \"n\"\nversion = \"1\"\n", "id is missing", nil},
		{"no name", "id = \"x\"\nversion = \"1\"\n", "name is missing", nil},
		{"blank version", "id = \"x\"\nname = \"n\"\nversion = \" \"\n", "version is empty", nil},
		{"number", "id = 3\nname = \"n\"\nversion = \"1\"\n", "id must be a string", nil},
		{"odd id", "id = \"a/b\"\nname = \"n\"\nversion = \"1\"\n", "A-Z a-z", nil},
		{"long id", "id = \"" + strings.Repeat("a", 121) + "\"\nname = \"n\"\nversion = \"1\"\n", "at most 120", nil},
		{"syntax", "id = \n", "m: line 1, column ", nil},
		{"duplicate", "id = \"a\"\nid = \"b\"\n", "line 2", nil},
		{"binary", "\xff\xfe", "not UTF-8", nil},
		{"large", "#" + strings.Repeat("x", maxFile), "over 1048576 bytes", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, w, err := ParseManifest("m", []byte(c.text))
			if c.want == "" {
				must(t, err)
				if diff := cmp.Diff(c.warnings, w); diff != "" {
					t.Error(diff)
				}
			} else if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add([]byte("id = \"a.b\"\nname = \"n\"\nversion = \"1\"\nplatforms = [\"linux\", 3]\n[[actions]]\n"))
	f.Add([]byte("id = \"\\ud800\"\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, _, err := ParseManifest("f", b)
		if err == nil && (!isPluginID(m.ID) || m.Name == "" || m.Version == "") {
			t.Errorf("accepted %+v", m)
		}
	})
}

func TestFirstParty(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	data := filepath.Join(home(t), "data", "phux-agent")
	src := Source{DataDir: data, Builtin: builtinFS()}
	check := func(t *testing.T) Plugin {
		t.Helper()
		p := load(t, src).Plugins()[0]
		must(t, p.Err)
		if p.ID != FirstParty || p.Origin != Embedded || len(p.Integrations) != 1 || p.Integrations[0].Err != nil {
			t.Fatalf("%+v", p)
		}
		seen := map[string]string{}
		must(t, filepath.WalkDir(p.Root, func(path string, d fs.DirEntry, err error) error {
			must(t, err)
			info, err := d.Info()
			must(t, err)
			rel, _ := filepath.Rel(p.Root, path)
			seen[rel] = info.Mode().String()
			return nil
		}))
		want := map[string]string{
			".": "drwx------", "integrations": "drwx------", "scripts": "drwx------", ManifestFile: "-rw-------",
			"integrations/one.toml": "-rw-------", "integrations/notes.txt": "-rw-------", "scripts/wrap.sh": "-rwx------",
		}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Error(diff)
		}
		for path, f := range builtinFS() {
			if path == "template.go" {
				continue
			}
			if b, _ := os.ReadFile(filepath.Join(p.Root, path)); string(b) != string(f.Data) {
				t.Errorf("%s holds %q", path, b)
			}
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(p.Root), ".new-*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		return p
	}
	root := check(t).Root
	one, script := filepath.Join(root, "integrations/one.toml"), filepath.Join(root, "scripts/wrap.sh")
	before, err := os.Stat(one)
	must(t, err)
	check(t)
	if after, _ := os.Stat(one); !os.SameFile(before, after) {
		t.Error("an intact file was written again")
	}
	for name, tamper := range map[string]func() error{
		"content":          func() error { return os.WriteFile(one, []byte("x"), 0o600) },
		"same length":      func() error { return os.WriteFile(one, []byte(strings.Repeat("x", int(before.Size()))), 0o600) },
		"mode":             func() error { return os.Chmod(script, 0o777) },
		"not executable":   func() error { return os.Chmod(script, 0o600) },
		"gone":             func() error { return os.Remove(one) },
		"directory gone":   func() error { return os.RemoveAll(filepath.Dir(one)) },
		"extra template":   func() error { return os.WriteFile(filepath.Join(root, "integrations/evil.toml"), []byte(tmpl), 0o600) },
		"open root":        func() error { return os.Chmod(root, 0o777) },
		"open directory":   func() error { return os.Chmod(filepath.Dir(one), 0o777) },
		"link for a file":  func() error { os.Remove(one); return os.Symlink("/etc/passwd", one) },
		"link for its dir": func() error { os.RemoveAll(filepath.Dir(one)); return os.Symlink("/etc", filepath.Dir(one)) },
		"dir for a file":   func() error { os.Remove(one); return os.MkdirAll(filepath.Join(one, "x"), 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			must(t, tamper())
			check(t)
		})
	}
}

// TestBuiltin holds the real package to what its lazy loading relies on: each file is named by
// its id, and each template is sound.
func TestBuiltin(t *testing.T) {
	r, err := Load(Source{DataDir: home(t)})
	must(t, err)
	p := r.Plugins()[0]
	must(t, p.Err)
	if len(p.Integrations) < 8 || len(p.Warnings) > 0 {
		t.Errorf("%d integrations, warnings %v", len(p.Integrations), p.Warnings)
	}
	for _, in := range p.Integrations {
		if in.Err != nil || in.ID != stem(filepath.Base(in.File)) || in.Template == nil || in.Template.ID != in.ID {
			t.Errorf("%s: id %q, %v", in.File, in.ID, in.Err)
		}
	}
	var wg sync.WaitGroup
	r, err = Load(Source{DataDir: home(t)})
	must(t, err)
	for range 4 {
		wg.Go(func() {
			if _, err := r.Resolve("codex"); err != nil {
				t.Error(err)
			}
			r.Plugins()
		})
	}
	wg.Wait()
}

func TestFirstPartyRaced(t *testing.T) {
	data := home(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			r, err := Load(Source{DataDir: data, Builtin: builtinFS()})
			if err != nil || r.Plugins()[0].Err != nil {
				t.Error(err, r.Plugins()[0].Err)
			}
		})
	}
	wg.Wait()
	entries, err := os.ReadDir(filepath.Join(data, "first-party"))
	must(t, err)
	if len(entries) != 1 {
		t.Errorf("%v", entries)
	}
}

func TestFirstPartyUntrusted(t *testing.T) {
	data := filepath.Join(home(t), "data")
	must(t, os.MkdirAll(data, 0o700))
	must(t, os.Chmod(data, 0o777))
	r := load(t, Source{DataDir: data, Builtin: builtinFS()})
	if _, err := r.Resolve("one"); reason(err) != Untrusted || !strings.Contains(err.Error(), data+" is writable by others (mode drwxrwxrwx)") {
		t.Errorf("got %v", err)
	}
}

func TestResolve(t *testing.T) {
	base := home(t)
	data := filepath.Join(base, "data")
	a := pack(t, base, "data/plugins/a", "p.a", "alpha", "both")
	b := pack(t, base, "b", "p.b", "beta", "both")
	off := pack(t, base, "off", "p.off", "gamma")
	broken := pack(t, base, "broken", "p.broken", "good")
	put(t, filepath.Join(broken, "integrations/bad.toml"), "id = ")
	put(t, filepath.Join(base, "data/plugins/README"), "a stray file")
	nomanifest := filepath.Join(base, "nomanifest")
	must(t, os.MkdirAll(filepath.Join(nomanifest, "integrations"), 0o755))
	put(t, filepath.Join(nomanifest, "integrations/delta.toml"), tmpl)
	open := pack(t, base, "open", "p.open", "omega")
	must(t, os.Chmod(open, 0o777))
	openFile := pack(t, base, "openfile", "p.openfile", "psi", "chi")
	must(t, os.Chmod(filepath.Join(openFile, "integrations/psi.toml"), 0o666))
	linked := pack(t, base, "linked", "p.linked", "real")
	must(t, os.Symlink("real.toml", filepath.Join(linked, "integrations/sym.toml")))
	r := load(t, Source{
		DataDir: data, Added: []string{b, off, broken, nomanifest, open, openFile, linked, "rel/ative", filepath.Join(base, "gone"), a},
		Off: Off{Plugins: []string{"p.off"}, Integrations: []string{"beta"}},
	})
	for _, c := range []struct {
		id     string
		owner  string
		reason Reason
		detail []string
	}{
		{"alpha", "p.a", "", nil},
		{"good", "p.broken", "", nil},
		{"chi", "p.openfile", "", nil},
		{"real", "p.linked", "", nil},
		{"both", "", Ambiguous, []string{a, b, "p.a", "p.b"}},
		{"beta", "", Disabled, []string{"the integration is disabled"}},
		{"gamma", "", Disabled, []string{"plugin p.off is disabled"}},
		{"bad", "", Invalid, []string{filepath.Join(broken, "integrations/bad.toml")}},
		{"delta", "", Invalid, []string{nomanifest, ManifestFile}},
		{"omega", "", Untrusted, []string{open, "drwxrwxrwx", "writable by others"}},
		{"psi", "", Untrusted, []string{"psi.toml", "-rw-rw-rw-"}},
		{"sym", "", Untrusted, []string{"sym.toml", "symbolic link"}},
		{"none", "", Missing, nil},
		{"", "", Missing, nil},
	} {
		t.Run(c.id, func(t *testing.T) {
			o, err := r.Resolve(c.id)
			if reason(err) != c.reason || o.PluginID != c.owner {
				t.Fatalf("got %q %q: %v", o.PluginID, reason(err), err)
			}
			for _, d := range c.detail {
				if !strings.Contains(err.Error(), d) {
					t.Errorf("%v does not name %q", err, d)
				}
			}
			if c.owner != "" && (o.Template == nil || o.Template.ID != c.id || !filepath.IsAbs(o.Root)) {
				t.Errorf("%+v", o)
			}
		})
	}
	if _, err := r.ResolveOwned("alpha", "p.a"); err != nil {
		t.Error(err)
	}
	if _, err := r.ResolveOwned("alpha", "p.z"); reason(err) != OwnerChanged || !strings.Contains(err.Error(), "p.z") || !strings.Contains(err.Error(), "p.a") {
		t.Error(err)
	}
	if _, err := r.ResolveOwned("gamma", "p.z"); reason(err) != Disabled {
		t.Error(err)
	}
	// Every broken package is listed, and none twice.
	count := map[string]int{}
	for _, p := range r.Plugins() {
		count[p.Root]++
	}
	for root, n := range count {
		if n != 1 {
			t.Errorf("%s is listed %d times", root, n)
		}
	}
	for _, p := range r.Plugins() {
		if p.Root == filepath.Join(base, "gone") && p.Err == nil {
			t.Errorf("%s has no error", p.Root)
		}
		if p.Root == "rel/ative" && (p.Err == nil || !strings.Contains(p.Err.Error(), "never come from the current project")) {
			t.Errorf("%s: %v", p.Root, p.Err)
		}
	}
}

func TestDuplicatePluginID(t *testing.T) {
	base := home(t)
	x, y := pack(t, base, "x", "same", "alpha"), pack(t, base, "y", "same", "beta")
	r := load(t, Source{DataDir: filepath.Join(base, "data"), Added: []string{x, y}})
	if _, err := r.Resolve("alpha"); reason(err) != Ambiguous || !strings.Contains(err.Error(), x) || !strings.Contains(err.Error(), y) {
		t.Errorf("got %v", err)
	}
	// The same package by a link is one.
	must(t, os.Symlink(x, filepath.Join(base, "l")))
	r = load(t, Source{DataDir: filepath.Join(base, "data"), Added: []string{x, filepath.Join(base, "l"), filepath.Join(x, ManifestFile)}})
	if o, err := r.Resolve("alpha"); err != nil || o.Root != x {
		t.Errorf("got %+v %v", o, err)
	}
}

func TestProgramsOfPackageAreTrusted(t *testing.T) {
	base := home(t)
	root := pack(t, base, "p", "p", "alpha")
	put(t, filepath.Join(root, "integrations/alpha.toml"), strings.Replace(strings.ReplaceAll(tmpl, "\"ID\"", "\"alpha\""), `["agent"]`, `["${PHUX_PLUGIN_ROOT}/run"]`, 1))
	run := filepath.Join(root, "run")
	resolve := func() error {
		_, err := load(t, Source{DataDir: filepath.Join(base, "data"), Added: []string{root}}).Resolve("alpha")
		return err
	}
	if err := resolve(); err != nil {
		t.Errorf("an absent program is for the plan to say: %v", err)
	}
	put(t, run, "#!/bin/sh\n")
	if err := resolve(); err != nil {
		t.Error(err)
	}
	must(t, os.Chmod(run, 0o777))
	if err := resolve(); reason(err) != Untrusted {
		t.Errorf("a world-writable program: %v", err)
	}
	must(t, os.Remove(run))
	must(t, os.Symlink("/bin/sh", run))
	if err := resolve(); reason(err) != Untrusted || !strings.Contains(err.Error(), "leads out of the plugin") {
		t.Errorf("a link out of the package: %v", err)
	}
}

func TestLookProgram(t *testing.T) {
	base := home(t)
	for _, d := range []string{"one", "two", "two/dir"} {
		must(t, os.Mkdir(filepath.Join(base, d), 0o755))
	}
	plain, run := filepath.Join(base, "one/prog"), filepath.Join(base, "two/prog")
	put(t, plain, "")
	put(t, run, "#!/bin/sh\n")
	must(t, os.Chmod(run, 0o755))
	t.Chdir(filepath.Join(base, "two"))
	one, two := filepath.Join(base, "one"), filepath.Join(base, "two")
	for _, c := range []struct{ name, path, want, why string }{
		{"prog", one + ":" + two, run, ""},
		{"prog", ":.:two:" + two, run, ""},
		{"prog", ":.:../two", "", "PATH=:.:../two"},
		{"prog", one, "", "is not executable"},
		{"prog", "", "", "PATH is empty"},
		{"dir", two, "", "is a directory"},
		{"none", one + ":" + two, "", "in no directory of PATH"},
		{run, "", run, ""},
		{plain, two, "", "is not executable"},
		{"./prog", two, "", "must be absolute"},
		{"two/prog", base, "", "must be absolute"},
		{"", two, "", "empty"},
	} {
		got, err := LookProgram(c.name, c.path)
		var pe *ProgramError
		if got != c.want || c.why != "" && (!errors.As(err, &pe) || !strings.Contains(err.Error(), c.why)) {
			t.Errorf("LookProgram(%q, %q) = %q, %v", c.name, c.path, got, err)
		}
	}
}

// BenchmarkLoad is what each verb, and a respawned pane, pays for the first-party package.
func BenchmarkLoad(b *testing.B) {
	data := b.TempDir()
	if err := os.Chmod(data, 0o700); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		r, err := Load(Source{DataDir: data})
		if err == nil {
			_, err = r.Resolve("claude-code")
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

// A template of the first-party package that nobody has run is refused for restore until the user
// allows it; whatever the user installed is the user's word.
func TestUnverified(t *testing.T) {
	base := home(t)
	verified := strings.ReplaceAll(tmpl, "\"ID\"", "\"ran\"") + "[cli]\nverified = [\"1\"]\n"
	src := builtinFS()
	src["integrations/ran.toml"] = &fstest.MapFile{Data: []byte(verified)}
	added := pack(t, base, "mine", "my.agents", "mine")
	for name, x := range map[string]struct {
		allow []string
		id    string
		want  bool // restorable
	}{
		"not run":             {nil, "one", false},
		"another is allowed":  {[]string{"ran", "mine", "one."}, "one", false},
		"allowed":             {[]string{"x", "one"}, "one", true},
		"run":                 {nil, "ran", true},
		"installed by a user": {nil, "mine", true},
	} {
		r := load(t, Source{DataDir: filepath.Join(base, "data"), Added: []string{added}, Builtin: src, Unverified: x.allow})
		o, err := r.Resolve(x.id)
		must(t, err)
		err = o.Restorable()
		var un *UnverifiedError
		if (err == nil) != x.want || !x.want && (!errors.As(err, &un) || un.Integration != x.id || !strings.Contains(un.Allow(), `["one"]`)) {
			t.Errorf("%s: %v", name, err)
		}
		if owned, err := r.ResolveOwned(x.id, o.PluginID); err != nil || owned.Unverified != o.Unverified {
			t.Errorf("%s: owned %v, %v", name, owned.Unverified, err)
		}
	}
	// What cannot resume at all says that, and not that it was not run.
	src["integrations/one.toml"] = &fstest.MapFile{Data: []byte("id = \"one\"\n[launch]\ncommand = [\"one\"]\n")}
	o, err := load(t, Source{DataDir: filepath.Join(base, "data"), Builtin: src}).Resolve("one")
	must(t, err)
	var un *UnverifiedError
	if err := o.Restorable(); err == nil || errors.As(err, &un) {
		t.Errorf("got %v", err)
	}
}
