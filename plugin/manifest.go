package plugin

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

// The names of a package's parts, and their bounds.
const (
	ManifestFile    = "phux-plugin.toml"
	integrationsDir = "integrations"
	maxFile         = 1 << 20 // bytes of a manifest or a template
	maxTemplates    = 256     // of one package
	maxID           = 120     // bytes of a plugin id
)

// Manifest is what we read of phux-plugin.toml. phux's other keys are accepted and are not for us.
type Manifest struct {
	ID        string   `toml:"id"`
	Name      string   `toml:"name"`
	Version   string   `toml:"version"`
	Platforms []string `toml:"platforms"`
}

// manifestKeys are the top-level keys of phux (facts: PLUG, v0.22).
var manifestKeys = []string{
	"id", "name", "version", "min_phux_version", "description", "platforms", "build", "agents",
	"actions", "events", "panes", "links", "workspaces", "widgets",
}

func isPluginID(s string) bool {
	return s != "" && len(s) <= maxID && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("_:.-", r)
	}) < 0
}

// ParseManifest reads phux-plugin.toml. file names it in errors, which carry a line where there
// is one. id, name and version are required; keys that phux does not know are warnings.
func ParseManifest(file string, data []byte) (Manifest, []string, error) {
	fail := func(format string, args ...any) (Manifest, []string, error) {
		return Manifest{}, nil, fmt.Errorf("%s: "+format, append([]any{file}, args...)...)
	}
	if len(data) > maxFile {
		return fail("over %d bytes", maxFile)
	}
	if !utf8.Valid(data) {
		return fail("the file is not UTF-8")
	}
	// By map first, because decoding into a struct takes "ID" for "id", and because phux's own
	// keys must not fail here over a type that is no concern of ours.
	var raw map[string]any
	md, err := toml.Decode(string(data), &raw)
	if err != nil {
		var pe toml.ParseError
		if errors.As(err, &pe) {
			return fail("line %d, column %d: %s", pe.Position.Line, pe.Position.Col, pe.Message)
		}
		return fail("%w", err)
	}
	var m Manifest
	for _, f := range []struct {
		key string
		to  *string
	}{{"id", &m.ID}, {"name", &m.Name}, {"version", &m.Version}} {
		switch v := raw[f.key].(type) {
		case nil:
			return fail("%s is missing; write %s = \"…\"", f.key, f.key)
		case string:
			if *f.to = strings.TrimSpace(v); *f.to == "" {
				return fail("%s is empty; write %s = \"…\"", f.key, f.key)
			}
		default:
			return fail("%s must be a string", f.key)
		}
	}
	if !isPluginID(m.ID) {
		return fail("id %q: write at most %d of the characters A-Z a-z 0-9 _ : . -", m.ID, maxID)
	}
	var warnings []string
	for _, k := range md.Keys() {
		if len(k) == 1 && !slices.Contains(manifestKeys, k[0]) {
			warnings = append(warnings, fmt.Sprintf("unknown key %q", k[0]))
		}
	}
	if list, ok := raw["platforms"].([]any); ok {
		for _, p := range list {
			if s, ok := p.(string); ok {
				m.Platforms = append(m.Platforms, s)
			}
		}
		here := map[string]string{"darwin": "macos"}[runtime.GOOS]
		if here == "" {
			here = runtime.GOOS
		}
		if len(m.Platforms) > 0 && !slices.Contains(m.Platforms, here) {
			warnings = append(warnings, fmt.Sprintf("platforms does not name %q", here))
		}
	}
	return m, slices.Compact(warnings), nil
}
