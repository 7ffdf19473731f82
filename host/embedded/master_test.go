package embedded

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/term"
)

func testMaster(t *testing.T) (*master, *os.File) {
	t.Helper()
	m, tty, err := openPTY(80, 24)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close(); tty.Close() })
	if _, err := term.MakeRaw(int(tty.Fd())); err != nil { // or what is typed is read back
		t.Fatal(err)
	}
	return m, tty
}

// A read sees the same with somebody who looks and without, and in any turn.
func TestMasterReads(t *testing.T) {
	m, tty := testMaster(t)
	b := make([]byte, 100)
	for i, looked := range []bool{false, true, true, false, false, true} {
		got := make(chan string)
		go func() {
			n, err := m.read(b, looked)
			if err != nil {
				t.Error(err)
			}
			got <- string(b[:n])
		}()
		if _, err := tty.WriteString("text"); err != nil {
			t.Fatal(err)
		}
		if s := <-got; s != "text" {
			t.Errorf("read %d: %q", i, s)
		}
	}
	if threads.Load() != 0 {
		t.Errorf("%d threads are taken", threads.Load())
	}
}

// Whoever waits is told of the end: of ours, and of the program's.
func TestMasterEnds(t *testing.T) {
	for _, looked := range []bool{false, true} {
		m, _ := testMaster(t)
		begun, ended := make(chan bool, 2), make(chan error, 2)
		go func() {
			begun <- true
			_, err := m.read(make([]byte, 10), looked)
			ended <- err
		}()
		go func() {
			begun <- true
			_, err := m.Write(bytes.Repeat([]byte("x\n"), 100000)) // nobody reads it
			ended <- err
		}()
		<-begun
		<-begun
		m.Close()
		for range 2 {
			if err := <-ended; err == nil {
				t.Errorf("looked %v: %v", looked, err)
			}
		}
		m, tty := testMaster(t)
		go func() {
			_, err := m.read(make([]byte, 10), looked)
			ended <- err
		}()
		tty.Close()
		if err := <-ended; err == nil {
			t.Errorf("looked %v: it reads on", looked)
		}
	}
}

func TestBlockingEnds(t *testing.T) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.DialUnix("unix", nil, l.Addr().(*net.UnixAddr))
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	c, ok := newBlocking(conn)
	if !ok {
		t.Fatal("it stays in the poller")
	}
	read, written := make(chan error), make(chan error)
	go func() {
		_, err := c.Read(make([]byte, 10))
		read <- err
	}()
	go func() {
		_, err := c.Write(make([]byte, 10<<20)) // nobody reads it
		written <- err
	}()
	if _, err := io.ReadFull(far, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if n := writeNow(c, make([]byte, 10<<20)); n == 10<<20 {
		t.Error("all is written where nobody reads")
	}
	c.Close()
	if err := <-read; err == nil {
		t.Error("it reads on")
	}
	if err := <-written; err == nil {
		t.Error("it writes on")
	}
	if err := c.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the second Close: %v", err)
	}
	if threads.Load() != 0 {
		t.Errorf("%d threads are taken", threads.Load())
	}
}
