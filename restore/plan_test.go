package restore

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/config"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
	"github.com/phux-agent/phux-agent/plugin"
)

// verdictCase is one way to a verdict of the first pane.
type verdictCase struct {
	name    string
	want    Verdict
	action  string   // of its session; empty means Create
	reason  []string // each is part of the pane's reason
	hint    string   // part of the hint
	noHint  bool
	arrange func(w *world)
}

func resolveCase(r plugin.Reason, hint string) verdictCase {
	return verdictCase{
		name: "resolve " + string(r), want: Verdict(r), action: Refuse, reason: []string{"because so"}, hint: hint,
		arrange: func(w *world) {
			w.f.Agents[key("claude-code")] = Agent{Err: &plugin.ResolveError{
				Reason: r, Integration: "claude-code", Detail: "because so", Owner: "other.agents",
			}}
		},
	}
}

func verdictCases() []verdictCase {
	hears := func(w *world) {
		w.change(key("claude-code"), func(a *Agent) {
			t := *a.Owner.Template
			t.Hooks = []integrations.Hook{{File: "~/x", Format: integrations.FormatFile, Entry: "${COMMAND}"}}
			t.Observe = append(slices.Clone(t.Observe), integrations.Observe{Kind: "hook", On: []string{"Stop"}, ID: "/id"})
			a.Owner.Template = &t
		})
	}
	absent := func(w *world) { w.talk(id1, func(t *Talk) { t.Presence, t.Detail = owner.Absent, "looked in /store" }) }
	cannot := func(w *world) {
		w.talk(id1, func(t *Talk) { t.Presence, t.Detail = owner.CannotTell, "permission denied" })
	}
	lives := func(kind owner.LiveKind) func(*world) {
		return func(w *world) {
			w.talk(id1, func(t *Talk) {
				t.Live = owner.Live{Kind: kind, Process: owner.Process{PID: 4711, Start: 1}, Place: owner.Place{Host: "tmux-L-other", Terminal: "%7"}, Command: "claude"}
			})
		}
	}
	return []verdictCase{
		{
			name: "ask", want: AskPane, reason: []string{"it waits to be asked (mode ask), and would run: /usr/bin/claude --resume " + id1}, hint: "press Enter",
			arrange: func(w *world) { w.change(key("claude-code"), func(a *Agent) { a.Mode = config.Ask }) },
		},
		{
			name: "program", want: ProgramPane, reason: []string{"the configuration lists it: /usr/bin/vim -n 'a b' ''"},
			arrange: func(w *world) { w.program() },
		},
		{
			name: "manual", want: ManualPane, reason: []string{"mode manual"}, hint: "type resume",
			arrange: func(w *world) { w.o.Mode = config.Manual },
		},
		{name: "as it should be", want: Resume, reason: []string{"conversation is there"}, arrange: func(*world) {}},
		{
			name: "exited is still to be resumed", want: Resume,
			arrange: func(w *world) { w.first().Agent.State = "exited" },
		},
		{
			name: "pending is still to be resumed", want: Resume,
			arrange: func(w *world) { w.first().Agent.State = "pending" },
		},
		{
			name: "an archive of phux, without agent", want: Resume,
			arrange: func(w *world) { w.first().Agent, w.first().Cwd = nil, "/src/a" },
		},
		{
			name: "unconfirmed, with an earlier id", want: Resume, reason: []string{"unconfirmed since 20", "60 minutes ago: two threads", id2},
			arrange: func(w *world) {
				w.first().Agent.Unconfirmed, w.first().Agent.Previous = "two threads", []string{id2}
			},
		},
		{
			name: "unconfirmed, of a CLI whose hook would tell", want: Resume, reason: []string{"unconfirmed since its launch: two threads"},
			hint: "phux-agent hooks install claude-code",
			arrange: func(w *world) {
				w.first().Agent.Unconfirmed, w.first().Agent.ConfirmedAt = "two threads", time.Time{}
				hears(w)
			},
		},
		{
			name: "unconfirmed, though its hook calls us", want: Resume, reason: []string{"two threads"}, noHint: true,
			arrange: func(w *world) {
				w.first().Agent.Unconfirmed = "two threads"
				hears(w)
				w.change(key("claude-code"), func(a *Agent) { a.Hooked = true })
			},
		},
		{
			name: "unconfirmed, of a CLI without a hook that tells", want: Resume, reason: []string{"two threads"}, noHint: true,
			arrange: func(w *world) { w.first().Agent.Unconfirmed = "two threads" },
		},
		{
			name: "never prompted", want: FreshSameID, reason: []string{"never prompted"},
			arrange: func(w *world) { absent(w); w.first().Agent.Durability = "never-prompted" },
		},
		{
			name: "ended", want: EndedPane, reason: []string{"ended by itself"}, hint: "launch claude-code --resume " + id1,
			arrange: func(w *world) { w.first().Agent.State = "ended" },
		},
		{
			name: "replaced", want: ShellPane, reason: []string{"another program"}, hint: id1,
			arrange: func(w *world) { w.first().Agent.State = "replaced" },
		},
		{
			name: "a shell", want: ShellPane,
			arrange: func(w *world) { w.first().AgentSession, w.first().Agent, w.first().Cwd = nil, nil, "/src/a" },
		},
		{
			name: "codex that was never proven", want: ShellPane, reason: []string{"no record: the conversation of its codex was never proven"},
			arrange: func(w *world) {
				w.first().AgentSession, w.first().Agent = nil, &archive.Agent{Key: testKey, PluginID: plugin.FirstParty, IntegrationID: "codex"}
			},
		},
		{
			name: "a record that was left out", want: ShellPane, reason: []string{"left out", "too long"},
			arrange: func(w *world) {
				w.first().AgentSession, w.first().Agent = nil, &archive.Agent{Key: testKey, IntegrationID: "codex", RecordError: "too long"}
			},
		},
		{
			name: "the session exists, its agent runs", want: AlreadyLive, action: SkipExisting, reason: []string{"in its session", "%3"},
			arrange: func(w *world) { w.view("work", "%3", host.Pane{Origin: host.Ours}, metadata.LaunchFacts{}) },
		},
		{
			name: "the session exists, its placeholder waits", want: PendingPane, action: SkipExisting, reason: []string{"waits in pane %3"}, hint: "Enter",
			arrange: func(w *world) {
				w.view("work", "%3", host.Pane{Origin: host.Ours, Waiting: true}, metadata.LaunchFacts{Pending: true})
			},
		},
		{
			name: "the session exists, with the shell of an ended agent", want: EndedPane, action: SkipExisting, reason: []string{"had ended", "%3"}, hint: "launch claude-code --resume " + id1,
			arrange: func(w *world) {
				w.view("work", "%3", host.Pane{Origin: host.Ours}, metadata.LaunchFacts{Ended: true})
			},
		},
		{
			name: "the session exists, its agent ended since", want: EndedPane, action: SkipExisting, reason: []string{"had ended", "%3"},
			arrange: func(w *world) { w.view("work", "%3", host.Pane{Origin: host.Ended}, metadata.LaunchFacts{}) },
		},
		{
			name: "the session exists, its agent failed", want: PendingPane, action: SkipExisting, reason: []string{"failed", "%3"}, hint: "launch claude-code --resume " + id1,
			arrange: func(w *world) { w.view("work", "%3", host.Pane{Origin: host.Ours, Dead: true}, metadata.LaunchFacts{}) },
		},
		{
			name: "the session exists, without the record", want: PendingPane, action: SkipExisting, reason: []string{"no pane of it holds"}, hint: "launch claude-code --resume " + id1,
			arrange: func(w *world) { w.f.View.Sessions = []host.Session{{Name: "work"}} },
		},
		{
			name: "the session exists, the agent runs elsewhere", want: AlreadyLive, action: SkipExisting, reason: []string{"tmux-L-other", "4711"},
			arrange: func(w *world) { w.f.View.Sessions = []host.Session{{Name: "work"}}; lives(owner.Claimed)(w) },
		},

		resolveCase(plugin.Missing, "plugin add"),
		resolveCase(plugin.Disabled, "integration enable claude-code"),
		resolveCase(plugin.Ambiguous, "disable"),
		resolveCase(plugin.Invalid, "lint"),
		resolveCase(plugin.Untrusted, "yours alone"),
		resolveCase(plugin.OwnerChanged, "--owner phux.agents=other.agents"),
		{
			name: "no command at all", want: IntegrationInvalid, action: Refuse, reason: []string{"no such thing"},
			arrange: func(w *world) {
				w.change(key("claude-code"), func(a *Agent) { a.BuildErr = errors.New("no such thing") })
			},
		},
		{
			name: "cannot resume", want: NotRestorable, action: Refuse, reason: []string{"cannot resume"},
			arrange: func(w *world) { w.swapTo("plain", plainTOML, "x") },
		},
		{
			name: "a template that nobody has run", want: NotRestorable, action: Refuse, reason: []string{"unverified", "run on no version"},
			arrange: func(w *world) {
				w.change(key("claude-code"), func(a *Agent) { a.Owner.Unverified = true })
			},
		},
		{
			name: "an id that the pattern refuses", want: InvalidRecord, action: Refuse,
			arrange: func(w *world) { w.swapTo("claude-code", claudeTOML, "latest") },
		},
		{
			name: "an id like an option", want: InvalidRecord, action: Refuse,
			arrange: func(w *world) { w.swapTo("claude-code", claudeTOML, "--continue") },
		},
		{
			name: "another machine", want: ForeignMachine, action: Refuse, reason: []string{"m2", "m1"}, hint: "--from-host",
			arrange: func(w *world) { w.src.Archive.Host.Machine = "m2" },
		},
		{
			name: "another machine, with consent", want: Resume,
			arrange: func(w *world) { w.src.Archive.Host.Machine = "m2"; w.o.FromHost = true },
		},
		{
			name: "imported, without consent", want: Untrusted, action: Refuse, reason: []string{"own store"}, hint: "--import",
			arrange: func(w *world) { w.src.Own = false },
		},
		{
			name: "imported, with consent", want: Resume,
			arrange: func(w *world) { w.src.Own = false; w.o.Import = true },
		},
		{
			name: "imported, into somebody else's directory", want: Untrusted, action: Refuse, reason: []string{"somebody else"},
			arrange: func(w *world) {
				w.src.Own, w.o.Import = false, true
				w.f.Dirs["/src/a"] = Dir{State: DirThere}
			},
		},
		{
			name: "imported, with a profile", want: Resume, reason: []string{`profile "yolo" is not used`},
			arrange: func(w *world) {
				w.src.Own, w.o.Import = false, true
				w.first().Agent.Profile = "yolo"
			},
		},
		{
			name: "an older host", want: HostUnsupported, action: Refuse, reason: []string{"inside the spawn"},
			arrange: func(w *world) { w.f.Host.AtomicRecord = false },
		},
		{
			name: "one record in two panes", want: DuplicateIdentity, action: Refuse, reason: []string{`"other"`, `"work"`}, hint: "--only",
			arrange: func(w *world) { w.add("other", w.pane("claude-code", id1)) },
		},
		{
			name: "one record in two panes of one session", want: DuplicateIdentity, action: Refuse,
			arrange: func(w *world) {
				w.session(0).Windows[0].Panes = append(w.session(0).Windows[0].Panes, w.pane("claude-code", id1))
			},
		},
		{
			name: "one conversation in two spellings", want: DuplicateIdentity, action: Refuse,
			arrange: func(w *world) {
				w.swapTo("codex", codexTOML, "0198aaaa-1111-7111-8111-11111111abcd")
				w.add("other", w.pane("codex", "0198AAAA-1111-7111-8111-11111111ABCD"))
			},
		},
		{
			name: "one record in two panes, one of them named", want: Resume,
			arrange: func(w *world) { w.add("other", w.pane("claude-code", id1)); w.o.Only = []string{"work"} },
		},
		{
			name: "a pending duplicate of a live record", want: ShellPane, reason: []string{`went on in session "other"`},
			arrange: func(w *world) {
				w.add("other", w.pane("claude-code", id1))
				w.session(0).Pending = &archive.Pending{}
			},
		},
		{
			name: "a live record with a pending duplicate", want: Resume,
			arrange: func(w *world) {
				p := w.pane("claude-code", id1)
				p.Agent.State = "pending"
				w.add("other", p)
			},
		},
		{
			name: "a dead pane whose conversation was resumed elsewhere", want: ShellPane, reason: []string{`"other"`},
			arrange: func(w *world) {
				w.first().Agent.State = "exited"
				w.add("other", w.pane("claude-code", id1))
			},
		},
		{
			name: "an ended agent whose conversation was resumed elsewhere", want: ShellPane, reason: []string{`"other"`},
			arrange: func(w *world) {
				w.first().Agent.State = "ended"
				w.add("other", w.pane("claude-code", id1))
			},
		},

		{
			name: "the directory is gone", want: CwdMissing, reason: []string{"/src/a", "gone"}, hint: "mkdir -p /src/a",
			arrange: func(w *world) { w.f.Dirs["/src/a"] = Dir{Detail: "it does not exist", Nearest: "/src"} },
		},
		{
			name: "the archive names no directory", want: CwdMissing,
			arrange: func(w *world) { w.first().Agent, w.first().Cwd = nil, "" },
		},
		{
			name: "the directory is closed", want: CwdUnreadable, reason: []string{"/src/a", "permission denied"}, hint: "ls -ld",
			arrange: func(w *world) {
				w.f.Dirs["/src/a"] = Dir{State: DirUnreadable, Own: true, Detail: "permission denied"}
			},
		},
		{
			name: "the program is gone", want: BinaryMissing, reason: []string{"PATH=/usr/bin"}, hint: "install",
			arrange: func(w *world) {
				w.change(key("claude-code"), func(a *Agent) {
					a.Program, a.ProgramErr = "", &plugin.ProgramError{Name: "claude", Path: "/usr/bin", Why: "it is nowhere"}
				})
			},
		},
		{
			name: "the conversation is gone", want: TranscriptMissing, reason: []string{"gone", "/store"}, hint: "launch claude-code",
			arrange: absent,
		},
		{
			name: "the conversation is gone, and was not looked for", want: TranscriptMissing,
			arrange: func(w *world) { absent(w); w.first().Agent.Durability = "unknown" },
		},
		{
			name: "the store changed", want: TranscriptMissing, reason: []string{"store-1", "store-2"}, hint: "environment",
			arrange: func(w *world) {
				absent(w)
				w.change(key("claude-code"), func(a *Agent) { a.Store = "store-2" })
			},
		},
		{
			name: "the store changed under one that was never prompted", want: TranscriptMissing, reason: []string{"store-1", "store-2"},
			arrange: func(w *world) {
				absent(w)
				w.first().Agent.Durability = "never-prompted"
				w.change(key("claude-code"), func(a *Agent) { a.Store = "store-2" })
			},
		},
		{
			name: "whether it is there cannot be told", want: Resume,
			arrange: cannot,
		},
		{
			name: "never prompted, and the CLI keeps nothing", want: NeverDurable, reason: []string{"never prompted"},
			arrange: func(w *world) {
				w.swapTo("codex", codexTOML, id1)
				w.f.Talks[TalkKey{key("codex"), id1}] = Talk{Presence: owner.Absent}
				w.first().Agent.Durability = "never-prompted"
			},
		},
		{
			name: "unknown, where the CLI opens a blank one", want: UnknownBlank, reason: []string{"blank"},
			arrange: func(w *world) {
				w.swapTo("cline", blankTOML, "179_x")
				w.f.Talks[TalkKey{key("cline"), "179_x"}] = Talk{Presence: owner.CannotTell}
			},
		},
		{
			name: "claimed elsewhere", want: AlreadyLive, reason: []string{"pane %7 of tmux-L-other", "4711"}, hint: "phux-agent ps",
			arrange: lives(owner.Claimed),
		},
		{
			name: "an orphan", want: AlreadyLive, reason: []string{"4711"}, hint: "phux-agent reap claude-code/" + id1,
			arrange: lives(owner.Orphan),
		},
		{
			name: "by the provider's registry", want: AlreadyLive, reason: []string{"4711"}, hint: "kill 4711",
			arrange: lives(owner.Registry),
		},
		{
			name: "suspected", want: AlreadyLive, reason: []string{"seems"}, hint: "kill 4711",
			arrange: lives(owner.Suspected),
		},
		{
			name: "being started", want: AlreadyLive, reason: []string{"starting"},
			arrange: lives(owner.Starting),
		},
		{
			name: "two that must not come back together", want: RequirementUnmet, reason: []string{"2 panes", "/src/a", "deletes"}, hint: "/general/sessionRetention/enabled",
			arrange: func(w *world) {
				w.swapTo("gemini-cli", geminiTOML, id1)
				w.unmet()
				w.add("other", w.pane("gemini-cli", id2))
			},
		},
		{
			name: "one beside another that runs", want: RequirementUnmet,
			arrange: func(w *world) {
				w.swapTo("gemini-cli", geminiTOML, id1)
				w.unmet()
				w.view("elsewhere", "%9", host.Pane{Origin: host.Ours}, metadata.LaunchFacts{LaunchDir: "/src/a"})
				w.f.View.Sessions[0].Windows[0].Panes[0].Meta[metadata.KeyAgentSession] = encode(w.t, metadata.AgentSession{PluginID: "p", IntegrationID: "gemini-cli", NativeID: id3})
			},
		},
		{
			name: "one alone", want: Resume,
			arrange: func(w *world) { w.swapTo("gemini-cli", geminiTOML, id1); w.unmet() },
		},
		{
			name: "one in each directory", want: Resume,
			arrange: func(w *world) {
				w.swapTo("gemini-cli", geminiTOML, id1)
				w.unmet()
				p := w.pane("gemini-cli", id2)
				p.Agent.LaunchCwd = "/src/b"
				w.add("other", p)
			},
		},
		{
			name: "two, of which one does not come back", want: Resume,
			arrange: func(w *world) {
				w.swapTo("gemini-cli", geminiTOML, id1)
				w.unmet()
				p := w.pane("gemini-cli", id2)
				p.Agent.State = "ended"
				w.add("other", p)
			},
		},
		{
			name: "the profile is gone", want: ProfileMissing, reason: []string{`"yolo"`}, hint: "profiles.yolo.claude-code",
			arrange: func(w *world) {
				w.first().Agent.Profile = "yolo"
				k := AgentKey{"claude-code", plugin.FirstParty, "yolo"}
				w.f.Agents[k] = w.f.Agents[key("claude-code")]
				w.change(k, func(a *Agent) { a.HasProfile = false })
			},
		},
		{
			name: "the profile cannot be used", want: ProfileMissing, reason: []string{"--continue"},
			arrange: func(w *world) {
				w.change(key("claude-code"), func(a *Agent) {
					a.BuildErr, a.ProfileBad = errors.New("--continue is refused"), true
				})
			},
		},
	}
}

