package restore

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/config"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
	"github.com/phux-agent/phux-agent/plugin"
)

// taint marks every free text of a generated archive: it must not come out again in a program,
// an argument or an environment value.
const taint = "TAINT"

func text(t *rapid.T, label string) string {
	return rapid.SampledFrom([]string{"", "; touch X", "$(id)", "--continue", "#{pid}", "\x1b[31m", "日本"}).Draw(t, label) + taint
}

var propertyIDs = []string{
	id1, id2, id3, "0198aaaa-1111-7111-8111-11111111abcd", "0198AAAA-1111-7111-8111-11111111ABCD",
	"latest", "1", "--resume", "$(id)", "a b", strings.Repeat("x", 2000),
}

func anyWorld(t *rapid.T, tb testing.TB, templates map[string]*integrations.Template) *world {
	w := newWorld(tb)
	w.t = tb
	w.src.Own = rapid.Bool().Draw(t, "own")
	w.o = Options{
		Strict: rapid.Bool().Draw(t, "strict"), Import: rapid.Bool().Draw(t, "import"),
		FromHost: rapid.Bool().Draw(t, "from-host"), Unattended: rapid.Bool().Draw(t, "unattended"),
		Mode: rapid.SampledFrom([]config.Mode{"", "", config.Auto, config.Ask, config.Manual}).Draw(t, "mode"),
	}
	w.f.BootMode = rapid.SampledFrom([]config.Mode{"", config.Ask, config.Manual}).Draw(t, "boot mode")
	if rapid.Bool().Draw(t, "map") {
		w.o.Owners = map[string]string{"old" + taint: plugin.FirstParty}
	}
	w.src.Archive.Host.Machine = rapid.SampledFrom([]string{"", "m1", "m1", "m2"}).Draw(t, "machine")
	w.f.Host.AtomicRecord = rapid.IntRange(0, 9).Draw(t, "atomic") > 0

	dirs := []string{"", "/src/a", "/src/b", "/gone" + taint, "/closed", "relative" + taint}
	w.f.Dirs["/closed"] = Dir{State: DirUnreadable, Own: rapid.Bool().Draw(t, "own dir"), Detail: "closed"}
	w.f.Dirs["/src/b"] = Dir{State: DirThere, Own: rapid.Bool().Draw(t, "own dir")}
	names := []string{"codex", "claude-code", "cline", "gemini-cli", "plain", "unheard-of"}
	profiles := []string{DefaultProfile, "yolo"}
	talks := map[string]Talk{}
	for _, id := range propertyIDs {
		talks[id] = Talk{
			Presence: rapid.SampledFrom([]owner.Presence{owner.Present, owner.Absent, owner.Begun, owner.CannotTell}).Draw(t, "presence"),
			Live:     owner.Live{Kind: rapid.SampledFrom([]owner.LiveKind{owner.NotLive, owner.NotLive, owner.NotLive, owner.Claimed, owner.Orphan}).Draw(t, "live")},
		}
	}
	for _, n := range names {
		for _, pr := range profiles {
			a := anyAgent(t, templates[n], n, pr)
			for _, pl := range []string{plugin.FirstParty, "old" + taint} {
				k := AgentKey{n, pl, pr}
				w.f.Agents[k] = a
				for id, talk := range talks {
					w.f.Talks[TalkKey{k, normal(templates[n], id)}] = talk
				}
			}
		}
	}

	w.f.Programs = map[string]Listed{
		"vim":  {Program: config.Program{Name: "vim", Command: []string{"vim", "-n"}, SavedArgs: true}, Path: "/usr/bin/vim"},
		"htop": {Program: config.Program{Name: "htop", Command: []string{"htop"}}, Path: "/usr/bin/htop"},
	}
	w.src.Archive.Sessions = nil
	for i := range rapid.IntRange(0, 4).Draw(t, "sessions") {
		s := archive.Session{Name: fmt.Sprint("s", i, text(t, "name")), Cwd: rapid.SampledFrom(dirs).Draw(t, "cwd"), Command: []string{text(t, "command")}}
		if rapid.IntRange(0, 4).Draw(t, "pending") == 0 {
			s.Pending = &archive.Pending{}
		}
		for range rapid.IntRange(0, 3).Draw(t, "windows") {
			win := archive.Window{Name: text(t, "window"), Index: rapid.IntRange(-1, 3).Draw(t, "index"), Cells: text(t, "cells")}
			for range rapid.IntRange(0, 3).Draw(t, "panes") {
				win.Panes = append(win.Panes, anyPane(t, names, profiles, dirs))
			}
			s.Windows = append(s.Windows, win)
		}
		w.f.Names[s.Name] = holdable(s.Name)
		if rapid.IntRange(0, 4).Draw(t, "there") == 0 {
			w.f.View.Sessions = append(w.f.View.Sessions, host.Session{Name: holdable(s.Name)})
		}
		w.src.Archive.Sessions = append(w.src.Archive.Sessions, s)
	}
	return w
}

