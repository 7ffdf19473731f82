package archive

import (
	"fmt"
	"testing"
	"time"
)

// large is a workspace of n panes, four a window, half of them agents.
func large(instance string, n int) *Archive {
	a := &Archive{Host: Host{Kind: "tmux", Version: "3.5a", Server: "tmux-default", Instance: instance, Boot: "b", Machine: "m"}}
	for i := 0; i < n; i += 4 {
		if i%40 == 0 {
			a.Sessions = append(a.Sessions, Session{Name: fmt.Sprintf("session-%d", i/40), Cwd: "/home/user/src"})
		}
		s := &a.Sessions[len(a.Sessions)-1]
		w := Window{Name: "window", Index: i, Layout: chain(4), Cells: "160x40,0,0{40x40,0,0,0,39x40,41,0,1,39x40,81,0,2,39x40,121,0,3}"}
		for j := range 4 {
			p := Pane{Title: "✳ writing the archive", Cwd: "/home/user/src/project", Program: "claude", Cols: 40, Rows: 40}
			if j%2 == 0 {
				id := fmt.Sprintf("0d5c9fd4-3c1d-4b3a-9d55-%012d", i+j)
				p.AgentSession = record(id)
				p.Agent = &Agent{Key: "abcdefghijklmnopqrstuvwxyz", Profile: "default", LaunchCwd: p.Cwd, Store: "0123456789abcdef", Durability: "present", State: StateRunning, ConfirmedAt: noon}
			}
			w.Panes = append(w.Panes, p)
		}
		s.Windows = append(s.Windows, w)
	}
	return a
}

// BenchmarkSave: a save with 50 generations there, changed and unchanged, without waiting for the
// disk and with.
func BenchmarkSave(b *testing.B) {
	for _, panes := range []int{50, 200, 1000} {
		for _, sync := range []bool{false, true} {
			for _, changed := range []bool{false, true} {
				b.Run(fmt.Sprintf("panes=%d/fsync=%v/changed=%v", panes, sync, changed), func(b *testing.B) {
					t := newBench(b)
					a := large("L1", panes)
					title := 0
					save := func() {
						title++
						a.Sessions[0].Windows[0].Panes[0].Title = fmt.Sprint(title)
						t.save(a)
					}
					for range 50 {
						save()
					}
					if sync {
						t.fs = nil
					}
					for b.Loop() {
						if !changed {
							t.save(a)
							continue
						}
						save()
						if _, err := t.Prune(50, 90*24*time.Hour); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	text := mustEncode(b, large("L1", 200))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		mustDecode(b, text)
	}
}

func BenchmarkEncode(b *testing.B) {
	a := large("L1", 200)
	for b.Loop() {
		mustEncode(b, a)
	}
}
