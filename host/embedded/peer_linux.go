package embedded

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// checkPeer refuses a client of another user, whatever the modes of the socket are.
func checkPeer(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	if cerr := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); cerr != nil {
		return cerr
	}
	if err != nil {
		return err
	}
	return sameUser(int(cred.Uid), os.Geteuid())
}

func sameUser(uid, own int) error {
	if uid != own {
		return fmt.Errorf("a client of user %d", uid)
	}
	return nil
}
