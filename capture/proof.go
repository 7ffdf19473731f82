package capture

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
)

// byHook is how a confirmation is remembered that only a hook's word made.
func byHook(a owner.Answer) string {
	if a.By == hookKind {
		return hookKind
	}
	return ""
}

const hookKind = "hook"

// refresh is how old a confirmation on a pane may be before a look that writes renews it, one
// pane a look: the archive has each confirmation anyway, so a save does not pay for more.
const refresh = 10 * time.Minute

// observe collects what each pane holds and, where its agent runs, what is proven of it. Nothing
// is decided.
func (l *view) observe() {
	adoptable := sync.OnceValue(l.adoptable) // which reads every template
	l.each(func(p *pane) {
		if len(p.host.Meta) == 0 {
			p.State = plainState(p.host.Command)
		} else {
			p.read()
		}
		// A shell in the foreground may be a script's, which waits for the agent that it started.
		if l.Adopt && p.free() && (plainState(p.host.Command) == Program || l.proofs.busy(p.host.PID)) {
			if known := adoptable(); len(known) > 0 {
				l.discover(p, known)
				if p.hand {
					return
				}
			}
		}
		if !p.ours() || p.Err != nil {
			return
		}
		integration, pluginID := p.Facts.IntegrationID, p.Facts.PluginID
		if p.Record != nil {
			integration, pluginID = p.Record.IntegrationID, p.Record.PluginID
		}
		if integration == "" {
			return
		}
		p.own, p.ownErr = l.resolve(integration, pluginID)
		if p.State != Running {
			return
		}
		p.root, p.alive = l.root(p)
		switch {
		case !p.alive:
			// It ended after the snapshot was taken, and how is not known.
			p.State = Exited
		case p.ownErr != nil:
			p.answer = owner.Answer{Kind: owner.Unknown, Reason: unresolved(p.ownErr)}
		default:
			p.answer = l.proofs.observe(p.own.Template, p.root)
			p.trust()
			p.judge()
		}
	})
}

// each does something with every pane, with as many at once as there are processors: most of it
// waits for the kernel.
func (l *view) each(do func(*pane)) {
	workers := min(runtime.GOMAXPROCS(0), len(l.panes)/8)
	if workers < 2 {
		for _, p := range l.panes {
			do(p)
		}
		return
	}
	var next atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(l.panes); i = next.Add(1) - 1 {
				do(l.panes[i])
			}
		})
	}
	all.Wait()
}

// root is the process that the pane's agent is: as the facts know it, else what the host started.
func (l *view) root(p *pane) (owner.Process, bool) {
	if known := (owner.Process{PID: p.Facts.OwnerPID, Start: p.Facts.OwnerStart}); known.PID > 0 && l.proofs.alive(known) {
		return known, true
	}
	if p.host.Origin == host.Bound {
		bound := owner.Process{PID: p.host.BoundPID, Start: p.host.BoundStart}
		return bound, l.proofs.alive(bound)
	}
	return l.proofs.process(p.host.PID)
}

// judge turns a proven id that is not the record's into a move that is wanted.
func (p *pane) judge() {
	switch p.answer.Kind {
	case owner.Gone:
		p.State = Exited
	case owner.Confirmed:
		t := p.own.Template
		if err := t.Restorable(); err != nil {
			p.answer = owner.Answer{Kind: owner.Unknown, Reason: err.Error()}
			return
		}
		id, err := t.NormalizeID(p.answer.ID)
		switch {
		case err != nil:
			p.answer = owner.Answer{Kind: owner.Unknown, Reason: fmt.Sprintf("it names an id that the template refuses: %v", err)}
		case p.Record == nil || p.Record.NativeID != id:
			p.move = id
		}
	}
}

// trust lets a hook's word stand where nothing contradicts it: the owner said it, it is the same
// process still, and the template can see no more by itself.
func (p *pane) trust() {
	f := p.Facts
	if p.answer.Kind != owner.Unknown || p.Record == nil || f.ConfirmedBy == "" || f.ConfirmedAt.IsZero() || f.Unconfirmed != "" {
		return
	}
	if (owner.Process{PID: f.OwnerPID, Start: f.OwnerStart}) != p.root {
		return
	}
	if provable(p.own.Template) && !slices.Contains(p.answer.Open, p.Record.NativeID) {
		return
	}
	if n := len(p.answer.Open); n > max(f.Opened, 1) {
		p.answer.Reason = fmt.Sprintf("%s, and its hook has not said since that it is still this one", p.answer.Reason)
		return
	}
	p.answer = owner.Answer{Kind: owner.Confirmed, ID: p.Record.NativeID, By: f.ConfirmedBy}
	p.heard = true
}

