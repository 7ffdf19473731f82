package phuxagent_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The benchmarks put ours and the bare thing beside each other, in turns, in one run, and
// report medians, and the ratio of the minima, which a busy machine disturbs least: `make bench`.
// Numbers, never assertions. docs/benchmarks.md says what was seen.

var benchPanes = []int{50, 200, 1000}

// Bounds of one comparison. It makes its own turns, so b.N says nothing: -benchtime 1x.
const (
	fewestTurns = 5
	mostTurns   = 40
	benchBudget = 12 * time.Second // of the turns beyond the fewest, preparations included
)

// contender is one of what a contest puts beside each other. turn prepares, and returns what is
// timed.
type contender struct {
	name string
	turn func() func()
}

// contest runs all in turns and reports milliseconds. The last one is ours: how it does beside each
// of the others is reported too.
func contest(b *testing.B, all ...contender) {
	b.Helper()
	took := make([][]float64, len(all))
	start := time.Now()
	for turn := 0; turn < fewestTurns || turn < mostTurns && time.Since(start) < benchBudget; turn++ {
		for i := range all {
			// None is always the one that finds the machine as another left it.
			at := (i + turn) % len(all)
			run := all[at].turn()
			start := time.Now()
			run()
			took[at] = append(took[at], float64(time.Since(start).Microseconds())/1000)
		}
	}
	median := func(d []float64) float64 { return d[len(d)/2] }
	b.ReportMetric(0, "ns/op") // the loop's own time says nothing here
	for i, c := range all {
		slices.Sort(took[i])
		b.ReportMetric(median(took[i]), c.name+"-ms")
	}
	ours := took[len(all)-1]
	for i, c := range all[:len(all)-1] {
		beside := ""
		if len(all) > 2 {
			beside = "-to-" + c.name
		}
		b.ReportMetric(median(ours)/median(took[i]), "ratio"+beside)
		b.ReportMetric(ours[0]/took[i][0], "ratio-of-minima"+beside)
	}
}

// compare is a contest of two.
func compare(b *testing.B, bare, ours func() func()) {
	b.Helper()
	contest(b, contender{"bare", bare}, contender{"ours", ours})
}

// bench is a stage with identities of its own, so that no process of another one is taken for
// its agents, and with the runtime directory on memory, where the system has it.
type bench struct {
	*stage
	first int // its identities begin here
}

var benches int

func newBench(b *testing.B) *bench {
	b.Helper()
	s := newStage(b)
	benches++
	if dir, err := os.MkdirTemp("/dev/shm", "pa"); err == nil {
		b.Cleanup(func() { os.RemoveAll(dir) })
		s.vars["XDG_RUNTIME_DIR"] = dir
	}
	// A restored shell is started as a shell is, and as quickly as what the bare side starts: how
	// long a user's shell takes to read its own files is not what is compared.
	conf := "set -g status off\nset -g default-shell /bin/cat\n"
	if err := os.WriteFile(filepath.Join(s.vars["HOME"], ".tmux.conf"), []byte(conf), 0o600); err != nil {
		b.Fatal(err)
	}
	out := &bench{s, 1_000_000 + benches*10_000}
	out.watched()
	return out
}

// watched lets a process of its own end what runs on the stage, once we have ended it or have been
// killed: an interrupted benchmark would leave servers with hundreds of terminals. Programs that
// hold a terminal in another way write their number to a file *.pid in the runtime directory.
func (s *bench) watched() {
	s.Helper()
	cmd := exec.Command("/bin/sh", "-c", `trap '' HUP INT TERM
read -r _
cat "$XDG_RUNTIME_DIR"/*.pid | xargs kill
tmux kill-server
phux-agent server stop
rm -rf "$XDG_RUNTIME_DIR"`)
	cmd.Env = s.environ()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	us, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { us.Close(); _ = cmd.Wait() })
}

// forever is longer than any identity, so that it is none.
const forever = "99999999"

// empty ends the server and waits for the end of everything that ran in its panes.
func (s *bench) empty() {
	out, err := tmuxOut(s, "list-panes", "-a", "-F", "#{pane_pid}")
	if err != nil {
		return // no server
	}
	killServer(s, nil)
	for _, f := range strings.Fields(out) {
		pid, err := strconv.Atoi(f)
		if err != nil {
			s.Fatal(err)
		}
		await(s, "the end of a pane", func() (bool, string) { return syscall.Kill(pid, 0) != nil || zombie(pid), f })
	}
}

