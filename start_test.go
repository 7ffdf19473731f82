package phuxagent_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"strings"
	"testing"
)

// TestStartIsCheap: every pane starts this program before its agent, so nothing that it links of
// ours compiles an expression or a template before it is wanted.
func TestStartIsCheap(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", `{{range .GoFiles}}{{$.ImportPath}} {{$.Dir}}/{{.}}
{{end}}`, "./cmd/phux-agent").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for line := range strings.Lines(string(out)) {
		pkg, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(pkg, module) {
			continue
		}
		files++
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
				ast.Inspect(g, func(n ast.Node) bool {
					if _, later := n.(*ast.FuncLit); later {
						return false
					}
					if call, ok := n.(*ast.CallExpr); ok {
						if s, ok := call.Fun.(*ast.SelectorExpr); ok && strings.HasPrefix(s.Sel.Name, "Must") {
							t.Errorf("%s: %s runs at every start; wrap it in sync.OnceValue", fset.Position(call.Pos()), s.Sel.Name)
						}
					}
					return true
				})
			}
		}
	}
	if files == 0 {
		t.Fatal("go list names no file of ours")
	}
}
