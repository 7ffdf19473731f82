//go:build linux

package owner

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/integrations"
)

func session(id, entrypoint, start string) string {
	return fmt.Sprintf(`{"pid":PID,"sessionId":%q,"procStart":%q,"entrypoint":%q}`, id, start, entrypoint)
}

func TestObserve(t *testing.T) {
	dir, environ, _ := store(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	pkg := t.TempDir() // of a command that is a link to a script of another name, as qwen's is
	for _, f := range []string{"bin/x", "lib/entry.js", "lib/cli.js", "other/cli.js"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(pkg, f)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(pkg, f), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../lib/entry.js", filepath.Join(pkg, "bin/locker")); err != nil {
		t.Fatal(err)
	}
	pidFile := filepath.Join(dir, "sessions", "PID.json")
	lock := func(id string) string { return filepath.Join(dir, "locks", id+".lock") }
	runtime := func(id, start string) string {
		return filepath.Join(dir, "projects/-src/chats", id+".runtime.json") + `={"pid":PID,"started_at":` + start + `}`
	}
	inuse := func(id string) string { return filepath.Join(dir, "state", id, "inuse.PID.lock") + "=" }
	upper := strings.ToUpper("abcdefab-1111-4111-8111-111111111111")

	for _, tc := range []struct {
		name    string
		tmpl    func(*testing.T) *integrations.Template
		environ []string
		args    []string
		part    part
		want    Answer
		reason  string // part of it
	}{
		{
			name: "its own file", tmpl: pidFileAgent,
			part: part{Files: []string{pidFile + "=" + session(idA, "cli", "START")}},
			want: Answer{Kind: Confirmed, ID: idA, By: "file"},
		},
		{
			name: "its own file, another id than in its arguments", tmpl: pidFileAgent, args: []string{"onefile", "--session-id", idA},
			part: part{Files: []string{pidFile + "=" + session(idB, "cli", "START")}},
			want: Answer{Kind: Confirmed, ID: idB, By: "file"},
		},
		{
			name: "no file", tmpl: pidFileAgent,
			want: Answer{Kind: Unknown}, reason: "no file of process",
		},
		{
			name: "a file of an earlier process of its number", tmpl: pidFileAgent,
			part: part{Files: []string{pidFile + "=" + session(idA, "cli", "1")}},
			want: Answer{Kind: Unknown}, reason: "earlier process",
		},
		{
			name: "a file of a headless run", tmpl: pidFileAgent,
			part: part{Files: []string{pidFile + "=" + session(idA, "sdk-cli", "START")}},
			want: Answer{Kind: Unknown}, reason: "another kind of run",
		},
		{
			name: "a file that is no JSON", tmpl: pidFileAgent,
			part: part{Files: []string{pidFile + "={"}},
			want: Answer{Kind: Unknown}, reason: "not JSON",
		},
		{
			name: "an id that is none", tmpl: pidFileAgent,
			part: part{Files: []string{pidFile + "=" + session("--help", "cli", "START")}},
			want: Answer{Kind: Unknown}, reason: "whose id is none",
		},
		{
			name: "a nested headless run with a file of its own", tmpl: pidFileAgent,
			part: part{
				Files:  []string{pidFile + "=" + session(idA, "cli", "START")},
				Nested: [][]string{{"onefile", "-p", "x"}},
				Inner:  &part{Files: []string{pidFile + "=" + session(idB, "cli", "START")}},
			},
			want: Answer{Kind: Confirmed, ID: idA, By: "file"},
		},
		{
			name: "a nested run alone proves nothing", tmpl: pidFileAgent, args: []string{"locker", "--no-daemon"},
			part: part{
				Nested: [][]string{{"onefile"}},
				Inner:  &part{Files: []string{pidFile + "=" + session(idB, "cli", "START")}},
			},
			want: Answer{Kind: Unknown}, reason: "no file of process",
		},
		{
			name: "one lock, in the native child of a script", tmpl: lockAgent, args: []string{"node", "--max-old=1", "/usr/lib/bin/locker.js", "--no-daemon"},
			part: part{Child: &part{As: []string{"/opt/vendor/locker", "--no-daemon"}, Locks: []string{lock(idA)}}},
			want: Answer{Kind: Confirmed, ID: idA, By: "open-file"},
		},
		{
			name: "one lock, in another script of the package that the command is a link into", tmpl: lockAgent,
			args: []string{"node", pkg + "/bin/locker", "--no-daemon"},
			part: part{Child: &part{As: []string{"/opt/node", "--expose-gc", pkg + "/lib/cli.js", "--no-daemon"}, Locks: []string{lock(idA)}}},
			want: Answer{Kind: Confirmed, ID: idA, By: "open-file"},
		},
		{
			name: "one lock, in a script of another package", tmpl: lockAgent,
			args: []string{"node", pkg + "/bin/locker", "--no-daemon"},
			part: part{Child: &part{As: []string{"/opt/node", pkg + "/other/cli.js", "--no-daemon"}, Locks: []string{lock(idA)}}},
			want: Answer{Kind: Unknown}, reason: "holds no such file",
		},
		{
			name: "one lock, in a child with other arguments", tmpl: lockAgent, args: []string{"node", "/usr/lib/bin/locker.js", "--no-daemon"},
			part: part{Child: &part{As: []string{"/opt/vendor/locker", "--no-daemon", "review"}, Locks: []string{lock(idA)}}},
			want: Answer{Kind: Unknown}, reason: "holds no such file",
		},
		{
			name: "one lock, in the child that has the wrapper's arguments", tmpl: lockAgent, args: []string{"/usr/bin/locker", "--no-daemon"},
			part: part{Child: &part{Locks: []string{lock(idA)}}},
			want: Answer{Kind: Confirmed, ID: idA, By: "open-file"},
		},
		{
			name: "a store behind a link", tmpl: lockAgent, environ: []string{"STORE=" + link}, args: []string{"locker"},
			part: part{Locks: []string{lock(idA)}},
			want: Answer{Kind: Confirmed, ID: idA, By: "open-file"},
		},
		{
			name: "upper case is the same id", tmpl: lockAgent, args: []string{"locker"},
			part: part{Locks: []string{lock(upper)}},
			want: Answer{Kind: Confirmed, ID: strings.ToLower(upper), By: "open-file"},
		},
		{
			// Law 5: the newer of two is not the answer.
			name: "two locks", tmpl: lockAgent, args: []string{"locker", "--no-daemon"},
			part: part{Locks: []string{lock(idA)}, Child: &part{Locks: []string{lock(idB)}}},
			want: Answer{Kind: Unknown, Open: []string{idA, idB}}, reason: "2 conversations open",
		},
		{
			name: "a nested run's lock", tmpl: lockAgent, args: []string{"locker", "--no-daemon"},
			part: part{
				Child: &part{
					Locks:  []string{lock(idA)},
					Nested: [][]string{{"locker", "exec", "review"}, {"bash", "-c", "locker exec"}},
					Inner:  &part{Locks: []string{lock(idB)}},
				},
			},
			want: Answer{Kind: Confirmed, ID: idA, By: "open-file"},
		},
		{
			name: "no lock", tmpl: lockAgent, args: []string{"locker"},
			want: Answer{Kind: Unknown}, reason: "holds no such file open",
		},
		{
			name: "a registry that names the process inside", tmpl: runtimeAgent,
			part: part{Files: []string{runtime(idA, "NOW")}},
			want: Answer{Kind: Confirmed, ID: idA, By: "file"},
		},
		{
			// Law 5: the later start is not the answer.
			name: "two entries of one process", tmpl: runtimeAgent,
			part: part{Files: []string{runtime(idA, "NOW"), runtime(idB, "NOW.5")}},
			want: Answer{Kind: Unknown, Open: []string{idA, idB}}, reason: "2 conversations open",
		},
		{
			name: "an entry of an earlier process", tmpl: runtimeAgent,
			part: part{Files: []string{runtime(idA, "1000")}},
			want: Answer{Kind: Unknown}, reason: "earlier process",
		},
		{
			name: "id and process in the path", tmpl: inuseAgent, args: []string{"inuser"},
			part: part{Child: &part{Files: []string{inuse(idA)}}},
			want: Answer{Kind: Confirmed, ID: idA, By: "file"},
		},
		{
			name: "hooks alone", tmpl: hookAgent,
			want: Answer{Kind: Unknown}, reason: "no observer that can be read",
		},
		{
			name: "a store that its environment does not name", tmpl: pidFileAgent, environ: []string{"STORE="},
			part: part{Files: []string{pidFile + "=" + session(idA, "cli", "START")}},
			want: Answer{Kind: Unknown},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tmpl := tc.tmpl(t)
			args := tc.args
			if args == nil {
				args = []string{tmpl.ID}
			}
			f := enact(t, append(environ, tc.environ...), args, tc.part, false)
			got := observer(t).Observe(tmpl, f.Process)
			if tc.want.Kind == Unknown && (got.Reason == "" || !strings.Contains(got.Reason, tc.reason)) {
				t.Errorf("the reason is %q, want %q", got.Reason, tc.reason)
			}
			reason := got.Reason
			got.Reason = ""
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d, reason)
			}
			for _, pattern := range []string{"sessions/*.json", "locks/*", "projects/-src/chats/*", "state/*/inuse*"} {
				files, _ := filepath.Glob(filepath.Join(strings.NewReplacer("[", `\[`, "*", `\*`).Replace(dir), pattern))
				for _, path := range files {
					_ = os.Remove(path)
				}
			}
		})
	}
}

