package restore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/config"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/plugin"
)

// Listed is a program that the configuration lists, as it resolves now.
type Listed struct {
	config.Program
	Path string // absolute; empty where Err is set
	Err  error
}

// programs resolves what the archive's panes ran, once each.
func (f *Facts) programs(e Env, sessions []*archive.Session) {
	f.Programs = map[string]Listed{}
	if e.Config == nil {
		return
	}
	f.Mode = e.Config.Restore.Mode
	eachPane(sessions, func(_ *archive.Session, p *archive.Pane) {
		if p.Process == nil {
			return
		}
		rule, ok := e.Config.Programs[p.Process.Program]
		if _, known := f.Programs[rule.Name]; !ok || known {
			return
		}
		l := Listed{Program: rule}
		l.Path, l.Err = plugin.LookProgram(rule.Command[0], f.Path)
		f.Programs[rule.Name] = l
	})
}

// program judges a pane without a record that ran a listed program. It is the one exception to
// that nothing of an archive becomes an argument: of an own archive those of the process at the
// save follow the program that the configuration names. Everything else comes back as a shell.
func (m *maker) program(s *archive.Session, p *archive.Pane, pp *PanePlan) {
	l, ok := m.f.Programs[p.Process.Program]
	argv := slices.Concat([]string{l.Path}, l.Command[min(1, len(l.Command)):])
	if l.SavedArgs {
		argv = append(argv, p.Process.Args...)
	}
	dir := shellDir(s, p)
	start := host.Start{
		Mode: host.Program, Argv: argv, Dir: dir, Set: environ(nil, m.f.Path), AfterExit: "shell-always",
	}
	why := ""
	switch d := m.f.Dirs[dir]; {
	case !m.src.Own:
		why = "of an imported archive no program is run"
	case !ok:
		why = fmt.Sprintf("the configuration lists no program %q", p.Process.Program)
	case l.Err != nil:
		why = l.Err.Error()
	case d.State != DirThere:
		why = "its directory is not there"
	case start.Check() != nil:
		why = "its arguments are too long"
	}
	if why != "" {
		m.shell(s, p, pp, "it ran a program, and is a shell now: "+why)
		return
	}
	words := make([]string, len(argv))
	for i, w := range argv {
		words[i] = quoteArg(w)
	}
	pp.Verdict, pp.Dir, pp.Start, pp.Program = ProgramPane, dir, start, argv
	pp.Reason = "it ran when the workspace was saved, and the configuration lists it: " + clip(strings.Join(words, " "), maxShown)
}
