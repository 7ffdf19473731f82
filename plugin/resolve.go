package plugin

import (
	"errors"
	"fmt"
	"strings"
)

// candidate is a template that answers to an id, with its package.
type candidate struct {
	p  *Plugin
	in *Integration
}

func (c candidate) String() string { return fmt.Sprintf("%s (%s)", c.p.ID, c.in.File) }

func (c candidate) err() error {
	if c.p.Err != nil {
		return c.p.Err
	}
	return c.in.Err
}

// Resolve returns the one enabled, trusted owner of an integration. The error is a *ResolveError.
//
// A broken or untrusted template does not contest a good one; two good ones are ambiguous,
// whichever was there first, and so are two packages of one id.
func (r *Registry) Resolve(integrationID string) (Owner, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var good, off, bad, distrusted []candidate
	for i := range r.plugins {
		p := &r.plugins[i]
		for j := range p.Integrations {
			c := candidate{p, &p.Integrations[j]}
			if c.in.ID != integrationID {
				continue
			}
			r.settle(c.in)
			var te *TrustError
			switch err := c.err(); {
			case !c.in.Enabled:
				off = append(off, c)
			case errors.As(err, &te):
				distrusted = append(distrusted, c)
			case err != nil:
				bad = append(bad, c)
			default:
				good = append(good, c)
			}
		}
	}
	refuse := func(reason Reason, c candidate, detail string) (Owner, error) {
		e := &ResolveError{Reason: reason, Integration: integrationID, Detail: detail}
		if c.p != nil {
			e.Plugin, e.Err, e.Off = c.p.ID, c.err(), reason == Disabled && c.p.Enabled
		}
		return Owner{}, e
	}
	switch {
	case len(good) > 1:
		names := make([]string, len(good))
		for i, c := range good {
			names[i] = c.String()
		}
		return refuse(Ambiguous, candidate{}, "it is in "+strings.Join(names, " and in "))
	case len(good) == 1:
		c := good[0]
		for i := range r.plugins {
			if p := &r.plugins[i]; p != c.p && p.ID == c.p.ID && p.Enabled && p.Err == nil {
				return refuse(Ambiguous, candidate{}, fmt.Sprintf("two plugins are called %s: %s and %s", p.ID, c.p.Root, p.Root))
			}
		}
		return Owner{PluginID: c.p.ID, Root: c.p.Root, Template: c.in.Template, Unverified: r.unverified(c)}, nil
	case len(distrusted) > 0:
		return refuse(Untrusted, distrusted[0], distrusted[0].err().Error())
	case len(bad) > 0:
		return refuse(Invalid, bad[0], bad[0].err().Error())
	case len(off) > 0:
		c := off[0]
		if c.p.Enabled {
			return refuse(Disabled, c, "the integration is disabled")
		}
		return refuse(Disabled, c, fmt.Sprintf("plugin %s is disabled", c.p.ID))
	}
	e := &ResolveError{Reason: Missing, Integration: integrationID, Detail: "no plugin has it", Near: r.near(integrationID)}
	return Owner{}, e
}

// ResolveOwned is Resolve with an archived owner: another owner now is OwnerChanged.
func (r *Registry) ResolveOwned(integrationID, pluginID string) (Owner, error) {
	o, err := r.Resolve(integrationID)
	if err != nil {
		return Owner{}, err
	}
	if o.PluginID != pluginID {
		return Owner{}, &ResolveError{
			Reason: OwnerChanged, Integration: integrationID, Owner: o.PluginID,
			Detail: fmt.Sprintf("it belonged to plugin %s and now belongs to %s (%s)", pluginID, o.PluginID, o.Root),
		}
	}
	return o, nil
}

// near returns an enabled id of which the given one is a part, or the other way round.
func (r *Registry) near(id string) string {
	if id == "" {
		return ""
	}
	for _, p := range r.plugins {
		for _, in := range p.Integrations {
			if in.Enabled && in.Err == nil && (strings.Contains(in.ID, id) || strings.Contains(id, in.ID)) {
				return in.ID
			}
		}
	}
	return ""
}
