package capture

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/phux-agent/phux-agent/config"
)

// Which process is a listed program, and what its arguments are.
func TestListedPrograms(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	vim := write("vim.basic", "\x7fELF")
	python := write("python3.11", "\x7fELF")
	for link, to := range map[string]string{"vim": vim, "view": vim, "python3": python} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	ranger := write("ranger", "#!"+dir+"/python3 -O\n")
	tool := write("tool", "#!/usr/bin/env python3\n")
	all := listPrograms(map[string]config.Program{
		"vim":    {Name: "vim", Command: []string{"vim", "-n"}, SavedArgs: true},
		"ranger": {Name: "ranger", Command: []string{"ranger"}, SavedArgs: true},
		"tool":   {Name: "tool", Command: []string{tool}},
		"gone":   {Name: "gone", Command: []string{"gone"}, SavedArgs: true},
	}, dir)
	for _, c := range []struct {
		exe     string
		argv    []string
		program string
		args    []string
	}{
		{vim, []string{"vim"}, "vim", []string{}},
		{vim, []string{"vim", "a b", ""}, "vim", []string{"a b", ""}},
		{vim, []string{"vim", "-n", "x"}, "vim", []string{"x"}}, // as it was restored
		{vim, []string{"view", "x"}, "", nil},
		{vim, nil, "", nil},
		{python, []string{"python3", "x"}, "", nil},
		{python, []string{dir + "/python3", "-O", ranger, "y"}, "ranger", []string{"y"}},
		{python, []string{dir + "/python3", ranger, "y"}, "ranger", []string{"y"}},
		{python, []string{"python3", "-O", "ranger"}, "", nil},
		{python, []string{"python3", "-c", ranger}, "", nil},
		{python, []string{"python3", tool, "z"}, "tool", []string{}},
		{"/bin/cat", []string{"cat", ranger}, "", nil},
	} {
		name, args := "", []string(nil)
		for i := range all {
			if got, ok := all[i].args(c.exe, c.argv); ok {
				name, args = all[i].Name, got
				break
			}
		}
		if name != c.program || !slices.Equal(args, c.args) || (args == nil) != (c.args == nil) {
			t.Errorf("%s %q: %q %q, want %q %q", c.exe, c.argv, name, args, c.program, c.args)
		}
	}
}
