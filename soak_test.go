package phuxagent_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/phux-agent/phux-agent/internal/fakeagent"
)

// soaker is a week of somebody's work in some minutes, against a model: what runs, what a save
// has seen, and what must be back after a crash. Nothing else may ever be.
type soaker struct {
	*stage
	rng    *rand.Rand
	alive  map[string]soaked // by native id: agents that run now
	broken map[string]soaked // agents that failed: their panes hold, and a restore brings them back
	over   map[string]soaked // conversations that ended, or whose pane was closed
	saved  map[string]soaked // what the last save has seen running or failed, and nobody ended since: it must come back
	left   map[string]soaked // ended by themselves in this life, a shell in their panes: no autosave believes it at once
	may    map[string]soaked // what may: autosave may have seen it, come or gone, since that save; or it waits in it
	turns  map[string]int    // of every conversation, for ever
	step   int
	done   map[string]int // steps of each kind
	set    time.Duration  // by how much the clock is set
}

type soaked struct{ program, dir string }

// TestSoak takes random steps and compares with the model after each: launches, turns, /clear,
// moves, closed panes, exits, failures, saves, saves that are killed or find a full disk, power cuts, slow
// shutdowns, restores, restores that are killed, clocks that jump by years; with autosave on, as the
// server's own hooks and timer call it. PHUX_SOAK says how many; `make soak` takes a thousand.
func TestSoak(t *testing.T) {
	steps, seed := 60, uint64(68)
	if n, err := strconv.Atoi(os.Getenv("PHUX_SOAK")); err == nil {
		steps = n
	}
	if n, err := strconv.ParseUint(os.Getenv("PHUX_SOAK_SEED"), 10, 64); err == nil {
		seed = n
	}
	s := &soaker{
		stage: newStage(t), rng: rand.New(rand.NewPCG(seed, 1)), turns: map[string]int{}, done: map[string]int{},
		alive: map[string]soaked{}, broken: map[string]soaked{}, over: map[string]soaked{}, saved: map[string]soaked{}, may: map[string]soaked{}, left: map[string]soaked{},
	}
	s.vars["PHUX_AGENT_AUTOSAVE"], s.vars[clockEnv] = "on", filepath.Join(s.work, "clock")
	config := filepath.Join(s.Getenv("HOME"), ".config", "phux-agent")
	check(s, os.MkdirAll(config, 0o700))
	check(s, os.WriteFile(filepath.Join(config, "config.toml"), []byte("[autosave]\ndebounce_seconds = 1\nheartbeat_minutes = 1\n"), 0o600))
	first := exec.Command("tmux", "new-session", "-d", "-s", "base", "-x", "200", "-y", "50", "-c", s.dir("d0"))
	first.Env = s.environ() // the server's, and so every pane's
	if out, err := first.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.must(s.work, "autosave", "on")
	s.save()
	for s.step = 1; s.step <= steps; s.step++ {
		what := s.take()
		t.Logf("step %d: %s", s.step, what)
		s.done[what]++
		s.compare(what)
	}
	s.must(s.work, "archive", "verify")
	s.powerCut()
	s.restore()
	s.compare("the last restore")
	t.Logf("%d steps with seed %d: %v", steps, seed, s.done)
}

// take takes one step.
func (s *soaker) take() string {
	kinds := []struct {
		name   string
		weight int
		can    bool
		do     func()
	}{
		{"launch", 16, len(s.alive) < 10, s.launch},
		{"turn", 18, len(s.alive) > 0, func() { s.turn(s.any(s.alive)) }},
		{"clear", 5, s.has("claude"), s.clear},
		{"swap", 6, len(s.alive) > 1, s.swap},
		{"break", 5, len(s.alive) > 0, s.breakPane},
		{"rename", 4, len(s.alive) > 0, s.rename},
		{"renumber", 3, true, func() { s.tmux("move-window", "-r", "-t", "=base:") }},
		{"shell", 4, true, func() { s.tmux("new-window", "-d", "-t", "=base:", "-c", s.dir("d0")) }},
		{"close", 5, len(s.alive) > 0, s.closePane},
		{"exit", 4, len(s.alive) > 0, s.exit},
		{"fail", 4, len(s.alive) > 0, s.fail},
		{"resume", 4, len(s.over) > 0, s.resume},
		{"respawn", 4, s.prompted(), s.respawn},
		{"look", 4, true, func() { s.must(s.work, "ps") }},
		{"save", 14, true, s.save},
		{"killed save", 4, true, s.killedSave},
		{"full disk", 3, true, s.fullDisk},
		{"clock", 5, true, s.setClock},
		{"slow shutdown", 3, len(s.alive) > 0, s.slowShutdown},
		{"crash", 7, true, func() { s.powerCut(); s.restore() }},
		{"crash, killed restore", 4, true, func() { s.powerCut(); s.killedRestore(); s.restore() }},
	}
	sum := 0
	for _, k := range kinds {
		if k.can {
			sum += k.weight
		}
	}
	n := s.rng.IntN(sum)
	for _, k := range kinds {
		if !k.can {
			continue
		}
		if n -= k.weight; n < 0 {
			k.do()
			return k.name
		}
	}
	panic("unreachable")
}

