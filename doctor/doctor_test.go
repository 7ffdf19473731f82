package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/capture"
	"github.com/phux-agent/phux-agent/hooks"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/plugin"
	"github.com/phux-agent/phux-agent/restore"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// healthy is a machine on which there is nothing to mend.
func healthy() Facts {
	rec := &metadata.AgentSession{PluginID: "phux.agents", IntegrationID: "claude-code", NativeID: "x"}
	return Facts{
		Now:     noon,
		Program: Program{Self: "/usr/bin/phux-agent", OnPath: "/usr/bin/phux-agent", Same: true},
		State:   Directory{Path: "/s", Free: 1 << 30},
		Runtime: Directory{Path: "/r", Free: 1 << 30},
		Host:    Host{Kind: "tmux", Info: host.Info{Kind: "tmux", Version: "3.3a", Running: true, AtomicRecord: true}},
		History: History{Best: archive.Choice{Entry: archive.Entry{Generation: 3, SavedAt: noon.Add(-time.Hour)}}, Entries: make([]archive.Entry, 3), Saving: true},
		Panes:   []capture.Pane{{State: capture.Running, Restorable: true, Record: rec}},
		Agents:  []Agent{{Integration: "claude-code", Used: true, Program: "/usr/bin/claude", Version: "2.1.332", Verified: []string{"2.1.332"}}},
		Reboot: &restore.Report{Sessions: []restore.SessionReport{{Name: "work", Action: restore.Create, Panes: []restore.PaneReport{
			{Verdict: restore.Resume, Record: rec}, {Verdict: restore.ShellPane},
		}}}},
	}
}

func TestHealthy(t *testing.T) {
	found := Examine(healthy())
	if w := Worst(found); w != OK {
		t.Errorf("%s: %+v", w, found)
	}
	for _, c := range checks {
		if !slices.ContainsFunc(found, func(f Finding) bool { return f.Check == c.name }) {
			t.Errorf("%s says nothing", c.name)
		}
	}
	if found := Examine(Facts{Now: noon}); len(found) < len(checks) { // nothing known is no reason to die
		t.Errorf("%+v", found)
	}
}

