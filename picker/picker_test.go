package picker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/internal/ui"
)

// script is a source that answers from memory.
type script struct {
	data        map[uint64]*Data
	generations int
	read        *int // generations that were read
	err         error
	pulse       *string
}

func (s script) Data(_ context.Context, n uint64) (*Data, error) {
	if s.data[n] == nil {
		return nil, errors.New("no such generation")
	}
	return s.data[n], s.err
}

func (s script) Generations(_ context.Context, below uint64, most int) (out []Generation, _ error) {
	if below == 0 {
		below = uint64(s.generations) + 1
	}
	for n := below - 1; n > 0 && len(out) < most; n-- {
		out = append(out, Generation{Number: n, State: "good", Saved: "just now"})
	}
	if s.read != nil {
		*s.read += len(out)
	}
	return out, nil
}
func (s script) Words(_ context.Context, t string) (string, error) { return "words of " + t, nil }
func (s script) Pulse(context.Context) string {
	if s.pulse == nil {
		return ""
	}
	return *s.pulse
}

func (s script) Agents(context.Context) ([]Agent, error) {
	return []Agent{{ID: "one", Name: "One"}, {ID: "two", Name: "Two", Note: "not installed"}}, nil
}

const evil = "e\x1b[2Jvil\u202e\n\t日本語\xff"

func sample() *Data {
	return &Data{
		SchemaVersion: 1, Server: "tmux-default", Generation: 7, Saved: "2 hours ago", Notes: []string{evil},
		Sessions: []Session{
			{Name: "here", There: true, Action: "skip-existing", Windows: []Window{{Index: 1, Name: evil, Panes: []Pane{
				{Agent: "claude-code", ID: "id-1", State: "running, waiting", Verdict: "already-live", Terminal: "%1", Dir: "/home/u/" + evil, Does: Jump},
				{Index: 1, Agent: "codex", ID: "id-2", Verdict: "pending", Reason: evil, Does: Resume},
			}}}},
			{Name: "gone", Action: "create", Reason: "", Windows: []Window{
				{Index: 0, Panes: []Pane{{Agent: "claude-code", ID: "id-3", Verdict: "resume", Would: []string{"claude", "--resume", "id-3"}, Does: RestorePane, Title: evil}}},
				{Index: 3, Panes: []Pane{{Verdict: "shell", Command: evil, Does: RestoreSession}}},
			}},
			{Name: evil, Action: "refuse", Reason: "untrusted", Windows: []Window{{Panes: []Pane{{Agent: evil, ID: evil, Verdict: "untrusted", Reason: evil, Hint: evil, Previous: []string{evil}}}}}},
		},
	}
}

func shown(src Source, w, h int) *model {
	m := &model{ctx: context.Background(), src: src, folded: map[string]bool{}, preview: true, busy: true, color: true, home: "/home/u"}
	m.Update(tea.WindowSizeMsg{Width: w, Height: h})
	m.run(m.read(m.generation))
	return m
}

// run does what a command asks for, and what follows from it.
func (m *model) run(c tea.Cmd) (quit bool) {
	for n := 0; c != nil && n < 10; n++ {
		msg := c()
		if _, ok := msg.(tea.QuitMsg); ok {
			return true
		}
		_, c = m.Update(msg)
	}
	return false
}

// press presses keys by their names, separated by spaces; quit says that the picker has left.
func (m *model) press(keys string) (quit bool) {
	special := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "down": tea.KeyDown, "up": tea.KeyUp, "left": tea.KeyLeft, "right": tea.KeyRight, "end": tea.KeyEnd, "home": tea.KeyHome, "backspace": tea.KeyBackspace}
	for k := range strings.FieldsSeq(keys) {
		msg := tea.KeyPressMsg{Text: k}
		if code, ok := special[k]; ok {
			msg = tea.KeyPressMsg{Code: code}
		} else {
			msg.Code, _ = utf8.DecodeRuneInString(k)
		}
		_, c := m.Update(msg)
		if m.run(c) {
			return true
		}
	}
	return false
}

func (m *model) text() string { return strip(strings.Join(m.lines(), "\n")) }

var sgr = regexp.MustCompile("\x1b\\[[0-9]*m")

func strip(s string) string { return sgr.ReplaceAllString(s, "") }

