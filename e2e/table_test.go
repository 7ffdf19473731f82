//go:build e2e

package e2e

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/phux-agent/phux-agent/internal/mockmodel"
	"github.com/phux-agent/phux-agent/internal/proc"
)

// never launches an agent that is not prompted.
func never(t *testing.T, a *agent) (*stage, *pane) {
	s := newStage(t, a)
	return s, s.launch(a, s.dir("api"))
}

// TestRealClaudeNever: launched and never prompted, claude takes the same id again.
func TestRealClaudeNever(t *testing.T) {
	s, p := never(t, claude())
	s.save(1)
	s.powerCut()
	r := s.restore(0)
	s.wants(r, "fresh-same-id running")
	if got := r.Sessions[0].Panes[0].Record.NativeID; got != p.record {
		t.Errorf("came back as %s, launched as %s", got, p.record)
	}
	s.say(p)
	s.save(1)
	s.powerCut()
	s.wants(s.restore(0), "resume running")
	s.say(p)
}

// TestRealCodexNever: an untouched thread of codex has no file and cannot be resumed: the pane
// says so, and nothing runs in it.
func TestRealCodexNever(t *testing.T) {
	s, p := never(t, codex())
	// The lock is held from before the first prompt, so the id is known.
	s.await("the thread's lock", func() (bool, string) {
		held := s.holds(p, "thread-writer-locks")
		return held != "", s.screen(p)
	})
	s.save(1)
	s.powerCut()
	s.wants(s.restore(3), "never-durable placeholder")
	s.shows(p, "never")
	if n := len(s.model.Requests()); n > 0 {
		t.Errorf("%d requests", n)
	}
}

// TestRealGeminiNever: gemini takes a never-prompted id neither as new nor as old.
func TestRealGeminiNever(t *testing.T) {
	s, p := never(t, gemini())
	stub := filepath.Join(s.home, ".gemini", "tmp", "*", "chats", "session-*-"+p.record[:8]+".jsonl")
	s.await("gemini's file of the session", func() (bool, string) { return len(glob(t, stub)) == 1, s.screen(p) })
	s.save(1)
	s.powerCut()
	s.wants(s.restore(3), "never-durable placeholder")
	s.shows(p, "never")
	// And so it is: both ways end with exit status 42.
	for _, option := range []string{"--session-id", "--resume"} {
		out, errs, code := s.exec(p.dir, "gemini", option, p.record, "-p", "hello")
		if code != 42 {
			t.Errorf("gemini %s: exit %d, the template says 42\n%s%s", option, code, out, errs)
		}
	}
}

// TestRealGeminiUnbegun: ended before it wrote its file, gemini takes the same id again.
func TestRealGeminiUnbegun(t *testing.T) {
	s := newStage(t, gemini())
	p := s.started(s.agent, s.dir("api")) // and its prompt is not waited for
	s.save(1)
	s.powerCut()
	if m := glob(t, filepath.Join(s.home, ".gemini", "tmp", "*", "chats", "*")); len(m) > 0 {
		t.Fatalf("gemini was faster than a save: %q", m)
	}
	s.wants(s.restore(0), "fresh-same-id running")
	s.say(p)
	s.save(1)
	if got := s.recordOf(p); got != p.record {
		t.Errorf("came back as %s, launched as %s", got, p.record)
	}
	s.powerCut()
	s.wants(s.restore(0), "resume running")
	s.say(p)
}

// TestRealQwenNever and its like take the same id again, as their templates say.
func TestRealQwenNever(t *testing.T)    { neverPrompted(t, qwen(), "fresh-same-id running") }
func TestRealCopilotNever(t *testing.T) { neverPrompted(t, copilot(), "fresh-same-id running") }
func TestRealPiNever(t *testing.T)      { neverPrompted(t, pi(), "fresh-same-id running") }

// TestRealOpencodeNever: its conversation was imported before it began, so it is there.
func TestRealOpencodeNever(t *testing.T) { neverPrompted(t, opencode(), "resume running") }