func (w *world) unmet() {
	w.change(key("gemini-cli"), func(a *Agent) {
		a.Unmet = []Unmet{{a.Owner.Template.Require[0], "it is true by default"}}
	})
}

// view puts a session with one pane, which holds the first pane's record, into the host.
func (w *world) view(session, terminal string, p host.Pane, f metadata.LaunchFacts) {
	p.Terminal.ID = terminal
	f.PaneKey = testKey
	facts, err := f.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	p.Meta = map[metadata.Key][]byte{metadata.KeyAgentSession: encode(w.t, *w.first().AgentSession), metadata.KeyAgentLaunch: facts}
	w.f.View.Sessions = append(w.f.View.Sessions, host.Session{Name: session, Windows: []host.Window{{Panes: []host.Pane{p}}}})
}

func TestEveryVerdict(t *testing.T) {
	for _, c := range verdictCases() {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			c.arrange(w)
			p := w.plan()
			s, pane := p.Sessions[0], p.Sessions[0].Panes[0]
			if pane.Verdict != c.want {
				t.Fatalf("verdict %s (%s), want %s", pane.Verdict, pane.Reason, c.want)
			}
			action := c.action
			if action == "" {
				action = Create
			}
			if s.Action != action {
				t.Errorf("action %s (%s), want %s", s.Action, s.Reason, action)
			}
			for _, r := range c.reason {
				if !strings.Contains(pane.Reason, r) {
					t.Errorf("reason %q lacks %q", pane.Reason, r)
				}
			}
			if c.noHint && pane.Hint != "" {
				t.Errorf("hint %q", pane.Hint)
			}
			if !strings.Contains(pane.Hint, c.hint) {
				t.Errorf("hint %q lacks %q", pane.Hint, c.hint)
			}
			if !pane.Verdict.Starts() && pane.Reason == "" && c.name != "a shell" {
				t.Error("a verdict without a reason")
			}
			checkPlan(t, w, p)
		})
	}
}

