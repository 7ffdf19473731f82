package integrations

import (
	"fmt"
	"slices"
	"strings"
)

// Words by which a CLI picks a conversation itself. Short options mean something else from one
// CLI to the next (codex's -c is its configuration), so none is listed.
var recency = []string{"--continue", "--last", "--latest", "--most-recent", "--recent", "latest", "last"}

// Words that make a new conversation out of the one that is resumed.
var forking = []string{"--fork", "--fork-session", "fork", "--branch"}

// Programs beyond the refused ones that run what their arguments say.
var runners = []string{
	"nodejs", "ash", "csh", "tcsh", "nu", "elvish", "xonsh", "mksh", "npx", "bunx", "pnpx", "uvx", "pipx", "tsx", "ts-node",
	"sudo", "doas", "su", "xargs", "nohup", "nice", "timeout", "setsid", "script", "ssh", "tmux", "screen", "awk", "tclsh", "pypy3",
}

// Lint says everything that Parse knows and more: recency flags, fork flags in resume, shells.
// Warnings come in the order of the file; an error is Parse's.
func Lint(file string, data []byte) ([]Warning, error) {
	t, r, err := parse(file, data)
	if err != nil {
		return nil, err
	}
	r.lint(t)
	return r.warnings(), nil
}

func (r *reader) lint(t *Template) {
	const in = "session_identity."
	s := t.Identity
	r.unfilled("", r.m)
	if !plainID(t.ID) {
		r.warn("id", fmt.Sprintf("id %s: letters, digits, - _ . alone can be typed as INTEGRATION/ID", quote(t.ID)))
	}
	if len(t.CLI.Verified) == 0 && !r.has("cli", "verified") { // an empty list says it
		r.warn("cli", `no [cli] verified: say which versions the template was run on, verified = ["1.2.3"], or verified = [] for none`)
	}
	if len(t.CLI.Verified) > 0 && len(t.CLI.VersionArgs) == 0 {
		r.warn("cli.verified", `no version_args: nobody can ask which version is installed; write version_args = ["--version"]`)
	}
	if !r.has("launch") {
		r.warn("launch", "no [launch]: the template loads and cannot be launched")
	}
	if r.has("session_identity") && s.NativeEnv == "" {
		r.warn("session_identity", "no native_env: phux refuses such a template")
	}
	for _, v := range []struct {
		key  string
		args []string
	}{
		{"launch.command", t.Launch.Command},
		{in + "resume_args", s.ResumeArgs},
		{in + "fresh_args", s.FreshArgs},
		{in + "fork_args", s.ForkArgs},
		{in + "mint_command", s.MintCommand},
		{in + "fork_command", s.ForkCommand},
	} {
		for i, arg := range v.args {
			opt, _, _ := strings.Cut(arg, "=")
			switch {
			case slices.Contains(recency, opt):
				r.warn(elem(v.key, i), fmt.Sprintf("%s: %s picks a conversation by time; only an id may choose one", v.key, quote(arg)))
			case v.key == in+"resume_args" && slices.Contains(forking, opt):
				r.warn(elem(v.key, i), fmt.Sprintf("%s: %s makes a new conversation at every restore; it belongs in fork_args", v.key, quote(arg)))
			case v.key == in+"fresh_args" && slices.Contains(forking, opt):
				r.warn(elem(v.key, i), fmt.Sprintf("%s: %s begins with another conversation; it belongs in fork_args", v.key, quote(arg)))
			case strings.Contains(arg, slotRoot) && !strings.HasSuffix(v.key, "_args"):
				_, rest, _ := strings.Cut(arg, slotRoot)
				if strings.Contains(rest+"/", "/../") {
					r.warn(elem(v.key, i), fmt.Sprintf("%s: %s leaves the plugin", v.key, quote(arg)))
				}
			case strings.Contains(arg, "${") && arg != slotID && arg != slotNewID:
				r.warn(elem(v.key, i), fmt.Sprintf("%s: %s is not expanded: no shell reads it", v.key, quote(arg)))
			}
			if i+1 < len(v.args) && v.args[i+1] == slotID && slices.Contains([]string{"-c", "-e", "--eval", "--command", "--exec"}, arg) {
				r.warn(elem(v.key, i), fmt.Sprintf("%s: after %s the id looks like source", v.key, quote(arg)))
			}
		}
	}
	if t.Restorable() != nil {
		return
	}
	for i, arg := range t.Launch.Command {
		name := programName(arg)
		switch {
		case i == 0 && slices.Contains(runners, name):
			r.warn(elem("launch.command", 0), fmt.Sprintf("launch.command: %s runs what its arguments say, and the session id is one of them", quote(name)))
		case i == 0 && slices.Contains(interpreters, name):
			r.warn(elem("launch.command", 0), fmt.Sprintf("launch.command: phux refuses %s even with a script of the plugin; a #! line needs no interpreter here", quote(name)))
		case i > 0 && (slices.Contains(shells, name) || slices.Contains(launchers, name)):
			r.warn(elem("launch.command", i), fmt.Sprintf("launch.command: the shell %s behind the first program may evaluate the session id", quote(name)))
		}
	}
	if s.IDPattern == "" {
		r.warn(in+"resume_args", `no id_pattern: any word reaches the CLI, also one that it takes for a name, a number or a prefix; write id_pattern = "uuid4" where it fits`)
	} else if re, err := compileID(s.IDPattern); err == nil {
		for _, word := range []string{"latest", "last", "1", "0"} {
			if re.MatchString(word) {
				r.warn(in+"id_pattern", fmt.Sprintf("id_pattern allows %s, which CLIs take for something other than an id", quote(word)))
				break
			}
		}
	}
	r.lintIdentity(s)
	if len(s.Never) == 0 {
		r.warn("session_identity", `no never: list the options by which the CLI picks a conversation itself, as never = ["--continue", "-c"]`)
	}
	if s.FreshArgs == nil && s.MintCommand == nil && len(t.Observe) == 0 {
		r.warn("session_identity", "no fresh_args, mint_command or [[observe]]: a pane becomes restorable only by launch --resume ID")
	}
	if (s.NeverPrompted == FreshAgain || s.NeverPrompted == FreshUntilFile) && t.Transcript == nil {
		r.warn(in+"fresh_args", "no [transcript]: nobody can tell whether a conversation exists, so a fresh start under the same id is never chosen")
	}
}

