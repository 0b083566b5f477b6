package loop

import (
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// Source is a part of what a value is computed from: a call, or a multiplication or division.
type Source struct {
	Node  syntax.Expr // *syntax.Call or *syntax.BinOp, or the value of an augmented assignment
	Stmt  *syntax.AugAssign
	Scope *pyscan.Scope
	Frame *pyscan.Frame

	// Iterated: it makes what a loop runs over, which is data as a rule: no gradient flows through it.
	Iterated bool
}

// Limits of the search for what a loss is made of.
const (
	maxSources     = 400 // parts
	maxSourceDepth = 24  // definitions and calls followed into one another
)

// Sources lists what the loss of a backward is computed from, as far as names can be followed: through assignments, the arguments of
// calls and the results of project functions. What a model does inside its forward is left out, and so is what was
// detached.
func Sources(backward *Event, link Linker) []Source {
	if backward.Loss == nil {
		return nil
	}
	s := &sources{link: link, seen: map[sourceKey]bool{}}
	s.expr(backward.Scope, backward.Frame, backward.Loss, maxSourceDepth)
	return s.list
}

type sourceKey struct {
	node  any
	frame *pyscan.Frame
}

type sources struct {
	link Linker
	list []Source
	seen map[sourceKey]bool

	iterated bool
}

func (s *sources) expr(scope *pyscan.Scope, frame *pyscan.Frame, e syntax.Expr, depth int) {
	if e == nil || depth <= 0 || len(s.list) >= maxSources || s.seen[sourceKey{e, frame}] {
		return
	}
	s.seen[sourceKey{e, frame}] = true
	switch e := e.(type) {
	case *syntax.Name:
		s.def(scope, frame, scope.Def(e), depth-1)
	case *syntax.Attribute:
		if def := scope.AttrDef(e); def != nil {
			s.def(scope, frame, def, depth-1)
			return
		}
		s.expr(scope, frame, e.Value, depth-1)
	case *syntax.Call:
		s.call(scope, frame, e, depth)
	case *syntax.BinOp:
		if e.Op == syntax.Mult || e.Op == syntax.Div {
			s.list = append(s.list, Source{Node: e, Scope: scope, Frame: frame, Iterated: s.iterated})
		}
		s.expr(scope, frame, e.Left, depth-1)
		s.expr(scope, frame, e.Right, depth-1)
	case *syntax.IfExp:
		s.expr(scope, frame, e.Body, depth-1)
		s.expr(scope, frame, e.OrElse, depth-1)
	case *syntax.Compare, *syntax.Constant, *syntax.Lambda:
	case *syntax.Subscript:
		s.expr(scope, frame, e.Value, depth-1)
	default:
		syntax.Inspect(e, func(n syntax.Node) bool {
			if inner, ok := n.(syntax.Expr); ok && n != syntax.Node(e) {
				s.expr(scope, frame, inner, depth-1)
				return false
			}
			return true
		})
	}
}

func (s *sources) call(scope *pyscan.Scope, frame *pyscan.Frame, call *syntax.Call, depth int) {
	if attr, ok := call.Func.(*syntax.Attribute); ok && (attr.Attr == "detach" || attr.Attr == "item" || attr.Attr == "tolist") && len(call.Args) == 0 {
		return
	}
	s.list = append(s.list, Source{Node: call, Scope: scope, Frame: frame, Iterated: s.iterated})
	for _, arg := range call.Args {
		s.expr(scope, frame, arg, depth-1)
	}
	for _, k := range call.Keywords {
		s.expr(scope, frame, k.Value, depth-1)
	}
	if attr, ok := call.Func.(*syntax.Attribute); ok {
		s.expr(scope, frame, attr.Value, depth-1)
	}
	for _, one := range alternatives(s.link.Expand(s.link.Eval(scope, frame, call.Func))) {
		f, ok := one.(*pyscan.Func) // an instance's forward is left out
		if !ok || f.Scope.Name == "forward" {
			continue
		}
		inner := s.link.Enter(f, call, scope, frame)
		if inner == nil {
			continue
		}
		if lambda, ok := f.Scope.Node.(*syntax.Lambda); ok {
			s.expr(f.Scope, inner, lambda.Body, depth-1)
			continue
		}
		for _, r := range f.Scope.Returns() {
			s.expr(f.Scope, inner, r.Value, depth-1)
		}
	}
}

func (s *sources) def(scope *pyscan.Scope, frame *pyscan.Frame, def *pyscan.Def, depth int) {
	if def == nil || depth <= 0 || s.seen[sourceKey{def, frame}] {
		return
	}
	s.seen[sourceKey{def, frame}] = true
	switch def.Kind {
	case pyscan.AssignDef, pyscan.UnpackDef:
		s.expr(scope, frame, def.Value, depth)
	case pyscan.IterDef:
		outer := s.iterated
		s.iterated = true
		s.expr(scope, frame, def.Value, depth)
		s.iterated = outer
	case pyscan.AugDef:
		if aug, ok := def.Stmt.(*syntax.AugAssign); ok && (def.Op == syntax.Div || def.Op == syntax.Mult) {
			s.list = append(s.list, Source{Node: def.Value, Stmt: aug, Scope: scope, Frame: frame, Iterated: s.iterated})
		}
		s.def(scope, frame, def.Prev(), depth)
		s.expr(scope, frame, def.Value, depth)
	case pyscan.PhiDef:
		for _, alternative := range def.Alternatives() {
			s.def(scope, frame, alternative, depth)
		}
	case pyscan.ParamDef: // what the caller passes
		if outer, e := given(scope, frame, def); e != nil {
			s.expr(outer, nil, e, depth)
		}
	}
}

// IsWorldSize reports whether an expression is the number of ranks, by what makes it or by its name.
func IsWorldSize(link Linker, scope *pyscan.Scope, frame *pyscan.Frame, e syntax.Expr) bool {
	return isWorldSize(link, scope, frame, e)
}

// Place is where a finding about an event stands: the event itself where it is in the file of the loop, else the call in
// that file that leads to it.
func (l *Loop) Place(e *Event) source.Place {
	if len(e.Via) > 0 && e.At.Path != l.Function().Scope.Module.File.Path {
		return e.Via[0]
	}
	return e.At
}
