package accumulation

import (
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// isN names the number of micro-batches of a window, as View.Steps and View.IsAccumulation ask for it.
func isN(pass *lint.Pass, w *loop.Window) func(pyscan.Value) bool {
	if w == nil || w.N == nil || w.Scope == nil {
		return nil
	}
	n := pass.Eval(w.Scope, w.Frame, w.N)
	return func(value pyscan.Value) bool { return pass.Same(n, value) }
}

// byAccumulation is the first division of a loss by the number of micro-batches, and whether something may undo it.
func byAccumulation(pass *lint.Pass, scope *pyscan.Scope, frame *pyscan.Frame, e syntax.Expr, isN func(pyscan.Value) bool) (found *loop.Division, undone bool) {
	list, undone := loop.Divided(pass, scope, frame, e)
	for i := range list {
		by := list[i].By
		if pass.IsAccumulation(pass.Eval(list[i].Scope, list[i].Frame, by), isN) || loop.WindowName(pyscan.PathEnd(by)) {
			return &list[i], undone
		}
	}
	return nil, undone
}

// stepped is the expression of the optimizer that an event steps or clears.
func stepped(e *loop.Event) syntax.Expr {
	if e.By == loop.Scaler && e.Call != nil && len(e.Call.Args) > 0 {
		return e.Call.Args[0]
	}
	return e.Receiver
}

// oneOptimizer reports whether all events act on one and the same optimizer, as far as names tell.
func oneOptimizer(events []*loop.Event) bool {
	for _, e := range events[1:] {
		if pyscan.PathEnd(stepped(e)) != pyscan.PathEnd(stepped(events[0])) {
			return false
		}
	}
	return true
}

// counterOf is the counter of a boundary as the micro-batch loop calls it: its own name, or what the loop passes for the
// parameter of that name to the function that tests it.
func counterOf(w *loop.Window) string {
	b := w.Boundary
	if b.Scope == w.Micro.Scope {
		return b.Counter
	}
	if b.Frame == nil || b.Counter == "" {
		return ""
	}
	call, ok := b.Frame.Caller.Node.(*syntax.Call)
	if !ok || pyscan.ScopeAt(b.Frame.Caller.Module, call) != w.Micro.Scope {
		return ""
	}
	for i, p := range b.Scope.Params {
		if p.Name != b.Counter {
			continue
		}
		if b.Frame.Self != nil {
			i--
		}
		return pyscan.Path(workspace.Argument(call, p.Name, i))
	}
	return ""
}
