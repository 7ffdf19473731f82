package archive

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/phux-agent/phux-agent/metadata"
)

// The kinds of a Change. The vocabulary is open.
const (
	SessionAdded    = "session-added"
	SessionRemoved  = "session-removed"
	SessionWaits    = "session-waits"     // it was live, and is carried on
	SessionCameBack = "session-came-back" // it was carried on, and is live
	WindowAdded     = "window-added"
	WindowRemoved   = "window-removed"
	WindowRenamed   = "window-renamed" // From, To
	WindowMoved     = "window-moved"   // to another index: From, To
	WindowLayout    = "window-layout"
	PaneAdded       = "pane-added"
	PaneRemoved     = "pane-removed"
	PaneMoved       = "pane-moved" // From and To are places
	PaneDirectory   = "pane-directory"
	RecordAdded     = "record-added"
	RecordRemoved   = "record-removed"
	RecordChanged   = "record-changed" // of one pane: From is the earlier native id
	RecordState     = "record-state"   // From, To
	ProfileChanged  = "profile-changed"
)

// Change is one thing that two archives say differently. Session, Window and Pane say where it
// is in the later one, or was in the earlier one where it is no more; windows and panes below 0
// where it is about the whole.
type Change struct {
	Kind    string                 `json:"kind"`
	Session string                 `json:"session"`
	Window  int                    `json:"window"`
	Pane    int                    `json:"pane"`
	Record  *metadata.AgentSession `json:"record"`
	From    string                 `json:"from"`
	To      string                 `json:"to"`
}

// Place is where it is, as people say it: SESSION:WINDOW.PANE.
func (c Change) Place() string {
	switch {
	case c.Window < 0:
		return c.Session
	case c.Pane < 0:
		return fmt.Sprintf("%s:%d", c.Session, c.Window)
	}
	return fmt.Sprintf("%s:%d.%d", c.Session, c.Window, c.Pane)
}

// Words say what changed, at Place.
func (c Change) Words() string {
	record := ""
	if c.Record != nil {
		record = c.Record.IntegrationID + " " + c.Record.NativeID
	}
	switch c.Kind {
	case SessionAdded:
		return "a new session: " + c.To
	case SessionRemoved:
		return "the session is gone: " + c.From
	case SessionWaits:
		return "the session is not live any more, and waits to be restored"
	case SessionCameBack:
		return "the session waited to be restored, and is live"
	case WindowAdded:
		return fmt.Sprintf("a new window %q", c.To)
	case WindowRemoved:
		return fmt.Sprintf("the window %q is gone", c.From)
	case WindowRenamed:
		return fmt.Sprintf("the window %q is called %q", c.From, c.To)
	case WindowMoved:
		return fmt.Sprintf("the window %s has the index %s", c.From, c.To)
	case WindowLayout:
		return "another layout"
	case PaneAdded:
		return "a new pane in " + c.To
	case PaneRemoved:
		return "the pane is gone, which was in " + c.From
	case PaneMoved:
		return "the pane came from " + c.From
	case PaneDirectory:
		return fmt.Sprintf("its directory was %s, and is %s", cmp.Or(c.From, "unknown"), cmp.Or(c.To, "unknown"))
	case RecordAdded:
		return "a new conversation: " + record
	case RecordRemoved:
		return "the conversation is gone: " + record
	case RecordChanged:
		return fmt.Sprintf("its conversation was %s, and is %s", c.From, record)
	case RecordState:
		return fmt.Sprintf("%s was %s, and is %s", record, c.From, c.To)
	case ProfileChanged:
		return fmt.Sprintf("its profile was %s, and is %s", c.From, c.To)
	}
	return c.Kind
}

// Diff says what changed from a to b: sessions, windows, panes and records. What changes by
// itself (titles, foreground programs, what is active, names that windows give themselves) is no
// change. A pane is the same by its pane key, else by its conversation, else by its place.
func Diff(a, b *Archive) []Change {
	d := &differ{before: layOut(a), after: layOut(b)}
	d.match()
	d.sessions(a, b)
	d.panes()
	slices.SortStableFunc(d.out, func(x, y Change) int { return d.order(x.Session) - d.order(y.Session) })
	return d.out
}

// spot is one pane with its place.
type spot struct {
	session *Session
	window  *Window
	number  int // of the window
	index   int
	pane    *Pane
	other   *spot // the same pane in the other archive
}

