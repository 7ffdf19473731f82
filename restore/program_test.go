package restore

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/config"
	"github.com/phux-agent/phux-agent/host"
)

// program makes the first pane one that ran a listed program.
func (w *world) program() {
	*w.first() = archive.Pane{
		Cwd: "/src/a", Program: "vim", Cols: 39, Rows: 24,
		Process: &archive.Process{Program: "vim", Args: []string{"a b", ""}},
	}
	w.f.Programs = map[string]Listed{
		"vim": {Program: config.Program{Name: "vim", Command: []string{"vim", "-n"}, SavedArgs: true}, Path: "/usr/bin/vim"},
	}
}

// Law 2 has one exception: own archives, listed programs, and nothing else.
func TestPrograms(t *testing.T) {
	for _, c := range []struct {
		name    string
		arrange func(w *world)
		argv    []string // nil: a shell
		reason  string
	}{
		{"listed", func(*world) {}, []string{"/usr/bin/vim", "-n", "a b", ""}, "lists it"},
		{"without its arguments", func(w *world) {
			w.f.Programs["vim"] = Listed{Program: config.Program{Name: "vim", Command: []string{"vim"}}, Path: "/usr/bin/vim"}
		}, []string{"/usr/bin/vim"}, "lists it"},
		{"imported", func(w *world) { w.src.Own, w.o.Import = false, true }, nil, "of an imported archive no program is run"},
		{"not listed", func(w *world) { w.first().Process.Program = "sh" }, nil, `lists no program "sh"`},
		{"nothing is listed", func(w *world) { w.f.Programs = nil }, nil, "lists no program"},
		{"not there", func(w *world) {
			l := w.f.Programs["vim"]
			l.Path, l.Err = "", errors.New("vim is not on PATH")
			w.f.Programs["vim"] = l
		}, nil, "not on PATH"},
		{"no directory", func(w *world) { w.first().Cwd = "/gone" }, nil, "directory is not there"},
		{"too long", func(w *world) { w.first().Process.Args = []string{strings.Repeat("x", host.MaxWords)} }, nil, "too long"},
		{"mode ask", func(w *world) { w.f.Mode = config.Ask }, nil, "in mode ask none is run unasked"},
		{"mode ask, named", func(w *world) { w.f.Mode, w.o.Only = config.Ask, []string{"work"} }, []string{"/usr/bin/vim", "-n", "a b", ""}, ""},
		{"a pane of an agent whose record is lost", func(w *world) { w.first().Agent = &archive.Agent{Key: testKey} }, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.program()
			c.arrange(w)
			p := w.plan()
			pp := p.Sessions[0].Panes[0]
			if !slices.Equal(pp.Start.Argv, c.argv) || (pp.Verdict == ProgramPane) != (c.argv != nil) || !strings.Contains(pp.Reason, c.reason) {
				t.Errorf("%s %q: %s", pp.Verdict, pp.Start.Argv, pp.Reason)
			}
			if c.argv == nil && (pp.Verdict != ShellPane || pp.Start.Mode != host.Shell || pp.Program != nil) {
				t.Errorf("no shell: %s, %+v", pp.Verdict, pp.Start)
			}
			checkPlan(t, w, p)
		})
	}
}

func TestAProgramRunsBesideAgents(t *testing.T) {
	s := newStage(t)
	s.program()
	s.add("more", s.pane("claude-code", id2))
	r := s.apply()
	p := r.Sessions[0].Panes[0]
	if p.Verdict != ProgramPane || p.Result == nil || *p.Result != Running || !slices.Equal(p.Program, []string{"/usr/bin/vim", "-n", "a b", ""}) {
		t.Errorf("%+v", p)
	}
	if r.Outcome() != Done {
		t.Errorf("outcome %d", r.Outcome())
	}
}
