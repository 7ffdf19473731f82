//go:build !linux

package proc

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Ended reports that no process has the number; here one that nobody reaped still has it.
func Ended(pid int) bool { return unix.Kill(pid, 0) == unix.ESRCH }

func Stat(pid int) (Info, error)             { return Info{}, ErrUnsupported }
func ReadTable() (*Table, error)             { return nil, ErrUnsupported }
func Self() (ID, error)                      { return ID{PID: os.Getpid()}, ErrUnsupported }
func Cmdline(pid int) ([]string, error)      { return nil, ErrUnsupported }
func Environ(pid int) ([]string, error)      { return nil, ErrUnsupported }
func HasChild(pid int) (bool, error)         { return false, ErrUnsupported }
func Exe(pid int) (string, error)            { return "", ErrUnsupported }
func Descriptor(pid, fd int) (string, error) { return "", ErrUnsupported }
func Dir(pid int) (string, error)            { return "", ErrUnsupported }
func OpenFiles(pid int) ([]OpenFile, error)  { return nil, ErrUnsupported }
func BootID() (string, error)                { return "", ErrUnsupported }
func MachineID() (string, error)             { return "", ErrUnsupported }
func StartTime(pid int) (uint64, error)      { return 0, ErrUnsupported }
func Time(start uint64) time.Time            { return time.Time{} }
func Signal(id ID, sig unix.Signal) error    { return ErrUnsupported }

// WatchExit knows of no exit here.
func WatchExit(ctx context.Context, ids []ID, settle time.Duration) ([]ID, error) {
	return nil, ErrUnsupported
}

// Awake is the time since boot, sleep excluded: what timers of processes count by. 0 where the system
// does not tell.
func Awake() time.Duration { return 0 }

// Uptime is the time since boot, sleep included, by a clock that nobody sets; 0 where the system
// does not tell.
func Uptime() time.Duration {
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &up); err != nil {
		return 0
	}
	return time.Duration(up.Nano())
}
