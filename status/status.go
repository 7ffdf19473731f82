// Package status is what is known of one server's agents at a glance: a small file in the runtime
// directory, which whoever looks at the server keeps, and whoever wants a status line reads. It
// describes, and decides nothing; a boot clears it.
package status

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"

	"github.com/phux-agent/phux-agent/internal/atomicfile"
)

// Version is the file's. A reader that finds another one reads nothing.
const Version = 1

// Bounds of the file, on writing and on reading.
const (
	MaxSize   = 4 << 20
	MaxAgents = 8192
)

// OldAfter is the age from which on a summary that nobody renewed is called old.
const OldAfter = 30 * time.Minute

// The words of an agent's live state, those of phux.agent/v1; others read as unknown.
const (
	Idle    = "idle"
	Working = "working"
	Blocked = "blocked" // it waits for a person
	Done    = "done"
	Unknown = "unknown"
)

// Agent is one agent that runs.
type Agent struct {
	Terminal    string    `json:"terminal"`
	Session     string    `json:"session"`
	Integration string    `json:"integration"`
	ID          string    `json:"id,omitzero"` // its conversation, where that is known
	PID         int       `json:"pid,omitzero"`
	Start       uint64    `json:"start,omitzero"` // of the process, in clock ticks since boot
	State       string    `json:"state"`
	Attention   string    `json:"attention"`
	Since       time.Time `json:"since,omitzero"`    // when the state was first seen
	HeardAt     time.Time `json:"heard_at,omitzero"` // when its hook told it
}

// Summary is the file.
type Summary struct {
	SchemaVersion int       `json:"schema_version"`
	Server        string    `json:"server"`
	ServerPID     int       `json:"server_pid,omitzero"`
	ServerLife    string    `json:"server_life,omitzero"` // as the host tells one life from another
	At            time.Time `json:"at"`                   // of the last look at the whole server
	Agents        []Agent   `json:"agents"`
	SavedAt       time.Time `json:"saved_at,omitzero"`
	Generation    uint64    `json:"generation,omitzero"`
	// UnsavedSince is when something was first seen that no good generation holds; zero where
	// nothing was.
	UnsavedSince time.Time `json:"unsaved_since,omitzero"`
	// CheckedAt is when a save by itself was made, or found nothing to save, and Awake is how long the
	// machine had been awake then, in seconds; Every is the time that autosave leaves between two, in
	// seconds, 0 where it is not on.
	CheckedAt time.Time `json:"checked_at,omitzero"`
	Awake     int64     `json:"awake,omitzero"`
	Every     int64     `json:"every,omitzero"`
	// Label is what the host was last told to show.
	Label string `json:"label,omitzero"`
}

// File is where a server's summary is, below the runtime directory. server is a name of one path
// element, as archives are filed under.
func File(runtime, server string) string {
	return filepath.Join(runtime, "status", server+".json")
}

// Read reads a summary: fs.ErrNotExist where there is none.
func Read(path string) (*Summary, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("read status: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("read status %q: %w", path, err)
	}
	return Decode(b)
}

// Decode reads what a file holds; members that are not known are passed over.
func Decode(b []byte) (*Summary, error) {
	var s Summary
	switch err := json.Unmarshal(b, &s); {
	case len(b) > MaxSize:
		return nil, fmt.Errorf("read status: over %d bytes", MaxSize)
	case err != nil:
		return nil, fmt.Errorf("read status: %w", err)
	case s.SchemaVersion != Version:
		return nil, fmt.Errorf("read status: its version is %d, and this program knows %d", s.SchemaVersion, Version)
	case len(s.Agents) > MaxAgents:
		return nil, fmt.Errorf("read status: %d agents, at most %d", len(s.Agents), MaxAgents)
	}
	return &s, nil
}

// Update changes a summary under a lock, from what stands there (an empty one where nothing can be
// read) to what change makes of it, and replaces the file in one step where that is something
// else. The directory is made, and private. It is not synced: nothing of it outlives a boot.
func Update(path string, change func(*Summary)) (*Summary, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("update status: %w", err)
	}
	lock := flock.New(filepath.Join(dir, ".lock"), flock.SetPermissions(0o600))
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	if _, err := lock.TryLockContext(ctx, patience/100); err != nil {
		return nil, fmt.Errorf("update status: %w", err)
	}
	defer lock.Close()
	s, err := Read(path)
	if err != nil {
		s = &Summary{}
	}
	before := *s
	before.Agents = slices.Clone(s.Agents)
	change(s)
	s.SchemaVersion = Version
	s.Agents = s.Agents[:min(len(s.Agents), MaxAgents)]
	if err == nil && same(before, *s) {
		return s, nil
	}
	b, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("update status: %w", err)
	}
	if err := atomicfile.Unsynced(path, path+".tmp", append(b, '\n')); err != nil {
		return nil, fmt.Errorf("update status: %w", err)
	}
	return s, nil
}

