package phuxagent_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/phux-agent/phux-agent"

// rooms is the house: what each room may import of ours, besides internal/*. The front door may
// import everything; internal/* imports nothing. A room that is not here has no place yet.
var rooms = map[string][]string{
	".":             nil,
	"metadata":      nil,
	"integrations":  {"metadata"},
	"plugin":        {"integrations", "metadata"},
	"config":        {"integrations", "metadata"},
	"hooks":         {"integrations", "metadata"},
	"host":          {"metadata"},
	"host/tmux":     {"host", "metadata"},
	"host/embedded": {"host", "metadata"},
	"host/memory":   {"host", "metadata"},
	"host/hosttest": {"host", "metadata"},
	"owner":         {"integrations", "metadata"},
	"archive":       {"metadata"},
	"capture":       {"owner", "plugin", "archive", "host", "config", "integrations", "metadata"},
	"launch":        {"owner", "plugin", "archive", "host", "config", "integrations", "metadata"},
	"restore":       {"owner", "plugin", "archive", "host", "config", "integrations", "metadata"},
	"rehearsal":     {"integrations"},
	"doctor":        {"restore", "capture", "owner", "plugin", "archive", "host", "hooks", "config", "integrations", "metadata"},
	"spool":         {"owner", "metadata"},
	"attach":        {"host", "metadata"},
	"boot":          nil,
	"status":        nil,
	"picker":        nil,
}

// only names the rooms that may import a module of others, subpackages included.
var only = map[string][]string{
	"github.com/spf13/cobra":          {"cmd/phux-agent"},
	"github.com/spf13/pflag":          {"cmd/phux-agent"},
	"github.com/vmihailenco/msgpack":  {"host/embedded"},
	"github.com/hashicorp/go-msgpack": {"host/embedded"},
	"github.com/tinylib/msgp":         {"host/embedded"},
	"github.com/shamaton/msgpack":     {"host/embedded"},
	"github.com/ugorji/go/codec":      {"host/embedded"},
	"testing":                         {"host/hosttest"}, // its one purpose; elsewhere it is in test files
	"charm.land":                      {"picker"},
	"github.com/charmbracelet":        {"picker"},
	"github.com/google/go-cmp":        {"host/hosttest"},
	"pgregory.net/rapid":              nil,
	"github.com/rogpeppe/go-internal": nil,
}

// room is the place of one of our packages: "." is the root.
func room(importPath string) (string, bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

func under(r, dir string) bool { return r == dir || strings.HasPrefix(r, dir+"/") }

// listed is what go list says of a package; test files are not among its imports.
type listed struct {
	ImportPath string
	Name       string
	Dir        string
	Imports    []string
	GoFiles    []string
}

// arrows reports what a package imports that its room may not.
func arrows(p listed) (wrong []string) {
	r, ours := room(p.ImportPath)
	if !ours {
		return nil
	}
	say := func(format string, args ...any) {
		wrong = append(wrong, r+": "+fmt.Sprintf(format, args...))
	}
	for _, word := range append(strings.Split(r, "/"), p.Name) {
		switch word {
		case "util", "utils", "common", "helper", "helpers", "misc", "shared":
			say("a package named %q says nothing of what is in it", word)
		}
	}
	allowed, known := rooms[r]
	if !known && !under(r, "cmd") && !under(r, "internal") {
		say("a room without a place in the house: give it one in house_test.go and doc.go")
	}
	for _, i := range p.Imports {
		for lib, who := range only {
			if (i == lib || strings.HasPrefix(i, lib+"/")) && !slices.Contains(who, r) {
				say("imports %s, which only %v may", i, who)
			}
		}
		to, ours := room(i)
		switch {
		case !ours:
		case under(to, "host") && to != "host" && (to == "host/memory" || to == "host/hosttest"):
			say("imports %s, which is for tests", to)
		case under(to, "host") && to != "host" && r != "cmd/phux-agent":
			say("imports the concrete host %s, which is named in cmd alone", to)
		case under(r, "cmd"):
		case under(r, "internal"):
			// A part of one of these rooms may know its own room.
			if !under(r, to) {
				say("imports %s: internal rooms import nothing of ours", to)
			}
		case under(to, "internal"):
		case !slices.Contains(allowed, to):
			say("imports %s: nothing points there (doc.go)", to)
		}
	}
	return wrong
}

// speech reports where a file outside cmd ends the process or takes its standard output.
func speech(fset *token.FileSet, f *ast.File) (wrong []string) {
	names := make(map[string]string) // in this file, of what matters
	for _, i := range f.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil || p != "os" && p != "log" && p != "syscall" && p != "golang.org/x/sys/unix" {
			continue
		}
		name := path.Base(p)
		if i.Name != nil {
			name = i.Name.Name
		}
		if name == "." {
			wrong = append(wrong, fmt.Sprintf("%s: a dot import of %s", fset.Position(i.Pos()), p))
		}
		names[name] = path.Base(p)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := s.X.(*ast.Ident)
		// A local variable of that name is another thing; a package's own has no object here.
		if !ok || x.Obj != nil {
			return true
		}
		switch what := names[x.Name] + "." + s.Sel.Name; what {
		case "os.Exit", "os.Stdout", "syscall.Exit", "unix.Exit",
			"log.Fatal", "log.Fatalf", "log.Fatalln", "log.Panic", "log.Panicf", "log.Panicln":
			wrong = append(wrong, fmt.Sprintf("%s: %s, which is cmd's alone", fset.Position(n.Pos()), what))
		}
		return true
	})
	return wrong
}

