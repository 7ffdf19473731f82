package phuxagent_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkAutosave is a restore on a server that saves by itself beside one that does not (bare):
// what its hooks cost while sessions are built. The save that follows is not in it.
func BenchmarkAutosave(b *testing.B) {
	for _, n := range []int{50, 200} {
		b.Run(fmt.Sprintf("restore/panes=%d", n), func(b *testing.B) {
			s := newBench(b)
			s.workspace(n, false)
			restore := func(setting string) func() func() {
				return func() func() {
					s.empty()
					// Both find a server that runs, with the hooks or without.
					s.quick("tmux", "-u", "new-session", "-d", "-s", "first", "sleep", forever)
					s.quick("phux-agent", "autosave", setting)
					return func() { s.quick("phux-agent", "restore", "--no-wait") }
				}
			}
			compare(b, restore("off"), restore("on"))
		})
	}
}

// BenchmarkAutosaveIdle is what a server of 200 agents costs in an hour in which nothing changes, in
// CPU time: the heartbeats, each with its save, and what tmux itself takes for the timer.
func BenchmarkAutosaveIdle(b *testing.B) {
	s := newBench(b)
	s.workspace(200, true)
	s.quick("phux-agent", "autosave", "on")
	token, err := tmuxOut(s, "show-options", "-sv", "@phux-auto")
	if err != nil {
		b.Fatal(err)
	}
	out, err := tmuxOut(s, "display-message", "-p", "#{pid}")
	if err != nil {
		b.Fatal(err)
	}
	server, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		b.Fatal(err)
	}
	before := cpu(b, server)
	const beats = 5
	var used time.Duration
	for range beats {
		cmd := exec.Command("phux-agent", "autosave", "run", strings.TrimSpace(token), "beat")
		cmd.Dir, cmd.Env = s.work, s.environ()
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
		used += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	perHour := 4.0
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(used.Milliseconds())/beats, "save-cpu-ms")
	b.ReportMetric(float64((cpu(b, server)-before).Milliseconds())/beats, "tmux-cpu-ms")
	b.ReportMetric(perHour*float64((used+cpu(b, server)-before).Milliseconds())/beats, "cpu-ms/hour")
	b.ReportMetric(perHour, "wakeups/hour")
}

// cpu is the CPU time of a process so far.
func cpu(b *testing.B, pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var ticks int
	for _, i := range []int{11, 12} {
		n, err := strconv.Atoi(f[i])
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
