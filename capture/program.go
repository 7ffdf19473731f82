package capture

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/config"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/plugin"
)

// listed is one program that the configuration lists, as it is found now.
type listed struct {
	config.Program
	file   string // without links
	interp string // of a script: the program that runs it, without links
	option string // of a script: what stands behind that
}

// listPrograms finds the programs that may run again. One that is not there cannot run in a pane.
func listPrograms(from map[string]config.Program, path string) (out []listed) {
	for _, p := range from {
		found, err := plugin.LookProgram(p.Command[0], path)
		if err != nil {
			continue
		}
		l := listed{Program: p}
		if l.file, err = filepath.EvalSymlinks(found); err != nil {
			continue
		}
		l.interp, l.option = interpreter(l.file, path)
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b listed) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// interpreter is what runs a script, and its one argument; empty where the file is no script.
func interpreter(file, path string) (program, option string) {
	f, err := os.Open(file)
	if err != nil {
		return "", ""
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, 256)).ReadString('\n')
	line, ok := strings.CutPrefix(line, "#!")
	if !ok {
		return "", ""
	}
	program, option, _ = strings.Cut(strings.TrimSpace(line), " ")
	option = strings.TrimSpace(option)
	if filepath.Base(program) == "env" {
		if program, err = plugin.LookProgram(option, path); err != nil {
			return "", ""
		}
		option = ""
	}
	if program, err = filepath.EvalSymlinks(program); err != nil {
		return "", ""
	}
	return program, option
}

// args are the arguments that a process has behind the program's name, where it is this program,
// called by this name: one file may be several programs.
// exe is the file that it runs, argv its arguments.
func (l *listed) args(exe string, argv []string) ([]string, bool) {
	if len(argv) == 0 {
		return nil, false
	}
	var rest []string
	switch {
	case exe == l.file && l.interp == "" && filepath.Base(argv[0]) == filepath.Base(l.Command[0]):
		rest = argv[1:]
	case exe == l.interp && l.interp != "":
		at := 1
		if l.option != "" && len(argv) > 1 && argv[1] == l.option {
			at = 2
		}
		if at >= len(argv) || !filepath.IsAbs(argv[at]) || filepath.Base(argv[at]) != filepath.Base(l.Command[0]) {
			return nil, false
		}
		if file, err := filepath.EvalSymlinks(argv[at]); err != nil || file != l.file {
			return nil, false
		}
		rest = argv[at+1:]
	default:
		return nil, false
	}
	if !l.SavedArgs {
		return []string{}, true
	}
	if own := l.Command[1:]; len(own) <= len(rest) && slices.Equal(own, rest[:len(own)]) {
		rest = rest[len(own):]
	}
	return append([]string{}, rest...), true
}

// foreground is the process that leads the foreground of the terminal that pid is in.
func (m *machine) foreground(pid int) (exe string, argv []string, ok bool) {
	first, err := proc.Stat(pid)
	if err != nil || first.TTY == 0 || first.Front <= 0 {
		return "", nil, false
	}
	front, err := proc.Stat(first.Front)
	if err != nil || front.Dead() || front.TTY != first.TTY || front.Session != first.Session {
		return "", nil, false
	}
	if exe, err = proc.Exe(front.PID); err != nil {
		return "", nil, false
	}
	if argv, err = proc.Arguments(front.ID()); err != nil {
		return "", nil, false
	}
	return exe, argv, true
}

// idle reports a shell that nobody uses.
func (m *machine) idle(pid int, tty string) bool {
	_, err := proc.IdleShell(pid, tty)
	return err == nil
}

// programs says of each pane without an agent which listed program runs in it.
func (l *view) programs() {
	if len(l.Request.Programs) == 0 {
		return
	}
	path, _ := l.Getenv("PATH")
	known := listPrograms(l.Request.Programs, path)
	for _, p := range l.panes {
		if p.ours() || p.host.Dead || p.host.Waiting {
			continue
		}
		exe, argv, ok := l.proofs.foreground(p.host.PID)
		if !ok {
			continue
		}
		for i := range known {
			if args, ok := known[i].args(exe, argv); ok {
				p.process = &archive.Process{Program: known[i].Name, Args: args}
				break
			}
		}
	}
}
