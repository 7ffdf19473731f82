package integrations

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/phux-agent/phux-agent/metadata"
)

const (
	v4    = "7c5f3a52-1b1c-4d2e-8f00-0123456789ab"
	other = "0b0a0908-0706-4504-8302-010fedcba987"
	v7    = "019aa0c4-1b1c-7d2e-8f00-0123456789ab"
)

func TestPatterns(t *testing.T) {
	for pattern, ids := range map[string]struct{ yes, no []string }{
		"uuid4":               {[]string{v4}, []string{v7, strings.ToUpper(v4), v4 + "\n", "x" + v4, v4[:35], "latest", "1", "00000000-0000-0000-0000-000000000000", "7c5f3a52-1b1c-4d2e-7f00-0123456789ab"}},
		"uuid":                {[]string{v4, v7, strings.ToUpper(v7)}, []string{v4 + "x", strings.ReplaceAll(v4, "-", ""), "{" + v4 + "}", "urn:uuid:" + v4}},
		`^ses_[0-9A-Za-z]+$`:  {[]string{"ses_a1"}, []string{"ses_", "ses_a1\n", "xses_a1", "ses_a b"}},
		`\Ases_[a-z]+\z`:      {[]string{"ses_a"}, []string{"ses_a\n", "ses_1"}},
		`^(?:a|b)$`:           {[]string{"a", "b"}, []string{"ab", "c"}},
		`^(a|b)x$`:            {[]string{"ax"}, []string{"a"}},
		`(?i)^a$`:             {[]string{"a", "A"}, []string{"b"}},
		`(?s)^a.$`:            {[]string{"ab"}, []string{"a\n"}},
		"":                    {[]string{"anything at all;$(x)"}, []string{"", "-x", " x", "a\nb", "\xff"}},
		`^[^\n]*$`:            {[]string{"a"}, []string{"a\nb", "a\n", ""}},
		`^a$$`:                {[]string{"a"}, []string{"a\n"}},
		`^^a$`:                {[]string{"a"}, []string{"ba"}},
		`^\x{61}\Q.*\E$`:      {[]string{"a.*"}, []string{"ab"}},
		`^session_[0-9a-f]+$`: {[]string{"session_0f"}, []string{"session_0F"}},
	} {
		tmpl := &Template{ID: "demo", Identity: SessionIdentity{IDPattern: pattern}}
		for _, id := range ids.yes {
			if err := tmpl.CheckID(id); err != nil {
				t.Errorf("%q: %v", pattern, err)
			}
		}
		for _, id := range ids.no {
			var e *IDError
			if err := tmpl.CheckID(id); !errors.As(err, &e) {
				t.Errorf("%q allows %q: %v", pattern, id, err)
			}
		}
	}
	for _, pattern := range []string{
		"a", "^a", "a$", "^a|b$", "^a$|^b$", "^a|^b$", "^a$|b", "(^a$)", "(?:^a)|b$", "(?m)^a$", "^a(?m)$", "(?m:^a$)", "(?-s:^a$)|x", "^$|a", "^", "$",
		"^(?:a$|b)", "(?:^a|b)$", "^a$*", "^a${0,1}", "^?a$", "uuid5", "UUID4", "^" + strings.Repeat("a", maxPattern) + "$", "^(?=a)$", `^a\Z`,
	} {
		if re, err := compileID(pattern); err == nil {
			t.Errorf("%q is taken for anchored: %v", pattern, re)
		}
	}
}

// Whatever compileID accepts matches whole texts alone: nothing can be put around an id, not
// even a newline.
func FuzzPattern(f *testing.F) {
	for _, p := range []string{"^a$", "^a|b$", "(?m)^a$", `\Aa\z`, "^(?:a|b)$", "^a$|^b$", "(^a$)", "^a.*$", "^(a|)$", "^(?i:x)$", "^a$*"} {
		f.Add(p, "a", "\n")
	}
	f.Fuzz(func(t *testing.T, pattern, id, around string) {
		re, err := compileID(pattern)
		if err != nil || re == nil || !re.MatchString(id) {
			return
		}
		whole := regexp.MustCompile(`\A(?:` + re.String() + `)\z`)
		for _, s := range []string{id, around + id, id + around, around + id + around} {
			if re.MatchString(s) != whole.MatchString(s) {
				t.Fatalf("%q matches a part of %q", pattern, s)
			}
		}
	})
}

