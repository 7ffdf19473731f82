package archive

import (
	"bytes"
	"testing"
)

// A head says of a file what reading it whole says.
func FuzzHead(f *testing.F) {
	b, err := full().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Add([]byte(`{"schema_version":2,"generation":7}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = decodeHead(bytes.NewReader(b)) // whatever it says of bytes that are no archive
		whole, err := Decode(b)
		if err != nil {
			return
		}
		ours, err := whole.Encode() // in our order, the sessions last
		if err != nil {
			t.Fatal(err)
		}
		head, err := decodeHead(bytes.NewReader(ours))
		if err != nil {
			t.Fatal(err)
		}
		again := mustDecode(t, ours)
		again.Sessions = nil
		// Not by cmp.Diff: it chooses by chance, and the engine would chase the coverage of that.
		if a, b := mustEncode(t, again), mustEncode(t, head); string(a) != string(b) {
			t.Errorf("whole:\n%s\nhead:\n%s", a, b)
		}
	})
}

func FuzzDecision(f *testing.F) {
	f.Add([]byte(`{"generation":42,"at":"2026-11-29T12:00:00Z","by":"save --accept"}`))
	f.Add([]byte(`{"generation":42,"at":"2026-11-29T12:00:00Z","sessions":[{"session":"work","from":41}]}`))
	f.Add([]byte(`{"generation":43}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := parseDecision("00000000000000000042.accept", b)
		if err == nil && (d.Generation != 42 || len(d.Sessions) > MaxSessions || !isWord(d.By)) {
			t.Errorf("%+v", d)
		}
	})
}

func FuzzFileName(f *testing.F) {
	for _, s := range []string{"00000000000000000042.json", "00000000000000000042-name.json", "00000000000000000042.accept", "latest.json", "18446744073709551616.json"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if sl, ok := parseSlot(s); ok && (sl.file() != s || sl.n == 0) {
			t.Errorf("%q is read as %+v, which is %q", s, sl, sl.file())
		}
	})
}
