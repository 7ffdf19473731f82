package rehearsal

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/phux-agent/phux-agent/integrations"
)

const source = `id = "demo"
[launch]
command = ["demo"]
scrub_env = ["DEMO_CHILD"]
[session_identity]
mode = "native-or-phux"
restore = "external-cli"
native_env = "PHUX_DEMO_SESSION_ID"
id_pattern = "uuid4"
resume_args = ["--resume", "${PHUX_AGENT_SESSION_ID}"]
fresh_args = ["--session-id", "${PHUX_AGENT_SESSION_ID}"]
[transcript]
root = "~/.demo"
paths = ["*/${PHUX_AGENT_SESSION_ID}.log"]
`

const one, two = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"

func parse(t *testing.T, src string) *integrations.Template {
	t.Helper()
	tmpl, _, err := integrations.Parse("demo.toml", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

// scripted is a stage on which everything goes as it should, but for what a case changes.
type scripted struct {
	cuts                   int
	id, verdict, result    string
	durability, reason     string
	window                 int
	alive                  bool
	args                   []string
	failing, stderr        string // a verb that fails, and its words
	untouched, untouchedIs string
	state                  string
}

func (s *scripted) Verb(_ context.Context, args ...string) (Outcome, error) {
	if args[0] == s.failing {
		return Outcome{Code: 1, Stderr: s.stderr}, nil
	}
	var doc string
	id, window := one, 0
	if s.cuts > 0 {
		id, window = s.id, s.window
	}
	switch args[0] {
	case "launch":
		doc = fmt.Sprintf(`{"terminal": "%%0", "record": {"plugin_id": "p", "native_id": %q}}`, one)
	case "ps":
		doc = fmt.Sprintf(`{"panes": [{"session": "other"}, {"terminal": "%%%d", "session": "rehearsal", "window": %d, "record": {"native_id": %q}, "durability": %q, "reason": %q}]}`, s.cuts, window, id, s.durability, s.reason)
	case "save":
		doc = fmt.Sprintf(`{"generation": 1, "state": %q, "records": 1}`, s.state)
	case "restore":
		doc = fmt.Sprintf(`{"sessions": [{"name": "rehearsal", "panes": [{"window": 0, "verdict": %q, "result": %q}]}, {"name": "untouched", "panes": [{"verdict": %q, "result": %q}]}]}`,
			s.verdict, s.result, s.untouched, s.untouchedIs)
	}
	return Outcome{Stdout: []byte(doc)}, nil
}

func (s *scripted) Type(context.Context, string, string) error { return nil }
func (s *scripted) Screen(context.Context, string) (string, error) {
	return "\n  a prompt\n", nil
}

func (s *scripted) Process(context.Context, string) ([]string, bool, error) {
	if s.args != nil && s.cuts > 0 {
		return s.args, s.alive, nil
	}
	op := map[bool]string{true: "--session-id", false: "--resume"}[s.cuts == 0]
	return []string{"/bin/demo", op, one}, s.alive || s.cuts == 0, nil
}
func (s *scripted) Cut(context.Context) error { s.cuts++; return nil }

func well() *scripted {
	return &scripted{id: one, verdict: "resume", result: "running", durability: "present", alive: true, untouched: "fresh-same-id", untouchedIs: "running", state: "good"}
}

// Each thing that may go wrong is judged, at the step where it is seen, and nothing else is.
func TestJudge(t *testing.T) {
	for name, x := range map[string]struct {
		change func(*scripted, *Play)
		what   string // the one step that fails; empty: none
		detail string
	}{
		"all is well":            {func(*scripted, *Play) {}, "", ""},
		"another identity":       {func(s *scripted, _ *Play) { s.id = two }, "same identity", two},
		"another pane":           {func(s *scripted, _ *Play) { s.window = 3 }, "same pane", "window 3"},
		"it ended":               {func(s *scripted, _ *Play) { s.alive = false }, "alive", "it said: a prompt"},
		"it exits":               {func(s *scripted, _ *Play) { s.result = "exited" }, "restored", "exited"},
		"another verdict":        {func(s *scripted, _ *Play) { s.verdict = "transcript-missing" }, "restored", "transcript-missing"},
		"other arguments":        {func(s *scripted, _ *Play) { s.args = []string{"demo", "--continue"} }, "arguments", "--continue"},
		"arguments of a wrapper": {func(s *scripted, _ *Play) { s.args = []string{"node", "/bin/demo", "--resume", one} }, "", ""},
		"arguments of a profile": {func(s *scripted, _ *Play) { s.args = []string{"demo", "--resume", one, "-m", "x"} }, "", ""},
		"arguments overwritten":  {func(s *scripted, _ *Play) { s.args = []string{"demo"} }, "", ""},
		"no transcript":          {func(s *scripted, _ *Play) { s.durability = "absent" }, "transcript", "nothing of it"},
		"not saved":              {func(s *scripted, _ *Play) { s.state = "held" }, "saved", ""},
		"it does not start": {func(s *scripted, _ *Play) {
			s.failing, s.stderr = "launch", "phux-agent: error: e\nphux-agent: hint: h\n"
		}, "starts", "e"},
		"it is not restored":   {func(s *scripted, _ *Play) { s.failing, s.stderr = "restore", "phux-agent: error: e\n" }, "restored", "e"},
		"nobody prompts":       {func(_ *scripted, p *Play) { p.Prompt = "" }, "prompt", "a person is needed"},
		"never prompted, gone": {func(s *scripted, _ *Play) { s.untouchedIs = "exited" }, "never prompted", "exited"},
		"not filled in": {func(_ *scripted, p *Play) {
			p.Warnings = []integrations.Warning{{Text: "x is still to be filled in"}}
		}, "template", "not filled in"},
		"not restorable": {func(_ *scripted, p *Play) {
			p.Template = &integrations.Template{ID: "d", Launch: integrations.Launch{Command: []string{"d"}}}
		}, "template", "resumes no native id"},
	} {
		t.Run(name, func(t *testing.T) {
			s := well()
			p := Play{
				Template: parse(t, source), Dir: t.TempDir(), Prompt: "x", Patience: time.Millisecond,
				Patterns: func(id string) ([]string, error) { return []string{"/h/.demo/*/" + id}, nil },
			}
			x.change(s, &p)
			r, err := Run(t.Context(), s, p)
			if err != nil {
				t.Fatal(err)
			}
			var wrong []string
			for _, c := range r.Checks {
				if c.State != Failed {
					continue
				}
				if c.Do == "" || !strings.Contains(c.Detail, x.detail) {
					t.Errorf("%+v, want %q and something to do", c, x.detail)
				}
				if !slices.Contains(wrong, c.What) {
					wrong = append(wrong, c.What)
				}
			}
			if got := strings.Join(wrong, ", "); got != x.what || r.Passed() != (x.what == "") {
				t.Errorf("failed: %s, want %s\n%+v", got, x.what, r.Checks)
			}
			if x.what == "" && s.cuts != Generations {
				t.Errorf("%d power cuts", s.cuts)
			}
		})
	}
}

// play runs a fake to its end and returns its exit code and its words.
func play(t *testing.T, tmpl *integrations.Template, dir, store string, in string, args ...string) (int, string) {
	t.Helper()
	t.Chdir(dir)
	var out bytes.Buffer
	f := Fake{
		Template: tmpl, Store: store, Args: args, Environ: []string{"HOME=" + filepath.Dir(store), "PHUX_DEMO_SESSION_ID=" + one},
		Self: "/bin/false", In: strings.NewReader(in), Out: &out,
	}
	return f.Run(), out.String()
}

// The stand-in keeps to the template: what is fresh, what exists, what is not known, and where.
func TestFake(t *testing.T) {
	base := t.TempDir()
	here, there, store := filepath.Join(base, "a"), filepath.Join(base, "b"), filepath.Join(base, "fakes")
	for _, d := range []string{here, there} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	tmpl := parse(t, source)
	expect := func(what string, dir, in string, code int, words string, args ...string) {
		t.Helper()
		if got, out := play(t, tmpl, dir, store, in, args...); got != code || !strings.Contains(out, words) {
			t.Errorf("%s: exit %d, %q; want %d, %q", what, got, out, code, words)
		}
	}
	transcript := filepath.Join(base, ".demo", "x", one+".log")
	expect("unknown", here, "", 1, "no conversation "+one, "--resume", one)
	expect("fresh", here, "/exit\n", 0, one, "--session-id", one)
	expect("never prompted", here, "", 1, "no conversation", "--resume", one)
	if _, err := os.Stat(transcript); err == nil {
		t.Error("a transcript before the first prompt")
	}
	expect("the same again", here, "first\n", 0, "noted, 1 so far", "--session-id", one)
	if _, err := os.Stat(transcript); err != nil {
		t.Error(err)
	}
	expect("fresh over one that exists", here, "", 1, "exists already", "--session-id", one)
	expect("resumed", here, "second\n", 0, "I remember: first\n> noted, 2 so far", "-m", "x", "--resume", one)
	expect("elsewhere", there, "", 1, "and this is", "--resume", one)
	if err := os.Rename(transcript, transcript+".gone"); err != nil {
		t.Fatal(err)
	}
	expect("taken away", here, "", 1, "no conversation", "--resume", one)

	events, err := Events(store)
	if err != nil || len(events) == 0 || !slices.ContainsFunc(events, func(e Event) bool {
		return e.Event == "start" && e.Op == "resume" && e.Prompts == 1 && e.Native == one && e.Dir == here
	}) {
		t.Errorf("%+v, %v", events, err)
	}
	tmpl = parse(t, strings.Replace(source, "[transcript]", "unknown_id = \"blank\"\n[transcript]", 1))
	expect("blank", here, "x\n", 0, "no conversation "+two, "--resume", two)
	if got, out := play(t, tmpl, here, store, "", FakeMint); got != 0 || tmpl.CheckID(strings.TrimSpace(out)) != nil {
		t.Errorf("minted %q, exit %d", out, got)
	}
}

// Files are found by the first bytes of an id, and never chosen.
func TestFindFiles(t *testing.T) {
	base := t.TempDir()
	name := filepath.Join(base, "deep", "x-11111111.jsonl")
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := FindFiles([]string{filepath.Join(base, "nowhere"), base, base}, one); !slices.Equal(got, []string{name}) {
		t.Errorf("%q", got)
	}
	if got := FindFiles([]string{base}, two); got != nil {
		t.Errorf("%q", got)
	}
}
