package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// socketsFile, in the state directory, names the sockets of the tmux servers that were given hooks or
// keys, one a line: a server below another TMUX_TMPDIR, or on a path, is found by nothing else, and
// uninstall must find it. A server that is gone leaves its line, which leads to nothing.
const (
	socketsFile = "sockets"
	maxSockets  = 64 << 10 // bytes
)

// rememberSocket notes where a host's server listens, for uninstall. That it cannot be noted is no
// failure: uninstall says which histories it did not reach.
func (a *app) rememberSocket(h any) {
	s, ok := h.(interface{ Socket() string })
	if !ok || strings.ContainsAny(s.Socket(), "\n\x00") || slices.Contains(a.sockets(), s.Socket()) {
		return
	}
	d, err := a.dirs()
	if err != nil || os.MkdirAll(d.State, 0o700) != nil {
		return
	}
	f, err := os.OpenFile(filepath.Join(d.State, socketsFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() > maxSockets {
		return
	}
	_, _ = f.WriteString(s.Socket() + "\n") // one write: of two writers none tears the other's line
}

// sockets are those that were noted.
func (a *app) sockets() (out []string) {
	d, err := a.dirs()
	if err != nil {
		return nil
	}
	b, err := os.ReadFile(filepath.Join(d.State, socketsFile))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSuffix(line, "\n"); filepath.IsAbs(line) && !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return out
}
