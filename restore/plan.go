package restore

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/internal/ui"
)

// Make is the pure function behind docs/restore.md: archive, facts and options become one verdict per
// pane. The only errors are *UnknownSessionError and *UnknownPaneError.
func Make(src Source, f *Facts, o Options) (*Plan, error) {
	sessions, err := selected(src.Archive, o)
	if err != nil {
		return nil, err
	}
	m := &maker{src: src, f: f, o: o, hold: holdings(src.Archive, sessions, f)}
	p := &Plan{Source: src, Options: o, Host: f.Host, Sessions: make([]SessionPlan, len(sessions))}
	for i, s := range sessions {
		p.Sessions[i] = m.session(s)
	}
	m.apart(p)
	m.requirements(p)
	m.modes(sessions, p)
	for i, s := range sessions {
		m.decide(s, &p.Sessions[i])
	}
	p.Notes, p.Notices = m.notes(sessions), m.notices()
	return p, nil
}

type maker struct {
	src  Source
	f    *Facts
	o    Options
	hold *holders

	filled map[string]bool // terminals that are to be replaced
	asides map[string]bool // names that sessions get which are set aside
	owned  map[string]bool // own names that sessions which wait under others get back
}

// trouble is a verdict in words.
type trouble struct {
	verdict      Verdict
	reason, hint string
}

