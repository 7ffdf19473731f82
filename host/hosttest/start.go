package hosttest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

// words are arguments that no host may change a byte of.
func words() []string {
	all := make([]byte, 255)
	for i := range all {
		all[i] = byte(i + 1)
	}
	return []string{
		"", "a b", "$HOME", "${HOME}", "`id`", "#{pid}", "#(touch x)", "##", "#", ";", "semi;", "semi\\;", "last\\", "'", `"`, `'"'`, "a\nb", "\n", "\t", "%", "%%", "~", "{a}", "{", "}",
		"\\", "\\\\", "-x", "--", "--help", "#c", "*", "?", "[a]", "!", "&", "|", "<", ">", "(", ")", "ünïcödé 漢字 🙂", "\xff\xfe", "\x1b[31m", "\r", "=", string(all), strings.Repeat("long ", 3000),
	}
}

func strs(bs [][]byte) []string {
	var out []string
	for _, b := range bs {
		out = append(out, string(b))
	}
	return out
}

var programTests = []test{
	{name: "arguments byte for byte", programs: true, run: func(r *rig) {
		start := r.program("a", "stay", words()...)
		r.create(sessionOf("work", host.PaneSpec{Start: start}))
		if diff := cmp.Diff(start.Argv, strs(r.ran("a").Args)); diff != "" {
			r.t.Errorf("created (-want +got):\n%s", diff)
		}
		start = r.program("b", "stay", words()...)
		r.spawn(host.Spawn{Session: "work", Pane: host.PaneSpec{Start: start}})
		if diff := cmp.Diff(start.Argv, strs(r.ran("b").Args)); diff != "" {
			r.t.Errorf("spawned (-want +got):\n%s", diff)
		}
	}},
	{name: "one word", programs: true, run: func(r *rig) {
		// A single word must not become a shell's command line.
		for i, name := range []string{"agent", "a gent", "agent;", "$(touch x)", "#{pid}", "a'b\"c"} {
			program := filepath.Join(r.dir("bin"), name)
			self, err := os.Executable()
			if err != nil {
				r.t.Fatal(err)
			}
			if err := os.Symlink(self, program); err != nil {
				r.t.Fatal(err)
			}
			run := fmt.Sprintf("w%d", i)
			r.create(sessionOf(run, host.PaneSpec{Start: host.Start{
				Mode: host.Program, Argv: []string{program}, Set: []string{markerEnv + "=" + r.log + ":" + run},
			}}))
			if diff := cmp.Diff([]string{program}, strs(r.ran(run).Args)); diff != "" {
				r.t.Errorf("%q (-want +got):\n%s", name, diff)
			}
		}
	}},
	{name: "environment", programs: true, run: func(r *rig) {
		// What the server had inherited of ours must not reach a pane.
		start := r.program("a", "stay")
		start.Set = []string{
			"HOSTTEST_A=1", "HOSTTEST_B=a b;c'd\"$HOME#{pid}\nx\xff", "PATH=/hosttest/bin:/bin", "HOSTTEST_EMPTY=", "TERM_PROGRAM=hosttest", "PHUX_OWN_SESSION_ID=mine", "HOSTTEST_LAST=;",
		}
		start.Unset = []string{scrubbed, "HOME", "HOSTTEST_NOT_THERE"}
		out := r.create(sessionOf("work", host.PaneSpec{Start: start}))
		run := r.ran("a")
		for _, kv := range start.Set {
			k, v, _ := strings.Cut(kv, "=")
			if got, ok := run.Getenv(k); !ok || got != v {
				r.t.Errorf("%s is %q (there: %v), not %q", k, got, ok, v)
			}
		}
		for _, k := range append(start.Unset, inherited) {
			if got, ok := run.Getenv(k); ok {
				r.t.Errorf("%s is there: %q", k, got)
			}
		}
		if got, _ := run.Getenv(host.BirthEnv); got != out.Windows[0][0].Nonce {
			r.t.Errorf("%s is %q, the nonce %q", host.BirthEnv, got, out.Windows[0][0].Nonce)
		}
		seen := make(map[string]bool)
		for _, kv := range strs(run.Env) {
			k, _, _ := strings.Cut(kv, "=")
			if seen[k] {
				r.t.Errorf("%s stands twice", k)
			}
			seen[k] = true
		}
		// Another pane of the session has none of it.
		r.spawn(host.Spawn{Session: "work", Pane: host.PaneSpec{Start: r.program("b", "stay")}})
		for _, kv := range start.Set {
			k, v, _ := strings.Cut(kv, "=")
			if got, ok := r.ran("b").Getenv(k); ok && got == v && k != "PATH" {
				r.t.Errorf("%s reaches another pane", k)
			}
		}
	}},
	{name: "environment is in nobody's arguments", programs: true, run: func(r *rig) {
		if runtime.GOOS != "linux" {
			r.t.Skip("no /proc")
		}
		secret := fmt.Sprintf("secret-%d-%s", os.Getpid(), filepath.Base(r.log)+"-value")
		ctx, cancel := context.WithCancel(r.ctx)
		var all sync.WaitGroup
		found := make(chan string, 1)
		all.Go(func() {
			for ctx.Err() == nil {
				files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
				for _, f := range files {
					if b, _ := os.ReadFile(f); bytes.Contains(b, []byte(secret)) {
						select {
						case found <- fmt.Sprintf("%s: %q", f, b):
						default:
						}
					}
				}
			}
		})
		start := r.program("a", "stay")
		start.Set = []string{"HOSTTEST_SECRET=" + secret}
		r.create(sessionOf("work", host.PaneSpec{Start: start, Meta: records("a")}))
		r.ran("a")
		for i := range 5 {
			name := fmt.Sprintf("b%d", i)
			start := r.program(name, "stay")
			start.Set = []string{"HOSTTEST_SECRET=" + secret}
			r.spawn(host.Spawn{Session: "work", Pane: host.PaneSpec{Start: start, Meta: records(name)}})
			if got, _ := r.ran(name).Getenv("HOSTTEST_SECRET"); got != secret {
				r.t.Errorf("it is %q", got)
			}
		}
		cancel()
		all.Wait()
		select {
		case where := <-found:
			r.t.Errorf("an environment value in %s", where)
		default:
		}
	}},
	{name: "directory byte for byte", programs: true, run: func(r *rig) {
		r.create(r.one("base"))
		for i, name := range dirs {
			dir := r.dir(name)
			run := fmt.Sprintf("d%d", i)
			start := r.program(run, "stay")
			start.Dir = dir
			c := sessionOf(run, host.PaneSpec{Start: start})
			t := r.create(c).Windows[0][0].Terminal
			if got := string(r.ran(run).Dir); got != dir {
				r.t.Errorf("created in %q, not %q", got, dir)
			}
			if got := r.pane(t).Dir; got != dir && r.shows("dir", dir) {
				r.t.Errorf("seen in %q, not %q", got, dir)
			}
			start = r.program(run+"s", "stay")
			start.Dir = dir
			r.spawn(host.Spawn{Session: "base", Pane: host.PaneSpec{Start: start}})
			if got := string(r.ran(run + "s").Dir); got != dir {
				r.t.Errorf("spawned in %q, not %q", got, dir)
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
				r.t.Errorf("%q has %v, %v", dir, entries, err)
			}
		}
	}},
	{name: "shell in its directory", programs: true, run: func(r *rig) {
		var panes []host.PaneSpec
		for _, name := range dirs {
			panes = append(panes, host.PaneSpec{Start: host.Start{Dir: r.dir(name)}})
		}
		out := r.create(sessionOf("work", panes...))
		for i := range panes {
			want := panes[i].Start.Dir
			r.until(func() string {
				p := r.pane(out.Windows[0][i].Terminal)
				if dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", p.PID)); err == nil && dir != want {
					return fmt.Sprintf("the shell is in %q, not %q", dir, want)
				}
				if p.Dir != want && r.shows("dir", want) {
					return fmt.Sprintf("the shell is seen in %q, not %q", p.Dir, want)
				}
				if p.Dead || p.Waiting {
					return fmt.Sprintf("the shell is %+v", p)
				}
				return ""
			})
		}
	}},
	{name: "a directory that is deleted", programs: true, run: func(r *rig) {
		dir := r.dir("gone")
		start := r.program("a", "stay")
		start.Dir = dir
		t := r.create(sessionOf("work", host.PaneSpec{Start: start})).Windows[0][0].Terminal
		r.ran("a")
		if err := os.Remove(dir); err != nil {
			r.t.Fatal(err)
		}
		if p := r.pane(t); p.Dir != dir || !p.DirGone {
			r.t.Errorf("directory %q, gone: %v", p.Dir, p.DirGone)
		}
	}},
	{name: "does not start", programs: true, run: func(r *rig) {
		plain := filepath.Join(r.dir("x"), "plain")
		if err := os.WriteFile(plain, []byte("no program"), 0o600); err != nil {
			r.t.Fatal(err)
		}
		starts := map[string]host.Start{
			"no such program":     {Mode: host.Program, Argv: []string{"/nonexistent/agent"}},
			"not a program":       {Mode: host.Program, Argv: []string{plain}},
			"a directory":         {Mode: host.Program, Argv: []string{r.dir("y")}},
			"no such directory":   r.program("never", "stay"),
			"a file as directory": r.program("never", "stay"),
		}
		for name, dir := range map[string]string{"no such directory": "/nonexistent/dir", "a file as directory": plain} {
			s := starts[name]
			s.Dir = dir
			starts[name] = s
		}
		r.create(r.one("base"))
		for name, start := range starts {
			for _, after := range []string{"shell", "hold", "close"} {
				start.AfterExit = after
				out, err := r.Host.Create(r.ctx, sessionOf("work", host.PaneSpec{Start: start, Meta: records(name)}, r.stay(strings.ReplaceAll(name+after, " ", "-"))))
				if err != nil {
					r.t.Fatalf("%s: %v", name, err)
				}
				started := out.Windows[0]
				if started[0].Err == nil || started[1].Err != nil {
					r.t.Errorf("%s, %s: the pane says %v, the one beside %v", name, after, started[0].Err, started[1].Err)
				}
				r.holds(started[0].Terminal, metadata.KeyAgentSession, record(name))
				r.ran(strings.ReplaceAll(name+after, " ", "-"))
				for _, s := range started {
					if err := r.Host.Kill(r.ctx, s.Terminal); err != nil {
						r.t.Fatal(err)
					}
				}
				one, err := r.Host.Spawn(r.ctx, host.Spawn{Session: "base", Pane: host.PaneSpec{Start: start, Meta: records(name)}})
				if err != nil {
					r.t.Fatalf("%s: spawn: %v", name, err)
				}
				if one.Err == nil {
					r.t.Errorf("%s, %s: the spawned pane says that it started", name, after)
				}
				r.holds(one.Terminal, metadata.KeyAgentSession, record(name))
			}
		}
		r.neverRan("never")
	}},
	{name: "shell in no directory", programs: true, run: func(r *rig) {
		start := host.Start{Dir: "/nonexistent/dir"}
		out, err := r.Host.Create(r.ctx, sessionOf("work", host.PaneSpec{Start: start}, r.stay("a")))
		if err != nil {
			r.t.Fatal(err)
		}
		if out.Windows[0][0].Err == nil {
			p := r.pane(out.Windows[0][0].Terminal)
			r.t.Errorf("a shell in a directory that does not exist starts in %q", p.Dir)
		}
	}},
	{name: "after exit", programs: true, run: func(r *rig) {
		r.create(r.one("base"))
		for _, after := range []string{"shell", "hold", "close", "shell-always"} {
			for _, status := range []int{0, 3} {
				name := fmt.Sprintf("%s-%d", after, status)
				file := filepath.Join(r.t.TempDir(), "go")
				start := r.program(name, "exit", strconv.Itoa(status), file)
				start.AfterExit = after
				t := r.spawn(host.Spawn{Session: "base", Pane: host.PaneSpec{Start: start, Meta: records(name)}}).Terminal
				run := r.ran(name)
				if p := r.pane(t); p.Origin != host.Ours || p.Dead || p.PID != run.PID {
					r.t.Errorf("%s: before the exit %+v", name, p)
				}
				r.release(file)
				r.until(func() string {
					p := pane(r.snapshot(), t)
					switch {
					case status == 0 && after == "close":
						if p != nil {
							return fmt.Sprintf("%s: the pane is still there: %+v", name, p)
						}
						return ""
					case p == nil:
						r.t.Fatalf("%s: the pane is gone", name)
					case status == 0 && after == "shell", after == "shell-always":
						if p.Origin != host.Ended || p.Dead || p.PID == run.PID {
							return fmt.Sprintf("%s: not a shell after ours: %+v", name, p)
						}
					default:
						if p.Origin != host.Ours || !p.Dead || p.Exit == nil || p.Exit.Status != status {
							return fmt.Sprintf("%s: not held: %+v, %+v", name, p, p.Exit)
						}
					}
					if !bytes.Equal(p.Meta[metadata.KeyAgentSession], record(name)) {
						r.t.Errorf("%s: the record is %q", name, p.Meta[metadata.KeyAgentSession])
					}
					return ""
				})
			}
		}
	}},
	{name: "killed by a signal", programs: true, run: func(r *rig) {
		t := r.create(r.one("work")).Windows[0][0].Terminal
		run := r.ran("work")
		if err := unix.Kill(run.PID, unix.SIGKILL); err != nil {
			r.t.Fatal(err)
		}
		r.until(func() string {
			p := pane(r.snapshot(), t)
			if p == nil {
				r.t.Fatal("the pane is gone")
			}
			if !p.Dead || p.Exit != nil && p.Exit.Status == 0 {
				return fmt.Sprintf("it is %+v, %+v", p, p.Exit)
			}
			return ""
		})
		r.holds(t, metadata.KeyAgentSession, record("work"))
	}},
	{name: "killed with its terminal", programs: true, run: func(r *rig) {
		r.create(r.one("base"))
		t := r.spawn(host.Spawn{Session: "base", Pane: r.stay("a")}).Terminal
		run := r.ran("a")
		if err := r.Host.Kill(r.ctx, t); err != nil {
			r.t.Fatal(err)
		}
		r.until(func() string {
			if err := unix.Kill(run.PID, 0); err == nil {
				return "the program lives on"
			}
			return ""
		})
	}},
	{name: "placeholder", programs: true, run: func(r *rig) {
		start := host.Start{Mode: host.Placeholder, Reason: "the directory is gone", Hint: "make it again", Argv: r.program("never", "stay").Argv}
		t := r.create(sessionOf("work", host.PaneSpec{Start: start, Meta: records("a")})).Windows[0][0].Terminal
		p := r.pane(t)
		if p.Origin != host.Ours || !p.Waiting || p.Dead {
			r.t.Errorf("it is %+v", p)
		}
		r.holds(t, metadata.KeyAgentSession, record("a"))
		r.neverRan("never")
	}},
	{name: "last words", programs: true, run: func(r *rig) {
		reader, ok := r.Host.(host.Reader)
		if !ok {
			r.t.Skip("this body reads no text")
		}
		t := r.create(sessionOf("work", host.PaneSpec{Start: r.program("a", "say", "line one\r\n\x1b[31mred\x1b[0m #{pid} $HOME;\r\n")})).Windows[0][0].Terminal
		r.until(func() string {
			text, err := reader.LastWords(r.ctx, t, 4096)
			if err != nil {
				r.t.Fatal(err)
			}
			if !strings.Contains(text, "line one") || !strings.Contains(text, "red #{pid} $HOME;") || strings.Contains(text, "\x1b") {
				return fmt.Sprintf("the last words are %q", text)
			}
			return ""
		})
		if text, err := reader.LastWords(r.ctx, t, 5); err != nil || len(text) > 5 {
			r.t.Errorf("five bytes are %q, %v", text, err)
		}
	}},
}

// These stand in the environment of whoever starts a server here.
const (
	inherited = "PHUX_HOSTTEST_SESSION_ID"
	scrubbed  = "HOSTTEST_SCRUBBED"
)
