package main

import (
	"errors"
	"testing"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

func TestPickPane(t *testing.T) {
	key := metadata.NewPaneKey()
	facts, err := metadata.LaunchFacts{PaneKey: key}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	pane := func(id string, index int, active bool) host.Pane {
		return host.Pane{Terminal: host.Terminal{ID: id}, Index: index, Active: active}
	}
	keyed := pane("%3", 0, true)
	keyed.Meta = map[metadata.Key][]byte{metadata.KeyAgentLaunch: facts}
	shared := host.Window{Index: 1, Name: "api", Panes: []host.Pane{pane("%1", 1, false), pane("%2", 2, true)}}
	w := &host.Workspace{Sessions: []host.Session{
		{Name: "a:b", Windows: []host.Window{shared, {Index: 5, Name: "x.y", Panes: []host.Pane{keyed}}}},
		{Name: "twin", Active: true, Windows: []host.Window{shared}}, // of one group
		{Name: "two", Windows: []host.Window{
			{Index: 0, Name: "same", Panes: []host.Pane{pane("%7", 0, true)}},
			{Index: 1, Name: "same", Panes: []host.Pane{pane("%8", 0, true)}},
		}},
	}}
	for _, c := range []struct {
		arg, want string // "": none; "*": several
	}{
		{"%1", "%1"},
		{"%99", ""},
		{"%", ""},
		{"a:b:1.2", "%2"},
		{"a:b:1", "%2"},
		{"a:b:api.1", "%1"},
		{"a:b:5.0", "%3"},
		{"twin:1.1", "%1"},
		{"twi:1.1", ""},
		{"twin:1.9", ""},
		{"twin:", ""},
		{"two:same.0", "*"},
		{"two:0.0", "%7"},
		{"two:same", "*"},
		{key, "%3"},
		{key[:10], ""},
		{"", ""},
		{"two", ""},
	} {
		t.Run(c.arg, func(t *testing.T) {
			s, err := pickPane(w, c.arg)
			var pe *paneError
			switch {
			case c.want == "*":
				if !errors.As(err, &pe) || len(pe.Many) != 2 {
					t.Errorf("got %v, %v", s, err)
				}
			case c.want == "":
				if !errors.As(err, &pe) || pe.Many != nil {
					t.Errorf("got %v, %v", s, err)
				}
			case err != nil || s.Pane.Terminal.ID != c.want:
				t.Errorf("got %v, %v", s, err)
			}
		})
	}
	if got := sessionsOf(w, host.Terminal{ID: "%1"}); len(got) != 2 || got[0] != "twin" {
		t.Errorf("sessions of %%1: %v", got)
	}
}
