package owner

import (
	"slices"

	"github.com/phux-agent/phux-agent/integrations"
)

// Said is what an event of an agent's hook tells of the agent's state.
type Said struct {
	State, Attention string // of phux.agent/v1; Attention may be empty
	ID               string // the conversation that the payload names; may be empty, and is not checked
}

// Tells reads what state an event tells of, by the template's first [[live]] entry that fits. The
// event is the caller's word, or the payload's where the caller has none. ok is false where the
// template has no entry for it. A state is never proof of an identity.
func Tells(t *integrations.Template, event string, payload []byte) (said Said, ok bool) {
	if len(t.Live) == 0 {
		return Said{}, false
	}
	doc, err := decodeForeign(payload)
	if err != nil {
		doc = nil
	}
	for _, l := range t.Live {
		name := event
		if name == "" && l.Event != "" {
			v, _ := follow(doc, l.Event)
			name, _ = v.(string)
		}
		if !slices.Contains(l.On, name) || !holds(doc, l.Where) {
			continue
		}
		said = Said{State: l.State, Attention: l.Attention}
		if l.ID != "" {
			v, _ := follow(doc, l.ID)
			said.ID, _ = v.(string)
		}
		return said, true
	}
	return Said{}, false
}
