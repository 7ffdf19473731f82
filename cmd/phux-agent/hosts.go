package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/tmux"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/plugin"
)

// The one file that names a concrete host.

// hosted is the host of this run with what a probe found.
type hosted struct {
	host.Host
	info host.Info
	// caller asks which pane we run in: host.ErrNoTerminal where in none of this server's.
	caller func(context.Context) (here, error)
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
// one, else tmux where it is installed.
func (a *app) host(ctx context.Context) (*hosted, error) {
	kind, err := a.chooseHost()
	if err != nil {
		return nil, err
	}
	if kind != "tmux" {
		return nil, &hostKindError{Kind: kind}
	}
	h, err := a.tmux()
	if err != nil {
		return nil, err
	}
	out := &hosted{Host: h}
	if out.info, err = h.Info(ctx); err != nil {
		return nil, err
	}
	out.caller = func(ctx context.Context) (here, error) {
		if a.getenv("TMUX_PANE") == "" { // which saves asking the server
			return here{}, host.ErrNoTerminal
		}
		c, err := h.Caller(ctx)
		return here{c.Terminal, c.Session}, err
	}
	return out, nil
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
		if socket := env.getenv("PHUX_SOCKET"); socket != "" && !seen[socket] {
			// It says no pid: whether it stands above us shows in its own panes.
			said, seen[socket] = true, true
			b := &app{stdin: a.stdin, stdout: a.stdout, stderr: a.stderr, hostKind: "embedded"}
			b.environ = append(slices.Clone(a.environ), "PHUX_SOCKET="+socket, "PHUX_TERMINAL_ID="+env.getenv("PHUX_TERMINAL_ID"))
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
		b := &app{stdin: a.stdin, stdout: a.stdout, stderr: a.stderr, hostKind: "tmux"}
		b.environ = append(slices.Clone(a.environ), "TMUX="+value, "TMUX_PANE="+env.getenv("TMUX_PANE"))
		found = append(found, candidate{place, b})
	}
	slices.SortStableFunc(found, func(x, y candidate) int { return cmp.Compare(x.place, y.place) })
	for _, c := range found {
		apps = append(apps, c.app)
	}
	return apps, said
}

func (a *app) chooseHost() (string, error) {
	switch {
	case a.hostKind != "":
		return a.hostKind, nil
	case a.socketName != "" || a.socketPath != "":
		return "tmux", nil
	case a.getenv("TMUX") != "":
		return "tmux", nil
	}
	c, err := a.config()
	if err != nil {
		return "", err
	}
	if c.Host != "" {
		return c.Host, nil
	}
	return "tmux", nil
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
	})
}

// serverFlags are the flags that lead a person to the same server again, with a space after.
func (a *app) serverFlags() string {
	switch {
	case a.socketName != "":
		return "-L " + shellQuote(a.socketName) + " "
	case a.socketPath != "":
		return "-S " + shellQuote(a.socketPath) + " "
	}
	return ""
}

// attached reports whether we run in a pane of that server, where nobody needs to be told how to
// attach to it.
func (a *app) attached(info host.Info) bool {
	socket := info.Instance.Socket
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
	if strings.Contains(session, ".") && !strings.Contains(session, ":") {
		session += ":" // else the point ends the name
	}
	return fmt.Sprintf(info.Attach, strings.ReplaceAll(session, "'", `'\''`))
}

// hostKindError is a host that this program does not have.
type hostKindError struct{ Kind string }

func (e *hostKindError) Error() string {
	if e.Kind == "embedded" {
		return `open host "embedded": it is not built yet`
	}
	return fmt.Sprintf("open host %q: no such host", e.Kind)
}

// noTmuxError is a machine without tmux.
type noTmuxError struct{ Err error }

func (e *noTmuxError) Error() string { return "open host \"tmux\": " + e.Err.Error() }
func (e *noTmuxError) Unwrap() error { return e.Err }
