package accumulation

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed unscaled-accumulated-loss.md
var unscaledAccumulatedLossDoc string

// UnscaledAccumulatedLoss finds accumulation loops whose losses add up instead of averaging.
var UnscaledAccumulatedLoss = &lint.Rule{
	Name:     "unscaled-accumulated-loss",
	Family:   "accumulation",
	Since:    "0.1",
	Doc:      unscaledAccumulatedLossDoc,
	Severity: lint.Error,
	Fix:      lint.SometimesFix,
	Mentions: []string{"backward"},
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		for _, w := range loop.Windows(l, pass) {
			if w.Accumulates != pyscan.No && len(w.Steps) > 0 {
				checkScaling(pass, l, w)
			}
		}
	},
}

func checkScaling(pass *lint.Pass, l *loop.Loop, w *loop.Window) {
	if dividedRate(pass, w) || clearedEachTime(w) || alone(pass, w) || reducedByHand(w) {
		return
	}
	for _, backward := range w.Backward {
		switch backward.By {
		case loop.Plain, loop.Scaler, loop.Fabric, loop.Lightning:
		default:
			continue // the framework divides, or nobody knows
		}
		if backward.Guard.Boundary() != nil {
			continue // once a window: nothing adds up
		}
		if backward.In(loop.NoGradContext) || w.Scaled(backward, pass) != pyscan.No || recurrent(w.Micro) || pass.Declared(l, backward, workspace.ScalesLoss) {
			continue
		}
		severity, why := howBad(pass, w, backward)
		if w.Accumulates == pyscan.Maybe {
			severity = lint.Info
		}
		n := count(w)
		at := l.Place(backward)
		d := pass.Reportf(at, "gradients of %s micro-batches add up, since no loss is divided by their number: they are %s times those of one batch of the same size%s", n, n, why).As(severity)
		if at != backward.At {
			d.Note(backward.At, "backward runs here")
		}
		if w.Boundary != nil {
			d.Note(w.Boundary.Scope.Module.File.At(w.Boundary.Expr.Span()), "the optimizer steps once a window, here")
		} else if len(w.Steps) > 0 {
			d.Note(w.Steps[0].At, "the optimizer steps once a window, here")
		}
		fixDivide(d, w, backward)
		return
	}
}

// clearedEachTime reports whether the gradients are cleared in every micro-batch: nothing adds up then, which zero-grad-inside-accumulation
// tells.
func clearedEachTime(w *loop.Window) bool {
	for event, in := range w.Micro.All {
		if event.Kind != loop.ZeroGrad || event.Guard.Always() != pyscan.Yes {
			continue
		}
		for ; in != nil && in != w.Micro && in.Guard.Always() == pyscan.Yes; in = in.Outer {
		}
		if in == w.Micro {
			return true
		}
	}
	return false
}

// reducedByHand reports whether the function sums the gradients over the ranks itself: its losses are parts of a sum, for whose weights it
// cares.
func reducedByHand(w *loop.Window) bool {
	for _, stmt := range w.Micro.Function().Scope.Body() {
		found := false
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			if call, ok := n.(*syntax.Call); ok && pyscan.LastName(call.Func) == "all_reduce" && len(call.Args) > 0 && workspace.NamesAny(call.Args[0], "grad") {
				found = true
			}
			return !found
		})
		if found {
			return true
		}
	}
	return false
}

// count is the number of micro-batches as a message shows it.
func count(w *loop.Window) string {
	if n := written(w); n != "" {
		return lint.Code(n)
	}
	return "N"
}

// written is the number of micro-batches as the file calls it, "" where no one expression is it.
func written(w *loop.Window) string {
	if w.N == nil || w.Scope == nil {
		return ""
	}
	return w.Scope.Module.File.Slice(w.N.Span())
}

