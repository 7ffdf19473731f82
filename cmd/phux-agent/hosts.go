package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/embedded"
	"github.com/phux-agent/phux-agent/host/tmux"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/plugin"
)

// The one file that names a concrete host, but for pane-exec, which one of them starts, and the
// verbs that only one host has: the embedded one's own, and tmux's plugin.

// hosted is the host of this run with what a probe found.
type hosted struct {
	host.Host
	info host.Info // only the Server of one that lookable has not probed
	// caller asks which pane we run in: host.ErrNoTerminal where in none of this server's.
	caller func(context.Context) (here, error)
	// standsIn: nobody chose this host, but the one that would be chosen is not installed.
	standsIn bool
}

// here is the pane that we run in, and its session.
type here struct {
	terminal host.Terminal
	session  string
}

// sessionName is the name as this host can hold it.
func (h *hosted) sessionName(want string) string {
	if n, ok := h.Host.(host.Namer); ok {
		return n.SessionName(want)
	}
	return want
}

// host opens and probes the host: --host, else the one whose pane we are in, else the configured
// one, else tmux where it is installed, else our own.
func (a *app) host(ctx context.Context) (*hosted, error) {
	h, err := a.openHost()
	if err != nil {
		return nil, err
	}
	return h, h.probe(ctx)
}

// lookable is host for a verb that looks at the whole workspace: where the look says who the host
// is, it is not asked before.
func (a *app) lookable(ctx context.Context) (*hosted, error) {
	h, err := a.openHost()
	if err != nil {
		return nil, err
	}
	if l, ok := h.Host.(host.Looker); ok {
		h.info.Server = l.ServerName()
		return h, nil
	}
	if err := h.probe(ctx); err != nil {
		return nil, err
	}
	if !h.info.Running {
		return nil, host.ErrNoServer
	}
	return h, nil
}

// probe asks the host who it is.
func (h *hosted) probe(ctx context.Context) (err error) {
	if h.info, err = h.Info(ctx); h.standsIn && !h.info.Running {
		// Said once: with the first thing that is made there.
		h.info.Warnings = append(h.info.Warnings, `tmux is not installed: the embedded host stands in (host = "embedded" in the configuration chooses it)`)
	}
	return err
}

// openHost opens the host that is meant, and asks it nothing.
func (a *app) openHost() (*hosted, error) {
	kind, chosen, err := a.chooseHost()
	if err != nil {
		return nil, err
	}
	var out *hosted
	fallback := false
	switch kind {
	case tmux.Kind:
		out, err = a.tmuxHost()
		if missing := (*noTmuxError)(nil); errors.As(err, &missing) && !chosen {
			fallback, a.hostKind = true, embedded.Kind
			out, err = a.embeddedHost()
		}
	case embedded.Kind:
		out, err = a.embeddedHost()
	default:
		err = &hostKindError{Kind: kind}
	}
	if err != nil {
		return nil, err
	}
	out.standsIn = fallback
	return out, nil
}

func (a *app) tmuxHost() (*hosted, error) {
	h, err := a.tmux()
	if err != nil {
		return nil, err
	}
	return &hosted{Host: h, caller: func(ctx context.Context) (here, error) {
		if a.getenv("TMUX_PANE") == "" { // which saves asking the server
			return here{}, host.ErrNoTerminal
		}
		c, err := h.Caller(ctx)
		return here{c.Terminal, c.Session}, err
	}}, nil
}

func (a *app) embeddedHost() (*hosted, error) {
	h, err := a.embedded()
	if err != nil {
		return nil, err
	}
	return &hosted{Host: h, caller: func(ctx context.Context) (here, error) {
		if a.getenv(embedded.EnvTerminal) == "" {
			return here{}, host.ErrNoTerminal
		}
		c, err := h.Caller(ctx)
		return here{c.Terminal, c.Session}, err
	}}, nil
}

// embeddedServer is the name and socket of the server of ours that is meant: -L, else the one
// whose terminal we are in, else the default one.
func (a *app) embeddedServer() (name, socket string, err error) {
	if a.socketPath != "" {
		return "", "", &hostFlagError{}
	}
	if a.socketName == "" {
		socket = a.getenv(embedded.EnvSocket)
		name = strings.TrimSuffix(filepath.Base(socket), ".sock")
		if filepath.IsAbs(socket) && embedded.CheckName(name) == nil {
			return name, socket, nil
		}
	}
	name = cmp.Or(a.socketName, embedded.DefaultName)
	if err := embedded.CheckName(name); err != nil {
		return "", "", err
	}
	d, err := a.dirs()
	return name, embedded.SocketPath(d.Runtime, name), err
}

func (a *app) embedded() (*embedded.Host, error) {
	name, socket, err := a.embeddedServer()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	d, err := a.dirs()
	if err != nil {
		return nil, err
	}
	attach := "phux-agent --host embedded attach '%s'"
	if name != embedded.DefaultName {
		attach = "phux-agent --host embedded -L " + name + " attach '%s'"
	}
	return embedded.New(embedded.Options{
		Name: name, Socket: socket, Log: filepath.Join(d.State, "server-"+name+".log"), Version: programVersion(),
		Command: []string{self, "--host", "embedded", "-L", name, "server", "run"}, Environ: a.environ, Getenv: a.getenv, Attach: attach,
	})
}

