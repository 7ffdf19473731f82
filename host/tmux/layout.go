package tmux

import (
	"fmt"
	"strings"

	"github.com/phux-agent/phux-agent/host"
)

// layoutString is what select-layout takes. It is written from a tree that is checked here, at
// the last moment: a malformed layout kills the whole server.
func layoutString(c host.Cell, panes int) (string, error) {
	if err := c.Check(panes); err != nil {
		return "", err
	}
	body := flatten(c).String()
	return fmt.Sprintf("%04x,%s", checksum(body), body), nil
}

func checksum(s string) uint16 {
	var sum uint16
	for i := 0; i < len(s); i++ {
		sum = sum>>1 | sum<<15
		sum += uint16(s[i])
	}
	return sum
}

// flatten lifts the children of a division in the same direction into their parent: that is the
// form in which tmux keeps a tree, and the geometry is the same.
func flatten(c host.Cell) host.Cell {
	if c.Dir == host.Leaf {
		return c
	}
	out := c
	out.Children = nil
	for _, k := range c.Children {
		k = flatten(k)
		if k.Dir == c.Dir {
			out.Children = append(out.Children, k.Children...)
		} else {
			out.Children = append(out.Children, k)
		}
	}
	return out
}

// parseLayout reads #{window_layout}; ids are the pane numbers as the leaves stand. Floating
// panes (3.7) have no cell and are not in it.
func parseLayout(s string) (host.Cell, []int, error) {
	if len(s) < 6 || s[4] != ',' {
		return host.Cell{}, nil, fmt.Errorf("%w: no checksum", host.ErrLayout)
	}
	body, _, _ := strings.Cut(s[5:], "<")
	return host.ParseNumbered(body)
}

// maxLayout is the length above which tmux does not print a layout.
const maxLayout = 8000

// workSize is the size in which a window's panes are made, before its layout gives it its own:
// dividing needs more room than the result.
func workSize(c host.Cell, panes int) (cols, rows int) {
	if panes == 1 {
		return c.Cols, c.Rows
	}
	side := 1
	for side*side < panes {
		side++
	}
	return min(max(c.Cols, 80, side*8), host.MaxSide), min(max(c.Rows, 24, side*8), host.MaxSide)
}
