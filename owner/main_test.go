//go:build linux

package owner

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/metadata"
)

// The test binary plays every process that is looked at: roleEnv says which.
const roleEnv = "OWNER_TEST_ROLE"

// part is what an agent does, from the environment.
type part struct {
	Locks     []string   // files to hold open
	Files     []string   // registry files to write: a path, "=", the content; PID, START and NOW are filled in
	IgnoreHUP bool       // and the end of its terminal
	IgnoreAll bool       // SIGTERM too
	Child     *part      // a process that it hands its arguments to
	As        []string   // of a Child: the whole vector, where it is not its parent's
	Nested    [][]string // programs that it starts with other arguments, doing Inner
	Inner     *part
}

func TestMain(m *testing.M) {
	role := os.Getenv(roleEnv)
	os.Unsetenv(roleEnv)
	switch role {
	case "":
		os.Exit(m.Run())
	case "agent":
		os.Exit(agent(os.Getenv("PART")))
	case "reserve", "take", "race", "flap":
		os.Exit(claimant(role))
	case "guard":
		os.Exit(gatekeeper())
	}
	os.Exit(2)
}

// ready says on descriptor 3 that the part is on stage.
func ready(text string) { _, _ = os.NewFile(3, "ready").WriteString(text + "\n") }

func agent(spec string) int {
	var p part
	if err := json.Unmarshal([]byte(spec), &p); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if p.IgnoreHUP {
		signal.Ignore(syscall.SIGHUP)
	}
	if p.IgnoreAll {
		signal.Ignore(syscall.SIGTERM)
	}
	self, err := proc.Self()
	if err != nil {
		return 2
	}
	fill := strings.NewReplacer("PID", strconv.Itoa(self.PID), "START", strconv.FormatUint(self.Start, 10), "NOW", strconv.FormatInt(time.Now().Unix(), 10))
	for _, path := range p.Locks {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
		defer f.Close()
	}
	for _, file := range p.Files {
		path, content, _ := strings.Cut(file, "=")
		if err := os.WriteFile(fill.Replace(path), []byte(fill.Replace(content)), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
	}
	if p.Child != nil {
		args := os.Args
		if p.Child.As != nil {
			args = p.Child.As
		}
		if err := spawnBelow(args, p.Child); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
	}
	for _, args := range p.Nested {
		if err := spawnBelow(args, p.Inner); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
	}
	ready(strconv.Itoa(self.PID))
	if !p.IgnoreHUP {
		_, _ = io.Copy(io.Discard, os.Stdin)
		return 0
	}
	select {}
}

// spawnBelow starts a child of this process, which stays until its input ends, and waits until
// it is on stage.
func spawnBelow(args []string, p *part) error {
	cmd, _, err := playing(args, p)
	if err != nil {
		return err
	}
	cmd.Stdin = os.Stdin
	_, err = begin(cmd, func() error { return cmd.Start() })
	return err
}

func playing(args []string, p *part) (*exec.Cmd, string, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	spec, err := json.Marshal(p)
	if err != nil {
		return nil, "", err
	}
	cmd := exec.Command(exe)
	cmd.Args = args
	cmd.Env = append(os.Environ(), roleEnv+"=agent", "PART="+string(spec))
	cmd.Stderr = os.Stderr
	return cmd, exe, nil
}

// begin starts a command and reads its first word.
func begin(cmd *exec.Cmd, start func() error) (string, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer r.Close()
	cmd.ExtraFiles = []*os.File{w}
	err = start()
	w.Close()
	if err != nil {
		return "", err
	}
	word, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("%v never came on stage: %w", cmd.Args, err)
	}
	return strings.TrimSpace(word), nil
}

// fake is a running agent.
type fake struct {
	Process
	cmd *exec.Cmd
	in  io.Closer // closing it ends one that does not ignore hangups
	tty *os.File
}

func (f *fake) kill(t *testing.T) {
	t.Helper()
	if err := f.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = f.cmd.Wait()
}

