//go:build e2e

// Package e2e runs phux-agent with the real agents, in a real tmux, against the project's own
// model server. The judge is the model server: it keeps the history that each prompt came with,
// and a prompt typed into a pane must come with that pane's history and no other.
package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/phux-agent/phux-agent/internal/mockmodel"
	"github.com/phux-agent/phux-agent/internal/proc"
)

// patience bounds every wait for a thing itself. Real agents on a busy machine are slow: a turn of
// opencode took 80 s where eight processes waited for each processor.
const patience = 4 * time.Minute

var (
	bin     string // where the built phux-agent is
	cache   string // where the agents are
	skipped []string
	missing = map[string]string{} // by program: why it is not there
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "phux-agent-e2e")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	bin = dir
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X main.version=v0.0.0-e2e", "-o", filepath.Join(dir, "phux-agent"), "../cmd/phux-agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	if cache = os.Getenv("PHUX_E2E_CLIS"); cache == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		cache = filepath.Join(base, "phux-agent-e2e")
	}
	code := m.Run()
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		c := counts[name]
		fmt.Fprintf(os.Stderr, "e2e: restored panes of %s: %d came back as themselves, %d were refused as is right, %d wrong\n", name, c.exact, c.refused, c.wrong)
	}
	if len(skipped) > 0 {
		slices.Sort(skipped)
		skipped = slices.Compact(skipped)
		fmt.Fprintf(os.Stderr, "\ne2e: NOT PROVEN, %d agents are not installed: %s\n", len(skipped), strings.Join(skipped, ", "))
	}
	return code
}

// stage is a home, a runtime and a socket directory of its own, with a model server.
type stage struct {
	testing.TB
	agent *agent
	model *mockmodel.Server
	vars  map[string]string
	work  string
	home  string
	panes []*pane
	said  int
	asked int       // questions that were answered
	ran   []proc.ID // before the last end of the server
}

// pane is one agent pane as the test keeps account of it.
type pane struct {
	*agent
	name   string // session:window.pane
	dir    string
	turns  []string // the words that its conversation holds
	record string   // the native id that phux-agent told last
	back   bool     // it was restored, and has had no turn since
	beside []string // words that its conversation may hold, said by something below it
}

// counted is how often a pane was restored, by its program: as itself (its next turn came with the
// history of its conversation, and no other), or refused where that was to be.
type counted struct{ exact, refused, wrong int }

// shared guards what the tests keep together: counts, skipped, missing, and the installation.
var shared sync.Mutex

var counts = map[string]*counted{}

func (p *pane) count(exact, refused, wrong int) {
	shared.Lock()
	defer shared.Unlock()
	c := counts[p.program]
	if c == nil {
		c = &counted{}
		counts[p.program] = c
	}
	c.exact, c.refused, c.wrong = c.exact+exact, c.refused+refused, c.wrong+wrong
}

// newStage makes a stage for one agent, or for several; dirs are its working directories.
func newStage(t *testing.T, agents ...*agent) *stage {
	t.Helper()
	for _, a := range agents {
		a.install(t)
	}
	t.Parallel() // as many at once as -parallel says
	// Not below /tmp: codex starts no daemon for a home there, and people have none there.
	work, err := os.MkdirTemp(cache, "stage")
	if err != nil {
		t.Fatal(err)
	}
	if work, err = filepath.EvalSymlinks(work); err != nil {
		t.Fatal(err)
	}
	// Socket paths are bounded, so these are short.
	short, err := os.MkdirTemp("", "pe")
	if err != nil {
		t.Fatal(err)
	}
	model, err := mockmodel.Start(answer)
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{TB: t, agent: agents[0], model: model, work: work, home: filepath.Join(work, "home")}
	s.vars = map[string]string{
		"HOME": s.home, "XDG_RUNTIME_DIR": filepath.Join(short, "run"), "TMUX_TMPDIR": filepath.Join(short, "tmux"),
		"PATH":  strings.Join([]string{bin, filepath.Join(cache, "node_modules", ".bin"), os.Getenv("PATH")}, string(os.PathListSeparator)),
		"SHELL": "/bin/sh", "TERM": "screen-256color", "LC_ALL": "C.UTF-8", "PS1": "$ ", "NO_COLOR": "", "USER": os.Getenv("USER"),
	}
	for _, d := range []string{s.home, s.vars["XDG_RUNTIME_DIR"], s.vars["TMUX_TMPDIR"]} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range agents {
		maps.Copy(s.vars, a.env(s.home, model.URL()))
		a.seed(t, s.home, model.URL(), []string{s.dir("api"), s.dir("web")})
	}
	write(t, filepath.Join(s.home, ".tmux.conf"), "set -g status off\nset -g default-size 160x48\n"+
		// Not a login shell: /etc/profile would put the PATH of the stage away.
		"set -g default-command /bin/sh\n")
	t.Cleanup(func() {
		if t.Failed() {
			s.witness()
		}
		s.powerCut()
		_ = model.Close()
		for _, d := range []string{short, work} {
			if err := os.RemoveAll(d); err != nil {
				t.Log(err)
			}
		}
	})
	return s
}

