package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/internal/ui"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
)

type fakeSeat struct {
	start  *host.Start
	meta   map[metadata.Key][]byte
	gate   error
	events *[]string
}

func (s *fakeSeat) Start() *host.Start            { return s.start }
func (s *fakeSeat) Meta() map[metadata.Key][]byte { return s.meta }
func (s *fakeSeat) Nonce() string                 { return "nonce" }
func (s *fakeSeat) Wait() error                   { *s.events = append(*s.events, "wait"); return s.gate }
func (s *fakeSeat) Close()                        { *s.events = append(*s.events, "close") }
func (s *fakeSeat) Fail(reason string)            { *s.events = append(*s.events, "fail "+reason) }

// screen collects what is written, and lets a test wait for it.
type screen struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

func (s *screen) await(t *testing.T, text string, times int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if strings.Count(s.String(), text) >= times {
			return
		}
	}
	t.Fatalf("%q is not on the screen %d times:\n%s", text, times, s)
}

// seated is a pane with a record, in a rig.
type seated struct {
	*rig
	seat   *fakeSeat
	body   *body
	out    *screen
	events []string
}

func newSeated(t *testing.T, start *host.Start) *seated {
	r := newRig(t)
	s := &seated{rig: r, out: &screen{}}
	rec, err := metadata.AgentSession{PluginID: "demo.agents", IntegrationID: "demo", NativeID: idA}.Encode()
	must(t, err)
	facts, err := metadata.LaunchFacts{PaneKey: metadata.NewPaneKey(), LaunchDir: r.dir, Profile: "loud"}.Encode()
	must(t, err)
	s.seat = &fakeSeat{start: start, events: &s.events, meta: map[metadata.Key][]byte{
		metadata.KeyAgentSession: rec, metadata.KeyAgentLaunch: facts,
	}}
	s.body = &body{
		seat: s.seat, environ: []string{"HOME=" + r.home, "PATH=" + r.bin}, in: strings.NewReader(""), out: s.out,
		revive: func(context.Context) (host.Start, error) {
			s.events = append(s.events, "revive")
			return host.Start{}, errors.New("no revival in this test")
		},
		exec: func(st host.Start, _ []string, nonce string) error {
			claimed := ""
			for _, c := range s.claims() {
				if !c.Reserved && c.Process.PID == os.Getpid() {
					claimed = ", claimed"
				}
			}
			s.events = append(s.events, fmt.Sprintf("exec %s as %s%s", strings.Join(st.Argv, " "), nonce, claimed))
			return nil
		},
	}
	return s
}

// program is a start of the demo agent with its guard, claimed by a reservation where wanted.
func (s *seated) program(expect owner.Presence, reserve bool) host.Start {
	s.t.Helper()
	own, err := s.e.Registry.Resolve("demo")
	must(s.t, err)
	id := metadata.Identity{IntegrationID: "demo", NativeID: idA}
	ticket := ""
	if reserve {
		c, err := s.e.Claims.Reserve(id, owner.Place{})
		must(s.t, err)
		ticket = c.Ticket
	}
	guard, err := owner.NewGuard(own.Template, id, ticket, owner.Place{}, s.e.Claims, expect).Encode()
	must(s.t, err)
	return host.Start{Mode: host.Program, Argv: []string{"/bin/demo"}, Dir: s.dir, Guard: guard, Set: []string{"HOME=" + s.home}}
}

func (s *seated) claimHeldByAnother() {
	id := metadata.Identity{IntegrationID: "demo", NativeID: idA}
	must(s.t, s.e.Claims.Rebuild(id, s.sleeper(), owner.Place{Terminal: "%7"}))
}