func anyAgent(t *rapid.T, tpl *integrations.Template, name, profile string) Agent {
	if tpl == nil || rapid.IntRange(0, 7).Draw(t, "resolves") == 0 {
		return Agent{Err: &plugin.ResolveError{Reason: rapid.SampledFrom([]plugin.Reason{
			plugin.Missing, plugin.Disabled, plugin.Ambiguous, plugin.Invalid, plugin.Untrusted, plugin.OwnerChanged,
		}).Draw(t, "reason"), Integration: name}}
	}
	a := Agent{
		Owner:   plugin.Owner{PluginID: plugin.FirstParty, Root: "/plugins/p", Template: tpl},
		Profile: integrations.Profile{Name: profile}, HasProfile: rapid.IntRange(0, 7).Draw(t, "profile") > 0,
		Program: "/usr/bin/" + tpl.Launch.Command[0], Store: rapid.SampledFrom([]string{"store-1", "store-2"}).Draw(t, "store"),
	}
	if profile == "yolo" {
		a.Profile.Args = []string{"--of-profile"}
	}
	for _, r := range tpl.Require {
		a.Unmet = append(a.Unmet, Unmet{r, "it is not so"})
	}
	return a
}

func anyPane(t *rapid.T, names, profiles, dirs []string) archive.Pane {
	p := archive.Pane{
		Cwd: rapid.SampledFrom(dirs).Draw(t, "cwd"), Title: text(t, "title"), Program: text(t, "program"),
		Command: []string{text(t, "command")}, Active: rapid.Bool().Draw(t, "active"),
		Cols: rapid.IntRange(0, 200).Draw(t, "cols"), Rows: rapid.IntRange(0, 60).Draw(t, "rows"),
	}
	kind := rapid.IntRange(0, 4).Draw(t, "kind")
	if kind == 0 {
		if rapid.Bool().Draw(t, "process") {
			p.Process = &archive.Process{Program: rapid.SampledFrom([]string{"vim", "htop", "other" + taint}).Draw(t, "program name"), Args: []string{"-c", text(t, "arg")}}
		}
		return p
	}
	if kind > 1 {
		p.AgentSession = &metadata.AgentSession{
			PluginID:      rapid.SampledFrom([]string{plugin.FirstParty, plugin.FirstParty, "old" + taint}).Draw(t, "plugin"),
			IntegrationID: rapid.SampledFrom(names).Draw(t, "integration"),
			NativeID:      rapid.SampledFrom(propertyIDs).Draw(t, "id"),
		}
	}
	if kind != 2 {
		p.Agent = &archive.Agent{
			Key: rapid.SampledFrom([]string{testKey, "", "not a key" + taint}).Draw(t, "key"), IntegrationID: "codex",
			Profile:      rapid.SampledFrom(append(profiles, "gone"+taint)).Draw(t, "profile"),
			LaunchCwd:    rapid.SampledFrom(dirs).Draw(t, "launch"),
			Store:        rapid.SampledFrom([]string{"", "store-1", taint}).Draw(t, "store"),
			Durability:   rapid.SampledFrom([]string{"", "present", "never-prompted", "unknown", taint}).Draw(t, "durability"),
			State:        rapid.SampledFrom([]string{"", "running", "ended", "exited", "replaced", "pending", taint}).Draw(t, "state"),
			Previous:     []string{taint},
			NotPreserved: []string{"--not" + taint},
			Unconfirmed:  taint,
		}
	}
	return p
}