// Whatever the size and the text, each screen fits the window, and nothing but our own looks
// reaches the terminal.
func TestEveryScreenFits(t *testing.T) {
	for _, keys := range []string{"", "down", "down down", "end", "?", "o", "n", "/ x y z", "a", "p", "left"} {
		for w := 1; w <= 130; w += 3 {
			for _, h := range []int{1, 2, 6, 7, 8, 15, 16, 24, 60} {
				m := shown(script{data: map[uint64]*Data{0: sample()}, generations: 40}, w, h)
				m.press(keys)
				fits(t, m, fmt.Sprintf("%q at %d×%d", keys, w, h))
			}
		}
	}
}

func fits(t *testing.T, m *model, what string) {
	t.Helper()
	lines := m.lines()
	if len(lines) > m.h || m.w >= leastWide && m.h >= leastHigh && len(lines) != m.h {
		t.Fatalf("%s: %d lines", what, len(lines))
	}
	for _, l := range lines {
		l = strip(l)
		if ui.Width(l) > m.w {
			t.Fatalf("%s: %q takes %d cells", what, l, ui.Width(l))
		}
		if l != ui.Escape(l) {
			t.Fatalf("%s: %q is not escaped", what, l)
		}
	}
}

func TestChoices(t *testing.T) {
	for keys, want := range map[string]Choice{
		"q":                         {},
		"esc":                       {},
		"enter":                     {Act: Jump, Session: "here", Window: 1, Generation: 7},
		"down enter":                {Act: Jump, Session: "here", Window: 1, Generation: 7},
		"down down enter":           {Act: Resume, Session: "here", Window: 1, Generation: 7},
		"tab enter":                 {Act: RestoreSession, Session: "gone", Generation: 7},
		"tab j enter":               {Act: RestorePane, Session: "gone", Generation: 7},
		"tab j j enter":             {Act: RestoreSession, Session: "gone", Window: 3, Generation: 7},
		"tab s y":                   {Act: RestoreSession, Session: "gone", Generation: 7},
		"tab s x q":                 {},
		"a y":                       {Act: RestoreAll, Generation: 7},
		"a n q":                     {},
		"s q":                       {},
		"end enter q":               {},
		"n enter":                   {Act: Launch, Agent: "one", Session: "here"},
		"down n down enter":         {Act: Launch, Agent: "two", Session: "here", Dir: "/home/u/" + evil},
		"tab n enter":               {Act: Launch, Agent: "one"},
		"n esc q":                   {},
		"/ c o d e x enter enter":   {Act: Jump, Session: "here", Window: 1, Generation: 7},
		"/ c o d e x enter j enter": {Act: Resume, Session: "here", Window: 1, Generation: 7},
		"? x o down enter enter":    {Act: Jump, Session: "old", Generation: 39},
		"o esc q":                   {},
	} {
		src := script{data: map[uint64]*Data{0: sample(), 39: {Generation: 39, Sessions: []Session{{
			Name: "old", There: true, Windows: []Window{{Panes: []Pane{{Terminal: "%9", Does: Jump}}}},
		}}}}, generations: 40}
		m := shown(src, 80, 24)
		if !m.press(keys) {
			t.Errorf("%q does not leave", keys)
			continue
		}
		got := m.choice
		got.Pane = Pane{}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", keys, diff)
		}
	}
}

// What is said of a line is what choosing it does.
func TestWillDo(t *testing.T) {
	m := shown(script{data: map[uint64]*Data{0: sample()}}, 80, 24)
	for i, want := range []string{
		"go to pane %1", "go to pane %1", "resume it in a new window of session here",
		"restore session gone", "restore session gone with this agent; others in it wait for Enter", "restore session gone", "nothing", "nothing",
	} {
		m.at = i
		if !strings.Contains(m.text(), "\nenter: "+want+"\n") {
			t.Errorf("line %d: not %q:\n%s", i, want, m.text())
		}
	}
}

// A session without a pane has its line, and a filter that names it finds it.
func TestSessionWithoutPanes(t *testing.T) {
	d := &Data{Sessions: []Session{{Name: "bare", Action: "create"}, {Name: "other"}}}
	if got := d.rows("", nil); len(got) != 2 {
		t.Errorf("%v", got)
	}
	if got := d.rows("BAR", nil); len(got) != 1 || got[0].session != 0 {
		t.Errorf("%v", got)
	}
}

