// Package thread helps those who wait in a system call on a thread of their own, for what a person
// waits for.
package thread

import (
	"runtime"
	"time"
)

// Turn is how long a goroutine goes from one wait in the system to the next without asking Go's
// scheduler. One that does so for 10 ms is taken for one that runs without end: from then on its
// processor is taken away at each wait, and given to a thread that is woken for it (Go 1.26,
// runtime.retake). The zero Turn is of a goroutine that has not waited yet; it is of one goroutine.
type Turn struct{ since, last time.Time }

const (
	long = 4 * time.Millisecond // of a turn
	gap  = 8 * time.Millisecond // after which the processor was taken away in any case
)

// Wait comes before a wait.
func (t *Turn) Wait() {
	if t.ask() {
		runtime.Gosched()
	}
}

func (t *Turn) ask() bool {
	if t.last.Sub(t.since) <= long {
		return false
	}
	t.since = t.last
	return true
}

// Go comes after it.
func (t *Turn) Go() { t.at(time.Now()) }

func (t *Turn) at(now time.Time) {
	if now.Sub(t.last) > gap {
		t.since = now
	}
	t.last = now
}