// checkPlan checks what is true of every plan.
func checkPlan(t interface {
	Helper()
	Errorf(string, ...any)
}, w *world, p *Plan,
) {
	t.Helper()
	for _, s := range p.Sessions {
		if (s.create != nil) != (s.Action == Create) {
			t.Errorf("session %q is %s, with request: %t", s.Name, s.Action, s.create != nil)
		}
		for _, pp := range s.Panes {
			if !slices.Contains(Verdicts(), pp.Verdict) {
				t.Errorf("%q is no verdict", pp.Verdict)
			}
			if s.Action != Create {
				if pp.Start.Mode != host.Shell || pp.Start.Argv != nil {
					t.Errorf("a pane of a session that is not created starts %v", pp.Start)
				}
				continue
			}
			mode := host.Shell
			switch {
			case pp.Verdict.Authority():
				t.Errorf("%s in a session that is created", pp.Verdict)
			case pp.Verdict.Circumstance():
				mode = host.Placeholder
				if !pp.carry || !pp.facts.Pending {
					t.Errorf("a placeholder (%s) that does not carry its record on", pp.Verdict)
				}
				if pp.Start.Reason != pp.Reason || pp.Start.Hint != pp.Hint || pp.Reason == "" || pp.Hint == "" {
					t.Errorf("a placeholder (%s) that does not say why: %+v", pp.Verdict, pp.Start)
				}
				if pp.Start.AfterExit == "" {
					t.Errorf("a placeholder (%s) whose agent would not leave a shell behind", pp.Verdict)
				}
			case pp.Verdict.Starts():
				mode = host.Program
				if !pp.carry || pp.facts.Pending || pp.agent == nil {
					t.Errorf("an agent (%s) without its record", pp.Verdict)
				}
			case pp.Verdict == ProgramPane:
				mode = host.Program
				if !w.src.Own || pp.store || pp.carry || len(pp.Start.Guard) > 0 || pp.Record != nil {
					t.Errorf("a program with something of an agent, or of somebody else's archive: %+v", pp)
				}
			case pp.Verdict == AskPane, pp.Verdict == ManualPane:
				mode = host.Placeholder
				if !pp.carry || !pp.facts.Pending || pp.agent != nil || pp.Start.Ask == "" || !pp.Would.Starts() {
					t.Errorf("an agent that waits to be asked (%s): %+v", pp.Verdict, pp)
				}
			case pp.Verdict == PendingPane:
				t.Errorf("pending in a session that is created")
			}
			if pp.Start.Mode != mode {
				t.Errorf("%s starts in mode %d, want %d", pp.Verdict, pp.Start.Mode, mode)
			}
			if d := w.f.Dirs[pp.Start.Dir]; d.State != DirThere && pp.Start.Dir != "/src" && pp.Start.Dir != "/" {
				t.Errorf("%s starts in %q, which is not there", pp.Verdict, pp.Start.Dir)
			}
			if err := pp.Start.Check(); err != nil {
				t.Errorf("%s: %v", pp.Verdict, err)
			}
		}
		if s.create != nil {
			if err := s.create.Check(); err != nil {
				t.Errorf("session %q: %v", s.Name, err)
			}
		}
	}
}

