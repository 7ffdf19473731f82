package integrations

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

// schema is what docs/integration.schema.json uses of draft 7. A keyword that is not here is a
// failure of the test, so that none is silently passed over.
type schema map[string]any

// check returns where a value breaks the schema.
func (s schema) check(at string, v any) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, at+": "+fmt.Sprintf(format, args...)) }
	sub := func(x any) schema { m, _ := x.(map[string]any); return m }
	holds := func(x any) bool { return len(sub(x).check(at, v)) == 0 }
	object, isObject := v.(map[string]any)
	array, isArray := v.([]any)
	text, isText := v.(string)
	number := func(x any) int { return int(x.(float64)) }
	for key, want := range s {
		switch key {
		case "$schema", "$id", "title", "description", "default", "then", "else", "additionalItems":
		case "type":
			names, ok := want.([]any)
			if !ok {
				names = []any{want}
			}
			if !slices.ContainsFunc(names, func(n any) bool { return typed(n.(string), v) }) {
				say("is no %v", want)
			}
		case "enum":
			if !slices.ContainsFunc(want.([]any), func(e any) bool { return reflect.DeepEqual(e, v) }) {
				say("%v is none of %v", v, want)
			}
		case "const":
			if !reflect.DeepEqual(want, v) {
				say("%v is not %v", v, want)
			}
		case "pattern":
			if isText && !regexp.MustCompile(want.(string)).MatchString(text) {
				say("%q does not match %s", text, want)
			}
		case "minLength":
			if isText && len([]rune(text)) < number(want) {
				say("is too short")
			}
		case "maxLength":
			if isText && len([]rune(text)) > number(want) {
				say("is too long")
			}
		case "minItems":
			if isArray && len(array) < number(want) {
				say("has too few elements")
			}
		case "maxItems":
			if isArray && len(array) > number(want) {
				say("has too many elements")
			}
		case "contains":
			if isArray && !slices.ContainsFunc(array, func(e any) bool { return len(sub(want).check(at, e)) == 0 }) {
				say("holds none of %v", want)
			}
		case "items":
			for i, e := range array {
				each := want
				if list, ok := want.([]any); ok { // by place, then additionalItems
					if each = s["additionalItems"]; i < len(list) {
						each = list[i]
					}
				}
				if each != nil {
					wrong = append(wrong, sub(each).check(fmt.Sprintf("%s[%d]", at, i), e)...)
				}
			}
		case "required":
			for _, name := range want.([]any) {
				if _, ok := object[name.(string)]; isObject && !ok {
					say("has no %s", name)
				}
			}
		case "dependencies":
			for name, others := range want.(map[string]any) {
				if _, ok := object[name]; ok {
					wrong = append(wrong, schema{"required": others}.check(at, v)...)
				}
			}
		case "propertyNames":
			for name := range object {
				wrong = append(wrong, sub(want).check(at+"."+name, name)...)
			}
		case "properties", "patternProperties", "additionalProperties":
			if key != "properties" && s["properties"] != nil {
				continue // once, below
			}
			for name, e := range object {
				props := sub(s["properties"])
				p, known := props[name]
				for pattern, x := range sub(s["patternProperties"]) {
					if !known && regexp.MustCompile(pattern).MatchString(name) {
						p, known = x, true
					}
				}
				switch {
				case known:
					wrong = append(wrong, sub(p).check(at+"."+name, e)...)
				case s["additionalProperties"] == false:
					say("does not know %s", name)
				default:
					wrong = append(wrong, sub(s["additionalProperties"]).check(at+"."+name, e)...)
				}
			}
		case "allOf":
			for _, x := range want.([]any) {
				wrong = append(wrong, sub(x).check(at, v)...)
			}
		case "anyOf":
			if !slices.ContainsFunc(want.([]any), holds) {
				say("is none of %v", want)
			}
		case "not":
			if holds(want) {
				say("must not be %v", want)
			}
		case "if":
			branch := "else"
			if holds(want) {
				branch = "then"
			}
			wrong = append(wrong, sub(s[branch]).check(at, v)...)
		default:
			say("the test does not know the schema's keyword %s", key)
		}
	}
	return wrong
}

func typed(name string, v any) bool {
	switch v := v.(type) {
	case string:
		return name == "string"
	case bool:
		return name == "boolean"
	case float64:
		return name == "number" || name == "integer" && v == float64(int64(v))
	case map[string]any:
		return name == "object"
	case []any:
		return name == "array"
	}
	return false
}

