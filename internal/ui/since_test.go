package ui

import (
	"strings"
	"testing"
	"time"
)

func TestRoughly(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Second: "1 second", 90 * time.Second: "90 seconds", 5 * time.Minute: "5 minutes",
		3 * time.Hour: "3 hours", 47 * time.Hour: "47 hours", 72 * time.Hour: "3 days",
	} {
		if got := Roughly(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func TestSince(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.Local)
	for at, want := range map[time.Time]string{
		{}:                        "its launch",
		now.Add(-3 * time.Hour):   "2026-11-29 09:00, 3 hours ago",
		now.Add(-1 * time.Second): "2026-11-29 11:59, 1 second ago",
		now.Add(time.Hour):        "2026-11-29 13:00", // a clock that was set back
	} {
		if got := Since(at, now); got != want {
			t.Errorf("%v: %q, want %q", at, got, want)
		}
	}
	if got := Count(1, "pane") + Count(2, "pane"); !strings.HasPrefix(got, "1 pane2 panes") {
		t.Error(got)
	}
}
