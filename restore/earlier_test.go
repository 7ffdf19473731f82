package restore

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/metadata"
)

func TestEarlier(t *testing.T) {
	pane := func(id, state string, previous ...string) archive.Pane {
		return archive.Pane{
			AgentSession: &metadata.AgentSession{PluginID: "phux.agents", IntegrationID: "claude-code", NativeID: id},
			Agent:        &archive.Agent{Key: "key-" + id, State: state, Previous: previous, Durability: "present", Unconfirmed: "why"},
		}
	}
	saved := func() *archive.Archive {
		return &archive.Archive{Sessions: []archive.Session{
			{Name: "work", Windows: []archive.Window{{Index: 1, Panes: []archive.Pane{pane("a", "running", "a2", "x", "a3"), pane("b", "ended", "x")}}}},
			{Name: "more", Windows: []archive.Window{{Index: 0, Panes: []archive.Pane{{Cwd: "/"}, pane("c", "running", "b", "y")}}}},
		}}
	}
	for _, c := range []struct {
		name     string
		ids      []string
		o        Options
		panes    []string // that are named; nil where it is refused
		record   string
		previous []string
		said     string
	}{
		{"one before", []string{"a3"}, Options{}, []string{"work:1.0"}, "a3", []string{"a", "a2", "x"}, ""},
		{"its own, though another had it", []string{"b"}, Options{}, []string{"work:1.1"}, "b", []string{"x"}, ""},
		{"several had it", []string{"x"}, Options{}, nil, "", nil, `several panes of the archive had the conversation "x": "work:1.0", "work:1.1"`},
		{"the one that is named", []string{"x"}, Options{Panes: []string{"key-b"}}, []string{"work:1.1"}, "x", []string{"b"}, ""},
		{"in the session that is named", []string{"b"}, Options{Only: []string{"more"}}, []string{"more:0.1"}, "b", []string{"c", "y"}, ""},
		{"nobody had it", []string{"z"}, Options{}, nil, "", nil, `no pane of the archive has, or had, the conversation "z"`},
		{"two", []string{"y", "a2"}, Options{}, []string{"more:0.1", "work:1.0"}, "a2", []string{"a", "x", "a3"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := saved()
			got, panes, err := Earlier(src, c.ids, c.o)
			if diff := cmp.Diff(saved(), src); diff != "" {
				t.Errorf("the archive was changed:\n%s", diff)
			}
			if c.said != "" {
				var unknown *UnknownIDError
				if !errors.As(err, &unknown) || err.Error() != c.said {
					t.Fatalf("%v", err)
				}
				return
			}
			if err != nil || !slices.Equal(panes, c.panes) {
				t.Fatalf("%v, %v", panes, err)
			}
			for _, s := range got.Sessions {
				for i, p := range s.Windows[0].Panes {
					if paneName(&s, s.Windows[0].Index, i) != panes[len(panes)-1] {
						continue
					}
					if p.AgentSession.NativeID != c.record || !slices.Equal(p.Agent.Previous, c.previous) || p.Agent.State != "running" {
						t.Errorf("%s, before it %q, %s", p.AgentSession.NativeID, p.Agent.Previous, p.Agent.State)
					}
					if known := p.Agent.Durability != "" || p.Agent.Unconfirmed != ""; known != (c.name == "its own, though another had it") {
						t.Errorf("what was known of the conversation: %q, %q", p.Agent.Durability, p.Agent.Unconfirmed)
					}
				}
			}
		})
	}
}