// compare waits until what runs is what the model says, each once and in a pane.
func (s *soaker) compare(after string) {
	s.Helper()
	var want []string
	for id, a := range s.alive {
		want = append(want, fmt.Sprintf("%s %s %s %d", a.program, id, a.dir, s.turns[id]))
	}
	slices.Sort(want)
	await(s, fmt.Sprintf("what must run after step %d (%s):\n%s\n", s.step, after, strings.Join(want, "\n")), func() (bool, string) {
		var got []string
		for _, line := range runningAgents(s, nil) {
			at, rest, _ := strings.Cut(line, " ")
			if strings.HasPrefix(at, "(") {
				rest = line
			}
			got = append(got, rest)
		}
		slices.Sort(got)
		return slices.Equal(got, want), strings.Join(got, "\n") + "\n" + s.evidence()
	})
}

// evidence is what a person would look at who has to find out what went wrong.
func (s *soaker) evidence() string {
	events, err := readLog(s.Getenv(fakeagent.LogEnv))
	check(s, err)
	var b strings.Builder
	for _, e := range events[max(0, len(events)-12):] {
		fmt.Fprintf(&b, "  %s %s %s pid %d pane %s %q\n", e.Event, e.Agent, e.ID, e.PID, e.Pane, e.Argv)
	}
	panes, _ := tmuxOut(s, "list-panes", "-a", "-F", "  #{pane_id} #{session_name}:#{window_index}.#{pane_index} pid #{pane_pid} dead=#{pane_dead} #{pane_current_command}")
	ps, _ := s.run(s.work, "ps")
	return b.String() + panes + ps
}

func (s *soaker) any(m map[string]soaked) string {
	ids := slices.Sorted(maps.Keys(m))
	return ids[s.rng.IntN(len(ids))]
}

func (s *soaker) has(program string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(s.alive)), func(a soaked) bool { return a.program == program })
}

func (s *soaker) prompted() bool {
	for id := range s.alive {
		if s.turns[id] > 0 {
			return true
		}
	}
	return false
}

// pane is where an agent runs, as tmux names it, and its place.
func (s *soaker) pane(id string) (pane, place string) {
	s.Helper()
	await(s, "the pane of "+id, func() (bool, string) {
		lines := runningAgents(s, nil)
		for _, line := range lines {
			f := strings.Fields(line)
			if len(f) > 2 && f[2] == id {
				place, pane = f[0], exactTmux{}.panes(s.stage)[f[0]]
			}
		}
		return pane != "", strings.Join(lines, "\n")
	})
	return pane, place
}

func (s *soaker) launch() {
	kind := []struct{ integration, program string }{{"claude-code", "claude"}, {"codex", "codex"}, {"qwen-code", "qwen"}, {"pi", "pi"}}[s.rng.IntN(4)]
	dir := s.dir(fmt.Sprintf("d%d", s.rng.IntN(3)))
	args := []string{"launch", kind.integration, "--session", fmt.Sprintf("work%d", s.rng.IntN(3)), "--json"}
	var got struct{ Terminal, Action string }
	s.decode(s.must(dir, args...), &got)
	if got.Action != "created" {
		s.Fatalf("step %d: %+v", s.step, got)
	}
	id := s.settled(got.Terminal)
	s.alive[id] = soaked{kind.program, dir}
	if kind.program == "codex" {
		s.turn(id) // it has no id that anybody could know before
		s.save()
	}
	s.accept()
}

