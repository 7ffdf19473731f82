package host

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Dir is the direction in which a cell is divided.
type Dir int

const (
	Leaf       Dir = iota
	Horizontal     // children side by side
	Vertical       // children one above the other
)

// Cell is a node of a window's geometry, in character cells. Between neighbouring children lies
// one separator cell. A leaf holds the index of its pane.
type Cell struct {
	Cols, Rows int
	X, Y       int
	Dir        Dir
	Pane       int // of a leaf: index into the window's panes
	Children   []Cell
}

// Limits of a layout, so that no input can exhaust the host.
const (
	MaxPanes = 512
	MaxDepth = 64
	MaxSide  = 10000
	// MaxCells bounds the text form, in bytes: two nodes a pane, each of at most 25 bytes and a
	// bracket, with room for the pane numbers of a host.
	MaxCells = 64 << 10
)

// ErrLayout is wrapped by every refusal of a geometry that is not one.
var ErrLayout = errors.New("not a layout")

func badLayout(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrLayout, fmt.Sprintf(format, args...))
}

// ParseCells reads the text form of a geometry: COLSxROWS,X,Y then ",PANE" for a leaf, or
// {…} side by side, or […] one above the other. It is checked whole: sizes add up, positions
// follow from them, panes 0…n-1 stand once each, in order. A division of one is that one.
// Every refusal is an ErrLayout.
func ParseCells(s string, panes int) (Cell, error) {
	c, leaves, err := ParseNumbered(s)
	if err != nil {
		return Cell{}, err
	}
	if len(leaves) != panes {
		return Cell{}, badLayout("it has %d panes, the window has %d", len(leaves), panes)
	}
	for i, n := range leaves {
		if n != i {
			return Cell{}, badLayout("pane %d stands where pane %d belongs", n, i)
		}
	}
	return c, nil
}

// ParseNumbered reads the same form where a host numbers the leaves by its own ids, checked
// likewise but for those numbers. The leaves of the answer are numbered 0…n-1 as they stand;
// ids holds the number that each had.
func ParseNumbered(s string) (c Cell, ids []int, err error) {
	if len(s) > MaxCells {
		return Cell{}, nil, badLayout("longer than %d bytes", MaxCells)
	}
	p := parser{s: s}
	c, err = p.cell(0)
	if err != nil {
		return Cell{}, nil, err
	}
	if p.at != len(s) {
		return Cell{}, nil, badLayout("text after its end, at byte %d", p.at)
	}
	if err := c.Check(len(p.ids)); err != nil {
		return Cell{}, nil, err
	}
	return c, p.ids, nil
}

type parser struct {
	s   string
	at  int
	ids []int
}

func (p *parser) eat(b byte) error {
	if p.at >= len(p.s) || p.s[p.at] != b {
		return badLayout("no %q at byte %d", b, p.at)
	}
	p.at++
	return nil
}

// number reads a decimal of at most nine digits, in the one way in which String writes it.
func (p *parser) number() (int, error) {
	start := p.at
	for p.at < len(p.s) && p.at-start < 9 && p.s[p.at] >= '0' && p.s[p.at] <= '9' {
		p.at++
	}
	digits := p.s[start:p.at]
	if digits == "" || len(digits) > 1 && digits[0] == '0' {
		return 0, badLayout("no number at byte %d", start)
	}
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0, badLayout("no number at byte %d", start)
	}
	return n, nil
}