func TestEveryVerdictHasACase(t *testing.T) {
	seen := map[Verdict]bool{}
	for _, c := range verdictCases() {
		seen[c.want] = true
	}
	for _, v := range Verdicts() {
		if !seen[v] {
			t.Errorf("no case leads to %s", v)
		}
	}
}

// The table of docs/restore.md, every cell of it.
func TestConversationTable(t *testing.T) {
	const blankID = "179_x"
	for _, archived := range []string{"present", "never-prompted", "unknown", ""} {
		for _, now := range []owner.Presence{owner.Present, owner.Absent, owner.Begun, owner.CannotTell} {
			for _, store := range []string{"store-1", "store-2", ""} {
				for _, kind := range []string{"claude-code", "codex", "cline", "until"} {
					want := Resume
					switch {
					case now == owner.CannotTell && kind == "cline":
						want = UnknownBlank
					case now.Missing() && archived == "never-prompted" && store == "store-1":
						want = NeverDurable
						if kind == "claude-code" || kind == "until" && now == owner.Absent {
							want = FreshSameID
						}
					case now.Missing():
						want = TranscriptMissing
					}
					w := newWorld(t)
					id := id1
					switch kind {
					case "codex":
						w.swapTo(kind, codexTOML, id)
					case "cline":
						id = blankID
						w.swapTo(kind, blankTOML, id)
					case "until":
						w.swapTo(kind, untilTOML, id)
					}
					w.first().Agent.Durability = archived
					w.f.Talks[TalkKey{key(kind), id}] = Talk{Presence: now}
					w.change(key(kind), func(a *Agent) { a.Store = store })
					p := w.plan()
					if got := p.Sessions[0].Panes[0].Verdict; got != want {
						t.Errorf("%s: archived %q, now %s, store %q: %s, want %s", kind, archived, now, store, got, want)
					}
				}
			}
		}
	}
}

