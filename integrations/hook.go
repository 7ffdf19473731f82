package integrations

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Hook says how the CLI is told to call `phux-agent hook ID EVENT`: an edit of one of its own
// files, of the user's scope.
type Hook struct {
	File   string   // see ExpandRoot
	Format string   // FormatJSON | FormatBlock | FormatFile
	Events []string // one entry for each; none for FormatFile
	Into   string   // of FormatJSON: JSON pointer to the array that gets the entry; may hold ${EVENT}
	Entry  string   // what is put there; see Text
	Note   string   // what the user will meet afterwards, for people; may be empty
}

// The formats of a Hook's file.
const (
	FormatJSON  = "json"  // JSON, comments and commas at the end allowed: the entry joins an array
	FormatBlock = "block" // a text file with # comments: a marked block at its end
	FormatFile  = "file"  // the whole file is ours
)

// The slots of a Hook's entry.
const (
	slotCommand = "${COMMAND}"    // a shell's command line: our program, hook, and the integration
	slotProgram = "${PHUX_AGENT}" // our program alone, for those that start it without a shell
	slotEvent   = "${EVENT}"
)

// Text is the entry for one event. command is what stands for ${COMMAND}, and program for
// ${PHUX_AGENT}; both are written as the inside of a JSON string, as which TOML and JavaScript
// read them too.
func (h Hook) Text(command, program, event string) string {
	return strings.NewReplacer(slotCommand, inString(command), slotProgram, inString(program), slotEvent, inString(event)).Replace(h.Entry)
}

// Pointer is Into for one event.
func (h Hook) Pointer(event string) string {
	event = strings.ReplaceAll(strings.ReplaceAll(event, "~", "~0"), "/", "~1")
	return strings.ReplaceAll(h.Into, slotEvent, event)
}

func inString(s string) string {
	b, err := jsontext.AppendQuote(nil, s)
	if err != nil || len(b) < 2 {
		return ""
	}
	return string(b[1 : len(b)-1])
}

// HookTells reports a CLI whose hook says which conversation is the active one, by an entry that we
// can install.
func (t *Template) HookTells() bool {
	return len(t.Hooks) > 0 && slices.ContainsFunc(t.Observe, func(o Observe) bool { return o.Kind == "hook" })
}

const maxEntry = 16 << 10 // bytes of a hook's entry

func (r *reader) hook(t *Template, i int) {
	h := &t.Hooks[i]
	in := elem("hooks", i) + "."
	r.root(in+"file", h.File)
	r.list(in+"events", h.Events)
	r.short(in+"note", h.Note)
	if r.refused(in+"format") || r.refused(in+"entry") {
		return
	}
	switch {
	case h.Entry == "":
		r.refuse(in+"entry", `write entry = '{"type": "command", "command": "${COMMAND} ${EVENT}"}'`, "is missing")
		return
	case len(h.Entry) > maxEntry:
		r.refuse(in+"entry", "move what is long into a file of the plugin", "%d bytes, at most %d", len(h.Entry), maxEntry)
		return
	case !strings.Contains(h.Entry, slotCommand) && (h.Format != FormatFile || !strings.Contains(h.Entry, slotProgram)):
		r.refuse(in+"entry", "write "+slotCommand+" where the command line belongs", "does not call us")
	}
	switch h.Format {
	case FormatFile:
		if len(h.Events) > 0 {
			r.refuse(in+"events", "the file says itself which events it hears", "has no use here")
		}
	default:
		if len(h.Events) == 0 && !r.refused(in+"events") {
			r.refuse(in+"events", `write events = ["SessionStart"]`, "must name the events to be told of")
		}
	}
	if h.Format != FormatJSON {
		if h.Into != "" {
			r.refuse(in+"into", "leave it out", "belongs to a JSON file")
		}
		return
	}
	if !validPointer(h.Pointer("e")) {
		r.refuse(in+"into", `write into = "/hooks/${EVENT}"`, "must be a JSON pointer to the array that gets the entry")
	}
	var v any
	if err := json.Unmarshal([]byte(h.Text("c", "p", "e")), &v); err != nil {
		r.refuse(in+"entry", "write one JSON value", "is not JSON: %v", fmt.Errorf("%w", err))
	}
}

// Headless reports whether these arguments make the CLI something else than its interface, and
// which of them says so. A word without a dash counts as the first argument that is no option,
// for a prompt may hold any word ("*" is any of them), or anywhere where [session_identity] never
// lists it too; an option counts wherever it stands before a --, with its value glued to it or not.
func (t *Template) Headless(args []string) (word string, headless bool) {
	passes := func(w string) bool { return slices.Contains(t.Launch.Passthrough, w) }
	first := true
	for _, a := range args {
		switch name, _, _ := strings.Cut(a, "="); {
		case a == "--":
			return "", false
		case !strings.HasPrefix(a, "-"):
			if first && (passes(a) || passes("*")) || passes(a) && t.never(a) {
				return a, true
			}
			first = false
		case passes(name):
			return name, true
		case len(a) > 2 && a[1] != '-' && passes(a[:2]): // -pTEXT
			return a[:2], true
		}
	}
	return "", false
}

// Interactive reports whether `launch --here` may start the CLI's interface with these arguments
// under an identity, and if not, which of them says so: those that Headless knows, and what
// [session_identity] never lists, for that picks a conversation by itself.
func (t *Template) Interactive(args []string) (word string, interactive bool) {
	if word, headless := t.Headless(args); headless {
		return word, false
	}
	for _, a := range args {
		if a == "--" {
			break
		}
		if name, _, _ := strings.Cut(a, "="); t.never(name) {
			return name, false
		}
	}
	return "", true
}

func (t *Template) never(word string) bool { return slices.Contains(t.Identity.Never, word) }
