package restore

import (
	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/host"
)

// The size of a window of which no size is known.
const (
	plainCols = 80
	plainRows = 24
)

// layout is a window's geometry: its cells where they are good, else its binary tree, else an
// even tiling. order names the archived pane that stands at each leaf.
func layout(w *archive.Window) (c host.Cell, order []int) {
	n := len(w.Panes)
	order = make([]int, n)
	for i := range order {
		order[i] = i
	}
	if c, err := host.ParseCells(w.Cells, n); err == nil {
		return c, order
	}
	if w.Layout != nil {
		t, err := tree(w.Layout, 0)
		if err == nil {
			cols, rows := extent(w.Layout, w.Panes, 0)
			c, err = t.Cell(inside(cols, plainCols), inside(rows, plainRows), n)
			if err != nil {
				c, err = t.Cell(roomy(plainCols, n), roomy(plainRows, n), n)
			}
		}
		if o := t.Order(); err == nil && len(o) == n {
			return c, o
		}
	}
	c, err := host.Split(plainCols, plainRows, n)
	if err != nil {
		c, err = host.Split(roomy(plainCols, n), roomy(plainRows, n), n)
	}
	if err != nil {
		c = row(n)
	}
	return c, order
}

// roomy is a side that has room for n panes one after the other.
func roomy(least, n int) int { return min(max(least, 2*n), host.MaxSide) }

func inside(side, otherwise int) int {
	if side < 1 || side > host.MaxSide {
		return otherwise
	}
	return side
}

// tree is phux's tree as the host room has it. It refuses what nests deeper than a window has
// panes; the rest is checked by Tree.Cell.
func tree(l *archive.Layout, depth int) (host.Tree, error) {
	if l == nil || depth > host.MaxPanes {
		return host.Tree{}, host.ErrLayout
	}
	switch l.Kind {
	case "pane":
		return host.Tree{Pane: l.Pane}, nil
	case "split":
	default:
		return host.Tree{}, host.ErrLayout
	}
	t := host.Tree{Ratio: l.Ratio}
	switch l.Dir {
	case "horizontal":
		t.Dir = host.Horizontal
	case "vertical":
		t.Dir = host.Vertical
	default:
		return host.Tree{}, host.ErrLayout
	}
	left, err := tree(l.Left, depth+1)
	if err != nil {
		return host.Tree{}, err
	}
	right, err := tree(l.Right, depth+1)
	if err != nil {
		return host.Tree{}, err
	}
	t.Left, t.Right = &left, &right
	return t, nil
}

// extent is the size that a tree's panes add up to, separators included; 0 where one has none.
func extent(l *archive.Layout, panes []archive.Pane, depth int) (cols, rows int) {
	if l == nil || depth > host.MaxPanes {
		return 0, 0
	}
	if l.Kind == "pane" {
		if l.Pane < 0 || l.Pane >= len(panes) {
			return 0, 0
		}
		return panes[l.Pane].Cols, panes[l.Pane].Rows
	}
	lc, lr := extent(l.Left, panes, depth+1)
	rc, rr := extent(l.Right, panes, depth+1)
	if lc < 1 || rc < 1 || lr < 1 || rr < 1 {
		return 0, 0
	}
	if l.Dir == "horizontal" {
		return lc + 1 + rc, max(lr, rr)
	}
	return max(lc, rc), lr + 1 + rr
}

func leaf(cols, rows, pane int) host.Cell { return host.Cell{Cols: cols, Rows: rows, Pane: pane} }

// row puts any number of panes side by side: what is left where nothing else has room.
func row(n int) host.Cell {
	if n == 1 {
		return leaf(plainCols, plainRows, 0)
	}
	c := host.Cell{Cols: 2*n - 1, Rows: plainRows, Dir: host.Horizontal}
	for i := range n {
		p := leaf(1, plainRows, i)
		p.X = 2 * i
		c.Children = append(c.Children, p)
	}
	return c
}