// A wrapper as vendors ship them: a shell's script, which starts a program of another name with what
// it was given, and waits for it.
func TestObserveBelowAScript(t *testing.T) {
	dir, environ, _ := store(t)
	tmpl, other := lockAgent(t), pidFileAgent(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	spec := func(p part) string {
		b, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		return "'" + string(b) + "'"
	}
	lock := filepath.Join(dir, "locks", idB+".lock")
	holds := "PART=" + spec(part{Locks: []string{lock}, Nested: [][]string{{"helper"}}, Inner: &part{}}) + " " + roleEnv + "=agent "
	for _, c := range []struct {
		name, script string
		args         []string
		want         AnswerKind
	}{
		{"with its arguments", holds + `CORE "$@"; exit $?`, []string{"resume", idB}, Confirmed},
		{"with more before them", holds + `CORE --no-update "$@"; exit $?`, []string{"resume", idB}, Confirmed},
		{"without any", holds + `CORE; exit $?`, nil, Confirmed},
		{"with others", holds + `CORE resume; exit $?`, []string{"resume", idB}, Unknown},
		{"the program itself, with others", holds + `LOCKER -p "$@"; exit $?`, []string{"resume", idB}, Unknown},
		{"one beside another", "sleep 1000 & " + holds + `CORE "$@"; exit $?`, []string{"resume", idB}, Unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := t.TempDir()
			script := filepath.Join(at, "locker")
			text := strings.NewReplacer("CORE", at+"/core", "LOCKER", at+"/x/locker").Replace(c.script)
			if err := errors.Join(os.Mkdir(at+"/x", 0o700), os.Symlink(self, at+"/core"), os.Symlink(self, at+"/x/locker"),
				os.WriteFile(script, []byte(text+"\n"), 0o700)); err != nil {
				t.Fatal(err)
			}
			f := enactScript(t, environ, append([]string{script}, c.args...))
			o := observer(t)
			if got := o.Observe(tmpl, f.Process); got.Kind != c.want || c.want == Confirmed && got.ID != idB {
				t.Errorf("%+v", got)
			}
			if c.want != Confirmed {
				return
			}
			// What it starts reports for it, unless it is an agent of another integration.
			below := o.table.Descendants(f.PID)
			reporter := below[len(below)-1].PID
			if err := o.Reports(tmpl, f.Process, LineOf(reporter), []*integrations.Template{tmpl, other}); err != nil {
				t.Error(err)
			}
			other.Launch.Command = []string{"core"}
			if err := o.Reports(tmpl, f.Process, LineOf(reporter), []*integrations.Template{tmpl, other}); !errors.Is(err, ErrNotOwner) {
				t.Errorf("of another integration's agent: %v", err)
			}
			other.Launch.Command = []string{"onefile"}
		})
	}
}

