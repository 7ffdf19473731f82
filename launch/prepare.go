package launch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/phux-agent/phux-agent/config"
	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
	"github.com/phux-agent/phux-agent/plugin"
)

// Prepare resolves, checks every refusal, mints or takes the identity, and builds the start.
// Nothing outside this process changes, except that mint_command runs (once, in Dir, at most
// 20 s, at most 64 KiB of output; not where the request is Dry).
//
// Refusals are typed: *plugin.ResolveError, *DirError, *ProfileError, *ProgramError,
// *RequirementError, *NotRestorableError, *IDError, *ExistsError, *AbsentError, *MintError,
// *owner.LiveError, and what integrations says of a forbidden option.
func Prepare(ctx context.Context, e Env, r Request) (*Draft, error) {
	if err := metadata.CheckID("integration", r.Integration); err != nil {
		return nil, fmt.Errorf("launch: %w", err)
	}
	own, err := e.Registry.Resolve(r.Integration)
	if err != nil {
		return nil, fmt.Errorf("launch %q: %w", r.Integration, err)
	}
	t := own.Template
	if err := checkDir(r.Dir); err != nil {
		return nil, err
	}
	profile, err := e.profile(r.Profile, t.ID)
	if err != nil {
		return nil, err
	}

	d := &Draft{Owner: own, Action: Created, NotPreserved: slices.Clone(r.Extra), expect: owner.CannotTell}
	p := &preparation{e: e, r: r, d: d, t: t, profile: profile}

	// Everything that can be refused without an identity comes first: a mint_command may make
	// something in the agent's store that nobody would use.
	plain, err := p.build(integrations.Plain, "")
	if err != nil {
		return nil, err
	}
	p.env = newEnvironment(e.getenv, plain)
	p.env.pin("PATH")
	p.undeclared(ctx, p.env.pinRoot(t))
	if err := p.requirements(); err != nil {
		return nil, err
	}
	path, _ := p.env.get("PATH")
	program, err := plugin.LookProgram(plain.Argv[0], path)
	if err != nil {
		return nil, &ProgramError{Program: plain.Argv[0], Path: path, Err: err}
	}

	op, id, err := p.identity(ctx)
	if err != nil {
		return nil, err
	}
	cmd, err := p.build(op, id)
	if err != nil {
		return nil, err
	}
	for name, value := range cmd.Set {
		p.env.set[name] = value
	}

	if id != "" {
		rec := metadata.AgentSession{PluginID: own.PluginID, IntegrationID: t.ID, NativeID: id}
		if err := rec.Validate(); err != nil {
			return nil, &IDError{Integration: t.ID, ID: id, Err: err}
		}
		d.Record = &rec
	}
	d.Restorable, d.Reason = restorable(own, d.Record)
	d.Facts = metadata.LaunchFacts{
		PaneKey:       metadata.NewPaneKey(),
		PluginID:      own.PluginID,
		IntegrationID: t.ID,
		Profile:       r.Profile,
		LaunchDir:     r.Dir,
		Store:         owner.Store(t, p.env.get),
		NotPreserved:  d.NotPreserved,
	}
	d.Start = host.Start{
		Mode:      host.Program,
		Argv:      append([]string{program}, cmd.Argv[1:]...),
		Dir:       workingDir(own, r.Dir),
		AfterExit: t.Launch.AfterExit,
	}
	d.Start.Set, d.Start.Unset = p.env.lists()
	if err := d.Start.Check(); err != nil {
		return nil, fmt.Errorf("launch %q: %w", t.ID, err)
	}
	return d, nil
}

type preparation struct {
	e       Env
	r       Request
	d       *Draft
	t       *integrations.Template
	profile integrations.Profile
	env     *environment
}

func (p *preparation) build(op integrations.Op, id string) (integrations.Command, error) {
	cmd, err := p.t.Build(integrations.Request{
		Op: op, ID: id, Profile: p.profile, Extra: p.r.Extra, PluginRoot: p.d.Owner.Root,
	})
	if err == nil && len(cmd.Argv) == 0 {
		err = errors.New("the template has no launch command")
	}
	if err != nil {
		return integrations.Command{}, fmt.Errorf("launch %q: %w", p.t.ID, err)
	}
	return cmd, nil
}