// install sees to it that the agent is there in its exact version, or skips the test, and says so.
func (a *agent) install(t *testing.T) {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	for line := range strings.Lines(clis) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == a.program {
			a.pkg, a.version = f[1], f[2]
		}
	}
	if why, ok := missing[a.program]; ok { // The registry was asked once; each time takes long.
		t.Skip(why)
	}
	out, err := exec.Command("../scripts/e2e-install", a.program).CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit) && exit.ExitCode() == 3:
		skipped = append(skipped, a.pkg+"@"+a.version)
		missing[a.program] = fmt.Sprintf("SKIPPED, NOT PROVEN: %s@%s cannot be installed from the npm registry:\n%s", a.pkg, a.version, out)
		t.Skip(missing[a.program])
	default:
		t.Fatalf("e2e-install %s: %v\n%s", a.program, err, out)
	}
}

// word finds the words that a test says: each is said once.
var word = regexp.MustCompile(`zq\d+z`)

// answer is what the model says: the last word that it was told, so that a screen shows which
// prompt was answered, in a form that no prompt has.
func answer(r mockmodel.Request) string {
	words := wordsOf(r)
	if len(words) == 0 {
		return "heard nothing"
	}
	return "heard-" + words[len(words)-1]
}

// wordsOf lists the words of the user that a request held, oldest first.
func wordsOf(r mockmodel.Request) []string {
	var out []string
	for _, u := range r.Users() {
		out = append(out, word.FindAllString(u, -1)...)
	}
	return slices.Compact(out)
}

func (s *stage) dir(name string) string {
	s.Helper()
	d := filepath.Join(s.work, name)
	if err := os.MkdirAll(d, 0o700); err != nil {
		s.Fatal(err)
	}
	return d
}

func (s *stage) environ() []string {
	var env []string
	for k, v := range s.vars {
		if v != "" {
			env = append(env, k+"="+v)
		}
	}
	return env
}

// exec runs a program of the stage in dir.
func (s *stage) exec(dir string, argv ...string) (stdout, stderr string, code int) {
	s.Helper()
	path, err := exec.LookPath(filepath.Join(bin, argv[0]))
	if err != nil {
		path = "/usr/bin/env"
		argv = append([]string{"env"}, argv...)
	}
	cmd := exec.Command(path, argv[1:]...)
	cmd.Dir, cmd.Env = dir, s.environ()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		s.Fatalf("%q: %v", argv, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// phux runs phux-agent and wants one of the exit codes.
func (s *stage) phux(want int, args ...string) string {
	s.Helper()
	defer s.took(time.Now(), "phux-agent "+strings.Join(args, " "))
	out, errs, code := s.exec(s.work, append([]string{"phux-agent"}, args...)...)
	if errs != "" {
		s.Logf("phux-agent %s:\n%s", strings.Join(args, " "), errs)
	}
	if code != want {
		s.Fatalf("phux-agent %s: exit %d, want %d\n%s%s", strings.Join(args, " "), code, want, out, errs)
	}
	return out
}

// took logs how long a step took.
func (s *stage) took(since time.Time, what string) {
	s.Helper()
	s.Logf("%5.1f s  %s", time.Since(since).Seconds(), what)
}

func (s *stage) tmux(args ...string) string {
	s.Helper()
	out, errs, code := s.exec(s.work, append([]string{"tmux", "-u"}, args...)...)
	if code != 0 {
		s.Fatalf("tmux %q: exit %d\n%s%s", args, code, out, errs)
	}
	return strings.TrimRight(out, "\n")
}

// await polls f until it holds.
func (s *stage) await(what string, f func() (ok bool, last string)) {
	s.Helper()
	deadline := time.Now().Add(patience)
	for {
		ok, last := f()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("%s did not come within %v; last:\n%s", what, patience, last)
		}
		time.Sleep(50 * time.Millisecond) // polling the thing itself
	}
}

func (s *stage) screen(p *pane) string {
	s.Helper()
	out, errs, _ := s.exec(s.work, "tmux", "-u", "capture-pane", "-p", "-t", "="+p.name)
	return out + errs
}

// compact is a screen without what wrapping adds.
func compact(screen string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == '\n' || r == '│' || r == '┃' || r == '|' {
			return -1
		}
		return r
	}, screen)
}

