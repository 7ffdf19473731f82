//go:build darwin

package embedded

import (
	"fmt"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// checkPeer refuses a client of another user, whatever the modes of the socket are.
func checkPeer(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var uid int
	if cerr := raw.Control(func(fd uintptr) { uid, err = peerUID(int(fd)) }); cerr != nil {
		return cerr
	}
	if err != nil {
		return fmt.Errorf("ask for the client's user on %s: %w", runtime.GOOS, err)
	}
	return sameUser(uid, os.Geteuid())
}

func peerUID(fd int) (int, error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}

func sameUser(uid, own int) error {
	if uid != own {
		return fmt.Errorf("a client of user %d", uid)
	}
	return nil
}
