package proc

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Stat reads one process. ErrGone where there is none; a zombie is there, and Dead.
func Stat(pid int) (Info, error) {
	if pid <= 0 {
		return Info{}, fmt.Errorf("read process %d: %w", pid, ErrGone)
	}
	var buf [1024]byte
	b, err := readInto("/proc/"+strconv.Itoa(pid)+"/stat", buf[:])
	if err != nil {
		return Info{}, gone("read", pid, err)
	}
	i, err := parseStat(b)
	if err != nil {
		return Info{}, fmt.Errorf("read process %d: %w", pid, err)
	}
	return i, nil
}

// Ended reports that no process of that number runs: there is none, or one that only waits to be
// counted by its parent. False where it cannot be known.
func Ended(pid int) bool {
	i, err := Stat(pid)
	return errors.Is(err, ErrGone) || err == nil && i.Dead()
}

// openFile and readSome do what os.File would, without what it adds: a table of a busy machine,
// or the environments of some hundred agents, are some hundreds of these.
func openFile(path string) (int, error) {
	for {
		if fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != unix.EINTR {
			return fd, err
		}
	}
}

func readSome(fd int, buf []byte) (int, error) {
	for {
		if n, err := unix.Read(fd, buf); err != unix.EINTR {
			return n, err
		}
	}
}

// readInto reads a small file of /proc in one call.
func readInto(path string, buf []byte) ([]byte, error) {
	fd, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	n, err := readSome(fd, buf)
	if err != nil {
		return nil, err
	}
	return buf[:n], nil
}

func gone(what string, pid int, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("%s process %d: %w", what, pid, ErrGone)
	}
	return fmt.Errorf("%s process %d: %w", what, pid, err)
}

// ReadTable reads the processes of the calling user, and nothing of them but their stat line.
func ReadTable() (*Table, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("read the process table: %w", err)
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("read the process table: %w", err)
	}
	return newTable(readLines(int(d.Fd()), names)), nil
}

// readers is how many share the reading of a table: what launch and save wait for is the kernel,
// which writes some 20 µs at each line.
var readers = runtime.GOMAXPROCS(0)

// fewLines are read by one: to start another would take longer.
const fewLines = 64

// readLines reads the lines of this user's processes; root is the open /proc.
func readLines(root int, names []string) []Info {
	n := min(readers, len(names)/fewLines+1)
	parts := make([][]Info, n)
	var all sync.WaitGroup
	for i := range n {
		from, to := i*len(names)/n, (i+1)*len(names)/n
		if i+1 == n { // the caller's own part
			parts[i] = readSomeLines(root, names[from:to])
			break
		}
		all.Go(func() { parts[i] = readSomeLines(root, names[from:to]) })
	}
	all.Wait()
	return slices.Concat(parts...)
}

func readSomeLines(root int, names []string) []Info {
	uid := uint32(os.Geteuid())
	all := make([]Info, 0, len(names))
	var buf [1024]byte
	for _, name := range names {
		if name[0] < '1' || name[0] > '9' {
			continue
		}
		var st unix.Stat_t
		if unix.Fstatat(root, name, &st, 0) != nil || st.Uid != uid {
			continue
		}
		b, err := readInto("/proc/"+name+"/stat", buf[:])
		if err != nil {
			continue // it has ended since the directory was read
		}
		if i, err := parseStat(b); err == nil {
			all = append(all, i)
		}
	}
	return all
}

// Self is the calling process.
func Self() (ID, error) {
	i, err := Stat(os.Getpid())
	return i.ID(), err
}

func readBounded(pid int, name string, max int) ([]byte, error) {
	fd, err := openFile("/proc/" + strconv.Itoa(pid) + "/" + name)
	if err != nil {
		return nil, gone("read "+name+" of", pid, err)
	}
	defer unix.Close(fd)
	b := make([]byte, 0, 4096)
	for {
		n, err := readSome(fd, b[len(b):cap(b)])
		if err != nil {
			return nil, gone("read "+name+" of", pid, err)
		}
		b = b[:len(b)+n]
		switch {
		case n == 0:
			return b, nil
		case len(b) > max:
			return nil, fmt.Errorf("read %s of process %d: %w", name, pid, ErrTooLarge)
		case len(b) == cap(b):
			b = slices.Grow(b, len(b))
		}
	}
}

// Cmdline returns the arguments, as the process left them: a program may write over its own.
// None for a kernel thread and a zombie. Empty arguments at the end are not reported.
func Cmdline(pid int) ([]string, error) {
	b, err := readBounded(pid, "cmdline", MaxCmdline)
	if err != nil {
		return nil, err
	}
	return splitNul(b), nil
}

