package attach

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/phux-agent/phux-agent/host"
)

// stage is a person's terminal, and a server that is played.
type stage struct {
	t         *testing.T
	ptmx, tty *os.File
	before    term.State

	mu    sync.Mutex
	shown strings.Builder
	here  *sync.Cond

	workspace *host.Workspace
	snapshot  func() // called by each Snapshot
	tell      func(Event)
	typed     strings.Builder
	exits     chan host.Terminal
	gone      chan struct{}
	opened    []string
}

func newStage(t *testing.T) *stage {
	ptmx, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, ptmx: ptmx, tty: tty, tell: func(Event) {}, exits: make(chan host.Terminal), gone: make(chan struct{}), snapshot: func() {}}
	s.here = sync.NewCond(&s.mu)
	if err := pty.Setsize(ptmx, &pty.Winsize{Cols: 80, Rows: 24}); err != nil {
		t.Fatal(err)
	}
	s.before = *s.termios()
	s.workspace = &host.Workspace{Sessions: []host.Session{
		{Name: "a", Windows: []host.Window{{Active: true, Panes: []host.Pane{{Terminal: host.Terminal{ID: "%0"}, Active: true}}}}},
		{Name: "b", Active: true, Windows: []host.Window{{Active: true, Panes: []host.Pane{{Terminal: host.Terminal{ID: "%1"}, Active: true}}}}},
	}}
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := ptmx.Read(b)
			s.mu.Lock()
			s.shown.Write(b[:n])
			s.here.Broadcast()
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { tty.Close(); ptmx.Close() })
	return s
}

func (s *stage) termios() *term.State {
	a, err := term.GetState(int(s.tty.Fd()))
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

func (s *stage) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.String()
}

func (s *stage) type1(text string) {
	if _, err := io.WriteString(s.ptmx, text); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) shows(want string) {
	s.t.Helper()
	timer := time.AfterFunc(20*time.Second, func() { s.mu.Lock(); s.here.Broadcast(); s.mu.Unlock() })
	end := time.Now().Add(20 * time.Second)
	defer timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !strings.Contains(s.shown.String(), want) {
		if time.Now().After(end) {
			s.t.Fatalf("not %q in %q", want, s.shown.String())
		}
		s.here.Wait()
	}
}

// restored says that the terminal is as it was, and that its modes were put back last.
func (s *stage) restored() {
	s.t.Helper()
	if now := *s.termios(); now != s.before {
		s.t.Errorf("the terminal is %+v, and was %+v", now, s.before)
	}
	s.shows("\x1b[<9u\x1b[23;2t")
}

func (s *stage) Snapshot(context.Context) (*host.Workspace, error) {
	s.snapshot()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.workspace, nil
}

func (s *stage) Open(_ context.Context, t host.Terminal, _, _ int, tell func(Event)) (View, error) {
	s.opened = append(s.opened, t.ID)
	s.paint(tell)
	return s, nil
}

func (s *stage) paint(tell func(Event)) {
	s.mu.Lock()
	s.tell = tell
	s.mu.Unlock()
	tell(Event{Output: []byte("painted")})
}

func (s *stage) Scrollback(context.Context, host.Terminal) (string, error) { return "one\ntwo", nil }
func (s *stage) Kill(context.Context, host.Terminal) error                 { return nil }
func (s *stage) Respawn(context.Context, host.Terminal) error              { return nil }
func (s *stage) Focus(context.Context, host.Terminal) error                { return nil }
func (s *stage) Shell(context.Context, string, string) (host.Terminal, error) {
	return host.Terminal{}, errors.New("no more shells")
}
func (s *stage) Exits() <-chan host.Terminal { return s.exits }
func (s *stage) Gone() <-chan struct{}       { return s.gone }
func (s *stage) Hold(context.Context) error  { return nil }
func (s *stage) Show(_ context.Context, _, _ int, tell func(Event)) error {
	s.paint(tell)
	return nil
}
func (s *stage) Detach() error { return nil }
func (s *stage) Input(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.typed.Write(b)
	return nil
}

// The terminal is put back where our own code panics, too.
func TestPanicPutsTheTerminalBack(t *testing.T) {
	s := newStage(t)
	s.snapshot = func() {
		if len(s.opened) > 0 {
			panic("as if by a fault of ours")
		}
	}
	s.type1("\x02")
	var said any
	func() {
		defer func() { said = recover() }()
		_, _ = Run(t.Context(), s, Options{}, s.tty, s.tty)
	}()
	if said == nil {
		t.Fatal("no panic")
	}
	s.restored()
}

func TestRun(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		play    func(s *stage)
		end     End
		err     error
		opened  string
	}{
		"detach":          {Options{}, func(s *stage) { s.type1("\x02d") }, End{Detached, "b"}, nil, "%1"},
		"another prefix":  {Options{Prefix: 1}, func(s *stage) { s.type1("\x02\x01d") }, End{Detached, "b"}, nil, "%1"},
		"a session":       {Options{Session: "a"}, func(s *stage) { s.type1("\x02d") }, End{Detached, "a"}, nil, "%0"},
		"no such session": {Options{Session: "c"}, func(*stage) {}, End{}, host.ErrNoSession, ""},
		"next":            {Options{}, func(s *stage) { s.type1("\x02n\x02d") }, End{Detached, "a"}, nil, "%1 %0"},
		"last":            {Options{}, func(s *stage) { s.type1("\x02p\x02l\x02d") }, End{Detached, "b"}, nil, "%1 %0 %1"},
		"lost":            {Options{}, func(s *stage) { s.shows("painted"); close(s.gone) }, End{Session: "b"}, ErrLost, "%1"},
		"ended": {Options{}, func(s *stage) {
			s.shows("painted")
			s.mu.Lock()
			s.workspace = &host.Workspace{Sessions: s.workspace.Sessions[1:]}
			tell := s.tell
			s.mu.Unlock()
			tell(Event{Closed: true})
		}, End{NoneLeft, "b"}, nil, "%1"},
		"what goes wrong is said": {Options{}, func(s *stage) {
			s.type1("\x02c")
			s.shows("no more shells")
			if text := s.text(); strings.LastIndex(text, "painted") < strings.LastIndex(text, "d detach") {
				s.t.Errorf("the line stands below what was there before: %q", text)
			}
			s.type1("x\x02d")
		}, End{Detached, "b"}, nil, "%1"},
		"the other form of a key, twice": {Options{}, func(s *stage) {
			s.type1("\x1b[98;5u\x02")
			for {
				if s.mu.Lock(); s.typed.Len() > 0 {
					break
				}
				s.mu.Unlock()
				time.Sleep(time.Millisecond)
			}
			s.mu.Unlock()
			s.type1("\x02d")
		}, End{Detached, "b"}, nil, "%1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			go c.play(s)
			end, err := Run(t.Context(), s, c.options, s.tty, s.tty)
			if end != c.end || !errors.Is(err, c.err) || err != nil && c.err == nil || strings.Join(s.opened, " ") != c.opened {
				t.Errorf("%+v, %v, opened %v; want %+v, %v, %s", end, err, s.opened, c.end, c.err, c.opened)
			}
			s.restored()
		})
	}
}
