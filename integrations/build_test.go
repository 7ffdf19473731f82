package integrations

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const full = base + `id_pattern = "uuid4"
fresh_args = ["--session-id", "${PHUX_AGENT_SESSION_ID}"]
fork_args = ["--resume", "${PHUX_AGENT_SESSION_ID}", "--fork-session", "--session-id", "${PHUX_AGENT_NEW_SESSION_ID}"]
never = ["-c", "--continue", "pick"]
`

func TestBuild(t *testing.T) {
	tmpl := mustParse(t, strings.Replace(full, `command = ["demo"]`, "command = [\"${PHUX_PLUGIN_ROOT}/bin/demo\", \"--root=${PHUX_PLUGIN_ROOT}:${PHUX_PLUGIN_ROOT}\"]\nenv = { A = \"1\", B = \"2\" }\nscrub_env = [\"X\", \"Y\"]", 1))
	p := Profile{Name: "yolo", Args: []string{"--model", "m"}, Env: map[string]string{"B": "3", "PATH": "/opt/bin"}}
	head := []string{"/r/bin/demo", "--root=/r:/r", "--model", "m"}
	for op, want := range map[Op]struct {
		id, newID string
		args      []string
		native    string
	}{
		Plain:  {"", "", nil, ""},
		Fresh:  {v4, "", []string{"--session-id", v4}, v4},
		Resume: {v4, "", []string{"--resume", v4}, v4},
		Fork:   {v4, other, []string{"--resume", v4, "--fork-session", "--session-id", other}, other},
	} {
		got, err := tmpl.Build(Request{Op: op, ID: want.id, NewID: want.newID, Profile: p, Extra: []string{"-v", "--", "hello"}, PluginRoot: "/r"})
		if err != nil {
			t.Error(err)
			continue
		}
		set := map[string]string{"A": "1", "B": "3", "PATH": "/opt/bin"}
		if want.native != "" {
			set["PHUX_DEMO_SESSION_ID"] = want.native
		}
		if diff := cmp.Diff(Command{slices.Concat(head, want.args, []string{"-v", "--", "hello"}), set, []string{"X", "Y"}}, got); diff != "" {
			t.Errorf("%v: %s", op, diff)
		}
	}
}

