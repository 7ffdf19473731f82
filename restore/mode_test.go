package restore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/config"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/owner"
)

// Who decides what becomes of an agent that could be resumed.
func TestModes(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		name       string
		own, boot  config.Mode // of the agent, and at boot
		o          Options
		age        time.Duration
		work, more Verdict // of the panes of two sessions
	}{
		{"nobody says", "", "", Options{}, 0, Resume, Resume},
		{"however old", "", "", Options{}, 30 * day, Resume, Resume},
		{"the agent's", config.Ask, "", Options{}, 0, AskPane, Resume},
		{"its own manual", config.Manual, "", Options{}, 0, ManualPane, Resume},
		{"the option", config.Manual, "", Options{Mode: config.Auto}, 0, Resume, Resume},
		{"the option asks", "", "", Options{Mode: config.Ask}, 0, AskPane, AskPane},
		{"naming is asking", config.Manual, "", Options{Only: []string{"work"}}, 0, Resume, ""},
		{"the option above the name", config.Auto, "", Options{Only: []string{"work"}, Mode: config.Manual}, 0, ManualPane, ""},
		{"boot", "", config.Ask, Options{Unattended: true}, 0, AskPane, AskPane},
		{"boot, and somebody there", "", config.Ask, Options{}, 0, Resume, Resume},
		{"boot, more careful", config.Manual, config.Ask, Options{Unattended: true}, 0, ManualPane, AskPane},
		{"boot, young", "", "", Options{Unattended: true}, 6 * day, Resume, Resume},
		{"boot, old", "", "", Options{Unattended: true}, 8 * day, AskPane, AskPane},
		{"boot, old, told so", "", "", Options{Unattended: true, Mode: config.Auto}, 8 * day, Resume, Resume},
		{"one pane by key", config.Manual, "", Options{Panes: []string{testKey}}, 0, Resume, ""},
		{"one pane by place", "", "", Options{Panes: []string{"more:0.0"}}, 0, "", Resume},
		{"one pane of two", "", "", Options{Panes: []string{"work:1.1"}}, 0, AskPane, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.know("codex", parse(t, codexTOML))
			other := w.pane("codex", id2)
			other.Agent.Key = strings.Repeat("b", 26)
			w.add("more", other)
			w.change(key("claude-code"), func(a *Agent) { a.Mode = c.own })
			w.f.BootMode, w.f.Old, w.o = c.boot, 7*day, c.o
			if c.age > 0 {
				w.src.Archive.SavedAt = w.f.Now.Add(-c.age)
			}
			p := w.plan()
			got := map[string]Verdict{}
			for _, s := range p.Sessions {
				got[s.Name] = s.Panes[0].Verdict
			}
			want := map[string]Verdict{}
			if c.work != "" {
				want["work"] = c.work
			}
			if c.more != "" {
				want["more"] = c.more
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			checkPlan(t, w, p)
			if n := p.Dry().Outcome(); n != Done {
				t.Errorf("outcome %d: what waits because it was told to is as asked", n)
			}
		})
	}
	w := newWorld(t)
	w.o.Panes = []string{"work:1.0", "nope:0.0"}
	if _, err := Make(w.src, w.f, w.o); fmt.Sprint(err) != `no pane "nope:0.0" in the archive` {
		t.Error(err)
	}
}

// What waits to be asked is judged anew when it is asked: it keeps what the archive says.
func TestWhatWaitsKeepsItsFacts(t *testing.T) {
	w := newWorld(t)
	w.o.Mode = config.Ask
	w.first().Agent.Durability, w.first().Agent.NotPreserved = durNeverPrompted, []string{"--x"}
	w.talk(id1, func(t *Talk) { t.Presence = owner.Absent })
	pp := w.plan().Sessions[0].Panes[0]
	if pp.Would != FreshSameID || pp.facts.Durability != durNeverPrompted || pp.facts.Store != "store-1" || len(pp.facts.NotPreserved) != 1 || !pp.facts.Pending {
		t.Errorf("%s, %+v", pp.Would, pp.facts)
	}
}

func TestNotices(t *testing.T) {
	server := host.Instance{Kind: "memory", Socket: "/s", PID: 7, Start: "1", Boot: "b1"}
	kinds := func(n []Notice) (out []string) {
		for _, x := range n {
			if x.Text == "" {
				t.Errorf("%s says nothing", x.Kind)
			}
			out = append(out, x.Kind)
		}
		return out
	}
	for _, c := range []struct {
		name    string
		host    archive.Host
		running bool
		age     time.Duration
		want    []string
	}{
		{"phux's, which says nothing", archive.Host{}, true, 0, nil},
		{"another boot", archive.Host{Machine: "m1", Boot: "b0", Instance: "x"}, false, 0, []string{OtherBoot}},
		{"the same server", archive.Host{Machine: "m1", Boot: "b1", Instance: server.Digest()}, true, 0, []string{SameServer}},
		{"it ended", archive.Host{Machine: "m1", Boot: "b1", Instance: server.Digest()}, false, 0, []string{OtherLife}},
		{"another life", archive.Host{Machine: "m1", Boot: "b1", Instance: "x"}, true, 0, []string{OtherLife}},
		{"another machine", archive.Host{Machine: "m2", Boot: "b0", Instance: "x"}, true, 0, []string{OtherMachine}},
		{"old", archive.Host{Machine: "m1", Boot: "b0", Instance: "x"}, true, 8 * 24 * time.Hour, []string{OtherBoot, Old}},
		{"chosen", archive.Host{Kind: "chosen"}, true, 0, []string{PassedOver}},
	} {
		w := newWorld(t)
		w.f.Boot, w.f.Old, w.src.Archive.Host = "b1", 7*24*time.Hour, c.host
		if c.age > 0 {
			w.src.Archive.SavedAt = w.f.Now.Add(-c.age)
		}
		if c.host.Kind == "chosen" {
			w.src.Notices = []Notice{{PassedOver, "generation 7 is held"}}
		}
		w.o.FromHost, w.o.Mode = true, config.Auto
		if c.running {
			w.f.Host.Running, w.f.Host.Instance = true, server
		}
		p := w.plan()
		if d := cmp.Diff(c.want, kinds(p.Notices)); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
		if len(p.Dry().Notices) != len(c.want) {
			t.Errorf("%s: the report has %v", c.name, p.Dry().Notices)
		}
	}
}
