package fakeagent

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// The fakes run the hooks that stand in their own files, as the real ones do: by a shell, with
// the payload on standard input, the pane's environment and the marks of a nested run.
//
// FAKE_HOOK_DAEMON=1 makes a shared background process run them, as codex's and claude's may: its
// environment is that of whoever started it, and it stands below nobody's pane.

// command runs one hook by a shell.
func (r *run) hook(command string, payload map[string]any) {
	b, err := json.Marshal(payload)
	if err != nil {
		return
	}
	cmd := exec.Command("/bin/sh", "-c", command)
	if os.Getenv("FAKE_HOOK_DAEMON") != "" {
		// The shell in between ends at once, and what it left belongs to nobody.
		cmd = exec.Command("/bin/sh", "-c", `f=$(mktemp); cat >"$f"; setsid sh -c "sleep 0.2; $1 <'$f'; rm -f '$f'; echo >>'$f.done'" >/dev/null 2>&1 &`, "sh", command)
	}
	cmd.Env = append(os.Environ(), "CLAUDECODE=1", "CLAUDE_CODE_CHILD_SESSION=1", "CLAUDE_PROJECT_DIR="+r.cwd)
	cmd.Stdin = strings.NewReader(string(b))
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		fmt.Fprintf(r.out, "hook said %q (%v)\n", out, err) // on the screen of the agent, as it should not
	}
	r.log("hook")
}

// claudeLike runs the hooks of a settings file in claude's shape; gemini, codex and qwen have it too.
func (r *run) claudeLike(file, event, id string, more map[string]any) {
	b, err := os.ReadFile(file)
	if err != nil {
		return
	}
	var settings struct {
		Hooks map[string][]struct {
			Hooks []struct{ Type, Command string }
		}
	}
	if json.Unmarshal([]byte(comments.ReplaceAllString(string(b), "")), &settings) != nil {
		return
	}
	payload := map[string]any{"session_id": id, "transcript_path": "/not/there/yet.jsonl", "cwd": r.cwd, "hook_event_name": event}
	for k, v := range more {
		payload[k] = v
	}
	for _, group := range settings.Hooks[event] {
		for _, h := range group.Hooks {
			r.hook(h.Command, payload)
		}
	}
}

// comments are stripped as gemini strips them; no string of a test holds two slashes.
var comments = regexp.MustCompile(`(?m)(^|\s)//.*$`)

// started and changed tell the start of a conversation, and of another one in the same process.
func (r *run) started(file, source string) {
	r.claudeLike(file, "SessionStart", r.id, map[string]any{"source": source})
}

func (r *run) ended(file, id, reason string) {
	r.claudeLike(file, "SessionEnd", id, map[string]any{"reason": reason})
}

// copilotHooks runs the hooks of copilot's directory; its payload names no event.
func (r *run) copilotHooks(root, event string) {
	files, _ := filepath.Glob(filepath.Join(root, "hooks", "*.json"))
	for _, file := range files {
		b, err := os.ReadFile(file)
		var doc struct {
			Hooks map[string][]struct{ Type, Bash string }
		}
		if err != nil || json.Unmarshal(b, &doc) != nil {
			continue
		}
		for _, h := range doc.Hooks[event] {
			r.hook(h.Bash, map[string]any{"sessionId": r.id, "cwd": r.cwd, "source": "new", "initialPrompt": "x"})
		}
	}
}

// kimiHooks runs the hooks of kimi's configuration.
func (r *run) kimiHooks(root, event, source string) {
	var doc struct {
		Hooks []struct{ Event, Command string }
	}
	if _, err := toml.DecodeFile(filepath.Join(root, "config.toml"), &doc); err != nil {
		return
	}
	for _, h := range doc.Hooks {
		if h.Event == event {
			r.hook(h.Command, map[string]any{"session_id": r.id, "cwd": r.cwd, "hook_event_name": event, "source": source})
		}
	}
}

// plugin plays a plugin in JavaScript, which runs inside of the agent: it starts the program that
// the text starts.
func (r *run) plugin(file string, payload map[string]any) {
	b, err := os.ReadFile(file)
	if err != nil {
		return
	}
	m := spawned.FindStringSubmatch(string(b))
	if m == nil {
		return
	}
	program, err := strconv.Unquote(m[1])
	var args []string
	if err != nil || json.Unmarshal([]byte(m[2]), &args) != nil {
		return
	}
	text, err := json.Marshal(payload)
	if err != nil {
		return
	}
	cmd := exec.Command(program, args...)
	cmd.Stdin = strings.NewReader(string(text))
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		fmt.Fprintf(r.out, "plugin said %q (%v)\n", out, err)
	}
	r.log("hook")
}

var spawned = regexp.MustCompile(`spawn\(("(?:[^"\\]|\\.)*"), (\[[^\]]*\])`)
