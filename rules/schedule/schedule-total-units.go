package schedule

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed schedule-total-units.md
var docScheduleTotalUnits string

// ScheduleTotalUnits finds totals that are divided by the accumulation twice, and stop tests in another unit than their total.
var ScheduleTotalUnits = &lint.Rule{
	Name:     "schedule-total-units",
	Family:   "schedule",
	Since:    "0.1",
	Doc:      docScheduleTotalUnits,
	Severity: lint.Warning,
	Strict:   true,
	Mentions: append([]string{"LR", "schedule", "get_scheduler"}, loop.Mentions...),
	Module: func(pass *lint.Pass, m *pyscan.Module) {
		constructors(pass, m, func(_ *pyscan.Scope, _ *syntax.Call, counts []count) {
			for _, c := range counts {
				if pass.Steps(c.value(pass), nil).Unit == workspace.DividedTwice {
					pass.Reportf(c.at(), "%s is divided by the accumulation twice: the schedule ends that many times too early", c.text()).Help("divide the micro-batches once")
				}
			}
		})
	},
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		for _, w := range loop.Windows(l, pass) {
			if w.Accumulates == pyscan.Yes && w.Micro.Node != nil {
				checkStop(pass, w)
			}
		}
	},
}

// checkStop looks for `if step >= max_train_steps: break` where step counts micro-batches.
func checkStop(pass *lint.Pass, w *loop.Window) {
	syntax.Inspect(w.Micro.Node, func(n syntax.Node) bool {
		branch, ok := n.(*syntax.If)
		if !ok || !breaks(branch.Body) {
			return true
		}
		cmp, ok := branch.Test.(*syntax.Compare)
		if !ok || len(cmp.Ops) != 1 || cmp.Ops[0] != syntax.GtE && cmp.Ops[0] != syntax.Gt && cmp.Ops[0] != syntax.Eq {
			return true
		}
		total := cmp.Comparators[0]
		if pass.Steps(pass.Eval(w.Micro.Scope, w.Micro.Frame, total), isN(pass, w)).Unit != workspace.OptimizerSteps || !countsMicroBatches(w, cmp.Left) {
			return true
		}
		file := w.Micro.Scope.Module.File
		pass.Reportf(file.At(total.Span()), "%s counts optimizer steps, but %s counts micro-batches: training stops after 1/%s of the steps", file.Slice(total.Span()), file.Slice(cmp.Left.Span()),
			windowText(w, workspace.Accumulation{})).Help("count the optimizer's steps, where it steps")
		return true
	})
}

func breaks(body []syntax.Stmt) bool {
	if len(body) == 0 {
		return false
	}
	switch body[len(body)-1].(type) {
	case *syntax.Break, *syntax.Return:
		return true
	}
	return false
}

// countsMicroBatches reports whether an expression is made of the index of the micro-batch loop, or of a counter that each
// micro-batch counts up.
func countsMicroBatches(w *loop.Window, e syntax.Expr) bool {
	body, target := bodyOf(w.Micro)
	if body == nil {
		return false
	}
	found := false
	syntax.Inspect(e, func(n syntax.Node) bool {
		expr, ok := n.(syntax.Expr)
		if !ok {
			return true
		}
		path := pyscan.Path(expr)
		if path == "" {
			return true
		}
		if path == target {
			found = true
			return false
		}
		for _, stmt := range body { // in the loop's own block, so under no guard
			switch stmt := stmt.(type) {
			case *syntax.AugAssign:
				found = found || stmt.Op == syntax.Add && pyscan.Path(stmt.Target) == path && isOne(stmt.Value)
			case *syntax.Assign:
				if plus, ok := stmt.Value.(*syntax.BinOp); ok && plus.Op == syntax.Add && isOne(plus.Right) && pyscan.Path(plus.Left) == path && pyscan.Path(stmt.Targets[0]) == path {
					found = true
				}
			case *syntax.If:
				if leavesIteration(stmt.Body) { // what follows `if off the boundary: continue` does not run in each micro-batch
					return false
				}
			}
		}
		return false
	})
	return found
}

func leavesIteration(body []syntax.Stmt) bool {
	if len(body) == 0 {
		return false
	}
	_, ok := body[len(body)-1].(*syntax.Continue)
	return ok
}

func isOne(e syntax.Expr) bool {
	c, ok := e.(*syntax.Constant)
	return ok && c.Text == "1"
}

// bodyOf is the block of a loop, and the index that enumerate gives it.
func bodyOf(l *loop.Loop) ([]syntax.Stmt, string) {
	switch node := l.Node.(type) {
	case *syntax.For:
		if pair, ok := node.Target.(*syntax.Tuple); ok && len(pair.Elts) == 2 {
			return node.Body, pyscan.Path(pair.Elts[0])
		}
		return node.Body, ""
	case *syntax.While:
		return node.Body, ""
	}
	return nil, ""
}
