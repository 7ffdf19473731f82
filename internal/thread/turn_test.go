package thread

import (
	"testing"
	"time"
)

func TestTurn(t *testing.T) {
	for name, c := range map[string]struct {
		waits time.Duration // from one to the next
		want  int           // of how many asks, in 100 of them
	}{
		"keys one after the other": {200 * time.Microsecond, 4},
		"a person who types":       {100 * time.Millisecond, 0},
		"slower than a turn":       {5 * time.Millisecond, 98},
	} {
		t.Run(name, func(t *testing.T) {
			var turn Turn
			now, asked := time.Unix(1, 0), 0
			for range 100 {
				if turn.ask() {
					asked++
				}
				now = now.Add(c.waits)
				turn.at(now)
			}
			if asked != c.want {
				t.Errorf("it asks %d times, want %d", asked, c.want)
			}
		})
	}
}
