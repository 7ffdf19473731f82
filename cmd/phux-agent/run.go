package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// paneExecVerb is how a host starts a pane. It comes before everything else: a workspace of a
// thousand panes runs it a thousand times.
const paneExecVerb = "pane-exec"

func run(args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 1 && args[1] == paneExecVerb {
		return paneExec(args[2:], environ, stdin, stdout)
	}
	// A verb lives for some milliseconds: it collects garbage from 32 MiB on, not from 4.
	debug.SetGCPercent(800)
	if len(args) > 2 && args[1] == notifyVerb {
		return notifyNow(args[2:], environ)
	}
	if len(args) > 1 && args[1] == hookVerb && !slices.Contains([]string{"--help", "-h"}, args[len(args)-1]) {
		return hook(args[2:], environ, stdin)
	}
	outliveReaders()
	out := &output{Writer: stdout}
	a := &app{environ: environ, stdin: stdin, stdout: out, stderr: stderr}
	if len(args) > 1 && args[1] == statusVerbName {
		if code, ok := plainStatus(args[2:], a, out); ok {
			return code
		}
	}
	args = args[min(1, len(args)):]
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := a.root()
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		a.offer(root) // no other start has a use for it
	}
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil && !a.json { // asked for, but standing behind what could not be parsed
		own := args
		if i := slices.Index(args, "--"); i >= 0 {
			own = args[:i]
		}
		a.json = slices.Contains(own, "--json")
	}
	if ctx.Err() != nil && err != nil {
		err = &interruptedError{err}
	}
	return a.report(out.judge(a, err))
}

// root is the command tree.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "phux-agent",
		Short: "Bring coding agents back after a reboot, each to its own conversation in its own pane",
		Long: `phux-agent starts coding agents in panes under a known conversation, keeps that
identity on exactly that pane, saves the whole workspace, and after a reboot
brings every pane back to its own conversation.`,
		Example: `  phux-agent launch claude-code
  phux-agent save
  phux-agent restore --plan
  phux-agent restore`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:              cobra.NoArgs,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetIn(a.stdin)
	root.SetHelpCommand(a.helpVerb())
	root.Version = programVersion()
	root.SetVersionTemplate("phux-agent {{.Version}}\n")
	root.SetHelpFunc(a.help)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usage(cmd, "%w", err) })
	f := root.PersistentFlags()
	f.StringVarP(&a.socketName, "socket-name", "L", "", "the server of that `NAME`, as tmux -L")
	f.StringVarP(&a.socketPath, "socket-path", "S", "", "the tmux server on the socket `PATH`, as tmux -S")
	f.StringVar(&a.hostKind, "host", "", "work with that `HOST`: tmux, embedded")
	f.BoolVar(&a.json, "json", false, "print one JSON document")
	root.AddGroup(&cobra.Group{ID: "main", Title: "The main job:"}, &cobra.Group{ID: "embedded", Title: "Where there is no tmux, the embedded host:"}, &cobra.Group{ID: "more", Title: "More:"})
	cobra.EnableCommandSorting = false // in the order of the work
	add := func(group string, verbs ...*cobra.Command) {
		for _, v := range verbs {
			v.GroupID = group
			root.AddCommand(v)
		}
	}
	add("main", a.launchVerb(), a.saveVerb(), a.restoreVerb(), a.pickVerb(), a.psVerb(), a.statusVerb())
	add("embedded", a.attachVerb(), a.newVerb(), a.sendVerb(), a.readVerb(), a.killVerb(), a.serverVerb())
	add("more", a.archiveVerb(), a.recordVerb(), a.adoptVerb(), a.reapVerb(), a.doctorVerb(), a.autosaveVerb(), a.bootVerb(), a.tmuxVerb(), a.hooksVerb(), a.hookHelp(), a.shimVerb(), a.pluginVerb(), a.integrationVerb(),
		a.uninstallVerb(), a.versionVerb(), a.completionVerb(), a.manVerb())
	wrapArgs(root)
	return root
}

// wrapArgs makes wrong arguments, and flags that exclude one another, the usage errors that they
// are, in every verb.
func wrapArgs(cmd *cobra.Command) {
	check := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		for _, set := range append(strings.Split(cmd.Annotations[exclusive], "\n"), "socket-name socket-path") {
			var used []string
			for name := range strings.FieldsSeq(set) {
				if cmd.Flags().Changed(name) {
					used = append(used, "--"+name)
				}
			}
			if len(used) > 1 {
				return usage(cmd, "%s exclude one another", strings.Join(used, " and "))
			}
		}
		if check == nil {
			return nil
		}
		if err := check(cmd, args); err != nil {
			return usage(cmd, "%w", err)
		}
		return nil
	}
	for _, sub := range cmd.Commands() {
		wrapArgs(sub)
	}
}

// exclusive is the annotation that holds sets of flags, one a line, of each of which at most one
// may be given.
const exclusive = "exclusive"

func exclude(cmd *cobra.Command, sets ...string) {
	cmd.Annotations[exclusive] = strings.Join(sets, "\n")
}

// group is a verb that only has verbs below it.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usage(cmd, "unknown command %q for %q", args[0], cmd.CommandPath())
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return usage(cmd, "%s needs a command", cmd.CommandPath())
	}
	return cmd
}