func readSchema(t *testing.T) schema {
	t.Helper()
	b, err := os.ReadFile("../docs/integration.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var s schema
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// asJSON is a TOML file as a schema sees it; false where it is no TOML.
func asJSON(t *testing.T, src []byte) (any, bool) {
	t.Helper()
	var m map[string]any
	if _, err := toml.Decode(string(src), &m); err != nil {
		return nil, false
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v, true
}

// The schema knows exactly the keys that the reader knows.
func TestSchemaVocabulary(t *testing.T) {
	s := readSchema(t)
	at := func(table string) schema {
		now := s
		for _, step := range strings.Split(table, ".") {
			if step == "" {
				continue
			}
			next, _ := now["properties"].(map[string]any)[step].(map[string]any)
			if items, ok := next["items"].(map[string]any); ok {
				next = items
			}
			now = next
		}
		return now
	}
	for table, keys := range vocabulary {
		got := at(table)
		if keys == nil {
			if got["type"] != "object" || got["additionalProperties"] == false {
				t.Errorf("[%s] holds names of the author's own, and the schema says %v", table, got)
			}
			continue
		}
		props, _ := got["properties"].(map[string]any)
		var have []string
		for key, p := range props {
			have = append(have, key)
			if d, _ := p.(map[string]any)["description"].(string); table != "detect" && table != "link" && d == "" {
				t.Errorf("%s.%s has no description", table, key)
			}
		}
		want := slices.Clone(keys)
		slices.Sort(want)
		slices.Sort(have)
		if !slices.Equal(want, have) || got["additionalProperties"] != false {
			t.Errorf("[%s]: the schema has %q, the reader knows %q", table, have, want)
		}
	}
}

// What loads without a warning is what the schema allows.
func TestSchemaAllows(t *testing.T) {
	s := readSchema(t)
	sources := map[string][]byte{"base": []byte(base)}
	for _, pattern := range []string{"builtin/integrations/*.toml", "testdata/phux-shape/*.toml", "../examples/*/integrations/*.toml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			sources[f] = b
		}
	}
	files, err := Skeleton("my-agent")
	if err != nil {
		t.Fatal(err)
	}
	sources["skeleton"] = files["integrations/my-agent.toml"]
	for f, src := range sources {
		v, ok := asJSON(t, src)
		if wrong := s.check("", v); !ok || len(wrong) > 0 {
			t.Errorf("%s: %s", f, strings.Join(wrong, "\n"))
		}
	}
}

// inexpressible are the refusals that the schema leaves to the reader, and why.
var inexpressible = map[string]string{
	"slot-twice":              "draft 7 cannot count",
	"fresh-pattern":           "whether an expression allows a UUID",
	"hooks-not-json":          "a language within a string",
	"observe-loose":           "what stands beside what in one name",
	"pattern-choice":          "a language within a string",
	"pattern-choice-two":      "a language within a string",
	"pattern-not-re2":         "a language within a string",
	"transcript-root-default": "what a variable's default leads to",
	"transcript-short":        "a key that one of many strings asks for",
}

// What is refused, the schema refuses too, but for a list that is exact both ways.
func TestSchemaRefuses(t *testing.T) {
	s := readSchema(t)
	files, err := fs.Glob(os.DirFS("testdata/refused"), "*.toml")
	if err != nil || len(files) < 100 {
		t.Fatal(len(files), err)
	}
	for _, f := range files {
		src, err := os.ReadFile(filepath.Join("testdata/refused", f))
		if err != nil {
			t.Fatal(err)
		}
		v, ok := asJSON(t, src)
		if !ok {
			continue // its TOML is at fault
		}
		wrong := s.check("", v)
		name := strings.TrimSuffix(f, ".toml")
		switch _, listed := inexpressible[name]; {
		case len(wrong) == 0 && !listed:
			t.Errorf("%s: the schema allows it:\n%s", name, src)
		case len(wrong) > 0 && listed:
			t.Errorf("%s: the schema refuses it, and the list says that it cannot: %q", name, wrong)
		}
		if slices.ContainsFunc(wrong, func(w string) bool { return strings.Contains(w, "does not know the schema's keyword") }) {
			t.Errorf("%s: %q", name, wrong)
		}
	}
}

// unlike are the kinds of values over which the schema and the reader differ, and why.
var unlike = map[string]string{
	": slots":         "draft 7 cannot count",
	": a date":        "JSON has none: editors hand it over as text",
	": NUL in it":     "no editor can show it, and the reader says it",
	": control":       "the same",
	": empty":         "an optional pointer that is empty loads as one that is left out; the schema wants it left out",
	"into: a pointer": "what the event makes of it",
}

// The schema and the reader judge alike what each key can be given: what is refused by one is refused
// by the other, and what loads without a warning is allowed.
func TestSchemaAgrees(t *testing.T) {
	s := readSchema(t)
	both, neither := 0, 0
	used := map[string]bool{}
	for name, src := range wrongValues() {
		v, ok := asJSON(t, []byte(src))
		if !ok {
			continue
		}
		_, warnings, err := Parse("f.toml", []byte(src))
		wrong := s.check("", v)
		known := ""
		for kind := range unlike {
			if strings.HasSuffix(name, kind) {
				known = kind
			}
		}
		switch {
		case err != nil && len(wrong) > 0:
			both++
		case err == nil && (len(wrong) == 0 || len(warnings) > 0):
			neither++
		case known != "":
			used[known] = true
		case err != nil:
			t.Errorf("%s: the schema allows it: %v", name, err)
		default:
			t.Errorf("%s: the schema refuses it: %q", name, wrong)
		}
	}
	if both < 500 || neither < 50 {
		t.Errorf("%d are refused, %d load", both, neither)
	}
	for kind, why := range unlike {
		if !used[kind] {
			t.Errorf("they agree over %q now (%s)", kind, why)
		}
	}
}
