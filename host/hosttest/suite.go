// Package hosttest is the one suite that every body of host.Host passes: it checks what the
// interface promises, on whatever the factory hands over.
//
// A body's test binary calls Main at the beginning of its TestMain, so that the suite can use
// the binary as the program in a pane:
//
//	func TestMain(m *testing.M) {
//		if code, ok := hosttest.Main(os.Args[1:], os.Stdout); ok {
//			os.Exit(code)
//		}
//		os.Exit(m.Run())
//	}
//
//	func TestHost(t *testing.T) { hosttest.Run(t, newHarness) }
package hosttest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

// Factory makes a harness around a server of its own, which is not running yet. It registers
// the cleanup. Every subtest calls it once. The server is to have this process's environment.
type Factory func(t *testing.T) *Harness

// Harness is a body under test, and what only its author can do to it.
type Harness struct {
	Host host.Host
	// Second is another client of the same server, as another process would have it. Nil: Host
	// has no state of its own, and is used twice.
	Second func(t *testing.T) host.Host
	// Restart ends the server's life, as kill-server does. The next Create starts another.
	Restart func(t *testing.T)
	Caps    Caps

	// Child is a process that is another client of the same server, and calls Serve: it is
	// killed in the middle of its work. Nil where a body has no clients in other processes.
	Child func(t *testing.T) *exec.Cmd

	// What a user can do beside us. Nil skips what needs it.

	Move    func(t *testing.T, term host.Terminal) // to another window, by the host's own means
	Respawn func(t *testing.T, term host.Terminal) // puts another program into the terminal
}

// Caps says what this body cannot do, so that nothing is skipped in silence.
type Caps struct {
	// NoPrograms: it starts none (memory).
	NoPrograms bool
	// Shows reports whether the host can show this text byte for byte: "title", "window",
	// "session" (names), "dir". Nil: all that the suite asks for. What a host cannot show, it
	// must still not garble anything by.
	Shows func(what, text string) bool
}

// deadline bounds every wait for something that must come about. In a host that was broken on
// purpose it does not.
func deadline() time.Duration {
	if os.Getenv(faultEnv) != "" {
		return 3 * time.Second
	}
	return 20 * time.Second
}

var groups = []struct {
	name  string
	tests []test
}{
	{"info", infoTests},
	{"create", createTests},
	{"spawn", spawnTests},
	{"metadata", metadataTests},
	{"layout", layoutTests},
	{"program", programTests},
	{"text", textTests},
	{"killed", killedTests},
}

