package syntax

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/go-python/gpython/ast"
	gparser "github.com/go-python/gpython/parser"
	"github.com/go-python/gpython/py"
)

// gpython parses with another parser in Go, of Python 3.4. It gives nil for what that rejects.
func gpython(text string) *ast.Module {
	tree, err := gparser.ParseString(text, py.ExecMode)
	if err != nil {
		return nil
	}
	module, _ := tree.(*ast.Module)
	return module
}

// TestGpythonAgrees takes the top-level statements of the test data, whole and with one token left out, and demands that what
// gpython accepts is accepted here too, as a statement of the same kind at the same line.
func TestGpythonAgrees(t *testing.T) {
	accepted, rejected := 0, 0
	compare := func(text string) {
		theirs, ours := gpython(text), parseText(text)
		if theirs == nil {
			if len(ours.Errors) > 0 {
				rejected++
			}
			return
		}
		if len(ours.Errors) > 0 {
			if !knownGap(text, ours.Errors[0].Message) {
				t.Errorf("gpython accepts %q, here %v", text, ours.Errors[0])
			}
			return
		}
		accepted++
		if len(theirs.Body) != len(ours.Body) {
			t.Errorf("%q: %d statements, gpython has %d", text, len(ours.Body), len(theirs.Body))
			return
		}
		for i, s := range ours.Body {
			kind, line := kindOf(s), ours.Source.Line(s.Span().Start)+1
			other := reflect.TypeOf(theirs.Body[i]).Elem().Name()
			if kind != other || line != theirs.Body[i].GetLineno() {
				t.Errorf("%q: %s at line %d, gpython has %s at line %d", text, kind, line, other, theirs.Body[i].GetLineno())
			}
		}
	}
	for _, name := range []string{"statements", "expressions", "functions", "strings", "numbers"} {
		file := parseFile(t, filepath.Join("testdata", "valid", name+".py"))
		for _, s := range file.Body {
			text := file.Source.Slice(wholeSpan(s)) + "\n"
			compare(text)
			lx := newLexer(text+sentinel, len(text))
			lx.run()
			for _, tok := range lx.toks {
				if tok.end > tok.start && tok.kind != kNewline && len(text) < 80 {
					compare(text[:tok.start] + text[tok.end:])
				}
			}
		}
	}
	t.Logf("both accept %d texts and reject %d", accepted, rejected)
	if accepted < 500 || rejected < 500 {
		t.Errorf("only %d texts accepted and %d rejected by both", accepted, rejected)
	}
}

// knownGap reports rules of CPython that gpython does not hold; and await was a name in Python 3.4.
func knownGap(text, message string) bool {
	for _, rule := range []string{
		"cannot assign to",
		"'tuple' is an illegal expression",
		"trailing comma not allowed",
		"parameter without a default follows",
		"named parameters must follow bare *",
		"cannot use starred expression here",
		"positional argument follows keyword argument",
	} {
		if strings.HasPrefix(message, rule) {
			return true
		}
	}
	return strings.Contains(text, "await")
}

// kindOf is the name of a statement's type in gpython.
func kindOf(s Stmt) string {
	if def, ok := s.(*FunctionDef); ok && def.Async {
		return "AsyncFunctionDef"
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", s), "*syntax.")
}

// TestGpythonIsNoParser shows why its parser cannot be used in place of this one: it rejects what training code is full of, and
// does not say where calls are.
func TestGpythonIsNoParser(t *testing.T) {
	for _, text := range []string{
		"f'{x}'\n",
		"x: int = 1\n",
		"def f(*args,): pass\n",
		"x = 1_000\n",
		"async def f(): await x\n",
	} {
		if file := parseText(text); len(file.Errors) > 0 {
			t.Errorf("%q: %v", text, file.Errors)
		}
		if gpython(text) != nil {
			t.Errorf("gpython accepts %q now", text)
		}
	}
	const text = "x = 1\ny = f(2)\n"
	module := gpython(text)
	if module == nil {
		t.Fatalf("gpython rejects %q", text)
	}
	call := module.Body[1].(*ast.Assign).Value
	if call.GetLineno() != 0 {
		t.Errorf("gpython says that the call is at line %d now", call.GetLineno())
	}
	ours := parseText(text).Body[1].(*Assign).Value.(*Call)
	if got := parseText(text).Source.Slice(ours.At); got != "f(2)" {
		t.Errorf("the call is %q", got)
	}
}
