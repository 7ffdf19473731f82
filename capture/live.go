package capture

import (
	"context"

	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
)

// unknownState is the live state of an agent of which nothing was heard.
const unknownState = "unknown"

// fade takes back a live state that no running agent said: its agent is over, or another process
// stands in the pane than the one whose hook spoke.
func (p *pane) fade() {
	if p.Agent == nil || p.Agent.State == unknownState && p.Agent.Attention == "" {
		return
	}
	if p.State == Running && p.alive && p.spoke == p.root {
		return
	}
	faded := *p.Agent
	faded.State, faded.Attention = unknownState, ""
	p.Agent, p.faded = &faded, true
}

// clear writes faded states down, so that no other reader of the pane believes them.
func (l *view) clear(ctx context.Context) {
	for _, p := range l.panes {
		if !p.faded {
			continue
		}
		if b, err := p.Agent.Encode(); err == nil {
			// What fails is tried at the next look.
			_ = l.swap(ctx, p, metadata.KeyAgent, b)
		}
	}
}

// live notes the state that the pane's own agent told of. The process that spoke is noted first:
// a state counts for that process alone.
func (l *view) live(ctx context.Context, p *pane, said owner.Said) (was metadata.Agent, err error) {
	t := p.own.Template
	now := metadata.Agent{Name: t.Agent.Name, Kind: t.Agent.Kind, State: unknownState}
	if now.Name == "" {
		now.Name = t.ID
	}
	if p.Agent != nil {
		now = *p.Agent
	}
	if p.spoke != p.root {
		now.State, now.Attention = unknownState, ""
	}
	was = now
	now.State, now.Attention = said.State, said.Attention
	if p.Agent != nil && *p.Agent == now && p.spoke == p.root {
		return was, nil
	}
	value, err := now.Encode()
	if err != nil {
		return was, err
	}
	if noted := (owner.Process{PID: p.stored.OwnerPID, Start: p.stored.OwnerStart}); noted != p.root {
		facts := p.remembered()
		facts.OwnerPID, facts.OwnerStart = p.root.PID, p.root.Start
		if err := l.store(ctx, p, facts.Fitted()); err != nil {
			return was, err
		}
	}
	if err := l.swap(ctx, p, metadata.KeyAgent, value); err != nil {
		return was, err
	}
	p.Agent = &now
	return was, nil
}

// describe says of which pane and process a report was.
func (h *Heard) describe(p *pane) {
	h.Terminal, h.Session, h.Title = p.Terminal, p.Session, p.host.Title
	h.Integration, h.Owner = p.own.Template.ID, p.root
	if p.Agent != nil {
		h.Live = *p.Agent
	}
	if p.Record != nil {
		h.ID = p.Record.NativeID
	}
}
