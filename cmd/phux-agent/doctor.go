package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/capture"
	"github.com/phux-agent/phux-agent/doctor"
	"github.com/phux-agent/phux-agent/hooks"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/internal/ui"
	"github.com/phux-agent/phux-agent/plugin"
	"github.com/phux-agent/phux-agent/restore"
)

func (a *app) doctorVerb() *cobra.Command {
	var rehearse bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find out what would not come back, before it has to",
		Long: `Look for what would keep a pane from coming back as itself: the program, its
directories, the host, plugins and templates, the agents and their versions, hooks,
every pane, the history, and what a restore would say of each pane after a reboot.
Each finding is graded, with what to do. Nothing is changed, and of the agents
nothing runs but their --version.

With --rehearse the power is cut for real, on a tmux server of its own: the workspace
as it is now (or as it was saved last, where no server runs) is restored there twice,
with your own plugins, templates and directories, and compared with what it was. A
stand-in waits where each agent would be, so no conversation is opened. Your tmux
configuration is not read there.`,
		Example: `  phux-agent doctor
  phux-agent doctor --json
  phux-agent doctor --rehearse`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if rehearse {
				return a.dress(cmd.Context())
			}
			return a.doctor(cmd.Context())
		},
		Annotations: exits("0 nothing to mend", "1 it could not look", "2 usage", "3 something is to be mended; the findings say what"),
	}
	cmd.Flags().BoolVar(&rehearse, "rehearse", false, "restore the workspace on a private tmux server, cut the power, and restore it again")
	return cmd
}

// doctorDocument is what doctor --json prints.
type doctorDocument struct {
	SchemaVersion int              `json:"schema_version"`
	Worst         doctor.Grade     `json:"worst"`
	Findings      []doctor.Finding `json:"findings"`
}

func (a *app) doctor(ctx context.Context) error {
	return a.findings(doctor.Examine(a.examine(ctx)))
}

// findings prints what was found; its code is 3 where something is to be mended.
func (a *app) findings(found []doctor.Finding) error {
	worst := doctor.Worst(found)
	if a.json {
		if err := writeDocument(a.stdout, doctorDocument{schemaVersion, worst, found}); err != nil {
			return err
		}
	} else {
		t := ui.NewTable()
		counts := map[doctor.Grade]int{}
		for _, f := range together(found) {
			counts[f.Grade]++
			if w := a.width(); w > 0 && len(f.Text)+len(f.Check)+10 > w {
				t.Row(string(f.Grade), f.Check)
				t.Note(f.Text, w)
			} else {
				t.Row(string(f.Grade), f.Check, f.Text)
			}
			if f.Remedy != "" && f.Grade != doctor.OK {
				t.Note("→ "+f.Remedy, a.width())
			}
		}
		if err := t.Write(a.stdout, ""); err != nil {
			return err
		}
		if n := counts[doctor.Warn] + counts[doctor.Fail]; n > 0 {
			a.say("%s to mend", plural(n, "thing"))
		} else {
			a.say("nothing to mend")
		}
	}
	if worst == doctor.Warn || worst == doctor.Fail {
		return &statusError{code: partial}
	}
	return nil
}

// alike is from how many panes on that a finding which says the same of each is said once.
const alike = 3

// together says once what is said of several panes.
func together(found []doctor.Finding) (out []doctor.Finding) {
	type group struct{ check, grade, text, remedy string }
	about := func(f doctor.Finding) group {
		return group{f.Check, string(f.Grade), strings.Replace(f.Text, "pane "+f.Pane, "pane", 1), f.Remedy}
	}
	panes := map[group][]string{}
	for _, f := range found {
		if f.Pane != "" {
			panes[about(f)] = append(panes[about(f)], f.Pane)
		}
	}
	for _, f := range found {
		of := panes[about(f)]
		if f.Pane == "" || len(of) < alike {
			out = append(out, f)
			continue
		}
		if f.Pane == of[0] {
			which := strings.Join(of[:alike], ", ")
			if n := len(of) - alike; n > 0 {
				which += fmt.Sprintf(" and %d more", n)
			}
			f.Text = strings.Replace(f.Text, "pane "+f.Pane, fmt.Sprintf("%d panes (%s), each", len(of), which), 1)
			out = append(out, f)
		}
	}
	return out
}

