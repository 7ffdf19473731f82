package main

import (
	"os"
	"path/filepath"

	"github.com/phux-agent/phux-agent/capture"
	"github.com/phux-agent/phux-agent/host/tmux"
	"github.com/phux-agent/phux-agent/internal/proc"
)

// Two servers of one name, below two TMUX_TMPDIR, would share a history, and each take the other's
// sessions for its own that are gone. A name is worth keeping all the same: TMUX_TMPDIR may be another
// one after each login, and the history has to be found. So the name is whose who saves under it first,
// while that server lives; a namesake has a history by the path of its socket, as with -S, and keeps
// that for good. docs/decisions/namesakes.md

// namesakeFile, beside the generations, says which server saved there last.
const namesakeFile = "server"

type namesake struct {
	Socket string `json:"socket"`
	PID    int    `json:"pid"`
	Start  uint64 `json:"start"` // of the process, in clock ticks since boot
}

// serverOf is where the server of that name and socket has its history.
func (a *app) serverOf(name, socket string) string {
	d, err := a.dirs()
	if err != nil {
		return name
	}
	base := filepath.Join(d.State, "archives")
	byPath := tmux.PathName(socket)
	if info, err := os.Stat(filepath.Join(base, byPath)); err == nil && info.IsDir() {
		return byPath
	}
	b, err := os.ReadFile(filepath.Join(base, name, namesakeFile))
	var n namesake
	if err != nil || decodeDocument(b, &n) != nil || n.Socket == socket || sameFile(n.Socket, socket) || !proc.Alive(proc.ID{PID: n.PID, Start: n.Start}) {
		return name
	}
	return byPath
}

// signs writes down whose history it is, where a look saw that server. It is a hint: that it cannot be
// written stops nobody.
func (s *saver) signs(panes []capture.Pane) {
	life := lifeOf(panes)
	if life.Kind != tmux.Kind || life.PID <= 0 {
		return
	}
	i, err := proc.Stat(life.PID)
	if err != nil {
		return
	}
	path := filepath.Join(s.store.Dir, namesakeFile)
	var was namesake
	now := namesake{Socket: life.Socket, PID: life.PID, Start: i.Start}
	if b, err := os.ReadFile(path); err == nil && decodeDocument(b, &was) == nil && was == now {
		return
	}
	_ = s.app.writeHint(path, now)
}
