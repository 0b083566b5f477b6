package loop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// maxAtoms bounds how many different tests are tried against each other: every choice of them is looked at.
const maxAtoms = 11

// formula says whether a guard holds at a point: for one choice of what its tests give, in one micro-batch.
type formula func(point) bool

type point struct {
	tests uint32 // a bit for each atom
	micro int    // the micro-batch, counted from 0
}

// atom is a test that is not taken apart: what it is of, in a spelling that two places share where they ask the
// same.
type atom struct {
	key         string
	left, right string // of an equality or an order; right is "" of a value that is tested for itself
	equality    bool
	varies      bool         // it may be another from one iteration to the next
	usual       pyscan.Truth // how it comes out but for a moment: no exception, finite values, memory enough, in training
}

// logic reads guards as formulas over the tests in them, so that places behind the same tests, in separate ifs, are
// matched path by path.
type logic struct {
	link   Linker
	loop   *Loop // what is defined in it varies; nil: nobody asks
	strict bool  // what a call between two tests may change is not the same in both
	atoms  []atom
	phase  func(Cond) (offset int, known bool) // of a boundary that is counted through: how far on it holds
	period int
	moves  bool // what is being spelled varies
	fresh  int
	uses   int // of atoms
}

func (a *logic) guard(g Guard) formula {
	parts := make([]formula, len(g))
	for i, c := range g {
		parts[i] = a.cond(c)
	}
	return every(parts)
}

func every(parts []formula) formula {
	return func(p point) bool {
		return !slices.ContainsFunc(parts, func(f formula) bool { return !f(p) })
	}
}

func some(parts []formula) formula {
	return func(p point) bool { return slices.ContainsFunc(parts, func(f formula) bool { return f(p) }) }
}

func not(f formula) formula { return func(p point) bool { return !f(p) } }

func fixed(value bool) formula { return func(point) bool { return value } }

func always() formula { return fixed(true) }

func (a *logic) cond(c Cond) formula {
	if len(c.Any) > 0 {
		parts := make([]formula, len(c.Any))
		for i, g := range c.Any {
			parts[i] = a.guard(g)
		}
		return some(parts)
	}
	if a.phase != nil {
		if offset, known := a.phase(c); known {
			return func(p point) bool { return ((p.micro+offset)%a.period == 0) != c.Negated }
		}
	}
	from := len(a.atoms)
	f := a.leaf(c)
	if len(a.atoms) == from+1 {
		a.atoms[from].usual = usual(c)
	}
	if c.Fails {
		return not(f)
	}
	return f
}

func (a *logic) leaf(c Cond) formula {
	switch {
	case c.Arm != nil:
		return a.atom(atom{key: fmt.Sprintf("arm %p", c.Arm), varies: true})
	case c.Expr == nil || c.Scope == nil:
		return a.atom(atom{key: a.unlike(), varies: true})
	}
	return a.truth(c.Expr, c.Scope, c.Frame, 8)
}

// usual is how the test of a condition comes out in most iterations; Maybe where both are common.
func usual(c Cond) pyscan.Truth {
	is := pyscan.Maybe
	switch c.Kind {
	case Exception, Overflow, Memory, Evaluation:
		is = pyscan.No
	case Training, Available:
		is = pyscan.Yes
	}
	if c.Negated != c.Fails {
		return is.Not()
	}
	return is
}

func (a *logic) unlike() string {
	a.fresh++
	a.moves = true
	return fmt.Sprintf("? %d", a.fresh)
}

func (a *logic) atom(one atom) formula {
	a.uses++
	i := slices.IndexFunc(a.atoms, func(have atom) bool { return have.key == one.key })
	if i < 0 {
		i = len(a.atoms)
		a.atoms = append(a.atoms, one)
	}
	return func(p point) bool { return i < maxAtoms && p.tests&(1<<i) != 0 }
}

// never reports whether a guard contradicts itself: nothing under it happens.
func never(link Linker, g Guard) bool {
	if len(g) < 2 {
		return false
	}
	a := &logic{link: link, strict: true}
	f := a.guard(g)
	if a.uses == len(a.atoms) && !a.related() {
		return false
	}
	possible := false
	known := a.points(func(tests uint32) bool {
		possible = f(point{tests: tests})
		return !possible
	})
	return known && !possible
}

// related reports whether two of the tests are about the same value, so that one may contradict the other.
func (a *logic) related() bool {
	for i, x := range a.atoms {
		for _, y := range a.atoms[:i] {
			if x.left != "" && (x.left == y.left || x.left == y.right || x.right == y.left) {
				return true
			}
		}
	}
	return false
}

