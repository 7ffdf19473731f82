package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/phux-agent/phux-agent/host"
)

// peer is one client, as the server has it. One goroutine reads its requests and one writes what
// waits for it; a client that does not read is dropped once too much waits.
type peer struct {
	s    *Server
	conn connection // changed by who reads requests, under mu
	ctx  context.Context
	end  context.CancelFunc

	mu       sync.Mutex
	cond     *sync.Cond    // something waits, or the end
	progress chan struct{} // closed and replaced whenever something was written
	queue    net.Buffers
	bytes    int
	closed   bool
	behind   []*viewer
	running  map[int]context.CancelFunc // requests that take their time, by their number

	// after runs once the request at hand is answered: a picture comes after the reply, so that
	// who waits for that need not read events meanwhile. It belongs to the one who reads requests.
	after func()

	// Under the server's lock.
	viewers map[string]*viewer
	watches map[string]bool // scopes
	events  bool
	results int // that it has not read
}

const (
	// soon is how long a client may take to say hello.
	soon = 5 * time.Second
	// full is what may wait for a client before programs wait for it, in bytes.
	full = 1 << 20
	// batch is what is written at once, so that progress is seen.
	batch = 256 << 10
)

func (s *Server) newPeer(conn *net.UnixConn) *peer {
	p := &peer{
		s: s, conn: polled{conn}, progress: make(chan struct{}), running: make(map[int]context.CancelFunc),
		viewers: make(map[string]*viewer), watches: make(map[string]bool),
	}
	p.cond = sync.NewCond(&p.mu)
	p.ctx, p.end = context.WithCancel(context.Background())
	return p
}

// push queues a frame. A client for which too much waits is dropped.
func (p *peer) push(frame []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.put(frame)
}

func (p *peer) put(frame []byte) {
	if p.closed {
		return
	}
	if p.bytes > 0 && p.bytes+len(frame) > maxQueue && len(frame) < maxQueue || p.bytes > maxQueue {
		p.closed = true
		p.conn.Close()
		p.cond.Broadcast()
		return
	}
	if p.bytes == 0 { // nobody is writing
		if frame = frame[writeNow(p.conn, frame):]; len(frame) == 0 {
			return
		}
	}
	p.queue = append(p.queue, frame)
	p.bytes += len(frame)
	p.cond.Signal()
}

// output queues a frame of a terminal, and says whether more waits than a program should go on
// for.
func (p *peer) output(frame []byte) (wait bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.put(frame)
	return p.bytes > full
}

// drained waits until less waits, as long as the client reads at all.
func (p *peer) drained(patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		p.mu.Lock()
		ok, progress := p.closed || p.bytes <= full/2, p.progress
		p.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-progress:
			timer.Reset(patience)
		case <-timer.C:
			return false
		}
	}
}

// fallBehind remembers whom to show the screen once everything was read.
func (p *peer) fallBehind(v *viewer) {
	p.mu.Lock()
	p.behind = append(p.behind, v)
	idle := p.bytes == 0
	p.mu.Unlock()
	if idle { // it has read everything in between
		p.catchUp()
	}
}

func (p *peer) catchUp() {
	p.mu.Lock()
	behind := p.behind
	p.behind = nil
	p.mu.Unlock()
	for _, v := range behind {
		v.terminal.out.repaint(v)
	}
}

func (p *peer) write() {
	defer p.shut()
	for {
		p.mu.Lock()
		for len(p.queue) == 0 && !p.closed {
			p.cond.Wait()
		}
		if p.closed {
			p.mu.Unlock()
			return
		}
		n, size := 0, 0
		for n < len(p.queue) && (n == 0 || size+len(p.queue[n]) <= batch) {
			size += len(p.queue[n])
			n++
		}
		out, conn := append(net.Buffers(nil), p.queue[:n]...), p.conn
		if p.queue = p.queue[n:]; len(p.queue) == 0 {
			p.queue = nil
		}
		p.mu.Unlock()
		_, err := conn.writeAll(out)
		p.mu.Lock()
		p.bytes -= size
		close(p.progress)
		p.progress = make(chan struct{})
		if err != nil {
			p.closed = true
		}
		idle := p.bytes == 0 && len(p.behind) > 0
		p.mu.Unlock()
		if err != nil {
			return
		}
		if idle {
			p.catchUp()
		}
	}
}

// shut ends the peer.
func (p *peer) shut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.cond.Broadcast()
	p.conn.Close()
}

// hurry lets requests be waited for on a thread, for a person waits for what they type. It is
// called by the one who reads them.
func (p *peer) hurry() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c, ok := p.conn.(polled); ok && !p.closed && p.bytes == 0 { // and nobody is writing
		if d, ok := newBlocking(c.UnixConn); ok {
			p.conn = d
		}
	}
}

