//go:build !linux

package proc

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

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
