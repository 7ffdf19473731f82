package capture

import (
	"context"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/host"
)

// InstanceDigest names one life of a host server in an archive. It tells lives apart and is no
// authority.
func InstanceDigest(i host.Instance) string {
	return i.Digest()
}

// archive builds the archive of the look. Nothing in it is authority, and nothing runs from it:
// ids, names, titles, directories, a geometry.
func (l *view) archive(ctx context.Context) (*archive.Archive, error) {
	l.programs()
	info, err := l.about(ctx)
	if err != nil {
		return nil, fmt.Errorf("archive the workspace: %w", err)
	}
	in := l.workspace.Instance
	a := &archive.Archive{
		SchemaVersion: archive.SchemaVersion,
		SavedAt:       l.now,
		Host: archive.Host{
			Kind: info.Kind, Version: info.Version, Server: info.Server,
			Instance: InstanceDigest(in), Boot: in.Boot, Machine: l.Machine,
		},
		Sessions: []archive.Session{},
	}
	active := l.activeGroup()
	for _, s := range l.sessions {
		if len(s.windows) == 0 {
			continue // all of its windows are saved with another session
		}
		if l.husk(s) {
			continue
		}
		out := archive.Session{
			Name:   s.host.Name,
			Active: s.host.Active || active != "" && s.host.Group == active,
			Cwd:    text(s.host.Dir),
		}
		shown := false
		for _, w := range s.windows {
			out.Windows = append(out.Windows, l.window(w))
			shown = shown || w.host.Active
		}
		if !shown {
			out.Windows[0].Active = true
		}
		a.Sessions = append(a.Sessions, out)
	}
	return a, nil
}

// husk reports a session that a restore set aside and that nobody has used since: it holds nothing,
// and saved, it would come back beside one more at each boot.
func (l *view) husk(s session) bool {
	if !s.host.Aside || len(s.windows) != 1 || len(s.windows[0].panes) != 1 {
		return false
	}
	p := s.windows[0].panes[0]
	return !p.ours() && p.host.Origin == host.Foreign && l.proofs.idle(p.host.PID, p.host.TTY)
}

// activeGroup is the group of the session that the user looked at last, so that the member that
// is saved for it is the active one.
func (l *view) activeGroup() string {
	for _, s := range l.sessions {
		if s.host.Active && len(s.windows) == 0 {
			return s.host.Group
		}
	}
	return ""
}

func (l *view) window(w window) archive.Window {
	out := archive.Window{
		Name:          strings.ToValidUTF8(w.host.Name, "\uFFFD"),
		Index:         w.host.Index,
		Active:        w.host.Active,
		Zoomed:        w.host.Zoomed,
		AutomaticName: w.host.AutomaticName,
		Panes:         []archive.Pane{},
	}
	// A geometry that does not fit its panes is left out: a restore then divides evenly.
	if w.host.Layout.Check(len(w.panes)) == nil {
		out.Cells = w.host.Layout.String()
		out.Layout = layout(w.host.Layout.Tree())
	}
	for _, p := range w.panes {
		pane := p.archived()
		if pane.Agent != nil && l.justEnded(p) {
			pane.Agent.State = archive.StateExited
		}
		out.Panes = append(out.Panes, pane)
	}
	return out
}

func layout(t host.Tree) *archive.Layout {
	if t.Dir == host.Leaf || t.Left == nil || t.Right == nil {
		return &archive.Layout{Kind: "pane", Pane: t.Pane}
	}
	dir := "horizontal"
	if t.Dir == host.Vertical {
		dir = "vertical"
	}
	return &archive.Layout{Kind: "split", Dir: dir, Ratio: t.Ratio, Left: layout(*t.Left), Right: layout(*t.Right)}
}

// justEnded reports an agent of which nobody can say yet that a person ended it: in a shutdown agents
// that are told to end exit with 0, one after the other. The shell that
// stands in its pane began when it ended; of one that had ended before a restore, the facts say so.
//
// An agent that was started in the calling pane leaves a shell that is older than it, and one that is
// held leaves nothing: what counts there is when a look saw that it was gone.
func (l *view) justEnded(p *pane) bool {
	switch {
	case !l.Auto:
		return false
	case p.leftNoTime():
		return p.Facts.GoneAt.IsZero() || l.now.Sub(p.Facts.GoneAt).Abs() < archive.ShutdownTime
	case p.host.Origin != host.Ended || p.Facts.Ended || p.Record == nil:
		return false
	}
	shell, ok := l.proofs.process(p.host.PID)
	if !ok {
		return true // its terminal is about to go, too
	}
	began := l.proofs.began(shell)
	return !began.IsZero() && l.now.Sub(began) < archive.ShutdownTime
}

// leftNoTime reports an ended agent whose pane does not show when it ended.
func (p *pane) leftNoTime() bool {
	return p.State == Ended && p.Record != nil && !p.Facts.Ended && (p.host.Origin == host.BoundGone || p.host.Origin == host.Ours)
}

func (p *pane) archived() archive.Pane {
	out := archive.Pane{
		Active:       p.host.Active,
		Title:        strings.ToValidUTF8(p.host.Title, "\uFFFD"),
		Cwd:          text(p.host.Dir), // also where it was deleted: a path is data
		Program:      strings.ToValidUTF8(p.host.Command, "\uFFFD"),
		Process:      p.process,
		Cols:         clamp(p.host.Cols),
		Rows:         clamp(p.host.Rows),
		AgentSession: p.Record,
	}
	if !p.ours() && p.superseded == "" {
		return out
	}
	f := p.Facts
	out.Agent = &archive.Agent{
		Key:          f.PaneKey,
		Profile:      f.Profile,
		LaunchCwd:    f.LaunchDir,
		Store:        f.Store,
		Durability:   p.Durability,
		State:        p.State,
		ConfirmedAt:  f.ConfirmedAt,
		Unconfirmed:  f.Unconfirmed,
		Previous:     f.Previous,
		NotPreserved: f.NotPreserved,
	}
	if p.Record == nil {
		out.Agent.PluginID, out.Agent.IntegrationID = f.PluginID, f.IntegrationID
	}
	if p.Err != nil {
		out.Agent.RecordError = strings.ToValidUTF8(p.Err.Error(), "\uFFFD")
	}
	return out
}

// text is a directory, or nothing where JSON cannot hold its bytes: another directory than the
// one that was meant is worse than none.
func text(dir string) string {
	if !utf8.ValidString(dir) {
		return ""
	}
	return dir
}

func clamp(n int) int { return max(0, min(n, math.MaxUint16)) }
