package ui

import (
	"fmt"
	"time"
)

// Since says a moment for a person, by the clock and by its distance: "2026-11-29 11:00, 60
// minutes ago". The zero time is that of the launch, which nobody noted.
func Since(at, now time.Time) string {
	if at.IsZero() {
		return "its launch"
	}
	s := at.Local().Format("2006-01-02 15:04")
	if d := now.Sub(at); d >= 0 {
		s += ", " + Roughly(d) + " ago"
	}
	return s
}

// Roughly says a duration as people do: "90 seconds", "3 hours".
func Roughly(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return Count(int(d/time.Second), "second")
	case d < 2*time.Hour:
		return Count(int(d/time.Minute), "minute")
	case d < 48*time.Hour:
		return Count(int(d/time.Hour), "hour")
	}
	return Count(int(d/(24*time.Hour)), "day")
}

// Count says how many: "1 pane", "2 panes".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