func neverPrompted(t *testing.T, a *agent, want string) {
	s, p := never(t, a)
	s.save(1)
	s.powerCut()
	s.wants(s.restore(0), want)
	// A second time, for the first may have left something.
	s.ready(p)
	s.save(1)
	s.powerCut()
	s.wants(s.restore(0), want)
	s.say(p)
	s.save(1)
	if got := s.recordOf(p); got != p.record {
		t.Errorf("came back as %s, launched as %s", got, p.record)
	}
	s.powerCut()
	s.wants(s.restore(0), "resume running")
	s.say(p)
}

// TestRealKimiNever: it has no session before its first message, so there is nothing to bring back:
// the pane says so, and comes back as a shell.
func TestRealKimiNever(t *testing.T) {
	s := newStage(t, kimi())
	s.phux(0, "hooks", "install", s.agent.integration)
	p := s.launch(s.agent, s.dir("api"))
	s.save(0)
	for _, e := range s.ps() {
		if e.Restorable || !strings.Contains(e.Reason, "no id yet") {
			t.Errorf("ps: %+v", e)
		}
	}
	s.powerCut()
	s.wants(s.restore(0), "shell shell")
	s.ended(p)
}

// transcript finds the one file below the home whose name holds the id.
func (s *stage) transcript(id string) string {
	s.Helper()
	var found []string
	_ = filepath.WalkDir(s.home, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.Contains(d.Name(), id) && strings.HasSuffix(path, ".jsonl") {
			found = append(found, path)
		}
		return nil
	})
	if len(found) != 1 {
		s.Fatalf("transcripts of %s: %q", id, found)
	}
	return found[0]
}

// TestRealTranscripts: what became of a conversation's file, against what the real agent does.
func TestRealTranscripts(t *testing.T) {
	for _, a := range []*agent{claude(), codex()} {
		t.Run(a.program, func(t *testing.T) {
			s := newStage(t, a)
			p := s.launch(a, s.dir("api"))
			s.say(p)
			s.save(1)
			id := s.recordOf(p)
			s.powerCut()
			file := s.transcript(id)
			whole, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			damage := map[string]func() error{
				"zero bytes": func() error { return os.WriteFile(file, nil, 0o600) },
				"gone":       func() error { return os.Remove(file) },
			}
			for _, name := range []string{"zero bytes", "gone"} {
				if err := damage[name](); err != nil {
					t.Fatal(err)
				}
				s.wants(s.restore(3), "transcript-missing placeholder")
				s.shows(p, id[:8])
				// The record is still there, and a save carries it on.
				s.phux(0, "save")
				s.powerCut()
				t.Logf("%s: %s", name, "transcript-missing")
			}
			// Back, and so is the pane, by Enter in its placeholder.
			s.wants(s.restore(3), "transcript-missing placeholder")
			if err := os.WriteFile(file, whole, 0o600); err != nil {
				t.Fatal(err)
			}
			s.enter(p)
			s.say(p)
		})
	}
}

// recordOf is the native id of a pane's record.
func (s *stage) recordOf(p *pane) string {
	s.Helper()
	for _, e := range s.ps() {
		if e.place() == p.name && e.Record != nil {
			return e.Record.NativeID
		}
	}
	s.Fatalf("no record in %s", p.name)
	return ""
}