// refuse leaves the record as it was and says why.
func (p *pane) refuse(format string, args ...any) {
	p.move, p.refused = "", true
	if p.hand {
		p.letGo(fmt.Sprintf(format, args...))
		return
	}
	p.answer = owner.Answer{Kind: owner.Unknown, Reason: fmt.Sprintf(format, args...)}
}

// decide refuses every move onto an identity that another running pane holds. A pane that proved
// to have moved away holds its old one no longer, unless its own move is refused: so it goes
// on until nothing changes.
func (l *view) decide() {
	for changed := true; changed; {
		changed = false
		holders := map[metadata.Identity][]*pane{}
		for _, p := range l.panes {
			if id, ok := p.identity(); ok && p.State == Running {
				holders[id] = append(holders[id], p)
			}
		}
		for _, p := range l.panes {
			id, _ := p.identity()
			if p.move == "" || len(holders[id]) < 2 {
				continue
			}
			other := holders[id][0]
			if other == p {
				other = holders[id][1]
			}
			p.refuse("it has %s open, which pane %s holds", id.NativeID, other.Terminal.ID)
			changed = true
		}
	}
	for _, p := range l.panes {
		if p.move == "" && p.answer.Kind == owner.Confirmed && !p.heard {
			p.Facts.ConfirmedAt, p.Facts.Unconfirmed, p.Facts.ConfirmedBy, p.Facts.Opened = l.now, "", byHook(p.answer), len(p.answer.Open)
		}
	}
}

// write puts proven changes back on the panes. ErrConflict where a pane's record is not what the snapshot held: then the look starts again, and the last
// attempt leaves such a pane alone.
func (l *view) write(ctx context.Context, last bool) error {
	if l.Write {
		l.vacate()
	}
	for _, p := range l.panes {
		if p.move == "" {
			continue
		}
		err := l.apply(ctx, p)
		if errors.Is(err, host.ErrConflict) && !last {
			return err
		}
		if err != nil {
			p.refuse("it has %s open, which could not be recorded: %v", p.move, err)
		}
	}
	return nil
}

// vacate gives up the claims on identities that panes proved to have left, before anybody else
// takes one of them. What fails shows when the identity is to be claimed.
func (l *view) vacate() {
	for _, p := range l.panes {
		if p.move != "" && p.Record != nil {
			_ = l.Claims.GiveUp(p.Record.Identity(), p.root)
		}
	}
}

// apply makes one proven move: claim, record, facts.
func (l *view) apply(ctx context.Context, p *pane) error {
	id, _ := p.identity()
	rec := metadata.AgentSession{PluginID: p.own.PluginID, IntegrationID: id.IntegrationID, NativeID: id.NativeID}
	facts := p.Facts
	facts.PluginID, facts.IntegrationID = rec.PluginID, rec.IntegrationID
	facts.OwnerPID, facts.OwnerStart = p.root.PID, p.root.Start
	facts.ConfirmedAt, facts.Unconfirmed, facts.Durability, facts.ConfirmedBy = l.now, "", "", byHook(p.answer)
	facts.Opened = len(p.answer.Open)
	if p.answer.Kind != owner.Confirmed { // taken on somebody's word
		facts.ConfirmedAt, facts.Unconfirmed = time.Time{}, p.answer.Reason
	}
	changed := "adopted"
	if p.Record != nil {
		facts.Remember(p.Record.NativeID)
		changed = "rotated from " + p.Record.NativeID
	}
	facts = facts.Fitted()

	if l.Write {
		value, err := rec.Encode()
		if err != nil {
			return err
		}
		if err := l.Claims.Rebuild(id, p.root, l.place(ctx, p)); err != nil {
			return err
		}
		if p.hand {
			if err := l.bind(ctx, p, value, facts); err != nil {
				_ = l.Claims.GiveUp(id, p.root)
				return err
			}
			p.Changed, p.Record, p.Facts, p.move = changed, &rec, facts, ""
			return nil
		}
		if err := l.swap(ctx, p, metadata.KeyAgentSession, value); err != nil {
			return err
		}
		p.Changed = changed
		_ = l.store(ctx, p, facts) // they only explain, and the archive has them
	}
	p.Record, p.Facts, p.move = &rec, facts, ""
	return nil
}

