package owner

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/gofrs/flock"

	"github.com/phux-agent/phux-agent/internal/atomicfile"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/metadata"
)

// Claim is the content of one claim file: who runs an identity now.
type Claim struct {
	Identity metadata.Identity `json:"identity"`
	Process  Process           `json:"process"` // zero where a reservation was given back
	Session  int               `json:"session"` // process session id, to find survivors
	Boot     string            `json:"boot"`
	Place    Place             `json:"place"`
	Epoch    uint64            `json:"epoch"`  // grows with each claim of the identity
	Ticket   string            `json:"ticket"` // random; who holds it may take the claim over
	Reserved bool              `json:"reserved"`
	At       time.Time         `json:"at"`

	Group   int    `json:"group,omitzero"`   // process group, to find survivors where the owner leads no session
	TTY     int    `json:"tty,omitzero"`     // controlling terminal (device number), to see that it is gone
	Program string `json:"program,omitzero"` // the agent's program name, to tell survivors from its helpers
}

// vacant reports a claim that nobody holds: its reservation was given back. It stays on file,
// so that epochs go on and a late pane with its ticket is refused.
func (c Claim) vacant() bool { return c.Process == Process{} }

// Claims is the directory of claims: below the runtime directory, so that a reboot clears it.
//
// Each identity has a file (the claim, replaced whole) and a lock beside it (held for the moment
// of a change). A claim says who, never whether he lives: that is asked of the kernel each time,
// so a process that was killed at any point leaves nothing to clean up.
type Claims struct {
	Dir  string
	memo *memo
}

// Batch is c for a caller that reserves many identities in a row: whether a dead owner left
// survivors is asked of one reading of the process table, made when it is needed first, and of a
// new one where that shows any, or where the owner is younger than the reading.
func (c Claims) Batch() Claims { return Claims{Dir: c.Dir, memo: new(memo)} }

// memo is a reading of the process table. What is left of an owner that is older than the reading
// stands in it, or whoever started that does, in the same process session: that it shows none is
// proof.
type memo struct {
	sync.Mutex
	table *proc.Table
}

// none reports that no process of this user can be a survivor of the claim's owner.
func (m *memo) none(c Claim, agent func(proc.Info) bool) bool {
	self, err := currentProcess()
	if m == nil || err != nil || c.Process.Start >= self.Start {
		return false
	}
	m.Lock()
	defer m.Unlock()
	if m.table == nil {
		if m.table, err = proc.ReadTable(); err != nil {
			return false
		}
	}
	return len(survivors(m.table, c, agent)) == 0
}

const (
	maxClaim = 16 << 10 // bytes of a claim file
	// lockWait bounds how long a change waits for another one of the same identity. Each holds the
	// lock for some file operations; only a stopped process holds it longer.
	lockWait = 10 * time.Second
	lockPoll = time.Millisecond
)

// Reserve claims an identity for the calling process until a starting pane takes it over with
// the ticket. A *LiveError where it is owned by a live process (or by an earlier reservation
// whose process lives).
func (c Claims) Reserve(id metadata.Identity, place Place) (Claim, error) {
	self, err := currentProcess()
	if err != nil {
		return Claim{}, fmt.Errorf("reserve %q: %w", id, err)
	}
	claim := Claim{Place: place, Reserved: true}
	err = c.change(id, func(old *Claim, damaged error) (*Claim, error) {
		if err := c.refuse(id, old, damaged, processOf(self)); err != nil {
			return nil, err
		}
		fresh, err := stamp(claim, id, old, self)
		claim = fresh
		return &fresh, err
	})
	if err != nil {
		return Claim{}, fmt.Errorf("reserve %q: %w", id, err)
	}
	return claim, nil
}

// Release gives a claim back, if the ticket still holds it: a reservation, or what the calling
// process took and did not become. What a pane has taken over is left alone, without an error.
func (c Claims) Release(claim Claim) error {
	self, err := currentProcess()
	if err != nil {
		return fmt.Errorf("release %q: %w", claim.Identity, err)
	}
	err = c.change(claim.Identity, func(old *Claim, damaged error) (*Claim, error) {
		if damaged != nil {
			return nil, damaged
		}
		if old == nil || old.vacant() || old.Ticket != claim.Ticket || !old.Reserved && old.Process != processOf(self) {
			return nil, nil
		}
		given := *old
		given.Process, given.Reserved, given.At = Process{}, false, time.Now().UTC()
		given.Session, given.Group, given.TTY = 0, 0, 0
		return &given, nil
	})
	if err != nil {
		return fmt.Errorf("release %q: %w", claim.Identity, err)
	}
	return nil
}

