package host

import "errors"

var errNotBuilt = errors.New("not built yet")

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
)

// ParseCells reads the text form of a geometry: COLSxROWS,X,Y then ",PANE" for a leaf, or
// {…} side by side, or […] one above the other. It is checked whole: sizes add up, positions
// follow from them, panes 0…n-1 stand once each, in order.
func ParseCells(s string, panes int) (Cell, error) { return Cell{}, errNotBuilt }

// String is the text form that ParseCells reads. It never contains a checksum or a host's id.
func (c Cell) String() string { return "" }

// Check reports what is wrong with a geometry for n panes.
func (c Cell) Check(panes int) error { return errNotBuilt }

// Fit returns the same division in another size: proportional, every pane at least 1×1, or
// ErrNoSpace.
func (c Cell) Fit(cols, rows int) (Cell, error) { return Cell{}, errNotBuilt }
