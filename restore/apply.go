package restore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
)

// StaleError refuses a plan that was made for another life of the host.
type StaleError struct{ Planned, Now host.Instance }

func (e *StaleError) Error() string {
	switch {
	case e.Planned == host.Instance{}:
		return "the plan is stale: it was made when no server ran, and one runs now"
	case e.Now == host.Instance{}:
		return "the plan is stale: the server that it was made for is gone"
	}
	return fmt.Sprintf("the plan is stale: it was made for server process %d, and process %d runs now", e.Planned.PID, e.Now.PID)
}

// Apply creates each missing session whole, watches every agent until it runs or exits, and
// reports. Of sessions it creates only those that the plan says; one that appeared meanwhile is
// left alone. Each agent's identity is reserved before its session is made, and given back where
// that fails.
//
// A *StaleError where the host has moved on, and whatever Env.Lock says, come before anything is
// done. A session that could not be made is in the report, and nothing of it is left. What is
// returned beside an error is true.
func Apply(ctx context.Context, e Env, p *Plan) (*Report, error) {
	if e.Lock != nil {
		unlock, err := e.Lock()
		if err != nil {
			return nil, fmt.Errorf("lock the restore: %w", err)
		}
		defer unlock()
	}
	info, held, err := e.probe(ctx)
	if err != nil {
		return nil, fmt.Errorf("probe the host: %w", err)
	}
	if info.Instance != p.Host.Instance {
		return nil, &StaleError{Planned: p.Host.Instance, Now: info.Instance}
	}
	r := p.report()
	e.Claims = e.Claims.Batch()
	e.sweepPrefaces()
	made := &work{e: e, p: p, keys: map[string]bool{}}
	if info.Running {
		made.takenKeys(ctx, held)
	}
	for i := range p.Sessions {
		made.one(ctx, &p.Sessions[i], &r.Sessions[i])
	}
	made.again(ctx, r)
	if !p.Options.NoWait {
		made.watch(ctx)
	}
	if made.sessions > 0 && e.Save != nil {
		// What was made is to be found by the next restore even if this one is being broken off.
		if err := e.Save(context.WithoutCancel(ctx)); err != nil {
			return r, fmt.Errorf("save what was restored: %w", err)
		}
	}
	return r, ctx.Err()
}

// probe asks the host who it is, and what it holds where that is one question; else nil. Where no
// server runs there may be nothing but that in the Info.
func (e Env) probe(ctx context.Context) (host.Info, *host.Workspace, error) {
	if _, ok := e.Host.(host.Looker); ok {
		info, w, err := host.Look(ctx, e.Host)
		switch {
		case errors.Is(err, host.ErrNoServer):
			return host.Info{}, nil, nil
		case !errors.Is(err, host.ErrChanged):
			return info, w, err
		}
	}
	info, err := e.Host.Info(ctx)
	return info, nil, err
}

// work is what one Apply has made so far.
type work struct {
	e        Env
	p        *Plan
	keys     map[string]bool // pane keys that are taken
	sessions int
	agents   []*running
}

// running is an agent that was started, with the line of the report that waits for it.
type running struct {
	started host.Started
	report  *PaneReport
}

// takenKeys collects the pane keys of the host, so that no two panes share one.
func (k *work) takenKeys(ctx context.Context, v *host.Workspace) {
	if v == nil {
		var err error
		if v, err = view(ctx, k.e.Host); err != nil {
			return // Create meets the same host, and says it better
		}
	}
	for _, s := range v.Sessions {
		for _, w := range s.Windows {
			for _, p := range w.Panes {
				if f, err := metadata.DecodeLaunchFacts(p.Meta[metadata.KeyAgentLaunch]); err == nil {
					k.keys[f.PaneKey] = true
				}
			}
		}
	}
}

// key keeps an archived pane key where it is one and free, and makes a new one else.
func (k *work) key(archived string) string {
	if metadata.CheckPaneKey("pane_key", archived) != nil || k.keys[archived] {
		archived = metadata.NewPaneKey()
	}
	k.keys[archived] = true
	return archived
}

// one does what the plan says of one session.
func (k *work) one(ctx context.Context, sp *SessionPlan, r *SessionReport) {
	switch sp.Action {
	case Fill:
		k.fill(ctx, sp, r)
	case Create:
		if err := ctx.Err(); err != nil {
			r.fail(err)
			return
		}
		k.session(ctx, sp, r)
	}
}

