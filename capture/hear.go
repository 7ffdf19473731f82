package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
)

// Report is what an agent's hook said.
type Report struct {
	Integration string
	Event       string     // empty: the payload says it
	Payload     []byte     // the provider's own JSON; the caller bounds it
	From        owner.Line // the process that was called: the proof is in what stands above it
	// Said is the id that the payload named, where only that is left of it: then no state is told.
	Said string
	// Settle is called once the report has proved to be the agent's own, and before anything is
	// written: an error where another one of this agent came later. Nil asks nobody.
	Settle func(agent owner.Process) error
}

// Heard is what became of a report.
type Heard struct {
	Terminal host.Terminal
	ID       string // which the pane has now
	Changed  string // "adopted", "rotated from X"; empty where it was confirmed

	// Of the pane and the agent whose hook it was, where the event told of a state: also beside
	// a *RefusedError about the conversation.
	Session, Title string
	Integration    string
	Owner          owner.Process
	Told           bool           // the event tells of a state
	Was, Live      metadata.Agent // before and now
}

// RefusedError says why a report changed nothing.
type RefusedError struct {
	Terminal string // of the pane that it would have been about; empty where there is none
	Reason   string
	Err      error // may be nil
}

func (e *RefusedError) Error() string {
	if e.Terminal == "" {
		return e.Reason
	}
	return fmt.Sprintf("pane %s: %s", e.Terminal, e.Reason)
}
func (e *RefusedError) Unwrap() error { return e.Err }

// ErrNoPane is wrapped where no pane of the host has an agent above the process that reports.
var ErrNoPane = errors.New("no agent of a pane stands above it")

// quiet is how old a confirmation by a hook may be before the next one of the same conversation
// is written down again.
const quiet = time.Minute

// Hear takes a hook's report: it finds the pane whose agent started the process that was called,
// and brings its record up to date.
//
// Where the agent keeps what proves which conversation it has open, that is read, and the payload
// only says that it is time to look, or which of several is the active one. Where nothing can be
// read, the id of the payload counts, if nobody else runs it. An owner.ErrEvent is no refusal:
// the template does not listen to that event.
func Hear(ctx context.Context, r Request, rep Report) (Heard, error) {
	if err := metadata.CheckID("integration", rep.Integration); err != nil {
		return Heard{}, err
	}
	if r.Now == nil {
		r.Now = time.Now
	}
	if r.proofs == nil {
		r.proofs = newMachine(r.Now)
	}
	for n := 1; ; n++ {
		w, err := r.Host.Snapshot(ctx)
		if err != nil {
			return Heard{}, fmt.Errorf("hear %q: %w", rep.Integration, err)
		}
		l := newView(r, w)
		h, err := l.hear(ctx, rep, n == attempts)
		if errors.Is(err, host.ErrConflict) && n < attempts {
			continue
		}
		return h, err
	}
}

func (l *view) hear(ctx context.Context, rep Report, last bool) (Heard, error) {
	chain := rep.From.Processes()
	p, err := l.above(chain)
	var hand *owner.ByHand
	if errors.Is(err, ErrNoPane) && l.Adopt {
		if q, found := l.stranger(chain, rep.Integration); q != nil {
			p, hand, err = q, found, nil
		}
	}
	if err != nil {
		return Heard{}, err
	}
	refuse := func(err error) (Heard, error) {
		return Heard{}, &RefusedError{Terminal: p.Terminal.ID, Reason: err.Error(), Err: err}
	}
	if p.own.Template.ID != rep.Integration {
		return refuse(fmt.Errorf("%w: its agent is %s, and this is a report of %s", owner.ErrNotOwner, p.own.Template.ID, rep.Integration))
	}
	if err := l.proofs.reports(p.own.Template, p.root, rep.From, l.enabled()); err != nil {
		return refuse(err)
	}
	told, live := owner.Said{}, false
	if rep.Said == "" {
		told, live = owner.Tells(p.own.Template, rep.Event, rep.Payload)
	}
	h, err := l.identify(ctx, rep, p, hand, last)
	if !live || errors.Is(err, host.ErrConflict) || hand != nil && err != nil {
		return h, err
	}
	if errors.Is(err, owner.ErrEvent) {
		err = nil
	}
	was, lerr := l.live(ctx, p, told)
	if lerr != nil {
		return h, cmp.Or(err, lerr)
	}
	h.describe(p)
	h.Told, h.Was = true, was
	return h, err
}

// identify brings the record of the pane whose agent reported up to date.
func (l *view) identify(ctx context.Context, rep Report, p *pane, hand *owner.ByHand, last bool) (Heard, error) {
	refuse := func(err error) (Heard, error) {
		return Heard{}, &RefusedError{Terminal: p.Terminal.ID, Reason: err.Error(), Err: err}
	}
	said, err := rep.Said, error(nil)
	if said == "" {
		said, err = owner.Heard(p.own.Template, rep.Event, rep.Payload)
	}
	if errors.Is(err, owner.ErrEvent) {
		return Heard{}, err
	}
	if err != nil {
		return refuse(err)
	}
	if err := l.weigh(p, said); err != nil {
		return refuse(err)
	}
	if rep.Settle != nil {
		if err := rep.Settle(p.root); err != nil {
			return refuse(err)
		}
	}
	if hand != nil {
		if err := l.take(p, *hand, p.answer); err != nil {
			return refuse(err)
		}
	} else {
		p.judge()
	}
	l.decide()
	if p.refused && p.Reason != "" { // of one that was started by hand: let go again
		return refuse(errors.New(p.Reason))
	}
	if p.move == "" && (p.refused || p.answer.Kind != owner.Confirmed) {
		return refuse(errors.New(p.answer.Reason))
	}
	if p.move == "" {
		return Heard{Terminal: p.Terminal, ID: p.answer.ID}, l.confirm(ctx, p)
	}
	if p.answer.By == hookKind {
		if err := l.unheld(p); err != nil {
			return refuse(err)
		}
	}
	if err := l.write(ctx, last); err != nil {
		return Heard{}, err
	}
	if p.refused {
		return refuse(errors.New(cmp.Or(p.answer.Reason, p.Reason)))
	}
	return Heard{Terminal: p.Terminal, ID: p.Record.NativeID, Changed: p.Changed}, nil
}

