package embedded

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/internal/proc"
)

// Names in the environment of every process in a terminal of this host.
const (
	EnvTerminal = "PHUX_TERMINAL_ID"
	EnvSocket   = "PHUX_SOCKET"
)

// ServerOptions are what a server is started with.
type ServerOptions struct {
	Name    string // of the server, as -L gives it
	Socket  string // absolute path; its directory is made, and must be the user's alone
	Self    string // this program, which is run as Self pane-exec --embedded in each terminal
	Environ []string
	Version string        // of the program, told in HELLO
	Idle    time.Duration // how long a server without a session stays; 0 is DefaultIdle
	Log     *slog.Logger  // nil: none
	Ready   func()        // called once clients can come
	Saves   Saves
	// Older makes a server as it was before ADR-0068: it ignores a spawn's record, and anybody
	// may write the names of results. For tests.
	Older bool
}

// DefaultIdle is how long a server without a session stays.
const DefaultIdle = time.Minute

// Server owns the terminals. It is served once.
type Server struct {
	opt    ServerOptions
	inst   host.Instance
	home   string
	env    []string
	log    *slog.Logger
	reaper reaper
	large  chan struct{}
	stop   chan struct{}
	halt   func()
	jobs   sync.WaitGroup // requests that take their time

	mu        sync.Mutex
	sessions  []*session // in the order of their birth
	last      *session   // the one looked at last
	terminals map[string]*terminal
	building  int
	names     map[string]chan struct{} // of sessions that are being built
	ids       struct{ terminal, window, session int }
	globals   scope
	results   map[string]*result
	peers     map[*peer]bool
	idle      *time.Timer
	closing   bool
	saveDue   bool
	settleDue bool
}

var errClosing = fmt.Errorf("%w: the server is about to end", host.ErrNoServer)

// NewServer makes a server that does not serve yet.
func NewServer(opt ServerOptions) (*Server, error) {
	for _, path := range []string{opt.Socket, opt.Self} {
		if !filepath.IsAbs(path) {
			return nil, fmt.Errorf("server: %q is not an absolute path", path)
		}
	}
	if err := CheckName(opt.Name); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	if opt.Idle <= 0 {
		opt.Idle = DefaultIdle
	}
	s := &Server{
		opt: opt, log: opt.Log, env: serverEnv(opt.Environ), large: make(chan struct{}, largeFrames),
		stop: make(chan struct{}), terminals: make(map[string]*terminal), names: make(map[string]chan struct{}),
		globals: make(scope), results: make(map[string]*result), peers: make(map[*peer]bool),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.halt = sync.OnceFunc(func() { close(s.stop) })
	s.reaper.children = make(map[int]*child)
	for _, kv := range s.env {
		if v, ok := strings.CutPrefix(kv, "HOME="); ok && filepath.IsAbs(v) {
			s.home = v
		}
	}
	if s.home == "" {
		s.home = "/"
	}
	boot, err := proc.BootID()
	if err != nil && !errors.Is(err, proc.ErrUnsupported) {
		return nil, fmt.Errorf("server: %w", err)
	}
	s.inst = host.Instance{Kind: Kind, Socket: opt.Socket, PID: os.Getpid(), Start: newNonce(), Boot: boot}
	return s, nil
}

// serverEnv is what a terminal's program inherits: not what names another multiplexer's pane, nor
// what was said of the terminal that the server was started from.
func serverEnv(environ []string) []string {
	var out []string
	for _, kv := range environ {
		k, _, ok := strings.Cut(kv, "=")
		switch {
		case !ok || k == "" || host.IsNativeEnv(k) || k == host.BirthEnv:
		case slices.Contains([]string{"TMUX", "TMUX_PANE", "TERM", "COLORTERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "COLUMNS", "LINES", "WINDOWID", EnvTerminal, EnvSocket, readyEnv}, k):
		default:
			out = append(out, kv)
		}
	}
	return append(out, "TERM=xterm-256color", "COLORTERM=truecolor")
}

func newNonce() string {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic(err) // cannot be: it ends the program itself
	}
	return hex.EncodeToString(b[:])
}

func (s *Server) paneArgv() []string { return []string{s.opt.Self, "pane-exec", Flag} }

// Shutdown tells the server to end: its terminals are hung up, and Serve returns.
func (s *Server) Shutdown() { s.halt() }

// Serve owns the socket until the server is told to end, the context ends, or no session is
// there for long. ErrRunning where another server has the socket.
func (s *Server) Serve(ctx context.Context) error {
	sock, err := listen(s.opt.Socket)
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	defer sock.close()

	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	done := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for {
			select {
			case <-ended:
				s.reaper.reap()
			case <-done:
				return
			}
		}
	})
	all.Go(func() { s.accept(sock.listener) })
	all.Go(s.beat)
	s.mu.Lock()
	s.rest()
	s.mu.Unlock()
	s.log.Info("serving", "socket", s.opt.Socket, "pid", os.Getpid(), "life", s.inst.Start)
	if s.opt.Ready != nil {
		s.opt.Ready()
	}
	select {
	case <-s.stop:
	case <-ctx.Done():
	}
	s.halt()
	sock.listener.Close()
	s.end()
	close(done)
	all.Wait()
	s.log.Info("ended")
	return nil
}

