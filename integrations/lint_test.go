package integrations

import (
	"slices"
	"strings"
	"testing"
)

func TestLint(t *testing.T) {
	quiet := "[cli]\nverified = [\"1\"]\n"
	tail := `id_pattern = "uuid4"
fresh_args = ["--session-id", "${PHUX_AGENT_SESSION_ID}"]
never = ["-c"]
` + quiet + `[transcript]
root = "~/.d"
paths = ["${PHUX_AGENT_SESSION_ID}"]
`
	clean := base + tail
	if w, err := Lint("d.toml", []byte(clean)); err != nil || len(w) > 0 {
		t.Fatalf("got %v, %v", w, err)
	}
	swap := func(old, new string) string {
		if !strings.Contains(clean, old) {
			t.Fatalf("no %q", old)
		}
		return strings.Replace(clean, old, new, 1)
	}
	for name, x := range map[string]struct {
		src  string
		line int
		want string
	}{
		"unverified":      {swap(quiet, ""), 0, "no [cli] verified"},
		"recency":         {swap(`["--resume",`, `["--continue", "--resume",`), 8, "by time"},
		"recency value":   {swap(`["demo"]`, `["demo", "--session=latest", "--last"]`), 3, "by time"},
		"fork":            {swap(`["--resume",`, `["--fork-session", "--resume",`), 8, "at every restore"},
		"no pattern":      {swap("id_pattern = \"uuid4\"\n", ""), 8, "no id_pattern"},
		"loose pattern":   {swap(`"uuid4"`, `'^[0-9a-z-]+$'`), 9, "allows \"latest\""},
		"no never":        {swap("never = [\"-c\"]\n", ""), 4, "no never"},
		"shell behind":    {swap(`["demo"]`, `["demo", "--", "/bin/sh", "-lc"]`), 3, "may evaluate"},
		"runner":          {swap(`["demo"]`, `["nodejs", "x"]`), 3, "what its arguments say"},
		"interpreter":     {swap(`["demo"]`, `["python3", "${PHUX_PLUGIN_ROOT}/x.py"]`), 3, "phux refuses"},
		"variable":        {swap(`["demo"]`, `["demo", "${HOME}/x"]`), 3, "not expanded"},
		"leaves":          {swap(`["demo"]`, `["demo", "${PHUX_PLUGIN_ROOT}/../x"]`), 3, "leaves the plugin"},
		"source":          {swap(`["--resume",`, `["-e",`), 8, "like source"},
		"id":              {swap(`id = "demo"`, `id = "a/b"`), 1, "INTEGRATION/ID"},
		"native_env":      {swap("native_env = \"PHUX_DEMO_SESSION_ID\"\n", ""), 4, "phux refuses"},
		"unknown key":     {swap("never = ", "nevre = "), 11, "did you mean never?"},
		"no way to an id": {swap("fresh_args = [\"--session-id\", \"${PHUX_AGENT_SESSION_ID}\"]\n", ""), 4, "--resume ID"},
		"no transcript":   {clean[:strings.Index(clean, "[transcript]")], 10, "no [transcript]"},
		"no launch":       {"id = \"d\"\n" + quiet, 0, "cannot be launched"},
	} {
		w, err := Lint("d.toml", []byte(x.src))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !slices.ContainsFunc(w, func(w Warning) bool { return w.Line == x.line && strings.Contains(w.Text, x.want) }) {
			t.Errorf("%s: got %v, want %d: … %s …", name, w, x.line, x.want)
		}
	}
}
