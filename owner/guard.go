package owner

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/go-json-experiment/json"

	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/metadata"
)

// Guard is what a starting pane must prove and claim just before it becomes the agent. It is
// carried in host.Start.Guard.
type Guard struct {
	Identity metadata.Identity `json:"identity"`
	Ticket   string            `json:"ticket,omitzero"`
	Place    Place             `json:"place,omitzero"`
	Claims   string            `json:"claims"` // directory
	// Expect is what the plan's probe said; the gate probes again and refuses if it flipped.
	Expect Presence `json:"expect,omitzero"`
	Root   string   `json:"root,omitzero"` // the template's transcript declaration, expanded later in the pane's environment
	Paths  []string `json:"paths,omitempty"`
	HeadID string   `json:"head_id,omitzero"`
	Has    string   `json:"has,omitzero"`
	// Program is the agent's program name, for the claim.
	Program string `json:"program,omitzero"`
}

// Bounds of a guard.
const (
	MaxGuard      = 64 << 10 // bytes, encoded
	maxGuardPaths = 64
)

// NewGuard builds the guard for a template and an id.
func NewGuard(t *integrations.Template, id metadata.Identity, ticket string, place Place, c Claims, expect Presence) Guard {
	g := Guard{Identity: id, Ticket: ticket, Place: place, Claims: c.Dir, Expect: expect, Program: programOf(t)}
	if t != nil && t.Transcript != nil {
		g.Root, g.Paths = t.Transcript.Root, t.Transcript.Paths
		g.HeadID, g.Has = t.Transcript.HeadID, t.Transcript.Contains
	}
	return g
}

// Encode carries a guard through a payload; DecodeGuard accepts exactly what it writes.
func (g Guard) Encode() ([]byte, error) {
	if err := g.check(); err != nil {
		return nil, fmt.Errorf("encode the guard: %w", err)
	}
	b, err := json.Marshal(g)
	if err != nil {
		return nil, fmt.Errorf("encode the guard: %w", err)
	}
	if len(b) > MaxGuard {
		return nil, fmt.Errorf("encode the guard: longer than %d bytes", MaxGuard)
	}
	return b, nil
}

// DecodeGuard refuses unknown, repeated and differently cased members, and what breaks a bound.
func DecodeGuard(b []byte) (Guard, error) {
	var g Guard
	if len(b) > MaxGuard {
		return Guard{}, fmt.Errorf("decode the guard: longer than %d bytes", MaxGuard)
	}
	if err := json.Unmarshal(b, &g, json.RejectUnknownMembers(true)); err != nil {
		return Guard{}, fmt.Errorf("decode the guard: %w", err)
	}
	if err := g.check(); err != nil {
		return Guard{}, fmt.Errorf("decode the guard: %w", err)
	}
	return g, nil
}

func (g Guard) check() error {
	if err := metadata.CheckID("integration_id", g.Identity.IntegrationID); err != nil {
		return err
	}
	if err := metadata.CheckNativeID("native_id", g.Identity.NativeID); err != nil {
		return err
	}
	switch {
	case !filepath.IsAbs(g.Claims):
		return fmt.Errorf("the directory of claims %q is not an absolute path", g.Claims)
	case len(g.Paths) > maxGuardPaths:
		return fmt.Errorf("more than %d paths", maxGuardPaths)
	case len(g.Paths) == 0 && (g.Root != "" || g.HeadID != "" || g.Has != ""):
		return errors.New("a transcript without paths")
	}
	switch g.Expect {
	case "", Present, Absent, Begun, CannotTell:
		return nil
	}
	return fmt.Errorf("it expects %q", g.Expect)
}

// Pass proves and claims, in the process that is about to exec the agent. env is the environment
// that the agent will have.
//
// A *FlippedError where the conversation came or went since the plan; what cannot be told is no
// flip, on either side. A *LiveError or ErrTicket where the identity is another's; then this
// process has claimed nothing.
func (g Guard) Pass(env integrations.Env) error {
	if len(g.Paths) > 0 && g.Expect != "" && g.Expect != CannotTell {
		tr := &integrations.Transcript{Root: g.Root, Paths: g.Paths, HeadID: g.HeadID, Contains: g.Has}
		now, detail := probe(tr, g.Identity.NativeID, env)
		// A stub that went away since is no flip: what is started afresh finds less than was expected.
		if now != CannotTell && now != g.Expect && !(g.Expect == Begun && now == Absent) {
			return fmt.Errorf("start %q: %w", g.Identity, &FlippedError{Expect: g.Expect, Now: now, Detail: detail})
		}
	}
	_, err := Claims{Dir: g.Claims}.take(g.Identity, g.Ticket, g.Place, g.Program)
	return err
}
