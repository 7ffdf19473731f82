package integrations

import (
	"slices"
	"strings"
	"testing"
)

func TestLiveRefusals(t *testing.T) {
	for body, want := range map[string]string{
		`state = "done"`:                                                  "must name the events",
		`on = ["Stop"]`:                                                   "is missing",
		"on = [\"Stop\"]\nstate = \"asleep\"":                             `"asleep" is not known`,
		"on = [\"Stop\"]\nstate = \"done\"\nid = \"session\"":             "JSON pointer",
		"on = [\"Stop\"]\nstate = \"done\"\nattention = \"x\"":            `"x" is not known`,
		"on = [\"Stop\"]\nstate = \"done\"\nwhere = { \"kind\" = \"x\" }": "JSON pointer",
	} {
		_, _, err := Parse("x.toml", []byte("id = \"x\"\n[launch]\ncommand = [\"x\"]\n[[live]]\n"+body+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v, want %q", body, err, want)
		}
	}
}

// Of every builtin template: an event that tells of a state is one that the agent is told to
// report, and what is told at a turn's beginning is told of its end too, or "working" would stay.
func TestBuiltinLiveEventsAreHooked(t *testing.T) {
	told := 0
	for id, tmpl := range builtins(t) {
		states := map[string]bool{}
		for _, l := range tmpl.Live {
			told++
			states[l.State] = true
			if l.ID == "" {
				t.Errorf("%s: %v says no id, so each report asks the host", id, l.On)
			}
			for _, event := range l.On {
				hooked := slices.ContainsFunc(tmpl.Hooks, func(h Hook) bool {
					return slices.Contains(h.Events, event) || h.Format == FormatFile && strings.Contains(h.Entry, event)
				})
				if !hooked {
					t.Errorf("%s: nobody reports %s", id, event)
				}
			}
		}
		if states["working"] != states["done"] {
			t.Errorf("%s: it begins to work and is never done: %v", id, states)
		}
	}
	if told == 0 {
		t.Error("no template tells of a state")
	}
}
