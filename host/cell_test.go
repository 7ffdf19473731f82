package host

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func leaf(cols, rows, x, y, pane int) Cell {
	return Cell{Cols: cols, Rows: rows, X: x, Y: y, Pane: pane}
}

func TestParseCells(t *testing.T) {
	want := Cell{Cols: 80, Rows: 24, Dir: Horizontal, Children: []Cell{
		leaf(40, 24, 0, 0, 0),
		{Cols: 39, Rows: 24, X: 41, Dir: Vertical, Children: []Cell{
			leaf(39, 12, 41, 0, 1),
			leaf(39, 11, 41, 13, 2),
		}},
	}}
	const text = "80x24,0,0{40x24,0,0,0,39x24,41,0[39x12,41,0,1,39x11,41,13,2]}"
	got, err := ParseCells(text, 3)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got.String() != text {
		t.Errorf("String is %q", got.String())
	}
	one, err := ParseCells("80x24,0,0{80x24,0,0[80x24,0,0,0]}", 1)
	if err != nil || one.String() != "80x24,0,0,0" {
		t.Errorf("divisions of one: %q, %v", one, err)
	}
}

func TestParseCellsRefuses(t *testing.T) {
	deep := strings.Repeat("1x1,0,0{", 100) + "1x1,0,0,0" + strings.Repeat("}", 100)
	for name, c := range map[string]struct {
		text  string
		panes int
	}{
		"empty":                 {"", 1},
		"no panes":              {"80x24,0,0,0", 0},
		"no leaf":               {"80x24,0,0", 1},
		"checksum":              {"b25d,80x24,0,0,0", 1},
		"text behind":           {"80x24,0,0,0,", 1},
		"newline behind":        {"80x24,0,0,0\n", 1},
		"space before":          {" 80x24,0,0,0", 1},
		"plus":                  {"+80x24,0,0,0", 1},
		"minus":                 {"80x-24,0,0,0", 1},
		"leading zero":          {"080x24,0,0,0", 1},
		"too long a number":     {"8000000000000000000000x24,0,0,0", 1},
		"no columns":            {"0x24,0,0,0", 1},
		"too wide":              {"10001x24,0,0,0", 1},
		"not at the origin":     {"80x24,1,0,0", 1},
		"another pane":          {"80x24,0,0,1", 1},
		"fewer panes":           {"80x24,0,0,0", 2},
		"more panes":            {"80x24,0,0{40x24,0,0,0,39x24,41,0,1}", 1},
		"out of order":          {"80x24,0,0{40x24,0,0,1,39x24,41,0,0}", 2},
		"pane twice":            {"80x24,0,0{40x24,0,0,0,39x24,41,0,0}", 2},
		"too narrow":            {"80x24,0,0{40x24,0,0,0,38x24,41,0,1}", 2},
		"too broad":             {"80x24,0,0{40x24,0,0,0,40x24,41,0,1}", 2},
		"no separator":          {"80x24,0,0{40x24,0,0,0,40x24,40,0,1}", 2},
		"child higher":          {"80x24,0,0{40x25,0,0,0,39x24,41,0,1}", 2},
		"child moved down":      {"80x24,0,0{40x24,0,0,0,39x24,41,1,1}", 2},
		"wrong bracket":         {"80x24,0,0{40x24,0,0,0,39x24,41,0,1]", 2},
		"unclosed":              {"80x24,0,0{40x24,0,0,0,39x24,41,0,1", 2},
		"no children":           {"80x24,0,0{}", 1},
		"comma at the end":      {"80x24,0,0{40x24,0,0,0,39x24,41,0,1,}", 2},
		"one of another size":   {"80x24,0,0{40x24,0,0,0}", 1},
		"deep":                  {deep, 1},
		"long":                  {strings.Repeat("9", MaxCells+1), 1},
		"too many panes wanted": {"80x24,0,0,0", MaxPanes + 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := ParseCells(c.text, c.panes); !errors.Is(err, ErrLayout) {
				t.Errorf("ParseCells is %v, %v", got, err)
			}
		})
	}
}

