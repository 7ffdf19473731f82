// Package picker lets a person choose what to bring back, where to go, or what to start: data in,
// one choice out. It asks nobody but its Source, and does nothing itself.
//
// Whatever came from outside is escaped where it is drawn, and cut by the cells that it takes.
package picker

import (
	"context"
	"fmt"
	"strings"
)

// Data is what there is to choose from: what runs now, and what a generation would bring back.
type Data struct {
	SchemaVersion int       `json:"schema_version"`
	Server        string    `json:"server"`
	Generation    uint64    `json:"generation"` // 0 where nothing was saved
	Saved         string    `json:"saved"`      // its age in words
	Asked         bool      `json:"-"`          // that generation was asked for; else it is the newest good one
	Notes         []string  `json:"notes"`
	Sessions      []Session `json:"sessions"`
}

// Session is one that is there, or one that can be brought back.
type Session struct {
	Name    string   `json:"name"`
	There   bool     `json:"there"`
	Action  string   `json:"action"` // what a restore does: "create", "skip-existing", "refuse"; "" where it is not in the generation
	As      string   `json:"as"`     // the name that it would come back under; "" where it is there
	Reason  string   `json:"reason"`
	Windows []Window `json:"windows"`
}

type Window struct {
	Index int    `json:"index"`
	Name  string `json:"name"`
	Panes []Pane `json:"panes"`
}

// Pane is one that is there, or one that can be brought back.
type Pane struct {
	Index    int      `json:"index"`
	Agent    string   `json:"agent"` // its integration; "" for a shell or another program
	ID       string   `json:"id"`    // its conversation
	State    string   `json:"state"` // of one that is there: "running", "running, waiting", "shell", …
	Verdict  string   `json:"verdict"`
	Reason   string   `json:"reason"`
	Hint     string   `json:"hint"`
	Age      string   `json:"age"` // when its conversation was last seen to be this one, in words
	Dir      string   `json:"cwd"`
	Title    string   `json:"title"`
	Command  string   `json:"command"`  // of a pane without an agent
	Would    []string `json:"would"`    // the argument vector that would run
	Previous []string `json:"previous"` // earlier conversations
	Profile  string   `json:"profile"`
	Terminal string   `json:"terminal"` // "" where it is not there
	Active   bool     `json:"active"`   // the one of its session that is looked at
	Does     Act      `json:"does"`     // what choosing it does
}

// Act is what choosing something does.
type Act string

const (
	Nothing        Act = ""
	Jump           Act = "jump"            // go to a pane that is there
	RestoreSession Act = "restore-session" // bring back its session
	RestorePane    Act = "restore-pane"    // bring back its session, and in it this agent; the others wait to be asked
	Resume         Act = "resume"          // its conversation in a new window of its session, which is there
	RestoreAll     Act = "restore-all"
	Launch         Act = "launch"
)

// Choice is what a person chose; Act is Nothing where that was to leave.
type Choice struct {
	Act        Act
	Generation uint64
	Asked      bool // as Data.Asked
	Session    string
	As         string // of RestoreSession and RestorePane: the name that the session would come back under
	Window     int
	Pane       Pane   // of Jump, RestorePane and Resume
	Agent      string // of Launch: the integration
	Dir        string // of Launch: where it works; may be empty
}

// Generation is one line of the history.
type Generation struct {
	Number        uint64
	Saved         string // its age in words
	Name          string
	State, Reason string // "good", "held: …"
	Sessions      int
	Conversations int
}

// Agent is one that can be launched.
type Agent struct {
	ID, Name string
	Note     string // why it may not start; may be empty
}

// Source is where the data comes from. Every call may take long, and is made beside the drawing.
type Source interface {
	// Data reads a generation, 0 the newest good one, and looks at what runs.
	Data(ctx context.Context, generation uint64) (*Data, error)
	// Generations lists at most most generations below a number, newest first; below 0 the newest.
	Generations(ctx context.Context, below uint64, most int) ([]Generation, error)
	// Words is the end of what stands on a terminal.
	Words(ctx context.Context, terminal string) (string, error)
	// Pulse is cheap, and another text where what runs or what was saved is not any more what the
	// last Data was made of.
	Pulse(ctx context.Context) string
	// Agents are what can be launched.
	Agents(ctx context.Context) ([]Agent, error)
}

