package restore

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/config"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
)

// shellSession makes a session of one shell on the stage's host, and returns it.
func (s *stage) shellSession(name string) host.Session {
	s.t.Helper()
	_, err := s.h.Create(context.Background(), host.CreateSession{Name: name, Windows: []host.WindowSpec{{
		Index: -1, AutomaticName: true, Layout: leaf(80, 24, 0), Panes: []host.PaneSpec{{Start: host.Start{Mode: host.Shell, Dir: "/"}}},
	}}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.see()
	return s.f.View.Sessions[slices.IndexFunc(s.f.View.Sessions, func(x host.Session) bool { return x.Name == name })]
}

func (s *stage) names() (out []string) {
	s.t.Helper()
	v, err := view(context.Background(), s.h)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, x := range v.Sessions {
		out = append(out, x.Name)
	}
	return out
}

func TestHuskMakesRoom(t *testing.T) {
	for _, c := range []struct {
		name   string
		set    func(s *stage, husk host.Session)
		during func(s *stage, husk host.Session) // after the plan
		action string
		aside  string
		left   []string
	}{
		{"as it should be", nil, nil, Create, "work-1", []string{"work", "work-1"}},
		{"the name is taken", func(s *stage, _ host.Session) { s.shellSession("work-1") }, nil, Create, "work-2", []string{"work", "work-1", "work-2"}},
		{"the name is archived", func(s *stage, _ host.Session) { s.add("work-1").Pending = &archive.Pending{} }, nil, Create, "work-2", nil},
		{"it is none", func(s *stage, h host.Session) { s.f.Husks[h.ID] = errors.New("in use") }, nil, SkipExisting, "", []string{"work"}},
		{"nobody looked", func(s *stage, h host.Session) { delete(s.f.Husks, h.ID) }, nil, SkipExisting, "", []string{"work"}},
		{"no agent would start", func(s *stage, _ host.Session) {
			s.talk(id1, func(t *Talk) { t.Presence = owner.Absent })
		}, nil, SkipExisting, "", []string{"work"}},
		{"authority refuses it", func(s *stage, _ host.Session) {
			s.change(key("claude-code"), func(a *Agent) { a.Owner.Template = parse(s.t, plainTOML) })
		}, nil, SkipExisting, "", []string{"work"}},
		{"agents wait to be asked", func(s *stage, _ host.Session) { s.o.Mode = config.Ask }, nil, Create, "work-1", []string{"work", "work-1"}},
		{"it is used since", nil, func(s *stage, h host.Session) {
			if _, err := s.h.Spawn(context.Background(), host.Spawn{Session: "work", Pane: host.PaneSpec{Start: host.Start{Mode: host.Shell}}}); err != nil {
				s.t.Fatal(err)
			}
		}, SkipExisting, "", []string{"work"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			husk := s.shellSession("work")
			s.f.Husks = map[string]error{husk.ID: nil}
			if c.set != nil {
				c.set(s, husk)
			}
			p := s.plan()
			if c.during != nil {
				c.during(s, husk)
			}
			r, err := Apply(context.Background(), s.e, p)
			if err != nil {
				t.Fatal(err)
			}
			got := r.Sessions[0]
			if got.Action != c.action || got.Aside != c.aside {
				t.Errorf("%s, aside %q: %s", got.Action, got.Aside, got.Reason)
			}
			if names := s.names(); c.left != nil && !slices.Equal(names, c.left) {
				t.Errorf("there are %v", names)
			}
			if c.aside != "" && !strings.Contains(got.Reason, c.aside) {
				t.Errorf("it does not say so: %s", got.Reason)
			}
		})
	}
}

// What is gathered of a session that could be a husk.
func TestHusks(t *testing.T) {
	s := newStage(t)
	there := s.shellSession("work")
	s.e.Husk = func(host.Pane, int) error { return nil }
	look := func(o Options) (error, bool) {
		s.f.husks(s.e, o, pointers(s.src.Archive))
		err, ok := s.f.Husks[there.ID]
		return err, ok
	}
	if err, looked := look(Options{}); err != nil || !looked {
		t.Error(err, looked)
	}
	s.e.Config.Restore.Husk = true
	if _, looked := look(Options{NoHusk: true}); looked {
		t.Error("--no-husk looked")
	}
	s.e.Config.Restore.Husk = false
	if _, looked := look(Options{}); looked {
		t.Error("the configuration says no")
	}
	s.e.Config.Restore.Husk = true
	s.first().AgentSession = nil
	if _, looked := look(Options{}); looked {
		t.Error("of a session without records")
	}
	// A shell that is none, and a process of another life.
	self := host.Pane{PID: os.Getpid(), Command: "sh"}
	if err := HuskShell(self, os.Getpid()); err == nil {
		t.Error("the test is an idle shell")
	}
	if err := HuskShell(host.Pane{PID: 1}, os.Getpid()); err == nil || !strings.Contains(err.Error(), "this life") {
		t.Errorf("process 1 in the life of %d: %v", os.Getpid(), err)
	}
}

// A save between the login and the restore finds the terminal's session under the name of the saved
// one, which is carried on under another. It gets its own back, and the husk makes room.
func TestOwnNameBack(t *testing.T) {
	for _, c := range []struct {
		name   string
		set    func(s *stage)
		action string
		made   string // the session that holds the agent
		left   []string
	}{
		{"a husk has it", nil, Create, "work", []string{"work", "work-1"}},
		{"nobody has it", func(s *stage) {
			s.clear("work")
			s.src.Archive.Sessions = s.src.Archive.Sessions[:1]
		}, Create, "work", []string{"work"}},
		{"it is in use", func(s *stage) { s.f.Husks[s.f.View.Sessions[0].ID] = errors.New("in use") }, Create, "work (pending 2)", []string{"work", "work (pending 2)"}},
		{"another session comes back under it", func(s *stage) { s.clear("work") }, Create, "work (pending 2)", []string{"work", "work (pending 2)"}},
		{"another session with a record has it", func(s *stage) {
			s.src.Archive.Sessions[1].Windows[0].Panes[0].AgentSession = &metadata.AgentSession{PluginID: "phux.agents", IntegrationID: "claude-code", NativeID: id2}
			s.src.Archive.Sessions[1].Windows[0].Panes[0].Agent = &archive.Agent{State: archive.StateEnded}
		}, Create, "work (pending 2)", []string{"work", "work (pending 2)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			husk := s.shellSession("work")
			s.f.Husks = map[string]error{husk.ID: nil}
			waits := &s.src.Archive.Sessions[0]
			waits.Name, waits.Pending = "work (pending 2)", &archive.Pending{From: 2, Name: "work"}
			s.src.Archive.Sessions = append(s.src.Archive.Sessions[:1], archive.Session{Name: "work", Windows: []archive.Window{{Panes: []archive.Pane{{Cwd: "/"}}}}})
			if c.set != nil {
				c.set(s)
			}
			r, err := Apply(context.Background(), s.e, s.plan())
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Sessions[0]; got.Action != c.action || got.Name != "work (pending 2)" {
				t.Errorf("%s of %q: %s", got.Action, got.Name, got.Reason)
			}
			if names := s.names(); !slices.Equal(names, c.left) {
				t.Errorf("there are %v: %s", names, r.Sessions[0].Reason)
			}
			v, err := view(context.Background(), s.h)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range v.Sessions {
				holds := slices.ContainsFunc(x.Windows[0].Panes, func(p host.Pane) bool { return len(p.Meta[metadata.KeyAgentSession]) > 0 })
				if holds != (x.Name == c.made) {
					t.Errorf("session %q holds an agent: %v", x.Name, holds)
				}
			}
		})
	}
}

// clear ends a session of the stage's host.
func (s *stage) clear(name string) {
	s.t.Helper()
	for _, x := range s.f.View.Sessions {
		for _, w := range x.Windows {
			for _, p := range w.Panes {
				if x.Name == name {
					if err := s.h.Kill(context.Background(), p.Terminal); err != nil {
						s.t.Fatal(err)
					}
				}
			}
		}
	}
	s.see()
}
