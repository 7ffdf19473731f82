package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/phux-agent/phux-agent/host"
)

// Client is a connection to one life of a server. Its methods may be called concurrently.
type Client struct {
	conn io.ReadWriteCloser
	// Instance is the server's life: ids of terminals are valid with it alone.
	Instance host.Instance
	// Program is the version of the server's program.
	Program  string
	Features []string

	writing sync.Mutex

	mu     sync.Mutex
	next   int
	calls  map[int]chan fields
	views  map[string]*View
	events chan Event
	err    error
	done   chan struct{}
}

// Event is something that happened on the server.
type Event struct {
	What     string // "created", "closed", "exited", "focus"
	Terminal string // id; may be empty
	Session  string // name; may be empty
}

// dialTime bounds the way to a server that is there, greeting included.
const dialTime = 10 * time.Second

// Dial connects and greets. host.ErrNoServer where none is there; ErrVersion where it speaks
// another version; a socket of another user is refused.
func Dial(ctx context.Context, socket string) (*Client, error) { return dial(ctx, socket, false) }

// DialToLook is Dial for a person who looks: what comes and goes takes the shortest way, and the
// connection holds a thread.
func DialToLook(ctx context.Context, socket string) (*Client, error) { return dial(ctx, socket, true) }

func dial(ctx context.Context, socket string, look bool) (*Client, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	if len(socket) >= maxSocket {
		return nil, &PathError{socket}
	}
	conn, err := connect(ctx, socket)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
			return nil, fmt.Errorf("%w at %s", host.ErrNoServer, socket)
		}
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, fmt.Errorf("connect to %s: %w", socket, err)
	}
	if err := checkPeer(conn); err != nil {
		conn.Close()
		return nil, fmt.Errorf("connect to %s: not this user's server: %w", socket, err)
	}
	c := newClient(conn)
	if look {
		if d, ok := newBlocking(conn); ok {
			c.conn = d
		}
	}
	go c.read()
	f, err := c.call(ctx, fields{keyKind: kindHello, helloVersion: Version})
	if err != nil {
		c.Close()
		return nil, err
	}
	m := reading{fields: f}
	c.Instance = host.Instance{
		Kind: Kind, Socket: m.text(helloSocket), PID: m.number(helloPID), Start: m.text(helloLife), Boot: m.text(helloBoot),
	}
	c.Program, c.Features = m.text(helloProgram), m.words(helloFeatures)
	if m.err != nil {
		c.Close()
		return nil, m.err
	}
	return c, nil
}

// newClient is a client that does not read yet.
func newClient(conn *net.UnixConn) *Client {
	return &Client{conn: conn, calls: make(map[int]chan fields), views: make(map[string]*View), done: make(chan struct{})}
}