// row is one line of the list.
type row struct {
	session int // index
	window  int // index, -1 on a session's own line
	pane    int // index, -1 on a session's own line
}

func (r row) head() bool { return r.pane < 0 }

// key names what a line stands for, so that it is found again in what is read later.
func (d *Data) key(r row) string {
	s := &d.Sessions[r.session]
	p := d.pane(r)
	switch {
	case p == nil:
		return s.Name
	case p.Terminal != "":
		return s.Name + "\n" + p.Terminal
	}
	return fmt.Sprintf("%s\n%d.%d\n%s", s.Name, s.Windows[r.window].Index, p.Index, p.ID)
}

// rows lays the data out, one line a session and one a pane, of what a filter leaves: every word of
// it, whatever its case, somewhere in the pane's line or its session's. Folded sessions keep their
// own line.
func (d *Data) rows(filter string, folded map[string]bool) []row {
	words := strings.Fields(strings.ToLower(filter))
	var out []row
	for s := range d.Sessions {
		se := &d.Sessions[s]
		var panes []row
		for w := range se.Windows {
			for p := range se.Windows[w].Panes {
				if matches(words, se, &se.Windows[w], &se.Windows[w].Panes[p]) {
					panes = append(panes, row{s, w, p})
				}
			}
		}
		if len(panes) == 0 && (len(words) > 0 && !matches(words, se, &Window{}, &Pane{})) {
			continue
		}
		out = append(out, row{s, -1, -1})
		if !folded[se.Name] || len(words) > 0 {
			out = append(out, panes...)
		}
	}
	return out
}

func matches(words []string, s *Session, w *Window, p *Pane) bool {
	if len(words) == 0 {
		return true
	}
	text := strings.ToLower(strings.Join([]string{s.Name, w.Name, p.Agent, p.ID, p.State, p.Verdict, p.Dir, p.Title, p.Command, p.Terminal}, "\n"))
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

func (d *Data) pane(r row) *Pane {
	if r.head() {
		return nil
	}
	return &d.Sessions[r.session].Windows[r.window].Panes[r.pane]
}

// chosen is what choosing a line means.
func (d *Data) chosen(r row) Choice {
	s := &d.Sessions[r.session]
	c := Choice{Generation: d.Generation, Session: s.Name, As: s.As}
	if p := d.pane(r); p != nil {
		c.Act, c.Window, c.Pane = p.Does, s.Windows[r.window].Index, *p
		return c
	}
	switch {
	case s.There:
		// The pane that is looked at there, else the first that can be gone to.
		for _, w := range s.Windows {
			for _, p := range w.Panes {
				if p.Terminal != "" && (c.Act == Nothing || p.Active && !c.Pane.Active) {
					c.Act, c.Window, c.Pane = Jump, w.Index, p
				}
			}
		}
	case s.Action == "create":
		c.Act = RestoreSession
	}
	return c
}

// comeBack counts what a restore of everything would do.
func (d *Data) comeBack() (sessions, agents int) {
	for _, s := range d.Sessions {
		if s.Action != "create" {
			continue
		}
		sessions++
		for _, w := range s.Windows {
			for _, p := range w.Panes {
				if len(p.Would) > 0 {
					agents++
				}
			}
		}
	}
	return sessions, agents
}

// Add puts a pane into the window of that index, which is made where it is missing.
func (s *Session) Add(index int, name string, p Pane) {
	for i := range s.Windows {
		if s.Windows[i].Index == index {
			s.Windows[i].Panes = append(s.Windows[i].Panes, p)
			return
		}
	}
	s.Windows = append(s.Windows, Window{Index: index, Name: name, Panes: []Pane{p}})
}