// A thousand generations are read by the screenful.
func TestHistoryIsReadByTheScreenful(t *testing.T) {
	read := 0
	m := shown(script{data: map[uint64]*Data{0: sample()}, generations: 1000, read: &read}, 80, 24)
	if m.press("o"); read == 0 || read > 40 {
		t.Errorf("%d generations were read for the first screen", read)
	}
	for range 30 {
		m.press("down")
	}
	if read > 90 {
		t.Errorf("%d generations were read for 30 lines", read)
	}
	for range 1100 {
		m.press("down")
	}
	if read != 1000 || m.history[m.hat].Number != 1 {
		t.Errorf("%d were read, and the last is %d", read, m.history[m.hat].Number)
	}
}

func TestColourIsOptional(t *testing.T) {
	m := shown(script{data: map[uint64]*Data{0: sample()}}, 80, 24)
	colours := regexp.MustCompile("\x1b\\[3[0-9]m")
	if !colours.MatchString(strings.Join(m.lines(), "\n")) {
		t.Error("no colour is used")
	}
	with := m.text()
	m.color = false
	if got := strings.Join(m.lines(), "\n"); colours.MatchString(got) || strip(got) != with {
		t.Error("without colours the screen is another")
	}
}

// A problem while something else is read leaves what is shown; at the beginning it is the error.
func TestProblems(t *testing.T) {
	m := shown(script{data: map[uint64]*Data{}}, 80, 24)
	if m.err == nil {
		t.Error("no error where nothing can be read")
	}
	m = shown(script{data: map[uint64]*Data{0: sample()}, generations: 3}, 80, 24)
	m.press("o down enter")
	if m.err != nil || !strings.Contains(m.text(), "! no such generation") || !strings.Contains(m.text(), "gone  to restore") {
		t.Errorf("%v\n%s", m.err, m.text())
	}
}

func TestListAndAsk(t *testing.T) {
	var b strings.Builder
	choices, err := List(&b, sample(), []Agent{{ID: "one"}}, 60)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if line = strings.TrimSuffix(line, "\n"); ui.Width(line) > 60 || line != ui.Escape(line) {
			t.Errorf("%q", line)
		}
	}
	for in, want := range map[string]Act{"1\n": RestoreAll, "2": Jump, "": Nothing, "q\n": Nothing, " 4 \n": Resume} {
		c, err := Ask(strings.NewReader(in), &b, choices)
		if err != nil || c.Act != want {
			t.Errorf("%q: %q, %v", in, c.Act, err)
		}
	}
	for _, in := range []string{"0\n", "99\n", "-1", "x\n", "1x"} {
		var bad *NumberError
		if c, err := Ask(strings.NewReader(in), &b, choices); !errors.As(err, &bad) || c.Act != Nothing {
			t.Errorf("%q: %v, %v", in, c, err)
		}
	}
}

// A context that ends is a choice to leave.
func TestRunEndsWithItsContext(t *testing.T) {
	in, keep, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer keep.Close()
	out, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, stop)
	c, err := Run(ctx, script{data: map[uint64]*Data{0: sample()}}, Options{Environ: []string{"TERM=xterm"}}, in, out)
	if err != nil || c.Act != Nothing {
		t.Errorf("%v, %v", c, err)
	}
}

func FuzzScreen(f *testing.F) {
	f.Add("name", "dir", 80, 24, "down enter")
	f.Add(evil, evil, 37, 9, "/ x o down n ? a")
	f.Fuzz(func(t *testing.T, name, dir string, w, h int, keys string) {
		if w < 1 || h < 1 || w > 300 || h > 100 {
			return
		}
		d := sample()
		d.Sessions[0].Name, d.Sessions[1].Windows[0].Panes[0].Dir, d.Sessions[1].Windows[0].Panes[0].Reason = name, dir, name
		m := shown(script{data: map[uint64]*Data{0: d}, generations: 5}, w, h)
		m.press(keys)
		fits(t, m, "")
	})
}