// Run checks the body.
func Run(t *testing.T, factory Factory) {
	for _, group := range groups {
		t.Run(group.name, func(t *testing.T) {
			for _, tt := range group.tests {
				t.Run(tt.name, func(t *testing.T) {
					// What a server inherits when it is started from a pane of ours, or
					// from within an agent.
					for _, k := range []string{inherited, scrubbed, host.BirthEnv} {
						t.Setenv(k, "inherited")
					}
					// Cleanups run backwards: the programs are to be gone before their directory.
					log := t.TempDir()
					r := &rig{Harness: factory(t), t: t, log: log}
					r.Host = breakHost(r.Host)
					if tt.programs && r.Caps.NoPrograms {
						t.Skip("this body runs no programs")
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					r.ctx = ctx
					tt.run(r)
				})
			}
		})
	}
}

type test struct {
	name     string
	programs bool // needs a body that runs programs
	run      func(r *rig)
}

// rig is one subtest's host and its tools.
type rig struct {
	*Harness
	t   *testing.T
	ctx context.Context
	log string // directory in which programs leave their runs
}

func (r *rig) second() host.Host {
	if r.Second == nil {
		return r.Host
	}
	return breakHost(r.Second(r.t))
}

// until polls a condition, which says what it lacks.
func (r *rig) until(lacks func() string) {
	r.t.Helper()
	last := ""
	for end := time.Now().Add(deadline()); ; {
		if last = lacks(); last == "" {
			return
		}
		if time.Now().After(end) {
			r.t.Fatalf("after %v: %s", deadline(), last)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// look is a snapshot; a workspace that changed meanwhile is looked at again.
func look(ctx context.Context, h host.Host) (*host.Workspace, error) {
	for {
		w, err := h.Snapshot(ctx)
		if !errors.Is(err, host.ErrChanged) {
			return w, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

func (r *rig) snapshot() *host.Workspace {
	r.t.Helper()
	w, err := look(r.ctx, r.Host)
	if err != nil {
		r.t.Fatalf("snapshot: %v", err)
	}
	return w
}

// names are the sessions that are there; none where no server runs.
func (r *rig) names() []string {
	r.t.Helper()
	w, err := look(r.ctx, r.Host)
	if errors.Is(err, host.ErrNoServer) {
		return nil
	}
	if err != nil {
		r.t.Fatalf("snapshot: %v", err)
	}
	var names []string
	for _, s := range w.Sessions {
		names = append(names, s.Name)
	}
	return names
}

func (r *rig) session(name string) *host.Session {
	r.t.Helper()
	s := session(r.snapshot(), name)
	if s == nil {
		r.t.Fatalf("no session %q", name)
	}
	return s
}

func session(w *host.Workspace, name string) *host.Session {
	for i := range w.Sessions {
		if w.Sessions[i].Name == name {
			return &w.Sessions[i]
		}
	}
	return nil
}

func pane(w *host.Workspace, t host.Terminal) *host.Pane {
	for _, s := range w.Sessions {
		for _, win := range s.Windows {
			for i := range win.Panes {
				if win.Panes[i].Terminal == t {
					return &win.Panes[i]
				}
			}
		}
	}
	return nil
}

func (r *rig) pane(t host.Terminal) *host.Pane {
	r.t.Helper()
	p := pane(r.snapshot(), t)
	if p == nil {
		r.t.Fatalf("no pane %v", t)
	}
	return p
}

func (r *rig) create(c host.CreateSession) *host.Created {
	r.t.Helper()
	out, err := r.Host.Create(r.ctx, c)
	if err != nil {
		r.t.Fatal(err)
	}
	for w := range out.Windows {
		for p, s := range out.Windows[w] {
			if s.Err != nil {
				r.t.Fatalf("window %d pane %d: %v", w, p, s.Err)
			}
		}
	}
	return out
}

func (r *rig) spawn(s host.Spawn) *host.Started {
	r.t.Helper()
	out, err := r.Host.Spawn(r.ctx, s)
	if err != nil {
		r.t.Fatal(err)
	}
	if out.Err != nil {
		r.t.Fatal(out.Err)
	}
	return out
}

// stay is a pane whose program is there until it is killed, with a record that names it.
func (r *rig) stay(name string) host.PaneSpec {
	return host.PaneSpec{Start: r.program(name, "stay"), Meta: records(name)}
}

func records(name string) map[metadata.Key][]byte {
	return map[metadata.Key][]byte{metadata.KeyAgentSession: record(name)}
}

func record(name string) []byte {
	return fmt.Appendf(nil, `{"plugin_id":"phux.agents","integration_id":"hosttest","native_id":%q}`, name)
}

// one is a session of one window with one pane that stays.
func (r *rig) one(name string) host.CreateSession {
	return sessionOf(name, r.stay(name))
}

func sessionOf(name string, panes ...host.PaneSpec) host.CreateSession {
	return host.CreateSession{Name: name, Windows: []host.WindowSpec{windowOf("w", panes...)}}
}

// windowOf tiles the panes in a window that has room for 60.
func windowOf(name string, panes ...host.PaneSpec) host.WindowSpec {
	layout, err := host.Split(200, 60, len(panes))
	if err != nil {
		panic(err)
	}
	return host.WindowSpec{Name: name, Index: -1, Layout: layout, Panes: panes}
}

func (r *rig) shows(what, text string) bool {
	return r.Caps.Shows == nil || r.Caps.Shows(what, text)
}

// dir makes a directory of that name, its path free of links.
func (r *rig) dir(name string) string {
	r.t.Helper()
	root, err := filepath.EvalSymlinks(r.t.TempDir())
	if err != nil {
		r.t.Fatal(err)
	}
	dir := filepath.Join(root, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		r.t.Fatal(err)
	}
	return dir
}
