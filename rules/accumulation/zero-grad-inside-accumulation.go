package accumulation

import (
	_ "embed"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
)

//go:embed zero-grad-inside-accumulation.md
var zeroGradInsideAccumulationDoc string

// ZeroGradInsideAccumulation finds accumulation loops that clear the gradients of every micro-batch.
var ZeroGradInsideAccumulation = &lint.Rule{
	Name:     "zero-grad-inside-accumulation",
	Family:   "accumulation",
	Since:    "0.1",
	Doc:      zeroGradInsideAccumulationDoc,
	Severity: lint.Error,
	Mentions: loop.Mentions,
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		for _, w := range loop.Windows(l, pass) {
			if len(w.Steps) > 0 {
				checkClearing(pass, l, w)
			}
		}
	},
}

func checkClearing(pass *lint.Pass, root *loop.Loop, w *loop.Window) {
	framework := pass.Accumulation(w.Backward[0])
	guilty, boundary := clearsAlone(pass, w)
	for _, zero := range clearings(w.Micro) {
		often := zero.Guard.Boundary() == nil && (zero.Guard.Always() == pyscan.Yes || offBoundary(zero.Guard))
		last := guilty != nil && guilty.Node == zero.Node && framework.By == ""
		if zero.By == loop.Engine || zero.In(loop.NoGradContext) || !often && !last || ofForward(pass, zero) {
			continue
		}
		switch {
		case framework.By == "Accelerate" && w.Boundary == nil:
			// The prepared optimizer clears at the boundary only; a model clears whenever it is asked to.
			if framework.More != pyscan.Yes || !ofModel(zero) || !zero.In(loop.AccumulateContext) {
				continue
			}
			d := pass.Reportf(root.Place(zero), "%s clears the gradients of every micro-batch: Accelerate holds back the zero_grad of a prepared optimizer only, so that each step sees the last micro-batch of its window alone", zero.Scope.Module.File.Slice(zero.At.Span))
			d.Note(framework.At, "the window is set here")
			d.Help("call zero_grad on the prepared optimizer, after its step")
			return
		case w.Accumulates == pyscan.No && !last, framework.By == "DeepSpeed":
			continue
		case framework.By == "Accelerate" && w.Boundary.Kind == loop.SyncFlag && !ofModel(zero):
			continue
		case !ofModel(zero) && zero.Receiver != nil && !clears(zero, w.Steps):
			continue
		}
		severity, n := lint.Error, count(w)
		if last && boundary != nil && boundary.N != nil {
			n = lint.Code(boundary.Scope.Module.File.Slice(boundary.N.Span()))
		} else if w.Accumulates == pyscan.Maybe && framework.More != pyscan.Yes {
			severity = lint.Info
		}
		when, left := "in every micro-batch", "each step sees the last micro-batch alone"
		switch {
		case !often:
			when = "just before the last backward of a window"
		case behindBackward(w, zero):
			left = "the step has none to follow"
		}
		d := pass.Reportf(root.Place(zero), "the gradients are cleared %s, while the optimizer steps once in %s: %s", when, n, left).As(severity)
		d.Note(w.Steps[0].At, "the optimizer steps once a window, here")
		d.Help("clear the gradients right after the optimizer's step, where that runs")
		return
	}
}

// clearsAlone is the clearing that leaves one micro-batch of several to each step, by what happens in the windows one after another; nil
// where steps see more.
func clearsAlone(pass *lint.Pass, w *loop.Window) (*loop.Event, *loop.Cond) {
	var list []*loop.Event
	for _, zero := range clearings(w.Micro) {
		if !zero.In(loop.NoGradContext) && (ofModel(zero) || zero.Receiver == nil || clears(zero, w.Steps)) {
			list = append(list, zero)
		}
	}
	return w.Alone(pass, list)
}

// alone reports whether a clearing leaves one micro-batch to each step, so that nothing adds up.
func alone(pass *lint.Pass, w *loop.Window) bool {
	guilty, _ := clearsAlone(pass, w)
	return guilty != nil
}

// behindBackward reports whether the clearing stands between the backwards of an iteration and its steps: nothing is left then.
func behindBackward(w *loop.Window, zero *loop.Event) bool {
	return w.Backward[len(w.Backward)-1].Order < zero.Order && zero.Order < w.Steps[0].Order
}

// clearings are the events in a loop that clear gradients, those in loops over its parameters included; such a loop may
// ask whether there is a gradient.
func clearings(l *loop.Loop) []*loop.Event {
	list := l.Of(loop.ZeroGrad)
	for _, item := range l.Items {
		inner := item.Loop
		if inner == nil || len(inner.Deep(loop.Backward)) > 0 {
			continue
		}
		for _, zero := range inner.Of(loop.ZeroGrad) {
			if strings.Contains(zero.Scope.Module.File.Slice(zero.At.Span), ".grad") {
				one := *zero
				one.Guard = inner.Guard
				list = append(list, &one)
			}
		}
	}
	return list
}

// offBoundary reports whether a guard holds in all micro-batches of a window but the last.
func offBoundary(guard loop.Guard) bool {
	return len(guard) == 1 && guard[0].Negated && (guard[0].Kind == loop.Modulo || guard[0].Kind == loop.SyncFlag)
}

// ofForward reports whether the clearing stands in a module that the loop calls: wrappers of models do it for reasons of
// their own.
func ofForward(pass *lint.Pass, zero *loop.Event) bool {
	class := zero.Scope.EnclosingClass()
	if class == nil || len(zero.Via) == 0 {
		return false
	}
	value := &pyscan.Class{Origin: pyscan.From(class.Module, class.Node), Scope: class}
	return pass.Derives(value, "torch.nn.Module") == pyscan.Yes || zero.Scope.Name == "forward"
}

// ofModel reports whether gradients are cleared on the model or its parameters rather than through an optimizer.
func ofModel(zero *loop.Event) bool {
	if zero.Call == nil || strings.Contains(pyscan.Path(zero.Receiver)+".", ".grad.") { // p.grad = None, p.grad.zero_()
		return true
	}
	name := pyscan.PathEnd(zero.Receiver)
	return loop.ModelName(name)
}

// clears reports whether the optimizer that is cleared is the one that is stepped: another one is accumulated elsewhere.
func clears(zero *loop.Event, steps []*loop.Event) bool {
	name := pyscan.PathEnd(stepped(zero))
	for _, step := range steps {
		if is := pyscan.PathEnd(stepped(step)); is == name || len(steps) == 1 && (len(zero.Via) > 0 || len(step.Via) > 0) {
			return oneOptimizer(steps) || is == name
		}
	}
	return false
}