func TestObserveTheFileOfAnotherTime(t *testing.T) {
	dir, environ, _ := store(t)
	f := enact(t, environ, []string{"inuser"}, part{}, false)
	path := filepath.Join(dir, "state", idA, fmt.Sprintf("inuse.%d.lock", f.PID))
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tmpl := inuseAgent(t)
	if got := observer(t).Observe(tmpl, f.Process); got.Kind != Confirmed {
		t.Errorf("%+v", got)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	if got := observer(t).Observe(tmpl, f.Process); got.Kind != Unknown || !strings.Contains(got.Reason, "older than the process") {
		t.Errorf("%+v", got)
	}
}

func TestObserveTheEnded(t *testing.T) {
	tmpl := pidFileAgent(t)
	dir, environ, _ := store(t)
	before := observer(t)
	f := enact(t, environ, []string{"onefile"}, part{Files: []string{filepath.Join(dir, "sessions", "PID.json") + "=" + session(idA, "cli", "START")}}, false)
	// Begun after the table was read.
	if got := before.Observe(tmpl, f.Process); got.Kind != Confirmed {
		t.Errorf("%+v", got)
	}
	if got := before.Observe(tmpl, Process{f.PID, f.Start + 1}); got.Kind != Gone {
		t.Errorf("another start time: %+v", got)
	}
	if err := syscall.Kill(f.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "it is a zombie", func() bool { return observer(t).Observe(tmpl, f.Process).Kind == Gone })
	_ = f.cmd.Wait()
	if got := observer(t).Observe(tmpl, f.Process); got.Kind != Gone || got.Reason == "" {
		t.Errorf("%+v", got)
	}
}

func TestDeletedLock(t *testing.T) {
	dir, environ, _ := store(t)
	a, b := filepath.Join(dir, "locks", idA+".lock"), filepath.Join(dir, "locks", idB+".lock")
	f := enact(t, environ, []string{"locker"}, part{Locks: []string{a, b}}, false)
	_ = os.Remove(a)
	if got := observer(t).Observe(lockAgent(t), f.Process); got.Kind != Unknown {
		t.Errorf("one of two deleted: %+v", got)
	}
}
