package trainvet

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestNothingCompiledAtStart holds that no package compiles a regular expression or a template before main: a program that starts on every
// commit would pay for all of them each time.
func TestNothingCompiledAtStart(t *testing.T) {
	slow := map[string]bool{"regexp.MustCompile": true, "regexp.MustCompilePOSIX": true, "template.Must": true}
	files, seen := token.NewFileSet(), 0
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && name != "." || entry.Name() == "testdata" || entry.Name() == "editors"),
			entry.IsDir() && (filepath.ToSlash(name) == "lint/linttest" || filepath.ToSlash(name) == "cmd/gen"):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		seen++
		for _, decl := range file.Decls {
			if global, ok := decl.(*ast.GenDecl); !ok || global.Tok != token.VAR {
				continue
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncLit:
					return false // called later
				case *ast.SelectorExpr:
					if of, ok := n.X.(*ast.Ident); ok && slow[of.Name+"."+n.Sel.Name] {
						t.Errorf("%s: %s.%s runs before main; see source.Pattern", files.Position(n.Pos()), of.Name, n.Sel.Name)
					}
				}
				return true
			})
		}
		return nil
	})
	if err != nil || seen < 100 {
		t.Fatal(seen, "files were read:", err)
	}
}
