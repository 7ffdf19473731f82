package archive

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// changes are what Diff says, in its words.
func changes(a, b *Archive) (out []string) {
	for _, c := range Diff(a, b) {
		out = append(out, c.Kind+" "+c.Place()+": "+c.Words())
	}
	return out
}

func TestDiff(t *testing.T) {
	key := func(a *Archive, session, pane int, k string) {
		g := a.Sessions[session].Windows[0].Panes[pane].Agent
		if g == nil {
			g = &Agent{}
			a.Sessions[session].Windows[0].Panes[pane].Agent = g
		}
		g.Key = k
	}
	for _, c := range []struct {
		name string
		a, b func() *Archive
		want []string
	}{
		{
			"what changes by itself", func() *Archive { return ws("L1", "work=a") }, func() *Archive {
				a := ws("L2", "work=a")
				p := &a.Sessions[0].Windows[0].Panes[1]
				p.Title, p.Program, p.Active = "x", "y", true
				a.Sessions[0].Active = false
				return a
			}, nil,
		},
		{
			"sessions", func() *Archive { return ws("L1", "one=a", "two") }, func() *Archive { return ws("L1", "two", "three=b,c") },
			[]string{
				"session-removed one: the session is gone: 1 window, 2 panes, 1 conversation",
				"record-removed one:1.1: the conversation is gone: claude-code a",
				"session-added three: a new session: 1 window, 3 panes, 2 conversations",
				"record-added three:1.1: a new conversation: claude-code b",
				"record-added three:1.2: a new conversation: claude-code c",
			},
		},
		{
			"a conversation of the same pane", func() *Archive {
				a := ws("L1", "work=a")
				key(a, 0, 1, "k")
				return a
			}, func() *Archive {
				a := ws("L1", "work=b.")
				key(a, 0, 1, "k")
				a.Sessions[0].Windows[0].Panes[1].Agent.Profile = "loud"
				return a
			},
			[]string{
				"record-changed work:1.1: its conversation was a, and is claude-code b",
				"record-state work:1.1: claude-code b was running, and is ended",
				"profile-changed work:1.1: its profile was default, and is loud",
			},
		},
		{
			"a pane that moved", func() *Archive { return ws("L1", "work=a", "more") }, func() *Archive {
				a := ws("L1", "work", "more=a")
				a.Sessions[1].Windows[0].Panes[1].Cwd = "/else"
				return a
			},
			[]string{
				"pane-moved more:1.1: the pane came from work:1.1",
				"pane-directory more:1.1: its directory was unknown, and is /else",
			},
		},
		{
			"windows", func() *Archive {
				a := ws("L1", "work=a")
				a.Sessions[0].Windows = append(a.Sessions[0].Windows, Window{Name: "gone", Index: 2, Panes: []Pane{{Cwd: "/x"}}})
				return a
			}, func() *Archive {
				a := ws("L1", "work=a")
				w := &a.Sessions[0].Windows[0]
				w.Name, w.Index, w.Cells = "named", 5, "80x24"
				a.Sessions[0].Windows = append(a.Sessions[0].Windows, Window{Name: "new", Index: 7, Panes: []Pane{{Cwd: "/y"}}})
				return a
			},
			[]string{
				`window-removed work:2: the window "gone" is gone`,
				`window-renamed work:5: the window "w" is called "named"`,
				"window-moved work:5: the window 1 has the index 5",
				"window-layout work:5: another layout",
				`window-added work:7: a new window "new"`,
				"pane-removed work:1.0: the pane is gone, which was in /src",
				"pane-removed work:2.0: the pane is gone, which was in /x",
				"pane-added work:5.0: a new pane in /src",
				"pane-moved work:5.1: the pane came from work:1.1",
				"pane-added work:7.0: a new pane in /y",
			},
		},
		{
			"waiting, under another name", func() *Archive { return ws("L1", "work=a") }, func() *Archive {
				a := ws("L2", "work=a")
				a.Sessions[0].Name, a.Sessions[0].Pending = "work (pending 1)", &Pending{From: 1, Name: "work"}
				return a
			},
			[]string{
				"session-waits work: the session is not live any more, and waits to be restored",
				"record-state work:1.1: claude-code a was running, and is pending",
			},
		},
	} {
		if d := cmp.Diff(c.want, changes(c.a(), c.b())); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// Whatever two archives say, one is no different from itself, and every change has its words.
func TestDiffProperties(t *testing.T) {
	ids := rapid.SliceOfN(rapid.SampledFrom([]string{"one=a", "two=b,c", "three", "four=a?", "five=e."}), 0, 4)
	rapid.Check(t, func(rt *rapid.T) {
		make := func(label string) *Archive {
			seen := map[string]bool{}
			var sessions []string
			for _, s := range ids.Draw(rt, label) {
				if !seen[s] {
					seen[s] = true
					sessions = append(sessions, s)
				}
			}
			return ws("L", sessions...)
		}
		a, b := make("a"), make("b")
		if got := changes(a, a); got != nil {
			rt.Errorf("an archive against itself: %q", got)
		}
		there, back := Diff(a, b), Diff(b, a)
		if len(there) != len(back) {
			rt.Errorf("%d changes there, %d back", len(there), len(back))
		}
		for _, c := range there {
			if c.Words() == "" || c.Words() == c.Kind {
				rt.Errorf("%s has no words", c.Kind)
			}
		}
	})
}
