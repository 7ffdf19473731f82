package phuxagent_test

import (
	"encoding/json"
	"flag"
	"fmt"
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

	"github.com/phux-agent/phux-agent/internal/fakeagent"
	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the golden parts of the scripts")

func TestMain(m *testing.M) {
	commands := map[string]func(){}
	for _, name := range fakeagent.Names() {
		commands[name] = func() { os.Exit(fakeagent.Main(name, os.Args[1:], os.Stdin, os.Stdout)) }
	}
	var suite testscript.TestingM = m
	if commands[filepath.Base(os.Args[0])] == nil {
		dir, err := binaries()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		suite = cleaner{m, dir}
	}
	testscript.Main(suite, commands)
}

// clockEnv leads the tests' phux-agent to a file: of the seconds by which its clock is set.
const clockEnv = "PHUX_TEST_CLOCK"

// binaries puts phux-agent as users get it (but for clockEnv) on the PATH, and, with PHUX_TEST_TMUX, another tmux.
func binaries() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "phux-agent-bin"); err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X main.version=v0.0.0-test -X main.clockVariable="+clockEnv,
		"-o", filepath.Join(dir, "phux-agent"), "./cmd/phux-agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	if other := os.Getenv("PHUX_TEST_TMUX"); other != "" {
		if err := os.Symlink(other, filepath.Join(dir, "tmux")); err != nil {
			return "", err
		}
	}
	return dir, os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// usesTheProgram lets go test know what these tests depend on, so that it does not take an old
// result for one of a program that has changed since, or of another tmux.
var usesTheProgram = sync.OnceFunc(func() {
	_ = os.Getenv("PHUX_TEST_TMUX")
	_ = filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != ".":
			return filepath.SkipDir
		case slices.Contains([]string{".go", ".toml", ".sh", ".mod"}, filepath.Ext(path)):
			_, _ = os.Stat(path)
		}
		return nil
	})
})

// cleaner removes the built binaries: testscript.Main ends the process, so nothing after it can.
type cleaner struct {
	*testing.M
	dir string
}

func (c cleaner) Run() int {
	defer os.RemoveAll(c.dir)
	return c.M.Run()
}

// TestScripts runs the manual: testdata/scripts, one file a scenario, on a real tmux with a
// private socket directory, a private home and no network.
func TestScripts(t *testing.T) {
	usesTheProgram()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/scripts",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setup,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"say":      cmdSay,
			"screen":   cmdScreen,
			"looks":    cmdLooks,
			"modes-of": cmdModesOf,
			"shows":    cmdShows,
			"events":   cmdEvents,
			"agents":   cmdAgents,
			"reboot":   cmdReboot,
			"jsonpath": cmdJSONPath,
			"killed":   cmdKilled,
			"modes":    cmdModes,
			"logged":   cmdLogged,
			"setjson":  cmdSetJSON,
			"editjson": cmdEditJSON,
			"typed":    cmdTyped,
			"enter":    cmdEnter,
			"serving":  cmdServing,
			"shape":    cmdShape,
			"snap":     cmdSnap,
			"until":    cmdUntil,
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "fish":
				_, err := exec.LookPath("fish")
				return err == nil, nil
			case "vim":
				return editor() != "", nil
			case "root":
				return os.Geteuid() == 0, nil
			case "popup": // display-popup -E: 3.2
				out, err := exec.Command("tmux", "list-commands", "display-popup").CombinedOutput()
				return err == nil && len(out) > 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
	})
}

func setup(env *testscript.Env) error {
	after, err := scenery(env.WorkDir, env.Setenv)
	if err != nil {
		return err
	}
	env.Defer(after)
	source, err := os.Getwd()
	if err != nil {
		return err
	}
	env.Setenv("SOURCE", source) // of the project: what is installed from a checkout
	// tmux starts login shells, and /etc/profile sets a PATH of its own.
	profile := "PATH='" + env.Getenv("PATH") + "'\n"
	return os.WriteFile(filepath.Join(env.Getenv("HOME"), ".profile"), []byte(profile), 0o600)
}

// server takes a leading -L NAME off a command's arguments, or --embedded, which stands for the
// embedded host's server instead of tmux's.
func server(args []string) (flags, rest []string) {
	if len(args) > 1 && args[0] == "-L" {
		return args[:2], args[2:]
	}
	if len(args) > 0 && args[0] == onEmbedded {
		return args[:1], args[1:]
	}
	return nil, args
}