func TestEachTrouble(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		change func(*Facts)
		check  string
		grade  Grade
		text   string // part of it
		remedy string // part of it; empty: any
	}{
		"not on the path":   {func(f *Facts) { f.Program.OnPath = "" }, "program", Warn, "not on the PATH", "ln -s /usr/bin/phux-agent ~/.local/bin/"},
		"another one":       {func(f *Facts) { f.Program.Same, f.Program.OnPath = false, "/opt/phux-agent" }, "program", Warn, "/opt/phux-agent", "one of them"},
		"program trust":     {func(f *Facts) { f.Program.Trust = broken }, "program", Warn, "somebody else", "only you or root"},
		"configuration":     {func(f *Facts) { f.Config = broken }, "configuration", Fail, "broken", "mend the file"},
		"state":             {func(f *Facts) { f.State.Err = broken }, "directories", Fail, "/s cannot be used", "the archives"},
		"runtime":           {func(f *Facts) { f.Runtime.Err = broken }, "directories", Fail, "/r cannot be used", "claims"},
		"full disk":         {func(f *Facts) { f.State.Free = 1 << 20 }, "directories", Warn, "1 MiB are free", "make room"},
		"no runtime dir":    {func(f *Facts) { f.Runtime.Temporary = true }, "directories", Note, "XDG_RUNTIME_DIR", ""},
		"no tmux":           {func(f *Facts) { f.Host.Err = broken }, "host", Fail, "broken", "--host embedded"},
		"a setting":         {func(f *Facts) { f.Host.Info.Warnings = []string{"exit-empty"} }, "host", Warn, "exit-empty", ""},
		"an older host":     {func(f *Facts) { f.Host.Info.AtomicRecord = false }, "host", Fail, "cannot store a record", "restart"},
		"untrusted plugin":  {func(f *Facts) { f.Plugins = []plugin.Plugin{{ID: "p", Root: "/p", Err: broken}} }, "plugins", Fail, "plugin p is not used", "plugin validate"},
		"invalid template":  {func(f *Facts) { f.Plugins = twoPlugins(broken) }, "plugins", Fail, "integration i of p is not used", "lint"},
		"two owners":        {func(f *Facts) { f.Plugins = twoPlugins(nil) }, "plugins", Fail, "2 owners (p, q)", "disable"},
		"no program":        {func(f *Facts) { f.Agents[0].ProgramErr = broken }, "agents", Fail, "its program is not found", "PATH"},
		"unverified":        {func(f *Facts) { f.Agents[0].Unverified = broken }, "agents", Warn, "is not resumed", "integration test claude-code --real"},
		"unverified unused": {func(f *Facts) { f.Agents[0].Unverified, f.Agents[0].Used = broken, false }, "agents", Note, "run on no version", ""},
		"too old":           {func(f *Facts) { f.Agents[0].MinVersion = "2.2" }, "agents", Warn, "2.1.332", "upgrade"},
		"not verified on":   {func(f *Facts) { f.Agents[0].Version = "2.2.0" }, "agents", Note, "run on 2.1.332", "--real"},
		"requirement": {func(f *Facts) {
			f.Agents[0].Unmet = []Unmet{{"restore", "it is on", "it deletes", "set /x to false in ~/y"}}
		}, "agents", Warn, "it is on; else it deletes", "set /x to false in ~/y"},
		"no hook": {func(f *Facts) { f.Agents[0].Hooks, f.Agents[0].NeedsHooks = hooks.Missing, true }, "hooks", Warn, "has no hook", "hooks install claude-code"},
		"no hook, not used": {func(f *Facts) {
			f.Agents[0].Hooks, f.Agents[0].NeedsHooks, f.Agents[0].Used = hooks.Missing, true, false
		}, "hooks", Note, "not in use yet", "hooks install"},
		"stale hook":        {func(f *Facts) { f.Agents[0].Hooks = hooks.Stale }, "hooks", Warn, "is stale", "hooks install claude-code"},
		"unreadable record": {func(f *Facts) { f.Panes[0].Err, f.Panes[0].Terminal.ID = broken, "%3" }, "panes", Fail, "cannot be read", "record forget %3"},
		"not restorable":    {func(f *Facts) { f.Panes[0].Restorable, f.Panes[0].Reason = false, "no id" }, "panes", Warn, "no id", ""},
		"by hand":           {func(f *Facts) { f.Panes[0] = capture.Pane{State: capture.Program, Reason: "not adopted: x"} }, "panes", Warn, "not adopted", ""},
		"unconfirmed":       {func(f *Facts) { f.Panes[0].Facts.Unconfirmed = "no answer" }, "panes", Note, "no answer", ""},
		"unseen":            {func(f *Facts) { f.Unseen = broken }, "panes", Fail, "broken", ""},
		"nothing saved":     {func(f *Facts) { f.History = History{Err: archive.ErrNone} }, "history", Fail, "nothing was saved", "phux-agent save"},
		"nothing good":      {func(f *Facts) { f.History.Err = archive.ErrNone }, "history", Fail, "no generation can be restored", "save"},
		"held": {func(f *Facts) {
			f.History.Best.Newer = []archive.Entry{{Generation: 4, State: "held: shrunk", Reason: "r"}}
		}, "history", Warn, "generation 4", "--accept"},
		"corrupt": {func(f *Facts) {
			f.History.Best.Newer = []archive.Entry{{Generation: 4, State: archive.Corrupt, Err: broken}}
		}, "history", Warn, "broken", "archive show 4"},
		"gone":        {func(f *Facts) { f.History.Best.Missing = 9 }, "history", Warn, "generation 9", "save"},
		"no autosave": {func(f *Facts) { f.History.Saving, f.History.SavingWhy = false, "autosave is off" }, "history", Warn, "autosave is off", "autosave on"},
		"old":         {func(f *Facts) { f.History.Best.SavedAt = noon.Add(-50 * time.Hour) }, "history", Warn, "50 hours old", "save"},
		"a placeholder": {func(f *Facts) {
			p := &f.Reboot.Sessions[0].Panes[0]
			p.Verdict, p.Reason, p.Hint = "transcript-missing", "gone", "look"
		}, "reboot", Warn, "pane work:0.0: transcript-missing: gone", "look"},
		"a refusal": {func(f *Facts) { f.Reboot.Sessions[0].Action, f.Reboot.Sessions[0].Reason = restore.Refuse, "r" }, "reboot", Fail, "would not be created: r", ""},
		"not told":  {func(f *Facts) { f.Stage = broken }, "reboot", Warn, "broken", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := healthy()
			c.change(&f)
			found := Examine(f)
			n := slices.IndexFunc(found, func(g Finding) bool {
				return g.Check == c.check && g.Grade == c.grade && strings.Contains(g.Text, c.text)
			})
			if n < 0 {
				t.Fatalf("%+v", found)
			}
			if !strings.Contains(found[n].Remedy, c.remedy) || c.remedy == "" && c.grade == Fail && c.check != "panes" && c.check != "reboot" {
				t.Errorf("the remedy is %q", found[n].Remedy)
			}
			for i, g := range found { // and nothing else changes
				if i != n && g.Grade != OK && g.Check != c.check && !strings.HasPrefix(g.Text, "not looked at") {
					t.Errorf("besides: %+v", g)
				}
			}
		})
	}
}

func twoPlugins(err error) []plugin.Plugin {
	in := []plugin.Integration{{ID: "i", File: "/p/i.toml", Enabled: true, Err: err}}
	return []plugin.Plugin{{ID: "p", Enabled: true, Integrations: in}, {ID: "q", Enabled: true, Integrations: []plugin.Integration{{ID: "i", Enabled: true}}}}
}

func TestOlder(t *testing.T) {
	for _, c := range []struct {
		version, than string
		want          bool
	}{
		{"2.1.332", "2.1", false},
		{"2.0.9", "2.1", true},
		{"2.1", "2.1", false},
		{"10.0", "9.9", false},
		{"0.9.12", "0.10", true},
		{"", "1.0", false},
		{"x", "1", false},
		{"1", "1.0.1", false},
		{"2.1.0-beta", "2.1", false},
	} {
		if got := older(c.version, c.than); got != c.want {
			t.Errorf("older(%q, %q) = %v", c.version, c.than, got)
		}
	}
}