// An id is data: nothing in it is expanded, split or looked at again.
func TestBuildKeepsTheIDWhole(t *testing.T) {
	tmpl := mustParse(t, base)
	for _, id := range []string{
		slotRoot, slotNewID, slotID, "a b", "a;b", "$(x)", "`x`", "'", `"`, `\`, "#{pane_id}", "%1", "a=b", "é", "{a,b}", "~", "*",
	} {
		got, err := tmpl.Build(Request{Op: Resume, ID: id, PluginRoot: "/r"})
		if err != nil {
			t.Error(err)
		} else if diff := cmp.Diff([]string{"demo", "--resume", id}, got.Argv); diff != "" {
			t.Error(diff)
		}
	}
}

func TestBuildRefuses(t *testing.T) {
	tmpl := mustParse(t, full)
	plain := mustParse(t, base)
	for name, x := range map[string]struct {
		tmpl *Template
		r    Request
		want string
	}{
		"resume without id":     {tmpl, Request{Op: Resume}, "empty"},
		"option as id":          {plain, Request{Op: Resume, ID: "--last"}, "begins with -"},
		"foreign id":            {tmpl, Request{Op: Resume, ID: "latest"}, "id_pattern"},
		"fresh foreign id":      {tmpl, Request{Op: Fresh, ID: v7}, "id_pattern"},
		"no fresh_args":         {plain, Request{Op: Fresh, ID: v4}, "no arguments for it"},
		"no fork_args":          {plain, Request{Op: Fork, ID: v4}, "no arguments for it"},
		"plain with id":         {tmpl, Request{Op: Plain, ID: v4}, "takes no id"},
		"fork without new":      {tmpl, Request{Op: Fork, ID: v4}, "empty"},
		"fork to itself":        {tmpl, Request{Op: Fork, ID: v4, NewID: v4}, "of its own"},
		"resume with new":       {tmpl, Request{Op: Resume, ID: v4, NewID: other}, "itself"},
		"too long":              {tmpl, Request{Op: Resume, ID: v4, Extra: []string{strings.Repeat("x", 16<<10)}}, "16 KiB"},
		"too many":              {tmpl, Request{Op: Plain, Extra: make([]string, 16<<10)}, "16 KiB"},
		"NUL":                   {tmpl, Request{Op: Plain, Extra: []string{"a\x00b"}}, "NUL"},
		"-- in a profile":       {tmpl, Request{Op: Resume, ID: v4, Profile: Profile{Args: []string{"--"}}}, "into text"},
		"native_env in profile": {tmpl, Request{Op: Plain, Profile: Profile{Env: map[string]string{"PHUX_DEMO_SESSION_ID": v4}}}, "may not set"},
		"other identity in env": {tmpl, Request{Op: Plain, Profile: Profile{Env: map[string]string{"PHUX_X_SESSION_ID": v4}}}, "may not set"},
		"bad name in env":       {tmpl, Request{Op: Plain, Profile: Profile{Env: map[string]string{"A=B": "c"}}}, "may not set"},
		"NUL in env":            {tmpl, Request{Op: Plain, Profile: Profile{Env: map[string]string{"A": "\x00"}}}, "may not set"},
		"not launchable":        {mustParse(t, "id = \"d\"\n"), Request{}, "no [launch]"},
		"relative root":         {mustParse(t, with(t, `["demo"]`, `["${PHUX_PLUGIN_ROOT}/x"]`)), Request{PluginRoot: "plugins/x"}, "absolute"},
		"no root":               {mustParse(t, with(t, `["demo"]`, `["${PHUX_PLUGIN_ROOT}/x"]`)), Request{}, "absolute"},
		"not restorable":        {mustParse(t, "id = \"d\"\n[launch]\ncommand = [\"sh\"]\n"), Request{Op: Resume, ID: v4}, "resumes no native id"},
	} {
		c, err := x.tmpl.Build(x.r)
		if err == nil || !strings.Contains(err.Error(), x.want) || c.Argv != nil {
			t.Errorf("%s: got %q, %v", name, c.Argv, err)
		}
	}
	// Exactly at the bound: "demo" NUL + x NUL = 16384.
	if _, err := tmpl.Build(Request{Op: Plain, Extra: []string{strings.Repeat("x", 16384-5-1)}}); err != nil {
		t.Error(err)
	}
	if _, err := tmpl.Build(Request{Op: Plain, Extra: []string{strings.Repeat("x", 16384-5)}}); !errors.Is(err, ErrTooLong) {
		t.Errorf("got %v", err)
	}
}

func TestNever(t *testing.T) {
	tmpl := mustParse(t, full)
	for _, arg := range []string{
		"-c", "-cfoo", "-pc", "-pcv=1", "--continue", "--continue=true", "--continue=", "pick",
		"--resume", "--resume=x", "--session-id", "--session-id=" + v4, "--fork-session",
	} {
		for where, r := range map[string]Request{
			"profile": {Op: Plain, Profile: Profile{Args: []string{"-v", arg}}},
			"extra":   {Op: Resume, ID: v4, Extra: []string{"-v", arg}},
		} {
			_, err := tmpl.Build(r)
			var e *NeverError
			if !errors.As(err, &e) || e.Where != where || e.Arg != arg || e.Option == "" {
				t.Errorf("%s %q: %v", where, arg, err)
			}
		}
	}
	for _, arg := range []string{"-v", "-p", "--continuous", "--resumed", "picky", "-", "--", "--no-continue", "-x=c", "c", "", "--pick", "continue"} {
		if _, err := tmpl.Build(Request{Op: Plain, Extra: []string{arg}}); err != nil {
			t.Error(err)
		}
	}
	want := []string{"-c", "--continue", "pick", "--resume", "--session-id", "--fork-session"}
	if diff := cmp.Diff(want, tmpl.NeverOptions()); diff != "" {
		t.Error(diff)
	}
	// A template of phux's shape has no `never`; its identity options are refused all the same.
	if _, err := mustParse(t, base).Build(Request{Op: Plain, Extra: []string{"--resume=x"}}); err == nil {
		t.Error("an identity option is allowed")
	}
}

func TestSideCommands(t *testing.T) {
	tmpl := mustParse(t, base+`id_pattern = "uuid4"
fork_command = ["sh", "${PHUX_PLUGIN_ROOT}/scripts/fork.sh", "${PHUX_AGENT_SESSION_ID}"]
`)
	if argv, err := tmpl.MintCommand("/r"); argv != nil || err != nil {
		t.Errorf("got %q, %v", argv, err)
	}
	argv, err := tmpl.ForkCommand("/r", v4)
	if diff := cmp.Diff([]string{"sh", "/r/scripts/fork.sh", v4}, argv); err != nil || diff != "" {
		t.Error(err, diff)
	}
	for _, id := range []string{"", "-x", "latest"} {
		if argv, err := tmpl.ForkCommand("/r", id); err == nil {
			t.Errorf("got %q", argv)
		}
	}
	if argv, err := tmpl.ForkCommand("r", v4); err == nil {
		t.Errorf("got %q", argv)
	}
	minting := mustParse(t, base+"mint_command = [\"sh\", \"${PHUX_PLUGIN_ROOT}/m.sh\"]\n")
	argv, err = minting.MintCommand("/r")
	if diff := cmp.Diff([]string{"sh", "/r/m.sh"}, argv); err != nil || diff != "" {
		t.Error(err, diff)
	}
}
