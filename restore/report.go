package restore

import (
	"slices"
	"strings"
	"time"

	"github.com/phux-agent/phux-agent/metadata"
)

// Report is what Apply observed; it is the plan with results. Its JSON form is the document of
// restore --json: only ever added to.
type Report struct {
	SchemaVersion int             `json:"schema_version"`
	Source        string          `json:"source"`
	SavedAt       time.Time       `json:"saved_at,omitzero"`
	Notes         []string        `json:"notes,omitempty"`
	Notices       []Notice        `json:"notices"`
	Sessions      []SessionReport `json:"sessions"`
}

// SessionReport is one session.
type SessionReport struct {
	Name   string       `json:"name"`
	Action string       `json:"action"`
	Reason string       `json:"reason"`
	Aside  string       `json:"aside,omitzero"` // the name that the session has now which stood in its place
	Error  string       `json:"error,omitzero"` // it was to be created, and could not be
	Panes  []PaneReport `json:"panes"`
	// Fillable is how many agents --fill would put into idle shells of a session that is left alone.
	Fillable int `json:"fillable,omitzero"`
}

// PaneReport is one pane.
type PaneReport struct {
	Window       int                    `json:"window"`
	Index        int                    `json:"index"`
	Verdict      Verdict                `json:"verdict"`
	Reason       string                 `json:"reason"`
	Hint         string                 `json:"hint"`
	Record       *metadata.AgentSession `json:"record"`
	Result       *string                `json:"result"` // Running, Exited, Waits, IsShell, or null
	Dir          string                 `json:"cwd,omitzero"`
	Title        string                 `json:"title,omitzero"`
	Command      string                 `json:"command,omitzero"`  // as archived: shown, never run
	Program      []string               `json:"program,omitempty"` // of program: what it runs
	Would        Verdict                `json:"would,omitzero"`    // of ask and manual: what it would be once it is asked
	Previous     []string               `json:"previous,omitempty"`
	NotPreserved []string               `json:"not_preserved,omitempty"`
	Scrollback   int                    `json:"scrollback_lines,omitzero"` // that the pane shows above its shell or program
	Unconfirmed  string                 `json:"unconfirmed,omitzero"`      // since when its record is not proven, and why
}

// What was observed of a pane.
const (
	Running = "running"
	Exited  = "exited"
	Waits   = "placeholder"
	IsShell = "shell"
)

func (p *PaneReport) result(s string) { p.Result = &s }

func (p *PaneReport) from(pp *PanePlan) {
	p.Window, p.Index, p.Verdict, p.Reason, p.Hint = pp.Window, pp.Index, pp.Verdict, pp.Reason, pp.Hint
	p.Record, p.Dir, p.Title, p.Command = pp.Record, pp.Dir, pp.Title, pp.Command
	p.Would, p.Program = pp.Would, slices.Clone(pp.Program)
	p.Unconfirmed, p.Scrollback = pp.Unconfirmed, 0
	if pp.showsText() {
		p.Scrollback = strings.Count(pp.text.Text, "\n")
	}
	p.Previous, p.NotPreserved = slices.Clone(pp.Previous), slices.Clone(pp.NotPreserved)
}

func (s *SessionReport) fail(err error) {
	s.Error = bound(err.Error())
	s.Reason = "it could not be created, and nothing of it is left: " + s.Error
}

// report is the plan before anything was done.
func (p *Plan) report() *Report {
	r := &Report{
		SchemaVersion: 1, Source: p.Source.Path, SavedAt: p.Source.Archive.SavedAt, Notes: slices.Clone(p.Notes),
		Notices:  append([]Notice{}, p.Notices...),
		Sessions: make([]SessionReport, len(p.Sessions)),
	}
	for i := range p.Sessions {
		s := &p.Sessions[i]
		r.Sessions[i] = SessionReport{Name: s.Name, Action: s.Action, Reason: s.Reason, Fillable: s.Fillable, Panes: make([]PaneReport, len(s.Panes))}
		if s.aside != nil {
			r.Sessions[i].Aside = s.aside.Name
		}
		for j := range s.Panes {
			r.Sessions[i].Panes[j].from(&s.Panes[j])
		}
	}
	return r
}

// Dry is the report of a plan that was not applied: every result is null, and its Outcome is
// what the restore's would be, as far as can be known before an agent has started.
func (p *Plan) Dry() *Report { return p.report() }

// Outcome is what exit code a report deserves.
type Outcome int

const (
	Done    Outcome = iota // 0: every pane as asked
	Partial                // 3: a placeholder, a refusal beside successes, an agent that exited
	Refused                // 4: refused by trust, ownership or policy, and nothing created
	Failed                 // 1: sessions could not be created, and none was
)

// Outcome judges the whole. Sessions that are there already are as they should be.
func (r *Report) Outcome() Outcome {
	var created, refused, failed, other bool
	for _, s := range r.Sessions {
		switch {
		case s.Action == Fill:
			failed = failed || s.Error != ""
			for _, p := range s.Panes {
				switch {
				case p.Verdict.Starts():
					created = true
					other = other || p.Result != nil && *p.Result == Exited
				case p.Verdict == AlreadyLive: // it runs, as in any session that is left alone
				case p.Record != nil && (p.Verdict == PendingPane || p.Verdict.Circumstance() || p.Verdict.Authority()):
					other = true
				}
			}
			continue
		case s.Error != "":
			failed = true
			continue
		case s.Action == Refuse:
			refused = true
			continue
		case s.Action != Create:
			continue
		}
		created = true
		for _, p := range s.Panes {
			if p.Verdict.Circumstance() || p.Result != nil && *p.Result == Exited {
				other = true
			}
		}
	}
	switch {
	case !created && failed:
		return Failed
	case !created && refused:
		return Refused
	case refused || failed || other:
		return Partial
	}
	return Done
}