// only takes the windows away that earlier turns added to a workspace of n panes, four to a window.
func (s *bench) only(n int) {
	for {
		out, err := tmuxOut(s, "list-windows", "-t", "=bench:", "-F", "#{window_index}")
		if err != nil {
			s.Fatal(err)
		}
		indexes := strings.Fields(out)
		if len(indexes) <= (n+3)/4 {
			return
		}
		s.tmux("kill-window", "-t", "=bench:"+indexes[len(indexes)-1])
	}
}

// quick runs a command with the stage's environment and wants success.
func (s *bench) quick(name string, args ...string) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = s.work, s.environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		s.Fatalf("%s %q: %v\n%.2000s", name, args, err, out)
	}
}

// fields are what a save reads of each pane.
const fields = "#{session_id} #{session_name} #{session_group} #{session_path} #{session_attached} #{session_created} #{window_id} #{window_index} #{window_name} #{window_active} #{window_zoomed_flag} #{window_layout} #{automatic-rename} #{window_linked} #{pane_id} #{pane_index} #{pane_active} #{pane_pid} #{pane_dead} #{pane_dead_status} #{pane_tty} #{pane_width} #{pane_height} #{pane_title} #{pane_current_path} #{pane_current_command} #{pane_start_command} #{@phux-agent} #{@phux-agent-session} #{@phux-agent-launch}"

