package embedded

import (
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/phux-agent/phux-agent/internal/thread"
)

// A key goes through two processes and four waits, and at each wait through Go's poller: that
// finds all of Go's processors idle, and wakes a thread that only watches the others, which costs
// more than all that is done with the key. So whoever a person waits for waits in a system call
// on a thread of its own: blocking is a connection like that, and master a pty.

// maxThreads bounds the threads of a process that wait like this; beyond it the poller is used.
const maxThreads = 64

var threads atomic.Int32

func takeThread() bool {
	if threads.Add(1) > maxThreads {
		threads.Add(-1)
		return false
	}
	return true
}

// connection is what a peer is written to and read from.
type connection interface {
	io.ReadWriteCloser
	syscall.Conn
	writeAll(net.Buffers) (int64, error)
}

// polled is a connection that Go's poller waits for.
type polled struct{ *net.UnixConn }

func (p polled) writeAll(b net.Buffers) (int64, error) { return b.WriteTo(p.UnixConn) }

// blocking is a connection whose reads and writes wait in the system.
type blocking struct {
	*os.File
	once *atomic.Bool
	turn *thread.Turn // of reads
}

// Read is for one goroutine.
func (b blocking) Read(p []byte) (int, error) {
	b.turn.Wait()
	n, err := b.File.Read(p)
	b.turn.Go()
	return n, err
}

// newBlocking takes a connection out of Go's poller, which is closed by that. Where it fails the
// connection is as it was.
func newBlocking(conn *net.UnixConn) (blocking, bool) {
	raw, err := conn.SyscallConn()
	if err != nil || !takeThread() {
		return blocking{}, false
	}
	fd := -1
	_ = raw.Control(func(old uintptr) {
		if n, err := unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 3); err == nil {
			fd = n
		}
	})
	if fd < 0 {
		threads.Add(-1)
		return blocking{}, false
	}
	conn.Close() // this descriptor of it: the poller would be woken with us
	_ = unix.SetNonblock(fd, false)
	return blocking{os.NewFile(uintptr(fd), conn.RemoteAddr().String()), new(atomic.Bool), new(thread.Turn)}, true
}

// Close ends reads and writes that wait, too.
func (d blocking) Close() error {
	if d.once.Swap(true) {
		return os.ErrClosed
	}
	threads.Add(-1)
	if raw, err := d.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RDWR) })
	}
	return d.File.Close()
}

func (d blocking) writeAll(b net.Buffers) (int64, error) { return b.WriteTo(d.File) }

// writeNow writes what can be written without waiting, by any descriptor. What goes wrong comes
// again with the rest.
func writeNow(c syscall.Conn, b []byte) (n int) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if n, err = unix.SendmsgN(int(fd), b, nil, nil, unix.MSG_DONTWAIT); err != nil {
			n = 0
		}
	})
	return n
}