func TestParseNumbered(t *testing.T) {
	c, ids, err := ParseNumbered("80x24,0,0{40x24,0,0,17,39x24,41,0,3}")
	if err != nil || !slices.Equal(ids, []int{17, 3}) {
		t.Fatalf("%v, %v", ids, err)
	}
	if got := c.String(); got != "80x24,0,0{40x24,0,0,0,39x24,41,0,1}" {
		t.Error(got)
	}
}

func TestCheckRefuses(t *testing.T) {
	pair := func(change func(*Cell)) Cell {
		c, err := ParseCells("80x24,0,0{40x24,0,0,0,39x24,41,0,1}", 2)
		if err != nil {
			t.Fatal(err)
		}
		change(&c)
		return c
	}
	loop := Cell{Cols: 3, Rows: 1, Dir: Horizontal, Children: make([]Cell, 2)}
	loop.Children[0], loop.Children[1] = loop, loop
	for name, c := range map[string]Cell{
		"zero":            {},
		"direction":       pair(func(c *Cell) { c.Dir = 3 }),
		"leaf divided":    pair(func(c *Cell) { c.Dir = Leaf }),
		"division a pane": pair(func(c *Cell) { c.Pane = 1 }),
		"loop":            loop,
		"out of order":    pair(func(c *Cell) { c.Children[0].Pane, c.Children[1].Pane = 1, 0 }),
		"twice":           pair(func(c *Cell) { c.Children[1].Pane = 0 }),
		"negative":        pair(func(c *Cell) { c.Rows = -1 }),
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.Check(2); !errors.Is(err, ErrLayout) {
				t.Errorf("Check is %v", err)
			}
			if _, err := c.Fit(80, 24); !errors.Is(err, ErrLayout) {
				t.Errorf("Fit is %v", err)
			}
			_ = c.String()
		})
	}
}

func TestCheckRefusesADivisionOfOne(t *testing.T) {
	c := Cell{Cols: 80, Rows: 24, Dir: Horizontal, Children: []Cell{leaf(80, 24, 0, 0, 0)}}
	if err := c.Check(1); !errors.Is(err, ErrLayout) {
		t.Errorf("Check is %v", err)
	}
}

// cells draws a geometry that Check accepts.
func cells(t *rapid.T) Cell {
	next := 0
	var draw func(cols, rows, x, y, depth int) Cell
	draw = func(cols, rows, x, y, depth int) Cell {
		c := Cell{Cols: cols, Rows: rows, X: x, Y: y}
		dir := Dir(rapid.IntRange(0, 2).Draw(t, "dir"))
		total := cols
		if dir == Vertical {
			total = rows
		}
		most := min(5, (total+1)/2)
		if dir == Leaf || depth == 0 || most < 2 || next > 100 {
			c.Pane = next
			next++
			return c
		}
		c.Dir = dir
		n := rapid.IntRange(2, most).Draw(t, "children")
		at := 0
		for i := range n {
			size := total - at
			if i < n-1 {
				// Every one that follows needs a cell and a separator.
				size = rapid.IntRange(1, total-at-2*(n-1-i)).Draw(t, "size")
			}
			if dir == Horizontal {
				c.Children = append(c.Children, draw(size, rows, x+at, y, depth-1))
			} else {
				c.Children = append(c.Children, draw(cols, size, x, y+at, depth-1))
			}
			at += size + 1
		}
		return c
	}
	cols := rapid.IntRange(1, 400).Draw(t, "cols")
	rows := rapid.IntRange(1, 200).Draw(t, "rows")
	return draw(cols, rows, 0, 0, rapid.IntRange(0, 5).Draw(t, "depth"))
}

