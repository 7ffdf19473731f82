package restore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/config"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/internal/proc"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
	"github.com/phux-agent/phux-agent/plugin"
)

// DefaultProfile is the profile that always exists.
const DefaultProfile = "default"

// Facts is what Gather found: everything that Make knows of the world.
type Facts struct {
	Now     time.Time
	Machine string
	Boot    string // of this machine now; empty where it does not tell
	Home    string
	Path    string // the caller's PATH
	Host    host.Info
	// View is what the host holds; empty, never nil, where no server runs.
	View *host.Workspace
	// Names holds, for each selected session, its name as the host can hold it, and its own one.
	Names  map[string]string
	Agents map[AgentKey]Agent
	Talks  map[TalkKey]Talk
	Dirs   map[string]Dir
	Husks  map[string]error // by session id: nil is a proven husk
	Idle   map[string]error // by terminal id: nil is a proven idle shell; of Options.Fill
	Notes  []string         // what could not be told

	Programs map[string]Listed // by name: those of the archive's that the configuration lists
	Mode     config.Mode       // of the configuration, for what has none of its own
	BootMode config.Mode       // "
	Old      time.Duration     // how old an archive may be without a word; 0 where nobody says
}

// AgentKey is an integration, its owner (after --owner) and a profile.
type AgentKey struct{ IntegrationID, PluginID, Profile string }

// Agent is what an AgentKey resolves to now.
type Agent struct {
	Owner      plugin.Owner
	Err        *plugin.ResolveError // nil where it resolves
	Profile    integrations.Profile
	HasProfile bool
	BuildErr   error  // the command cannot be built, with this profile or at all
	ProfileBad bool   // of a BuildErr: without the profile it can
	Program    string // absolute; empty where ProgramErr is set
	ProgramErr error
	Store      string // fingerprint of the transcript store in the pane's environment
	Unmet      []Unmet
	Mode       config.Mode // what the configuration says of it; empty is Auto
	Hooked     bool        // its hook calls us
}

// Unmet is a requirement of a restore that does not hold.
type Unmet struct {
	Require integrations.Require
	Detail  string
}

// TalkKey is one conversation under one profile, whose environment says where to look.
type TalkKey struct {
	AgentKey
	NativeID string // normalized
}

// Talk is what is known of a conversation now.
type Talk struct {
	Presence owner.Presence
	Detail   string
	Live     owner.Live
}

// want is one record of the archive with the key under which its facts are looked up.
type want struct {
	key    AgentKey
	record metadata.AgentSession // its plugin id after --owner
}

// wanted returns what the facts of a pane's record are kept under.
func wanted(src Source, o Options, p *archive.Pane) want {
	rec := *p.AgentSession
	if to, ok := o.Owners[rec.PluginID]; ok {
		rec.PluginID = to
	}
	profile := DefaultProfile
	// An imported archive does not choose which of the user's own arguments are used.
	if src.Own && p.Agent != nil && p.Agent.Profile != "" {
		profile = p.Agent.Profile
	}
	return want{AgentKey{rec.IntegrationID, rec.PluginID, profile}, rec}
}

// launchDir is where a pane's agent was launched, as archived.
func launchDir(s *archive.Session, p *archive.Pane) string {
	if p.Agent != nil && p.Agent.LaunchCwd != "" {
		return p.Agent.LaunchCwd
	}
	return cmp.Or(p.Cwd, s.Cwd)
}

// shellDir is where a pane's shell was, as archived.
func shellDir(s *archive.Session, p *archive.Pane) string { return cmp.Or(p.Cwd, s.Cwd) }

// normal returns the id as the CLI keeps it, or as it is where it is none.
func normal(t *integrations.Template, id string) string {
	if t != nil {
		if n, err := t.NormalizeID(id); err == nil {
			return n
		}
	}
	return id
}

// Gather collects what Make must know: view, resolutions, probes, liveness, directories. It
// changes nothing, and asks each distinct thing once. An unknown name in Only is an
// *UnknownSessionError.
func Gather(ctx context.Context, e Env, src Source, o Options) (*Facts, error) {
	sessions, err := selected(src.Archive, o)
	if err != nil {
		return nil, err
	}
	f := &Facts{Names: map[string]string{}}
	if err := f.see(ctx, e); err != nil {
		return nil, err
	}
	for _, s := range sessions {
		for _, name := range []string{s.Name, s.OwnName()} {
			f.Names[name] = holdable(name)
			if n, ok := e.Host.(host.Namer); ok {
				f.Names[name] = n.SessionName(f.Names[name])
			}
		}
	}
	return f, f.gather(ctx, e, src, o, sessions)
}

