package main

import (
	"context"
	"errors"
	"time"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/capture"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/status"
)

// glance keeps the summary of a server that status and a host's status line show. That it cannot
// be kept is no failure of the verb that looked.
func (a *app) glance(ctx context.Context, h *hosted, life host.Instance, change func(*status.Summary)) {
	runtime, err := a.runtime()
	if err != nil {
		return
	}
	path := status.File(runtime, h.info.Server)
	label := ""
	s, err := status.Update(path, func(s *status.Summary) {
		if life != (host.Instance{}) {
			s.Begin(h.info.Server, life.PID, capture.InstanceDigest(life))
		}
		s.Server = h.info.Server
		change(s)
		label = s.Text(time.Local)
	})
	if err != nil || s.Label == label {
		return
	}
	if l, ok := h.Host.(host.Labeler); ok && l.Label(ctx, label) != nil {
		return // at the next change
	}
	_, _ = status.Update(path, func(s *status.Summary) { s.Label = label })
}

// lifeOf is the server life that panes were seen in; the zero one where there is none.
func lifeOf(panes []capture.Pane) host.Instance {
	if len(panes) == 0 {
		return host.Instance{}
	}
	return panes[0].Terminal.Instance
}

// running is the agents of a look.
func running(panes []capture.Pane) []status.Agent {
	var out []status.Agent
	for _, p := range panes {
		if p.State == capture.Running {
			out = append(out, agentOf(p))
		}
	}
	return out
}

func agentOf(p capture.Pane) status.Agent {
	a := status.Agent{
		Terminal: p.Terminal.ID, Session: p.Session, Integration: p.Facts.IntegrationID,
		PID: p.Facts.OwnerPID, Start: p.Facts.OwnerStart,
	}
	if p.Owner.PID > 0 {
		a.PID, a.Start = p.Owner.PID, p.Owner.Start
	}
	if p.Record != nil {
		a.Integration, a.ID = p.Record.IntegrationID, p.Record.NativeID
	}
	if p.Agent != nil {
		a.State, a.Attention = p.Agent.EffectiveState(), p.Agent.EffectiveAttention()
	}
	return a
}

// glanced notes what a look found that began at that time, and, where saved is not nil, the generation that was made of it.
func (a *app) glanced(ctx context.Context, h *hosted, panes []capture.Pane, saved *saveDone, began time.Time) {
	now := a.now().UTC().Truncate(time.Second)
	a.glance(ctx, h, lifeOf(panes), func(s *status.Summary) {
		s.Looked(running(panes), began, now)
		if saved != nil {
			s.Saved(saved.saved.Generation, saved.saved.SavedAt, saved.saved.State == goodState || saved.saved.State == archive.Settling, now)
			return
		}
		for _, p := range panes {
			if p.Changed != "" {
				s.Changed(now)
			}
		}
	})
}

// unsaved notes that something was made or changed which no save has seen.
func (a *app) unsaved(ctx context.Context, h *hosted) {
	a.glance(ctx, h, host.Instance{}, func(s *status.Summary) { s.Changed(a.now().UTC().Truncate(time.Second)) })
}

var errNoSummary = errors.New("nothing is known of this server's agents yet")