// TestRealClaudeStore: another configuration directory by a profile, and that it is gone or
// another at restore.
func TestRealClaudeStore(t *testing.T) {
	s := newStage(t, claude())
	api := s.dir("api")
	other := s.dir("other-config")
	seedClaude(t, other, []string{api})
	config := filepath.Join(s.home, ".config", "phux-agent", "config.toml")
	profile := func(dir string) {
		write(t, config, "[profiles.away.claude-code]\nenv = {CLAUDE_CONFIG_DIR = \""+dir+"\"}\n")
	}
	profile(other)
	here := s.launch(s.agent, api)
	away := s.launch(s.agent, api, "--profile", "away")
	s.say(here)
	s.say(away)
	s.cleared(away)
	s.say(away)
	s.save(2)
	if file := s.recordOf(away); len(glob(t, filepath.Join(other, "projects", "*", file+".jsonl"))) != 1 {
		t.Errorf("the conversation of the profile is not in its directory")
	}
	s.powerCut()
	// The profile names another directory now: both stores are named, nothing starts there.
	third := s.dir("third-config")
	seedClaude(t, third, []string{api})
	profile(third)
	r := s.restore(3)
	s.wants(r, "resume running", "transcript-missing placeholder")
	for _, dir := range []string{other, third} {
		if !strings.Contains(r.Sessions[0].Panes[1].Reason, dir) {
			t.Errorf("the reason does not name %s: %s", dir, r.Sessions[0].Panes[1].Reason)
		}
	}
	s.say(here)
	// And as it was: Enter brings it back.
	profile(other)
	s.enter(away)
	s.say(away)
	s.save(2)
	s.powerCut()
	s.wants(s.restore(0), "resume running", "resume running")
	s.say(away)
	s.say(here)
}

