package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

func TestSpawnOnTheWire(t *testing.T) {
	here := host.Instance{Kind: Kind, PID: 7}
	want := host.Spawn{
		Place: host.SplitV, Target: host.Terminal{Instance: here, ID: "%3"}, Background: true,
		Pane: host.PaneSpec{
			Title: "a title",
			Start: host.Start{
				Mode: host.Program, Argv: []string{"/bin/x", "", "\xff\x00"}, Dir: "/a\xff", Set: []string{"A=\xfe"}, Unset: []string{"B"},
				AfterExit: "hold", Guard: []byte{0, 1}, Reason: "r", Hint: "h",
			},
			Meta: map[metadata.Key][]byte{metadata.KeyAgentSession: {0, 255}, metadata.KeyAgentLaunch: []byte("l")},
		},
	}
	f, err := decodeFields(spawnFields(want).encode())
	if err != nil {
		t.Fatal(err)
	}
	if got := f[spawnRecord]; !bytes.Equal(got.([]byte), []byte{0, 255}) {
		t.Errorf("field 9 is %v", got)
	}
	got, err := readSpawn(f, here)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// again reads what was written of a value that was read: it must be the same.
func again[T any](t *testing.T, what string, v T, write func(T) fields, read func([]byte) (T, error)) {
	t.Helper()
	got, err := read(write(v).encode())
	if err != nil {
		t.Fatalf("%s: what we write is refused: %v", what, err)
	}
	if d := cmp.Diff(v, got, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("%s, read, written and read again:\n%s", what, d)
	}
}

// FuzzFrame: no bytes break the decoders of either side, and what they read they write again.
func FuzzFrame(f *testing.F) {
	add := func(b []byte) { f.Add(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)) }
	here := host.Instance{Kind: Kind, PID: 7}
	spawn := host.Spawn{Session: "work", Pane: sleeper("r")}
	spawn.Pane.Meta[metadata.KeyAgentLaunch] = []byte("l")
	add(fields{keyKind: kindHello, helloVersion: 1}.encode())
	add(spawnFields(spawn).encode())
	add(createFields(newNonce(), sessionOf("work", sleeper("r"), sleeper("s"))).encode())
	layout, err := host.Split(100, 60, 2)
	if err != nil {
		f.Fatal(err)
	}
	pane := host.Pane{Terminal: host.Terminal{Instance: here, ID: "%3"}, Dir: "/x", Cols: 5, Exit: &host.Exit{Status: 3, Signal: "SIGHUP"}, Meta: spawn.Pane.Meta, BoundStart: 9}
	add(fields{stateSessions: workspaceFields(&host.Workspace{Sessions: []host.Session{{Name: "work", Windows: []host.Window{{Layout: layout, Panes: []host.Pane{pane, pane}}}}}})}.encode())
	started := host.Started{Terminal: pane.Terminal, Nonce: "n", Meta: pane.Meta, Err: &Failure{Reason: "no such file"}}
	add(startedFields(started).encode())
	add(createdFields(&host.Created{Session: "$1", Windows: [][]host.Started{{started}}}).encode())
	add(fields{resultError: errorFields(ErrBusy)}.encode())
	add(append([]byte{0x81, 2}, bytes.Repeat([]byte{0x91}, 50)...))
	add([]byte{0x82, 0, 5, 0, 5})
	add([]byte{0x81, 0, 0xdd, 0xff, 0xff, 0xff, 0xff})
	add([]byte{0xde, 0, 1, 1, 0xcf, 255, 255, 255, 255, 255, 255, 255, 255})
	add([]byte{0x81, 1, 0xc7, 1, 0xff, 0})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := readFrame(bytes.NewReader(b), 1<<16)
		if err != nil {
			return
		}
		body := b[4 : 4+binary.BigEndian.Uint32(b)]
		spawns := func(b []byte) (s host.Spawn, err error) {
			f, err := decodeFields(b)
			if err != nil {
				return s, err
			}
			return readSpawn(f, here)
		}
		if s, err := spawns(body); err == nil {
			again(t, "spawn", s, spawnFields, spawns)
		}
		state := func(b []byte) (*host.Workspace, error) {
			f, err := decodeFields(b)
			if err != nil {
				return nil, err
			}
			r := reading{fields: f}
			list := r.maps(stateSessions)
			if r.err != nil {
				return nil, r.err
			}
			return readWorkspace(list, here)
		}
		if w, err := state(body); err == nil {
			again(t, "state", w, func(w *host.Workspace) fields { return fields{stateSessions: workspaceFields(w)} }, state)
		}
		starts := func(b []byte) (s host.Started, err error) {
			f, err := decodeFields(b)
			if err != nil {
				return s, err
			}
			s, err = readStarted(f, here)
			s.Err = nil // it goes out as its words
			return s, err
		}
		if s, err := starts(body); err == nil {
			again(t, "started", s, startedFields, starts)
		}
		_ = remote(m)
		if token, c, err := readCreate(body); err == nil {
			again(t, "create", c, func(c host.CreateSession) fields { return createFields(token, c) }, func(b []byte) (host.CreateSession, error) {
				_, c, err := readCreate(b)
				return c, err
			})
		}
		_, _ = readCreated(body, here)
		r := reading{fields: m}
		for k := range m {
			r.number(k)
			r.unsigned(k)
			r.text(k)
			r.data(k)
			r.flag(k)
			r.words(k)
			r.maps(k)
			r.sub(k)
		}
	})
}