// Take makes the calling process the owner: by ticket where there is one, else afresh, under
// the same rules as Reserve. The process then execs the agent, and pid and start time stay.
//
// A ticket takes its reservation over whether or not its maker still lives, once, and keeps its
// epoch. A *LiveError where another process owns the identity; ErrTicket where the reservation
// was given back or superseded. A claim that was lost (a cleared runtime directory) is made anew.
func (c Claims) Take(id metadata.Identity, ticket string, place Place) (Claim, error) {
	return c.take(id, ticket, place, "")
}

func (c Claims) take(id metadata.Identity, ticket string, place Place, program string) (Claim, error) {
	self, err := currentProcess()
	if err != nil {
		return Claim{}, fmt.Errorf("claim %q: %w", id, err)
	}
	claim := Claim{Place: place, Program: program, Ticket: ticket}
	err = c.change(id, func(old *Claim, damaged error) (*Claim, error) {
		held := ticket != "" && old != nil && sameBoot(*old)
		switch {
		case held && old.Ticket == ticket && old.vacant():
			return nil, fmt.Errorf("%w: it was given back", ErrTicket)
		case held && old.Ticket == ticket && old.Reserved:
			taken, err := stamp(claim, id, old, self)
			taken.Epoch = old.Epoch
			claim = taken
			return &taken, err
		}
		if err := c.refuse(id, old, damaged, processOf(self)); err != nil {
			return nil, err
		}
		if held && old.Ticket != ticket {
			return nil, fmt.Errorf("%w: the identity was claimed again at %s", ErrTicket, old.At.Format(time.RFC3339))
		}
		fresh, err := stamp(claim, id, old, self)
		claim = fresh
		return &fresh, err
	})
	if err != nil {
		return Claim{}, fmt.Errorf("claim %q: %w", id, err)
	}
	return claim, nil
}

// Rebuild writes the claim of a process that runs the identity but lost its claim (a cleared
// runtime directory) or came to run it (a proven rotation): the pane's birth token and its live
// pid are the proof. What the same process claimed of the same integration before is given up,
// for one process is in one conversation. A *LiveError where another process owns it.
func (c Claims) Rebuild(id metadata.Identity, p Process, place Place) error {
	info, err := proc.Stat(p.PID)
	if err == nil && (info.Start != p.Start || info.Dead()) {
		err = proc.ErrGone
	}
	if err != nil {
		return fmt.Errorf("rebuild the claim of %q: %w", id, err)
	}
	var program string
	others, err := c.List()
	if err != nil {
		return fmt.Errorf("rebuild the claim of %q: %w", id, err)
	}
	others = slices.DeleteFunc(others, func(o Claim) bool {
		return o.Process != p || o.Reserved || o.Identity.IntegrationID != id.IntegrationID || o.Identity == id
	})
	for _, o := range others {
		program = o.Program
	}
	err = c.change(id, func(old *Claim, damaged error) (*Claim, error) {
		if old != nil && old.Process == p && !old.Reserved && sameBoot(*old) {
			return nil, nil
		}
		if err := c.refuse(id, old, damaged, p); err != nil {
			return nil, err
		}
		if old != nil && program == "" {
			program = old.Program
		}
		fresh, err := stamp(Claim{Place: place, Program: program}, id, old, info)
		return &fresh, err
	})
	if err != nil {
		return fmt.Errorf("rebuild the claim of %q: %w", id, err)
	}
	for _, o := range others {
		if err := c.GiveUp(o.Identity, p); err != nil {
			return fmt.Errorf("rebuild the claim of %q: %w", id, err)
		}
	}
	return nil
}

// List returns every readable claim that somebody made and did not give back, the dead ones of
// this boot included, in the order of their identities.
func (c Claims) List() ([]Claim, error) {
	names, err := os.ReadDir(c.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list claims: %w", err)
	}
	var out []Claim
	for _, n := range names {
		if !strings.HasSuffix(n.Name(), ".json") {
			continue
		}
		claim, err := readClaim(filepath.Join(c.Dir, n.Name()))
		if err != nil || claim == nil || claim.vacant() || !sameBoot(*claim) {
			continue
		}
		if fileName(claim.Identity)+".json" == n.Name() {
			out = append(out, *claim)
		}
	}
	slices.SortFunc(out, func(a, b Claim) int { return strings.Compare(a.Identity.String(), b.Identity.String()) })
	return out, nil
}

