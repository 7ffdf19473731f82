package restore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/owner"
)

// Fill is what Options.Fill makes of a session that is there: idle shells that stand where agents
// belong take their agents; everything else of it is left as it is.
const Fill = "fill"

// IdleShell is Env.Idle for hosts whose terminals are processes of this machine.
func IdleShell(p host.Pane) error {
	_, err := proc.IdleShell(p.PID, p.TTY)
	if err == nil && !proc.IsShell(p.Command) {
		err = fmt.Errorf("%w: its terminal shows %q", proc.ErrNotIdle, p.Command)
	}
	return err
}

// target is the pane that an archived pane is to take the place of.
type target struct {
	terminal host.Terminal
	occupant host.Occupant
}

// seat is the pane of a session at the place where an archived one was: by the index of its window
// and its position there. Nil where there is none.
func seat(there *host.Session, number, index int) *host.Pane {
	for w := range there.Windows {
		if win := &there.Windows[w]; win.Index == number && index < len(win.Panes) {
			return &win.Panes[index]
		}
	}
	return nil
}

// idle looks at the panes that a fill takes, or could, while nothing is decided. Of a pane that holds
// something of ours nothing is read.
func (f *Facts) idle(e Env, sessions []*archive.Session) {
	f.Idle = map[string]error{}
	if f.View == nil {
		return
	}
	m := &maker{f: f}
	for _, s := range sessions {
		there := m.there(orDefault(f.Names[s.Name], s.Name))
		if there == nil {
			if there = m.there(holdableOwn(f, s)); there == nil {
				continue
			}
		}
		number := numbering(s)
		for w := range s.Windows {
			for i := range s.Windows[w].Panes {
				if s.Windows[w].Panes[i].AgentSession == nil {
					continue
				}
				if p := seat(there, number[w], i); p != nil {
					f.Idle[p.Terminal.ID] = e.idle(*p)
				}
			}
		}
	}
}

// errUnproven stands for what no fact was gathered of.
var errUnproven = errors.New("whether it is an idle shell was not looked at")

func (e Env) idle(p host.Pane) error {
	switch {
	case !p.IsVacant():
		return errors.New("it holds something of ours, or nothing that runs")
	case e.Idle == nil:
		return errUnproven
	}
	if _, ok := e.Host.(host.Replacer); !ok {
		return errors.New("this host cannot replace what a terminal runs")
	}
	return e.Idle(p)
}

// fill judges, of a session that is there, the panes whose records no pane of it holds, as if they
// were to be created, and says which of them take an idle shell's place. What cannot start changes
// nothing: the shell stays a shell.
func (m *maker) fill(s *archive.Session, sp *SessionPlan, there *host.Session) {
	number, at := numbering(s), 0
	for w := range s.Windows {
		for i := range s.Windows[w].Panes {
			p, pp := &s.Windows[w].Panes[i], &sp.Panes[at]
			at++
			if p.AgentSession == nil || pp.Verdict != PendingPane || m.held(there, p) {
				continue
			}
			sp.Action = Fill
			stays := func(format string, args ...any) { pp.Reason = join(pp.Reason, fmt.Sprintf(format, args...)) }
			pane := seat(there, number[w], i)
			if pane == nil {
				stays("no pane is at its place to be filled")
				continue
			}
			why, looked := m.f.Idle[pane.Terminal.ID]
			if !looked {
				why = errUnproven
			}
			if why == nil && m.filled[pane.Terminal.ID] {
				why = errors.New("another agent's place is there, too")
			}
			if why != nil {
				stays("pane %s at its place is not filled: %v", pane.Terminal.ID, why)
				continue
			}
			q := PanePlan{Window: pp.Window, Index: pp.Index, Title: pp.Title, Record: pp.Record, Command: pp.Command, Dir: pp.Dir, Previous: pp.Previous, NotPreserved: pp.NotPreserved}
			m.pane(s, p, &q)
			if q.Verdict.Starts() {
				q.fill = &target{pane.Terminal, host.Occupant{PID: pane.PID, Command: pane.Command}}
				if m.filled == nil {
					m.filled = map[string]bool{}
				}
				m.filled[pane.Terminal.ID] = true
				q.Reason = join(q.Reason, "in the idle shell of pane "+pane.Terminal.ID)
			} else {
				q.unstarted()
			}
			*pp = q
		}
	}
	if sp.Action == Fill {
		sp.HostName = there.Name
		sp.Reason = fmt.Sprintf("a session %q is there: idle shells at the places of agents take them, and everything else is left as it is", sp.HostName)
	}
}