// patience bounds the wait for another writer: an agent may wait for its hook.
const patience = 300 * time.Millisecond

func same(a, b Summary) bool {
	agents := slices.Equal(a.Agents, b.Agents)
	a.Agents, b.Agents = nil, nil
	return agents && a.SchemaVersion == b.SchemaVersion && a.Server == b.Server && a.ServerPID == b.ServerPID &&
		a.ServerLife == b.ServerLife && a.At.Equal(b.At) && a.SavedAt.Equal(b.SavedAt) && a.Generation == b.Generation &&
		a.UnsavedSince.Equal(b.UnsavedSince) && a.Label == b.Label &&
		a.CheckedAt.Equal(b.CheckedAt) && a.Awake == b.Awake && a.Every == b.Every
}

// Begin makes a summary one of this life of the server: what was said of another one's agents and
// label goes.
func (s *Summary) Begin(server string, pid int, life string) {
	if life != s.ServerLife || pid != s.ServerPID {
		s.Agents, s.Label, s.UnsavedSince = nil, "", time.Time{}
		s.CheckedAt, s.Awake, s.Every = time.Time{}, 0, 0
	}
	s.Server, s.ServerPID, s.ServerLife = server, pid, life
}

// Looked replaces the agents by those that a look at the whole server found, which began at that
// time: what an agent's hook told since is newer, and stays.
func (s *Summary) Looked(agents []Agent, began, now time.Time) {
	for i := range agents {
		a := &agents[i]
		a.State, a.Since = word(a.State), now
		old := s.Of(a.PID, a.Start)
		switch {
		case old == nil:
		case old.HeardAt.After(began):
			a.ID, a.State, a.Attention, a.Since, a.HeardAt = old.ID, old.State, old.Attention, old.Since, old.HeardAt
		case old.State == a.State:
			a.Since, a.HeardAt = old.Since, old.HeardAt
		}
	}
	for _, old := range s.Agents {
		if old.HeardAt.After(began) && !slices.ContainsFunc(agents, func(a Agent) bool { return a.Terminal == old.Terminal }) {
			agents = append(agents, old) // it is newer than the look
		}
	}
	s.Agents, s.At = agents, now
}

// Heard puts in what one agent's hook told.
func (s *Summary) Heard(a Agent, now time.Time) {
	a.State, a.Since, a.HeardAt = word(a.State), now, now
	if old := s.Of(a.PID, a.Start); old != nil {
		if old.State == a.State {
			a.Since = old.Since
		}
		*old = a
		return
	}
	// One process in a terminal: what was said of an earlier one there goes.
	s.Agents = slices.DeleteFunc(s.Agents, func(o Agent) bool { return o.Terminal == a.Terminal })
	s.Agents = append(s.Agents, a)
}

// Saved notes a generation: a good one holds everything that was seen.
func (s *Summary) Saved(generation uint64, at time.Time, good bool, now time.Time) {
	s.Generation, s.SavedAt = generation, at
	if good {
		s.UnsavedSince = time.Time{}
		return
	}
	s.Changed(now)
}

// Checked notes that autosave, which comes every so often, has looked; every is 0 where it was turned
// off. awake is how long the machine has been awake.
func (s *Summary) Checked(now time.Time, awake, every time.Duration) {
	s.CheckedAt, s.Awake, s.Every = now, int64(awake/time.Second), int64(every/time.Second)
	if every <= 0 {
		s.CheckedAt, s.Awake = time.Time{}, 0
	}
}

// Changed notes that something was seen that no generation holds yet.
func (s *Summary) Changed(now time.Time) {
	if s.UnsavedSince.IsZero() {
		s.UnsavedSince = now
	}
}

// Of finds the agent that a process is; nil where there is none.
func (s *Summary) Of(pid int, start uint64) *Agent {
	for i := range s.Agents {
		if a := &s.Agents[i]; pid > 0 && a.PID == pid && a.Start == start {
			return a
		}
	}
	return nil
}

func word(state string) string {
	switch state {
	case Idle, Working, Blocked, Done:
		return state
	}
	return Unknown
}
