package owner

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/internal/proc"
)

// programOf is the name under which a template's agent runs: its program's, or that of the
// plugin's own script which an interpreter runs.
func programOf(t *integrations.Template) string {
	if t == nil || len(t.Launch.Command) == 0 {
		return ""
	}
	name := t.Launch.Command[0]
	if len(t.Launch.Command) > 1 && strings.HasPrefix(t.Launch.Command[1], "${PHUX_PLUGIN_ROOT}") {
		name = t.Launch.Command[1]
	}
	return baseName(name)
}

// baseName is a program's name without its directory and without what marks it a script.
func baseName(s string) string {
	s = path.Base(s)
	for _, ext := range []string{".js", ".mjs", ".cjs"} {
		if cut, ok := strings.CutSuffix(s, ext); ok && cut != "" {
			return cut
		}
	}
	return s
}

// programAt is the index of the argument that names the program: the first, or the script that an
// interpreter runs (its first argument that is no option, given as a path). -1 where it is
// neither.
func programAt(args []string, program string) int {
	if len(args) == 0 || program == "" {
		return -1
	}
	if baseName(args[0]) == program {
		return 0
	}
	for n := 1; n < len(args); n++ {
		if strings.HasPrefix(args[n], "-") {
			continue
		}
		if strings.Contains(args[n], "/") && baseName(args[n]) == program {
			return n
		}
		break
	}
	return -1
}

// carries reports an argument that is the id, whole.
func carries(args []string, id string) bool {
	return len(args) > 1 && slices.Contains(args[1:], id)
}

// isAgent reports a process that is the agent's and not a helper's (a server that the agent's
// shell tool started lives in the same process session): by the id among its arguments, or by
// its program's name.
func isAgent(i proc.Info, program, id string) bool {
	args, err := proc.Cmdline(i.PID)
	if err != nil {
		return false
	}
	if id != "" && carries(args, id) && !bystander(i, args) || programAt(args, program) >= 0 {
		return true
	}
	if program == "" {
		return false
	}
	if calls(i.Comm, program) {
		return true
	}
	exe, err := proc.Exe(i.PID)
	return err == nil && baseName(exe) == program
}

// survivors are the living processes of a dead owner's process session: of the same boot, not
// older than the owner was. Where the owner led no session (launch --here: the shell leads it),
// only those of its process group, for the rest are the user's own.
//
// A session's or group's number cannot be given to a new process while one of its members
// lives. So where the owner's number is another process's now, nobody survives.
func survivors(table *proc.Table, c Claim, agent func(proc.Info) bool) []proc.Info {
	leads := c.Session == c.Process.PID
	if c.Session <= 0 || !sameBoot(c) {
		return nil
	}
	if now, ok := table.Get(c.Process.PID); ok && now.Start != c.Process.Start {
		if leads || c.Group == c.Process.PID {
			return nil
		}
	}
	var out []proc.Info
	for _, i := range table.All() {
		if i.Session != c.Session || i.Dead() || i.Start < c.Process.Start {
			continue
		}
		if !leads && (c.Group == 0 || i.Group != c.Group) {
			continue
		}
		if agent(i) {
			out = append(out, i)
		}
	}
	return out
}

// block is the agent's own processes: the root and, where that is a wrapper, what it handed its
// arguments to, and so on down. A child belongs to it only if it runs the same program with the
// same arguments, in the same process group and session; or if it is the one child that a shell's
// script waits for, and ends with the arguments that the script was given, whatever it is called.
// An agent that the agent's shell tool starts fails this, also where the shell replaced itself by
// it: it has other arguments, and a program that is an agent's own is no script's helper.
func (o *Observer) block(t *integrations.Template, root proc.Info) []proc.Info {
	program := programOf(t)
	args := o.args(root)
	at := programAt(args, program)
	out := []proc.Info{root}
	if at < 0 {
		return out
	}
	tail := args[at+1:]
	dir := packageOf(args[at])
	for n := 0; n < len(out) && len(out) < maxBlock; n++ {
		var kids []proc.Info
		for _, kid := range o.table.Children(out[n].PID) {
			if !kid.Dead() && kid.Group == root.Group && kid.Session == root.Session && kid.Start >= root.Start {
				kids = append(kids, kid)
			}
		}
		for _, kid := range kids {
			args := o.args(kid)
			at := programAt(args, program)
			if at < 0 {
				at = scriptAt(args, dir)
			}
			switch {
			case at >= 0 && slices.Equal(args[at+1:], tail):
				out = append(out, kid)
			case at < 0 && len(kids) == 1 && endsWith(args, tail) && isScript(out[n]):
				out = append(out, kid)
			}
		}
	}
	return out
}

// isScript reports a shell: as an agent's own process it runs a script, and waits for what the
// script runs.
func isScript(i proc.Info) bool {
	exe, err := proc.Exe(i.PID)
	return err == nil && (proc.IsShell(path.Base(exe)) || path.Base(exe) == "busybox")
}

// endsWith reports arguments whose last ones are these, behind a program.
func endsWith(args, tail []string) bool {
	return len(args) > len(tail) && slices.Equal(args[len(args)-len(tail):], tail)
}

// packageOf is the directory of the file that an argument names as the program, where that is a
// link to a script elsewhere: such a command often starts another script of its own package, under
// that one's name. Empty where it is no link, or leads to no other directory.
func packageOf(arg string) string {
	if !strings.HasPrefix(arg, "/") {
		return ""
	}
	real, err := filepath.EvalSymlinks(arg)
	if err != nil || filepath.Dir(real) == filepath.Dir(filepath.Clean(arg)) || filepath.Base(real) == filepath.Base(arg) {
		return ""
	}
	return filepath.Dir(real)
}

// scriptAt is the index of the argument by which an interpreter runs a script of that package, -1
// where it runs none.
func scriptAt(args []string, dir string) int {
	if dir == "" {
		return -1
	}
	for n := 1; n < len(args); n++ {
		if strings.HasPrefix(args[n], "-") {
			continue
		}
		if real, err := filepath.EvalSymlinks(args[n]); err == nil && filepath.IsAbs(args[n]) && filepath.Dir(real) == dir {
			return n
		}
		break
	}
	return -1
}

const maxBlock = 16 // processes; real ones have one or two