// stageHost remembers what it was to create.
type stageHost struct {
	host.Host
	made host.CreateSession
}

func (h *stageHost) Create(_ context.Context, c host.CreateSession) (*host.Created, error) {
	h.made = c
	return nil, nil
}

func TestUnderstudy(t *testing.T) {
	h := &stageHost{}
	u := Understudy{Host: h, Words: []string{"/bin/sleep", "9"}}
	agent := host.PaneSpec{Start: host.Start{Mode: host.Program, Argv: []string{"/usr/bin/claude", "--resume", "x"}, Guard: []byte("g"), Dir: "/d"}}
	shell := host.PaneSpec{Start: host.Start{Mode: host.Shell}}
	ask := host.CreateSession{Windows: []host.WindowSpec{{Panes: []host.PaneSpec{agent, shell}}}}
	if _, err := u.Create(t.Context(), ask); err != nil {
		t.Fatal(err)
	}
	got := h.made.Windows[0].Panes
	if !slices.Equal(got[0].Start.Argv, u.Words) || string(got[0].Start.Guard) != "g" || got[0].Start.Dir != "/d" {
		t.Errorf("%+v", got[0].Start)
	}
	if got[1].Start.Mode != host.Shell || got[1].Start.Argv != nil {
		t.Errorf("%+v", got[1].Start)
	}
	if ask.Windows[0].Panes[0].Start.Argv[0] != "/usr/bin/claude" {
		t.Error("what it was asked for was changed")
	}
	if _, err := u.Spawn(t.Context(), host.Spawn{}); err == nil {
		t.Error("it spawned")
	}
}

func TestDifferences(t *testing.T) {
	a := &archive.Archive{Sessions: []archive.Session{{Name: "work", Windows: []archive.Window{{Name: "api", Panes: []archive.Pane{{Cwd: "/src"}}}}}}}
	b := &archive.Archive{Sessions: []archive.Session{{Name: "work", Windows: []archive.Window{{Name: "api", Panes: []archive.Pane{{Cwd: "/"}}}}}}}
	there := func(string) bool { return true }
	if got, without := Differences(a, a, there); got != nil || without != nil {
		t.Errorf("%q %q", got, without)
	}
	if got, without := Differences(a, b, there); len(got) != 1 || !strings.Contains(got[0], "work:0.0") || !strings.Contains(got[0], "/src") || without != nil {
		t.Errorf("%q %q", got, without)
	}
	// A directory that is gone is nobody's fault here.
	gone := func(dir string) bool { return dir != "/src" }
	if got, without := Differences(a, b, gone); got != nil || len(without) != 1 || !strings.Contains(without[0], "/src is not there any more") {
		t.Errorf("%q %q", got, without)
	}
}

// A configuration that does not read is one finding, and not a tmux that is missing.
func TestABrokenConfigurationIsOneFinding(t *testing.T) {
	f := healthy()
	f.Config = errors.New("config.toml:1: unexpected EOF\n  x = [\n       ^")
	f.Host.Err, f.History.Err, f.Unseen, f.Stage = f.Config, f.Config, f.Config, f.Config
	bad, seen := 0, map[string]bool{}
	for _, x := range Examine(f) {
		seen[x.Check] = true
		if x.Grade == Warn || x.Grade == Fail {
			bad++
			if x.Check != "configuration" || strings.Contains(x.Text, "\n") {
				t.Errorf("%+v", x)
			}
		}
	}
	if bad != 1 || len(seen) != len(checks) {
		t.Errorf("%d bad findings of %d checks", bad, len(seen))
	}
}

// A pane that runs and was never prompted is one finding, and not one more of the reboot's.
func TestNeverPromptedIsSaidOnce(t *testing.T) {
	f := healthy()
	f.Panes[0].Restorable, f.Panes[0].Reason = false, "it has had no prompt yet"
	p := f.Panes[0]
	rec := &metadata.AgentSession{PluginID: "p", IntegrationID: "codex", NativeID: "x"}
	f.Reboot = &restore.Report{Sessions: []restore.SessionReport{{Name: p.Session, Action: restore.Create, Panes: []restore.PaneReport{
		{Window: p.Window, Index: p.Index, Verdict: restore.NeverDurable, Record: rec},
		{Window: p.Window + 1, Verdict: restore.NeverDurable, Record: rec},
	}}}}
	var got []string
	for _, x := range Examine(f) {
		if x.Grade == Warn {
			got = append(got, x.Check+" "+x.Pane)
		}
	}
	if want := []string{fmt.Sprintf("panes %s:%d.%d", p.Session, p.Window, p.Index), fmt.Sprintf("reboot %s:%d.0", p.Session, p.Window+1)}; !slices.Equal(got, want) {
		t.Errorf("%q, wanted %q", got, want)
	}
}
