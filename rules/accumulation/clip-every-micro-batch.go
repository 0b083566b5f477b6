package accumulation

import (
	_ "embed"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
)

//go:embed clip-every-micro-batch.md
var clipEveryMicroBatchDoc string

// ClipEveryMicroBatch finds gradients that are clipped before they are complete.
var ClipEveryMicroBatch = &lint.Rule{
	Name:     "clip-every-micro-batch",
	Family:   "accumulation",
	Since:    "0.1",
	Doc:      clipEveryMicroBatchDoc,
	Severity: lint.Warning,
	Mentions: loop.Mentions,
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		if l.Framework == "Lightning" && l.Scope.Name == "training_step" && len(l.Deep(loop.Backward)) == 0 {
			checkClipInStep(pass, l)
			return
		}
		for _, w := range loop.Windows(l, pass) {
			checkClipping(pass, l, w)
		}
	},
}

func checkClipping(pass *lint.Pass, root *loop.Loop, w *loop.Window) {
	framework := pass.Accumulation(w.Backward[0])
	accumulates := w.Accumulates
	who := count(w)
	if framework.By == "Accelerate" && w.Boundary == nil {
		accumulates, who = framework.More, "the window"
		if !w.Backward[0].In(loop.AccumulateContext) {
			accumulates = pyscan.No
		}
	}
	for _, clip := range w.Micro.Of(loop.Clip) {
		if clip.Guard.Always() != pyscan.Yes || clip.Guard.Boundary() != nil || clip.In(loop.NoGradContext) || framework.By == "DeepSpeed" {
			continue
		}
		if accumulates == pyscan.Yes && len(w.Steps) > 0 {
			d := pass.Reportf(root.Place(clip), "gradients are clipped in every micro-batch, before those of %s are complete: partial sums are cut again and again, and early micro-batches count less than late ones", who)
			d.Note(w.Steps[0].At, "the optimizer steps here")
			d.Note(framework.At, "the window is set here")
			if framework.By == "Accelerate" {
				d.Help("clip under `if accelerator.sync_gradients:`")
			} else {
				d.Help("clip once a window, right before the optimizer's step")
			}
			return
		}
		if accumulates == pyscan.No && framework.By == "" && clipsStale(w, clip) {
			pass.Reportf(root.Place(clip), "gradients are clipped before the backward of this micro-batch has made them: what the optimizer steps with is not clipped").Help("clip between backward and the optimizer's step")
			return
		}
	}
}

// clipsStale reports whether a clip stands before the only backward of an iteration, and the step behind it.
func clipsStale(w *loop.Window, clip *loop.Event) bool {
	if len(w.Steps) == 0 || w.Outer != nil || len(w.Micro.Of(loop.Clip)) > 1 {
		return false
	}
	for _, b := range w.Backward {
		if b.Order < clip.Order {
			return false
		}
	}
	for _, step := range w.Steps {
		if step.Order < w.Backward[len(w.Backward)-1].Order {
			return false
		}
	}
	return true
}

// checkClipInStep looks at training_step under Lightning's automatic optimisation, which runs backward after it.
func checkClipInStep(pass *lint.Pass, l *loop.Loop) {
	class := l.Scope.EnclosingClass()
	if class == nil || strings.Contains(class.Module.Code(class.Node.Span()), "automatic_optimization") {
		return
	}
	for _, clip := range l.Deep(loop.Clip) {
		if clip.Guard.Always() != pyscan.Yes {
			continue
		}
		d := pass.Reportf(l.Place(clip), "Lightning runs backward after training_step: what is clipped here are no gradients, or those of micro-batches before")
		d.Help("give Trainer(gradient_clip_val=...), or clip in on_before_optimizer_step")
	}
}
