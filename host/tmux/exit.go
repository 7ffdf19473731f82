package tmux

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// signalName is SIGKILL for tmux's "9" (Linux) or "KILL" (where the system names signals).
func signalName(s string) string {
	if n, err := strconv.Atoi(s); err == nil {
		if name := unix.SignalName(unix.Signal(n)); name != "" {
			return name
		}
		return s
	}
	if s = strings.ToUpper(s); strings.HasPrefix(s, "SIG") {
		return s
	}
	return "SIG" + s
}
