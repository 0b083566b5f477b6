package accumulation

import (
	_ "embed"
	"slices"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed optimizer-step-every-micro-batch.md
var optimizerStepEveryMicroBatchDoc string

// OptimizerStepEveryMicroBatch finds loops that prepare accumulation and step the optimizer in each micro-batch all the same.
var OptimizerStepEveryMicroBatch = &lint.Rule{
	Name:     "optimizer-step-every-micro-batch",
	Family:   "accumulation",
	Since:    "0.1",
	Doc:      optimizerStepEveryMicroBatchDoc,
	Severity: lint.Warning,
	Mentions: loop.Mentions,
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		for _, w := range loop.Windows(l, pass) {
			if w.Outer == nil && w.Boundary == nil && len(w.Steps) > 0 && w.Micro.Node != nil {
				checkStepping(pass, l, w)
			}
		}
	},
}

func checkStepping(pass *lint.Pass, root *loop.Loop, w *loop.Window) {
	backward := w.Backward[0]
	if backward.By == loop.Accelerate {
		unaccumulated(pass, root, w, backward)
		return
	}
	if len(w.Backward) > 1 || backward.By != loop.Plain && backward.By != loop.Scaler && backward.By != loop.Fabric || backward.Loss == nil || !oneOptimizer(w.Steps) {
		return
	}
	for _, step := range w.Steps {
		if step.By == loop.Engine || step.Guard.Always() != pyscan.Yes || pass.PreparedBy(step.On) == "accelerate.prepare" || step.In(loop.AccumulateContext) {
			return
		}
	}
	division, undone := byAccumulation(pass, backward.Scope, backward.Frame, backward.Loss, nil)
	if division == nil {
		unsyncedSteps(pass, root, w, backward)
		return
	}
	if undone || !division.On {
		return
	}
	n := pass.Eval(division.Scope, division.Frame, division.By)
	if c, ok := pass.Constant(n); ok {
		if number, _ := c.Number(); number <= 1 {
			return
		}
	}
	step := w.Steps[0]
	by := lint.Code(division.Scope.Module.File.Slice(division.By.Span()))
	d := pass.Reportf(root.Place(step), "the loss is divided by %s for accumulation, but the optimizer steps in every micro-batch: %s small steps in place of one, and nothing is accumulated", by, by)
	d.Note(division.Scope.Module.File.At(division.Node.Span()), "the loss is divided here")
	d.Help("step and clear once in %s micro-batches, or do not divide", by)
}

// unaccumulated reports an Accelerator that is given a number of micro-batches and never told where one of them begins: its backward divides each
// loss by the number, and nothing but accumulate() holds the steps back. DeepSpeed counts by itself, with an Accelerate before 1.8.
func unaccumulated(pass *lint.Pass, root *loop.Loop, w *loop.Window, backward *loop.Event) {
	n := pass.Accumulation(backward)
	if n.More != pyscan.Yes || n.At.IsZero() || !unheld(backward) || !oneOptimizer(w.Steps) || setsWindow(w) {
		return
	}
	for _, step := range w.Steps {
		if step.Guard.Always() != pyscan.Yes || !unheld(step) {
			return
		}
	}
	d := pass.Reportf(root.Place(w.Steps[0]), "the Accelerator divides each loss by its accumulation steps, but without accumulate() around the micro-batch the optimizer steps in every one: steps are that many times too small, and nothing is accumulated")
	d.Note(n.At, "the number is given here")
	d.Help("put the body of the loop into `with accelerator.accumulate(model):`")
}

// setsWindow reports whether something in an iteration says where in its window it is. accumulate() does so on entry (Accelerator._do_sync),
// and what it sets lasts until the next entry: it need not be around the backward or the step.
func setsWindow(w *loop.Window) bool {
	scopes := map[*pyscan.Scope]bool{}
	found := false
	for event := range w.Micro.All {
		found = found || event.In(loop.AccumulateContext)
		scopes[event.Scope] = true
	}
	visit := func(n syntax.Node) bool {
		if attr, ok := n.(*syntax.Attribute); ok {
			switch attr.Attr {
			case "accumulate", "_do_sync", "_set_sync_gradients":
				found = true
			case "sync_gradients":
				found = found || attr.Ctx == syntax.Store
			}
		}
		return !found
	}
	if w.Micro.Node != nil {
		syntax.Inspect(w.Micro.Node, visit)
	}
	for scope := range scopes {
		if scope != w.Micro.Scope {
			for _, stmt := range scope.Body() {
				syntax.Inspect(stmt, visit)
			}
		}
	}
	return found
}

// unheld reports whether no context is around an event that may hold steps back.
func unheld(e *loop.Event) bool {
	return !slices.ContainsFunc(e.Contexts, func(c loop.Context) bool { return c.Kind != loop.AutocastContext })
}

// unsyncedSteps reports steps in a loop whose no_sync leaves out the boundary of a window.
func unsyncedSteps(pass *lint.Pass, root *loop.Loop, w *loop.Window, backward *loop.Event) {
	for _, c := range backward.Contexts {
		if c.Kind != loop.NoSyncContext {
			continue
		}
		for i := range c.Guard {
			cond := &c.Guard[i]
			if !cond.Negated || cond.Kind != loop.Modulo || cond.N == nil {
				continue
			}
			if n, ok := pass.Constant(pass.Eval(cond.Scope, cond.Frame, cond.N)); ok {
				if number, _ := n.Number(); number <= 1 {
					continue
				}
			}
			n := lint.Code(cond.Scope.Module.File.Slice(cond.N.Span()))
			d := pass.Reportf(root.Place(w.Steps[0]), "no_sync holds gradients back for windows of %s micro-batches, but the optimizer steps in each of them: most steps follow gradients of one rank alone", n)
			d.Note(c.Scope.Module.File.At(c.Expr.Span()), "gradients are held back here")
			d.Help("step and clear once in %s micro-batches", n)
			return
		}
	}
}
