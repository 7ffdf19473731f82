package phuxagent_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/phux-agent/phux-agent/internal/fakeagent"
)

// scene is where a test plays: a testscript, or a stage of a Go test.
type scene interface {
	Getenv(name string) string
	Fatalf(format string, args ...any)
}

// patience bounds every wait of a script: for the thing itself, never for a time.
const patience = 30 * time.Second

// scenery makes a private home, runtime and socket directory below work, sets the variables that
// say so, and returns what takes it all away again.
func scenery(work string, setenv func(k, v string)) (after func(), err error) {
	// Socket paths are bounded (108 bytes), so sockets and the runtime directory live in a
	// short directory of their own.
	short, err := os.MkdirTemp("", "pa")
	if err != nil {
		return nil, err
	}
	home := filepath.Join(work, "home")
	dirs := []string{
		home, filepath.Join(short, "run"), filepath.Join(short, "tmux"),
		// Or the first fish of each home would read every manual page of the machine.
		filepath.Join(home, ".local", "share", "fish", "generated_completions"),
	}
	for _, d := range dirs {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	for k, v := range map[string]string{
		"HOME": home, "XDG_RUNTIME_DIR": filepath.Join(short, "run"), "TMUX_TMPDIR": filepath.Join(short, "tmux"),
		"XDG_CONFIG_HOME": "", "XDG_DATA_HOME": "", "XDG_STATE_HOME": "", "TMUX": "", "TMUX_PANE": "",
		"SHELL": "/bin/sh", "TERM": "screen-256color", "LC_ALL": "C.UTF-8", "ENV": "", "PS1": "$ ",
		fakeagent.LogEnv: filepath.Join(work, "agents.log"), "NO_COLOR": "1",
		// Or each fake that was built with the race detector takes a second to end.
		"GORACE": "atexit_sleep_ms=0", "short": short,
		// Saves come when a script says so; what saves by itself is turned on by the scripts about it.
		"PHUX_AGENT_AUTOSAVE": "off",
	} {
		setenv(k, v)
	}
	if err := os.WriteFile(filepath.Join(home, ".tmux.conf"), []byte("set -g status off\n"), 0o600); err != nil {
		return nil, err
	}
	log := filepath.Join(work, "agents.log")
	return func() {
		sockets, _ := filepath.Glob(filepath.Join(short, "tmux", "tmux-*", "*"))
		for _, s := range sockets {
			_ = exec.Command("tmux", "-S", s, "kill-server").Run() // Best effort.
		}
		endEmbedded(filepath.Join(short, "run"))
		events, _ := readLog(log)
		for _, e := range events {
			if lives(e) {
				_ = syscall.Kill(e.PID, syscall.SIGKILL) // Best effort: a fake that survives hangup.
			}
		}
		_ = os.RemoveAll(short)
	}, nil
}

// lives reports whether the fake that wrote an event still runs. Numbers are given anew, also to
// fakes of the same name.
func lives(e fakeagent.Event) bool { return e.Start != "" && fakeagent.Started(e.PID) == e.Start }

func readLog(path string) ([]fakeagent.Event, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	// A reader may see a line before its end is written: what follows the last newline waits.
	whole := b[:bytes.LastIndexByte(b, '\n')+1]
	var events []fakeagent.Event
	for line := range bytes.Lines(whole) {
		var e fakeagent.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("line %q: %w", line, err)
		}
		events = append(events, e)
	}
	return events, nil
}

