package hosttest

import "testing"

// A check that was never seen to fail checks nothing.
func TestEveryCheckHasAFault(t *testing.T) {
	fails := make(map[string]bool)
	names := make(map[string]bool)
	for _, f := range faults {
		fails[f.fails] = true
		if names[f.name] {
			t.Errorf("two faults are called %q", f.name)
		}
		names[f.name] = true
	}
	for _, g := range groups {
		for _, tt := range g.tests {
			if !fails[g.name+"/"+tt.name] {
				t.Errorf("nothing breaks what %s/%s checks", g.name, tt.name)
			}
			delete(fails, g.name+"/"+tt.name)
		}
	}
	for f := range fails {
		t.Errorf("a fault for %s, which does not exist", f)
	}
}