// pair are two ends of a socket.
func pair(t testing.TB) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "pair")
		c, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		out[i] = c.(*net.UnixConn)
	}
	return out[0], out[1]
}

// FuzzServerSays: whatever a server says, its client neither breaks nor hangs: every call and every
// view comes to its end with the connection.
func FuzzServerSays(f *testing.F) {
	term := host.Terminal{ID: "%0"}
	for _, s := range [][]byte{
		slices.Concat(fields{keyKind: kindOK, keyRequest: 1, termCols: 5}.frame(), dataFrame(kindOutput, "%0", []byte("x")), fields{keyKind: kindEvent, eventWhat: "closed", eventTerm: "%0"}.frame()),
		slices.Concat(fields{keyKind: kindOK, keyRequest: 1}.frame(), fields{keyKind: kindEvent, eventWhat: "closed", eventTerm: "%0"}.frame(), fields{keyKind: kindEvent, eventWhat: "closed", eventTerm: "%0"}.frame()),
		slices.Concat(fields{keyKind: kindOK, keyRequest: 1}.frame(), fields{keyKind: kindOK, keyRequest: 1}.frame(), fields{keyKind: kindError, errorCode: "busy"}.frame()),
		slices.Concat(fields{keyKind: kindEvent, eventWhat: "resized", eventTerm: "%0", eventCols: 5}.frame(), bytes.Repeat(fields{keyKind: kindEvent, eventWhat: "exited", eventTerm: "%0"}.frame(), 300)),
		fields{keyKind: kindOutput, termID: 7, termData: []fields{{1: "x"}}}.frame(),
		fields{keyKind: "output"}.frame(),
		{0xff, 0xff, 0xff, 0xff},
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 64<<10 {
			return
		}
		ours, theirs := pair(t)
		c := newClient(ours)
		go c.read()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		var all sync.WaitGroup
		all.Go(func() {
			if v, _, _, err := c.Attach(ctx, term, 80, 24); err == nil {
				for range v.Events() {
				}
			}
		})
		for _, call := range []func(){
			func() { _, _ = c.Snapshot(ctx) },
			func() { _, _ = c.Spawn(ctx, host.Spawn{Session: "work", Pane: sleeper("r")}) },
			func() { _, _ = c.Create(ctx, sessionOf("work", sleeper("r"))) },
			func() { _, _ = c.Read(ctx, term, -1) },
			func() { _, _ = c.Events(ctx) },
			func() { _, _ = c.probe(ctx) },
		} {
			all.Go(call)
		}
		go io.Copy(io.Discard, theirs)
		_, _ = theirs.Write(b)
		_ = theirs.CloseWrite()
		all.Wait()
		<-c.Done()
		theirs.Close()
		if ctx.Err() != nil {
			t.Fatal("a call outlives the connection")
		}
	})
}

