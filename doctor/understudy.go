package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

// Understudy is a host on which no agent plays itself: each pane that was to run a program runs
// Words instead, behind the same gate, with the same record, directory, environment and guard.
type Understudy struct {
	host.Host
	Words []string // absolute, and of two words or more
}

// Create makes the session of stand-ins.
func (u Understudy) Create(ctx context.Context, c host.CreateSession) (*host.Created, error) {
	c.Windows = slices.Clone(c.Windows)
	for i := range c.Windows {
		c.Windows[i].Panes = slices.Clone(c.Windows[i].Panes)
		for j := range c.Windows[i].Panes {
			if p := &c.Windows[i].Panes[j]; p.Start.Mode == host.Program {
				p.Start.Argv = slices.Clone(u.Words)
			}
		}
	}
	return u.Host.Create(ctx, c)
}

// Spawn is not on the programme: a restore makes sessions whole.
func (u Understudy) Spawn(context.Context, host.Spawn) (*host.Started, error) {
	return nil, errors.New("an understudy only creates sessions")
}

// SessionName is the host's.
func (u Understudy) SessionName(name string) string {
	if n, ok := u.Host.(host.Namer); ok {
		return n.SessionName(name)
	}
	return name
}

// Differences are what came back otherwise than it was saved, in words: sessions, windows, their
// layouts, panes, their directories, records. What waits in a placeholder is there all the same:
// that is the plan's to say. What could not come back, and is nobody's fault, is in without: a
// directory that is not there any more, for there reports whether one is; the directory of a dead
// pane, which no host tells; a conversation whose place another program had taken.
func Differences(saved, back *archive.Archive, there func(dir string) bool) (out, without []string) {
	replaced := map[metadata.Identity]bool{}
	for _, s := range saved.Sessions {
		for _, w := range s.Windows {
			for _, p := range w.Panes {
				if p.AgentSession != nil && p.Agent != nil && p.Agent.State == archive.StateReplaced {
					replaced[p.AgentSession.Identity()] = true
				}
			}
		}
	}
	for _, c := range archive.Diff(saved, back) {
		switch {
		case c.Kind == archive.RecordState:
		case c.Kind == archive.PaneDirectory && c.From == "":
			without = append(without, fmt.Sprintf("%s: nothing runs in it that would say in which directory: it comes back in %s", c.Place(), cmp.Or(c.To, "that of the session")))
		case c.Kind == archive.PaneDirectory && !there(c.From):
			without = append(without, fmt.Sprintf("%s: its directory %s is not there any more: it comes back in %s", c.Place(), c.From, c.To))
		case c.Kind == archive.RecordRemoved && c.Record != nil && replaced[c.Record.Identity()]:
			without = append(without, fmt.Sprintf("%s: another program had taken the place of its agent: it comes back as a shell, without %s %s", c.Place(), c.Record.IntegrationID, c.Record.NativeID))
		default:
			out = append(out, fmt.Sprintf("%s: %s", c.Place(), c.Words()))
		}
	}
	return out, without
}
