package tmux

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/host"
)

func fullPayload() payload {
	return payload{batch: 3, start: host.Start{
		Mode: host.Program, Argv: []string{"/bin/x", "", "a\nb"}, Dir: "/d", Set: []string{"A=1", "B="}, Unset: []string{"C"},
		AfterExit: "shell", Guard: []byte{0, 1, 255}, Reason: "r", Hint: "h", Ask: host.AskEnter, Preface: "/run/p",
	}}
}

func TestPayload(t *testing.T) {
	// Whoever adds a field to host.Start learns here that payloads must carry it.
	v := reflect.ValueOf(fullPayload().start)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("field %s is not in the payload's test: add it to encode and decodePayload", v.Type().Field(i).Name)
		}
	}
	for _, p := range []payload{fullPayload(), {}, {start: host.Start{Mode: host.Placeholder, Reason: "why"}}} {
		b, err := p.encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodePayload(b)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(p.start, got.start); d != "" || got.batch != p.batch {
			t.Error(d)
		}
		for n := range b {
			if _, err := decodePayload(b[:n]); err == nil {
				t.Errorf("the first %d of %d bytes are a payload", n, len(b))
			}
		}
		if _, err := decodePayload(append(b, 0)); err == nil {
			t.Error("a byte more is a payload")
		}
	}
	// What no host could start is refused, whoever wrote it.
	for _, s := range []host.Start{
		{Mode: host.Program}, {Mode: host.Program, Argv: []string{"relative"}}, {Dir: "relative"}, {AfterExit: "explode"}, {Ask: "nicely"}, {Preface: "relative"}, {Set: []string{"=x"}},
	} {
		b, err := payload{start: s}.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodePayload(b); err == nil {
			t.Errorf("%+v is a payload", s)
		}
	}
}

func FuzzPayload(f *testing.F) {
	b, _ := fullPayload().encode()
	f.Add(b)
	b, _ = payload{}.encode()
	f.Add(b)
	f.Add([]byte(payloadHead + "\x00\x01\xff\xff\xff\xff\x0f"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := decodePayload(b)
		if err != nil {
			return
		}
		again, err := p.encode()
		if err != nil || string(again) != string(b) {
			t.Fatalf("%q is %+v, which is %q, %v", b, p, again, err)
		}
	})
}

func FuzzPaneWord(f *testing.F) {
	f.Add("start " + nonceA)
	f.Add("fail " + nonceA + " QQ")
	f.Add("fail  ")
	f.Fuzz(func(t *testing.T, s string) {
		if w, ok := parsePaneWord(s); ok && !validNonce(w.nonce) {
			t.Fatalf("%+v", w)
		}
	})
}
