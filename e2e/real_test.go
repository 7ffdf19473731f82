//go:build e2e

package e2e

import (
	"slices"
	"testing"
)

func TestRealClaude(t *testing.T)   { lifetime(t, claude()) }
func TestRealCodex(t *testing.T)    { lifetime(t, codex()) }
func TestRealGemini(t *testing.T)   { lifetime(t, gemini()) }
func TestRealOpencode(t *testing.T) { lifetime(t, opencode()) }
func TestRealQwen(t *testing.T)     { lifetime(t, qwen()) }
func TestRealCopilot(t *testing.T)  { lifetime(t, copilot()) }
func TestRealPi(t *testing.T)       { lifetime(t, pi()) }

// lifetime is the main job for one agent: a turn, the agent's own new conversation, another turn;
// a save; the server killed; a restore; a third turn, which must come with the second and without
// the first. And once more after a reboot, with a neighbour in the same directory throughout.
func lifetime(t *testing.T, a *agent) {
	s := newStage(t, a)
	api := s.dir("api")
	p := s.launch(a, api)
	neighbour := s.launch(a, api)
	s.say(p)
	s.say(neighbour)
	if !a.blind {
		s.cleared(p)
		s.say(p)
	}
	s.save(2)

	s.killServer()
	if a.survives {
		s.powerCut()
	} else {
		s.hungUp()
	}
	asked := len(s.model.Requests())
	s.wants(s.restore(0), "resume running", "resume running")
	for _, p := range s.panes {
		s.ready(p)
	}
	for _, r := range s.model.Requests()[asked:] {
		if r.Tools > 0 {
			t.Errorf("the restore itself made a turn: %+v", r)
		}
	}
	// The other order, so that "the newest one" would be wrong.
	s.say(neighbour)
	s.say(p)
	s.save(2)

	s.powerCut()
	s.wants(s.restore(0), "resume running", "resume running")
	for _, p := range slices.Backward(s.panes) {
		s.say(p)
	}
}

// TestRealClaudeFive: five panes of one CLI in one directory, each asked in another order than it
// was made, through two generations: never another's conversation.
func TestRealClaudeFive(t *testing.T) { many(t, claude(), claude(), claude(), claude(), claude()) }
func TestRealCodexFive(t *testing.T)  { many(t, codex(), codex(), codex(), codex(), codex()) }

// TestRealMixed: two of each in one directory.
func TestRealMixed(t *testing.T) { many(t, claude(), codex(), claude(), codex()) }

func TestRealMixedOpencode(t *testing.T) {
	many(t, opencode(), claude(), codex(), opencode(), claude(), codex())
}

// many runs several panes in one directory through two generations. The order of the turns is
// another one each time: the one that they were made in, its reverse, and interleaved.
func many(t *testing.T, agents ...*agent) {
	s := newStage(t, agents...)
	api := s.dir("api")
	for n, a := range agents {
		var where []string
		if n%2 == 1 {
			where = []string{"--split-v", "--target", s.panes[n-1].name}
		}
		s.launch(a, api, where...)
	}
	inOrder := slices.Clone(s.panes)
	reversed := slices.Clone(s.panes)
	slices.Reverse(reversed)
	var woven []*pane // the odd ones, then the even ones
	for n := range s.panes {
		if n%2 == 1 {
			woven = append(woven, s.panes[n])
		}
	}
	for n := range s.panes {
		if n%2 == 0 {
			woven = append(woven, s.panes[n])
		}
	}
	want := slices.Repeat([]string{"resume running"}, len(agents))
	for generation, order := range [][]*pane{inOrder, reversed, woven} {
		for _, p := range order {
			s.say(p)
		}
		if generation == 0 && !agents[0].blind {
			s.cleared(s.panes[0])
			s.say(s.panes[0])
		}
		s.save(len(agents))
		if generation == 1 {
			s.killServer()
			s.hungUp()
		} else {
			s.powerCut()
		}
		s.wants(s.restore(0), want...)
		// Twice starts nothing twice.
		before := s.running()
		if r := s.restore(0); len(r.Sessions) != 1 || r.Sessions[0].Action != "skip-existing" {
			t.Errorf("a second restore: %+v", r)
		}
		if after := s.running(); after != before {
			t.Errorf("a second restore changed the panes from\n%s\nto\n%s", before, after)
		}
	}
	for _, p := range inOrder {
		s.say(p)
	}
}