// list is go list over the house on one system, so that what is built elsewhere is seen too.
func list(t *testing.T, goos string) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Name,Dir,Imports,GoFiles", "./...")
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func TestHouse(t *testing.T) {
	for _, goos := range []string{"linux", "darwin"} {
		t.Run(goos, func(t *testing.T) {
			seen := make(map[string]bool)
			for _, p := range list(t, goos) {
				r, ours := room(p.ImportPath)
				if !ours {
					continue
				}
				seen[r] = true
				for _, wrong := range arrows(p) {
					t.Error(wrong)
				}
				if under(r, "cmd") {
					continue
				}
				for _, name := range p.GoFiles {
					fset := token.NewFileSet()
					f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, 0)
					if err != nil {
						t.Error(err)
						continue
					}
					for _, wrong := range speech(fset, f) {
						t.Error(wrong)
					}
				}
			}
			for _, r := range []string{".", "metadata", "host", "host/tmux", "cmd/phux-agent", "internal/proc"} {
				if !seen[r] {
					t.Errorf("%s was not looked at", r)
				}
			}
		})
	}
}

// Each rule is seen to be broken, and what is allowed is seen to be.
func TestHouseSeesBreaches(t *testing.T) {
	at := func(r string, imports ...string) listed {
		p := listed{ImportPath: module + "/" + r, Name: path.Base(r)}
		for _, i := range imports {
			if i, ok := strings.CutPrefix(i, "./"); ok {
				p.Imports = append(p.Imports, module+"/"+i)
				continue
			}
			p.Imports = append(p.Imports, i)
		}
		return p
	}
	for name, c := range map[string]struct {
		pkg  listed
		want string // within the report; empty is none
	}{
		"up":                   {at("owner", "./capture"), "nothing points there"},
		"sideways":             {at("launch", "./restore"), "nothing points there"},
		"nouns import nothing": {at("metadata", "./integrations"), "nothing points there"},
		"interface imports":    {at("host", "./owner"), "nothing points there"},
		"body imports":         {at("host/tmux", "./owner"), "nothing points there"},
		"archive and host":     {at("archive", "./host"), "nothing points there"},
		"to the front door":    {at("config", "./cmd/phux-agent"), "nothing points there"},
		"internal":             {at("internal/proc", "./metadata"), "internal rooms import nothing of ours"},
		"internal sideways":    {at("internal/ui", "./internal/proc"), "internal rooms import nothing of ours"},
		"concrete host":        {at("restore", "./host/tmux"), "named in cmd alone"},
		"a body in a body":     {at("host/embedded", "./host/tmux"), "named in cmd alone"},
		"for tests":            {at("capture", "./host/memory"), "for tests"},
		"suite":                {at("cmd/phux-agent", "./host/hosttest"), "for tests"},
		"cobra":                {at("launch", "github.com/spf13/cobra"), "only [cmd/phux-agent] may"},
		"cobra's part":         {at("config", "github.com/spf13/cobra/doc"), "only [cmd/phux-agent] may"},
		"msgpack":              {at("host/tmux", "github.com/vmihailenco/msgpack/v5"), "only [host/embedded] may"},
		"testing":              {at("metadata", "testing"), "only [host/hosttest] may"},
		"util":                 {at("internal/util"), "says nothing"},
		"common within":        {at("common/x"), "says nothing"},
		"no place":             {at("ledger"), "without a place"},

		"the front door":        {at("cmd/phux-agent", "./host/tmux", "./restore", "github.com/spf13/cobra", "./internal/ui"), ""},
		"down":                  {at("restore", "./owner", "./plugin", "./archive", "./host", "./internal/proc", "./metadata"), ""},
		"msgpack in its place":  {at("host/embedded", "github.com/vmihailenco/msgpack/v5", "./host"), ""},
		"a part of its room":    {at("internal/atomicfile/faultfs", "./internal/atomicfile"), ""},
		"the library of others": {at("metadata", "github.com/go-json-experiment/json", "fmt"), ""},
		"not ours":              {listed{ImportPath: "example.com/util", Imports: []string{"github.com/spf13/cobra"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := arrows(c.pkg)
			if c.want == "" && len(got) > 0 || c.want != "" && !strings.Contains(strings.Join(got, "\n"), c.want) {
				t.Errorf("reported %q, want %q", got, c.want)
			}
		})
	}
	for name, c := range map[string]struct {
		source string
		want   string
	}{
		"exit":       {`import "os"; func f() { os.Exit(1) }`, "os.Exit"},
		"exit named": {`import system "os"; var f = system.Exit`, "os.Exit"},
		"stdout":     {`import ("fmt"; "os"); func f() { fmt.Fprintln(os.Stdout) }`, "os.Stdout"},
		"fatal":      {`import "log"; func f() { log.Fatalf("x") }`, "log.Fatal"},
		"dot":        {`import . "os"; func f() { Exit(1) }`, "dot import"},
		"unix":       {`import "golang.org/x/sys/unix"; func f() { unix.Exit(1) }`, "unix.Exit"},
		"others":     {`import "os"; func f() { os.Getpid(); _ = os.Stderr }`, ""},
		"a variable": {`import "os"; type t struct{ Exit int }; var _ = os.Args; func f() { os := t{}; _ = os.Exit }`, ""},
		"a comment":  {`// os.Exit ends it.` + "\n" + `import "os"; var _ = os.Args`, ""},
	} {
		t.Run("source "+name, func(t *testing.T) {
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, "x.go", "package x\n"+c.source, 0)
			if err != nil {
				t.Fatal(err)
			}
			got := speech(fset, f)
			if c.want == "" && len(got) > 0 || c.want != "" && !strings.Contains(strings.Join(got, "\n"), c.want) {
				t.Errorf("reported %q, want %q", got, c.want)
			}
		})
	}
}