// connect waits where so many clients come at once that the server has not yet taken those before:
// a unix socket refuses at once then, instead of letting us wait.
func connect(ctx context.Context, socket string) (*net.UnixConn, error) {
	var d net.Dialer
	for {
		conn, err := d.DialContext(ctx, "unix", socket)
		if err == nil {
			return conn.(*net.UnixConn), nil
		}
		if !errors.Is(err, syscall.EAGAIN) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// Close ends the connection. Views end, and what was asked for and is not yet done is given up.
func (c *Client) Close() error { return c.conn.Close() }

// Done is closed when the connection has ended.
func (c *Client) Done() <-chan struct{} { return c.done }

func (c *Client) read() {
	var err error
	r := bufio.NewReaderSize(c.conn, 64<<10)
	for {
		var n int
		if n, err = readLength(r, MaxReply); err != nil {
			break
		}
		var body []byte
		if body, err = readBytes(r, n); err != nil {
			break
		}
		if id, b, ok := dataOf(kindOutput, body); ok {
			c.show(id, ViewEvent{Output: b})
			continue
		}
		var f fields
		if f, err = decodeFields(body); err != nil {
			break
		}
		m := reading{fields: f}
		switch m.number(keyKind) {
		case kindOutput, kindEvent:
			c.happened(&m)
		case kindOK, kindError:
			id := m.number(keyRequest)
			c.mu.Lock()
			ch := c.calls[id]
			if id == 0 { // it refuses us as such
				for _, ch = range c.calls {
					break
				}
			}
			delete(c.calls, id)
			c.mu.Unlock()
			if ch != nil {
				select {
				case ch <- f:
				default:
				}
			}
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		err = fmt.Errorf("%w any more: the connection ended", host.ErrNoServer)
	}
	c.conn.Close()
	c.mu.Lock()
	c.err = err
	views, events := c.views, c.events
	c.views, c.events = nil, nil
	c.mu.Unlock()
	for _, v := range views {
		v.over()
	}
	if events != nil {
		close(events)
	}
	close(c.done)
}

func (c *Client) happened(m *reading) {
	if m.number(keyKind) == kindOutput {
		c.show(m.text(termID), ViewEvent{Output: m.data(termData)})
		return
	}
	what, id := m.text(eventWhat), m.text(eventTerm)
	switch what {
	case "resized":
		c.show(id, ViewEvent{Cols: m.number(eventCols), Rows: m.number(eventRows)})
		return
	case "closed":
		c.mu.Lock()
		v := c.views[id]
		delete(c.views, id)
		c.mu.Unlock()
		if v != nil {
			v.deliver(ViewEvent{Closed: true})
			v.over()
		}
	}
	c.mu.Lock()
	events := c.events
	c.mu.Unlock()
	if events != nil {
		select {
		case events <- Event{What: what, Terminal: id, Session: m.text(eventName)}:
		case <-c.done:
		default: // whoever is that far behind asks for the state
		}
	}
}

func (c *Client) show(id string, e ViewEvent) {
	c.mu.Lock()
	v := c.views[id]
	c.mu.Unlock()
	if v != nil {
		v.deliver(e)
	}
}

func (c *Client) send(f fields) error {
	frame := f.frame()
	if len(frame) > MaxFrame+4 {
		return fmt.Errorf("%w: a request of %d bytes, where %d may be", host.ErrRequest, len(frame), MaxFrame)
	}
	return c.write(frame)
}

func (c *Client) write(frame []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if _, err := c.conn.Write(frame); err != nil {
		if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrClosed) {
			return fmt.Errorf("%w any more: %w", host.ErrNoServer, err)
		}
		return err
	}
	return nil
}

// ask sends a request and returns its number and where the reply comes to.
func (c *Client) ask(f fields) (int, chan fields, error) {
	ch := make(chan fields, 1)
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return 0, nil, c.err
	}
	c.next++
	id := c.next
	c.calls[id] = ch
	c.mu.Unlock()
	f[keyRequest] = id
	if err := c.send(f); err != nil {
		c.mu.Lock()
		delete(c.calls, id)
		c.mu.Unlock()
		return 0, nil, err
	}
	return id, ch, nil
}

// call waits for the reply. Where the context ends before, the request may yet be carried out.
func (c *Client) call(ctx context.Context, f fields) (fields, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	id, ch, err := c.ask(f)
	if err != nil {
		return nil, err
	}
	select {
	case out := <-ch:
		return out, remote(out)
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.calls, id)
		c.mu.Unlock()
		return nil, context.Cause(ctx)
	case <-c.done:
		return c.last(ch)
	}
}

// last is a reply that came just before the end.
func (c *Client) last(ch chan fields) (fields, error) {
	select {
	case out := <-ch:
		return out, remote(out)
	default:
		c.mu.Lock()
		defer c.mu.Unlock()
		return nil, c.err
	}
}

// giveUp is how long a request that was given up may take to say what came of it.
const giveUp = 10 * time.Second

