package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/phux-agent/phux-agent/attach"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/embedded"
)

func (a *app) attachVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "attach [SESSION]",
		Short: "Show a session of the embedded host in this terminal",
		Long: `Show a session of the embedded host in this terminal, the one looked at last
unless it is named: one of its terminals at a time, with every byte as its program
wrote it. Ctrl-b leads out of it (attach_prefix in the configuration chooses another
key): Ctrl-b d detaches, Ctrl-b ? lists the keys. Sessions on tmux are shown by
tmux attach-session.`,
		Example:     "  phux-agent attach\n  phux-agent attach work\n  phux-agent -L other attach work",
		Args:        cobra.MaximumNArgs(1),
		RunE:        func(cmd *cobra.Command, args []string) error { return a.attach(cmd, args) },
		Annotations: exits("0 detached, or the last terminal has ended", "1 failed, or ended by a signal", "2 usage, or not in a terminal", "4 within a terminal of that server", "5 no server runs, or it went"),
	}
}

func (a *app) attach(cmd *cobra.Command, args []string) error {
	conf, err := a.config()
	if err != nil {
		return err
	}
	o := attach.Options{}
	if len(args) > 0 {
		o.Session = args[0]
	}
	if conf.AttachPrefix != "" {
		ok := false
		if o.Prefix, ok = attach.ParsePrefix(conf.AttachPrefix); !ok {
			return usage(cmd, "attach_prefix %q in the configuration is no key: write it as C-a", conf.AttachPrefix)
		}
	}
	_, socket, err := a.embeddedServer()
	if err != nil {
		return err
	}
	if a.getenv(embedded.EnvSocket) == socket && a.getenv(embedded.EnvTerminal) != "" {
		return &withinError{}
	}
	c, err := a.dialBy(cmd.Context(), embedded.DialToLook)
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := newShown(cmd.Context(), c)
	if err != nil {
		return a.onEmbedded("attach", err)
	}
	// Two threads wait in the system, each with a processor of Go's until another one is wanted:
	// where none is left to Go, each wait would be followed by a search for who needs one.
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 2)
	end, err := attach.Run(cmd.Context(), s, o, file(a.stdin), file(a.stdout))
	if err != nil {
		return a.onEmbedded("attach", err)
	}
	switch end.Why {
	case attach.NoneLeft:
		a.say("[the last terminal has ended]")
	default:
		a.say("[detached] %s", a.embeddedCommand("attach "+shellQuote(end.Session))+" shows it again")
	}
	return nil
}

// dial connects to the server of the embedded host that is meant; none is started.
func (a *app) dial(ctx context.Context) (*embedded.Client, error) {
	return a.dialBy(ctx, embedded.Dial)
}

func (a *app) dialBy(ctx context.Context, dial func(ctx context.Context, socket string) (*embedded.Client, error)) (*embedded.Client, error) {
	name, socket, err := a.embeddedServer()
	if err != nil {
		return nil, err
	}
	c, err := dial(ctx, socket)
	if err != nil {
		e := a.onEmbedded(fmt.Sprintf("server %q of the embedded host", name), err)
		if errors.Is(err, host.ErrNoServer) {
			e.Others = runningServers(ctx, socket)
		}
		return nil, e
	}
	return c, nil
}

// runningServers names the embedded servers that answer beside a socket.
func runningServers(ctx context.Context, socket string) []string {
	paths, _ := filepath.Glob(filepath.Join(filepath.Dir(socket), "*.sock"))
	var names []string
	for _, p := range paths {
		if p == socket || len(names) == 8 {
			continue
		}
		if c, err := embedded.Dial(ctx, p); err == nil {
			c.Close()
			names = append(names, strings.TrimSuffix(filepath.Base(p), ".sock"))
		}
	}
	return slices.Sorted(slices.Values(names))
}

// embeddedCommand is a command of ours on the embedded server that is meant, for a person.
func (a *app) embeddedCommand(verb string) string {
	name, _, err := a.embeddedServer()
	if err != nil || name == embedded.DefaultName {
		return "phux-agent --host embedded " + verb
	}
	return "phux-agent --host embedded -L " + shellQuote(name) + " " + verb
}

// onEmbedded is what went wrong on the embedded server that is meant.
func (a *app) onEmbedded(what string, err error) *embeddedError {
	return &embeddedError{What: what, Err: err, Command: a.embeddedCommand}
}

