package embedded

import (
	"context"
	"errors"

	"github.com/phux-agent/phux-agent/host"
)

// History is what stands on terminals, and above it; see host.Historian. A server of an earlier
// version shows a full screen too.
func (h *Host) History(ctx context.Context, terminals []host.Terminal, lines int) (map[host.Terminal]string, error) {
	out := make(map[host.Terminal]string, len(terminals))
	err := h.with(ctx, "history", func(c *Client) error {
		for _, t := range terminals {
			if err := c.mine(t); err != nil {
				return err
			}
			f, err := c.call(ctx, fields{keyKind: kindRead, termID: t.ID, termLines: lines, termLooks: true, termBelow: true})
			if errors.Is(err, host.ErrNoTerminal) {
				continue
			}
			if err != nil {
				return err
			}
			m := reading{fields: f}
			text := m.text(screenText)
			if m.err != nil {
				return m.err
			}
			out[t] = text
		}
		return nil
	})
	return out, err
}