func TestBecome(t *testing.T) {
	for _, c := range []struct {
		name   string
		set    func(s *seated)
		events []string
		want   func(error) bool
		screen []string
	}{
		{"the session was never made", func(s *seated) {
			st := s.program(owner.Absent, true)
			s.seat.start, s.seat.gate = &st, errors.New("no")
		}, []string{"wait"}, func(err error) bool { return errors.Is(err, ErrLeave) }, nil},
		{"the agent, by its ticket", func(s *seated) {
			st := s.program(owner.Absent, true)
			s.seat.start = &st
		}, []string{"wait", "exec /bin/demo as nonce, claimed"}, func(err error) bool { return err == nil }, nil},
		{"an agent without an identity", func(s *seated) {
			s.seat.start = &host.Start{Mode: host.Program, Argv: []string{"/bin/demo"}}
		}, []string{"wait", "exec /bin/demo as nonce"}, func(err error) bool { return err == nil }, nil},
		{
			"a shell", func(s *seated) { s.seat.start = &host.Start{Mode: host.Shell} },
			[]string{"wait", "exec  as nonce"},
			func(err error) bool { return err == nil }, nil,
		},
		{
			"the conversation came meanwhile", func(s *seated) {
				st := s.program(owner.Absent, true)
				s.seat.start = &st
				s.converse(idA)
			},
			[]string{"wait", "fail …"},
			func(err error) bool { return is[*Held](err) && errors.Is(err, owner.ErrFlipped) },
			[]string{"the agent was not started", "demo", idA, "The record stays"},
		},
		{
			"it is live elsewhere", func(s *seated) {
				st := s.program(owner.Absent, false)
				s.seat.start = &st
				s.claimHeldByAnother()
			},
			[]string{"wait", "fail …"},
			func(err error) bool { return is[*Held](err) && errors.Is(err, owner.ErrLive) },
			[]string{"Go on where it runs"},
		},
		{
			"the exec fails", func(s *seated) {
				st := s.program(owner.Absent, true)
				s.seat.start = &st
				s.body.exec = func(host.Start, []string, string) error { return errExec }
			},
			[]string{"wait", "fail exec format error"},
			func(err error) bool { return is[*Held](err) && errors.Is(err, errExec) },
			[]string{"exec format error"},
		},
		{"a guard that is none", func(s *seated) {
			s.seat.start = &host.Start{Mode: host.Program, Argv: []string{"/bin/demo"}, Guard: []byte("{")}
		}, []string{"wait", "fail …"}, is[*Held], nil},
		{"a respawn", func(s *seated) {
			s.body.revive = func(context.Context) (host.Start, error) {
				s.events = append(s.events, "revive")
				return s.program(owner.Absent, false), nil
			}
		}, []string{"wait", "revive", "exec /bin/demo as nonce, claimed"}, func(err error) bool { return err == nil }, nil},
		{
			"a respawn of what cannot be", func(s *seated) {
				s.body.in = strings.NewReader("q\n")
			},
			[]string{"wait", "revive", "close"},
			func(err error) bool { return err == nil },
			[]string{"an agent waits here", "no revival in this test"},
		},
		{"a respawn of what is live elsewhere", func(s *seated) {
			s.claimHeldByAnother()
			s.body.in = strings.NewReader("q\n")
			s.body.revive = func(context.Context) (host.Start, error) { return s.program(owner.Absent, false), nil }
		}, []string{"wait", "close"}, func(err error) bool { return err == nil }, []string{"an agent waits here", "%7"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSeated(t, nil)
			c.set(s)
			err := s.body.run(context.Background())
			if !c.want(err) {
				t.Errorf("error %v", err)
			}
			for i, e := range s.events {
				if strings.HasPrefix(e, "fail ") && i < len(c.events) && c.events[i] == "fail …" {
					s.events[i] = "fail …"
				}
			}
			if diff := cmp.Diff(c.events, s.events); diff != "" {
				t.Error(diff)
			}
			if len(c.screen) == 0 && c.want(nil) && s.out.String() != "" || errors.Is(err, ErrLeave) && s.out.String() != "" {
				t.Errorf("it said %q", s.out)
			}
			for _, text := range c.screen {
				if !strings.Contains(s.out.String(), text) {
					t.Errorf("the screen does not say %q:\n%s", text, s.out)
				}
			}
			if is[*Held](err) || errors.Is(err, ErrLeave) {
				for _, claim := range s.claims() {
					if !claim.Reserved && claim.Process.PID == os.Getpid() {
						t.Errorf("a claim is left: %+v", claim)
					}
				}
			}
		})
	}
}