// howBad goes by what a constant factor in the gradients does: Adam's update hardly changes, SGD's grows with it, and
// clipping or a GradScaler see other norms.
func howBad(pass *lint.Pass, w *loop.Window, backward *loop.Event) (lint.Severity, string) {
	loops := []*loop.Loop{w.Micro}
	if w.Outer != nil {
		loops = append(loops, w.Outer)
	}
	for _, l := range loops {
		if len(l.Deep(loop.Clip)) > 0 {
			return lint.Error, ", so clipping cuts them N times as hard"
		}
	}
	if backward.By == loop.Scaler {
		return lint.Error, ""
	}
	adam := pyscan.Maybe
	for _, step := range w.Steps {
		for _, one := range pass.Bare(step.On) {
			inst, ok := one.(*pyscan.Instance)
			if !ok {
				continue
			}
			switch name := pass.ExternalName(pyscan.Made(inst)); {
			case steepOptimizers[name]:
				return lint.Error, ""
			case name != "":
				adam = pyscan.Yes
			}
		}
	}
	if adam == pyscan.Yes {
		return lint.Warning, " (Adam hides most of it, but not in epsilon, logged norms or weight decay added to gradients)"
	}
	return lint.Warning, ""
}

// steepOptimizers are those that a constant factor in all gradients changes.
var steepOptimizers = map[string]bool{"torch.optim.SGD": true, "torch.optim.RMSprop": true, "torch.optim.Adagrad": true, "torch.optim.ASGD": true, "torch.optim.LBFGS": true}

// dividedRate reports whether the learning rate is divided instead: lr=base / n in the optimizer's constructor.
func dividedRate(pass *lint.Pass, w *loop.Window) bool {
	for _, step := range w.Steps {
		for _, one := range pass.Bare(step.On) {
			if inst, ok := one.(*pyscan.Instance); ok && inst.Call != nil && inst.At.Module != nil {
				for _, k := range inst.Call.Keywords {
					if k.Arg != "lr" {
						continue
					}
					if op, ok := k.Value.(*syntax.BinOp); ok && op.Op == syntax.Div {
						return true
					}
				}
			}
		}
	}
	return false
}

// recurrent reports whether the loop cuts a carried state from the graph: truncated backpropagation through time, whose
// chunks are meant to add up.
func recurrent(l *loop.Loop) bool {
	if l.Node == nil {
		return false
	}
	found := false
	syntax.Inspect(l.Node, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign: // hidden = hidden.detach(), state = repackage_hidden(state)
			call, ok := n.Value.(*syntax.Call)
			if !ok {
				break
			}
			target := pyscan.Path(n.Targets[0])
			if attr, ok := call.Func.(*syntax.Attribute); ok && attr.Attr == "detach" && target != "" && pyscan.Path(attr.Value) == target {
				found = found || l.Scope != nil && carried(l, target)
			}
			if len(call.Args) == 1 && target != "" && pyscan.Path(call.Args[0]) == target && pyscan.Path(call.Func) == "repackage_hidden" {
				found = true
			}
		}
		return !found
	})
	return found
}

// carried reports whether a name lives from one iteration to the next: it is defined before the loop too.
func carried(l *loop.Loop, name string) bool {
	for _, def := range l.Scope.Defs(name) {
		if def.Node != nil && def.Node.Span().End <= l.Node.Span().Start {
			return true
		}
	}
	return false
}

// fixDivide offers to divide the loss where it is a plain name and N is a visible one.
func fixDivide(d *lint.Diagnostic, w *loop.Window, backward *loop.Event) {
	n := written(w)
	if name, ok := backward.Loss.(*syntax.Name); ok && w.N != nil && pyscan.Path(w.N) != "" && len(backward.Via) == 0 && w.Scope == backward.Scope {
		at := backward.Scope.Module.File.At(name.Span())
		d.Suggest("divide the loss by "+lint.Code(n), lint.Unsafe, lint.Edit{At: at, Text: "(" + name.ID + " / " + n + ")"})
		return
	}
	d.Help("divide the loss by %s before backward", count(w))
}
