// Package hooks puts the calls of `phux-agent hook` into the agents' own files, and takes them
// out again, by what their templates declare. Files of the user alone are touched, never those of
// a project, and never what another program put there, another phux-agent included.
package hooks

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/internal/foreign"
	"github.com/phux-agent/phux-agent/metadata"
)

// Env is where hooks are installed.
type Env struct {
	Getenv  integrations.Env // in which the templates' paths are expanded
	Program string           // ours, absolute, as it is to be called
	State   string           // a directory of ours, for what an uninstall has to know
}

// The states of one file.
const (
	Installed = "installed"
	Missing   = "missing"
	Partial   = "partial"   // some of its events, or an earlier form
	Stale     = "stale"     // calls a phux-agent that is not there any more
	Elsewhere = "elsewhere" // only another phux-agent is called
	Refused   = "refused"   // it cannot be edited; Reason says why
)

// Edit is what an install or uninstall would do to one file, and what it is like now.
type Edit struct {
	Integration string
	Path        string   // as the template names it, expanded
	State       string   // before the edit
	Reason      string   // of Refused
	Others      []string // other phux-agents that are called from it
	Note        string   // what the user will meet after an install; may be empty
	Before      string
	After       string
	Remove      bool // the file goes
	Changed     bool // there is something to do

	install bool
	hook    *integrations.Hook
	file    *foreign.File
	created []string // pointers that an install makes
}

// ErrNone is wrapped for an integration that declares no hooks.
var ErrNone = errors.New("the integration declares no hooks")

// Plan looks at the files of an integration and decides what an install (or an uninstall) would
// do. Nothing is written. A file that cannot be edited is no error of the plan; it says so.
func (e Env) Plan(t *integrations.Template, install bool) ([]Edit, error) {
	if len(t.Hooks) == 0 {
		return nil, fmt.Errorf("hooks of %q: %w", t.ID, ErrNone)
	}
	if err := metadata.CheckID("integration", t.ID); err != nil {
		return nil, err
	}
	if !filepath.IsAbs(e.Program) {
		return nil, fmt.Errorf("hooks of %q: the program %q is not an absolute path", t.ID, e.Program)
	}
	var out []Edit
	for i := range t.Hooks {
		ed := Edit{Integration: t.ID, install: install, hook: &t.Hooks[i]}
		if err := e.plan(&ed, install); err != nil {
			ed.State, ed.Reason, ed.Changed = Refused, reason(err, ed.Path), false
			ed.After, ed.Remove = ed.Before, false
		}
		out = append(out, ed)
	}
	return out, nil
}

// reason is an error without the path, which is said already.
func reason(err error, path string) string {
	var r *foreign.Refusal
	if errors.As(err, &r) {
		return r.Reason
	}
	return strings.TrimPrefix(err.Error(), path+": ")
}

func (e Env) plan(ed *Edit, install bool) error {
	h := ed.hook
	path, err := integrations.ExpandRoot(h.File, e.Getenv)
	if err != nil {
		ed.Path = h.File
		return err
	}
	ed.Path = path
	if ed.file, err = foreign.Read(path); err != nil {
		return err
	}
	ed.Before = string(ed.file.Data)
	ed.After = ed.Before
	switch h.Format {
	case integrations.FormatJSON:
		err = e.planJSON(ed, install)
	case integrations.FormatBlock:
		err = e.planBlock(ed, install)
	default:
		err = e.planFile(ed, install)
	}
	if err != nil {
		return err
	}
	ed.Changed = ed.After != ed.Before || ed.Remove || install && !ed.file.Exists && ed.After != ""
	if install && ed.Changed {
		ed.Note = h.Note
	}
	if !install && ed.Changed {
		e.exactly(ed)
	}
	return nil
}

// planJSON works on an array of a JSON document, an event each.
func (e Env) planJSON(ed *Edit, install bool) error {
	h := ed.hook
	text := ed.Before
	present, stale, wanted := 0, 0, 0
	for _, event := range h.Events {
		pointer := h.Pointer(event)
		j, err := foreign.ParseJSON(text)
		if err != nil {
			return err
		}
		if _, err := j.Elements(pointer); err != nil {
			return err
		}
		calls := e.calls(j, pointer, ed.Integration)
		here := false
		for _, c := range calls {
			switch c.whose {
			case ours:
				here = here || c.event == event
			case gone:
				stale++
			case others:
				ed.other(c.program)
			}
		}
		wanted++
		if here {
			present++
		}
		switch {
		case install:
			// One call of ours, of this event and of a program that is there.
			kept := false
			for _, c := range reversed(calls) {
				if c.whose == ours && c.event == event && !kept {
					kept = true
					continue
				}
				if c.whose == ours || c.whose == gone {
					if text, err = drop(text, c.pointer, pointer); err != nil {
						return err
					}
				}
			}
			if kept {
				continue
			}
			if j, err = foreign.ParseJSON(text); err != nil {
				return err
			}
			entry := h.Text(e.command(ed.Integration), e.Program, event)
			var created []string
			if text, created, err = j.Append(pointer, entry); err != nil {
				return err
			}
			ed.created = append(ed.created, created...)
		default:
			for _, c := range reversed(calls) {
				if c.whose == ours || c.whose == gone {
					if text, err = drop(text, c.pointer, pointer); err != nil {
						return err
					}
				}
			}
		}
	}
	ed.State = stateOf(present, wanted, stale, len(ed.Others))
	ed.After = text
	if install {
		_, err := foreign.ParseJSON(text)
		return err
	}
	return e.prune(ed)
}

func stateOf(present, wanted, stale, others int) string {
	switch {
	case present == wanted && stale == 0:
		return Installed
	case present > 0:
		return Partial
	case stale > 0:
		return Stale
	case others > 0:
		return Elsewhere
	}
	return Missing
}

