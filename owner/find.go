package owner

import (
	"path"
	"strings"

	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/metadata"
)

// Find decides in order: claim alive; survivors of a dead claim; the provider's registry;
// an argv that carries the id.
//
// A claim alone is proof where it is alive. One whose process lives and lost the terminal that
// it was claimed on is an Orphan, for some agents survive a hangup. A damaged claim is said in
// Note, and the other evidence decides. env expands the template's root; t may be nil, and then
// only claims and arguments speak. The calling process itself is nobody.
func (o *Observer) Find(c Claims, t *integrations.Template, id metadata.Identity, env integrations.Env) Live {
	claim, damaged := c.Get(id)
	live := o.claimed(claim, t, id)
	if live.Kind == NotLive {
		live = o.registered(t, id, env)
	}
	if live.Kind == NotLive {
		note := live.Note
		live = o.suspected(c, t, id)
		live.Note = join(note, live.Note)
	}
	if damaged != nil {
		live.Note = join(damaged.Error(), live.Note)
	}
	return live
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// claimed is what the claim proves.
func (o *Observer) claimed(c *Claim, t *integrations.Template, id metadata.Identity) Live {
	if c == nil || c.vacant() || !sameBoot(*c) {
		return Live{}
	}
	// The claim may be younger than the table: the kernel is asked.
	if now, err := proc.Stat(c.Process.PID); err == nil && now.Start == c.Process.Start && !now.Dead() {
		if !c.Reserved && c.Process == o.self {
			return Live{}
		}
		return describe(Live{Kind: kindOf(*c, now), Place: c.Place}, now, o.args(now))
	}
	if c.Reserved {
		return Live{} // who reserved it never became the agent
	}
	left := o.survivors(o.table, *c, t, id)
	if len(left) == 0 {
		return Live{}
	}
	return describe(Live{Kind: Orphan, Place: c.Place}, left[0], o.args(left[0]))
}

func (o *Observer) survivors(table *proc.Table, c Claim, t *integrations.Template, id metadata.Identity) []proc.Info {
	program := programOf(t)
	if program == "" {
		program = c.Program
	}
	return survivors(table, c, func(i proc.Info) bool {
		return processOf(i) != o.self && isAgent(i, program, id.NativeID)
	})
}

// registered is what the provider's own files prove, over all processes of this user. A
// headless run counts as any other: it writes to the same conversation.
func (o *Observer) registered(t *integrations.Template, id metadata.Identity, env integrations.Env) Live {
	if t == nil || env == nil {
		return Live{}
	}
	dir, err := o.realRoot(t, env)
	if err != nil {
		return Live{}
	}
	var live Live
	for n := range t.Observe {
		ob := &t.Observe[n]
		var owners []proc.Info
		switch ob.Kind {
		case kindFile:
			s := o.scan(ob, dir)
			if s.err != nil {
				live.Note = join(live.Note, s.err.Error())
			}
			for _, e := range s.byID[id.NativeID] {
				if p, ok := o.runs(ob, e); ok {
					owners = append(owners, p)
				}
			}
		case kindOpenFile:
			owners = o.holders(ob, dir, id.NativeID)
		}
		for _, p := range owners {
			if processOf(p) != o.self {
				return describe(Live{Kind: Registry, Note: live.Note}, p, o.args(p))
			}
		}
	}
	return live
}

// runs reports that an entry names a living process, and the very one that wrote it.
func (o *Observer) runs(ob *integrations.Observe, e entry) (proc.Info, bool) {
	p, ok := o.table.Get(e.pid)
	if !ok || p.Dead() || e.refuse(ob, p, false) != "" {
		return proc.Info{}, false
	}
	return p, true
}

// holders are the processes that hold the id's file open.
func (o *Observer) holders(ob *integrations.Observe, dir, id string) []proc.Info {
	pattern, err := patternOf(ob, dir, 0, id)
	if err != nil {
		return nil
	}
	if name, literal := unescape(pattern); literal {
		return o.byTarget()[name]
	}
	var out []proc.Info
	for target, who := range o.byTarget() {
		if ok, _ := path.Match(pattern, target); ok {
			out = append(out, who...)
		}
	}
	return out
}

// suspected is a process whose arguments carry the id. It is not where proof says that it is in
// another conversation now: an agent keeps the arguments of its launch after /clear.
func (o *Observer) suspected(c Claims, t *integrations.Template, id metadata.Identity) Live {
	for _, p := range o.byArg()[id.NativeID] {
		args := o.args(p)
		if processOf(p) == o.self || bystander(p, args) || o.elsewhere(c, t, id, p) {
			continue
		}
		return describe(Live{Kind: Suspected}, p, args)
	}
	return Live{}
}

// elsewhere reports proof that a process is in another conversation than id: a claim of its own,
// or exactly one entry of the provider's registry.
func (o *Observer) elsewhere(c Claims, t *integrations.Template, id metadata.Identity, p proc.Info) bool {
	claims, err := c.List()
	if err != nil {
		return false
	}
	for _, claim := range claims {
		if !claim.Reserved && claim.Process == processOf(p) && claim.Identity != id {
			return true
		}
	}
	if t == nil {
		return false
	}
	a := o.Observe(t, processOf(p))
	return a.Kind == Confirmed && a.ID != id.NativeID
}

// bystander is a process that has the id in its arguments because it looks for it, or makes or
// ends the agent: ourselves, the multiplexer, and the programs that search by text.
func bystander(i proc.Info, args []string) bool {
	if strings.HasPrefix(i.Comm, "tmux") {
		return true
	}
	name := i.Comm
	if len(args) > 0 {
		name = path.Base(args[0])
	}
	switch name {
	case "phux-agent", "tmux", "grep", "egrep", "fgrep", "rg", "ag", "ack", "pgrep", "pkill", "watch", "less", "tail", "cat":
		return true
	}
	return false
}

// readArgs turns the arguments of all processes inside out.
func (o *Observer) readArgs() map[string][]proc.Info {
	out := map[string][]proc.Info{}
	o.readAhead()
	for _, i := range o.table.All() {
		if i.Dead() {
			continue
		}
		args := o.args(i)
		if len(args) < 2 {
			continue
		}
		seen := map[string]bool{}
		for _, a := range args[1:] {
			if len(a) <= metadata.MaxNativeID && !seen[a] {
				seen[a] = true
				out[a] = append(out[a], i)
			}
		}
	}
	return out
}

// readAhead reads the arguments of the second half of the table beside those of the first: there is
// one file for each process of this user, and what waits for all of them is a launch.
func (o *Observer) readAhead() {
	all := o.table.All()
	if len(all) < 2*fewProcesses {
		return
	}
	go func() {
		for n := len(all) - 1; n >= len(all)/2; n-- {
			if !all[n].Dead() {
				o.args(all[n])
			}
		}
	}()
}

// fewProcesses are read one after the other.
const fewProcesses = 32

// readTargets turns the open files of all processes inside out.
func (o *Observer) readTargets() map[string][]proc.Info {
	out := map[string][]proc.Info{}
	for _, i := range o.table.All() {
		if i.Dead() {
			continue
		}
		files, err := proc.OpenFiles(i.PID)
		if err != nil {
			continue // ended since, or not ours to look into
		}
		for _, f := range files {
			if strings.HasPrefix(f.Target, "/") && !strings.HasPrefix(f.Target, "/dev/") {
				out[f.Target] = append(out[f.Target], i)
			}
		}
	}
	return out
}
