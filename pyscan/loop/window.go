package loop

import (
	"slices"

	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// Window is one way in which gradients of several micro-batches add up before an optimizer step.
type Window struct {
	Micro       *Loop    // the micro-batch loop
	Backward    []*Event // in Micro
	Steps       []*Event // in Micro, or in the loop around it
	Outer       *Loop    // the loop (or function body) that steps; nil when Micro steps itself
	Boundary    *Cond    // the guard of the step in Micro; nil when Outer steps
	N           syntax.Expr
	Scope       *pyscan.Scope // of N
	Frame       *pyscan.Frame
	Accumulates pyscan.Truth // N is more than 1, as far as it is known
}

// Windows finds the micro-batch loops in a loop and says for each how gradients add up in it.
func Windows(root *Loop, link Linker) []*Window {
	var list []*Window
	var visit func(*Loop)
	visit = func(l *Loop) {
		if backward := l.Of(Backward); len(backward) > 0 {
			list = append(list, window(l, backward, link))
		}
		for _, item := range l.Items {
			if item.Loop != nil {
				visit(item.Loop)
			}
		}
	}
	visit(root)
	return list
}

func window(l *Loop, backward []*Event, link Linker) *Window {
	w := &Window{Micro: l, Backward: backward, Accumulates: pyscan.Maybe}
	steps := l.Deep(Step)
	if len(steps) > 0 {
		w.Steps = steps
		var guards []Guard
		for step, in := range l.All {
			if step.Kind != Step {
				continue
			}
			guard := l.GuardOf(step, in)
			if slices.ContainsFunc(guards, guard.otherwise) { // one optimizer or another in each iteration
				w.Accumulates, w.Boundary = pyscan.No, nil
				return w
			}
			guards = append(guards, guard)
			boundary := guard.Boundary()
			if boundary == nil {
				if sameGuard(guard, backward) || guard.Always() != pyscan.No {
					w.Accumulates = pyscan.No // some step follows each backward
					if guard.Always() == pyscan.Maybe && !sameGuard(guard, backward) && !w.stepsAlways(link) {
						w.Accumulates = pyscan.Maybe
					}
					w.Boundary = nil
					return w
				}
				continue
			}
			if allGuarded(guard, backward) { // both run once in N iterations
				w.Accumulates = pyscan.No
				return w
			}
			w.Boundary, w.N, w.Scope, w.Frame = boundary, boundary.N, boundary.Scope, boundary.Frame
			w.Accumulates = more(link, boundary)
		}
		if w.Boundary == nil && w.stepsAlways(link) {
			w.Accumulates = pyscan.No
		}
		return w
	}
	for outer := l.Outer; outer != nil; outer = outer.Outer {
		for step := range outer.Events {
			if step.Kind == Step && step.Order > l.Order {
				w.Steps = append(w.Steps, step)
			}
		}
		if len(w.Steps) == 0 {
			continue
		}
		if aside(link, outer, l, w.Steps) {
			w.Steps = nil
			return w
		}
		w.Outer, w.Scope, w.Frame = outer, l.Scope, l.Frame
		w.N = count(l)
		w.Accumulates = pyscan.Yes
		if clearedFirst(outer, l, w.Steps) {
			w.Accumulates = pyscan.No
		}
		if c, ok := constantOf(link, w.Scope, w.Frame, w.N); ok && c <= 1 {
			w.Accumulates = pyscan.No
		}
		for _, b := range backward {
			if b.Loss != nil && isTarget(b.Scope, b.Loss) { // `for loss in losses: loss.backward()` adds up parts of one loss
				w.Accumulates = pyscan.No
			}
		}
		if !overData(l, backward, link) {
			w.Accumulates = pyscan.No
		}
		return w
	}
	return w
}

// clearedFirst reports whether between a loop and each of the steps after it the optimizer that steps clears its gradients: it then applies
// others than those of the loop, which are for something else.
func clearedFirst(outer, l *Loop, steps []*Event) bool {
	for _, step := range steps {
		cleared := false
		for zero := range outer.Events {
			if zero.Kind == ZeroGrad && zero.Order > l.Order && zero.Order < step.Order && (zero.Guard.Always() == pyscan.Yes || step.Guard.begins(zero.Guard)) &&
				zero.Scope == step.Scope && zero.Receiver != nil && step.Receiver != nil && pyscan.Path(zero.Receiver) == pyscan.Path(step.Receiver) && pyscan.Path(zero.Receiver) != "" {
				cleared = true
			}
		}
		if !cleared {
			return false
		}
	}
	return len(steps) > 0
}

// GuardOf is the guard of an event inside a loop, also where an inner one holds it: `if boundary: for o in optimizers: o.step()`.
func (l *Loop) GuardOf(event *Event, in *Loop) Guard {
	guard := event.Guard
	for ; in != nil && in != l; in = in.Outer {
		if len(in.Guard) > 0 {
			guard = in.Guard.With(guard...)
		}
	}
	return guard
}

// otherwise reports whether two guards are the branches of one test of a boundary, under no other boundary: one of them holds in each
// iteration.
func (g Guard) otherwise(other Guard) bool {
	last := len(g) - 1
	if last < 0 || len(other) != len(g) || g[last].Expr == nil || g[last].Expr != other[last].Expr || g[last].Negated == other[last].Negated {
		return false
	}
	same := slices.EqualFunc(g[:last], other[:last], func(a, b Cond) bool { return a.Expr == b.Expr && a.Negated == b.Negated })
	return same && g[:last].Boundary() == nil && (g[last:].Boundary() != nil || other[last:].Boundary() != nil)
}

func sameGuard(step Guard, backward []*Event) bool {
	for _, b := range backward {
		if len(step) > 0 && len(b.Guard) == len(step) && b.Guard[0].Expr == step[0].Expr && b.Guard[0].Negated == step[0].Negated {
			return true
		}
	}
	return false
}

// allGuarded reports whether every backward stands under the guard of a step, so that none runs between two steps.
func allGuarded(step Guard, backward []*Event) bool {
	for _, b := range backward {
		if !sameGuard(step, []*Event{b}) && !b.Guard.begins(step) {
			return false
		}
	}
	return true
}

// begins reports whether a guard asks all that another one asks, and then more.
func (g Guard) begins(outer Guard) bool {
	return len(outer) > 0 && len(g) >= len(outer) &&
		slices.EqualFunc(g[:len(outer)], outer, func(a, b Cond) bool { return a.Expr == b.Expr && a.Negated == b.Negated })
}

// more says whether a boundary's period is more than one.
func more(link Linker, c *Cond) pyscan.Truth {
	if c.Kind == SyncFlag {
		return pyscan.Maybe
	}
	if n, ok := constantOf(link, c.Scope, c.Frame, c.N); ok {
		return pyscan.Truly(n > 1)
	}
	return pyscan.Yes
}

func constantOf(link Linker, scope *pyscan.Scope, frame *pyscan.Frame, e syntax.Expr) (int64, bool) {
	if e == nil || scope == nil {
		return 0, false
	}
	if c, ok := link.Eval(scope, frame, e).(*pyscan.Const); ok {
		return c.V.Int()
	}
	return 0, false
}

func isTarget(scope *pyscan.Scope, e syntax.Expr) bool {
	name, ok := e.(*syntax.Name)
	if !ok {
		return false
	}
	def := scope.Def(name)
	return def != nil && def.Kind == pyscan.IterDef
}

// count is how often a loop runs, as an expression: the n of range(n), x.chunk(n) or enumerate of one; nil when no single
// expression says it.
func count(l *Loop) syntax.Expr {
	loop, ok := l.Node.(*syntax.For)
	if !ok {
		return nil
	}
	iter := loop.Iter
	for {
		call, ok := iter.(*syntax.Call)
		if !ok {
			if name, ok := iter.(*syntax.Name); ok {
				if def := l.Scope.Def(name); def != nil && def.Kind == pyscan.AssignDef && def.Value != nil && len(def.Path()) == 0 && def.Value != iter {
					iter = def.Value
					continue
				}
			}
			return nil
		}
		switch pyscan.LastName(call.Func) {
		case "enumerate", "tqdm", "trange", "iter", "list", "zip", "reversed":
			if len(call.Args) == 0 {
				return nil
			}
			iter = call.Args[0]
		case "range":
			if len(call.Args) == 1 {
				return call.Args[0]
			}
			return nil
		case "chunk", "tensor_split", "array_split":
			return pieces(call)
		default:
			return nil
		}
	}
}

// pieces is the number of chunks of x.chunk(n), x.chunk(n, dim) and torch.chunk(x, n), also by keyword; nil where the call does not say it.
func pieces(call *syntax.Call) syntax.Expr {
	for _, k := range call.Keywords {
		switch k.Arg {
		case "chunks", "sections", "indices_or_sections", "tensor_indices_or_sections":
			return k.Value
		}
	}
	position := 1
	if attr, ok := call.Func.(*syntax.Attribute); ok {
		if module, ok := attr.Value.(*syntax.Name); !ok || module.ID != "torch" && module.ID != "np" && module.ID != "numpy" {
			position = 0
		}
	}
	if position < len(call.Args) {
		return call.Args[position]
	}
	return nil
}
