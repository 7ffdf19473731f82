package owner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/metadata"
)

// GiveUp ends the claim of a process that was proven to be in another conversation now. A claim
// that the process does not hold (any more) is left alone, without an error.
func (c Claims) GiveUp(id metadata.Identity, p Process) error {
	err := c.change(id, func(old *Claim, damaged error) (*Claim, error) {
		if damaged != nil || old == nil || old.Reserved || old.Process != p {
			return nil, nil
		}
		given := *old
		given.Process, given.At = Process{}, time.Now().UTC()
		given.Session, given.Group, given.TTY = 0, 0, 0
		return &given, nil
	})
	if err != nil {
		return fmt.Errorf("give up the claim of %q: %w", id, err)
	}
	return nil
}

// Filed answers, by one reading of the directory, which identities have a claim on file, whoever
// holds it: what a cleared runtime directory lost is not among them.
func (c Claims) Filed() (func(metadata.Identity) bool, error) {
	names, err := os.ReadDir(c.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list claims: %w", err)
	}
	filed := make(map[string]bool, len(names))
	for _, n := range names {
		if name, ok := strings.CutSuffix(n.Name(), ".json"); ok {
			filed[name] = true
		}
	}
	return func(id metadata.Identity) bool { return filed[fileName(id)] }, nil
}

// Process names the process that has a pid, as the table had it.
func (o *Observer) Process(pid int) (Process, bool) {
	i, ok := o.table.Get(pid)
	if !ok || i.Dead() {
		return Process{}, false
	}
	return Process{PID: i.PID, Start: i.Start}, true
}

// Environ looks names up in the environment that a process was started with, as Observe does. It
// is read once.
func (o *Observer) Environ(p Process) (integrations.Env, error) {
	e := o.env(p.PID)
	if e.err != nil {
		return nil, e.err
	}
	return func(name string) (string, bool) { v, ok := e.vars[name]; return v, ok }, nil
}