// Environ returns the environment that the process was started with, KEY=VALUE.
func Environ(pid int) ([]string, error) {
	b, err := readBounded(pid, "environ", MaxEnviron)
	if err != nil {
		return nil, err
	}
	return splitNul(b), nil
}

// HasChild reports that a process has started another one that is still there. It is one small
// read, where the whole table is many. ErrUnsupported where the kernel was built without the list.
func HasChild(pid int) (bool, error) {
	b, err := readInto(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid), make([]byte, 64))
	if errors.Is(err, fs.ErrNotExist) {
		if _, serr := Stat(pid); serr == nil {
			return false, ErrUnsupported
		}
	}
	if err != nil {
		return false, gone("list what was started by", pid, err)
	}
	return len(b) > 0, nil
}

// Exe returns the program file that the process runs, resolved.
func Exe(pid int) (string, error) {
	s, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
	if err != nil {
		return "", gone("read program of", pid, err)
	}
	return strings.TrimSuffix(s, " (deleted)"), nil
}

// Dir is the working directory of the process, resolved.
func Dir(pid int) (string, error) {
	s, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
	if err != nil {
		return "", gone("read the directory of", pid, err)
	}
	return s, nil
}

// Descriptor names what a descriptor of the process is: a resolved path, or "pipe:[…]" and the
// like.
func Descriptor(pid, fd int) (string, error) {
	s, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/fd/" + strconv.Itoa(fd))
	if err != nil {
		return "", gone("read a descriptor of", pid, err)
	}
	return s, nil
}

// OpenFiles returns what the process holds open.
func OpenFiles(pid int) ([]OpenFile, error) {
	d, err := os.Open("/proc/" + strconv.Itoa(pid) + "/fd")
	if err != nil {
		return nil, gone("read open files of", pid, err)
	}
	defer d.Close()
	names, err := d.Readdirnames(MaxOpenFiles + 1)
	if err != nil && err != io.EOF {
		return nil, gone("read open files of", pid, err)
	}
	if len(names) > MaxOpenFiles {
		return nil, fmt.Errorf("read open files of process %d: %w", pid, ErrTooLarge)
	}
	out := make([]OpenFile, 0, len(names))
	var buf [unix.PathMax]byte
	for _, name := range names {
		fd, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		n, err := unix.Readlinkat(int(d.Fd()), name, buf[:])
		if err != nil {
			continue // closed since
		}
		target, deleted := strings.CutSuffix(string(buf[:n]), " (deleted)")
		out = append(out, OpenFile{FD: fd, Target: target, Deleted: deleted})
	}
	return out, nil
}

// BootID names this life of the machine: kernel.random.boot_id.
var BootID = sync.OnceValues(func() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the boot id: %w", err)
	}
	id := strings.TrimSpace(string(b))
	if id == "" {
		return "", errors.New("read the boot id: it is empty")
	}
	return id, nil
})

// MachineID is a fingerprint of this machine, 32 hexadecimal digits: machine-id(5) hashed with
// a word of ours, as its manual asks, so that an archive does not carry the id itself. An error
// where the machine has none (many containers).
var MachineID = sync.OnceValues(func() (string, error) {
	for _, path := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if id := strings.TrimSpace(string(b)); len(id) == 32 {
			return fingerprint(id), nil
		}
	}
	return "", errors.New("read the machine id: /etc/machine-id holds none")
})

func fingerprint(id string) string {
	h := hmac.New(sha256.New, []byte(id))
	h.Write([]byte("phux-agent machine v1"))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// StartTime is field 22 of one process's stat: clock ticks since boot.
func StartTime(pid int) (uint64, error) {
	i, err := Stat(pid)
	return i.Start, err
}

// Time is a process's start on the wall clock of now, exact to a tick. A clock that was set
// since the process started moves it with it.
func Time(start uint64) time.Time {
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err != nil {
		return time.Time{}
	}
	return ticks(time.Now().Add(-time.Duration(up.Nano())), start)
}

// Awake is the time since boot, sleep excluded: what timers of processes count by. 0 where the system
// does not tell.
func Awake() time.Duration {
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &up); err != nil {
		return 0
	}
	return time.Duration(up.Nano())
}

// Uptime is the time since boot, sleep included, by a clock that nobody sets; 0 where the system
// does not tell.
func Uptime() time.Duration {
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err != nil {
		return 0
	}
	return time.Duration(up.Nano())
}