// What changes is read by itself, and the chosen line stays the one that it was.
func TestItFollows(t *testing.T) {
	data := map[uint64]*Data{0: sample()}
	pulse := "one life"
	src := script{data: data, pulse: &pulse}
	m := shown(src, 80, 24)
	m.press("down down")
	if p := m.current(); p == nil || p.ID != "id-2" {
		t.Fatalf("%+v", p)
	}
	felt := func() { m.run(m.felt(src.Pulse(m.ctx))) }

	other := sample()
	other.Sessions = append([]Session{{Name: "new", There: true, Windows: []Window{{Panes: []Pane{{State: "shell", Terminal: "%9", Does: Jump}}}}}}, other.Sessions...)
	data[0] = other
	felt()
	if strings.Contains(m.text(), "▾ new") {
		t.Error("it was read although nothing was felt")
	}
	pulse = "two"
	felt()
	if p := m.current(); !strings.Contains(m.text(), "▾ new") || p == nil || p.ID != "id-2" {
		t.Errorf("the chosen line is %+v of\n%s", p, m.text())
	}

	// The server ends: everything is to be restored. What cannot be read leaves what is shown, and says so.
	ended := sample()
	ended.Sessions = ended.Sessions[1:]
	data[0], pulse = ended, "none"
	felt()
	if strings.Contains(m.text(), "▾ here") {
		t.Errorf("the server is gone, and shown:\n%s", m.text())
	}
	data[0], pulse = nil, "broken"
	felt()
	if text := m.text(); !strings.Contains(text, "no longer certain: no such generation") || !strings.Contains(text, "▾ gone") {
		t.Errorf("%s", text)
	}
	data[0] = sample()
	felt() // the same pulse: what did not come is asked for again
	if text := m.text(); strings.Contains(text, "certain") || !strings.Contains(text, "▾ here") {
		t.Errorf("%s", text)
	}

	// A generation that was asked for meanwhile is not put aside by what nobody asked for.
	soft := m.readAs(0, true)()
	data[5] = &Data{Server: "tmux-default", Generation: 5, Asked: true, Sessions: sample().Sessions[1:2]}
	m.generation, m.busy = 5, true
	m.Update(soft)
	if !m.busy {
		t.Error("what was asked for is not waited for any more")
	}
	m.run(m.read(5))
	if m.press("a y"); m.choice.Generation != 5 || !m.choice.Asked {
		t.Errorf("%+v", m.choice)
	}
}

// A session's line goes to what is looked at there.
func TestASessionsLineGoesToItsActivePane(t *testing.T) {
	d := &Data{Sessions: []Session{{Name: "s", There: true, Windows: []Window{
		{Index: 0, Panes: []Pane{{Verdict: "pending", Does: Resume}, {Terminal: "%1", Does: Jump}}},
		{Index: 1, Panes: []Pane{{Terminal: "%2", Does: Jump}, {Terminal: "%3", Does: Jump, Active: true}, {Terminal: "%4", Does: Jump}}},
	}}}}
	if c := d.chosen(row{0, -1, -1}); c.Act != Jump || c.Pane.Terminal != "%3" || c.Window != 1 {
		t.Errorf("%+v", c)
	}
	d.Sessions[0].Windows = d.Sessions[0].Windows[:1]
	if c := d.chosen(row{0, -1, -1}); c.Pane.Terminal != "%1" {
		t.Errorf("%+v", c)
	}
}

func TestTheNextThatWants(t *testing.T) {
	pane := func(id, state string) Pane { return Pane{Terminal: id, Agent: "a", State: state, Does: Jump} }
	d := &Data{Server: "s", Sessions: []Session{
		{Name: "x", There: true, Windows: []Window{{Panes: []Pane{pane("%1", "running, working"), pane("%2", "running, waiting")}}}},
		{Name: "y", There: true, Windows: []Window{{Panes: []Pane{pane("%3", "running, done"), {Agent: "a", State: "running, waiting", Does: Resume}}}}},
	}}
	m := shown(script{data: map[uint64]*Data{0: d}}, 80, 24)
	var got []string
	for range 3 {
		m.press("w")
		got = append(got, m.current().Terminal)
	}
	if diff := cmp.Diff([]string{"%2", "%3", "%2"}, got); diff != "" {
		t.Error(diff)
	}
	d.Sessions = d.Sessions[:1]
	d.Sessions[0].Windows[0].Panes = d.Sessions[0].Windows[0].Panes[:1]
	m = shown(script{data: map[uint64]*Data{0: d}}, 80, 24)
	if m.press("w"); !strings.Contains(m.text(), "no agent waits for you") {
		t.Error(m.text())
	}
}
