package integrations

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"github.com/phux-agent/phux-agent/metadata"
)

//go:embed skeleton/phux-plugin.toml skeleton/integration.toml
var skeleton embed.FS

// FillIn marks what a skeleton leaves to its author. Lint reports each value that still has it.
const FillIn = "FILL-IN"

// Skeleton is a new plugin of one integration, by the slash-separated path of each file below the
// plugin's directory. It loads as it is, and Lint names what is to be filled in. The id must be one
// that can be typed and be a file's name: letters, digits, - _ . and no leading dot, at most 64
// bytes.
func Skeleton(id string) (map[string][]byte, error) {
	if err := metadata.CheckID("id", id); err != nil {
		return nil, fmt.Errorf("new integration: %w", err)
	}
	if !plainID(id) || strings.HasPrefix(id, ".") || strings.HasPrefix(id, "-") || len(id) > 64 {
		return nil, fmt.Errorf("new integration %s: an id has 1 to 64 letters, digits, - _ . and begins with a letter or digit", quote(id))
	}
	env := strings.Map(func(r rune) rune {
		if r == '-' || r == '.' {
			return '_'
		}
		return r
	}, strings.ToUpper(id))
	fill := strings.NewReplacer("{{ID}}", id, "{{ENV}}", "PHUX_"+env+"_SESSION_ID", "{{DIR}}", "DIR")
	files := map[string][]byte{}
	for from, to := range map[string]string{"phux-plugin.toml": "phux-plugin.toml", "integration.toml": "integrations/" + id + ".toml"} {
		b, err := fs.ReadFile(skeleton, "skeleton/"+from)
		if err != nil {
			return nil, fmt.Errorf("new integration: %w", err)
		}
		files[to] = []byte(fill.Replace(string(b)))
	}
	return files, nil
}

// unfilled reports the values of a skeleton that its author has not written yet.
func (r *reader) unfilled(path string, v any) {
	marked := func(s string) bool { return strings.Contains(strings.ReplaceAll(s, "_", "-"), FillIn) }
	switch v := v.(type) {
	case string:
		if marked(v) {
			r.warn(path, fmt.Sprintf("%s: %s is still to be filled in", path, quote(v)))
		}
	case []any:
		for i, e := range v {
			r.unfilled(elem(path, i), e)
		}
	case []map[string]any:
		for i, e := range v {
			r.unfilled(elem(path, i), e)
		}
	case map[string]any:
		for _, key := range sortedKeys(v) {
			r.unfilled(join(path, key), v[key])
		}
	}
}

// Unfilled reports whether a template is still the skeleton that Skeleton made, in part.
func Unfilled(ws []Warning) bool {
	for _, w := range ws {
		if strings.HasSuffix(w.Text, "is still to be filled in") {
			return true
		}
	}
	return false
}
