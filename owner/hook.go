package owner

import (
	"errors"
	"fmt"
	"slices"

	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/internal/proc"
)

// ErrNotOwner is wrapped by every refusal of a report because of who sent it.
var ErrNotOwner = errors.New("it does not come from the agent that owns the pane")

// Ancestors are the processes above pid, nearest first, as the table had them: of this user.
func (o *Observer) Ancestors(pid int) []Process {
	var out []Process
	for _, i := range o.table.Ancestors(pid) {
		out = append(out, processOf(i))
	}
	return out
}

// Reports checks that a process was started by the agent that root is: the line above it leads to the
// owner's own block, and no other agent stands between, of any of the templates others. Root must
// run still; what stood between may have ended. Nothing but ancestry counts: an environment is
// inherited by whoever is started, and carried about by daemons. A refusal wraps ErrNotOwner.
func (o *Observer) Reports(t *integrations.Template, root Process, from Line, others []*integrations.Template) error {
	info, ok := o.table.Get(root.PID)
	if !ok || info.Start != root.Start || info.Dead() {
		return fmt.Errorf("%w: process %d has ended", ErrNotOwner, root.PID)
	}
	own := map[Process]bool{}
	for _, member := range o.block(t, info) {
		// What a script waits for may be an agent of another integration.
		if member.PID == info.PID || !runsAny(member, without(others, t)) {
			own[processOf(member)] = true
		}
	}
	agents := append(slices.Clone(others), t)
	for _, a := range from.Above {
		if own[a.Process] {
			return nil
		}
		if a.runsAny(agents) || a.likens(o.args(info)) {
			return fmt.Errorf("%w: process %d (%s) stands between, which is an agent itself", ErrNotOwner, a.PID, command(a.Args))
		}
	}
	return fmt.Errorf("%w: process %d does not descend from it", ErrNotOwner, from.PID)
}

// without are the templates whose program is not t's.
func without(templates []*integrations.Template, t *integrations.Template) []*integrations.Template {
	program := programOf(t)
	var out []*integrations.Template
	for _, other := range templates {
		if programOf(other) != program {
			out = append(out, other)
		}
	}
	return out
}

// runsAny reports a process that runs one of the templates' programs.
func runsAny(i proc.Info, templates []*integrations.Template) bool {
	return slices.ContainsFunc(templates, func(t *integrations.Template) bool {
		program := programOf(t)
		return program != "" && isAgent(i, program, "")
	})
}

// ErrEvent is what Heard returns for an event that the template does not listen to.
var ErrEvent = errors.New("the integration does not listen to that event")

// Heard reads which conversation a hook's payload names. The event is the caller's word, or the
// payload's where the caller has none. Where the template can observe the process itself, a hook
// is a wake-up: its event may be any if the template names none, and an unreadable payload names
// no id. Otherwise an error: ErrEvent, or why the payload says nothing.
func Heard(t *integrations.Template, event string, payload []byte) (id string, err error) {
	provable, listens := false, false
	for _, ob := range t.Observe {
		provable = provable || ob.Kind != kindHook
		listens = listens || ob.Kind == kindHook
	}
	if !listens {
		if provable {
			return "", nil
		}
		return "", ErrEvent
	}
	doc, err := decodeForeign(payload)
	if err != nil {
		doc, err = nil, fmt.Errorf("the payload is not JSON: %w", err)
	}
	heard := false
	for _, ob := range t.Observe {
		if ob.Kind != kindHook {
			continue
		}
		name := event
		if name == "" && ob.Event != "" {
			v, _ := follow(doc, ob.Event)
			name, _ = v.(string)
		}
		if !slices.Contains(ob.On, name) || !holds(doc, ob.Where) {
			continue
		}
		heard = true
		v, _ := follow(doc, ob.ID)
		if s, ok := v.(string); ok && id == "" {
			id = s
		}
	}
	switch {
	case !heard:
		return "", ErrEvent
	case id != "":
		if id, err = t.NormalizeID(id); err == nil {
			return id, nil
		}
	case err == nil:
		err = errors.New("the payload names no conversation")
	}
	if provable {
		return "", nil
	}
	return "", err
}

func holds(doc any, where map[string]any) bool {
	for pointer, want := range where {
		if got, ok := follow(doc, pointer); !ok || !same(got, want) {
			return false
		}
	}
	return true
}

// ByHand is an agent that somebody started in a terminal.
type ByHand struct {
	Template *integrations.Template
	Process  Process
}

// ErrNoAgent and ErrSeveral are why Under names none.
var (
	ErrNoAgent = errors.New("no agent runs there")
	ErrSeveral = errors.New("several agents run there")
)

// Under finds the one agent that runs at or below a process (a pane's shell): the topmost one
// that is the program of one of the templates. tty is the pane's terminal, where it is known:
// an agent whose input or output is something else, or whose arguments say that it is no
// interface, is passed over, and so is everything below it.
func (o *Observer) Under(pid int, tty string, templates []*integrations.Template) (ByHand, error) {
	var found []ByHand
	level := []int{pid}
	if i, ok := o.table.Get(pid); ok && !i.Dead() {
		if t := o.programs(i, templates); len(t) > 0 {
			level = nil
			found = o.interfaces(i, tty, t)
		}
	}
	for n := 0; n < maxDepth && len(level) > 0 && len(found) == 0; n++ {
		var next []int
		for _, p := range level {
			for _, kid := range o.table.Children(p) {
				switch t := o.programs(kid, templates); {
				case kid.Dead():
				case len(t) > 0:
					found = append(found, o.interfaces(kid, tty, t)...)
				default:
					next = append(next, kid.PID)
				}
			}
		}
		level = next
	}
	switch len(found) {
	case 0:
		return ByHand{}, ErrNoAgent
	case 1:
		return found[0], nil
	}
	return ByHand{}, fmt.Errorf("%w: as process %d and process %d", ErrSeveral, found[0].Process.PID, found[1].Process.PID)
}

const maxDepth = 8 // of a shell in a shell, and what wraps the agent

func (o *Observer) programs(i proc.Info, templates []*integrations.Template) []*integrations.Template {
	var out []*integrations.Template
	for _, t := range templates {
		if program := programOf(t); program != "" && isAgent(i, program, "") {
			out = append(out, t)
		}
	}
	return out
}

func (o *Observer) interfaces(i proc.Info, tty string, templates []*integrations.Template) []ByHand {
	if tty != "" {
		for _, fd := range []int{0, 1} {
			if at, err := proc.Descriptor(i.PID, fd); err != nil || at != tty {
				return nil
			}
		}
	}
	args := o.args(i)
	var out []ByHand
	for _, t := range templates {
		at := programAt(args, programOf(t))
		if at >= 0 {
			if _, headless := t.Headless(args[at+1:]); headless {
				continue
			}
		}
		out = append(out, ByHand{Template: t, Process: processOf(i)})
	}
	return slices.Clip(out)
}
