package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

func sleeper(record string) host.PaneSpec {
	p := host.PaneSpec{Start: host.Start{Mode: host.Program, Argv: []string{"/bin/sleep", "1000"}, AfterExit: "hold"}}
	if record != "" {
		p.Meta = map[metadata.Key][]byte{metadata.KeyAgentSession: []byte(record)}
	}
	return p
}

func shell(script string) host.PaneSpec {
	return host.PaneSpec{Start: host.Start{Mode: host.Program, Argv: []string{"/bin/sh", "-c", script}, AfterExit: "hold"}}
}

func sessionOf(name string, panes ...host.PaneSpec) host.CreateSession {
	layout, err := host.Split(100, 60, len(panes))
	if err != nil {
		panic(err)
	}
	return host.CreateSession{Name: name, Windows: []host.WindowSpec{{Name: "w", Index: -1, Layout: layout, Panes: panes}}}
}

func (s *stage) create(c host.CreateSession) *host.Created {
	s.t.Helper()
	out, err := s.host.Create(context.Background(), c)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, w := range out.Windows {
		for _, p := range w {
			if p.Err != nil {
				s.t.Fatal(p.Err)
			}
		}
	}
	return out
}

func want(t *testing.T, what string, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%s: %v, not %v", what, err, target)
	}
}

func call(c *Client, f fields) (reading, error) {
	out, err := c.call(context.Background(), f)
	return reading{fields: out}, err
}

// ADR-0068 §6: the result of a create is its maker's, once, and its name is nobody's.
func TestReservedNames(t *testing.T) {
	s := newStage(t)
	a, b := s.start(), s.dial()
	token := newNonce()
	key := createdPrefix + token
	if _, err := call(a, fields{keyKind: kindSet, metaKey: createKey, metaValue: createFields(token, sessionOf("work", sleeper("r"))).encode()}); err != nil {
		t.Fatal(err)
	}
	for what, f := range map[string]fields{
		"get": {keyKind: kindGet, metaKey: key}, "set": {keyKind: kindSet, metaKey: key, metaValue: []byte("x")},
		"swap": {keyKind: kindSwap, metaKey: key, metaValue: []byte("x")}, "delete": {keyKind: kindDelete, metaKey: key},
		"set of another": {keyKind: kindSet, metaKey: createdPrefix + "x", metaValue: []byte("x")},
		"request":        {keyKind: kindSwap, metaKey: createKey, metaValue: []byte("x")},
	} {
		_, err := call(b, f)
		want(t, what+" by another", err, ErrReserved)
	}
	if _, err := call(b, fields{keyKind: kindWatch}); err != nil {
		t.Fatal(err)
	}
	list, err := call(b, fields{keyKind: kindList})
	if err != nil || len(list.maps(metaValues)) != 0 {
		t.Errorf("another lists %v, %v", list.fields, err)
	}
	_, err = call(a, fields{keyKind: kindSet, metaKey: createKey, metaValue: createFields(token, sessionOf("late", sleeper("r"))).encode()})
	want(t, "the token again", err, host.ErrRequest)
	// Its owner has it once.
	got, err := call(a, fields{keyKind: kindGet, metaKey: key})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := readCreated(got.data(metaValue), a.Instance); err != nil || len(c.Windows) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	_, err = call(a, fields{keyKind: kindGet, metaKey: key})
	want(t, "the second get", err, ErrReserved)
	// A loser of the name learns it in its own result, and stamps nothing.
	loser := newNonce()
	if _, err := call(b, fields{keyKind: kindSet, metaKey: createKey, metaValue: createFields(loser, sessionOf("work", sleeper("stamp"))).encode()}); err != nil {
		t.Fatal(err)
	}
	got, err = call(b, fields{keyKind: kindGet, metaKey: createdPrefix + loser})
	if err != nil {
		t.Fatal(err)
	}
	_, err = readCreated(got.data(metaValue), a.Instance)
	want(t, "the loser", err, host.ErrSessionExists)
	w, err := a.Snapshot(context.Background())
	if err != nil || len(w.Sessions) != 1 || string(w.Sessions[0].Windows[0].Panes[0].Meta[metadata.KeyAgentSession]) != "r" {
		t.Errorf("%+v, %v", w, err)
	}
	// So many results may wait, and they go with their owner.
	var last error
	for i := range maxResults + 1 {
		_, last = call(b, fields{keyKind: kindSet, metaKey: createKey, metaValue: createFields(newNonce(), sessionOf(fmt.Sprint("s", i), sleeper("x"))).encode()})
	}
	want(t, "one result too many", last, ErrBusy)
}

