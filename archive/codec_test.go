package archive

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/metadata"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func record(id string) *metadata.AgentSession {
	return &metadata.AgentSession{PluginID: "phux.agents", IntegrationID: "claude-code", NativeID: id}
}

// full is an archive with every field set.
func full() *Archive {
	return &Archive{
		SchemaVersion: SchemaVersion, SavedAt: noon, Generation: 42, Prev: Digest(nil),
		Host:    Host{Kind: "tmux", Version: "3.5a", Server: "tmux-default", Instance: "i", Boot: "b", Machine: "m"},
		Held:    &Held{State: "shrunk", Reason: "3 of 4 are gone", Against: 41},
		Content: Digest([]byte("c")), Distinct: Digest([]byte("d")), Counts: &Counts{Live: 1, Pending: 1, Carried: 1},
		Sessions: []Session{
			{Name: "work", Active: true, Cwd: "/src", Windows: []Window{{
				Name: "api", Index: 1, Active: true, Zoomed: true, AutomaticName: true,
				Layout: &Layout{
					Kind: KindSplit, Dir: Horizontal, Ratio: 0.25,
					Left: &Layout{Kind: KindPane}, Right: &Layout{Kind: KindPane, Pane: 1},
				},
				Cells: "120x40,0,0{60x40,0,0,0,59x40,61,0,1}",
				Panes: []Pane{
					{
						Active: true, Title: "t\u2028<&>\x7f\x01", Cwd: "/src/a b", Program: "claude", Cols: 120, Rows: 40,
						AgentSession: record("id 1;$(x)"), Agent: &Agent{
							Key: "abcdefghijklmnopqrstuvwxyz", PluginID: "phux.agents", IntegrationID: "claude-code",
							Profile: "default", LaunchCwd: "/src/api", Store: "s", Durability: "present", State: StateRunning,
							ConfirmedAt: noon, Unconfirmed: "u", Previous: []string{"p"}, NotPreserved: []string{"--model"},
							RecordError: "e",
						},
					},
					{Cols: 59, Rows: 40, CwdError: "its name is not valid UTF-8", Process: &Process{Program: "vim", Args: []string{"a b", "", "$(x)\n"}}},
				},
			}}},
			{Name: "old (pending 41)", Pending: &Pending{Since: noon, From: 41, Name: "old"}, Windows: []Window{{
				Name: "", Index: -1, Panes: []Pane{{AgentSession: record("id-2")}},
			}}},
		},
	}
}

