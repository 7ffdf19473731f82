package main

import (
	"fmt"
	"syscall"

	"golang.org/x/term"

	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/launch"
	"github.com/phux-agent/phux-agent/plugin"
)

// untouched returns the template where `launch --here` is to run the agent as it was called,
// without an identity: its arguments start something else than its interface, or there is nobody
// at its input or output. Nil where the launch goes on: also for what does not resolve, which is
// refused later, in words, and outside of every pane, where --here means nothing.
func (a *app) untouched(integration string, args []string) *integrations.Template {
	t := a.template(integration)
	if t == nil {
		return nil
	}
	_, interactive := t.Interactive(args)
	inPane := a.inPane()
	if !interactive || inPane && (!isTerminal(a.stdin) || !isTerminal(a.stdout)) {
		return t
	}
	return nil
}

// template is that of an integration which resolves and can be started, nil where there is none.
func (a *app) template(integration string) *integrations.Template {
	reg, err := a.registry()
	if err != nil {
		return nil
	}
	own, err := reg.Resolve(integration)
	if err != nil || len(own.Template.Launch.Command) == 0 {
		return nil
	}
	return own.Template
}

func isTerminal(stream any) bool {
	f := file(stream)
	return f != nil && term.IsTerminal(int(f.Fd()))
}

// plain becomes the agent's program with the arguments as given. It returns only where that fails.
func (a *app) plain(t *integrations.Template, args []string) error {
	name := t.Launch.Command[0]
	program, err := plugin.LookProgram(name, a.getenv("PATH"))
	if err != nil {
		return &launch.ProgramError{Program: name, Path: a.getenv("PATH"), Err: err}
	}
	if err := syscall.Exec(program, append([]string{name}, args...), a.environ); err != nil {
		return fmt.Errorf("run %q: %w", program, err)
	}
	return nil
}