func TestPlaceholder(t *testing.T) {
	waiting := host.Start{Mode: host.Placeholder, Reason: "transcript-missing: nothing in \x1b]0;x\a~/.demo", Hint: "look for it"}
	t.Run("retries as often as wanted", func(t *testing.T) {
		s := newSeated(t, &waiting)
		s.body.in = strings.NewReader("\nwhat\n\n\n")
		tries := 0
		s.body.revive = func(context.Context) (host.Start, error) {
			tries++
			switch tries {
			case 1:
				return host.Start{Mode: host.Placeholder, Reason: "still not"}, nil
			case 2:
				return host.Start{}, errors.New("worse")
			}
			return s.program(owner.Absent, false), nil
		}
		must(t, s.body.run(context.Background()))
		if diff := cmp.Diff([]string{"wait", "exec /bin/demo as nonce, claimed"}, s.events); diff != "" {
			t.Error(diff)
		}
		for _, text := range []string{"transcript-missing", "look for it", "still not", "worse", "Enter, s or q", idA, "profile", "loud", s.dir} {
			if !strings.Contains(s.out.String(), text) {
				t.Errorf("the screen does not say %q", text)
			}
		}
	})
	t.Run("gives a claim back that it cannot use", func(t *testing.T) {
		s := newSeated(t, &waiting)
		s.body.in = strings.NewReader("\nq\n")
		s.body.revive = func(context.Context) (host.Start, error) { return s.program(owner.Absent, false), nil }
		s.body.exec = func(host.Start, []string, string) error { return errExec }
		must(t, s.body.run(context.Background()))
		if got := s.claims(); len(got) != 0 {
			t.Errorf("%+v", got)
		}
		if !strings.Contains(s.out.String(), errExec.Error()) {
			t.Error(s.out)
		}
	})
	t.Run("opens a shell and comes back", func(t *testing.T) {
		s := newSeated(t, &waiting)
		s.script("sh-for-test", `echo "shell in $(/bin/pwd)${PHUX_X_SESSION_ID}"; exit 7`)
		s.body.environ = append(s.body.environ, "SHELL="+s.bin+"/sh-for-test", "PHUX_X_SESSION_ID=leak")
		waiting := waiting
		waiting.Dir = s.dir
		s.seat.start = &waiting
		s.body.in = strings.NewReader("s\nq\n")
		must(t, s.body.run(context.Background()))
		if !strings.Contains(s.out.String(), "shell in "+s.dir+"\n") || strings.Count(s.out.String(), "an agent waits here") != 2 {
			t.Error(s.out)
		}
	})
	t.Run("opens a shell elsewhere where the directory is gone", func(t *testing.T) {
		s := newSeated(t, &waiting)
		s.script("sh-for-test", `echo "shell in $(/bin/pwd)"`)
		s.body.environ = append(s.body.environ, "SHELL="+s.bin+"/sh-for-test")
		waiting := waiting
		waiting.Dir = s.dir + "/gone"
		s.seat.start = &waiting
		s.body.in = strings.NewReader("s\nq\n")
		must(t, s.body.run(context.Background()))
		if !strings.Contains(s.out.String(), "shell in "+s.home+"\n") || !strings.Contains(s.out.String(), "cannot be entered") {
			t.Error(s.out)
		}
	})
	for ask, words := range map[string][2]string{host.AskEnter: {"\n", "Enter: resume it"}, host.AskWord: {"\n\nr\nresume\n", "resume: resume it"}} {
		t.Run("is asked by "+ask, func(t *testing.T) {
			asked := waiting
			asked.Ask = ask
			s := newSeated(t, &asked)
			s.body.in = strings.NewReader(words[0])
			s.body.revive = func(context.Context) (host.Start, error) {
				s.events = append(s.events, "revive")
				return s.program(owner.Absent, false), nil
			}
			must(t, s.body.run(context.Background()))
			if d := cmp.Diff([]string{"wait", "revive", "exec /bin/demo as nonce, claimed"}, s.events); d != "" {
				t.Error(d)
			}
			if !strings.Contains(s.out.String(), words[1]) || strings.Contains(s.out.String(), "Trying again") {
				t.Error(s.out)
			}
			if refused := strings.Count(s.out.String(), "Type resume") + strings.Count(s.out.String(), "resume, s or q"); ask == host.AskWord && refused != 3 {
				t.Errorf("%d words of three were refused:\n%s", refused, s.out)
			}
		})
	}
	t.Run("leaves with its terminal, and keeps the record", func(t *testing.T) {
		s := newSeated(t, &waiting)
		if err := s.body.run(context.Background()); !is[*Held](err) || !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	})
	t.Run("outlives Ctrl-C", func(t *testing.T) {
		s := newSeated(t, &waiting)
		in, keys := io.Pipe()
		s.body.in = in
		done := make(chan error, 1)
		go func() { done <- s.body.run(context.Background()) }()
		s.out.await(t, promptLine(""), 1)
		for n, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTSTP, syscall.SIGINT} {
			must(t, syscall.Kill(os.Getpid(), sig))
			s.out.await(t, "The record stays with this pane. q closes it.", n+1)
		}
		_, err := io.WriteString(keys, "q\n")
		must(t, err)
		must(t, <-done)
	})
	t.Run("ends with its context", func(t *testing.T) {
		s := newSeated(t, &waiting)
		in, keys := io.Pipe()
		defer keys.Close()
		s.body.in = in
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := s.body.run(ctx); !is[*Held](err) || !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Run("fits its screen, and is plain text", func(t *testing.T) {
		s := newSeated(t, &waiting)
		long := metadata.AgentSession{PluginID: "p", IntegrationID: "i", NativeID: strings.Repeat("é-x", 250)}
		rec, err := long.Encode()
		must(t, err)
		s.seat.meta[metadata.KeyAgentSession] = rec
		_ = s.body.run(context.Background())
		var id strings.Builder
		for line := range strings.SplitSeq(s.out.String(), "\n") {
			if ui.Width(line) > 80 {
				t.Errorf("%d cells: %q", ui.Width(line), line)
			}
			for _, r := range line {
				if r < ' ' || r == 0x7f {
					t.Errorf("a control: %q", line)
				}
			}
			if strings.Contains(line, "é-x") {
				id.WriteString(strings.TrimPrefix(strings.TrimSpace(line), "id          "))
			}
		}
		if id.String() != long.NativeID {
			t.Errorf("the id is not whole: %q", id.String())
		}
	})
	t.Run("says that a record cannot be read", func(t *testing.T) {
		s := newSeated(t, &waiting)
		s.seat.meta[metadata.KeyAgentSession] = []byte(`{"native_id":`)
		_ = s.body.run(context.Background())
		if !strings.Contains(s.out.String(), "cannot be read") {
			t.Error(s.out)
		}
	})
}

func TestFuture(t *testing.T) {
	env := future(host.Start{Set: []string{"A=1", "PHUX_X_SESSION_ID=mine", "U=set"}, Unset: []string{"B", "U"}},
		[]string{"A=0", "B=2", "C=3", "PHUX_X_SESSION_ID=theirs", "PHUX_Y_SESSION_ID=theirs", "D=1", "D=2"})
	want := map[string]string{"A": "1", "C": "3", "PHUX_X_SESSION_ID": "mine", "U": "set", "D": "2"}
	got := map[string]string{}
	for _, name := range []string{"A", "B", "C", "D", "E", "U", "PHUX_X_SESSION_ID", "PHUX_Y_SESSION_ID"} {
		if v, ok := env(name); ok {
			got[name] = v
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What a pane shows before its program is shown once, and only text and colours of it: whoever
// wrote the file.
func TestAPrefaceIsShownOnceAndClean(t *testing.T) {
	write := func(t *testing.T, text string) string {
		path := t.TempDir() + "/preface"
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	shown := func(t *testing.T, path string) string {
		start := host.Start{Mode: host.Shell, Preface: path}
		s := newSeated(t, &start)
		order := ""
		s.body.exec = func(host.Start, []string, string) error { order = s.out.String(); return nil }
		must(t, s.body.run(t.Context()))
		if got := s.out.String(); got != order {
			t.Errorf("after the program: %q, before it: %q", got, order)
		}
		return order
	}
	path := write(t, "one\x1b]0;owned\x07\x1b[2J\x1b[31mred\x1b[?1049h\r\n\x9b5ntwo\x1b[6n")
	if got, want := shown(t, path), "one\x1b[31mred\x1b[0m\n\x1b[31m\uFFFD5ntwo\x1b[0m\n"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	if got := shown(t, path); got != "" {
		t.Errorf("twice: %q", got)
	}
	if got := shown(t, ""); got != "" {
		t.Errorf("without one: %q", got)
	}
	// Nothing but a file of ours is read, or removed.
	link := t.TempDir() + "/link"
	target := write(t, "secret")
	must(t, os.Symlink(target, link))
	fifo := t.TempDir() + "/fifo"
	must(t, syscall.Mkfifo(fifo, 0o600))
	for _, other := range []string{link, fifo, t.TempDir()} {
		if got := shown(t, other); got != "" {
			t.Errorf("%s: %q", other, got)
		}
		if _, err := os.Lstat(other); err != nil {
			t.Error(err)
		}
	}
}
