// Package attach is a person's side of a host that has no screen of its own: one terminal at a
// time, its bytes untouched, and a prefix key that leads out of it.
//
// Output goes to the person's terminal as the program wrote it. What is ours (the status line,
// help, the list, scrollback) is drawn only while the view is held, and taken away by showing
// anew: the server then paints what stands there.
package attach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/phux-agent/phux-agent/host"
)

// Server is what Run needs of a host.
type Server interface {
	Snapshot(ctx context.Context) (*host.Workspace, error)
	// Open begins to look at a terminal from a window of that size. What it shows first is the
	// whole screen, for any window.
	Open(ctx context.Context, t host.Terminal, cols, rows int) (View, error)
	// Scrollback is the terminal's scrollback and screen in lines, their looks as SGR sequences.
	Scrollback(ctx context.Context, t host.Terminal) (string, error)
	Kill(ctx context.Context, t host.Terminal) error
	Respawn(ctx context.Context, t host.Terminal) error
	Focus(ctx context.Context, t host.Terminal) error
	// Shell opens a shell in a new window of a session.
	Shell(ctx context.Context, session, dir string) (host.Terminal, error)
	// Exits tells of terminals whose program has ended, and which stay.
	Exits() <-chan host.Terminal
	// Gone is closed when the server is no longer there.
	Gone() <-chan struct{}
}

// View is a look at one terminal.
type View interface {
	// Events is closed when the terminal or the connection ends. After Hold and Show it is
	// another channel.
	Events() <-chan Event
	Input(b []byte) error
	// Hold ends the events for a while; the window goes on to count for the terminal's size.
	Hold(ctx context.Context) error
	// Show goes on in a window of that size, beginning with the whole screen.
	Show(ctx context.Context, cols, rows int) error
	Detach() error
}

// Event is output, or the end of the terminal; sizes are told, too, and are not our business.
type Event = host.ViewEvent

// Options of one attach.
type Options struct {
	Session string // the one to begin with; empty: the one looked at last
	Prefix  byte   // 0 is Ctrl-b
}

// Why is the reason that an attach ended for.
type Why int

const (
	Detached Why = iota + 1 // the person left
	NoneLeft                // the last terminal has ended
)

// End is how an attach ended.
type End struct {
	Why     Why
	Session string // of the terminal that was shown last
}

var (
	// ErrNotTerminal is returned where a person's terminal is wanted, and there is none.
	ErrNotTerminal = errors.New("standard input and output must be a terminal")
	// ErrLost is returned where the server went while somebody looked.
	ErrLost = errors.New("the server has gone, and every terminal with it")
	// ErrSignalled is returned where a signal, or the end of the person's terminal, ended it.
	ErrSignalled = errors.New("ended by a signal")
)

// Run shows a session until the person detaches or its last terminal ends. The person's terminal
// is put back on every way out, a panic included.
func Run(ctx context.Context, srv Server, o Options, in, out *os.File) (End, error) {
	if o.Prefix == 0 {
		o.Prefix = 0x02
	}
	screen, err := open(in, out)
	if err != nil {
		return End{}, err
	}
	defer screen.restore()
	c := &client{srv: srv, o: o, screen: screen, keys: keys{prefix: o.Prefix}, input: make(chan []byte)}
	screen.begin()
	go c.read(in)
	why, err := c.run(ctx)
	return End{why, c.at.session}, err
}

