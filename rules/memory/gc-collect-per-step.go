package memory

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/pyscan/loop"
)

//go:embed gc-collect-per-step.md
var gcCollectPerStepDoc string

// GcCollectPerStep finds runs of Python's garbage collector in every micro-batch or step.
var GcCollectPerStep = &lint.Rule{
	Name:     "gc-collect-per-step",
	Family:   "memory",
	Since:    "0.1",
	Doc:      gcCollectPerStepDoc,
	Severity: lint.Warning,
	Strict:   true,
	Mentions: loop.Mentions, // the collector may run in a function of another file
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		for event, in := range l.All {
			if event.Kind != loop.Collect || event.In(loop.NoGradContext) || phased(l, in) || len(in.Via) > 0 { // a loop in another function is looked at there
				continue
			}
			if event.Scope.Module.Says("gc.disable") || l.Scope != nil && l.Scope.Module.Says("gc.disable") {
				continue // collection by hand, instead of by chance
			}
			rate, n := frequency(pass, in, event)
			if rate == seldom {
				continue
			}
			at := event.At
			if len(event.Via) > 0 {
				at = event.Via[0]
			}
			when := "in every optimizer step"
			if rate == eachMicroBatch {
				when = inMicroBatches(n)
			}
			d := pass.Reportf(at, "gc.collect() walks all Python objects %s, tens of milliseconds each: tensors are freed when their last reference goes, and the device waits for nothing", when)
			if len(event.Via) > 0 {
				d.Note(event.At, "the collector runs here")
			}
			d.Help("delete the call; where the collector's own pauses hurt, gc.disable() and collect every few hundred steps")
		}
	},
}
