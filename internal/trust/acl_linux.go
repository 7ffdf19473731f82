package trust

import "golang.org/x/sys/unix"

// hasACL reports whether a POSIX access list extends the mode: under one the group bits are its
// mask, and say nothing of who may write.
func hasACL(path string) bool {
	n, err := unix.Lgetxattr(path, "system.posix_acl_access", nil)
	return err == nil && n > 0
}
