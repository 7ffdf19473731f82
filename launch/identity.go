package launch

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
)

// identity decides which of the two operations this is, and on what id. An empty id is a launch
// without a record.
func (p *preparation) identity(ctx context.Context) (integrations.Op, string, error) {
	resume := p.r.Resume
	if resume == "" {
		resume = p.callerID()
	}
	switch {
	case resume != "":
		id, err := p.resume(resume)
		return integrations.Resume, id, err
	case p.t.Restorable() != nil:
		return integrations.Plain, "", nil
	case p.t.CanMint():
		id, err := p.fresh()
		return integrations.Fresh, id, err
	case len(p.t.Identity.MintCommand) > 0:
		if p.r.Dry {
			p.note("the identity would be minted by %q, and then resumed", p.t.Identity.MintCommand)
			return integrations.Plain, "", nil
		}
		id, err := p.minted(ctx)
		return integrations.Resume, id, err
	}
	return integrations.Plain, "", nil
}

// callerID is the value of native_env, which means --resume; unless it was inherited from a pane
// of ours, where it is that pane's identity and nobody's request.
func (p *preparation) callerID() string {
	name := p.t.Identity.NativeEnv
	if name == "" {
		return ""
	}
	id, _ := p.e.getenv(name)
	if id == "" {
		return ""
	}
	if _, inherited := p.e.getenv(host.BirthEnv); inherited {
		p.note("%s was inherited from an agent's pane and is ignored; --resume %s asks for it", name, id)
		return ""
	}
	p.note("%s is set: this resumes %s", name, id)
	return id
}

func (p *preparation) resume(raw string) (string, error) {
	if err := p.t.Restorable(); err != nil {
		return "", &NotRestorableError{Integration: p.t.ID, Err: err}
	}
	id, err := p.t.NormalizeID(raw)
	if err != nil {
		return "", &IDError{Integration: p.t.ID, ID: raw, Err: err}
	}
	p.d.Action = Resumed
	who := metadata.Identity{IntegrationID: p.t.ID, NativeID: id}
	live, err := p.e.liveness(p.t, who, p.env.get)
	if err != nil {
		p.note("who runs %s could only be asked of the claims: %v", who, err)
	}
	if live.Kind != owner.NotLive {
		return "", fmt.Errorf("resume %q: %w", who, &owner.LiveError{Identity: who, Live: live})
	}
	presence, detail := owner.Probe(p.t, id, p.env.get)
	switch {
	case presence.Missing():
		return "", &AbsentError{Identity: who, Detail: detail}
	case presence != owner.Present && p.t.Identity.UnknownID == "blank":
		return "", &AbsentError{Identity: who, Detail: detail, Doubt: true}
	}
	p.d.expect = presence
	return id, nil
}

func (p *preparation) fresh() (string, error) {
	mint := p.e.mint
	if mint == nil {
		mint = (*integrations.Template).Mint
	}
	id, err := mint(p.t)
	if err == nil {
		err = p.t.CheckID(id)
	}
	if err != nil {
		return "", fmt.Errorf("mint an identity for %q: %w", p.t.ID, err)
	}
	presence, detail := owner.Probe(p.t, id, p.env.get)
	if presence == owner.Present {
		return "", &ExistsError{Identity: metadata.Identity{IntegrationID: p.t.ID, NativeID: id}, Detail: detail}
	}
	p.d.expect = presence
	return id, nil
}

// minted runs the template's mint_command; the id that it prints is then resumed. What it printed
// may be any id of the store, so it is refused where it is live.
func (p *preparation) minted(ctx context.Context) (string, error) {
	argv := make([]string, len(p.t.Identity.MintCommand))
	for i, a := range p.t.Identity.MintCommand {
		argv[i] = strings.ReplaceAll(a, "${PHUX_PLUGIN_ROOT}", p.d.Owner.Root)
	}
	out, err := mintRun(ctx, argv, p.r.Dir, p.env, os.Environ())
	if err != nil {
		return "", err
	}
	id, err := p.t.NormalizeID(out)
	if err != nil {
		return "", &MintError{Program: argv[0], Err: fmt.Errorf("it printed %q: %w", clip(out, 200), err)}
	}
	who := metadata.Identity{IntegrationID: p.t.ID, NativeID: id}
	if live, err := p.e.liveness(p.t, who, p.env.get); err == nil && live.Kind != owner.NotLive {
		return "", fmt.Errorf("create %q: %w", who, &owner.LiveError{Identity: who, Live: live})
	}
	p.d.expect, _ = owner.Probe(p.t, id, p.env.get)
	return id, nil
}

func (e Env) liveness(t *integrations.Template, id metadata.Identity, env integrations.Env) (owner.Live, error) {
	if e.find != nil {
		return e.find(t, id, env)
	}
	o, err := owner.NewObserver()
	if err != nil {
		return owner.Live{}, err
	}
	return o.Find(e.Claims, t, id, env), nil
}
