package phuxagent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/embedded"
	"github.com/phux-agent/phux-agent/host/tmux"
	"github.com/phux-agent/phux-agent/internal/fakeagent"
	"github.com/phux-agent/phux-agent/metadata"
)

// reporter is a place from which a hook can be called. Its script has the call in place of CALL,
// the payload's file in $1, and writes $1.done once the call was made.
type reporter struct {
	name   string
	pane   string // in whose agent or shell the script is started: mine, theirs, shell
	about  string // whose record the report says that it is about
	script string
	ours   bool // it is the pane's own agent that says it
}

var reporters = []reporter{
	{"own process", "mine", "mine", `echo >"$1.done"; exec CALL`, true},
	{"child", "mine", "mine", `CALL; echo >"$1.done"`, true},
	{"grandchild", "mine", "mine", `sh -c 'sh -c "CALL; :" sh "$1"; :' sh "$1"; echo >"$1.done"`, true},
	{"other pane", "theirs", "mine", `CALL; echo >"$1.done"`, false},
	{"a pane's shell", "shell", "mine", `CALL; echo >"$1.done"`, false},
	// What a daemon is by the time that it speaks: nobody of ours stands above it.
	{"daemon", "mine", "mine", `setsid sh -c 'while grep -q "^PPid:[^0-9]*$2\$" /proc/$$/status; do sleep 0.01; done; CALL; echo >"$1.done"' sh "$1" $$ &`, false},
	// Its process has the number that the record's own had.
	{"reused pid", "theirs", "shell", `CALL; echo >"$1.done"`, false},
}

// TestIdentityMatrix: what the start of a session can mean, told from every place from which it can
// be told, on both hosts. The pane's own agent is believed, and nobody else: no report moves what
// another pane holds, and whoever carries the pane's whole environment is not its agent by that.
func TestIdentityMatrix(t *testing.T) {
	for _, kind := range []string{tmux.Kind, embedded.Kind} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			m := newMatrix(t, kind)
			for _, r := range reporters {
				for _, source := range []string{"startup", "compact", "clear", "fork", "resume"} {
					m.tell(r, source)
				}
			}
			if m.told != 5*len(reporters) {
				t.Errorf("%d reports", m.told)
			}
		})
	}
}

// matrix is a host with three panes: ours, a neighbour's, and a shell whose record is of an agent
// that has ended, and whose number the neighbour's agent has now. Each agent is one that proves
// nothing by itself.
type matrix struct {
	*stage
	flags []string // of phux-agent
	look  []string // of tmuxOut
	host  host.Host
	panes map[string]string // by name, its place
	ids   map[string]string // by name, what its record is to be
	self  string
	first string // the conversation that mine was born with
	told  int
}

