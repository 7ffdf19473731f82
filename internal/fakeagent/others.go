package fakeagent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
)

// opencode behaves like opencode 1.18.33: no id from the caller on its command line, `import`
// plants one, `-s` resumes, an unknown id ends it in every directory.
func (r *run) opencode() int {
	data := os.Getenv("XDG_DATA_HOME")
	if data == "" {
		data = filepath.Join(os.Getenv("HOME"), ".local", "share")
	}
	file := func(id string) string { return filepath.Join(data, "opencode", "session", id+".jsonl") }
	if len(r.args) > 1 && r.args[0] == "import" {
		b, err := os.ReadFile(r.args[1])
		var v struct {
			Info struct{ ID, Directory string }
		}
		if err != nil || json.Unmarshal(b, &v) != nil || !strings.HasPrefix(v.Info.ID, "ses_") {
			return r.refuse(1, "Error: invalid session file")
		}
		r.id = v.Info.ID
		if err := appendLine(file(r.id), map[string]any{"id": r.id, "directory": v.Info.Directory}); err != nil {
			return r.refuse(1, "%v", err)
		}
		fmt.Fprintf(r.out, "Imported session: %s\n", r.id)
		return 0
	}
	if id, ok := r.option("-s", "--session"); ok {
		users, found := turns(file(id))
		if !strings.HasPrefix(id, "ses_") || !found {
			return r.refuse(1, "Error: Session not found: %s", id)
		}
		r.id, r.users = id, users
	} else {
		r.id = "ses_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:26]
	}
	prompt := func(text string) error { return appendLine(file(r.id), map[string]any{"id": r.id, "user": text}) }
	config := os.Getenv("XDG_CONFIG_HOME")
	if config == "" {
		config = filepath.Join(os.Getenv("HOME"), ".config")
	}
	return r.loop(session{
		prompt: prompt,
		prompted: func() {
			r.plugin(filepath.Join(config, "opencode", "plugin", "phux-agent.js"), map[string]any{"sessionID": r.id})
		},
		commands: map[string]func(string) error{"/new": func(string) error {
			r.id, r.users = "ses_"+strings.ReplaceAll(uuid.NewString(), "-", "")[:26], nil
			return nil
		}},
	})
}

// qwen behaves like qwen-code 0.24.4: ids of version 1, 4 and 5, stored in lower case; a sidecar
// names the pid from the launch on, and stays after the exit.
func (r *run) qwen() int {
	child, code := r.wrapped(false)
	if !child {
		return code
	}
	chats := filepath.Join(os.Getenv("HOME"), ".qwen", "projects", slug(r.cwd), "chats")
	file := func(id string) string { return filepath.Join(chats, id+".jsonl") }
	if id, ok := r.option("--session-id"); ok {
		u, err := uuid.Parse(id)
		if err != nil || (u.Version() != 1 && u.Version() != 4 && u.Version() != 5) {
			return r.refuse(1, "Invalid session id: Must be a valid UUID")
		}
		r.id = strings.ToLower(id)
		if _, err := os.Stat(file(r.id)); err == nil {
			return r.refuse(1, "Session Id %s already exists (active or archived)", r.id)
		}
	} else if id, ok := r.option("--resume"); ok {
		users, found := turns(file(id))
		switch {
		case !isUUID(id):
			return r.refuse(1, "No saved session found with title %s", id)
		case !found:
			return r.refuse(1, "No saved session found with ID %s", id)
		}
		r.id, r.users = id, users
	} else {
		r.id = uuid.NewString()
	}
	sidecar := func() {
		_ = os.MkdirAll(chats, 0o700)
		b, _ := json.Marshal(map[string]any{
			"pid": os.Getpid(), "session_id": r.id, "work_dir": r.cwd,
			"started_at": float64(time.Now().UnixMilli()) / 1000, "qwen_version": versions["qwen"],
		})
		_ = os.WriteFile(filepath.Join(chats, r.id+".runtime.json"), b, 0o600)
	}
	sidecar()
	settings := filepath.Join(os.Getenv("HOME"), ".qwen", "settings.json")
	r.started(settings, "startup")
	return r.loop(session{
		prompt: func(text string) error { return appendLine(file(r.id), map[string]any{"user": text}) },
		commands: map[string]func(string) error{"/clear": func(string) error {
			old := r.id
			r.id, r.users = uuid.NewString(), nil
			sidecar()
			r.ended(settings, old, "clear")
			r.started(settings, "clear")
			return nil
		}},
	})
}

