// Package plugin finds the installed packages, decides which of them are trusted and enabled
// now, and resolves an integration id to exactly one owner, or to a typed refusal.
package plugin

import (
	"fmt"
	"io/fs"
	"sync"

	"github.com/phux-agent/phux-agent/integrations"
	"github.com/phux-agent/phux-agent/internal/trust"
)

// FirstParty is the id of the package that is embedded in the binary.
const FirstParty = "phux.agents"

// Where a package came from: Plugin.Origin.
const (
	Embedded = "embedded" // the binary
	Data     = "data"     // $XDG_DATA_HOME/phux-agent/plugins
	Added    = "added"    // the configuration, or `plugin add`
)

// Plugin is one package as found.
type Plugin struct {
	ID, Name, Version string
	Root              string // absolute, without links; the directory that ${PHUX_PLUGIN_ROOT} expands to
	Origin            string // Embedded | Data | Added
	Enabled           bool
	Err               error    // invalid or untrusted; nil otherwise
	Warnings          []string // of the manifest
	Integrations      []Integration
}

// Integration is one template of a package.
type Integration struct {
	ID, File string // a template that does not parse has its file's name for an id
	PluginID string
	Enabled  bool
	Template *integrations.Template // nil where Err is set
	Warnings []integrations.Warning
	Err      error
}

// Owner is the answer of Resolve: who owns the integration now.
type Owner struct {
	PluginID string
	Root     string
	Template *integrations.Template
	// Unverified says that the template is embedded, was run on no version of its agent, and that
	// the user has not allowed it all the same. See Restorable.
	Unverified bool
}

// Reason says why an integration does not resolve. The values are the verdicts of a plan.
type Reason string

const (
	Missing      Reason = "integration-missing"
	Disabled     Reason = "integration-disabled"
	Ambiguous    Reason = "integration-ambiguous"
	Invalid      Reason = "integration-invalid"
	Untrusted    Reason = "untrusted"
	OwnerChanged Reason = "owner-changed"
)

// ResolveError is the typed refusal of Resolve.
type ResolveError struct {
	Reason      Reason
	Integration string
	Detail      string // names plugin, path and mode where that matters
	Plugin      string // the package that refuses: disabled, invalid, untrusted; empty otherwise
	Off         bool   // of Disabled: the package is on, and the integration alone is off
	Near        string // of Missing: an id that the user may have meant; empty where none is near
	Owner       string // of OwnerChanged: the owner now
	Err         error
}

func (e *ResolveError) Error() string {
	if e.Detail == "" {
		return fmt.Sprintf("resolve integration %q: %s", e.Integration, e.Reason)
	}
	return fmt.Sprintf("resolve integration %q: %s: %s", e.Integration, e.Reason, e.Detail)
}

func (e *ResolveError) Unwrap() error { return e.Err }

// TrustError says which component of a path somebody else could change: Plugin.Err and
// Integration.Err hold one, wrapped, where a package is not trusted.
type TrustError = trust.Error

// Source says where packages may come from. Never from the current project.
type Source struct {
	DataDir string   // $XDG_DATA_HOME/phux-agent; plugins/* below it, and the materialised first-party package
	Added   []string // directories of [[plugins]] and of `plugin add`, absolute
	Off     Off
	// Unverified names the integrations of the first-party package that the user lets a restore
	// resume although they were run on no version.
	Unverified []string
	Builtin    fs.FS // the first-party package; nil means the one in this binary
}

// Off names what the user switched off.
type Off struct {
	Plugins      []string
	Integrations []string
}

// Registry is the set of packages as it was at Load. It may be used concurrently.
type Registry struct {
	plugins []Plugin
	allowed []string // Source.Unverified

	mu    sync.Mutex
	later map[string]func(*Integration) // by File: templates that are parsed when somebody asks
}

// Plugins lists the packages, sorted by id, then root.
func (r *Registry) Plugins() []Plugin {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.plugins {
		for j := range r.plugins[i].Integrations {
			r.settle(&r.plugins[i].Integrations[j])
		}
	}
	return r.plugins
}

// settle parses a template that was put off. The caller holds the lock.
func (r *Registry) settle(in *Integration) {
	if parse, ok := r.later[in.File]; ok {
		delete(r.later, in.File)
		parse(in)
	}
}

// CheckTrust walks every component of an absolute path up to / and reports the first that
// someone else could change, naming path, owner and mode, as a *TrustError. Links are followed,
// and what they lead to is judged as well.
func CheckTrust(path string) error {
	var c trust.Checker
	_, err := c.Check(path)
	return err
}
