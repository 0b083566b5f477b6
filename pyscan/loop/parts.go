package loop

import (
	"strings"

	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// overData reports whether an inner loop goes over micro-batches. It does not when it goes over several losses of one batch:
// over outputs of a forward before the loop, over heads of one model, over the members of an ensemble.
func overData(l *Loop, backward []*Event, link Linker) bool {
	for _, b := range backward {
		if retains(b) {
			return false
		}
	}
	node, ok := l.Node.(*syntax.For)
	if !ok {
		return true
	}
	f := &flow{link: link, loop: l, targets: map[string]bool{}}
	names(node.Target, f.targets)
	for _, b := range backward {
		of, scope := b.Loss, b.Scope
		if len(b.Via) > 0 {
			of, scope = callAt(node, b), l.Scope
		}
		if of == nil || scope != l.Scope {
			return true
		}
		f.expr(of, true, 12)
	}
	if f.model {
		return false
	}
	return !f.criterion || f.other || len(l.Deep(Forward)) > f.judged
}

// retains reports whether a backward keeps its graph for another one.
func retains(b *Event) bool {
	if b.Call == nil {
		return false
	}
	for _, k := range b.Call.Keywords {
		if c, ok := k.Value.(*syntax.Constant); ok && k.Arg == "retain_graph" && c.Kind == syntax.TrueConstant {
			return true
		}
	}
	return false
}

// callAt is the call in a loop through which a backward is reached; nil when it is not in its text.
func callAt(node *syntax.For, b *Event) syntax.Expr {
	var found syntax.Expr
	syntax.Inspect(node, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.Call); ok && call.Span() == b.Via[0].Span {
			found = call
		}
		return found == nil
	})
	return found
}

func names(target syntax.Expr, into map[string]bool) {
	syntax.Inspect(target, func(n syntax.Node) bool {
		if name, ok := n.(*syntax.Name); ok {
			into[name.ID] = true
		}
		return true
	})
}

// flow follows a loss back to the targets of its loop.
type flow struct {
	link      Linker
	loop      *Loop
	targets   map[string]bool
	seen      map[*pyscan.Def]bool
	model     bool // a target is the model, a head, or chooses one
	criterion bool // a target goes into a criterion
	other     bool // something else is computed in the loop
	judged    int  // criterions that count as forwards
}

func (f *flow) expr(e syntax.Expr, loss bool, depth int) {
	if depth <= 0 || e == nil {
		return
	}
	scope := f.loop.Scope
	switch e := e.(type) {
	case *syntax.Name:
		def := scope.Def(e)
		if def == nil || f.seen[def] || def.Node == nil || !f.loop.Node.Span().Contains(def.Node.Span()) {
			return
		}
		if f.seen == nil {
			f.seen = map[*pyscan.Def]bool{}
		}
		f.seen[def] = true
		f.def(def, loss, depth)
	case *syntax.Call:
		f.call(e, loss, depth)
	case *syntax.Attribute:
		f.expr(e.Value, false, depth-1)
	case *syntax.Subscript:
		f.expr(e.Value, false, depth-1)
	case *syntax.Constant, *syntax.Lambda, nil:
	default:
		syntax.Inspect(e, func(n syntax.Node) bool {
			if inner, ok := n.(syntax.Expr); ok && n != syntax.Node(e) {
				f.expr(inner, loss, depth-1)
				return false
			}
			return true
		})
	}
}

func (f *flow) def(def *pyscan.Def, loss bool, depth int) {
	switch def.Kind {
	case pyscan.AssignDef, pyscan.UnpackDef:
		f.expr(def.Value, loss, depth-1)
	case pyscan.AugDef:
		f.expr(def.Value, loss, depth-1)
		if def.Prev() != nil {
			f.def(def.Prev(), loss, depth-1)
		}
	case pyscan.PhiDef:
		for _, one := range def.Alternatives() {
			if one.Node != nil && !f.seen[one] && f.loop.Node.Span().Contains(one.Node.Span()) {
				f.seen[one] = true
				f.def(one, loss, depth-1)
			}
		}
	}
}

func (f *flow) call(call *syntax.Call, loss bool, depth int) {
	if f.chosen(call.Func) {
		f.model = true
		return
	}
	attr, method := call.Func.(*syntax.Attribute)
	callee := f.link.Expand(f.link.Eval(f.loop.Scope, nil, call.Func))
	name := f.link.ExternalName(callee)
	if name == "" {
		if instance, ok := callee.(*pyscan.Instance); ok {
			if of := f.link.ExternalName(instance.Of); strings.HasPrefix(of, "torch.nn.") && strings.HasSuffix(of, "Loss") {
				name = of
				f.judged++
			}
		}
	}
	switch {
	case strings.HasPrefix(name, "torch."), name == "" && criterionName(pyscan.LastName(call.Func)) && len(call.Args) > 1:
		f.criterion = true
	case method && name == "" && f.chosen(attr.Value) && loss && !tensorMethod(attr.Attr): // member.loss(x)
		f.model = true
	case method && name == "" && tensorMethod(attr.Attr):
		f.expr(attr.Value, loss, depth-1)
	default:
		f.other = true
	}
	for _, arg := range call.Args {
		f.expr(arg, false, depth-1)
	}
	for _, k := range call.Keywords {
		f.expr(k.Value, false, depth-1)
	}
}

// chosen reports whether a callee is a target of the loop, or taken from a container by one.
func (f *flow) chosen(e syntax.Expr) bool {
	switch e := e.(type) {
	case *syntax.Name:
		if !f.targets[e.ID] {
			return false
		}
		def := f.loop.Scope.Def(e)
		return def == nil || def.Kind == pyscan.IterDef
	case *syntax.Subscript:
		found := false
		syntax.Inspect(e.Slice, func(n syntax.Node) bool {
			name, ok := n.(*syntax.Name)
			found = found || ok && f.targets[name.ID]
			return !found
		})
		return found
	}
	return false
}

func criterionName(name string) bool {
	name = strings.ToLower(name)
	return strings.HasPrefix(name, "criterion") || strings.HasSuffix(name, "criterion") || name == "loss_fn" || name == "loss_func" || name == "cross_entropy"
}

// tensorMethod reports whether tensors, mappings and batches have a method of this name.
func tensorMethod(name string) bool {
	switch name {
	case "to", "cuda", "npu", "cpu", "float", "half", "bfloat16", "double", "long", "int", "bool", "type", "mean", "sum", "view", "reshape", "flatten", "squeeze", "unsqueeze", "detach",
		"clone", "contiguous", "permute", "transpose", "t", "get", "pop", "items", "values", "keys", "pin_memory", "div", "div_", "mul", "mul_", "expand", "repeat", "size", "requires_grad_",
		"chunk", "split", "narrow", "index_select", "select", "abs", "pow", "log", "exp", "max", "min", "item":
		return true
	}
	return false
}
