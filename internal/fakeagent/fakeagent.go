// Package fakeagent holds stand-ins for the agent CLIs, for tests: programs that take the same
// flags, keep the same stores, and refuse in the same words and with the same exit codes as the
// real ones did when they were measured (the versions are named at each). They read lines from
// their terminal as prompts, and log what was run, by whom and where.
//
// Commands on the prompt, besides the CLI's own (/clear, /new, /exit): "/die N" exits with N,
// "/run ARGS…" runs a program from inside the agent, as its shell tool would. The fake claude also
// has a turn in parts, as its hooks tell of them: /busy, /ask (for a permission), /allow, /stop.
package fakeagent

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
	"time"

	"github.com/google/uuid"
)

// LogEnv names the file that every fake appends its Event lines to.
const LogEnv = "FAKE_AGENT_LOG"

// Event is one line of the log.
type Event struct {
	Event string            `json:"event"` // start, prompt, rotate, hook, exit, refuse
	Agent string            `json:"agent"`
	ID    string            `json:"id"`
	Argv  []string          `json:"argv"`
	Cwd   string            `json:"cwd"`
	PID   int               `json:"pid"`
	Start string            `json:"start"` // of the process, in ticks since boot: a pid may be given anew
	Pane  string            `json:"pane"`
	Users []string          `json:"users,omitempty"` // the conversation's prompts so far
	Env   map[string]string `json:"env,omitempty"`
}

// Names lists the fakes by program name.
func Names() []string {
	return []string{"claude", "codex", "gemini", "opencode", "qwen", "copilot", "pi", "kimi", "tui"}
}

// run is one running fake.
type run struct {
	name string
	args []string
	in   io.Reader
	out  io.Writer
	cwd  string
	id   string
	// users are the prompts of the conversation, old ones included: what the model would see.
	users []string
}

// Main runs the fake of that name and returns its exit code.
func Main(name string, args []string, in io.Reader, out io.Writer) int {
	cwd, err := os.Getwd()
	if err != nil {
		fmt.Fprintf(out, "%s: %v\n", name, err)
		return 1
	}
	r := &run{name: name, args: args, in: in, out: out, cwd: cwd}
	for _, a := range args {
		if a == "--version" {
			format := map[string]string{"claude": "%s (Claude Code)\n", "codex": "codex-cli %s\n"}[name]
			if format == "" {
				format = "%s\n"
			}
			fmt.Fprintf(out, format, versions[name])
			return 0
		}
	}
	if os.Getenv("FAKE_AGENT_REJECTS") != "" && len(args) > 0 {
		// A later version that has dropped an option, and says so as they do.
		return r.refuse(2, "error: unknown option %q", args[0])
	}
	if delay, err := time.ParseDuration(os.Getenv("FAKE_AGENT_SLOW")); err == nil {
		// A slow start is part of what is tested, not a synchronisation.
		time.Sleep(delay)
	}
	switch name {
	case "claude":
		return r.claude()
	case "codex":
		return r.codex()
	case "gemini":
		return r.gemini()
	case "opencode":
		return r.opencode()
	case "qwen":
		return r.qwen()
	case "copilot":
		return r.copilot()
	case "pi":
		return r.pi()
	case "kimi":
		return r.kimi()
	case "tui":
		return r.tui()
	}
	fmt.Fprintf(out, "no such fake %q\n", name)
	return 1
}

// versions are those of research: what the fakes were modelled on.
var versions = map[string]string{
	"claude": "2.1.332", "codex": "0.171.0", "gemini": "0.61.0", "opencode": "1.18.33",
	"qwen": "0.24.4", "copilot": "1.0.102", "pi": "1.6.0", "kimi": "2.1.0",
}

// Started is when a process started, as /proc says it; empty where there is none.
func Started(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The name, in brackets, may hold anything; the start is the 22nd field.
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(f) < 20 || f[0] == "Z" {
		return ""
	}
	return f[19]
}