// shape is the division without sizes.
func shape(c Cell) string {
	if c.Dir == Leaf {
		return fmt.Sprint(c.Pane)
	}
	var parts []string
	for _, k := range c.Children {
		parts = append(parts, shape(k))
	}
	return fmt.Sprintf("%d(%s)", c.Dir, strings.Join(parts, " "))
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := cells(t)
		got, err := ParseCells(c.String(), c.Leaves())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := cells(t)
		cols := rapid.IntRange(1, 400).Draw(t, "new cols")
		rows := rapid.IntRange(1, 200).Draw(t, "new rows")
		same, err := c.Fit(c.Cols, c.Rows)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c, same); diff != "" {
			t.Fatalf("its own size changes it: %s", diff)
		}
		got, err := c.Fit(cols, rows)
		if w, h := c.least(); cols < w || rows < h {
			if !errors.Is(err, ErrNoSpace) {
				t.Fatalf("%dx%d into %dx%d: %v", w, h, cols, rows, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if got.Cols != cols || got.Rows != rows || shape(got) != shape(c) {
			t.Fatalf("%v became %v", c, got)
		}
		if err := got.Check(c.Leaves()); err != nil {
			t.Fatalf("%v became %v: %v", c, got, err)
		}
	})
}

func TestFitIsProportional(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"80x24,0,0{40x24,0,0,0,39x24,41,0,1}", "160x48", "160x48,0,0{81x48,0,0,0,78x48,82,0,1}"},
		{"80x24,0,0{60x24,0,0,0,19x24,61,0,1}", "40x10", "40x10,0,0{30x10,0,0,0,9x10,31,0,1}"},
		{"80x24,0,0{77x24,0,0,0,2x24,78,0,1}", "3x1", "3x1,0,0{1x1,0,0,0,1x1,2,0,1}"},
		// The narrow one would get nothing of ten: it keeps its one cell, at the others' cost.
		{"302x9,0,0{1x9,0,0,0,150x9,2,0,1,149x9,153,0,2}", "12x9", "12x9,0,0{1x9,0,0,0,5x9,2,0,1,4x9,8,0,2}"},
	} {
		var cols, rows int
		if _, err := fmt.Sscanf(c.to, "%dx%d", &cols, &rows); err != nil {
			t.Fatal(err)
		}
		in, _, err := ParseNumbered(c.from)
		if err != nil {
			t.Fatal(err)
		}
		got, err := in.Fit(cols, rows)
		if err != nil || got.String() != c.want {
			t.Errorf("%s in %s is %s, %v; want %s", c.from, c.to, got, err, c.want)
		}
	}
	in, _, err := ParseNumbered("80x24,0,0{40x24,0,0,0,39x24,41,0,1}")
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range [][2]int{{2, 24}, {80, 0}, {-1, -1}, {math.MinInt, 5}} {
		if _, err := in.Fit(size[0], size[1]); !errors.Is(err, ErrNoSpace) {
			t.Errorf("Fit(%v) is %v", size, err)
		}
	}
	if _, err := in.Fit(math.MaxInt, 24); !errors.Is(err, ErrLayout) {
		t.Errorf("Fit(MaxInt) is %v", err)
	}
}

func TestSplit(t *testing.T) {
	for n := 1; n <= MaxPanes; n++ {
		c, err := Split(200, 100, n)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Check(n); err != nil {
			t.Fatalf("Split of %d: %v", n, err)
		}
		if c.Cols != 200 || c.Rows != 100 {
			t.Fatalf("Split of %d is %v", n, c)
		}
	}
	for n, want := range map[int]string{
		1: "80x24,0,0,0",
		2: "80x24,0,0[80x12,0,0,0,80x11,0,13,1]",
		3: "80x24,0,0[80x12,0,0{40x12,0,0,0,39x12,41,0,1},80x11,0,13,2]",
	} {
		if c, err := Split(80, 24, n); err != nil || c.String() != want {
			t.Errorf("Split of %d is %s, %v; want %s", n, c, err, want)
		}
	}
	if _, err := Split(3, 3, 5); !errors.Is(err, ErrNoSpace) {
		t.Errorf("five panes in 3x3: %v", err)
	}
	for _, bad := range [][3]int{{80, 24, 0}, {80, 24, MaxPanes + 1}, {0, 24, 1}, {80, -1, 1}, {MaxSide + 1, 1, 1}} {
		if _, err := Split(bad[0], bad[1], bad[2]); !errors.Is(err, ErrLayout) {
			t.Errorf("Split%v is %v", bad, err)
		}
	}
}

