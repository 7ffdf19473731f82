package restore

import (
	"fmt"
	"slices"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/metadata"
)

// UnknownIDError: no pane of the archive has, or had, that conversation; or, where
// Panes are named, several had it, and nothing says which of them is meant.
type UnknownIDError struct {
	ID    string
	Panes []string
}

func (e *UnknownIDError) Error() string {
	if len(e.Panes) > 0 {
		return fmt.Sprintf("several panes of the archive had the conversation %q: %s", e.ID, quoted(e.Panes))
	}
	return fmt.Sprintf("no pane of the archive has, or had, the conversation %q", e.ID)
}

// Earlier returns the archive with each pane turned to the conversation that is named of it, which it has
// or had before, and the names of these panes, for Options.Panes. What such a pane had goes among its earlier ones,
// so nothing is forgotten by going back. The pane that has a conversation now comes before those that
// had it; among those Options.Panes, where it names any, decides. a stays as it is.
//
// An *UnknownIDError where that leaves no pane, or several.
func Earlier(a *archive.Archive, ids []string, o Options) (*archive.Archive, []string, error) {
	out := clone(a)
	var names []string
	for _, id := range ids {
		var has, had []place
		for i := range out.Sessions {
			s := &out.Sessions[i]
			if len(o.Only) > 0 && !slices.Contains(o.Only, s.Name) {
				continue
			}
			eachNumbered(s, func(number, index int, p *archive.Pane) {
				if p.AgentSession == nil || len(o.Panes) > 0 && !o.named(s, number, index, p) {
					return
				}
				at := place{p, paneName(s, number, index)}
				switch {
				case p.AgentSession.NativeID == id:
					has = append(has, at)
				case p.Agent != nil && slices.Contains(p.Agent.Previous, id):
					had = append(had, at)
				}
			})
		}
		if has == nil {
			has = had
		}
		if len(has) != 1 {
			e := &UnknownIDError{ID: id}
			for _, at := range has {
				e.Panes = append(e.Panes, at.name)
			}
			return nil, nil, e
		}
		turn(has[0].pane, id)
		names = append(names, has[0].name)
	}
	return out, names, nil
}

type place struct {
	pane *archive.Pane
	name string
}

// turn makes id the pane's conversation. What was known of the one that it had says nothing of this one.
func turn(p *archive.Pane, id string) {
	if p.AgentSession.NativeID != id {
		facts := metadata.LaunchFacts{Previous: slices.DeleteFunc(slices.Clone(p.Agent.Previous), func(one string) bool { return one == id })}
		facts.Remember(p.AgentSession.NativeID)
		rec := *p.AgentSession
		rec.NativeID = id
		p.AgentSession = &rec
		p.Agent.Previous, p.Agent.Durability, p.Agent.Unconfirmed = facts.Previous, "", ""
	}
	if p.Agent != nil && (p.Agent.State == archive.StateEnded || p.Agent.State == archive.StateReplaced) {
		p.Agent.State = archive.StateRunning // it is asked for by name
	}
}

// clone copies an archive as far down as turn writes.
func clone(a *archive.Archive) *archive.Archive {
	out := *a
	out.Sessions = slices.Clone(a.Sessions)
	for i := range out.Sessions {
		s := &out.Sessions[i]
		s.Windows = slices.Clone(s.Windows)
		for w := range s.Windows {
			panes := slices.Clone(s.Windows[w].Panes)
			for j := range panes {
				if panes[j].Agent != nil {
					agent := *panes[j].Agent
					panes[j].Agent = &agent
				}
			}
			s.Windows[w].Panes = panes
		}
	}
	return &out
}
