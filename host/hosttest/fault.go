package hosttest

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

// A fault breaks one promise of a host that keeps it, and one test must see that.
type fault struct {
	name     string
	fails    string // group/test
	programs bool   // only a body that runs programs can show it
	spoil    func(b *broken)
}

// faultEnv makes Run break the host in this way.
const faultEnv = "HOSTTEST_FAULT"

// Prove runs the test of that name, which calls Run, once for each promise with that promise
// broken, and reports where the suite did not see it: a check that cannot fail checks nothing.
func Prove(t *testing.T, name string, caps Caps) {
	if os.Getenv(faultEnv) != "" {
		t.Skip("already within")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			if f.programs && caps.NoPrograms {
				t.Skip("this body runs no programs")
			}
			group, test, _ := strings.Cut(f.fails, "/")
			pattern := func(s string) string { return "^" + regexp.QuoteMeta(strings.ReplaceAll(s, " ", "_")) + "$" }
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, self, "-test.run", pattern(name)+"/"+pattern(group)+"/"+pattern(test), "-test.timeout", "50s", "-test.v")
			cmd.Env = append(os.Environ(), faultEnv+"="+f.name)
			out, err := cmd.CombinedOutput()
			if err == nil && bytes.Contains(out, []byte("--- SKIP: "+name+"/"+strings.ReplaceAll(f.fails, " ", "_"))) {
				t.Skipf("this body does not run %s", f.fails)
			}
			var exit *exec.ExitError
			if !errors.As(err, &exit) || !bytes.Contains(out, []byte("--- FAIL: "+name+"/"+strings.ReplaceAll(f.fails, " ", "_"))) {
				t.Errorf("with %q broken %s ends with %v:\n%s", f.name, f.fails, err, out)
			}
		})
	}
}

// broken is a host that answers as it should, but for what is set.
type broken struct {
	host.Host
	info   func(host.Info) host.Info
	create func(context.Context, host.CreateSession) (*host.Created, error)
	spawn  func(context.Context, host.Spawn) (*host.Started, error)
	swap   func(context.Context, host.Terminal, metadata.Key, []byte, []byte) error
	kill   func(context.Context, host.Terminal) error
	put    func(host.Replacer, context.Context, host.Terminal, host.Occupant, host.PaneSpec) (*host.Started, error)
	see    func(*host.Workspace)
	words  func(string) string
}

// brokenMore is broken where the host offers all that a host may.
type brokenMore struct {
	*broken
	host.Binder
	host.Focuser
}

// brokenAsider is one that sets sessions aside besides.
type brokenAsider struct {
	*brokenReplacer
	host.Asider
}

// brokenReplacer is one that replaces what terminals run besides.
type brokenReplacer struct {
	*brokenMore
	of host.Replacer
}

func (b *brokenReplacer) Replace(ctx context.Context, t host.Terminal, was host.Occupant, p host.PaneSpec) (*host.Started, error) {
	if b.put != nil {
		return b.put(b.of, ctx, t, was, p)
	}
	return b.of.Replace(ctx, t, was, p)
}

func (b *brokenMore) LastWords(ctx context.Context, t host.Terminal, most int) (string, error) {
	s, err := b.Host.(host.Reader).LastWords(ctx, t, most)
	if b.words != nil {
		s = b.words(s)
	}
	return s, err
}

// breakHost applies the fault that the environment names.
func breakHost(h host.Host) host.Host {
	for _, f := range faults {
		if f.name == os.Getenv(faultEnv) {
			b := &broken{Host: h}
			f.spoil(b)
			_, reads := h.(host.Reader)
			binder, binds := h.(host.Binder)
			focuser, focuses := h.(host.Focuser)
			if reads && binds && focuses {
				more := &brokenMore{b, binder, focuser}
				replacer, ok := h.(host.Replacer)
				if !ok {
					return more
				}
				if asider, ok := h.(host.Asider); ok {
					return &brokenAsider{&brokenReplacer{more, replacer}, asider}
				}
				return &brokenReplacer{more, replacer}
			}
			return b
		}
	}
	return h
}

func (b *broken) Info(ctx context.Context) (host.Info, error) {
	i, err := b.Host.Info(ctx)
	if b.info != nil {
		i = b.info(i)
	}
	return i, err
}

func (b *broken) Snapshot(ctx context.Context) (*host.Workspace, error) {
	w, err := b.Host.Snapshot(ctx)
	if b.see != nil && err == nil {
		b.see(w)
	}
	return w, err
}

