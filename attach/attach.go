// Package attach is a person's side of a host that has no screen of its own: one terminal at a
// time, its bytes untouched, and a prefix key that leads out of it.
//
// Output goes to the person's terminal as the program wrote it. What is ours (the status line,
// help, the list, scrollback) is drawn only while the view is let go, and taken away by looking
// anew: the server then paints what stands there.
package attach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/phux-agent/phux-agent/host"
)

// Server is what Run needs of a host.
type Server interface {
	Snapshot(ctx context.Context) (*host.Workspace, error)
	// Open begins to look at a terminal from a window of that size. What it shows first is the
	// whole screen, for a cleared window.
	Open(ctx context.Context, t host.Terminal, cols, rows int) (View, error)
	// Text is the terminal's scrollback and screen.
	Text(ctx context.Context, t host.Terminal) (string, error)
	Kill(ctx context.Context, t host.Terminal) error
	Respawn(ctx context.Context, t host.Terminal) error
	Focus(ctx context.Context, t host.Terminal) error
	// Shell opens a shell in a new window of a session.
	Shell(ctx context.Context, session, dir string) (host.Terminal, error)
}

// View is a look at one terminal.
type View interface {
	// Events is closed when the terminal or the connection ends.
	Events() <-chan Event
	Input(b []byte) error
	Resize(cols, rows int) error
	Detach() error
}

// Event is output, or the end of the terminal.
type Event struct {
	Output []byte
	Closed bool
}

// Options of one attach.
type Options struct {
	Session string // the one to begin with; empty: the active one
	Prefix  byte   // 0 is Ctrl-b
}

// ErrNotTerminal is returned where a person's terminal is wanted, and there is none.
var ErrNotTerminal = errors.New("standard input and output must be a terminal")

// ended is why the client leaves, in words for the person.
type ended string

const (
	detached  ended = "detached"
	noneLeft  ended = "the last terminal has ended"
	lost      ended = "the server has gone"
	signalled ended = "ended by a signal"
)

// Run shows a session until the person detaches, its last terminal ends, or the server goes.
// The person's terminal is put back on every way out. The text says why it ended.
func Run(ctx context.Context, srv Server, o Options, in, out *os.File) (string, error) {
	if o.Prefix == 0 {
		o.Prefix = 0x02
	}
	screen, err := open(in, out)
	if err != nil {
		return "", err
	}
	defer screen.restore()
	c := &client{srv: srv, o: o, screen: screen, keys: keys{prefix: o.Prefix}, input: make(chan []byte)}
	go c.read(in)
	why, err := c.run(ctx)
	return string(why), err
}

// client is one person at one window.
type client struct {
	srv    Server
	o      Options
	screen *screen
	keys   keys
	input  chan []byte

	at   host.Terminal
	view View
	over overlay // nil while the terminal is shown
}

// read hands on what is typed. It ends with the process: a read of a terminal cannot be called
// off.
func (c *client) read(in io.Reader) {
	for {
		b := make([]byte, 4096)
		n, err := in.Read(b)
		if n > 0 {
			c.input <- b[:n]
		}
		if err != nil {
			close(c.input)
			return
		}
	}
}

func (c *client) run(ctx context.Context) (ended, error) {
	places, err := c.places(ctx)
	if err != nil {
		return "", err
	}
	first, err := begin(places, c.o.Session)
	if err != nil {
		return "", err
	}
	if err := c.show(ctx, first); err != nil {
		return "", err
	}
	defer func() { c.leave() }()
	for {
		var events <-chan Event
		if c.view != nil {
			events = c.view.Events()
		}
		select {
		case e, ok := <-events:
			switch {
			case !ok || e.Closed:
				why, err := c.next(ctx, ok)
				if why != "" || err != nil {
					return why, err
				}
			default:
				c.screen.write(e.Output)
			}
		case b, ok := <-c.input:
			if !ok {
				return signalled, nil
			}
			why, err := c.typed(ctx, b)
			if why != "" || err != nil {
				return why, err
			}
		case <-c.screen.resized:
			if err := c.resize(ctx); err != nil {
				return "", err
			}
		case <-c.screen.killed:
			return signalled, nil
		case <-ctx.Done():
			return signalled, nil
		}
	}
}

// place is a terminal with where it stands.
type place struct {
	terminal host.Terminal
	session  string
	window   int
	index    int
	active   bool
	title    string
	what     string
	dir      string
	dead     bool
}

func (p place) String() string { return fmt.Sprintf("%s:%d.%d", p.session, p.window, p.index) }

// places lists the terminals in the order of sessions, windows and panes.
func (c *client) places(ctx context.Context) ([]place, error) {
	w, err := c.srv.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	var out []place
	seen := map[host.Terminal]bool{}
	for _, s := range w.Sessions {
		for _, win := range s.Windows {
			for _, p := range win.Panes {
				if seen[p.Terminal] {
					continue
				}
				seen[p.Terminal] = true
				out = append(out, place{
					terminal: p.Terminal, session: s.Name, window: win.Index, index: p.Index,
					active: s.Active && win.Active && p.Active || win.Active && p.Active,
					title:  p.Title, what: p.Command, dir: p.Dir, dead: p.Dead,
				})
			}
		}
	}
	return out, nil
}