// see asks the host who it is, unless the caller did, and what it holds. What was no server is an
// empty view, and what was another life is not believed: that the host has moved on since is
// Apply's to find out.
func (f *Facts) see(ctx context.Context, e Env) (err error) {
	if e.Info != nil {
		f.Host = *e.Info
	} else if f.Host, err = e.Host.Info(ctx); err != nil {
		return fmt.Errorf("probe the host: %w", err)
	}
	if e.Info != nil && !f.Host.Running {
		f.View = &host.Workspace{}
		return nil
	}
	if f.View, err = view(ctx, e.Host); err != nil {
		return fmt.Errorf("read the workspace: %w", err)
	}
	if e.Info != nil && f.View.Instance != f.Host.Instance {
		e.Info = nil
		return f.see(ctx, e)
	}
	return nil
}

// view is a snapshot; of a host without a server, the empty one.
func view(ctx context.Context, h host.Host) (*host.Workspace, error) {
	const tries = 5
	for i := 1; ; i++ {
		w, err := h.Snapshot(ctx)
		switch {
		case err == nil && w != nil:
			return w, nil
		case err == nil, errors.Is(err, host.ErrNoServer):
			return &host.Workspace{}, nil
		case errors.Is(err, host.ErrChanged) && i < tries:
		default:
			return nil, err
		}
	}
}

func (f *Facts) gather(ctx context.Context, e Env, src Source, o Options, sessions []*archive.Session) error {
	f.Now, f.Machine = e.Now(), e.Machine
	f.Home, _ = e.Getenv("HOME")
	f.Path, _ = e.Getenv("PATH")
	f.Boot, _ = proc.BootID()
	if e.Config != nil {
		f.BootMode, f.Old = e.Config.Restore.BootMode, time.Duration(e.Config.Restore.OldDays)*24*time.Hour
	}
	f.Agents, f.Talks, f.Dirs = map[AgentKey]Agent{}, map[TalkKey]Talk{}, map[string]Dir{}

	base := e.paneEnv(ctx, f.Host)
	envs := map[AgentKey]integrations.Env{}
	var talks []TalkKey
	f.programs(e, sessions)
	f.idle(e, sessions)
	f.husks(e, o, sessions)
	f.dir(f.Home)
	for _, s := range sessions {
		f.dir(s.Cwd)
		for i := range s.Windows {
			for j := range s.Windows[i].Panes {
				p := &s.Windows[i].Panes[j]
				f.dir(shellDir(s, p))
				if p.AgentSession == nil {
					continue
				}
				f.dir(launchDir(s, p))
				w := wanted(src, o, p)
				a, known := f.Agents[w.key]
				if !known {
					a = resolve(e, w.key, f.Path)
					envs[w.key] = e.finish(&a, base)
					f.Agents[w.key] = a
				}
				if a.Err != nil || a.Owner.Template.CheckID(w.record.NativeID) != nil {
					continue
				}
				k := TalkKey{w.key, normal(a.Owner.Template, w.record.NativeID)}
				if _, known := f.Talks[k]; !known {
					f.Talks[k] = Talk{}
					talks = append(talks, k)
				}
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}

	seer, err := owner.NewObserver()
	if err != nil && len(talks) > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("whether a conversation is open already is known by claims only: %v", err))
	}
	found := make([]Talk, len(talks))
	ask := func(i int) {
		k := talks[i]
		t := f.Agents[k.AgentKey].Owner.Template
		found[i].Presence, found[i].Detail = owner.Probe(t, k.NativeID, envs[k.AgentKey])
		if seer != nil {
			found[i].Live = seer.Find(e.Claims, t, k.identity(), envs[k.AgentKey])
		}
	}
	each(len(talks), ask)
	var dying, pids []int
	for i, k := range talks {
		if f.dying(k, found[i].Live) {
			dying, pids = append(dying, i), append(pids, found[i].Live.Process.PID)
		}
	}
	if len(dying) > 0 && e.Watch != nil {
		if err := e.Watch(ctx, pids, dyingTime); err != nil {
			return err
		}
		if seer, err = owner.NewObserver(); err != nil {
			return fmt.Errorf("look for what runs: %w", err)
		}
		each(len(dying), func(n int) { ask(dying[n]) })
	}
	for i, k := range talks {
		f.Talks[k] = found[i]
	}
	return ctx.Err()
}