func layOut(a *Archive) (out []*spot) {
	for i := range a.Sessions {
		s := &a.Sessions[i]
		for w := range s.Windows {
			for j := range s.Windows[w].Panes {
				out = append(out, &spot{session: s, window: &s.Windows[w], number: numberOf(s, w), index: j, pane: &s.Windows[w].Panes[j]})
			}
		}
	}
	return out
}

// numberOf is a window's index, or its place where the archive knows none.
func numberOf(s *Session, w int) int {
	if n := s.Windows[w].Index; n >= 0 {
		return n
	}
	return w
}

func (s *spot) place() string { return fmt.Sprintf("%s:%d.%d", s.session.OwnName(), s.number, s.index) }

func (s *spot) change(kind, from, to string) Change {
	return Change{Kind: kind, Session: s.session.OwnName(), Window: s.number, Pane: s.index, Record: s.pane.AgentSession, From: from, To: to}
}

type differ struct {
	before, after []*spot
	names         []string // of sessions, in the order in which they are told
	out           []Change
}

func (d *differ) order(session string) int { return slices.Index(d.names, session) }

// match pairs the panes of the two, the surest way first.
func (d *differ) match() {
	d.pair(func(s *spot) string {
		if s.pane.Agent == nil {
			return ""
		}
		return s.pane.Agent.Key
	})
	d.pair(func(s *spot) string {
		if s.pane.AgentSession == nil {
			return ""
		}
		return s.pane.AgentSession.Identity().String()
	})
	d.pair((*spot).place)
}

func (d *differ) pair(key func(*spot) string) {
	free := map[string]*spot{}
	for _, s := range d.before {
		if k := key(s); s.other == nil && k != "" && free[k] == nil {
			free[k] = s
		}
	}
	for _, s := range d.after {
		if o := free[key(s)]; s.other == nil && o != nil {
			s.other, o.other = o, s
			delete(free, key(s))
		}
	}
}

func (d *differ) sessions(a, b *Archive) {
	before, after := byName(a), byName(b)
	for _, x := range [][]Session{a.Sessions, b.Sessions} {
		for i := range x {
			if n := x[i].OwnName(); !slices.Contains(d.names, n) {
				d.names = append(d.names, n)
			}
		}
	}
	for _, name := range d.names {
		was, is := before[name], after[name]
		say := func(kind, from, to string) {
			d.out = append(d.out, Change{Kind: kind, Session: name, Window: -1, Pane: -1, From: from, To: to})
		}
		switch {
		case was == nil:
			say(SessionAdded, "", is.sum())
			continue
		case is == nil:
			say(SessionRemoved, was.sum(), "")
			continue
		case was.Pending == nil && is.Pending != nil:
			say(SessionWaits, "", "")
		case was.Pending != nil && is.Pending == nil:
			say(SessionCameBack, "", "")
		}
		d.windows(name, was, is)
	}
}

// byName holds a live session before one that is carried on under the same name.
func byName(a *Archive) map[string]*Session {
	out := map[string]*Session{}
	for i := range a.Sessions {
		s := &a.Sessions[i]
		if have := out[s.OwnName()]; have == nil || have.Pending != nil && s.Pending == nil {
			out[s.OwnName()] = s
		}
	}
	return out
}

// sum counts what is in a session, in words.
func (s *Session) sum() string {
	panes, records := 0, 0
	s.eachPane(func(p *Pane) {
		panes++
		if p.AgentSession != nil {
			records++
		}
	})
	return fmt.Sprintf("%s, %s, %s", many(len(s.Windows), "window"), many(panes, "pane"), many(records, "conversation"))
}

