package main

import (
	"context"
	"slices"

	"github.com/phux-agent/phux-agent/capture"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/owner"
	"github.com/phux-agent/phux-agent/status"
)

// heardBefore reports an event that tells nothing new: the very process that it comes from is
// known, with this conversation and in this state. Then the host is asked nothing, for some agents
// tell after each of their tools.
func (a *app) heardBefore(h *hosted, rep capture.Report, chain []proc.Info) bool {
	d, err := a.dirs()
	if err != nil {
		return false
	}
	server, err := serverName(h)
	if err != nil {
		return false
	}
	s, err := status.Read(status.File(d.Runtime, server))
	if err != nil {
		return false
	}
	var known *status.Agent
	for _, p := range chain {
		if known = s.Of(p.PID, p.Start); known != nil {
			break
		}
	}
	if known == nil || known.Integration != rep.Integration || known.ID == "" {
		return false
	}
	reg, err := a.registry()
	if err != nil {
		return false
	}
	own, err := reg.Resolve(rep.Integration)
	if err != nil {
		return false
	}
	said, ok := owner.Tells(own.Template, rep.Event, rep.Payload)
	return ok && said.ID == known.ID && said.State == known.State
}

// heard keeps the summary up to date with what a hook told, and calls the user's command where the
// agent has come to want a person.
func (a *app) heard(ctx context.Context, h *hosted, heard capture.Heard) {
	if !heard.Told && heard.Changed == "" {
		return
	}
	server, err := serverName(h)
	if err != nil {
		return
	}
	h.info.Server = server
	a.tellPerson(heard) // first, for the rest may take the time that is left
	now := a.now().UTC()
	a.glance(ctx, h, heard.Terminal.Instance, func(s *status.Summary) {
		if heard.Changed != "" {
			s.Changed(now)
		}
		if heard.Told {
			s.Heard(status.Agent{
				Terminal: heard.Terminal.ID, Session: heard.Session, Integration: heard.Integration, ID: heard.ID,
				PID: heard.Owner.PID, Start: heard.Owner.Start,
				State: heard.Live.EffectiveState(), Attention: heard.Live.EffectiveAttention(),
			}, now)
		}
	})
}

// tellPerson calls the user's command where the agent has come to want a person.
func (a *app) tellPerson(heard capture.Heard) {
	state := heard.Live.EffectiveState()
	if !heard.Told || state == heard.Was.EffectiveState() || !slices.Contains([]string{status.Blocked, status.Done}, state) {
		return
	}
	c, err := a.config()
	if err != nil || len(c.Notify.Command) == 0 {
		return
	}
	n := notice{State: stateWord(state), Pane: heard.Terminal.ID, Session: heard.Session, Title: heard.Title, Agent: heard.Integration}
	if err := a.notify(c.Notify.Command, n); err != nil {
		a.hookLog([]string{heard.Integration}, "error: notify: "+err.Error())
	}
}

// stateWord is a live state for people: what phux calls blocked waits for a person.
func stateWord(state string) string {
	if state == status.Blocked {
		return "waiting"
	}
	return state
}
