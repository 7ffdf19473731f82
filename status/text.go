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

// Line is Text, and since when autosave owes a save where that is not the zero time.
func (s *Summary) Line(overdue time.Time, zone *time.Location) string {
	text := s.Text(zone)
	if overdue.IsZero() {
		return text
	}
	if text != "" {
		text += ", "
	}
	return text + "autosave overdue since " + clock(overdue, zone)
}

// Overdue says since when autosave, which is said to be on, owes a look; the zero time where it does
// not. What a machine slept, or what was done to its clock, is not counted.
func (s *Summary) Overdue(now time.Time, awake time.Duration) time.Time {
	return Overdue(s.CheckedAt, time.Duration(s.Awake)*time.Second, time.Duration(s.Every)*time.Second, now, awake)
}

// Overdue is the moment from which on a look was due that comes every so often, where the last one is
// more than twice that time and a minute ago; else the zero time. then and awake say how long the
// machine had been awake at the two moments, 0 where that is not known: the wall clocks have the word.
func Overdue(last time.Time, then, every time.Duration, now time.Time, awake time.Duration) time.Time {
	if last.IsZero() || every <= 0 {
		return time.Time{}
	}
	ago := now.Sub(last)
	if then > 0 && awake >= then {
		ago = awake - then
	}
	if ago <= 2*every+time.Minute {
		return time.Time{}
	}
	return now.Add(every - ago)
}

func clock(t time.Time, zone *time.Location) string {
	if t.IsZero() {
		return "never"
	}
	return t.In(zone).Format("15:04")
}

// NoServer is what Age says of a server that is gone.
const NoServer = "no server"

// Age says why a summary may be no longer true; empty where it is as good as new.
func (s *Summary) Age(now time.Time, alive func(pid int) bool) string {
	switch d := now.Sub(s.At); {
	case s.ServerPID > 0 && !alive(s.ServerPID):
		return NoServer
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
var Slots = []string{"agents", "working", "waiting", "done", "idle", "unsaved", "saved", "generation", "age", "text", "server", "overdue"}

// UnknownSlotError is a format with a slot that there is not.
type UnknownSlotError struct{ Slot string }

func (e *UnknownSlotError) Error() string { return fmt.Sprintf("format: no slot {%s}", e.Slot) }

// Format fills the slots of a format: {agents}, {working}, {waiting}, {done}, {idle} are numbers;
// {unsaved} and {saved} times, the former empty where everything is saved; {generation} the last
// one's number; {overdue} the time since when autosave owes a save, empty where it does not; {age} what Age says; {text} what Text says; {server} the server's name. {{ is a
// brace.
func (s *Summary) Format(format, age string, overdue time.Time, zone *time.Location) (string, error) {
	c := s.Count()
	unsaved := ""
	if !s.UnsavedSince.IsZero() {
		unsaved = clock(s.UnsavedSince, zone)
	}
	late := ""
	if !overdue.IsZero() {
		late = clock(overdue, zone)
	}
	values := map[string]string{
		"agents": strconv.Itoa(c.Agents), "working": strconv.Itoa(c.Working), "waiting": strconv.Itoa(c.Waiting),
		"done": strconv.Itoa(c.Done), "idle": strconv.Itoa(c.Idle), "unsaved": unsaved, "saved": clock(s.SavedAt, zone),
		"generation": strconv.FormatUint(s.Generation, 10), "age": age, "text": s.Line(overdue, zone), "server": s.Server, "overdue": late,
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