func many(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// windows compares those of a session that both have.
func (d *differ) windows(name string, was, is *Session) {
	pairs := d.windowPairs(was, is)
	for i := range was.Windows {
		if !slices.ContainsFunc(pairs, func(p [2]int) bool { return p[0] == i }) {
			d.out = append(d.out, Change{Kind: WindowRemoved, Session: name, Window: numberOf(was, i), Pane: -1, From: was.Windows[i].Name})
		}
	}
	for j := range is.Windows {
		at := slices.IndexFunc(pairs, func(p [2]int) bool { return p[1] == j })
		w := &is.Windows[j]
		say := func(kind, from, to string) {
			d.out = append(d.out, Change{Kind: kind, Session: name, Window: numberOf(is, j), Pane: -1, From: from, To: to})
		}
		if at < 0 {
			say(WindowAdded, "", w.Name)
			continue
		}
		i := pairs[at][0]
		old := &was.Windows[i]
		if old.Name != w.Name && !(old.AutomaticName && w.AutomaticName) {
			say(WindowRenamed, old.Name, w.Name)
		}
		if a, b := numberOf(was, i), numberOf(is, j); a != b {
			say(WindowMoved, fmt.Sprint(a), fmt.Sprint(b))
		}
		if len(old.Panes) == len(w.Panes) && old.Cells != w.Cells {
			say(WindowLayout, "", "")
		}
	}
}

// windowPairs are the windows that are the same in both: those that share a pane, else those of
// one index, else those of one name.
func (d *differ) windowPairs(was, is *Session) (pairs [][2]int) {
	usedA, usedB := map[int]bool{}, map[int]bool{}
	pair := func(same func(i, j int) bool) {
		for i := range was.Windows {
			for j := range is.Windows {
				if !usedA[i] && !usedB[j] && same(i, j) {
					usedA[i], usedB[j] = true, true
					pairs = append(pairs, [2]int{i, j})
				}
			}
		}
	}
	shared := map[[2]*Window]bool{}
	for _, s := range d.after {
		if s.other != nil {
			shared[[2]*Window{s.other.window, s.window}] = true
		}
	}
	pair(func(i, j int) bool { return shared[[2]*Window{&was.Windows[i], &is.Windows[j]}] })
	pair(func(i, j int) bool { return numberOf(was, i) == numberOf(is, j) })
	pair(func(i, j int) bool { return was.Windows[i].Name == is.Windows[j].Name })
	return pairs
}

// panes compares pane by pane. Of a session that only one of them has, what its panes held is
// said, and not that they are there.
func (d *differ) panes() {
	in := func(spots []*spot, name string) bool {
		return slices.ContainsFunc(spots, func(s *spot) bool { return s.session.OwnName() == name })
	}
	for _, s := range d.before {
		if s.other != nil {
			continue
		}
		if in(d.after, s.session.OwnName()) {
			d.out = append(d.out, s.change(PaneRemoved, s.pane.Cwd, ""))
		}
		if s.pane.AgentSession != nil {
			d.out = append(d.out, s.change(RecordRemoved, "", ""))
		}
	}
	for _, s := range d.after {
		o := s.other
		if o == nil {
			if in(d.before, s.session.OwnName()) {
				d.out = append(d.out, s.change(PaneAdded, "", s.pane.Cwd))
			}
			if s.pane.AgentSession != nil {
				d.out = append(d.out, s.change(RecordAdded, "", ""))
			}
			continue
		}
		if o.place() != s.place() {
			d.out = append(d.out, s.change(PaneMoved, o.place(), s.place()))
		}
		if o.pane.Cwd != s.pane.Cwd {
			d.out = append(d.out, s.change(PaneDirectory, o.pane.Cwd, s.pane.Cwd))
		}
		d.record(o, s)
	}
}

func (d *differ) record(was, is *spot) {
	a, b := was.pane.AgentSession, is.pane.AgentSession
	switch {
	case a == nil && b == nil:
		return
	case a == nil:
		d.out = append(d.out, is.change(RecordAdded, "", ""))
		return
	case b == nil:
		gone := is.change(RecordRemoved, "", "")
		gone.Record = a
		d.out = append(d.out, gone)
		return
	case a.Identity() != b.Identity():
		d.out = append(d.out, is.change(RecordChanged, a.NativeID, b.NativeID))
	}
	x, y := stateOfPane(was), stateOfPane(is)
	if x != y {
		d.out = append(d.out, is.change(RecordState, x, y))
	}
	profile := func(p *Pane) string {
		if p.Agent == nil || p.Agent.Profile == "" {
			return "default"
		}
		return p.Agent.Profile
	}
	if x, y := profile(was.pane), profile(is.pane); x != y {
		d.out = append(d.out, is.change(ProfileChanged, x, y))
	}
}

// stateOfPane is a record's state; of one that is carried on, pending.
func stateOfPane(s *spot) string {
	switch {
	case s.session.Pending != nil:
		return StatePending
	case s.pane.Agent == nil || s.pane.Agent.State == "":
		return StateRunning
	}
	return s.pane.Agent.State
}
