package fakeagent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
)

// gemini behaves like gemini-cli 0.61.0: any string is an id, the file is there from the launch
// on (a stub without a reply), a never-prompted id can be neither created again nor resumed,
// both of its processes survive a hangup, and, where retention is on, starting a second
// conversation of a project removes the files of every conversation that has a stub beside it.
func (r *run) gemini() int {
	child, code := r.wrapped(true)
	if !child {
		return code
	}
	root := filepath.Join(os.Getenv("HOME"), ".gemini")
	project := filepath.Join(root, "tmp", strings.Trim(slug(r.cwd), "-"))
	chats := filepath.Join(project, "chats")
	short := func(id string) string {
		if len(id) > 8 {
			return id[:8]
		}
		return id
	}
	files := func(id string) []string {
		m, _ := filepath.Glob(filepath.Join(chats, "session-*-"+short(id)+".jsonl"))
		return m
	}
	// holds returns the file of the id that has a reply in it.
	holds := func(id string) string {
		for _, f := range files(id) {
			b, err := os.ReadFile(f)
			if err == nil && strings.Contains(string(b), `"type":"gemini"`) && strings.Contains(string(b), `"sessionId":"`+id+`"`) {
				return f
			}
		}
		return ""
	}
	stub := func(id, suffix string) string {
		f := filepath.Join(chats, "session-"+time.Now().UTC().Format("2006-01-02T15-04")+suffix+"-"+short(id)+".jsonl")
		_ = appendLine(f, map[string]any{"sessionId": id, "type": "header"})
		return f
	}
	fresh, hasFresh := r.option("--session-id")
	resume, hasResume := r.option("--resume", "-r")
	if hasFresh && hasResume {
		return r.refuse(1, "Arguments resume and session-id are mutually exclusive")
	}
	retention := true
	if b, err := os.ReadFile(filepath.Join(root, "settings.json")); err == nil {
		var s struct {
			General struct {
				SessionRetention struct{ Enabled *bool }
			}
		}
		if json.Unmarshal(b, &s) == nil && s.General.SessionRetention.Enabled != nil {
			retention = *s.General.SessionRetention.Enabled
		}
	}
	if retention {
		seen := map[string]int{}
		all, _ := filepath.Glob(filepath.Join(chats, "session-*.jsonl"))
		for _, f := range all {
			seen[f[len(f)-len("12345678.jsonl"):]]++
		}
		mine := short(resume+fresh) + ".jsonl"
		for tail, n := range seen {
			if n > 1 && tail != mine {
				for _, f := range all {
					if strings.HasSuffix(f, tail) {
						_ = os.Remove(f)
					}
				}
			}
		}
	}
	var path string
	switch {
	case hasResume && (resume == "" || resume == "latest"):
		return r.refuse(1, "fake gemini: a test asked for the latest")
	case hasResume:
		if _, err := os.Stat(project); err != nil {
			return r.refuse(42, "Error resuming session: No previous sessions found for this project.")
		}
		if path = holds(resume); path == "" {
			return r.refuse(42, "Error resuming session: Invalid session identifier %q.", resume)
		}
		r.id = resume
		r.users, _ = turns(path)
		stub(r.id, "x") // a TUI resume leaves one beside the real file
	case hasFresh:
		for _, f := range files(fresh) {
			if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), `"sessionId":"`+fresh+`"`) {
				return r.refuse(42, "Error starting session: Session ID %q already exists. Use --resume to continue it.", fresh)
			}
		}
		r.id = fresh
		path = stub(r.id, "")
	default:
		r.id = uuid.NewString()
		path = stub(r.id, "")
	}
	prompt := func(text string) error {
		if err := appendLine(path, map[string]any{"sessionId": r.id, "user": text}); err != nil {
			return err
		}
		return appendLine(path, map[string]any{"sessionId": r.id, "type": "gemini"})
	}
	settings := filepath.Join(root, "settings.json")
	source := "startup"
	if hasResume {
		source = "resume"
	}
	r.started(settings, source)
	if text, ok := r.option("-p"); ok {
		return r.once(prompt, text)
	}
	return r.loop(session{
		prompt:   prompt,
		prompted: func() { r.claudeLike(settings, "BeforeAgent", r.id, nil) },
		ignore:   true,
		commands: map[string]func(string) error{"/clear": func(string) error {
			old := r.id
			r.id, r.users = uuid.NewString(), nil
			path = stub(r.id, "")
			r.ended(settings, old, "clear")
			r.started(settings, "clear")
			return nil
		}},
	})
}
