// Package integrations reads the templates that say what is true of one agent CLI, and holds
// the one builder that turns a template and an opaque native id into an argument vector.
//
// Core knows no agent: what differs between agents is a field of Template.
package integrations

import "errors"

var errNotBuilt = errors.New("not built yet")

// Template is one integration template, validated. Its zero value is not usable; see Parse.
type Template struct {
	File          string // where it was read, for messages
	SchemaVersion int
	ID            string
	DisplayName   string
	Kind          string
	CLI           CLI
	Launch        Launch
	Identity      SessionIdentity // zero Mode: not natively restorable
	Transcript    *Transcript
	Observe       []Observe
	Require       []Require
	Agent         AgentIdentity
}

type CLI struct {
	VersionArgs []string
	Verified    []string
	MinVersion  string
}

type Launch struct {
	Command          []string // may hold ${PHUX_PLUGIN_ROOT}
	WorkingDirectory string   // "workspace" | "plugin-root"
	Env              map[string]string
	ScrubEnv         []string // exact names
	AfterExit        string   // "shell" | "hold" | "close"
	SurvivesHangup   bool
}

type SessionIdentity struct {
	Mode          string // "native-or-phux" | "phux"
	Restore       string // "external-cli" | "phux-session"
	NativeEnv     string // PHUX_*_SESSION_ID, may be empty
	IDPattern     string // as written; an alias or an anchored RE2
	ResumeArgs    []string
	FreshArgs     []string
	ForkArgs      []string
	MintCommand   []string
	ForkCommand   []string
	ResumeCwd     string // "launch" | "any"
	NeverPrompted string // "fresh" | "lost"
	UnknownID     string // "exits" | "blank"
	Never         []string
}

type Transcript struct {
	Root     string
	Paths    []string // relative to Root; ${PHUX_AGENT_SESSION_ID} or ${PHUX_AGENT_SESSION_ID:8}
	HeadID   string   // JSON pointer into the file's first line
	Contains string
}

type Observe struct {
	Kind      string // "file" | "open-file" | "hook"
	Path      string // ${root}, ${PID}, the id slot
	ID        string // JSON pointer; empty where the id is in the path
	PID       string // JSON pointer; empty where the pid is in the path
	Start     string // JSON pointer
	StartUnit string // "ticks" | "s" | "ms"
	Where     map[string]any
	On        []string
}

type Require struct {
	File        string
	JSON        string // pointer
	Equals      any
	Default     any
	At          string // "launch" | "restore"
	Consequence string
}

type AgentIdentity struct{ Name, Kind string }

// Warning is what the linter says of a template that loads.
type Warning struct {
	Line int
	Text string
}

// Parse reads and validates one template. file names it in errors, which carry line and caret
// and say what to write instead. Unknown keys load, and come back as warnings.
func Parse(file string, data []byte) (*Template, []Warning, error) { return nil, nil, errNotBuilt }

// Lint says everything that Parse knows and more: recency flags, fork flags in resume, shells.
func Lint(file string, data []byte) ([]Warning, error) { return nil, errNotBuilt }

// Restorable returns nil where the template can resume a native id by an external CLI.
func (t *Template) Restorable() error { return errNotBuilt }

// CheckID checks a native id against the record's bounds, the template's anchored pattern and
// (where the id enters a path) path safety. It is called at every use of an id.
func (t *Template) CheckID(id string) error { return errNotBuilt }

// NormalizeID returns the id as the CLI stores it (uuid: lower case), after CheckID.
func (t *Template) NormalizeID(id string) (string, error) { return "", errNotBuilt }

// CanMint reports whether a fresh identity may be minted: fresh_args over a uuid pattern.
func (t *Template) CanMint() bool { return false }

// Mint returns a fresh lower-case random UUIDv4, or an error where CanMint is false.
func (t *Template) Mint() (string, error) { return "", errNotBuilt }
