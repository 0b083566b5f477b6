package schedule

import (
	_ "embed"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
)

//go:embed scheduler-before-optimizer.md
var docSchedulerBeforeOptimizer string

// SchedulerBeforeOptimizer finds schedules that are advanced before the optimizer has used their first value.
var SchedulerBeforeOptimizer = &lint.Rule{
	Name:     "scheduler-before-optimizer",
	Family:   "schedule",
	Since:    "0.1",
	Doc:      docSchedulerBeforeOptimizer,
	Severity: lint.Warning,
	Mentions: loop.Mentions,
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		for _, sched := range l.Deep(loop.SchedulerStep) {
			checkOrder(pass, l, sched)
		}
	},
}

func checkOrder(pass *lint.Pass, root *loop.Loop, sched *loop.Event) {
	if sched.Call == nil || len(sched.Call.Args)+len(sched.Call.Keywords) > 0 || !torchSchedule(pass, sched) {
		return
	}
	in := loopOf(root, sched)
	if in == nil || in.Node == nil {
		return
	}
	var after *loop.Event
	for e, at := range in.All {
		if e.Kind != loop.Step || e.By == loop.Engine {
			continue
		}
		if e.Order < sched.Order {
			return
		}
		if after == nil && (at != in || sameGuards(e.Guard, sched.Guard)) {
			after = e
		}
	}
	if after == nil || len(in.Deep(loop.Backward)) == 0 || sched.Guard.Has(loop.First) || sched.Guard.Always() == pyscan.No && sched.Guard.Boundary() == nil || len(sched.Guard) > 0 && skipsFirst(sched.Guard) {
		return
	}
	if pass.Pin(sched.Scope.Module.File.Path, "torch").Since("1.1") == pyscan.No {
		return // then it was the documented order
	}
	d := pass.Reportf(root.Place(sched), "the schedule is advanced before the optimizer steps: the first value of the learning rate is never used, and every later one comes a step early")
	d.Note(after.At, "the optimizer steps here")
	d.Help("advance the schedule after optimizer.step()")
}

// torchSchedule reports whether a schedule is one of torch's or of transformers', whose first value is set when it is made.
// What is called scheduler and comes from nowhere counts as one; other classes may want to be advanced first.
func torchSchedule(pass *lint.Pass, sched *loop.Event) bool {
	name := strings.ToLower(pyscan.PathEnd(sched.Receiver))
	for _, one := range pass.Bare(sched.On) {
		var of pyscan.Value
		switch one := one.(type) {
		case *pyscan.Instance:
			of = one.Of
		case *pyscan.Result:
			of = one.Of
		default:
			if pass.Opaque(one) && (strings.HasSuffix(name, "scheduler") || strings.HasSuffix(name, "sched")) && !strings.Contains(name, "warm") && !strings.Contains(name, "noise") {
				continue
			}
			return false
		}
		library := pass.ExternalName(of)
		if !strings.HasPrefix(library, "torch.optim.lr_scheduler.") && !strings.HasPrefix(library, "transformers.") || strings.HasSuffix(library, "ReduceLROnPlateau") {
			return false
		}
	}
	return true
}

// skipsFirst reports whether a guard leaves the first iteration out: `if epoch > 0: scheduler.step()`.
func skipsFirst(guard loop.Guard) bool {
	for _, c := range guard {
		if c.Kind == loop.First && c.Negated || c.Kind == loop.UnknownCond || c.Kind == loop.Flag {
			return true
		}
	}
	return false
}

func loopOf(root *loop.Loop, event *loop.Event) *loop.Loop {
	for e, in := range root.All {
		if e == event {
			return in
		}
	}
	return nil
}

func sameGuards(a, b loop.Guard) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Expr != b[i].Expr || a[i].Negated != b[i].Negated {
			return false
		}
	}
	return true
}
