package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/phux-agent/phux-agent/internal/ui"
)

// exitNotes is the annotation of a verb that holds its EXIT STATUS section, one code a line.
const exitNotes = "exit"

// exits documents a verb's exit codes: "0 done", "4 refused …".
func exits(lines ...string) map[string]string {
	return map[string]string{exitNotes: strings.Join(lines, "\n")}
}

// help prints what a verb does, examples that run, flags, and its exit status.
func (a *app) help(cmd *cobra.Command, _ []string) { fmt.Fprint(a.stdout, helpText(cmd)) }

func (a *app) helpVerb() *cobra.Command {
	return &cobra.Command{
		Use: "help [VERB…]", Short: "Help for a verb", Hidden: true, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usage(cmd.Root(), "no verb %q", strings.Join(args, " "))
			}
			a.help(found, nil)
			return nil
		},
	}
}

func helpText(cmd *cobra.Command) string {
	var b strings.Builder
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	for para := range strings.SplitSeq(strings.TrimSpace(long), "\n\n") {
		if !strings.HasPrefix(para, "  ") {
			para = strings.Join(ui.Wrap(para, 80), "\n")
		}
		b.WriteString(para + "\n\n")
	}
	b.WriteString("USAGE\n")
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s COMMAND\n", cmd.CommandPath())
	} else {
		fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
	}
	if cmd.Example != "" {
		fmt.Fprintf(&b, "\nEXAMPLES\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		width := 0
		for _, sub := range cmd.Commands() {
			width = max(width, len(sub.Name()))
		}
		list := func(title, group string) {
			fmt.Fprintf(&b, "\n%s\n", title)
			for _, sub := range cmd.Commands() {
				if sub.IsAvailableCommand() && sub.GroupID == group {
					fmt.Fprintf(&b, "  %-*s  %s\n", width, sub.Name(), sub.Short)
				}
			}
		}
		if len(cmd.Groups()) == 0 {
			list("COMMANDS", "")
		}
		for _, g := range cmd.Groups() {
			list(strings.ToUpper(strings.TrimSuffix(g.Title, ":")), g.ID)
		}
	}
	if f := cmd.LocalNonPersistentFlags(); f.HasAvailableFlags() {
		fmt.Fprintf(&b, "\nFLAGS\n%s", f.FlagUsagesWrapped(80))
	}
	if f := cmd.Root().PersistentFlags(); f.HasAvailableFlags() {
		fmt.Fprintf(&b, "\nGLOBAL FLAGS\n%s", f.FlagUsagesWrapped(80))
	}
	if e := cmd.Annotations[exitNotes]; e != "" {
		fmt.Fprintf(&b, "\nEXIT STATUS\n")
		for line := range strings.SplitSeq(e, "\n") {
			code, text, _ := strings.Cut(line, " ")
			fmt.Fprintf(&b, "  %-4s %s\n", code, text)
		}
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n%s COMMAND --help says more of each.\n", cmd.CommandPath())
	}
	return b.String()
}