// session makes one session, or leaves nothing of it.
func (k *work) session(ctx context.Context, sp *SessionPlan, r *SessionReport) {
	ask := *sp.create
	ask.Windows = slices.Clone(ask.Windows)
	for i := range ask.Windows {
		ask.Windows[i].Panes = slices.Clone(ask.Windows[i].Panes)
	}
	if k.e.Config != nil {
		ask.Parallel = k.e.Config.Restore.Parallel
	}
	kept := false
	defer func() {
		if !kept {
			dropPrefaces(ask)
		}
	}()
	var claims []owner.Claim
	byPane := map[int]owner.Claim{}
	release := func(claims ...owner.Claim) {
		for _, c := range claims {
			// Of a pane that took it over, the ticket holds nothing any more.
			_ = k.e.Claims.Release(c)
		}
	}
	for i := range sp.Panes {
		pp := sp.Panes[i] // a copy: the plan stays as it was made
		spec := &ask.Windows[pp.window].Panes[pp.pane]
		claim, err := k.prepare(&pp, spec)
		if err != nil {
			release(claims...)
			r.fail(fmt.Errorf("window %d, pane %d: %w", pp.Window, pp.Index, err))
			return
		}
		if claim != nil {
			claims = append(claims, *claim)
			byPane[i] = *claim
		}
		k.preface(&pp, spec)
		r.Panes[i].from(&pp)
		if k.p.Options.Strict && pp.Verdict.Circumstance() {
			release(claims...)
			r.Action, r.Reason = Refuse, fmt.Sprintf("window %d, pane %d: %s: %s", pp.Window, pp.Index, pp.Verdict, pp.Reason)
			return
		}
	}

	created, err := k.e.Host.Create(ctx, ask)
	if errors.Is(err, host.ErrSessionExists) {
		release(claims...)
		r.Action, r.Reason = SkipExisting, fmt.Sprintf("a session %q appeared meanwhile, and is left as it is", sp.HostName)
		for i := range r.Panes {
			r.Panes[i].waits()
		}
		if sp.aside != nil {
			r.Aside, r.Reason = "", fmt.Sprintf("the session %q is in use now, and is left as it is", sp.HostName)
		}
		return
	}
	if err == nil {
		err = readBack(ask, created)
	}
	if err != nil {
		if created != nil {
			k.undo(ctx, created)
		}
		release(claims...)
		r.fail(err)
		return
	}
	k.sessions++
	kept = true
	for i := range sp.Panes {
		started := created.Windows[sp.Panes[i].window][sp.Panes[i].pane]
		pr := &r.Panes[i]
		switch mode := ask.Windows[sp.Panes[i].window].Panes[sp.Panes[i].pane].Start.Mode; {
		case started.Err != nil && mode == host.Program:
			if c, ok := byPane[i]; ok {
				release(c)
			}
			pr.result(Exited)
			pr.Reason = "it did not start: " + bound(started.Err.Error())
			pr.Hint = "the pane keeps the record, and tries again on Enter"
			if pr.Record == nil {
				pr.Hint = ""
			}
		case started.Err != nil:
			pr.Reason = join(pr.Reason, "it did not start: "+bound(started.Err.Error()))
		case mode == host.Program:
			k.agents = append(k.agents, &running{started, pr})
		case mode == host.Placeholder:
			pr.result(Waits)
		default:
			pr.result(IsShell)
		}
	}
}

// prepare claims a pane's identity, gives it its key, and encodes what is stored with it. An
// identity that came alive since the plan makes the pane a placeholder.
func (k *work) prepare(pp *PanePlan, spec *host.PaneSpec) (claim *owner.Claim, err error) {
	if pp.store {
		pp.facts.PaneKey = k.key(pp.facts.PaneKey)
	}
	if pp.agent != nil {
		place := owner.Place{Host: k.p.Host.Server, PaneKey: pp.facts.PaneKey}
		c, err := k.e.Claims.Reserve(pp.agent.identity, place)
		var taken *owner.LiveError
		switch {
		case errors.As(err, &taken):
			m := &maker{}
			pp.placeholder(*m.liveTrouble(taken.Live, pp.agent.identity), pp.agent.fallback)
			spec.Start = pp.Start
		case err != nil:
			return nil, fmt.Errorf("claim %s: %w", pp.agent.identity, err)
		default:
			claim = &c
			pp.facts.Epoch = c.Epoch
			guard := owner.NewGuard(pp.agent.template, pp.agent.identity, c.Ticket, place, k.e.Claims, pp.agent.expect)
			if spec.Start.Guard, err = guard.Encode(); err != nil {
				return nil, errors.Join(err, k.e.Claims.Release(c))
			}
		}
	}
	if spec.Meta, err = pp.meta(); err != nil && claim != nil {
		err = errors.Join(err, k.e.Claims.Release(*claim))
	}
	return claim, err
}

