package distributed

import (
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// paired reports whether the ranks that do not reach a call may meet it elsewhere: in the other branch, after the
// statement, or (the main process first) under the opposite test in the same function or class, closures included.
func paired(pass *lint.Pass, scope *pyscan.Scope, test *guard, call syntax.Node, name string) bool {
	if waits(pass, scope, otherBranch(test, call), 2) {
		return true
	}
	around := outermost(scope)
	made := underTests(pass, around, 2)[!test.main]
	return made.names[name] > 0 || made.waits || byRank(pass, around, name)
}

// otherBranch is what the ranks that do not reach a call run instead of it, as far as it stands in the same statement.
func otherBranch(test *guard, call syntax.Node) []syntax.Stmt {
	if test.rest || workspace.Within(test.stmt.OrElse, call) {
		return test.stmt.Body
	}
	return test.stmt.OrElse
}

// outermost is the class or else the function of the module in which a scope lies.
func outermost(scope *pyscan.Scope) *pyscan.Scope {
	if class := scope.EnclosingClass(); class != nil {
		return class
	}
	for scope.Kind != pyscan.ModuleScope && scope.Parent != nil && scope.Parent.Kind != pyscan.ModuleScope {
		scope = scope.Parent
	}
	return scope
}

// maxCallers bounds how many callers up elsewhere looks.
const maxCallers = 3

// elsewhere reports whether the ranks that do not reach a collective may meet it in another function than the one it
// stands in: in the other branch where that is called or handed over, or in what its callers do besides.
func elsewhere(pass *lint.Pass, scope *pyscan.Scope, test *guard, name string) bool {
	seen := map[*pyscan.Scope]bool{}
	var look func(scope *pyscan.Scope, depth int) bool
	look = func(scope *pyscan.Scope, depth int) bool {
		if scope.Kind != pyscan.FuncScope || seen[scope] {
			return false
		}
		seen[scope] = true
		uses, without := usesOf(pass, scope), 0
		for _, use := range uses {
			around := rankTest(pass, use.scope, use.node)
			switch {
			case around != nil && around.main != test.main: // the ranks that would pass the test do not come here
				without++
				continue
			case around != nil && paired(pass, use.scope, around, use.node, name), chosen(pass, use):
				return true
			case around == nil && outermost(use.scope) != outermost(scope) &&
				metBeside(pass, outermost(use.scope), test.main, name):
				return true
			}
			if depth > 0 && look(use.scope, depth-1) {
				return true
			}
		}
		if len(uses) == 0 {
			return metInModule(pass, scope, test.main, name)
		}
		return without == len(uses)
	}
	return look(scope, maxCallers)
}

// metBeside reports whether a function that all ranks run brings those that do not pass the test to a collective: by
// itself or in what it calls.
func metBeside(pass *lint.Pass, around *pyscan.Scope, main bool, name string) bool {
	by := underTests(pass, around, 2)
	others, same := by[!main], by[main]
	return others.names[name] > 0 && others.names[name] >= same.names[name] ||
		others.waits && !same.waits || byRank(pass, around, name)
}

// metInModule is metBeside for a function without known callers: the other half may be any function of the module.
func metInModule(pass *lint.Pass, scope *pyscan.Scope, main bool, name string) bool {
	found := false
	own := outermost(scope)
	scope.Module.Scopes(func(inner *pyscan.Scope) {
		if !found && inner.Kind == pyscan.FuncScope && outermost(inner) == inner && inner != own {
			_, others := surplus(underTests(pass, inner, 1), main)
			found = others.names[name] > 0
		}
	})
	return found
}

// use is a place where a function is called, or named to be called by another one.
type use struct {
	scope *pyscan.Scope
	node  syntax.Node
}

// usesOf are the calls of a function in the project, and the places of its own module that hand it over.
func usesOf(pass *lint.Pass, scope *pyscan.Scope) []use {
	var list []use
	called := map[syntax.Node]bool{}
	for _, call := range pass.Callers(scope) {
		list = append(list, use{call.Scope, call.Call})
		called[call.Call.Func] = true
	}
	for node := range scope.Module.Tree.All() {
		e, ok := node.(syntax.Expr)
		if !ok || called[node] || pyscan.LastName(e) != scope.Name {
			continue
		}
		inner := pyscan.ScopeAt(scope.Module, e)
		for _, one := range workspace.Alternatives(pass.Eval(inner, nil, e)) {
			if f, ok := one.(*pyscan.Func); ok && f.Scope == scope {
				list = append(list, use{inner, e})
				break
			}
		}
	}
	return list
}

// chosen reports whether the rank decides which function is taken where one is named: leader if rank == 0 else
// follower.
func chosen(pass *lint.Pass, use use) bool {
	stmts := workspace.Around(use.scope, use.node)
	if len(stmts) == 0 || workspace.Blocks(stmts[len(stmts)-1]) != nil {
		return false
	}
	found := false
	syntax.Inspect(stmts[len(stmts)-1], func(n syntax.Node) bool {
		var by syntax.Expr
		switch n := n.(type) {
		case *syntax.IfExp:
			by = n.Test
		case *syntax.Subscript:
			by = n.Slice
		}
		if by != nil && n.Span().Contains(use.node.Span()) && !by.Span().Contains(use.node.Span()) {
			found = found || mentionsRank(pass, use.scope, by, 2)
		}
		return !found
	})
	return found
}

// met is what some ranks meet in a function or class: how often each collective stands there (in a loop, any number of
// times), and whether a function called there holds one.
type met struct {
	names map[string]int
	waits bool
}

// anyNumber counts a collective in a loop.
const anyNumber = 1 << 10

// underTests says what is met under tests of the rank, by whether the main process is the one that does. What functions
// that all ranks call meet by themselves counts too, less what is paired there.
func underTests(pass *lint.Pass, around *pyscan.Scope, depth int) map[bool]*met {
	type question struct {
		around *pyscan.Scope
		depth  int
	}
	return lint.Once(pass, question{around, depth}, func() map[bool]*met {
		by := map[bool]*met{true: {names: map[string]int{}}, false: {names: map[string]int{}}}
		for _, stmt := range around.Body() {
			syntax.Inspect(stmt, func(n syntax.Node) bool {
				switch n := n.(type) {
				case *syntax.FunctionDef, *syntax.ClassDef:
					return around.Kind != pyscan.ModuleScope
				case *syntax.Call:
					countCall(pass, by, around, n, depth)
				}
				return true
			})
		}
		return by
	})
}

func countCall(pass *lint.Pass, by map[bool]*met, around *pyscan.Scope, call *syntax.Call, depth int) {
	inner := pyscan.ScopeAt(around.Module, call)
	test := rankTest(pass, inner, call)
	if test != nil {
		if name, _ := collective(pass, inner, nil, call); name != "" {
			by[test.main].names[name]++
			if workspace.InLoop(inner, call) {
				by[test.main].names[name] = anyNumber
			}
		}
		by[test.main].waits = by[test.main].waits || waitsIn(pass, inner, call, 2)
		return
	}
	if depth <= 0 {
		return
	}
	f := pass.Called(pass.Expand(pass.Eval(inner, nil, call.Func)))
	if f == nil || f.Scope.Kind != pyscan.FuncScope || outermost(f.Scope) == around {
		return
	}
	for _, main := range []bool{true, false} {
		more, _ := surplus(underTests(pass, f.Scope, depth-1), main)
		for name, n := range more.names {
			by[main].names[name] += n
		}
	}
}

// surplus is what the ranks of one side meet more often than the others, and the other way round.
func surplus(by map[bool]*met, main bool) (these, others met) {
	less := func(a, b *met) met {
		rest := met{names: map[string]int{}, waits: a.waits && !b.waits}
		for name, n := range a.names {
			if n > b.names[name] {
				rest.names[name] = n - b.names[name]
			}
		}
		return rest
	}
	return less(by[main], by[!main]), less(by[!main], by[main])
}

// byRank reports whether a collective stands under a test that goes by the rank in a way that rank does not read.
func byRank(pass *lint.Pass, around *pyscan.Scope, name string) bool {
	type question struct{ around *pyscan.Scope }
	names := lint.Once(pass, question{around}, func() map[string]bool {
		names := map[string]bool{}
		under := func(block syntax.Node) {
			syntax.Inspect(block, func(n syntax.Node) bool {
				if call, ok := n.(*syntax.Call); ok {
					scope := pyscan.ScopeAt(around.Module, call)
					if name, _ := collective(pass, scope, nil, call); name != "" {
						names[name] = true
					}
					names[inCall] = names[inCall] || waitsIn(pass, scope, call, 2)
				}
				return true
			})
		}
		for _, stmt := range around.Body() {
			syntax.Inspect(stmt, func(n syntax.Node) bool {
				if test := testOf(n); test != nil {
					scope := pyscan.ScopeAt(around.Module, test)
					if rank(pass, scope, test) == 0 && mentionsRank(pass, scope, test, 2) {
						under(n)
					}
				}
				return true
			})
		}
		return names
	})
	return names[name] || names[inCall]
}

// inCall stands for a collective in a function that is called.
const inCall = "()"

// testOf is what decides in a statement or expression which part of it runs; nil where nothing does.
func testOf(n syntax.Node) syntax.Expr {
	switch n := n.(type) {
	case *syntax.If:
		return n.Test
	case *syntax.While:
		return n.Test
	case *syntax.IfExp:
		return n.Test
	case *syntax.Match:
		return n.Subject
	}
	return nil
}

// mentionsRank reports whether the rank is part of an expression, or of what the names in it were made of.
func mentionsRank(pass *lint.Pass, scope *pyscan.Scope, e syntax.Expr, depth int) bool {
	found := false
	syntax.Inspect(e, func(n syntax.Node) bool {
		part, ok := n.(syntax.Expr)
		if !ok || found {
			return !found
		}
		attr, isAttr := n.(*syntax.Attribute)
		found = isRank(pass, scope, part, 1) || rank(pass, scope, part) != 0 || isAttr && rankAttributes[attr.Attr]
		if call, ok := n.(*syntax.Call); ok && !found { // what a function that waits on some ranks tells its caller
			f := pass.Called(pass.Expand(pass.Eval(scope, nil, call.Func)))
			if f != nil && f.Scope.Kind == pyscan.FuncScope {
				by := underTests(pass, f.Scope, 0)
				found = len(by[true].names)+len(by[false].names) > 0
			}
		}
		if name, ok := n.(*syntax.Name); ok && !found && depth > 0 {
			for _, def := range scope.Defs(name.ID) {
				found = found || def.Kind == pyscan.AssignDef && def.Value != nil && mentionsRank(pass, scope, def.Value, depth-1)
			}
		}
		return !found
	})
	return found
}

// rankAttributes are what objects call the number of their process.
var rankAttributes = map[string]bool{"rank": true, "global_rank": true, "local_rank": true, "process_index": true}

// waits reports whether statements hold a collective, themselves or in functions they call.
func waits(pass *lint.Pass, scope *pyscan.Scope, block []syntax.Stmt, depth int) bool {
	found := false
	for _, stmt := range block {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			if call, ok := n.(*syntax.Call); ok && !found {
				name, _ := collective(pass, scope, nil, call)
				found = name != "" || waitsIn(pass, scope, call, depth)
			}
			return !found
		})
	}
	return found
}