func (ed *Edit) other(program string) {
	for _, o := range ed.Others {
		if o == program {
			return
		}
	}
	ed.Others = append(ed.Others, program)
}

// drop takes a call out: the innermost element that holds nothing but it, below the array or in it.
func drop(text, call, array string) (string, error) {
	j, err := foreign.ParseJSON(text)
	if err != nil {
		return "", err
	}
	// From the array downwards: /array/3/hooks/1/command. The element of the outermost array all
	// of whose calls are one goes; one among several goes alone.
	rest := strings.Split(strings.TrimPrefix(call, array+"/"), "/")
	target := array + "/" + rest[0]
	at := target
	for _, part := range rest[1:] {
		at += "/" + part
		parent := at[:strings.LastIndexByte(at, '/')]
		if els, err := j.Elements(parent); err == nil && len(els) > 1 {
			target = at
		}
	}
	return j.Remove(target)
}

// prune takes away the containers that an install made, where nothing is left in them.
func (e Env) prune(ed *Edit) error {
	if ed.After == ed.Before {
		return nil
	}
	jr := e.journal(ed)
	if jr == nil {
		return nil
	}
	for i := len(jr.Created) - 1; i >= 0; i-- {
		j, err := foreign.ParseJSON(ed.After)
		if err != nil {
			return err
		}
		if j.Empty(jr.Created[i]) {
			if ed.After, err = j.Remove(jr.Created[i]); err != nil {
				return err
			}
		}
	}
	if !jr.Existed {
		if j, err := foreign.ParseJSON(ed.After); err == nil && j.Empty("") {
			ed.After, ed.Remove = "", true
		}
	}
	return nil
}

// planBlock works on a marked block at the end of a text file.
func (e Env) planBlock(ed *Edit, install bool) error {
	h := ed.hook
	name := "hooks " + ed.Integration
	var body []string
	for _, event := range h.Events {
		body = append(body, strings.Trim(h.Text(e.command(ed.Integration), e.Program, event), "\n"))
	}
	want := strings.Join(body, "\n\n")
	have, found, err := foreign.Block(ed.Before, name)
	if err != nil {
		return err
	}
	ed.State = Missing
	if found {
		ed.State = e.textState(ed, have, want)
		if ed.State == Elsewhere {
			return nil // a block can call one of us, and another one has it
		}
	}
	if install {
		if ed.State == Installed {
			return nil
		}
		if ed.After, err = foreign.SetBlock(ed.Before, name, want); err != nil {
			return err
		}
		return readable(ed.Path, ed.After)
	}
	ed.After, _, err = foreign.RemoveBlock(ed.Before, name)
	if jr := e.journal(ed); jr != nil && !jr.Existed && strings.TrimSpace(ed.After) == "" {
		ed.Remove = found
	}
	return err
}

// readable checks that a text of a known form is still one with a block of ours in it: what its user
// wrote may leave no place for it.
func readable(path, text string) error {
	if filepath.Ext(path) != ".toml" {
		return nil
	}
	var doc map[string]any
	if _, err := toml.Decode(text, &doc); err != nil {
		return fmt.Errorf("with the block in it, it would be no TOML: %w", err)
	}
	return nil
}

// planFile works on a file that is ours whole.
func (e Env) planFile(ed *Edit, install bool) error {
	want := strings.TrimPrefix(ed.hook.Text(e.command(ed.Integration), e.Program, ""), "\n")
	ed.State = Missing
	if ed.file.Exists {
		ed.State = e.textState(ed, ed.Before, want)
		switch {
		case ed.State == Elsewhere:
			return nil
		case ed.State == Missing:
			return &foreign.Refusal{Path: ed.Path, Reason: "a file of that name is there already, and it is not ours"}
		}
	}
	if install {
		ed.After = want
		return nil
	}
	ed.After, ed.Remove = "", ed.file.Exists
	return nil
}

// textState judges a text of ours by the programs that it calls.
func (e Env) textState(ed *Edit, have, want string) string {
	if strings.TrimSpace(have) == strings.TrimSpace(want) {
		return Installed
	}
	found := 0
	stale := false
	for _, program := range programsIn(have) {
		found++
		switch e.whose(program) {
		case gone:
			stale = true
		case others:
			ed.other(program)
		}
	}
	switch {
	case found == 0:
		return Missing
	case len(ed.Others) > 0:
		return Elsewhere
	case stale:
		return Stale
	}
	return Partial
}

// Apply does what a plan said: journal, then the file. ErrChanged where the file is not as it was
// planned on.
func (e Env) Apply(ed Edit) error {
	if !ed.Changed {
		return nil
	}
	if ed.Remove {
		if err := ed.file.Remove(); err != nil {
			return err
		}
		if jr := e.journal(&ed); jr != nil {
			foreign.Unmake(jr.Made)
		}
		return e.forget(&ed)
	}
	if !ed.install {
		if _, err := ed.file.Replace([]byte(ed.After)); err != nil {
			return err
		}
		return e.forget(&ed)
	}
	old := e.journal(&ed)
	if err := e.note(&ed, nil); err != nil {
		return fmt.Errorf("keep what %s was: %w", ed.Path, err)
	}
	made, err := ed.file.Replace([]byte(ed.After))
	if err != nil {
		return errors.Join(err, e.restoreNote(&ed, old))
	}
	if len(made) > 0 {
		return e.note(&ed, made)
	}
	return nil
}

func digest(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

func reversed(c []call) []call {
	out := make([]call, len(c))
	for i := range c {
		out[len(c)-1-i] = c[i]
	}
	return out
}
