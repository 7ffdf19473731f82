package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
)

// Bounds of what a launch does beside the spawn itself.
const (
	undoTime    = 5 * time.Second // of removing a pane that must not stay
	confirmTime = 5 * time.Second // of set-and-confirm on an older host
)

// Do claims, spawns and reads back; on failure it undoes exactly what it did: its own claim and
// its own pane. Nothing that was there before is touched.
//
// Refusals are *owner.LiveError (before anything is created), *StartError and *ReadBackError
// (the pane was removed again), and what the host says.
func Do(ctx context.Context, e Env, r Request, d *Draft) (*Result, error) {
	if r.Here {
		return nil, fmt.Errorf("launch: %w: --here is another operation", ErrHere)
	}
	info, err := e.info(ctx)
	if err != nil {
		return nil, fmt.Errorf("launch: %w", err)
	}
	s, err := e.stage(d, owner.Place{Host: info.Server})
	if err != nil {
		return nil, err
	}
	started, session, err := s.spawn(ctx, r, info)
	if err != nil {
		return nil, errors.Join(err, s.release())
	}
	if err := s.verify(ctx, info, started); err != nil {
		return nil, errors.Join(err, s.release())
	}
	return &Result{
		Action:       d.Action,
		Terminal:     started.Terminal.ID,
		Session:      session,
		Record:       d.Record,
		Restorable:   d.Restorable,
		Reason:       d.Reason,
		NotPreserved: append([]string{}, d.NotPreserved...),
	}, nil
}

// info is what the host said of itself. It may be a moment old: a server that has come or gone
// since answers the spawn itself, and the spawn goes by that.
func (e Env) info(ctx context.Context) (host.Info, error) {
	if e.Info != nil {
		return *e.Info, nil
	}
	return e.Host.Info(ctx)
}

// neverPrompted is the durability of a conversation of which nothing is stored yet.
const neverPrompted = "never-prompted"

// stage holds what this call made so far.
type stage struct {
	e     Env
	start host.Start
	meta  map[metadata.Key][]byte
	claim *owner.Claim
	guard owner.Guard

	paneKey string
}

// stage claims the identity and encodes what goes with the spawn.
func (e Env) stage(d *Draft, place owner.Place) (*stage, error) {
	s := &stage{e: e, start: d.Start, meta: map[metadata.Key][]byte{}, paneKey: d.Facts.PaneKey}
	facts := fitting(d.Facts)
	switch {
	case d.expect == owner.Present:
		// Seen once is remembered for good; the first save need not add it.
		facts.Durability = string(owner.Present)
	case d.Action == Created && d.expect.Missing():
		// Until a look finds it, a respawn begins it again under the same id.
		facts.Durability = neverPrompted
	}
	place.PaneKey = s.paneKey
	if d.Record != nil {
		claim, err := e.Claims.Reserve(d.Record.Identity(), place)
		if err != nil {
			return nil, fmt.Errorf("launch %q: %w", d.Record.Identity(), err)
		}
		s.claim = &claim
		facts.Epoch = claim.Epoch
		s.guard = owner.NewGuard(d.Owner.Template, d.Record.Identity(), claim.Ticket, place, e.Claims, d.expect)
	}
	if err := s.encode(d, facts); err != nil {
		return nil, errors.Join(err, s.release())
	}
	return s, nil
}

// fitting makes the facts storable: a long prompt among the extra arguments is only noted, and
// does not stand in the way of the launch that it belongs to.
func fitting(f metadata.LaunchFacts) metadata.LaunchFacts {
	args := make([]string, len(f.NotPreserved))
	for i, a := range f.NotPreserved {
		args[i] = strings.ToValidUTF8(a, "\uFFFD")
	}
	f.NotPreserved = args
	return f.Fitted()
}

func (s *stage) encode(d *Draft, facts metadata.LaunchFacts) (err error) {
	if d.Record != nil {
		if s.meta[metadata.KeyAgentSession], err = d.Record.Encode(); err != nil {
			return fmt.Errorf("launch: %w", err)
		}
		if s.start.Guard, err = s.guard.Encode(); err != nil {
			return fmt.Errorf("launch: %w", err)
		}
	}
	if s.meta[metadata.KeyAgentLaunch], err = facts.Encode(); err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	t := d.Owner.Template
	name := t.Agent.Name
	if name == "" {
		name = t.ID
	}
	if s.meta[metadata.KeyAgent], err = (metadata.Agent{Name: name, Kind: t.Agent.Kind}).Encode(); err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	return nil
}

// release gives the reservation back; a claim that a pane took over is not ours any more.
func (s *stage) release() error {
	if s.claim == nil {
		return nil
	}
	return s.e.Claims.Release(*s.claim)
}

