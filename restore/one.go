package restore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
)

// dyingTime bounds the wait for the last owner of a respawned pane to be gone, and for owners that
// lost their terminal or their server.
const dyingTime = 5 * time.Second

// One re-resolves and plans a single pane from its current record: a respawned pane and a
// placeholder's Enter. The start is either the agent, with its guard (which claims in the pane
// itself, without a ticket), or a placeholder that says why; for a record whose agent had ended,
// a shell. self is the pane. The last owner of this very pane, where it is just dying, is
// waited for, at most 5 s.
//
// e.Host may be nil where no host can be asked: it is only looked at for siblings.
func One(ctx context.Context, e Env, rec metadata.AgentSession, facts metadata.LaunchFacts, self owner.Place) (host.Start, PanePlan, error) {
	if self.PaneKey == "" {
		self.PaneKey = facts.PaneKey
	}
	src := single(rec, facts)
	deadline, stop := context.WithTimeout(ctx, dyingTime)
	defer stop()
	for {
		f, err := gatherOne(ctx, e, src, self)
		if err != nil {
			return host.Start{}, PanePlan{}, err
		}
		m := &maker{src: src, f: f, hold: holdings(src.Archive, []*archive.Session{&src.Archive.Sessions[0]}, f)}
		p := m.one(&src.Archive.Sessions[0])
		// The claim of a pane that was respawned outlives the kill by the time that its process
		// needs to go. It has lost its terminal by then, so it may look like an orphan.
		if l := m.lives(&p); p.Verdict == AlreadyLive && (l.Kind == owner.Claimed || l.Kind == owner.Orphan) && within(l.Place, self) {
			if e.dies(deadline, l.Process.PID) == nil {
				continue
			}
		}
		if err := ctx.Err(); err != nil {
			return host.Start{}, PanePlan{}, err
		}
		if p.agent != nil {
			g := owner.NewGuard(p.agent.template, p.agent.identity, "", self, e.Claims, p.agent.expect)
			if p.Start.Guard, err = g.Encode(); err != nil {
				return host.Start{}, PanePlan{}, fmt.Errorf("plan the pane: %w", err)
			}
		}
		return p.Start, p, nil
	}
}

// dies waits a little for a process to be gone, and says by nil that it is worth another look.
func (e Env) dies(ctx context.Context, pid int) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if e.Watch == nil {
		return pause(ctx, lookAgain)
	}
	if err := e.Watch(ctx, []int{pid}, 10*lookAgain); err != nil {
		return err
	}
	return pause(ctx, lookAgain/4) // a Watch that cannot tell returns at once
}

// single is a pane's own record as an archive of one pane. It is our own: the pane holds it.
func single(rec metadata.AgentSession, f metadata.LaunchFacts) Source {
	state := "running"
	switch {
	case f.Ended:
		state = "ended"
	case f.Pending:
		state = "pending"
	}
	return Source{Own: true, Archive: &archive.Archive{
		SchemaVersion: archive.SchemaVersion,
		Sessions: []archive.Session{{Windows: []archive.Window{{Panes: []archive.Pane{{
			Cwd: f.LaunchDir, AgentSession: &rec,
			Agent: &archive.Agent{
				Key: f.PaneKey, PluginID: f.PluginID, IntegrationID: f.IntegrationID, Profile: f.Profile,
				LaunchCwd: f.LaunchDir, Store: f.Store, Durability: f.Durability, State: state,
				ConfirmedAt: f.ConfirmedAt, Unconfirmed: f.Unconfirmed, Previous: f.Previous, NotPreserved: f.NotPreserved,
			},
		}}}}}},
	}}
}

// gatherOne is Gather without the session's own questions.
func gatherOne(ctx context.Context, e Env, src Source, self owner.Place) (*Facts, error) {
	f := &Facts{Names: map[string]string{}, View: &host.Workspace{}}
	if e.Host != nil {
		info, v, err := e.probe(ctx)
		if err == nil {
			f.Host = info
		}
		if v == nil {
			v, err = view(ctx, e.Host)
		}
		if err == nil {
			f.View = without(v, self)
		}
	}
	f.Host.AtomicRecord = true // the pane is there, with its record
	e.Watch = nil              // One waits itself, for the last owner of this very pane
	err := f.gather(ctx, e, src, Options{}, []*archive.Session{&src.Archive.Sessions[0]})
	return f, err
}

// without is the view of everybody else.
func without(v *host.Workspace, self owner.Place) *host.Workspace {
	out := &host.Workspace{Instance: v.Instance, Sessions: slices.Clone(v.Sessions)}
	for i := range out.Sessions {
		s := &out.Sessions[i]
		s.Windows = slices.Clone(s.Windows)
		for j := range s.Windows {
			s.Windows[j].Panes = slices.DeleteFunc(slices.Clone(s.Windows[j].Panes), func(p host.Pane) bool {
				if self.Terminal != "" && p.Terminal.ID == self.Terminal {
					return true
				}
				f, err := metadata.DecodeLaunchFacts(p.Meta[metadata.KeyAgentLaunch])
				return err == nil && self.PaneKey != "" && f.PaneKey == self.PaneKey
			})
		}
	}
	return out
}

// one judges the pane of a single archive. There is no session to refuse: trouble of any kind
// is said in the pane.
func (m *maker) one(s *archive.Session) PanePlan {
	p := &s.Windows[0].Panes[0]
	pp := PanePlan{Record: p.AgentSession, Dir: launchDir(s, p), Previous: p.Agent.Previous, NotPreserved: p.Agent.NotPreserved}
	m.pane(s, p, &pp)
	plan := &Plan{Sessions: []SessionPlan{{Action: Create, Panes: []PanePlan{pp}}}}
	m.requirements(plan)
	pp = plan.Sessions[0].Panes[0]
	if pp.Verdict.Authority() {
		pp.placeholder(trouble{pp.Verdict, pp.Reason, pp.Hint}, m.standIn(pp.Dir))
	}
	return pp
}

// lives is what was found of the owner of the pane's identity.
func (m *maker) lives(p *PanePlan) owner.Live {
	return m.f.Talks[TalkKey{p.key, m.hold.identity(*p.Record).NativeID}].Live
}

// within reports whether two places are one pane.
func within(a, b owner.Place) bool {
	if a.Host != "" && b.Host != "" && a.Host != b.Host {
		return false
	}
	return b.PaneKey != "" && a.PaneKey == b.PaneKey || b.Terminal != "" && a.Terminal == b.Terminal
}