// enact starts an agent in a process session of its own, like a pane does; with a terminal if
// onTTY. Everything in that session is killed after the test.
func enact(t *testing.T, env []string, args []string, p part, onTTY bool) *fake {
	t.Helper()
	cmd, _, err := playing(args, &p)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(cmd.Env, env...)
	return stage(t, cmd, onTTY)
}

// enactScript starts a shell's script in a process session of its own; what comes on stage is what
// the script starts as an agent.
func enactScript(t *testing.T, env []string, args []string) *fake {
	t.Helper()
	cmd := exec.Command("sh", args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	return stage(t, cmd, false)
}

func stage(t *testing.T, cmd *exec.Cmd, onTTY bool) *fake {
	t.Helper()
	var err error
	f := &fake{cmd: cmd}
	word, err := begin(cmd, func() error {
		if onTTY {
			f.tty, err = pty.StartWithAttrs(cmd, nil, &syscall.SysProcAttr{Setsid: true, Setctty: true})
			f.in = f.tty
			return err
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if f.in, err = cmd.StdinPipe(); err != nil {
			return err
		}
		return cmd.Start()
	})
	if cmd.Process != nil {
		sid := cmd.Process.Pid
		t.Cleanup(func() {
			table, err := proc.ReadTable()
			if err != nil {
				t.Error(err)
				return
			}
			for _, i := range table.All() {
				if i.Session == sid {
					_ = proc.Signal(i.ID(), syscall.SIGKILL)
				}
			}
			_ = cmd.Wait()
			_ = f.in.Close()
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	if word != strconv.Itoa(cmd.Process.Pid) && cmd.Args[0] != "sh" {
		t.Fatalf("%q came on stage", word)
	}
	i, err := proc.Stat(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	f.Process = processOf(i)
	return f
}

// owns writes the claim that the fake would have taken before it became the agent.
func owns(t *testing.T, c Claims, id metadata.Identity, f *fake) {
	t.Helper()
	if err := c.Rebuild(id, f.Process, Place{Host: "tmux-test", Terminal: "%7"}); err != nil {
		t.Fatal(err)
	}
}

func observer(t *testing.T) *Observer {
	t.Helper()
	o, err := NewObserver()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// until polls the thing itself.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("in vain: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func claims(t *testing.T) Claims { return Claims{Dir: filepath.Join(t.TempDir(), "run", "claims")} }

const (
	idA = "11111111-1111-4111-8111-111111111111"
	idB = "22222222-2222-4222-8222-222222222222"
)

func identity(integration, id string) metadata.Identity {
	return metadata.Identity{IntegrationID: integration, NativeID: id}
}

func parse(t *testing.T, text string) *integrations.Template {
	t.Helper()
	tmpl, _, err := integrations.Parse("test.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

// The templates of the tests have the shapes of template-drafts: one registry file a process
// (claude), open lock files (codex), a registry that names processes inside (qwen), both in the
// path (copilot), hooks alone (gemini).
func pidFileAgent(t *testing.T) *integrations.Template {
	return parse(t, `
schema_version = 1
id = "onefile"
kind = "terminal-agent"
[launch]
command = ["onefile"]
[session_identity]
mode = "native-or-phux"
restore = "external-cli"
native_env = "PHUX_ONE_SESSION_ID"
id_pattern = "uuid4"
resume_args = ["--resume", "${PHUX_AGENT_SESSION_ID}"]
fresh_args = ["--session-id", "${PHUX_AGENT_SESSION_ID}"]
[transcript]
root = "${STORE}"
paths = ["projects/*/${PHUX_AGENT_SESSION_ID}.jsonl"]
[[observe]]
kind = "file"
path = "${root}/sessions/${PID}.json"
id = "/sessionId"
start = "/procStart"
start_unit = "ticks"
where = { "/entrypoint" = "cli" }
[agent_identity]
name = "onefile"
kind = "onefile"
`)
}

func lockAgent(t *testing.T) *integrations.Template {
	return parse(t, `
schema_version = 1
id = "locker"
kind = "terminal-agent"
[launch]
command = ["locker", "--no-daemon"]
[session_identity]
mode = "native-or-phux"
restore = "external-cli"
native_env = "PHUX_LOCK_SESSION_ID"
id_pattern = "uuid"
resume_args = ["resume", "${PHUX_AGENT_SESSION_ID}"]
[transcript]
root = "${STORE}"
paths = ["sessions/*/rollout-*-${PHUX_AGENT_SESSION_ID}.jsonl"]
[[observe]]
kind = "open-file"
path = "${root}/locks/${PHUX_AGENT_SESSION_ID}.lock"
[[observe]]
kind = "hook"
on = ["Stop"]
id = "/session_id"
[agent_identity]
name = "locker"
kind = "locker"
`)
}

func runtimeAgent(t *testing.T) *integrations.Template {
	return parse(t, `
schema_version = 1
id = "runtimer"
kind = "terminal-agent"
[launch]
command = ["runtimer"]
[session_identity]
mode = "native-or-phux"
restore = "external-cli"
native_env = "PHUX_RUN_SESSION_ID"
id_pattern = "uuid4"
resume_args = ["--resume", "${PHUX_AGENT_SESSION_ID}"]
[transcript]
root = "${STORE}"
paths = ["projects/*/chats/${PHUX_AGENT_SESSION_ID}.jsonl"]
[[observe]]
kind = "file"
path = "${root}/projects/*/chats/${PHUX_AGENT_SESSION_ID}.runtime.json"
pid = "/pid"
start = "/started_at"
start_unit = "s"
[agent_identity]
name = "runtimer"
kind = "runtimer"
`)
}

func inuseAgent(t *testing.T) *integrations.Template {
	return parse(t, `
schema_version = 1
id = "inuser"
kind = "terminal-agent"
[launch]
command = ["inuser"]
[session_identity]
mode = "native-or-phux"
restore = "external-cli"
native_env = "PHUX_USE_SESSION_ID"
id_pattern = "uuid4"
resume_args = ["--resume", "${PHUX_AGENT_SESSION_ID}"]
[transcript]
root = "${STORE}"
paths = ["state/${PHUX_AGENT_SESSION_ID}/events.jsonl"]
[[observe]]
kind = "file"
path = "${root}/state/${PHUX_AGENT_SESSION_ID}/inuse.${PID}.lock"
[agent_identity]
name = "inuser"
kind = "inuser"
`)
}

func hookAgent(t *testing.T) *integrations.Template {
	return parse(t, `
schema_version = 1
id = "hooked"
kind = "terminal-agent"
[launch]
command = ["hooked"]
survives_hangup = true
[session_identity]
mode = "native-or-phux"
restore = "external-cli"
native_env = "PHUX_HOOK_SESSION_ID"
id_pattern = "uuid4"
resume_args = ["--resume", "${PHUX_AGENT_SESSION_ID}"]
fresh_args = ["--session-id", "${PHUX_AGENT_SESSION_ID}"]
[transcript]
root = "${STORE}"
paths = ["tmp/*/chats/session-*-${PHUX_AGENT_SESSION_ID:8}.jsonl"]
head_id = "/sessionId"
contains = '"type":"gemini"'
[[observe]]
kind = "hook"
on = ["SessionStart"]
id = "/session_id"
[agent_identity]
name = "hooked"
kind = "hooked"
`)
}

// store makes a transcript store with the directories of all templates, and the environment
// that names it.
func store(t *testing.T) (dir string, environ []string, env integrations.Env) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "a [store]*")
	for _, sub := range []string{"sessions/x", "locks", "projects/-src/chats", "state/" + idA, "state/" + idB, "tmp/p/chats"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir, []string{"STORE=" + dir}, func(name string) (string, bool) {
		if name == "STORE" {
			return dir, true
		}
		return "", false
	}
}