func (l *view) store(ctx context.Context, p *pane, facts metadata.LaunchFacts) error {
	value, err := facts.Encode()
	if err != nil {
		return err
	}
	if err := l.swap(ctx, p, metadata.KeyAgentLaunch, value); err != nil {
		return err
	}
	p.stored = facts
	return nil
}

// swap puts a value on the pane in the place of the one that the view knows, and knows it then.
func (l *view) swap(ctx context.Context, p *pane, k metadata.Key, value []byte) error {
	if err := l.Host.Swap(ctx, p.Terminal, k, p.host.Meta[k], value); err != nil {
		return err
	}
	meta := maps.Clone(p.host.Meta) // which may be the host's own
	if meta == nil {
		meta = map[metadata.Key][]byte{}
	}
	meta[k] = value
	p.host.Meta = meta
	return nil
}

// claim rebuilds what a cleared runtime directory lost: the pane's birth token and its live pid
// are the proof.
func (l *view) claim(ctx context.Context) {
	var running []*pane
	for _, p := range l.panes {
		if p.State == Running && p.Record != nil && p.alive && p.Changed == "" && !p.refused {
			running = append(running, p)
		}
	}
	if len(running) == 0 {
		return
	}
	filed, err := l.Claims.Filed()
	if err != nil {
		return
	}
	for _, p := range running {
		if id := p.Record.Identity(); !filed(id) {
			_ = l.Claims.Rebuild(id, p.root, l.place(ctx, p))
		}
	}
}

// renew brings facts on panes up to date: what is wrong, and that a conversation was seen, on each
// pane at once; what is only old, on the one pane that waits for it longest. What fails is tried
// at the next look.
func (l *view) renew(ctx context.Context) {
	var oldest *pane
	for _, p := range l.panes {
		switch {
		case p.Changed != "":
		case p.stale || p.keyed:
			_ = l.store(ctx, p, p.remembered().Fitted())
		case p.leftNoTime() && p.stored.GoneAt.IsZero():
			facts := p.remembered()
			facts.GoneAt = l.now // for the looks that come; this one takes it for new
			_ = l.store(ctx, p, facts.Fitted())
		case p.Record == nil || p.State == Pending || p.State == Ended:
		case p.Durability == Present && p.stored.Durability != Present:
			// Or a file that is lost before the next look would pass for one that never was.
			_ = l.store(ctx, p, p.remembered().Fitted())
		case p.answer.Kind == owner.Confirmed && !p.heard && l.now.Sub(p.stored.ConfirmedAt) >= refresh:
			if oldest == nil || p.stored.ConfirmedAt.Before(oldest.stored.ConfirmedAt) {
				oldest = p
			}
		}
	}
	if oldest != nil {
		_ = l.store(ctx, oldest, oldest.remembered().Fitted())
	}
}

// remembered is what the pane is to know for later looks. That the conversation was there once
// is remembered for good: a record whose file is lost later was not never prompted.
func (p *pane) remembered() metadata.LaunchFacts {
	facts := p.Facts
	if p.Durability == Present {
		facts.Durability = Present
	}
	return facts
}

func (l *view) place(ctx context.Context, p *pane) owner.Place {
	place := owner.Place{Terminal: p.Terminal.ID, PaneKey: p.Facts.PaneKey}
	if info, err := l.about(ctx); err == nil {
		place.Host = info.Server
	}
	return place
}

// about asks the host for itself at most once.
func (l *view) about(ctx context.Context) (host.Info, error) {
	if l.info == nil {
		info, err := l.Host.Info(ctx)
		if err != nil {
			return host.Info{}, err
		}
		l.info = &info
	}
	return *l.info, nil
}