// What is true of every plan of every archive: laws 2, 3, 7 and 12, and that shells never refuse.
func TestPlanProperties(t *testing.T) {
	templates := map[string]*integrations.Template{}
	for n, text := range map[string]string{"claude-code": claudeTOML, "codex": codexTOML, "cline": blankTOML, "gemini-cli": geminiTOML, "plain": plainTOML} {
		templates[n] = parse(t, text)
	}
	rapid.Check(t, func(rt *rapid.T) {
		w := anyWorld(rt, t, templates)
		p := w.plan()
		again := w.plan()
		if !reflect.DeepEqual(p, again) {
			rt.Errorf("two plans of one world differ")
		}
		known := map[string]bool{}
		eachPane(pointers(w.src.Archive), func(_ *archive.Session, p *archive.Pane) {
			if p.AgentSession != nil {
				known[p.AgentSession.NativeID] = true
				for _, tpl := range templates {
					known[normal(tpl, p.AgentSession.NativeID)] = true
				}
			}
		})
		started := map[metadata.Identity]bool{}
		for i, s := range w.src.Archive.Sessions {
			var panes []archive.Pane
			for _, win := range s.Windows {
				panes = append(panes, win.Panes...)
			}
			got := p.Sessions[i]
			if len(got.Panes) != len(panes) {
				rt.Fatalf("session %q: %d verdicts for %d panes", s.Name, len(got.Panes), len(panes))
			}
			for j, pp := range got.Panes {
				if panes[j].AgentSession == nil && pp.Verdict != ShellPane && pp.Verdict != ProgramPane {
					rt.Errorf("a shell is %s", pp.Verdict)
				}
				if pp.Verdict == ProgramPane {
					checkProgram(rt, w, panes[j].Process, pp)
					continue
				}
				if r := pp.Record; r != nil && !known[r.NativeID] {
					rt.Errorf("the id %q is in no record of the archive", r.NativeID)
				}
				checkArgv(rt, pp, templates, known)
				if pp.agent != nil && got.Action == Create {
					if started[pp.agent.identity] {
						rt.Errorf("%s would start twice", pp.agent.identity)
					}
					started[pp.agent.identity] = true
				}
			}
		}
		checkPlan(rt, w, p)
		p.Dry().Outcome()
	})
}

func pointers(a *archive.Archive) []*archive.Session {
	out := make([]*archive.Session, len(a.Sessions))
	for i := range a.Sessions {
		out[i] = &a.Sessions[i]
	}
	return out
}

// checkProgram checks the exception: the program is the configuration's, the arguments follow it, and
// the archive is our own.
func checkProgram(t *rapid.T, w *world, q *archive.Process, pp PanePlan) {
	want := map[string][]string{"vim": {"/usr/bin/vim", "-n"}, "htop": {"/usr/bin/htop"}}[q.Program]
	if q.Program == "vim" {
		want = append(want, q.Args...)
	}
	if !w.src.Own || want == nil || pp.Start.Mode == host.Program && !slices.Equal(pp.Start.Argv, want) {
		t.Errorf("own: %t, %q runs %q", w.src.Own, q.Program, pp.Start.Argv)
	}
}

// checkArgv checks that of the archive there is the id in its one slot, and nothing else.
func checkArgv(t *rapid.T, pp PanePlan, templates map[string]*integrations.Template, known map[string]bool) {
	for _, v := range slices.Concat(pp.Start.Argv, pp.Start.Set, pp.Start.Unset, []string{pp.Start.AfterExit}) {
		if strings.Contains(v, taint) {
			t.Errorf("%q comes out of the archive", v)
		}
	}
	if pp.Start.Mode != host.Program {
		if pp.Start.Argv != nil {
			t.Errorf("%s has arguments %q", pp.Verdict, pp.Start.Argv)
		}
		return
	}
	tpl := templates[pp.Record.IntegrationID]
	op := tpl.Identity.ResumeArgs
	if pp.Verdict == FreshSameID {
		op = tpl.Identity.FreshArgs
	}
	want := []string{"/usr/bin/" + tpl.Launch.Command[0]}
	want = append(want, tpl.Launch.Command[1:]...)
	if pp.facts.Profile == "yolo" {
		want = append(want, "--of-profile")
	}
	ids := 0
	for _, v := range op {
		if v == "${PHUX_AGENT_SESSION_ID}" {
			v, ids = pp.agent.identity.NativeID, ids+1
		}
		want = append(want, v)
	}
	if ids != 1 || !known[pp.agent.identity.NativeID] || strings.HasPrefix(pp.agent.identity.NativeID, "-") {
		t.Errorf("%d ids, %q", ids, pp.agent.identity.NativeID)
	}
	if !slices.Equal(pp.Start.Argv, want) {
		t.Errorf("argv %q, want %q", pp.Start.Argv, want)
	}
}
