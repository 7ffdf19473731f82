package rehearsal

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/phux-agent/phux-agent/integrations"
)

// Theatre is a temporary directory with all that a rehearsal with a fake needs: a home, a runtime
// directory, and a plugin whose template is the one in question with a stand-in for its program.
type Theatre struct {
	Base    string
	Dir     string // where the agent works
	Fakes   string // the fakes' store
	Root    string // of the plugin
	Environ []string
}

// FakeWords are the words behind the program with which it is to run a Fake: the template, the
// store, a --, and the agent's own arguments.
var FakeWords = []string{"integration", "fake"}

// Build fills an empty directory. src is the template's file; self is phux-agent, and path the PATH
// by which tmux and what it needs are found.
func Build(base string, t *integrations.Template, src []byte, self, path string) (*Theatre, error) {
	home := filepath.Join(base, "home")
	th := &Theatre{
		Base: base, Dir: filepath.Join(base, "work"), Fakes: filepath.Join(base, "fakes"),
		Root: filepath.Join(home, ".local", "share", "phux-agent", "plugins", "rehearsal"),
	}
	th.Environ = []string{
		"PATH=" + path, "HOME=" + home, "XDG_RUNTIME_DIR=" + filepath.Join(base, "run"), "SHELL=/bin/sh", "TERM=screen-256color",
		"LC_ALL=C.UTF-8", "TMPDIR=" + filepath.Join(base, "tmp"), "ENV=", "PS1=$ ",
	}
	for _, name := range t.Launch.ScrubEnv {
		th.Environ = append(th.Environ, name+"=inherited") // to see it taken away
	}
	original, program := filepath.Join(base, "template.toml"), filepath.Join(base, "bin", t.ID)
	words := append([]string{program}, FakeWords...)
	words = append(words, original, th.Fakes, "--")
	with := func(more ...string) []string { return append(append([]string{}, words...), more...) }
	changed, err := integrations.WithCommands(t.File, src, with(t.Launch.Command[min(1, len(t.Launch.Command)):]...),
		with(FakeMint), with(FakeFork, "${PHUX_AGENT_SESSION_ID}"))
	if err != nil {
		return nil, fmt.Errorf("build the rehearsal: %w", err)
	}
	for _, dir := range []string{"run", "tmp", "bin", "work/" + untouched, "fakes", "home/.config/phux-agent"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o700); err != nil {
			return nil, fmt.Errorf("build the rehearsal: %w", err)
		}
	}
	files := map[string][]byte{
		original: src,
		filepath.Join(th.Root, "phux-plugin.toml"):                   []byte("id = \"rehearsal\"\nname = \"rehearsal\"\nversion = \"0\"\nmin_phux_version = \"0.1.0\"\n"),
		filepath.Join(th.Root, "integrations", t.ID+".toml"):         changed,
		filepath.Join(home, ".config", "phux-agent", "plugins.toml"): []byte("disabled_plugins = [\"phux.agents\"]\n"),
	}
	// A stand-in that refuses does so at once: nothing is gained by watching it for long.
	files[filepath.Join(home, ".config", "phux-agent", "config.toml")] = []byte("[restore]\nsettle_ms = 300\n")
	for _, q := range t.Require {
		if name, err := integrations.ExpandRoot(q.File, th.Getenv); err == nil && strings.HasPrefix(name, home+"/") {
			doc := map[string]any{}
			point(doc, q.JSON, q.Equals)
			if files[name], err = json.Marshal(doc); err != nil {
				return nil, fmt.Errorf("build the rehearsal: %w", err)
			}
		}
	}
	for name, b := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return nil, fmt.Errorf("build the rehearsal: %w", err)
		}
		if err := os.WriteFile(name, b, 0o600); err != nil {
			return nil, fmt.Errorf("build the rehearsal: %w", err)
		}
	}
	// A program of the agent's own name, as the real one is: by it a process is told for an agent.
	if err := os.Symlink(self, program); err != nil {
		return nil, fmt.Errorf("build the rehearsal: %w", err)
	}
	return th, nil
}

// Getenv looks a name up in the environment of the rehearsal.
func (th *Theatre) Getenv(name string) (string, bool) { return (&Fake{Environ: th.Environ}).env(name) }

// Bounds of FindFiles.
const (
	maxWalk  = 50_000
	maxFound = 5
)

// FindFiles looks below some directories for files that have the id, or its first eight bytes, in
// their names: a help for whoever writes [transcript], and never a way to a conversation.
func FindFiles(roots []string, id string) []string {
	short := id[:min(8, len(id))]
	var found []string
	n := 0
	for _, root := range roots {
		_ = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error { // what cannot be read is not named
			if n++; n > maxWalk || len(found) >= maxFound {
				return fs.SkipAll
			}
			if err == nil && strings.Contains(d.Name(), short) && !slices.Contains(found, name) { // of roots within each other
				found = append(found, name)
			}
			return nil
		})
	}
	return found
}
