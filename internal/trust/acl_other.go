//go:build !linux

package trust

// hasACL cannot tell here, and a group-writable path is therefore taken to have one.
func hasACL(string) bool { return true }
