package proc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// poll is how often a process is looked at where the kernel gives no descriptor for it.
const pollEvery = 20 * time.Millisecond

// pidfd opens a descriptor of the very process: ErrGone where it has ended or the number is
// another's now. The start time is compared after the descriptor is held, so that it cannot
// change in between.
func pidfd(id ID) (int, error) {
	if id.PID <= 0 {
		return -1, ErrGone
	}
	fd, err := unix.PidfdOpen(id.PID, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return -1, ErrGone
	}
	if err != nil {
		return -1, err
	}
	if !Alive(id) {
		unix.Close(fd)
		return -1, ErrGone
	}
	return fd, nil
}

// Signal sends a signal to the very process, never to a later one of its number. ErrGone where
// it has ended.
func Signal(id ID, sig unix.Signal) error {
	fd, err := pidfd(id)
	if errors.Is(err, ErrGone) {
		return fmt.Errorf("signal process %d: %w", id.PID, ErrGone)
	}
	if err != nil {
		// A kernel without pidfd: between the look and the signal the number could change hands,
		// which takes a full round of the machine's numbers.
		if !Alive(id) {
			return fmt.Errorf("signal process %d: %w", id.PID, ErrGone)
		}
		err = unix.Kill(id.PID, sig)
	} else {
		err = unix.PidfdSendSignal(fd, sig, nil, 0)
		unix.Close(fd)
	}
	if err != nil {
		return gone("signal", id.PID, err)
	}
	return nil
}

// WatchExit waits until all of the processes have ended, settle is over, or ctx is done, and
// returns those that have ended, in the order given. The error is ctx's alone; what is returned
// beside it is true.
func WatchExit(ctx context.Context, ids []ID, settle time.Duration) ([]ID, error) {
	deadline := time.Now().Add(settle)
	done := make([]bool, len(ids))
	left := 0
	var fds []unix.PollFd
	var owner []int // index into ids, as fds
	var looked []int
	defer func() {
		for _, f := range fds {
			unix.Close(int(f.Fd))
		}
	}()
	for n, id := range ids {
		fd, err := pidfd(id)
		switch {
		case errors.Is(err, ErrGone):
			done[n] = true
		case err != nil:
			looked = append(looked, n) // an old kernel, or no descriptors left
			left++
		default:
			fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
			owner = append(owner, n)
			left++
		}
	}
	exited := func() []ID {
		var out []ID
		for n, id := range ids {
			if done[n] {
				out = append(out, id)
			}
		}
		return out
	}
	wake := -1
	if ctx.Done() != nil {
		fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
		if err == nil {
			wake = fd
			fds = append(fds, unix.PollFd{Fd: int32(wake), Events: unix.POLLIN})
			owner = append(owner, -1)
			said := make(chan struct{})
			stop := context.AfterFunc(ctx, func() {
				_, _ = unix.Write(wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
				close(said)
			})
			defer func() {
				if !stop() {
					<-said // the descriptor is closed after it was written to
				}
			}()
		}
	}
	for left > 0 {
		if err := ctx.Err(); err != nil {
			return exited(), err
		}
		wait := time.Until(deadline)
		if wait <= 0 {
			wait = 0 // one last look, so that what has ended by now is said
		}
		last := wait == 0
		if (len(looked) > 0 || ctx.Done() != nil && wake < 0) && wait > pollEvery {
			wait = pollEvery
		}
		n, err := unix.Poll(fds, int((wait+time.Millisecond-1)/time.Millisecond))
		if err != nil && err != unix.EINTR {
			return exited(), fmt.Errorf("wait for processes: %w", err)
		}
		if n > 0 {
			for k := range fds {
				if fds[k].Revents != 0 && owner[k] >= 0 && !done[owner[k]] {
					done[owner[k]] = true
					left--
					// A negative descriptor is not polled: the rest may still run.
					unix.Close(int(fds[k].Fd))
					fds[k].Fd = -1
				}
			}
		}
		kept := looked[:0]
		for _, k := range looked {
			if Alive(ids[k]) {
				kept = append(kept, k)
				continue
			}
			done[k] = true
			left--
		}
		looked = kept
		if last {
			break
		}
	}
	return exited(), nil
}
