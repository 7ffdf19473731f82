package launch

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/phux-agent/phux-agent/config"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/memory"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
	"github.com/phux-agent/phux-agent/plugin"
)

const identity = `
[session_identity]
mode = "native-or-phux"
restore = "external-cli"
native_env = "PHUX_DEMO_SESSION_ID"
id_pattern = "uuid"
resume_args = ["--resume", "${PHUX_AGENT_SESSION_ID}"]
`

const transcript = `
[transcript]
root = "${DEMO_HOME:-~/.demo}"
paths = ["projects/*/${PHUX_AGENT_SESSION_ID}.jsonl"]
`

const fresh = `fresh_args = ["--session-id", "${PHUX_AGENT_SESSION_ID}"]
never = ["--continue"]
`

// templates by id; each is one kind of agent.
var templates = map[string]string{
	"demo": `[launch]
command = ["demo-agent"]
scrub_env = ["DEMO_CHILD"]
after_exit = "shell"
` + identity + fresh + transcript,
	"late": `[launch]
command = ["demo-agent"]
` + identity + transcript + `
[[observe]]
kind = "open-file"
path = "${root}/locks/${PHUX_AGENT_SESSION_ID}.lock"
`,
	"blank": `[launch]
command = ["demo-agent"]
` + identity + `unknown_id = "blank"
`,
	"minter": `[launch]
command = ["demo-agent"]
` + identity + `mint_command = ["demo-mint", "${PHUX_PLUGIN_ROOT}"]
`,
	"plain": `[launch]
command = ["demo-agent"]
`,
	"gone": `[launch]
command = ["no-such-agent"]
` + identity,
	"rooted": `[launch]
command = ["demo-agent"]
working_directory = "plugin-root"
` + identity + fresh,
	"picky": `[launch]
command = ["demo-agent"]
` + identity + fresh + `
[[require]]
file = "~/.demo/settings.json"
json = "/retention"
equals = false
default = true
at = "launch"
consequence = "the conversation is deleted"
`,
	"worried": `[launch]
command = ["demo-agent"]
` + identity + fresh + `
[[require]]
file = "~/.demo/settings.json"
json = "/retention"
equals = false
default = true
at = "restore"
consequence = "the conversation is deleted"
`,
}

const (
	idA = "0b8d6f0e-6f0c-4a53-9d0c-6a2f7f1c1d11"
	idB = "7a1f6c9c-2b1e-4d7c-8f25-0d6b1f6f8b22"
)

// rig is a world of its own: a package, a PATH, a home, claims and a host.
type rig struct {
	t      *testing.T
	dir    string // where agents are launched
	home   string
	bin    string
	plugin string
	env    map[string]string
	host   *memory.Host
	e      Env
}

func newRig(t *testing.T) *rig {
	t.Helper()
	base := t.TempDir()
	r := &rig{
		t: t, dir: filepath.Join(base, "src"), home: filepath.Join(base, "home"), bin: filepath.Join(base, "bin"),
		plugin: filepath.Join(base, "plugin"), host: memory.New(),
	}
	for _, d := range []string{r.dir, r.home, r.bin, filepath.Join(r.plugin, "integrations"), filepath.Join(base, "config")} {
		must(t, os.MkdirAll(d, 0o755))
	}
	r.put(filepath.Join(r.plugin, "phux-plugin.toml"), "id = \"demo.agents\"\nname = \"n\"\nversion = \"1\"\n")
	for id, body := range templates {
		r.put(filepath.Join(r.plugin, "integrations", id+".toml"), "schema_version = 1\nid = \""+id+"\"\n"+body)
	}
	r.script("demo-agent", "exit 0")
	r.put(filepath.Join(base, "config", "config.toml"), `
[profiles.loud.demo]
args = ["--loud"]
env = { DEMO_VOICE = "loud" }

[profiles.elsewhere.demo]
env = { DEMO_HOME = "/elsewhere" }
`)
	cfg, err := config.Load(filepath.Join(base, "config"))
	must(t, err)
	reg, err := plugin.Load(plugin.Source{
		DataDir: filepath.Join(base, "data"), Added: []string{r.plugin},
		Builtin: fstest.MapFS{"phux-plugin.toml": {Data: []byte("id = \"phux.agents\"\nname = \"n\"\nversion = \"1\"\n")}},
	})
	must(t, err)
	r.env = map[string]string{"HOME": r.home, "PATH": r.bin, "TERM": "tmux"}
	r.e = Env{
		Host: r.host, Registry: reg, Config: cfg,
		Claims: owner.Claims{Dir: filepath.Join(base, "run", "claims")},
		Getenv: func(name string) (string, bool) { v, ok := r.env[name]; return v, ok },
		Now:    time.Now,
		find: func(*templateT, metadata.Identity, envT) (owner.Live, error) {
			return owner.Live{}, nil
		},
	}
	must(t, os.MkdirAll(filepath.Dir(r.e.Claims.Dir), 0o700))
	return r
}

func (r *rig) put(path, text string) {
	r.t.Helper()
	must(r.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(r.t, os.WriteFile(path, []byte(text), 0o644))
}

func (r *rig) script(name, body string) {
	r.t.Helper()
	must(r.t, os.WriteFile(filepath.Join(r.bin, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755))
}

// converse makes the conversation of an id exist.
func (r *rig) converse(id string) {
	r.put(filepath.Join(r.home, ".demo", "projects", "p", id+".jsonl"), "{}\n")
}

func (r *rig) request(integration string) Request {
	return Request{Integration: integration, Dir: r.dir, Session: "work"}
}

func (r *rig) prepare(q Request) *Draft {
	r.t.Helper()
	d, err := Prepare(context.Background(), r.e, q)
	must(r.t, err)
	return d
}

// sleeper is a live process that is not this one.
func (r *rig) sleeper() owner.Process {
	r.t.Helper()
	cmd := exec.Command("sleep", "300")
	must(r.t, cmd.Start())
	r.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	i, err := proc.Stat(cmd.Process.Pid)
	must(r.t, err)
	return owner.Process{PID: i.PID, Start: i.Start}
}

// session makes a session with one shell in it, and returns its terminal.
func (r *rig) session(name string) host.Terminal {
	r.t.Helper()
	c, err := r.host.Create(context.Background(), host.CreateSession{Name: name, Dir: r.dir, Windows: []host.WindowSpec{{
		Name: "w", Index: -1, Layout: host.Cell{Cols: 80, Rows: 24}, Panes: []host.PaneSpec{{Start: host.Start{Dir: r.dir}}},
	}}})
	must(r.t, err)
	return c.Windows[0][0].Terminal
}

// panes lists what the host holds, by terminal id.
func (r *rig) panes() map[string]host.Pane {
	r.t.Helper()
	out := map[string]host.Pane{}
	w, err := r.host.Snapshot(context.Background())
	if err != nil {
		return out
	}
	for _, s := range w.Sessions {
		for _, win := range s.Windows {
			for _, p := range win.Panes {
				out[p.Terminal.ID] = p
			}
		}
	}
	return out
}

func (r *rig) claims() []owner.Claim {
	r.t.Helper()
	list, err := r.e.Claims.List()
	must(r.t, err)
	return list
}

func environMap(list []string) map[string]string {
	out := map[string]string{}
	for _, kv := range list {
		k, v, _ := strings.Cut(kv, "=")
		out[k] = v
	}
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
