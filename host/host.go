// Package host says what a terminal multiplexer must do for us: the interface, its data and
// its sentinels. Bodies live in the folders below; hosttest is the suite that each must pass.
package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/phux-agent/phux-agent/metadata"
)

// Host owns terminals. Every method may be called concurrently, and by several processes.
type Host interface {
	// Info probes the host. No server running is not an error: Running is false.
	Info(ctx context.Context) (Info, error)
	// Snapshot returns one consistent view, metadata included, or ErrNoServer, or ErrChanged.
	Snapshot(ctx context.Context) (*Workspace, error)
	// Create makes a session whole (windows, layouts, panes, records) or leaves nothing and
	// starts no agent. ErrSessionExists where the name is taken: one winner when raced.
	// It starts a server where none runs.
	Create(ctx context.Context, c CreateSession) (*Created, error)
	// Spawn adds one pane to an existing session, with its record, or leaves nothing.
	Spawn(ctx context.Context, s Spawn) (*Started, error)
	// Swap replaces one metadata value of a terminal if it is still old. Nil means absent.
	// ErrConflict where it is not, ErrStale where the terminal is of another server life.
	Swap(ctx context.Context, t Terminal, k metadata.Key, old, new []byte) error
	// Kill ends a terminal. A terminal that is gone already is ErrNoTerminal.
	Kill(ctx context.Context, t Terminal) error
}

// Reader is what a host may offer besides: the text on a terminal's screen and above it.
type Reader interface {
	// LastWords returns at most max bytes of the end of the terminal's text, controls removed.
	LastWords(ctx context.Context, t Terminal, max int) (string, error)
}

// Focuser is what a host with clients may offer: put a terminal before the user's eyes.
type Focuser interface {
	Focus(ctx context.Context, t Terminal) error
}

// Binder is what a host offers for a program in a terminal that we did not start (launch
// --here, adopt): metadata bound to that process. Once the process is gone the values are
// reported with Origin BoundGone, and are never live again.
type Binder interface {
	Bind(ctx context.Context, t Terminal, pid int, start uint64, meta map[metadata.Key][]byte) error
}

var (
	ErrNoServer      = errors.New("no server is running")
	ErrNoSession     = errors.New("no such session")
	ErrSessionExists = errors.New("a session of that name exists")
	ErrNoTerminal    = errors.New("no such terminal")
	ErrStale         = errors.New("the terminal belongs to another life of the server")
	ErrConflict      = errors.New("the value was changed by someone else")
	ErrChanged       = errors.New("the workspace changed while it was read")
	ErrOlderHost     = errors.New("the host cannot store a record inside the spawn")
	ErrDangerous     = errors.New("a setting of this server would make the call kill it")
	ErrNoSpace       = errors.New("no space for a new pane")
)

// Instance identifies one life of a host server. Comparable; the zero value is "no server".
type Instance struct {
	Kind   string
	Socket string // absolute path
	PID    int
	Start  string // as the host says it
	Boot   string // boot id of the machine
}

// Digest names the life in an archive. It tells lives apart, and is no authority.
func (i Instance) Digest() string {
	h := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d\x00%s\x00%s", i.Kind, i.Socket, i.PID, i.Start, i.Boot))
	return hex.EncodeToString(h[:16])
}

// Info is what a probe found.
type Info struct {
	Kind     string // "tmux", "embedded", "memory"
	Version  string // of the running server, or of the client where none runs
	Server   string // the archive directory's name: tmux-default, tmux-L-NAME, tmux-S-<hash>, embedded-NAME
	Running  bool
	Instance Instance
	// AtomicRecord: the record is stored inside the spawn (an older host cannot).
	AtomicRecord bool
	Attach       string   // the command that attaches to session %s, for people; may be empty
	Warnings     []string // settings worth a word
}

// Terminal names one pty in one server life.
type Terminal struct {
	Instance Instance
	ID       string // "%3" on tmux
}

// Workspace is what one host server holds, sessions sorted by name, windows by index, panes
// by index.
type Workspace struct {
	Instance Instance
	Sessions []Session
}

type Session struct {
	ID, Name string
	Group    string // sessions of one group share their windows
	Dir      string
	Active   bool // the one that the user looked at last
	Attached int
	Created  time.Time
	Aside    bool // it was set aside for another of its name, as an idle shell
	Windows  []Window
}

type Window struct {
	ID, Name      string
	Index         int
	Active        bool
	Zoomed        bool
	AutomaticName bool
	Linked        bool // shown in more than one session
	Layout        Cell // unzoomed
	Panes         []Pane
}

// Pane is one terminal as seen.
type Pane struct {
	Terminal   Terminal
	Index      int
	Active     bool
	Title      string
	Dir        string // of the foreground process; empty where unknown; " (deleted)" already removed
	DirGone    bool   // Dir was deleted
	Command    string // name of the foreground program: shown, never run
	TTY        string
	PID        int // of the process that the host started
	Cols, Rows int
	Dead       bool
	Exit       *Exit // nil while alive or unknown
	Origin     Origin
	Nonce      string // birth nonce; empty where Origin is Foreign or Bound
	BoundPID   int    // of Bound: the process, and its start time in clock ticks
	BoundStart uint64
	Waiting    bool // of Ours: still our own program (placeholder, or before its gate), not yet the agent
	// Meta holds the current values: a birth value, or what Swap put over it; a key that was
	// swapped to nil is absent. A Replaced pane keeps what it has, to be reported as not live.
	Meta map[metadata.Key][]byte
}

// Exit is how a pane's program ended.
type Exit struct {
	Status int    // -1 where a signal ended it, or where unknown
	Signal string // "" where none
}

// Origin says whose program is in a pane.
type Origin int

const (
	Foreign   Origin = iota // not started by us
	Ours                    // the program that we started (running, or dead in a held pane)
	Ended                   // ours ended with 0, and the shell that follows it is there
	Replaced                // we started it, and somebody respawned another program in it
	Bound                   // foreign terminal, metadata bound to a living process in it
	BoundGone               // the bound process is gone
)

// CreateSession asks for a session whole.
type CreateSession struct {
	Name     string // exact; refused where the host cannot hold it byte for byte
	Dir      string // the session's own directory
	Windows  []WindowSpec
	Active   int // index into Windows
	Parallel int // programs started at once; 0 means 8
	// Aside, where it is not nil, is set aside for this one. Only on a host that is an Asider.
	Aside *Aside
}

type WindowSpec struct {
	Name          string
	Index         int // -1: the next free one
	AutomaticName bool
	Zoomed        bool
	Layout        Cell // leaves are indexes into Panes
	Panes         []PaneSpec
	Active        int // index into Panes
}

type PaneSpec struct {
	Start Start
	Title string
	Meta  map[metadata.Key][]byte // stored with the spawn
}

// Spawn asks for one pane in an existing session.
type Spawn struct {
	Place      Place
	Session    string   // exact name, for NewWindow
	Target     Terminal // for SplitH and SplitV
	WindowName string   // for NewWindow; empty lets the host name it
	Background bool     // do not bring it before the user's eyes
	Pane       PaneSpec
}

type Place int

const (
	NewWindow Place = iota
	SplitH          // beside the target
	SplitV          // below the target
)

// Created is the answer of Create, in the order of the request.
type Created struct {
	Session string // host id
	Windows [][]Started
}

// Started is one pane that was made.
type Started struct {
	Terminal Terminal
	Nonce    string
	PID      int
	// Err says why the program did not start (the pane is there and holds its record).
	Err error
	// Meta as read back from the host after the spawn.
	Meta map[metadata.Key][]byte
}
