package integrations

import (
	"slices"
	"sort"
	"strings"

	"github.com/phux-agent/phux-agent/internal/nearest"
)

// vocabulary is every key that a template may hold, ours and phux's, by table. A table that is
// nil holds names of the author's own.
var vocabulary = map[string][]string{
	"": {
		"schema_version", "id", "display_name", "kind",
		"cli", "launch", "session_identity", "transcript", "observe", "require", "hooks", "live", "agent_identity",
		// phux's, for its package tools; we read none of them.
		"description", "first_party", "capabilities", "detect", "link",
	},
	"cli":    {"version_args", "verified", "min_version"},
	"launch": {"command", "working_directory", "env", "scrub_env", "after_exit", "survives_hangup", "passthrough"},
	"session_identity": {
		"mode", "restore", "native_env", "id_pattern", "resume_args", "fresh_args", "fork_args", "mint_command",
		"fork_command", "resume_cwd", "never_prompted", "unknown_id", "never",
	},
	"transcript":     {"root", "paths", "head_id", "contains"},
	"observe":        {"kind", "path", "id", "pid", "start", "start_unit", "where", "on", "event"},
	"require":        {"file", "json", "equals", "default", "at", "consequence"},
	"hooks":          {"file", "format", "events", "into", "entry", "note"},
	"live":           {"on", "event", "where", "id", "state", "attention"},
	"agent_identity": {"name", "kind"},
	"detect":         {"mode", "command", "env"},
	"link":           {"mode", "default_session"},
	"launch.env":     nil,
	"observe.where":  nil,
	"live.where":     nil,
}

// unknown reports the keys of a table that nobody reads, with what may have been meant.
func (r *reader) unknown(path, name string, m map[string]any) {
	known, listed := vocabulary[name]
	if !listed || known == nil {
		return
	}
	for _, key := range sortedKeys(m) {
		if name == "" && strings.HasPrefix(key, "package_") || slices.Contains(known, key) {
			continue
		}
		text := "unknown key " + quote(key)
		if name != "" {
			text += " in [" + name + "]"
		}
		if near := nearest.Word(key, known); near != "" {
			text += "; did you mean " + near + "?"
		} else if home := homeOf(key, name); home != "" {
			text += "; it belongs in [" + home + "]"
		} else if home == "" && name != "" && slices.Contains(vocabulary[""], key) {
			text += "; it belongs at the top, before the first table"
		}
		r.warn(join(path, key), text)
	}
}

// homeOf finds the one other table that knows the key.
func homeOf(key, not string) string {
	var homes []string
	for table, keys := range vocabulary {
		if table != "" && table != not && slices.Contains(keys, key) {
			homes = append(homes, table)
		}
	}
	if len(homes) != 1 {
		return ""
	}
	return homes[0]
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
