package status

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func TestText(t *testing.T) {
	agents := func(states ...string) (out []Agent) {
		for i, s := range states {
			out = append(out, Agent{PID: i + 1, State: s})
		}
		return out
	}
	for want, s := range map[string]Summary{
		"":                            {},
		"1 agent":                     {Agents: agents(Unknown)},
		"2 agents":                    {Agents: agents(Idle, Working)},
		"3 agents, 1 waiting, 1 done": {Agents: agents(Blocked, Done, Idle)},
		"1 agent, 1 waiting, unsaved since 12:00": {Agents: agents(Blocked), UnsavedSince: noon},
		"unsaved since 12:00":                     {UnsavedSince: noon},
	} {
		got := s.Text(time.UTC)
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if strings.ContainsFunc(got, unicode.IsControl) || strings.ContainsAny(got, "#{}$`") {
			t.Errorf("%q holds what a status line may act on", got)
		}
	}
}

func TestAge(t *testing.T) {
	yes, no := func(int) bool { return true }, func(int) bool { return false }
	for _, c := range []struct {
		s     Summary
		alive func(int) bool
		want  string
	}{
		{Summary{At: noon}, no, ""},
		{Summary{At: noon, ServerPID: 7}, yes, ""},
		{Summary{At: noon, ServerPID: 7}, no, "no server"},
		{Summary{}, yes, "never looked"},
		{Summary{At: noon.Add(-OldAfter)}, yes, "as of 30 min ago"},
		{Summary{At: noon.Add(-3 * time.Hour)}, yes, "as of 3 h ago"},
		{Summary{At: noon.Add(-72 * time.Hour)}, yes, "as of 3 days ago"},
	} {
		if got := c.s.Age(noon, c.alive); got != c.want {
			t.Errorf("%v: %q, want %q", c.s, got, c.want)
		}
	}
}

func TestFormat(t *testing.T) {
	s := Summary{Server: "tmux-default", Generation: 4, SavedAt: noon, Agents: []Agent{{State: Blocked}, {State: Working}}}
	for format, want := range map[string]string{
		"":                               "",
		"{agents} {waiting} {working}":   "2 1 1",
		"{{{done}}":                      "{0}",
		"{saved} {unsaved}|{generation}": "12:00 |4",
		"{server}: {text}{age}":          "tmux-default: 2 agents, 1 waitingold",
		"100%":                           "100%",
	} {
		if got, err := s.Format(format, "old", time.Time{}, time.UTC); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", format, got, err, want)
		}
	}
	for _, bad := range []string{"{", "{agents", "{nothing}", "{}"} {
		var e *UnknownSlotError
		if _, err := s.Format(bad, "", time.Time{}, time.UTC); !errors.As(err, &e) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, slot := range Slots {
		if _, err := s.Format("{"+slot+"}", "", noon, time.UTC); err != nil {
			t.Error(err)
		}
	}
}

