package restore

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/config"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/host/memory"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
	"github.com/phux-agent/phux-agent/plugin"
)

const fakeTOML = `
schema_version = 1
id = "fake"
[launch]
command = ["fake-agent", "--flag"]
[session_identity]
mode = "native-or-phux"
restore = "external-cli"
native_env = "PHUX_FAKE_SESSION_ID"
id_pattern = "uuid4"
resume_args = ["--resume", "${PHUX_AGENT_SESSION_ID}"]
fresh_args = ["--session-id", "${PHUX_AGENT_SESSION_ID}"]
never_prompted = "fresh"
never = ["--continue"]
[transcript]
root = "${FAKE_HOME:-~/.fake}"
paths = ["${PHUX_AGENT_SESSION_ID}.jsonl"]
[[require]]
file = "${FAKE_HOME:-~/.fake}/settings.json"
json = "/keep"
equals = true
default = false
at = "restore"
consequence = "something is lost"
`

// machine is a home, a plugin, a program and a configuration, all real.
type machine struct {
	t    *testing.T
	e    Env
	h    *memory.Host
	home string
	dir  string // a directory to work in
	env  map[string]string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("claims need the process table of Linux")
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, h: memory.New(), home: filepath.Join(base, "my home"), dir: filepath.Join(base, "src")}
	m.write(".fake/keep", "")
	m.mkdir(m.dir)
	pl := filepath.Join(base, "plugin")
	m.write(filepath.Join(pl, "phux-plugin.toml"), "id = \"test.agents\"\nname = \"test\"\nversion = \"1\"\nmin_phux_version = \"0.1\"\n")
	m.write(filepath.Join(pl, "integrations", "fake.toml"), fakeTOML)
	bin := filepath.Join(base, "bin")
	m.write(filepath.Join(bin, "fake-agent"), "#!/bin/sh\n")
	if err := os.Chmod(filepath.Join(bin, "fake-agent"), 0o755); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(base, "config")
	m.write(filepath.Join(conf, "config.toml"), "[profiles.other.fake]\nenv = { FAKE_HOME = \""+filepath.Join(base, "other store")+"\" }\nargs = [\"--more\"]\n[profiles.bad.fake]\nargs = [\"--continue\"]\n")
	cfg, err := config.Load(conf)
	if err != nil {
		t.Fatal(err)
	}
	reg, err := plugin.Load(plugin.Source{DataDir: filepath.Join(base, "data"), Added: []string{pl}})
	if err != nil {
		t.Fatal(err)
	}
	claims := filepath.Join(base, "claims")
	m.mkdir(claims)
	m.env = map[string]string{"HOME": m.home, "PATH": bin}
	m.e = Env{
		Host: m.h, Registry: reg, Config: cfg, Claims: owner.Claims{Dir: claims}, Now: time.Now, Machine: "m1",
		Getenv: func(k string) (string, bool) { v, ok := m.env[k]; return v, ok },
		Watch:  WatchProcesses,
	}
	return m
}

func (m *machine) mkdir(dir string) {
	m.t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		m.t.Fatal(err)
	}
}

// write puts a file at an absolute path, or below the home.
func (m *machine) write(path, text string) {
	m.t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(m.home, path)
	}
	m.mkdir(filepath.Dir(path))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) pane(id, profile string) archive.Pane {
	return archive.Pane{
		Cwd:          m.dir,
		AgentSession: &metadata.AgentSession{PluginID: "test.agents", IntegrationID: "fake", NativeID: id},
		Agent: &archive.Agent{
			Key: testKey, Profile: profile, LaunchCwd: m.dir, Store: filepath.Join(m.home, ".fake"), Durability: "present",
		},
	}
}

func (m *machine) source(panes ...archive.Pane) Source {
	return Source{Own: true, Archive: &archive.Archive{SchemaVersion: 2, Host: archive.Host{Machine: "m1", Kind: memory.Kind}, Sessions: []archive.Session{
		{Name: "work", Windows: []archive.Window{{Name: "w", Panes: panes}}},
	}}}
}

