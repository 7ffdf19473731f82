package phuxagent_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/phux-agent/phux-agent/internal/looks"
)

// looks [-L NAME] TARGET FILE writes what a person sees of a pane, colours and all, and where the
// cursor is; with ! it waits until the pane shows again what was written.
func cmdLooks(ts *testscript.TestScript, neg bool, args []string) {
	flags, args := server(args)
	if len(args) != 2 {
		ts.Fatalf("usage: looks [-L NAME] TARGET FILE")
	}
	look := func() string {
		out, err := tmuxOut(ts, slices.Concat(flags, []string{"capture-pane", "-epN", "-t", args[0]})...)
		ts.Check(err)
		facts, err := tmuxOut(ts, slices.Concat(flags, []string{
			"display-message", "-p", "-t", args[0],
			"#{cursor_x},#{cursor_y} shown=#{cursor_flag} alt=#{alternate_on} keys=#{keypad_cursor_flag}#{keypad_flag} mouse=#{mouse_standard_flag}#{mouse_button_flag}#{mouse_all_flag}#{mouse_sgr_flag} region=#{scroll_region_upper}-#{scroll_region_lower} insert=#{insert_flag} origin=#{origin_flag}",
		})...)
		ts.Check(err)
		var b strings.Builder
		b.WriteString(facts)
		for _, l := range looks.Screen(out) {
			for i, c := range l {
				if i == 0 || c.Look != l[i-1].Look {
					fmt.Fprintf(&b, "<%s>", c.Look)
				}
				b.WriteString(c.Text)
			}
			b.WriteByte('\n')
		}
		return b.String()
	}
	if !neg {
		last := ""
		await(ts, "a screen that stands still", func() (bool, string) {
			now := look()
			same := now == last
			last = now
			return same, now
		})
		ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(last), 0o600))
		return
	}
	want := ts.ReadFile(args[1])
	await(ts, "the screen of "+args[1], func() (bool, string) {
		now := look()
		return now == want, cmp.Diff(want, now)
	})
}

// modesOf is what tmux says of the modes of a pane.
const modesOf = "mouse=#{mouse_standard_flag}#{mouse_button_flag}#{mouse_all_flag} keys=#{keypad_cursor_flag} alt=#{alternate_on}"

// modes-of [-L NAME] TARGET TEXT waits until the modes of a pane, as tmux tells them, begin with a
// text: mouse=000 keys=0 alt=0.
func cmdModesOf(ts *testscript.TestScript, neg bool, args []string) {
	flags, args := server(args)
	if neg || len(args) != 2 {
		ts.Fatalf("usage: modes-of [-L NAME] TARGET TEXT")
	}
	await(ts, "the modes "+args[1], func() (bool, string) {
		out, err := tmuxOut(ts, slices.Concat(flags, []string{"display-message", "-p", "-t", args[0], modesOf})...)
		ts.Check(err)
		return strings.HasPrefix(out, args[1]), out
	})
}

// editor is the vim of this machine, if any: a small one will do.
func editor() string {
	for _, name := range []string{"vim", "vim.tiny"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// The programs that attach_programs.txtar looks at. Where one is missing it is not proven; CI has
// them all.
func TestProgramsToLookAt(t *testing.T) {
	var missing []string
	if editor() == "" {
		missing = append(missing, "vim or vim-tiny")
	}
	for _, name := range []string{"less", "htop"} {
		if _, err := exec.LookPath(name); err != nil {
			missing = append(missing, name)
		}
	}
	switch {
	case len(missing) == 0:
	case os.Getenv("PHUX_TEST_PROGRAMS") == "required":
		t.Errorf("not installed: %s", strings.Join(missing, ", "))
	default:
		t.Skipf("NOT SEEN through attach, for it is not installed: %s", strings.Join(missing, ", "))
	}
}
