package capture

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
	"github.com/phux-agent/phux-agent/plugin"
)

// view is one look: the snapshot, and what is known of each pane.
type view struct {
	Request
	now       time.Time
	workspace *host.Workspace
	sessions  []session
	panes     []*pane // all of them, in order
	mu        sync.Mutex
	owners    map[ownerKey]resolved
	info      *host.Info
}

type session struct {
	host    *host.Session
	windows []window
}

type window struct {
	host  *host.Window
	panes []*pane
}

// pane is one pane on the way to its verdict.
type pane struct {
	Pane
	host   *host.Pane
	stored metadata.LaunchFacts // as the pane holds them

	spoke owner.Process // whose live state the pane holds

	own    plugin.Owner
	ownErr error

	root       owner.Process // its agent, while it runs
	alive      bool
	answer     owner.Answer
	move       string // the proven native id, where it is not the record's
	refused    bool   // it proved an id that it cannot have
	begun      bool   // its conversation was not there, but something under its id
	superseded string // where its conversation went on
	hand       bool   // its agent was started by hand, and is to be taken in
	heard      bool   // its record was confirmed by a hook of the very process that runs, and by nothing since
	stale      bool   // the facts on the pane say something that is over
	keyed      bool   // the pane key was missing and is new
	process    *archive.Process
	faded      bool // it holds a live state that is over
}

func newView(r Request, w *host.Workspace) *view {
	l := &view{Request: r, now: r.Now().UTC().Truncate(time.Second), workspace: w, owners: map[ownerKey]resolved{}, info: r.Info}
	keeper := keepers(w)
	seen := map[string]bool{}
	for i := range w.Sessions {
		s := session{host: &w.Sessions[i]}
		for j := range s.host.Windows {
			hw := &s.host.Windows[j]
			if hw.ID != "" && (keeper[hw.ID] != i || seen[hw.ID]) {
				continue
			}
			seen[hw.ID] = true
			v := window{host: hw}
			for k := range hw.Panes {
				hp := &hw.Panes[k]
				p := &pane{host: hp, Pane: Pane{
					Terminal: hp.Terminal, Session: s.host.Name, Window: hw.Index, Index: hp.Index, Cwd: hp.Dir,
					Title: hp.Title, Command: hp.Command,
				}}
				v.panes = append(v.panes, p)
				l.panes = append(l.panes, p)
			}
			s.windows = append(s.windows, v)
		}
		l.sessions = append(l.sessions, s)
	}
	return l
}

// keepers says which session saves a window that several show: of a group of sessions the first
// by name; else the one that was created first, which is most likely where the window was made;
// else the first by name. A session that is left without windows is not saved.
func keepers(w *host.Workspace) map[string]int {
	born := map[string]time.Time{} // of a group: its oldest session
	for _, s := range w.Sessions {
		if t, ok := born[s.Group]; s.Group != "" && (!ok || s.Created.Before(t)) {
			born[s.Group] = s.Created
		}
	}
	order := make([]int, len(w.Sessions))
	for i := range order {
		order[i] = i
	}
	since := func(s host.Session) time.Time {
		if s.Group != "" {
			return born[s.Group]
		}
		return s.Created
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := w.Sessions[a], w.Sessions[b]
		return cmp.Or(since(x).Compare(since(y)), cmp.Compare(x.Name, y.Name))
	})
	keeper := map[string]int{}
	for _, i := range order {
		for _, win := range w.Sessions[i].Windows {
			if _, ok := keeper[win.ID]; !ok {
				keeper[win.ID] = i
			}
		}
	}
	return keeper
}

func (l *view) flat() []Pane {
	out := make([]Pane, len(l.panes))
	for i, p := range l.panes {
		out[i] = p.Pane
	}
	return out
}

type ownerKey struct{ integration, plugin string }

type resolved struct {
	own plugin.Owner
	err error
}

// resolve asks the registry once for each integration.
func (l *view) resolve(integration, pluginID string) (plugin.Owner, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := ownerKey{integration, pluginID}
	r, ok := l.owners[key]
	if !ok {
		if pluginID != "" {
			r.own, r.err = l.Registry.ResolveOwned(integration, pluginID)
		} else {
			r.own, r.err = l.Registry.Resolve(integration)
		}
		l.owners[key] = r
	}
	return r.own, r.err
}

// identity is what the pane holds once everything is decided.
func (p *pane) identity() (metadata.Identity, bool) {
	switch {
	case p.move != "":
		return metadata.Identity{IntegrationID: p.own.Template.ID, NativeID: p.move}, true
	case p.Record != nil:
		return p.Record.Identity(), true
	}
	return metadata.Identity{}, false
}
