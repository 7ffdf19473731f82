package tmux

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/phux-agent/phux-agent/host"
)

var _ host.Asider = (*Host)(nil)

// SetsAside is host.Asider.
func (h *Host) SetsAside() {}

// asideOption stays on a session that was set aside, so that it is known for what it is.
const asideOption = "@phux-agent-aside"

// ready refuses to set aside what the server does not have as it is said; where nothing has the
// name any more, there is nothing to set aside.
func readyAside(c *host.CreateSession, p probed) error {
	a := c.Aside
	id, there := p.sessions[c.Name]
	switch {
	case a == nil && there:
		return host.ErrSessionExists
	case a == nil:
		return nil
	case !there:
		c.Aside = nil
		return nil
	}
	_, taken := p.sessions[a.Name]
	switch {
	case taken, id != a.Session, a.Terminal.Instance != p.instance:
		return host.ErrSessionExists
	case !validID(a.Session, '$'), !validID(a.Terminal.ID, '%'), a.Occupant.Command == "", !plain(a.Occupant.Command):
		return fmt.Errorf("%w: %q cannot be set aside", host.ErrRequest, a.Occupant.Command)
	}
	if near := sessionName(a.Name, p.version); near != a.Name {
		return &NameError{Name: a.Name, Nearest: near}
	}
	return nil
}

// asideList renames the session that has the name, if it is still one window with one pane in
// which the same program is in the foreground. Where it is not, the name stays taken, and what
// follows in the list fails by that. Nobody's leaving may end it from then on.
func asideList(a *host.Aside, text *variables) list {
	var l list
	if a == nil {
		return l
	}
	same := "#{&&:#{==:#{session_id}," + a.Session + "},#{&&:#{==:#{pane_pid}," + strconv.Itoa(a.Occupant.PID) + "},#{&&:#{==:#{pane_current_command}," + a.Occupant.Command + "}," +
		"#{==:#{session_windows} #{window_panes} #{pane_dead}#{session_grouped}#{window_linked},1 1 000}}}}"
	var there list
	there.add("rename-session", "-t", a.Session, "--", text.put(&l, a.Name))
	there.add("set-option", "-t", a.Session+":", "destroy-unattached", "off")
	there.add("set-option", "-F", "-t", a.Session+":", asideOption, sessionValue("aside"))
	l.add("if-shell", "-F", "-t", a.Terminal.ID, same, there.String())
	return l
}

// showClients switches whoever looks at the session that was set aside to the new one. A client
// that is gone meanwhile is nobody's loss.
func (b *build) showClients(ctx context.Context) {
	a := b.c.Aside
	if a == nil {
		return
	}
	// Twice, for one that attached meanwhile.
	for range 2 {
		m := newMark()
		out, err := b.h.tool.run(ctx, "", "list-clients", "-t", a.Session, "-F", m+"<#{client_name}"+m+">")
		if err != nil {
			return
		}
		var lines []string
		for _, part := range strings.Split(string(out), m+"<")[1:] {
			name, _, _ := strings.Cut(part, m+">")
			var show list
			show.add("switch-client", "-c", name, "-t", b.session)
			lines = append(lines, show.String())
		}
		if len(lines) == 0 {
			return
		}
		_, _ = b.h.tool.script(ctx, lines) // each line alone
	}
}

// takeBack gives the session that was set aside its name again, for one that was not made.
func (b *build) takeBack() {
	a := b.c.Aside
	if a == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), undoTime)
	defer cancel()
	p, err := b.h.probe(ctx)
	if _, taken := p.sessions[b.c.Name]; err != nil || taken || p.sessions[a.Name] != a.Session {
		return
	}
	text := variables{name: "@" + b.id + "-t"}
	var l list
	format := text.put(&l, b.c.Name)
	l.add("rename-session", "-t", a.Session, "--", format)
	l.add("set-option", "-u", "-t", a.Session+":", asideOption)
	_, _ = b.h.tool.script(ctx, []string{l.String(), "set-option -gu @" + b.id + "-t"})
}