// FuzzGate: whatever stands on a gate, neither the server that attends it nor the pane that enters by
// it breaks or hangs.
func FuzzGate(f *testing.F) {
	start := sleeper("").Start
	b := boot{start: &start, nonce: "n", meta: map[metadata.Key][]byte{metadata.KeyAgentSession: []byte("r"), metadata.KeyAgentLaunch: []byte("l")}}
	f.Add(slices.Concat(b.payload().frame(), fields{keyKind: gateGo}.frame()))
	f.Add(slices.Concat(fields{keyKind: gateHere}.frame(), fields{keyKind: gateFail, gateReason: "x"}.frame(), fields{keyKind: gateStands}.frame(), fields{keyKind: gateHere}.frame()))
	f.Add(slices.Concat(fields{keyKind: gateFail}.frame(), fields{keyKind: gateHere}.frame()))
	f.Add(fields{keyKind: gatePayload, gateStart: fields{startMode: 9}}.frame())
	f.Add([]byte{0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 32<<10 {
			return
		}
		gate := func() (*os.File, *net.UnixConn) {
			ours, theirs, err := socketPair()
			if err != nil {
				t.Fatal(err)
			}
			f := os.NewFile(uintptr(theirs), "gate")
			defer f.Close()
			c, err := net.FileConn(f)
			if err != nil {
				t.Fatal(err)
			}
			return os.NewFile(uintptr(ours), "gate"), c.(*net.UnixConn)
		}
		end, conn := gate()
		_, _ = conn.Write(b)
		_ = conn.CloseWrite()
		if s, err := enter(end); err == nil {
			_ = s.Wait()
			_, _, _, _ = s.Start(), s.Meta(), s.Nonce(), s.Ended()
			s.Fail("x")
		}
		end.Close()
		conn.Close()

		end, conn = gate()
		c := &child{gate: end, here: make(chan struct{}), settled: make(chan struct{}), through: make(chan struct{})}
		go c.attend(fields{keyKind: gatePayload})
		go io.Copy(io.Discard, conn)
		_, _ = conn.Write(b)
		_ = conn.CloseWrite()
		for _, ch := range []chan struct{}{c.here, c.settled, c.through} {
			select {
			case <-ch:
			case <-time.After(20 * time.Second):
				t.Fatal("the server waits for a pane that is gone")
			}
		}
		if c.stands && c.fault != "" || !c.arrived && (c.stands || c.fault != "") {
			t.Fatalf("arrived %v, stands %v, fault %q", c.arrived, c.stands, c.fault)
		}
		conn.Close()
	})
}

// FuzzRequests: no sequence of requests that are frames breaks the server, whatever is in them.
func FuzzRequests(f *testing.F) {
	seed := func(all ...fields) {
		var b []byte
		for i, r := range all {
			r[keyRequest] = i + 1
			b = append(b, r.frame()...)
		}
		f.Add(b)
	}
	seed(fields{keyKind: kindAttach, termID: "%0", termCols: 30, termRows: 9}, fields{keyKind: kindRead, termID: "%0", termLines: -1, termLooks: true}, fields{keyKind: kindResize, termID: "%0", termHold: true},
		fields{keyKind: kindInput, termID: "%0", termData: []byte("x")}, fields{keyKind: kindResize, termID: "%0", termCols: 7, termRows: 3}, fields{keyKind: kindDetach, termID: "%0"})
	seed(fields{keyKind: kindState}, fields{keyKind: kindKill, termID: "%0"}, fields{keyKind: kindFocus, termID: "%0"}, fields{keyKind: kindRespawn, termID: "%0"})
	seed(fields{keyKind: kindWatch, metaScope: "%0"}, fields{keyKind: kindSet, metaScope: "%0", metaKey: "k", metaValue: []byte("v")}, fields{keyKind: kindSwap, metaScope: "%0", metaKey: "k", metaOld: []byte("v")},
		fields{keyKind: kindGet, metaKey: createdPrefix + "0123456789abcdef"}, fields{keyKind: kindList}, fields{keyKind: kindDelete, metaKey: "k"}, fields{keyKind: kindUnwatch, metaScope: "%0"})
	seed(fields{keyKind: kindBind, termID: "%0", bindPID: 1, bindStart: uint64(9), bindRecord: []byte("r"), bindMeta: []fields{{1: "k", 2: []byte("v")}}}, fields{keyKind: kindEnviron}, fields{keyKind: kindEvents}, fields{keyKind: kindCancel, cancelRequest: 1})
	seed(fields{keyKind: kindSet, metaKey: createKey, metaValue: createFields("0123456789abcdef", host.CreateSession{Name: "no/windows"}).encode()})
	seed(spawnFields(host.Spawn{Session: "nowhere", Pane: sleeper("r")}), fields{keyKind: kindKill, termSession: "work"}, fields{keyKind: kindShutdown})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 32<<10 {
			return
		}
		s, err := NewServer(ServerOptions{Name: "test", Socket: "/nonexistent/s.sock", Self: "/nonexistent/phux-agent", Idle: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		se := &session{id: "$0", name: "work", dir: "/"}
		w := s.newWindow(se, "w", true, host.Cell{Cols: 80, Rows: 24})
		ptmx, err := masterOf(null)
		if err != nil {
			t.Fatal(err)
		}
		through := make(chan struct{})
		close(through)
		tm := &terminal{id: "%0", meta: scope{}, window: w, child: &child{ptmx: ptmx, gate: null, through: through, tty: "/dev/null"}}
		tm.out.cols, tm.out.rows = 80, 24
		tm.out.keep([]byte("text \x1b[1mon it"))
		w.panes, w.active = []*terminal{tm}, tm
		se.windows, se.current, s.sessions, s.last = []*window{w}, w, []*session{se}, se
		s.terminals["%0"] = tm
		ours, theirs := pair(t)
		p := s.newPeer(ours)
		s.mu.Lock()
		s.peers[p] = true
		s.mu.Unlock()
		go io.Copy(io.Discard, theirs)
		over := make(chan struct{})
		go func() {
			defer close(over)
			p.serve()
		}()
		_, _ = theirs.Write(slices.Concat(fields{keyKind: kindHello, keyRequest: 1, helloVersion: Version}.frame(), b))
		_ = theirs.CloseWrite()
		select {
		case <-over:
		case <-time.After(20 * time.Second):
			t.Fatal("the server does not come to the end of the requests")
		}
		s.jobs.Wait()
		theirs.Close()
		null.Close()
		if len(s.peers) != 0 || len(s.results) != 0 || tm.out.watched() != 0 {
			t.Fatalf("the client leaves %d peers, %d results, %d views", len(s.peers), len(s.results), tm.out.watched())
		}
	})
}