// ADR-0068 §4 and §7: the envelope of a record, on a spawn and on ordinary writes.
func TestRecordEnvelope(t *testing.T) {
	s := newStage(t)
	id := s.create(sessionOf("work", sleeper("r"))).Windows[0][0].Terminal.ID
	c := s.dial()
	long := bytes.Repeat([]byte("x"), metadata.MaxRecord+1)
	spawn := func(change fields) error {
		f := spawnFields(host.Spawn{Session: "work", Pane: sleeper("r")})
		for k, v := range change {
			f[k] = v
		}
		_, err := c.settle(context.Background(), f)
		return err
	}
	want(t, "too long", spawn(fields{spawnRecord: long}), host.ErrRequest)
	want(t, "satellite", spawn(fields{spawnSatellite: "other.example"}), ErrSatellite)
	want(t, "longest", spawn(fields{spawnRecord: long[1:]}), nil)
	want(t, "unknown keys", spawn(fields{77: "later", 78: []fields{{1: "x"}}}), nil)
	f := spawnFields(host.Spawn{Session: "work", Pane: sleeper("")})
	raw := f.encode()
	raw[0]++ // one pair more: an empty record
	raw = append(raw, spawnRecord, 0xc4, 0)
	if m, err := decodeFields(raw); err != nil {
		t.Fatal(err)
	} else if _, err := readSpawn(m, c.Instance); !errors.Is(err, host.ErrRequest) {
		t.Errorf("an empty record: %v", err)
	}
	rec := string(metadata.KeyAgentSession)
	for what, f := range map[string]fields{
		"set too long":  {keyKind: kindSet, metaValue: long},
		"set empty":     {keyKind: kindSet},
		"swap too long": {keyKind: kindSwap, metaOld: []byte("r"), metaValue: long},
	} {
		f[metaScope], f[metaKey] = id, rec
		_, err := call(c, f)
		want(t, what, err, host.ErrRequest)
	}
	got, err := call(c, fields{keyKind: kindGet, metaScope: id, metaKey: rec})
	if err != nil || string(got.data(metaValue)) != "r" {
		t.Errorf("%q, %v", got.data(metaValue), err)
	}
	w, err := c.Snapshot(context.Background())
	if err != nil || len(w.Sessions[0].Windows) != 3 {
		t.Errorf("what was refused left something: %+v, %v", w, err)
	}
}

func TestMetadataIsWatchedByScope(t *testing.T) {
	s := newStage(t)
	out := s.create(sessionOf("work", sleeper("a"), sleeper("b")))
	id, beside := out.Windows[0][0].Terminal.ID, out.Windows[0][1].Terminal.ID
	c := s.dial()
	conn := rawDial(t, s.socket)
	ask := func(f fields) fields {
		f[keyRequest] = 1
		send(t, conn, f)
		return receive(t, conn)
	}
	ask(fields{keyKind: kindHello, helloVersion: Version})
	ask(fields{keyKind: kindWatch, metaScope: id})
	for _, scope := range []string{beside, id, ""} {
		if _, err := call(c, fields{keyKind: kindSet, metaScope: scope, metaKey: "k", metaValue: []byte("v" + scope)}); err != nil {
			t.Fatal(err)
		}
	}
	m := reading{fields: receive(t, conn)}
	if m.number(keyKind) != kindChanged || m.text(metaScope) != id || string(m.data(metaValue)) != "v"+id || !m.flag(metaPresent) {
		t.Errorf("%v", m.fields)
	}
	if _, err := call(c, fields{keyKind: kindDelete, metaScope: id, metaKey: "k"}); err != nil {
		t.Fatal(err)
	}
	if m = (reading{fields: receive(t, conn)}); m.text(metaScope) != id || m.flag(metaPresent) {
		t.Errorf("%v", m.fields)
	}
	for i := range maxKeys + 1 {
		_, err := call(c, fields{keyKind: kindSet, metaKey: fmt.Sprint("k", i), metaValue: []byte("v")})
		if i < maxKeys-1 {
			want(t, "a key", err, nil)
		} else if i == maxKeys {
			want(t, "one too many", err, ErrBusy)
		}
	}
}

