// Package integrations reads the templates that say what is true of one agent CLI, and holds
// the one builder that turns a template and an opaque native id into an argument vector.
//
// Core knows no agent: what differs between agents is a field of Template.
package integrations

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
	Hooks         []Hook
	Live          []Live
	Agent         AgentIdentity
}

// CLI says which program a template was written for.
type CLI struct {
	VersionArgs []string
	Verified    []string // versions that the template was run on
	MinVersion  string
}

// Launch says how the CLI is started. Command is empty where the template has no [launch].
type Launch struct {
	Command          []string // may hold ${PHUX_PLUGIN_ROOT}
	WorkingDirectory string   // "workspace" | "plugin-root"
	Env              map[string]string
	ScrubEnv         []string // exact names
	AfterExit        string   // "shell" | "hold" | "close"
	SurvivesHangup   bool
	// Passthrough are the words with which the CLI is no interactive start: subcommands and
	// options. See Template.Interactive.
	Passthrough []string
}

// SessionIdentity says how the CLI takes, makes and resumes a native id.
type SessionIdentity struct {
	Mode          string // "native-or-phux" | "phux"
	Restore       string // "external-cli" | "phux-session"
	NativeEnv     string // PHUX_*_SESSION_ID, may be empty
	IDPattern     string // as written; an alias or an anchored RE2; empty: any id within the bounds
	ResumeArgs    []string
	FreshArgs     []string
	ForkArgs      []string
	MintCommand   []string
	ForkCommand   []string
	ResumeCwd     string // "launch" | "any"
	NeverPrompted string // FreshAgain | FreshUntilFile | Lost
	UnknownID     string // "exits" | "blank"
	Never         []string
}

// Transcript says whether a given id's conversation exists. Never a way to choose one.
type Transcript struct {
	Root     string   // see ExpandRoot
	Paths    []string // relative to Root; ${PHUX_AGENT_SESSION_ID} or ${PHUX_AGENT_SESSION_ID:8}
	HeadID   string   // JSON pointer into the file's first line
	Contains string
}

// Observe says which id a process has open now.
type Observe struct {
	Kind      string         // "file" | "open-file" | "hook"
	Path      string         // ${root}, ${PID}, the id slot; see Observe.Pattern
	ID        string         // JSON pointer; empty where the id is in the path
	PID       string         // JSON pointer; empty where the pid is in the path
	Start     string         // JSON pointer to the process's start time
	StartUnit string         // "ticks" (since boot) | "s" | "ms" (since 1970)
	Where     map[string]any // JSON pointer -> string, bool, int64 or float64
	On        []string       // hook events; the event is an argument of `phux-agent hook ID EVENT`
	Event     string         // JSON pointer to the event in a hook's payload, where no argument says it
}

// Require is what must hold outside, or a promise breaks.
type Require struct {
	File        string // see ExpandRoot
	JSON        string // pointer
	Equals      any    // string, bool, int64 or float64
	Default     any    // what an absent member counts as; nil: absent is unequal
	At          string // "launch" | "restore"
	Consequence string
}

// Live says what an event of the agent's own hooks tells of its state. The first entry that
// fits an event counts.
type Live struct {
	On        []string       // events; as in Observe
	Event     string         // JSON pointer to the event in the payload, where no argument says it
	Where     map[string]any // as in Observe
	ID        string         // JSON pointer to the conversation in the payload; may be empty
	State     string         // "idle" | "working" | "blocked" | "done": the words of phux.agent/v1
	Attention string         // "" | "none" | "low" | "normal" | "high"; empty: what the state says
}

// AgentIdentity is the live identity that the agent's pane gets.
type AgentIdentity struct{ Name, Kind string }

// Warning is what the linter says of a template that loads.
type Warning struct {
	Line int // 0 where there is none
	Text string
}
