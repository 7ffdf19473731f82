package tmux

import (
	"strconv"
	"strings"
)

// version is a tmux release; a development version counts as the one that it leads to.
type version struct {
	major, minor int
	patch        byte // 'a' of 3.3a; 0 for none
}

// parseVersion reads "3.3a", "next-3.8", "3.5-rc2", with or without "tmux " before it. What has
// no number (a port's own versions) is taken for a recent one.
func parseVersion(s string) version {
	s = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s), "tmux "))
	s = strings.TrimPrefix(s, "next-")
	major, rest, ok := strings.Cut(s, ".")
	v := version{}
	var err error
	if v.major, err = strconv.Atoi(major); !ok || err != nil {
		return version{major: 3, minor: 99}
	}
	n := 0
	for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
		n++
	}
	if v.minor, err = strconv.Atoi(rest[:n]); err != nil {
		return version{major: 3, minor: 99}
	}
	if n < len(rest) && rest[n] >= 'a' && rest[n] <= 'z' {
		v.patch = rest[n]
	}
	return v
}

func (v version) atLeast(major, minor int) bool {
	return v.major > major || v.major == major && v.minor >= minor
}

// known says that a version was found.
func (v version) known() bool { return v != version{} }

// supported: below 3.2 a session cannot be built as ours is.
func (v version) supported() bool { return v.atLeast(3, 2) }

// firesLists: set-hook -R runs a list that is stored in a user option.
func (v version) firesLists() bool { return v.atLeast(3, 3) }

// manualKills: with a global window-size of manual, any new session or window kills the server.
func (v version) manualKills() bool { return v.atLeast(3, 3) && !v.atLeast(3, 7) }

// escapesOutput: what is printed has its control bytes written as escapes, ambiguously (and on
// 3.4 '$' as "\$").
func (v version) escapesOutput() bool { return v.atLeast(3, 4) && !v.atLeast(3, 6) }

// escapesTitles: titles are held escaped, as names are.
func (v version) escapesTitles() bool { return v.atLeast(3, 7) }

// freeNames: session names may hold '.' and ':'.
func (v version) freeNames() bool { return v.atLeast(3, 7) }

// diedSignal: a dead pane's signal is known.
func (v version) diedSignal() bool { return v.atLeast(3, 3) }
