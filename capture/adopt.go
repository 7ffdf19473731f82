package capture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
)

// Adoption asks for an agent that was started by hand, or that has no id yet, to be taken in.
type Adoption struct {
	Terminal    host.Terminal
	Integration string
	ID          string // empty: by proof alone
}

// Adopted is what an adoption did.
type Adopted struct {
	Pane
	Proven bool // the agent itself shows that it has the conversation open
}

// ErrAdopt is wrapped by every refusal to take an agent in because of what the pane holds.
var ErrAdopt = errors.New("the pane's agent cannot be taken in")

// UnprovenError is an adoption without an id whose agent does not show which conversation it has
// open.
type UnprovenError struct{ Terminal, Integration, Reason string }

func (e *UnprovenError) Error() string {
	return fmt.Sprintf("adopt %s in pane %s: it does not show which conversation it has open: %s", e.Integration, e.Terminal, e.Reason)
}

// MissingError is an adoption of an id whose conversation is not in the agent's store.
type MissingError struct {
	Identity metadata.Identity
	Detail   string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("adopt %q: transcript-missing: %s", e.Identity, e.Detail)
}

// Adopt takes an agent in that runs in a pane: one that was started by hand, or one of ours that
// has no id yet. The agent is the topmost one of that integration in the pane. Where it proves
// which conversation it has open, that counts, and another id is refused; else the id is the
// caller's word, and is checked against the store and against whoever runs it.
//
// Refusals: *plugin.ResolveError, *owner.LiveError, *UnprovenError, *MissingError,
// *integrations.IDError, owner.ErrNoAgent, owner.ErrSeveral, ErrAdopt.
func Adopt(ctx context.Context, r Request, q Adoption) (*Adopted, error) {
	if r.Now == nil {
		r.Now = time.Now
	}
	if r.proofs == nil {
		r.proofs = newMachine(r.Now)
	}
	if r.Getenv == nil {
		r.Getenv = os.LookupEnv
	}
	r.Write, r.Adopt = true, false
	for n := 1; ; n++ {
		w, err := r.Host.Snapshot(ctx)
		if err != nil {
			return nil, fmt.Errorf("adopt: %w", err)
		}
		a, err := newView(r, w).adopt(ctx, q)
		if errors.Is(err, host.ErrConflict) && n < attempts {
			continue
		}
		return a, err
	}
}

func (l *view) adopt(ctx context.Context, q Adoption) (*Adopted, error) {
	own, err := l.resolve(q.Integration, "")
	if err == nil {
		err = own.Template.Restorable()
	}
	if err != nil {
		return nil, fmt.Errorf("adopt: %w", err)
	}
	t := own.Template
	if q.ID != "" {
		if q.ID, err = t.NormalizeID(q.ID); err != nil {
			return nil, fmt.Errorf("adopt: %w", err)
		}
	}
	l.observe()
	at := slices.IndexFunc(l.panes, func(p *pane) bool { return p.Terminal == q.Terminal })
	if at < 0 {
		return nil, fmt.Errorf("adopt: pane %s: %w", q.Terminal.ID, host.ErrNoTerminal)
	}
	p := l.panes[at]
	refuse := func(format string, args ...any) (*Adopted, error) {
		return nil, fmt.Errorf("adopt %s in pane %s: %w: %w", t.ID, q.Terminal.ID, ErrAdopt, fmt.Errorf(format, args...))
	}
	switch {
	case p.free():
		found, err := l.proofs.under(p.host.PID, "", []*integrations.Template{t})
		if err != nil {
			return nil, fmt.Errorf("adopt %s in pane %s: %w", t.ID, q.Terminal.ID, err)
		}
		answer, err := l.chosen(q, t, found.Process)
		if err != nil {
			return nil, err
		}
		if err := l.take(p, found, answer); err != nil {
			return refuse("%w", err)
		}
	case p.State != Running:
		return refuse("it is %s", p.State)
	case p.ownErr != nil:
		return refuse("%w", p.ownErr)
	case p.own.Template == nil || p.own.Template.ID != t.ID:
		return refuse("it runs another agent")
	case p.Record != nil && q.ID != "" && p.Record.NativeID != q.ID && p.answer.Kind == owner.Confirmed && p.answer.ID == p.Record.NativeID:
		return refuse("it is proven to have %s open", p.Record.NativeID)
	case p.Record != nil && p.move == "" && (q.ID == "" || q.ID == p.Record.NativeID):
		return refuse("it has its record already: %s", p.Record.NativeID)
	default:
		answer, err := l.chosen(q, t, p.root)
		if err != nil {
			return nil, err
		}
		p.answer, p.refused = answer, false
		if p.move = answer.ID; p.Record != nil && p.Record.NativeID == answer.ID {
			return refuse("it has its record already: %s", answer.ID)
		}
	}
	if err := l.unheld(p); err != nil {
		return nil, fmt.Errorf("adopt: %w", err)
	}
	proven := p.answer.Kind == owner.Confirmed
	// Nobody else's record is touched on this occasion.
	for _, other := range l.panes {
		if other != p {
			other.move = ""
		}
	}
	hand := p.hand
	wanted := p.move
	l.decide()
	if p.move == "" {
		return refuse("another pane holds %s", wanted)
	}
	l.vacate()
	if err := l.apply(ctx, p); err != nil {
		return nil, fmt.Errorf("adopt: %w", err)
	}
	p.hand = hand
	p.Changed = "adopted"
	p.Durability = l.durability(p)
	p.Restorable, p.Reason = l.restorable(p)
	return &Adopted{Pane: p.Pane, Proven: proven}, nil
}

// chosen is the conversation to be taken: proven, or on the caller's word.
func (l *view) chosen(q Adoption, t *integrations.Template, root owner.Process) (owner.Answer, error) {
	answer := l.proofs.observe(t, root)
	who := metadata.Identity{IntegrationID: t.ID, NativeID: q.ID}
	switch {
	case answer.Kind == owner.Gone:
		return answer, fmt.Errorf("adopt %s in pane %s: %w", t.ID, q.Terminal.ID, owner.ErrNoAgent)
	case answer.Kind == owner.Confirmed && (q.ID == "" || q.ID == answer.ID):
		return answer, nil
	case answer.Kind == owner.Confirmed:
		return answer, fmt.Errorf("adopt %q in pane %s: %w: it has %s open", who, q.Terminal.ID, ErrAdopt, answer.ID)
	case q.ID == "":
		return answer, &UnprovenError{Terminal: q.Terminal.ID, Integration: t.ID, Reason: answer.Reason}
	case len(answer.Open) > 0 && !slices.Contains(answer.Open, q.ID):
		return answer, fmt.Errorf("adopt %q in pane %s: %w: %s, and this is none of them", who, q.Terminal.ID, ErrAdopt, answer.Reason)
	}
	env, err := l.proofs.environ(root)
	if err != nil {
		env = l.Getenv
	}
	switch l.proofs.probe(t, q.ID, env) {
	case owner.Absent, owner.Begun:
		return answer, &MissingError{Identity: who, Detail: "the agent's store has no conversation of that id"}
	case owner.Present:
	default:
		if t.Identity.UnknownID == "blank" {
			return answer, &MissingError{Identity: who, Detail: "whether it exists cannot be told, and this agent opens an empty one for an unknown id"}
		}
	}
	return owner.Answer{Kind: owner.Unknown, ID: q.ID, Reason: "taken on your word (adopt --id)"}, nil
}
