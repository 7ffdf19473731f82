package integrations

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// refusals are all errors of a parse, one by one.
func refusals(err error) []*Error {
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) {
		var out []*Error
		for _, e := range many.Unwrap() {
			out = append(out, refusals(e)...)
		}
		return out
	}
	var e *Error
	if errors.As(err, &e) {
		return []*Error{e}
	}
	return nil
}

// helpful says what a refusal lacks: its file, its line, its caret below what it is about, and what
// to write instead.
func helpful(file string, src string, e *Error) string {
	lines := strings.Split(src, "\n")
	switch {
	case e.File != file:
		return "no file"
	case e.Instead == "":
		return "nothing to write instead"
	case e.Problem == "":
		return "no problem"
	case e.Line == 0 && e.Key != "id" && len(src) <= MaxTemplate:
		return "no line" // an id that is missing stands nowhere, and so does too much
	case e.Line == 0:
		return ""
	case e.Line > len(lines):
		return "a line behind the end"
	case e.Source != strings.TrimRight(lines[e.Line-1], "\r"):
		return "another line than it says"
	case e.Column < 1 || e.Column > len([]rune(e.Source))+1:
		return fmt.Sprintf("column %d of a line of %d", e.Column, len([]rune(e.Source)))
	case !regexp.MustCompile(`(?m)^      \| *\^+$`).MatchString(e.Error()):
		return "no caret"
	}
	return ""
}

// Every refusal carries file, line, caret and what to write instead: those of the collection, and
// those that each key gives for what no key takes.
func TestEveryRefusalHelps(t *testing.T) {
	files, err := filepath.Glob("testdata/refused/*.toml")
	if err != nil || len(files) < 100 {
		t.Fatal(len(files), err)
	}
	sources := map[string]string{}
	for _, f := range files {
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		sources[f] = string(src)
	}
	for name, src := range wrongValues() {
		sources[name] = src
	}
	refused := 0
	for file, src := range sources {
		_, _, err := Parse(file, []byte(src))
		if err == nil {
			continue
		}
		all := refusals(err)
		if len(all) == 0 {
			t.Errorf("%s: %v", file, err)
		}
		for _, e := range all {
			refused++
			if lacks := helpful(file, src, e); lacks != "" {
				t.Errorf("%s: %s:\n%v", file, lacks, e)
			}
		}
	}
	if refused < 700 {
		t.Errorf("%d refusals", refused)
	}
}

// everyKey is a template that has every key once.
const everyKey = `id = "demo"
display_name = "Demo"
kind = "terminal-agent"
[cli]
version_args = ["--version"]
verified = ["1"]
min_version = "1"
[launch]
command = ["demo"]
working_directory = "workspace"
scrub_env = ["A"]
after_exit = "shell"
survives_hangup = false
passthrough = ["-p"]
[launch.env]
B = "c"
[session_identity]
mode = "native-or-phux"
restore = "external-cli"
native_env = "PHUX_DEMO_SESSION_ID"
id_pattern = "uuid4"
resume_args = ["--resume", "${PHUX_AGENT_SESSION_ID}"]
fresh_args = ["--session-id", "${PHUX_AGENT_SESSION_ID}"]
fork_args = ["--fork", "${PHUX_AGENT_SESSION_ID}"]
resume_cwd = "launch"
never_prompted = "fresh"
unknown_id = "exits"
never = ["-c"]
[transcript]
root = "~/.d"
paths = ["${PHUX_AGENT_SESSION_ID}"]
head_id = "/id"
contains = "x"
[[observe]]
kind = "file"
path = "${root}/${PID}.json"
id = "/id"
start = "/start"
start_unit = "ms"
[observe.where]
"/kind" = "cli"
[[observe]]
kind = "hook"
on = ["Start"]
id = "/id"
event = "/event"
[[require]]
file = "~/.d/s.json"
json = "/a"
equals = false
default = true
at = "restore"
consequence = "it breaks"
[[hooks]]
file = "~/.d/s.json"
format = "json"
events = ["Start"]
into = "/hooks/${EVENT}"
entry = '{"command": "${COMMAND} ${EVENT}"}'
note = "a note"
[[live]]
on = ["Start"]
state = "working"
attention = "low"
id = "/id"
event = "/event"
[live.where]
"/kind" = "cli"
[agent_identity]
name = "demo"
kind = "demo"
`

// wrongValues puts what a key may not take into each key of everyKey, and takes each key out.
func wrongValues() map[string]string {
	lines := strings.Split(everyKey, "\n")
	long := strings.Repeat("x", 5000)
	bad := map[string]string{
		"an integer": "7", "a float": "1.5", "a date": "1979-05-27", "a boolean": "true", "text": `"x y"`, "empty": `""`, "long": `"` + long + `"`,
		"control": `"a\u0000b"`, "a table": "{ a = 1 }", "no elements": "[]", "an empty element": `[""]`, "integers": "[1, 2]", "deep": "[[1]]",
		"NUL in it": `["a\u0000"]`, "long elements": `["` + long + `"]`, "many": "[" + strings.Repeat(`"a", `, 100) + "]", "a slot": `"${PHUX_AGENT_SESSION_ID}"`,
		"slots": `["${PHUX_AGENT_SESSION_ID}", "${PHUX_AGENT_SESSION_ID}"]`, "glued": `["--x=${PHUX_AGENT_SESSION_ID}"]`, "a shell": `["sh", "-c", "x"]`,
		"dots": `"../x"`, "a pointer": `"/~2"`, "tables": "[{ a = 1 }]", "env": `["env", "x"]`, "blanks": `["a b=c"]`,
	}
	out := map[string]string{"every key": everyKey}
	for i, line := range lines {
		key, _, ok := strings.Cut(line, " = ")
		if !ok {
			continue
		}
		put := func(what, with string) {
			out[fmt.Sprintf("line %d, %s: %s", i+1, key, what)] = strings.Join(append(append(append([]string{}, lines[:i]...), with), lines[i+1:]...), "\n")
		}
		for what, value := range bad {
			put(what, key+" = "+value)
		}
		put("left out", "#")
	}
	for _, table := range []string{"cli", "launch", "session_identity", "transcript", "observe", "require", "hooks", "live", "agent_identity"} {
		for what, value := range map[string]string{"text": `"x"`, "integers": "[1]", "a table": "{}", "tables": "[{}]", "many": "[" + strings.Repeat("{}, ", 40) + "]"} {
			out[table+": "+what] = table + " = " + value + "\nid = \"demo\"\n"
		}
	}
	return out
}