func TestLife(t *testing.T) {
	var s Summary
	s.Begin("srv", 10, "life-1")
	s.Looked([]Agent{{Terminal: "%1", PID: 1, Start: 5, State: "strange"}}, noon, noon)
	if s.Agents[0].State != Unknown || !s.Agents[0].Since.Equal(noon) {
		t.Errorf("%v", s.Agents)
	}
	later := noon.Add(time.Minute)
	s.Heard(Agent{Terminal: "%1", PID: 1, Start: 5, State: Working}, later)
	s.Looked([]Agent{{Terminal: "%1", PID: 1, Start: 5, State: Working}}, later, later.Add(time.Hour))
	if !s.Agents[0].Since.Equal(later) {
		t.Error("a state that stays began anew")
	}
	if s.Looked([]Agent{{Terminal: "%1", PID: 1, Start: 5, State: Done}}, later, later.Add(2*time.Hour)); !s.Agents[0].Since.Equal(later.Add(2 * time.Hour)) {
		t.Error("a state that changed did not begin anew")
	}
	// A look that began before a hook spoke does not know better.
	s.Heard(Agent{Terminal: "%1", PID: 1, Start: 5, State: Blocked, ID: "x"}, later)
	s.Heard(Agent{Terminal: "%2", PID: 2, Start: 5, State: Idle}, later)
	s.Looked([]Agent{{Terminal: "%1", PID: 1, Start: 5, State: Unknown}}, noon, later)
	if len(s.Agents) != 2 || s.Agents[0].State != Blocked || s.Agents[0].ID != "x" || s.Agents[1].State != Idle {
		t.Errorf("%v", s.Agents)
	}
	if s.Looked([]Agent{{Terminal: "%1", PID: 1, Start: 5, State: Done}}, later.Add(time.Second), later); len(s.Agents) != 1 || s.Agents[0].State != Done {
		t.Errorf("%v", s.Agents)
	}
	// Another process in the same terminal is another agent, and a reused number too.
	s.Heard(Agent{Terminal: "%1", PID: 1, Start: 6, State: Done}, later)
	if len(s.Agents) != 1 || s.Agents[0].Start != 6 {
		t.Errorf("%v", s.Agents)
	}
	if s.Of(1, 5) != nil || s.Of(0, 6) != nil {
		t.Error("an agent was found that is not there")
	}
	s.Changed(noon)
	s.Changed(later)
	s.Saved(3, later, false, later)
	if !s.UnsavedSince.Equal(noon) {
		t.Error("a held save is no save, and the first change counts")
	}
	if s.Saved(4, later, true, later); !s.UnsavedSince.IsZero() || s.Generation != 4 {
		t.Errorf("%v", s)
	}
	s.Label, s.UnsavedSince = "x", noon
	if s.Begin("srv", 10, "life-1"); s.Label != "x" {
		t.Error("the same life began anew")
	}
	if s.Begin("srv", 11, "life-2"); s.Label != "" || len(s.Agents) != 0 || !s.UnsavedSince.IsZero() || s.Generation != 4 {
		t.Errorf("%v", s)
	}
}

func TestFile(t *testing.T) {
	path := File(t.TempDir(), "srv")
	if _, err := Read(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
	want, err := Update(path, func(s *Summary) { s.Begin("srv", 1, "l"); s.Looked([]Agent{{Terminal: "%1", PID: 3}}, noon, noon) })
	if err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	before, _ := os.Stat(path)
	if _, err := Update(path, func(*Summary) {}); err != nil {
		t.Fatal(err)
	}
	if after, _ := os.Stat(path); !os.SameFile(before, after) {
		t.Error("an equal summary was written again")
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	for _, torn := range []string{"", "{", `{"schema_version":2}`, `{"schema_version":1,"agents":7}`, "null", `{"schema_version":1,"schema_version":1}`} {
		if err := os.WriteFile(path, []byte(torn), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path); err == nil {
			t.Errorf("%q was read", torn)
		}
		if _, err := Update(path, func(s *Summary) { s.Server = "srv" }); err != nil {
			t.Errorf("%q is not mended: %v", torn, err)
		}
	}
	// A link is not followed.
	link := filepath.Join(t.TempDir(), "l.json")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(link); err == nil {
		t.Error("a link was followed")
	}
}

// Many writers lose nothing.
func TestUpdateInParallel(t *testing.T) {
	path := File(t.TempDir(), "srv")
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if _, err := Update(path, func(s *Summary) { s.Heard(Agent{Terminal: string(rune('a' + i)), PID: i + 1, State: Working}, noon) }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	s, err := Read(path)
	if err != nil || len(s.Agents) != 20 {
		t.Errorf("%v, %d agents", err, len(s.Agents))
	}
	names, _ := os.ReadDir(filepath.Dir(path))
	if len(names) != 2 {
		t.Errorf("left over: %v", names)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"schema_version":1,"server":"x","at":"2026-11-29T12:00:00Z","agents":[{"terminal":"%1","state":"done"}]}`))
	f.Add([]byte(`{"schema_version":1,"agents":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Decode(b)
		if err != nil {
			return
		}
		if c := s.Count(); c.Working+c.Waiting+c.Done+c.Idle > c.Agents {
			t.Errorf("%+v", c)
		}
		if text := s.Text(time.UTC); strings.ContainsFunc(text, unicode.IsControl) || strings.Contains(text, "#") {
			t.Errorf("%q", text)
		}
	})
}
