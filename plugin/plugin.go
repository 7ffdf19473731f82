// Package plugin finds the installed packages, decides which of them are trusted and enabled
// now, and resolves an integration id to exactly one owner, or to a typed refusal.
package plugin

import (
	"errors"
	"fmt"

	"github.com/phux-agent/phux-agent/integrations"
)

var errNotBuilt = errors.New("not built yet")

// FirstParty is the id of the package that is embedded in the binary.
const FirstParty = "phux.agents"

// Plugin is one package as found.
type Plugin struct {
	ID, Name, Version string
	Root              string // absolute, the directory that ${PHUX_PLUGIN_ROOT} expands to
	Origin            string // "embedded" | "data" | "added"
	Enabled           bool
	Err               error // invalid or untrusted; nil otherwise
	Integrations      []Integration
}

// Integration is one template of a package.
type Integration struct {
	ID, File string
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
	Err         error
}

func (e *ResolveError) Error() string {
	if e.Detail == "" {
		return fmt.Sprintf("resolve integration %q: %s", e.Integration, e.Reason)
	}
	return fmt.Sprintf("resolve integration %q: %s: %s", e.Integration, e.Reason, e.Detail)
}

func (e *ResolveError) Unwrap() error { return e.Err }

// Source says where packages may come from. Never from the current project.
type Source struct {
	DataDir string   // $XDG_DATA_HOME/phux-agent; plugins/* below it, and the materialised first-party package
	Added   []string // directories of [[plugins]] and of `plugin add`
	Off     Off
}

// Off names what the user switched off.
type Off struct {
	Plugins      []string
	Integrations []string
}

// Registry is the set of packages as it is now.
type Registry struct{ plugins []Plugin }

// Load reads every package of the source. A broken package does not stop the others: it is
// listed with its error.
func Load(src Source) (*Registry, error) { return nil, errNotBuilt }

// Plugins lists the packages, sorted by id, then root.
func (r *Registry) Plugins() []Plugin { return r.plugins }

// Resolve returns the one enabled, trusted owner of an integration. The error is a *ResolveError.
func (r *Registry) Resolve(integrationID string) (Owner, error) { return Owner{}, errNotBuilt }

// ResolveOwned is Resolve with an archived owner: another owner now is OwnerChanged.
func (r *Registry) ResolveOwned(integrationID, pluginID string) (Owner, error) {
	return Owner{}, errNotBuilt
}

// LookProgram resolves argv[0] once, absolute, by a PATH whose relative and empty entries are
// skipped. The error names the PATH used.
func LookProgram(name, path string) (string, error) { return "", errNotBuilt }

// CheckTrust walks every component of an absolute path up to / and reports the first that
// someone else could change, naming path, owner and mode.
func CheckTrust(path string) error { return errNotBuilt }
