package archive

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

// carrier decides which sessions of earlier generations an archive carries on as pending.
//
// Sources are the last good generation and, because a held one may have seen what no good one
// has, the held ones above it. Of a source of the same host life only what was pending there is
// carried: a live session of this life that is gone was closed. Of another life everything is.
//
// A record that is in the archive already (live, placeholder, or carried from a better source)
// is taken out of the carried session: its conversation came back elsewhere. So is one that its own
// pane, which is back, lists among those that it had before. A session all of
// whose records came back is not carried; one that never had any is carried unless a session of
// its name exists. Where a live session has taken its name and records are left, it is carried
// under another name, its own in Pending.Name, and gets its own back when that is free.
type carrier struct {
	live      *Archive
	h         *history
	dismissed map[waiting]bool
	asked     map[string]bool // names that this save declines
	now       time.Time
	age       time.Duration

	taken    map[string]bool
	there    presence // of the live panes, and the records of what is carried
	out      []Session
	sources  []source  // of each of out
	declined []waiting // by this save
	dropped  int       // records not carried by consent or age
}

// waiting names one session that waits: its own name, and where it was live last.
type waiting struct {
	Session string `json:"session"`
	From    uint64 `json:"from"`
}

// source is where a carried session was found, and how it was listed there.
type source struct {
	entry *Entry
	name  string
}

func newCarrier(live *Archive, h *history, l *listing, declined []string, now time.Time, age time.Duration) *carrier {
	c := &carrier{
		live: live, h: h, dismissed: l.dismissed(), now: now, age: age,
		asked: map[string]bool{}, taken: map[string]bool{}, there: live.presence(),
	}
	for _, name := range declined {
		c.asked[name] = true
	}
	for i := range live.Sessions {
		c.taken[live.Sessions[i].Name] = true
	}
	return c
}

func (c *carrier) carry() []Session {
	if c.h.good != nil {
		c.from(c.h.good, false)
	}
	for i := range c.h.held {
		c.from(&c.h.held[i], true)
	}
	return c.out
}

// from carries what one source has. extras: only sessions that bring a record.
func (c *carrier) from(e *Entry, extras bool) {
	sameLife := e.Archive.Host.Instance == c.live.Host.Instance
	// Live ones first: between two of one name, the one that was live last has it.
	for _, pending := range []bool{false, true} {
		for i := range e.Archive.Sessions {
			s := &e.Archive.Sessions[i]
			if (s.Pending != nil) != pending || sameLife && !pending {
				continue
			}
			c.session(*s, e, extras)
		}
	}
}

func (c *carrier) session(s Session, e *Entry, extras bool) {
	own, listed := s.OwnName(), s.Name
	p := Pending{From: e.Generation, Since: c.now}
	if s.Pending != nil {
		p = *s.Pending
		p.Waited += int64(passed(e.SavedAt, c.now, c.age) / time.Second)
	} else if e.SavedAt.After(c.now) {
		p.Since = e.SavedAt // the clock was set back: the wait begins no earlier than that
	}
	p.Name = ""
	w := waiting{own, p.From}
	asked := c.asked[s.Name] || c.asked[own]
	if asked && !c.dismissed[w] {
		c.declined = append(c.declined, w)
	}
	if asked || c.dismissed[w] || c.tooOld(&s, &p, e) {
		s.eachPane(func(p *Pane) {
			if p.AgentSession != nil {
				c.dropped++
			}
		})
		return
	}

	s.Windows = cloneWindows(s.Windows)
	had, left := 0, 0
	s.eachPane(func(p *Pane) {
		if p.AgentSession == nil {
			return
		}
		had++
		if c.there.has(p.place()) {
			p.AgentSession, p.Agent = nil, nil
			return
		}
		left++
	})
	name := own
	switch {
	case had > 0 && left == 0, left == 0 && (extras || c.taken[own]):
		return
	case c.taken[own]:
		name = c.free(own, p.From)
		p.Name = own
	}
	c.taken[name] = true
	s.eachPane(func(p *Pane) {
		if p.AgentSession != nil {
			c.there.records[p.AgentSession.Identity()] = true
		}
	})
	s.Name, s.Active, s.Pending, s.Command = name, false, &p, nil
	c.out, c.sources = append(c.out, s), append(c.sources, source{e, listed})
}

// tooOld needs three clocks to agree: now's, the source's, and the time that saves saw passing. A
// clock that is wrong for a while loses nothing.
func (c *carrier) tooOld(s *Session, p *Pending, e *Entry) bool {
	return s.Pending != nil && c.now.Sub(p.Since) > c.age && e.SavedAt.Sub(p.Since) > c.age && time.Duration(p.Waited)*time.Second > c.age
}

// passed is what two moments at which something was saved say about a bound of age. A clock that
// was set back says nothing, and one that was set forward not more than an eighth of it.
func passed(from, to time.Time, bound time.Duration) time.Duration {
	return min(max(to.Sub(from), 0), bound/8)
}

// free is another name for a session whose own is taken.
func (c *carrier) free(own string, from uint64) string {
	for i := 1; ; i++ {
		suffix := fmt.Sprintf(" (pending %d)", from)
		if i > 1 {
			suffix = fmt.Sprintf(" (pending %d, %d)", from, i)
		}
		n := min(len(own), MaxName-len(suffix))
		for n > 0 && n < len(own) && !utf8.RuneStart(own[n]) {
			n--
		}
		if name := own[:n] + suffix; !c.taken[name] {
			return name
		}
	}
}

func cloneWindows(ws []Window) []Window {
	ws = slices.Clone(ws)
	for i := range ws {
		ws[i].Panes = slices.Clone(ws[i].Panes)
	}
	return ws
}
