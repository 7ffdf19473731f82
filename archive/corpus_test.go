package archive

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

type corpusLine struct {
	line       int
	phux, ours bool
	text, why  string
}

var (
	corpusForm  = regexp.MustCompile(`^([ASWLP]) (ok|no) (ok|no) (.*?)(?: # (.*))?$`)
	corpusTimes = regexp.MustCompile(`\{([^{}"])(\d+)\}`)
)

// corpus reads testdata/corpus.txt.
func corpus(t testing.TB) (out []corpusLine) {
	t.Helper()
	b, err := os.ReadFile("testdata/corpus.txt")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(b), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		m := corpusForm.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("corpus.txt:%d: not of the form", i+1)
		}
		text := corpusTimes.ReplaceAllStringFunc(m[4], func(s string) string {
			p := corpusTimes.FindStringSubmatch(s)
			n, err := strconv.Atoi(p[2])
			if err != nil {
				t.Fatal(err)
			}
			return strings.Repeat(p[1], n)
		})
		switch m[1] {
		case "S":
			text = fmt.Sprintf(`{"schema_version":2,"sessions":[%s]}`, text)
		case "W":
			text = fmt.Sprintf(`{"schema_version":2,"sessions":[{"name":"a","windows":[%s]}]}`, text)
		case "L":
			text = fmt.Sprintf(`{"schema_version":2,"sessions":[{"name":"a","windows":[{"name":"w","layout":%s,"panes":[{},{}]}]}]}`, text)
		case "P":
			text = fmt.Sprintf(`{"schema_version":2,"sessions":[{"name":"a","windows":[{"name":"w","panes":[%s]}]}]}`, text)
		}
		out = append(out, corpusLine{i + 1, m[2] == "ok", m[3] == "ok", text, m[5]})
	}
	return out
}

func TestCorpus(t *testing.T) {
	lines := corpus(t)
	if len(lines) < 100 {
		t.Fatalf("only %d lines", len(lines))
	}
	for _, c := range lines {
		_, err := Decode([]byte(c.text))
		if (err == nil) != c.ours {
			t.Errorf("corpus.txt:%d: want %v: %v\n%.200s", c.line, c.ours, err, c.text)
		}
		switch {
		case c.phux != c.ours && c.why == "":
			t.Errorf("corpus.txt:%d: differs from phux, and no reason is given", c.line)
		case !c.phux && c.ours:
			t.Errorf("corpus.txt:%d: we accept what phux refuses", c.line)
		}
	}
}
