package tmux

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/phux-agent/phux-agent/host"
)

// History is what stands on terminals, and above it, in one run of tmux; see host.Historian.
// Lines that tmux wrapped are one.
func (h *Host) History(ctx context.Context, terminals []host.Terminal, lines int) (map[host.Terminal]string, error) {
	out := make(map[host.Terminal]string, len(terminals))
	if len(terminals) == 0 {
		return out, nil
	}
	m := newMark()
	var script []string
	for i, t := range terminals {
		if !validID(t.ID, '%') {
			return nil, fmt.Errorf("history: %w", host.ErrNoTerminal)
		}
		if err := h.sameLife(t); err != nil {
			return nil, fmt.Errorf("history: %w", err)
		}
		capture := []string{"capture-pane", "-p", "-e", "-J", "-t", t.ID, "-S", strconv.Itoa(-max(lines, 0))}
		var plain, over, above, one, outer list
		plain.add(capture...)
		// Below a full screen: what went out at the top, and the screen that was kept.
		above.add(append(capture, "-E", "-1")...)
		over.add("if-shell", "-F", "-t", t.ID, "#{history_size}", above.String())
		over.add("capture-pane", "-p", "-e", "-J", "-a", "-q", "-t", t.ID)
		one.add("display-message", "-p", m+"{"+strconv.Itoa(i))
		one.add("if-shell", "-F", "-t", t.ID, "#{alternate_on}", over.String(), plain.String())
		one.add("display-message", "-p", m+"}")
		outer.add("if-shell", "-F", "-t", t.ID, "#{&&:"+sameServer(t.Instance)+",#{==:#{pane_id},"+t.ID+"}}", one.String())
		script = append(script, outer.String())
	}
	said, err := h.tool.script(ctx, script)
	rest, seen := string(said), false
	for {
		_, after, ok := strings.Cut(rest, m+"{")
		number, after, nl := strings.Cut(after, "\n")
		text, next, end := strings.Cut(after, m+"}\n")
		i, nerr := strconv.Atoi(number)
		if !ok || !nl || !end || nerr != nil || i < 0 || i >= len(terminals) {
			break
		}
		out[terminals[i]], rest, seen = text, next, true
	}
	// A pane that went meanwhile is an error to tmux, beside the others.
	if err != nil && (!seen || errors.Is(err, host.ErrNoServer) || ctx.Err() != nil) {
		return nil, fmt.Errorf("history: %w", err)
	}
	return out, nil
}
