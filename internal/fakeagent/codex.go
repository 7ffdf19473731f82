package fakeagent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
)

// codex behaves like codex 0.171.0: it mints its own v7 id, holds a lock file open for each
// thread that it has open (in the native child of a wrapper), and writes the rollout at the
// first prompt. Without --no-daemon the thread lives elsewhere and the pane proves nothing.
func (r *run) codex() int {
	child, code := r.wrapped(false)
	if !child {
		return code
	}
	root := home("CODEX_HOME", ".codex")
	daemon := !r.has("--no-daemon")
	var words []string
	for i := 0; i < len(r.args); i++ {
		a := r.args[i]
		switch {
		case a == "-c" || a == "-C" || a == "-m":
			i++
		case strings.HasPrefix(a, "-"):
		default:
			words = append(words, a)
		}
	}
	rollout := func(id string) string {
		return glob1(filepath.Join(root, "sessions", "*", "*", "*", "rollout-*-"+id+".jsonl"))
	}
	mint := func() string { return uuid.Must(uuid.NewV7()).String() }
	write := func(text string) error {
		path := rollout(r.id)
		if path == "" {
			now := time.Now().UTC()
			path = filepath.Join(root, "sessions", now.Format("2006"), now.Format("01"), now.Format("02"),
				fmt.Sprintf("rollout-%s-%s.jsonl", now.Format("2006-01-02T15-04-05"), r.id))
			if err := appendLine(path, map[string]any{"type": "session_meta", "id": r.id, "cwd": r.cwd}); err != nil {
				return err
			}
		}
		return appendLine(path, map[string]any{"user": text})
	}
	var locks []*os.File
	lock := func(id string) bool {
		if daemon {
			return true
		}
		dir := filepath.Join(root, "thread-writer-locks")
		if os.MkdirAll(dir, 0o700) != nil {
			return false
		}
		f, err := os.OpenFile(filepath.Join(dir, id+".lock"), os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
		if err != nil {
			return false
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
			f.Close()
			return false
		}
		locks = append(locks, f) // earlier threads stay open, as in the real one
		return true
	}
	defer func() {
		for _, f := range locks {
			f.Close()
		}
	}()

	hooks := filepath.Join(root, "hooks.json")
	var threads []string
	told := map[string]bool{}
	source := "startup"
	prompted := func() {
		if !told[r.id] { // lazily: at the first prompt of a thread
			told[r.id] = true
			threads = append(threads, r.id)
			r.started(hooks, source)
		}
		r.claudeLike(hooks, "UserPromptSubmit", r.id, nil)
	}
	if len(words) > 0 && words[0] == "exec" {
		r.id = mint()
		prompted()
		return r.once(write, words[len(words)-1])
	}
	switch {
	case len(words) > 1 && (words[0] == "resume" || words[0] == "fork"):
		id := strings.ToLower(words[1])
		path := rollout(id)
		if !isUUID(id) || path == "" {
			return r.refuse(1, "ERROR: No saved session found with ID %s. Run `codex resume` without an ID to choose.", words[1])
		}
		r.users, _ = turns(path)
		r.id = id
		if words[0] == "fork" {
			r.id = mint()
			_ = write("")
		}
	case len(words) > 0 && words[0] == "resume":
		return r.refuse(1, "fake codex: a test asked for the picker")
	default:
		r.id = mint()
	}
	if !lock(r.id) {
		fmt.Fprintln(r.out, "This conversation is open in another app  r retry  f fork")
		r.log("locked")
		return r.loop(session{prompt: func(string) error { return nil }})
	}
	another := func(string) error {
		r.id, r.users = mint(), nil
		lock(r.id)
		source = "clear"
		return nil
	}
	return r.loop(session{
		prompt:   write,
		prompted: prompted,
		// At the end each thread of the process is told of, the active one not last.
		leave: func() {
			r.ended(hooks, r.id, "other")
			for _, id := range threads {
				r.ended(hooks, id, "other")
			}
		},
		commands: map[string]func(string) error{"/new": another, "/clear": another},
	})
}