// settled is the id of the agent that runs in a pane, in its own words.
func (s *soaker) settled(pane string) (id string) {
	s.Helper()
	await(s, "the agent in "+pane, func() (bool, string) {
		at := exactTmux{}.panes(s.stage)
		lines := runningAgents(s, nil)
		for _, line := range lines {
			if f := strings.Fields(line); at[f[0]] == pane {
				id = f[2]
			}
		}
		screen, _ := tmuxOut(s, "capture-pane", "-p", "-t", pane)
		return id != "", strings.Join(lines, "\n") + "\n" + strings.TrimSpace(screen)
	})
	return id
}

func (s *soaker) turn(id string) {
	pane, _ := s.pane(id)
	type1(s, nil, pane, fmt.Sprintf("step %d", s.step))
	s.turns[id]++
}

func (s *soaker) clear() {
	var ids []string
	for id, a := range s.alive {
		if a.program == "claude" {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	id := ids[s.rng.IntN(len(ids))]
	pane, _ := s.pane(id)
	type1(s, nil, pane, "/clear")
	fresh := ""
	await(s, "another conversation in "+pane, func() (bool, string) { fresh = s.settled(pane); return fresh != id, fresh })
	s.alive[fresh], s.over[id] = s.alive[id], s.alive[id]
	s.may[fresh] = s.alive[id]
	s.leave(id, s.alive[id])
	delete(s.alive, id)
	s.turn(fresh)
}

func (s *soaker) swap() {
	a, _ := s.pane(s.any(s.alive))
	b, _ := s.pane(s.any(s.alive))
	if a != b {
		s.tmux("swap-pane", "-d", "-s", a, "-t", b)
	}
}

func (s *soaker) breakPane() {
	pane, place := s.pane(s.any(s.alive))
	window, _, _ := strings.Cut(place[strings.LastIndex(place, ":")+1:], ".")
	session := place[:strings.LastIndex(place, ":")]
	if n := s.tmux("display-message", "-p", "-t", "="+session+":"+window, "#{window_panes}"); n != "1" {
		s.tmux("break-pane", "-d", "-s", pane)
		return
	}
	// Refused where it is that very pane, or where there is no room.
	_, _ = tmuxOut(s, "join-pane", "-d", "-s", pane, "-t", "=base:")
	_, _ = tmuxOut(s, "select-layout", "-t", "=base:", "tiled")
}

func (s *soaker) rename() {
	pane, _ := s.pane(s.any(s.alive))
	s.tmux("rename-window", "-t", pane, fmt.Sprintf("w%d ##{pid} $(touch PWNED); ünï", s.rng.IntN(100)))
}

func (s *soaker) closePane() {
	id := s.any(s.alive)
	pane, _ := s.pane(id)
	s.tmux("kill-pane", "-t", pane)
	s.gone(id)
}

func (s *soaker) exit() {
	id := s.any(s.alive)
	pane, _ := s.pane(id)
	type1(s, nil, pane, "/exit")
	s.left[id] = s.alive[id]
	s.gone(id)
}

func (s *soaker) gone(id string) {
	s.over[id] = s.alive[id]
	s.leave(id, s.alive[id])
	delete(s.alive, id)
}

// leave says that a conversation need not come back: whether it does is autosave's to say, which may
// have seen that it is gone, or not, or not believe it yet.
func (s *soaker) leave(id string, a soaked) {
	delete(s.saved, id)
	s.may[id] = a
}

func (s *soaker) fail() {
	id := s.any(s.alive)
	pane, _ := s.pane(id)
	type1(s, nil, pane, "/die 3")
	s.broken[id] = s.alive[id]
	delete(s.alive, id)
	await(s, "the end of "+id, func() (bool, string) {
		return s.tmux("display-message", "-p", "-t", pane, "#{pane_dead}") == "1", ""
	})
}

// resume takes a conversation up that ended or whose pane was closed.
func (s *soaker) resume() {
	id := s.any(s.over)
	a := s.over[id]
	integration := map[string]string{"claude": "claude-code", "codex": "codex", "qwen": "qwen-code", "pi": "pi"}[a.program]
	if s.turns[id] == 0 {
		delete(s.over, id) // it never began: there is nothing to resume
		return
	}
	var got struct{ Action string }
	s.decode(s.must(a.dir, "launch", integration, "--resume", id, "--session", "base", "--json"), &got)
	if got.Action != "resumed" {
		s.Fatalf("step %d: %+v", s.step, got)
	}
	s.alive[id] = a
	delete(s.over, id)
	delete(s.left, id)
	s.accept()
}

func (s *soaker) respawn() {
	s.must(s.work, "ps") // what a pane holds is proven by looking
	var ids []string
	for id := range s.alive {
		if s.turns[id] > 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	id := ids[s.rng.IntN(len(ids))]
	pane, _ := s.pane(id)
	starts := func() (n int) {
		events, err := readLog(s.Getenv(fakeagent.LogEnv))
		check(s, err)
		for _, e := range events {
			if e.Event == "start" && e.ID == id {
				n++
			}
		}
		return n
	}
	before := starts()
	s.tmux("respawn-pane", "-k", "-t", pane)
	await(s, "the respawned agent", func() (bool, string) { return starts() > before, "" })
}

func (s *soaker) decode(text string, v any) {
	s.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		s.Fatalf("step %d: %v in %q", s.step, err, text)
	}
}

// seen is what a save sees now, and a restore has to bring back.
func (s *soaker) seen() map[string]soaked {
	out := maps.Clone(s.alive)
	maps.Copy(out, s.broken)
	return out
}

func (s *soaker) save() {
	s.Helper()
	out, code := s.run(s.work, "save", "--json")
	var got struct {
		State   string
		Records int
	}
	s.decode(out, &got)
	if code != 0 && (code != 3 || got.State == "good") {
		s.Fatalf("step %d: save: exit %d\n%s", s.step, code, out)
	}
	s.accept()
}

// accept keeps the last save where it was held: a person closed all those panes. What is in it then is
// what runs or failed, and what waits.
func (s *soaker) accept() {
	s.Helper()
	s.saved = s.seen()
	var got struct {
		State   string
		Records int
	}
	out, code := s.run(s.work, "save", "--accept", "--json")
	if s.decode(out, &got); code != 0 || got.State != "good" || got.Records < len(s.saved) {
		s.Fatalf("step %d: a save of %d conversations: exit %d\n%s", s.step, len(s.saved), code, out)
	}
	live, pending := s.newest()
	for id := range s.saved {
		if live[id] != 1 {
			s.Fatalf("step %d: %s is %d times in the save", s.step, id, live[id])
		}
	}
	known := maps.Clone(s.may)
	maps.Copy(known, s.over)
	s.may = maps.Clone(s.left)
	for id := range pending {
		a, ok := known[id]
		if !ok {
			s.Fatalf("step %d: %s waits in the save, and nobody knows why", s.step, id)
		}
		s.may[id] = a
	}
}

// newest is what the newest generation holds, by native id: how often live, and how often waiting.
func (s *soaker) newest() (live, pending map[string]int) {
	s.Helper()
	var doc struct {
		Archive struct {
			Sessions []struct {
				Pending *struct{}
				Windows []struct {
					Panes []struct {
						AgentSession *struct {
							NativeID string `json:"native_id"`
						} `json:"agent_session"`
						Agent *struct{ State string }
					}
				}
			}
		}
	}
	s.decode(s.must(s.work, "archive", "show", "--json"), &doc)
	live, pending = map[string]int{}, map[string]int{}
	for _, se := range doc.Archive.Sessions {
		for _, w := range se.Windows {
			for _, p := range w.Panes {
				switch {
				case p.AgentSession == nil || p.Agent != nil && p.Agent.State == "ended":
				case se.Pending != nil || p.Agent != nil && p.Agent.State == "pending":
					pending[p.AgentSession.NativeID]++
				default:
					live[p.AgentSession.NativeID]++
				}
			}
		}
	}
	return live, pending
}

// generations are the numbers of the good ones and of all.
func (s *soaker) generations() (all int, newest uint64) {
	s.Helper()
	var doc struct{ Generations []struct{ Generation uint64 } }
	s.decode(s.must(s.work, "archive", "list", "--json"), &doc)
	for _, g := range doc.Generations {
		newest = max(newest, g.Generation)
	}
	return len(doc.Generations), newest
}

// setClock sets the clock by up to years, as a machine does that has lost its battery, or is told the
// time late; or back to what it is. No save may take the history for old.
func (s *soaker) setClock() {
	before, _ := s.generations()
	const day = 24 * time.Hour
	s.set = []time.Duration{0, time.Minute, -time.Minute, day, -day, 365 * day, -365 * day, 20 * 365 * day}[s.rng.IntN(8)]
	check(s, os.WriteFile(s.Getenv(clockEnv), []byte(strconv.Itoa(int(s.set/time.Second))), 0o600))
	s.save()
	if after, _ := s.generations(); after < before-3 {
		s.Fatalf("step %d: the clock was set by %s, and of %d generations %d are left", s.step, s.set, before, after)
	}
}

// slowShutdown ends agents one by one, with an autosave after each, and then the machine: what a
// restore brings is what was there before.
func (s *soaker) slowShutdown() {
	s.save()
	panes := map[string]string{}
	for id := range s.alive {
		panes[id], _ = s.pane(id)
	}
	ids := slices.Sorted(maps.Keys(panes))
	s.rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	for _, id := range ids[:min(len(ids), 1+s.rng.IntN(3))] {
		_, before := s.generations()
		s.tmux("kill-pane", "-t", panes[id])
		await(s, "the autosave after "+id+" is gone", func() (bool, string) {
			_, now := s.generations()
			out, _ := s.run(s.work, "autosave", "status")
			return now > before, out
		})
	}
	s.powerCut()
	s.restore()
}

// killedSave ends a save at any moment. Which of two generations is the last one is open then;
// the save after it says.
func (s *soaker) killedSave() {
	s.killed("save")
	s.save()
}

func (s *soaker) killed(args ...string) {
	cmd := exec.Command("phux-agent", args...)
	cmd.Dir, cmd.Env = s.work, s.environ()
	check(s, cmd.Start())
	time.Sleep(time.Duration(s.rng.IntN(150)) * time.Millisecond) // the moment is what is random
	_ = cmd.Process.Signal(syscall.SIGKILL)
	_ = cmd.Wait()
}

// fullDisk lets no byte be written: the save fails, and what was saved stays.
func (s *soaker) fullDisk() {
	s.tmux("new-window", "-d", "-t", "=base:", "-n", fmt.Sprint("full", s.step)) // so that there is something to write
	cmd := exec.Command("sh", "-c", `ulimit -f 0; exec phux-agent save`)
	cmd.Dir, cmd.Env = s.work, s.environ()
	if out, err := cmd.CombinedOutput(); err == nil {
		s.Fatalf("step %d: a save without room: %s", s.step, out)
	}
}

func (s *soaker) powerCut() { powerCut(s, nil) }

// killedRestore ends a restore at any moment. Every session stands whole afterwards, or not at all.
func (s *soaker) killedRestore() { s.killed("restore", "--no-wait") }

func (s *soaker) restore() {
	s.Helper()
	var plan struct {
		Sessions []struct {
			Panes []struct {
				Verdict string
				Record  *struct {
					NativeID string `json:"native_id"`
				}
			}
		}
	}
	out, _ := s.run(s.work, "restore", "--plan", "--json")
	s.decode(out, &plan)
	records := map[string]int{}
	for _, se := range plan.Sessions {
		for _, p := range se.Panes {
			if p.Record != nil && p.Verdict != "ended" {
				records[p.Record.NativeID]++
			}
		}
	}
	for id := range s.saved {
		if records[id] != 1 {
			s.Fatalf("step %d: %s is %d times in what a restore would use\n%s", s.step, id, records[id], out)
		}
	}
	back := maps.Clone(s.saved)
	for id, n := range records {
		a, ok := s.may[id]
		if _, known := back[id]; known {
			continue
		}
		if !ok || n != 1 {
			s.Fatalf("step %d: %s is %d times in what a restore would use, and must not be\n%s", s.step, id, n, out)
		}
		back[id] = a
	}
	if out, code := s.run(s.work, "restore", "--json"); code != 0 {
		s.Fatalf("step %d: restore: exit %d\n%s", s.step, code, out)
	}
	for id, a := range s.alive {
		s.over[id] = a // unless it is back
	}
	s.alive, s.broken, s.left = back, map[string]soaked{}, map[string]soaked{}
	for id := range s.alive {
		delete(s.over, id)
		delete(s.may, id)
	}
	s.saved = s.seen()
	if _, err := os.Stat(filepath.Join(s.work, "PWNED")); err == nil {
		s.Fatalf("step %d: a name was run by a shell", s.step)
	}
}