func (r *run) log(event string) {
	path := os.Getenv(LogEnv)
	if path == "" {
		return
	}
	env := map[string]string{}
	for _, kv := range os.Environ() {
		k, v, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(k, "PHUX_") || strings.HasPrefix(k, "CLAUDE") || strings.HasPrefix(k, "FAKE_SHOW_") || k == "PATH" {
			env[k] = v
		}
	}
	b, err := json.Marshal(Event{
		Event: event, Agent: r.name, ID: r.id, Argv: append([]string{r.name}, r.args...),
		Cwd: r.cwd, PID: os.Getpid(), Start: Started(os.Getpid()), Pane: os.Getenv("TMUX_PANE"), Users: r.users, Env: env,
	})
	if err != nil {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.Write(append(b, '\n')) // one write: O_APPEND keeps lines whole
}

// refuse says why the CLI does not start, as the CLI says it.
func (r *run) refuse(code int, format string, args ...any) int {
	fmt.Fprintf(r.out, format+"\n", args...)
	r.log("refuse")
	return code
}

// option returns the value of the first of the named options: "--x v" and "--x=v".
func (r *run) option(names ...string) (string, bool) {
	for i, a := range r.args {
		for _, n := range names {
			if a == n {
				if i+1 < len(r.args) {
					return r.args[i+1], true
				}
				return "", true
			}
			if v, ok := strings.CutPrefix(a, n+"="); ok && strings.HasPrefix(n, "--") {
				return v, true
			}
		}
	}
	return "", false
}

func (r *run) has(name string) bool {
	for _, a := range r.args {
		if a == name {
			return true
		}
	}
	return false
}

// session is how a CLI reacts on its prompt.
type session struct {
	prompt func(text string) error // a turn: the conversation becomes durable
	// commands are the CLI's own slash commands; "/exit" exists always.
	commands map[string]func(arg string) error
	leave    func() // clean exit and hangup
	prompted func() // before a turn, as a hook is told
	replied  func() // after a turn, likewise
	ignore   bool   // survives SIGHUP
}

// loop is the TUI: it reads lines until /exit, and returns the exit code.
func (r *run) loop(s session) int {
	r.log("start")
	leave := func() {
		if s.leave != nil {
			s.leave()
		}
	}
	sig := make(chan os.Signal, 4)
	signal.Notify(sig, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT)
	lines := make(chan string)
	eof := make(chan struct{})
	go func() {
		sc := bufio.NewScanner(r.in)
		for sc.Scan() {
			lines <- sc.Text()
		}
		close(eof)
	}()
	ended := eof
	fmt.Fprintf(r.out, "%s ready id=%s turns=%d\n> ", r.name, r.id, len(r.users))
	for {
		select {
		case got := <-sig:
			switch {
			case got == syscall.SIGINT:
			case got == syscall.SIGHUP && s.ignore:
			case got == syscall.SIGHUP:
				if linger, err := time.ParseDuration(os.Getenv("FAKE_AGENT_LINGER")); err == nil {
					time.Sleep(linger) // a slow end is part of what is tested
				}
				leave()
				return 129
			default:
				leave()
				return 143
			}
		case <-ended:
			if s.ignore {
				ended = nil // the terminal is gone; the process stays
				continue
			}
			leave()
			return 0
		case line := <-lines:
			word, arg, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch {
			case word == "":
			case word == "/exit":
				leave()
				r.log("exit")
				fmt.Fprintf(r.out, "bye id=%s\n", r.id)
				return 0
			case word == "/die":
				n, _ := strconv.Atoi(arg)
				fmt.Fprintf(r.out, "%s died on purpose\n", r.name)
				return n
			case word == "/run":
				r.nested(arg)
			case s.commands[word] != nil:
				if err := s.commands[word](arg); err != nil {
					fmt.Fprintf(r.out, "%v\n", err)
				} else {
					r.log("rotate")
					fmt.Fprintf(r.out, "%s now id=%s\n", r.name, r.id)
				}
			default:
				if s.prompted != nil {
					s.prompted()
				}
				if err := s.prompt(line); err != nil {
					fmt.Fprintf(r.out, "%v\n", err)
					break
				}
				r.users = append(r.users, line)
				r.log("prompt")
				fmt.Fprintf(r.out, "reply to %q turns=%d\n", line, len(r.users))
				if s.replied != nil {
					s.replied()
				}
			}
			fmt.Fprint(r.out, "> ")
		}
	}
}

// nested runs a program as an agent's shell tool does: below this process, with its environment
// and the markers that agents leave in it.
func (r *run) nested(line string) {
	argv := strings.Fields(line)
	if len(argv) == 0 {
		return
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "CLAUDECODE=1", "CLAUDE_CODE_CHILD_SESSION=1")
	out, err := cmd.CombinedOutput()
	fmt.Fprintf(r.out, "%s(run: %v)\n", out, err)
}

// once runs one headless turn.
func (r *run) once(prompt func(string) error, text string) int {
	r.log("start")
	if err := prompt(text); err != nil {
		return r.refuse(1, "%v", err)
	}
	r.users = append(r.users, text)
	r.log("prompt")
	fmt.Fprintf(r.out, "reply to %q\n", text)
	return 0
}

// home expands a directory that an environment variable may move.
func home(env, rest string) string {
	if env != "" {
		if v := os.Getenv(env); v != "" {
			return v
		}
	}
	return filepath.Join(os.Getenv("HOME"), rest)
}

func slug(dir string) string { return strings.ReplaceAll(dir, "/", "-") }

func isUUID(s string) bool { return uuid.Validate(s) == nil && len(s) == 36 }

func appendLine(path string, v any) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(append(b, '\n'))
	return err
}

// turns reads the prompts that a transcript holds. ok is false where it holds no line.
func turns(path string) (users []string, ok bool) {
	b, err := os.ReadFile(path)
	if err != nil || len(b) == 0 {
		return nil, false
	}
	for _, line := range strings.Split(string(b), "\n") {
		var v struct{ User string }
		if json.Unmarshal([]byte(line), &v) == nil && v.User != "" {
			users = append(users, v.User)
		}
	}
	return users, true
}

func glob1(pattern string) string {
	m, _ := filepath.Glob(pattern)
	if len(m) == 0 {
		return ""
	}
	return m[0]
}

// ticks is this process's start time, field 22 of /proc/self/stat.
func ticks(pid int) uint64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	s := string(b)
	f := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	if len(f) < 20 {
		return 0
	}
	n, _ := strconv.ParseUint(f[19], 10, 64)
	return n
}

// wrapped runs the fake again as a child, as the CLIs do whose npm wrapper starts a native
// program or a second node. It reports true in the child, where the agent goes on.
func (r *run) wrapped(ignoreHangup bool) (child bool, code int) {
	if os.Getenv("FAKE_AGENT_CHILD") == r.name {
		os.Unsetenv("FAKE_AGENT_CHILD")
		return true, 0
	}
	if ignoreHangup {
		signal.Ignore(syscall.SIGHUP)
	}
	exe, err := os.Executable()
	if err != nil {
		return false, r.refuse(1, "%v", err)
	}
	cmd := exec.Command(exe, r.args...)
	cmd.Args[0] = r.name
	cmd.Env = append(os.Environ(), "FAKE_AGENT_CHILD="+r.name)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r.in, r.out, r.out
	if err := cmd.Run(); err != nil {
		if x, ok := err.(*exec.ExitError); ok && x.ExitCode() >= 0 {
			return false, x.ExitCode()
		}
		return false, 1
	}
	return false, 0
}