func TestIDInPathIsSafe(t *testing.T) {
	inPath := mustParse(t, base+"[transcript]\nroot = \"~/.d\"\npaths = [\"${PHUX_AGENT_SESSION_ID}.jsonl\"]\n")
	observed := mustParse(t, base+"[transcript]\nroot = \"~/.d\"\npaths = [\"x-${PHUX_AGENT_SESSION_ID:8}\"]\nhead_id = \"/id\"\n")
	free := mustParse(t, base)
	for _, id := range []string{"a/b", `a\b`, "a*", "a?", "[a]", "..", "a..b", ".a", "../../etc/passwd", strings.Repeat("a", maxPathID+1)} {
		if err := inPath.CheckID(id); err == nil {
			t.Errorf("%q enters a path", id)
		}
		if err := observed.CheckID(id); err == nil {
			t.Errorf("%q enters a path in part", id)
		}
		if err := free.CheckID(id); err != nil {
			t.Error(err)
		}
	}
	if err := inPath.CheckID("a.b-c_1"); err != nil {
		t.Error(err)
	}
}

func TestCheckIDWrapsTheBound(t *testing.T) {
	err := mustParse(t, base).CheckID("-x")
	var b *metadata.BoundError
	if !errors.As(err, &b) || b.Bound != metadata.OptionShaped {
		t.Errorf("got %v", err)
	}
	if want := `native id "-x" of "demo": begins with -`; err.Error() != want {
		t.Errorf("got %s, want %s", err, want)
	}
}

func TestNormalizeID(t *testing.T) {
	tmpl := &Template{ID: "d", Identity: SessionIdentity{IDPattern: "uuid"}}
	if got, err := tmpl.NormalizeID(strings.ToUpper(v7)); err != nil || got != v7 {
		t.Errorf("got %q, %v", got, err)
	}
	tmpl.Identity.IDPattern = `^[A-Z]+$`
	if got, err := tmpl.NormalizeID("ABC"); err != nil || got != "ABC" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := tmpl.NormalizeID("abc"); err == nil {
		t.Errorf("got %q", got)
	}
}

func TestMint(t *testing.T) {
	fresh := "fresh_args = [\"--id\", \"${PHUX_AGENT_SESSION_ID}\"]\n"
	for pattern, can := range map[string]bool{"": true, "id_pattern = \"uuid4\"": true, "id_pattern = \"uuid\"": true, "id_pattern = '^[0-9a-f-]{36}$'": true} {
		uuid4, err := compileID("uuid4")
		if err != nil {
			t.Fatal(err)
		}
		tmpl := mustParse(t, base+fresh+pattern)
		if tmpl.CanMint() != can {
			t.Errorf("%s: CanMint %v", pattern, tmpl.CanMint())
		}
		seen := map[string]bool{}
		for range 100 {
			id, err := tmpl.Mint()
			if err != nil || !uuid4.MatchString(id) || seen[id] {
				t.Fatalf("%s: %q, %v", pattern, id, err)
			}
			seen[id] = true
		}
	}
	if id, err := mustParse(t, base).Mint(); err == nil {
		t.Errorf("minted %q without fresh_args", id)
	}
}

func TestParseMinted(t *testing.T) {
	tmpl := &Template{ID: "d", Identity: SessionIdentity{IDPattern: `^ses_[a-z0-9]+$`}}
	for _, out := range []string{"ses_a1", "ses_a1\n", "ses_a1\r\n", "\n\nses_a1\n \n"} {
		if id, err := tmpl.ParseMinted([]byte(out)); err != nil || id != "ses_a1" {
			t.Errorf("%q: %q, %v", out, id, err)
		}
	}
	for _, out := range []string{"", "\n", "ses_a1\nses_a2\n", "created ses_a1", "ses_a1\ndone", " ses_a1", "-x", "latest", "ses_a1\x00", strings.Repeat("\n", 70_000) + "ses_a1"} {
		if id, err := tmpl.ParseMinted([]byte(out)); err == nil {
			t.Errorf("%q: %q", out, id)
		}
	}
}

func TestRestorable(t *testing.T) {
	if err := mustParse(t, base).Restorable(); err != nil {
		t.Error(err)
	}
	if err := mustParse(t, strings.Replace(base, "[launch]\ncommand = [\"demo\"]\n", "", 1)).Restorable(); !errors.Is(err, ErrNotLaunchable) {
		t.Errorf("got %v", err)
	}
	if err := mustParse(t, "id = \"d\"\n[launch]\ncommand = [\"sh\"]\n").Restorable(); !errors.Is(err, ErrNotRestorable) {
		t.Errorf("got %v", err)
	}
}
