package memory

import (
	"context"
	"fmt"

	"github.com/phux-agent/phux-agent/host"
)

var _ host.Replacer = (*Host)(nil)

// Replace is host.Replacer.
func (h *Host) Replace(ctx context.Context, t host.Terminal, was host.Occupant, spec host.PaneSpec) (*host.Started, error) {
	if err := spec.Check(); err != nil {
		return nil, fmt.Errorf("replace: %w", err)
	}
	if spec.Start.Mode != host.Program {
		return nil, fmt.Errorf("replace: %w: no program", host.ErrRequest)
	}
	n, err := h.build(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("replace: %w", err)
	}
	h.mu.Lock()
	_, p, err := h.find(t)
	if err == nil && (p.PID != was.PID || p.Command != was.Command || p.Dead) {
		err = host.ErrOccupied
	}
	if err != nil {
		h.mu.Unlock()
		return nil, fmt.Errorf("replace: %w", err)
	}
	at, active, index, tty, cols, rows := p.Terminal, p.Active, p.Index, p.TTY, p.Cols, p.Rows
	*p = *n
	h.pids++
	p.Terminal, p.Active, p.Index, p.TTY, p.Cols, p.Rows, p.PID = at, active, index, tty, cols, rows, h.pids
	h.mu.Unlock()
	if err := h.readBack(ctx, p); err != nil {
		return nil, fmt.Errorf("replace: %w", err)
	}
	st := h.run(ctx, p)
	return &st, nil
}
