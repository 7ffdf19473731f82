package foreign

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const entry = `{"hooks":[{"type":"command","command":"x"}]}`

func appended(t *testing.T, text string) (string, []string) {
	t.Helper()
	j, err := ParseJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	out, created, err := j.Append("/hooks/Start", entry)
	if err != nil {
		t.Fatal(err)
	}
	return out, created
}

func TestAppend(t *testing.T) {
	const spread = "{\n      \"hooks\": [\n        {\n          \"type\": \"command\",\n          \"command\": \"x\"\n        }\n      ]\n    }"
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "{\n  \"hooks\": {\n    \"Start\": [\n      " + strings.ReplaceAll(spread, "\n", "\n  ") + "\n    ]\n  }\n}\n"},
		{"order, numbers and escapes", "{\n    \"z\": 1.0,\n    \"a\": \"\\u00e9\\/\"\n}\n", ""},
		{"one line", `{"z":1}`, `{"z":1, "hooks": {"Start":[` + entry + `]}}`},
		{"one line, ours there", `{"hooks":{"Start":[1]}}`, `{"hooks":{"Start":[1, ` + entry + `]}}`},
		{"tabs", "{\n\t\"z\": 1\n}\n", ""},
		{"CRLF", "{\r\n  \"z\": 1\r\n}\r\n", ""},
		{"a mark", "\uFEFF{\n  \"z\": 1\n}\n", ""},
		{"comments", "// top\n{\n  // one\n  \"z\": 1 // last, {\"x\"\n  /* end */\n}\n// tail", "// top\n{\n  // one\n  \"z\": 1, // last, {\"x\"\n  \"hooks\": {\n    \"Start\": [\n      {\n        \"hooks\": [\n          {\n            \"type\": \"command\",\n            \"command\": \"x\"\n          }\n        ]\n      }\n    ]\n  }\n  /* end */\n}\n// tail"},
		{"a comma at the end", "{\n  \"z\": [1,],\n}\n", ""},
		{"others' hooks", "{\n  \"hooks\": {\n    \"Start\": [\n      {\"hooks\": [{\"command\": \"theirs\"}]}\n    ],\n    \"End\": []\n  }\n}\n", ""},
		{"an empty array of theirs", "{\n  \"hooks\": {\n    \"Start\": []\n  }\n}\n", ""},
		{"names that repeat elsewhere", "{\n  \"z\": {\"a\": 1, \"a\": 2},\n  \"y\": 1,\n  \"y\": 2\n}\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, created := appended(t, c.text)
			if c.want != "" && got != c.want {
				t.Error(cmp.Diff(c.want, got))
			}
			back, err := ParseJSON(got)
			if err != nil {
				t.Fatalf("%v\n%s", err, got)
			}
			els, err := back.Elements("/hooks/Start")
			if err != nil || len(els) == 0 {
				t.Fatalf("%v, %v", els, err)
			}
			// Everything else is there in its order: what was put in is one piece, or a comma and
			// one piece.
			if !subsequence(c.text, got) {
				t.Errorf("more than an insertion:\n%s", got)
			}
			if strings.Contains(c.text, "\r\n") && strings.Contains(strings.ReplaceAll(got, "\r\n", ""), "\n") {
				t.Errorf("mixed line ends: %q", got)
			}
			// And out again.
			p := "/hooks/Start/" + string(rune('0'+len(els)-1))
			if len(created) > 0 {
				p = created[0]
			}
			out, err := back.Remove(p)
			if err != nil {
				t.Fatal(err)
			}
			if c.text != "" && out != c.text {
				t.Errorf("removed: %s", cmp.Diff(c.text, out))
			}
		})
	}
}

