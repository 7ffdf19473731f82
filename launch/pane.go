package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
)

// Seat is a pane between its birth and its agent, as the host hands it over (tmux.Enter).
type Seat interface {
	// Start is what the pane was made to run; nil on a respawn, when the payload is spent.
	Start() *host.Start
	// Meta is the pane's current metadata.
	Meta() map[metadata.Key][]byte
	Nonce() string
	// Wait returns when the whole session is committed, or an error when it never will be:
	// then the pane must leave without a word.
	Wait() error
	// Fail tells the one who made the pane that its program does not start, and why.
	Fail(reason string)
}

// Closer is a Seat whose pane stays when its process has ended: Close takes it away, as its user
// asked for.
type Closer interface{ Close() }

// ErrLeave is what Become returns where the pane's session never came to be: the process ends,
// with nothing on its screen.
var ErrLeave = errors.New("the pane's session was not made")

// Held is what Become returns where the pane stays as it is: the reason stands on its screen
// already, the record stays with the pane, and the process ends with a status that is not 0, so
// that the host keeps its last words.
type Held struct{ Err error }

func (e *Held) Error() string { return e.Err.Error() }
func (e *Held) Unwrap() error { return e.Err }

// Become runs in the pane: it waits for the gate, passes the guard, and execs. Without a
// payload, and on Enter in a placeholder, revive answers what the record resolves to now. It
// returns only where the pane stays ours or ends: ErrLeave, a *Held, or nil where the user
// closed a placeholder.
//
// The claim is taken by this process, after the gate and before the exec, so that the pid that
// holds it is the agent's.
func Become(ctx context.Context, s Seat, environ []string, revive func(context.Context) (host.Start, error), in io.Reader, out io.Writer) error {
	b := &body{seat: s, environ: environ, revive: revive, in: in, out: out, exec: host.Start.Exec}
	return b.run(ctx)
}

type body struct {
	seat    Seat
	environ []string
	revive  func(context.Context) (host.Start, error)
	in      io.Reader
	out     io.Writer
	exec    func(s host.Start, environ []string, nonce string) error
}

func (b *body) run(ctx context.Context) error {
	if err := b.seat.Wait(); err != nil {
		return fmt.Errorf("%w: %w", ErrLeave, err)
	}
	if start := b.seat.Start(); start != nil {
		if start.Mode == host.Placeholder {
			return b.placeholder(ctx, *start)
		}
		err := b.enter(*start)
		if err == nil {
			return nil
		}
		b.seat.Fail(err.Error())
		b.held(*start, err)
		return &Held{Err: err}
	}
	// A respawn: nobody waits for this pane, so what does not start becomes a placeholder.
	start, became, err := b.again(ctx)
	if became {
		return nil
	}
	if err != nil {
		start = host.Start{Mode: host.Placeholder, Dir: start.Dir, Reason: err.Error()}
	}
	return b.placeholder(ctx, start)
}

// again asks what the record resolves to now, and becomes it. Otherwise it returns a placeholder's
// start, or why the start that it got could not be entered.
func (b *body) again(ctx context.Context) (start host.Start, became bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, reviveTime)
	start, err = b.revive(ctx)
	cancel()
	if err != nil || start.Mode == host.Placeholder {
		return start, false, err
	}
	err = b.enter(start)
	return start, err == nil, err
}

// enter becomes what start says, and with a real exec returns only where that failed. A claim
// that was taken on the way is given back then, for this process may live on.
func (b *body) enter(start host.Start) error {
	release, err := b.pass(start)
	if err != nil {
		return err
	}
	b.preface(start.Preface)
	if err := b.exec(start, b.environ, b.seat.Nonce()); err != nil {
		return errors.Join(err, release())
	}
	return nil
}

func (b *body) pass(start host.Start) (release func() error, err error) {
	if len(start.Guard) == 0 {
		return func() error { return nil }, nil
	}
	guard, err := owner.DecodeGuard(start.Guard)
	if err != nil {
		return nil, err
	}
	if err := guard.Pass(future(start, b.environ)); err != nil {
		return nil, err
	}
	return func() error { return giveBack(guard) }, nil
}

// giveBack releases the claim that this very process took through a guard.
func giveBack(g owner.Guard) error {
	claims := owner.Claims{Dir: g.Claims}
	list, err := claims.List()
	if err != nil {
		return err
	}
	for _, c := range list {
		if c.Identity == g.Identity && isSelf(c.Process) {
			return claims.Release(c)
		}
	}
	return nil
}

// future looks names up in the environment that the program will have.
func future(start host.Start, environ []string) integrations.Env {
	return func(name string) (string, bool) {
		if v, ok := lookup(start.Set, name); ok {
			return v, true
		}
		if host.IsNativeEnv(name) {
			return "", false
		}
		for _, u := range start.Unset {
			if u == name {
				return "", false
			}
		}
		return lookup(environ, name)
	}
}

// lookup returns the last value of a name, which is the one that a program sees.
func lookup(environ []string, name string) (value string, ok bool) {
	for i := len(environ) - 1; i >= 0; i-- {
		if n, v, cut := strings.Cut(environ[i], "="); cut && n == name {
			return v, true
		}
	}
	return "", false
}
