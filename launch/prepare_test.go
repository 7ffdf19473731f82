package launch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
	"github.com/phux-agent/phux-agent/plugin"
)

type (
	templateT = integrations.Template
	envT      = integrations.Env
)

// is matches an error by type.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func TestPrepareRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		set    func(r *rig, q *Request)
		want   func(error) bool
		saying string
	}{
		{
			"an integration that nobody has", func(r *rig, q *Request) { q.Integration = "nope" },
			is[*plugin.ResolveError], "integration-missing",
		},
		{
			"an integration id that is none", func(r *rig, q *Request) { q.Integration = " x" },
			func(err error) bool { return err != nil }, "white space",
		},
		{
			"a directory that is not there", func(r *rig, q *Request) { q.Dir = filepath.Join(r.dir, "no") },
			is[*DirError], "cwd-missing",
		},
		{
			"a file for a directory", func(r *rig, q *Request) { q.Dir = filepath.Join(r.bin, "demo-agent") },
			is[*DirError], "cwd-missing",
		},
		{
			"a relative directory", func(r *rig, q *Request) { q.Dir = "src" },
			is[*DirError], "absolute",
		},
		{
			"a directory that no record can hold", func(r *rig, q *Request) {
				q.Dir = filepath.Join(r.dir, "\xff")
				if err := os.Mkdir(q.Dir, 0o700); err != nil {
					r.t.Skip(err) // darwin's names are UTF-8
				}
			},
			is[*DirError], "not UTF-8",
		},
		{
			"an unknown profile", func(r *rig, q *Request) { q.Profile = "quiet" },
			is[*ProfileError], "profile-missing",
		},
		{
			"a program that is not installed", func(r *rig, q *Request) { q.Integration = "gone" },
			is[*ProgramError], "binary-missing",
		},
		{
			"an option that picks a conversation", func(r *rig, q *Request) { q.Extra = []string{"--continue"} },
			func(err error) bool { return err != nil }, "--continue",
		},
		{
			"the identity flag by hand", func(r *rig, q *Request) { q.Extra = []string{"--resume", idA} },
			func(err error) bool { return err != nil }, "--resume",
		},
		{
			"an id of another shape", func(r *rig, q *Request) { q.Resume = "latest" },
			is[*IDError], "latest",
		},
		{
			"an option-shaped id", func(r *rig, q *Request) { q.Resume = "--help" },
			is[*IDError], "--help",
		},
		{
			"resuming what is not there", func(r *rig, q *Request) { q.Resume = idA },
			is[*AbsentError], "transcript-missing",
		},
		{
			"resuming on doubt, where an unknown id shows an empty prompt", func(r *rig, q *Request) { q.Integration, q.Resume = "blank", idA },
			is[*AbsentError], "unknown-blank",
		},
		{
			"resuming where the CLI cannot", func(r *rig, q *Request) { q.Integration, q.Resume = "plain", idA },
			is[*NotRestorableError], "not-restorable",
		},
		{
			"an unmet requirement", func(r *rig, q *Request) { q.Integration = "picky" },
			is[*RequirementError], "the conversation is deleted",
		},
		{"resuming what is live", func(r *rig, q *Request) {
			r.converse(idA)
			q.Resume = idA
			r.e.find = func(*templateT, metadata.Identity, envT) (owner.Live, error) {
				return owner.Live{Kind: owner.Registry, Process: owner.Process{PID: 42, Start: 1}}, nil
			}
		}, is[*owner.LiveError], "42"},
		{"creating what exists", func(r *rig, q *Request) {
			r.converse(idA)
			r.e.mint = func(*templateT) (string, error) { return idA, nil }
		}, is[*ExistsError], "its conversation exists"},
		{
			"a zero byte", func(r *rig, q *Request) { q.Extra = []string{"a\x00b"} },
			func(err error) bool { return err != nil }, "",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			q := r.request("demo")
			c.set(r, &q)
			d, err := Prepare(context.Background(), r.e, q)
			if d != nil || !c.want(err) {
				t.Fatalf("draft %v, error %v", d, err)
			}
			if !strings.Contains(err.Error(), c.saying) {
				t.Errorf("%q does not say %q", err, c.saying)
			}
			if got := r.claims(); len(got) != 0 {
				t.Errorf("a refusal left claims: %v", got)
			}
		})
	}
}

func TestPrepareRefusesAnUnreadableDirectory(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	r := newRig(t)
	must(t, os.Chmod(r.dir, 0))
	t.Cleanup(func() { _ = os.Chmod(r.dir, 0o755) })
	_, err := Prepare(context.Background(), r.e, r.request("demo"))
	if e, ok := errors.AsType[*DirError](err); !ok || e.Verdict != "cwd-unreadable" {
		t.Fatal(err)
	}
}

