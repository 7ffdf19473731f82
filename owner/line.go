package owner

import (
	"path"
	"slices"

	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/internal/proc"
)

// Line is a process and what stood above it, taken down while it ran, so that its report can be
// judged when it has ended.
type Line struct {
	Process
	Above []Link `json:"above"` // nearest first
}

// Link is one process of a line.
type Link struct {
	Process
	Args []string `json:"args,omitempty"` // the first of them: what tells which program it is
	Comm string   `json:"comm,omitzero"`
	Exe  string   `json:"exe,omitzero"`
}

// Bounds of a line.
const (
	maxLine    = 64   // processes
	maxArgs    = 8    // of each
	maxArgSize = 1024 // bytes; a longer one stands as an empty one, for half a path names another program
)

// LineOf takes down what stands above a process now. It is empty where this system does not tell.
func LineOf(pid int) Line {
	var l Line
	i, err := proc.Stat(pid)
	if err != nil {
		return l
	}
	l.Process = processOf(i)
	for len(l.Above) < maxLine && i.PPID > 0 {
		if i, err = proc.Stat(i.PPID); err != nil {
			break
		}
		link := Link{Process: processOf(i), Comm: i.Comm}
		if link.Args, err = proc.Cmdline(i.PID); err != nil {
			link.Args = nil
		}
		link.Args = slices.Clone(link.Args[:min(len(link.Args), maxArgs)])
		for n, a := range link.Args {
			if len(a) > maxArgSize {
				link.Args[n] = ""
			}
		}
		if link.Exe, err = proc.Exe(i.PID); err != nil || len(link.Exe) > maxArgSize {
			link.Exe = ""
		}
		l.Above = append(l.Above, link)
	}
	return l
}

// Processes are those above, nearest first.
func (l Line) Processes() []Process {
	out := make([]Process, len(l.Above))
	for n, link := range l.Above {
		out[n] = link.Process
	}
	return out
}

// Has reports that a process stands in the line.
func (l Line) Has(p Process) bool {
	return slices.ContainsFunc(l.Above, func(link Link) bool { return link.Process == p })
}

// runs reports a process that runs a program, as isAgent does of a living one.
func (l Link) runs(program string) bool {
	return program != "" && (programAt(l.Args, program) >= 0 || calls(l.Comm, program) || l.Exe != "" && baseName(l.Exe) == program)
}

func (l Link) runsAny(templates []*integrations.Template) bool {
	return slices.ContainsFunc(templates, func(t *integrations.Template) bool { return l.runs(programOf(t)) })
}

// calls reports a process's own name for itself that is the program's, as far as it goes.
func calls(comm, program string) bool {
	return comm == program || len(program) > 15 && comm == program[:15]
}

// likens reports a process that calls itself as root does, where root has written over its own
// arguments.
func (l Link) likens(root []string) bool {
	return len(l.Args) > 0 && len(root) == 1 && path.Base(l.Args[0]) == path.Base(root[0])
}