// Read is for the one who reads requests.
func (p *peer) Read(b []byte) (int, error) { return p.conn.Read(b) }

func (p *peer) serve() {
	defer p.gone()
	go p.write()
	late := time.AfterFunc(soon, p.shut)
	defer late.Stop()
	r := &bounded{p: p, r: bufio.NewReader(p)}
	body, err := r.frame()
	if err != nil {
		return
	}
	f, err := decodeFields(body)
	if err != nil {
		return
	}
	m := reading{fields: f}
	if m.number(keyKind) != kindHello {
		return
	}
	if v := m.number(helloVersion); v != Version || m.err != nil {
		p.reply(m.number(keyRequest), errorFields(fmt.Errorf("%w: %d, and this server %d", ErrVersion, v, Version)))
		return
	}
	p.reply(m.number(keyRequest), p.s.hello())
	late.Stop()
	for {
		body, err := r.frame()
		id, data, typed := dataOf(kindInput, body)
		var f fields
		if err == nil && !typed {
			f, err = decodeFields(body)
		}
		if err != nil {
			if errors.Is(err, ErrFrame) {
				p.s.log.Warn("a client is dropped", "reason", err)
			}
			return
		}
		p.s.touch()
		if typed {
			_ = p.s.input(id, data) // a request without a number: nobody is told
			continue
		}
		if !p.handle(f) {
			return
		}
	}
}

// gone takes back everything that the client had.
func (p *peer) gone() {
	p.end()
	p.shut()
	s := p.s
	s.mu.Lock()
	delete(s.peers, p)
	var left []*viewer
	for _, v := range p.viewers {
		left = append(left, v)
	}
	for token, r := range s.results {
		if r.owner == p {
			delete(s.results, token)
		}
	}
	for _, v := range left {
		s.leave(v)
	}
	s.mu.Unlock()
	s.touch()
}

// reply answers a request. One with the number 0 wants no answer.
func (p *peer) reply(request int, f fields) {
	if request == 0 {
		return
	}
	if f == nil {
		f = fields{}
	}
	if f[keyKind] == nil {
		f[keyKind] = kindOK
	}
	f[keyRequest] = request
	frame := f.frame()
	if len(frame) > MaxReply+4 {
		e := errorFields(fmt.Errorf("%w: the answer is longer than %d bytes", ErrBusy, MaxReply))
		e[keyRequest] = request
		frame = e.frame()
	}
	p.push(frame)
}

// handle carries a request out, or starts to. It is false where the client is to be dropped.
func (p *peer) handle(f fields) bool {
	m := &reading{fields: f}
	kind, id := m.number(keyKind), m.number(keyRequest)
	if m.err != nil {
		return false
	}
	switch kind {
	case kindCancel:
		p.mu.Lock()
		if stop := p.running[m.number(cancelRequest)]; stop != nil {
			stop()
		}
		p.mu.Unlock()
		return true
	case kindInput:
		term, b := m.text(termID), m.data(termData)
		err := m.err
		if err == nil {
			err = p.s.input(term, b)
		}
		p.answer(id, nil, err)
		return true
	case kindReplace:
		p.later(id, func(ctx context.Context) (fields, error) {
			id, was, spec, err := readReplace(f)
			if err != nil {
				return nil, err
			}
			st, err := p.s.replace(ctx, id, was, spec)
			if err != nil {
				return nil, err
			}
			return startedFields(*st), nil
		})
		return true
	case kindSpawn, kindRespawn:
		p.later(id, func(ctx context.Context) (fields, error) {
			if kind == kindRespawn {
				return nil, p.s.respawn(ctx, m.text(termID))
			}
			sp, err := readSpawn(f, p.s.inst)
			if err != nil {
				return nil, err
			}
			st, err := p.s.spawn(ctx, sp)
			if err != nil {
				return nil, err
			}
			return startedFields(*st), nil
		})
		return true
	case kindSet:
		if m.text(metaScope) == "" && m.text(metaKey) == createKey {
			value := m.data(metaValue)
			p.later(id, func(ctx context.Context) (fields, error) { return nil, p.s.createByKey(ctx, p, value) })
			return true
		}
	case kindState:
		// It asks the system about every process: not while this client's next request waits.
		p.later(id, func(context.Context) (fields, error) {
			return fields{stateSessions: workspaceFields(p.s.snapshot())}, nil
		})
		return true
	}
	out, err := p.now(kind, m)
	if err == nil && m.err != nil {
		err = m.err
	}
	p.answer(id, out, err)
	if f := p.after; f != nil {
		p.after = nil
		f()
	}
	return true
}

