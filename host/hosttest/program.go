package hosttest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"

	"github.com/phux-agent/phux-agent/host"
)

// The first argument, or an environment value, that makes a test binary the suite's program.
const (
	marker    = "hosttest-program"
	markerEnv = "HOSTTEST_PROGRAM" // LOG:NAME; what it does is to stay
)

// Trace is what a program left behind of itself when it began.
type Trace struct {
	Name string
	PID  int
	Args [][]byte // all, the program itself first
	Dir  []byte
	Env  [][]byte
}

// Getenv returns a value of the program's environment.
func (r Trace) Getenv(key string) (string, bool) {
	for _, kv := range r.Env {
		if k, v, _ := strings.Cut(string(kv), "="); k == key {
			return v, true
		}
	}
	return "", false
}

// Main acts as the suite's program where the arguments or the environment say so; ok tells
// whether they did. The program writes its Trace, and then
//
//	stay                 is there until a signal ends it, five minutes at most
//	exit STATUS FILE     ends with that status once FILE exists
//	say TEXT             writes TEXT, and stays
func Main(args []string, stdout io.Writer) (code int, ok bool) {
	if len(args) >= 4 && args[0] == marker {
		return act(args[1], args[2], args[3], args[4:], stdout), true
	}
	if v := os.Getenv(markerEnv); v != "" {
		log, name, _ := strings.Cut(v, ":")
		return act(log, name, "stay", nil, stdout), true
	}
	return 0, false
}

func act(log, name, what string, rest []string, stdout io.Writer) int {
	run := Trace{Name: name, PID: os.Getpid()}
	for _, a := range os.Args {
		run.Args = append(run.Args, []byte(a))
	}
	for _, e := range os.Environ() {
		run.Env = append(run.Env, []byte(e))
	}
	// Not by os.Getwd, which believes $PWD.
	if dir, err := os.Readlink("/proc/self/cwd"); err == nil {
		run.Dir = []byte(dir)
	} else if buf := make([]byte, 8192); true {
		if n, err := unix.Getcwd(buf); err == nil && n > 0 {
			run.Dir = buf[:n-1]
		}
	}
	if err := leave(log, run); err != nil {
		fmt.Fprintln(stdout, err)
		return 99
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGTERM, unix.SIGHUP)
	// A program that a broken body forgets does not live for ever.
	end := time.After(5 * time.Minute)
	if what == "say" && len(rest) > 0 {
		fmt.Fprint(stdout, rest[0])
	}
	if what == "exit" && len(rest) == 2 {
		status, err := strconv.Atoi(rest[0])
		if err != nil {
			return 98
		}
		for {
			if _, err := os.Stat(rest[1]); err == nil {
				return status
			}
			select {
			case <-signals:
				return 97
			case <-end:
				return 97
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	select {
	case <-signals:
	case <-end:
	}
	return 97
}

// leave writes the run under a name that appears when it is whole.
func leave(log string, run Trace) error {
	b, err := json.Marshal(run)
	if err != nil {
		return err
	}
	path := filepath.Join(log, fmt.Sprintf("%s.%d.json", run.Name, run.PID))
	if err := os.WriteFile(path+".part", b, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

// program is a start of the suite's program. Names are plain words.
func (r *rig) program(name, what string, rest ...string) host.Start {
	self, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	return host.Start{
		Mode: host.Program, AfterExit: "hold",
		Argv: append([]string{self, marker, r.log, name, what}, rest...),
	}
}

// runs are all runs of a name so far.
func (r *rig) runs(name string) []Trace {
	r.t.Helper()
	files, err := filepath.Glob(filepath.Join(r.log, name+".*.json"))
	if err != nil {
		r.t.Fatal(err)
	}
	slices.Sort(files)
	var out []Trace
	for _, f := range files {
		b, err := os.ReadFile(f)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var run Trace
		if err == nil {
			err = json.Unmarshal(b, &run)
		}
		if err != nil {
			r.t.Fatal(err)
		}
		out = append(out, run)
	}
	return out
}

// ran waits for the one run of a name.
func (r *rig) ran(name string) Trace {
	r.t.Helper()
	var out []Trace
	r.until(func() string {
		out = r.runs(name)
		if len(out) != 1 {
			return fmt.Sprintf("%s ran %d times, not once", name, len(out))
		}
		return ""
	})
	return out[0]
}

// neverRan proves that programs did not start, and will not: a program that starts after them
// has run.
func (r *rig) neverRan(names ...string) {
	r.t.Helper()
	if r.Caps.NoPrograms {
		return
	}
	r.create(r.one("barrier"))
	r.ran("barrier")
	for _, name := range names {
		if n := len(r.runs(name)); n > 0 {
			r.t.Errorf("%s ran %d times", name, n)
		}
	}
}

// release lets a program end that waits for it.
func (r *rig) release(file string) {
	r.t.Helper()
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		r.t.Fatal(err)
	}
}
