package capture

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/memory"
	"github.com/phux-agent/phux-agent/integrations"
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

const proofOf = `
[transcript]
root = "${DEMO_HOME:-~/.demo}"
paths = ["projects/*/${PHUX_AGENT_SESSION_ID}.jsonl"]
[[observe]]
kind = "file"
path = "${root}/sessions/${PID}.json"
id = "/sessionId"
start = "/procStart"
start_unit = "ticks"
`

const hookOf = `
[[observe]]
kind = "hook"
on = ["Start", "Prompt"]
id = "/session_id"
event = "/hook_event_name"
where = { "/kind" = "main" }

[[live]]
on = ["Busy"]
id = "/session_id"
state = "working"

[[live]]
on = ["Ask"]
id = "/session_id"
state = "blocked"
`

var templates = map[string]string{
	"demo": identity + `fresh_args = ["--session-id", "${PHUX_AGENT_SESSION_ID}"]` + proofOf,
	"late": identity + `never_prompted = "lost"` + proofOf,
	"until": identity + `fresh_args = ["--session-id", "${PHUX_AGENT_SESSION_ID}"]
never_prompted = "fresh-until-file"` + proofOf,
	"blind": identity,
	"told":  identity + `fresh_args = ["--session-id", "${PHUX_AGENT_SESSION_ID}"]` + hookOf,
	"both":  identity + proofOf + hookOf,
	"plain": "",
}

const (
	idA = "0b8d6f0e-6f0c-4a53-9d0c-6a2f7f1c1d11"
	idB = "7a1f6c9c-2b1e-4d7c-8f25-0d6b1f6f8b22"
	idC = "c2b0c9a4-35b3-4d9b-9f0a-5a4f1f2f7e33"
)

var when = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// rig is a workspace in memory, whose processes are real ones that sleep, and whose proofs are
// what a test says.
type rig struct {
	births  map[int]time.Time // of processes; absent is not known
	t       testing.TB
	host    *memory.Host
	req     Request
	answers map[int]owner.Answer // by pid
	gone    map[string]bool      // ids whose conversation is absent
	begun   map[string]bool      // ids with a stub in the place of one
	mu      sync.Mutex
	seen    int                     // observations
	hand    map[int]owner.ByHand    // by the pid of the pane's program
	chain   map[int][]owner.Process // what stands above a process
	between map[int]error           // why a process does not speak for the agent above it
	lives   map[string]owner.Live   // by native id
	born    uint64                  // start of what is to be ended after the test
	env     map[string]string
}

func (r *rig) process(pid int) (owner.Process, bool) { return newMachine(time.Now).process(pid) }
func (r *rig) alive(p owner.Process) bool            { return newMachine(time.Now).alive(p) }
func (r *rig) began(p owner.Process) time.Time       { return r.births[p.PID] }

func (r *rig) observe(t *integrations.Template, root owner.Process) owner.Answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen++
	if a, ok := r.answers[root.PID]; ok {
		return a
	}
	return owner.Answer{Kind: owner.Unknown, Reason: "nothing is known of it"}
}

func (r *rig) environ(p owner.Process) (integrations.Env, error) {
	if !r.alive(p) {
		return nil, errors.New("gone")
	}
	return func(name string) (string, bool) { v, ok := r.env[name]; return v, ok }, nil
}

func (r *rig) probe(_ *integrations.Template, id string, _ integrations.Env) owner.Presence {
	switch {
	case r.begun[id]:
		return owner.Begun
	case r.gone[id]:
		return owner.Absent
	}
	return owner.Present
}

func (r *rig) busy(pid int) bool { _, ok := r.hand[pid]; return ok }

func (r *rig) under(pid int, _ string, known []*integrations.Template) (owner.ByHand, error) {
	f, ok := r.hand[pid]
	if !ok {
		return f, owner.ErrNoAgent
	}
	for _, t := range known {
		if t.ID == f.Template.ID {
			return f, nil
		}
	}
	return owner.ByHand{}, owner.ErrNoAgent
}

func (r *rig) dir(owner.Process) string                { return "/by/hand" }
func (r *rig) foreground(int) (string, []string, bool) { return "", nil, false }

func (r *rig) idle(int, string) bool { return true }

func (r *rig) ancestors(pid int) []owner.Process { return r.chain[pid] }

func (r *rig) reports(_ *integrations.Template, _ owner.Process, from owner.Line, _ []*integrations.Template) error {
	return r.between[from.PID]
}

func (r *rig) find(_ owner.Claims, _ *integrations.Template, id metadata.Identity, _ integrations.Env) owner.Live {
	return r.lives[id.NativeID]
}

func newRig(t testing.TB) *rig {
	t.Helper()
	base := t.TempDir()
	dir := filepath.Join(base, "plugin")
	must(t, os.MkdirAll(filepath.Join(dir, "integrations"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "phux-plugin.toml"), []byte("id = \"demo.agents\"\nname = \"n\"\nversion = \"1\"\n"), 0o644))
	for id, body := range templates {
		text := "schema_version = 1\nid = \"" + id + "\"\n[launch]\ncommand = [\"demo-agent\"]\n" + body
		must(t, os.WriteFile(filepath.Join(dir, "integrations", id+".toml"), []byte(text), 0o644))
	}
	reg, err := plugin.Load(plugin.Source{
		DataDir: filepath.Join(base, "data"), Added: []string{dir},
		Builtin: fstest.MapFS{"phux-plugin.toml": {Data: []byte("id = \"phux.agents\"\nname = \"n\"\nversion = \"1\"\n")}},
	})
	must(t, err)
	r := &rig{
		t: t, host: memory.New(), answers: map[int]owner.Answer{}, gone: map[string]bool{}, begun: map[string]bool{},
		hand: map[int]owner.ByHand{}, chain: map[int][]owner.Process{}, between: map[int]error{}, lives: map[string]owner.Live{},
		env: map[string]string{"HOME": base},
	}
	r.host.SetClock(func() time.Time { return when })
	r.req = Request{
		Host: r.host, Registry: reg, Claims: owner.Claims{Dir: filepath.Join(base, "claims")},
		Now: func() time.Time { return when }, Machine: "machine", Write: true,
		Getenv: func(name string) (string, bool) { v, ok := r.env[name]; return v, ok },
		proofs: r,
	}
	return r
}

