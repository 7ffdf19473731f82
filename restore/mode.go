package restore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/config"
	"github.com/phux-agent/phux-agent/host"
)

// modes leaves to a person what the mode says: such a pane would start, and is a placeholder that
// says what it would run. docs/decisions/restore-modes.md has the reasons.
func (m *maker) modes(sessions []*archive.Session, p *Plan) {
	for i, s := range sessions {
		sp := &p.Sessions[i]
		if sp.Action != Create || m.refuses(sp) {
			continue
		}
		number, at := numbering(s), 0
		for w := range s.Windows {
			for j := range s.Windows[w].Panes {
				pp := &sp.Panes[at]
				at++
				if !pp.Verdict.Starts() && pp.Verdict != ProgramPane {
					continue
				}
				p := &s.Windows[w].Panes[j]
				mode := m.mode(s, number[w], j, p, pp)
				switch {
				case mode == config.Auto:
				case pp.Verdict == ProgramPane:
					// It keeps nothing that would be lost: what was not asked for is a shell.
					pp.Program = nil
					m.shell(s, p, pp, fmt.Sprintf("it ran a program, and is a shell now: in mode %s none is run unasked", mode))
				default:
					pp.wait(mode)
				}
			}
		}
	}
}

// mode is what is done with an agent that could be resumed.
func (m *maker) mode(s *archive.Session, number, index int, p *archive.Pane, pp *PanePlan) config.Mode {
	named := m.o.named(s, number, index, p)
	own := m.f.Agents[pp.key].Mode
	if pp.Verdict == ProgramPane {
		own = m.f.Mode
	}
	switch mode := own; {
	case len(m.o.Panes) > 0 && !named:
		return m.o.Mode.Careful(mode).Careful(config.Ask)
	case m.o.Mode != "":
		return m.o.Mode
	case named, slices.Contains(m.o.Only, s.Name):
		return config.Auto
	case m.o.Unattended && m.old():
		return mode.Careful(m.f.BootMode).Careful(config.Ask)
	case m.o.Unattended:
		return mode.Careful(m.f.BootMode)
	default:
		return mode.Careful(config.Auto)
	}
}

// maxShown bounds what a waiting pane shows of its command, in bytes.
const maxShown = 1000

// wait makes an agent that would start a placeholder that waits to be asked. It carries what the
// archive says of the conversation, for that is judged anew when it is asked.
func (p *PanePlan) wait(mode config.Mode) {
	words := make([]string, len(p.Start.Argv))
	for i, w := range p.Start.Argv {
		words[i] = quoteArg(w)
	}
	would, dir := p.Verdict, p.Start.Dir
	t := trouble{
		AskPane, fmt.Sprintf("it waits to be asked (mode %s), and would run: %s", mode, clip(strings.Join(words, " "), maxShown)),
		"press Enter in the pane",
	}
	ask := host.AskEnter
	if mode == config.Manual {
		ask, t.verdict, t.hint = host.AskWord, ManualPane, "type resume and press Enter in the pane"
	}
	p.facts = p.archived
	p.placeholder(t, dir)
	p.Start.Ask, p.Would = ask, would
}

// age is how old the archive is; false where it does not say.
func (m *maker) age() (time.Duration, bool) {
	at := m.src.Archive.SavedAt
	return m.f.Now.Sub(at), !at.IsZero()
}

// old says that the archive is older than the configuration lets pass without a word.
func (m *maker) old() bool {
	age, known := m.age()
	return known && m.f.Old > 0 && age > m.f.Old
}

// notices are what is to be known of the archive before anything starts.
func (m *maker) notices() []Notice {
	h, here := m.src.Archive.Host, m.f.Host
	out := slices.Clone(m.src.Notices)
	say := func(kind, format string, args ...any) {
		out = append(out, Notice{kind, fmt.Sprintf(format, args...)})
	}
	switch {
	case h.Machine != "" && h.Machine != m.f.Machine:
		say(OtherMachine, "it was saved on another machine (%s; this one is %s)", h.Machine, orUnknown(m.f.Machine))
	case h.Instance != "" && here.Running && h.Instance == here.Instance.Digest():
		say(SameServer, "the server that it was saved from still runs: what is there is left as it is")
	case h.Boot != "" && m.f.Boot != "" && h.Boot != m.f.Boot:
		say(OtherBoot, "the machine was started again since")
	case h.Boot != "" && h.Boot == m.f.Boot && h.Instance != "":
		say(OtherLife, "the server was started again since, and the machine was not")
	}
	if m.old() {
		age, _ := m.age()
		words := fmt.Sprintf("it is %s old, and more than %s is old", roughly(age), roughly(m.f.Old))
		if m.o.Unattended && m.o.Mode == "" {
			words += ": no agent is resumed unless it is asked for"
		}
		say(Old, "%s", words)
	}
	return out
}
