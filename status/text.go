package status

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Counts are the agents of a summary by state.
type Counts struct {
	Agents  int `json:"agents"`
	Working int `json:"working"`
	Waiting int `json:"waiting"` // for a person: blocked, in phux's words
	Done    int `json:"done"`
	Idle    int `json:"idle"`
}

// Count counts.
func (s *Summary) Count() Counts {
	c := Counts{Agents: len(s.Agents)}
	for _, a := range s.Agents {
		switch a.State {
		case Working:
			c.Working++
		case Blocked:
			c.Waiting++
		case Done:
			c.Done++
		case Idle:
			c.Idle++
		}
	}
	return c
}

// Text is the segment for a status line: "3 agents, 1 waiting, 2 done, unsaved since 12:05". Empty
// where there is nothing to say. It has times and no ages, so that it stays true while nothing
// changes, and no character that a status line would act on.
func (s *Summary) Text(zone *time.Location) string {
	c := s.Count()
	var parts []string
	switch c.Agents {
	case 0:
	case 1:
		parts = append(parts, "1 agent")
	default:
		parts = append(parts, fmt.Sprintf("%d agents", c.Agents))
	}
	if c.Waiting > 0 {
		parts = append(parts, fmt.Sprintf("%d waiting", c.Waiting))
	}
	if c.Done > 0 {
		parts = append(parts, fmt.Sprintf("%d done", c.Done))
	}
	if !s.UnsavedSince.IsZero() {
		parts = append(parts, "unsaved since "+clock(s.UnsavedSince, zone))
	}
	return strings.Join(parts, ", ")
}

func clock(t time.Time, zone *time.Location) string {
	if t.IsZero() {
		return "never"
	}
	return t.In(zone).Format("15:04")
}

// Age says why a summary may be no longer true; empty where it is as good as new.
func (s *Summary) Age(now time.Time, alive func(pid int) bool) string {
	switch d := now.Sub(s.At); {
	case s.ServerPID > 0 && !alive(s.ServerPID):
		return "no server"
	case s.At.IsZero():
		return "never looked"
	case d >= OldAfter && d < 48*time.Hour:
		return fmt.Sprintf("as of %s ago", short(d))
	case d >= OldAfter:
		return fmt.Sprintf("as of %d days ago", int(d.Hours()/24))
	}
	return ""
}

func short(d time.Duration) string {
	if d < 2*time.Hour {
		return fmt.Sprintf("%d min", int(d.Minutes()))
	}
	return fmt.Sprintf("%d h", int(d.Hours()))
}

// Slots are what Format knows, between braces.
var Slots = []string{"agents", "working", "waiting", "done", "idle", "unsaved", "saved", "generation", "age", "text", "server"}

// UnknownSlotError is a format with a slot that there is not.
type UnknownSlotError struct{ Slot string }

func (e *UnknownSlotError) Error() string { return fmt.Sprintf("format: no slot {%s}", e.Slot) }

// Format fills the slots of a format: {agents}, {working}, {waiting}, {done}, {idle} are numbers;
// {unsaved} and {saved} times, the former empty where everything is saved; {generation} the last
// one's number; {age} what Age says; {text} what Text says; {server} the server's name. {{ is a
// brace.
func (s *Summary) Format(format, age string, zone *time.Location) (string, error) {
	c := s.Count()
	unsaved := ""
	if !s.UnsavedSince.IsZero() {
		unsaved = clock(s.UnsavedSince, zone)
	}
	values := map[string]string{
		"agents": strconv.Itoa(c.Agents), "working": strconv.Itoa(c.Working), "waiting": strconv.Itoa(c.Waiting),
		"done": strconv.Itoa(c.Done), "idle": strconv.Itoa(c.Idle), "unsaved": unsaved, "saved": clock(s.SavedAt, zone),
		"generation": strconv.FormatUint(s.Generation, 10), "age": age, "text": s.Text(zone), "server": s.Server,
	}
	var b strings.Builder
	for format != "" {
		before, after, found := strings.Cut(format, "{")
		b.WriteString(before)
		if !found {
			break
		}
		if strings.HasPrefix(after, "{") {
			b.WriteByte('{')
			format = after[1:]
			continue
		}
		name, rest, closed := strings.Cut(after, "}")
		v, known := values[name]
		if !closed || !known {
			return "", &UnknownSlotError{Slot: name}
		}
		b.WriteString(v)
		format = rest
	}
	return b.String(), nil
}