func TestOlderServer(t *testing.T) {
	s := newStage(t, "older")
	c := s.start()
	info, err := s.host.Info(context.Background())
	if err != nil || info.AtomicRecord {
		t.Fatalf("%+v, %v", info, err)
	}
	out := s.create(sessionOf("work", sleeper("r")))
	if p := out.Windows[0][0]; len(p.Meta) != 0 {
		t.Errorf("it holds %q", p.Meta)
	}
	term := out.Windows[0][0].Terminal
	if err := s.host.Swap(context.Background(), term, metadata.KeyAgentSession, nil, []byte("r")); err != nil {
		t.Fatal(err)
	}
	w, err := c.Snapshot(context.Background())
	if err != nil || string(w.Sessions[0].Windows[0].Panes[0].Meta[metadata.KeyAgentSession]) != "r" {
		t.Errorf("%+v, %v", w, err)
	}
	got, err := call(c, fields{keyKind: kindList})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range got.maps(metaValues) {
		if r := (reading{fields: m}); strings.Contains(r.text(1), "probe") {
			t.Errorf("the probe left %q", r.text(1))
		}
	}
}

func TestSecondServer(t *testing.T) {
	s := newStage(t)
	c := s.start()
	if code := serve(s.socket, nil); code == 0 {
		t.Error("a second server served")
	}
	if err := s.host.Start(context.Background()); err != nil {
		t.Errorf("a start where one runs: %v", err)
	}
	if other := s.dial(); other.Instance != c.Instance {
		t.Errorf("%+v, not %+v", other.Instance, c.Instance)
	}
	for path, mode := range map[string]os.FileMode{filepath.Dir(s.socket): 0o700, s.socket: 0o600} {
		if i, err := os.Stat(path); err != nil || i.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, i.Mode(), err)
		}
	}
	if err := sameUser(os.Geteuid()+1, os.Geteuid()); err == nil {
		t.Error("another user is let in")
	}
	if long := (*PathError)(nil); !errors.As(func() error { _, err := Dial(t.Context(), "/"+strings.Repeat("x", 200)); return err }(), &long) {
		t.Error("a path that no socket can have is not refused")
	}
}

func TestStaleSocket(t *testing.T) {
	s := newStage(t)
	old := s.create(sessionOf("work", sleeper("r")))
	c := s.dial()
	pid := old.Windows[0][0].PID
	p, _ := os.FindProcess(c.Instance.PID)
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	until(t, func() string {
		if running(pid) {
			return "the program outlives its server"
		}
		return ""
	})
	if _, err := os.Stat(s.socket); err != nil {
		t.Fatal("no stale socket is left, and nothing is tested")
	}
	if _, err := s.host.Snapshot(context.Background()); !errors.Is(err, host.ErrNoServer) {
		t.Errorf("%v", err)
	}
	s.create(sessionOf("work", sleeper("r")))
}

func TestIdleServerEnds(t *testing.T) {
	s := newStage(t, "brief")
	out := s.create(sessionOf("work", sleeper("r")))
	c := s.dial()
	time.Sleep(60 * time.Millisecond) // longer than it stays without a session
	if _, err := c.Snapshot(context.Background()); err != nil {
		t.Fatalf("it does not wait for its session: %v", err)
	}
	if err := c.Kill(context.Background(), out.Windows[0][0].Terminal); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.Done():
	case <-time.After(20 * time.Second):
		t.Error("an empty server stays")
	}
	until(t, func() string {
		if _, err := os.Stat(s.socket); err == nil {
			return "the socket is left"
		}
		return ""
	})
}

func rawDial(t *testing.T, socket string) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	return conn
}