func (b *broken) Create(ctx context.Context, c host.CreateSession) (*host.Created, error) {
	if b.create != nil {
		return b.create(ctx, c)
	}
	return b.Host.Create(ctx, c)
}

func (b *broken) Spawn(ctx context.Context, s host.Spawn) (*host.Started, error) {
	if b.spawn != nil {
		return b.spawn(ctx, s)
	}
	return b.Host.Spawn(ctx, s)
}

func (b *broken) Swap(ctx context.Context, t host.Terminal, k metadata.Key, old, new []byte) error {
	if b.swap != nil {
		return b.swap(ctx, t, k, old, new)
	}
	return b.Host.Swap(ctx, t, k, old, new)
}

func (b *broken) Kill(ctx context.Context, t host.Terminal) error {
	if b.kill != nil {
		return b.kill(ctx, t)
	}
	return b.Host.Kill(ctx, t)
}

// panes changes each pane that is asked for.
func (b *broken) panes(change func(*host.PaneSpec)) {
	b.sessions(func(c *host.CreateSession) {
		for w := range c.Windows {
			for p := range c.Windows[w].Panes {
				change(&c.Windows[w].Panes[p])
			}
		}
	})
	b.spawn = func(ctx context.Context, s host.Spawn) (*host.Started, error) {
		s.Pane = copyPane(s.Pane)
		change(&s.Pane)
		return b.Host.Spawn(ctx, s)
	}
}

// starts changes each program that is asked for.
func (b *broken) starts(change func(*host.Start)) {
	b.panes(func(p *host.PaneSpec) { change(&p.Start) })
}

// values changes each value that is to be stored.
func (b *broken) values(change func([]byte) []byte) {
	b.panes(func(p *host.PaneSpec) {
		for k, v := range p.Meta {
			p.Meta[k] = change(v)
		}
	})
	b.swap = func(ctx context.Context, t host.Terminal, k metadata.Key, old, new []byte) error {
		return b.Host.Swap(ctx, t, k, change(old), change(new))
	}
}

func (b *broken) sessions(change func(*host.CreateSession)) {
	b.create = func(ctx context.Context, c host.CreateSession) (*host.Created, error) {
		c = copySession(c)
		change(&c)
		return b.Host.Create(ctx, c)
	}
}

func copySession(c host.CreateSession) host.CreateSession {
	c.Windows = slices.Clone(c.Windows)
	for w := range c.Windows {
		c.Windows[w].Panes = slices.Clone(c.Windows[w].Panes)
		for p := range c.Windows[w].Panes {
			c.Windows[w].Panes[p] = copyPane(c.Windows[w].Panes[p])
		}
	}
	return c
}

func copyPane(p host.PaneSpec) host.PaneSpec {
	p.Meta = maps.Clone(p.Meta)
	p.Start.Argv = slices.Clone(p.Start.Argv)
	return p
}

// force swaps whatever is there.
func force(ctx context.Context, h host.Host, t host.Terminal, k metadata.Key, v []byte) error {
	w, err := look(ctx, h)
	if err != nil {
		return err
	}
	p := pane(w, t)
	if p == nil {
		return host.ErrNoTerminal
	}
	return h.Swap(ctx, t, k, p.Meta[k], v)
}

// unhurried leaves observers the time to see what stands open.
func unhurried() { time.Sleep(10 * time.Millisecond) }

