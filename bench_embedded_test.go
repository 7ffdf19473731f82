package phuxagent_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/embedded"
)

// The embedded host beside tmux, dtach, abduco, and a bare pty: what is between a program and the
// person who looks at it. Each client runs in a pty of its own, which is read as fast as it can be.

// window is a client in a terminal of its own, or a bare program in one.
type window struct {
	*bench
	ptmx *os.File
	cmd  *exec.Cmd
	want chan []byte   // what is waited for
	seen chan struct{} // it came
	last atomic.Value  // what was read last
}

const (
	windowCols = 100
	windowRows = 30
)

// open starts a command in a terminal and reads what it shows.
func (s *bench) open(name string, args ...string) *window {
	s.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = s.work, append(s.environ(), "TERM=xterm-256color", "ABDUCO_SOCKET_DIR="+s.vars["XDG_RUNTIME_DIR"])
	ptmx, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: windowCols, Rows: windowRows})
	if err != nil {
		s.Fatal(err)
	}
	w := &window{bench: s, ptmx: ptmx, cmd: cmd, want: make(chan []byte, 1), seen: make(chan struct{}, 1)}
	go w.read()
	s.Cleanup(w.close)
	return w
}

func (w *window) close() {
	w.ptmx.Close()
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
}

func (w *window) read() {
	const most = 64 << 10
	buf := make([]byte, 0, most)
	var want []byte
	for {
		keep := max(len(want)-1, 0)
		if keep < len(buf) {
			buf = append(buf[:0], buf[len(buf)-keep:]...)
		}
		n, err := w.ptmx.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		w.last.Store(string(buf[max(0, len(buf)-1000):]))
		if err != nil {
			return
		}
		select {
		case want = <-w.want:
		default:
		}
		if want != nil && bytes.Contains(buf, want) {
			want = nil
			buf = buf[:0]
			w.seen <- struct{}{}
		}
	}
}

// ask types, and waits for what is to come of it.
func (w *window) ask(typed, want string) {
	w.want <- []byte(want)
	w.say(typed)
	select {
	case <-w.seen:
	case <-time.After(2 * time.Minute):
		w.Fatalf("%s: %q never came of %q, but %q", w.cmd, want, typed, w.last.Load())
	}
}

func (w *window) say(typed string) {
	if _, err := io.WriteString(w.ptmx, typed); err != nil {
		w.Fatal(err)
	}
}

