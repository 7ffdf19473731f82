package restore

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
)

// shells makes a session of that name on the host, with n shells beside each other in window 1.
func (s *stage) shells(name string, n int) []host.Terminal {
	s.t.Helper()
	layout, err := host.Split(120, 40, n)
	if err != nil {
		s.t.Fatal(err)
	}
	made, err := s.h.Create(context.Background(), host.CreateSession{Name: name, Windows: []host.WindowSpec{{
		Index: 1, AutomaticName: true, Layout: layout, Panes: make([]host.PaneSpec, n),
	}}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.see()
	s.f.Idle = map[string]error{}
	var out []host.Terminal
	for _, p := range made.Windows[0] {
		out = append(out, p.Terminal)
		s.f.Idle[p.Terminal.ID] = nil
	}
	return out
}

func TestFill(t *testing.T) {
	s := newStage(t)
	s.session(0).Windows[0].Panes[1] = s.pane("claude-code", id2)
	at := s.shells("work", 2)

	if p := s.plan(); p.Sessions[0].Action != SkipExisting {
		t.Fatalf("without Fill: %+v", p.Sessions[0])
	}
	s.o.Fill = true
	s.f.Idle[at[1].ID] = errors.New("it hums")
	p := s.plan()
	if sp := p.Sessions[0]; sp.Action != Fill || sp.create != nil {
		t.Fatalf("%+v", sp)
	}
	one, two := p.Sessions[0].Panes[0], p.Sessions[0].Panes[1]
	if one.Verdict != Resume || one.fill == nil || one.fill.terminal != at[0] || !strings.Contains(one.Reason, at[0].ID) {
		t.Errorf("an idle shell: %+v", one)
	}
	if two.Verdict != PendingPane || two.fill != nil || !strings.Contains(two.Reason, "it hums") || len(two.Start.Argv) > 0 {
		t.Errorf("one that is not: %+v", two)
	}
	if p.Dry().Outcome() != Partial {
		t.Error("the plan's outcome is as if all came back")
	}
	r := s.apply()
	if r.Sessions[0].Panes[0].Result == nil || *r.Sessions[0].Panes[0].Result != Running || r.Sessions[0].Panes[1].Result != nil || r.Outcome() != Partial {
		t.Errorf("%+v", r.Sessions[0])
	}
	s.see()
	pane := s.f.View.Sessions[0].Windows[0].Panes[0]
	if pane.Terminal != at[0] || pane.Origin != host.Ours || len(pane.Meta[metadata.KeyAgentSession]) == 0 || len(pane.Meta[metadata.KeyAgentLaunch]) == 0 {
		t.Errorf("%+v", pane)
	}
	// The claim is the pane's; the other shell is free, and the first place is taken.
	s.f.Idle = map[string]error{at[0].ID: nil, at[1].ID: nil}
	if r = s.apply(); r.Sessions[0].Panes[0].Verdict != AlreadyLive || *r.Sessions[0].Panes[1].Result != Running || r.Outcome() != Done {
		t.Errorf("%+v", r.Sessions[0])
	}
	if n := len(s.h.Started()); n != 4 { // two shells, two agents
		t.Errorf("%d programs were started", n)
	}
}

// What cannot start leaves the shell as it is.
func TestFillLeaves(t *testing.T) {
	for name, c := range map[string]struct {
		want    Verdict
		arrange func(s *stage, at host.Terminal)
	}{
		"the directory is gone": {CwdMissing, func(s *stage, _ host.Terminal) { s.f.Dirs["/src/a"] = Dir{Detail: "gone"} }},
		"untrusted": {NotRestorable, func(s *stage, _ host.Terminal) {
			s.change(key("claude-code"), func(a *Agent) { a.Owner.Unverified = true })
		}},
		"nothing was looked at": {PendingPane, func(s *stage, at host.Terminal) { delete(s.f.Idle, at.ID) }},
		"another window":        {PendingPane, func(s *stage, _ host.Terminal) { s.session(0).Windows[0].Index = 7 }},
		"it lives elsewhere": {AlreadyLive, func(s *stage, _ host.Terminal) {
			s.talk(id1, func(t *Talk) { t.Live = owner.Live{Kind: owner.Claimed, Process: owner.Process{PID: 4711, Start: 1}} })
		}},
		"its agent had ended": {EndedPane, func(s *stage, _ host.Terminal) { s.first().Agent.State = "ended" }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			at := s.shells("work", 1)
			s.o.Fill = true
			c.arrange(s, at[0])
			r := s.apply()
			pr := r.Sessions[0].Panes[0]
			if pr.Verdict != c.want || pr.Result != nil {
				t.Errorf("%+v", pr)
			}
			s.see()
			if p := s.f.View.Sessions[0].Windows[0].Panes[0]; p.Origin != host.Foreign || len(s.h.Started()) != 1 {
				t.Errorf("it was touched: %+v", p)
			}
			if claims, err := s.e.Claims.List(); err != nil || len(claims) > 0 {
				t.Errorf("claims are left: %v, %v", claims, err)
			}
		})
	}
}

// Who came back to the shell since the plan keeps it, and the claim is given back.
func TestFillRaced(t *testing.T) {
	s := newStage(t)
	at := s.shells("work", 1)
	s.o.Fill = true
	p := s.plan()
	if err := s.h.SetCommand(at[0], "vim"); err != nil {
		t.Fatal(err)
	}
	r, err := Apply(context.Background(), s.e, p)
	if err != nil {
		t.Fatal(err)
	}
	if pr := r.Sessions[0].Panes[0]; pr.Verdict != PendingPane || !strings.Contains(pr.Reason, "no idle shell any more") || r.Outcome() != Partial {
		t.Errorf("%+v", pr)
	}
	if claims, err := s.e.Claims.List(); err != nil || len(claims) > 0 || len(s.h.Started()) != 1 {
		t.Errorf("claims %v, %v", claims, err)
	}
}

func TestFillRequirement(t *testing.T) {
	s := newStage(t)
	s.swapTo("gemini-cli", geminiTOML, id1)
	s.unmet()
	s.session(0).Windows[0].Panes[1] = s.pane("gemini-cli", id2)
	s.shells("work", 2)
	s.o.Fill = true
	for _, pp := range s.plan().Sessions[0].Panes {
		if pp.Verdict != RequirementUnmet || pp.fill != nil || pp.Start.Mode == host.Placeholder {
			t.Errorf("%+v", pp)
		}
	}
}

// A restore without Fill says where one would put agents, and makes no second session beside them.
func TestFillIsOffered(t *testing.T) {
	s := newStage(t)
	s.session(0).Windows[0].Panes[1] = s.pane("claude-code", id2)
	at := s.shells("work", 2)
	s.f.Idle[at[1].ID] = errors.New("it hums")
	offered := func(sp SessionPlan, name string) {
		t.Helper()
		if sp.Action != SkipExisting || sp.Name != name || sp.HostName != "work" || sp.Fillable != 1 || sp.create != nil {
			t.Fatalf("%+v", sp)
		}
		one, two := sp.Panes[0], sp.Panes[1]
		if one.Verdict != PendingPane || one.fill != nil || one.Hint != "phux-agent restore --fill" || !strings.Contains(one.Reason, at[0].ID) {
			t.Errorf("%+v", one)
		}
		if two.Verdict != PendingPane || two.Hint == one.Hint {
			t.Errorf("%+v", two)
		}
	}
	p := s.plan()
	offered(p.Sessions[0], "work")
	if p.Dry().Sessions[0].Fillable != 1 {
		t.Error("the report does not tell")
	}
	if s.apply(); len(s.h.Started()) != 2 {
		t.Error("something was started")
	}

	// The same once a save has seen the shells, and carries the agents on under another name.
	s.session(0).Name, s.session(0).Pending = "work (pending 2)", &archive.Pending{From: 2, Name: "work"}
	offered(s.plan().Sessions[0], "work (pending 2)")
	if s.apply(); len(s.h.Started()) != 2 {
		t.Error("something was started")
	}
	// Where nothing could be filled, it is made beside what is there.
	s.f.Idle[at[0].ID] = errors.New("it hums")
	if sp := s.plan().Sessions[0]; sp.Action != Create || sp.HostName != "work (pending 2)" {
		t.Errorf("%+v", sp)
	}
}