// global is trouble that refuses every session, whatever is in it.
func (m *maker) global() *trouble {
	a := m.src.Archive
	switch {
	case !m.src.Own && !m.o.Import:
		return &trouble{
			Untrusted, "the archive was not written by this machine's own store",
			"look at it with restore --plan; if you trust where it came from, restore it with --import",
		}
	case a.Host.Machine != "" && a.Host.Machine != m.f.Machine && !m.o.FromHost:
		return &trouble{
			ForeignMachine, fmt.Sprintf("it was saved on another machine (%s; this one is %s)", a.Host.Machine, orUnknown(m.f.Machine)),
			"if its directories and conversations are here too, restore it with --from-host",
		}
	}
	return nil
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// judge is session with the one that is there in its place, nil where there is none or it makes room.
func (m *maker) judge(s *archive.Session, there *host.Session) SessionPlan {
	sp := SessionPlan{Name: s.Name, HostName: orDefault(m.f.Names[s.Name], s.Name), Action: Create}
	global := m.global()
	switch {
	case global != nil:
		sp.Action, sp.Reason = Refuse, global.reason
	case there != nil:
		sp.Action, sp.Reason = SkipExisting, fmt.Sprintf("a session %q is there, and is left as it is", sp.HostName)
	case !m.f.Host.AtomicRecord:
		global = &trouble{
			HostUnsupported, fmt.Sprintf("this host (%s %s) cannot store a record inside the spawn", m.f.Host.Kind, m.f.Host.Version),
			"upgrade the host; nothing is created on this one",
		}
		sp.Action, sp.Reason = Refuse, global.reason
	case sp.HostName != s.Name:
		sp.Reason = fmt.Sprintf("comes back as %q: this host cannot hold the name %q", sp.HostName, s.Name)
	}
	number := numbering(s)
	first := true
	for w := range s.Windows {
		for i := range s.Windows[w].Panes {
			p := &s.Windows[w].Panes[i]
			pp := PanePlan{
				Window: number[w], Index: i, Title: p.Title,
				Record: p.AgentSession, Command: shownCommand(s, p, first), Dir: shellDir(s, p),
			}
			if p.Agent != nil {
				pp.Previous, pp.NotPreserved = p.Agent.Previous, p.Agent.NotPreserved
			}
			first = false
			switch {
			case there != nil && global == nil:
				m.existing(there, s, p, &pp)
			default:
				m.pane(s, p, &pp)
				pp.text = m.textOf(s.Name, w, i)
				if global != nil {
					pp.refused(global)
				}
			}
			sp.Panes = append(sp.Panes, pp)
		}
	}
	switch {
	case there == nil || global != nil:
	case m.o.Fill:
		m.fill(s, &sp, there)
	default:
		m.offer(s, &sp, there)
	}
	return sp
}

// refused puts a session's trouble over what one pane would have been. A shell has no trouble
// of its own: it is told that it does not come back.
func (p *PanePlan) refused(t *trouble) {
	if p.Verdict == ProgramPane {
		p.Verdict, p.Program = ShellPane, nil
	}
	if p.Verdict != ShellPane && p.Verdict != EndedPane {
		p.Verdict = t.verdict
	}
	p.Reason, p.Hint = t.reason, t.hint
}

// there is the host's session of a name.
func (m *maker) there(name string) *host.Session {
	for i := range m.f.View.Sessions {
		if m.f.View.Sessions[i].Name == name {
			return &m.f.View.Sessions[i]
		}
	}
	return nil
}

// numbering gives every window its archived index, or its position where those are not distinct
// (phux's archives have none).
func numbering(s *archive.Session) []int {
	n := make([]int, len(s.Windows))
	if distinct(s) {
		for i := range s.Windows {
			n[i] = s.Windows[i].Index
		}
		return n
	}
	for i := range n {
		n[i] = i
	}
	return n
}

func distinct(s *archive.Session) bool {
	seen := map[int]bool{}
	for i := range s.Windows {
		if n := s.Windows[i].Index; n < 0 || n > host.MaxIndex || seen[n] {
			return false
		}
		seen[s.Windows[i].Index] = true
	}
	return true
}

// shownCommand is the command of an archive, for people.
func shownCommand(s *archive.Session, p *archive.Pane, first bool) string {
	switch {
	case len(p.Command) > 0:
		return strings.Join(p.Command, " ")
	case p.Program != "":
		return p.Program
	case first && len(s.Command) > 0:
		return strings.Join(s.Command, " ")
	}
	return ""
}

// apart refuses a session that the host could only hold under the name of an earlier one.
func (m *maker) apart(p *Plan) {
	taken := map[string]string{}
	for i := range p.Sessions {
		s := &p.Sessions[i]
		if s.Action != Create {
			continue
		}
		if other, ok := taken[s.HostName]; ok {
			t := &trouble{
				HostUnsupported, fmt.Sprintf("this host cannot hold the names %q and %q apart", other, s.Name),
				"restore one of them (--only), rename it, then restore the other",
			}
			s.Action, s.Reason = Refuse, t.reason
			for j := range s.Panes {
				s.Panes[j].refused(t)
			}
			continue
		}
		taken[s.HostName] = s.Name
	}
}

// requirements binds what a template requires of a restore: only where two or more of its
// panes would run in one launch directory, those that run there already included.
func (m *maker) requirements(p *Plan) {
	type place struct{ integration, dir string }
	count := map[place]int{}
	m.f.eachLive(func(integration, dir string) { count[place{integration, dir}]++ })
	comers := func(do func(*PanePlan)) {
		for i := range p.Sessions {
			if s := &p.Sessions[i]; s.Action == Fill || s.Action == Create && !m.refuses(s) {
				for j := range s.Panes {
					if s.Panes[j].Verdict.Starts() && s.makes(&s.Panes[j]) {
						do(&s.Panes[j])
					}
				}
			}
		}
	}
	comers(func(pp *PanePlan) { count[place{pp.Record.IntegrationID, pp.facts.LaunchDir}]++ })
	comers(func(pp *PanePlan) {
		n := count[place{pp.Record.IntegrationID, pp.facts.LaunchDir}]
		unmet := m.f.Agents[pp.key].Unmet
		if n < 2 || len(unmet) == 0 {
			return
		}
		u := unmet[0]
		pp.placeholder(trouble{
			RequirementUnmet,
			fmt.Sprintf("%d panes of %s would run in %s, and %s: %s", n, pp.Record.IntegrationID, pp.facts.LaunchDir, u.Detail, consequence(u.Require)),
			fmt.Sprintf("set %s to %v in %s, then press Enter in each pane", u.Require.JSON, u.Require.Equals, u.Require.File),
		}, m.standIn(pp.facts.LaunchDir))
	})
}

func consequence(r integrations.Require) string {
	if r.Consequence == "" {
		return "its integration requires it"
	}
	return r.Consequence
}

// refuses reports whether authority refuses the session.
func (m *maker) refuses(s *SessionPlan) bool {
	return slices.ContainsFunc(s.Panes, func(p PanePlan) bool { return p.Verdict.Authority() })
}

// decide refuses a session whole, or builds what creates it.
func (m *maker) decide(s *archive.Session, sp *SessionPlan) {
	if sp.Action != Create {
		for i := range sp.Panes {
			if pp := &sp.Panes[i]; !sp.makes(pp) || !pp.Verdict.Starts() {
				pp.unstarted()
			}
		}
		return
	}
	var bad []*PanePlan
	for i := range sp.Panes {
		if v := sp.Panes[i].Verdict; v.Authority() || m.o.Strict && v.Circumstance() {
			bad = append(bad, &sp.Panes[i])
		}
	}
	if len(bad) == 0 {
		sp.create = m.build(s, sp)
		sp.create.Aside = sp.aside
		return
	}
	words := "this pane cannot come back: "
	if len(bad) > 1 {
		words = fmt.Sprintf("%d of its panes cannot come back, the first: ", len(bad))
	}
	sp.Action = Refuse
	sp.Reason = fmt.Sprintf("%swindow %d, pane %d: %s: %s", words, bad[0].Window, bad[0].Index, bad[0].Verdict, bad[0].Reason)
	for i := range sp.Panes {
		sp.Panes[i].Start = host.Start{}
	}
}

// build makes the request for a session, but for guards, tickets and new pane keys.
func (m *maker) build(s *archive.Session, sp *SessionPlan) *host.CreateSession {
	c := &host.CreateSession{Name: sp.HostName}
	c.Dir, _ = m.shellIn(s.Cwd)
	if s.Cwd == "" && len(sp.Panes) > 0 {
		c.Dir = sp.Panes[0].Start.Dir
	}
	numbered := distinct(s) && (len(s.Windows) > 1 || m.src.Archive.Host.Kind != "")
	first := 0
	for w := range s.Windows {
		aw := &s.Windows[w]
		if len(aw.Panes) == 0 {
			continue
		}
		cell, order := layout(aw)
		spec := host.WindowSpec{
			Name: holdable(aw.Name), Index: -1, AutomaticName: aw.AutomaticName || aw.Name == "",
			Zoomed: aw.Zoomed && len(aw.Panes) > 1, Layout: cell,
			Panes: make([]host.PaneSpec, len(aw.Panes)),
		}
		if numbered {
			spec.Index = aw.Index
		}
		if aw.Active {
			c.Active = len(c.Windows)
		}
		for leaf, i := range order {
			pp := &sp.Panes[first+i]
			spec.Panes[leaf] = host.PaneSpec{Start: pp.Start, Title: clip(aw.Panes[i].Title, host.MaxValue)}
			if aw.Panes[i].Active {
				spec.Active = leaf
			}
			pp.window, pp.pane = len(c.Windows), leaf
		}
		first += len(aw.Panes)
		c.Windows = append(c.Windows, spec)
	}
	if len(c.Windows) == 0 {
		// A session needs a pane to be one.
		c.Windows = []host.WindowSpec{{
			Index: -1, AutomaticName: true, Layout: leaf(80, 24, 0),
			Panes: []host.PaneSpec{{Start: host.Start{Mode: host.Shell, Dir: c.Dir}}},
		}}
	}
	return c
}

// holdable is a name as near to the archived one as every host can hold it.
func holdable(name string) string {
	return clip(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, name), host.MaxName)
}

