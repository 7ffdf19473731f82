package hosttest

import (
	"fmt"

	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/host"
)

var layouts = []string{
	"80x24,0,0,0",
	"80x24,0,0{40x24,0,0,0,39x24,41,0,1}",
	"80x24,0,0[80x12,0,0,0,80x11,0,13,1]",
	"80x24,0,0{20x24,0,0,0,20x24,21,0,1,38x24,42,0,2}",
	"80x24,0,0{40x24,0,0,0,39x24,41,0[39x12,41,0,1,39x11,41,13,2]}",
	"80x24,0,0[80x12,0,0{40x12,0,0,0,39x12,41,0,1},80x11,0,13{20x11,0,13,2,59x11,21,13,3}]",
	"211x53,0,0{1x53,0,0,0,209x53,2,0[209x1,2,0,1,209x51,2,2{100x51,2,2,2,108x51,103,2[108x25,103,2,3,108x25,103,28,4]}]}",
}

var layoutTests = []test{
	{name: "equal to the cell", run: func(r *rig) {
		for i, text := range layouts {
			layout, ids, err := host.ParseNumbered(text)
			if err != nil {
				r.t.Fatal(err)
			}
			name := fmt.Sprintf("s%d", i)
			c := r.whole(name, 1, len(ids))
			c.Windows[0].Layout = layout
			r.create(c)
			s := r.session(name)
			if diff := lacks(s, c); diff != "" {
				r.t.Fatal(diff)
			}
			r.geometry(s.Windows[0], layout)
		}
	}},
	{name: "windows of several sizes", run: func(r *rig) {
		c := r.whole("work", 3, 2)
		for w, size := range [][2]int{{200, 60}, {80, 24}, {31, 7}} {
			layout, err := host.Split(size[0], size[1], 2)
			if err != nil {
				r.t.Fatal(err)
			}
			c.Windows[w].Layout = layout
		}
		r.create(c)
		for w, got := range r.session("work").Windows {
			r.geometry(got, c.Windows[w].Layout)
		}
	}},
	{name: "sixty panes", run: func(r *rig) {
		c := r.whole("work", 1, 60)
		r.create(c)
		s := r.session("work")
		if diff := lacks(s, c); diff != "" {
			r.t.Fatal(diff)
		}
		r.geometry(s.Windows[0], c.Windows[0].Layout)
		if !r.Caps.NoPrograms {
			for _, name := range programsOf(c) {
				r.ran(name)
			}
		}
	}},
	{name: "many windows", run: func(r *rig) {
		c := r.whole("work", 20, 3)
		r.create(c)
		s := r.session("work")
		if diff := lacks(s, c); diff != "" {
			r.t.Fatal(diff)
		}
		for w := range c.Windows {
			if s.Windows[w].Name != c.Windows[w].Name {
				r.t.Errorf("window %d is %q", w, s.Windows[w].Name)
			}
			r.geometry(s.Windows[w], c.Windows[w].Layout)
		}
	}},
	{name: "unzoomed", run: func(r *rig) {
		c := r.whole("work", 1, 3)
		c.Windows[0].Zoomed, c.Windows[0].Active = true, 1
		r.create(c)
		w := r.session("work").Windows[0]
		if !w.Zoomed || !w.Panes[1].Active {
			r.t.Errorf("%+v", w)
		}
		if diff := cmp.Diff(c.Windows[0].Layout, w.Layout); diff != "" {
			r.t.Errorf("layout (-want +got):\n%s", diff)
		}
	}},
}

// geometry checks a window's layout to the cell, and that its panes have the sizes in it.
func (r *rig) geometry(w host.Window, want host.Cell) {
	r.t.Helper()
	if diff := cmp.Diff(want, w.Layout); diff != "" {
		r.t.Errorf("layout (-want +got):\n%s", diff)
		return
	}
	var leaves func(c host.Cell) []host.Cell
	leaves = func(c host.Cell) (out []host.Cell) {
		if c.Dir == host.Leaf {
			return []host.Cell{c}
		}
		for _, k := range c.Children {
			out = append(out, leaves(k)...)
		}
		return out
	}
	for i, leaf := range leaves(want) {
		// A host may count a line of a pane for something of its own, as pane borders with text.
		if p := w.Panes[i]; p.Cols != leaf.Cols || p.Rows != leaf.Rows {
			r.t.Errorf("pane %d is %dx%d, its cell %dx%d", i, p.Cols, p.Rows, leaf.Cols, leaf.Rows)
		}
	}
}