// settle is call for what makes something: where the context ends the request is taken back, and
// the answer says whether that came in time.
func (c *Client) settle(ctx context.Context, f fields) (fields, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	id, ch, err := c.ask(f)
	if err != nil {
		return nil, err
	}
	select {
	case out := <-ch:
		return out, remote(out)
	case <-c.done:
		return c.last(ch)
	case <-ctx.Done():
	}
	_ = c.send(fields{keyKind: kindCancel, cancelRequest: id})
	timer := time.NewTimer(giveUp)
	defer timer.Stop()
	select {
	case out := <-ch:
		err := remote(out)
		if errors.Is(err, errCancelled) {
			err = context.Cause(ctx)
		}
		return out, err
	case <-c.done:
		return c.last(ch)
	case <-timer.C:
		// With the connection goes whatever is not published yet.
		c.Close()
		return nil, context.Cause(ctx)
	}
}

// Snapshot is one consistent view of all that the server holds.
func (c *Client) Snapshot(ctx context.Context) (*host.Workspace, error) {
	f, err := c.call(ctx, fields{keyKind: kindState})
	if err != nil {
		return nil, err
	}
	m := reading{fields: f}
	list := m.maps(stateSessions)
	if m.err != nil {
		return nil, m.err
	}
	return readWorkspace(list, c.Instance)
}

// Spawn adds one terminal, with its record; see host.Host.
func (c *Client) Spawn(ctx context.Context, s host.Spawn) (*host.Started, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if s.Place != host.NewWindow {
		if err := c.mine(s.Target); err != nil {
			return nil, err
		}
	}
	f, err := c.settle(ctx, spawnFields(s))
	if err != nil {
		return nil, err
	}
	st, err := readStarted(f, c.Instance)
	return &st, err
}

// Create makes a session whole by the create key, and reads its result, which is this
// connection's alone; see host.Host.
func (c *Client) Create(ctx context.Context, s host.CreateSession) (*host.Created, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	token := newNonce()
	value := createFields(token, s).encode()
	if _, err := c.settle(ctx, fields{keyKind: kindSet, metaKey: createKey, metaValue: value}); err != nil {
		return nil, err
	}
	// It is done: whoever gave up meanwhile is told what came of it all the same.
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), dialTime)
	defer cancel()
	f, err := c.call(rest, fields{keyKind: kindGet, metaKey: createdPrefix + token})
	if err != nil {
		return nil, err
	}
	m := reading{fields: f}
	result := m.data(metaValue)
	if m.err != nil {
		return nil, m.err
	}
	out, err := readCreated(result, c.Instance)
	if errors.Is(err, errCancelled) && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return out, err
}

// mine refuses a terminal of another life.
func (c *Client) mine(t host.Terminal) error {
	if t.Instance != c.Instance {
		return host.ErrStale
	}
	return nil
}

// Kill ends a terminal.
func (c *Client) Kill(ctx context.Context, t host.Terminal) error { return c.on(ctx, t, kindKill, nil) }

// KillSession ends all terminals of a session.
func (c *Client) KillSession(ctx context.Context, name string) error {
	if name == "" {
		return host.ErrNoSession
	}
	_, err := c.call(ctx, fields{keyKind: kindKill, termSession: name})
	return err
}

// Respawn starts a terminal again whose program has ended: it becomes what its record resolves
// to now. host.ErrConflict where it runs.
func (c *Client) Respawn(ctx context.Context, t host.Terminal) error {
	return c.on(ctx, t, kindRespawn, nil)
}

// Focus brings a terminal to the front of its session.
func (c *Client) Focus(ctx context.Context, t host.Terminal) error {
	return c.on(ctx, t, kindFocus, nil)
}

func (c *Client) on(ctx context.Context, t host.Terminal, kind int, f fields) error {
	if err := c.mine(t); err != nil {
		return err
	}
	if t.ID == "" {
		return host.ErrNoTerminal
	}
	if f == nil {
		f = fields{}
	}
	f[keyKind], f[termID] = kind, t.ID
	_, err := c.call(ctx, f)
	return err
}

// Input types into a terminal. ErrBusy where its program does not read what was typed before,
// ErrDead where it has ended.
func (c *Client) Input(ctx context.Context, t host.Terminal, b []byte) error {
	const most = 64 << 10
	for {
		n := min(len(b), most)
		if err := c.on(ctx, t, kindInput, fields{termData: b[:n]}); err != nil {
			return err
		}
		if b = b[n:]; len(b) == 0 {
			return nil
		}
	}
}

