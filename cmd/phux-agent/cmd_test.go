package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "write the golden files again")

// eachVerb calls do for every verb that people see, the root included.
func eachVerb(do func(cmd *cobra.Command)) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		do(cmd)
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				walk(sub)
			}
		}
	}
	a := &app{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}
	root := a.root()
	root.InitDefaultHelpFlag()
	root.InitDefaultVersionFlag()
	walk(root)
}

func TestHelp(t *testing.T) {
	seen := map[string]bool{}
	eachVerb(func(cmd *cobra.Command) {
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
		t.Run(name, func(t *testing.T) {
			cmd.InitDefaultHelpFlag()
			got := helpText(cmd)
			file := filepath.Join("testdata", "help", name+".txt")
			seen[file] = true
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-update writes it again\n%s", diff)
			}
			for i, line := range strings.Split(got, "\n") {
				if len([]rune(line)) > 80 && !strings.HasPrefix(line, "  phux-agent completion") {
					t.Errorf("line %d is wider than 80 columns: %s", i+1, line)
				}
			}
			for _, section := range []string{"USAGE", "EXAMPLES", "EXIT STATUS"} {
				if cmd.HasParent() && !strings.Contains(got, section+"\n") {
					t.Errorf("no %s section", section)
				}
			}
		})
	})
	files, _ := filepath.Glob("testdata/help/*.txt")
	for _, f := range files {
		if !seen[f] {
			t.Errorf("%s is of no verb", f)
		}
	}
}

// TestExamples parses every example as the verb would, short of running it.
func TestExamples(t *testing.T) {
	eachVerb(func(cmd *cobra.Command) {
		for line := range strings.SplitSeq(cmd.Example, "\n") {
			line = strings.TrimSpace(line)
			if i := strings.IndexAny(line, "|>"); i >= 0 {
				line = line[:i]
			}
			words := strings.Fields(line)
			if len(words) == 0 || words[0] != "phux-agent" {
				t.Errorf("%s: example %q is not of this program", cmd.CommandPath(), line)
				continue
			}
			a := &app{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}
			found, rest, err := a.root().Find(words[1:])
			if err == nil {
				err = found.ParseFlags(rest)
			}
			if err == nil {
				err = found.ValidateArgs(found.Flags().Args())
			}
			if err != nil {
				t.Errorf("%s: example %q: %v", cmd.CommandPath(), line, err)
			}
		}
	})
}

func TestManPages(t *testing.T) {
	eachVerb(func(cmd *cobra.Command) {
		page := manPage(cmd)
		for _, section := range []string{".TH ", ".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION", ".SH EXIT STATUS"} {
			if !strings.Contains(page, section) {
				t.Errorf("%s has no %s", cmd.CommandPath(), section)
			}
		}
		for line := range strings.SplitSeq(page, "\n") {
			if strings.HasPrefix(line, ".") && !strings.ContainsAny(line[1:min(2, len(line))], "TSBIPRnf") {
				t.Errorf("%s: %q is no macro", cmd.CommandPath(), line)
			}
		}
	})
}