// lintIdentity looks at how the vectors stand to each other.
func (r *reader) lintIdentity(s SessionIdentity) {
	const in = "session_identity."
	if len(s.Never) > 0 {
		var open []string // an option that takes an id, and is not listed
		for _, args := range [][]string{s.ResumeArgs, s.FreshArgs, s.ForkArgs} {
			for _, opt := range args {
				if strings.HasPrefix(opt, "-") && opt != "--" && !slices.Contains(s.Never, opt) && !slices.Contains(open, opt) {
					open = append(open, opt)
				}
			}
		}
		if len(open) > 0 {
			r.warn(in+"never", fmt.Sprintf("never does not list %s: launch refuses it either way, but launch --here and the shell function hand only listed options on to the agent untouched", strings.Join(open, ", ")))
		}
	}
	switch {
	case s.FreshArgs == nil:
	case slices.Equal(s.FreshArgs, s.ResumeArgs):
		r.warn(in+"fresh_args", "fresh_args are resume_args: a CLI that creates what it does not find starts an empty conversation where one was lost; write the option that fails instead, where there is one")
	case slices.Equal(s.ForkArgs, s.FreshArgs), slices.Equal(s.ForkArgs, s.ResumeArgs):
		r.warn(in+"fork_args", "fork_args are those of another operation")
	}
}

func plainID(id string) bool {
	return strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == ""
}
