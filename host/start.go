package host

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
)

// Mode says what kind of thing a pane starts as.
type Mode int

const (
	Shell       Mode = iota // the user's shell, as the host starts it
	Program                 // Argv, by exec; no shell, no process of ours stays
	Placeholder             // our own screen that says why, keeps the record and retries on Enter
)

// Start is what a pane runs. Env values never appear in any process's arguments.
type Start struct {
	Mode  Mode     `json:"mode"`
	Argv  []string `json:"argv,omitempty"` // Argv[0] absolute
	Dir   string   `json:"dir,omitzero"`   // absolute; entered or the start fails, never replaced by $HOME
	Set   []string `json:"set,omitempty"`  // KEY=VALUE, over the pane's own environment
	Unset []string `json:"unset,omitempty"`
	// Every inherited PHUX_*_SESSION_ID is always stripped before Set is applied.
	AfterExit string `json:"after_exit,omitzero"` // "shell" | "hold" | "close", after exit 0; else hold. "shell-always": however it ended
	// Guard is opaque to the host: what the starting process must prove and claim just before
	// it becomes the program (owner.Guard).
	Guard []byte `json:"guard,omitempty"`
	// For Placeholder.
	Reason string `json:"reason,omitzero"`
	Hint   string `json:"hint,omitzero"`
	// Preface is a file of ours (0600, absolute) with text that the pane shows before it becomes its
	// program, and removes: what is safe of it, see ui.Looks. One that is not there is not missed.
	Preface string `json:"preface,omitzero"`
	// Ask says of a Placeholder that nothing stands in its program's way, and that it waits to be
	// asked: AskEnter or AskWord. Empty: something does, and Enter tries again.
	Ask string `json:"ask,omitzero"`
}

// How a placeholder is asked for its program.
const (
	AskEnter = "enter" // by Enter
	AskWord  = "word"  // by a word and Enter
)

// BirthEnv is set to the birth nonce in the environment of every program that we start, so that
// a later launch below it can tell an inherited native_env value from one that a caller gave.
const BirthEnv = "PHUX_AGENT_BIRTH"

// StartError says at which step a pane could not become its program.
type StartError struct {
	Op   string // "enter" (the directory) or "run" (the program)
	Path string
	Err  error // of the system; ENOEXEC where the file is no program and names no interpreter
}

func (e *StartError) Error() string { return fmt.Sprintf("%s %q: %v", e.Op, e.Path, e.Err) }
func (e *StartError) Unwrap() error { return e.Err }

// Exec enters Dir, applies Unset and Set over environ, and replaces this process by Argv. It
// returns only when that could not be done, a *StartError; the directory is never replaced by
// another. An empty Dir leaves the process where it is. A Shell without Argv is the login shell
// that $SHELL names, which in a pane is the host's default shell.
func (s Start) Exec(environ []string, nonce string) error {
	if err := s.Check(); err != nil {
		return err
	}
	env := s.environ(environ, nonce)
	var path string
	argv := s.Argv
	switch {
	case s.Mode == Placeholder:
		return badRequest("a placeholder is no program")
	case len(argv) == 0:
		path = last(env, "SHELL")
		if !filepath.IsAbs(path) {
			path = "/bin/sh"
		}
		argv = []string{"-" + filepath.Base(path)}
	case !filepath.IsAbs(argv[0]):
		return badRequest("a program that is not an absolute path")
	default:
		path = argv[0]
	}
	if s.Dir != "" {
		if err := syscall.Chdir(s.Dir); err != nil {
			return &StartError{Op: "enter", Path: s.Dir, Err: err}
		}
	}
	return &StartError{Op: "run", Path: path, Err: syscall.Exec(path, argv, env)}
}

// environ is what the program gets. Of a name that is set twice the last value counts, and only
// it is handed on: programs differ in which of two they see.
func (s Start) environ(inherited []string, nonce string) []string {
	drop := make(map[string]bool, len(s.Unset)+2)
	for _, k := range s.Unset {
		drop[k] = true
	}
	if s.Dir != "" {
		drop["OLDPWD"] = true
	}
	var out []string
	at := make(map[string]int, len(inherited)+len(s.Set)+2)
	put := func(k, kv string) {
		if i, ok := at[k]; ok {
			out[i] = kv
			return
		}
		at[k] = len(out)
		out = append(out, kv)
	}
	for _, kv := range inherited {
		k, _, ok := strings.Cut(kv, "=")
		if !ok || k == "" || drop[k] || k == BirthEnv || IsNativeEnv(k) {
			continue
		}
		put(k, kv)
	}
	if s.Dir != "" {
		// Else a program would believe the directory that the host's own process was in.
		put("PWD", "PWD="+s.Dir)
	}
	for _, kv := range s.Set {
		k, _, _ := strings.Cut(kv, "=")
		put(k, kv)
	}
	if nonce != "" {
		put(BirthEnv, BirthEnv+"="+nonce)
	}
	return out
}

// IsNativeEnv reports that the name is one in which a template may hand over a native id, and
// which is therefore never inherited: PHUX_*_SESSION_ID.
func IsNativeEnv(name string) bool {
	return strings.HasPrefix(name, "PHUX_") && strings.HasSuffix(name, "_SESSION_ID") && len(name) >= len("PHUX__SESSION_ID")-1
}

func last(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], name+"="); ok {
			return v
		}
	}
	return ""
}