// sleeper is a plugin whose agent is sleep(1) and whose identity is the number of seconds: the
// cheapest program that takes an identity.
func (s *bench) sleeper() {
	dir := s.dir("sleeper")
	if err := os.MkdirAll(filepath.Join(dir, "integrations"), 0o700); err != nil {
		s.Fatal(err)
	}
	for name, text := range map[string]string{
		"phux-plugin.toml": "id = \"bench.sleeper\"\nname = \"sleeper\"\nversion = \"1\"\nmin_phux_version = \"0.1.0\"\n",
		"integrations/sleeper.toml": `schema_version = 1
id = "sleeper"
[launch]
command = ["sleep"]
[session_identity]
mode = "native-or-phux"
restore = "external-cli"
native_env = "PHUX_SLEEPER_SESSION_ID"
id_pattern = "^[1-9][0-9]{6}$"
resume_args = ["${PHUX_AGENT_SESSION_ID}"]
[transcript]
root = "~/.sleeper"
paths = ["${PHUX_AGENT_SESSION_ID}"]
[[observe]]
kind = "file"
path = "${root}/run/${PID}.json"
id = "/id"
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			s.Fatal(err)
		}
	}
	s.must(s.work, "plugin", "add", dir)
}

// workspace fills the server with n panes, four to a window, and saves them.
func (s *bench) workspace(n int, agents bool) {
	s.Helper()
	file := filepath.Join(s.work, fmt.Sprintf("w%d.json", n))
	if agents {
		s.sleeper()
		store := filepath.Join(s.vars["HOME"], ".sleeper")
		if err := os.MkdirAll(store, 0o700); err != nil {
			s.Fatal(err)
		}
		for i := range n {
			if err := os.WriteFile(filepath.Join(store, fmt.Sprint(s.first+i)), []byte("x\n"), 0o600); err != nil {
				s.Fatal(err)
			}
		}
	}
	var windows []string
	for w := range (n + 3) / 4 {
		var panes []string
		for p := range min(4, n-4*w) {
			record := ""
			if agents {
				record = fmt.Sprintf(`,"agent_session":{"plugin_id":"bench.sleeper","integration_id":"sleeper","native_id":"%d"},"agent":{"key":"","launch_cwd":%q,"durability":"present","state":"running"}`, s.first+4*w+p, s.work)
			}
			panes = append(panes, fmt.Sprintf(`{"active":%v,"title":"t","cwd":%q,"cols":100,"rows":30%s}`, p == 0, s.work, record))
		}
		windows = append(windows, fmt.Sprintf(`{"name":"w%d","index":%d,"active":%v,"panes":[%s]}`, w, w, w == 0, strings.Join(panes, ",")))
	}
	text := fmt.Sprintf(`{"schema_version":2,"sessions":[{"name":"bench","active":true,"windows":[%s]}]}`, strings.Join(windows, ","))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
	s.must(s.work, "restore", file, "--import", "--no-wait")
	s.must(s.work, "save")
}

// plain is the same workspace as one source-file of plain sleeps: what tmux alone can do.
func (s *bench) plain(n int) string {
	s.Helper()
	var list []string
	for w := range (n + 3) / 4 {
		if w == 0 {
			list = append(list, "new-session -d -s bench -x 100 -y 30 -n w0 -- sleep "+forever)
		} else {
			list = append(list, fmt.Sprintf("new-window -d -t =bench:%d -n w%d -- sleep %s", w, w, forever))
		}
		for range min(4, n-4*w) - 1 {
			list = append(list, fmt.Sprintf("split-window -d -t =bench:%d -- sleep %s", w, forever), fmt.Sprintf("select-layout -t =bench:%d tiled", w))
		}
	}
	file := filepath.Join(s.work, "plain.conf")
	if err := os.WriteFile(file, []byte(strings.Join(list, "\n")+"\n"), 0o600); err != nil {
		s.Fatal(err)
	}
	return file
}

func BenchmarkSave(b *testing.B) {
	for _, agents := range []bool{false, true} {
		for _, n := range benchPanes {
			b.Run(fmt.Sprintf("%s/panes=%d", kind(agents), n), func(b *testing.B) {
				s := newBench(b)
				s.workspace(n, agents)
				i := 0
				compare(b,
					func() func() { return func() { s.quick("tmux", "-u", "list-panes", "-a", "-F", fields) } },
					func() func() {
						// Something changes, or nothing would be written.
						i++
						s.tmux("rename-window", "-t", "=bench:0", fmt.Sprint("n", i))
						return func() { s.quick("phux-agent", "save") }
					})
			})
		}
	}
}

func kind(agents bool) string {
	if agents {
		return "agents"
	}
	return "shells"
}

// BenchmarkRestore leaves out the settle time (--no-wait): two seconds in which agents are
// watched say nothing. Everything else is in: claims, probes, the gate, each agent seen started,
// and the generation that is saved at the end.
func BenchmarkRestore(b *testing.B) {
	for _, agents := range []bool{false, true} {
		for _, n := range benchPanes {
			b.Run(fmt.Sprintf("%s/panes=%d", kind(agents), n), func(b *testing.B) {
				s := newBench(b)
				s.workspace(n, agents)
				plain := s.plain(n)
				compare(b,
					func() func() {
						s.empty()
						return func() { s.quick("tmux", "-u", "start-server", ";", "source-file", plain) }
					},
					func() func() {
						s.empty()
						return func() { s.quick("phux-agent", "restore", "--no-wait") }
					})
			})
		}
	}
}

// BenchmarkLaunch is everything, the save at the end included, which looks at every pane.
func BenchmarkLaunch(b *testing.B) {
	for _, n := range []int{1, 200} {
		b.Run(fmt.Sprintf("panes=%d", n), func(b *testing.B) {
			s := newBench(b)
			s.workspace(n, true)
			id := s.first + 5000
			compare(b,
				func() func() {
					s.only(n)
					return func() { s.quick("tmux", "-u", "new-window", "-d", "-t", "=bench:", "--", "sleep", forever) }
				},
				func() func() {
					id++
					path := filepath.Join(s.vars["HOME"], ".sleeper", fmt.Sprint(id))
					if err := os.WriteFile(path, []byte("x\n"), 0o600); err != nil {
						b.Fatal(err)
					}
					s.only(n)
					return func() {
						s.quick("phux-agent", "launch", "sleeper", "--session", "bench", "--resume", fmt.Sprint(id))
					}
				})
		})
	}
}

// BenchmarkStart is the start-up of the program against that of /bin/true.
func BenchmarkStart(b *testing.B) {
	b.Run("version", func(b *testing.B) {
		s := newBench(b)
		compare(b, func() func() { return func() { s.quick("true") } }, func() func() { return func() { s.quick("phux-agent", "version") } })
	})
	// hook outside of any pane: what every call pays before it asks a server. The aim is 4 ms.
	b.Run("hook", func(b *testing.B) {
		s := newBench(b)
		compare(b, func() func() { return func() { s.quick("true") } }, func() func() { return func() { s.quick("phux-agent", "hook", "codex", "Stop") } })
	})
	// pane-exec refuses bad arguments at the end of the same start-up that a pane pays.
	b.Run("pane-exec", func(b *testing.B) {
		s := newBench(b)
		compare(b, func() func() { return func() { s.quick("true") } }, func() func() {
			return func() {
				cmd := exec.Command("phux-agent", "pane-exec")
				cmd.Env = s.environ()
				_ = cmd.Run() // it refuses: that is the end of the path
			}
		})
	})
}