// points calls yield for each choice of tests that does not contradict itself. It reports false, and calls it for
// none, when there are too many tests.
func (a *logic) points(yield func(tests uint32) bool) bool {
	if len(a.atoms) > maxAtoms {
		return false
	}
	for tests := range uint32(1) << len(a.atoms) {
		if a.consistent(tests) && !yield(tests) {
			break
		}
	}
	return true
}

// consistent reports whether tests can come out that way together: nothing equals two constants, or is less than
// what it equals.
func (a *logic) consistent(tests uint32) bool {
	for i, x := range a.atoms {
		if tests&(1<<i) == 0 || x.left == "" {
			continue
		}
		for j, y := range a.atoms {
			if j == i || tests&(1<<j) == 0 || !x.equality {
				continue
			}
			switch {
			case y.equality && x.left == y.left && x.right != y.right && isLiteral(x.right) && isLiteral(y.right),
				!y.equality && y.right == "" && x.left == y.left && slices.Contains(falsy, x.right),
				!y.equality && (x.left == y.left && x.right == y.right || x.left == y.right && x.right == y.left):
				return false
			}
		}
	}
	return true
}

// common reports whether all tests come out as they do in most iterations.
func (a *logic) common(tests uint32) bool {
	for i, one := range a.atoms {
		if set := tests&(1<<i) != 0; one.usual == pyscan.Yes && !set || one.usual == pyscan.No && set {
			return false
		}
	}
	return true
}

var falsy = []string{"= None", "= False", "= 0", "= 0.0", `= ""`, "= ''"}

func isLiteral(key string) bool { return strings.HasPrefix(key, "= ") }

// truth takes an expression apart that is tested.
func (a *logic) truth(e syntax.Expr, scope *pyscan.Scope, frame *pyscan.Frame, depth int) formula {
	if depth > 0 {
		switch e := e.(type) {
		case *syntax.UnaryOp:
			if e.Op == syntax.Not {
				return not(a.truth(e.Operand, scope, frame, depth-1))
			}
		case *syntax.BoolOp:
			parts := make([]formula, len(e.Values))
			for i, value := range e.Values {
				parts[i] = a.truth(value, scope, frame, depth-1)
			}
			if e.Op == syntax.And {
				return every(parts)
			}
			return some(parts)
		case *syntax.NamedExpr:
			return a.truth(e.Value, scope, frame, depth-1)
		case *syntax.IfExp:
			test := a.truth(e.Test, scope, frame, depth-1)
			yes, no := a.truth(e.Body, scope, frame, depth-1), a.truth(e.OrElse, scope, frame, depth-1)
			return func(p point) bool { return test(p) && yes(p) || !test(p) && no(p) }
		case *syntax.Constant:
			switch e.Kind {
			case syntax.TrueConstant:
				return fixed(true)
			case syntax.FalseConstant, syntax.NoneConstant:
				return fixed(false)
			}
		case *syntax.Compare:
			return a.comparison(e, scope, frame, depth-1)
		case *syntax.BinOp:
			if e.Op == syntax.Mod {
				a.moves = false
				return not(a.relation(a.spell(e, scope, frame, depth-1), "= 0", true))
			}
		case *syntax.Name:
			if of, in, at := a.meant(e, scope, frame); of != nil {
				return a.truth(of, in, at, depth-1)
			}
		case *syntax.Attribute:
			if def := scope.AttrDef(e); def != nil && def.Kind == pyscan.AssignDef && len(def.Path()) == 0 && isPure(def.Value) {
				return a.truth(def.Value, scope, frame, depth-1)
			}
		case *syntax.Call:
			if name, ok := e.Func.(*syntax.Name); ok && name.ID == "bool" && len(e.Args) == 1 {
				return a.truth(e.Args[0], scope, frame, depth-1)
			}
		}
	}
	a.moves = false
	key := a.spell(e, scope, frame, depth)
	return a.atom(atom{key: key, left: key, varies: a.moves})
}

func (a *logic) comparison(e *syntax.Compare, scope *pyscan.Scope, frame *pyscan.Frame, depth int) formula {
	left := e.Left
	var parts []formula
	for i, right := range e.Comparators {
		a.moves = false
		x, y := a.spell(left, scope, frame, depth), a.spell(right, scope, frame, depth)
		left = right
		switch op := e.Ops[i]; op {
		case syntax.Eq, syntax.Is:
			parts = append(parts, a.relation(x, y, true))
		case syntax.NotEq, syntax.IsNot:
			parts = append(parts, not(a.relation(x, y, true)))
		case syntax.Lt:
			parts = append(parts, a.relation(x, y, false))
		case syntax.Gt:
			parts = append(parts, a.relation(y, x, false))
		case syntax.GtE:
			parts = append(parts, not(a.relation(x, y, false)))
		case syntax.LtE:
			parts = append(parts, not(a.relation(y, x, false)))
		case syntax.NotIn:
			parts = append(parts, not(a.atom(atom{key: x + " in " + y, varies: a.moves})))
		default:
			parts = append(parts, a.atom(atom{key: x + " in " + y, varies: a.moves}))
		}
	}
	return every(parts)
}

