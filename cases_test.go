package phuxagent_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCases holds docs/cases.md to what exists: every script and every test that it names.
func TestCases(t *testing.T) {
	b, err := os.ReadFile("docs/cases.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "*_test.go", "host/hosttest/*.go").Output()
	if err != nil {
		t.Skipf("no list of the files: %v", err)
	}
	tests := map[string][]string{} // directories by name
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for file := range strings.FieldsSeq(string(files)) {
		src, err := os.ReadFile(file)
		if err != nil {
			continue // deleted meanwhile
		}
		for _, m := range function.FindAllStringSubmatch(string(src), -1) {
			tests[m[1]] = append(tests[m[1]], filepath.ToSlash(filepath.Dir(file)))
		}
	}
	named := 0
	for _, m := range regexp.MustCompile("`([\\w-]+\\.txtar)`").FindAllStringSubmatch(string(b), -1) {
		named++
		if _, err := os.Stat(filepath.Join("testdata/scripts", m[1])); err != nil {
			t.Errorf("no script %s", m[1])
		}
	}
	for _, m := range regexp.MustCompile("(?:([\\w/-]+): )?`(Test\\w+)`").FindAllStringSubmatch(string(b), -1) {
		dir, name := m[1], m[2]
		found := false
		for _, d := range tests[name] {
			found = found || d == dir || dir == ""
		}
		if named++; !found {
			t.Errorf("no test %s in %q: there is one in %q", name, dir, tests[name])
		}
	}
	if named < 100 {
		t.Errorf("only %d names were found", named)
	}
}

// TestNothingIsTyped is law 11: no room knows how to type into a terminal. A rehearsal does, for it plays the person
// on a server of its own; no launch and no restore goes through it.
func TestNothingIsTyped(t *testing.T) {
	rooms, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}\n{{end}}{{end}}", "./cmd/phux-agent").Output()
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for file := range strings.FieldsSeq(string(rooms)) {
		if !strings.HasPrefix(file, here) || strings.HasSuffix(file, "/cmd/phux-agent/rehearse.go") {
			continue
		}
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		seen++
		for _, word := range []string{"send-keys", "paste-buffer", "TIOCSTI"} {
			if strings.Contains(string(src), `"`+word) {
				t.Errorf("%s has %s", file, word)
			}
		}
	}
	if seen < 50 {
		t.Errorf("only %d files were looked at", seen)
	}
}
