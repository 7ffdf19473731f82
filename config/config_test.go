package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/internal/trust"
)

// home makes a directory whose every parent passes the trust check.
func home(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLoadAbsentIsDefault(t *testing.T) {
	c, err := Load(filepath.Join(home(t), "none"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default(), c, cmp.AllowUnexported(Config{})); diff != "" {
		// profiles is an empty map once a file was looked at
		if len(c.profiles) != 0 {
			t.Error(diff)
		}
	}
	if p, ok := c.Profile("", "x"); !ok || p.Name != "default" {
		t.Errorf("the default profile: %v %v", p, ok)
	}
	if _, ok := c.Profile("work", "x"); ok {
		t.Error("a profile that nobody wrote exists")
	}
}

func TestLoad(t *testing.T) {
	dir := home(t)
	write(t, filepath.Join(dir, File), `
host = "tmux"
save_after_launch = false
adopt_at_save = false
[keep]
generations = 7
[restore]
parallel = 2
settle_ms = 0
allow_unverified = ["cursor-agent", "amp"]
mode = "ask"
boot_mode = "manual"
old_days = 3
husk = false
[restore.modes]
codex = "manual"
[scrollback]
lines = 10000
[programs.vim]
command = ["vim", "-n"]
[programs.htop]
command = ["/usr/bin/htop"]
args = "none"
[[plugins]]
path = "/opt/a"
[[plugins]]
path = "/opt/b"
enabled = false
[profiles.work.claude-code]
args = ["--model", "opus"]
env = { ANTHROPIC_MODEL = "x", "A_B" = "" }
mode = "auto"
[profiles.default."odd.id"]
args = ["-v"]
`)
	write(t, filepath.Join(dir, EditsFile), "plugins = [\"/opt/c\"]\ndisabled_plugins = [\"p\"]\ndisabled_integrations = [\"i\"]\n")
	c, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Host: "tmux", Keep: Keep{7, 90}, Autosave: Default().Autosave, Restore: Restore{
			Parallel: 2, SettleMillis: 0, DeadlineSecs: 30, PendingDays: 30, AllowUnverified: []string{"cursor-agent", "amp"},
			Mode: Ask, BootMode: Manual, Modes: map[string]Mode{"codex": Manual}, OldDays: 3,
		},
		Scrollback: Scrollback{Lines: 10000},
		Programs: map[string]Program{
			"vim":  {Name: "vim", Command: []string{"vim", "-n"}, SavedArgs: true},
			"htop": {Name: "htop", Command: []string{"/usr/bin/htop"}},
		},
		modes:      map[string]map[string]Mode{"work": {"claude-code": Auto}, "default": {"odd.id": ""}},
		Plugins:    []PluginEntry{{Path: "/opt/a"}, {Path: "/opt/c", Added: true}},
		OffPlugins: []string{"p"}, OffIntegrations: []string{"i"},
		profiles: map[string]map[string]integrations.Profile{
			"work":    {"claude-code": {Name: "work", Args: []string{"--model", "opus"}, Env: map[string]string{"ANTHROPIC_MODEL": "x", "A_B": ""}}},
			"default": {"odd.id": {Name: "default", Args: []string{"-v"}}},
		},
	}
	if diff := cmp.Diff(want, c, cmp.AllowUnexported(Config{})); diff != "" {
		t.Error(diff)
	}
	if p, ok := c.Profile("", "odd.id"); !ok || len(p.Args) != 1 {
		t.Errorf("the configured default profile: %v %v", p, ok)
	}
	for _, m := range []struct {
		profile, integration string
		want                 Mode
	}{{"work", "claude-code", Auto}, {"work", "codex", Manual}, {"", "odd.id", Ask}, {"", "x", Ask}} {
		if got := c.ModeOf(m.profile, m.integration); got != m.want {
			t.Errorf("the mode of %q, %q is %q, want %q", m.profile, m.integration, got, m.want)
		}
	}
	if _, ok := c.Profile("work", "codex"); ok {
		t.Error("a profile without a word on codex exists for codex")
	}
}

func TestMoreCareful(t *testing.T) {
	for _, c := range [][3]Mode{{"", "", Auto}, {Auto, Ask, Ask}, {Manual, Ask, Manual}, {Ask, "", Ask}, {"", Manual, Manual}} {
		if got := c[0].Careful(c[1]); got != c[2] {
			t.Errorf("%q and %q: %q", c[0], c[1], got)
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"syntax", "host = \n", "config.toml:1: "},
		{"unknown", "save_after_lunch = true\n", "config.toml:1: unknown key \"save_after_lunch\"\n  save_after_lunch = true\n  ^\n  did you mean \"save_after_launch\"?"},
		{"case", "\nHost = \"tmux\"\n", "config.toml:2: unknown key \"Host\"\n  Host = \"tmux\"\n  ^\n  did you mean \"host\"?"},
		{"in table", "[keep]\n  day = 3\n", "config.toml:2: unknown key \"keep.day\"\n    day = 3\n    ^\n  did you mean \"days\"?"},
		{"unknown table", "[profile.x.y]\nargs = []\n", "config.toml:1: unknown key \"profile\"\n  [profile.x.y]\n   ^\n  did you mean \"profiles\"?"},
		{"in profile", "[profiles.x.y]\nargz = []\n", "did you mean \"args\"?"},
		{"inline", "keep = { dayz = 3 }\n", "config.toml:1: unknown key \"keep.dayz\"\n  keep = { dayz = 3 }\n           ^"},
		{"far", "zzzzzzzz = 3\n", "the keys here are: host,"},
		{"type", "\nhost = 3\n", "config.toml:2: host: "},
		{"host", "host = \"screen\"\n", `write "tmux" or "embedded"`},
		{"no integration", "[restore]\nallow_unverified = [\"a\\n\"]\n", "config.toml:2: \"a\\n\" is no integration"},
		{"range", "[restore]\nparallel = 0\n", "config.toml:2: restore.parallel = 0 is out of bounds"},
		{"scrollback", "[scrollback]\nlines = 10001\n", "write a number from 0 to 10000"},
		{"relative", "[[plugins]]\npath = \"./here\"\n", "config.toml:2: plugin path \"./here\" is relative"},
		{"no path", "[[plugins]]\n", "has no path"},
		{"identity in env", "[profiles.a.b]\nenv = { PHUX_CLAUDE_SESSION_ID = \"x\" }\n", "carries an identity"},
		{"bad env", "[profiles.a.b.env]\n\"A=B\" = \"x\"\n", "is not a name of an environment variable"},
		{"nul", "[profiles.a.b]\nargs = [\"a\\u0000\"]\n", "holds a NUL"},
		{"duplicate", "host = \"tmux\"\nhost = \"tmux\"\n", "config.toml:2: "},
		{"mode", "[restore]\nmode = \"maybe\"\n", "config.toml:2: restore.mode = \"maybe\" is no mode\n  mode = \"maybe\"\n  ^\n  write \"auto\", \"ask\" or \"manual\""},
		{"boot mode", "[restore]\nboot_mode = \"x\"\n", "is no mode"},
		{"mode of an integration", "[restore.modes]\ncodex = \"x\"\n", "config.toml:2: restore.modes.codex = \"x\" is no mode"},
		{"mode of a profile", "[profiles.a.b]\nmode = \"x\"\n", "config.toml:2: profiles.a.b.mode = \"x\" is no mode"},
		{"no program", "[programs.vim]\n", "config.toml:1: [programs.vim] has no command"},
		{"relative program", "[programs.vim]\ncommand = [\"./vim\"]\n", "config.toml:2: the program \"./vim\" is a relative path"},
		{"program args", "[programs.vim]\ncommand = [\"vim\"]\nargs = \"all\"\n", "config.toml:3: args = \"all\" is not known"},
		{"program's nul", "[programs.vim]\ncommand = [\"vim\", \"\\u0000\"]\n", "holds a NUL"},
		{"not utf-8", "host = \"\xff\"\n", "not UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := home(t)
			write(t, filepath.Join(dir, File), c.text)
			_, err := Load(dir)
			var fe *FileError
			if !errors.As(err, &fe) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %T\n%v\nwant a text with\n%s", err, err, c.want)
			}
		})
	}
}