// clip shortens text to so many bytes, at the end of a rune.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// notes are about the whole.
func (m *maker) notes(sessions []*archive.Session) []string {
	a := m.src.Archive
	var notes []string
	if a.Host.Kind != "" && a.Host.Kind != m.f.Host.Kind {
		notes = append(notes, fmt.Sprintf("saved on %s, restored on %s", a.Host.Kind, m.f.Host.Kind))
	}
	for _, old := range sortedKeys(m.o.Owners) {
		n := 0
		eachPane(sessions, func(_ *archive.Session, p *archive.Pane) {
			if p.AgentSession != nil && p.AgentSession.PluginID == old {
				n++
			}
		})
		notes = append(notes, fmt.Sprintf("--owner: %s of plugin %q taken as of %q, for this run", count(n, "record"), old, m.o.Owners[old]))
	}
	if !m.src.Own {
		dirs := map[string]string{}
		eachPane(sessions, func(s *archive.Session, p *archive.Pane) {
			d := shellDir(s, p)
			if p.AgentSession != nil {
				d = launchDir(s, p)
			}
			if d != "" {
				dirs[d] = d
			}
		})
		if len(dirs) > 0 {
			notes = append(notes, "imported: its directories are "+strings.Join(sortedKeys(dirs), ", "))
		}
		notes = append(notes, "imported: agents start with the default profile")
	}
	return append(notes, m.f.Notes...)
}

func eachPane(sessions []*archive.Session, do func(*archive.Session, *archive.Pane)) {
	for _, s := range sessions {
		for w := range s.Windows {
			for i := range s.Windows[w].Panes {
				do(s, &s.Windows[w].Panes[i])
			}
		}
	}
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

func count(n int, noun string) string { return ui.Count(n, noun) }

// roughly says a duration as people do.
func roughly(d time.Duration) string { return ui.Roughly(d) }
