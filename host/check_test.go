package host

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/phux-agent/phux-agent/metadata"
)

func TestChecks(t *testing.T) {
	program := Start{Mode: Program, Argv: []string{"/bin/x", ""}, Dir: "/tmp", Set: []string{"A=", "B=c=d"}, Unset: []string{"C"}, AfterExit: "close"}
	window := func(change func(*WindowSpec)) error {
		w := WindowSpec{Name: "w", Index: -1, Layout: Cell{Cols: 80, Rows: 24}, Panes: []PaneSpec{{Start: program}}}
		change(&w)
		return CreateSession{Name: "s", Windows: []WindowSpec{w}}.Check()
	}
	session := func(change func(*CreateSession)) error {
		c := CreateSession{Name: "s", Dir: "/", Windows: []WindowSpec{
			{Name: "a", Index: -1, Layout: Cell{Cols: 80, Rows: 24}, Panes: make([]PaneSpec, 1)},
			{Name: "b", Index: -1, Layout: Cell{Cols: 80, Rows: 24}, Panes: make([]PaneSpec, 1)},
		}}
		change(&c)
		return c.Check()
	}
	start := func(change func(*Start)) error {
		s := program
		s.Argv = slices.Clone(s.Argv)
		change(&s)
		return s.Check()
	}
	spawn := func(change func(*Spawn)) error {
		s := Spawn{Session: "s", Pane: PaneSpec{Start: program}}
		change(&s)
		return s.Check()
	}
	for name, c := range map[string]struct{ got, want error }{
		"session":               {session(func(*CreateSession) {}), nil},
		"unnamed":               {session(func(c *CreateSession) { c.Name = "" }), ErrRequest},
		"control in a name":     {session(func(c *CreateSession) { c.Name = "a\x1b" }), ErrName},
		"C1 control in a name":  {session(func(c *CreateSession) { c.Name = "a\u0085" }), ErrName},
		"long name":             {session(func(c *CreateSession) { c.Name = strings.Repeat("x", MaxName+1) }), ErrName},
		"longest name":          {session(func(c *CreateSession) { c.Name = strings.Repeat("x", MaxName) }), nil},
		"not text":              {session(func(c *CreateSession) { c.Name = "\xff" }), ErrName},
		"relative directory":    {session(func(c *CreateSession) { c.Dir = "tmp" }), ErrRequest},
		"no windows":            {session(func(c *CreateSession) { c.Windows = nil }), ErrRequest},
		"too many windows":      {session(func(c *CreateSession) { c.Windows = make([]WindowSpec, MaxWindows+1) }), ErrRequest},
		"active":                {session(func(c *CreateSession) { c.Active = 2 }), ErrRequest},
		"parallel":              {session(func(c *CreateSession) { c.Parallel = -1 }), ErrRequest},
		"one index twice":       {session(func(c *CreateSession) { c.Windows[0].Index, c.Windows[1].Index = 3, 3 }), ErrRequest},
		"free index twice":      {session(func(c *CreateSession) { c.Windows[0].Index, c.Windows[1].Index = -1, -1 }), nil},
		"unnamed window":        {window(func(w *WindowSpec) { w.Name = "" }), ErrRequest},
		"unnamed and automatic": {window(func(w *WindowSpec) { w.Name, w.AutomaticName = "", true }), nil},
		"index":                 {window(func(w *WindowSpec) { w.Index = -2 }), ErrRequest},
		"high index":            {window(func(w *WindowSpec) { w.Index = MaxIndex + 1 }), ErrRequest},
		"layout":                {window(func(w *WindowSpec) { w.Layout.Rows = 0 }), ErrLayout},
		"no panes":              {window(func(w *WindowSpec) { w.Panes = nil }), ErrLayout},
		"active pane":           {window(func(w *WindowSpec) { w.Active = 1 }), ErrRequest},
		"title":                 {window(func(w *WindowSpec) { w.Panes[0].Title = "\xff" }), ErrRequest},
		"empty value": {window(func(w *WindowSpec) {
			w.Panes[0].Meta = map[metadata.Key][]byte{metadata.KeyAgent: {}}
		}), ErrRequest},
		"program":               {start(func(*Start) {}), nil},
		"no argv":               {start(func(s *Start) { s.Argv = nil }), ErrRequest},
		"shell":                 {Start{}.Check(), nil},
		"mode":                  {start(func(s *Start) { s.Mode = 3 }), ErrRequest},
		"by PATH":               {start(func(s *Start) { s.Argv[0] = "sh" }), ErrRequest},
		"after exit":            {start(func(s *Start) { s.AfterExit = "stay" }), ErrRequest},
		"zero in argv":          {start(func(s *Start) { s.Argv = []string{"/x", "\x00"} }), ErrRequest},
		"zero in set":           {start(func(s *Start) { s.Set = []string{"A=\x00"} }), ErrRequest},
		"zero in directory":     {start(func(s *Start) { s.Dir = "/\x00" }), ErrRequest},
		"unnamed value":         {start(func(s *Start) { s.Set = []string{"=x"} }), ErrRequest},
		"value without a value": {start(func(s *Start) { s.Set = []string{"A"} }), ErrRequest},
		"unset nothing":         {start(func(s *Start) { s.Unset = []string{""} }), ErrRequest},
		"unset with a value":    {start(func(s *Start) { s.Unset = []string{"A=b"} }), ErrRequest},
		"too many arguments":    {start(func(s *Start) { s.Argv = []string{"/x", strings.Repeat("x", MaxWords)} }), ErrRequest},
		"spawn":                 {spawn(func(*Spawn) {}), nil},
		"into no session":       {spawn(func(s *Spawn) { s.Session = "" }), ErrRequest},
		"beside nothing":        {spawn(func(s *Spawn) { s.Place = SplitH }), ErrRequest},
		"place":                 {spawn(func(s *Spawn) { s.Place = 3 }), ErrRequest},
		"window name":           {spawn(func(s *Spawn) { s.WindowName = "\n" }), ErrName},
		"longest record":        {CheckValue(metadata.KeyAgentSession, make([]byte, metadata.MaxRecord)), nil},
		"record too long":       {CheckValue(metadata.KeyAgentSession, make([]byte, metadata.MaxRecord+1)), ErrRequest},
		"longest value":         {CheckValue(metadata.KeyAgentLaunch, make([]byte, MaxValue)), nil},
		"value too long":        {CheckValue(metadata.KeyAgentLaunch, make([]byte, MaxValue+1)), ErrRequest},
		"absent":                {CheckValue(metadata.KeyAgentLaunch, nil), nil},
		"no key":                {CheckValue("", []byte("x")), ErrRequest},
	} {
		if !errors.Is(c.got, c.want) || c.want == nil && c.got != nil {
			t.Errorf("%s: %v, not %v", name, c.got, c.want)
		}
	}
	// A value may be a secret: no refusal shows one.
	if err := (Start{Set: []string{"=hush"}}).Check(); err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("refused with %v", err)
	}
	if err := (Start{Set: []string{"KEY=hush\x00"}}).Check(); err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("refused with %v", err)
	}
}
