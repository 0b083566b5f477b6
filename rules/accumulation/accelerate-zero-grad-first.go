package accumulation

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
)

//go:embed accelerate-zero-grad-first.md
var accelerateZeroGradFirstDoc string

// AccelerateZeroGradFirst finds accelerator.accumulate() blocks that clear the gradients before their backward.
var AccelerateZeroGradFirst = &lint.Rule{
	Name:     "accelerate-zero-grad-first",
	Family:   "accumulation",
	Since:    "0.1",
	Doc:      accelerateZeroGradFirstDoc,
	Severity: lint.Error,
	Fix:      lint.SometimesFix,
	Mentions: loop.Mentions,
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		for _, w := range loop.Windows(l, pass) {
			checkZeroFirst(pass, l, w)
		}
	},
}

func checkZeroFirst(pass *lint.Pass, root *loop.Loop, w *loop.Window) {
	first := w.Backward[0]
	if !underAccumulate(w.Micro, first) {
		return
	}
	framework := pass.Accumulation(first)
	if framework.More == pyscan.No || framework.More == pyscan.Maybe && framework.Owner != nil {
		return
	}
	for _, zero := range w.Micro.Of(loop.ZeroGrad) {
		if zero.Order > first.Order || !underAccumulate(w.Micro, zero) || zero.Guard.Always() != pyscan.Yes || zero.Call == nil || ofModel(zero) || len(w.Steps) == 0 {
			continue
		}
		if by := pass.PreparedBy(zero.On); by != "accelerate.prepare" && !opaque(pass, zero.On) {
			continue // it is no prepared optimizer
		}
		var step *loop.Event
		for _, one := range w.Steps {
			if one.Order < zero.Order { // it clears what has been stepped
				return
			}
			if clears(zero, []*loop.Event{one}) {
				step = one
			}
		}
		if step == nil || len(w.Backward) > 1 {
			continue
		}
		d := pass.Reportf(root.Place(zero), "under accumulate(), zero_grad acts on the last micro-batch of the window only, and here it runs "+
			"before that one's backward: the gradients of all earlier micro-batches are thrown away")
		d.Note(framework.At, "the window is set here")
		moveBehind(d, zero, step)
		return
	}
}

// underAccumulate reports whether an event of a loop acts by the flag that accumulate() has set in this iteration: inside it, or behind it,
// since the flag lasts until accumulate() is entered again (accelerate 1.15, Accelerator.accumulate and AcceleratedOptimizer).
func underAccumulate(l *loop.Loop, event *loop.Event) bool {
	if event.In(loop.AccumulateContext) {
		return true
	}
	before := false
	for other := range l.All {
		if !other.In(loop.AccumulateContext) {
			continue
		}
		if other.Order > event.Order {
			return false // it belongs to the iteration before, as far as the flag goes
		}
		before = true
	}
	return before
}

func opaque(pass *lint.Pass, value pyscan.Value) bool {
	for _, one := range pass.Bare(value) {
		if !pass.Opaque(one) {
			return false
		}
	}
	return true
}

// moveBehind moves a statement behind another one, where both stand on lines of their own in one file.
func moveBehind(d *lint.Diagnostic, zero, step *loop.Event) {
	file := zero.Scope.Module.File
	from, _, ok := file.OwnLines(zero.At.Span)
	to, indent, ok2 := file.OwnLines(step.At.Span)
	if !ok || !ok2 || zero.Scope != step.Scope || zero.At.Path != step.At.Path || len(zero.Guard) != len(step.Guard) {
		d.Help("clear the gradients after the optimizer's step")
		return
	}
	text := indent + file.Slice(source.Span{Start: zero.At.Span.Start, End: file.LineEnd(zero.At.Span)}) // with its comment
	end := to.End
	if end == uint32(len(file.Text)) && file.Text[end-1] != '\n' {
		text = "\n" + text
	} else {
		text += "\n"
	}
	d.Suggest("clear the gradients after the optimizer's step", lint.Safe,
		lint.Edit{At: file.At(from)}, lint.Edit{At: file.At(source.Span{Start: end, End: end}), Text: text})
}