func newMatrix(t *testing.T, kind string) *matrix {
	m := &matrix{stage: newStage(t), panes: map[string]string{}, ids: map[string]string{}}
	run := filepath.Join(m.vars["XDG_RUNTIME_DIR"], "phux-agent")
	self, err := exec.LookPath("phux-agent")
	if err != nil {
		t.Fatal(err)
	}
	m.self = self // a login shell has another PATH
	if kind == embedded.Kind {
		m.flags, m.look = []string{"--host", embedded.Kind}, []string{onEmbedded}
		m.host, err = embedded.New(embedded.Options{
			Name: embedded.DefaultName, Socket: embedded.SocketPath(run, embedded.DefaultName), Getenv: m.Getenv, Command: []string{self},
		})
	} else {
		m.host, err = tmux.New(tmux.Options{Self: self, RuntimeDir: run, Getenv: m.Getenv})
	}
	if err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(m.vars["HOME"], ".gemini", "settings.json")
	if err := errors.Join(os.MkdirAll(filepath.Dir(settings), 0o700), os.WriteFile(settings, []byte(`{"general":{"sessionRetention":{"enabled":false}}}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"mine", "theirs"} {
		var got struct {
			Record struct {
				NativeID string `json:"native_id"`
			}
		}
		out := m.must(m.work, append(slices.Clone(m.flags), "launch", "gemini-cli", "--session", "work", "--cwd", m.work, "--json")...)
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err)
		}
		m.panes[name], m.ids[name] = fmt.Sprintf("work:%d.0", i), got.Record.NativeID
		type1(m, m.look, m.panes[name], "hello")
	}
	m.first = m.ids["mine"]
	shell := host.Spawn{Session: "work", Background: true, Pane: host.PaneSpec{Start: host.Start{Mode: host.Shell, Dir: m.work}}}
	if _, err := m.host.Spawn(context.Background(), shell); err != nil {
		t.Fatal(err)
	}
	m.panes["shell"], m.ids["shell"] = "work:2.0", uuid.NewString()
	var pid int
	for _, e := range m.logged() {
		if e.ID == m.ids["theirs"] {
			pid = e.PID
		}
	}
	facts := metadata.LaunchFacts{PaneKey: metadata.NewPaneKey(), PluginID: "phux.agents", IntegrationID: "gemini-cli", OwnerPID: pid, OwnerStart: startOf(t, pid) - 1}
	record := metadata.AgentSession{PluginID: "phux.agents", IntegrationID: "gemini-cli", NativeID: m.ids["shell"]}
	meta := map[metadata.Key][]byte{}
	var bad [2]error
	meta[metadata.KeyAgentLaunch], bad[0] = facts.Encode()
	meta[metadata.KeyAgentSession], bad[1] = record.Encode()
	if err := errors.Join(bad[:]...); err != nil {
		t.Fatal(err)
	}
	if err := m.host.(host.Binder).Bind(context.Background(), m.pane("shell").Terminal, pid, facts.OwnerStart, meta); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *matrix) logged() []fakeagent.Event {
	m.Helper()
	events, err := readLog(m.Getenv(fakeagent.LogEnv))
	if err != nil {
		m.Fatal(err)
	}
	return events
}

func (m *matrix) pane(name string) host.Pane {
	m.Helper()
	w, err := m.host.Snapshot(context.Background())
	if err != nil {
		m.Fatal(err)
	}
	for _, s := range w.Sessions {
		for _, win := range s.Windows {
			for _, p := range win.Panes {
				if fmt.Sprintf("%s:%d.%d", s.Name, win.Index, p.Index) == m.panes[name] {
					return p
				}
			}
		}
	}
	m.Fatalf("no pane %s", m.panes[name])
	return host.Pane{}
}

// tell makes one report and compares every record with what it is to be.
func (m *matrix) tell(r reporter, source string) {
	m.Helper()
	m.told++
	id := uuid.NewString()
	switch source {
	case "startup", "compact":
		id = m.ids[r.about]
	case "resume":
		id = m.first
	}
	payload := filepath.Join(m.work, fmt.Sprintf("payload-%d", m.told))
	b, err := json.Marshal(map[string]string{"session_id": id, "hook_event_name": "SessionStart", "source": source, "cwd": m.work})
	if err != nil {
		m.Fatal(err)
	}
	if err := os.WriteFile(payload, b, 0o600); err != nil {
		m.Fatal(err)
	}
	script := filepath.Join(m.work, fmt.Sprintf("report-%d", m.told))
	mine := m.pane(r.about).Terminal.ID
	// Whoever tells it says that it is that pane.
	text := "#!/bin/sh\nexport TMUX_PANE='" + mine + "' " + embedded.EnvTerminal + "='" + mine + "'\n" +
		strings.ReplaceAll(r.script, "CALL", m.self+` hook gemini-cli SessionStart <"$1"`) + "\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		m.Fatal(err)
	}
	where := r.pane
	var earlier string
	for try := 1; ; try++ {
		earlier = m.hookLog()
		if where == "shell" {
			for _, keys := range [][]string{{"-l", "--", script + " " + payload}, {"Enter"}} {
				if out, err := tmuxOut(m, slices.Concat(m.look, []string{"send-keys", "-t", m.panes[where]}, keys)...); err != nil {
					m.Fatalf("send-keys: %v: %s", err, out)
				}
			}
		} else {
			type1(m, m.look, m.panes[where], "/run "+script+" "+payload)
			type1(m, m.look, m.panes[where], fmt.Sprintf("turn %d.%d", m.told, try)) // which comes after it
		}
		await(m, "the end of the report", func() (bool, string) { _, err := os.Stat(payload + ".done"); return err == nil, r.name })
		if late := strings.Count(m.hookLog(), lateWord); late == strings.Count(earlier, lateWord) || try == 20 {
			break
		}
		// A hook gives up after a second, for its agent waits for it. A busy machine takes longer.
		if err := os.Remove(payload + ".done"); err != nil {
			m.Fatal(err)
		}
	}
	before := strings.Count(earlier, refusedWord)
	what := fmt.Sprintf("%s from %s", source, r.name)
	switch {
	case r.ours:
		m.ids["mine"] = id
	case where == "theirs" && id != m.ids["mine"]:
		// It is the other pane's agent that says it, so it is about that pane, and nobody holds it.
		m.ids["theirs"] = id
	default:
		// Refused, in words for the user alone.
		words := refusedWord
		if r.name == "daemon" && m.look == nil {
			// It carries the address of a server that is not above it, which is not even asked.
			words = refusedWord + " the environment names a server that does not stand above this process"
		}
		before = min(before, strings.Count(earlier, words))
		await(m, "a refusal of "+what, func() (bool, string) { return strings.Count(m.hookLog(), words) > before, m.hookLog() })
	}
	for name, want := range m.ids {
		p := m.pane(name)
		rec, err := metadata.DecodeAgentSession(p.Meta[metadata.KeyAgentSession])
		if err != nil {
			m.Errorf("%s: %s: %v", what, name, err)
			continue
		}
		if rec.NativeID != want {
			m.Errorf("%s: the record of %s is %s, want %s", what, name, rec.NativeID, want)
			m.ids[name] = rec.NativeID
		}
	}
}

const (
	refusedWord = ": refused:"
	lateWord    = "it did not come to an end in time"
)

func (m *matrix) hookLog() string {
	b, _ := os.ReadFile(filepath.Join(m.vars["HOME"], ".local", "state", "phux-agent", "hook.log"))
	return string(b)
}

func startOf(t testing.TB, pid int) uint64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(b)[strings.LastIndexByte(string(b), ')')+1:])
	var n uint64
	if _, err := fmt.Sscan(f[19], &n); err != nil {
		t.Fatal(err)
	}
	return n
}