// examine gathers the facts. What cannot be found out is said in its place.
func (a *app) examine(ctx context.Context) doctor.Facts {
	f := doctor.Facts{Now: a.now(), Server: a.serverFlags()}
	f.Program = a.examineProgram()
	a.examineDirectories(&f)
	c, err := a.config()
	if err != nil {
		f.Config = err
		f.Stage = errors.New("the configuration cannot be read")
		f.History.Err, f.Unseen, f.Host.Err = f.Stage, f.Stage, f.Stage
		return f
	}
	reg, err := a.registry()
	if err != nil {
		f.Stage = err
		f.Unseen = err
	} else {
		f.Plugins = reg.Plugins()
	}
	f.History.Saving = true
	h, err := a.host(ctx)
	if err != nil {
		f.Host.Err, f.History.Err, f.Stage = err, err, err
	} else {
		f.Host = doctor.Host{Kind: h.info.Kind, Info: h.info}
		var now *archive.Archive
		if h.info.Running && reg != nil {
			now, f.Panes, f.Unseen = a.asSaved(ctx, h)
			f.History.SavingWhy = a.savingWhy(ctx, h, a.wantsAutosave(c))
			f.History.Saving = f.History.SavingWhy == ""
		}
		st, err := a.store(h.info)
		if err == nil {
			if f.History.Entries, err = st.List(); err == nil {
				f.History.Best, err = st.Best()
			}
		}
		f.History.Err = err
		if reg != nil {
			f.Reboot, f.Stage = a.afterReboot(ctx, h, now, f.History.Best.Archive)
		}
	}
	if reg != nil {
		f.Agents = a.examineAgents(ctx, reg, f)
	}
	return f
}

func (a *app) examineProgram() doctor.Program {
	p := doctor.Program{}
	var err error
	if p.Self, err = os.Executable(); err != nil {
		return p
	}
	if p.OnPath, err = plugin.LookProgram("phux-agent", a.getenv("PATH")); err != nil {
		p.OnPath = ""
	}
	p.Same = sameFile(p.OnPath, p.Self)
	p.Trust = plugin.CheckTrust(p.Self)
	return p
}

func (a *app) examineDirectories(f *doctor.Facts) {
	d, err := a.dirs()
	if err != nil {
		f.State.Err, f.Runtime.Err = err, err
		return
	}
	f.State, f.Runtime = usable(d.State), usable(d.Runtime)
	f.Runtime.Temporary = a.getenv("XDG_RUNTIME_DIR") == ""
}

// usable looks at a directory, or at the nearest one above it that exists.
func usable(path string) doctor.Directory {
	d := doctor.Directory{Path: path}
	at := nearestDir(path)
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		d.Err = fmt.Errorf("%s: %w", path, unix.ENOTDIR)
		return d
	}
	var st unix.Statfs_t
	if d.Err = unix.Statfs(at, &st); d.Err == nil {
		d.Free = st.Bavail * uint64(st.Bsize)
		d.Err = writable(at)
	}
	return d
}

// asSaved is the workspace as a save would find it now; nothing is written.
func (a *app) asSaved(ctx context.Context, h *hosted) (*archive.Archive, []capture.Pane, error) {
	req, err := a.captureRequest(h)
	if err != nil {
		return nil, nil, err
	}
	req.Write = false
	ar, panes, err := capture.Capture(ctx, req)
	if errors.Is(err, host.ErrNoServer) {
		return nil, nil, nil
	}
	return ar, panes, err
}

