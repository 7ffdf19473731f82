package restore

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
	"github.com/phux-agent/phux-agent/plugin"
)

const claudeTOML = `
schema_version = 1
id = "claude-code"
kind = "terminal-agent"
[launch]
command = ["claude"]
scrub_env = ["CLAUDECODE"]
[session_identity]
mode = "native-or-phux"
restore = "external-cli"
native_env = "PHUX_CLAUDE_SESSION_ID"
id_pattern = "uuid4"
resume_args = ["--resume", "${PHUX_AGENT_SESSION_ID}"]
fresh_args = ["--session-id", "${PHUX_AGENT_SESSION_ID}"]
never_prompted = "fresh"
unknown_id = "exits"
never = ["--continue"]
[transcript]
root = "${CLAUDE_CONFIG_DIR:-~/.claude}"
paths = ["projects/*/${PHUX_AGENT_SESSION_ID}.jsonl"]
[agent_identity]
name = "claude"
kind = "claude"
`

const codexTOML = `
schema_version = 1
id = "codex"
kind = "terminal-agent"
[launch]
command = ["codex", "--no-daemon"]
[session_identity]
mode = "native-or-phux"
restore = "external-cli"
id_pattern = "uuid"
resume_args = ["resume", "${PHUX_AGENT_SESSION_ID}"]
never_prompted = "lost"
unknown_id = "exits"
[transcript]
root = "${CODEX_HOME:-~/.codex}"
paths = ["sessions/*/*/*/rollout-*-${PHUX_AGENT_SESSION_ID}.jsonl"]
`

const blankTOML = `
schema_version = 1
id = "cline"
kind = "terminal-agent"
[launch]
command = ["cline"]
[session_identity]
mode = "native-or-phux"
restore = "external-cli"
resume_args = ["--id", "${PHUX_AGENT_SESSION_ID}"]
unknown_id = "blank"
`

const geminiTOML = `
schema_version = 1
id = "gemini-cli"
kind = "terminal-agent"
[launch]
command = ["gemini"]
survives_hangup = true
[session_identity]
mode = "native-or-phux"
restore = "external-cli"
id_pattern = "uuid4"
resume_args = ["--resume", "${PHUX_AGENT_SESSION_ID}"]
fresh_args = ["--session-id", "${PHUX_AGENT_SESSION_ID}"]
never_prompted = "lost"
[[require]]
file = "~/.gemini/settings.json"
json = "/general/sessionRetention/enabled"
equals = false
default = true
at = "restore"
consequence = "restoring two panes of one project deletes the first one's conversation"
`

// The same id again, as long as nothing is there under it.
var untilTOML = strings.NewReplacer(`"claude-code"`, `"until"`, `never_prompted = "fresh"`, `never_prompted = "fresh-until-file"`).Replace(claudeTOML)

const plainTOML = `
schema_version = 1
id = "plain"
kind = "terminal-agent"
[launch]
command = ["plain"]
`

func parse(t testing.TB, text string) *integrations.Template {
	t.Helper()
	tpl, _, err := integrations.Parse("test.toml", []byte(text))
	if err != nil {
		t.Fatalf("parse the test's template: %v", err)
	}
	return tpl
}

// Ids of the tests' conversations: of this run alone, for whoever has one among his arguments is
// suspected to run it, whatever test he belongs to.
var id1, id2, id3, id4, id5 = uuid.NewString(), uuid.NewString(), uuid.NewString(), uuid.NewString(), uuid.NewString()

const testKey = "abcdefghijklmnopqrstuvwxyz"

// world is a plan's whole input, to be changed by a case.
type world struct {
	t   testing.TB
	f   *Facts
	src Source
	o   Options
}