func glob(t testing.TB, pattern string) []string {
	t.Helper()
	m, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// listed is one pane of ps --json.
type listed struct {
	Terminal, Session, State, Durability, Reason string
	Window, Index                                int
	Restorable                                   bool
	Record                                       *struct {
		NativeID string `json:"native_id"`
	}
}

func (l listed) place() string { return place(l.Session, l.Window, l.Index) }

func (s *stage) ps() []listed {
	s.Helper()
	var got struct{ Panes []listed }
	s.decode(s.phux(0, "ps", "--json"), &got)
	return got.Panes
}

// TestRealGeminiSurvivors: gemini outlives the server's end. Its conversation is live, and a
// restore does not open it a second time; reap ends the survivor, and then it comes back.
func TestRealGeminiSurvivors(t *testing.T) {
	s := newStage(t, gemini())
	p := s.launch(s.agent, s.dir("api"))
	s.say(p)
	s.save(1)
	s.killServer()
	if left := s.processes(); len(left) == 0 {
		t.Fatal("no process of gemini outlived its terminal: survives_hangup is wrong")
	}
	r := s.restore(3)
	s.wants(r, "already-live placeholder")
	if v := r.Sessions[0].Panes[0]; !strings.Contains(v.Reason+v.Hint, "reap") {
		t.Errorf("nothing says how to end the survivor: %+v", v)
	}
	s.phux(0, "reap", "gemini-cli/"+p.record)
	s.enter(p)
	s.say(p)
}

// TestRealGeminiRetention: with gemini's clean-up on, restoring two panes of one directory loses
// a conversation, so they are not restored; a single one is.
func TestRealGeminiRetention(t *testing.T) {
	s := newStage(t, gemini())
	api, web := s.dir("api"), s.dir("web")
	a, b, c := s.launch(s.agent, api), s.launch(s.agent, api), s.launch(s.agent, web)
	for _, p := range []*pane{a, b, c} {
		s.say(p)
	}
	s.save(3)
	s.powerCut()
	seedGemini(t, s.home, []string{api, web}, true)
	s.wants(s.restore(3), "requirement-unmet placeholder", "requirement-unmet placeholder", "resume running")
	s.shows(a, "sessionRetention")
	s.say(c)
	seedGemini(t, s.home, []string{api, web}, false)
	for _, p := range []*pane{a, b} {
		s.enter(p)
		s.say(p)
	}
}

// TestRealCodexDaemon: why the template says --no-daemon. Without it the threads live in a shared
// background process, and a pane's own processes hold no lock that tells which thread it has.
func TestRealCodexDaemon(t *testing.T) {
	s := newStage(t, codex())
	api := s.dir("api")
	s.tmux("new-session", "-d", "-s", "bare", "-c", api, "codex")
	// Its start copies the program, so it takes a while, and codex goes on without it meanwhile.
	s.await("codex's background process", func() (bool, string) {
		var lines []string
		for _, pid := range s.processes() {
			argv, _ := proc.Cmdline(pid)
			lines = append(lines, strings.Join(argv, " "))
		}
		all := strings.Join(lines, "\n")
		return strings.Contains(all, "app-server --listen"), all
	})
	s.tmux("new-window", "-d", "-t", "=bare:1", "-c", api, "codex")
	shared := &pane{agent: s.agent, name: "bare:1.0", dir: api}
	s.panes = append(s.panes, shared)
	s.say(shared)
	own := s.launch(s.agent, api)
	s.say(own)
	if held := s.holds(shared, "thread-writer-locks"); held != "" {
		t.Errorf("without --no-daemon the pane's processes hold %s", held)
	}
	if held := s.holds(own, "thread-writer-locks"); held == "" {
		t.Error("with --no-daemon the pane's processes hold no lock")
	}
	s.save(1) // the pane of ours; the shared one cannot be proven
}

// TestRealClaudeHeadless and its like: a headless run below the agent, in the shell of its pane after
// it ended, and in a neighbour's shell, all in the same directory and with the hooks installed, change
// nothing: its hooks tell of a conversation that is not the pane's.
func TestRealClaudeHeadless(t *testing.T)   { headless(t, claude()) }
func TestRealCodexHeadless(t *testing.T)    { headless(t, codex()) }
func TestRealGeminiHeadless(t *testing.T)   { headless(t, gemini()) }
func TestRealQwenHeadless(t *testing.T)     { headless(t, qwen()) }
func TestRealCopilotHeadless(t *testing.T)  { headless(t, copilot()) }
func TestRealPiHeadless(t *testing.T)       { headless(t, pi()) }
func TestRealKimiHeadless(t *testing.T)     { headless(t, kimi()) }
func TestRealOpencodeHeadless(t *testing.T) { headless(t, opencode()) }

func headless(t *testing.T, a *agent) {
	s := newStage(t, a)
	s.phux(0, "hooks", "install", a.integration)
	api := s.dir("api")
	p := s.started(a, api)
	s.questioned(p)
	s.say(p)
	s.save(1)
	id := s.recordOf(p)
	// By its path: some run a login shell, which has a PATH of its own.
	program := filepath.Join(cache, "node_modules", ".bin", a.headless[0])
	command := func(w string) string {
		return program + " " + strings.Join(a.headless[1:], " ") + " 'tell " + w + "'"
	}
	heard := func(w string, at *pane) {
		again := time.Now().Add(8 * time.Second)
		s.await("the headless run's request", func() (bool, string) {
			if time.Now().After(again) { // as in say
				again = time.Now().Add(45 * time.Second)
				s.enter(at)
			}
			return slices.ContainsFunc(s.model.Requests(), func(r mockmodel.Request) bool { return s.turnOf(r, w) }), s.screen(at)
		})
	}
	unchanged := func(where string) {
		s.save(1)
		if got := s.recordOf(p); got != id {
			t.Errorf("after a headless run %s the record became %s, it was %s", where, got, id)
		}
	}
	// In a neighbour's shell.
	s.tmux("split-window", "-d", "-t", "="+p.name, "-c", api)
	shell := &pane{agent: a, name: "work:0.1", dir: api}
	s.typed(shell, command("zq901z"))
	s.enter(shell)
	heard("zq901z", shell)
	s.ended(shell)
	unchanged("in a neighbour's shell")
	// Below the agent itself, as its shell tool does; some tell the conversation of it.
	if a.bang != "" {
		s.ready(p)
		s.tmux("send-keys", "-t", "="+p.name, "-l", "--", a.bang)
		s.typed(p, command("zq902z"))
		s.enter(p)
		heard("zq902z", p)
		p.beside = append(p.beside, "zq902z")
		s.shows(p, "heard-zq902z")
		if a.modal {
			s.tmux("send-keys", "-t", "="+p.name, "Escape")
		}
		s.ready(p)
		unchanged("below the agent")
	}
	s.say(p)
	s.powerCut()
	s.wants(s.restore(0), "resume running", "shell shell")
	s.say(p)
	// In the pane's own shell, where its agent has ended.
	s.typed(p, cmp.Or(a.leave, "/exit"))
	s.enter(p)
	s.ended(p)
	s.typed(p, command("zq903z"))
	s.enter(p)
	heard("zq903z", p)
	s.ended(p)
	unchanged("in its own shell")
}

// ended waits for a shell's prompt in the last line.
func (s *stage) ended(p *pane) {
	s.Helper()
	s.await("the shell's prompt in "+p.name, func() (bool, string) {
		screen := s.screen(p)
		return prompted.MatchString(screen), screen
	})
}

// prompted is a screen whose last line is a shell's prompt, or some, where Enter was pressed again.
var prompted = regexp.MustCompile(`(?m)^([$#] *)+\n*\z`)

// holds lists the open files of a pane's processes whose path has the part.
func (s *stage) holds(p *pane, part string) string {
	s.Helper()
	root := s.tmux("display-message", "-p", "-t", "="+p.name, "#{pane_pid}")
	var out []string
	for _, pid := range below(s, root) {
		for _, f := range openFiles(pid) {
			if strings.Contains(f, part) {
				out = append(out, f)
			}
		}
	}
	return strings.Join(out, " ")
}

// TestRealCodexUnproven: after codex's own /clear its process has two threads open, and nothing that
// can be read says which one is talked to. So the record stays at what was proven last, the pane
// says so, and that conversation comes back; the other one is not guessed.
func TestRealCodexUnproven(t *testing.T)  { unproven(t, codex()) }
func TestRealPiUnproven(t *testing.T)     { unproven(t, pi()) }
func TestRealGeminiUnproven(t *testing.T) { unproven(t, gemini()) }

// TestRealCodexHooked and its like: with phux-agent's hook installed, the CLI itself tells which
// conversation its prompt went to, and its own /clear is followed.
func TestRealCodexHooked(t *testing.T)  { hooked(t, codex()) }
func TestRealQwenHooked(t *testing.T)   { hooked(t, qwen()) }
func TestRealGeminiHooked(t *testing.T) { hooked(t, gemini()) }
func TestRealPiHooked(t *testing.T)     { hooked(t, pi()) }
func TestRealKimi(t *testing.T)         { hooked(t, kimi()) }

func TestRealOpencodeHooked(t *testing.T) { hooked(t, opencode()) }

// TestRealCodexHooksAnew: an update that lies elsewhere writes the hooks anew, and codex asks for them
// anew. As long as they are not trusted it does not run them: then the pane says that it is
// unconfirmed, and nothing is guessed. Taken out and put in again as they were, they are trusted still.
func TestRealCodexHooksAnew(t *testing.T) {
	s := newStage(t, codex())
	elsewhere := filepath.Join(s.dir("elsewhere"), "phux-agent")
	program, err := os.ReadFile(filepath.Join(bin, "phux-agent"))
	if err == nil {
		err = os.WriteFile(elsewhere, program, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, errs, code := s.exec(s.work, elsewhere, "hooks", "install", "codex"); code != 0 {
		t.Fatal(errs)
	}
	p := s.started(s.agent, s.dir("api"))
	s.questioned(p)
	follows := func(when string) {
		s.say(p)
		s.save(1)
		id := s.recordOf(p)
		s.cleared(p)
		s.say(p)
		s.save(1)
		if got := s.recordOf(p); got == id {
			t.Errorf("%s: its /clear was not followed", when)
		}
		for _, e := range s.ps() {
			if e.Reason != "" {
				t.Errorf("%s: %+v", when, e)
			}
		}
		s.powerCut()
	}
	again := func(who *agent, asks bool) {
		p.agent = who
		before := s.asked
		s.wants(s.restore(0), "resume running")
		if asks {
			s.questioned(p)
			return
		}
		s.say(p)
		if s.asked > before {
			t.Error("codex asked about hooks that it knows")
		}
	}
	follows("installed by another copy")
	if err := os.Remove(elsewhere); err != nil {
		t.Fatal(err)
	}
	if out := s.phux(0, "hooks", "install", "codex"); !strings.Contains(out, "codex asks to review") {
		t.Errorf("the question is not told of:\n%s", out)
	}
	wary := codex()
	wary.asks = []question{
		{regexp.MustCompile(`› 1\. Review hooks`), "Down"},
		{regexp.MustCompile(`› 2\. Trust all`), "Down"},
		{regexp.MustCompile(`› 3\. Continue without trusting`), "Enter"},
	}
	again(wary, true)
	s.say(p)
	s.save(1)
	id, proven := s.recordOf(p), slices.Clone(p.turns)
	s.cleared(p)
	s.say(p)
	s.save(1)
	for _, e := range s.ps() {
		if !strings.Contains(e.Reason, "unconfirmed") || e.Record.NativeID != id {
			t.Errorf("not trusted, and not said: %+v", e)
		}
	}
	s.powerCut()
	again(s.agent, true)
	p.turns = proven
	follows("trusted")
	s.phux(0, "hooks", "uninstall", "codex")
	s.phux(0, "hooks", "install", "codex")
	again(s.agent, false)
	follows("uninstalled and installed again")
	again(s.agent, false)
}

// TestRealCodexTwo and its like: two of one CLI in one directory, in every order of their turns.
func TestRealClaudeTwo(t *testing.T)   { two(t, claude()) }
func TestRealCodexTwo(t *testing.T)    { two(t, codex()) }
func TestRealOpencodeTwo(t *testing.T) { two(t, opencode()) }

func two(t *testing.T, a *agent) {
	s := newStage(t, a)
	api := s.dir("api")
	first, second := s.launch(a, api), s.launch(a, api)
	for _, order := range [][]*pane{{first, second}, {second, first}, {first, second, first}, {second, first, second}} {
		for _, p := range order {
			s.say(p)
		}
		s.save(2)
		s.powerCut()
		s.wants(s.restore(0), "resume running", "resume running")
	}
	s.say(second)
	s.say(first)
}

func hooked(t *testing.T, a *agent) {
	s := newStage(t, a)
	s.phux(0, "hooks", "install", a.integration)
	api := s.dir("api")
	p := s.launch(a, api)
	neighbour := s.launch(a, api)
	s.say(p)
	s.say(neighbour)
	s.cleared(p)
	s.say(p)
	s.save(2)
	s.powerCut()
	s.wants(s.restore(0), "resume running", "resume running")
	s.say(neighbour)
	s.say(p)
	s.cleared(neighbour)
	s.say(neighbour)
	s.say(p)
	s.save(2)
	s.powerCut()
	s.wants(s.restore(0), "resume running", "resume running")
	s.say(p)
	s.say(neighbour)
}

func unproven(t *testing.T, a *agent) {
	s := newStage(t, a)
	p := s.launch(a, s.dir("api"))
	s.say(p)
	s.save(1)
	id, proven := s.recordOf(p), slices.Clone(p.turns)
	s.cleared(p)
	s.say(p)
	s.save(1)
	for _, e := range s.ps() {
		if !strings.Contains(e.Reason, "unconfirmed") {
			t.Errorf("ps does not say that the record is unconfirmed: %+v", e)
		}
	}
	if got := s.recordOf(p); got != id {
		t.Errorf("the record became %s without proof, it was %s", got, id)
	}
	s.powerCut()
	s.wants(s.restore(0), "resume running")
	p.turns = proven
	s.say(p)
}
