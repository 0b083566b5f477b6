package trainvet

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var boundRow = regexp.MustCompile("(?m)^\\| (.+?) \\| (\\d+)( [KM]B)? \\| `([\\w/]+)\\.(\\w+)` \\| (.*?) ?\\|$")

// TestBoundsAreTold holds the table of bounds in SECURITY.md against the constants and messages of the code.
func TestBoundsAreTold(t *testing.T) {
	text, err := os.ReadFile("SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "|---|---|---|---|\n")
	rows := boundRow.FindAllStringSubmatch(table, -1)
	if len(rows) < 30 || len(rows) != strings.Count(table, "\n") {
		t.Fatalf("%d of %d rows are understood", len(rows), strings.Count(table, "\n"))
	}
	for _, row := range rows {
		folder, name, message := row[4], row[5], row[6]
		value, source := constantOf(t, folder, name)
		if value == nil {
			t.Errorf("%s has no constant %s", folder, name)
			continue
		}
		unit := map[string]int64{"": 1, " KB": 1 << 10, " MB": 1 << 20}[row[3]]
		bound, _ := constant.Int64Val(value)
		if got := fmt.Sprint(bound / unit); got != row[2] || bound%unit != 0 {
			t.Errorf("%s.%s is %d, the table says %s%s", folder, name, bound, row[2], row[3])
		}
		if message != "" && !strings.Contains(source, message) {
			t.Errorf("%s never says %q", folder, message)
		}
	}
}

// constantOf evaluates a constant of a package, and gives the source of the package.
func constantOf(t *testing.T, folder, name string) (value constant.Value, source string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no package %s (%v)", folder, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source += string(text)
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok {
				for i, id := range spec.Names {
					if id.Name == name && i < len(spec.Values) {
						value = evaluate(spec.Values[i])
					}
				}
			}
			return true
		})
	}
	return value, source
}

// evaluate works out literals and what is made of them; nil for anything else.
func evaluate(e ast.Expr) constant.Value {
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0)
	case *ast.BinaryExpr:
		x, y := evaluate(e.X), evaluate(e.Y)
		if x == nil || y == nil {
			return nil
		}
		if e.Op == token.SHL {
			by, _ := constant.Uint64Val(y)
			return constant.Shift(x, e.Op, uint(by))
		}
		return constant.BinaryOp(x, e.Op, y)
	}
	return nil
}