func (r *rig) sleeper() int {
	r.t.Helper()
	cmd := exec.Command("sleep", "300")
	must(r.t, cmd.Start())
	r.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd.Process.Pid
}

func (r *rig) ident(pid int) owner.Process {
	i, err := proc.Stat(pid)
	must(r.t, err)
	return owner.Process{PID: i.PID, Start: i.Start}
}

// spec is one pane to make.
type spec struct {
	integration string // empty: a shell
	id          string // empty: no record
	mode        host.Mode
	facts       func(*metadata.LaunchFacts)
	after       string
	raw         []byte // instead of a record
}

func (r *rig) pane(s spec) host.PaneSpec {
	r.t.Helper()
	if s.integration == "" {
		return host.PaneSpec{Start: host.Start{Dir: "/src"}}
	}
	p := host.PaneSpec{Start: host.Start{Mode: s.mode, Argv: []string{"/bin/demo-agent"}, Dir: "/src", AfterExit: s.after}}
	p.Meta = map[metadata.Key][]byte{}
	facts := metadata.LaunchFacts{
		PaneKey: metadata.NewPaneKey(), PluginID: "demo.agents", IntegrationID: s.integration, LaunchDir: "/launch",
		Profile: "loud", NotPreserved: []string{"--once"},
	}
	if s.facts != nil {
		s.facts(&facts)
	}
	var err error
	p.Meta[metadata.KeyAgentLaunch], err = facts.Encode()
	must(r.t, err)
	p.Meta[metadata.KeyAgent], err = metadata.Agent{Name: s.integration}.Encode()
	must(r.t, err)
	switch {
	case s.raw != nil:
		p.Meta[metadata.KeyAgentSession] = s.raw
	case s.id != "":
		p.Meta[metadata.KeyAgentSession], err = metadata.AgentSession{PluginID: "demo.agents", IntegrationID: s.integration, NativeID: s.id}.Encode()
		must(r.t, err)
	}
	return p
}

// session makes a session of one window with these panes side by side, each running as a
// process that sleeps, and returns their terminals.
func (r *rig) session(name string, specs ...spec) []host.Terminal {
	r.t.Helper()
	w := host.WindowSpec{Name: "w-" + name, Index: -1}
	for _, s := range specs {
		w.Panes = append(w.Panes, r.pane(s))
	}
	var err error
	w.Layout, err = host.Split(200, 50, len(specs))
	must(r.t, err)
	made, err := r.host.Create(context.Background(), host.CreateSession{Name: name, Dir: "/src", Windows: []host.WindowSpec{w}})
	must(r.t, err)
	var out []host.Terminal
	for i, st := range made.Windows[0] {
		must(r.t, st.Err)
		if specs[i].integration != "" && specs[i].mode == host.Program {
			must(r.t, r.host.SetPID(st.Terminal, r.sleeper()))
		}
		out = append(out, st.Terminal)
	}
	return out
}

func agent(id string) spec {
	return spec{integration: "demo", id: id, mode: host.Program, after: "shell"}
}

func (r *rig) live(t host.Terminal) host.Pane {
	r.t.Helper()
	w, err := r.host.Snapshot(context.Background())
	must(r.t, err)
	for _, s := range w.Sessions {
		for _, win := range s.Windows {
			for _, p := range win.Panes {
				if p.Terminal == t {
					return p
				}
			}
		}
	}
	r.t.Fatalf("no pane %s", t.ID)
	return host.Pane{}
}

// proves says which conversation the agent of a terminal has open.
func (r *rig) proves(t host.Terminal, id string) {
	r.answers[r.live(t).PID] = owner.Answer{Kind: owner.Confirmed, ID: id, By: "a test"}
}

func (r *rig) record(t host.Terminal) string {
	r.t.Helper()
	raw, ok := r.live(t).Meta[metadata.KeyAgentSession]
	if !ok {
		return ""
	}
	rec, err := metadata.DecodeAgentSession(raw)
	must(r.t, err)
	return rec.NativeID
}

func (r *rig) facts(t host.Terminal) metadata.LaunchFacts {
	r.t.Helper()
	f, err := metadata.DecodeLaunchFacts(r.live(t).Meta[metadata.KeyAgentLaunch])
	must(r.t, err)
	return f
}

func (r *rig) look() map[host.Terminal]Pane {
	r.t.Helper()
	_, panes, err := Look(context.Background(), r.req)
	must(r.t, err)
	out := map[host.Terminal]Pane{}
	for _, p := range panes {
		out[p.Terminal] = p
	}
	return out
}

func (r *rig) claimed(id string) *owner.Claim {
	r.t.Helper()
	list, err := r.req.Claims.List()
	must(r.t, err)
	for _, c := range list {
		if c.Identity.NativeID == id {
			return &c
		}
	}
	return nil
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
