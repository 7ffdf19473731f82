// Package spool keeps what agents' hooks told until it is taken in.
//
// A hook has a second, and its agent may wait for it: on a busy machine, or beside a host that does
// not answer, that second can pass, and then an agent's own /clear would be lost, and the conversation
// before it come back as if it were the open one. So a hook first puts down what it was told, with what
// stood above it, which is the proof; and takes the note away when it has done its work. What is
// left when it has ended, the next save or look takes in, by the same proof.
//
// The notes are small files in the runtime directory, of this user alone, and end with the boot, as
// the agents do.
package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/phux-agent/phux-agent/internal/atomicfile"
	"github.com/phux-agent/phux-agent/internal/dirs"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
)

// Note is one report of a hook that named a conversation.
type Note struct {
	At          time.Time  `json:"at"`
	Integration string     `json:"integration"`
	Event       string     `json:"event,omitzero"`
	ID          string     `json:"id"` // of the conversation, as the template spells it
	From        owner.Line `json:"from"`

	name string
}

// Bounds of a box.
const (
	MaxNotes = 64        // of one server; the oldest go first
	MaxNote  = 128 << 10 // bytes
)

// ErrLater is wrapped where something came later that was said by the same agent.
var ErrLater = errors.New("its agent has told something else since")

// Box holds the notes of one server. The zero Box is no place: its methods fail.
type Box struct{ Dir string }

// Put writes a note down. It is there whole or not at all, and lasts as long as the machine runs.
func (b Box) Put(n *Note) error {
	data, err := json.Marshal(n)
	if err == nil && len(data) > MaxNote {
		err = fmt.Errorf("longer than %d bytes", MaxNote)
	}
	if err == nil {
		err = dirs.Private(b.Dir)
	}
	if err != nil {
		return fmt.Errorf("note what a hook told: %w", err)
	}
	if names, err := b.names(); err == nil && len(names) >= MaxNotes {
		for _, old := range names[:len(names)-MaxNotes+1] {
			_ = os.Remove(filepath.Join(b.Dir, old))
		}
	}
	name := fmt.Sprintf("%020d-%d%s", n.At.UnixNano(), n.From.PID, ending)
	path := filepath.Join(b.Dir, name)
	// A power cut ends the agent, and with it what the note is about.
	if err := atomicfile.Unsynced(path, path+".new", data); err != nil {
		return fmt.Errorf("note what a hook told: %w", err)
	}
	n.name = name
	return nil
}

const ending = ".json"

// names lists the notes, oldest first.
func (b Box) names() ([]string, error) {
	if b.Dir == "" {
		return nil, errors.New("no directory")
	}
	entries, err := os.ReadDir(b.Dir) // sorted
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ending) {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

// Empty reports that nothing waits.
func (b Box) Empty() bool {
	names, _ := b.names()
	return len(names) == 0
}

// Left are the notes whose hooks have ended without taking them away, oldest first. What is no note
// is removed.
func (b Box) Left() []*Note {
	if !dirs.IsPrivate(b.Dir) {
		return nil
	}
	b.sweep()
	return slices.DeleteFunc(b.all(), func(n *Note) bool { return proc.Alive(proc.ID(n.From.Process)) })
}

// sweep removes what a hook left that was ended while it wrote.
func (b Box) sweep() {
	entries, _ := os.ReadDir(b.Dir)
	for _, e := range entries {
		info, err := e.Info()
		if strings.HasSuffix(e.Name(), ".new") && err == nil && time.Since(info.ModTime()) > time.Minute {
			_ = os.Remove(filepath.Join(b.Dir, e.Name()))
		}
	}
}

func (b Box) all() []*Note {
	names, _ := b.names()
	var out []*Note
	for _, name := range names[max(0, len(names)-MaxNotes):] {
		n, err := b.read(name)
		switch {
		case err == nil:
			out = append(out, n)
		case !errors.Is(err, os.ErrNotExist):
			_ = os.Remove(filepath.Join(b.Dir, name))
		}
	}
	return out
}

func (b Box) read(name string) (*Note, error) {
	path := filepath.Join(b.Dir, name)
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > MaxNote {
		return nil, fmt.Errorf("%s is no note", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	n, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if stamp, _, _ := strings.Cut(name, "-"); stamp != fmt.Sprintf("%020d", n.At.UnixNano()) {
		return nil, fmt.Errorf("%s is named for another time", path)
	}
	n.name = name
	return n, nil
}

func decode(data []byte) (*Note, error) {
	n := &Note{}
	if err := json.Unmarshal(data, n, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	if err := metadata.CheckID("integration", n.Integration); err != nil {
		return nil, err
	}
	if err := metadata.CheckNativeID("id", n.ID); err != nil {
		return nil, err
	}
	if n.From.PID <= 0 || n.At.UnixNano() <= 0 {
		return nil, errors.New("no process or no time: " + strconv.Itoa(n.From.PID))
	}
	return n, nil
}

// Remove takes a note away. One that is gone already is no error.
func (b Box) Remove(n *Note) {
	if n != nil && n.name != "" {
		_ = os.Remove(filepath.Join(b.Dir, n.name))
	}
}

// Settle says that a note is about to count for an agent: what the same agent told before is over
// and goes. An error that wraps ErrLater where it told something later, or where the note itself is
// gone, because something later counted.
func (b Box) Settle(n *Note, agent owner.Process) error {
	there := false
	for _, other := range b.all() {
		switch {
		case other.name == n.name:
			there = true
		case other.Integration != n.Integration || !other.From.Has(agent):
		case other.name < n.name:
			b.Remove(other)
		default:
			return fmt.Errorf("%w: %s", ErrLater, other.ID)
		}
	}
	if !there {
		return ErrLater
	}
	return nil
}
