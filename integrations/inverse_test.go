package integrations

import (
	"path/filepath"
	"strings"
	"testing"
)

// What Build builds is recognised, what Patterns look for has an example, and what is sampled
// passes.
func TestInverse(t *testing.T) {
	for id, tmpl := range builtins(t) {
		one, err := tmpl.SampleID()
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		two, err := tmpl.SampleID()
		if err != nil || two == one || tmpl.CheckID(one) != nil || tmpl.CheckID(two) != nil {
			t.Errorf("%s: %q, %q, %v", id, one, two, err)
		}
		for _, op := range []Op{Plain, Fresh, Resume, Fork} {
			r := Request{Op: op, PluginRoot: "/plugin", Profile: Profile{Args: []string{"--model", "m"}}, Extra: []string{"a prompt"}}
			if op != Plain {
				r.ID = one
			}
			if op == Fork && strings.Contains(strings.Join(tmpl.Identity.ForkArgs, " "), slotNewID) {
				r.NewID = two
			}
			c, err := tmpl.Build(r)
			if err != nil {
				continue // it has no such operation
			}
			if got, gotID, gotNew := tmpl.Recognise(c.Argv[1:]); got != op || gotID != r.ID || gotNew != r.NewID {
				t.Errorf("%s: %q is %v %q %q, want %v %q %q", id, c.Argv, got, gotID, gotNew, op, r.ID, r.NewID)
			}
		}
		if c := tmpl.Transcript; c != nil {
			if ok, err := filepath.Match(c.Patterns("/r [x]", one)[0], c.Example("/r [x]", one)); !ok || err != nil {
				t.Errorf("%s: %s does not match %s", id, c.Example("/r [x]", one), c.Patterns("/r [x]", one))
			}
		}
		for _, o := range tmpl.Observe {
			if o.Kind == "hook" {
				continue
			}
			if ok, err := filepath.Match(o.Pattern("/r", 7, one), o.Example("/r", 7, one)); !ok || err != nil {
				t.Errorf("%s: %s does not match %s", id, o.Example("/r", 7, one), o.Pattern("/r", 7, one))
			}
		}
	}
	if op, _, _ := mustParse(t, base).Recognise([]string{"--resume"}); op != Plain {
		t.Errorf("an option without its id is %v", op)
	}
	if _, err := mustParse(t, base+"id_pattern = '^\\x00$'\n").SampleID(); err == nil {
		t.Error("an id that no record may hold is sampled")
	}
}

func TestWithCommands(t *testing.T) {
	src := strings.Replace(base, `["demo"]`, "[\n  \"demo\", # why\n  \"x\",\n]", 1) + "mint_command = [\"demo\", \"new\"] # behind\n"
	odd := "a \"b\"\\\n\t\u2028"
	out, err := WithCommands("d.toml", []byte(src), []string{odd, "-x"}, []string{"mint"}, []string{"fork"})
	if err != nil {
		t.Fatal(err)
	}
	got := mustParse(t, string(out))
	if len(got.Launch.Command) != 2 || got.Launch.Command[0] != odd || got.Identity.MintCommand[0] != "mint" || got.Identity.ForkCommand != nil {
		t.Errorf("%q", out)
	}
	if !strings.HasPrefix(string(out), "id = \"demo\"\n[launch]\ncommand = [") || !strings.HasSuffix(string(out), " # behind\n") {
		t.Errorf("more was changed: %q", out)
	}
	if _, err := WithCommands("d.toml", []byte("id = 1"), nil, nil, nil); err == nil {
		t.Error("a broken template is changed")
	}
}

func FuzzSampleID(f *testing.F) {
	for _, p := range []string{`^ses_[0-9A-Za-z]+$`, `^(?:a|b)*$`, `^[^x]{1,8}$`, `^(?i)ab?.+$`, `^\pL{3}$`, "uuid"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		if _, err := compileID(pattern); err != nil {
			return
		}
		tmpl := &Template{ID: "d", Identity: SessionIdentity{IDPattern: pattern}}
		if id, err := tmpl.SampleID(); err == nil && tmpl.CheckID(id) != nil {
			t.Errorf("%q gave %q", pattern, id)
		}
	})
}
