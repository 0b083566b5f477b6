package loop

import (
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// Division is a place where a loss is divided on its way to a backward or out of a function.
type Division struct {
	Node  syntax.Node // *syntax.BinOp, *syntax.AugAssign or *syntax.Call
	Of    syntax.Expr // what is divided; nil for loss /= n
	By    syntax.Expr
	Scope *pyscan.Scope
	Frame *pyscan.Frame
	On    bool // on every way to the use
}

// Divided are the divisions of a value, followed back through its definitions and the project functions that make it. Scaled
// is true when it is multiplied by anything but a constant besides, which may undo a division.
func Divided(link Linker, scope *pyscan.Scope, frame *pyscan.Frame, e syntax.Expr) (list []Division, scaled bool) {
	d := &dividing{link: link, seen: map[*pyscan.Def]bool{}}
	d.expr(scope, frame, e, true, 10)
	return d.list, d.scaled
}

// Divisor is all by which a value is divided, for who compares the numbers.
type Divisor struct {
	Divisions []Division
	Scaled    bool // it is multiplied by something that is not constant
	Weighted  bool // it is multiplied by a constant as a whole, which may be part of the divisor
	Terms     int  // of the largest sum that is divided; 0: none, -1: some loop or call adds up
}

// DividedBy is Divided with what else is done to the value.
func DividedBy(link Linker, scope *pyscan.Scope, frame *pyscan.Frame, e syntax.Expr) Divisor {
	d := &dividing{link: link, seen: map[*pyscan.Def]bool{}}
	d.expr(scope, frame, e, true, 10)
	return Divisor{d.list, d.scaled, d.weighted, d.terms}
}

// Undivided reports whether an expression is a plain output of a model or criterion, a mean over its micro-batch as a rule: Window.Scaled
// of a loss that is not in a backward itself.
func (w *Window) Undivided(link Linker, scope *pyscan.Scope, frame *pyscan.Frame, e syntax.Expr) bool {
	s := &scaling{link: link, window: w, seen: map[*pyscan.Def]bool{}}
	return s.expr(scope, frame, e, 12) == pyscan.No
}

type dividing struct {
	link     Linker
	list     []Division
	scaled   bool
	weighted bool
	terms    int
	seen     map[*pyscan.Def]bool
}

// sums counts the terms of a sum, and looks into each. A weight of one of them is not one of the whole.
func (d *dividing) sums(scope *pyscan.Scope, frame *pyscan.Frame, e *syntax.BinOp, depth int) {
	weighted := d.weighted
	d.expr(scope, frame, e.Left, false, depth-1)
	d.expr(scope, frame, e.Right, false, depth-1)
	d.weighted = weighted
	if n := terms(e); d.terms >= 0 {
		d.terms = max(d.terms, n)
	}
}

func terms(e syntax.Expr) int {
	if op, ok := e.(*syntax.BinOp); ok && (op.Op == syntax.Add || op.Op == syntax.Sub) {
		return terms(op.Left) + terms(op.Right)
	}
	return 1
}

func (d *dividing) add(node syntax.Node, of, by syntax.Expr, scope *pyscan.Scope, frame *pyscan.Frame, always bool) {
	d.list = append(d.list, Division{Node: node, Of: of, By: by, Scope: scope, Frame: frame, On: always})
}

func (d *dividing) expr(scope *pyscan.Scope, frame *pyscan.Frame, e syntax.Expr, always bool, depth int) {
	if depth <= 0 || e == nil {
		return
	}
	again := func(e syntax.Expr) { d.expr(scope, frame, e, always, depth-1) }
	switch e := e.(type) {
	case *syntax.BinOp:
		switch e.Op {
		case syntax.Div:
			d.add(e, e.Left, e.Right, scope, frame, always)
			again(e.Left)
		case syntax.Mult:
			d.product(scope, frame, e, always, depth)
		case syntax.Add, syntax.Sub: // one part may be divided, the other not
			d.sums(scope, frame, e, depth)
		}
	case *syntax.IfExp:
		d.branches(scope, frame, e, always, depth)
	case *syntax.NamedExpr:
		again(e.Value)
	case *syntax.Tuple:
		if len(e.Elts) > 0 {
			again(e.Elts[0])
		}
	case *syntax.Name:
		if def := scope.Def(e); def != nil {
			d.def(scope, frame, def, always, depth)
		}
	case *syntax.Attribute:
		if def := scope.AttrDef(e); def != nil {
			d.def(scope, frame, def, always, depth)
		} else {
			again(e.Value)
		}
	case *syntax.Subscript:
		again(e.Value)
	case *syntax.Call:
		d.call(scope, frame, e, always, depth)
	}
}

// branches is a if c else b: a division on both sides, as in `(loss, outputs) if return_outputs else loss`, is on every way.
func (d *dividing) branches(scope *pyscan.Scope, frame *pyscan.Frame, e *syntax.IfExp, always bool, depth int) {
	before := d.list
	d.list = nil
	d.expr(scope, frame, e.Body, always, depth-1)
	body := d.list
	d.list = nil
	d.expr(scope, frame, e.OrElse, always, depth-1)
	for _, one := range body {
		both := false
		for i := range d.list {
			both = both || d.list[i].Node == one.Node
		}
		one.On = one.On && both
		before = append(before, one)
	}
	for _, other := range d.list {
		known := false
		for _, one := range body {
			known = known || one.Node == other.Node
		}
		if !known {
			other.On = false
			before = append(before, other)
		}
	}
	d.list = before
}

// product is a * b: by 1 / n it is a division, by a constant a weight, by anything else it may undo one.
func (d *dividing) product(scope *pyscan.Scope, frame *pyscan.Frame, e *syntax.BinOp, always bool, depth int) {
	for _, side := range [][2]syntax.Expr{{e.Left, e.Right}, {e.Right, e.Left}} {
		if share, ok := side[1].(*syntax.BinOp); ok && share.Op == syntax.Div {
			if c, ok := share.Left.(*syntax.Constant); ok && (c.Text == "1" || c.Text == "1.0" || c.Text == "1.") {
				d.add(e, side[0], share.Right, scope, frame, always)
				d.expr(scope, frame, side[0], always, depth-1)
				return
			}
		}
		if _, weight := d.link.Eval(scope, frame, side[1]).(*pyscan.Const); weight {
			d.weighted = true
			d.expr(scope, frame, side[0], always, depth-1)
			return
		}
	}
	d.scaled = true
	d.expr(scope, frame, e.Left, always, depth-1)
	d.expr(scope, frame, e.Right, always, depth-1)
}

func (d *dividing) def(scope *pyscan.Scope, frame *pyscan.Frame, def *pyscan.Def, always bool, depth int) {
	if d.seen[def] || depth <= 0 {
		return
	}
	d.seen[def] = true
	defer delete(d.seen, def)
	switch def.Kind {
	case pyscan.AssignDef:
		d.expr(scope, frame, def.Value, always, depth-1)
	case pyscan.UnpackDef:
		if len(def.Path()) == 1 && def.Path()[0] == 0 {
			d.expr(scope, frame, def.Value, always, depth-1)
		}
	case pyscan.AugDef:
		switch def.Op {
		case syntax.Div:
			d.add(def.Stmt, nil, def.Value, scope, frame, always)
		case syntax.Mult:
			_, weight := d.link.Eval(scope, frame, def.Value).(*pyscan.Const)
			d.weighted = d.weighted || weight
			d.scaled = d.scaled || !weight
		case syntax.Add, syntax.Sub:
			d.terms = -1
		}
		if def.Prev() != nil {
			d.def(scope, frame, def.Prev(), always, depth-1)
		}
	case pyscan.PhiDef:
		for _, alternative := range def.Alternatives() {
			d.def(scope, frame, alternative, false, depth-1)
		}
	case pyscan.ParamDef: // what the caller has divided
		if outer, e := given(scope, frame, def); e != nil {
			d.expr(outer, nil, e, always, depth-1)
		}
	}
}

func (d *dividing) call(scope *pyscan.Scope, frame *pyscan.Frame, call *syntax.Call, always bool, depth int) {
	callee := d.link.Expand(d.link.Eval(scope, frame, call.Func))
	name := d.link.ExternalName(callee)
	if attr, ok := call.Func.(*syntax.Attribute); ok && !ownMethod(d.link, scope, frame, attr) {
		switch attr.Attr {
		case "div", "div_", "divide", "true_divide":
			if name == "" && len(call.Args) > 0 {
				d.add(call, attr.Value, call.Args[0], scope, frame, always)
				d.expr(scope, frame, attr.Value, always, depth-1)
				return
			}
		case "mul", "mul_", "multiply":
			if name == "" {
				d.scaled = true
				return
			}
		case "scale":
			if len(call.Args) == 1 {
				d.expr(scope, frame, call.Args[0], always, depth-1)
				return
			}
		case "mean", "float", "to", "squeeze", "sum", "half", "view", "contiguous":
			if name == "" {
				if attr.Attr == "sum" {
					d.terms = -1
				}
				d.expr(scope, frame, attr.Value, always, depth-1)
				return
			}
		}
	}
	switch name {
	case "torch.div", "torch.true_divide", "torch.divide":
		if len(call.Args) > 1 {
			d.add(call, call.Args[0], call.Args[1], scope, frame, always)
			d.expr(scope, frame, call.Args[0], always, depth-1)
		}
		return
	case "torch.mean":
		if len(call.Args) > 0 {
			d.expr(scope, frame, call.Args[0], always, depth-1)
		}
		return
	case "builtins.sum", "torch.sum", "torch.add", "torch.einsum", "torch.dot":
		d.terms = -1
	}
	several := alternatives(callee)
	for _, one := range several {
		f := d.link.Called(one)
		if f == nil {
			continue
		}
		if _, module := one.(*pyscan.Instance); module { // how a model makes its loss is its own affair
			continue
		}
		inner := d.link.Enter(f, call, scope, frame)
		if inner == nil {
			continue
		}
		returns := f.Scope.Returns()
		for _, r := range returns {
			d.expr(f.Scope, inner, r.Value, always && len(returns) == 1 && len(several) == 1, depth-1)
		}
	}
}
