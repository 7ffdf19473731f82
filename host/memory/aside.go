package memory

import "github.com/phux-agent/phux-agent/host"

var _ host.Asider = (*Host)(nil)

// SetsAside is host.Asider.
func (h *Host) SetsAside() {}

// setAside renames a session if it still is what is said of it.
func (h *Host) setAside(s *session, a *host.Aside) bool {
	if a == nil || s.id != a.Session || h.session(a.Name) != nil || len(s.links.at) != 1 || len(s.links.at[0].panes) != 1 {
		return false
	}
	if p := s.links.at[0].panes[0]; p.Terminal != a.Terminal || p.PID != a.Occupant.PID || p.Command != a.Occupant.Command {
		return false
	}
	s.name, s.aside = a.Name, true
	return true
}