// spawn makes the pane: in the session where it is, else with the session.
func (s *stage) spawn(ctx context.Context, r Request, info host.Info) (host.Started, string, error) {
	h := s.e.Host
	spec := host.PaneSpec{Start: s.start}
	if info.AtomicRecord {
		spec.Meta = s.meta
	}
	ask := host.Spawn{Place: r.Place, Session: r.Session, Target: r.Target, Background: r.Background, Pane: spec}
	if r.Place != host.NewWindow {
		started, err := h.Spawn(ctx, ask)
		if err != nil {
			return host.Started{}, "", fmt.Errorf("launch: %w", err)
		}
		return *started, s.sessionOf(ctx, r, started.Terminal), nil
	}
	if r.Session == "" {
		return host.Started{}, "", errors.New("launch: a new window needs the name of a session")
	}
	// A session that comes or goes between two calls is looked for once more, and no oftener.
	running := info.Running
	for range 2 {
		if running {
			started, err := h.Spawn(ctx, ask)
			if err == nil {
				return *started, r.Session, nil
			}
			if !errors.Is(err, host.ErrNoSession) && !errors.Is(err, host.ErrNoServer) {
				return host.Started{}, "", fmt.Errorf("launch: %w", err)
			}
		}
		created, err := h.Create(ctx, host.CreateSession{Name: r.Session, Dir: r.Dir, Windows: []host.WindowSpec{{
			Index:         -1,
			AutomaticName: true,
			Layout:        host.Cell{Cols: 80, Rows: 24},
			Panes:         []host.PaneSpec{spec},
		}}})
		if err == nil {
			if len(created.Windows) != 1 || len(created.Windows[0]) != 1 {
				return host.Started{}, "", errors.New("launch: the host made something else than one pane")
			}
			return created.Windows[0][0], r.Session, nil
		}
		if !errors.Is(err, host.ErrSessionExists) {
			return host.Started{}, "", fmt.Errorf("launch: %w", err)
		}
		running = true
	}
	return host.Started{}, "", fmt.Errorf("launch: session %q comes and goes: %w", r.Session, host.ErrChanged)
}

// sessionOf names the session of a split, where the caller did not.
func (s *stage) sessionOf(ctx context.Context, r Request, t host.Terminal) string {
	if r.Session != "" {
		return r.Session
	}
	_, session := s.find(ctx, t)
	return session
}

func (s *stage) find(ctx context.Context, t host.Terminal) (*host.Pane, string) {
	w, err := s.e.Host.Snapshot(ctx)
	if err != nil {
		return nil, ""
	}
	return findPane(w, t)
}

func findPane(w *host.Workspace, t host.Terminal) (*host.Pane, string) {
	for i := range w.Sessions {
		for j := range w.Sessions[i].Windows {
			panes := w.Sessions[i].Windows[j].Panes
			for k := range panes {
				if panes[k].Terminal == t {
					return &panes[k], w.Sessions[i].Name
				}
			}
		}
	}
	return nil, ""
}

// verify is the read-back: the agent started, and the host holds exactly our bytes. Otherwise
// the pane goes.
func (s *stage) verify(ctx context.Context, info host.Info, started host.Started) error {
	t := started.Terminal
	if started.Err != nil {
		return &StartError{Terminal: t.ID, Err: started.Err, Left: s.remove(ctx, t)}
	}
	if !info.AtomicRecord {
		if err := s.confirm(ctx, t); err != nil {
			return &ReadBackError{Terminal: t.ID, Err: err, Left: s.remove(ctx, t)}
		}
		return nil
	}
	if key, ok := differs(s.meta, started.Meta); ok {
		return &ReadBackError{Terminal: t.ID, Key: key, Left: s.remove(ctx, t)}
	}
	return nil
}

// confirm stores the values on an older host, which cannot do it inside the spawn: a bounded
// compare-and-swap from absent, and a look that they are all there.
func (s *stage) confirm(ctx context.Context, t host.Terminal) error {
	ctx, cancel := context.WithTimeout(ctx, confirmTime)
	defer cancel()
	for _, key := range keys {
		value, ok := s.meta[key]
		if !ok {
			continue
		}
		if err := s.e.Host.Swap(ctx, t, key, nil, value); err != nil {
			return err
		}
	}
	w, err := s.e.Host.Snapshot(ctx)
	if err != nil {
		return err
	}
	pane, _ := findPane(w, t)
	if pane == nil {
		return host.ErrNoTerminal
	}
	if key, ok := differs(s.meta, pane.Meta); ok {
		return fmt.Errorf("%s was set and is not what is read back", key)
	}
	return nil
}

// remove takes the pane away that this call made, also where the caller has given up.
func (s *stage) remove(ctx context.Context, t host.Terminal) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	if err := s.e.Host.Kill(ctx, t); err != nil && !errors.Is(err, host.ErrNoTerminal) {
		return err
	}
	return nil
}

// keys in the order in which an older host gets them: the record first, for it is what counts.
var keys = [...]metadata.Key{metadata.KeyAgentSession, metadata.KeyAgentLaunch, metadata.KeyAgent}

// differs names the first of our keys whose bytes are not the same in both.
func differs(want, got map[metadata.Key][]byte) (metadata.Key, bool) {
	for _, key := range keys {
		w, wok := want[key]
		g, gok := got[key]
		if wok != gok || !bytes.Equal(w, g) {
			return key, true
		}
	}
	return "", false
}
