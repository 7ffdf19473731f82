package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (a *app) manVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "man [VERB…]",
		Short: "Print the manual page, or that of one verb",
		Example: `  phux-agent man | man -l -
  phux-agent man restore | man -l -
  phux-agent man > ~/.local/share/man/man1/phux-agent.1`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			page := cmd.Root()
			if len(args) > 0 {
				found, rest, err := cmd.Root().Find(args)
				if err != nil || len(rest) > 0 || found == cmd.Root() {
					return usage(cmd, "no verb %q", strings.Join(args, " "))
				}
				page = found
			}
			_, err := fmt.Fprint(a.stdout, manPage(page))
			return err
		},
		Annotations: exits("0 printed", "2 usage"),
	}
}

// manPage writes man(7): the page of one verb, and for the program that of every verb.
func manPage(cmd *cobra.Command) string {
	var b strings.Builder
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"phux-agent %s\" \"User Commands\"\n", roff(strings.ToUpper(name)), roff(programVersion()))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n")
	manSynopsis(&b, cmd)
	fmt.Fprintf(&b, ".SH DESCRIPTION\n")
	manText(&b, cmd)
	if len(cmd.Commands()) > 0 {
		b.WriteString(".SH COMMANDS\n")
		manVerbs(&b, cmd)
	}
	if f := cmd.LocalNonPersistentFlags(); f.HasAvailableFlags() {
		b.WriteString(".SH OPTIONS\n")
		manFlags(&b, f)
	}
	b.WriteString(".SH GLOBAL OPTIONS\n")
	manFlags(&b, cmd.Root().PersistentFlags())
	if cmd.Example != "" {
		b.WriteString(".SH EXAMPLES\n")
		manExample(&b, cmd.Example)
	}
	b.WriteString(".SH EXIT STATUS\n")
	e := cmd.Annotations[exitNotes]
	if !cmd.HasParent() {
		e = exitCodes
	}
	manExits(&b, e)
	if !cmd.HasParent() {
		b.WriteString(".SH FILES\n")
		for _, f := range [][2]string{
			{"$XDG_CONFIG_HOME/phux-agent/config.toml", "hosts, profiles, plugins and bounds"},
			{"$XDG_DATA_HOME/phux-agent/plugins", "plugins"},
			{"$XDG_STATE_HOME/phux-agent/archives", "the generations of each server"},
		} {
			fmt.Fprintf(&b, ".TP\n.I %s\n%s\n", roff(f[0]), roff(f[1]))
		}
	}
	return b.String()
}

func manVerbs(b *strings.Builder, cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		b.WriteString(".SS \"" + roff(strings.TrimPrefix(sub.CommandPath(), "phux-agent ")) + "\"\n")
		manSynopsis(b, sub)
		b.WriteString(".PP\n")
		manText(b, sub)
		if f := sub.LocalNonPersistentFlags(); f.HasAvailableFlags() {
			manFlags(b, f)
		}
		if e := sub.Annotations[exitNotes]; e != "" && !sub.HasAvailableSubCommands() {
			b.WriteString(".PP\nExit status:\n")
			manExits(b, e)
		}
		manVerbs(b, sub)
	}
}

func manSynopsis(b *strings.Builder, cmd *cobra.Command) {
	line := cmd.UseLine()
	if cmd.HasAvailableSubCommands() {
		line = cmd.CommandPath() + " COMMAND"
	}
	fmt.Fprintf(b, ".B %s\n", roff(line))
}

func manText(b *strings.Builder, cmd *cobra.Command) {
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	for i, para := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		if strings.HasPrefix(para, "  ") {
			manExample(b, para)
			continue
		}
		b.WriteString(roff(para) + "\n")
	}
}

func manExample(b *strings.Builder, text string) {
	b.WriteString(".RS\n.nf\n")
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString(roff(strings.TrimPrefix(line, "  ")) + "\n")
	}
	b.WriteString(".fi\n.RE\n")
}

func manFlags(b *strings.Builder, flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		arg, text := pflag.UnquoteUsage(f)
		if arg != "" {
			name += " " + arg
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(name), roff(text))
	})
}

func manExits(b *strings.Builder, e string) {
	for line := range strings.SplitSeq(e, "\n") {
		code, text, _ := strings.Cut(line, " ")
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", code, roff(text))
	}
}

// roff escapes text for man(7): backslashes, hyphens, and a control character at a line's start.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", `...`, "→", `\->`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