func TestUntrustedFile(t *testing.T) {
	dir := home(t)
	path := filepath.Join(dir, File)
	write(t, path, "host = \"tmux\"\n")
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	var te *trust.Error
	if _, err := Load(dir); !errors.As(err, &te) {
		t.Fatalf("a world-writable configuration: %v", err)
	}
	os.Remove(path)
	// A link to a trusted place is how dotfile managers work.
	write(t, filepath.Join(dir, "real"), "host = \"tmux\"\n")
	if err := os.Symlink("real", path); err != nil {
		t.Fatal(err)
	}
	if c, err := Load(dir); err != nil || c.Host != "tmux" {
		t.Fatalf("a link to a trusted file: %v %v", c, err)
	}
	// The link's own directory counts as well as where it leads.
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../real", filepath.Join(open, File)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(open); !errors.As(err, &te) {
		t.Fatalf("a link in a world-writable directory: %v", err)
	}
	if err := os.Chmod(filepath.Join(dir, "real"), 0o602); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); !errors.As(err, &te) {
		t.Fatalf("a link to a world-writable file: %v", err)
	}
}

func TestEditConcurrently(t *testing.T) {
	dir := filepath.Join(home(t), "sub")
	var wg sync.WaitGroup
	const n = 16
	for i := range n {
		wg.Go(func() {
			err := Edit(dir, func(e *Edits) error {
				e.Plugins = append(e.Plugins, "/p/"+string(rune('a'+i)))
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	c, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Plugins) != n {
		t.Fatalf("%d of %d edits took effect: %v", len(c.Plugins), n, c.Plugins)
	}
	info, err := os.Stat(filepath.Join(dir, EditsFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !slices.Contains([]string{EditsFile, EditsFile + ".lock"}, e.Name()) {
			t.Errorf("%s was left behind", e.Name())
		}
	}
}

func TestEditRefusals(t *testing.T) {
	dir := home(t)
	path := filepath.Join(dir, EditsFile)
	stop := errors.New("stop")
	if err := Edit(dir, func(e *Edits) error { e.Plugins = []string{"/x"}; return stop }); !errors.Is(err, stop) {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Error("a refused edit was written")
	}
	write(t, path, "broken = [")
	if err := Edit(dir, func(e *Edits) error { e.Plugins = []string{"/x"}; return nil }); err == nil {
		t.Error("a broken file was edited")
	}
	if b, _ := os.ReadFile(path); string(b) != "broken = [" {
		t.Errorf("a file that could not be read was replaced by %q", b)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("host = \"tmux\"\n[keep]\ndays = 3\n")
	f.Add("[profiles.a.b]\nargs = [\"x\"]\nenv = { A = \"b\" }\n")
	f.Add("[[plugins]]\npath = \"/x\"\n\"q.r\" = 1\n[a.\"b")
	f.Fuzz(func(t *testing.T, text string) {
		c := Default()
		if err := decode("f", []byte(text), c); err != nil {
			var fe *FileError
			if !errors.As(err, &fe) {
				t.Errorf("%T %v", err, err)
			}
			_ = err.Error()
		}
		_, _ = decodeEdits("f", []byte(text))
	})
}
