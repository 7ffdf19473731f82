package metadata

import "errors"

var errNotBuilt = errors.New("not built yet")

// Validate reports the first bound that the record breaks.
func (s AgentSession) Validate() error { return errNotBuilt }

// Encode returns the record's one exact form, or the bound that it breaks.
func (s AgentSession) Encode() ([]byte, error) { return nil, errNotBuilt }

// DecodeAgentSession accepts exactly the three fields and nothing else.
func DecodeAgentSession(b []byte) (AgentSession, error) { return AgentSession{}, errNotBuilt }

// Encode and decode of the launch facts: additive, so unknown fields are skipped.
func (f LaunchFacts) Encode() ([]byte, error) { return nil, errNotBuilt }

// DecodeLaunchFacts reads launch facts of this version or a later one.
func DecodeLaunchFacts(b []byte) (LaunchFacts, error) { return LaunchFacts{}, errNotBuilt }

// Encode returns the live identity's exact form.
func (a Agent) Encode() ([]byte, error) { return nil, errNotBuilt }

// DecodeAgent reads a live identity.
func DecodeAgent(b []byte) (Agent, error) { return Agent{}, errNotBuilt }

// ParseIdentity reads INTEGRATION/ID.
func ParseIdentity(s string) (Identity, error) { return Identity{}, errNotBuilt }

// NewPaneKey mints a pane key (random; not an agent identity).
func NewPaneKey() string { return "" }

// CheckID, CheckNativeID check one field's bounds; what names it in the error.
func CheckID(what, id string) error       { return errNotBuilt }
func CheckNativeID(what, id string) error { return errNotBuilt }
