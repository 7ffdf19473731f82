package integrations

import (
	"slices"
	"strings"
	"testing"
)

func TestLint(t *testing.T) {
	quiet := "[cli]\nversion_args = [\"--version\"]\nverified = [\"1\"]\n"
	tail := `id_pattern = "uuid4"
fresh_args = ["--session-id", "${PHUX_AGENT_SESSION_ID}"]
never = ["-c", "--resume", "--session-id", "-e"]
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
	if w, err := Lint("d.toml", []byte(swap(`verified = ["1"]`, "verified = []"))); err != nil || len(w) > 0 {
		t.Errorf("an empty list says that it was not run: got %v, %v", w, err)
	}
	for name, x := range map[string]struct {
		src  string
		line int
		want string
	}{
		"unverified":      {swap(quiet, ""), 0, "no [cli] verified"},
		"not asked":       {swap("version_args = [\"--version\"]\n", ""), 13, "no version_args"},
		"identity open":   {swap(`"-c", "--resume", `, `"-c", `), 11, "does not list --resume:"},
		"create or open":  {swap(`["--session-id", "$`, `["--resume", "$`), 10, "fresh_args are resume_args"},
		"fork is fresh":   {swap("never =", "fork_args = [\"--session-id\", \"${PHUX_AGENT_SESSION_ID}\"]\nnever ="), 11, "of another operation"},
		"fork in fresh":   {swap(`["--session-id",`, `["--fork", "--session-id",`), 10, "begins with another"},
		"recency":         {swap(`["--resume",`, `["--continue", "--resume",`), 8, "by time"},
		"recency value":   {swap(`["demo"]`, `["demo", "--session=latest", "--last"]`), 3, "by time"},
		"fork":            {swap(`["--resume",`, `["--fork-session", "--resume",`), 8, "at every restore"},
		"no pattern":      {swap("id_pattern = \"uuid4\"\n", ""), 8, "no id_pattern"},
		"loose pattern":   {swap(`"uuid4"`, `'^[0-9a-z-]+$'`), 9, "allows \"latest\""},
		"no never":        {swap("never = [\"-c\", \"--resume\", \"--session-id\", \"-e\"]\n", ""), 4, "no never"},
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