var faults = []fault{
	{name: "a server seen where none runs", fails: "info/no server", spoil: func(b *broken) {
		b.info = func(i host.Info) host.Info { i.Running = true; return i }
	}},
	{name: "capability kept quiet", fails: "info/server", spoil: func(b *broken) {
		b.info = func(i host.Info) host.Info { i.AtomicRecord = i.Running; return i }
	}},
	{name: "terminals of any life", fails: "info/restart", spoil: func(b *broken) {
		now := func(ctx context.Context, t host.Terminal) host.Terminal {
			if i, err := b.Host.Info(ctx); err == nil && i.Running {
				t.Instance = i.Instance
			}
			return t
		}
		b.swap = func(ctx context.Context, t host.Terminal, k metadata.Key, old, new []byte) error {
			return b.Host.Swap(ctx, now(ctx, t), k, old, new)
		}
	}},
	{name: "context ignored", fails: "info/cancelled", spoil: func(b *broken) {
		b.create = func(ctx context.Context, c host.CreateSession) (*host.Created, error) {
			return b.Host.Create(context.WithoutCancel(ctx), c)
		}
	}},
	{name: "one record lost", fails: "create/whole", spoil: loseRecord},
	{name: "answer in another order", fails: "create/whole", spoil: func(b *broken) {
		b.create = func(ctx context.Context, c host.CreateSession) (*host.Created, error) {
			out, err := b.Host.Create(ctx, c)
			if err == nil {
				slices.Reverse(out.Windows[0])
			}
			return out, err
		}
	}},
	{name: "record after the session", fails: "create/seen whole or not at all", spoil: func(b *broken) {
		b.create = func(ctx context.Context, c host.CreateSession) (*host.Created, error) {
			bare := copySession(c)
			for w := range bare.Windows {
				for p := range bare.Windows[w].Panes {
					bare.Windows[w].Panes[p].Meta[metadata.KeyAgentSession] = []byte("not yet")
				}
			}
			out, err := b.Host.Create(ctx, bare)
			if err != nil {
				return nil, err
			}
			unhurried()
			for w := range out.Windows {
				for p, s := range out.Windows[w] {
					if err := force(ctx, b.Host, s.Terminal, metadata.KeyAgentSession, c.Windows[w].Panes[p].Meta[metadata.KeyAgentSession]); err != nil {
						return nil, err
					}
				}
			}
			return out, nil
		}
	}},
	{name: "record after the pane", fails: "spawn/record from the first instant", spoil: lateRecord},
	{name: "window by window", fails: "create/seen whole or not at all", spoil: func(b *broken) {
		b.create = func(ctx context.Context, c host.CreateSession) (*host.Created, error) {
			first := c
			first.Windows, first.Active = c.Windows[:1], 0
			out, err := b.Host.Create(ctx, first)
			unhurried()
			return out, err
		}
	}},
	{name: "another name where it is taken", fails: "create/name in use", spoil: otherName},
	{name: "two winners", fails: "create/one winner", spoil: otherName},
	{name: "a session in spite of it", fails: "create/refused leaves nothing", spoil: func(b *broken) {
		b.create = func(ctx context.Context, c host.CreateSession) (*host.Created, error) {
			out, err := b.Host.Create(ctx, c)
			if err != nil {
				rest := copySession(c)
				rest.Name, rest.Windows, rest.Active = "rest", []host.WindowSpec{windowOf("w", host.PaneSpec{})}, 0
				_, _ = b.Host.Create(ctx, rest)
			}
			return out, err
		}
	}},
	{name: "done, and an error said", fails: "create/given up", spoil: func(b *broken) {
		b.create = func(ctx context.Context, c host.CreateSession) (*host.Created, error) {
			out, err := b.Host.Create(context.WithoutCancel(ctx), c)
			if _, bounded := ctx.Deadline(); bounded && ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return out, err
		}
	}},
	{name: "killing nothing succeeds", fails: "create/kill", spoil: func(b *broken) {
		b.kill = func(ctx context.Context, t host.Terminal) error {
			err := b.Host.Kill(ctx, t)
			if errors.Is(err, host.ErrNoTerminal) {
				return nil
			}
			return err
		}
	}},
	{name: "room made by ending what is there", fails: "create/set aside", spoil: func(b *broken) {
		b.create = func(ctx context.Context, c host.CreateSession) (*host.Created, error) {
			if c.Aside != nil {
				if err := b.Host.Kill(ctx, c.Aside.Terminal); err != nil {
					return nil, err
				}
				c.Aside = nil
			}
			return b.Host.Create(ctx, c)
		}
	}},
	{name: "replacing whatever is there", fails: "spawn/replace", spoil: func(b *broken) {
		b.put = func(r host.Replacer, ctx context.Context, t host.Terminal, was host.Occupant, p host.PaneSpec) (*host.Started, error) {
			if w, err := b.Host.Snapshot(ctx); err == nil {
				for _, s := range w.Sessions {
					for _, win := range s.Windows {
						for _, q := range win.Panes {
							if q.Terminal == t {
								was = host.Occupant{PID: q.PID, Command: q.Command}
							}
						}
					}
				}
			}
			return r.Replace(ctx, t, was, p)
		}
	}},
	{name: "replacing without the record", fails: "spawn/replace", spoil: func(b *broken) {
		b.put = func(r host.Replacer, ctx context.Context, t host.Terminal, was host.Occupant, p host.PaneSpec) (*host.Started, error) {
			p.Meta = nil
			return r.Replace(ctx, t, was, p)
		}
	}},
	{name: "index forgotten", fails: "create/indexes, active, zoom", spoil: func(b *broken) {
		b.sessions(func(c *host.CreateSession) {
			for w := range c.Windows {
				c.Windows[w].Index = -1
			}
		})
	}},
	{name: "active pane forgotten", fails: "create/indexes, active, zoom", spoil: func(b *broken) {
		b.sessions(func(c *host.CreateSession) {
			for w := range c.Windows {
				c.Windows[w].Active = 0
			}
		})
	}},
	{name: "active window forgotten", fails: "create/indexes, active, zoom", spoil: func(b *broken) {
		b.sessions(func(c *host.CreateSession) { c.Active = 0 })
	}},
	{name: "zoom forgotten", fails: "layout/unzoomed", spoil: func(b *broken) {
		b.sessions(func(c *host.CreateSession) {
			for w := range c.Windows {
				c.Windows[w].Zoomed = false
			}
		})
	}},
	{name: "automatic name forgotten", fails: "create/automatic name", spoil: func(b *broken) {
		b.sessions(func(c *host.CreateSession) {
			for w := range c.Windows {
				c.Windows[w].AutomaticName = false
			}
		})
	}},
	{name: "session directory forgotten", fails: "create/session directory", spoil: func(b *broken) {
		b.sessions(func(c *host.CreateSession) { c.Dir = "" })
	}},
	{name: "prefix is enough", fails: "spawn/nowhere", spoil: func(b *broken) {
		b.spawn = func(ctx context.Context, s host.Spawn) (*host.Started, error) {
			if s.Session == "wor" {
				s.Session = "work"
			}
			return b.Host.Spawn(ctx, s)
		}
	}},
	{name: "always beside", fails: "spawn/split", spoil: func(b *broken) {
		b.spawn = func(ctx context.Context, s host.Spawn) (*host.Started, error) {
			if s.Place == host.SplitV {
				s.Place = host.SplitH
			}
			return b.Host.Spawn(ctx, s)
		}
	}},
	{name: "always in front", fails: "spawn/window", spoil: func(b *broken) {
		b.spawn = func(ctx context.Context, s host.Spawn) (*host.Started, error) {
			s.Background = false
			return b.Host.Spawn(ctx, s)
		}
	}},
	{name: "values lose a last semicolon", fails: "metadata/spawned byte for byte", spoil: loseSemicolon},
	{name: "created values lose a last semicolon", fails: "metadata/created byte for byte", spoil: loseSemicolon},
	{name: "swapped values lose a last semicolon", fails: "metadata/swapped byte for byte", spoil: loseSemicolon},
	{name: "controls shown as text", fails: "metadata/created byte for byte", spoil: func(b *broken) {
		b.each(func(p *host.Pane) {
			for k, v := range p.Meta {
				p.Meta[k] = bytes.ReplaceAll(v, []byte("\x1b"), []byte(`\033`))
			}
		})
	}},
	{name: "swap without a look", fails: "metadata/swap", spoil: blind},
	{name: "swap for everybody", fails: "metadata/swap has one winner", spoil: blind},
	{name: "no tombstone", fails: "metadata/swap", spoil: func(b *broken) {
		b.swap = func(ctx context.Context, t host.Terminal, k metadata.Key, old, new []byte) error {
			if k == metadata.KeyAgentSession && new == nil && old != nil {
				new = record("work-0-0")
			}
			return b.Host.Swap(ctx, t, k, old, new)
		}
	}},
	{name: "values outlive", fails: "metadata/dies with its terminal", spoil: func(b *broken) {
		var last map[metadata.Key][]byte
		b.panes(func(p *host.PaneSpec) {
			if len(p.Meta) == 0 {
				p.Meta = maps.Clone(last)
			} else {
				last = p.Meta
			}
		})
	}},
	{name: "values stay behind", fails: "metadata/follows its terminal", spoil: func(b *broken) {
		b.see = func(w *host.Workspace) {
			for _, s := range w.Sessions {
				if len(s.Windows) == 3 {
					for _, win := range s.Windows {
						if len(win.Panes) == 1 {
							clear(win.Panes[0].Meta)
						}
					}
				}
			}
		}
	}},
	{name: "replaced unnoticed", fails: "metadata/replaced", spoil: func(b *broken) {
		b.each(func(p *host.Pane) { p.Origin = host.Ours })
	}},
	{name: "layout tiled", fails: "layout/equal to the cell", spoil: func(b *broken) {
		b.sessions(func(c *host.CreateSession) {
			for w, win := range c.Windows {
				if l, err := host.Split(win.Layout.Cols, win.Layout.Rows, len(win.Panes)); err == nil {
					c.Windows[w].Layout = l
				}
			}
		})
	}},
	{name: "one size for all", fails: "layout/windows of several sizes", spoil: func(b *broken) {
		b.sessions(func(c *host.CreateSession) {
			for w, win := range c.Windows {
				if l, err := win.Layout.Fit(80, 24); err == nil {
					c.Windows[w].Layout = l
				}
			}
		})
	}},
	{name: "window names expanded", fails: "text/window names", spoil: func(b *broken) {
		b.sessions(func(c *host.CreateSession) {
			for w := range c.Windows {
				c.Windows[w].Name = strings.ReplaceAll(c.Windows[w].Name, "#{pid}", "1")
			}
		})
	}},
	{name: "titles forgotten", fails: "text/titles", spoil: func(b *broken) {
		b.panes(func(p *host.PaneSpec) { p.Title = "" })
	}},
	{name: "session names changed", fails: "text/session names", spoil: func(b *broken) {
		b.sessions(func(c *host.CreateSession) { c.Name = strings.NewReplacer(".", "_", ":", "_").Replace(c.Name) })
	}},

	{name: "records lost side by side", fails: "create/side by side", spoil: loseRecord},
	{name: "windows in another order", fails: "create/next free index", spoil: func(b *broken) {
		b.sessions(func(c *host.CreateSession) { slices.Reverse(c.Windows) })
	}},
	{name: "one record for all", fails: "spawn/from many sides", spoil: func(b *broken) {
		b.panes(func(p *host.PaneSpec) { p.Meta = records("p0") })
	}},
	{name: "no word about space", fails: "spawn/no space", spoil: func(b *broken) {
		b.spawn = func(ctx context.Context, s host.Spawn) (*host.Started, error) {
			out, err := b.Host.Spawn(ctx, s)
			if errors.Is(err, host.ErrNoSpace) {
				err = errors.New("it did not work")
			}
			return out, err
		}
	}},
	{name: "room for fifty", fails: "layout/sixty panes", spoil: func(b *broken) {
		b.sessions(func(c *host.CreateSession) {
			if w := &c.Windows[0]; len(w.Panes) > 50 {
				*w = windowOf(w.Name, w.Panes[:50]...)
			}
		})
	}},
	{name: "ten windows", fails: "layout/many windows", spoil: func(b *broken) {
		b.sessions(func(c *host.CreateSession) { c.Windows = c.Windows[:min(10, len(c.Windows))] })
	}},
	{name: "sessions in another directory", fails: "text/session directories", spoil: func(b *broken) {
		b.sessions(func(c *host.CreateSession) { c.Dir = "/" })
	}},

	{name: "bound to nobody", fails: "metadata/bound", programs: true, spoil: func(b *broken) {
		b.each(func(p *host.Pane) {
			if p.Origin == host.BoundGone {
				p.Origin = host.Bound
			}
		})
	}},
	{name: "no word about a deleted directory", fails: "program/a directory that is deleted", programs: true, spoil: func(b *broken) {
		b.each(func(p *host.Pane) { p.DirGone = false })
	}},
	{name: "killed is done", fails: "program/killed by a signal", programs: true, spoil: func(b *broken) {
		b.each(func(p *host.Pane) {
			if p.Dead {
				p.Exit = new(host.Exit)
			}
		})
	}},
	{name: "last words in colour", fails: "program/last words", programs: true, spoil: func(b *broken) {
		b.words = func(s string) string { return "\x1b[0m" + s }
	}},
	{name: "killed between windows", fails: "killed/create", programs: true, spoil: func(b *broken) {
		b.create = func(ctx context.Context, c host.CreateSession) (*host.Created, error) {
			first := c
			first.Windows, first.Active = c.Windows[:1], 0
			return b.Host.Create(ctx, first)
		}
	}},
	{name: "killed between pane and record", fails: "killed/spawn", programs: true, spoil: lateRecord},
	{name: "arguments lose a last semicolon", fails: "program/arguments byte for byte", programs: true, spoil: func(b *broken) {
		b.starts(func(s *host.Start) {
			for i := range s.Argv {
				s.Argv[i] = strings.TrimSuffix(s.Argv[i], ";")
			}
		})
	}},
	{name: "one word through a shell", fails: "program/one word", programs: true, spoil: func(b *broken) {
		b.starts(func(s *host.Start) {
			if len(s.Argv) == 1 {
				s.Argv = []string{"/bin/sh", "-c", s.Argv[0]}
			}
		})
	}},
	{name: "nothing scrubbed", fails: "program/environment", programs: true, spoil: func(b *broken) {
		b.starts(func(s *host.Start) { s.Unset = nil })
	}},
	{name: "a value not set", fails: "program/environment", programs: true, spoil: func(b *broken) {
		b.starts(func(s *host.Start) {
			if len(s.Set) > 1 {
				s.Set = s.Set[1:]
			}
		})
	}},
	{name: "environment as arguments", fails: "program/environment is in nobody's arguments", programs: true, spoil: func(b *broken) {
		b.starts(func(s *host.Start) { s.Argv = append(s.Argv, s.Set...) })
	}},
	{name: "another directory", fails: "program/directory byte for byte", programs: true, spoil: func(b *broken) {
		b.starts(func(s *host.Start) { s.Dir = "" })
	}},
	{name: "shell in another directory", fails: "program/shell in its directory", programs: true, spoil: func(b *broken) {
		b.starts(func(s *host.Start) { s.Dir = "/" })
	}},
	{name: "home instead of what is missing", fails: "program/shell in no directory", programs: true, spoil: func(b *broken) {
		b.starts(func(s *host.Start) { s.Dir = "" })
	}},
	{name: "every start succeeds", fails: "program/does not start", programs: true, spoil: func(b *broken) {
		b.create = func(ctx context.Context, c host.CreateSession) (*host.Created, error) {
			out, err := b.Host.Create(ctx, c)
			if err == nil {
				for w := range out.Windows {
					for p := range out.Windows[w] {
						out.Windows[w][p].Err = nil
					}
				}
			}
			return out, err
		}
	}},
	{name: "always a shell after", fails: "program/after exit", programs: true, spoil: func(b *broken) {
		b.starts(func(s *host.Start) { s.AfterExit = "shell" })
	}},
	{name: "the agent instead of the placeholder", fails: "program/placeholder", programs: true, spoil: func(b *broken) {
		b.starts(func(s *host.Start) { s.Mode = host.Program })
	}},
	{name: "kill leaves the program", fails: "program/killed with its terminal", programs: true, spoil: func(b *broken) {
		b.kill = func(context.Context, host.Terminal) error { return nil }
	}},
}

