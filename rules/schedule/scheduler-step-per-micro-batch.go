package schedule

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan/loop"
)

//go:embed scheduler-step-per-micro-batch.md
var docSchedulerStepPerMicroBatch string

// SchedulerStepPerMicroBatch finds schedules that are advanced in every micro-batch of a window.
var SchedulerStepPerMicroBatch = &lint.Rule{
	Name:     "scheduler-step-per-micro-batch",
	Family:   "schedule",
	Since:    "0.1",
	Doc:      docSchedulerStepPerMicroBatch,
	Severity: lint.Error,
	Mentions: loop.Mentions,
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		for _, w := range loop.Windows(l, pass) {
			advanced(pass, w, func(sched *loop.Event, how rate) {
				if how == eachMicroBatch && sched.Call != nil && len(sched.Call.Args)+len(sched.Call.Keywords) == 0 {
					checkAdvance(pass, l, w, sched)
				}
			})
		}
	},
}

func checkAdvance(pass *lint.Pass, root *loop.Loop, w *loop.Window, sched *loop.Event) {
	framework := pass.Accumulation(w.Backward[0])
	n := windowText(w, framework)
	var updates, batches *count
	for _, c := range countsOf(pass, sched.On) {
		switch unitOf(pass, w, c) {
		case workspace.OptimizerSteps, workspace.DividedTwice:
			updates = &c
		case workspace.MicroBatches:
			batches = &c
		}
	}
	at := root.Place(sched)
	var d *lint.Diagnostic
	switch {
	case updates != nil && updates.warmup && batches != nil && !batches.warmup:
		d = pass.Reportf(at, "the schedule is advanced in every micro-batch, but %s counts optimizer steps: the warm-up is over %s times too early", updates.name, n)
		d.Note(updates.at(), "optimizer steps are counted here")
	case updates != nil:
		d = pass.Reportf(at, "the schedule is advanced in every micro-batch, but %s counts optimizer steps: warm-up and decay run %s times too fast, and the rest of the run trains at the final learning rate", updates.name, n)
		d.Note(updates.at(), "optimizer steps are counted here")
	case batches != nil:
		d = pass.Reportf(at, "the schedule is advanced in every micro-batch, and %s counts micro-batches too; the learning rate moves within each window of %s, and only its last value counts", batches.name, n).As(lint.Info)
	default:
		d = pass.Reportf(at, "the schedule is advanced in every micro-batch, while the optimizer steps once in %s: if its steps were counted as optimizer steps, it runs %s times too fast", n, n).As(lint.Info)
	}
	if len(w.Steps) > 0 {
		d.Note(w.Steps[0].At, "the optimizer steps here")
	}
	if framework.By == "Accelerate" {
		d.Note(framework.At, "the window is set here")
		d.Help("hand the schedule to accelerator.prepare, or advance it under `if accelerator.sync_gradients:`")
	} else {
		d.Help("advance the schedule right after the optimizer's step")
	}
}
