package capture

import (
	"context"
	"errors"
	"fmt"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
)

// adoptable are the templates whose agents can be taken in by proof.
func (l *view) adoptable() []*integrations.Template {
	if _, ok := l.Host.(host.Binder); !ok {
		return nil
	}
	var out []*integrations.Template
	for _, t := range l.enabled() {
		if t.Restorable() == nil && provable(t) {
			out = append(out, t)
		}
	}
	return out
}

// enabled are the templates that resolve to an owner now.
func (l *view) enabled() []*integrations.Template {
	var out []*integrations.Template
	seen := map[string]bool{}
	for _, p := range l.Registry.Plugins() {
		for _, in := range p.Integrations {
			if in.Template == nil || seen[in.ID] {
				continue
			}
			seen[in.ID] = true
			if own, err := l.resolve(in.ID, ""); err == nil {
				out = append(out, own.Template)
			}
		}
	}
	return out
}

// free reports a pane in which no agent of ours runs or waits, so that one may be started there
// by hand.
func (p *pane) free() bool {
	if p.host.Dead || p.Err != nil {
		return false
	}
	switch p.host.Origin {
	case host.Foreign, host.BoundGone, host.Ended:
		return true
	case host.Ours:
		// A shell that we made to stand there, or one where a restored record had ended.
		return !p.host.Waiting && (!p.ours() || p.Facts.Ended)
	}
	return false
}

// discover looks for an agent that was started by hand in a pane, and wants it taken in where it
// proves which conversation it has open.
func (l *view) discover(p *pane, known []*integrations.Template) {
	found, err := l.proofs.under(p.host.PID, p.host.TTY, known)
	if err != nil {
		if !errors.Is(err, owner.ErrNoAgent) {
			p.Reason = "not adopted: " + err.Error()
		}
		return
	}
	answer := l.proofs.observe(found.Template, found.Process)
	if answer.Kind != owner.Confirmed {
		p.Reason = fmt.Sprintf("not adopted: %s runs in it, but %s", found.Template.ID, answer.Reason)
		return
	}
	if err := l.take(p, found, answer); err != nil {
		p.Reason = "not adopted: " + err.Error()
	}
}

// take makes a found agent the pane's, as a move that is still to be decided. Nothing of what the
// pane held before stays, but its key.
func (l *view) take(p *pane, found owner.ByHand, answer owner.Answer) error {
	own, err := l.resolve(found.Template.ID, "")
	if err != nil {
		return err
	}
	id, err := own.Template.NormalizeID(answer.ID)
	if err != nil {
		return err
	}
	key := p.Facts.PaneKey
	if key == "" {
		key = metadata.NewPaneKey()
	}
	facts := metadata.LaunchFacts{
		PaneKey: key, PluginID: own.PluginID, IntegrationID: own.Template.ID, LaunchDir: l.proofs.dir(found.Process),
	}
	if facts.LaunchDir == "" {
		facts.LaunchDir = p.host.Dir
	}
	if env, err := l.proofs.environ(found.Process); err == nil {
		facts.Store = owner.Store(own.Template, env)
	}
	if err := facts.Validate(); err != nil {
		return err
	}
	p.hand = true
	p.own, p.ownErr = own, nil
	p.Record, p.Facts, p.stored = nil, facts, metadata.LaunchFacts{}
	p.root, p.alive, p.State = found.Process, true, Running
	p.answer, p.move = answer, id
	return nil
}

// letGo undoes take: the pane is what it was without us.
func (p *pane) letGo(reason string) {
	*p = pane{host: p.host, Pane: Pane{
		Terminal: p.Terminal, Session: p.Session, Window: p.Window, Index: p.Index, Cwd: p.Cwd,
		Title: p.Title, Command: p.Command,
	}}
	if len(p.host.Meta) == 0 {
		p.State = plainState(p.host.Command)
	} else {
		p.read()
	}
	p.refused = true
	if !p.ours() {
		p.Reason = "not adopted: " + reason
	}
}

// bind stores the values of an agent that was taken in, bound to its process.
func (l *view) bind(ctx context.Context, p *pane, record []byte, facts metadata.LaunchFacts) error {
	binder, ok := l.Host.(host.Binder)
	if !ok {
		return errors.New("this host binds no record to a program that it did not start")
	}
	meta := map[metadata.Key][]byte{metadata.KeyAgentSession: record}
	var err error
	if meta[metadata.KeyAgentLaunch], err = facts.Encode(); err != nil {
		return err
	}
	t := p.own.Template
	name := t.Agent.Name
	if name == "" {
		name = t.ID
	}
	live := metadata.Agent{Name: name, Kind: t.Agent.Kind}
	if meta[metadata.KeyAgent], err = live.Encode(); err != nil {
		return err
	}
	if err := binder.Bind(ctx, p.Terminal, p.root.PID, p.root.Start, meta); err != nil {
		return err
	}
	p.Agent, p.stored, p.host.Meta = &live, facts, meta
	return nil
}
