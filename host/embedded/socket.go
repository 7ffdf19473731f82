package embedded

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/phux-agent/phux-agent/internal/dirs"
)

// DefaultName is the name of the server that is meant where none is given.
const DefaultName = "default"

// NameError is a name that no server can have.
type NameError struct{ Name string }

func (e *NameError) Error() string {
	return fmt.Sprintf("server name %q: 1 to 32 letters, digits, . _ - and a letter or digit first", e.Name)
}

// CheckName refuses a name that would not be one plain file name.
func CheckName(name string) error {
	ok := name != "" && len(name) <= 32
	for i, c := range []byte(name) {
		word := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		ok = ok && (word || i > 0 && (c == '.' || c == '_' || c == '-'))
	}
	if !ok {
		return &NameError{name}
	}
	return nil
}

// SocketPath is the socket of the server of that name below a runtime directory.
func SocketPath(runtime, name string) string { return filepath.Join(runtime, name+".sock") }

// maxSocket is what the systems' socket addresses hold, with its ending zero.
const maxSocket = 104

// PathError is a socket whose path is longer than a socket's may be.
type PathError struct{ Path string }

func (e *PathError) Error() string {
	return fmt.Sprintf("socket %q: the path is longer than the %d bytes that a socket's may have", e.Path, maxSocket-1)
}

// ErrRunning: another server has the socket.
var ErrRunning = errors.New("a server of that name is running")

// socket is a listener and the lock that makes it the only one. The lock ends with the process,
// so what a killed server leaves is stale beyond doubt.
type socket struct {
	listener *net.UnixListener
	lock     *os.File
	path     string
}

// listen takes the lock beside the socket, removes a stale one, and listens.
func listen(path string) (*socket, error) {
	if len(path) >= maxSocket {
		return nil, &PathError{path}
	}
	if err := dirs.Private(filepath.Dir(path)); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := flock(lock, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrRunning
		}
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		lock.Close()
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		lock.Close()
		return nil, err
	}
	l.SetUnlinkOnClose(false) // close does it, while the lock is held
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		lock.Close()
		return nil, err
	}
	return &socket{l, lock, path}, nil
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); err != unix.EINTR {
			return err
		}
	}
}

func (s *socket) close() {
	s.listener.Close()
	_ = os.Remove(s.path)
	s.lock.Close()
}
