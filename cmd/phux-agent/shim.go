package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/internal/foreign"
)

// shellKinds are the shells that shim writes for.
var shellKinds = []string{"bash", "zsh", "fish"}

// shimBlock names our block in a start-up file, and shimMade is its first line where the file
// itself is ours.
const (
	shimBlock = "shim"
	shimMade  = "# this file was made by phux-agent shim install"
)

func (a *app) shimVerb() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "shim",
		Short: "Let the agents' own names start them in the fold",
		Long: `Let the agents' own names start them in the fold: shell functions, so that typing
claude in a pane is phux-agent launch claude-code --here. What is no start of the
interface (claude mcp, claude -p … | jq, claude --resume) runs untouched, and so
does everything outside of a multiplexer, and what a pane cannot take in because
an agent runs in it already.

SHELL is bash, zsh or fish, and yours by default. The functions stand in a marked
block of its start-up file, for the agents that are installed.`,
		Example: `  phux-agent shim print
  phux-agent shim install zsh
  phux-agent shim uninstall zsh`,
		Annotations: exits("0 done", "1 failed", "2 usage", "4 the file cannot be edited"),
	})
	add := func(use, short, example string, run func(kind string) error) {
		cmd.AddCommand(&cobra.Command{
			Use: use + " [SHELL]", Short: short, Example: example, Args: cobra.MaximumNArgs(1), ValidArgs: shellKinds,
			RunE: func(cmd *cobra.Command, args []string) error {
				kind := filepath.Base(a.getenv("SHELL"))
				if len(args) > 0 {
					kind = args[0]
				}
				for _, k := range shellKinds {
					if k == kind {
						return run(kind)
					}
				}
				return usage(cmd, "%s knows %s, not %q", cmd.CommandPath(), strings.Join(shellKinds, ", "), kind)
			},
			Annotations: exits("0 done", "1 failed", "2 usage", "4 the file cannot be edited"),
		})
	}
	add("install", "Write the functions into the shell's start-up file", "  phux-agent shim install\n  phux-agent shim install fish",
		func(kind string) error { return a.shimEdit(kind, true) })
	add("uninstall", "Take them out again, byte for byte", "  phux-agent shim uninstall zsh",
		func(kind string) error { return a.shimEdit(kind, false) })
	add("print", "Print the functions", "  phux-agent shim print bash", func(kind string) error {
		text, _, err := a.shimText(kind)
		if err == nil {
			_, err = fmt.Fprintln(a.stdout, text)
		}
		return err
	})
	return cmd
}

// rcFile is where a shell reads functions from at its start.
func (a *app) rcFile(kind string) (string, error) {
	path := map[string]string{
		"bash": "~/.bashrc", "zsh": "${ZDOTDIR:-~}/.zshrc", "fish": "${XDG_CONFIG_HOME:-~/.config}/fish/config.fish",
	}[kind]
	return integrations.ExpandRoot(path, a.lookup)
}

// shimText writes a function for each agent that is installed and comes back.
func (a *app) shimText(kind string) (text string, names []string, err error) {
	reg, err := a.registry()
	if err != nil {
		return "", nil, err
	}
	self, err := a.ownPath()
	if err != nil {
		return "", nil, err
	}
	seen := map[string]bool{}
	var parts []string
	for _, t := range a.enabled(reg) {
		if t.Restorable() != nil || !a.installed(t) {
			continue
		}
		name := t.Launch.Command[0]
		if seen[name] || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") != "" || strings.HasPrefix(name, "-") {
			continue // a path, or a name that a shell would take apart
		}
		seen[name] = true
		names = append(names, name)
		launch := shellQuote(self) + " launch " + shellQuote(t.ID) + " --here --or-untouched --"
		if kind == "fish" {
			parts = append(parts, fmt.Sprintf(`function %[1]s
    if test -n "$TMUX$PHUX_SOCKET"; and test -x %[2]s
        %[3]s $argv
    else
        command %[1]s $argv
    end
end`, name, shellQuote(self), launch))
			continue
		}
		parts = append(parts, fmt.Sprintf(`function %[1]s {
    if [ -n "${TMUX:-}${PHUX_SOCKET:-}" ] && [ -x %[2]s ]; then
        %[3]s "$@"
    else
        command %[1]s "$@"
    fi
}`, name, shellQuote(self), launch))
	}
	return strings.Join(parts, "\n"), names, nil
}

func (a *app) shimEdit(kind string, install bool) error {
	path, err := a.rcFile(kind)
	if err != nil {
		return err
	}
	f, err := foreign.Read(path)
	if err != nil {
		return err
	}
	before := string(f.Data)
	after := before
	var names []string
	if install {
		var text string
		if text, names, err = a.shimText(kind); err != nil {
			return err
		}
		if len(names) == 0 {
			return errors.New("write shell functions: no agent that comes back is installed")
		}
		body, found, err := foreign.Block(before, shimBlock)
		if err != nil {
			return &foreign.Refusal{Path: path, Reason: err.Error()}
		}
		if !f.Exists || found && strings.HasPrefix(body, shimMade+"\n") {
			text = shimMade + "\n" + text
		}
		after, err = foreign.SetBlock(before, shimBlock, text)
		if err != nil {
			return err
		}
	} else {
		body, found, err := foreign.Block(before, shimBlock)
		if err != nil {
			return &foreign.Refusal{Path: path, Reason: err.Error()}
		}
		if !found {
			a.say("%s: nothing of ours in it", a.tilde(path))
			return nil
		}
		if after, _, err = foreign.RemoveBlock(before, shimBlock); err != nil {
			return err
		}
		if after == "" && strings.HasPrefix(body, shimMade+"\n") {
			if err := f.Remove(); err != nil {
				return err
			}
			a.say("%s: removed", a.tilde(path))
			return nil
		}
	}
	if after == before {
		a.say("%s: nothing to do", a.tilde(path))
		return nil
	}
	if _, err := f.Replace([]byte(after)); err != nil {
		return err
	}
	if !install {
		a.say("%s: taken out; a shell that runs keeps its functions until it ends", a.tilde(path))
		return nil
	}
	a.say("%s: %s", a.tilde(path), strings.Join(names, ", "))
	a.say("  a new shell has them")
	return nil
}