// say [-L NAME] TARGET TEXT… types a line into a pane, and waits until a fake agent logged
// that it got it (as a prompt, a rotation or an exit).
func cmdSay(ts *testscript.TestScript, neg bool, args []string) {
	flags, args := server(args)
	if neg || len(args) < 2 {
		ts.Fatalf("usage: say [-L NAME] TARGET TEXT…")
	}
	type1(ts, flags, args[0], strings.Join(args[1:], " "))
}

// screen [-L NAME] TARGET REGEXP waits until the text of a pane, what scrolled away included,
// matches; with ! it must not match now.
func cmdScreen(ts *testscript.TestScript, neg bool, args []string) {
	matchPane(ts, neg, args, "-S", "-")
}

// shows is screen, of what a person sees now: with ! it waits until that does not match.
func cmdShows(ts *testscript.TestScript, neg bool, args []string) {
	if !neg {
		matchPane(ts, false, args)
		return
	}
	flags, rest := server(args)
	if len(rest) != 2 {
		ts.Fatalf("usage: shows [-L NAME] TARGET REGEXP")
	}
	re, err := regexp.Compile("(?m)" + rest[1])
	ts.Check(err)
	await(ts, "a screen without "+rest[1], func() (bool, string) {
		out := captured(ts, flags, rest[0])
		return !re.MatchString(out), out
	})
}

// snap [-L NAME] TARGET FILE writes what a person sees of a pane, once it stands still, without what
// is another at each run: directories, ids, numbers of panes and times.
func cmdSnap(ts *testscript.TestScript, neg bool, args []string) {
	flags, args := server(args)
	if neg || len(args) != 2 {
		ts.Fatalf("usage: snap [-L NAME] TARGET FILE")
	}
	last := ""
	await(ts, "a screen that stands still", func() (bool, string) {
		now := captured(ts, flags, args[0])
		same := now == last
		last = now
		return same && strings.TrimSpace(now) != "", now
	})
	work := regexp.QuoteMeta(ts.Getenv("WORK"))
	text := regexp.MustCompile(work).ReplaceAllString(last, "/w")
	text = ids.ReplaceAllStringFunc(text, func(id string) string { return strings.Repeat("x", len(id)) })
	if name, err := os.Hostname(); err == nil && name != "" {
		text = regexp.MustCompile(`\b`+regexp.QuoteMeta(name)+`\b`).ReplaceAllString(text, "HOST")
	}
	text = regexp.MustCompile(`\b20\d\d-\d\d-\d\d \d\d:\d\d\b`).ReplaceAllString(text, "YYYY-MM-DD hh:mm")
	text = regexp.MustCompile(`[^ ]*/testscript-main[^ ]*/`).ReplaceAllString(text, "/bin/")
	text = strings.TrimRight(text, "\n") + "\n"
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}