// Get returns the claim of an identity, nil where there is none. An error is a damaged claim,
// or one that cannot be read: then nothing is known.
func (c Claims) Get(id metadata.Identity) (*Claim, error) {
	claim, err := readClaim(filepath.Join(c.Dir, fileName(id)+".json"))
	if err == nil && claim != nil && claim.Identity != id {
		err = fmt.Errorf("it is the claim of %q", claim.Identity)
	}
	if err != nil {
		return nil, fmt.Errorf("read the claim of %q: %w", id, err)
	}
	return claim, nil
}

// change runs one change of an identity's claim under its lock. What decide returns replaces the
// file; nil leaves it. old is nil where there is none, and where it is damaged.
func (c Claims) change(id metadata.Identity, decide func(old *Claim, damaged error) (*Claim, error)) error {
	if err := c.prepare(); err != nil {
		return err
	}
	base := filepath.Join(c.Dir, fileName(id))
	lock := flock.New(base+".lock", flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	if ok, err := lock.TryLockContext(ctx, lockPoll); err != nil || !ok {
		if errors.Is(err, context.DeadlineExceeded) {
			err = errors.New("another process holds the lock")
		}
		return fmt.Errorf("lock %q: %w", base+".lock", err)
	}
	defer lock.Close()
	old, damaged := c.Get(id)
	next, err := decide(old, damaged)
	if err != nil || next == nil {
		return err
	}
	return writeClaim(base, *next)
}

// prepare makes the directory, and refuses one that others could write to.
func (c Claims) prepare() error {
	if !filepath.IsAbs(c.Dir) {
		return &DirectoryError{Path: c.Dir, Reason: "not an absolute path"}
	}
	info, err := os.Lstat(c.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(c.Dir, 0o700); err != nil {
			return fmt.Errorf("create the runtime directory: %w", err)
		}
		info, err = os.Lstat(c.Dir)
	}
	if err != nil {
		return fmt.Errorf("create the runtime directory: %w", err)
	}
	if !info.IsDir() {
		return &DirectoryError{Path: c.Dir, Reason: "not a directory"}
	}
	if !ownedBy(info, os.Geteuid()) {
		return &DirectoryError{Path: c.Dir, Reason: "belongs to another user"}
	}
	if info.Mode().Perm() != 0o700 { // ours; a umask or an older version made it so
		if err := os.Chmod(c.Dir, 0o700); err != nil {
			return fmt.Errorf("make the runtime directory private: %w", err)
		}
	}
	parent, err := os.Stat(filepath.Dir(c.Dir))
	if err != nil {
		return fmt.Errorf("create the runtime directory: %w", err)
	}
	if !ownedBy(parent, os.Geteuid()) && !ownedBy(parent, 0) {
		return &DirectoryError{Path: filepath.Dir(c.Dir), Reason: "belongs to another user"}
	}
	return nil
}

// fileName is a hash: an identity may hold any character, and be longer than a name may be.
func fileName(id metadata.Identity) string {
	h := sha256.Sum256([]byte(id.IntegrationID + "\x00" + id.NativeID))
	return hex.EncodeToString(h[:])
}

// readClaim returns nil where there is no file.
func readClaim(path string) (*Claim, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxClaim+1))
	if err != nil {
		return nil, err
	}
	claim, err := decodeClaim(b)
	if err != nil {
		return nil, fmt.Errorf("the claim file %q is damaged: %w", path, err)
	}
	return &claim, nil
}

// decodeClaim reads a claim of this version or a later one: unknown members are skipped, so that
// two versions can work side by side in one runtime directory.
func decodeClaim(b []byte) (Claim, error) {
	var c Claim
	if len(b) > maxClaim {
		return c, fmt.Errorf("longer than %d bytes", maxClaim)
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return Claim{}, err
	}
	switch {
	case c.Identity.IntegrationID == "" || c.Identity.NativeID == "":
		return Claim{}, errors.New("no identity")
	case c.Boot == "":
		return Claim{}, errors.New("no boot id")
	case c.Ticket == "":
		return Claim{}, errors.New("no ticket")
	case c.Epoch == 0:
		return Claim{}, errors.New("no epoch")
	case c.Process.PID < 0 || c.Session < 0 || c.Group < 0:
		return Claim{}, errors.New("a negative process")
	case c.Process.PID == 0 && c.Process.Start != 0:
		return Claim{}, errors.New("a start time without a process")
	}
	return c, nil
}