// newWorld is one session of an agent and a shell, with everything as it should be.
func newWorld(t testing.TB) *world {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	w := &world{t: t}
	w.f = &Facts{
		Now: now, Machine: "m1", Home: "/home/u", Path: "/usr/bin:/bin",
		Host:   host.Info{Kind: "memory", Version: "1", Server: "memory-test", AtomicRecord: true},
		View:   &host.Workspace{},
		Names:  map[string]string{},
		Agents: map[AgentKey]Agent{}, Talks: map[TalkKey]Talk{}, Dirs: map[string]Dir{},
	}
	for _, d := range []string{"/", "/home/u", "/src/a", "/src/b"} {
		w.f.Dirs[d] = Dir{State: DirThere, Own: true}
	}
	w.src = Source{Own: true, Path: "/gen/42", Archive: &archive.Archive{
		SchemaVersion: 2, SavedAt: now.Add(-5 * time.Minute), Generation: 42,
		Host: archive.Host{Kind: "memory", Machine: "m1"},
	}}
	w.src.Archive.Sessions = []archive.Session{{Name: "work", Active: true, Windows: []archive.Window{{
		Name: "api", Index: 1, Active: true,
		Panes: []archive.Pane{w.pane("claude-code", id1), {Cwd: "/src/b", Title: "a shell", Cols: 40, Rows: 24}},
	}}}}
	w.know("claude-code", parse(t, claudeTOML))
	return w
}

// pane is an archived agent's pane, whose conversation was and is there.
func (w *world) pane(integration, id string) archive.Pane {
	w.f.Talks[TalkKey{key(integration), id}] = Talk{Presence: owner.Present, Detail: "seen"}
	return archive.Pane{
		Active: true, Cwd: "/src/a/deeper", Cols: 39, Rows: 24, Program: "node",
		AgentSession: &metadata.AgentSession{PluginID: plugin.FirstParty, IntegrationID: integration, NativeID: id},
		Agent: &archive.Agent{
			Key: testKey, Profile: DefaultProfile, LaunchCwd: "/src/a", Store: "store-1",
			Durability: "present", State: "running", ConfirmedAt: w.f.Now.Add(-time.Hour),
		},
	}
}

func key(integration string) AgentKey {
	return AgentKey{integration, plugin.FirstParty, DefaultProfile}
}

// know makes an integration one that resolves.
func (w *world) know(id string, t *integrations.Template) {
	w.f.Agents[key(id)] = Agent{
		Owner:      plugin.Owner{PluginID: plugin.FirstParty, Root: "/plugins/p", Template: t},
		HasProfile: true, Profile: integrations.Profile{Name: DefaultProfile},
		Program: "/usr/bin/" + t.Launch.Command[0], Store: "store-1",
	}
}

func (w *world) change(k AgentKey, do func(*Agent)) {
	a := w.f.Agents[k]
	do(&a)
	w.f.Agents[k] = a
}

func (w *world) talk(id string, do func(*Talk)) {
	k := TalkKey{key("claude-code"), id}
	v := w.f.Talks[k]
	do(&v)
	w.f.Talks[k] = v
}

func (w *world) session(i int) *archive.Session { return &w.src.Archive.Sessions[i] }

// first is the agent's pane of newWorld.
func (w *world) first() *archive.Pane { return &w.session(0).Windows[0].Panes[0] }

func (w *world) plan() *Plan {
	w.t.Helper()
	p, err := Make(w.src, w.f, w.o)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// swapTo replaces the first pane's agent by another integration's.
func (w *world) swapTo(integration, toml, id string) {
	w.know(integration, parse(w.t, toml))
	*w.first() = w.pane(integration, id)
}

func (w *world) add(name string, panes ...archive.Pane) *archive.Session {
	w.src.Archive.Sessions = append(w.src.Archive.Sessions, archive.Session{Name: name, Windows: []archive.Window{{Name: "w", Panes: panes}}})
	return w.session(len(w.src.Archive.Sessions) - 1)
}

func encode(t testing.TB, rec metadata.AgentSession) []byte {
	t.Helper()
	b, err := rec.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}