// waitsIn is waits for what a call runs: the function that is called, and those that it is given.
func waitsIn(pass *lint.Pass, scope *pyscan.Scope, call *syntax.Call, depth int) bool {
	if depth <= 0 {
		return false
	}
	type question struct {
		scope *pyscan.Scope
		depth int
	}
	runs := func(e syntax.Expr) bool {
		f := pass.Called(pass.Expand(pass.Eval(scope, nil, e)))
		return f != nil && f.Scope.Kind == pyscan.FuncScope &&
			lint.Once(pass, question{f.Scope, depth}, func() bool { return waits(pass, f.Scope, f.Scope.Body(), depth-1) })
	}
	if runs(call.Func) {
		return true
	}
	for _, arg := range call.Args {
		switch arg.(type) {
		case *syntax.Name, *syntax.Attribute:
			if runs(arg) {
				return true
			}
		}
	}
	return false
}

// unknownOther is a call in the other branch of which nothing is known, and which may so be the other half: of a
// function that cannot be found, or of a method that is given what the collective is given.
func unknownOther(pass *lint.Pass, scope *pyscan.Scope, test *guard, call *syntax.Call) *syntax.Call {
	given := map[string]bool{}
	for _, arg := range call.Args {
		if path := pyscan.Path(arg); path != "" {
			given[path] = true
		}
	}
	var found *syntax.Call
	for _, stmt := range otherBranch(test, call) {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			one, ok := n.(*syntax.Call)
			if !ok || found != nil {
				return found == nil
			}
			callee := pass.Expand(pass.Eval(scope, nil, one.Func))
			if pass.Called(callee) != nil {
				return true
			}
			shares := false
			for _, arg := range one.Args {
				shares = shares || given[pyscan.Path(arg)]
			}
			switch callee := callee.(type) {
			case *pyscan.External:
				if shares && !waitsForNone(callee.Name) {
					found = one
				}
			case *pyscan.Class:
			default:
				if shares {
					found = one
				}
			}
			return found == nil
		})
	}
	return found
}

// waitsForNone reports whether a thing of a library is of one that makes no collectives of its own there.
func waitsForNone(name string) bool {
	top, rest, _ := strings.Cut(name, ".")
	switch top {
	case "builtins", "numpy", "logging", "os", "time", "json":
		return true
	}
	return top == "torch" && !strings.HasPrefix(rest, "distributed.")
}
