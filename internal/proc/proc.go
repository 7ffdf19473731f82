// Package proc reads the process table: start time, ancestry, arguments, environment, open
// files, and the machine's boot id. Linux; elsewhere every answer is ErrUnsupported.
//
// A number alone names no process, for numbers are used again: what is to be kept and compared
// is an ID, the number with the start time.
package proc

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

var (
	// ErrUnsupported is every answer on a system whose process table this package cannot read.
	ErrUnsupported = errors.New("the process table of this system cannot be read")
	// ErrGone is wrapped where no process has the number, or another one has it now.
	ErrGone = errors.New("no such process")
	// ErrTooLarge is wrapped where a process has more arguments, environment or open files than
	// are read. Nothing is cut short silently.
	ErrTooLarge = errors.New("more than is read of one process")
)

// Bounds of what is read of one process.
const (
	MaxCmdline   = 1 << 20 // bytes
	MaxEnviron   = 4 << 20 // bytes
	MaxOpenFiles = 1 << 16 // descriptors
)

// TicksPerSecond is the unit of start times: USER_HZ, which is 100 in the ABI of Linux whatever
// the kernel's own tick is.
const TicksPerSecond = 100

// ID is a process that cannot be mistaken for a later one of the same number.
type ID struct {
	PID   int
	Start uint64 // clock ticks since boot: field 22 of /proc/PID/stat
}

// Info is one line of the process table.
type Info struct {
	PID     int
	PPID    int
	Group   int // process group
	Session int // process session
	TTY     int // device number of the controlling terminal; 0 where there is none (any more)
	Front   int // the process group in the foreground of that terminal; -1 where there is none
	State   byte
	Start   uint64 // clock ticks since boot
	Comm    string // at most 15 bytes, chosen by the process
}

// ID returns what to remember of the process.
func (i Info) ID() ID { return ID{PID: i.PID, Start: i.Start} }

// Dead reports that the process has ended: a zombie only waits to be counted by its parent.
func (i Info) Dead() bool { return i.State == 'Z' || i.State == 'X' || i.State == 'x' }

// Alive reports that the very process runs. It is false where that cannot be known.
func Alive(id ID) bool {
	i, err := Stat(id.PID)
	return err == nil && i.Start == id.Start && !i.Dead()
}

// TTYName is the device's path as a person knows it; empty for 0.
func TTYName(dev int) string {
	if dev == 0 {
		return ""
	}
	major, minor := dev>>8&0xfff, dev&0xff|dev>>12&0xfff00
	switch {
	case major >= 136 && major <= 143:
		return fmt.Sprintf("/dev/pts/%d", (major-136)<<8+minor)
	case major == 4 && minor < 64:
		return fmt.Sprintf("/dev/tty%d", minor)
	}
	return fmt.Sprintf("terminal %d:%d", major, minor)
}

// parseStat reads one /proc/PID/stat. The name in it is the process's own choice and may hold
// spaces, newlines and parentheses: what follows the last ')' is the kernel's.
func parseStat(b []byte) (Info, error) {
	open, shut := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 1 || shut < open {
		return Info{}, errors.New("no name in parentheses")
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(b[:open])))
	if err != nil || pid <= 0 {
		return Info{}, errors.New("no pid")
	}
	i := Info{PID: pid, Comm: string(b[open+1 : shut])}
	// Fields are numbered from 3 as in proc(5).
	rest := b[shut+1:]
	for field := 3; field <= 22; field++ {
		rest = bytes.TrimLeft(rest, " ")
		var word []byte
		if end := bytes.IndexByte(rest, ' '); end >= 0 {
			word, rest = rest[:end], rest[end:]
		} else {
			word, rest = bytes.TrimRight(rest, "\n"), nil
		}
		var err error
		switch field {
		case 3:
			if len(word) != 1 {
				return Info{}, fmt.Errorf("state %q", word)
			}
			i.State = word[0]
		case 4:
			i.PPID, err = strconv.Atoi(string(word))
		case 5:
			i.Group, err = strconv.Atoi(string(word))
		case 6:
			i.Session, err = strconv.Atoi(string(word))
		case 7:
			i.TTY, err = strconv.Atoi(string(word))
		case 8:
			i.Front, err = strconv.Atoi(string(word))
		case 22:
			i.Start, err = strconv.ParseUint(string(word), 10, 64)
		}
		if err != nil {
			return Info{}, fmt.Errorf("field %d: %w", field, err)
		}
	}
	return i, nil
}

// splitNul takes apart what the kernel joins with NULs. Empty elements at the end are dropped:
// a program that wrote its title over its arguments leaves them there.
func splitNul(b []byte) []string {
	b = bytes.TrimRight(b, "\x00")
	if len(b) == 0 {
		return nil
	}
	var out []string
	for _, w := range bytes.Split(b, []byte{0}) {
		out = append(out, string(w))
	}
	return out
}

// Table is the processes of one user at one moment.
type Table struct {
	all  []Info // by PID
	kids map[int][]int
}

func newTable(all []Info) *Table {
	slices.SortFunc(all, func(a, b Info) int { return a.PID - b.PID })
	t := &Table{all: all, kids: make(map[int][]int, len(all))}
	for n, i := range all {
		t.kids[i.PPID] = append(t.kids[i.PPID], n)
	}
	return t
}

// All returns every process, by number. The slice is not to be changed.
func (t *Table) All() []Info { return t.all }

// Get returns the process of that number.
func (t *Table) Get(pid int) (Info, bool) {
	n, ok := slices.BinarySearchFunc(t.all, pid, func(i Info, pid int) int { return i.PID - pid })
	if !ok {
		return Info{}, false
	}
	return t.all[n], true
}

// Alive reports that the very process ran when the table was read.
func (t *Table) Alive(id ID) bool {
	i, ok := t.Get(id.PID)
	return ok && i.Start == id.Start && !i.Dead()
}

// Children returns the processes whose parent is pid, by number.
func (t *Table) Children(pid int) []Info {
	kids := t.kids[pid]
	out := make([]Info, 0, len(kids))
	for _, n := range kids {
		out = append(out, t.all[n])
	}
	return out
}

// Descendants returns everything below pid, nearest first.
func (t *Table) Descendants(pid int) []Info {
	out := t.Children(pid)
	seen := map[int]bool{pid: true}
	for n := 0; n < len(out); n++ {
		if seen[out[n].PID] {
			continue // a table is read line by line: a number used again meanwhile could close a circle
		}
		seen[out[n].PID] = true
		for _, c := range t.Children(out[n].PID) {
			if !seen[c.PID] {
				out = append(out, c)
			}
		}
	}
	return out
}

// Ancestors returns the parent of pid, its parent, and so on, as far as the table goes.
func (t *Table) Ancestors(pid int) []Info {
	var out []Info
	seen := map[int]bool{}
	for i, ok := t.Get(pid); ok && !seen[i.PID]; i, ok = t.Get(i.PPID) {
		seen[i.PID] = true
		if i.PID != pid {
			out = append(out, i)
		}
	}
	return out
}

// OpenFile is one descriptor of a process.
type OpenFile struct {
	FD      int
	Target  string // as the kernel names it: a resolved path, or "socket:[…]" and the like
	Deleted bool   // the path was removed while it is held open; Target is without the kernel's mark
}

// Ticks is the time of a number of clock ticks after boot.
func ticks(boot time.Time, n uint64) time.Time {
	const tick = uint64(time.Second / TicksPerSecond)
	if n > uint64(1<<63-1)/tick {
		return time.Time{}
	}
	return boot.Add(time.Duration(n * tick))
}
