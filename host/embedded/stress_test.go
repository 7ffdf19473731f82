package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

// times is how often a stress test does its thing: so often, or as an environment value says.
func times(t *testing.T, variable string, n int) int {
	t.Helper()
	if v, err := strconv.Atoi(os.Getenv(variable)); err == nil && v > 0 {
		return v
	}
	if testing.Short() {
		return max(n/10, 1)
	}
	return n
}

// TestObservers: no observer ever sees a terminal without its record, nor a record without its
// terminal. EMBEDDED_OBSERVED spawns (100), 64 observers.
func TestObservers(t *testing.T) {
	s := newStage(t)
	n := times(t, "EMBEDDED_OBSERVED", 100)
	s.create(sessionOf("base", sleeper("base")))
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	var looks atomic.Int64
	var once sync.Once
	begun := make(chan struct{}, 64)
	for range 64 {
		c := s.dial()
		all.Go(func() {
			first := true
			for ctx.Err() == nil {
				w, err := c.Snapshot(ctx)
				if ctx.Err() != nil {
					return
				}
				wrong := ""
				if err != nil {
					wrong = err.Error()
				} else {
					seen := make(map[string]bool)
					for _, se := range w.Sessions {
						for _, win := range se.Windows {
							for _, p := range win.Panes {
								rec := string(p.Meta[metadata.KeyAgentSession])
								facts := string(p.Meta[metadata.KeyAgentLaunch])
								if rec == "" || seen[rec] || rec != "base" && facts != "facts of "+rec {
									wrong = fmt.Sprintf("terminal %s holds %q", p.Terminal.ID, p.Meta)
								}
								seen[rec] = true
							}
						}
					}
				}
				if wrong != "" {
					once.Do(func() { t.Error(wrong) })
					return
				}
				if looks.Add(1); first {
					first = false
					begun <- struct{}{}
				}
			}
		})
	}
	for range 64 {
		<-begun
	}
	for i := range n {
		rec := fmt.Sprintf("r%d", i)
		spec := sleeper(rec)
		spec.Meta[metadata.KeyAgentLaunch] = []byte("facts of " + rec)
		if i%3 == 1 { // a child that cannot start takes nothing with it that another sees
			spec.Start.Argv = []string{"/nonexistent/agent"}
		}
		st, err := s.host.Spawn(context.Background(), host.Spawn{Session: "base", Pane: spec})
		if err != nil {
			t.Fatal(err)
		}
		if (st.Err != nil) != (i%3 == 1) || string(st.Meta[metadata.KeyAgentSession]) != rec {
			t.Fatalf("spawn %d: %+v", i, st)
		}
		if err := s.host.Kill(context.Background(), st.Terminal); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	all.Wait()
	t.Logf("%d spawns, %d looks", n, looks.Load())
}

// TestRacingCreates: of creates with one name exactly one wins, and the winner's records are there
// alone. EMBEDDED_RACES creates (1000), four at a time.
func TestRacingCreates(t *testing.T) {
	s := newStage(t)
	s.create(sessionOf("base", sleeper("base")))
	for round := range times(t, "EMBEDDED_RACES", 1000) / 4 {
		var all sync.WaitGroup
		errs := make([]error, 4)
		for i := range errs {
			all.Go(func() {
				_, errs[i] = s.host.Create(context.Background(), sessionOf("race", sleeper(fmt.Sprintf("%d by %d", round, i))))
			})
		}
		all.Wait()
		winner := -1
		for i, err := range errs {
			if err == nil && winner < 0 {
				winner = i
			} else if !errors.Is(err, host.ErrSessionExists) {
				t.Fatalf("round %d: %v", round, errs)
			}
		}
		w, err := s.host.Snapshot(context.Background())
		if err != nil || winner < 0 || len(w.Sessions) != 2 {
			t.Fatalf("round %d: %v, %v, %+v", round, errs, err, w)
		}
		p := w.Sessions[1].Windows[0].Panes
		if len(p) != 1 || string(p[0].Meta[metadata.KeyAgentSession]) != fmt.Sprintf("%d by %d", round, winner) {
			t.Fatalf("round %d: %+v", round, p)
		}
		if err := s.host.Kill(context.Background(), p[0].Terminal); err != nil {
			t.Fatal(err)
		}
	}
}

// killedClient is a client in a process of its own that makes a session of three, and is killed
// after the delay.
func killedClient(ctx context.Context, socket, name string, after time.Duration) error {
	order, err := json.Marshal(map[string]any{"Create": sessionOf(name, sleeper(name+"/0"), sleeper(name+"/1"), sleeper(name+"/2"))})
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, "order", socket)
	cmd.Stdin = bytes.NewReader(order)
	if err := cmd.Start(); err != nil {
		return err
	}
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait() // killed, or through, or its server was killed
	timer.Stop()
	return nil
}