// each calls see for every pane of a snapshot.
func (b *broken) each(see func(*host.Pane)) {
	b.see = func(w *host.Workspace) {
		for _, s := range w.Sessions {
			for _, win := range s.Windows {
				for p := range win.Panes {
					see(&win.Panes[p])
				}
			}
		}
	}
}

func otherName(b *broken) {
	b.create = func(ctx context.Context, c host.CreateSession) (*host.Created, error) {
		for {
			out, err := b.Host.Create(ctx, c)
			if !errors.Is(err, host.ErrSessionExists) {
				return out, err
			}
			c.Name += "-1"
		}
	}
}

func loseSemicolon(b *broken) {
	b.values(func(v []byte) []byte {
		if cut := bytes.TrimSuffix(v, []byte(";")); len(cut) > 0 {
			return cut
		}
		return v
	})
}

func blind(b *broken) {
	b.swap = func(ctx context.Context, t host.Terminal, k metadata.Key, _, new []byte) error {
		if err := host.CheckValue(k, new); err != nil {
			return err
		}
		for {
			if err := force(ctx, b.Host, t, k, new); !errors.Is(err, host.ErrConflict) {
				return err
			}
		}
	}
}

func lateRecord(b *broken) {
	b.spawn = func(ctx context.Context, s host.Spawn) (*host.Started, error) {
		rec := s.Pane.Meta[metadata.KeyAgentSession]
		s.Pane = copyPane(s.Pane)
		s.Pane.Meta[metadata.KeyAgentSession] = []byte("not yet")
		out, err := b.Host.Spawn(ctx, s)
		if err != nil {
			return nil, err
		}
		unhurried()
		return out, force(ctx, b.Host, out.Terminal, metadata.KeyAgentSession, rec)
	}
}

func loseRecord(b *broken) {
	b.sessions(func(c *host.CreateSession) {
		w := &c.Windows[len(c.Windows)-1]
		w.Panes[len(w.Panes)-1].Meta = nil
	})
}