// ready waits until the client shows what is to come of what is typed: one that has only begun may
// lose it.
func (w *window) ready(typed, want string) {
	w.want <- []byte(want)
	for range 600 {
		w.say(typed)
		select {
		case <-w.seen:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
	w.Fatalf("%s: %q never came of %q, but %q", w.cmd, want, typed, w.last.Load())
}

// newHolding is a stage on which scripts run in terminals, so that tmux has a shell.
func newHolding(b *testing.B) *bench {
	b.Helper()
	s := newBench(b)
	conf := "set -g status off\nset -g default-shell /bin/sh\n"
	if err := os.WriteFile(filepath.Join(s.vars["HOME"], ".tmux.conf"), []byte(conf), 0o600); err != nil {
		b.Fatal(err)
	}
	return s
}

// holder is what can hold a script in a terminal.
type holder struct {
	name string
	// hold starts it, and returns the command of a client that shows it.
	hold func(s *bench, name, script string) []string
}

var holders = []holder{
	{"pty", nil},
	{"tmux", func(s *bench, name, script string) []string {
		s.quick("tmux", "-u", "new-session", "-d", "-s", name, "-x", strconv.Itoa(windowCols), "-y", strconv.Itoa(windowRows), script)
		return []string{"tmux", "-u", "attach-session", "-t", "=" + name}
	}},
	{"dtach", func(s *bench, name, script string) []string {
		socket := filepath.Join(s.vars["XDG_RUNTIME_DIR"], "dtach-"+name)
		s.quick("dtach", "-n", socket, "-Ez", "/bin/sh", "-c", s.told(name, script))
		return []string{"dtach", "-a", socket, "-Ez", "-r", "none"}
	}},
	{"abduco", func(s *bench, name, script string) []string {
		cmd := exec.Command("abduco", "-n", name, "/bin/sh", "-c", s.told(name, script))
		cmd.Dir, cmd.Env = s.work, append(s.environ(), "ABDUCO_SOCKET_DIR="+s.vars["XDG_RUNTIME_DIR"])
		if out, err := cmd.CombinedOutput(); err != nil {
			s.Fatalf("abduco: %v: %s", err, out)
		}
		return []string{"abduco", "-a", name}
	}},
	{"ours", func(s *bench, name, script string) []string {
		s.embedded(name, []string{script})
		return []string{"phux-agent", "attach", name}
	}},
}

// told is a script that says its number to who ends it.
func (s *bench) told(name, script string) string {
	return fmt.Sprintf("echo $$ >>%s; %s", filepath.Join(s.vars["XDG_RUNTIME_DIR"], name+".pid"), script)
}

// there are the holders that this machine has; the others are named.
func there(b *testing.B) []holder {
	b.Helper()
	var out []holder
	for _, h := range holders {
		if h.name != "pty" && h.name != "ours" {
			if _, err := exec.LookPath(h.name); err != nil {
				b.Logf("%s IS MISSING (apt-get install %s): there is nothing to compare with it", h.name, h.name)
				continue
			}
		}
		out = append(out, h)
	}
	return out
}

// show is a client that shows the script.
func (s *bench) show(h holder, name, script string) *window {
	s.Helper()
	if h.hold == nil {
		return s.open("/bin/sh", "-c", script)
	}
	client := h.hold(s, name, script)
	return s.open(client[0], client[1:]...)
}

// embedded makes a session of so many windows, a script each, on the embedded host.
func (s *bench) embedded(name string, scripts []string) *embedded.Client {
	s.Helper()
	s.must(s.work, "server", "start")
	ctx := context.Background()
	c, err := embedded.Dial(ctx, embedded.SocketPath(filepath.Join(s.vars["XDG_RUNTIME_DIR"], "phux-agent"), embedded.DefaultName))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { c.Close() })
	var windows []host.WindowSpec
	for _, script := range scripts {
		windows = append(windows, host.WindowSpec{
			Name: "w", Index: -1, Layout: host.Cell{Cols: windowCols, Rows: windowRows},
			Panes: []host.PaneSpec{{Start: host.Start{Mode: host.Program, Argv: []string{"/bin/sh", "-c", script}, Dir: s.work, AfterExit: "hold"}}},
		})
	}
	created, err := c.Create(ctx, host.CreateSession{Name: name, Dir: s.work, Windows: windows})
	if err != nil {
		s.Fatal(err)
	}
	for _, w := range created.Windows {
		if w[0].Err != nil {
			s.Fatal(w[0].Err)
		}
	}
	return c
}

// BenchmarkEmbeddedThroughput is a cat of 100 MB to one client that looks.
func BenchmarkEmbeddedThroughput(b *testing.B) {
	s := newHolding(b)
	const size = 100_000_000
	big := filepath.Join(s.vars["XDG_RUNTIME_DIR"], "big")
	var text bytes.Buffer
	for i := 0; text.Len() < size; i++ {
		fmt.Fprintf(&text, "%09d the quick brown fox jumps over the lazy dog, and what it finds there it writes down\n", i)
	}
	if err := os.WriteFile(big, text.Bytes(), 0o600); err != nil {
		b.Fatal(err)
	}
	script := fmt.Sprintf(`stty -echo; while read x; do [ "$x" = all ] && cat %s; printf '%%s-%%s\n' "$x" shown; done`, big)
	var all []contender
	for _, h := range there(b) {
		w := s.show(h, "big", script)
		w.ready("begin\r", "begin-shown")
		all = append(all, contender{h.name, func() func() {
			w.ready("next\r", "next-shown")
			return func() { w.ask("all\r", "all-shown") }
		}})
	}
	contest(b, all...)
}

// trips is how many keys are pressed, one after the other was shown, in one turn.
const trips = 100

// BenchmarkEmbeddedRoundTrip is the time from a key to what it shows: a hundred of them.
func BenchmarkEmbeddedRoundTrip(b *testing.B) {
	for _, flood := range []bool{false, true} {
		name := "idle"
		if flood {
			name = "flood"
		}
		b.Run(name, func(b *testing.B) {
			s := newHolding(b)
			var all []contender
			for _, h := range there(b) {
				if h.hold == nil && flood {
					continue // it has no other terminal
				}
				// Both sides of one contest pay for the same flood, and for no other's.
				stop := filepath.Join(s.work, h.name+".flooding")
				if flood {
					h.hold(s, "flood", fmt.Sprintf(`while :; do if [ -e %s ]; then timeout 0.2 yes 'the quick brown fox jumps over the lazy dog'; else sleep 0.05; fi; done`, stop))
				}
				w := s.show(h, "keys", "stty raw -echo; exec cat")
				w.ready("V", "V")
				all = append(all, contender{h.name, func() func() {
					if flood {
						if err := os.WriteFile(stop, nil, 0o600); err != nil {
							b.Fatal(err)
						}
						time.Sleep(300 * time.Millisecond) // until it floods
					}
					w.ready("V", "V")
					return func() {
						for i := range trips {
							key := string("QWY"[i%3]) // none of which ends a control sequence
							w.ask(key, key)
						}
						_ = os.Remove(stop)
					}
				}})
			}
			contest(b, all...)
		})
	}
}

// spawns is how many terminals are made in one turn.
const spawns = 20

// BenchmarkEmbeddedSpawn is twenty terminals, one after the other: by forkpty and exec alone, by
// tmux over one control connection, and by ours over one connection, each answered when its
// program runs.
func BenchmarkEmbeddedSpawn(b *testing.B) {
	s := newHolding(b)
	argv := []string{"sleep", forever}
	c := s.embedded("base", []string{"exec sleep " + forever})
	ctx := context.Background()
	s.quick("tmux", "-u", "new-session", "-d", "-s", "base", "sleep", forever)
	control := exec.Command("tmux", "-u", "-C", "attach-session", "-t", "=base")
	control.Dir, control.Env = s.work, s.environ()
	in, err := control.StdinPipe()
	check(s, err)
	out, err := control.StdoutPipe()
	check(s, err)
	check(s, control.Start())
	b.Cleanup(func() { in.Close(); _ = control.Wait() })
	replies := make(chan bool)
	go func() {
		for line := range readLines(out) {
			if strings.HasPrefix(line, "%end ") || strings.HasPrefix(line, "%error ") {
				replies <- strings.HasPrefix(line, "%end ")
			}
		}
	}()
	if !<-replies { // of the attach itself
		b.Fatal("tmux refuses a control client")
	}
	contest(
		b,
		contender{"forkpty", func() func() {
			return func() {
				for range spawns {
					cmd := exec.Command(argv[0], argv[1:]...)
					ptmx, err := pty.Start(cmd)
					check(s, err)
					b.Cleanup(func() { ptmx.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
				}
			}
		}},
		contender{"tmux", func() func() {
			return func() {
				for range spawns {
					_, err := io.WriteString(in, "new-window -d -t base: -- sleep "+forever+"\n")
					check(s, err)
					if !<-replies {
						b.Fatal("tmux refuses a window")
					}
				}
			}
		}},
		contender{"ours", func() func() {
			return func() {
				for range spawns {
					st, err := c.Spawn(ctx, host.Spawn{Session: "base", Background: true, Pane: host.PaneSpec{
						Start: host.Start{Mode: host.Program, Argv: []string{"/bin/sleep", forever}, Dir: s.work, AfterExit: "hold"},
					}})
					check(s, err)
					check(s, st.Err)
				}
			}
		}},
	)
}

func readLines(r io.Reader) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		var rest []byte
		buf := make([]byte, 4096)
		for {
			n, err := r.Read(buf)
			rest = append(rest, buf[:n]...)
			for {
				line, after, ok := bytes.Cut(rest, []byte("\n"))
				if !ok {
					break
				}
				if !yield(string(line)) {
					return
				}
				rest = after
			}
			if err != nil {
				return
			}
		}
	}
}

// held is how many terminals the memory and the rest of a server are measured with.
const held = 500

// BenchmarkEmbeddedMemory is what a server holds in memory for each of 500 terminals, beside what
// it holds with one: after nothing, and after more lines than any scrollback keeps.
func BenchmarkEmbeddedMemory(b *testing.B) {
	for _, written := range []int{0, 3000} {
		b.Run(fmt.Sprintf("lines=%d", written), func(b *testing.B) {
			s := newHolding(b)
			text := fmt.Sprintf("[ %d = 0 ] || seq -f '%%g the quick brown fox jumps over the lazy dog, and more' 1 %d\nexec sleep %s\n", written, written, forever)
			check(s, os.WriteFile(filepath.Join(s.work, "held"), []byte(text), 0o600))
			script := "exec sh " + filepath.Join(s.work, "held")
			many := make([]string, held-1)
			for i := range many {
				many[i] = script
			}
			c := s.embedded("one", []string{script})
			s.quick("tmux", "-u", "new-session", "-d", "-s", "one", "-x", "100", "-y", "30", script)
			tmuxPID, err := strconv.Atoi(s.tmux("display-message", "-p", "#{pid}"))
			check(s, err)
			ours, theirs := s.settled(c.Instance.PID), s.settled(tmuxPID)
			s.embedded("many", many)
			file := filepath.Join(s.work, "many.conf")
			check(s, os.WriteFile(file, []byte(strings.Repeat(fmt.Sprintf("new-window -d -t one: %q\n", script), held-1)), 0o600))
			s.tmux("source-file", file)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(s.settled(tmuxPID)-theirs)/(held-1), "tmux-KiB")
			b.ReportMetric(float64(s.settled(c.Instance.PID)-ours)/(held-1), "ours-KiB")
		})
	}
}