// writeClaim replaces the file whole. The temporary name is the identity's own, and only the
// holder of its lock writes it, so a killed writer leaves one file that the next one overwrites.
// Nothing is synced: a crash of the machine ends every claim anyway.
func writeClaim(base string, c Claim) error {
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if len(b) > maxClaim {
		return fmt.Errorf("the claim is longer than %d bytes", maxClaim)
	}
	return atomicfile.Unsynced(base+".json", base+".tmp", b)
}

// stamp fills in what every claim has: who, when, and the next epoch.
func stamp(c Claim, id metadata.Identity, old *Claim, p proc.Info) (Claim, error) {
	boot, err := proc.BootID()
	if err != nil {
		return c, err
	}
	c.Identity, c.Process, c.Boot = id, processOf(p), boot
	c.Session, c.Group, c.TTY = p.Session, p.Group, p.TTY
	c.Epoch = 1
	if old != nil {
		c.Epoch = old.Epoch + 1
	}
	if c.Ticket == "" {
		c.Ticket = rand.Text()
	}
	c.At = time.Now().UTC()
	return c, nil
}

func currentProcess() (proc.Info, error) { return proc.Stat(os.Getpid()) }

func sameBoot(c Claim) bool {
	boot, err := proc.BootID()
	return err == nil && boot == c.Boot
}

// refuse is the rule of Reserve, Take and Rebuild: a *LiveError where somebody else than p owns
// the identity by what is on file. The process table is read only where the kernel says that the
// dead owner's process group is not empty, or where the file is damaged.
func (c Claims) refuse(id metadata.Identity, old *Claim, damaged error, p Process) error {
	if damaged != nil {
		// The claim says nothing; the id in somebody's arguments is what evidence is left.
		table, err := proc.ReadTable()
		if err != nil {
			return errors.Join(damaged, err)
		}
		for _, i := range table.All() {
			args, err := proc.Cmdline(i.PID)
			if err != nil || processOf(i) == p || i.Dead() || !carries(args, id.NativeID) || bystander(i, args) {
				continue
			}
			return &LiveError{Identity: id, Live: describe(Live{Kind: Suspected, Note: damaged.Error()}, i, args)}
		}
		return nil
	}
	if old == nil || old.vacant() || !sameBoot(*old) {
		return nil
	}
	info, err := proc.Stat(old.Process.PID)
	if err == nil && info.Start == old.Process.Start && !info.Dead() {
		if !old.Reserved && old.Process == p {
			return nil // it asks itself
		}
		args, _ := proc.Cmdline(info.PID)
		return &LiveError{Identity: id, Live: describe(Live{Kind: kindOf(*old, info), Place: old.Place}, info, args)}
	}
	if err != nil && !errors.Is(err, proc.ErrGone) {
		return err
	}
	if old.Reserved || !groupExists(*old) {
		return nil
	}
	agent := func(i proc.Info) bool { return isAgent(i, old.Program, id.NativeID) }
	if c.memo.none(*old, agent) {
		return nil
	}
	table, err := proc.ReadTable()
	if err != nil {
		return err
	}
	for _, i := range survivors(table, *old, agent) {
		if processOf(i) == p {
			continue
		}
		args, _ := proc.Cmdline(i.PID)
		return &LiveError{Identity: id, Live: describe(Live{Kind: Orphan, Place: old.Place}, i, args)}
	}
	return nil
}

// kindOf says what a living claim is: a reservation, an owner, or one whose terminal is gone
// (the kernel takes a terminal from all of its processes when it is hung up).
func kindOf(c Claim, now proc.Info) LiveKind {
	switch {
	case c.Reserved:
		return Starting
	case c.TTY != 0 && now.TTY == 0:
		return Orphan
	}
	return Claimed
}

func describe(l Live, i proc.Info, args []string) Live {
	l.Process, l.TTY = processOf(i), proc.TTYName(i.TTY)
	if l.Command = command(args); l.Command == "" {
		l.Command = command([]string{i.Comm})
	}
	return l
}