// relation is x == y, or x < y.
func (a *logic) relation(x, y string, equality bool) formula {
	if !equality {
		return a.atom(atom{key: x + " < " + y, left: x, right: y, varies: a.moves})
	}
	if isLiteral(x) || !isLiteral(y) && x > y {
		x, y = y, x
	}
	return a.atom(atom{key: x + " == " + y, left: x, right: y, equality: true, varies: a.moves})
}

// meant is what a name was assigned, or what the caller gives for a parameter, with where that is read; nil when no
// one expression tells.
func (a *logic) meant(e *syntax.Name, scope *pyscan.Scope, frame *pyscan.Frame) (syntax.Expr, *pyscan.Scope,
	*pyscan.Frame) {
	def, scope, frame := a.find(e, scope, frame)
	switch {
	case def == nil:
	case def.Kind == pyscan.AssignDef && def.Value != nil && len(def.Path()) == 0 && isPure(def.Value):
		return def.Value, scope, frame
	case def.Kind == pyscan.ParamDef && frame != nil && frame.Scope == scope && frame.From != nil:
		if _, given := given(scope, frame, def); given != nil {
			return given, frame.From, frame.In
		}
		if outer, left := left(scope, frame, def); left != nil {
			return left, outer, nil
		}
	}
	return nil, nil, nil
}

// find is the definition that a name has, in the function or in the one around it; nil when it has several there.
func (a *logic) find(e *syntax.Name, scope *pyscan.Scope, frame *pyscan.Frame) (*pyscan.Def, *pyscan.Scope,
	*pyscan.Frame) {
	if def := scope.Def(e); def != nil {
		return def, scope, frame
	}
	return closed(e.ID, scope, frame)
}

// closed is the one definition that a name has in the functions around a nested one, with where it is read.
func closed(name string, scope *pyscan.Scope, frame *pyscan.Frame) (*pyscan.Def, *pyscan.Scope, *pyscan.Frame) {
	for scope.Parent != nil && scope.Parent.Kind != pyscan.ModuleScope {
		if scope.Outer(name) {
			return nil, nil, nil
		}
		if scope.Kind == pyscan.FuncScope || scope.Kind == pyscan.LambdaScope {
			if frame != nil {
				frame = frame.Outer
			}
		}
		scope = scope.Parent
		if scope.Kind == pyscan.ClassScope {
			continue
		}
		if defs := scope.Defs(name); len(defs) > 0 {
			if len(defs) == 1 {
				return defs[0], scope, frame
			}
			return nil, nil, nil
		}
	}
	return nil, nil, nil
}

// isPure reports whether an expression gives the same wherever it is read while the names in it keep their values.
func isPure(e syntax.Expr) bool {
	switch e := e.(type) {
	case *syntax.Name, *syntax.Constant, *syntax.Attribute, *syntax.Subscript, *syntax.Compare, *syntax.BoolOp,
		*syntax.BinOp, *syntax.UnaryOp, *syntax.IfExp:
		return true
	case *syntax.Call:
		return pureCall(e)
	}
	return false
}

func pureCall(call *syntax.Call) bool {
	name, ok := call.Func.(*syntax.Name)
	if !ok {
		return false
	}
	switch name.ID {
	case "len", "isinstance", "hasattr", "callable", "int", "float", "bool", "abs", "min", "max", "round", "getattr",
		"issubclass", "str":
		return true
	}
	return false
}

// spell writes an expression so that two places have the same text where they mean the same value.
func (a *logic) spell(e syntax.Expr, scope *pyscan.Scope, frame *pyscan.Frame, depth int) string {
	if depth <= 0 {
		return a.unlike()
	}
	switch e := e.(type) {
	case *syntax.Constant:
		switch e.Kind {
		case syntax.NoneConstant:
			return "= None"
		case syntax.TrueConstant:
			return "= True"
		case syntax.FalseConstant:
			return "= False"
		}
		return "= " + e.Text
	case *syntax.Name:
		return a.name(e, scope, frame, depth)
	case *syntax.Attribute:
		return a.attribute(e, scope, frame, depth)
	case *syntax.Subscript:
		return a.spell(e.Value, scope, frame, depth-1) + "[" + a.spell(e.Slice, scope, frame, depth-1) + "]"
	case *syntax.UnaryOp:
		return fmt.Sprintf("(%d %s)", e.Op, a.spell(e.Operand, scope, frame, depth-1))
	case *syntax.BinOp:
		x, y := a.spell(e.Left, scope, frame, depth-1), a.spell(e.Right, scope, frame, depth-1)
		if (e.Op == syntax.Add || e.Op == syntax.Mult) && x > y {
			x, y = y, x
		}
		return fmt.Sprintf("(%s op%d %s)", x, e.Op, y)
	case *syntax.Call:
		return a.call(e, scope, frame, depth)
	}
	return a.unlike()
}