func (p *parser) cell(depth int) (c Cell, err error) {
	if depth > MaxDepth {
		return c, badLayout("divided more than %d deep", MaxDepth)
	}
	for _, f := range []struct {
		to    *int
		after byte
	}{{&c.Cols, 'x'}, {&c.Rows, ','}, {&c.X, ','}, {&c.Y, 0}} {
		if *f.to, err = p.number(); err != nil {
			return c, err
		}
		if f.after != 0 {
			if err = p.eat(f.after); err != nil {
				return c, err
			}
		}
	}
	if p.at >= len(p.s) {
		return c, badLayout("ends early")
	}
	var closing byte
	switch p.s[p.at] {
	case ',':
		p.at++
		id, err := p.number()
		if err != nil {
			return c, err
		}
		if len(p.ids) == MaxPanes {
			return c, badLayout("more than %d panes", MaxPanes)
		}
		c.Pane = len(p.ids)
		p.ids = append(p.ids, id)
		return c, nil
	case '{':
		c.Dir, closing = Horizontal, '}'
	case '[':
		c.Dir, closing = Vertical, ']'
	default:
		return c, badLayout("no pane and no division at byte %d", p.at)
	}
	p.at++
	for {
		child, err := p.cell(depth + 1)
		if err != nil {
			return c, err
		}
		c.Children = append(c.Children, child)
		if p.at < len(p.s) && p.s[p.at] == ',' {
			p.at++
			continue
		}
		if err := p.eat(closing); err != nil {
			return c, err
		}
		break
	}
	if len(c.Children) == 1 {
		only := c.Children[0]
		if only.Cols != c.Cols || only.Rows != c.Rows || only.X != c.X || only.Y != c.Y {
			return c, badLayout("a division of one that is not its size, at byte %d", p.at)
		}
		return only, nil
	}
	return c, nil
}

// String is the text form that ParseCells reads. It never contains a checksum or a host's id.
func (c Cell) String() string {
	var b strings.Builder
	nodes := 2 * MaxPanes
	c.write(&b, &nodes)
	return b.String()
}

func (c Cell) write(b *strings.Builder, nodes *int) {
	fmt.Fprintf(b, "%dx%d,%d,%d", c.Cols, c.Rows, c.X, c.Y)
	open, closing := byte('{'), byte('}')
	switch c.Dir {
	case Horizontal:
	case Vertical:
		open, closing = '[', ']'
	default:
		fmt.Fprintf(b, ",%d", c.Pane)
		return
	}
	b.WriteByte(open)
	for i, k := range c.Children {
		// A geometry that Check accepts has fewer; a value that nobody checked may contain itself.
		if *nodes--; *nodes < 0 {
			break
		}
		if i > 0 {
			b.WriteByte(',')
		}
		k.write(b, nodes)
	}
	b.WriteByte(closing)
}

// Check reports what is wrong with a geometry for n panes; an ErrLayout.
func (c Cell) Check(panes int) error {
	if panes < 1 || panes > MaxPanes {
		return badLayout("%d panes, where 1 to %d may be", panes, MaxPanes)
	}
	if c.X != 0 || c.Y != 0 {
		return badLayout("it begins at %d,%d and not at 0,0", c.X, c.Y)
	}
	next := 0
	if err := c.check(0, panes, &next); err != nil {
		return err
	}
	if next != panes {
		return badLayout("it has %d panes, the window has %d", next, panes)
	}
	return nil
}

func (c Cell) check(depth, panes int, next *int) error {
	switch {
	case depth > MaxDepth:
		return badLayout("divided more than %d deep", MaxDepth)
	case c.Cols < 1 || c.Rows < 1 || c.Cols > MaxSide || c.Rows > MaxSide:
		return badLayout("a cell of %dx%d", c.Cols, c.Rows)
	}
	if c.Dir == Leaf {
		switch {
		case len(c.Children) != 0:
			return badLayout("pane %d is divided", c.Pane)
		case *next == panes:
			return badLayout("it has more panes than the window, which has %d", panes)
		case c.Pane != *next:
			return badLayout("pane %d stands where pane %d belongs", c.Pane, *next)
		}
		*next++
		return nil
	}
	if c.Dir != Horizontal && c.Dir != Vertical {
		return badLayout("direction %d", c.Dir)
	}
	if c.Pane != 0 {
		return badLayout("a divided cell is pane %d", c.Pane)
	}
	if len(c.Children) < 2 {
		return badLayout("a division into %d", len(c.Children))
	}
	x, y := c.X, c.Y
	for i, k := range c.Children {
		if k.X != x || k.Y != y {
			return badLayout("child %d of %dx%d,%d,%d is at %d,%d, not %d,%d", i, c.Cols, c.Rows, c.X, c.Y, k.X, k.Y, x, y)
		}
		if c.Dir == Horizontal && k.Rows != c.Rows || c.Dir == Vertical && k.Cols != c.Cols {
			return badLayout("child %d of %dx%d is %dx%d", i, c.Cols, c.Rows, k.Cols, k.Rows)
		}
		if err := k.check(depth+1, panes, next); err != nil {
			return err
		}
		if c.Dir == Horizontal {
			x += k.Cols + 1
		} else {
			y += k.Rows + 1
		}
	}
	if c.Dir == Horizontal && x-c.X-1 != c.Cols || c.Dir == Vertical && y-c.Y-1 != c.Rows {
		return badLayout("the children of %dx%d,%d,%d do not fill it", c.Cols, c.Rows, c.X, c.Y)
	}
	return nil
}