// TestKillAtRandom: programs, clients and servers are killed at any moment; what is there is
// whole, and no program outlives its server for long. EMBEDDED_LIVES of the server (10).
func TestKillAtRandom(t *testing.T) {
	s := newStage(t)
	random := rand.New(rand.NewPCG(3, 3))
	var pids sync.Map
	var made atomic.Int64
	for life := range times(t, "EMBEDDED_LIVES", 10) {
		s.create(sessionOf("base", sleeper("base")))
		server := s.dial().Instance.PID
		stop := make(chan struct{})
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+(n*7+i*13)%40)*time.Millisecond)
					rec := fmt.Sprintf("%d.%d.%d", life, i, n)
					out, err := s.host.Spawn(ctx, host.Spawn{Session: "base", Pane: sleeper(rec)})
					cancel()
					if err == nil {
						pids.Store(out.PID, true)
						if n%2 == 0 {
							_ = syscall.Kill(out.PID, syscall.SIGKILL)
						} else {
							_ = s.host.Kill(context.Background(), out.Terminal)
						}
					}
				}
			})
		}
		ctx, cancel := context.WithCancel(context.Background())
		if err := killedClient(ctx, s.socket, fmt.Sprintf("client%d.whole", life), time.Minute); err != nil {
			t.Fatal(err)
		}
		for i := range 2 { // clients that are killed while they make a session
			all.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					if err := killedClient(ctx, s.socket, fmt.Sprintf("client%d.%d.%d", life, i, n), time.Duration(n*11%60)*time.Millisecond); err != nil && ctx.Err() == nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Go(func() { // and those that look, and are gone without a word
			for n := 0; ctx.Err() == nil; n++ {
				conn, err := net.Dial("unix", s.socket)
				if err != nil {
					continue // the server is killed
				}
				_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
				for i, f := range []fields{
					{keyKind: kindHello, keyRequest: 1, helloVersion: Version},
					{keyKind: kindAttach, keyRequest: 2, termID: "%0", termCols: 10 + n%90, termRows: 5},
					{keyKind: kindInput, termID: "%0", termData: []byte("x")},
					{keyKind: kindState, keyRequest: 3},
				} {
					if i <= n%5 {
						_, _ = conn.Write(f.frame())
					}
				}
				_, _ = readFrame(conn, MaxReply) // or more would come than a server lets in
				conn.Close()
			}
		})
		looks := 5 + random.IntN(30)
		for range looks {
			w, err := s.host.Snapshot(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			for _, se := range w.Sessions {
				panes := 1
				if se.Name != "base" {
					panes = 3
					made.Add(1)
				}
				for _, win := range se.Windows {
					if len(win.Panes) != panes || panes == 3 && len(se.Windows) != 1 {
						t.Fatalf("session %s: %+v", se.Name, se.Windows)
					}
					for i, p := range win.Panes {
						rec := string(p.Meta[metadata.KeyAgentSession])
						if rec == "" || panes == 3 && rec != fmt.Sprintf("%s/%d", se.Name, i) {
							t.Fatalf("terminal %s of session %s holds %q", p.Terminal.ID, se.Name, rec)
						}
						pids.Store(p.PID, true)
					}
				}
			}
		}
		if err := syscall.Kill(server, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		close(stop)
		cancel()
		all.Wait()
		until(t, func() string {
			left := ""
			pids.Range(func(pid, _ any) bool {
				if running(pid.(int)) {
					left = fmt.Sprintf("%d runs without its server", pid)
				}
				return left == ""
			})
			return left
		})
	}
	if made.Load() == 0 {
		t.Error("no session of a client of its own was seen")
	}
}

// TestNothingLeaks: EMBEDDED_SPAWNS spawns (200) leave no goroutine and no descriptor in the
// server. The collector would close what is forgotten, and so it rests while things are counted: after
// each batch.
func TestNothingLeaks(t *testing.T) {
	dir, err := os.MkdirTemp("", "phux")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	self, _ := os.Executable()
	server, err := NewServer(ServerOptions{
		Name: "test", Socket: filepath.Join(dir, "run", "s.sock"), Self: self, Environ: os.Environ(), Idle: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(context.Background()) }()
	h, err := New(Options{Socket: server.opt.Socket})
	if err != nil {
		t.Fatal(err)
	}
	until(t, func() string {
		if c, err := h.Dial(context.Background()); err != nil {
			return err.Error()
		} else {
			c.Close()
		}
		return ""
	})
	ctx := context.Background()
	if _, err := h.Create(ctx, sessionOf("base", sleeper("base"))); err != nil {
		t.Fatal(err)
	}
	one := func(i int) {
		spec := sleeper("r")
		switch i % 4 {
		case 1:
			spec.Start.Argv = []string{"/nonexistent/agent"}
		case 2:
			spec = shell("exit 0")
			spec.Start.AfterExit = "shell"
		}
		st, err := h.Spawn(ctx, host.Spawn{Session: "base", Pane: spec})
		if err != nil {
			t.Fatal(err)
		}
		c, err := h.Dial(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if v, _, _, err := c.Attach(ctx, st.Terminal, 80, 24); err == nil && i%3 == 0 {
			_ = v.Input([]byte("x"))
		}
		if err := h.Kill(ctx, st.Terminal); err != nil {
			t.Fatal(err)
		}
	}
	count := func() (goroutines int, files []string) {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("descriptors cannot be counted: ", err)
		}
		for _, e := range entries {
			if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil { // not the one that this reads
				files = append(files, e.Name()+" "+to)
			}
		}
		return runtime.NumGoroutine(), files
	}
	settled := func() {
		until(t, func() string {
			server.mu.Lock()
			peers, building, terminals := len(server.peers), server.building, len(server.terminals)
			server.mu.Unlock()
			if n := server.reaper.alive(); n != 1 || peers > 0 || building > 0 || terminals != 1 {
				return fmt.Sprintf("%d children, %d clients, %d terminals, %d in the making", n, peers, terminals, building)
			}
			return ""
		})
	}
	for i := range 20 {
		one(i)
	}
	settled()
	runtime.GC()
	// What was begun has come to its end, and so has what the tests before have left to the collector.
	goroutines, files := count()
	until(t, func() string {
		time.Sleep(20 * time.Millisecond)
		g, f := count()
		same := g == goroutines && len(f) == len(files)
		if goroutines, files = g, f; !same {
			return "it does not come to rest"
		}
		return ""
	})
	n := times(t, "EMBEDDED_SPAWNS", 200)
	const batch = 200
	for done := 0; done < n; {
		before := debug.SetGCPercent(-1)
		for range min(batch, n-done) {
			one(done)
			done++
		}
		settled()
		until(t, func() string {
			g, f := count()
			if g > goroutines || len(f) > len(files) {
				return fmt.Sprintf("after %d spawns %d goroutines, before %d; descriptors %q, before %q", done, g, goroutines, f, files)
			}
			return ""
		})
		debug.SetGCPercent(before)
		runtime.GC()
	}
	g, f := count()
	t.Logf("after %d spawns %d goroutines, before %d; %d descriptors, before %d", n, g, goroutines, len(f), len(files))
	server.Shutdown()
	if err := <-served; err != nil {
		t.Error(err)
	}
	until(t, func() string {
		if g, f := count(); g >= goroutines || len(f) >= len(files) {
			return fmt.Sprintf("%d goroutines after the end, before %d; %d descriptors, before %d", g, goroutines, len(f), len(files))
		}
		return ""
	})
}
