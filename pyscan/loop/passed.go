package loop

import (
	"slices"

	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// answered gives the conditions under which a function of the project answers a test, where it does nothing but that and the test is one
// of a boundary: self.due(i). Nil for any other call.
func (b *builder) answered(call *syntax.Call, negated bool, depth int) []Cond {
	f := b.link.Called(b.link.Expand(b.link.Eval(b.scope, b.frame, call.Func)))
	if f == nil || f.Scope.Kind != pyscan.FuncScope || len(b.active) > 2*maxSplice || slices.Contains(b.active, f.Scope) {
		return nil
	}
	returns := f.Scope.Returns()
	if len(returns) != 1 || returns[0].Value == nil || len(f.Scope.Yields()) > 0 || !slices.Contains(f.Scope.Body(), syntax.Stmt(returns[0])) {
		return nil
	}
	frame := b.link.Enter(f, call, b.scope, b.frame)
	if frame == nil {
		return nil
	}
	inner := *b
	inner.scope, inner.frame = f.Scope, frame
	inner.active = append(b.active[:len(b.active):len(b.active)], f.Scope)
	said := inner.conditions(returns[0].Value, negated, depth+1)
	if Guard(said).turns() {
		return said
	}
	return nil
}

// turns reports whether a guard is about a boundary, its opposite among them.
func (g Guard) turns() bool {
	return slices.ContainsFunc(g, func(c Cond) bool { return c.Kind == Modulo || c.Kind == SyncFlag || c.Kind == LastOf })
}

// passed gives the conditions of what the caller hands over for a parameter that is tested: step(batch, (i + 1) % n == 0). Nil
// where that says no more than the parameter's own name.
func (b *builder) passed(def *pyscan.Def, negated bool, depth int) []Cond {
	scope, e := given(b.scope, b.frame, def)
	if e == nil {
		scope, e = left(b.scope, b.frame, def)
	}
	if e == nil {
		return nil
	}
	switch e := e.(type) {
	case *syntax.Constant:
		if e.Kind != syntax.TrueConstant && e.Kind != syntax.FalseConstant {
			return nil // of a number, a text or None the function may test more than that it is there
		}
	case *syntax.Name, *syntax.Compare, *syntax.BoolOp, *syntax.UnaryOp, *syntax.BinOp, *syntax.Attribute, *syntax.Call:
	default:
		return nil
	}
	outer := *b
	outer.scope, outer.frame = scope, nil
	said := outer.conditions(e, negated, depth+1)
	for _, c := range said {
		if c.Kind == Flag || c.Kind == UnknownCond {
			return nil
		}
	}
	return said
}

// given is the argument that the caller of a function hands over for a parameter, with the scope it stands in; nil where it is
// not known.
func given(scope *pyscan.Scope, frame *pyscan.Frame, def *pyscan.Def) (*pyscan.Scope, syntax.Expr) {
	if def.Kind != pyscan.ParamDef || frame == nil || frame.Scope != scope || frame.Caller.Module == nil {
		return nil, nil
	}
	call, ok := frame.Caller.Node.(*syntax.Call)
	if !ok {
		return nil, nil
	}
	outer := pyscan.ScopeAt(frame.Caller.Module, call)
	position := def.Param()
	if frame.Self != nil {
		position--
	}
	for _, k := range call.Keywords {
		if k.Arg == scope.Params[def.Param()].Name {
			return outer, k.Value
		}
	}
	if position < 0 || position >= len(call.Args) {
		return nil, nil
	}
	for _, arg := range call.Args[:position+1] {
		if _, star := arg.(*syntax.Starred); star {
			return nil, nil
		}
	}
	return outer, call.Args[position]
}

// left is the default that a parameter has where the caller of its function certainly hands nothing over for it.
func left(scope *pyscan.Scope, frame *pyscan.Frame, def *pyscan.Def) (*pyscan.Scope, syntax.Expr) {
	if def.Kind != pyscan.ParamDef || frame == nil || frame.Scope != scope || frame.Caller.Module == nil || scope.Parent == nil {
		return nil, nil
	}
	call, ok := frame.Caller.Node.(*syntax.Call)
	if !ok || slices.ContainsFunc(call.Keywords, func(k *syntax.Keyword) bool { return k.Arg == "" || k.Arg == scope.Params[def.Param()].Name }) {
		return nil, nil
	}
	position := def.Param()
	if frame.Self != nil {
		position--
	}
	if len(call.Args) > position || slices.ContainsFunc(call.Args, func(arg syntax.Expr) bool { _, star := arg.(*syntax.Starred); return star }) {
		return nil, nil
	}
	return scope.Parent, scope.Params[def.Param()].Default
}