func (p *peer) answer(id int, out fields, err error) {
	if err != nil {
		out = errorFields(err)
	}
	p.reply(id, out)
}

// later runs a request beside the others of its client, of which so many may be.
func (p *peer) later(id int, f func(context.Context) (fields, error)) {
	ctx, stop := context.WithCancel(p.ctx)
	p.mu.Lock()
	_, twice := p.running[id]
	if twice || id == 0 || len(p.running) >= maxRequests {
		p.mu.Unlock()
		stop()
		p.answer(id, nil, fmt.Errorf("%w: %d requests of one client at once, each with a number of its own", ErrBusy, maxRequests))
		return
	}
	p.running[id] = stop
	p.mu.Unlock()
	// An ending server waits for the jobs that it has, and takes no more.
	p.s.mu.Lock()
	closing := p.s.closing
	if !closing {
		p.s.jobs.Add(1)
	}
	p.s.mu.Unlock()
	go func() {
		if closing {
			f = func(context.Context) (fields, error) { return nil, errClosing }
		} else {
			defer p.s.jobs.Done()
		}
		out, err := f(ctx)
		p.mu.Lock()
		delete(p.running, id)
		p.mu.Unlock()
		stop()
		p.answer(id, out, err)
	}()
}

// now are the requests that take no time.
func (p *peer) now(kind int, m *reading) (fields, error) {
	s := p.s
	switch kind {
	case kindSet, kindSwap, kindDelete:
		w := write{scope: m.text(metaScope), key: m.text(metaKey), value: m.data(metaValue)}
		switch kind {
		case kindDelete:
			w.value, w.delete = nil, true
		case kindSwap:
			w.compare, w.old = true, m.data(metaOld)
			w.delete = len(w.value) == 0
		}
		if m.err != nil {
			return nil, m.err
		}
		return nil, s.write(w)
	case kindGet:
		value, present, err := s.get(p, m.text(metaScope), m.text(metaKey))
		return fields{metaValue: value, metaPresent: present}, err
	case kindList:
		values, err := s.list(m.text(metaScope))
		return fields{metaValues: values}, err
	case kindWatch:
		return nil, s.watch(p, m.text(metaScope), true)
	case kindUnwatch:
		return nil, s.watch(p, m.text(metaScope), false)
	case kindEvents:
		s.mu.Lock()
		p.events = true
		s.mu.Unlock()
		return nil, nil
	case kindAttach, kindResize:
		if kind == kindResize && m.flag(termHold) {
			return nil, s.hold(p, m.text(termID))
		}
		if kind == kindAttach {
			p.hurry()
		}
		return s.attach(p, m.text(termID), m.number(termCols), m.number(termRows), kind == kindAttach)
	case kindDetach:
		s.mu.Lock()
		defer s.mu.Unlock()
		v := p.viewers[m.text(termID)]
		if v == nil {
			return nil, host.ErrNoTerminal
		}
		s.leave(v)
		return nil, nil
	case kindKill:
		if name := m.text(termSession); name != "" {
			return nil, s.killSession(name)
		}
		return nil, s.kill(m.text(termID))
	case kindRead:
		return s.read(m.text(termID), m.number(termLines), m.flag(termLooks), m.flag(termBelow))
	case kindFocus:
		return nil, s.focus(m.text(termID))
	case kindBind:
		meta, err := readMeta(m.data(bindRecord), m.maps(bindMeta))
		if err == nil && m.err != nil {
			err = m.err
		}
		if err != nil {
			return nil, err
		}
		return nil, s.bind(m.text(termID), m.number(bindPID), m.unsigned(bindStart), meta)
	case kindEnviron:
		return fields{environValues: s.env}, nil
	case kindShutdown:
		s.Shutdown()
		return nil, nil
	}
	return nil, fmt.Errorf("%w: no request of kind %d", host.ErrRequest, kind)
}

// bounded reads a client's frames. Large ones take turns among all clients, so that many clients
// together hold no more memory than a few.
type bounded struct {
	p *peer
	r *bufio.Reader // small: what is large is read past it
}

const (
	largeFrame  = 1 << 20
	largeFrames = 4
	largeTime   = 10 * time.Second // in which a large one must be there whole
)

func (b *bounded) frame() ([]byte, error) {
	n, err := readLength(b.r, MaxFrame)
	if err != nil {
		return nil, err
	}
	if n > largeFrame {
		b.p.s.large <- struct{}{}
		defer func() { <-b.p.s.large }()
		late := time.AfterFunc(largeTime, b.p.shut)
		defer late.Stop()
	}
	return readBytes(b.r, n)
}