func (s *stage) shows(p *pane, what string) {
	s.Helper()
	s.await(fmt.Sprintf("%q on the screen of %s", what, p.name), func() (bool, string) {
		screen := s.screen(p)
		return strings.Contains(compact(screen), compact(what)), screen
	})
}

func (s *stage) ready(p *pane) {
	s.Helper()
	var pending *regexp.Regexp // a key was sent for it, and the screen shows it still
	s.await(fmt.Sprintf("the prompt of %s in %s", p.program, p.name), func() (bool, string) {
		screen := s.screen(p)
		if pending != nil && pending.MatchString(screen) {
			return false, screen // a second key would be the next question's
		}
		pending = nil
		for _, q := range p.agent.asks {
			if q.screen.MatchString(screen) {
				s.tmux("send-keys", "-t", "="+p.name, q.key)
				pending = q.screen
				s.asked++
				return false, screen
			}
		}
		return p.agent.ready.MatchString(screen), screen
	})
}

// questioned waits for the agent's first question, and answers: some put it a moment after their prompt
// shows, and what is typed in between is an answer.
func (s *stage) questioned(p *pane) {
	s.Helper()
	if len(p.asks) > 0 {
		s.await("the question of "+p.name, func() (bool, string) {
			screen := s.screen(p)
			return p.asks[0].screen.MatchString(screen), screen
		})
	}
	s.ready(p)
}

// launched is what launch --json says.
type launched struct {
	Action, Terminal, Session, Reason string
	Restorable                        bool
	Record                            *struct {
		NativeID string `json:"native_id"`
	}
}

// launch starts an agent in a window of its own, or where args say, and waits for its prompt.
func (s *stage) launch(a *agent, dir string, args ...string) *pane {
	s.Helper()
	p := s.started(a, dir, args...)
	s.ready(p)
	return p
}

// started is launch without the wait.
func (s *stage) started(a *agent, dir string, args ...string) *pane {
	s.Helper()
	args = append([]string{"launch", a.integration, "--session", "work", "--cwd", dir, "--json"}, args...)
	var got launched
	s.decode(s.phux(0, args...), &got)
	p := &pane{agent: a, dir: dir, name: s.tmux("display-message", "-p", "-t", got.Terminal, "#{session_name}:#{window_index}.#{pane_index}")}
	if a.lazy && got.Record == nil {
		if got.Restorable || got.Reason == "" {
			s.Errorf("launch %s: restorable %v, reason %q; it has no id yet", a.program, got.Restorable, got.Reason)
		}
	} else if got.Record == nil {
		s.Fatalf("launch %s: no record: %+v", a.program, got)
	} else {
		p.record = got.Record.NativeID
	}
	s.panes = append(s.panes, p)
	return p
}

func (s *stage) decode(text string, v any) {
	s.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		s.Fatalf("%v in:\n%s", err, text)
	}
}

// typed types a line into a pane and waits until it stands there.
func (s *stage) typed(p *pane, text string) {
	s.Helper()
	s.tmux("send-keys", "-t", "="+p.name, "-l", "--", text)
	s.shows(p, text)
}

func (s *stage) enter(p *pane) { s.Helper(); s.tmux("send-keys", "-t", "="+p.name, "Enter") }

// say has one turn in a pane, and wants the model to have seen exactly this pane's conversation.
func (s *stage) say(p *pane) {
	s.Helper()
	s.said++
	w := fmt.Sprintf("zq%dz", s.said)
	defer s.took(time.Now(), "the turn "+w+" of "+p.program)
	s.ready(p)
	s.typed(p, "tell me about "+w)
	before := len(s.model.Requests())
	s.enter(p)
	p.turns = append(p.turns, w)
	again := time.Now().Add(8 * time.Second)
	s.await(fmt.Sprintf("a request of %s with %s", p.name, w), func() (bool, string) {
		for _, r := range s.model.Requests()[before:] {
			if s.turnOf(r, w) {
				got := slices.DeleteFunc(wordsOf(r), func(word string) bool { return slices.Contains(p.beside, word) })
				if p.back && slices.Equal(got, p.turns) {
					p.count(1, 0, 0)
				} else if p.back {
					p.count(0, 0, 1)
				}
				p.back = false
				if !slices.Equal(got, p.turns) {
					s.Errorf("%s %s: the model saw %q, the pane's conversation is %q", p.program, p.name, got, p.turns)
				}
				return true, ""
			}
		}
		if time.Now().After(again) {
			// An Enter right after text can be taken for a pasted newline.
			again = time.Now().Add(45 * time.Second)
			s.Logf("%s: Enter again", p.name)
			s.enter(p)
		}
		return false, s.screen(p)
	})
	s.shows(p, "heard-"+w)
	s.ready(p)
	if p.kept != "" {
		s.await("the turn "+w+" on the disk", func() (bool, string) {
			files := glob(s, filepath.Join(s.home, p.kept))
			return slices.ContainsFunc(files, func(f string) bool {
				b, _ := os.ReadFile(f)
				return strings.Contains(string(b), "heard-"+w)
			}), strings.Join(files, "\n")
		})
	}
}

