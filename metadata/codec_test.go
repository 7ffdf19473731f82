package metadata

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A line of testdata/corpus.txt.
type example struct {
	at               string
	kind, phux, ours string
	input            []byte
	why              string
}

var (
	exampleLine = regexp.MustCompile("^([RGL]) (ok|no|-) (\\S+) (`[^`]*`|\"(?:[^\"\\\\]|\\\\.)*\")(\\{.\\d+\\})?(?: # (.*))?$")
	repeat      = regexp.MustCompile(`\{(.)(\d+)\}`)
)

func corpus(t testing.TB) (all []example) {
	t.Helper()
	data, err := os.ReadFile("testdata/corpus.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		m := exampleLine.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("corpus.txt:%d: not an example: %s", n, line)
		}
		in, err := strconv.Unquote(m[4])
		if err != nil {
			t.Fatalf("corpus.txt:%d: %v", n, err)
		}
		in = repeat.ReplaceAllStringFunc(in+m[5], func(s string) string {
			p := repeat.FindStringSubmatch(s)
			k, _ := strconv.Atoi(p[2])
			return strings.Repeat(p[1], k)
		})
		all = append(all, example{fmt.Sprintf("corpus.txt:%d", n), m[1], m[2], strings.ReplaceAll(m[3], "~", " "), []byte(in), m[6]})
	}
	return all
}

// recode decodes a value of a kind, and encodes what came out.
func recode(kind string, b []byte) (v any, out []byte, decode, encode error) {
	switch kind {
	case "R":
		s, err := DecodeAgentSession(b)
		if err != nil {
			return nil, nil, err, nil
		}
		out, encode = s.Encode()
		return s, out, nil, encode
	case "G":
		a, err := DecodeAgent(b)
		if err != nil {
			return nil, nil, err, nil
		}
		out, encode = a.Encode()
		return a, out, nil, encode
	}
	f, err := DecodeLaunchFacts(b)
	if err != nil {
		return nil, nil, err, nil
	}
	out, encode = f.Encode()
	return f, out, nil, encode
}

func TestCorpus(t *testing.T) {
	for _, x := range corpus(t) {
		v, out, err, encode := recode(x.kind, x.input)
		got := "ok"
		if err != nil {
			var b *BoundError
			if !errors.As(err, &b) {
				t.Errorf("%s: %v is no *BoundError", x.at, err)
				continue
			}
			got = string(b.Bound)
		}
		if got != x.ours {
			t.Errorf("%s: got %q (%v), want %q", x.at, got, err, x.ours)
			continue
		}
		if differ := x.phux != "-" && (x.phux == "ok") != (got == "ok"); differ && x.why == "" {
			t.Errorf("%s: phux says %s, we say %s, and the corpus does not say why", x.at, x.phux, got)
		}
		if err != nil {
			continue
		}
		if encode != nil {
			t.Errorf("%s: decodes, and then: %v", x.at, encode)
			continue
		}
		again, out2, err, _ := recode(x.kind, out)
		if err != nil {
			t.Errorf("%s: our own encoding is refused: %v", x.at, err)
		} else if diff := cmp.Diff(v, again); diff != "" || !bytes.Equal(out, out2) {
			t.Errorf("%s: not a fixed point: %s", x.at, diff)
		}
	}
}