func (a *logic) name(e *syntax.Name, scope *pyscan.Scope, frame *pyscan.Frame, depth int) string {
	if of, in, at := a.meant(e, scope, frame); of != nil {
		return a.spell(of, in, at, depth-1)
	}
	def, in, at := a.find(e, scope, frame)
	if def == nil {
		if scope.Enclosed(e.ID) || scope.Outer(e.ID) {
			return a.unlike()
		}
		return "global " + e.ID
	}
	if def.Kind == pyscan.ParamDef && def.Param() == 0 && in.Parent != nil && in.Parent.Kind == pyscan.ClassScope {
		return fmt.Sprintf("self of %p", in.Parent)
	}
	if a.inLoop(def, in) {
		a.moves = true
	}
	return fmt.Sprintf("def %p in %p", def, at)
}

// inLoop reports whether a name gets its value in the loop, or in a function that the loop calls.
func (a *logic) inLoop(def *pyscan.Def, scope *pyscan.Scope) bool {
	switch {
	case def.Kind == pyscan.ParamDef, def.Kind == pyscan.ImportDef, def.Kind == pyscan.ScopeDef:
		return false
	case a.loop == nil || a.loop.Node == nil || scope != a.loop.Scope:
		return true
	}
	return within(def, a.loop.Node.Span(), 6)
}

// within reports whether a definition, or one of those that meet in it, stands in a part of the text.
func within(def *pyscan.Def, span source.Span, depth int) bool {
	if def.Node != nil {
		return span.Contains(def.Node.Span())
	}
	one := func(def *pyscan.Def) bool { return within(def, span, depth-1) }
	return depth == 0 || slices.ContainsFunc(def.Alternatives(), one)
}

func (a *logic) attribute(e *syntax.Attribute, scope *pyscan.Scope, frame *pyscan.Frame, depth int) string {
	if def := scope.AttrDef(e); def != nil {
		if def.Kind == pyscan.AssignDef && len(def.Path()) == 0 && isPure(def.Value) {
			return a.spell(def.Value, scope, frame, depth-1)
		}
		if a.inLoop(def, scope) {
			a.moves = true
		}
		return fmt.Sprintf("def %p in %p", def, frame)
	}
	base := a.spell(e.Value, scope, frame, depth-1)
	if assignedIn(scope.Module, e.Attr) {
		if a.moves = true; a.strict {
			return a.unlike()
		}
	}
	return base + "." + e.Attr
}

// assignedIn reports whether a function of the module other than a constructor assigns to an attribute of that name,
// of whatever.
func assignedIn(m *pyscan.Module, attr string) bool {
	found := false
	m.Scopes(func(scope *pyscan.Scope) {
		if found || scope.Name == "__init__" || scope.Kind != pyscan.FuncScope || !scope.MayAssign(attr) {
			return
		}
		scope.Defined(func(name string, _ []*pyscan.Def) {
			found = found || strings.HasSuffix(name, attr) && len(name) > len(attr) && name[len(name)-len(attr)-1] == '.'
		})
	})
	return found
}

func (a *logic) call(e *syntax.Call, scope *pyscan.Scope, frame *pyscan.Frame, depth int) string {
	pure := pureCall(e)
	if !pure {
		a.moves = true
		name := a.link.ExternalName(a.link.Eval(scope, frame, e.Func))
		if a.strict || pyscan.Path(e.Func) == "" || pyscan.Path(e.Func) == "next" || strings.Contains(name, "rand") {
			return a.unlike()
		}
	}
	var out strings.Builder
	out.WriteString(a.spell(e.Func, scope, frame, depth-1) + "(")
	for _, arg := range e.Args {
		out.WriteString(a.spell(arg, scope, frame, depth-1) + ", ")
	}
	for _, k := range e.Keywords {
		out.WriteString(k.Arg + "=" + a.spell(k.Value, scope, frame, depth-1) + ", ")
	}
	return out.String() + ")"
}