// What is written and read by hand says what every other frame says.
func TestDataFrame(t *testing.T) {
	for _, kind := range []byte{kindOutput, kindInput} {
		for _, data := range []string{"", "x", strings.Repeat("\xff\x00", 100000)} {
			frame := dataFrame(kind, "%12", []byte(data))
			f, err := readFrame(bytes.NewReader(frame), MaxReply)
			if err != nil {
				t.Fatal(err)
			}
			want := fields{keyKind: int(kind), termID: "%12", termData: []byte(data)}
			if diff := cmp.Diff(want, f); diff != "" {
				t.Error(diff)
			}
			if id, b, ok := dataOf(kind, frame[4:]); !ok || id != "%12" || string(b) != data {
				t.Errorf("%q, %.20q, %v", id, b, ok)
			}
			if _, _, ok := dataOf(kind+1, frame[4:]); ok {
				t.Error("it is taken for another kind")
			}
		}
	}
}

// Whatever the bytes are, what is read by hand is what is read otherwise.
func FuzzDataFrame(f *testing.F) {
	f.Add(dataFrame(kindInput, "%0", []byte("x"))[4:])
	f.Add(fields{keyKind: kindInput, termID: "%0", termData: []byte("x")}.encode())
	f.Add([]byte{threePairs, keyKind, kindInput, termID, str8, 255, 'x', termData, bin32, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		id, data, ok := dataOf(kindInput, b)
		if !ok {
			return
		}
		all, err := decodeFields(b)
		if err != nil {
			t.Fatal(err)
		}
		m := reading{fields: all}
		if m.number(keyKind) != kindInput || m.text(termID) != id || !bytes.Equal(m.data(termData), data) || len(all) != 3 || m.err != nil {
			t.Fatalf("%q, %q of %+v", id, data, all)
		}
	})
}

// A client has so many subscriptions and no more, and what it gives back it may have again.
func TestSubscriptionsAreBounded(t *testing.T) {
	s, err := NewServer(ServerOptions{Name: "test", Socket: "/nonexistent/s.sock", Self: "/nonexistent/phux-agent"})
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := pair(t)
	defer theirs.Close()
	p := s.newPeer(ours)
	defer ours.Close()
	for i := range maxWatches + 1 {
		s.terminals[terminalID(i)] = &terminal{meta: scope{}}
		err := s.watch(p, terminalID(i), true)
		if i < maxWatches {
			want(t, "a subscription", err, nil)
		} else {
			want(t, "one too many", err, ErrBusy)
		}
	}
	want(t, "one given back", s.watch(p, terminalID(0), false), nil)
	want(t, "another in its place", s.watch(p, terminalID(maxWatches), true), nil)
}

// A window that would take more memory than all others is refused, before anything is made.
func TestHugeWindows(t *testing.T) {
	s := newStage(t)
	term := s.create(sessionOf("work", sleeper("r"))).Windows[0][0].Terminal
	_, _, _, err := s.dial().Attach(context.Background(), term, host.MaxSide, host.MaxSide)
	want(t, "a window", err, host.ErrRequest)
	huge := sessionOf("huge", sleeper("r"))
	huge.Windows[0].Layout = host.Cell{Cols: host.MaxSide, Rows: host.MaxSide}
	_, err = s.host.Create(context.Background(), huge)
	want(t, "a session", err, host.ErrRequest)
	sc, err := s.dial().Read(context.Background(), term, 0)
	if err != nil || sc.Cols > 1000 {
		t.Errorf("%+v, %v", sc, err)
	}
}
