package host

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/phux-agent/phux-agent/metadata"
)

// ErrRequest is wrapped by every refusal of a request that no host could carry out as asked.
var ErrRequest = errors.New("not a request that a host can carry out")

// ErrName is wrapped by the refusal of a name that this host cannot hold byte for byte.
var ErrName = errors.New("the host cannot hold that name")

// Bounds of a request, so that none can exhaust the host. In bytes, but for MaxWindows.
const (
	MaxWindows = 512
	MaxName    = 1024
	MaxValue   = 64 << 10  // one metadata value; a record has its own, tighter bound
	MaxWords   = 128 << 10 // Argv together, and Set together
)

func badRequest(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRequest, fmt.Sprintf(format, args...))
}

// Check reports what is wrong with the request whatever the host: an ErrRequest, an ErrLayout
// or an ErrName. A body calls it before anything is created.
func (c CreateSession) Check() error {
	if err := checkName("session", c.Name); err != nil {
		return err
	}
	if err := checkDir(c.Dir); err != nil {
		return fmt.Errorf("session: %w", err)
	}
	switch {
	case len(c.Windows) == 0 || len(c.Windows) > MaxWindows:
		return badRequest("%d windows, where 1 to %d may be", len(c.Windows), MaxWindows)
	case c.Active < 0 || c.Active >= len(c.Windows):
		return badRequest("window %d of %d is active", c.Active, len(c.Windows))
	case c.Parallel < 0:
		return badRequest("%d programs at once", c.Parallel)
	}
	if err := c.Aside.check(); err != nil {
		return err
	}
	taken := make(map[int]bool)
	for i, w := range c.Windows {
		if err := w.check(); err != nil {
			return fmt.Errorf("window %d: %w", i, err)
		}
		if w.Index >= 0 && taken[w.Index] {
			return badRequest("window %d: index %d is given twice", i, w.Index)
		}
		taken[w.Index] = true
	}
	return nil
}

func (w WindowSpec) check() error {
	// A window that names itself needs none.
	if w.Name != "" || !w.AutomaticName {
		if err := checkName("window", w.Name); err != nil {
			return err
		}
	}
	if w.Index < -1 || w.Index > MaxIndex {
		return badRequest("index %d", w.Index)
	}
	if err := w.Layout.Check(len(w.Panes)); err != nil {
		return err
	}
	if w.Active < 0 || w.Active >= len(w.Panes) {
		return badRequest("pane %d of %d is active", w.Active, len(w.Panes))
	}
	for i, p := range w.Panes {
		if err := p.Check(); err != nil {
			return fmt.Errorf("pane %d: %w", i, err)
		}
	}
	return nil
}

// MaxIndex is the highest index of a window.
const MaxIndex = 99999

// Check reports what is wrong with the request whatever the host; see CreateSession.Check.
func (s Spawn) Check() error {
	switch s.Place {
	case NewWindow:
		if s.Session == "" {
			return badRequest("a new window without a session")
		}
		if s.WindowName != "" {
			if err := checkName("window", s.WindowName); err != nil {
				return err
			}
		}
	case SplitH, SplitV:
		if s.Target == (Terminal{}) {
			return badRequest("a split without a target")
		}
	default:
		return badRequest("place %d", s.Place)
	}
	return s.Pane.Check()
}

// Check reports what is wrong with the pane whatever the host; see CreateSession.Check.
func (p PaneSpec) Check() error {
	if len(p.Title) > MaxValue || !utf8.ValidString(p.Title) {
		return badRequest("a title that is no text, or longer than %d bytes", MaxValue)
	}
	for k, v := range p.Meta {
		if err := CheckValue(k, v); err != nil {
			return err
		}
		if len(v) == 0 {
			return badRequest("an empty value of %s", k)
		}
	}
	return p.Start.Check()
}

// CheckValue reports what is wrong with one metadata value. Empty means absent, and is fine.
func CheckValue(k metadata.Key, v []byte) error {
	limit := MaxValue
	if k == metadata.KeyAgentSession {
		limit = metadata.MaxRecord
	}
	switch {
	case k == "":
		return badRequest("a value without a key")
	case len(v) > limit:
		return badRequest("%d bytes of %s, where %d may be", len(v), k, limit)
	}
	return nil
}

// Check reports why no process could start like this: an ErrRequest.
func (s Start) Check() error {
	if err := checkDir(s.Dir); err != nil {
		return err
	}
	if s.Preface != "" && (!filepath.IsAbs(s.Preface) || strings.ContainsRune(s.Preface, 0)) {
		return badRequest("the preface %q is not an absolute path", s.Preface)
	}
	switch s.Mode {
	case Shell, Placeholder:
	case Program:
		if len(s.Argv) == 0 || !filepath.IsAbs(s.Argv[0]) {
			return badRequest("a program that is not an absolute path")
		}
	default:
		return badRequest("mode %d", s.Mode)
	}
	switch s.AfterExit {
	case "", "shell", "hold", "close", "shell-always":
	default:
		return badRequest("%q after exit", s.AfterExit)
	}
	switch s.Ask {
	case "", AskEnter, AskWord:
	default:
		return badRequest("%q to ask for", s.Ask)
	}
	for _, words := range [][]string{s.Argv, s.Set, s.Unset} {
		total := 0
		for _, w := range words {
			total += len(w) + 1
			if strings.ContainsRune(w, 0) {
				// Not shown: an environment value may be a secret.
				return badRequest("a zero byte in an argument or an environment value")
			}
		}
		if total > MaxWords {
			return badRequest("%d bytes of arguments or environment, where %d may be", total, MaxWords)
		}
	}
	for _, kv := range s.Set {
		if strings.IndexByte(kv, '=') < 1 {
			// The value may be a secret: only what is not one is shown.
			return badRequest("an environment value without a name")
		}
	}
	for _, k := range s.Unset {
		if k == "" || strings.Contains(k, "=") {
			return badRequest("%q is not the name of an environment value", k)
		}
	}
	return nil
}

func checkDir(dir string) error {
	if dir == "" {
		return nil
	}
	if !filepath.IsAbs(dir) || strings.ContainsRune(dir, 0) {
		return badRequest("the directory %q is not an absolute path", dir)
	}
	return nil
}

func checkName(what, name string) error {
	switch {
	case name == "":
		return badRequest("a %s without a name", what)
	case len(name) > MaxName:
		return fmt.Errorf("%w: the %s name is longer than %d bytes", ErrName, what, MaxName)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: the %s name %q is no text", ErrName, what, name)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("%w: the %s name %q holds control characters", ErrName, what, name)
	}
	return nil
}
