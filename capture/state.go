package capture

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
)

// read decodes what the pane holds and says what state it is in.
func (p *pane) read() {
	meta := p.host.Meta
	if raw, ok := meta[metadata.KeyAgentSession]; ok {
		if rec, err := metadata.DecodeAgentSession(raw); err != nil {
			p.Err = err
		} else {
			p.Record = &rec
		}
	}
	if raw, ok := meta[metadata.KeyAgentLaunch]; ok {
		if facts, err := metadata.DecodeLaunchFacts(raw); err == nil {
			p.Facts, p.stored = facts, facts
			p.spoke = owner.Process{PID: facts.OwnerPID, Start: facts.OwnerStart}
		}
	}
	if raw, ok := meta[metadata.KeyAgent]; ok {
		if a, err := metadata.DecodeAgent(raw); err == nil {
			p.Agent = &a
		}
	}
	p.State = p.state()
	if p.State == Running && p.Facts.Pending {
		// A placeholder became its agent: what its birth said is over.
		p.Facts.Pending, p.stale = false, true
	}
	if p.State == Running && !p.Facts.GoneAt.IsZero() {
		p.Facts.GoneAt, p.stale = time.Time{}, true // it was started again
	}
	if p.Record != nil && p.Facts.PaneKey == "" {
		p.Facts = metadata.LaunchFacts{
			PaneKey: metadata.NewPaneKey(), PluginID: p.Record.PluginID, IntegrationID: p.Record.IntegrationID,
		}
		p.keyed = true
	}
}

// ours reports a pane that has, or had, something to do with an agent.
func (p *pane) ours() bool { return p.Record != nil || p.Err != nil || p.Facts.PaneKey != "" }

func (p *pane) state() string {
	if !p.ours() {
		return plainState(p.host.Command)
	}
	switch p.host.Origin {
	case host.Ours:
		switch {
		case p.Facts.Ended:
			return Ended
		case p.host.Dead && clean(p.host.Exit):
			return Ended
		case p.host.Dead:
			return Exited
		case p.host.Waiting:
			return Pending
		}
		return Running
	case host.Bound:
		return Running
	case host.Ended, host.BoundGone:
		return Ended
	case host.Replaced:
		return Replaced
	}
	return plainState(p.host.Command)
}

func clean(e *host.Exit) bool { return e != nil && e.Status == 0 && e.Signal == "" }

// shells are told from other programs for people's eyes; nothing is decided by it.
var shells = [...]string{
	"sh", "bash", "dash", "zsh", "fish", "ksh", "mksh", "tcsh", "csh", "nu", "elvish", "xonsh", "pwsh", "ash",
}

func plainState(command string) string {
	name := strings.TrimPrefix(filepath.Base(command), "-")
	for _, s := range shells {
		if name == s {
			return Shell
		}
	}
	if command == "" {
		return Shell
	}
	return Program
}
