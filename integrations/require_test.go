package integrations

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRequireInCommentedSettings(t *testing.T) {
	dir := t.TempDir()
	q := Require{File: "~/s.json", JSON: "/general/enabled", Equals: false, Default: true}
	for text, want := range map[string]bool{
		"{\n  // off, as it should be\n  \"general\": {\"enabled\": false,},\n}\n": true,
		"{\"general\": {\"enabled\": true}} // not off":                            false,
		"{\"general\": {/* \"enabled\": false */}}":                                false,
		"{\"general\": {\"enabled\": false}":                                       false,
	} {
		if err := os.WriteFile(filepath.Join(dir, "s.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if detail, ok := q.Holds(env("HOME", dir)); ok != want {
			t.Errorf("%s: %v, %s", text, ok, detail)
		}
	}
}