// Leaves counts the panes below the cell; of a value that no Check would accept, never without
// end.
func (c Cell) Leaves() int {
	nodes := 2 * MaxPanes
	return c.leaves(&nodes)
}

func (c Cell) leaves(nodes *int) int {
	if c.Dir == Leaf {
		return 1
	}
	n := 0
	for _, k := range c.Children {
		if *nodes--; *nodes < 0 {
			break
		}
		n += k.leaves(nodes)
	}
	return n
}

// Fit returns the same division in another size: proportional, every pane at least 1×1, or
// ErrNoSpace. In its own size a geometry is itself. A geometry that Check refuses is an
// ErrLayout.
func (c Cell) Fit(cols, rows int) (Cell, error) {
	if err := c.Check(c.Leaves()); err != nil {
		return Cell{}, err
	}
	if cols > MaxSide || rows > MaxSide {
		return Cell{}, badLayout("a cell of %dx%d", cols, rows)
	}
	if w, h := c.least(); cols < w || rows < h {
		return Cell{}, fmt.Errorf("%w: %dx%d, where %dx%d is the least", ErrNoSpace, cols, rows, w, h)
	}
	return c.fit(cols, rows, 0, 0), nil
}

// least is the smallest size in which every pane has a cell of its own.
func (c Cell) least() (cols, rows int) {
	if c.Dir == Leaf {
		return 1, 1
	}
	for _, k := range c.Children {
		w, h := k.least()
		if c.Dir == Horizontal {
			cols, rows = cols+w, max(rows, h)
		} else {
			cols, rows = max(cols, w), rows+h
		}
	}
	if c.Dir == Horizontal {
		return cols + len(c.Children) - 1, rows
	}
	return cols, rows + len(c.Children) - 1
}

// fit needs a checked cell and a size that is not below least.
func (c Cell) fit(cols, rows, x, y int) Cell {
	out := Cell{Cols: cols, Rows: rows, X: x, Y: y, Dir: c.Dir, Pane: c.Pane}
	if c.Dir == Leaf {
		return out
	}
	total := cols
	if c.Dir == Vertical {
		total = rows
	}
	weights, least := make([]int, len(c.Children)), make([]int, len(c.Children))
	for i, k := range c.Children {
		w, h := k.least()
		weights[i], least[i] = k.Cols, w
		if c.Dir == Vertical {
			weights[i], least[i] = k.Rows, h
		}
	}
	for i, n := range share(total-len(c.Children)+1, weights, least) {
		if c.Dir == Horizontal {
			out.Children = append(out.Children, c.Children[i].fit(n, rows, x, y))
			x += n + 1
		} else {
			out.Children = append(out.Children, c.Children[i].fit(cols, n, x, y))
			y += n + 1
		}
	}
	return out
}

// share divides total by weights, largest remainder first, nobody below its least. It needs
// total to be at least the sum of least, and weights above 0.
func share(total int, weights, least []int) []int {
	out := make([]int, len(weights))
	fixed := make([]bool, len(weights))
	rest, sum := total, 0
	for again := true; again; {
		rest, sum, again = total, 0, false
		for i, w := range weights {
			if fixed[i] {
				rest -= least[i]
			} else {
				sum += w
			}
		}
		for i, w := range weights {
			if !fixed[i] && rest*w < least[i]*sum {
				fixed[i], again = true, true
			}
		}
	}
	left := rest
	for i, w := range weights {
		if fixed[i] {
			out[i] = least[i]
			continue
		}
		out[i] = rest * w / sum
		left -= out[i]
	}
	for ; left > 0; left-- {
		best := -1
		for i, w := range weights {
			// The remainder of a share that was rounded up already is negative.
			if !fixed[i] && (best < 0 || rest*w-out[i]*sum > rest*weights[best]-out[best]*sum) {
				best = i
			}
		}
		out[best]++
	}
	return out
}