func mustEncode(t testing.TB, a *Archive) []byte {
	t.Helper()
	b, err := a.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustDecode(t testing.TB, b []byte) *Archive {
	t.Helper()
	a, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestEveryFieldComesBack(t *testing.T) {
	want := full()
	b := mustEncode(t, want)
	got := mustDecode(t, b)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if again := mustEncode(t, got); string(again) != string(b) {
		t.Error(cmp.Diff(string(b), string(again)))
	}
}

// The bytes that this release writes. Older ones stay beside it, so that every later release is
// seen to read them.
func TestGolden(t *testing.T) {
	path := filepath.Join("testdata", "v2-full.json")
	b := mustEncode(t, full())
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(b)); d != "" {
		t.Error(d)
	}
}

func TestFixturesAreRead(t *testing.T) {
	paths, err := filepath.Glob("testdata/v*.json")
	if err != nil || len(paths) < 4 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		a, err := Decode(b)
		if strings.HasPrefix(filepath.Base(path), "v3") {
			var v *VersionError
			if !errors.As(err, &v) || v.Found != 3 {
				t.Errorf("%s: %v", path, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if len(a.Sessions) == 0 || len(a.Sessions[0].Windows) == 0 || len(a.Sessions[0].Windows[0].Panes) == 0 {
			t.Errorf("%s: read as %+v", path, a)
		}
		if err := readAsPhux(mustEncode(t, a)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Arguments come back exactly or not at all.
func TestProcess(t *testing.T) {
	a := func(q *Process) *Archive {
		return &Archive{Sessions: []Session{{Name: "a", Windows: []Window{{Name: "w", Panes: []Pane{{Process: q}}}}}}}
	}
	long := strings.Repeat("x", MaxProcess)
	for _, q := range []*Process{
		{Program: ""},
		{Program: "a\n", Args: []string{}},
		{Program: "vim", Args: []string{"\xff"}},
		{Program: "vim", Args: []string{"a\x00"}},
		{Program: "vim", Args: []string{long}},
		{Program: "vim", Args: make([]string, MaxProcessArgs+1)},
		{Program: strings.Repeat("v", MaxWord+1)},
	} {
		if got := mustDecode(t, mustEncode(t, a(q))).Sessions[0].Windows[0].Panes[0].Process; got != nil {
			t.Errorf("%.80v came back as %.80v", *q, *got)
		}
	}
	for text, ok := range map[string]bool{
		`null`: true, `{"program":"vim"}`: true, `{"program":"vim","args":["",";"],"new":{}}`: true, `{}`: false, `{"args":["x"]}`: false,
		`{"program":"vim","args":null}`: false, `{"program":"vim","args":"x"}`: false, `"vim"`: false, `{"program":"vim","program":"sh"}`: false,
		`{"program":"vim","args":["` + long + `"]}`: false, `{"program":" vim","args":[]}`: false,
	} {
		_, err := Decode([]byte(`{"schema_version":2,"sessions":[{"name":"a","windows":[{"name":"w","panes":[{"process":` + text + `}]}]}]}`))
		if (err == nil) != ok {
			t.Errorf("%.60s: %v", text, err)
		}
	}
}

// readAsPhux is phux's reader, as far as its source says (serde): the fields that it requires,
// their types and ranges, and nothing of what it ignores. It stands on the standard library, so
// that an error of our decoder cannot hide one of our encoder.
func readAsPhux(b []byte) error {
	type node = map[string]any
	var root node
	if err := json.Unmarshal(b, &root); err != nil {
		return err
	}
	need := func(n node, at string, fields map[string]string) error {
		for f, kinds := range fields {
			v, ok := n[f]
			if !ok && strings.Contains(kinds, "absent") {
				continue
			}
			if kind := fmt.Sprintf("%T", v); !ok || !strings.Contains(kinds, kind) {
				return fmt.Errorf("%s.%s is %s (there: %v), want %s", at, f, kind, ok, kinds)
			}
		}
		return nil
	}
	var layout func(v any, depth int) error
	layout = func(v any, depth int) error {
		n, ok := v.(node)
		if !ok || depth > 122 {
			return fmt.Errorf("layout node %T at depth %d", v, depth)
		}
		switch n["kind"] {
		case "pane":
			return need(n, "pane node", map[string]string{"pane": "float64"})
		case "split":
			if err := need(n, "split node", map[string]string{"dir": "string", "ratio": "float64"}); err != nil {
				return err
			}
			return errors.Join(layout(n["left"], depth+1), layout(n["right"], depth+1))
		}
		return fmt.Errorf("kind %v", n["kind"])
	}
	pane := func(p node) error {
		if err := need(p, "pane", map[string]string{"active": "bool", "title": "string absent", "cwd": "string absent", "command": "<nil>", "cols": "float64", "rows": "float64"}); err != nil {
			return err
		}
		for _, f := range []string{"cols", "rows"} {
			if n := p[f].(float64); n < 0 || n > 65535 || n != math.Trunc(n) {
				return fmt.Errorf("%s %v", f, n)
			}
		}
		v, there := p["agent_session"]
		if !there {
			return nil
		}
		r, ok := v.(node)
		if !ok || len(r) != 3 {
			return fmt.Errorf("record %v", v)
		}
		word := func(f string) string { s, _ := r[f].(string); return s }
		return metadata.AgentSession{PluginID: word("plugin_id"), IntegrationID: word("integration_id"), NativeID: word("native_id")}.Validate()
	}
	if v, ok := root["schema_version"].(float64); !ok || v != 2 {
		return errors.New("schema_version")
	}
	ss, ok := root["sessions"].([]any)
	if !ok {
		return errors.New("sessions")
	}
	names := map[string]bool{}
	for _, v := range ss {
		s := v.(node)
		if err := need(s, "session", map[string]string{"name": "string", "active": "bool", "cwd": "string absent", "windows": "[]interface {}"}); err != nil {
			return err
		}
		name := s["name"].(string)
		if names[name] || strings.TrimSpace(name) == "" {
			return fmt.Errorf("name %q", name)
		}
		names[name] = true
		if _, there := s["command"]; there {
			return errors.New("a session's command was written: phux would run it")
		}
		for _, v := range s["windows"].([]any) {
			w := v.(node)
			if err := need(w, "window", map[string]string{"name": "string", "active": "bool", "panes": "[]interface {}"}); err != nil {
				return err
			}
			if l, there := w["layout"]; there {
				if err := layout(l, 1); err != nil {
					return err
				}
			}
			for _, v := range w["panes"].([]any) {
				if err := pane(v.(node)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// hostile is what a host may hand us, and what no file may hold.
func hostile() *Archive {
	a := full()
	a.SavedAt = time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)
	a.Host.Version = "3\x00.\xff"
	a.Sessions[0].Name = "a\nb\x1b]0;\x07"
	a.Sessions[0].Cwd = "relative"
	a.Sessions[0].Command = []string{"rm", "-rf", "/"}
	w := &a.Sessions[0].Windows[0]
	w.Name = strings.Repeat("ä", MaxName)
	w.Index = -7
	w.Cells = "\xff"
	w.Layout.Right.Pane = 99
	p := &w.Panes[0]
	p.Title, p.Program = "\xff\x00"+strings.Repeat("€", MaxText), "\x00"
	p.Cwd = "/latin1/\xe4"
	p.Command = []string{"bash", "-c", "evil"}
	p.Cols, p.Rows = 70000, -1
	p.AgentSession = record("--help")
	p.Agent.Key, p.Agent.State = "a\x1bb", strings.Repeat("x", 300)
	p.Agent.PluginID, p.Agent.LaunchCwd = " padded", "../x"
	p.Agent.Previous = []string{"ok", "-bad", "also\nbad"}
	w.Panes[1].Cwd = "/nul/\x00"
	w.Panes[1].AgentSession = record("a\x00b")
	w.Panes[1].Agent = nil
	return a
}

func TestWhatCannotBeWrittenIsLeftOutAndSaid(t *testing.T) {
	a := hostile()
	b := mustEncode(t, a)
	if d := cmp.Diff(hostile(), a); d != "" {
		t.Errorf("Encode changed its argument: %s", d)
	}
	if err := readAsPhux(b); err != nil {
		t.Error(err)
	}
	got := mustDecode(t, b)
	s := got.Sessions[0]
	if s.Name != "a\nb\x1b]0;\x07" {
		t.Errorf("a session's name was repaired: %q", s.Name)
	}
	w := s.Windows[0]
	if w.Layout != nil || w.Cells != "" || w.Index != -1 {
		t.Errorf("window %+v", w)
	}
	p := w.Panes[0]
	if p.Cwd != "" || !strings.Contains(p.CwdError, "UTF-8") {
		t.Errorf("cwd %q, error %q", p.Cwd, p.CwdError)
	}
	if p.AgentSession != nil || !strings.Contains(p.Agent.RecordError, "begins with -") {
		t.Errorf("record %v, agent %+v", p.AgentSession, p.Agent)
	}
	if d := cmp.Diff([]string{"ok"}, p.Agent.Previous); d != "" {
		t.Error(d)
	}
	if p.Cols != MaxSide || p.Rows != 0 || p.Agent.Key != "ab" || p.Agent.PluginID != "" || p.Agent.LaunchCwd != "" {
		t.Errorf("pane %+v agent %+v", p, p.Agent)
	}
	if q := w.Panes[1]; q.AgentSession != nil || q.Agent == nil || q.Agent.RecordError == "" || q.CwdError == "" {
		t.Errorf("second pane %+v", q)
	}
	if again := mustEncode(t, got); string(again) != string(b) {
		t.Error(cmp.Diff(string(b), string(again)))
	}
}

func TestOursIsReadByPhux(t *testing.T) {
	for _, a := range []*Archive{full(), hostile(), {}, {Sessions: []Session{{Name: "a"}, {Name: "b", Windows: []Window{{}}}}}} {
		if err := readAsPhux(mustEncode(t, a)); err != nil {
			t.Error(err)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	many := make([]Session, MaxSessions+1)
	for i := range many {
		many[i].Name = fmt.Sprint(i)
	}
	for name, a := range map[string]*Archive{
		"two of one name":   {Sessions: []Session{{Name: "a"}, {Name: "a"}}},
		"blank":             {Sessions: []Session{{Name: " \t"}}},
		"NUL":               {Sessions: []Session{{Name: "a\x00"}}},
		"not UTF-8":         {Sessions: []Session{{Name: "a\xff"}}},
		"long":              {Sessions: []Session{{Name: strings.Repeat("a", MaxName+1)}}},
		"too many sessions": {Sessions: many},
		"too many panes":    {Sessions: []Session{{Name: "a", Windows: []Window{{Panes: make([]Pane, MaxWindowPanes+1)}}}}},
		"too many windows":  {Sessions: []Session{{Name: "a", Windows: make([]Window, MaxWindows+1)}}},
	} {
		var bad *FormatError
		if _, err := a.Encode(); !errors.As(err, &bad) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDecodeLimits(t *testing.T) {
	list := func(n int, s string) string { return strings.TrimSuffix(strings.Repeat(s+",", n), ",") }
	sessions := func(windows string) string {
		return `{"schema_version":2,"sessions":[{"name":"a","windows":[` + windows + `]}]}`
	}
	var many strings.Builder
	for i := range MaxSessions + 1 {
		fmt.Fprintf(&many, `{"name":"%d"},`, i)
	}
	window := func(n int) string { return `{"name":"","panes":[` + list(n, "{}") + `]}` }
	for name, c := range map[string]struct {
		text string
		good bool
	}{
		"sessions":            {`{"schema_version":2,"sessions":[` + strings.TrimSuffix(many.String(), ",") + `]}`, false},
		"windows":             {sessions(list(MaxWindows, `{"name":""}`)), true},
		"one window too many": {sessions(list(MaxWindows+1, `{"name":""}`)), false},
		"panes":               {sessions(window(MaxWindowPanes)), true},
		"one pane too many":   {sessions(window(MaxWindowPanes + 1)), false},
		"all panes":           {sessions(list(MaxPanes/MaxWindowPanes, window(MaxWindowPanes))), true},
		"one of all too many": {sessions(list(MaxPanes/MaxWindowPanes, window(MaxWindowPanes)) + "," + window(1)), false},
		"size":                {`{"schema_version":2,"sessions":[]}` + strings.Repeat(" ", MaxSize), false},
	} {
		if _, err := Decode([]byte(c.text)); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// chain is a layout of n panes, each half of what the one before left.
func chain(n int) *Layout {
	l := &Layout{Kind: KindPane, Pane: n - 1}
	for i := n - 2; i >= 0; i-- {
		l = &Layout{Kind: KindSplit, Dir: Vertical, Ratio: 0.5, Left: &Layout{Kind: KindPane, Pane: i}, Right: l}
	}
	return l
}

func TestDeepLayouts(t *testing.T) {
	for n, want := range map[int]bool{MaxLayoutDepth: true, MaxLayoutDepth + 1: false} {
		b := mustEncode(t, &Archive{Sessions: []Session{{Name: "a", Windows: []Window{{Layout: chain(n), Panes: make([]Pane, n)}}}}})
		if err := readAsPhux(b); err != nil {
			t.Error(err)
		}
		if got := mustDecode(t, b).Sessions[0].Windows[0].Layout != nil; got != want {
			t.Errorf("%d nested: layout written: %v", n, got)
		}
	}
	node := func(n int) string {
		return strings.Repeat(`{"kind":"split","dir":"vertical","ratio":0.5,"left":{"kind":"pane","pane":0},"right":`, n-1) + `{"kind":"pane","pane":1}` + strings.Repeat("}", n-1)
	}
	for n, good := range map[int]bool{MaxLayoutDepth: true, MaxLayoutDepth + 1: false} {
		_, err := Decode([]byte(`{"schema_version":2,"sessions":[{"name":"a","windows":[{"name":"w","layout":` + node(n) + `}]}]}`))
		if (err == nil) != good {
			t.Errorf("%d nested: %v", n, err)
		}
	}
}

func TestLayoutCheck(t *testing.T) {
	pane := func(n int) *Layout { return &Layout{Kind: KindPane, Pane: n} }
	split := func(l, r *Layout, ratio float64, dir string) *Layout {
		return &Layout{Kind: KindSplit, Dir: dir, Ratio: ratio, Left: l, Right: r}
	}
	for name, c := range map[string]struct {
		l    *Layout
		n    int
		good bool
	}{
		"one":           {pane(0), 1, true},
		"two":           {split(pane(1), pane(0), 0.5, Horizontal), 2, true},
		"nil":           {nil, 0, false},
		"missing pane":  {pane(0), 2, false},
		"pane twice":    {split(pane(0), pane(0), 0.5, Vertical), 1, false},
		"unknown pane":  {split(pane(0), pane(9), 0.5, Vertical), 2, false},
		"negative":      {pane(-1), 1, false},
		"half missing":  {split(pane(0), nil, 0.5, Vertical), 1, false},
		"ratio 0":       {split(pane(0), pane(1), 0, Vertical), 2, false},
		"ratio 1":       {split(pane(0), pane(1), 1, Vertical), 2, false},
		"ratio NaN":     {split(pane(0), pane(1), math.NaN(), Vertical), 2, false},
		"ratio near 1":  {split(pane(0), pane(1), 1-1e-12, Vertical), 2, false},
		"direction":     {split(pane(0), pane(1), 0.5, "Horizontal"), 2, false},
		"kind":          {&Layout{Kind: "leaf"}, 1, false},
		"a split alone": {&Layout{Kind: KindSplit, Dir: Vertical, Ratio: 0.5}, 1, false},
	} {
		if err := c.l.Check(c.n); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRecords(t *testing.T) {
	a := full()
	a.Sessions[0].Windows[0].Panes[1].AgentSession = record("placeholder")
	a.Sessions[0].Windows[0].Panes[1].Agent = &Agent{State: StatePending}
	if live, pending := a.Records(); live != 1 || pending != 2 {
		t.Errorf("live %d, pending %d", live, pending)
	}
}

func TestVersions(t *testing.T) {
	for text, found := range map[string]int{
		`{"schema_version":3,"sessions":"of another shape"}`:  3,
		`{"workspaces":[[{}]],"schema_version":99}`:           99,
		`{"schema_version":0,"sessions":[]}`:                  0,
		`{"schema_version":-1}`:                               -1,
		`{"sessions":[{"name":1}],"schema_version":3,"x":[]}`: 3,
	} {
		var v *VersionError
		if _, err := Decode([]byte(text)); !errors.As(err, &v) || v.Found != found {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestErrorsSayWhere(t *testing.T) {
	_, err := Decode([]byte(`{"schema_version":2,"sessions":[{"name":"a","windows":[{"name":"w","panes":[{},{"cols":-1}]}]}]}`))
	var bad *FormatError
	if !errors.As(err, &bad) || bad.Pointer != "/sessions/0/windows/0/panes/1/cols" {
		t.Errorf("%v", err)
	}
}

func TestDigestsIgnoreTimes(t *testing.T) {
	digests := func(change func(*Archive)) (string, string) {
		a := full()
		change(a)
		f, err := fit(a)
		if err != nil {
			t.Fatal(err)
		}
		return f.body().content, f.body().distinct
	}
	c0, d0 := digests(func(*Archive) {})
	pane := func(a *Archive) *Pane { return &a.Sessions[0].Windows[0].Panes[0] }
	for name, x := range map[string]struct {
		change            func(*Archive)
		content, distinct bool // changed
	}{
		"times, number, prev": {func(a *Archive) {
			a.SavedAt, a.Generation, a.Prev, a.Held = noon.Add(time.Hour), 43, Digest([]byte("x")), nil
			pane(a).Agent.ConfirmedAt = noon.Add(time.Hour)
		}, false, false},
		"title":          {func(a *Archive) { pane(a).Title = "spinner" }, true, false},
		"program":        {func(a *Archive) { pane(a).Program = "vim" }, true, false},
		"zoomed":         {func(a *Archive) { a.Sessions[0].Windows[0].Zoomed = false }, true, false},
		"automatic name": {func(a *Archive) { a.Sessions[0].Windows[0].Name = "x" }, true, false},
		"name":           {func(a *Archive) { a.Sessions[1].Windows[0].Name = "x" }, true, true},
		"since":          {func(a *Archive) { a.Sessions[1].Pending.Since = noon.Add(time.Hour) }, false, false},
		"record":         {func(a *Archive) { pane(a).AgentSession = record("other") }, true, true},
		"cwd":            {func(a *Archive) { pane(a).Cwd = "/other" }, true, true},
		"instance":       {func(a *Archive) { a.Host.Instance = "other" }, true, true},
		"state":          {func(a *Archive) { pane(a).Agent.State = StateEnded }, true, true},
	} {
		c, d := digests(x.change)
		if (c != c0) != x.content || (d != d0) != x.distinct {
			t.Errorf("%s: content changed %v, distinct changed %v", name, c != c0, d != d0)
		}
	}
}

func FuzzDecode(f *testing.F) {
	b, err := full().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	for _, c := range corpus(f) {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := Decode(b)
		if err != nil {
			var format *FormatError
			var version *VersionError
			if !errors.As(err, &format) && !errors.As(err, &version) {
				t.Fatalf("an error of no type: %v", err)
			}
			return
		}
		out, err := a.Encode()
		if err != nil {
			t.Fatalf("decoded, and not to be encoded: %v", err)
		}
		if err := readAsPhux(out); err != nil {
			t.Fatalf("phux would refuse what we write: %v", err)
		}
		again, err := Decode(out)
		if err != nil {
			t.Fatalf("encoded, and not to be decoded: %v", err)
		}
		last, err := again.Encode()
		if err != nil || string(last) != string(out) {
			t.Fatalf("the encoding is not stable: %v %s", err, cmp.Diff(string(out), string(last)))
		}
	})
}
