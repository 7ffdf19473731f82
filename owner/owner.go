// Package owner knows who runs an identity on this machine: claims, the observation of
// processes by what templates declare, transcript probes, and liveness.
//
// Proof is a pid and its start time, an open file, a file that names the pid. Environment,
// directory, focus, title and newest file are none.
package owner

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/phux-agent/phux-agent/internal/proc"
)

// Process is a pid that cannot be mistaken for a later one.
type Process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks since boot, field 22 of /proc/PID/stat
}

func processOf(i proc.Info) Process { return Process{PID: i.PID, Start: i.Start} }

// Place says where an owner is, for people and for `already-live`.
type Place struct {
	Host     string `json:"host,omitzero"`     // Info.Server
	Terminal string `json:"terminal,omitzero"` // "%3"
	PaneKey  string `json:"pane_key,omitzero"`
}

func (p Place) String() string {
	switch {
	case p.Terminal != "" && p.Host != "":
		return p.Terminal + " of " + p.Host
	case p.Terminal != "":
		return p.Terminal
	case p.PaneKey != "" && p.Host != "":
		return "pane " + p.PaneKey + " of " + p.Host
	}
	return p.Host
}

// Live is who runs an identity.
type Live struct {
	Kind    LiveKind
	Process Process
	Place   Place  // of a claim; empty where the process was found otherwise
	TTY     string // the process's controlling terminal, "/dev/pts/3"; empty where it has none
	Command string // for people: at most 200 bytes, without controls
	// Note is what made the finding weaker, for people: a damaged claim file, a registry too large
	// to read whole. It may stand beside NotLive.
	Note string
}

// LiveKind says by what proof.
type LiveKind string

const (
	NotLive   LiveKind = ""
	Claimed   LiveKind = "claimed"   // claim alive
	Orphan    LiveKind = "orphan"    // it outlived its terminal, or the claim is dead and its process session has survivors
	Registry  LiveKind = "registry"  // the provider's own registry names a live process
	Suspected LiveKind = "suspected" // an argv carries the id
	Starting  LiveKind = "starting"  // reserved by a living launch or restore
)

// String says who runs it, in words.
func (l Live) String() string {
	where := ""
	switch {
	case l.Place.Terminal != "":
		where = " in " + l.Place.String()
	case l.TTY != "":
		where = " on " + l.TTY
	}
	who := fmt.Sprintf("process %d", l.Process.PID)
	if l.Command != "" {
		who += fmt.Sprintf(" (%s)", l.Command)
	}
	switch l.Kind {
	case NotLive:
		return "nobody runs it"
	case Claimed:
		return who + " runs it" + where
	case Orphan:
		return who + " runs it, and has outlived its terminal"
	case Registry:
		return who + " has it open" + where + ", by the agent's own registry"
	case Suspected:
		return who + where + " has the id in its arguments"
	case Starting:
		return who + " is starting it"
	}
	return who
}

// maxCommand bounds Live.Command, in bytes.
const maxCommand = 200

// command is an argument vector for people: bounded, and without what a terminal would obey.
func command(args []string) string {
	var b strings.Builder
	for n, a := range args {
		if n > 0 {
			b.WriteByte(' ')
		}
		for _, r := range a {
			if !unicode.IsPrint(r) {
				r = '?'
			}
			if b.Len()+utf8.RuneLen(r) > maxCommand-len("…") {
				return b.String() + "…"
			}
			b.WriteRune(r)
		}
	}
	return b.String()
}