// begin is the terminal that an attach shows first: the active one of the session.
func begin(places []place, session string) (host.Terminal, error) {
	if len(places) == 0 {
		return host.Terminal{}, host.ErrNoSession
	}
	candidates := places
	if session != "" {
		candidates = slices.DeleteFunc(slices.Clone(places), func(p place) bool { return p.session != session })
		if len(candidates) == 0 {
			return host.Terminal{}, fmt.Errorf("session %q: %w", session, host.ErrNoSession)
		}
	}
	for _, p := range candidates {
		if p.active {
			return p.terminal, nil
		}
	}
	return candidates[0].terminal, nil
}

// show looks at a terminal: the window is cleared, and the server paints it.
func (c *client) show(ctx context.Context, t host.Terminal) error {
	c.leave()
	c.over = nil
	c.screen.clear()
	cols, rows := c.screen.size()
	v, err := c.srv.Open(ctx, t, cols, rows)
	if err != nil {
		return err
	}
	c.at, c.view = t, v
	_ = c.srv.Focus(ctx, t) // Best effort: it only says what was looked at last.
	return nil
}

func (c *client) leave() {
	if c.view != nil {
		_ = c.view.Detach() // Best effort: the connection may be gone.
		c.view = nil
	}
}

func (c *client) resize(ctx context.Context) error {
	if c.over != nil {
		c.draw()
		return nil
	}
	if c.view == nil {
		return nil
	}
	return c.show(ctx, c.at) // the size that others have may differ, so it is painted anew
}

// next goes on where a terminal has ended: to another one of its session, then of any.
func (c *client) next(ctx context.Context, connected bool) (ended, error) {
	if !connected {
		if _, err := c.srv.Snapshot(ctx); err != nil {
			return lost, nil
		}
	}
	c.leave()
	places, err := c.places(ctx)
	if err != nil {
		return lost, nil
	}
	places = slices.DeleteFunc(places, func(p place) bool { return p.terminal == c.at })
	if len(places) == 0 {
		return noneLeft, nil
	}
	return "", c.show(ctx, places[0].terminal)
}

// typed takes what the person typed.
func (c *client) typed(ctx context.Context, b []byte) (ended, error) {
	for len(b) > 0 {
		if c.over != nil {
			var key string
			key, b = nextKey(b)
			why, err := c.press(ctx, key)
			if why != "" || err != nil {
				return why, err
			}
			continue
		}
		text, prefix, rest := c.keys.feed(b)
		b = rest
		if len(text) > 0 && c.view != nil {
			if err := c.view.Input(text); err != nil {
				return lost, nil
			}
		}
		if prefix {
			c.cover(status{})
		}
	}
	return "", nil
}

// command does what a key after the prefix stands for.
func (c *client) command(ctx context.Context, key rune) (ended, error) {
	switch key {
	case 'd':
		return detached, nil
	case 'n', 'p':
		return "", c.step(ctx, key == 'n')
	case 'w', 's':
		return "", c.choose(ctx)
	case 'c':
		return "", c.shell(ctx)
	case 'x':
		c.cover(confirm{question: "kill this terminal and its program?", yes: func(ctx context.Context) error {
			return c.srv.Kill(ctx, c.at)
		}})
		return "", nil
	case 'R':
		return "", c.again(ctx, c.srv.Respawn(ctx, c.at))
	case '[':
		return "", c.scrollback(ctx)
	case '?':
		c.cover(text{text: strings.Split(help(c.o.Prefix), "\n")})
		return "", nil
	}
	return "", c.show(ctx, c.at) // any other key: nothing but the screen again
}

// again shows the terminal anew; what went wrong is said at the bottom, until a key is pressed.
func (c *client) again(ctx context.Context, err error) error {
	if showErr := c.show(ctx, c.at); showErr != nil {
		return showErr
	}
	if err != nil {
		c.cover(message(err.Error()))
	}
	return nil
}

func (c *client) step(ctx context.Context, forward bool) error {
	places, err := c.places(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(places, func(p place) bool { return p.terminal == c.at })
	if len(places) == 0 {
		return nil
	}
	if forward {
		i++
	} else {
		i += len(places) - 1
	}
	return c.show(ctx, places[i%len(places)].terminal)
}

func (c *client) shell(ctx context.Context) error {
	p, err := c.here(ctx)
	if err != nil {
		return err
	}
	t, err := c.srv.Shell(ctx, p.session, p.dir)
	if err != nil {
		return c.again(ctx, err)
	}
	return c.show(ctx, t)
}

func (c *client) here(ctx context.Context) (place, error) {
	places, err := c.places(ctx)
	if err != nil {
		return place{}, err
	}
	for _, p := range places {
		if p.terminal == c.at {
			return p, nil
		}
	}
	return place{}, host.ErrNoTerminal
}

func (c *client) choose(ctx context.Context) error {
	places, err := c.places(ctx)
	if err != nil {
		return err
	}
	l := list{places: places}
	for i, p := range places {
		if p.terminal == c.at {
			l.at = i
		}
	}
	c.cover(l)
	return nil
}

func (c *client) scrollback(ctx context.Context) error {
	s, err := c.srv.Text(ctx, c.at)
	if err != nil {
		return c.again(ctx, err)
	}
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	_, rows := c.screen.size()
	c.cover(text{text: lines, top: max(0, len(lines)-(rows-1)), pager: true})
	return nil
}