func subsequence(a, b string) bool {
	for ; a != ""; a = a[1:] {
		i := strings.IndexByte(b, a[0])
		if i < 0 {
			return false
		}
		b = b[i+1:]
	}
	return true
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"{\n  \"a\": 1\n  \"b\": 2\n}": "line 3, column 3: a comma or } was expected",
		`{"a": 01}`:                    "line 1, column 7: a value was expected",
		`{"a": True}`:                  "a value was expected",
		`{a: 1}`:                       "a name in quotes",
		`{"a" 1}`:                      "a colon",
		`{"a": "x`:                     "no end",
		"{\"a\": \"x\ny\"}":            "no end",
		`{"a": "\x"}`:                  "not valid",
		`{} {}`:                        "something follows",
		`{"a": 1`:                      "a comma or }",
		`[1,,2]`:                       "a value was expected",
		`{,}`:                          "a name in quotes",
		`/* {`:                         "a comment has no end",
		strings.Repeat("[", 300):       "nested too deeply",
		"{\"a\": \"\xff\"}":            "not valid",
		"<<<<<<< HEAD\n{}":             "a value was expected",
	} {
		_, err := ParseJSON(text)
		var at *SyntaxError
		if !errors.As(err, &at) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		`{"hooks": {}, "hooks": {}}`:            "/hooks stands in it twice",
		`{"hooks": {"Start": [], "Start": []}}`: "/hooks/Start stands in it twice",
		`{"hooks": []}`:                         "array without element",
		`{"hooks": {"Start": {}}}`:              "is no array",
		`{"hooks": "off"}`:                      "is no object",
		`[]`:                                    "array without element",
		`7`:                                     "no object",
	} {
		j, err := ParseJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := j.Append("/hooks/Start", entry); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// Others' elements may come before and behind; removing ours keeps their bytes.
func TestRemoveAmongOthers(t *testing.T) {
	for text, want := range map[string]string{
		"[1, 2, 3]":              "[1, 3]",
		"[2]":                    "[]",
		"[\n  2\n]":              "[]",
		"[\n  1,\n  2 // two\n]": "[\n  1 // two\n]",
		"[\n  1, // one\n  2\n]": "[\n  1 // one\n]",
		"[\n  2, // two\n  3\n]": "[ // two\n  3\n]",
		"[\n  // all\n  2,\n]":   "[\n  // all\n]",
		"[1, 2,]":                "[1,]",
	} {
		j, err := ParseJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		at := ""
		els, _ := j.Elements("")
		for i, e := range els {
			if e == "2" {
				at = "/" + string(rune('0'+i))
			}
		}
		if got, err := j.Remove(at); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestStrict(t *testing.T) {
	for text, want := range map[string]string{
		"\uFEFF// a\n{\"x\": [1, 2,], /* b */ \"y\": {\"u\": \"//\"},}": `{"x":[1,2],"y":{"u":"//"}}`,
		"7 // seven": "7",
		"{,}":        "{,}",
		"":           "",
	} {
		if got := Strict(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func FuzzEdit(f *testing.F) {
	for _, s := range []string{"", "{}", "{\n}\n", `{"hooks":{"Start":[1,]}}`, "// x\r\n{\r\n\t\"a\" : [ ] /* y */ ,\r\n}", "\uFEFF{\"hooks\" : {}}", "{\"a\":1//\n}", "[[[", "{\"hooks\":{\"Start\":[/*a*/1/*b*/,/*c*/]}}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		j, err := ParseJSON(text)
		if err != nil {
			return
		}
		out, created, err := j.Append("/hooks/Start", entry)
		if err != nil {
			return
		}
		if !subsequence(text, out) {
			t.Fatalf("more than an insertion: %q -> %q", text, out)
		}
		back, err := ParseJSON(out)
		if err != nil {
			t.Fatalf("%v: %q -> %q", err, text, out)
		}
		els, err := back.Elements("/hooks/Start")
		before, _ := j.Elements("/hooks/Start")
		if err != nil || len(els) != len(before)+1 {
			t.Fatalf("%d elements, were %d, %v: %q -> %q", len(els), len(before), err, text, out)
		}
		if len(before) > 0 && len(created) == 0 && len(before) < 9 {
			again, err := back.Remove("/hooks/Start/" + string(rune('0'+len(before))))
			if err != nil || again != text {
				t.Fatalf("not undone, %v: %q -> %q -> %q", err, text, out, again)
			}
		}
	})
}
