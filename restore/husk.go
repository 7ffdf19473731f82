package restore

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/internal/proc"
)

// A husk is a session that a terminal emulator made at login under a saved name: one window, one
// pane, and in it a shell that nobody uses. Restored around, it would keep the saved session from
// coming back; so it is renamed aside, its clients are shown the restored one, and nothing of it is
// ended.

// HuskShell is Env.Husk for hosts whose terminals are processes of this machine, and so is the
// server: the shell is idle, or runs this very process and nothing else, and began in this life of
// the server.
func HuskShell(p host.Pane, server int) error {
	shell, err := proc.Stat(p.PID)
	if err != nil {
		return fmt.Errorf("%w: %w", proc.ErrNotIdle, err)
	}
	if s, err := proc.Stat(server); err != nil || shell.Start < s.Start {
		return fmt.Errorf("%w: it did not begin in this life of the server", proc.ErrNotIdle)
	}
	err = IdleShell(p)
	if err != nil && callsUs(shell) {
		return nil
	}
	return err
}

// callsUs reports a shell whose one child, through only children, is this process, in the
// foreground: somebody typed the restore into it.
func callsUs(shell proc.Info) bool {
	self, err := proc.Stat(os.Getpid())
	if err != nil || !proc.IsShell(shell.Comm) || shell.Session != shell.PID || shell.Front != self.Group {
		return false
	}
	t, err := proc.ReadTable()
	if err != nil {
		return false
	}
	for at := shell.PID; at != self.PID; {
		kids := t.Children(at)
		if len(kids) != 1 {
			return false
		}
		at = kids[0].PID
	}
	return true
}

// errShape is a session that is more than one pane of a shell.
var errShape = errors.New("it is more than one idle shell")

// husks looks at the sessions that stand where archived ones with records belong.
func (f *Facts) husks(e Env, o Options, sessions []*archive.Session) {
	f.Husks = map[string]error{}
	if _, ok := e.Host.(host.Asider); !ok || o.NoHusk || e.Husk == nil || e.Config != nil && !e.Config.Restore.Husk {
		return
	}
	m := &maker{f: f}
	for _, s := range sessions {
		there := m.there(orDefault(f.Names[s.Name], s.Name))
		if there == nil {
			there = m.there(holdableOwn(f, s))
		}
		if there == nil || !slices.ContainsFunc(panesOf(s), func(p *archive.Pane) bool { return p.AgentSession != nil && rankOf(s, p) != rankNone }) {
			continue
		}
		f.Husks[there.ID] = e.husk(there, f.View.Instance.PID)
	}
}

func panesOf(s *archive.Session) (out []*archive.Pane) {
	eachPane([]*archive.Session{s}, func(_ *archive.Session, p *archive.Pane) { out = append(out, p) })
	return out
}

func (e Env) husk(s *host.Session, server int) error {
	if len(s.Windows) != 1 || s.Group != "" || s.Windows[0].Linked || len(s.Windows[0].Panes) != 1 || !s.Windows[0].Panes[0].IsVacant() {
		return errShape
	}
	return e.Husk(s.Windows[0].Panes[0], server)
}

// aside says how a session that is there makes room, nil where it does not.
func (m *maker) aside(there *host.Session) *host.Aside {
	if why, looked := m.f.Husks[there.ID]; !looked || why != nil {
		return nil
	}
	p := there.Windows[0].Panes[0]
	return &host.Aside{
		Session: there.ID, Terminal: p.Terminal, Occupant: host.Occupant{PID: p.PID, Command: p.Command},
		Name: m.freeName(there.Name),
	}
}

// freeName is a name that no session has, and none is going to have.
func (m *maker) freeName(name string) string {
	taken := map[string]bool{}
	for _, s := range m.f.View.Sessions {
		taken[s.Name] = true
	}
	for i := range m.src.Archive.Sessions {
		s := &m.src.Archive.Sessions[i]
		taken[s.Name], taken[s.OwnName()] = true, true
	}
	for _, n := range m.f.Names {
		taken[n] = true
	}
	for i := 1; ; i++ {
		end := fmt.Sprintf("-%d", i)
		if n := clip(name, host.MaxName-len(end)) + end; !taken[n] && !m.asides[n] {
			if m.asides == nil {
				m.asides = map[string]bool{}
			}
			m.asides[n] = true
			return n
		}
	}
}

// session judges every pane of one session; decide says afterwards what becomes of it. One that is
// there as a husk makes room where an agent would start in its place.
func (m *maker) session(s *archive.Session) SessionPlan {
	there := m.there(orDefault(m.f.Names[s.Name], s.Name))
	if there == nil {
		if sp, ok := m.underOwn(s); ok {
			return sp
		}
		if sp, ok := m.fillOwn(s); ok {
			return sp
		}
		return m.judge(s, nil)
	}
	if sp, ok := m.insteadOf(there, s); ok {
		return sp
	}
	return m.judge(s, there)
}

// insteadOf is the plan of a session that comes back where a husk makes room for it.
func (m *maker) insteadOf(there *host.Session, s *archive.Session) (SessionPlan, bool) {
	if why, looked := m.f.Husks[there.ID]; !looked || why != nil {
		return SessionPlan{}, false
	}
	sp := m.judge(s, nil)
	if sp.Action != Create || m.refuses(&sp) || !slices.ContainsFunc(sp.Panes, func(p PanePlan) bool { return p.Verdict.Starts() }) {
		return SessionPlan{}, false
	}
	sp.aside = m.aside(there)
	sp.Reason = join(sp.Reason, fmt.Sprintf("the session %q that is there is one idle shell: it is renamed to %q, and who looks at it is shown this one", there.Name, sp.aside.Name))
	return sp, true
}

// holdableOwn is the own name of a session that waits under another, as the host can hold it.
func holdableOwn(f *Facts, s *archive.Session) string {
	return orDefault(f.Names[s.OwnName()], s.OwnName())
}

// underOwn is the plan of a session that waits under another name, because one of its own name was
// there when it was saved: where nobody has that name any more, or a husk has it, it comes back
// under its own.
func (m *maker) underOwn(s *archive.Session) (SessionPlan, bool) {
	own := s.OwnName()
	if own == s.Name || m.owned[own] || m.global() != nil {
		return SessionPlan{}, false
	}
	there := m.there(holdableOwn(m.f, s))
	for i := range m.src.Archive.Sessions {
		o := &m.src.Archive.Sessions[i]
		if o.Name == own && (there == nil || slices.ContainsFunc(panesOf(o), func(p *archive.Pane) bool { return p.AgentSession != nil })) {
			return SessionPlan{}, false // that one comes back under it
		}
	}
	sp, ok := SessionPlan{}, false
	if there == nil {
		sp = m.judge(s, nil)
		ok = sp.Action == Create
	} else {
		sp, ok = m.insteadOf(there, s)
	}
	if !ok {
		return SessionPlan{}, false
	}
	if m.owned == nil {
		m.owned = map[string]bool{}
	}
	m.owned[own] = true
	sp.HostName = holdableOwn(m.f, s)
	sp.Reason = join(fmt.Sprintf("comes back as %q, which is its own name", sp.HostName), sp.Reason)
	return sp, true
}