func tmuxOut(sc scene, args ...string) (string, error) {
	if len(args) > 0 && args[0] == onEmbedded {
		return embeddedOut(sc, args[1:])
	}
	cmd := exec.Command("tmux", append([]string{"-u"}, args...)...)
	cmd.Env = append(os.Environ(), "TMUX_TMPDIR="+sc.Getenv("TMUX_TMPDIR"), "TMUX=", "HOME="+sc.Getenv("HOME"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func await(sc scene, what string, f func() (bool, string)) {
	deadline := time.Now().Add(patience)
	for tries := 1; ; tries++ {
		if tries%100 == 0 {
			nudge(sc)
		}
		ok, last := f()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			sc.Fatalf("%s did not come within %v; last:\n%s", what, patience, last)
		}
		time.Sleep(20 * time.Millisecond) // polling the thing itself
	}
}

func runningAgents(sc scene, flags []string) []string {
	panes := map[int]string{}
	out, err := tmuxOut(sc, slices.Concat(flags, []string{"list-panes", "-a", "-F", "#{pane_pid} #{session_name}:#{window_index}.#{pane_index}"})...)
	if err == nil {
		for _, l := range strings.Split(strings.TrimSpace(out), "\n") {
			pid, at, _ := strings.Cut(l, " ")
			n, _ := strconv.Atoi(pid)
			panes[n] = at
		}
	}
	events, err := readLog(sc.Getenv(fakeagent.LogEnv))
	check(sc, err)
	last := map[int]fakeagent.Event{}
	for _, e := range events {
		last[e.PID] = e
	}
	var lines []string
	for pid, e := range last {
		if e.Event == "exit" || e.Event == "refuse" || !lives(e) {
			continue
		}
		at := "(no pane)"
		for p := pid; p > 1; p = parent(p) {
			if a, ok := panes[p]; ok {
				at = a
				break
			}
		}
		lines = append(lines, fmt.Sprintf("%s %s %s %s %d", at, e.Agent, e.ID, e.Cwd, len(e.Users)))
	}
	sort.Strings(lines)
	return lines
}

func parent(pid int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	s := string(b)
	f := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	if len(f) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(f[1])
	return n
}

func zombie(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(b), ") Z ")
}

func check(sc scene, err error) {
	if err != nil {
		sc.Fatalf("%v", err)
	}
}

// nudge wakes every tmux server of the scene that missed the end of a pane: Debian's 3.3a can lose
// SIGCHLD. Looking by phux-agent does the same, but what waits for a screen does not look.
func nudge(sc scene) {
	sockets, _ := filepath.Glob(filepath.Join(sc.Getenv("TMUX_TMPDIR"), "tmux-*", "*"))
	for _, socket := range sockets {
		out, err := tmuxOut(sc, "-S", socket, "display-message", "-p", "#{pid}")
		if pid, perr := strconv.Atoi(strings.TrimSpace(out)); err == nil && perr == nil && pid > 1 {
			_ = syscall.Kill(pid, syscall.SIGCHLD) // Best effort.
		}
	}
}

// type1 sends one line to a pane, and waits until a fake agent logged that it got it. Lines that
// no agent logs (/die, /run, /compact) are only sent.
func type1(sc scene, flags []string, target, text string) {
	before, err := readLog(sc.Getenv(fakeagent.LogEnv))
	check(sc, err)
	for _, keys := range [][]string{{"-l", "--", text}, {"Enter"}} {
		if out, err := tmuxOut(sc, slices.Concat(flags, []string{"send-keys", "-t", target}, keys)...); err != nil {
			sc.Fatalf("send-keys: %v: %s", err, out)
		}
	}
	if strings.HasPrefix(text, "/die") || strings.HasPrefix(text, "/run") || strings.HasPrefix(text, "/compact") {
		return
	}
	await(sc, "the agent's word that it got "+text, func() (bool, string) {
		after, err := readLog(sc.Getenv(fakeagent.LogEnv))
		check(sc, err)
		for _, e := range after[len(before):] {
			if e.Event == "prompt" && len(e.Users) > 0 && e.Users[len(e.Users)-1] == text {
				return true, ""
			}
			if strings.HasPrefix(text, "/") && (e.Event == "rotate" || e.Event == "exit") {
				return true, ""
			}
		}
		screen, _ := tmuxOut(sc, slices.Concat(flags, []string{"capture-pane", "-p", "-t", target})...)
		return false, screen
	})
}

// powerCut ends the tmux server by SIGKILL, and every fake agent, and clears the runtime
// directory as a boot does.
func powerCut(sc scene, flags []string) {
	killServer(sc, flags)
	// Also what started an agent, and only waits for it: it would end a moment later.
	await(sc, "the end of all agents", func() (bool, string) {
		left := fakesOf(sc.Getenv(fakeagent.LogEnv))
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return len(left) == 0, fmt.Sprint(left)
	})
	run := sc.Getenv("XDG_RUNTIME_DIR")
	// What the server called last, a save by itself, may be about to write there.
	await(sc, "an empty runtime directory", func() (bool, string) {
		err := os.RemoveAll(run)
		return err == nil, fmt.Sprint(err)
	})
	check(sc, os.MkdirAll(run, 0o700))
}

// fakesOf are the processes that run as a fake and would write to that log, whether they do or not.
func fakesOf(log string) (out []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil || !slices.Contains(strings.Split(string(env), "\x00"), fakeagent.LogEnv+"="+log) {
			continue
		}
		args, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		name, _, _ := strings.Cut(string(args), "\x00")
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err == nil && slices.Contains(fakeagent.Names(), filepath.Base(name)) && !zombie(pid) {
			out = append(out, pid)
		}
	}
	return out
}

// killServer ends the tmux server by SIGKILL and waits for its end.
func killServer(sc scene, flags []string) {
	out, err := tmuxOut(sc, slices.Concat(flags, []string{"display-message", "-p", "#{pid}"})...)
	if err != nil {
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil || pid < 2 {
		return
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	await(sc, "the end of the tmux server", func() (bool, string) { return syscall.Kill(pid, 0) != nil || zombie(pid), "" })
}