// The bytes that serde_json 1.0 writes for the same values (run, not guessed).
func TestEncodingIsSerdes(t *testing.T) {
	var controls strings.Builder
	for c := range rune(0x20) {
		controls.WriteRune(c)
	}
	for _, x := range []struct {
		agent Agent
		want  string
	}{
		{Agent{Name: "a"}, `{"name":"a","state":"unknown"}`},
		{Agent{Name: "a", Kind: "k", State: "idle", Attention: "none", Session: "s"}, `{"name":"a","kind":"k","state":"idle","attention":"none","session":"s"}`},
		{Agent{Name: "a/<b>&'\"\\\u007f\u2028\u2029é😀\ufffd"}, "{\"name\":\"a/<b>&'\\\"\\\\\u007f\u2028\u2029é😀\ufffd\",\"state\":\"unknown\"}"},
		{Agent{Name: "a" + controls.String()}, `{"name":"a\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000b\f\r\u000e\u000f\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c\u001d\u001e\u001f","state":"unknown"}`},
	} {
		got, err := x.agent.Encode()
		if err != nil {
			t.Error(err)
		} else if diff := cmp.Diff(x.want, string(got)); diff != "" {
			t.Error(diff)
		}
	}
	got, err := AgentSession{"p<", "i\u2028i", "n\"\\"}.Encode()
	if want := "{\"plugin_id\":\"p<\",\"integration_id\":\"i\u2028i\",\"native_id\":\"n\\\"\\\\\"}"; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func TestEncodeRefuses(t *testing.T) {
	key := strings.Repeat("a", 26)
	long := strings.Repeat("n", MaxNativeID)
	for name, x := range map[string]struct {
		v     interface{ Encode() ([]byte, error) }
		field string
		bound Bound
	}{
		"padded":       {AgentSession{"p", "i", "n "}, "native_id", Padded},
		"option":       {AgentSession{"p", "i", "--last"}, "native_id", OptionShaped},
		"not UTF-8":    {AgentSession{"p", "i", "\xff"}, "native_id", NotUTF8},
		"no plugin":    {AgentSession{"", "i", "n"}, "plugin_id", Empty},
		"long":         {AgentSession{"p", strings.Repeat("i", MaxID+1), "n"}, "integration_id", TooLong},
		"blank name":   {Agent{Name: "\t"}, "name", Empty},
		"long agent":   {Agent{Name: strings.Repeat("a", MaxRecord)}, "", TooLong},
		"no key":       {LaunchFacts{}, "pane_key", Missing},
		"facts size":   {LaunchFacts{PaneKey: key, Previous: []string{long, long, long, long}}, "", TooLong},
		"facts many":   {LaunchFacts{PaneKey: key, Previous: make([]string, MaxPrevious+1)}, "previous", TooMany},
		"facts reason": {LaunchFacts{PaneKey: key, Unconfirmed: strings.Repeat("a", MaxReason+1)}, "unconfirmed", TooLong},
		"relative":     {LaunchFacts{PaneKey: key, LaunchDir: "~/x"}, "launch_cwd", NotAbsolute},
		"year":         {LaunchFacts{PaneKey: key, ConfirmedAt: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, "confirmed_at", BadTime},
	} {
		_, err := x.v.Encode()
		var b *BoundError
		if !errors.As(err, &b) || b.Field != x.field || b.Bound != x.bound {
			t.Errorf("%s: got %v, want %s: %s", name, err, x.field, x.bound)
		}
	}
}

func TestBoundErrorSaysFieldAndBound(t *testing.T) {
	_, err := AgentSession{"p", "i", strings.Repeat("n", 1025)}.Encode()
	if want := "encode phux.agent-session/v1: native_id: too long (1025 bytes, at most 1024)"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestParseIdentity(t *testing.T) {
	for in, want := range map[string]Identity{
		"claude-code/0b": {"claude-code", "0b"},
		"a/b/c":          {"a", "b/c"},
		"a//":            {"a", "/"},
	} {
		got, err := ParseIdentity(in)
		if err != nil || got != want || got.String() != in {
			t.Errorf("%q: got %v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "/", "a", "a/", "/b", "a/-b", " a/b", "a/b ", "a/\x00", "a/\xff"} {
		if got, err := ParseIdentity(in); err == nil {
			t.Errorf("%q: got %v", in, got)
		}
	}
}

func TestNewPaneKey(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		k := NewPaneKey()
		if err := CheckPaneKey("key", k); err != nil || seen[k] {
			t.Fatalf("%q: %v, seen before: %v", k, err, seen[k])
		}
		seen[k] = true
	}
}

func TestRememberAndFitted(t *testing.T) {
	f := LaunchFacts{PaneKey: NewPaneKey()}
	for i := range 40 {
		f.Remember(fmt.Sprint("id", i))
	}
	f.Remember("id30")
	if len(f.Previous) != MaxPrevious || f.Previous[0] != "id30" || f.Previous[1] != "id39" {
		t.Errorf("got %q", f.Previous)
	}
	if n := strings.Count(strings.Join(f.Previous, " ")+" ", "id30 "); n != 1 {
		t.Errorf("id30 is remembered %d times", n)
	}

	f.Previous = nil
	for i := range MaxPrevious {
		f.Remember(fmt.Sprint(i) + strings.Repeat("n", MaxNativeID-2))
	}
	f.NotPreserved = make([]string, 100)
	f.Unconfirmed = strings.Repeat("é", MaxReason)
	if _, err := f.Encode(); err == nil {
		t.Error("too long facts are encoded")
	}
	g := f.Fitted()
	if _, err := g.Encode(); err != nil {
		t.Error(err)
	}
	if len(g.Previous) == 0 || g.Previous[0] != f.Previous[0] || g.Unconfirmed == "" {
		t.Errorf("the newest is gone: %d, %q", len(g.Previous), g.Unconfirmed)
	}
}

func TestConfirmedAtIsAnInstant(t *testing.T) {
	f := LaunchFacts{PaneKey: NewPaneKey(), ConfirmedAt: time.Date(2026, 11, 29, 12, 0, 0, 1, time.FixedZone("x", 3600))}
	b, err := f.Encode()
	if err != nil || !bytes.Contains(b, []byte(`"confirmed_at":"2026-11-29T11:00:00.000000001Z"`)) {
		t.Errorf("got %s, %v", b, err)
	}
}

func TestEffective(t *testing.T) {
	for _, x := range []struct{ state, attention, wantState, want string }{
		{"", "", "unknown", "low"},
		{"zzz", "", "unknown", "low"},
		{"idle", "", "idle", "none"},
		{"working", "", "working", "normal"},
		{"blocked", "", "blocked", "high"},
		{"done", "", "done", "low"},
		{"done", "high", "done", "high"},
		{"done", "zzz", "done", "normal"},
	} {
		a := Agent{Name: "n", State: x.state, Attention: x.attention}
		if a.EffectiveState() != x.wantState || a.EffectiveAttention() != x.want {
			t.Errorf("%+v: got %s, %s", x, a.EffectiveState(), a.EffectiveAttention())
		}
	}
}

func fuzz(f *testing.F, kind string) {
	for _, x := range corpus(f) {
		if x.kind == kind {
			f.Add(x.input)
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		v, out, err, encode := recode(kind, in)
		var b *BoundError
		switch {
		case err != nil:
			if !errors.As(err, &b) {
				t.Fatalf("%v is no *BoundError", err)
			}
			return
		case encode != nil: // a live identity grows by its state, which is always written
			if kind != "G" || !errors.As(encode, &b) || b.Bound != TooLong {
				t.Fatal(encode)
			}
			return
		}
		if len(out) > MaxRecord {
			t.Fatalf("%d bytes", len(out))
		}
		again, out2, err, _ := recode(kind, out)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(v, again); diff != "" || !bytes.Equal(out, out2) {
			t.Fatal(diff)
		}
	})
}

func FuzzAgentSession(f *testing.F) { fuzz(f, "R") }
func FuzzAgent(f *testing.F)        { fuzz(f, "G") }
func FuzzLaunchFacts(f *testing.F)  { fuzz(f, "L") }
