//go:build linux

package owner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/metadata"
)

// gatekeeper passes the guard that its environment holds, and stays until its input ends.
func gatekeeper() int {
	g, err := DecodeGuard([]byte(os.Getenv("GUARD")))
	if err == nil {
		err = g.Pass(os.LookupEnv)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("passed")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

func TestGuard(t *testing.T) {
	tmpl, id := pidFileAgent(t), identity("onefile", idA)
	for _, tc := range []struct {
		name   string
		expect Presence
		now    string // the transcript's content; "-" is none
		want   error
	}{
		{"present as planned", Present, "x", nil},
		{"absent as planned", Absent, "-", nil},
		{"begun as planned", Begun, "", nil},
		{"a stub that went since", Begun, "-", nil},
		{"a stub that came since", Absent, "", ErrFlipped},
		{"a conversation that came since", Begun, "x", ErrFlipped},
		{"gone since", Present, "-", ErrFlipped},
		{"come since", Absent, "x", ErrFlipped},
		{"emptied since", Present, "", ErrFlipped},
		{"could not tell, present", CannotTell, "x", nil},
		{"could not tell, absent", CannotTell, "-", nil},
		{"nothing expected", "", "x", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir, _, env := store(t)
			if tc.now != "-" {
				files("projects/-src/"+idA+".jsonl="+tc.now)(t, dir)
			}
			c := claims(t)
			r, err := c.Reserve(id, Place{})
			must(t, err)
			g := NewGuard(tmpl, id, r.Ticket, Place{Terminal: "%3"}, c, tc.expect)
			b, err := g.Encode()
			must(t, err)
			g, err = DecodeGuard(b)
			must(t, err)
			err = g.Pass(env)
			if !errors.Is(err, tc.want) {
				t.Fatalf("%v, want %v", err, tc.want)
			}
			claim, _ := c.Get(id)
			if taken := !claim.Reserved; taken != (tc.want == nil) {
				t.Errorf("%+v", claim)
			}
			if tc.want == nil && (claim.Place.Terminal != "%3" || claim.Program != "onefile" || claim.Epoch != r.Epoch) {
				t.Errorf("%+v", claim)
			}
		})
	}
	t.Run("what cannot be told now is no flip", func(t *testing.T) {
		c := claims(t)
		g := NewGuard(tmpl, id, "", Place{}, c, Present)
		must(t, g.Pass(func(string) (string, bool) { return "", false }))
	})
	t.Run("a ticket that was given back", func(t *testing.T) {
		c := claims(t)
		r, err := c.Reserve(id, Place{})
		must(t, err)
		must(t, c.Release(r))
		_, _, env := store(t)
		if err := NewGuard(tmpl, id, r.Ticket, Place{}, c, Absent).Pass(env); !errors.Is(err, ErrTicket) {
			t.Error(err)
		}
	})
	t.Run("two panes at one identity", func(t *testing.T) {
		c := claims(t)
		r, err := c.Reserve(id, Place{})
		must(t, err)
		b, err := NewGuard(tmpl, id, r.Ticket, Place{}, c, "").Encode()
		must(t, err)
		first := call(t, "guard", c, id, "GUARD="+string(b))
		if got := first.hear(t); got != "passed" {
			t.Fatal(got)
		}
		second := call(t, "guard", c, id, "GUARD="+string(b))
		if got := second.hear(t); !strings.Contains(got, "is live") {
			t.Error(got)
		}
		first.kill()
	})
}

func TestGuardBounds(t *testing.T) {
	good := Guard{Identity: identity("onefile", idA), Claims: "/run/claims", Expect: Present, Root: "~/x", Paths: []string{"a"}}
	for name, edit := range map[string]func(*Guard){
		"no integration":      func(g *Guard) { g.Identity.IntegrationID = "" },
		"an option-shaped id": func(g *Guard) { g.Identity.NativeID = "-x" },
		"a relative place":    func(g *Guard) { g.Claims = "claims" },
		"another word":        func(g *Guard) { g.Expect = "perhaps" },
		"too many paths":      func(g *Guard) { g.Paths = make([]string, maxGuardPaths+1) },
		"too long":            func(g *Guard) { g.Root = strings.Repeat("x", MaxGuard) },
		"a root of nothing":   func(g *Guard) { g.Paths = nil },
		"a long id":           func(g *Guard) { g.Identity.NativeID = strings.Repeat("x", metadata.MaxNativeID+1) },
	} {
		g := good
		edit(&g)
		if b, err := g.Encode(); err == nil {
			t.Errorf("%s: %s", name, b)
		}
	}
	for _, bad := range []string{
		"", "null", "{}", "[]", `{"identity":{"IntegrationID":"a","NativeID":"b"},"claims":"/c","x":1}`,
		`{"identity":{"IntegrationID":"a","NativeID":"b"},"claims":"/c","claims":"/d"}`,
		`{"identity":{"IntegrationID":"a","NativeID":"b"},"Claims":"/c"}`,
		`{"identity":{"integrationid":"a","NativeID":"b"},"claims":"/c"}`,
		`{"identity":{"IntegrationID":"a","NativeID":"b"},"claims":"/c"} x`,
	} {
		if g, err := DecodeGuard([]byte(bad)); err == nil {
			t.Errorf("%s is %+v", bad, g)
		}
	}
}

func FuzzDecodeGuard(f *testing.F) {
	b, err := Guard{Identity: identity("onefile", idA), Claims: "/run/claims", Expect: Present, Root: "~/x", Paths: []string{"a"}, Place: Place{Terminal: "%1"}}.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"identity":{"IntegrationID":"a","NativeID":"b"},"claims":"/c"}`))
	f.Add([]byte(`{"claims":"/c","claims":"/c"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := DecodeGuard(b)
		if err != nil {
			return
		}
		out, err := g.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeGuard(out)
		if err != nil {
			t.Fatal(err)
		}
		if len(g.Paths) == 0 {
			g.Paths = nil
		}
		if d := cmp.Diff(g, again); d != "" {
			t.Fatal(d)
		}
		if !filepath.IsAbs(again.Claims) {
			t.Fatal(again.Claims)
		}
	})
}
