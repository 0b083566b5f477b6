package pyscan

import (
	"cmp"
	"slices"
	"sync"

	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// bodies are the bodies of all scopes but the module's own, by their start. They lie in each other or apart. Made when first asked for:
// a file may have a hundred thousand.
type bodies struct {
	once sync.Once
	all  []body
}

type body struct {
	source.Span
	scope *Scope
}

// ScopeAt is the innermost scope whose body holds a node.
func ScopeAt(m *Module, node syntax.Node) *Scope {
	b := &m.bodies
	b.once.Do(func() {
		m.Scopes(func(scope *Scope) {
			if span, ok := scope.span(); ok {
				b.all = append(b.all, body{span, scope})
			}
		})
		slices.SortStableFunc(b.all, func(a, b body) int { return cmp.Compare(a.Start, b.Start) })
	})
	at := node.Span()
	// The last body that starts no later lies inside of all that hold the node, or beside the node in one of them.
	next, _ := slices.BinarySearchFunc(b.all, at.Start+1, func(one body, start uint32) int { return cmp.Compare(one.Start, start) })
	if next == 0 {
		return m.Root
	}
	scope := b.all[next-1].scope
	for ; scope != m.Root; scope = scope.Parent {
		if span, ok := scope.span(); ok && span.Contains(at) {
			break
		}
	}
	return scope
}

// span is the text of a body, with the decorators of its first statement; false for a module and where there is none.
func (s *Scope) span() (source.Span, bool) {
	if s.Node == nil {
		return source.Span{}, false
	}
	span := s.Node.Span()
	if lambda, ok := s.Node.(*syntax.Lambda); ok {
		if lambda.Body == nil {
			return span, false
		}
		return lambda.Body.Span(), true
	}
	statements := s.Body()
	if len(statements) == 0 {
		return span, false
	}
	var decorators []syntax.Expr
	switch first := statements[0].(type) {
	case *syntax.FunctionDef:
		decorators = first.Decorators
	case *syntax.ClassDef:
		decorators = first.Decorators
	}
	span.Start = statements[0].Span().Start
	if len(decorators) > 0 {
		span.Start = min(span.Start, decorators[0].Span().Start)
	}
	return span, true
}
