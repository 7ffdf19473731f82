package main

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/doctor"
)

// What is said of many panes is said once; what differs, and what is about two, is not.
func TestFindingsTogether(t *testing.T) {
	var found []doctor.Finding
	add := func(check, pane, text, remedy string) {
		found = append(found, doctor.Finding{Check: check, Grade: doctor.Warn, Pane: pane, Text: text, Remedy: remedy})
	}
	add("host", "", "no pane of this host", "")
	for i := range 5 {
		place := fmt.Sprintf("work:%d.0", i)
		add("panes", place, "pane "+place+" would not come back: it had no prompt", "type something")
	}
	for i := range 2 {
		place := fmt.Sprintf("web:%d.0", i)
		add("panes", place, "pane "+place+" is exited", "")
		add("panes", place, "pane "+place+": unreadable", fmt.Sprint("forget ", i))
	}
	var got []string
	for _, f := range together(found) {
		got = append(got, f.Text+" | "+f.Remedy)
	}
	want := []string{
		"no pane of this host | ",
		"5 panes (work:0.0, work:1.0, work:2.0 and 2 more), each would not come back: it had no prompt | type something",
		"pane web:0.0 is exited | ", "pane web:0.0: unreadable | forget 0",
		"pane web:1.0 is exited | ", "pane web:1.0: unreadable | forget 1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