func (m *machine) plan(src Source, o Options) *Plan {
	m.t.Helper()
	f, err := Gather(context.Background(), m.e, src, o)
	if err != nil {
		m.t.Fatal(err)
	}
	p, err := Make(src, f, o)
	if err != nil {
		m.t.Fatal(err)
	}
	return p
}

// child is a process that lives until the test's end, or until it is killed.
func child(t *testing.T) (p owner.Process, kill func()) {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dead := false
	kill = func() {
		if !dead {
			dead = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	t.Cleanup(kill)
	info, err := proc.Stat(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return owner.Process{PID: info.PID, Start: info.Start}, kill
}

func verdicts(p *Plan) []string {
	var out []string
	for _, s := range p.Sessions {
		for _, pp := range s.Panes {
			out = append(out, string(pp.Verdict))
		}
	}
	return out
}

func TestGather(t *testing.T) {
	m := newMachine(t)
	m.write(".fake/"+id1+".jsonl", "{}\n")
	src := m.source(
		m.pane(id1, ""), m.pane(id2, ""), m.pane(id3, "other"), m.pane(id4, "bad"),
		m.pane(id5, "gone"), archive.Pane{Cwd: filepath.Join(m.dir, "gone")},
	)
	src.Archive.Sessions[0].Windows[0].Panes[1].Agent.Durability = "never-prompted"
	m.write(".fake/settings.json", `{"keep": true}`)
	p := m.plan(src, Options{})
	if diff := cmp.Diff([]string{"resume", "fresh-same-id", "transcript-missing", "profile-missing", "profile-missing", "shell"}, verdicts(p)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	bin := m.env["PATH"]
	panes := p.Sessions[0].Panes
	if diff := cmp.Diff(host.Start{
		Mode: host.Program, Dir: m.dir, AfterExit: panes[0].Start.AfterExit,
		Argv: []string{filepath.Join(bin, "fake-agent"), "--flag", "--resume", id1},
		Set:  []string{"PATH=" + bin, "PHUX_FAKE_SESSION_ID=" + id1},
	}, panes[0].Start, cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "Unset" }, cmp.Ignore())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !strings.Contains(panes[2].Reason, "other store") || !strings.Contains(panes[2].Reason, filepath.Join(m.home, ".fake")) {
		t.Errorf("both stores are to be named: %q", panes[2].Reason)
	}
	if !strings.Contains(panes[3].Reason, "--continue") {
		t.Errorf("%q", panes[3].Reason)
	}
	if panes[5].Start.Dir != m.dir {
		t.Errorf("the shell starts in %s", panes[5].Start.Dir)
	}
	if p.Host.Running || p.Host.Server != "memory-memory" {
		t.Errorf("%+v", p.Host)
	}
	if _, err := Gather(context.Background(), m.e, src, Options{Only: []string{"wrok"}}); !errors.As(err, new(*UnknownSessionError)) {
		t.Errorf("got %v", err)
	}
	// Nothing of this started or claimed anything.
	if l, err := m.e.Claims.List(); err != nil || len(l) != 0 || len(m.h.Started()) != 0 {
		t.Errorf("%v, %v", l, err)
	}
}

func TestGatherRequirement(t *testing.T) {
	for text, want := range map[string]Verdict{
		"": RequirementUnmet, `{"keep": true}`: Resume, `{"keep": false}`: RequirementUnmet, `{"keep": tr`: RequirementUnmet,
	} {
		m := newMachine(t)
		m.write(".fake/"+id1+".jsonl", "{}\n")
		m.write(".fake/"+id2+".jsonl", "{}\n")
		if text != "" {
			m.write(".fake/settings.json", text)
		}
		p := m.plan(m.source(m.pane(id1, ""), m.pane(id2, "")), Options{})
		for _, v := range verdicts(p) {
			if v != string(want) {
				t.Errorf("settings %q: %s, want %s", text, v, want)
			}
		}
	}
}

func TestGatherResolves(t *testing.T) {
	m := newMachine(t)
	m.write(".fake/"+id1+".jsonl", "{}\n")
	one := func(o Options, plugin, integration string) (Verdict, PanePlan) {
		src := m.source(m.pane(id1, ""))
		src.Archive.Sessions[0].Windows[0].Panes[0].AgentSession = &metadata.AgentSession{PluginID: plugin, IntegrationID: integration, NativeID: id1}
		pp := m.plan(src, o).Sessions[0].Panes[0]
		return pp.Verdict, pp
	}
	if v, pp := one(Options{}, "old.agents", "fake"); v != OwnerChanged || !strings.Contains(pp.Hint, "--owner old.agents=test.agents") {
		t.Errorf("%s, %q", v, pp.Hint)
	}
	if v, pp := one(Options{Owners: map[string]string{"old.agents": "test.agents"}}, "old.agents", "fake"); v != Resume || pp.Record.PluginID != "test.agents" {
		t.Errorf("%s, %+v", v, pp.Record)
	}
	if v, _ := one(Options{}, "test.agents", "fak"); v != IntegrationMissing {
		t.Errorf("%s", v)
	}
	m.env["PATH"] = "/nowhere"
	if v, pp := one(Options{}, "test.agents", "fake"); v != BinaryMissing || !strings.Contains(pp.Reason, "/nowhere") {
		t.Errorf("%s, %q", v, pp.Reason)
	}
}

func TestGatherDirectories(t *testing.T) {
	m := newMachine(t)
	m.write(filepath.Join(m.dir, "file"), "")
	link := filepath.Join(m.dir, "link")
	if err := os.Symlink(m.home, link); err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(m.dir, "closed")
	m.mkdir(closed)
	if err := os.Chmod(closed, 0); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]Dir{
		m.dir:                             {State: DirThere, Own: true},
		link:                              {State: DirThere, Own: true},
		filepath.Join(m.dir, "a", "b"):    {Detail: "it does not exist", Nearest: m.dir},
		filepath.Join(m.dir, "file"):      {Detail: "it is not a directory", Nearest: m.dir},
		filepath.Join(m.dir, "file", "x"): {Detail: "it does not exist", Nearest: m.dir},
		"/no/such":                        {Detail: "it does not exist"},
		"relative":                        {Detail: "it is not an absolute path"},
		"/a\x00b":                         {Detail: "it is not an absolute path"},
	} {
		if diff := cmp.Diff(want, lookDir(path)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", path, diff)
		}
	}
	if os.Geteuid() != 0 { // root enters everything
		if got := lookDir(closed); got.State != DirUnreadable || got.Nearest != m.dir {
			t.Errorf("%+v", got)
		}
	}
}

// Law 8, with real processes: live elsewhere is a placeholder that says where, and which pid.
func TestGatherLive(t *testing.T) {
	m := newMachine(t)
	m.write(".fake/"+id1+".jsonl", "{}\n")
	p, kill := child(t)
	id := metadata.Identity{IntegrationID: "fake", NativeID: id1}
	if err := m.e.Claims.Rebuild(id, p, owner.Place{Host: "tmux-L-other", Terminal: "%7"}); err != nil {
		t.Fatal(err)
	}
	pp := m.plan(m.source(m.pane(id1, "")), Options{}).Sessions[0].Panes[0]
	if pp.Verdict != AlreadyLive || !strings.Contains(pp.Reason, "%7 of tmux-L-other") {
		t.Errorf("%s, %q", pp.Verdict, pp.Reason)
	}
	kill()
	if pp = m.plan(m.source(m.pane(id1, "")), Options{}).Sessions[0].Panes[0]; pp.Verdict != Resume {
		t.Errorf("a dead owner is still one: %s, %q", pp.Verdict, pp.Reason)
	}
}

// What the last server's end is just ending is waited for, and not called a survivor.
func TestGatherWaitsForTheDying(t *testing.T) {
	for name, c := range map[string]struct {
		place    owner.Place
		ends     bool
		survivor bool // by its template
		want     Verdict
		waits    int
	}{
		"its server is gone":      {owner.Place{Host: "memory-memory", Terminal: "%7"}, true, false, Resume, 1},
		"it does not end":         {owner.Place{Host: "memory-memory", Terminal: "%7"}, false, false, AlreadyLive, 1},
		"it outlives a hangup":    {owner.Place{Host: "memory-memory", Terminal: "%7"}, false, true, AlreadyLive, 0},
		"it runs on another host": {owner.Place{Host: "tmux-L-other", Terminal: "%7"}, false, false, AlreadyLive, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.write(".fake/"+id1+".jsonl", "{}\n")
			p, kill := child(t)
			if err := m.e.Claims.Rebuild(metadata.Identity{IntegrationID: "fake", NativeID: id1}, p, c.place); err != nil {
				t.Fatal(err)
			}
			if c.survivor {
				own, err := m.e.Registry.Resolve("fake")
				if err != nil {
					t.Fatal(err)
				}
				own.Template.Launch.SurvivesHangup = true
			}
			m.e.Info = &host.Info{Kind: memory.Kind, Server: "memory-memory", AtomicRecord: true}
			waits := 0
			m.e.Watch = func(_ context.Context, pids []int, _ time.Duration) error {
				waits++
				if !slices.Equal(pids, []int{p.PID}) {
					t.Errorf("it waits for %v", pids)
				}
				if c.ends {
					kill()
				}
				return nil
			}
			pp := m.plan(m.source(m.pane(id1, "")), Options{}).Sessions[0].Panes[0]
			if pp.Verdict != c.want || waits != c.waits {
				t.Errorf("%s, %q, after %d waits", pp.Verdict, pp.Reason, waits)
			}
		})
	}
}

// narrow is a host that cannot hold dots, and whose panes have an environment of their own.
type narrow struct {
	*memory.Host
	env []string
}

func (narrow) SessionName(name string) string              { return strings.ReplaceAll(name, ".", "_") }
func (n narrow) Environ(context.Context) ([]string, error) { return n.env, nil }

func TestGatherAsksTheHost(t *testing.T) {
	m := newMachine(t)
	if _, err := m.h.Create(context.Background(), host.CreateSession{Name: "mine", Windows: []host.WindowSpec{{
		Name: "w", Index: -1, Layout: leaf(80, 24, 0), Panes: []host.PaneSpec{{}},
	}}}); err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(m.dir, "elsewhere")
	m.write(filepath.Join(elsewhere, id1+".jsonl"), "{}\n")
	m.e.Host = narrow{m.h, []string{"FAKE_HOME=" + elsewhere, "HOME=/nowhere", "PATH=/nowhere"}}
	src := m.source(m.pane(id1, ""))
	src.Archive.Sessions[0].Name = "a.b"
	s := m.plan(src, Options{}).Sessions[0]
	if s.HostName != "a_b" || s.create.Name != "a_b" {
		t.Errorf("%+v", s)
	}
	if s.Panes[0].Verdict != Resume {
		t.Errorf("the conversation is in the store of the host's environment: %s, %q", s.Panes[0].Verdict, s.Panes[0].Reason)
	}
}

func TestOne(t *testing.T) {
	ctx := context.Background()
	rec := metadata.AgentSession{PluginID: "test.agents", IntegrationID: "fake", NativeID: id1}
	setup := func(t *testing.T) (*machine, metadata.LaunchFacts, owner.Place) {
		m := newMachine(t)
		m.write(".fake/"+id1+".jsonl", "{}\n")
		return m, metadata.LaunchFacts{PaneKey: testKey, PluginID: "test.agents", IntegrationID: "fake", LaunchDir: m.dir, Store: filepath.Join(m.home, ".fake")},
			owner.Place{Host: "memory-memory", Terminal: "%1"}
	}

	t.Run("resumes", func(t *testing.T) {
		m, f, self := setup(t)
		st, pp, err := One(ctx, m.e, rec, f, self)
		if err != nil || pp.Verdict != Resume || st.Mode != host.Program || !slices.Equal(st.Argv[1:], []string{"--flag", "--resume", id1}) {
			t.Fatalf("%v, %s %q, %v", st, pp.Verdict, pp.Reason, err)
		}
		g, err := owner.DecodeGuard(st.Guard)
		if err != nil || g.Ticket != "" || g.Expect != owner.Present || g.Place.Terminal != "%1" || g.Place.PaneKey != testKey {
			t.Errorf("%+v, %v", g, err)
		}
		if l, err := m.e.Claims.List(); err != nil || len(l) != 0 {
			t.Errorf("it claimed: %v, %v", l, err)
		}
	})
	t.Run("without a host", func(t *testing.T) {
		m, f, self := setup(t)
		m.e.Host = nil
		if st, _, err := One(ctx, m.e, rec, f, self); err != nil || st.Mode != host.Program {
			t.Fatalf("%v, %v", st, err)
		}
	})
	t.Run("says why not", func(t *testing.T) {
		m, f, self := setup(t)
		f.LaunchDir = filepath.Join(m.dir, "gone")
		st, pp, err := One(ctx, m.e, rec, f, self)
		if err != nil || pp.Verdict != CwdMissing || st.Mode != host.Placeholder || st.Dir != m.dir || st.Reason == "" || st.Guard != nil {
			t.Fatalf("%+v, %s, %v", st, pp.Verdict, err)
		}
	})
	t.Run("authority is said in the pane", func(t *testing.T) {
		m, f, self := setup(t)
		other := rec
		other.PluginID = "old.agents"
		st, pp, err := One(ctx, m.e, other, f, self)
		if err != nil || pp.Verdict != OwnerChanged || st.Mode != host.Placeholder || !strings.Contains(st.Hint, "--owner") {
			t.Fatalf("%+v, %s, %v", st, pp.Verdict, err)
		}
	})
	t.Run("ended stays ended", func(t *testing.T) {
		m, f, self := setup(t)
		f.Ended = true
		st, pp, err := One(ctx, m.e, rec, f, self)
		if err != nil || pp.Verdict != EndedPane || st.Mode != host.Shell {
			t.Fatalf("%+v, %s, %v", st, pp.Verdict, err)
		}
	})
	t.Run("never prompted, from a placeholder", func(t *testing.T) {
		m, f, self := setup(t)
		f.Pending, f.Durability = true, "never-prompted"
		if err := os.Remove(filepath.Join(m.home, ".fake", id1+".jsonl")); err != nil {
			t.Fatal(err)
		}
		st, pp, err := One(ctx, m.e, rec, f, self)
		if err != nil || pp.Verdict != FreshSameID || !slices.Contains(st.Argv, "--session-id") {
			t.Fatalf("%+v, %s %q, %v", st, pp.Verdict, pp.Reason, err)
		}
	})
	t.Run("live elsewhere", func(t *testing.T) {
		m, f, self := setup(t)
		p, _ := child(t)
		if err := m.e.Claims.Rebuild(rec.Identity(), p, owner.Place{Host: self.Host, Terminal: "%2"}); err != nil {
			t.Fatal(err)
		}
		st, pp, err := One(ctx, m.e, rec, f, self)
		if err != nil || pp.Verdict != AlreadyLive || st.Mode != host.Placeholder {
			t.Fatalf("%+v, %s, %v", st, pp.Verdict, err)
		}
	})
	t.Run("waits for the last owner of this pane", func(t *testing.T) {
		m, f, self := setup(t)
		p, kill := child(t)
		if err := m.e.Claims.Rebuild(rec.Identity(), p, owner.Place{Host: self.Host, PaneKey: testKey}); err != nil {
			t.Fatal(err)
		}
		waited := 0
		m.e.Watch = func(ctx context.Context, pids []int, settle time.Duration) error {
			if waited++; waited == 2 {
				kill()
			}
			if !slices.Equal(pids, []int{p.PID}) {
				t.Errorf("waits for %v", pids)
			}
			return ctx.Err()
		}
		st, pp, err := One(ctx, m.e, rec, f, self)
		if err != nil || pp.Verdict != Resume || st.Mode != host.Program || waited < 2 {
			t.Fatalf("%+v, %s %q, %v, waited %d times", st, pp.Verdict, pp.Reason, err, waited)
		}
	})
	t.Run("does not wait for ever", func(t *testing.T) {
		m, f, self := setup(t)
		p, _ := child(t)
		if err := m.e.Claims.Rebuild(rec.Identity(), p, owner.Place{Host: self.Host, PaneKey: testKey}); err != nil {
			t.Fatal(err)
		}
		m.e.Watch = func(context.Context, []int, time.Duration) error { return context.DeadlineExceeded }
		st, pp, err := One(ctx, m.e, rec, f, self)
		if err != nil || pp.Verdict != AlreadyLive || st.Mode != host.Placeholder {
			t.Fatalf("%+v, %s, %v", st, pp.Verdict, err)
		}
	})
	t.Run("what must not run beside a sibling", func(t *testing.T) {
		m, f, self := setup(t)
		sib, err := metadata.LaunchFacts{PaneKey: metadata.NewPaneKey(), LaunchDir: m.dir}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		spec := func(id string, facts []byte) host.PaneSpec {
			return host.PaneSpec{
				Start: host.Start{Mode: host.Program, Argv: []string{"/bin/x"}},
				Meta: map[metadata.Key][]byte{
					metadata.KeyAgentSession: encode(t, metadata.AgentSession{PluginID: "test.agents", IntegrationID: "fake", NativeID: id}),
					metadata.KeyAgentLaunch:  facts,
				},
			}
		}
		own, err := f.Encode()
		if err != nil {
			t.Fatal(err)
		}
		create := func(name string, p host.PaneSpec) {
			if _, err := m.h.Create(ctx, host.CreateSession{Name: name, Windows: []host.WindowSpec{{Name: "w", Index: -1, Layout: leaf(80, 24, 0), Panes: []host.PaneSpec{p}}}}); err != nil {
				t.Fatal(err)
			}
		}
		create("self", spec(id1, own))
		self.Terminal = ""
		if _, pp, err := One(ctx, m.e, rec, f, self); err != nil || pp.Verdict != Resume {
			t.Fatalf("alone: %s %q, %v", pp.Verdict, pp.Reason, err)
		}
		create("sibling", spec(id2, sib))
		if _, pp, err := One(ctx, m.e, rec, f, self); err != nil || pp.Verdict != RequirementUnmet {
			t.Fatalf("beside another: %s %q, %v", pp.Verdict, pp.Reason, err)
		}
	})
}

func TestWatchProcesses(t *testing.T) {
	p, kill := child(t)
	if runtime.GOOS != "linux" {
		t.Skip("no process table")
	}
	kill()
	// It is gone: the wait is over long before the settle time.
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	if err := WatchProcesses(ctx, []int{p.PID}, time.Hour); err != nil {
		t.Errorf("got %v", err)
	}
	alive, _ := child(t)
	if err := WatchProcesses(ctx, []int{alive.PID}, time.Millisecond); err != nil {
		t.Errorf("got %v", err)
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if err := WatchProcesses(done, []int{alive.PID}, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
