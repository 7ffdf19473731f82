package phuxagent_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/creack/pty"
)

// BenchmarkPick is the picker from its start to the first screen with everything on it, with 200
// agents that run and 1,000 generations, beside `restore --plan` of the same; and its very first screen.
func BenchmarkPick(b *testing.B) {
	s := newBench(b)
	s.workspace(200, true)
	files, err := filepath.Glob(filepath.Join(s.vars["HOME"], ".local", "state", "phux-agent", "archives", "tmux-default", "*.json"))
	if err != nil || len(files) == 0 {
		b.Fatal(err, files)
	}
	last := files[len(files)-1]
	text, err := os.ReadFile(last)
	if err != nil {
		b.Fatal(err)
	}
	var n uint64
	if _, err := fmt.Sscanf(filepath.Base(last), "%d.json", &n); err != nil {
		b.Fatal(err)
	}
	// Older ones of the same size: their names and their sizes are what counts.
	for i := range uint64(1000) {
		if err := os.WriteFile(filepath.Join(filepath.Dir(last), fmt.Sprintf("%020d.json", 2000+i)), text, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	if err := os.Rename(last, filepath.Join(filepath.Dir(last), fmt.Sprintf("%020d.json", 1))); err != nil {
		b.Fatal(err)
	}
	s.tmux("rename-window", "-t", "=bench:0", "again")
	s.must(s.work, "save", "--accept")
	var first, whole []float64
	painted := func() {
		cmd := exec.Command("phux-agent", "pick")
		cmd.Dir, cmd.Env = s.work, s.environ()
		start := time.Now()
		f, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
		if err != nil {
			b.Fatal(err)
		}
		var seen []byte
		buf := make([]byte, 1<<16)
		begun := false
		for !bytes.Contains(seen, []byte("generation")) || !bytes.Contains(seen, []byte("bench")) {
			k, err := f.Read(buf)
			if err != nil {
				b.Fatalf("%v\n%q", err, seen)
			}
			if seen = append(seen, buf[:k]...); !begun && bytes.Contains(seen, []byte("reading")) {
				begun = true
				first = append(first, float64(time.Since(start).Microseconds())/1000)
			}
		}
		whole = append(whole, float64(time.Since(start).Microseconds())/1000)
		_, _ = f.Write([]byte("q"))
		for err == nil {
			_, err = f.Read(buf)
		}
		_ = cmd.Wait()
		_ = f.Close()
	}
	var plan []float64
	for range fewestTurns {
		painted()
		cmd := exec.Command("phux-agent", "restore", "--plan")
		cmd.Dir, cmd.Env = s.work, s.environ()
		start := time.Now()
		_ = cmd.Run() // it says that they run already
		plan = append(plan, float64(time.Since(start).Microseconds())/1000)
	}
	b.ReportMetric(0, "ns/op")
	report := func(name string, d []float64) {
		if slices.Sort(d); len(d) > 0 {
			b.ReportMetric(d[len(d)/2], name)
		}
	}
	report("plan-ms", plan)
	report("first-screen-ms", first)
	report("whole-screen-ms", whole)
}