// above finds the pane whose agent is nearest above the process that reports. What every pane
// holds is read as well, so that no two may come to hold one identity.
func (l *view) above(chain []owner.Process) (*pane, error) {
	var found *pane
	nearest := len(chain)
	for _, p := range l.panes {
		if len(p.host.Meta) == 0 {
			continue
		}
		if p.read(); !p.ours() || p.Err != nil || p.State != Running {
			continue
		}
		known := owner.Process{PID: p.Facts.OwnerPID, Start: p.Facts.OwnerStart}
		bound := owner.Process{PID: p.host.BoundPID, Start: p.host.BoundStart}
		for i, a := range chain[:nearest] {
			if a == known || a == bound || p.host.Origin != host.Bound && a.PID == p.host.PID {
				found, nearest = p, i
				break
			}
		}
	}
	if found == nil {
		return nil, &RefusedError{Reason: ErrNoPane.Error(), Err: ErrNoPane}
	}
	p := found
	integration, pluginID := p.Facts.IntegrationID, p.Facts.PluginID
	if p.Record != nil {
		integration, pluginID = p.Record.IntegrationID, p.Record.PluginID
	}
	if p.own, p.ownErr = l.resolve(integration, pluginID); p.ownErr != nil {
		return nil, &RefusedError{Terminal: p.Terminal.ID, Reason: unresolved(p.ownErr), Err: p.ownErr}
	}
	if p.root, p.alive = l.root(p); !p.alive {
		return nil, &RefusedError{Terminal: p.Terminal.ID, Reason: "its agent has ended"}
	}
	return p, nil
}

// stranger finds a pane whose shell stands above the process that reports, and the agent that was
// started in it by hand. It is a pane without an agent of ours.
func (l *view) stranger(chain []owner.Process, integration string) (*pane, *owner.ByHand) {
	own, err := l.resolve(integration, "")
	if err != nil || own.Template.Restorable() != nil {
		return nil, nil
	}
	if _, ok := l.Host.(host.Binder); !ok {
		return nil, nil
	}
	for _, a := range chain {
		for _, p := range l.panes {
			if p.host.PID != a.PID || !p.free() {
				continue
			}
			found, err := l.proofs.under(a.PID, p.host.TTY, []*integrations.Template{own.Template})
			if err != nil || !slices.Contains(chain, found.Process) {
				return nil, nil
			}
			p.own, p.root, p.alive = own, found.Process, true
			return p, &found
		}
	}
	return nil, nil
}

// weigh sets what is proven of the pane's agent, by what it keeps and by what its hook said.
func (l *view) weigh(p *pane, said string) error {
	t := p.own.Template
	if !provable(t) {
		p.answer = owner.Answer{Kind: owner.Confirmed, ID: said, By: hookKind}
		return nil
	}
	p.answer = l.proofs.observe(t, p.root)
	switch {
	case p.answer.Kind == owner.Confirmed:
		return nil
	case p.answer.Kind == owner.Unknown && said != "" && slices.Contains(p.answer.Open, said):
		p.answer = owner.Answer{Kind: owner.Confirmed, ID: said, By: hookKind, Open: p.answer.Open}
		return nil
	case said != "" && len(p.answer.Open) > 0:
		return fmt.Errorf("%s, and the hook names another one", p.answer.Reason)
	case p.answer.Reason == "":
		return errors.New("its agent has ended")
	}
	return errors.New(p.answer.Reason)
}

// unheld refuses an id that the pane's own agent is not the only one to run.
func (l *view) unheld(p *pane) error {
	id, _ := p.identity()
	env, err := l.proofs.environ(p.root)
	if err != nil {
		env = nil
	}
	live := l.proofs.find(l.Claims, p.own.Template, id, env)
	if live.Kind == owner.NotLive || live.Process == p.root || slices.Contains(l.proofs.ancestors(live.Process.PID), p.root) {
		return nil
	}
	return &owner.LiveError{Identity: id, Live: live}
}

// confirm notes on the pane that its record was proven now, if that is news.
func (l *view) confirm(ctx context.Context, p *pane) error {
	old := p.stored
	facts := p.remembered()
	facts.OwnerPID, facts.OwnerStart = p.root.PID, p.root.Start
	if old.OwnerPID == facts.OwnerPID && old.OwnerStart == facts.OwnerStart && old.ConfirmedBy == facts.ConfirmedBy &&
		old.Opened == facts.Opened && old.Unconfirmed == "" && l.now.Sub(old.ConfirmedAt) < quiet && !p.stale && !p.keyed {
		return nil
	}
	return l.store(ctx, p, facts.Fitted())
}
