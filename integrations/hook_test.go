package integrations

import "testing"

func TestHookText(t *testing.T) {
	h := Hook{Into: "/hooks/${EVENT}", Entry: `{"command": "${COMMAND} ${EVENT}", "p": "${PHUX_AGENT}"}`}
	got := h.Text(`'/opt/a "b"/phux-agent' hook x`, `/opt/a "b"/phux-agent`, "Start")
	if want := `{"command": "'/opt/a \"b\"/phux-agent' hook x Start", "p": "/opt/a \"b\"/phux-agent"}`; got != want {
		t.Errorf("%s", got)
	}
	if got := h.Pointer("a/b~c"); got != "/hooks/a~1b~0c" {
		t.Error(got)
	}
}

func TestInteractive(t *testing.T) {
	all := builtins(t)
	for _, c := range []struct {
		id   string
		args []string
		word string // "" is interactive
	}{
		{"claude-code", nil, ""},
		{"claude-code", []string{"--model", "opus"}, ""},
		{"claude-code", []string{"fix the mcp server"}, ""},
		{"claude-code", []string{"hello", "mcp"}, ""},
		{"claude-code", []string{"--", "-p"}, ""},
		{"claude-code", []string{"mcp", "list"}, "mcp"},
		{"claude-code", []string{"-p", "hi"}, "-p"},
		{"claude-code", []string{"-phi"}, "-p"},
		{"claude-code", []string{"hi", "--print"}, "--print"},
		{"claude-code", []string{"--resume"}, "--resume"},
		{"claude-code", []string{"--resume=" + v4}, "--resume"},
		{"claude-code", []string{"-c"}, "-c"},
		{"claude-code", []string{"--version"}, "--version"},
		{"codex", []string{"-c", "model=x"}, ""},
		{"codex", []string{"-m", "gpt", "exec", "do"}, "exec"},
		{"codex", []string{"e", "do"}, "e"},
		{"codex", []string{"resume", "--last"}, "resume"},
		{"qwen-code", []string{"what", "is", "it"}, "what"},
		{"qwen-code", []string{"-i"}, ""},
		{"kimi", []string{"fork", "x"}, "fork"},
		{"pi", []string{"--mode", "json"}, "--mode"},
	} {
		word, ok := all[c.id].Interactive(c.args)
		if word != c.word || ok != (c.word == "") {
			t.Errorf("%s %q: %q, %v", c.id, c.args, word, ok)
		}
	}
	for _, c := range []struct {
		id   string
		args []string
		want bool
	}{
		{"claude-code", []string{"--resume", v4}, false}, // an interface, though none of our making
		{"codex", []string{"resume", v7}, false},
		{"codex", []string{"-m", "gpt", "exec", "do"}, true},
		{"claude-code", []string{"-p", "x"}, true},
	} {
		if _, got := all[c.id].Headless(c.args); got != c.want {
			t.Errorf("%s %q: headless %v", c.id, c.args, got)
		}
	}
}