// Law 6: each verdict has its own operation, and its own expectation for the gate.
func TestCreateIsNotResume(t *testing.T) {
	w := newWorld(t)
	got := w.plan().Sessions[0].Panes[0]
	want := []string{"/usr/bin/claude", "--resume", id1}
	if diff := cmp.Diff(want, got.Start.Argv); diff != "" {
		t.Errorf("resume (-want +got):\n%s", diff)
	}
	if got.agent.expect != owner.Present {
		t.Errorf("resume expects the conversation %q", got.agent.expect)
	}

	w.first().Agent.Durability = "never-prompted"
	w.talk(id1, func(t *Talk) { t.Presence = owner.Absent })
	got = w.plan().Sessions[0].Panes[0]
	want = []string{"/usr/bin/claude", "--session-id", id1}
	if diff := cmp.Diff(want, got.Start.Argv); diff != "" {
		t.Errorf("fresh (-want +got):\n%s", diff)
	}
	if got.agent.expect != owner.Absent {
		t.Errorf("fresh expects the conversation %q", got.agent.expect)
	}
}

func TestAgentStart(t *testing.T) {
	w := newWorld(t)
	w.first().Agent.Profile = "yolo"
	k := AgentKey{"claude-code", plugin.FirstParty, "yolo"}
	w.f.Agents[k] = w.f.Agents[key("claude-code")]
	w.change(k, func(a *Agent) {
		a.Profile = integrations.Profile{Name: "yolo", Args: []string{"--permission-mode", "plan me"}, Env: map[string]string{"A": "1 2"}}
	})
	w.f.Talks[TalkKey{k, id1}] = Talk{Presence: owner.Present}
	got := w.plan().Sessions[0].Panes[0].Start
	want := host.Start{
		Mode: host.Program, Dir: "/src/a",
		Argv:      []string{"/usr/bin/claude", "--permission-mode", "plan me", "--resume", id1},
		Set:       []string{"PATH=/usr/bin:/bin", "A=1 2", "PHUX_CLAUDE_SESSION_ID=" + id1},
		Unset:     []string{"CLAUDECODE"},
		AfterExit: "shell",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStrictRefusesInsteadOfPlaceholders(t *testing.T) {
	for _, c := range verdictCases() {
		w := newWorld(t)
		c.arrange(w)
		w.o.Strict = true
		p := w.plan()
		s := p.Sessions[0]
		if c.want.Circumstance() && s.Action == Create {
			t.Errorf("%s: strict creates a session with %s", c.name, c.want)
		}
		if c.want.Circumstance() && s.Action == Refuse && !strings.Contains(s.Reason, string(c.want)) {
			t.Errorf("%s: the session's reason %q does not name it", c.name, s.Reason)
		}
		checkPlan(t, w, p)
	}
}

func TestOneBadSessionStopsNoOther(t *testing.T) {
	w := newWorld(t)
	w.add("good", w.pane("claude-code", id2))
	w.first().AgentSession.NativeID = "latest"
	p := w.plan()
	if p.Sessions[0].Action != Refuse || p.Sessions[1].Action != Create {
		t.Fatalf("got %s and %s", p.Sessions[0].Action, p.Sessions[1].Action)
	}
	if got := p.Dry().Outcome(); got != Partial {
		t.Errorf("outcome %d, want partial", got)
	}
}

func TestShellsNeverRefuse(t *testing.T) {
	for _, c := range []struct {
		name, cwd string
		dir       Dir
		own       bool
		want      string
		says      string
	}{
		{"there", "/src/b", Dir{State: DirThere, Own: true}, true, "/src/b", ""},
		{"gone", "/src/a/gone", Dir{Detail: "it does not exist", Nearest: "/src/a"}, true, "/src/a", "is gone"},
		{"gone to the root", "/gone/x", Dir{Detail: "it does not exist"}, true, "/home/u", "is gone"},
		{"closed", "/src/a/closed", Dir{State: DirUnreadable, Own: true, Nearest: "/src/a"}, true, "/src/a", "cannot be entered"},
		{"nowhere", "", Dir{}, true, "/home/u", ""},
		{"imported, own", "/src/b", Dir{State: DirThere, Own: true}, false, "/src/b", ""},
		{"imported, foreign", "/usr", Dir{State: DirThere}, false, "/home/u", "somebody else"},
		{"imported, gone", "/src/a/gone", Dir{Nearest: "/src/a"}, false, "/home/u", "is gone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.src.Own, w.o.Import = c.own, true
			if c.cwd != "" {
				w.f.Dirs[c.cwd] = c.dir
			}
			*w.first() = archive.Pane{Cwd: c.cwd}
			p := w.plan()
			got := p.Sessions[0].Panes[0]
			if p.Sessions[0].Action != Create || got.Verdict != ShellPane || got.Start.Dir != c.want {
				t.Errorf("%s: %s in %s", p.Sessions[0].Action, got.Verdict, got.Start.Dir)
			}
			if c.says == "" && got.Reason != "" || !strings.Contains(got.Reason, c.says) {
				t.Errorf("reason %q, want %q in it", got.Reason, c.says)
			}
		})
	}
}

func TestOnly(t *testing.T) {
	w := newWorld(t)
	w.add("other", w.pane("claude-code", id2))
	w.o.Only = []string{"other"}
	p := w.plan()
	if len(p.Sessions) != 1 || p.Sessions[0].Name != "other" {
		t.Errorf("got %+v", p.Sessions)
	}
	w.o.Only = []string{"other", "oter"}
	_, err := Make(w.src, w.f, w.o)
	var unknown *UnknownSessionError
	if !errors.As(err, &unknown) {
		t.Fatalf("got %v", err)
	}
	if diff := cmp.Diff(&UnknownSessionError{Unknown: []string{"oter"}, Have: []string{"work", "other"}}, unknown); diff != "" {
		t.Error(diff)
	}
}

func TestOwnerMapping(t *testing.T) {
	w := newWorld(t)
	w.first().AgentSession.PluginID = "old.agents"
	w.o.Owners = map[string]string{"old.agents": plugin.FirstParty}
	p := w.plan()
	got := p.Sessions[0].Panes[0]
	if got.Verdict != Resume || got.Record.PluginID != plugin.FirstParty || got.facts.PluginID != plugin.FirstParty {
		t.Errorf("%s of %+v", got.Verdict, got.Record)
	}
	if w.first().AgentSession.PluginID != "old.agents" {
		t.Error("the archive was changed")
	}
	if !slices.ContainsFunc(p.Notes, func(n string) bool {
		return strings.Contains(n, "old.agents") && strings.Contains(n, plugin.FirstParty) && strings.Contains(n, "1 record")
	}) {
		t.Errorf("it is not said: %q", p.Notes)
	}
}

func TestImportedDirectoriesAreListed(t *testing.T) {
	w := newWorld(t)
	w.src.Own = false
	p := w.plan()
	if !slices.ContainsFunc(p.Notes, func(n string) bool { return strings.Contains(n, "/src/a, /src/b") }) {
		t.Errorf("notes %q", p.Notes)
	}
	if got := p.Dry().Outcome(); got != Refused {
		t.Errorf("outcome %d, want refused", got)
	}
}

func TestWhatIsStored(t *testing.T) {
	w := newWorld(t)
	w.first().Agent.Previous = []string{id3}
	w.first().Agent.NotPreserved = []string{"--x"}
	at := w.first().Agent.ConfirmedAt

	facts := func() metadata.LaunchFacts { return w.plan().Sessions[0].Panes[0].facts }
	want := metadata.LaunchFacts{
		PaneKey: testKey, PluginID: plugin.FirstParty, IntegrationID: "claude-code", Profile: "default",
		LaunchDir: "/src/a", Store: "store-1", ConfirmedAt: at, Previous: []string{id3}, Durability: "present",
	}
	if diff := cmp.Diff(want, facts()); diff != "" {
		t.Errorf("resumed (-want +got):\n%s", diff)
	}

	w.talk(id1, func(t *Talk) { t.Presence = owner.Absent })
	want.NotPreserved, want.Durability, want.Pending = []string{"--x"}, "present", true
	if diff := cmp.Diff(want, facts()); diff != "" {
		t.Errorf("placeholder (-want +got):\n%s", diff)
	}

	w.first().Agent.State = "ended"
	want.Pending, want.Ended = false, true
	if diff := cmp.Diff(want, facts()); diff != "" {
		t.Errorf("ended (-want +got):\n%s", diff)
	}

	w.first().Agent.State = "replaced"
	if diff := cmp.Diff(metadata.LaunchFacts{PaneKey: testKey, Previous: []string{id1, id3}, Ended: true}, facts()); diff != "" {
		t.Errorf("replaced (-want +got):\n%s", diff)
	}
	if p := w.plan().Sessions[0].Panes[0]; p.carry {
		t.Error("a replaced pane carries a record as if it were live")
	}
}

func TestNames(t *testing.T) {
	w := newWorld(t)
	w.session(0).Name = "a.b"
	w.add("a_b")
	w.f.Names = map[string]string{"a.b": "a_b", "a_b": "a_b"}
	p := w.plan()
	if s := p.Sessions[0]; s.Action != Create || s.create.Name != "a_b" || !strings.Contains(s.Reason, `"a_b"`) || !strings.Contains(s.Reason, `"a.b"`) {
		t.Errorf("%+v", s)
	}
	if s := p.Sessions[1]; s.Action != Refuse || !strings.Contains(s.Reason, "apart") {
		t.Errorf("%+v", s)
	}
	w.f.View.Sessions = []host.Session{{Name: "a_b"}}
	if s := w.plan().Sessions[0]; s.Action != SkipExisting {
		t.Errorf("%+v", s)
	}
	if n := newWorld(t).plan().Notes; len(n) != 0 {
		t.Errorf("notes %q", n)
	}
}

func TestHostileNamesStayData(t *testing.T) {
	w := newWorld(t)
	w.session(0).Windows[0].Name = "a\tb\x1b[31m#{pid}"
	w.session(0).Windows = append(w.session(0).Windows, archive.Window{Index: 2, Panes: []archive.Pane{{Cwd: "relative", Title: strings.Repeat("é", host.MaxValue)}}})
	p := w.plan()
	checkPlan(t, w, p)
	if got := p.Sessions[0].create.Windows[0].Name; got != "a b [31m#{pid}" {
		t.Errorf("window name %q", got)
	}
	if !p.Sessions[0].create.Windows[1].AutomaticName {
		t.Error("a window without a name must name itself")
	}
}

func TestWindowsAndLayouts(t *testing.T) {
	pane := func(cols, rows int) archive.Pane { return archive.Pane{Cwd: "/src/a", Cols: cols, Rows: rows} }
	leaf := func(n int) *archive.Layout { return &archive.Layout{Kind: "pane", Pane: n} }
	split := func(dir string, ratio float64, l, r *archive.Layout) *archive.Layout {
		return &archive.Layout{Kind: "split", Dir: dir, Ratio: ratio, Left: l, Right: r}
	}
	for _, c := range []struct {
		name   string
		w      archive.Window
		want   string
		starts []int // archived pane at each leaf
	}{
		{
			"cells",
			archive.Window{Cells: "81x24,0,0{40x24,0,0,0,40x24,41,0,1}", Panes: []archive.Pane{pane(1, 1), pane(1, 1)}},
			"81x24,0,0{40x24,0,0,0,40x24,41,0,1}", nil,
		},
		{
			"cells that are none, and a tree",
			archive.Window{Cells: "evil", Layout: split("vertical", 0.5, leaf(0), leaf(1)), Panes: []archive.Pane{pane(100, 20), pane(100, 9)}},
			"100x30,0,0[100x15,0,0,0,100x14,0,16,1]", nil,
		},
		{
			"a tree in another order",
			archive.Window{Layout: split("horizontal", 0.5, leaf(1), leaf(0)), Panes: []archive.Pane{pane(40, 20), pane(40, 20)}},
			"81x20,0,0{40x20,0,0,0,40x20,41,0,1}",
			[]int{1, 0},
		},
		{
			"a tree that is none",
			archive.Window{Layout: split("diagonal", 0.5, leaf(0), leaf(1)), Panes: []archive.Pane{pane(40, 20), pane(40, 20)}},
			"", nil,
		},
		{"a tree with a ratio of -3", archive.Window{Layout: split("vertical", -3, leaf(0), leaf(1)), Panes: []archive.Pane{pane(40, 20), pane(40, 20)}}, "", nil},
		{"a tree with a pane that is not there", archive.Window{Layout: split("vertical", 0.5, leaf(0), leaf(99)), Panes: []archive.Pane{pane(40, 20), pane(40, 20)}}, "", nil},
		{"nothing", archive.Window{Panes: slices.Repeat([]archive.Pane{pane(0, 0)}, 7)}, "", nil},
		{"nothing, with very many panes", archive.Window{Panes: slices.Repeat([]archive.Pane{pane(0, 0)}, host.MaxPanes)}, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			cell, order := layout(&c.w)
			if err := cell.Check(len(c.w.Panes)); err != nil {
				t.Fatal(err)
			}
			if c.want != "" && cell.String() != c.want {
				t.Errorf("got %s, want %s", cell, c.want)
			}
			if c.starts != nil && !slices.Equal(order, c.starts) {
				t.Errorf("order %v, want %v", order, c.starts)
			}
			if sorted := slices.Sorted(slices.Values(order)); len(sorted) != len(c.w.Panes) || sorted[len(sorted)-1] != len(sorted)-1 {
				t.Errorf("order %v", order)
			}
		})
	}
}

