package integrations

import (
	"strings"
	"testing"
)

// A skeleton loads, says what is to be filled in, and is silent once that is done.
func TestSkeleton(t *testing.T) {
	for _, id := range []string{"my-agent", "a", "x.y_Z9"} {
		files, err := Skeleton(id)
		if err != nil || len(files) != 2 || !strings.Contains(string(files["phux-plugin.toml"]), `id = "my.`+id+`"`) {
			t.Fatalf("%v, %v", files, err)
		}
		file := "integrations/" + id + ".toml"
		src := string(files[file])
		tmpl, ws, err := Parse(file, []byte(src))
		if err != nil || len(ws) > 0 || tmpl.ID != id || tmpl.Restorable() != nil || !tmpl.CanMint() {
			t.Fatalf("%s: %v, %v", id, ws, err)
		}
		ws, err = Lint(file, []byte(src))
		if err != nil || !Unfilled(ws) {
			t.Fatalf("%v, %v", ws, err)
		}
		for _, w := range ws {
			if !strings.HasSuffix(w.Text, "is still to be filled in") || w.Line == 0 {
				t.Errorf("%s: %v", id, w)
			}
		}
		filled := strings.NewReplacer("--FILL-IN-", "--", "FILL_IN_HOME", "X_HOME", "FILL-IN", "1.0").Replace(src)
		if ws, err := Lint(file, []byte(filled)); err != nil || len(ws) > 0 {
			t.Errorf("filled in: %v, %v", ws, err)
		}
		// Each line that waits behind a # is right where the # is taken away.
		var lines []string
		for _, line := range strings.Split(filled, "\n") {
			if key, value, ok := strings.Cut(strings.TrimPrefix(line, "# "), " = "); ok && !strings.Contains(key, " ") && !strings.HasPrefix(key, "mint") && value != "" || line == "# [[observe]]" {
				line = strings.TrimPrefix(line, "# ")
			}
			lines = append(lines, line)
		}
		all := strings.Join(lines, "\n")
		tmpl, ws, err = Parse(file, []byte(all))
		if err != nil || len(ws) > 0 || len(tmpl.Observe) != 1 || tmpl.Identity.ForkArgs == nil || len(tmpl.Launch.Passthrough) == 0 || tmpl.Transcript.Contains == "" {
			t.Errorf("%v, %v\n%s", ws, err, all)
		}
	}
	for _, id := range []string{"", "a/b", "..", ".x", "-x", "a b", "ä", "a\n", strings.Repeat("x", 65)} {
		if _, err := Skeleton(id); err == nil {
			t.Errorf("%q is taken", id)
		}
	}
}