// Screen is what stands on a terminal.
type Screen struct {
	Text       string // lines, blanks at their ends removed; what was asked for of the scrollback above
	Cols, Rows int
	Col, Row   int // of the cursor, from 0
	Hidden     bool
	Title      string // that the program set
	AppCursor  bool   // it wants the cursor's keys in their other form: ESC O A
}

// Read returns the screen, with at most history lines of the scrollback above it; -1 is all.
func (c *Client) Read(ctx context.Context, t host.Terminal, history int) (Screen, error) {
	return c.readScreen(ctx, t, history, false)
}

// ReadLooks is Read of a text with its looks, as SGR sequences; a line begins and ends without any.
func (c *Client) ReadLooks(ctx context.Context, t host.Terminal, history int) (Screen, error) {
	return c.readScreen(ctx, t, history, true)
}

func (c *Client) readScreen(ctx context.Context, t host.Terminal, history int, looks bool) (Screen, error) {
	if err := c.mine(t); err != nil {
		return Screen{}, err
	}
	f, err := c.call(ctx, fields{keyKind: kindRead, termID: t.ID, termLines: history, termLooks: looks})
	if err != nil {
		return Screen{}, err
	}
	m := reading{fields: f}
	s := Screen{
		Text: m.text(screenText), Cols: m.number(termCols), Rows: m.number(termRows), Col: m.number(screenCursor),
		Row: m.number(screenRow), Hidden: m.flag(screenHidden), Title: m.text(screenTitle), AppCursor: m.flag(screenKeys),
	}
	return s, m.err
}

// Events asks for what happens on the server. The channel is closed with the connection; what
// does not fit into it is lost, so an event means "look again", not more.
func (c *Client) Events(ctx context.Context) (<-chan Event, error) {
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return nil, c.err
	}
	if c.events == nil {
		c.events = make(chan Event, 256)
	}
	events := c.events
	c.mu.Unlock()
	_, err := c.call(ctx, fields{keyKind: kindEvents})
	return events, err
}

// Shutdown tells the server to end, and waits until it has let its clients go.
func (c *Client) Shutdown(ctx context.Context) error {
	if _, err := c.call(ctx, fields{keyKind: kindShutdown}); err != nil && !errors.Is(err, host.ErrNoServer) {
		return err
	}
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// View is a client's look at one terminal: raw output from the moment of the attach on, which
// begins with what makes a cleared terminal show what is there.
type View struct {
	Terminal host.Terminal
	c        *Client
	events   chan ViewEvent // of Attach; nil of Watch
	gone     chan struct{}
	once     sync.Once

	telling sync.Mutex // held while tell runs
	tell    func(ViewEvent)
}

// ViewEvent is what a look at a terminal tells.
type ViewEvent = host.ViewEvent

// Attach begins to look at a terminal from a window of that size; 0×0 looks without a say in its
// size. cols and rows are the size that it has now. One view of a terminal and client at a time.
func (c *Client) Attach(ctx context.Context, t host.Terminal, cols, rows int) (v *View, atCols, atRows int, err error) {
	v = &View{Terminal: t, c: c, events: make(chan ViewEvent, 64), gone: make(chan struct{})}
	v.tell = func(e ViewEvent) {
		select {
		case v.events <- e:
		case <-v.gone:
		}
	}
	atCols, atRows, err = c.attach(ctx, v, cols, rows)
	if err != nil {
		return nil, 0, 0, err
	}
	return v, atCols, atRows, nil
}

// Watch is Attach without a channel: tell is called with each event, one after the other, by the
// goroutine that reads the connection, so that a byte meets nobody on its way. It is not called
// any more once Hold or Detach has returned, and must not call them, nor anything that waits for
// an answer. The end of the connection is no event; see Done.
func (c *Client) Watch(ctx context.Context, t host.Terminal, cols, rows int, tell func(ViewEvent)) (*View, error) {
	v := &View{Terminal: t, c: c, gone: make(chan struct{}), tell: tell}
	if _, _, err := c.attach(ctx, v, cols, rows); err != nil {
		return nil, err
	}
	return v, nil
}

func (c *Client) attach(ctx context.Context, v *View, cols, rows int) (atCols, atRows int, err error) {
	t := v.Terminal
	if err := c.mine(t); err != nil {
		return 0, 0, err
	}
	if len(t.ID) > 255 {
		return 0, 0, host.ErrNoTerminal
	}
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return 0, 0, c.err
	}
	if c.views[t.ID] != nil {
		c.mu.Unlock()
		return 0, 0, fmt.Errorf("%w: it is attached already", host.ErrConflict)
	}
	c.views[t.ID] = v
	c.mu.Unlock()
	f, err := c.call(ctx, fields{keyKind: kindAttach, termID: t.ID, termCols: cols, termRows: rows})
	if err != nil {
		c.mu.Lock()
		if c.views[t.ID] == v {
			delete(c.views, t.ID)
		}
		c.mu.Unlock()
		return 0, 0, err
	}
	m := reading{fields: f}
	return m.number(termCols), m.number(termRows), m.err
}

