package memory_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/memory"
	"github.com/phux-agent/phux-agent/metadata"
)

func agent(name, after string) host.PaneSpec {
	return host.PaneSpec{
		Start: host.Start{Mode: host.Program, Argv: []string{"/bin/" + name}, Dir: "/src/" + name, AfterExit: after},
		Meta:  map[metadata.Key][]byte{metadata.KeyAgentSession: []byte(name)},
	}
}

func session(t *testing.T, h host.Host, name string, panes ...host.PaneSpec) []host.Terminal {
	t.Helper()
	layout, err := host.Split(200, 50, len(panes))
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.Create(t.Context(), host.CreateSession{Name: name, Windows: []host.WindowSpec{{Name: "w", Index: -1, Layout: layout, Panes: panes}}})
	if err != nil {
		t.Fatal(err)
	}
	var terms []host.Terminal
	for _, s := range out.Windows[0] {
		terms = append(terms, s.Terminal)
	}
	return terms
}

func look(t *testing.T, h host.Host) *host.Workspace {
	t.Helper()
	w, err := h.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func find(t *testing.T, h host.Host, term host.Terminal) *host.Pane {
	t.Helper()
	for _, s := range look(t, h).Sessions {
		for _, w := range s.Windows {
			for _, p := range w.Panes {
				if p.Terminal == term {
					return &p
				}
			}
		}
	}
	return nil
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFaultsLeaveNothing(t *testing.T) {
	boom := errors.New("boom")
	for _, step := range []memory.Step{memory.StepCreate, memory.StepStore, memory.StepReadBack, memory.StepCommit} {
		t.Run("create "+string(step), func(t *testing.T) {
			h := memory.New()
			h.Fail(step, boom)
			layout, err := host.Split(80, 24, 2)
			ok(t, err)
			_, err = h.Create(t.Context(), host.CreateSession{Name: "a", Windows: []host.WindowSpec{{
				Name: "w", Layout: layout, Panes: []host.PaneSpec{agent("x", ""), agent("y", "")},
			}}})
			if !errors.Is(err, boom) {
				t.Errorf("create: %v", err)
			}
			if _, err := h.Snapshot(t.Context()); !errors.Is(err, host.ErrNoServer) {
				t.Errorf("snapshot: %v", err)
			}
			if got := h.Started(); len(got) > 0 {
				t.Errorf("started %v", got)
			}
			h.Fail(step, nil)
			session(t, h, "a", agent("x", ""))
		})
	}
	for _, step := range []memory.Step{memory.StepSpawn, memory.StepStore, memory.StepReadBack, memory.StepCommit} {
		t.Run("spawn "+string(step), func(t *testing.T) {
			h := memory.New()
			session(t, h, "a", agent("x", ""))
			before := look(t, h)
			h.Fail(step, boom)
			if _, err := h.Spawn(t.Context(), host.Spawn{Session: "a", Pane: agent("y", "")}); !errors.Is(err, boom) {
				t.Errorf("spawn: %v", err)
			}
			if diff := cmp.Diff(before, look(t, h)); diff != "" {
				t.Error(diff)
			}
			if got := h.Started(); len(got) != 1 {
				t.Errorf("started %v", got)
			}
		})
	}
}

func TestOtherSteps(t *testing.T) {
	boom := errors.New("boom")
	h := memory.New()
	term := session(t, h, "a", agent("x", ""))[0]
	for step, call := range map[memory.Step]func() error{
		memory.StepInfo:      func() error { _, err := h.Info(t.Context()); return err },
		memory.StepSnapshot:  func() error { _, err := h.Snapshot(t.Context()); return err },
		memory.StepSwap:      func() error { return h.Swap(t.Context(), term, metadata.KeyAgent, nil, []byte("v")) },
		memory.StepKill:      func() error { return h.Kill(t.Context(), term) },
		memory.StepBind:      func() error { return h.Bind(t.Context(), term, 1, 1, nil) },
		memory.StepFocus:     func() error { return h.Focus(t.Context(), term) },
		memory.StepLastWords: func() error { _, err := h.LastWords(t.Context(), term, 9); return err },
	} {
		h.Fail(step, boom)
		if err := call(); !errors.Is(err, boom) {
			t.Errorf("%s: %v", step, err)
		}
		h.Fail(step, nil)
	}
	if p := find(t, h, term); p == nil || p.Origin != host.Ours || len(p.Meta) != 1 {
		t.Errorf("a step that failed did something: %+v", p)
	}
}

func TestAnotherWinsWhileOneBuilds(t *testing.T) {
	h := memory.New()
	var once bool
	h.Hook(func(ctx context.Context, c memory.Call) error {
		if c.Step == memory.StepCommit && c.Create.Windows[0].Panes[0].Start.Argv[0] == "/bin/loser" && !once {
			once = true
			session(t, h, "a", agent("winner", ""))
		}
		return nil
	})
	_, err := h.Create(t.Context(), host.CreateSession{Name: "a", Windows: []host.WindowSpec{{
		Name: "w", Layout: host.Cell{Cols: 80, Rows: 24}, Panes: []host.PaneSpec{agent("loser", "")},
	}}})
	if !errors.Is(err, host.ErrSessionExists) || !once {
		t.Errorf("create: %v", err)
	}
	got := h.Started()
	if len(got) != 1 || got[0].Argv[0] != "/bin/winner" {
		t.Errorf("started %v", got)
	}
}

func TestReadBackThatDiffers(t *testing.T) {
	h := memory.New()
	session(t, h, "a", agent("x", ""))
	h.Tamper(func(_ metadata.Key, v []byte) []byte { return append(v, ';') })
	if _, err := h.Spawn(t.Context(), host.Spawn{Session: "a", Pane: agent("y", "")}); err == nil {
		t.Error("a value that was stored differently is said to be stored")
	}
	if n := len(look(t, h).Sessions[0].Windows); n != 1 {
		t.Errorf("%d windows", n)
	}
}

func TestProgramThatDoesNotStart(t *testing.T) {
	h := memory.New()
	boom := errors.New("no such program")
	h.Hook(func(_ context.Context, c memory.Call) error {
		if c.Step == memory.StepStart && c.Start.Argv[0] == "/bin/bad" {
			return boom
		}
		return nil
	})
	terms := session(t, h, "a", agent("good", ""), agent("bad", ""))
	if p := find(t, h, terms[1]); !p.Dead || p.Exit == nil || string(p.Meta[metadata.KeyAgentSession]) != "bad" {
		t.Errorf("the pane is %+v", p)
	}
	if got := h.Started(); len(got) != 1 || got[0].Argv[0] != "/bin/good" {
		t.Errorf("started %v", got)
	}
}

func TestOlderHost(t *testing.T) {
	h := memory.New()
	h.SetOlder(true)
	if info, err := h.Info(t.Context()); err != nil || info.AtomicRecord {
		t.Errorf("%+v, %v", info, err)
	}
	term := session(t, h, "a", agent("x", ""))[0]
	if p := find(t, h, term); len(p.Meta) > 0 {
		t.Errorf("an older host stored %q", p.Meta)
	}
	ok(t, h.Swap(t.Context(), term, metadata.KeyAgentSession, nil, []byte("later")))
	if p := find(t, h, term); string(p.Meta[metadata.KeyAgentSession]) != "later" {
		t.Errorf("swapped, it has %q", p.Meta)
	}
}

func TestExit(t *testing.T) {
	for _, c := range []struct {
		after string
		exit  host.Exit
		want  string
	}{
		{"shell", host.Exit{}, "ended"},
		{"hold", host.Exit{}, "dead"},
		{"", host.Exit{}, "dead"},
		{"close", host.Exit{}, "gone"},
		{"shell", host.Exit{Status: 3}, "dead"},
		{"close", host.Exit{Status: -1, Signal: "KILL"}, "dead"},
	} {
		h := memory.New()
		terms := session(t, h, "a", agent("x", c.after), agent("y", ""))
		before := find(t, h, terms[0]).PID
		ok(t, h.Exit(terms[0], c.exit))
		got := "gone"
		switch p := find(t, h, terms[0]); {
		case p == nil:
		case p.Dead && p.Origin == host.Ours && *p.Exit == c.exit:
			got = "dead"
		case !p.Dead && p.Origin == host.Ended && p.PID != before && string(p.Meta[metadata.KeyAgentSession]) == "x":
			got = "ended"
		default:
			got = fmt.Sprintf("%+v", p)
		}
		if got != c.want {
			t.Errorf("%q after %+v: %s, not %s", c.after, c.exit, got, c.want)
		}
		if find(t, h, terms[1]) == nil {
			t.Error("the pane beside is gone")
		}
	}
}

func TestLivesAndIDs(t *testing.T) {
	h := memory.New()
	seen := make(map[string]bool)
	terms := session(t, h, "a", agent("x", ""), agent("y", ""))
	for i := range 5 {
		out, err := h.Spawn(t.Context(), host.Spawn{Session: "a", Pane: agent(fmt.Sprint(i), "")})
		ok(t, err)
		if seen[out.Terminal.ID] || slices.Contains(terms, out.Terminal) {
			t.Errorf("%v was given twice", out.Terminal)
		}
		seen[out.Terminal.ID] = true
		ok(t, h.Kill(t.Context(), out.Terminal))
	}
	first, err := h.Info(t.Context())
	ok(t, err)
	h.Restart()
	again := session(t, h, "a", agent("x", ""))[0]
	if again.ID != terms[0].ID || again.Instance == terms[0].Instance || again.Instance.Boot != first.Instance.Boot {
		t.Errorf("the next life gives %v", again)
	}
	h.Reboot()
	if booted := session(t, h, "a", agent("x", ""))[0]; booted.Instance.Boot == again.Instance.Boot {
		t.Errorf("after a reboot %v", booted)
	}
}

func TestServerEndsWithItsLastSession(t *testing.T) {
	h := memory.New()
	ok(t, h.Kill(t.Context(), session(t, h, "a", agent("x", ""))[0]))
	if info, err := h.Info(t.Context()); err != nil || info.Running {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestWhatAUserDoes(t *testing.T) {
	h := memory.New()
	terms := session(t, h, "a", agent("x", ""), agent("y", ""), agent("z", ""))
	session(t, h, "b", agent("o", ""))
	ok(t, h.SetTitle(terms[0], "title"))
	ok(t, h.SetDir(terms[0], "/elsewhere"))
	ok(t, h.SetPID(terms[0], 77))
	ok(t, h.SetCommand(terms[0], "vim"))
	ok(t, h.Say(terms[0], "last words"))
	if p := find(t, h, terms[0]); p.Title != "title" || p.Dir != "/elsewhere" || p.PID != 77 || p.Command != "vim" {
		t.Errorf("%+v", p)
	}
	if text, err := h.LastWords(t.Context(), terms[0], 5); err != nil || text != "words" {
		t.Errorf("%q, %v", text, err)
	}
	ok(t, h.Rename("a", "c"))
	if err := h.Rename("c", "b"); !errors.Is(err, host.ErrSessionExists) {
		t.Errorf("rename: %v", err)
	}
	ok(t, h.Exchange(terms[0], terms[2]))
	ok(t, h.Move(terms[1], "b", 7))
	ok(t, h.Respawn(terms[2], "htop"))
	ok(t, h.Bind(t.Context(), terms[0], 4711, 99, map[metadata.Key][]byte{metadata.KeyAgent: []byte("n")}))
	ok(t, h.Group("b", "g"))
	ok(t, h.Link(terms[0], "b"))

	w := look(t, h)
	var names []string
	for _, s := range w.Sessions {
		names = append(names, s.Name)
		for _, win := range s.Windows {
			if err := win.Layout.Check(len(win.Panes)); err != nil {
				t.Errorf("%s:%d: %v", s.Name, win.Index, err)
			}
		}
	}
	if !slices.Equal(names, []string{"b", "c", "g"}) {
		t.Fatalf("sessions %q", names)
	}
	b, c, g := w.Sessions[0], w.Sessions[1], w.Sessions[2]
	if len(c.Windows) != 1 || !c.Windows[0].Linked || len(c.Windows[0].Panes) != 2 ||
		c.Windows[0].Panes[0].Terminal != terms[2] || c.Windows[0].Panes[1].Terminal != terms[0] {
		t.Errorf("c is %+v", c)
	}
	if len(b.Windows) != 3 || b.Group == "" || b.Group != g.Group || b.Windows[1].Linked != true || b.Windows[2].Index != 7 || b.Windows[2].Linked {
		t.Errorf("b is %+v", b)
	}
	if diff := cmp.Diff(b.Windows[0].Panes, g.Windows[0].Panes); diff != "" {
		t.Errorf("a group shares its windows: %s", diff)
	}
	if p := find(t, h, terms[2]); p.Origin != host.Replaced || string(p.Meta[metadata.KeyAgentSession]) != "z" {
		t.Errorf("replaced: %+v", p)
	}
	if p := find(t, h, terms[0]); p.Origin != host.Bound || p.BoundPID != 4711 || p.BoundStart != 99 {
		t.Errorf("bound: %+v", p)
	}
	ok(t, h.EndBound(terms[0]))
	if p := find(t, h, terms[0]); p.Origin != host.BoundGone || string(p.Meta[metadata.KeyAgent]) != "n" {
		t.Errorf("bound and gone: %+v", p)
	}
	for name, err := range map[string]error{
		"edit":   h.SetTitle(host.Terminal{}, "x"),
		"move":   h.Move(terms[0], "nowhere", -1),
		"say":    h.Say(host.Terminal{Instance: terms[0].Instance, ID: "%99"}, "x"),
		"rename": h.Rename("nobody", "x"),
		"group":  h.Group("nobody", "x"),
		"link":   h.Link(terms[0], "nobody"),
	} {
		if err == nil {
			t.Errorf("%s of nothing succeeds", name)
		}
	}
}

func TestHoldsNames(t *testing.T) {
	h := memory.New()
	h.SetHolds(func(name string) error {
		if slices.Contains([]byte(name), '.') {
			return host.ErrName
		}
		return nil
	})
	_, err := h.Create(t.Context(), host.CreateSession{Name: "a.b", Windows: []host.WindowSpec{{
		Name: "w", Layout: host.Cell{Cols: 80, Rows: 24}, Panes: []host.PaneSpec{agent("x", "")},
	}}})
	if !errors.Is(err, host.ErrName) {
		t.Errorf("create: %v", err)
	}
	session(t, h, "a_b", agent("x", ""))
}

// What a caller does with an answer does not reach the host.
func TestAnswersAreCopies(t *testing.T) {
	h := memory.New()
	term := session(t, h, "a", agent("x", ""))[0]
	w := look(t, h)
	p := &w.Sessions[0].Windows[0].Panes[0]
	p.Meta[metadata.KeyAgentSession][0] = 'y'
	p.Meta[metadata.KeyAgent] = []byte("z")
	if got := find(t, h, term).Meta; len(got) != 1 || string(got[metadata.KeyAgentSession]) != "x" {
		t.Errorf("the host has %q", got)
	}
}