// above returns the hosts, by an app for each, that may be above this process: chain is this
// process and what stands above it, nearest first. An environment says where a server may be
// asked, and nothing more: only a server that stands in the chain itself is asked. said is true
// where an environment named some server at all.
func (a *app) above(chain []proc.Info) (apps []*app, said bool) {
	at := map[int]int{} // pid: its place in the chain
	for i, p := range chain {
		at[p.PID] = i
	}
	type candidate struct {
		place int
		app   *app
	}
	var found []candidate
	seen := map[string]bool{}
	for i, p := range chain {
		environ := a.environ
		if i > 0 {
			var err error
			if environ, err = proc.Environ(p.PID); err != nil {
				continue
			}
		}
		env := &app{environ: environ}
		if socket := env.getenv(embedded.EnvSocket); socket != "" && !seen[socket] {
			// It says no pid: whether it stands above us shows in its own panes.
			said, seen[socket] = true, true
			b := &app{stdin: a.stdin, stdout: a.stdout, stderr: a.stderr, hostKind: embedded.Kind}
			b.environ = append(slices.Clone(a.environ), embedded.EnvSocket+"="+socket, embedded.EnvTerminal+"="+env.getenv(embedded.EnvTerminal))
			found = append(found, candidate{i, b})
		}
		value := env.getenv("TMUX")
		said = said || value != ""
		parts := strings.Split(value, ",")
		if len(parts) < 3 || seen[value] {
			continue
		}
		seen[value] = true
		pid, err := strconv.Atoi(parts[len(parts)-2])
		place, ok := at[pid]
		if err != nil || !ok || pid <= 1 {
			continue
		}
		b := &app{stdin: a.stdin, stdout: a.stdout, stderr: a.stderr, hostKind: tmux.Kind}
		b.environ = append(slices.Clone(a.environ), "TMUX="+value, "TMUX_PANE="+env.getenv("TMUX_PANE"))
		found = append(found, candidate{place, b})
	}
	slices.SortStableFunc(found, func(x, y candidate) int { return cmp.Compare(x.place, y.place) })
	for _, c := range found {
		apps = append(apps, c.app)
	}
	return apps, said
}

// inPane reports an environment that some pane gave.
func (a *app) inPane() bool {
	return a.getenv("TMUX_PANE") != "" || a.getenv(embedded.EnvTerminal) != ""
}

// unprobed opens one of above's hosts, and asks it nothing yet.
func (a *app) unprobed() (*hosted, error) {
	if a.hostKind == embedded.Kind {
		return a.embeddedHost()
	}
	return a.tmuxHost()
}

// chooseHost names the host; chosen says that somebody did choose it, and so no other will do.
func (a *app) chooseHost() (kind string, chosen bool, err error) {
	switch {
	case a.hostKind != "":
		return a.hostKind, true, nil
	case a.socketPath != "":
		return tmux.Kind, true, nil
	case a.socketName != "": // of the configured host
	case a.getenv("TMUX") != "":
		return tmux.Kind, true, nil
	case a.getenv(embedded.EnvSocket) != "" && a.getenv(embedded.EnvTerminal) != "":
		return embedded.Kind, true, nil
	}
	c, err := a.config()
	if err != nil {
		return "", false, err
	}
	if c.Host != "" {
		return c.Host, true, nil
	}
	return tmux.Kind, false, nil
}

func (a *app) tmux() (*tmux.Host, error) {
	path := a.getenv("PATH")
	name := a.getenv("PHUX_TEST_TMUX")
	if name == "" {
		name = "tmux"
	}
	program, err := plugin.LookProgram(name, path)
	if err != nil {
		return nil, &noTmuxError{err}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	runtime, err := a.runtime()
	if err != nil {
		return nil, err
	}
	return tmux.New(tmux.Options{
		Tmux: program, Name: a.socketName, Path: a.socketPath, Self: self, RuntimeDir: runtime, Getenv: a.getenv,
		ServerOf: a.serverOf,
	})
}

// serverFlags are the flags that lead a person to the same server again, with a space after.
func (a *app) serverFlags() string {
	flags := ""
	if a.hostKind == embedded.Kind {
		flags = "--host embedded "
	}
	switch {
	case a.socketName != "":
		return flags + "-L " + shellQuote(a.socketName) + " "
	case a.socketPath != "":
		return flags + "-S " + shellQuote(a.socketPath) + " "
	}
	return flags
}

// attached reports whether we run in a pane of that server, where nobody needs to be told how to
// attach to it.
func (a *app) attached(info host.Info) bool {
	socket := info.Instance.Socket
	if info.Kind == embedded.Kind {
		return socket != "" && a.getenv(embedded.EnvSocket) == socket
	}
	return socket != "" && strings.HasPrefix(a.getenv("TMUX"), socket+",")
}

// warnSettings says which settings of the server will hurt, before anything is made there.
func (a *app) warnSettings(h *hosted) {
	for _, w := range h.info.Warnings {
		a.warn("%s", w)
	}
}

// attachHint is the command that brings a session before a person's eyes. Info.Attach has the
// name between single quotes.
func attachHint(info host.Info, session string) string {
	if info.Attach == "" {
		return ""
	}
	if info.Kind == tmux.Kind && strings.Contains(session, ".") && !strings.Contains(session, ":") {
		session += ":" // else the point ends the name
	}
	return fmt.Sprintf(info.Attach, strings.ReplaceAll(session, "'", `'\''`))
}

// hostKindError is a host that this program does not have.
type hostKindError struct{ Kind string }

func (e *hostKindError) Error() string { return fmt.Sprintf("open host %q: no such host", e.Kind) }

// hostFlagError is a flag that the embedded host does not have.
type hostFlagError struct{}

func (*hostFlagError) Error() string {
	return `open host "embedded": its servers are found by name, not by the path of a socket`
}

// noTmuxError is a machine without tmux.
type noTmuxError struct{ Err error }

func (e *noTmuxError) Error() string { return "open host \"tmux\": " + e.Err.Error() }
func (e *noTmuxError) Unwrap() error { return e.Err }