// meta is what is stored with the pane.
func (p *PanePlan) meta() (map[metadata.Key][]byte, error) {
	if !p.store {
		return nil, nil
	}
	meta := map[metadata.Key][]byte{}
	var err error
	if p.carry {
		if meta[metadata.KeyAgentSession], err = p.Record.Encode(); err != nil {
			return nil, err
		}
	}
	if meta[metadata.KeyAgentLaunch], err = storable(p.facts).Encode(); err != nil {
		return nil, err
	}
	if p.name != nil {
		if meta[metadata.KeyAgent], err = p.name.Encode(); err != nil {
			return nil, err
		}
	}
	return meta, nil
}

// storable drops from archived facts what breaks their bounds: they explain, and must not stand
// in the way of the record.
func storable(f metadata.LaunchFacts) metadata.LaunchFacts {
	f = f.Fitted()
	fits := func(one metadata.LaunchFacts) bool {
		one.PaneKey = f.PaneKey
		return one.Validate() == nil
	}
	if fits(f) {
		return f
	}
	if !fits(metadata.LaunchFacts{LaunchDir: f.LaunchDir}) {
		f.LaunchDir = ""
	}
	if !fits(metadata.LaunchFacts{Profile: f.Profile}) {
		f.Profile = ""
	}
	if !fits(metadata.LaunchFacts{Store: f.Store}) {
		f.Store = ""
	}
	if !fits(metadata.LaunchFacts{Durability: f.Durability}) {
		f.Durability = ""
	}
	if !fits(metadata.LaunchFacts{Unconfirmed: f.Unconfirmed}) {
		f.Unconfirmed = ""
	}
	if !fits(metadata.LaunchFacts{NotPreserved: f.NotPreserved}) {
		f.NotPreserved = nil
	}
	f.Previous = slices.DeleteFunc(slices.Clone(f.Previous), func(id string) bool {
		return !fits(metadata.LaunchFacts{Previous: []string{id}})
	})
	return f
}

// readBack compares what the host says that it stored with what it was given.
func readBack(ask host.CreateSession, created *host.Created) error {
	if created == nil || len(created.Windows) != len(ask.Windows) {
		return errors.New("read back: the host made other windows than asked")
	}
	for w := range ask.Windows {
		if len(created.Windows[w]) != len(ask.Windows[w].Panes) {
			return errors.New("read back: the host made other panes than asked")
		}
		for i, spec := range ask.Windows[w].Panes {
			got := created.Windows[w][i].Meta
			if key, ok := otherBytes(spec.Meta, got); !ok {
				return fmt.Errorf("read back %s of %s: the host holds other bytes than it was given", key, created.Windows[w][i].Terminal.ID)
			}
		}
	}
	return nil
}

// otherBytes compares what a terminal holds with what it was given; false, and the first key that
// differs.
func otherBytes(given, got map[metadata.Key][]byte) (metadata.Key, bool) {
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if !bytes.Equal(got[key], given[key]) {
			return key, false
		}
	}
	return "", true
}

// undo removes exactly what one Create made.
func (k *work) undo(ctx context.Context, created *host.Created) {
	ctx = context.WithoutCancel(ctx)
	for _, w := range created.Windows {
		for _, s := range w {
			_ = k.e.Host.Kill(ctx, s.Terminal)
		}
	}
}

// maxWords bounds what a pane's last words, or a host's error, add to a reason; in bytes.
const maxWords = 400

func bound(s string) string {
	if len(s) <= maxWords {
		return s
	}
	return "…" + validTail(s[len(s)-maxWords:])
}

func validTail(s string) string {
	for len(s) > 0 && s[0]&0xc0 == 0x80 {
		s = s[1:]
	}
	return s
}