// Split is the even tiling of panes for which no layout is known: rows of equal height, the
// last row shared by the panes that remain. ErrNoSpace where not every pane gets a cell.
func Split(cols, rows, panes int) (Cell, error) {
	if panes < 1 || panes > MaxPanes || cols < 1 || rows < 1 || cols > MaxSide || rows > MaxSide {
		return Cell{}, badLayout("%d panes in %dx%d", panes, cols, rows)
	}
	down, across := 1, 1
	for down*across < panes {
		down++
		if down*across < panes {
			across++
		}
	}
	// An even division in which each pane has a whole unit; Fit makes it the wanted size.
	c := Cell{Dir: Vertical}
	pane := 0
	for range down {
		n := min(across, panes-pane)
		if n == 0 {
			break
		}
		row := Cell{Dir: Horizontal}
		for range n {
			row.Children = append(row.Children, Cell{Pane: pane})
			pane++
		}
		if n == 1 {
			row = row.Children[0]
		}
		c.Children = append(c.Children, row)
	}
	if len(c.Children) == 1 {
		c = c.Children[0]
	}
	if w, h := c.least(); cols < w || rows < h {
		return Cell{}, fmt.Errorf("%w: %d panes in %dx%d", ErrNoSpace, panes, cols, rows)
	}
	return c.even().fit(cols, rows, 0, 0), nil
}

// even gives every child of a node the same weight. The result has weights, not a geometry.
func (c Cell) even() Cell {
	c.Cols, c.Rows = 1, 1
	for i := range c.Children {
		c.Children[i] = c.Children[i].even()
	}
	return c
}

// Tree is the binary form of a layout, as phux archives it: a leaf is a pane, any other node
// divides its space into Left and Right, the first taking Ratio of it.
type Tree struct {
	Pane        int // of a leaf
	Dir         Dir
	Ratio       float64 // 0…1
	Left, Right *Tree
}

// Tree returns the binary form. A division into more than two is halved, the smaller half to
// the left ([a,b,c] becomes a beside (b,c)), so that depth grows with the logarithm: phux
// refuses a file whose layout is nested more than 122 deep. Ratios are shares of the cells
// without the separator, and exact: Tree.Cell in the same size is the same geometry, with
// nested divisions of one direction made one. The cell must be one that Check accepts.
func (c Cell) Tree() Tree {
	if c.Dir == Leaf || len(c.Children) == 0 {
		return Tree{Pane: c.Pane}
	}
	return c.halve(c.Children)
}

func (c Cell) halve(children []Cell) Tree {
	if len(children) == 1 {
		return children[0].Tree()
	}
	mid := len(children) / 2
	left, right := c.halve(children[:mid]), c.halve(children[mid:])
	l, r := c.extent(children[:mid]), c.extent(children[mid:])
	return Tree{Dir: c.Dir, Ratio: float64(l) / float64(max(l+r, 1)), Left: &left, Right: &right}
}

// extent is the length of neighbouring children along the division, separators included.
func (c Cell) extent(children []Cell) int {
	n := len(children) - 1
	for _, k := range children {
		if c.Dir == Horizontal {
			n += k.Cols
		} else {
			n += k.Rows
		}
	}
	return n
}

// Order returns the pane numbers of the leaves as they stand, at most MaxPanes of them. Of a
// tree that Cell accepts it is a permutation of 0…n-1.
func (t Tree) Order() []int {
	var order []int
	// A tree of an archive is bounded, one that was built in memory may share nodes.
	steps := 4 * MaxPanes
	var walk func(t *Tree, depth int)
	walk = func(t *Tree, depth int) {
		steps--
		switch {
		case t == nil || depth > MaxPanes || steps < 0 || len(order) == MaxPanes:
		case t.Dir == Leaf:
			order = append(order, t.Pane)
		default:
			walk(t.Left, depth+1)
			walk(t.Right, depth+1)
		}
	}
	walk(&t, 0)
	return order
}

