package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/phux-agent/phux-agent/internal/ui"
	"github.com/phux-agent/phux-agent/plugin"
)

// notifyVerb is what a hook starts beside itself and does not wait for: it calls the user's
// command, and ends it where it takes too long.
const notifyVerb = "notify-exec"

// notifyTime bounds the user's command and what it starts in its process group.
const notifyTime = 10 * time.Second

// notice is what the user's command is told.
type notice struct{ State, Agent, Session, Pane, Title string }

// fill puts the notice into the command's slots. A slot fills its whole argument, so that nothing
// from outside can be more than one; what would look like an option gets a space before it.
func (n notice) fill(command []string) []string {
	out := slices.Clone(command)
	for i, arg := range command {
		if v, ok := n.slots()[arg]; ok {
			if out[i] = ui.Escape(v); strings.HasPrefix(v, "-") && i > 0 {
				out[i] = " " + out[i]
			}
		}
	}
	return out
}

func (n notice) slots() map[string]string {
	return map[string]string{
		"${STATE}": n.State, "${AGENT}": n.Agent, "${SESSION}": n.Session, "${PANE}": n.Pane, "${TITLE}": n.Title,
		"${TEXT}": n.text(),
	}
}

// text is the notice in words.
func (n notice) text() string {
	what := "is done"
	if n.State == "waiting" {
		what = "waits for you"
	}
	return fmt.Sprintf("%s %s in %s (%s)", n.Agent, what, n.Session, n.Pane)
}

func (n notice) environ() []string {
	var out []string
	for k, v := range n.slots() {
		out = append(out, "PHUX_AGENT_NOTIFY_"+strings.Trim(k, "${}")+"="+ui.Escape(v))
	}
	slices.Sort(out)
	return out
}

// notify starts the user's command and returns at once.
func (a *app) notify(command []string, n notice) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, append([]string{notifyVerb}, n.fill(command)...)...)
	cmd.Env = append(slices.Clone(a.environ), n.environ()...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}

// notifyNow runs the command itself: no shell, nothing on its standard streams.
func notifyNow(args, environ []string) int {
	a := &app{environ: environ}
	log := func(err error) int {
		a.hookLog([]string{"notify"}, "error: "+err.Error())
		return failed
	}
	program, err := plugin.LookProgram(args[0], a.getenv("PATH"))
	if err != nil {
		return log(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), notifyTime)
	defer stop()
	cmd := exec.CommandContext(ctx, program, args[1:]...)
	cmd.Env, cmd.Dir = environ, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	switch err := cmd.Run(); {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return log(fmt.Errorf("%s was ended: it took over %v", args[0], notifyTime))
	case err != nil:
		return log(fmt.Errorf("%s: %w", args[0], err))
	}
	return done
}
