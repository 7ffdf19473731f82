package embedded

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/phux-agent/phux-agent/internal/thread"
)

// master is the server's side of a pty. Its descriptor never waits and is not in Go's poller; a
// second one is, for as long as nobody looks: then a terminal holds no thread. See blocking.go.
type master struct {
	*os.File
	raw syscall.RawConn // of it

	turn thread.Turn // of read
	few  bool        // came at the last read

	mu     sync.Mutex
	shut   bool
	polled *os.File // the second one; nil while reads wait on a thread
	bell   *os.File // readable once shut; nil before it is needed
	ring   *os.File // rings it, by its end
}

// openPTY opens a pty.
func openPTY(cols, rows int) (m *master, tty *os.File, err error) {
	p, tty, err := pty.Open()
	if err != nil {
		return nil, nil, fmt.Errorf("open a pty: %w", err)
	}
	defer p.Close()
	if m, err = newMaster(p, cols, rows); err != nil {
		tty.Close()
		return nil, nil, fmt.Errorf("open a pty: %w", err)
	}
	return m, tty, nil
}

func newMaster(p *os.File, cols, rows int) (*master, error) {
	if err := pty.Setsize(p, winsize(cols, rows)); err != nil {
		return nil, err
	}
	fd, err := unix.FcntlInt(p.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	// A descriptor that waits when it is given to os stays out of the poller.
	if err := unix.SetNonblock(fd, false); err != nil {
		unix.Close(fd)
		return nil, err
	}
	f := os.NewFile(uintptr(fd), p.Name())
	m, err := masterOf(f)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return m, nil
}

func masterOf(f *os.File) (*master, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &master{File: f, raw: raw}, nil
}

// Close hangs the pty up. Whoever reads or writes is told so.
func (m *master) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.shut {
		return os.ErrClosed
	}
	m.shut = true
	for _, f := range []*os.File{m.ring, m.bell, m.polled} {
		if f != nil {
			f.Close()
		}
	}
	return m.File.Close()
}

const (
	// quiet is how long a read holds a thread where nothing comes.
	quiet = 2 * time.Second
	// few is fewer bytes than a program writes that has more to write.
	few = 512
	// scarce is between two attempts where the system has no descriptor left.
	scarce = 50 * time.Millisecond
)

// read reads what the program writes, for one goroutine. Where somebody looks it waits on its own
// thread, for a while.
func (m *master) read(b []byte, looked bool) (int, error) {
	for {
		if looked && takeThread() {
			m.turn.Wait()
			n, err := m.wait(true, b)
			m.turn.Go()
			threads.Add(-1)
			if !errors.Is(err, errQuiet) {
				return n, err
			}
		}
		f, err := m.poll()
		if err == nil {
			return f.Read(b)
		}
		if errors.Is(err, os.ErrClosed) {
			return 0, err
		}
		time.Sleep(scarce) // no descriptor is free
	}
}

// Write waits until the program has taken everything.
func (m *master) Write(b []byte) (n int, err error) {
	for len(b[n:]) > 0 && err == nil {
		var k int
		if k, err = m.wait(false, b[n:]); errors.Is(err, errQuiet) {
			time.Sleep(scarce)
			err = nil
		}
		n += k
	}
	return n, err
}

// writeNow writes what can be written without waiting.
func (m *master) writeNow(b []byte) (n int) {
	_ = m.raw.Control(func(fd uintptr) {
		if n, _ = unix.Write(int(fd), b); n < 0 {
			n = 0 // what is wrong comes again with the rest
		}
	})
	return n
}

// poll puts the pty into the poller.
func (m *master) poll() (*os.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.shut {
		return nil, os.ErrClosed
	}
	if m.polled == nil {
		fd, err := 0, error(nil)
		if cerr := m.raw.Control(func(old uintptr) { fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 3) }); cerr != nil {
			err = cerr
		}
		if err != nil {
			return nil, err
		}
		m.polled = os.NewFile(uintptr(fd), m.Name())
	}
	return m.polled, nil
}

// unpoll takes the pty out of the poller, which would be woken by each byte, too.
func (m *master) unpoll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.polled != nil {
		m.polled.Close()
		m.polled = nil
	}
}

func (m *master) bells() (syscall.RawConn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.shut {
		return nil, os.ErrClosed
	}
	if m.bell == nil {
		bell, ring, err := os.Pipe()
		if err != nil {
			return nil, errQuiet
		}
		m.bell, m.ring = bell, ring
	}
	return m.bell.SyscallConn()
}

// errQuiet is that nothing came, or that one cannot wait for it.
var errQuiet = errors.New("nothing comes")

// wait reads, or writes, once that can be done. It holds a thread: a read not for longer than
// quiet.
func (m *master) wait(read bool, b []byte) (n int, err error) {
	bell, err := m.bells()
	if err != nil {
		return 0, err
	}
	event, do, patience := int16(unix.POLLOUT), unix.Write, -1
	if read {
		m.unpoll()
		event, do, patience = unix.POLLIN, unix.Read, int(quiet.Milliseconds())
	}
	cerr := m.raw.Control(func(fd uintptr) {
		cerr := bell.Control(func(bell uintptr) {
			for first := true; ; first = false {
				if !first || !read || !m.few { // after a few bytes there are hardly more at once
					if n, err = do(int(fd), b); err != unix.EINTR && err != unix.EAGAIN {
						return
					}
				}
				all := [...]unix.PollFd{{Fd: int32(fd), Events: event}, {Fd: int32(bell), Events: unix.POLLIN}}
				count, perr := unix.Poll(all[:], patience)
				switch {
				case all[1].Revents != 0:
					err = os.ErrClosed
					return
				case perr == nil && count == 0:
					err = errQuiet
					return
				}
			}
		})
		if cerr != nil {
			err = os.ErrClosed
		}
	})
	if cerr != nil {
		err = os.ErrClosed
	}
	n = max(n, 0)
	if read {
		m.few = n < few
	}
	if read && n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}