// flat makes nested divisions of one direction one, as Tree.Cell does.
func flat(c Cell) Cell {
	var children []Cell
	for _, k := range c.Children {
		k = flat(k)
		if k.Dir == c.Dir {
			children = append(children, k.Children...)
		} else {
			children = append(children, k)
		}
	}
	c.Children = children
	return c
}

func TestTreeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := cells(t)
		got, err := c.Tree().Cell(c.Cols, c.Rows, c.Leaves())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(flat(c), got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// phux keeps a ratio in 32 bits: an archive that went through it comes back the same.
func TestTreeSurvivesSingle(t *testing.T) {
	for cols := 3; cols <= MaxSide; cols++ {
		n := cols / 3
		c := Cell{Cols: cols, Rows: 1, Dir: Horizontal, Children: []Cell{leaf(n, 1, 0, 0, 0), leaf(cols-n-1, 1, n+1, 0, 1)}}
		tree := c.Tree()
		tree.Ratio = float64(float32(tree.Ratio))
		got, err := tree.Cell(cols, 1, 2)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c, got); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestTreeShape(t *testing.T) {
	c, _, err := ParseNumbered("8x1,0,0{2x1,0,0,0,2x1,3,0,1,2x1,6,0,2}")
	if err != nil {
		t.Fatal(err)
	}
	want := Tree{
		Dir: Horizontal, Ratio: 2.0 / 7, Left: &Tree{Pane: 0},
		Right: &Tree{Dir: Horizontal, Ratio: 0.5, Left: &Tree{Pane: 1}, Right: &Tree{Pane: 2}},
	}
	if diff := cmp.Diff(want, c.Tree()); diff != "" {
		t.Error(diff)
	}
	wide, err := Split(1023, 1, 512)
	if !errors.Is(err, ErrNoSpace) {
		t.Fatalf("%v, %v", wide, err)
	}
	wide = Cell{Cols: 1023, Rows: 1, Dir: Horizontal}
	for i := range 512 {
		wide.Children = append(wide.Children, leaf(1, 1, 2*i, 0, i))
	}
	depth := 0
	tree := wide.Tree()
	for n := &tree; n != nil; n = n.Right {
		depth++
	}
	if depth > 122 {
		t.Errorf("512 panes in a row are nested %d deep, more than phux reads", depth)
	}
}

func TestTreeCellRefuses(t *testing.T) {
	pane := func(n int) *Tree { return &Tree{Pane: n} }
	split := func(ratio float64, l, r *Tree) Tree { return Tree{Dir: Horizontal, Ratio: ratio, Left: l, Right: r} }
	deep := pane(0)
	for range 2 * MaxPanes {
		deep = &Tree{Dir: Vertical, Ratio: 0.5, Left: pane(1), Right: deep}
	}
	loop := &Tree{Dir: Horizontal, Ratio: 0.5}
	loop.Left, loop.Right = loop, loop
	shared := pane(0)
	for range 60 {
		shared = &Tree{Dir: Horizontal, Ratio: 0.5, Left: shared, Right: shared}
	}
	zigzag, panes := *pane(0), 1
	for i := range MaxDepth + 1 {
		zigzag = Tree{Dir: Horizontal + Dir(i%2), Ratio: 0.5, Left: pane(panes), Right: new(zigzag)}
		panes++
	}
	for name, c := range map[string]struct {
		tree  Tree
		panes int
	}{
		"NaN":             {split(math.NaN(), pane(0), pane(1)), 2},
		"infinite":        {split(math.Inf(1), pane(0), pane(1)), 2},
		"negative":        {split(-0.001, pane(0), pane(1)), 2},
		"more than all":   {split(1.001, pane(0), pane(1)), 2},
		"out of range":    {split(0.5, pane(0), pane(2)), 2},
		"negative leaf":   {split(0.5, pane(0), pane(-1)), 2},
		"twice":           {split(0.5, pane(0), pane(0)), 2},
		"missing":         {split(0.5, pane(0), pane(1)), 3},
		"one side":        {split(0.5, pane(0), nil), 1},
		"no side":         {split(0.5, nil, nil), 1},
		"direction":       {Tree{Dir: 7, Left: pane(0), Right: pane(1)}, 2},
		"leaf with sides": {Tree{Left: pane(0), Right: pane(1)}, 1},
		"deep":            {*deep, 512},
		"loop":            {*loop, 512},
		"shared":          {*shared, 512},
		"too many levels": {zigzag, panes},
		"no panes":        {*pane(0), 0},
		"too many panes":  {*pane(0), MaxPanes + 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := c.tree.Cell(1000, 1000, c.panes); !errors.Is(err, ErrLayout) {
				t.Errorf("Cell is %v, %v", got, err)
			}
			if n := len(c.tree.Order()); n > MaxPanes {
				t.Errorf("Order has %d", n)
			}
		})
	}
	fine := split(0.5, pane(0), pane(1))
	if _, err := fine.Cell(2, 1, 2); !errors.Is(err, ErrNoSpace) {
		t.Errorf("two panes in 2x1: %v", err)
	}
	for _, size := range [][2]int{{0, 1}, {1, -1}, {MaxSide + 1, 1}} {
		if _, err := fine.Cell(size[0], size[1], 2); !errors.Is(err, ErrLayout) {
			t.Errorf("in %v: %v", size, err)
		}
	}
	for ratio, want := range map[float64]string{
		0: "9x1,0,0{1x1,0,0,0,7x1,2,0,1}",
		1: "9x1,0,0{7x1,0,0,0,1x1,8,0,1}",
	} {
		tree := split(ratio, pane(0), pane(1))
		if got, err := tree.Cell(9, 1, 2); err != nil || got.String() != want {
			t.Errorf("ratio %v is %v, %v", ratio, got, err)
		}
	}
}

func TestTreeOrder(t *testing.T) {
	tree := Tree{Dir: Horizontal, Ratio: 0.5, Left: &Tree{Pane: 1}, Right: &Tree{Pane: 0}}
	if got := tree.Order(); !slices.Equal(got, []int{1, 0}) {
		t.Error(got)
	}
	c, err := tree.Cell(9, 1, 2)
	if err != nil || c.String() != "9x1,0,0{4x1,0,0,0,4x1,5,0,1}" {
		t.Errorf("%v, %v", c, err)
	}
}

func FuzzParseCells(f *testing.F) {
	for _, s := range []string{
		"80x24,0,0,0",
		"80x24,0,0{40x24,0,0,0,39x24,41,0,1}",
		"80x24,0,0{40x24,0,0,0,39x24,41,0[39x12,41,0,1,39x11,41,13,2]}",
		"80x24,0,0[80x24,0,0{80x24,0,0,5}]",
		"b25d,80x24,0,0,0", "1x1,0,0{", "9999999999x1,0,0,0", "1x1,0,0{1x1,0,0{1x1,0,0{",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, ids, err := ParseNumbered(s)
		if err != nil {
			if !errors.Is(err, ErrLayout) {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		if err := c.Check(len(ids)); err != nil {
			t.Fatalf("accepted, but %v", err)
		}
		if n := len(ids); n < 1 || n > MaxPanes || c.Leaves() != n {
			t.Fatalf("%d panes", n)
		}
		again, err := ParseCells(c.String(), len(ids))
		if err != nil {
			t.Fatalf("its own text %q: %v", c, err)
		}
		if diff := cmp.Diff(c, again); diff != "" {
			t.Fatal(diff)
		}
		back, err := c.Tree().Cell(c.Cols, c.Rows, len(ids))
		if err != nil {
			t.Fatalf("its own tree: %v", err)
		}
		if diff := cmp.Diff(flat(c), back); diff != "" {
			t.Fatal(diff)
		}
		if _, err := c.Fit(c.Cols/2, c.Rows/2+1); err != nil && !errors.Is(err, ErrNoSpace) {
			t.Fatal(err)
		}
	})
}