// A tree whose leaves are in another order than the panes still puts each start in its place.
func TestPanesFollowTheirLeaves(t *testing.T) {
	w := newWorld(t)
	w.session(0).Windows[0].Layout = &archive.Layout{
		Kind: "split", Dir: "horizontal", Ratio: 0.5,
		Left: &archive.Layout{Kind: "pane", Pane: 1}, Right: &archive.Layout{Kind: "pane", Pane: 0},
	}
	s := w.plan().Sessions[0]
	win := s.create.Windows[0]
	if win.Panes[1].Start.Mode != host.Program || win.Panes[0].Title != "a shell" || win.Active != 1 {
		t.Errorf("%+v", win)
	}
	if s.Panes[0].pane != 1 || s.Panes[1].pane != 0 {
		t.Errorf("places %d, %d", s.Panes[0].pane, s.Panes[1].pane)
	}
}

func TestIndexes(t *testing.T) {
	for _, c := range []struct {
		name    string
		kind    string
		indexes []int
		want    []int
	}{
		{"kept", "tmux", []int{3, 1, 2405}, []int{3, 1, 2405}},
		{"phux has none", "", []int{0, 0, 0}, []int{-1, -1, -1}},
		{"phux has none, one window", "", []int{0}, []int{-1}},
		{"one window", "tmux", []int{7}, []int{7}},
		{"twice", "tmux", []int{1, 1}, []int{-1, -1}},
		{"out of bounds", "tmux", []int{1, 1 << 30}, []int{-1, -1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.src.Archive.Host.Kind = c.kind
			w.session(0).Windows = nil
			for _, n := range c.indexes {
				w.session(0).Windows = append(w.session(0).Windows, archive.Window{Name: "w", Index: n, Panes: []archive.Pane{{Cwd: "/src/a"}}})
			}
			p := w.plan()
			var got []int
			for _, win := range p.Sessions[0].create.Windows {
				got = append(got, win.Index)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			checkPlan(t, w, p)
		})
	}
}

func TestSessionWithoutPanes(t *testing.T) {
	w := newWorld(t)
	w.session(0).Windows = []archive.Window{{Name: "empty"}}
	p := w.plan()
	checkPlan(t, w, p)
	if c := p.Sessions[0].create; len(c.Windows) != 1 || len(c.Windows[0].Panes) != 1 {
		t.Errorf("%+v", c)
	}
}

func TestOutcomeOfPlans(t *testing.T) {
	for _, c := range verdictCases() {
		w := newWorld(t)
		c.arrange(w)
		w.o.Only = []string{"work"}
		if c.want == DuplicateIdentity && c.name != "one record in two panes of one session" {
			continue
		}
		want := Done
		switch {
		case c.want.Authority():
			want = Refused
		case c.action == SkipExisting:
		case c.want.Circumstance():
			want = Partial
		}
		if c.name == "two that must not come back together" {
			want = Done // one of them alone may
		}
		if got := w.plan().Dry().Outcome(); got != want {
			t.Errorf("%s: outcome %d, want %d", c.name, got, want)
		}
	}
}
