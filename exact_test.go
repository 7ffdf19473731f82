package phuxagent_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/phux-agent/phux-agent/internal/fakeagent"
)

// stage is a scene of a Go test: a private home, runtime and socket directory.
type stage struct {
	testing.TB
	vars map[string]string
	work string
}

func newStage(t testing.TB) *stage {
	t.Helper()
	usesTheProgram()
	work := t.TempDir()
	s := &stage{TB: t, work: work, vars: map[string]string{}}
	after, err := scenery(work, func(k, v string) { s.vars[k] = v })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(after)
	return s
}

func (s *stage) Getenv(name string) string { return s.vars[name] }

func (s *stage) environ() []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		k, _, _ := strings.Cut(kv, "=")
		_, own := s.vars[k]
		return own || strings.HasPrefix(k, "XDG_")
	})
	for k, v := range s.vars {
		if v != "" {
			env = append(env, k+"="+v)
		}
	}
	return env
}

// run runs phux-agent in dir and returns its standard output and its exit code.
func (s *stage) run(dir string, args ...string) (stdout string, code int) {
	s.Helper()
	cmd := exec.Command("phux-agent", args...)
	cmd.Dir, cmd.Env = dir, s.environ()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.Fatalf("phux-agent %q: %v", args, err)
	}
	if errs.Len() > 0 {
		s.Logf("phux-agent %q: %s", args, errs.String())
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// must runs phux-agent and wants exit code 0.
func (s *stage) must(dir string, args ...string) string {
	s.Helper()
	out, code := s.run(dir, args...)
	if code != 0 {
		s.Fatalf("phux-agent %q: exit %d\n%s", args, code, out)
	}
	return out
}

func (s *stage) tmux(args ...string) string {
	s.Helper()
	out, err := tmuxOut(s, args...)
	if err != nil {
		s.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return strings.TrimRight(out, "\n")
}

func (s *stage) dir(name string) string {
	s.Helper()
	d := filepath.Join(s.work, name)
	if err := os.MkdirAll(d, 0o700); err != nil {
		s.Fatal(err)
	}
	return d
}

// launched is one agent pane as the test keeps account of it, by pane id of the current life.
type launched struct {
	agent, id, dir string
	turns          int
}

// TestExact is the main job at full size: sixteen agent panes over four sessions, in shared
// directories, of mixed CLIs, moved, swapped, renumbered and respawned, with headless runs
// nested in them, through five generations of save, power cut and restore. The judge is what
// the agents themselves logged: each pane's process, its conversation, its directory, and the
// number of turns that the conversation remembers.
//
// The script is the same for each host. A journey is the hosts that it comes by: what was saved on
// one is restored on the next.
func TestExact(t *testing.T) {
	tmux, embedded := exactTmux{}, exactEmbedded{}
	for name, journey := range map[string][]exactHost{
		"tmux":           {tmux, tmux, tmux, tmux, tmux, tmux},
		"embedded":       {embedded, embedded, embedded, embedded, embedded, embedded},
		"there and back": {tmux, embedded, tmux},
	} {
		t.Run(name, func(t *testing.T) { exact(t, journey) })
	}
}

func exact(t *testing.T, journey []exactHost) {
	s := newStage(t)
	h := journey[0]
	rng := rand.New(rand.NewPCG(1, 68))
	if err := os.MkdirAll(filepath.Join(s.vars["HOME"], ".gemini"), 0o700); err != nil {
		t.Fatal(err)
	}
	settings := `{"general":{"sessionRetention":{"enabled":false}}}`
	if err := os.WriteFile(filepath.Join(s.vars["HOME"], ".gemini", "settings.json"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	dirs := []string{s.dir("api"), s.dir("web"), s.dir("a dir; with $(touch PWNED) #{pid} ünï")}
	programs := map[string]string{
		"claude-code": "claude", "codex": "codex", "gemini-cli": "gemini", "qwen-code": "qwen",
		"copilot": "copilot", "pi": "pi", "kimi": "kimi",
	}
	// kimi keeps no proof that can be read without its hooks, so it is resumed, not born here.
	mix := []string{"claude-code", "claude-code", "claude-code", "codex", "codex", "gemini-cli", "gemini-cli", "qwen-code", "copilot", "pi", "claude-code", "codex", "qwen-code", "copilot", "pi", "claude-code"}
	panes := map[string]launched{}
	for i, integration := range mix {
		session := fmt.Sprintf("work%d", i%4)
		dir := dirs[rng.IntN(len(dirs))]
		args := slices.Concat(h.flags(), []string{"launch", integration, "--session", session, "--json"})
		if i >= 4 && i%3 == 0 {
			args = append(args, "--split-h", "--target", h.active(s, session))
		}
		var got struct {
			Terminal, Action string
			Record           *struct {
				NativeID string `json:"native_id"`
			}
		}
		if err := json.Unmarshal([]byte(s.must(dir, args...)), &got); err != nil {
			t.Fatal(err)
		}
		if got.Action != "created" {
			t.Fatalf("launch %s: action %q", integration, got.Action)
		}
		p := launched{agent: programs[integration], dir: dir}
		if got.Record != nil {
			p.id = got.Record.NativeID
		}
		panes[got.Terminal] = p
		h.arrange(s, got.Terminal)
	}
	s.account(h, panes) // learns the ids of those that mint their own

	// Conversations change while the first host is still the one: to a host that was left, what it
	// held is pending, and comes back beside what replaced it elsewhere.
	cleared := min(2, len(journey)-2)
	for generation := 1; generation < len(journey); generation++ {
		// A turn in every pane; a /clear here and there; a headless run nested in some.
		for _, id := range slices.Sorted(maps.Keys(panes)) {
			p := panes[id]
			type1(s, h.scene(), id, fmt.Sprintf("turn %d of %s", generation, p.id))
			p.turns++
			if p.agent == "claude" && rng.IntN(4) == 0 {
				type1(s, h.scene(), id, "/run claude -p nested")
			}
			if p.agent == "claude" && generation == cleared && rng.IntN(2) == 0 {
				type1(s, h.scene(), id, "/clear")
				type1(s, h.scene(), id, "after the clear")
				p.turns, p.id = 1, ""
			}
			panes[id] = p
		}
		s.account(h, panes)
		// What a pane holds after a /clear is proven by looking while its agent lives; without
		// that, a respawn could only bring back what was proven last.
		s.must(s.work, slices.Concat(h.flags(), []string{"ps"})...)
		h.shuffle(s, rng, panes)
		before := h.layout(s)
		saved := filepath.Join(s.work, fmt.Sprintf("saved%d.json", generation))
		s.must(s.work, slices.Concat(h.flags(), []string{"save"})...)
		s.must(s.work, slices.Concat(h.flags(), []string{"save", "-o", saved})...)
		want := s.places(h, panes)

		powerCut(s, h.scene())
		from := h
		h = journey[generation]
		restore := slices.Concat(h.flags(), []string{"restore"})
		first := restore
		if from != h {
			first = slices.Concat(restore, []string{saved})
		}
		plan, code := s.run(s.work, slices.Concat(first, []string{"--plan", "--json"})...)
		if code != 0 {
			t.Fatalf("generation %d: plan: exit %d\n%s", generation, code, plan)
		}
		s.must(s.work, first...)
		if after := h.layout(s); from == h && after != before {
			t.Errorf("generation %d: layout (-before +after):\n%s", generation, cmp.Diff(strings.Split(before, "\n"), strings.Split(after, "\n")))
		}
		var got []string
		await(s, "sixteen agents", func() (bool, string) {
			got = runningAgents(s, h.scene())
			return len(got) == len(want), strings.Join(got, "\n")
		})
		if !slices.Equal(got, want) {
			t.Fatalf("generation %d: not exact\nwant:\n%s\ngot:\n%s", generation, strings.Join(want, "\n"), strings.Join(got, "\n"))
		}
		// What is saved now is what was saved before, whichever host it stands on.
		again := filepath.Join(s.work, fmt.Sprintf("again%d.json", generation))
		s.must(s.work, slices.Concat(h.flags(), []string{"save", "-o", again})...)
		var shapes [2]string
		for i, file := range []string{saved, again} {
			text, err := os.ReadFile(file)
			check(s, err)
			shapes[i], err = shape(text)
			check(s, err)
		}
		if d := cmp.Diff(strings.Split(shapes[0], "\n"), strings.Split(shapes[1], "\n")); d != "" {
			t.Errorf("generation %d: the shape (-saved +restored):\n%s", generation, d)
		}
		// Twice starts nothing twice.
		s.must(s.work, restore...)
		if again := runningAgents(s, h.scene()); !slices.Equal(again, want) {
			t.Fatalf("generation %d: a second restore changed the agents\n%s", generation, strings.Join(again, "\n"))
		}
		// The new life has new pane ids: find each by its place.
		panes = s.relearn(h, panes, want)
	}
	if _, err := os.Stat(filepath.Join(s.work, "PWNED")); err == nil {
		t.Error("a directory name was run by a shell")
	}
}

// account reads, for each pane, which conversation its own agent says it has.
func (s *stage) account(h exactHost, panes map[string]launched) {
	s.Helper()
	at := h.panes(s)
	var lines []string
	await(s, "every agent's own word", func() (bool, string) {
		lines = runningAgents(s, h.scene())
		return len(lines) == len(panes), strings.Join(lines, "\n")
	})
	for _, l := range lines {
		f := strings.Fields(l)
		id := at[f[0]]
		p, ok := panes[id]
		if !ok {
			s.Fatalf("an agent in a pane that none was launched in: %s", l)
		}
		if p.id == "" {
			p.id = f[2]
		}
		if p.id != f[2] || p.agent != f[1] {
			s.Fatalf("pane %s: launched %+v, the agent says %s", id, p, l)
		}
		panes[id] = p
	}
}

// places is the account in the form that runningAgents has.
func (s *stage) places(h exactHost, panes map[string]launched) []string {
	s.Helper()
	var lines []string
	for place, id := range h.panes(s) {
		if p, ok := panes[id]; ok {
			lines = append(lines, fmt.Sprintf("%s %s %s %s %d", place, p.agent, p.id, p.dir, p.turns))
		}
	}
	slices.Sort(lines)
	return lines
}

func (s *stage) relearn(h exactHost, panes map[string]launched, want []string) map[string]launched {
	s.Helper()
	byID := map[string]launched{}
	for _, p := range panes {
		byID[p.agent+p.id] = p
	}
	out := map[string]launched{}
	at := h.panes(s)
	for _, w := range want {
		f := strings.Fields(w)
		out[at[f[0]]] = byID[f[1]+f[2]]
	}
	return out
}

// respawned respawns the pane of a claude, by what does that, and waits until it is back: the same
// conversation in the same pane.
func (s *stage) respawned(h exactHost, panes map[string]launched, respawn func(id string)) {
	s.Helper()
	for _, id := range slices.Sorted(maps.Keys(panes)) {
		p := panes[id]
		if p.agent != "claude" || p.turns == 0 {
			continue
		}
		before, err := readLog(s.Getenv(fakeagent.LogEnv))
		check(s, err)
		respawn(id)
		await(s, "the respawned agent", func() (bool, string) {
			after, err := readLog(s.Getenv(fakeagent.LogEnv))
			check(s, err)
			for _, e := range after[len(before):] {
				if e.Event == "start" && e.ID == p.id {
					return true, ""
				}
			}
			out, _ := tmuxOut(s, slices.Concat(h.scene(), []string{"capture-pane", "-p", "-t", id})...)
			return false, fmt.Sprintf("pane %s of %+v\n%s\nsince then: %+v", id, p, strings.TrimSpace(out), after[len(before):])
		})
		return
	}
}