// client is one person at one window.
type client struct {
	srv    Server
	o      Options
	screen *screen
	keys   keys
	input  chan []byte

	at     place
	before host.Terminal // shown before this one
	view   View
	fresh  bool    // nothing of it was drawn since it was shown
	dead   bool    // the program of this one has ended
	over   overlay // nil while the terminal is shown
	begun  []byte  // of a key that is not whole, while an overlay is shown
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

// keyPause is how long the rest of a key's sequence may take; an ESC alone is the key of that name.
const keyPause = 50 * time.Millisecond

func (c *client) run(ctx context.Context) (Why, error) {
	places, err := c.places(ctx)
	if err != nil {
		return 0, err
	}
	first, err := begin(places, c.o.Session)
	if err != nil {
		return 0, err
	}
	if err := c.show(ctx, first); err != nil {
		return 0, err
	}
	defer c.leave()
	for {
		var events <-chan Event
		if c.view != nil && c.over == nil {
			events = c.view.Events()
		}
		var pause <-chan time.Time
		if len(c.begun) > 0 {
			pause = time.After(keyPause)
		}
		var why Why
		select {
		case e, ok := <-events:
			switch {
			case !ok:
				return 0, c.lost(ctx)
			case e.Closed:
				why, err = c.next(ctx)
			case len(e.Output) > 0:
				c.fresh = false
				c.screen.write(e.Output)
			}
		case t := <-c.srv.Exits():
			if t == c.at.terminal {
				if c.dead = true; c.over == nil {
					c.sayDead(ctx)
				}
			}
		case b, ok := <-c.input:
			if !ok {
				return 0, ErrSignalled
			}
			why, err = c.typed(ctx, b)
		case <-pause:
			why, err = c.paused(ctx)
		case <-c.screen.resized:
			why, err = c.resize(ctx)
		case <-c.screen.continued:
			c.screen.again()
			why, err = c.resize(ctx)
		case <-c.screen.killed:
			return 0, ErrSignalled
		case <-c.srv.Gone():
			return 0, c.lost(ctx)
		case <-ctx.Done():
			return 0, ErrSignalled
		}
		if why != 0 || err != nil {
			return why, err
		}
	}
}

// lost is the end of the connection. What came before it is still shown.
func (c *client) lost(ctx context.Context) error {
	if c.view != nil && c.over == nil {
		for e := range c.view.Events() {
			c.screen.write(e.Output)
		}
	}
	if ctx.Err() != nil {
		return ErrSignalled
	}
	return ErrLost
}

// gone says that an error means the end of the terminal, and not of more.
func gone(err error) bool {
	return errors.Is(err, host.ErrNoTerminal) || errors.Is(err, host.ErrConflict)
}

// trouble turns an error of the server into what the person is to know.
func (c *client) trouble(ctx context.Context, err error) (Why, error) {
	switch {
	case err == nil:
		return 0, nil
	case gone(err):
		return c.next(ctx)
	case errors.Is(err, host.ErrNoServer):
		return 0, c.lost(ctx)
	}
	return 0, err
}

// show looks at a terminal: the server paints it.
func (c *client) show(ctx context.Context, p place) error {
	cols, rows := c.screen.size()
	c.over, c.begun, c.fresh = nil, nil, true
	if c.view != nil && c.at.terminal == p.terminal {
		c.screen.settle()
		return c.view.Show(ctx, cols, rows)
	}
	c.leave()
	c.screen.settle()
	c.screen.title(p.String())
	v, err := c.srv.Open(ctx, p.terminal, cols, rows)
	if err != nil {
		return err
	}
	if c.at.terminal != p.terminal {
		c.before = c.at.terminal
	}
	c.at, c.view, c.dead = p, v, p.dead
	_ = c.srv.Focus(ctx, p.terminal) // Best effort: it only says what was looked at last.
	if c.dead {
		c.sayDead(ctx)
	}
	return nil
}

// again shows the terminal that is looked at, or another one where it has ended.
func (c *client) again(ctx context.Context) (Why, error) {
	return c.trouble(ctx, c.show(ctx, c.at))
}

func (c *client) leave() {
	if c.view != nil {
		_ = c.view.Detach() // Best effort: the connection may be gone.
		c.view = nil
	}
}

func (c *client) resize(ctx context.Context) (Why, error) {
	if c.over != nil {
		c.draw(ctx)
		return 0, nil
	}
	c.hold(ctx)
	return c.again(ctx) // the size that others have may differ, so it is painted anew
}

// drawPatience bounds the wait for a screen that a line of ours is to stand below.
const drawPatience = 2 * time.Second

// hold lets nothing more be written. What is shown is drawn before, so that a line of ours
// stands below it and not below what was there before.
func (c *client) hold(ctx context.Context) {
	if c.view != nil && c.fresh {
		patience := time.After(drawPatience)
		for c.fresh {
			select {
			case e, ok := <-c.view.Events():
				c.screen.write(e.Output)
				c.fresh = ok && !e.Closed && len(e.Output) == 0
			case <-patience:
				c.fresh = false
			}
		}
	}
	if c.view != nil {
		_ = c.view.Hold(ctx) // Best effort: Show says what is wrong.
	}
}

// next goes on where a terminal has ended: to another one of its session, then of any.
func (c *client) next(ctx context.Context) (Why, error) {
	c.leave()
	for {
		places, err := c.places(ctx)
		if err != nil {
			return 0, ErrLost
		}
		p, ok := beside(places, c.at)
		if !ok {
			return NoneLeft, nil
		}
		if err := c.show(ctx, p); err == nil {
			return 0, nil
		} else if !gone(err) {
			return c.trouble(ctx, err)
		}
		c.at = p
	}
}

// sayDead tells what became of the program.
func (c *client) sayDead(ctx context.Context) {
	what := "its program has ended"
	if p, err := c.here(ctx); err == nil {
		if c.dead = p.dead; !p.dead {
			return
		}
		what += p.exit
	}
	p := name(c.o.Prefix)
	c.cover(ctx, message(what+": "+p+" R starts it again, "+p+" x closes it"))
}

// typed takes what the person typed.
func (c *client) typed(ctx context.Context, b []byte) (Why, error) {
	b = append(c.begun, b...)
	c.begun = nil
	for len(b) > 0 {
		if c.over != nil {
			key, rest, whole := nextKey(b)
			if !whole {
				c.begun = b
				return 0, nil
			}
			b = rest
			if why, err := c.press(ctx, key); why != 0 || err != nil {
				return why, err
			}
			continue
		}
		text, hit, rest := c.keys.feed(b)
		b = rest
		if len(text) > 0 && c.view != nil {
			if c.dead {
				if c.sayDead(ctx); c.dead {
					return 0, nil
				}
			}
			if err := c.view.Input(text); err != nil {
				return 0, c.lost(ctx)
			}
		}
		if len(hit) > 0 {
			c.cover(ctx, status{hit: hit})
		}
	}
	return 0, nil
}

// paused ends a key that was begun.
func (c *client) paused(ctx context.Context) (Why, error) {
	b := c.begun
	c.begun = nil
	if len(b) == 1 && b[0] == esc {
		return c.press(ctx, "esc")
	}
	return 0, nil
}

// command does what a key after the prefix stands for.
func (c *client) command(ctx context.Context, key string) (Why, error) {
	switch key {
	case "d":
		return Detached, nil
	case "n", "p", "l":
		return c.step(ctx, key)
	case "w", "s":
		return c.choose(ctx)
	case "c":
		t, err := c.srv.Shell(ctx, c.at.session, c.at.dir)
		if err != nil {
			return c.say(ctx, err)
		}
		return c.trouble(ctx, c.show(ctx, place{terminal: t, session: c.at.session}))
	case "x":
		c.cover(ctx, confirm{question: "kill this terminal and its program?", yes: func(ctx context.Context) error {
			return c.srv.Kill(ctx, c.at.terminal)
		}})
		return 0, nil
	case "R":
		if err := c.srv.Respawn(ctx, c.at.terminal); err != nil {
			return c.say(ctx, err)
		}
		c.dead, c.at.dead = false, false
		return c.again(ctx)
	case "[", "pgup":
		s, err := c.srv.Scrollback(ctx, c.at.terminal)
		if err != nil {
			return c.say(ctx, err)
		}
		lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
		_, rows := c.screen.size()
		t := pager{lines: lines, top: max(0, len(lines)-(rows-1))}
		if key == "pgup" {
			t.top -= rows - 1
		}
		c.cover(ctx, t)
		return 0, nil
	case "?":
		c.cover(ctx, pager{lines: help(c.o.Prefix), help: true})
		return 0, nil
	}
	return c.again(ctx) // any other key: nothing but the screen again
}

// say tells what went wrong, at the bottom of the screen until a key is pressed.
func (c *client) say(ctx context.Context, err error) (Why, error) {
	if errors.Is(err, host.ErrNoServer) {
		return 0, c.lost(ctx)
	}
	if why, err := c.again(ctx); why != 0 || err != nil {
		return why, err
	}
	c.cover(ctx, message(fmt.Sprint(err)))
	return 0, nil
}

// step shows the next terminal, the previous one, or the one shown last.
func (c *client) step(ctx context.Context, key string) (Why, error) {
	places, err := c.places(ctx)
	if err != nil {
		return c.trouble(ctx, err)
	}
	if len(places) == 0 {
		return c.next(ctx)
	}
	at := find(places, c.at.terminal)
	switch key {
	case "n":
		at++
	case "p":
		at += len(places) - 1
	case "l":
		if i := find(places, c.before); i >= 0 {
			at = i
		}
	}
	return c.trouble(ctx, c.show(ctx, places[max(at, 0)%len(places)]))
}

func (c *client) choose(ctx context.Context) (Why, error) {
	places, err := c.places(ctx)
	if err != nil {
		return c.trouble(ctx, err)
	}
	c.cover(ctx, list{places: places, at: max(find(places, c.at.terminal), 0)})
	return 0, nil
}