// farewell bounds how long an ending server waits for clients to read what waits for them, and
// for programs to end.
const farewell = 2 * time.Second

func (s *Server) end() {
	s.mu.Lock()
	s.closing = true
	if s.idle != nil {
		s.idle.Stop()
	}
	var children []*child
	for _, t := range s.terminals {
		children = append(children, t.child)
	}
	peers := make([]*peer, 0, len(s.peers))
	for p := range s.peers {
		peers = append(peers, p)
	}
	s.mu.Unlock()
	for _, c := range children {
		s.reaper.hangup(c)
	}
	for end := time.Now().Add(farewell); s.reaper.alive() > 0 && time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		s.reaper.reap()
	}
	// The last words reach whoever reads them.
	for _, p := range peers {
		p.end()
	}
	s.jobs.Wait()
	for _, p := range peers {
		for end := time.Now().Add(farewell / 4); p.waits() && time.Now().Before(end); time.Sleep(time.Millisecond) {
		}
		p.shut()
	}
}

func (p *peer) waits() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bytes > 0 && !p.closed
}

func (s *Server) accept(l *net.UnixListener) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			// No descriptor is free, or the like: it may pass.
			s.log.Warn("accept", "error", err)
			select {
			case <-s.stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		if err := checkPeer(conn); err != nil {
			s.log.Warn("a client is refused", "reason", err)
			conn.Close()
			continue
		}
		p := s.newPeer(conn)
		s.mu.Lock()
		ok := len(s.peers) < maxClients && !s.closing
		if ok {
			s.peers[p] = true
		}
		s.mu.Unlock()
		if !ok {
			s.log.Warn("a client is refused", "reason", "too many")
			f := errorFields(fmt.Errorf("%w: %d clients", ErrBusy, maxClients))
			_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
			_, _ = conn.Write(f.frame())
			conn.Close()
			continue
		}
		go p.serve()
	}
}

func (s *Server) hello() fields {
	s.mu.Lock()
	sessions := len(s.sessions)
	s.mu.Unlock()
	f := fields{
		helloVersion: Version, helloPID: s.inst.PID, helloLife: s.inst.Start, helloBoot: s.inst.Boot,
		helloSocket: s.inst.Socket, helloName: s.opt.Name, helloProgram: s.opt.Version, helloSessions: sessions,
		helloLimits: fields{
			limitFrame: MaxFrame, limitClients: maxClients, limitWatches: maxWatches, limitResults: maxResults,
			limitValue: host.MaxValue, limitRecord: 4096, limitPending: maxQueue, limitTerminal: maxTerminals,
		},
	}
	if !s.opt.Older {
		f[helloFeatures] = []string{featureRecord, featureReserved}
	}
	return f
}

// changed tells every client that asked for it. The lock is held.
func (s *Server) changed(f fields) {
	s.rest()
	if f[eventWhat] != "focus" {
		s.due()
	}
	f[keyKind] = kindEvent
	var frame []byte
	for p := range s.peers {
		if p.events {
			if frame == nil {
				frame = f.frame()
			}
			p.push(frame)
		}
	}
}

// touch is a sign of life: the server without a session stays a while longer.
func (s *Server) touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest()
}

// rest winds the clock that ends an empty server. The lock is held.
func (s *Server) rest() {
	switch {
	case s.closing:
	case len(s.sessions) > 0:
		if s.idle != nil {
			s.idle.Stop()
		}
	case s.idle == nil:
		s.idle = time.AfterFunc(s.opt.Idle, s.expire)
	default:
		s.idle.Reset(s.opt.Idle)
	}
}

func (s *Server) expire() {
	s.mu.Lock()
	empty := len(s.sessions) == 0 && s.building == 0 && len(s.names) == 0
	if empty {
		s.closing = true // nothing is begun any more
	} else {
		s.rest()
	}
	s.mu.Unlock()
	if empty {
		s.log.Info("no session is left")
		s.halt()
	}
}