// embeddedError is an operation on the embedded host that failed, with how to say a command there.
type embeddedError struct {
	What    string
	Err     error
	Command func(verb string) string
	Others  []string // servers that run, where this one does not
}

func (e *embeddedError) Error() string { return fmt.Sprintf("%s: %v", e.What, e.Err) }
func (e *embeddedError) Unwrap() error { return e.Err }

// judge finds the hint that names this server.
func (e *embeddedError) judge() (judgement, bool) {
	switch {
	case errors.Is(e.Err, attach.ErrLost):
		return judgement{noHost, "server-gone", "what was saved comes back by " + e.Command("restore")}, true
	case errors.Is(e.Err, host.ErrNoServer) && len(e.Others) > 0:
		return judgement{noHost, "no-server", "name one that runs: -L " + strings.Join(e.Others, ", -L ")}, true
	case errors.Is(e.Err, host.ErrNoServer):
		return judgement{noHost, "no-server", e.Command("new") + " makes a session; what was saved comes back by " + e.Command("restore")}, true
	case errors.Is(e.Err, host.ErrNoSession):
		return judgement{failed, "no-session", e.Command("ps --all") + " lists them; " + e.Command("new") + " makes one"}, true
	case errors.Is(e.Err, host.ErrNoTerminal):
		return judgement{failed, "no-pane", e.Command("ps --all") + " lists the panes"}, true
	case errors.Is(e.Err, host.ErrSessionExists):
		return judgement{failed, "session-exists", "choose another name, or look at it: " + e.Command("attach")}, true
	case errors.Is(e.Err, embedded.ErrDead):
		return judgement{failed, "dead", "start it again: Ctrl-b R in " + e.Command("attach")}, true
	case errors.Is(e.Err, embedded.ErrBusy):
		return judgement{failed, "busy", "its program does not read; try again later"}, true
	}
	var p *paneError
	if errors.As(e.Err, &p) {
		if len(p.Many) > 0 {
			return judgement{failed, "no-pane", "name it as %N"}, true
		}
		return judgement{failed, "no-pane", e.Command("ps --all") + " lists the panes"}, true
	}
	return judgement{}, false
}

// withinError is an attach from a terminal that the server would show.
type withinError struct{}

func (*withinError) Error() string {
	return "attach: this is a terminal of that server already, and would show itself"
}

// shown is the embedded client as attach wants it.
type shown struct {
	*embedded.Client
	exits chan host.Terminal
}

func newShown(ctx context.Context, c *embedded.Client) (shown, error) {
	events, err := c.Events(ctx)
	if err != nil {
		return shown{}, err
	}
	s := shown{c, make(chan host.Terminal, 16)}
	go func() {
		for e := range events {
			if e.What != "exited" {
				continue
			}
			select {
			case s.exits <- host.Terminal{Instance: c.Instance, ID: e.Terminal}:
			default: // who does not look now finds it dead when it does
			}
		}
	}()
	return s, nil
}

func (s shown) Exits() <-chan host.Terminal { return s.exits }

func (s shown) Gone() <-chan struct{} { return s.Done() }

func (s shown) Open(ctx context.Context, t host.Terminal, cols, rows int, tell func(attach.Event)) (attach.View, error) {
	v, err := s.Watch(ctx, t, cols, rows, tell)
	if err != nil {
		return nil, err
	}
	return &view{v}, nil
}

func (s shown) Scrollback(ctx context.Context, t host.Terminal) (string, error) {
	screen, err := s.ReadLooks(ctx, t, -1)
	return screen.Text, err
}

func (s shown) Shell(ctx context.Context, session, dir string) (host.Terminal, error) {
	started, err := s.Spawn(ctx, host.Spawn{Place: host.NewWindow, Session: session, Pane: host.PaneSpec{Start: host.Start{Mode: host.Shell, Dir: dir}}})
	if err != nil {
		return host.Terminal{}, err
	}
	return started.Terminal, started.Err
}

// view is a look at one terminal, which is another one of the client's after each Show.
type view struct{ *embedded.View }

func (v *view) Show(ctx context.Context, cols, rows int, tell func(attach.Event)) error {
	next, err := v.View.Show(ctx, cols, rows, tell)
	if err == nil {
		v.View = next
	}
	return err
}