// offer says of a session that is left alone which of its idle shells a fill would take.
func (m *maker) offer(s *archive.Session, sp *SessionPlan, there *host.Session) {
	would := SessionPlan{Action: sp.Action, Panes: slices.Clone(sp.Panes)}
	taken := maps.Clone(m.filled)
	m.fill(s, &would, there)
	m.filled = taken // nothing is
	for i := range would.Panes {
		if f := would.Panes[i].fill; f != nil && would.Panes[i].Verdict.Starts() {
			sp.Panes[i].Reason = join(sp.Panes[i].Reason, fmt.Sprintf("pane %s at its place is an idle shell", f.terminal.ID))
			sp.Panes[i].Hint = "phux-agent restore --fill"
			sp.Fillable++
		}
	}
}

// fillOwn is the plan of a session that waits under another name, because one of its own name is
// there: where that has idle shells for its agents, they come back where they were, or would. Else it
// is created, as it always is.
func (m *maker) fillOwn(s *archive.Session) (SessionPlan, bool) {
	there := m.there(holdableOwn(m.f, s))
	if there == nil || s.OwnName() == s.Name || m.global() != nil {
		return SessionPlan{}, false
	}
	sp := m.judge(s, there)
	if m.o.Fill {
		return sp, slices.ContainsFunc(sp.Panes, func(p PanePlan) bool { return sp.makes(&p) })
	}
	// Created beside it, each of its panes would be there twice.
	sp.HostName = there.Name
	sp.Reason = fmt.Sprintf("a session %q is there, with idle shells where its agents were, and is left as it is", there.Name)
	return sp, sp.Fillable > 0
}

// held reports a record that some pane of the session holds.
func (m *maker) held(there *host.Session, p *archive.Pane) bool {
	_, _, ok := m.hold.holding(there, m.hold.identity(*p.AgentSession))
	return ok
}

// unstarted is a pane of a session that is there, in which nothing is started after all.
func (p *PanePlan) unstarted() {
	p.Start, p.agent, p.fill, p.name = host.Start{}, nil, nil, nil
	p.store, p.carry = false, false
}

// makes reports a pane that the plan makes or replaces.
func (s *SessionPlan) makes(p *PanePlan) bool {
	return s.Action == Create || s.Action == Fill && p.fill != nil
}

// fill puts the agents of one session in their places.
func (k *work) fill(ctx context.Context, sp *SessionPlan, r *SessionReport) {
	h, ok := k.e.Host.(host.Replacer)
	var faults []string
	made := false
	for i := range sp.Panes {
		if sp.Panes[i].fill == nil {
			continue
		}
		pp := sp.Panes[i] // a copy: the plan stays as it was made
		pr := &r.Panes[i]
		err := ctx.Err()
		if err == nil && !ok {
			err = errors.New("this host cannot replace what a terminal runs")
		}
		var started *host.Started
		if err == nil {
			started, err = k.replace(ctx, h, &pp)
			pr.from(&pp)
		}
		switch {
		case !pp.Verdict.Starts(): // it came alive since the plan
		case errors.Is(err, host.ErrOccupied), errors.Is(err, host.ErrNoTerminal):
			pr.Verdict, pr.Reason = PendingPane, fmt.Sprintf("pane %s is no idle shell any more, and is left as it is", pp.fill.terminal.ID)
			pr.Hint = "restore --fill again when it is"
		case err != nil:
			pr.Verdict, pr.Reason = PendingPane, "it could not be started: "+bound(err.Error())
			faults = append(faults, fmt.Sprintf("window %d, pane %d: %s", pp.Window, pp.Index, bound(err.Error())))
		case started.Err != nil:
			made = true
			pr.result(Exited)
			pr.Reason, pr.Hint = "it did not start: "+bound(started.Err.Error()), "the pane keeps the record, and tries again on Enter"
		default:
			made = true
			k.agents = append(k.agents, &running{*started, pr})
		}
	}
	if made {
		k.sessions++
	}
	if len(faults) > 0 {
		r.Error = strings.Join(faults, "; ")
	}
}

// replace claims one pane's identity and puts its agent there, or gives the claim back.
func (k *work) replace(ctx context.Context, h host.Replacer, pp *PanePlan) (*host.Started, error) {
	spec := host.PaneSpec{Start: pp.Start, Title: clip(pp.Title, host.MaxValue)}
	claim, err := k.prepare(pp, &spec)
	if err != nil {
		return nil, err
	}
	if !pp.Verdict.Starts() {
		pp.unstarted()
		return nil, nil
	}
	release := func(c *owner.Claim) {
		if c != nil {
			_ = k.e.Claims.Release(*c) // of a pane that took it over, the ticket holds nothing any more
		}
	}
	started, err := h.Replace(ctx, pp.fill.terminal, pp.fill.occupant, spec)
	if err == nil {
		if key, ok := otherBytes(spec.Meta, started.Meta); !ok {
			err = fmt.Errorf("read back %s of %s: the host holds other bytes than it was given", key, started.Terminal.ID)
		}
	}
	if err != nil || started.Err != nil {
		release(claim)
	}
	return started, err
}
