package boot

import (
	"encoding/xml"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is\n%s\nand not\n%s", name, got, want)
	}
}

func TestGolden(t *testing.T) {
	for name, s := range map[string]Service{
		"plain": {
			Name: "phux-agent", Program: "/usr/local/bin/phux-agent", Args: []string{"boot", "run"},
			Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"},
		},
		"hostile": {
			Name: "phux-agent-L-work", Program: `/home/o "d%n d$HOME/<&>'\phux-agent`, Args: []string{"-L", "wörk $X", "boot", "run"},
			Env: []string{`PATH=/a b:/c"d:/e%h:/f$G`, "XDG_STATE_HOME=/x<y>"},
		},
	} {
		unit, err := s.Unit()
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name+".service", unit)
		plist, err := s.Plist()
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name+".plist", plist)
		// What launchd reads is what was meant.
		d := xml.NewDecoder(strings.NewReader(plist))
		all := ""
		for {
			tok, err := d.Token()
			if tok == nil {
				if err.Error() != "EOF" {
					t.Error(err)
				}
				break
			}
			if c, ok := tok.(xml.CharData); ok {
				all += string(c) + "\n"
			}
		}
		for _, w := range append([]string{s.Program}, s.Args...) {
			if !strings.Contains(all, "\n"+w+"\n") {
				t.Errorf("%q is not in the plist", w)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	good := Service{Name: "a", Program: "/x"}
	for name, change := range map[string]func(*Service){
		"no name":        func(s *Service) { s.Name = "" },
		"a path":         func(s *Service) { s.Name = "../a" },
		"relative":       func(s *Service) { s.Program = "x" },
		"line break":     func(s *Service) { s.Args = []string{"a\nExecStart=/bad"} },
		"in the program": func(s *Service) { s.Program = "/x\n" },
		"in the env":     func(s *Service) { s.Env = []string{"A=b\nc"} },
		"no env name":    func(s *Service) { s.Env = []string{"=b"} },
		"not text":       func(s *Service) { s.Args = []string{"\xff"} },
	} {
		s := good
		change(&s)
		if _, err := s.Unit(); !errors.Is(err, ErrService) {
			t.Errorf("unit, %s: %v", name, err)
		}
		if _, err := s.Plist(); !errors.Is(err, ErrService) {
			t.Errorf("plist, %s: %v", name, err)
		}
	}
}
