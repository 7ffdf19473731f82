package restore

import (
	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
)

// How strongly an archived pane holds its identity. A pane whose agent had ended, or was
// replaced, does not start it, and stands in nobody's way.
type rank int

const (
	rankNone    rank = iota // ended, replaced
	rankPending             // waits to be restored
	rankExited              // died; the pane kept the record
	rankRunning
)

func rankOf(s *archive.Session, p *archive.Pane) rank {
	state := ""
	if p.Agent != nil {
		state = p.Agent.State
	}
	switch {
	case state == "ended", state == "replaced":
		return rankNone
	case s.Pending != nil, state == "pending":
		return rankPending
	case state == "exited":
		return rankExited
	}
	return rankRunning
}

// holder is one pane that holds an identity.
type holder struct {
	session *archive.Session
	pane    *archive.Pane
	rank    rank
}

// holders says which pane of the archive an identity belongs to.
type holders struct {
	templates map[string]*integrations.Template
	of        map[metadata.Identity][]holder
	selected  map[*archive.Session]bool
}

func holdings(a *archive.Archive, sel []*archive.Session, f *Facts) *holders {
	h := &holders{
		templates: map[string]*integrations.Template{}, of: map[metadata.Identity][]holder{},
		selected: map[*archive.Session]bool{},
	}
	for k, v := range f.Agents {
		if v.Err == nil {
			h.templates[k.IntegrationID] = v.Owner.Template
		}
	}
	for _, s := range sel {
		h.selected[s] = true
	}
	all := make([]*archive.Session, len(a.Sessions))
	for i := range a.Sessions {
		all[i] = &a.Sessions[i]
	}
	eachPane(all, func(s *archive.Session, p *archive.Pane) {
		if p.AgentSession == nil {
			return
		}
		id := h.identity(*p.AgentSession)
		h.of[id] = append(h.of[id], holder{s, p, rankOf(s, p)})
	})
	return h
}

// identity is a record's, with the id as the CLI keeps it: two spellings are one conversation.
func (h *holders) identity(r metadata.AgentSession) metadata.Identity {
	id := r.Identity()
	id.NativeID = normal(h.templates[id.IntegrationID], id.NativeID)
	return id
}

// owns says what a pane may do with its identity: it is the pane's own; or it belongs to the
// pane of another session (by); or others claim it as strongly (rivals, the pane included).
func (h *holders) owns(p *archive.Pane) (own bool, by *archive.Session, rivals []holder) {
	all := h.of[h.identity(*p.AgentSession)]
	var top rank
	for _, x := range all {
		top = max(top, x.rank)
	}
	var best []holder
	for _, x := range all {
		if x.rank == top {
			best = append(best, x)
		}
	}
	// What the user named by --only decides between equals.
	var named []holder
	for _, x := range best {
		if h.selected[x.session] {
			named = append(named, x)
		}
	}
	if len(named) == 0 {
		named = best
	}
	switch {
	case top == rankNone:
		return true, nil, nil
	case top == rankPending || len(named) == 1:
		// Of records that all wait, the first one waits for all.
		return named[0].pane == p, named[0].session, nil
	}
	for _, x := range named {
		if x.pane == p {
			return false, nil, named
		}
	}
	return false, named[0].session, nil
}

// eachLive names integration and launch directory of each agent that the host runs now.
func (f *Facts) eachLive(do func(integration, dir string)) {
	seen := map[string]bool{}
	for i := range f.View.Sessions {
		for j := range f.View.Sessions[i].Windows {
			for _, p := range f.View.Sessions[i].Windows[j].Panes {
				if seen[p.Terminal.ID] || !runs(p) {
					continue
				}
				seen[p.Terminal.ID] = true
				rec, err := metadata.DecodeAgentSession(p.Meta[metadata.KeyAgentSession])
				if err != nil {
					continue
				}
				facts, err := metadata.DecodeLaunchFacts(p.Meta[metadata.KeyAgentLaunch])
				if err != nil || facts.Ended {
					continue
				}
				do(rec.IntegrationID, facts.LaunchDir)
			}
		}
	}
}

// runs reports whether the agent of a pane's record is in it now.
func runs(p host.Pane) bool {
	return !p.Dead && !p.Waiting && (p.Origin == host.Ours || p.Origin == host.Bound)
}

// holding finds the pane of a host's session that has an identity, one that runs it first.
func (h *holders) holding(s *host.Session, id metadata.Identity) (pane host.Pane, facts metadata.LaunchFacts, ok bool) {
	for w := range s.Windows {
		for _, p := range s.Windows[w].Panes {
			if p.Origin == host.Replaced || p.Origin == host.BoundGone {
				continue
			}
			rec, err := metadata.DecodeAgentSession(p.Meta[metadata.KeyAgentSession])
			if err != nil || h.identity(rec) != id {
				continue
			}
			f, err := metadata.DecodeLaunchFacts(p.Meta[metadata.KeyAgentLaunch])
			if err != nil {
				f = metadata.LaunchFacts{}
			}
			if !ok || runs(p) && !f.Ended {
				pane, facts, ok = p, f, true
			}
		}
	}
	return pane, facts, ok
}

// live reports whether a conversation is open somewhere.
func live(l owner.Live) bool { return l.Kind != owner.NotLive }
