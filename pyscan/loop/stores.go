package loop

import (
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
	"slices"
)

// subscript is out["loss"]: what was last stored under the same subscript before this use, else what the container is.
func (s *scaling) subscript(scope *pyscan.Scope, frame *pyscan.Frame, e *syntax.Subscript, depth int) pyscan.Truth {
	text := scope.Module.File.Slice(e.Span())
	var store syntax.Stmt
	divided := pyscan.No
	before := e.Span().Start
	s.statements(scope, func(stmt syntax.Stmt) {
		if stmt.Span().End > before {
			return
		}
		switch stmt := stmt.(type) {
		case *syntax.Assign:
			for _, target := range stmt.Targets {
				if scope.Module.File.Slice(target.Span()) == text {
					store, divided = stmt, pyscan.No
				}
			}
		case *syntax.AugAssign:
			if scope.Module.File.Slice(stmt.Target.Span()) == text {
				store, divided = stmt, pyscan.No
			}
		case *syntax.ExprStmt:
			if of, by, factor := inPlaceScale(stmt.Value); of != nil && scope.Module.File.Slice(of.Span()) == text {
				if factor {
					divided = divided.Or(s.factor(scope, frame, by))
				} else {
					divided = divided.Or(s.divisor(scope, frame, by))
				}
			}
		}
	})
	is := pyscan.Maybe
	switch store := store.(type) {
	case nil:
		is = s.expr(scope, frame, e.Value, depth-1)
	case *syntax.Assign:
		is = s.expr(scope, frame, store.Value, depth-1)
	case *syntax.AugAssign:
		is = s.expr(scope, frame, store.Target, depth-1)
		switch store.Op {
		case syntax.Div:
			is = is.Or(s.divisor(scope, frame, store.Value))
		case syntax.Mult:
			is = is.Or(s.factor(scope, frame, store.Value))
		case syntax.Add, syntax.Sub:
			is = s.sum(is, s.expr(scope, frame, store.Value, depth-1))
		default:
			is = pyscan.Maybe
		}
	}
	return is.Or(divided)
}

// inPlace looks for `loss.div_(n)` as a statement of its own, between a definition and its use.
func (s *scaling) inPlace(scope *pyscan.Scope, frame *pyscan.Frame, e *syntax.Name, def *pyscan.Def) pyscan.Truth {
	if def.Node == nil {
		return pyscan.No
	}
	answer := pyscan.No
	s.statements(scope, func(stmt syntax.Stmt) {
		one, ok := stmt.(*syntax.ExprStmt)
		if !ok || stmt.Span().Start < def.Node.Span().End || stmt.Span().End > e.Span().Start {
			return
		}
		of, by, factor := inPlaceScale(one.Value)
		if of == nil || pyscan.Path(of) != e.ID {
			return
		}
		if factor {
			answer = answer.Or(s.factor(scope, frame, by))
		} else {
			answer = answer.Or(s.divisor(scope, frame, by))
		}
	})
	return answer
}

// inPlaceScale takes x.div_(n) and x.mul_(n) apart.
func inPlaceScale(e syntax.Expr) (of, by syntax.Expr, factor bool) {
	call, ok := e.(*syntax.Call)
	if !ok || len(call.Args) == 0 {
		return nil, nil, false
	}
	attr, ok := call.Func.(*syntax.Attribute)
	if !ok || attr.Attr != "div_" && attr.Attr != "mul_" {
		return nil, nil, false
	}
	return attr.Value, call.Args[0], attr.Attr == "mul_"
}

// statements visits the statements of a function in the order of its text; of the function that the loop stands in, only
// those of the loop.
func (s *scaling) statements(scope *pyscan.Scope, visit func(syntax.Stmt)) {
	body := scope.Body()
	if l := s.window.Micro; l.Node != nil && l.Scope == scope {
		body = []syntax.Stmt{l.Node}
	}
	for _, stmt := range body {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.FunctionDef, *syntax.ClassDef:
				return false
			case syntax.Stmt:
				visit(n)
			}
			return true
		})
	}
}

// hooked reports whether the file registers a hook on gradients that scales them, or one that cannot be read.
func hooked(scope *pyscan.Scope, link Linker) bool {
	if scope == nil {
		return false
	}
	m := scope.Module
	for _, site := range slices.Concat(m.CallsOf("register_hook"), m.CallsOf("register_post_accumulate_grad_hook")) {
		call, at := site.Call, site.Scope
		if len(call.Args) == 0 {
			continue
		}
		known := true
		for _, one := range alternatives(link.Expand(link.Eval(at, nil, call.Args[0]))) {
			f := link.Called(one)
			if f == nil {
				known = false
			} else if f.Scope.Node != nil && divides(f.Scope.Node) {
				return true
			}
		}
		if !known {
			return true
		}
	}
	return false
}

// divides reports whether a division or multiplication stands in a function.
func divides(node syntax.Node) bool {
	found := false
	syntax.Inspect(node, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.BinOp:
			found = found || n.Op == syntax.Div || n.Op == syntax.Mult
		case *syntax.AugAssign:
			found = found || n.Op == syntax.Div || n.Op == syntax.Mult
		case *syntax.Call:
			switch pyscan.LastName(n.Func) {
			case "div", "div_", "mul", "mul_", "divide", "multiply", "true_divide":
				found = true
			}
		}
		return !found
	})
	return found
}