// ids are conversations, whole or cut.
var ids = regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{1,12}){1,4}`)

// captured is the text of a pane, without the blanks at the end of its lines: how many there are
// depends on the tmux.
func captured(ts *testscript.TestScript, flags []string, target string, options ...string) string {
	out, _ := tmuxOut(ts, slices.Concat(flags, []string{"capture-pane", "-pJ", "-t", target}, options)...)
	lines := strings.Split(out, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func matchPane(ts *testscript.TestScript, neg bool, args []string, options ...string) {
	flags, args := server(args)
	if len(args) != 2 {
		ts.Fatalf("usage: screen|shows [-L NAME] TARGET REGEXP")
	}
	re, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	capture := func() string { return captured(ts, flags, args[0], options...) }
	if neg {
		if out := capture(); re.MatchString(out) {
			ts.Fatalf("the screen matches %q:\n%s", args[1], out)
		}
		return
	}
	await(ts, "a screen that matches "+args[1], func() (bool, string) {
		out := capture()
		return re.MatchString(out), out
	})
}

// events N [EVENT [AGENT [ID]]] waits until the log holds exactly N such events; fewer are
// waited for, more are a failure.
func cmdEvents(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: events N [EVENT [AGENT [ID]]]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	await(ts, fmt.Sprintf("%d events %v", want, args[1:]), func() (bool, string) {
		events, err := readLog(ts.Getenv(fakeagent.LogEnv))
		ts.Check(err)
		n, text := 0, ""
		for _, e := range events {
			fields := []string{e.Event, e.Agent, e.ID}
			match := true
			for i, a := range args[1:] {
				match = match && (a == "*" || a == fields[i])
			}
			if match {
				n++
				text += fmt.Sprintf("%s %s %s argv=%q cwd=%s\n", e.Event, e.Agent, e.ID, e.Argv, e.Cwd)
			}
		}
		if n > want {
			ts.Fatalf("%d events where %d were wanted:\n%s", n, want, text)
		}
		return n == want, text
	})
}

// agents [-L NAME] N FILE waits until N fake agents run in panes, and writes one line each,
// sorted: SESSION:WINDOW.PANE AGENT ID CWD TURNS. The id is the one that the agent itself
// logged last; the pane is the one whose process it is, or descends from.
func cmdAgents(ts *testscript.TestScript, neg bool, args []string) {
	flags, args := server(args)
	if neg || len(args) != 2 {
		ts.Fatalf("usage: agents [-L NAME] N FILE")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	var lines []string
	await(ts, args[0]+" running agents", func() (bool, string) {
		lines = runningAgents(ts, flags)
		if len(lines) > want {
			ts.Fatalf("%d agents run where %d were wanted:\n%s", len(lines), want, strings.Join(lines, "\n"))
		}
		return len(lines) == want, strings.Join(lines, "\n")
	})
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(strings.Join(lines, "\n")+"\n"), 0o600))
}

// reboot [-L NAME] cuts the power: see powerCut.
func cmdReboot(ts *testscript.TestScript, neg bool, args []string) {
	flags, _ := server(args)
	powerCut(ts, flags)
}

// jsonpath FILE PATH VALUE compares one value of a JSON document: a.b.0.c, "len" is a length. A
// missing value is "null"; VALUE may be /REGEXP/.
func cmdJSONPath(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: jsonpath FILE PATH VALUE")
	}
	got := jsonValue(ts, args[0], args[1])
	same := got == args[2]
	if pattern, ok := strings.CutPrefix(args[2], "/"); ok && strings.HasSuffix(pattern, "/") {
		re, err := regexp.Compile(strings.TrimSuffix(pattern, "/"))
		ts.Check(err)
		same = re.MatchString(got)
	}
	if same == neg {
		ts.Fatalf("%s: %s is %q, wanted (negated: %v) %q", args[0], args[1], got, neg, args[2])
	}
}

// setjson VAR FILE PATH puts one value of a JSON document into an environment variable.
func cmdSetJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: setjson VAR FILE PATH")
	}
	ts.Setenv(args[0], jsonValue(ts, args[1], args[2]))
}

// editjson IN OUT EDIT… writes a changed copy of a JSON document: PATH=JSON sets a value (a text
// that is not JSON is a string), PATH=@OTHER copies the one at OTHER, -PATH removes one. Paths
// are those of jsonpath; one index beyond a list's end appends.
func cmdEditJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: editjson IN OUT EDIT…")
	}
	var doc any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &doc))
	for _, e := range args[2:] {
		if path, ok := strings.CutPrefix(e, "-"); ok {
			doc = edited(ts, doc, strings.Split(path, "."), nil, true)
			continue
		}
		path, value, ok := strings.Cut(e, "=")
		if !ok {
			ts.Fatalf("editjson: %q is no PATH=VALUE", e)
		}
		var v any = value
		if other, ok := strings.CutPrefix(value, "@"); ok {
			b, err := json.Marshal(jsonAt(doc, other))
			ts.Check(err)
			value = string(b)
		}
		if err := json.Unmarshal([]byte(value), &v); err != nil {
			v = value
		}
		doc = edited(ts, doc, strings.Split(path, "."), v, false)
	}
	b, err := json.MarshalIndent(doc, "", "  ")
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), append(b, '\n'), 0o600))
}

func edited(ts *testscript.TestScript, doc any, path []string, v any, remove bool) any {
	if len(path) == 0 {
		return v
	}
	last := remove && len(path) == 1
	switch x := doc.(type) {
	case map[string]any:
		if last {
			delete(x, path[0])
			return x
		}
		x[path[0]] = edited(ts, x[path[0]], path[1:], v, remove)
		return x
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i > len(x) || i == len(x) && remove {
			ts.Fatalf("editjson: no element %q", path[0])
		}
		if last {
			return slices.Delete(x, i, i+1)
		}
		if i == len(x) {
			x = append(x, nil)
		}
		x[i] = edited(ts, x[i], path[1:], v, remove)
		return x
	case nil:
		return edited(ts, map[string]any{}, path, v, remove)
	}
	ts.Fatalf("editjson: nothing below %q", path[0])
	return nil
}

func jsonValue(ts *testscript.TestScript, file, path string) string {
	var v any
	if err := json.Unmarshal([]byte(ts.ReadFile(file)), &v); err != nil {
		ts.Fatalf("%s is not JSON: %v\n%s", file, err, ts.ReadFile(file))
	}
	v = jsonAt(v, path)
	switch x := v.(type) {
	case string:
		return x
	case nil:
		return "null"
	default:
		b, _ := json.Marshal(x)
		return string(b)
	}
}

func jsonAt(v any, path string) any {
	for _, part := range strings.Split(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			if part == "len" {
				v = float64(len(x))
			} else {
				v = x[part]
			}
		case []any:
			if part == "len" {
				v = float64(len(x))
			} else if i, err := strconv.Atoi(part); err == nil && i < len(x) {
				v = x[i]
			} else {
				v = nil
			}
		default:
			v = nil
		}
	}
	return v
}

// typed [-L NAME] TARGET TEXT… types a line into a pane, and waits for nothing.
func cmdTyped(ts *testscript.TestScript, neg bool, args []string) {
	flags, args := server(args)
	if neg || len(args) < 2 {
		ts.Fatalf("usage: typed [-L NAME] TARGET TEXT…")
	}
	for _, keys := range [][]string{{"-l", "--", strings.Join(args[1:], " ")}, {"Enter"}} {
		out, err := tmuxOut(ts, slices.Concat(flags, []string{"send-keys", "-t", args[0]}, keys)...)
		if err != nil {
			ts.Fatalf("send-keys: %v: %s", err, out)
		}
	}
}

// until PROGRAM ARGS… runs a program again and again until it succeeds.
func cmdUntil(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: until PROGRAM ARGS…")
	}
	await(ts, fmt.Sprintf("success of %q", args), func() (bool, string) {
		err := ts.Exec(args[0], args[1:]...)
		return err == nil, fmt.Sprint(err)
	})
}

// killed [-L NAME] TARGET SIGNAL sends a signal to the process of a pane and waits for its end.
func cmdKilled(ts *testscript.TestScript, neg bool, args []string) {
	flags, args := server(args)
	if neg || len(args) != 1 {
		ts.Fatalf("usage: killed [-L NAME] TARGET")
	}
	out, err := tmuxOut(ts, slices.Concat(flags, []string{"display-message", "-p", "-t", args[0], "#{pane_pid}"})...)
	ts.Check(err)
	pid, err := strconv.Atoi(strings.TrimSpace(out))
	ts.Check(err)
	ts.Check(syscall.Kill(pid, syscall.SIGKILL))
	await(ts, "the end of the process", func() (bool, string) { return syscall.Kill(pid, 0) != nil || zombie(pid), "" })
}

// modes DIR FILEMODE DIRMODE checks the permission bits of everything below a directory.
func cmdModes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: modes DIR FILEMODE DIRMODE")
	}
	err := filepath.WalkDir(ts.MkAbs(args[0]), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := args[1]
		if d.IsDir() {
			want = args[2]
		}
		if got := fmt.Sprintf("%04o", info.Mode().Perm()); got != want {
			return fmt.Errorf("%s is %s, wanted %s", path, got, want)
		}
		return nil
	})
	ts.Check(err)
}

// logged REGEXP requires that a line of the agents' log matches; with ! that none does.
func cmdLogged(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: logged REGEXP")
	}
	re, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	b, _ := os.ReadFile(ts.Getenv(fakeagent.LogEnv))
	if re.Match(b) == neg {
		ts.Fatalf("the agents' log (negated: %v) against %q:\n%s", neg, args[0], b)
	}
}
