// Package metadata holds the nouns that every other room speaks of: the keys under which a
// host stores values on a terminal, the inert resume record, the live identity and the launch
// facts, each with its bounds and its one exact JSON form.
//
// Everything here is a value. Nothing reads a clock, a file or a process.
package metadata

// A Key names one metadata value on a terminal.
type Key string

// The keys of phux's vocabulary, and one of ours.
const (
	// KeyAgent holds the live identity (Agent): descriptive, never authority.
	KeyAgent Key = "phux.agent/v1"
	// KeyAgentSession holds the resume identity (AgentSession).
	KeyAgentSession Key = "phux.agent-session/v1"
	// KeyAgentLaunch holds the launch facts (LaunchFacts): ours, never authority.
	KeyAgentLaunch Key = "phux.agent-launch/v1"
)

// Bounds of ADR-0068 §7, in bytes of UTF-8. They hold on every write and on every read.
const (
	MaxID       = 120  // plugin and integration ids
	MaxNativeID = 1024 // the provider's own identity of a conversation
	MaxRecord   = 4096 // one encoded record
)

// AgentSession is the inert resume record phux.agent-session/v1 of one terminal.
type AgentSession struct {
	PluginID      string `json:"plugin_id"`
	IntegrationID string `json:"integration_id"`
	NativeID      string `json:"native_id"`
}

// Identity is what at most one process of this machine may run: an agent's conversation.
type Identity struct {
	IntegrationID string
	NativeID      string
}

// Identity returns the pair that a claim is made on.
func (s AgentSession) Identity() Identity {
	return Identity{IntegrationID: s.IntegrationID, NativeID: s.NativeID}
}

// String returns the form that verbs take and print: INTEGRATION/ID.
func (i Identity) String() string { return i.IntegrationID + "/" + i.NativeID }