func send(t *testing.T, conn net.Conn, f fields) {
	t.Helper()
	if _, err := conn.Write(f.frame()); err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, conn net.Conn) fields {
	t.Helper()
	f, err := readFrame(conn, MaxReply)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Whatever a client sends or does not, the others go on.
func TestBadClients(t *testing.T) {
	s := newStage(t)
	good := s.start()
	hello := fields{keyKind: kindHello, keyRequest: 1, helloVersion: Version}.frame()
	deep := []byte{0x81, 2}
	deep = append(append(deep, bytes.Repeat([]byte{0x91}, 100000)...), 0)
	framed := func(b []byte) []byte {
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
	}
	for name, b := range map[string][]byte{
		"nothing":          {},
		"no hello":         fields{keyKind: kindState, keyRequest: 1}.frame(),
		"another version":  fields{keyKind: kindHello, keyRequest: 1, helloVersion: 99}.frame(),
		"text":             []byte("GET / HTTP/1.0\r\n\r\n"),
		"too long":         slices.Concat(hello, []byte{0x7f, 0xff, 0xff, 0xff}),
		"empty frame":      slices.Concat(hello, []byte{0, 0, 0, 0}),
		"half a frame":     slices.Concat(hello, []byte{0, 0, 1, 0, 0x81}),
		"deep":             slices.Concat(hello, framed(deep)),
		"no map":           slices.Concat(hello, framed([]byte{0x93, 1, 2, 3})),
		"key twice":        slices.Concat(hello, framed([]byte{0x82, 0, 5, 0, 5})),
		"large key":        slices.Concat(hello, framed([]byte{0x81, 0xcc, 200, 5})),
		"text key":         slices.Concat(hello, framed([]byte{0x81, 0xa1, 'a', 5})),
		"huge array":       slices.Concat(hello, framed([]byte{0x81, 0, 0xdd, 0xff, 0xff, 0xff, 0xff})),
		"huge text":        slices.Concat(hello, framed([]byte{0x81, 0, 0xdb, 0xff, 0xff, 0xff, 0xff})),
		"wrong kinds":      slices.Concat(hello, fields{keyKind: kindSpawn, keyRequest: 2, spawnStart: "x", spawnPlace: "y"}.frame()),
		"unknown request":  slices.Concat(hello, fields{keyKind: 99, keyRequest: 2}.frame()),
		"a kind as a text": slices.Concat(hello, fields{keyKind: "spawn", keyRequest: 2}.frame()),
	} {
		conn := rawDial(t, s.socket)
		if _, err := conn.Write(b); err != nil {
			t.Fatal(err)
		}
		if _, err := good.Snapshot(context.Background()); err != nil {
			t.Fatalf("after %q: %v", name, err)
		}
		conn.Close()
	}
	// One that asks and never reads.
	s.create(sessionOf("work", sleeper("r"), sleeper("s")))
	conn := rawDial(t, s.socket)
	send(t, conn, fields{keyKind: kindHello, keyRequest: 1, helloVersion: Version})
	ask := bytes.Repeat(fields{keyKind: kindEnviron, keyRequest: 7}.frame(), 1000)
	var err error
	for range 30 { // some 40 MB of answers
		if _, err = conn.Write(ask); err != nil {
			break
		}
	}
	if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a client that never reads was not dropped: %v", err)
	}
	if _, err := good.Snapshot(context.Background()); err != nil {
		t.Fatal(err)
	}
	// As many clients as there may be, and one more.
	var many []net.Conn
	refused := false
	for range maxClients + 1 {
		conn := rawDial(t, s.socket)
		many = append(many, conn)
		if _, err := conn.Write(hello); err != nil {
			refused = true
			break
		}
		if m := (reading{fields: receive(t, conn)}); m.number(keyKind) == kindError {
			refused = m.text(errorCode) == "busy"
			break
		}
	}
	if !refused {
		t.Error("there is no bound on clients")
	}
	for _, c := range many {
		c.Close()
	}
	until(t, func() string {
		c, err := s.host.Dial(context.Background())
		if err != nil {
			return err.Error()
		}
		c.Close()
		return ""
	})
}
