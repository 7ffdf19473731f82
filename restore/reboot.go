package restore

import (
	"maps"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/owner"
)

// Rebooted are the facts as they would be once the machine had been started again: no server, no
// session, nobody alive. What a plan of them says is what is to be known before the first reboot.
//
// Make of them is for eyes; an Apply of it is refused as stale where a server runs.
func (f *Facts) Rebooted() *Facts {
	out := *f
	out.View = &host.Workspace{}
	out.Host.Running, out.Host.Instance = false, host.Instance{}
	out.Boot = ""
	out.Talks = maps.Clone(f.Talks)
	for k, t := range out.Talks {
		t.Live = owner.Live{}
		out.Talks[k] = t
	}
	return &out
}