// settled is the memory of a process in KiB, once it has not grown for a while.
func (s *bench) settled(pid int) int {
	s.Helper()
	last, same := -1, 0
	for range 600 {
		now := s.memory(pid)
		if last >= 0 && now <= last+last/200 {
			same++
		} else {
			same = 0
		}
		if last = now; same == 20 {
			return now
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.Fatalf("the memory of process %d does not settle", pid)
	return 0
}

// memory is what a process alone holds, in KiB.
func (s *bench) memory(pid int) int {
	s.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	check(s, err)
	total := 0
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && (f[0] == "Private_Dirty:" || f[0] == "Private_Clean:") {
			n, err := strconv.Atoi(f[1])
			check(s, err)
			total += n
		}
	}
	return total
}

// BenchmarkEmbeddedIdle is how often a server wakes up in five seconds, and how long it runs, with
// 500 terminals in which nothing happens and one client that looks.
func BenchmarkEmbeddedIdle(b *testing.B) {
	s := newHolding(b)
	script := "exec sleep " + forever
	many := make([]string, held)
	for i := range many {
		many[i] = script
	}
	c := s.embedded("idle", many)
	s.open("phux-agent", "attach", "idle")
	s.quick("tmux", "-u", "new-session", "-d", "-s", "idle", script)
	file := filepath.Join(s.work, "many.conf")
	check(s, os.WriteFile(file, []byte(strings.Repeat(fmt.Sprintf("new-window -d -t idle: %q\n", script), held-1)), 0o600))
	s.tmux("source-file", file)
	s.open("tmux", "-u", "attach-session", "-t", "=idle")
	tmuxPID, err := strconv.Atoi(s.tmux("display-message", "-p", "#{pid}"))
	check(s, err)
	s.settled(c.Instance.PID)
	s.settled(tmuxPID)
	time.Sleep(2 * time.Second)
	const during = 5 * time.Second
	ours, theirs := s.wakes(c.Instance.PID), s.wakes(tmuxPID)
	oursCPU, theirsCPU := s.ticks(c.Instance.PID), s.ticks(tmuxPID)
	time.Sleep(during)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(s.wakes(tmuxPID)-theirs), "tmux-wakeups")
	b.ReportMetric(float64(s.wakes(c.Instance.PID)-ours), "ours-wakeups")
	b.ReportMetric(float64(s.ticks(tmuxPID)-theirsCPU)*10, "tmux-cpu-ms")
	b.ReportMetric(float64(s.ticks(c.Instance.PID)-oursCPU)*10, "ours-cpu-ms")
}

// wakes is how often the threads of a process have given up a processor so far.
func (s *bench) wakes(pid int) (n int) {
	s.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	check(s, err)
	for _, f := range files {
		b, err := os.ReadFile(f)
		check(s, err)
		for line := range strings.Lines(string(b)) {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.HasSuffix(k, "ctxt_switches") {
				one, err := strconv.Atoi(strings.TrimSpace(v))
				check(s, err)
				n += one
			}
		}
	}
	return n
}

// ticks is the processor time of a process so far, in hundredths of a second.
func (s *bench) ticks(pid int) int {
	s.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	check(s, err)
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	user, err := strconv.Atoi(f[11])
	check(s, err)
	system, err := strconv.Atoi(f[12])
	check(s, err)
	return user + system
}
