package fakeagent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
)

// claude behaves like Claude Code 2.1.332: it takes a caller's id, keeps a transcript from the
// first prompt on, and a registry file keyed by pid that is rewritten at each change of id.
// FAKE_CLAUDE_OLD=1 makes it 2.1.197, which resumes only from the directory of the conversation.
func (r *run) claude() int {
	root := home("CLAUDE_CONFIG_DIR", ".claude")
	fresh, hasFresh := r.option("--session-id")
	resume, hasResume := r.option("--resume", "-r")
	headless := r.has("-p") || r.has("--print")
	forking := r.has("--fork-session")
	nested := os.Getenv("CLAUDE_CODE_CHILD_SESSION") != ""
	dir := filepath.Join(root, "projects", slug(r.cwd))
	file := func(id string) string { return filepath.Join(dir, id+".jsonl") }

	switch {
	case r.has("--continue"), r.has("-c"):
		return r.refuse(1, "fake claude: a test used --continue")
	case hasFresh && !isUUID(fresh):
		return r.refuse(1, "Error: Invalid session ID. Must be a valid UUID.")
	case hasFresh && hasResume && !forking:
		return r.refuse(1, "Error: --session-id with --continue or --resume also needs --fork-session.")
	case hasResume && !isUUID(resume) && headless:
		return r.refuse(1, "No conversation found with session ID: %s", resume)
	case hasResume && !isUUID(resume):
		fmt.Fprintf(r.out, "Resume a session: (picker) %s\n", resume)
		return r.loop(session{prompt: func(string) error { return nil }})
	case hasResume:
		pattern := filepath.Join(root, "projects", "*", resume+".jsonl")
		found := ""
		if _, ok := turns(file(resume)); ok {
			found = file(resume)
		} else if m := glob1(pattern); m != "" && os.Getenv("FAKE_CLAUDE_OLD") == "" {
			if _, ok := turns(m); ok {
				found = m
			}
		}
		if found == "" {
			return r.refuse(1, "No conversation found with session ID: %s", resume)
		}
		r.users, _ = turns(found)
		r.id, dir = resume, filepath.Dir(found)
		if forking {
			r.id = fresh
			if r.id == "" {
				r.id = uuid.NewString()
			}
		}
	case hasFresh:
		if _, err := os.Stat(file(fresh)); err == nil {
			return r.refuse(1, "Error: Session ID %s is already in use.", fresh)
		}
		r.id = fresh
	default:
		r.id = uuid.NewString()
	}

	registry := filepath.Join(root, "sessions", fmt.Sprintf("%d.json", os.Getpid()))
	register := func() {
		if nested && !headless {
			return
		}
		entry := "cli"
		if headless {
			entry = "sdk-cli"
		}
		b, _ := json.Marshal(map[string]any{
			"pid": os.Getpid(), "sessionId": r.id, "cwd": r.cwd, "procStart": fmt.Sprint(ticks(os.Getpid())),
			"version": versions["claude"], "kind": "interactive", "entrypoint": entry, "status": "idle",
		})
		_ = os.MkdirAll(filepath.Dir(registry), 0o700)
		tmp := registry + ".tmp"
		if os.WriteFile(tmp, b, 0o600) == nil {
			_ = os.Rename(tmp, registry)
		}
	}
	prompt := func(text string) error {
		if nested && !headless {
			return nil // "Transcript saving is off"
		}
		return appendLine(file(r.id), map[string]any{"sessionId": r.id, "user": text})
	}
	register()
	settings := filepath.Join(root, "settings.json")
	source := "startup"
	if hasResume {
		source = "resume"
	}
	r.started(settings, source)
	if headless {
		defer os.Remove(registry)
		r.claudeLike(settings, "UserPromptSubmit", r.id, nil)
		defer r.claudeLike(settings, "Stop", r.id, nil)
		return r.once(prompt, r.args[len(r.args)-1])
	}
	if nested {
		fmt.Fprintln(r.out, "Transcript saving is off — inherited CLAUDE_CODE_CHILD_SESSION marker")
	}
	tell := func(event string, more map[string]any) func(string) error {
		return func(string) error { r.claudeLike(settings, event, r.id, more); return nil }
	}
	return r.loop(session{
		prompt:   prompt,
		prompted: func() { r.claudeLike(settings, "UserPromptSubmit", r.id, nil) },
		replied:  func() { r.claudeLike(settings, "Stop", r.id, nil) },
		leave:    func() { _ = os.Remove(registry) },
		commands: map[string]func(string) error{
			"/busy":  tell("UserPromptSubmit", nil),
			"/ask":   tell("Notification", map[string]any{"notification_type": "permission_prompt", "message": "may I?"}),
			"/allow": tell("PostToolUse", nil),
			"/stop":  tell("Stop", nil),
			"/clear": func(string) error {
				old := r.id
				r.id, r.users = uuid.NewString(), nil
				register()
				r.ended(settings, old, "clear")
				r.started(settings, "clear")
				return appendLine(file(r.id), map[string]any{"sessionId": r.id})
			},
			"/compact": func(string) error { register(); r.started(settings, "compact"); return nil },
			"/resume": func(id string) error {
				m := glob1(filepath.Join(root, "projects", "*", id+".jsonl"))
				if m == "" || strings.ContainsAny(id, "*?[") {
					return fmt.Errorf("no conversation %s", id)
				}
				old := r.id
				r.id, dir = id, filepath.Dir(m)
				r.users, _ = turns(m)
				register()
				r.ended(settings, old, "resume")
				r.started(settings, "resume")
				return nil
			},
			"/branch": func(string) error {
				old := r.id
				r.id = uuid.NewString()
				register()
				r.ended(settings, old, "resume")
				r.started(settings, "fork")
				return appendLine(file(r.id), map[string]any{"sessionId": r.id})
			},
		},
	})
}