// dying reports an owner that has lost its terminal, or whose server is gone, and whose template
// says that it does not outlive that: it is most likely on its way out, as after the server was
// killed a moment ago, and is worth a short wait before it is called a survivor.
func (f *Facts) dying(k TalkKey, l owner.Live) bool {
	if f.Agents[k.AgentKey].Owner.Template.Launch.SurvivesHangup {
		return false
	}
	return l.Kind == owner.Orphan || l.Kind == owner.Claimed && l.Place.Host == f.Host.Server && !f.Host.Running
}

func (k TalkKey) identity() metadata.Identity {
	return metadata.Identity{IntegrationID: k.IntegrationID, NativeID: k.NativeID}
}

// each calls do for 0…n-1, some at once: what it does waits for disks.
func each(n int, do func(int)) {
	const workers = 8
	var wg sync.WaitGroup
	for w := range min(workers, n) {
		wg.Go(func() {
			for i := w; i < n; i += workers {
				do(i)
			}
		})
	}
	wg.Wait()
}

// paneEnv is what the host's next pane would find in its environment before ours is laid over.
func (e Env) paneEnv(ctx context.Context, info host.Info) integrations.Env {
	h, ok := e.Host.(host.Environer)
	if !ok || !info.Running {
		return e.Getenv
	}
	pairs, err := h.Environ(ctx)
	if err != nil {
		return e.Getenv
	}
	m := make(map[string]string, len(pairs))
	for _, p := range pairs {
		if k, v, ok := strings.Cut(p, "="); ok {
			m[k] = v
		}
	}
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

// resolve asks the registry, the configuration and the PATH about one agent.
func resolve(e Env, k AgentKey, path string) Agent {
	var a Agent
	var err error
	if a.Owner, err = e.Registry.ResolveOwned(k.IntegrationID, k.PluginID); err != nil {
		if !errors.As(err, &a.Err) {
			a.Err = &plugin.ResolveError{Reason: plugin.Invalid, Integration: k.IntegrationID, Detail: err.Error(), Err: err}
		}
		return a
	}
	a.Profile, a.HasProfile = integrations.Profile{Name: DefaultProfile}, k.Profile == DefaultProfile
	if e.Config != nil {
		a.Profile, a.HasProfile = e.Config.Profile(k.Profile, k.IntegrationID)
		a.Mode = e.Config.ModeOf(k.Profile, k.IntegrationID)
	}
	cmd, err := a.build(integrations.Plain, "")
	if err != nil {
		a.BuildErr = err
		bare := a
		bare.Profile = integrations.Profile{}
		_, err = bare.build(integrations.Plain, "")
		a.ProfileBad = err == nil
		return a
	}
	if own, ok := cmd.Set["PATH"]; ok {
		path = own
	}
	a.Program, a.ProgramErr = plugin.LookProgram(cmd.Argv[0], path)
	return a
}

// finish adds what depends on the environment of the agent's pane, and returns that.
func (e Env) finish(a *Agent, base integrations.Env) integrations.Env {
	if a.Err != nil {
		return base
	}
	env := base
	if cmd, err := a.build(integrations.Plain, ""); err == nil {
		env = overlay(base, cmd)
	}
	a.Store = owner.Store(a.Owner.Template, env)
	a.Hooked = e.Hooked != nil && e.Hooked(a.Owner.Template)
	for _, r := range a.Owner.Template.Require {
		if r.At == "launch" {
			continue
		}
		if detail, ok := r.Holds(env); !ok {
			a.Unmet = append(a.Unmet, Unmet{r, detail})
		}
	}
	return env
}

// overlay is base with a command's environment laid over it, as its pane will see it.
func overlay(base integrations.Env, cmd integrations.Command) integrations.Env {
	set, unset := maps.Clone(cmd.Set), slices.Clone(cmd.Unset)
	return func(name string) (string, bool) {
		if v, ok := set[name]; ok {
			return v, true
		}
		if slices.Contains(unset, name) {
			return "", false
		}
		return base(name)
	}
}

// build is the one way from an agent and an id to a command.
func (a Agent) build(op integrations.Op, id string) (integrations.Command, error) {
	cmd, err := a.Owner.Template.Build(integrations.Request{
		Op: op, ID: id, Profile: a.Profile, PluginRoot: a.Owner.Root,
	})
	if err == nil && len(cmd.Argv) == 0 {
		err = errors.New("the command is empty")
	}
	return cmd, err
}