// Cell lays the tree out in a size, proportionally, every pane at least 1×1. An ErrLayout for
// anything that is not a layout of that many panes: a ratio outside 0…1, a leaf that is
// missing, twice there or out of range, a node without children, more than MaxDepth divisions
// within each other, a size out of bounds. ErrNoSpace where it does not fit.
//
// A window's panes stand in the order of its leaves. Where the tree has them in another order
// (see Order), leaf i of the answer is the pane that Order names at i.
func (t Tree) Cell(cols, rows int, panes int) (Cell, error) {
	if panes < 1 || panes > MaxPanes || cols < 1 || rows < 1 || cols > MaxSide || rows > MaxSide {
		return Cell{}, badLayout("%d panes in %dx%d", panes, cols, rows)
	}
	seen := make([]bool, panes)
	if err := t.check(0, seen); err != nil {
		return Cell{}, err
	}
	if i := slices.Index(seen, false); i >= 0 {
		return Cell{}, badLayout("pane %d is missing", i)
	}
	if w, h := t.least(); cols < w || rows < h {
		return Cell{}, fmt.Errorf("%w: %dx%d, where %dx%d is the least", ErrNoSpace, cols, rows, w, h)
	}
	next := 0
	c := t.cell(cols, rows, 0, 0, &next)
	if err := c.Check(panes); err != nil {
		return Cell{}, err
	}
	return c, nil
}

func (t *Tree) check(depth int, seen []bool) error {
	if t == nil {
		return badLayout("a division lacks a side")
	}
	// Each level of a tree adds a leaf, so that a deeper one has too many.
	if depth > MaxPanes {
		return badLayout("divided more than %d deep", MaxPanes)
	}
	switch t.Dir {
	case Leaf:
		switch {
		case t.Left != nil || t.Right != nil:
			return badLayout("pane %d is divided", t.Pane)
		case t.Pane < 0 || t.Pane >= len(seen):
			return badLayout("pane %d of %d", t.Pane, len(seen))
		case seen[t.Pane]:
			return badLayout("pane %d stands twice", t.Pane)
		}
		seen[t.Pane] = true
		return nil
	case Horizontal, Vertical:
	default:
		return badLayout("direction %d", t.Dir)
	}
	// Written so that NaN fails.
	if !(t.Ratio >= 0 && t.Ratio <= 1) {
		return badLayout("a ratio of %v", t.Ratio)
	}
	if err := t.Left.check(depth+1, seen); err != nil {
		return err
	}
	return t.Right.check(depth+1, seen)
}

func (t *Tree) least() (cols, rows int) {
	if t.Dir == Leaf {
		return 1, 1
	}
	lw, lh := t.Left.least()
	rw, rh := t.Right.least()
	if t.Dir == Horizontal {
		return lw + 1 + rw, max(lh, rh)
	}
	return max(lw, rw), lh + 1 + rh
}

func (t *Tree) cell(cols, rows, x, y int, next *int) Cell {
	c := Cell{Cols: cols, Rows: rows, X: x, Y: y, Dir: t.Dir}
	if t.Dir == Leaf {
		c.Pane = *next
		*next++
		return c
	}
	lw, lh := t.Left.least()
	rw, rh := t.Right.least()
	part := func(total, least, other int) int {
		n := int(math.Round(t.Ratio * float64(total-1)))
		return min(max(n, least), total-1-other)
	}
	var left, right Cell
	if t.Dir == Horizontal {
		n := part(cols, lw, rw)
		left = t.Left.cell(n, rows, x, y, next)
		right = t.Right.cell(cols-n-1, rows, x+n+1, y, next)
	} else {
		n := part(rows, lh, rh)
		left = t.Left.cell(cols, n, x, y, next)
		right = t.Right.cell(cols, rows-n-1, x, y+n+1, next)
	}
	for _, side := range []Cell{left, right} {
		// Divisions of one direction within each other are one division.
		if side.Dir == t.Dir {
			c.Children = append(c.Children, side.Children...)
		} else {
			c.Children = append(c.Children, side)
		}
	}
	return c
}
