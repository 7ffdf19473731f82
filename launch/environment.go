package launch

import (
	"maps"
	"slices"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/integrations"
)

// environment is the pane's environment as far as a launch decides it: Set over what is left of
// the caller's after Unset.
type environment struct {
	caller integrations.Env
	set    map[string]string
	unset  map[string]bool
}

func newEnvironment(caller integrations.Env, cmd integrations.Command) *environment {
	v := &environment{caller: caller, set: map[string]string{}, unset: map[string]bool{}}
	maps.Copy(v.set, cmd.Set)
	for _, name := range cmd.Unset {
		v.unset[name] = true
	}
	return v
}

// get is the lookup that probes, stores and requirements are evaluated in.
func (v *environment) get(name string) (string, bool) {
	if s, ok := v.set[name]; ok {
		return s, true
	}
	if v.unset[name] || host.IsNativeEnv(name) {
		return "", false
	}
	return v.caller(name)
}

// pin hands the caller's value of a variable to the pane, whose own is the host server's: what
// was looked up here must be what the agent sees. It reports whether a value was handed over.
func (v *environment) pin(name string) bool {
	if _, ok := v.set[name]; ok || v.unset[name] {
		return false
	}
	s, ok := v.caller(name)
	switch {
	case ok:
		v.set[name] = s
	case name != "HOME" && name != "PATH":
		v.unset[name] = true
	}
	return ok
}

// pinRoot pins every variable that decides where the agent keeps its conversations, so that the
// probe and the agent speak of one store. It returns those that were handed over, HOME aside.
func (v *environment) pinRoot(t *integrations.Template) (handed []string) {
	if t.Transcript == nil {
		return nil
	}
	var names []string
	_, _ = integrations.ExpandRoot(t.Transcript.Root, func(name string) (string, bool) {
		names = append(names, name)
		return v.get(name)
	})
	for _, name := range names {
		if v.pin(name) && name != "HOME" {
			handed = append(handed, name)
		}
	}
	return handed
}

func (v *environment) lists() (set, unset []string) {
	for _, name := range slices.Sorted(maps.Keys(v.set)) {
		set = append(set, name+"="+v.set[name])
	}
	return set, slices.Sorted(maps.Keys(v.unset))
}