func TestPrepareFresh(t *testing.T) {
	r := newRig(t)
	r.env["DEMO_CHILD"] = "1"
	r.env["SECRET"] = "s"
	link := filepath.Join(filepath.Dir(r.dir), "link")
	must(t, os.Symlink(r.dir, link))
	q := r.request("demo")
	q.Profile, q.Dir, q.Extra = "loud", link, []string{"fix it;", "#{x}"}
	d := r.prepare(q)

	if d.Action != Created || d.Record == nil || !d.Restorable || d.Reason != "" {
		t.Fatalf("%+v", d)
	}
	id := d.Record.NativeID
	if want := (metadata.AgentSession{PluginID: "demo.agents", IntegrationID: "demo", NativeID: id}); *d.Record != want {
		t.Errorf("record %+v", d.Record)
	}
	if err := d.Owner.Template.CheckID(id); err != nil {
		t.Error(err)
	}
	want := []string{filepath.Join(r.bin, "demo-agent"), "--loud", "--session-id", id, "fix it;", "#{x}"}
	if diff := cmp.Diff(want, d.Start.Argv); diff != "" {
		t.Error(diff)
	}
	if d.Start.Mode != host.Program || d.Start.Dir != link || d.Start.AfterExit != "shell" || d.Start.Guard != nil {
		t.Errorf("start %+v", d.Start)
	}
	wantSet := map[string]string{"DEMO_VOICE": "loud", "HOME": r.home, "PATH": r.bin, "PHUX_DEMO_SESSION_ID": id}
	if diff := cmp.Diff(wantSet, environMap(d.Start.Set)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"DEMO_CHILD", "DEMO_HOME"}, d.Start.Unset); diff != "" {
		t.Error(diff)
	}
	f := d.Facts
	if f.Profile != "loud" || f.LaunchDir != link || f.PluginID != "demo.agents" || f.IntegrationID != "demo" || f.PaneKey == "" || f.Store == "" {
		t.Errorf("facts %+v", f)
	}
	if diff := cmp.Diff(q.Extra, f.NotPreserved); diff != "" {
		t.Error(diff)
	}
	if again := r.prepare(q); again.Record.NativeID == id || again.Facts.PaneKey == f.PaneKey {
		t.Error("two launches share an identity or a pane key")
	}
}

func TestPrepareTakesTheStoreOfThePane(t *testing.T) {
	r := newRig(t)
	plain := r.prepare(r.request("demo"))
	r.env["DEMO_HOME"] = filepath.Join(r.home, "other")
	mine := r.prepare(r.request("demo"))
	if plain.Facts.Store == mine.Facts.Store {
		t.Error("the caller's store makes no difference")
	}
	if got := environMap(mine.Start.Set)["DEMO_HOME"]; got != r.env["DEMO_HOME"] {
		t.Errorf("the pane gets %q for its store", got)
	}
	q := r.request("demo")
	q.Profile = "elsewhere"
	if got := environMap(r.prepare(q).Start.Set)["DEMO_HOME"]; got != "/elsewhere" {
		t.Errorf("the profile's store is %q", got)
	}
}

// served is a host that says which environment its panes start with.
type served struct {
	host.Host
	environ []string
}

func (s served) Environ(context.Context) ([]string, error) { return s.environ, nil }

func TestPrepareSaysWhichEnvironmentLivesOnce(t *testing.T) {
	r := newRig(t)
	r.env["DEMO_HOME"] = r.home
	for _, c := range []struct {
		environ []string
		want    []string
	}{
		{[]string{"DEMO_HOME=" + r.home}, nil},
		{[]string{"DEMO_HOME=/other"}, []string{"DEMO_HOME"}},
		{nil, []string{"DEMO_HOME"}},
	} {
		r.e.Host = served{r.host, c.environ}
		d := r.prepare(r.request("demo"))
		if diff := cmp.Diff(c.want, d.NotPreserved); diff != "" {
			t.Errorf("%v: %s", c.environ, diff)
		}
		if s := strings.Join(d.Notes, " "); strings.Contains(s, r.home) {
			t.Errorf("a value is shown: %s", s)
		}
	}
}

func TestPrepareResumes(t *testing.T) {
	r := newRig(t)
	r.converse(idA)
	for _, c := range []struct {
		name    string
		set     func(q *Request)
		resumed bool
		note    string
	}{
		{"--resume", func(q *Request) { q.Resume = strings.ToUpper(idA) }, true, ""},
		{"native_env", func(q *Request) { r.env["PHUX_DEMO_SESSION_ID"] = idA }, true, "this resumes"},
		{"inherited native_env", func(q *Request) {
			r.env["PHUX_DEMO_SESSION_ID"], r.env[host.BirthEnv] = idA, "nonce"
		}, false, "is ignored"},
		{"--resume beside an inherited one", func(q *Request) {
			r.env["PHUX_DEMO_SESSION_ID"], r.env[host.BirthEnv] = idB, "nonce"
			q.Resume = idA
		}, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			delete(r.env, "PHUX_DEMO_SESSION_ID")
			delete(r.env, host.BirthEnv)
			q := r.request("demo")
			c.set(&q)
			d := r.prepare(q)
			if resumed := d.Action == Resumed; resumed != c.resumed {
				t.Fatalf("action %s", d.Action)
			}
			if c.resumed {
				if d.Record.NativeID != idA || d.Start.Argv[1] != "--resume" || d.Start.Argv[2] != idA {
					t.Errorf("record %v, argv %q", d.Record, d.Start.Argv)
				}
			} else if d.Record.NativeID == idA {
				t.Error("the inherited identity was taken")
			}
			if !strings.Contains(strings.Join(d.Notes, "\n"), c.note) {
				t.Errorf("notes %q", d.Notes)
			}
		})
	}
}