// call runs the program in a home of its own, on a PATH without tmux.
func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	home := t.TempDir()
	if err := os.Chmod(home, 0o700); err != nil {
		t.Fatal(err)
	}
	environ := []string{"HOME=" + home, "XDG_RUNTIME_DIR=" + home, "PATH=/nonexistent"}
	var out, errs bytes.Buffer
	code = run(append([]string{"phux-agent"}, args...), environ, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func TestUsage(t *testing.T) {
	for _, args := range []string{
		"bogus", "--bogus", "launch", "launch a b", "launch a --split-h --split-v", "launch a --here --session x",
		"launch a --here --target %1", "launch a --new-window --here", "launch a --resume", "launch a --resume=",
		"save x", "save --name a -o b", "save --accept -o b", "save -o -  --json", "restore a b",
		"restore --generation x", "restore --generation 1 --name b", "restore f --generation 1", "restore --owner x",
		"restore --owner =x", "restore --owner a=b --owner a=c", "restore --decline --plan", "restore f --decline",
		"restore --decline --only x", "ps x", "archive", "archive bogus", "archive list x", "archive show x y", "archive diff 1 2 3", "archive prune --keep 0", "archive prune x", "restore --mode x", "archive rm",
		"archive rm x", "archive forget", "record", "record show", "record show a b", "record forget", "reap", "reap x",
		"plugin", "plugin add", "plugin remove", "plugin enable", "plugin disable", "plugin validate", "integration",
		"integration show", "integration lint", "integration enable", "version x", "completion", "completion tcsh", "man bogus",
		"-L a -S b ps", "help bogus",
	} {
		t.Run(args, func(t *testing.T) {
			code, stdout, stderr := call(t, strings.Fields(args)...)
			// What is about a server that cannot be asked for here is said first, and is as good.
			if code != misused && !(code == noHost && strings.Contains(args, "show x")) {
				t.Errorf("exit %d", code)
			}
			if stdout != "" {
				t.Errorf("stdout: %q", stdout)
			}
			if !strings.HasPrefix(stderr, "phux-agent: error: ") || !strings.Contains(stderr, "\nphux-agent: hint: ") {
				t.Errorf("stderr: %q", stderr)
			}
		})
	}
}

func TestErrorDocument(t *testing.T) {
	for _, c := range []struct {
		args   string
		code   int
		reason string
	}{
		{"ps --json", noHost, "no-server"}, // no tmux is on this PATH: the embedded host stands in
		{"--json --host embedded ps", noHost, "no-server"},
		{"--json --host tmux ps", noHost, "no-host"},
		{"--json --host screen ps", noHost, "no-host"},
		{"ps --bogus --json", misused, "usage"},
		{"integration show nosuch --json", refused, "integration-missing"},
		{"plugin remove nosuch --json", failed, "no-plugin"},
		{"reap nosuch/x --json", refused, "integration-missing"},
	} {
		t.Run(c.args, func(t *testing.T) {
			code, stdout, stderr := call(t, strings.Fields(c.args)...)
			lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
			var doc struct {
				SchemaVersion int `json:"schema_version"`
				Error         struct {
					Code                  int
					Reason, Message, Hint string
				} `json:"error"`
			}
			if err := json.Unmarshal([]byte(lines[len(lines)-1]), &doc, json.MatchCaseInsensitiveNames(true)); err != nil {
				t.Fatalf("%v in %q", err, stderr)
			}
			if code != c.code || doc.Error.Code != c.code || doc.Error.Reason != c.reason || doc.SchemaVersion != 1 || doc.Error.Message == "" || stdout != "" {
				t.Errorf("exit %d, %+v, stdout %q", code, doc, stdout)
			}
		})
	}
}

// TestWithoutHost runs what needs no host.
func TestWithoutHost(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"version", "phux-agent "},
		{"version --json", `"schema_version": 1`},
		{"--version", "phux-agent "},
		{"help launch", "--split-h"},
		{"launch --help", "--split-h"},
		{"man restore", ".TH PHUX"},
		{"completion bash", "__complete"},
		{"completion zsh", "#compdef phux-agent"},
		{"completion fish", "complete -c phux-agent"},
		{"plugin list", "phux.agents"},
		{"plugin list --json", `"origin": "embedded"`},
		{"integration list", "claude-code"},
		{"integration list --json", `"restorable": true`},
		{"integration show codex", "phux.agents"},
		{"integration show codex --json", `"resume_args"`},
		{"integration disable codex", "disabled codex"},
		{"plugin disable phux.agents", "disabled phux.agents"},
		{"", "THE MAIN JOB"},
		{"__complete launch cla", "claude-code"},
	} {
		t.Run(c.args, func(t *testing.T) {
			code, stdout, stderr := call(t, strings.Fields(c.args)...)
			if code != done || !strings.Contains(stdout, c.want) {
				t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
			}
		})
	}
}
