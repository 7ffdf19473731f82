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
func TestExact(t *testing.T) {
	s := newStage(t)
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
		args := []string{"launch", integration, "--session", session, "--json"}
		if i >= 4 && i%3 == 0 {
			args = append(args, "--split-h", "--target", s.tmux("display-message", "-p", "-t", "="+session+":", "#{pane_id}"))
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
		s.tmux("select-layout", "-t", got.Terminal, "tiled")
	}
	s.account(panes) // learns the ids of those that mint their own

	for generation := 1; generation <= 5; generation++ {
		// A turn in every pane; a /clear here and there; a headless run nested in some.
		for _, id := range slices.Sorted(maps.Keys(panes)) {
			p := panes[id]
			type1(s, nil, id, fmt.Sprintf("turn %d of %s", generation, p.id))
			p.turns++
			if p.agent == "claude" && rng.IntN(4) == 0 {
				type1(s, nil, id, "/run claude -p nested")
			}
			if p.agent == "claude" && generation == 2 && rng.IntN(2) == 0 {
				type1(s, nil, id, "/clear")
				type1(s, nil, id, "after the clear")
				p.turns, p.id = 1, ""
			}
			panes[id] = p
		}
		s.account(panes)
		// What a pane holds after a /clear is proven by looking while its agent lives; without
		// that, a respawn could only bring back what was proven last.
		s.must(s.work, "ps")
		s.shuffle(rng, panes)
		before := s.layout()
		s.must(s.work, "save")
		want := s.places(panes)

		powerCut(s, nil)
		plan, code := s.run(s.work, "restore", "--plan", "--json")
		if code != 0 {
			t.Fatalf("generation %d: plan: exit %d\n%s", generation, code, plan)
		}
		s.must(s.work, "restore")
		if after := s.layout(); after != before {
			t.Errorf("generation %d: layout (-before +after):\n%s", generation, cmp.Diff(strings.Split(before, "\n"), strings.Split(after, "\n")))
		}
		var got []string
		await(s, "sixteen agents", func() (bool, string) {
			got = runningAgents(s, nil)
			return len(got) == len(want), strings.Join(got, "\n")
		})
		if !slices.Equal(got, want) {
			t.Fatalf("generation %d: not exact\nwant:\n%s\ngot:\n%s", generation, strings.Join(want, "\n"), strings.Join(got, "\n"))
		}
		// Twice starts nothing twice.
		s.must(s.work, "restore")
		if again := runningAgents(s, nil); !slices.Equal(again, want) {
			t.Fatalf("generation %d: a second restore changed the agents\n%s", generation, strings.Join(again, "\n"))
		}
		// The new life has new pane ids: find each by its place.
		panes = s.relearn(panes, want)
	}
	if _, err := os.Stat(filepath.Join(s.work, "PWNED")); err == nil {
		t.Error("a directory name was run by a shell")
	}
}

// account reads, for each pane, which conversation its own agent says it has.
func (s *stage) account(panes map[string]launched) {
	s.Helper()
	at := map[string]string{}
	for _, l := range strings.Split(s.tmux("list-panes", "-a", "-F", "#{session_name}:#{window_index}.#{pane_index} #{pane_id}"), "\n") {
		place, id, _ := strings.Cut(l, " ")
		at[place] = id
	}
	var lines []string
	await(s, "every agent's own word", func() (bool, string) {
		lines = runningAgents(s, nil)
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
func (s *stage) places(panes map[string]launched) []string {
	s.Helper()
	var lines []string
	for _, l := range strings.Split(s.tmux("list-panes", "-a", "-F", "#{pane_id} #{session_name}:#{window_index}.#{pane_index}"), "\n") {
		id, place, _ := strings.Cut(l, " ")
		if p, ok := panes[id]; ok {
			lines = append(lines, fmt.Sprintf("%s %s %s %s %d", place, p.agent, p.id, p.dir, p.turns))
		}
	}
	slices.Sort(lines)
	return lines
}

func (s *stage) relearn(panes map[string]launched, want []string) map[string]launched {
	s.Helper()
	byID := map[string]launched{}
	for _, p := range panes {
		byID[p.agent+p.id] = p
	}
	out := map[string]launched{}
	for _, l := range strings.Split(s.tmux("list-panes", "-a", "-F", "#{session_name}:#{window_index}.#{pane_index} #{pane_id}"), "\n") {
		place, id, _ := strings.Cut(l, " ")
		for _, w := range want {
			if f := strings.Fields(w); f[0] == place {
				out[id] = byID[f[1]+f[2]]
			}
		}
	}
	return out
}

// layout is everything of the workspace that a person sees, ids and process ids aside. A name
// that tmux makes up follows the program in the pane half a second late, so it says only that.
func (s *stage) layout() string {
	s.Helper()
	windows := s.tmux("list-windows", "-a", "-F", "#{session_name}:#{window_index} #{?#{automatic-rename},(automatic),#{window_name}} active=#{window_active} zoom=#{window_zoomed_flag} #{window_width}x#{window_height}")
	cells := s.tmux("list-panes", "-a", "-F", "#{session_name}:#{window_index}.#{pane_index} #{pane_left},#{pane_top} #{pane_width}x#{pane_height} active=#{pane_active}")
	return windows + "\n" + cells
}

// shuffle does to the workspace what people do: swap, move, break, join, renumber, respawn.
func (s *stage) shuffle(rng *rand.Rand, panes map[string]launched) {
	s.Helper()
	ids := slices.Sorted(maps.Keys(panes))
	pick := func() string { return ids[rng.IntN(len(ids))] }
	for range 4 {
		if a, b := pick(), pick(); a != b {
			s.tmux("swap-pane", "-d", "-s", a, "-t", b)
		}
	}
	windows := strings.Split(s.tmux("list-windows", "-a", "-F", "#{window_id} #{window_panes} #{session_name}"), "\n")
	for _, w := range windows {
		f := strings.Fields(w)
		if f[1] != "1" && rng.IntN(3) == 0 {
			s.tmux("break-pane", "-d", "-s", f[0]+".", "-t", "="+f[2]+":")
			break
		}
	}
	s.tmux("move-window", "-r", "-t", "=work0:")
	s.tmux("rename-window", "-t", "=work1:", fmt.Sprintf("w%d ##{pid} $(x); ünï", rng.IntN(100)))
	if z := pick(); true {
		s.tmux("resize-pane", "-Z", "-t", z)
		s.tmux("select-pane", "-t", z)
	}
	// A respawn of a claude pane: the same conversation comes back in the same pane.
	for _, id := range ids {
		if p := panes[id]; p.agent == "claude" && p.turns > 0 {
			before, err := readLog(s.Getenv(fakeagent.LogEnv))
			check(s, err)
			s.tmux("respawn-pane", "-k", "-t", id)
			await(s, "the respawned agent", func() (bool, string) {
				after, err := readLog(s.Getenv(fakeagent.LogEnv))
				check(s, err)
				for _, e := range after[len(before):] {
					if e.Event == "start" && e.ID == p.id {
						return true, ""
					}
				}
				out, _ := tmuxOut(s, "capture-pane", "-p", "-t", id)
				return false, fmt.Sprintf("pane %s of %+v\n%s\nsince then: %+v", id, p, strings.TrimSpace(out), after[len(before):])
			})
			break
		}
	}
}
