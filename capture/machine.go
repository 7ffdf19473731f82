package capture

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
)

// proofs is what a capture may ask the machine. It is asked only about agents' panes, of several
// at once.
type proofs interface {
	// process names the process that has the pid now.
	process(pid int) (owner.Process, bool)
	alive(owner.Process) bool
	// began is when a process started; zero where that is not known.
	began(owner.Process) time.Time
	observe(*integrations.Template, owner.Process) owner.Answer
	// environ is the environment of a process, or an error where it cannot be read.
	environ(owner.Process) (integrations.Env, error)
	probe(*integrations.Template, string, integrations.Env) owner.Presence
	// busy reports a process that has started another one, or may have.
	busy(pid int) bool
	// under finds the agent that somebody started by hand at or below a process of a terminal.
	under(pid int, tty string, t []*integrations.Template) (owner.ByHand, error)
	// dir is where a process works, as the one who started it spells it.
	dir(owner.Process) string
	// foreground is the program in front of the terminal that a process is in: its file, and its
	// arguments exactly.
	foreground(pid int) (exe string, argv []string, ok bool)
	idle(pid int, tty string) bool
	// ancestors are the processes above one, nearest first.
	ancestors(pid int) []owner.Process
	// reports says whether a process speaks, or spoke, for the agent that root is.
	reports(t *integrations.Template, root owner.Process, from owner.Line, others []*integrations.Template) error
	// find says who runs an identity.
	find(owner.Claims, *integrations.Template, metadata.Identity, integrations.Env) owner.Live
}

// machine asks this machine. The process table is read once, and only where a template needs it.
type machine struct {
	table func() (*owner.Observer, error)
	read  atomic.Pointer[owner.Observer] // what table returned, once it did
	now   func() time.Time
}

func newMachine(now func() time.Time) *machine {
	m := &machine{now: now}
	m.table = sync.OnceValues(func() (*owner.Observer, error) {
		o, err := owner.NewObserver()
		if err == nil {
			m.read.Store(o)
		}
		return o, err
	})
	return m
}

func (m *machine) process(pid int) (owner.Process, bool) {
	if o := m.read.Load(); o != nil {
		if p, ok := o.Process(pid); ok {
			return p, true
		}
	}
	i, err := proc.Stat(pid)
	if err != nil || i.Dead() {
		return owner.Process{}, false
	}
	return owner.Process{PID: i.PID, Start: i.Start}, true
}

func (m *machine) alive(p owner.Process) bool {
	now, ok := m.process(p.PID)
	return ok && now == p
}

func (m *machine) began(p owner.Process) time.Time {
	began := proc.Time(p.Start)
	if began.IsZero() {
		return began
	}
	return m.now().Add(-time.Since(began)) // by the clock of the look
}

func (m *machine) observe(t *integrations.Template, root owner.Process) owner.Answer {
	if !provable(t) {
		return owner.Answer{Kind: owner.Unknown, Reason: fmt.Sprintf("nothing that %s keeps proves which conversation it has open", t.ID)}
	}
	o, err := m.table()
	if err != nil {
		return owner.Answer{Kind: owner.Unknown, Reason: err.Error()}
	}
	return o.Observe(t, root)
}

// provable reports a template with an observer that can be read at any time; a hook speaks only
// when it is called.
func provable(t *integrations.Template) bool {
	for _, o := range t.Observe {
		if o.Kind != "hook" {
			return true
		}
	}
	return false
}

func (m *machine) environ(p owner.Process) (integrations.Env, error) {
	if o := m.read.Load(); o != nil {
		return o.Environ(p)
	}
	list, err := proc.Environ(p.PID)
	if err != nil {
		return nil, err
	}
	return func(name string) (string, bool) {
		for _, kv := range list {
			if v, ok := strings.CutPrefix(kv, name+"="); ok {
				return v, true
			}
		}
		return "", false
	}, nil
}

func (m *machine) busy(pid int) bool {
	has, err := proc.HasChild(pid)
	return has || errors.Is(err, proc.ErrUnsupported)
}

func (m *machine) under(pid int, tty string, t []*integrations.Template) (owner.ByHand, error) {
	o, err := m.table()
	if err != nil {
		return owner.ByHand{}, err
	}
	return o.Under(pid, tty, t)
}

func (m *machine) dir(p owner.Process) string {
	real, err := proc.Dir(p.PID)
	if err != nil {
		return ""
	}
	env, err := m.environ(p)
	if err != nil {
		return real
	}
	if said, ok := env("PWD"); ok && filepath.IsAbs(said) && filepath.Clean(said) == said {
		if resolved, err := filepath.EvalSymlinks(said); err == nil && resolved == real {
			return said
		}
	}
	return real
}

func (m *machine) ancestors(pid int) []owner.Process {
	o, err := m.table()
	if err != nil {
		return nil
	}
	return o.Ancestors(pid)
}

func (m *machine) reports(t *integrations.Template, root owner.Process, from owner.Line, others []*integrations.Template) error {
	o, err := m.table()
	if err != nil {
		return err
	}
	return o.Reports(t, root, from, others)
}

func (m *machine) find(c owner.Claims, t *integrations.Template, id metadata.Identity, env integrations.Env) owner.Live {
	o, err := m.table()
	if err != nil {
		return owner.Live{Note: err.Error()}
	}
	return o.Find(c, t, id, env)
}

func (m *machine) probe(t *integrations.Template, id string, env integrations.Env) owner.Presence {
	p, _ := owner.Probe(t, id, env)
	return p
}