// copilot behaves like copilot 1.0.102: --session-id creates or resumes, --resume wants a
// conversation that has events, and an open one has a lock file that names the pid.
func (r *run) copilot() int {
	child, code := r.wrapped(false)
	if !child {
		return code
	}
	root := home("COPILOT_HOME", ".copilot")
	dir := func(id string) string { return filepath.Join(root, "session-state", id) }
	events := func(id string) string { return filepath.Join(dir(id), "events.jsonl") }
	if id, ok := r.option("--session-id"); ok {
		if !isUUID(id) {
			return r.refuse(1, "Error: invalid session id")
		}
		r.id = id
		r.users, _ = turns(events(id))
	} else if id, ok := r.option("--resume"); ok {
		users, found := turns(events(id))
		if !found {
			return r.refuse(1, "Error: No session, task, or name matched '%s'.", id)
		}
		r.id, r.users = id, users
	} else {
		r.id = uuid.NewString()
	}
	lock := func() string { return filepath.Join(dir(r.id), fmt.Sprintf("inuse.%d.lock", os.Getpid())) }
	open := func() { _ = os.MkdirAll(dir(r.id), 0o700); _ = os.WriteFile(lock(), nil, 0o600) }
	open()
	told := map[string]bool{}
	return r.loop(session{
		prompt: func(text string) error { return appendLine(events(r.id), map[string]any{"user": text}) },
		prompted: func() {
			if !told[r.id] {
				told[r.id] = true
				r.copilotHooks(root, "sessionStart")
			}
			r.copilotHooks(root, "userPromptSubmitted")
		},
		leave: func() { _ = os.Remove(lock()) },
		commands: map[string]func(string) error{"/clear": func(string) error {
			_ = os.Remove(lock())
			r.id, r.users = uuid.NewString(), nil
			open()
			return nil
		}},
	})
}

// pi behaves like pi 1.6.0: --session-id creates or opens within the directory, --session wants
// one that exists, and asks a blocking question in another directory. Its argv is overwritten.
func (r *run) pi() int {
	root := home("PI_CODING_AGENT_DIR", ".pi/agent")
	dir := filepath.Join(root, "sessions", "-"+slug(r.cwd)+"--")
	find := func(d, id string) string { return glob1(filepath.Join(root, "sessions", d, "*_"+id+".jsonl")) }
	var path string
	if id, ok := r.option("--session-id"); ok {
		r.id = id
		if path = find(filepath.Base(dir), id); path != "" {
			r.users, _ = turns(path)
		}
	} else if id, ok := r.option("--session"); ok {
		path = find(filepath.Base(dir), id)
		if path == "" {
			if find("*", id) == "" {
				return r.refuse(1, "No session found matching %s", id)
			}
			fmt.Fprintln(r.out, "Fork this session into current directory? [y/N]")
			r.log("blocked")
			return r.loop(session{prompt: func(string) error { return nil }})
		}
		r.id = id
		r.users, _ = turns(path)
	} else {
		r.id = uuid.NewString()
	}
	if path == "" {
		path = filepath.Join(dir, time.Now().UTC().Format("2006-01-02T15-04-05")+"_"+r.id+".jsonl")
	}
	extension := filepath.Join(root, "extensions", "phux-agent.ts")
	r.plugin(extension, map[string]any{"sessionId": r.id})
	return r.loop(session{
		prompt: func(text string) error { return appendLine(path, map[string]any{"user": text}) },
		commands: map[string]func(string) error{"/new": func(string) error {
			r.id, r.users = uuid.NewString(), nil
			path = filepath.Join(dir, time.Now().UTC().Format("2006-01-02T15-04-05")+"_"+r.id+".jsonl")
			r.plugin(extension, map[string]any{"sessionId": r.id})
			return nil
		}},
	})
}

// kimi behaves like kimi-code 2.1.0: it mints session_<uuid>, and resumes it with -S from the
// directory in which it was made.
func (r *run) kimi() int {
	root := home("KIMI_CODE_HOME", ".kimi-code")
	file := func(wd, id string) string { return filepath.Join(root, "sessions", wd, id, "messages.jsonl") }
	wd := "wd_" + strings.Trim(slug(r.cwd), "-")
	if id, ok := r.option("-S", "--session"); ok {
		users, found := turns(file(wd, id))
		if !found {
			if glob1(file("*", id)) != "" {
				return r.refuse(1, "Session %s was created under a different directory", id)
			}
			return r.refuse(1, "Session %s not found", id)
		}
		r.id, r.users = id, users
	} else {
		r.id = "session_" + uuid.NewString()
	}
	source, told := "startup", false
	if len(r.users) > 0 {
		source = "resume"
	}
	return r.loop(session{
		prompt: func(text string) error { return appendLine(file(wd, r.id), map[string]any{"user": text}) },
		prompted: func() { // the session is made at the first message
			if !told {
				told = true
				r.kimiHooks(root, "SessionStart", source)
			}
			r.kimiHooks(root, "UserPromptSubmit", source)
		},
	})
}
