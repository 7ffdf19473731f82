package archive

import (
	"fmt"
	"time"

	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/metadata"
)

// ShutdownTime is how long a server that is being shut down may take to lose its panes: what still
// is so after it is no shutdown. systemd gives what it stops 90 seconds, and a user's manager 120.
const ShutdownTime = 3 * time.Minute

// settlingMost bounds how long losses that follow one another keep a save by itself held, where no
// more than half is lost at a time: somebody closes pane after pane.
const settlingMost = 15 * time.Minute

// A shutdown is told from a person who closes panes by what comes after it: nothing. So a loss is
// fresh until a save that is ShutdownTime later still finds a server without it, each record by
// itself: a shutdown that takes its time loses one after the other, and each of its saves would
// look harmless beside the one before.
//
// Fresh and more than half of what was live within that time: held (shrunk), whoever saves. Fresh
// and less: held (settling), where nobody asked for the save, and nobody was seen at work: a pane
// that is new is somebody's. docs/decisions/losses.md has the reasons.

// moment is a save's own, by both clocks.
type moment struct {
	now time.Time
	up  time.Duration // since boot; 0 where that is not known
}

func (s Store) moment() moment {
	up := s.Uptime
	if up == nil {
		up = proc.Uptime
	}
	return moment{s.now(), up()}
}

// since is how long ago a held generation of this host life was written. The clock that nobody
// sets has the word where it is known: a boot is part of a host life.
func (m moment) since(e *Entry) time.Duration {
	if u := time.Duration(e.Archive.Held.Uptime) * time.Second; u > 0 && m.up > 0 {
		return apart(m.up, u)
	}
	return m.now.Sub(e.SavedAt).Abs()
}

func apart(a, b time.Duration) time.Duration { return (a - b).Abs() }

// judge says why an archive must not take the last good one's place.
func (s Store) judge(l *listing, f *Archive, h *history, c *carrier, o SaveOptions, m moment) *Held {
	if h.good == nil {
		return nil
	}
	live, had := f.Counts.Live, countsOf(h.good).Live
	held := func(state, reason string, args ...any) *Held {
		return &Held{State: state, Reason: fmt.Sprintf(reason, args...), Against: h.good.Generation, Uptime: int64(m.up / time.Second)}
	}
	if total := had + countsOf(h.good).Pending - c.dropped; live+f.Counts.Pending == 0 && total > 0 {
		return held(heldEmpty, "it has no agent's conversation, and generation %d has %d", h.good.Generation, total)
	}
	if h.good.Archive.Host.Instance != f.Host.Instance {
		return nil
	}
	ref := h.good.Archive
	if ref.Sessions == nil { // only its head was read
		e := s.entry(l, slot{h.good.Generation, h.good.Name})
		if e.Err != nil {
			return nil
		}
		ref = e.Archive
	}
	lost := missing(ref, f)
	fresh, losing := h.fresh(lost, f.Host.Instance, m)
	switch {
	case 2*live < live+fresh:
		return held(heldShrunk, "%d of the %d live conversations of generation %d are gone, as in a shutdown; a save that finds the same after %s makes it good",
			len(lost), had, h.good.Generation, many(int(ShutdownTime.Minutes()), "minute"))
	case fresh > 0 && o.Auto && losing < settlingMost && !f.newPane(ref):
		return held(heldSettling, "%d of the %d live conversations of generation %d went within the last %s, as in a shutdown; a save after that makes it good",
			fresh, had, h.good.Generation, many(int(ShutdownTime.Minutes()), "minute"))
	}
	return nil
}

// fresh counts those of the lost records that were seen to be lost no longer than ShutdownTime ago,
// and says how long ago the first loss was held.
func (h *history) fresh(lost []place, instance string, m moment) (n int, losing time.Duration) {
	gone := make([]presence, 0, len(h.held)) // what each held one has, newest first
	var age []time.Duration
	for i := range h.held {
		e := &h.held[i]
		if e.Archive.Host.Instance != instance || e.Archive.Sessions == nil {
			continue
		}
		gone, age = append(gone, e.Archive.presence()), append(age, m.since(e))
	}
	for _, p := range lost {
		old := time.Duration(0)
		for i := range gone {
			if gone[i].has(p) {
				break // it was there again, or still
			}
			old = max(old, age[i])
		}
		losing = max(losing, old)
		if old < ShutdownTime {
			n++
		}
	}
	return n, losing
}

// place is a conversation in the pane with a key.
type place struct {
	key string
	id  metadata.Identity
}

// presence is what an archive holds, live or waiting, and what each of its panes lists that it had
// before.
type presence struct {
	records map[metadata.Identity]bool
	before  map[place]bool
}

// has reports that a conversation is not lost: some pane holds it, or its own pane has left it for
// another one. That another pane had it once says nothing.
func (p presence) has(at place) bool { return p.records[at.id] || at.key != "" && p.before[at] }

func (a *Archive) presence() presence {
	out := presence{map[metadata.Identity]bool{}, map[place]bool{}}
	for i := range a.Sessions {
		a.Sessions[i].eachPane(func(p *Pane) {
			if p.AgentSession == nil {
				return
			}
			id := p.AgentSession.Identity()
			out.records[id] = true
			if p.Agent == nil {
				return
			}
			for _, earlier := range p.Agent.Previous {
				out.before[place{p.Agent.Key, metadata.Identity{IntegrationID: id.IntegrationID, NativeID: earlier}}] = true
			}
		})
	}
	return out
}

func (p *Pane) place() place {
	at := place{id: p.AgentSession.Identity()}
	if p.Agent != nil {
		at.key = p.Agent.Key
	}
	return at
}

// missing are the records that are live in ref and not in a at all. What had ended there, or had
// another program in its place, could go.
func missing(ref, a *Archive) (out []place) {
	there := a.presence()
	for i := range ref.Sessions {
		s := &ref.Sessions[i]
		if s.Pending != nil {
			continue
		}
		s.eachPane(func(p *Pane) {
			if p.AgentSession == nil || there.has(p.place()) {
				return
			}
			if p.Agent != nil && (p.Agent.State == StateEnded || p.Agent.State == StateReplaced || p.Agent.State == StatePending) {
				return
			}
			out = append(out, p.place())
		})
	}
	return out
}

// newPane reports a live agent's pane that ref does not have: somebody was at work since.
func (a *Archive) newPane(ref *Archive) bool {
	keys, records := map[string]bool{}, ref.presence().records
	for i := range ref.Sessions {
		ref.Sessions[i].eachPane(func(p *Pane) {
			if p.Agent != nil {
				keys[p.Agent.Key] = p.Agent.Key != ""
			}
		})
	}
	found := false
	for i := range a.Sessions {
		s := &a.Sessions[i]
		s.eachPane(func(p *Pane) {
			if s.Pending == nil && p.AgentSession != nil && p.Agent != nil && p.Agent.State == StateRunning &&
				!keys[p.Agent.Key] && !records[p.AgentSession.Identity()] {
				found = true
			}
		})
	}
	return found
}
