// Package attach is a person's side of a host that has no screen of its own: one terminal at a
// time, its bytes untouched, and a prefix key that leads out of it.
//
// Output goes to the person's terminal as the program wrote it. What is ours (the status line,
// help, the list, scrollback) is drawn only while the view is held, and taken away by showing
// anew: the server then paints what stands there.
package attach

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/internal/thread"
)

// Server is what Run needs of a host.
type Server interface {
	Snapshot(ctx context.Context) (*host.Workspace, error)
	// Open begins to look at a terminal from a window of that size. What it shows first is the
	// whole screen, for any window. tell is called with each event in turn, by a goroutine of the
	// server's side, and not any more once Hold or Detach has returned.
	Open(ctx context.Context, t host.Terminal, cols, rows int, tell func(Event)) (View, error)
	// Scrollback is the terminal's scrollback and screen in lines, their looks as SGR sequences.
	Scrollback(ctx context.Context, t host.Terminal) (string, error)
	Kill(ctx context.Context, t host.Terminal) error
	Respawn(ctx context.Context, t host.Terminal) error
	Focus(ctx context.Context, t host.Terminal) error
	// Shell opens a shell in a new window of a session.
	Shell(ctx context.Context, session, dir string) (host.Terminal, error)
	// Exits tells of terminals whose program has ended, and which stay.
	Exits() <-chan host.Terminal
	// Gone is closed when the server is no longer there, after the last event.
	Gone() <-chan struct{}
}

// View is a look at one terminal.
type View interface {
	// Input may be called beside any other method.
	Input(b []byte) error
	// Hold ends the events for a while; the window goes on to count for the terminal's size.
	Hold(ctx context.Context) error
	// Show goes on in a window of that size, beginning with the whole screen.
	Show(ctx context.Context, cols, rows int, tell func(Event)) error
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
	c := &client{srv: srv, o: o, screen: screen, keys: keys{prefix: o.Prefix}, input: make(chan []byte), fault: make(chan string, 1)}
	screen.begin()
	go c.read(in)
	why, err := c.run(ctx)
	return End{why, c.at.session}, err
}

// client is one person at one window.
//
// Between a key and what it shows nobody waits for another goroutine of ours, for each such wait
// is a thread to be woken: the one that reads what is typed sends it on itself while nothing but
// that is to be done with it (straight), and output is written by the one that receives it (showing).
type client struct {
	srv    Server
	o      Options
	screen *screen
	input  chan []byte // typed, and not only to be sent on
	fault  chan string // a panic of the one that reads

	typing sync.Mutex
	keys   keys // of the one who reads while all is through, and of run while it is not
	to     View // where typing goes straight to; nil while run does something
	left   int  // reads that run has not dealt with yet

	at      place
	before  host.Terminal // shown before this one
	view    View
	showing *showing // of the view
	dead    bool     // the program of this one has ended
	over    overlay  // nil while the terminal is shown
	begun   []byte   // of a key that is not whole, while an overlay is shown
}

// showing is a terminal on the screen, from when it is shown to when it is held.
type showing struct {
	screen *screen
	drawn  bool
	begun  chan struct{} // closed once something was drawn
	ended  chan struct{} // closed once the terminal has ended
}

func newShowing(s *screen) *showing {
	return &showing{screen: s, begun: make(chan struct{}), ended: make(chan struct{})}
}

func (l *showing) tell(e Event) {
	switch {
	case e.Closed:
		close(l.ended)
	case len(e.Output) > 0:
		l.screen.write(e.Output)
		if !l.drawn {
			l.drawn = true
			close(l.begun)
		}
	}
}

// read sends on what is typed, or hands it to run. It ends with the process: a read of a terminal
// cannot be called off.
func (c *client) read(in io.Reader) {
	defer func() {
		if p := recover(); p != nil { // run puts the terminal back
			c.fault <- fmt.Sprintf("%v\n%s", p, debug.Stack())
		}
	}()
	b := make([]byte, 4096)
	var turn thread.Turn
	for {
		turn.Wait()
		n, err := in.Read(b)
		turn.Go()
		if n > 0 && !c.straight(b[:n]) {
			c.input <- bytes.Clone(b[:n])
		}
		if err != nil {
			close(c.input)
			return
		}
	}
}

// straight sends on what was typed, where it is text and run is not busy. What it leaves is to
// be handed to run.
func (c *client) straight(b []byte) bool {
	c.typing.Lock()
	defer c.typing.Unlock()
	if c.to != nil && c.left == 0 {
		after := c.keys
		if text, hit, _ := after.feed(b); len(hit) == 0 && c.to.Input(text) == nil {
			c.keys = after
			return true
		}
	}
	c.left++
	return false
}

// lead says where typing goes straight to: nowhere while run does something.
func (c *client) lead(to View) {
	c.typing.Lock()
	c.to = to
	c.typing.Unlock()
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
	defer c.lead(nil)
	for {
		var ended <-chan struct{}
		if c.view != nil && c.over == nil {
			ended = c.showing.ended
		}
		var pause <-chan time.Time
		if len(c.begun) > 0 {
			pause = time.After(keyPause)
		}
		if c.view != nil && c.over == nil && !c.dead {
			c.lead(c.view)
		}
		var why Why
		select {
		case <-ended:
			c.lead(nil)
			why, err = c.next(ctx)
		case t := <-c.srv.Exits():
			c.lead(nil)
			if t == c.at.terminal {
				if c.dead = true; c.over == nil {
					c.sayDead(ctx)
				}
			}
		case b, ok := <-c.input:
			if !ok {
				return 0, ErrSignalled
			}
			c.lead(nil)
			why, err = c.typed(ctx, b)
			c.typing.Lock()
			c.left--
			c.typing.Unlock()
		case <-pause:
			why, err = c.paused(ctx)
		case <-c.screen.resized:
			c.lead(nil)
			why, err = c.resize(ctx)
		case <-c.screen.continued:
			c.lead(nil)
			c.screen.again()
			why, err = c.resize(ctx)
		case p := <-c.fault:
			panic(p)
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
	select {
	case <-c.srv.Gone():
	case <-time.After(drawPatience):
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
	c.over, c.begun = nil, nil
	if c.view != nil && c.at.terminal == p.terminal {
		c.screen.settle()
		c.showing = newShowing(c.screen)
		return c.view.Show(ctx, cols, rows, c.showing.tell)
	}
	c.leave()
	c.screen.settle()
	c.screen.title(p.String())
	c.showing = newShowing(c.screen)
	v, err := c.srv.Open(ctx, p.terminal, cols, rows, c.showing.tell)
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
	if c.view == nil {
		return
	}
	select {
	case <-c.showing.begun:
	case <-c.showing.ended:
	case <-c.srv.Gone():
	case <-time.After(drawPatience):
	}
	_ = c.view.Hold(ctx) // Best effort: Show says what is wrong.
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