// Events is closed after a Closed event, and when the connection ends; it is nil of a view by
// Watch. Whoever does not read it holds up the whole connection, and then, for a moment, the
// terminal's program.
func (v *View) Events() <-chan ViewEvent { return v.events }

func (v *View) deliver(e ViewEvent) {
	v.telling.Lock()
	defer v.telling.Unlock()
	if v.tell != nil {
		v.tell(e)
	}
}

// end lets nothing more be told.
func (v *View) end() {
	v.once.Do(func() { close(v.gone) })
	v.telling.Lock()
	v.tell = nil
	v.telling.Unlock()
	v.c.mu.Lock()
	if v.c.views[v.Terminal.ID] == v {
		delete(v.c.views, v.Terminal.ID)
	}
	v.c.mu.Unlock()
}

// over closes the channel of a view that has one.
func (v *View) over() {
	if v.events != nil {
		close(v.events)
	}
}

// Input types into the terminal. It does not wait for an answer.
func (v *View) Input(b []byte) error {
	const most = 64 << 10
	for len(b) > 0 {
		n := min(len(b), most)
		if err := v.c.write(dataFrame(kindInput, v.Terminal.ID, b[:n])); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// Resize tells the size of the window from which we look. It does not wait for an answer: the
// size that comes of it is an event.
func (v *View) Resize(cols, rows int) error {
	return v.c.send(fields{keyKind: kindResize, termID: v.Terminal.ID, termCols: cols, termRows: rows})
}

// Hold ends this view's events, while its window goes on to count for the terminal's size: the
// terminal stays attached until Show or Detach. Events that were not read are lost.
func (v *View) Hold(ctx context.Context) error {
	v.end()
	_, err := v.c.call(ctx, fields{keyKind: kindResize, termID: v.Terminal.ID, termHold: true})
	return err
}

// Show goes on after Hold, in a window of that size, by another view that tells in the same way
// as Watch; it begins with the whole screen.
func (v *View) Show(ctx context.Context, cols, rows int, tell func(ViewEvent)) (*View, error) {
	c := v.c
	next := &View{Terminal: v.Terminal, c: c, gone: make(chan struct{}), tell: tell}
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return nil, c.err
	}
	c.views[v.Terminal.ID] = next
	c.mu.Unlock()
	_, err := c.call(ctx, fields{keyKind: kindResize, termID: v.Terminal.ID, termCols: cols, termRows: rows})
	if err != nil {
		c.mu.Lock()
		if c.views[v.Terminal.ID] == next {
			delete(c.views, v.Terminal.ID)
		}
		c.mu.Unlock()
		return nil, err
	}
	return next, nil
}

// Detach ends the view. Events of it that were not read are lost.
func (v *View) Detach() error {
	v.end()
	return v.c.send(fields{keyKind: kindDetach, termID: v.Terminal.ID})
}