// turnOf reports whether the request is the agent's own turn about a word: its last words, and
// with tools, which no title or summary has.
func (s *stage) turnOf(r mockmodel.Request, w string) bool {
	words := wordsOf(r)
	return r.Tools > 0 && len(words) > 0 && words[len(words)-1] == w
}

// cleared gives the pane another conversation by the agent's own command.
func (s *stage) cleared(p *pane) {
	s.Helper()
	s.ready(p)
	last := p.turns[len(p.turns)-1]
	s.typed(p, p.agent.clear)
	s.enter(p)
	s.await("an empty conversation in "+p.name, func() (bool, string) {
		screen := s.screen(p)
		return !strings.Contains(compact(screen), "heard-"+last) && !strings.Contains(compact(screen), "\n"+p.agent.clear), screen
	})
	p.turns = nil
	s.ready(p)
}

// saved is what save --json says.
type saved struct {
	Generation, Records, Panes, Pending int
	State, Reason                       string
}

func (s *stage) save(records int) {
	s.Helper()
	var got saved
	s.decode(s.phux(0, "save", "--json"), &got)
	if got.State != "good" || got.Records != records {
		s.Fatalf("save: %+v, want %d records\n%s", got, records, s.phux(0, "ps"))
	}
}

// restored is what restore --json says.
type restored struct {
	Sessions []struct {
		Name, Action, Reason string
		Panes                []verdict
	}
}

type verdict struct {
	Window                        int
	Index                         int
	Verdict, Reason, Hint, Result string
	Record                        *struct {
		NativeID string `json:"native_id"`
	}
}

func (s *stage) restore(code int, args ...string) restored {
	s.Helper()
	var got restored
	s.decode(s.phux(code, append([]string{"restore", "--json"}, args...)...), &got)
	return got
}

// verdicts lists "verdict result" of every pane, in the order of the archive.
func (r restored) verdicts() []string {
	var out []string
	for _, ses := range r.Sessions {
		for _, p := range ses.Panes {
			out = append(out, strings.TrimSpace(p.Verdict+" "+p.Result))
		}
	}
	return out
}

// wants compares the verdicts.
func (s *stage) wants(r restored, want ...string) {
	s.Helper()
	if got := r.verdicts(); !slices.Equal(got, want) {
		for _, p := range s.panes {
			p.count(0, 0, 1)
		}
		s.Fatalf("verdicts %q, want %q\n%+v", got, want, r)
	}
	for i, v := range want { // panes of ours come before shells, in the order of their making
		switch {
		case i >= len(s.panes):
		case strings.HasSuffix(v, " placeholder"):
			s.panes[i].count(0, 1, 0)
		case strings.HasSuffix(v, " running"):
			s.panes[i].back = true
		}
	}
}

// serverPID is the tmux server's; 0 where none runs.
func (s *stage) serverPID() int {
	out, _, code := s.exec(s.work, "tmux", "display-message", "-p", "#{pid}")
	if code != 0 {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(out))
	return pid
}