func (p *preparation) note(format string, args ...any) {
	p.d.Notes = append(p.d.Notes, fmt.Sprintf(format, args...))
}

// undeclared says which variables this pane gets from the caller alone: neither a profile nor the
// host's own environment will have them at a restore. Names only; values may be secrets.
func (p *preparation) undeclared(ctx context.Context, names []string) {
	host, ok := p.e.Host.(host.Environer)
	if !ok || len(names) == 0 {
		return
	}
	environ, err := host.Environ(ctx)
	if err != nil {
		return // no server yet: it starts with the caller's environment
	}
	for _, name := range names {
		if !slices.Contains(environ, name+"="+p.env.set[name]) {
			p.d.NotPreserved = append(p.d.NotPreserved, name)
			p.note("%s comes from your environment; a restore has it only from a profile", name)
		}
	}
}

func (p *preparation) requirements() error {
	for _, q := range p.t.Require {
		detail, ok := q.Holds(p.env.get)
		if ok {
			continue
		}
		unmet := &RequirementError{Integration: p.t.ID, Require: q, Detail: detail}
		if q.At == "launch" {
			return unmet
		}
		p.note("a restore will ask for more: %v", unmet)
	}
	return nil
}

func (e Env) profile(name, integration string) (integrations.Profile, error) {
	c := e.Config
	if c == nil {
		c = &config.Config{}
	}
	profile, ok := c.Profile(name, integration)
	if !ok {
		return profile, &ProfileError{Profile: name, Integration: integration}
	}
	return profile, nil
}

// restorable says whether a pane with this record comes back, and if not, how it becomes so.
func restorable(own plugin.Owner, rec *metadata.AgentSession) (bool, string) {
	t := own.Template
	var unverified *plugin.UnverifiedError
	switch err := own.Restorable(); {
	case errors.As(err, &unverified):
		return false, fmt.Sprintf("%v; a restore refuses it until there is %s", err, unverified.Allow())
	case err != nil:
		return false, fmt.Sprintf("%s has no way to resume a conversation: %v", t.ID, err)
	}
	if rec != nil {
		return true, ""
	}
	var hook bool
	for _, o := range t.Observe {
		if o.Kind != "hook" {
			return false, fmt.Sprintf("%s chooses its own id; the pane becomes restorable at the next save or ps that sees which conversation its process has open", t.ID)
		}
		hook = true
	}
	if hook {
		return false, fmt.Sprintf("%s chooses its own id; the pane becomes restorable when a hook reports it, or by launch %s --resume ID", t.ID, t.ID)
	}
	return false, fmt.Sprintf("%s chooses its own id and nothing proves which; launch %s --resume ID starts a restorable pane", t.ID, t.ID)
}

func workingDir(own plugin.Owner, dir string) string {
	if own.Template.Launch.WorkingDirectory == "plugin-root" {
		return own.Root
	}
	return dir
}

func checkDir(dir string) error {
	if !filepath.IsAbs(dir) {
		return &DirError{Dir: dir, Verdict: "cwd-missing", Err: errors.New("it is not an absolute path")}
	}
	if !utf8.ValidString(dir) {
		return &DirError{Dir: dir, Verdict: "cwd-unreadable", Err: errors.New("its name is not UTF-8, and neither records nor archives can hold it")}
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return &DirError{Dir: dir, Verdict: "cwd-unreadable", Err: err}
	case err != nil:
		return &DirError{Dir: dir, Verdict: "cwd-missing", Err: err}
	case !info.IsDir():
		return &DirError{Dir: dir, Verdict: "cwd-missing", Err: syscall.ENOTDIR}
	}
	if err := unix.Access(dir, unix.R_OK|unix.X_OK); err != nil {
		return &DirError{Dir: dir, Verdict: "cwd-unreadable", Err: err}
	}
	return nil
}
