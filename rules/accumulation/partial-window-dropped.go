package accumulation

import (
	_ "embed"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed partial-window-dropped.md
var partialWindowDroppedDoc string

// PartialWindowDropped finds accumulation loops that leave the last micro-batches of an epoch without a step.
var PartialWindowDropped = &lint.Rule{
	Name:     "partial-window-dropped",
	Family:   "accumulation",
	Since:    "0.1",
	Doc:      partialWindowDroppedDoc,
	Severity: lint.Warning,
	Mentions: loop.Mentions,
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		for _, w := range loop.Windows(l, pass) {
			if w.Boundary != nil && w.Boundary.Kind == loop.Modulo && !w.Boundary.Tail && w.Accumulates == pyscan.Yes {
				checkTail(pass, l, w)
			}
		}
	},
}

func checkTail(pass *lint.Pass, root *loop.Loop, w *loop.Window) {
	switch w.Backward[0].By {
	case loop.Plain, loop.Scaler, loop.Fabric, loop.Lightning:
	default:
		return
	}
	data := enumerated(w)
	if data == nil || alone(pass, w) || endless(data) || !oneOptimizer(w.Steps) || len(w.Boundary.Scope.Module.File.Slice(w.Boundary.Expr.Span())) == 0 {
		return
	}
	for outer := w.Micro.Outer; outer != nil; outer = outer.Outer { // a flush behind the loop
		for _, step := range outer.Of(loop.Step) {
			if step.Order > w.Micro.Order {
				return
			}
		}
	}
	epochs := w.Micro.Outer
	if epochs == nil {
		return
	}
	again := epochs.Node != nil
	if !again && pass.HasCallers(epochs.Scope) && epochs.Framework == "" { // looked at from the caller's loop
		return
	}
	leaks := again
	for outer := epochs; outer != nil && outer.Node != nil; outer = outer.Outer {
		if len(outer.Of(loop.ZeroGrad)) > 0 {
			leaks = false
		}
	}
	for _, zero := range w.Micro.Deep(loop.ZeroGrad) {
		if zero.Guard.Boundary() == nil {
			leaks = false
		}
	}
	n := count(w)
	at := w.Boundary.Scope.Module.File.At(w.Boundary.Expr.Span())
	if at.Path != root.Function().Scope.Module.File.Path {
		at = root.Place(w.Steps[0])
	}
	var d *lint.Diagnostic
	if leaks {
		d = pass.Reportf(at, "what is left of an epoch after its last full window of %s micro-batches gets no step of its own, and its gradients are added to those of the next epoch's first window", n)
	} else {
		d = pass.Reportf(at, "what is left after the last full window of %s micro-batches gets no step: up to %s - 1 micro-batches are computed in vain", n, n).As(lint.Info)
	}
	if w.Boundary.Scope != w.Micro.Scope {
		d.Help("step at the end of the data too, and divide that window's losses by the number of its micro-batches")
	} else {
		last := w.Boundary.Counter
		if !data.FromOne {
			last += " + 1"
		}
		d.Help("step at the end of the data too: `or %s == len(%s)`; and divide that window's losses by the number of its micro-batches", last, data.Scope.Module.File.Slice(data.Expr.Span()))
	}
}

type counted struct {
	Expr    syntax.Expr
	Scope   *pyscan.Scope
	FromOne bool // the index starts at 1
}

// enumerated is what `for i, batch in enumerate(data)` goes through, when the boundary counts with i: an index that starts
// anew in each epoch.
func enumerated(w *loop.Window) *counted {
	l, ok := w.Micro.Node.(*syntax.For)
	if !ok {
		return nil
	}
	pair, ok := l.Target.(*syntax.Tuple)
	if !ok || len(pair.Elts) == 0 || pyscan.Path(pair.Elts[0]) == "" || pyscan.Path(pair.Elts[0]) != counterOf(w) {
		return nil
	}
	iter := l.Iter
	for range 4 {
		call, ok := iter.(*syntax.Call)
		if !ok {
			if name, ok := iter.(*syntax.Name); ok {
				if def := w.Micro.Scope.Def(name); def != nil && def.Kind == pyscan.AssignDef && def.Value != nil && len(def.Path()) == 0 {
					iter = def.Value
					continue
				}
			}
			return nil
		}
		if len(call.Args) == 0 {
			return nil
		}
		if pyscan.Path(call.Func) == "enumerate" {
			data := &counted{Expr: call.Args[0], Scope: w.Micro.Scope}
			if start := workspace.Argument(call, "start", 1); start != nil {
				c, ok := start.(*syntax.Constant)
				if !ok || c.Text != "0" && c.Text != "1" { // counted on over epochs
					return nil
				}
				data.FromOne = c.Text == "1"
			}
			return data
		}
		iter = call.Args[0] // tqdm(enumerate(data))
	}
	return nil
}

// endless reports whether data may have no end: a generator of the program, a stream, a cycle. Only the end of the data drops a
// window.
func endless(data *counted) bool {
	text := strings.ToLower(data.Scope.Module.File.Slice(data.Expr.Span()))
	for _, word := range []string{"cycle", "infinite", "endless", "stream", "iter", "repeat", "forever", "range("} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}
