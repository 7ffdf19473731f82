package metadata

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Agent is the live identity phux.agent/v1: descriptive, never authority. Vocabularies are
// open; only the name is required, and it may hold any character, so whoever prints it escapes.
type Agent struct {
	Name      string `json:"name"`
	Kind      string `json:"kind,omitzero"`      // "claude", "codex", …; empty is absent
	State     string `json:"state"`              // empty means "unknown", and is always written out
	Attention string `json:"attention,omitzero"` // empty is absent: see EffectiveAttention
	Session   string `json:"session,omitzero"`   // free label; empty is absent
}

// EffectiveState is the state in phux's vocabulary: unknown, idle, working, blocked or done. A
// word of a later version reads unknown; State keeps it, so that rewriting a record loses nothing.
func (a Agent) EffectiveState() string {
	switch a.State {
	case "idle", "working", "blocked", "done":
		return a.State
	}
	return "unknown"
}

// EffectiveAttention is the declared attention (none, low, normal, high; a later word reads
// normal) or, where none is declared, what phux derives from the state.
func (a Agent) EffectiveAttention() string {
	switch a.Attention {
	case "none", "low", "normal", "high":
		return a.Attention
	case "":
		switch a.EffectiveState() {
		case "blocked":
			return "high"
		case "working":
			return "normal"
		case "idle":
			return "none"
		}
		return "low"
	}
	return "normal"
}

// Validate reports the bound that the live identity breaks: the name must not be blank.
func (a Agent) Validate() error {
	if strings.TrimSpace(a.Name) == "" {
		return &BoundError{Field: "name", Bound: Empty}
	}
	return nil
}

// Encode returns the live identity's exact form, as serde_json writes it: name, kind, state
// (always), attention, session; at most MaxRecord bytes.
func (a Agent) Encode() ([]byte, error) {
	if err := a.Validate(); err != nil {
		return nil, fmt.Errorf("encode %s: %w", KeyAgent, err)
	}
	if a.State == "" {
		a.State = "unknown"
	}
	return marshal(KeyAgent, a)
}

// DecodeAgent reads a live identity as phux does: an object; unknown members ignored, of a
// repeated one the last counts; kind, attention and session may be null, state may be absent.
// One difference: over MaxRecord bytes is refused, where phux's decoder has no bound.
func DecodeAgent(b []byte) (Agent, error) {
	a, err := decodeAgent(b)
	if err != nil {
		return Agent{}, fmt.Errorf("decode %s: %w", KeyAgent, err)
	}
	return a, nil
}

func decodeAgent(b []byte) (a Agent, err error) {
	if err := checkSize(len(b)); err != nil {
		return a, err
	}
	last := map[string]jsontext.Value{}
	err = object(b, true, func(name string, d *jsontext.Decoder) (err error) {
		last[name], err = value(name, d, true)
		return err
	})
	if err != nil {
		return a, err
	}
	a.State = "unknown"
	for _, f := range []struct {
		name string
		at   *string
		null bool
	}{{"name", &a.Name, false}, {"kind", &a.Kind, true}, {"state", &a.State, false}, {"attention", &a.Attention, true}, {"session", &a.Session, true}} {
		v, ok := last[f.name]
		switch {
		case !ok && f.name == "name":
			return a, &BoundError{Field: f.name, Bound: Missing}
		case !ok || f.null && v.Kind() == 'n':
			continue
		case v.Kind() != '"':
			return a, wrongType(f.name, "a string")
		}
		if err := json.Unmarshal(v, f.at); err != nil {
			return a, syntax(err)
		}
	}
	if a.State == "" {
		a.State = "unknown"
	}
	return a, a.Validate()
}
