package zero

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
)

//go:embed deepspeed-manual-accumulation.md
var deepspeedManualAccumulationDoc string

// DeepspeedManualAccumulation finds loops that run several backwards of an engine for one step of it.
var DeepspeedManualAccumulation = &lint.Rule{
	Name:     "deepspeed-manual-accumulation",
	Family:   "zero",
	Since:    "0.1",
	Doc:      deepspeedManualAccumulationDoc,
	Severity: lint.Error,
	Mentions: loop.Mentions,
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		for _, w := range loop.Windows(l, pass) {
			checkAccumulation(pass, l, w)
		}
	},
}

func checkAccumulation(pass *lint.Pass, l *loop.Loop, w *loop.Window) {
	if w.Accumulates != pyscan.Yes || len(w.Backward) == 0 || len(w.Steps) == 0 || w.Backward[0].By != loop.Engine {
		return
	}
	backward := w.Backward[0]
	engine, ok := engineOf(pass, backward.On)
	if !ok || ownsBoundary(backward) || ownsBoundary(w.Steps[0]) {
		return
	}
	for _, step := range w.Steps { // each step is of this engine
		if other, ok := engineOf(pass, step.On); !ok || other.Call != engine.Call {
			return
		}
	}
	config := pass.Engine(engine)
	if on := config.On("managed_gradient_accumulation"); on == pyscan.No && config.Has("managed_gradient_accumulation") != pyscan.No {
		return
	}
	stage, part, known := config.Stage()
	if known && stage == 0 {
		return
	}
	n, counted := config.Accumulation()
	message := "several engine.backward calls run for one engine.step: DeepSpeed counts a micro-batch at each step, so its accumulation boundary is not where this loop has it"
	switch {
	case counted && n == 1 && (stage == 1 || stage == 2):
		message = "several engine.backward calls run for one engine.step with gradient_accumulation_steps 1: ZeRO takes each backward for a whole window and starts its gradients anew, so only the last micro-batch counts"
	case counted && n > 1:
		message = "engine.step runs once for several engine.backward calls, but DeepSpeed counts micro-batches by its steps: with gradient_accumulation_steps above 1 the optimizer steps only after that many windows"
	}
	d := pass.Reportf(l.Place(backward), "%s", message)
	if !known || stage == 3 || !config.Certain {
		d.As(lint.Warning)
	}
	stageAt(wrappedAt(d, engine), part).Note(w.Steps[0].At, "the engine steps here, once a window")
	d.Help("set gradient_accumulation_steps in the DeepSpeed config and call engine.step() after each backward")
}

// ownsBoundary reports whether the file of an event tells the engine where a window ends.
func ownsBoundary(event *loop.Event) bool {
	return event.Scope.Module.Says("set_gradient_accumulation_boundary", "coalesce_grad_reduction", "managed_gradient_accumulation",
		"_is_gradient_accumulation_boundary")
}