// savingWhy says why nothing is saved by itself; empty where it is, or where nobody can tell.
func (a *app) savingWhy(ctx context.Context, h *hosted, wanted bool) string {
	s, can := h.Host.(host.Autosaver)
	if !can {
		return ""
	}
	st, err := s.AutosaveState(ctx)
	switch {
	case err != nil:
		return ""
	case st.Setting == host.SettingOff || st.Setting == host.SettingNo && !wanted:
		return "" // so it was said
	case st.Setting == host.SettingNo:
		return "autosave is not on for this server: what happens after the last save is lost with it"
	case st.Program != "" && !executable(st.Program):
		return fmt.Sprintf("autosave calls %s, which is not there any more", st.Program)
	case len(st.Taken) > 0:
		return "autosave does not work whole: somebody else uses " + strings.Join(st.Taken, ", ")
	}
	if since := a.overdue(st, a.lastAutosave(a.serverName(h))); !since.IsZero() {
		return "autosave is on, but " + overdueWords(since, a.now())
	}
	if st.Present < st.Wanted {
		return fmt.Sprintf("%d of the %d hooks of autosave are gone, until the next heartbeat", st.Wanted-st.Present, st.Wanted)
	}
	return ""
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// afterReboot is what a restore would say of the live workspace, or else of the last good
// generation, had the machine been started again.
func (a *app) afterReboot(ctx context.Context, h *hosted, now, last *archive.Archive) (*restore.Report, error) {
	src := restore.Source{Archive: now, Path: "the workspace as it is", Own: true}
	if now == nil {
		src.Archive, src.Path = last, "the last good generation"
	}
	if src.Archive == nil {
		return nil, nil
	}
	st, err := a.store(h.info)
	if err != nil {
		return nil, err
	}
	e, err := a.restoreEnv(ctx, h, st)
	if err != nil {
		return nil, err
	}
	plan, err := planRebooted(ctx, e, src)
	if err != nil {
		return nil, err
	}
	return plan.Dry(), nil
}

func planRebooted(ctx context.Context, e restore.Env, src restore.Source) (*restore.Plan, error) {
	facts, err := restore.Gather(ctx, e, src, restore.Options{})
	if err != nil {
		return nil, err
	}
	return restore.Make(src, facts.Rebooted(), restore.Options{})
}

// examineAgents looks at the integrations whose program is here, or which are in use.
func (a *app) examineAgents(ctx context.Context, reg *plugin.Registry, f doctor.Facts) []doctor.Agent {
	used := map[string]bool{}
	for _, p := range f.Panes {
		if p.Record != nil {
			used[p.Record.IntegrationID] = true
		}
	}
	if f.Reboot != nil {
		for _, s := range f.Reboot.Sessions {
			for _, p := range s.Panes {
				if p.Record != nil {
					used[p.Record.IntegrationID] = true
				}
			}
		}
	}
	var out []doctor.Agent
	var wg sync.WaitGroup
	var asked []*string
	turn := make(chan struct{}, 4) // they are large, and a machine is small
	for _, t := range a.enabled(reg) {
		own, err := reg.Resolve(t.ID)
		if err != nil || len(t.Launch.Command) == 0 {
			continue
		}
		g := doctor.Agent{Integration: t.ID, Plugin: own.PluginID, Used: used[t.ID], Verified: t.CLI.Verified, MinVersion: t.CLI.MinVersion}
		g.Program, g.ProgramErr = plugin.LookProgram(t.Launch.Command[0], a.getenv("PATH"))
		if g.ProgramErr != nil && !g.Used {
			continue
		}
		var unverified *plugin.UnverifiedError
		if err := own.Restorable(); errors.As(err, &unverified) {
			g.Unverified = err
		}
		for _, r := range t.Require {
			if detail, holds := r.Holds(a.lookup); !holds {
				g.Unmet = append(g.Unmet, doctor.Unmet{
					At: r.At, Detail: detail, Consequence: r.Consequence,
					Remedy: fmt.Sprintf("set %s to %v in %s", r.JSON, r.Equals, r.File),
				})
			}
		}
		g.Hooks, g.NeedsHooks = a.hookState(t), len(t.Hooks) > 0 && !observable(t)
		version := new(string)
		asked = append(asked, version)
		if g.ProgramErr == nil && len(t.CLI.VersionArgs) > 0 {
			wg.Go(func() {
				turn <- struct{}{}
				defer func() { <-turn }()
				*version = a.versionOf(ctx, g.Program, t.CLI.VersionArgs)
			})
		}
		out = append(out, g)
	}
	wg.Wait()
	for i := range out {
		out[i].Version = *asked[i]
	}
	return out
}

// observable: a file of the agent's proves which conversation is open, without its hook.
func observable(t *integrations.Template) bool {
	return slices.ContainsFunc(t.Observe, func(o integrations.Observe) bool { return o.Kind != "hook" })
}

func (a *app) hookState(t *integrations.Template) string {
	if len(t.Hooks) == 0 {
		return ""
	}
	env, err := a.hooksEnv()
	if err != nil {
		return hooks.Refused
	}
	edits, err := env.Plan(t, true)
	if err != nil {
		return hooks.Refused
	}
	state := hooks.Installed
	for _, e := range edits {
		if e.State != hooks.Installed {
			state = e.State
		}
	}
	return state
}

// versionPattern is made when it is asked for: every pane pays for what stands at the start.
var versionPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[0-9]+(\.[0-9]+)+[0-9A-Za-z.+-]*`) })

// versionOf asks a program for its version; empty where it does not tell in time.
func (a *app) versionOf(ctx context.Context, program string, args []string) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = a.environ, "/", time.Second
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return versionPattern().FindString(string(out[:min(len(out), 4096)]))
}
