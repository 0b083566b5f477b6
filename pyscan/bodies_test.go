package pyscan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan/syntax"
	"golang.org/x/tools/txtar"
)

// TestScopeAt holds the search among all bodies against the definition: from the module inwards, whatever body holds the node. It does so
// for every node of every case of a rule and of every program below, whole, cut off and without their colons and brackets.
func TestScopeAt(t *testing.T) {
	programs := []string{
		"def f(a=lambda: 0, *, b=lambda: (lambda: 1)):\n    @(lambda g: lambda: g)\n    @d\n    def g(): return 1\n    return lambda: f\n",
		"class A(B, k=lambda: 1):\n    @p\n    class C: x = lambda: 0\n    y = f(a=lambda: 1, *[lambda: 2])\nz = {lambda: 1: lambda: 2}\n",
		"f = lambda: lambda: lambda x=lambda: 1: x\n@d\nasync def g(): pass; h = lambda: 1\n",
	}
	cases, err := filepath.Glob("../rules/*/*.txtar")
	if err != nil || len(cases) < 50 {
		t.Fatalf("%d cases of rules (%v)", len(cases), err)
	}
	for _, name := range cases {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range txtar.Parse(text).Files {
			if strings.HasSuffix(file.Name, ".py") {
				programs = append(programs, string(file.Data))
			}
		}
	}
	asked, inside := 0, 0
	for _, program := range programs {
		for _, text := range []string{program, program[:len(program)/2], strings.ReplaceAll(program, ":\n", "\n"), strings.ReplaceAll(program, ")", "")} {
			m := New(syntax.Parse(&source.File{Path: "a.py", Kind: source.Python, Text: []byte(text)}))
			for _, stmt := range m.Tree.Body {
				syntax.Inspect(stmt, func(n syntax.Node) bool {
					got, want := ScopeAt(m, n), descend(m.Root, n)
					if got != want {
						t.Fatalf("%T at %v lies in %s, want %s:\n%s", n, n.Span(), got.Name, want.Name, text)
					}
					asked++
					if got != m.Root {
						inside++
					}
					return true
				})
			}
		}
	}
	if inside < 10_000 {
		t.Errorf("of %d nodes only %d lie in a function or class", asked, inside)
	}
}

func descend(scope *Scope, node syntax.Node) *Scope {
	for _, child := range scope.Children {
		if span, ok := child.span(); ok && span.Contains(node.Span()) {
			return descend(child, node)
		}
	}
	return scope
}