func TestPrepareWithoutAnIdentity(t *testing.T) {
	r := newRig(t)
	for id, saying := range map[string]string{"late": "next save", "plain": "no way to resume", "blank": "--resume ID"} {
		d := r.prepare(r.request(id))
		if d.Record != nil || d.Restorable || d.Action != Created || !strings.Contains(d.Reason, saying) {
			t.Errorf("%s: %+v", id, d)
		}
		if diff := cmp.Diff([]string{filepath.Join(r.bin, "demo-agent")}, d.Start.Argv); diff != "" {
			t.Errorf("%s: %s", id, diff)
		}
	}
}

func TestPrepareElsewhere(t *testing.T) {
	r := newRig(t)
	d := r.prepare(r.request("rooted"))
	if d.Start.Dir != d.Owner.Root || d.Facts.LaunchDir != r.dir {
		t.Errorf("it starts in %s, launched in %s", d.Start.Dir, d.Facts.LaunchDir)
	}
	d = r.prepare(r.request("worried"))
	if !strings.Contains(strings.Join(d.Notes, "\n"), "the conversation is deleted") {
		t.Errorf("notes %q", d.Notes)
	}
	r.put(filepath.Join(r.home, ".demo", "settings.json"), `{"retention": false}`)
	r.prepare(r.request("picky"))
}

func TestMintCommand(t *testing.T) {
	for _, c := range []struct {
		name, script string
		saying       string // empty: it works
	}{
		{"one id", "echo " + idA, ""},
		{"an id without a newline", "printf %s " + idA, ""},
		{"nothing", "exit 0", "printed nothing"},
		{"two lines", "echo " + idA + "; echo " + idB, "more than one line"},
		{"no id", "echo latest", "latest"},
		{"a failure", "echo 'no\033[2J network' >&2; exit 3", `no\x1b[2J network`},
		{"a flood", "while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done", "more than 65536 bytes"},
		{"something missing", "exit 127", "127"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.script("demo-mint", c.script)
			q := r.request("minter")
			d, err := Prepare(context.Background(), r.e, q)
			if c.saying != "" {
				if !is[*MintError](err) || !strings.Contains(err.Error(), c.saying) {
					t.Fatalf("%v does not say %q", err, c.saying)
				}
				return
			}
			must(t, err)
			if d.Action != Created || d.Record.NativeID != idA || !slices.Contains(d.Start.Argv, "--resume") {
				t.Errorf("%+v", d)
			}
		})
	}
	t.Run("where, with what, and once", func(t *testing.T) {
		r := newRig(t)
		r.env["DEMO_CHILD"], r.env["PHUX_DEMO_SESSION_ID"], r.env[host.BirthEnv] = "1", idB, "n"
		r.script("demo-mint", `/bin/pwd >> "$HOME/log"; echo "$1 $HOME${PHUX_DEMO_SESSION_ID}" >> "$HOME/log"; echo `+idA)
		r.prepare(r.request("minter"))
		b, err := os.ReadFile(filepath.Join(r.home, "log"))
		must(t, err)
		if diff := cmp.Diff(r.dir+"\n"+r.plugin+" "+r.home+"\n", string(b)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("dry", func(t *testing.T) {
		r := newRig(t)
		r.script("demo-mint", ": > \"$HOME/ran\"; echo "+idA)
		q := r.request("minter")
		q.Dry = true
		d := r.prepare(q)
		if _, err := os.Stat(filepath.Join(r.home, "ran")); err == nil {
			t.Error("a dry run minted")
		}
		if !strings.Contains(strings.Join(d.Notes, "\n"), "demo-mint") {
			t.Errorf("notes %q", d.Notes)
		}
	})
	t.Run("given up", func(t *testing.T) {
		r := newRig(t)
		r.script("demo-mint", ": > \"$HOME/started\"; exec /bin/sleep 300")
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			for ctx.Err() == nil {
				if _, err := os.Stat(filepath.Join(r.home, "started")); err == nil {
					cancel()
				}
			}
		}()
		if _, err := Prepare(ctx, r.e, r.request("minter")); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		cancel()
	})
}
