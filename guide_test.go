package phuxagent_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The guide for authors, followed letter by letter in a home of its own: what it shows works.
func TestGuide(t *testing.T) {
	guide, err := os.ReadFile("docs/writing-an-integration.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```sh\n(.*?)^```").FindAllStringSubmatch(string(guide), -1)
	if len(blocks) != 5 {
		t.Fatalf("%d blocks to follow", len(blocks))
	}
	env := map[string]string{}
	after, err := scenery(t.TempDir(), func(k, v string) { env[k] = v })
	if err != nil {
		t.Fatal(err)
	}
	defer after()
	// Only to be quicker: each restore watches its agents for so long.
	conf := filepath.Join(env["HOME"], ".config", "phux-agent")
	if err := os.MkdirAll(conf, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(conf, "config.toml"), []byte("[restore]\nsettle_ms = 300\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for _, b := range blocks {
		script.WriteString(b[1])
	}
	cmd := exec.CommandContext(t.Context(), "sh")
	cmd.Dir = env["HOME"]
	cmd.Stdin = strings.NewReader(script.String())
	cmd.Env = os.Environ()
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v", err)
	}
	rest := string(out)
	for _, want := range []string{ // in the order of the walk
		`wrote ~/phux-notes/integrations/notes.toml`, `resume_args\[0\]: "--FILL-IN-resume" is still to be filled in`,
		`notes 1\.2`, `page 11111111-\S+ exists\nexit 1`, `/\.notes/pages/11111111-\S+\.txt`, `hello`, `no page 2222\S+\nexit 1`,
		`hello\nagain\n`, `page 33333333-\S+\n> exit 0`, `notes\.toml: nothing to say`, `added my\.notes`,
		`as the template says, by a stand-in`, `transcript +ok +present`, `as the template says, by the real program`,
	} {
		at := regexp.MustCompile(want).FindStringIndex(rest)
		if at == nil {
			t.Fatalf("no %s (in its place) in:\n%s", want, out)
		}
		rest = rest[at[1]:]
	}
	if strings.Contains(string(out), " fail ") {
		t.Errorf("%s", out)
	}
}