// killServer ends the tmux server by SIGKILL, and waits for its end. The agents get the hangup of
// their terminals.
func (s *stage) killServer() {
	s.Helper()
	pid := s.serverPID()
	if pid < 2 {
		return
	}
	s.ran = nil
	for _, p := range s.processes() {
		if info, err := proc.Stat(p); err == nil {
			s.ran = append(s.ran, info.ID())
		}
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	s.await("the end of the tmux server", func() (bool, string) { return !alive(pid), "" })
}

func alive(pid int) bool {
	info, err := proc.Stat(pid)
	return err == nil && !info.Dead()
}

// running lists every pane of the server with the process that it started.
func (s *stage) running() string {
	s.Helper()
	return s.tmux("list-panes", "-a", "-F", "#{session_name}:#{window_index}.#{pane_index} #{pane_id} #{pane_pid}")
}

// place is a pane as tmux and people name it.
func place(session string, window, index int) string {
	return fmt.Sprintf("%s:%d.%d", session, window, index)
}

// below lists a process and what descends from it.
func below(s *stage, root string) []int {
	s.Helper()
	table, err := proc.ReadTable()
	if err != nil {
		s.Fatal(err)
	}
	first, err := strconv.Atoi(root)
	if err != nil {
		s.Fatal(err)
	}
	out := []int{first}
	entries, _ := os.ReadDir("/proc")
	for n := 0; n < len(out); n++ {
		for _, e := range entries {
			pid, err := strconv.Atoi(e.Name())
			if info, ok := table.Get(pid); err == nil && ok && info.PPID == out[n] {
				out = append(out, pid)
			}
		}
	}
	return out
}

// openFiles lists the paths that a process holds open.
func openFiles(pid int) []string {
	files, _ := proc.OpenFiles(pid) // of a process that has ended there are none
	var out []string
	for _, f := range files {
		out = append(out, f.Target)
	}
	return out
}

// processes lists what runs in this stage: everything with its home or runtime directory in the
// environment, and everything below a pane.
func (s *stage) processes() []int {
	table, err := proc.ReadTable()
	if err != nil {
		return nil
	}
	own := map[int]bool{os.Getpid(): false}
	if out, _, code := s.exec(s.work, "tmux", "list-panes", "-a", "-F", "#{pane_pid}"); code == 0 {
		for _, f := range strings.Fields(out) {
			if pid, err := strconv.Atoi(f); err == nil {
				own[pid] = true
			}
		}
	}
	entries, _ := os.ReadDir("/proc")
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	for _, pid := range pids {
		if _, known := own[pid]; known {
			continue
		}
		env, _ := proc.Environ(pid)
		if slices.Contains(env, "HOME="+s.home) || slices.Contains(env, "XDG_RUNTIME_DIR="+s.vars["XDG_RUNTIME_DIR"]) {
			own[pid] = true
		}
	}
	for range 8 { // children, and theirs
		for _, pid := range pids {
			if info, ok := table.Get(pid); ok && own[info.PPID] {
				if _, known := own[pid]; !known {
					own[pid] = true
				}
			}
		}
	}
	var out []int
	for pid, mine := range own {
		if mine && alive(pid) {
			out = append(out, pid)
		}
	}
	slices.Sort(out)
	return out
}

// powerCut ends the tmux server and everything that runs in this stage, and clears the runtime
// directory, as a reboot does.
func (s *stage) powerCut() {
	s.Helper()
	mine := s.processes()
	s.killServer()
	for deadline := time.Now().Add(patience); len(mine) > 0 && time.Now().Before(deadline); {
		for _, pid := range mine {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(20 * time.Millisecond) // polling the process table
		// One that is ending shows no environment any more, and is alive for a while yet.
		mine = append(slices.DeleteFunc(mine, func(pid int) bool { return !alive(pid) }), s.processes()...)
		slices.Sort(mine)
		mine = slices.Compact(mine)
	}
	run := s.vars["XDG_RUNTIME_DIR"]
	_ = os.RemoveAll(run)
	_ = os.MkdirAll(run, 0o700)
}

// hungUp waits until every agent has ended by the hangup of its terminal: also one that is ending
// and shows no environment any more.
func (s *stage) hungUp() {
	s.Helper()
	s.await("the agents' end after the hangup", func() (bool, string) {
		var lines []string
		for _, id := range s.ran {
			if proc.Alive(id) {
				lines = append(lines, fmt.Sprintf("%d still", id.PID))
			}
		}
		for _, pid := range s.processes() {
			argv, _ := proc.Cmdline(pid)
			lines = append(lines, fmt.Sprintf("%d %q", pid, argv))
		}
		return len(lines) == 0, strings.Join(lines, "\n")
	})
}

// witness says what there was when a test failed.
func (s *stage) witness() {
	for _, p := range s.panes {
		s.Logf("screen of %s %s:\n%s", p.program, p.name, strings.TrimRight(s.screen(p), "\n"))
	}
	for _, r := range s.model.Requests() {
		s.Logf("request %d %s %s tools %d %s: words %q, reply %q %s", r.N, r.Method, r.Path, r.Tools, r.Session, wordsOf(r), r.Reply, r.Err)
	}
	out, _, _ := s.exec(s.work, "phux-agent", "ps", "--all", "--json")
	s.Logf("ps:\n%s", out)
}
