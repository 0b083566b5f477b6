package optimizer

import (
	_ "embed"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
)

//go:embed zero-grad-before-step.md
var zeroGradBeforeStepDoc string

// ZeroGradBeforeStep finds gradients that are thrown away between their backward and the step that needs them.
var ZeroGradBeforeStep = &lint.Rule{
	Name:     "zero-grad-before-step",
	Family:   "optimizer",
	Since:    "0.1",
	Doc:      zeroGradBeforeStepDoc,
	Severity: lint.Error,
	Fix:      lint.SometimesFix,
	Mentions: loop.Mentions,
	Loop: func(pass *lint.Pass, root *loop.Loop) {
		var visit func(l *loop.Loop)
		visit = func(l *loop.Loop) {
			checkThrownAway(pass, root, l)
			for _, item := range l.Items {
				if item.Loop != nil {
					visit(item.Loop)
				}
			}
		}
		visit(root)
	},
}

// maxSteps is how many steps a zero_grad is held against: of those behind it only the next can have nothing between, but for the
// branches of an if.
const maxSteps = 4

// cleared is a zero_grad whose step is still to come.
type cleared struct {
	zero  *loop.Event
	last  *loop.Event // the backward or step before it, whichever came last
	tried int
}

// checkThrownAway looks in one loop for backward, zero_grad and step in this order, and whether the step finds anything.
func checkThrownAway(pass *lint.Pass, root, l *loop.Loop) {
	steps := l.Of(loop.Step)
	var open []cleared
	var last *loop.Event
	for event := range l.Events {
		switch event.Kind {
		case loop.ZeroGrad:
			if event.Call != nil && event.By != loop.Engine && len(event.Call.Args) <= 1 && !event.In(loop.NoGradContext) {
				open = append(open, cleared{event, last, 0})
			}
		case loop.GradDivide:
			open = nil // a hand that touches gradients
		case loop.Backward:
			open, last = nil, event
		case loop.Step:
			last = event
			kept := open[:0]
			for _, c := range open {
				if backward := lostBackward(pass, l, c, event, steps); backward != nil {
					d := pass.Reportf(root.Place(c.zero), "the gradients are cleared between backward and the optimizer's step: the step has none to follow, and the model does not learn")
					d.Note(backward.At, "they are computed here").Note(event.At, "the optimizer steps here")
					moveBehind(d, c.zero, event)
					return
				}
				if c.tried++; c.tried < maxSteps {
					kept = append(kept, c)
				}
			}
			open = kept
		}
	}
}

// lostBackward is the backward whose gradients a zero_grad clears before a step: the last thing before it, that runs whenever it does.
func lostBackward(pass *lint.Pass, l *loop.Loop, c cleared, step *loop.Event, steps []*loop.Event) *loop.Event {
	if c.last == nil || c.last.Kind != loop.Backward || c.last.By == loop.Foreign || c.last.In(loop.NoGradContext) {
		return nil
	}
	if c.last.Guard.Always() != pyscan.Yes && !loop.Implies(pass, c.zero.Guard, c.last.Guard) {
		return nil
	}
	if step.By == loop.Engine || step.Call == nil || step.By != loop.Scaler && len(step.Call.Args) > 0 || !sameOptimizer(c.zero, step, steps) ||
		!together(pass, c.zero.Guard, step.Guard) || !nothingBetween(pass, l, c.last, c.zero, step) {
		return nil
	}
	return c.last
}

// sameOptimizer reports whether what is cleared is what is stepped: the same name, or the model where there is one optimizer.
func sameOptimizer(zero, step *loop.Event, steps []*loop.Event) bool {
	cleared, stepped := pyscan.Path(zero.Receiver), pyscan.Path(optimizerOf(step))
	if cleared == "" || stepped == "" || zero.Scope != step.Scope {
		return false
	}
	return cleared == stepped || len(steps) == 1 && loop.ModelName(pyscan.LastPart(cleared))
}

// together reports whether the clearing runs in each iteration that steps, and that the steps are of no window of its own: of one
// zero-grad-inside-accumulation tells.
func together(pass *lint.Pass, zero, step loop.Guard) bool {
	end := step.Boundary()
	return loop.Implies(pass, step, zero) && (end == nil || loop.Implies(pass, zero, loop.Guard{*end}))
}

// moveBehind offers to write zero_grad after the step, where both are statements on lines of their own.
func moveBehind(d *lint.Diagnostic, zero, step *loop.Event) {
	const title = "clear the gradients after the step"
	file := zero.Scope.Module.File
	whole := func(span source.Span) (source.Span, bool) {
		lines, _, ok := file.OwnLines(span)
		return lines, ok && strings.HasSuffix(file.Slice(lines), "\n")
	}
	from, ok := whole(zero.Node.Span())
	to, ok2 := whole(step.Node.Span())
	if !ok || !ok2 || d.At.Path != file.Path || len(workspace.Around(zero.Scope, zero.Node)) != len(workspace.Around(step.Scope, step.Node)) {
		d.Help("%s", title)
		return
	}
	d.Suggest(title, lint.Unsafe, lint.Edit{At: file.At(from)}, lint.Edit{At: file.At(source.Span{Start: to.End, End: to.End}), Text: file.Slice(from)})
}
