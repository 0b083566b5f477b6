package schedule

import (
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// lightningKey is the argument without which Lightning's parts need not be looked for.
const lightningKey = "accumulate_grad_batches"

// lightningCounts looks at the schedules that configure_optimizers gives to Lightning's automatic optimisation, in
// files that set accumulate_grad_batches. With the interval "step" Lightning advances them once an optimizer step;
// the default is once an epoch.
func lightningCounts(pass *lint.Pass, m *pyscan.Module) {
	if !m.File.Has(lightningKey) {
		return
	}
	sizes := lightningWindows(pass, m)
	several := func(size pyscan.Value) bool {
		c, ok := pass.Constant(size)
		n, number := c.Number()
		return !ok || !number || n > 1
	}
	if len(sizes) > 0 && !slices.ContainsFunc(sizes, several) {
		return
	}
	constructors(pass, m, func(scope *pyscan.Scope, _ *syntax.Call, counts []count) {
		class := scope.EnclosingClass()
		if scope.Name != "configure_optimizers" || class == nil || strings.Contains(m.Code(class.Node.Span()), "automatic_optimization") {
			return
		}
		value := &pyscan.Class{Origin: pyscan.From(m, class.Node), Scope: class}
		if pass.Derives(value, "pytorch_lightning.LightningModule") != pyscan.Yes || !eachStep(pass, scope) {
			return
		}
		for _, c := range counts {
			steps := pass.Steps(c.value(pass), func(value pyscan.Value) bool {
				return slices.ContainsFunc(sizes, func(size pyscan.Value) bool { return pass.Same(size, pass.Expand(value)) })
			})
			if steps.Unit == workspace.MicroBatches && (c.warmup || steps.By <= 1) {
				then := "the curve is never run to its end"
				if c.warmup {
					then = "the warm-up takes that many times as long as meant"
				}
				d := pass.Reportf(c.at(), "%s counts micro-batches, but Lightning advances the schedule once an optimizer step, of which accumulate_grad_batches makes fewer: %s",
					c.name, then)
				d.Help("use self.trainer.estimated_stepping_batches")
				return
			}
			left, by, where := division(pass, c.scope, c.expr, nil, 4)
			if left == nil || !c.warmup || !written(pass, where, left) {
				continue
			}
			text := where.Module.File.Slice(left.Span())
			d := pass.Reportf(c.at(), "Lightning counts schedules in optimizer steps already: divided by %s the warm-up is that many times too short, unless %s counts micro-batches",
				by, text)
			d.Help("give the number of optimizer steps: %s", text)
			return
		}
	})
}

// written reports whether an expression is a number that is written somewhere, in the program or its settings, and not
// one that is counted.
func written(pass *lint.Pass, scope *pyscan.Scope, e syntax.Expr) bool {
	value := pass.Eval(scope, nil, e)
	if steps := pass.Steps(value, nil); steps.Length || steps.Unit == workspace.MicroBatches {
		return false
	}
	for _, one := range workspace.Alternatives(pass.Expand(value)) {
		switch one.(type) {
		case *pyscan.Const, *pyscan.Setting, *pyscan.Member, *pyscan.ParamValue, *pyscan.Element:
		default:
			return false
		}
	}
	return true
}

// eachStep reports whether configure_optimizers asks for the interval "step", in a dict as written or filled
// afterwards.
func eachStep(pass *lint.Pass, scope *pyscan.Scope) bool {
	found := false
	check := func(key, value syntax.Expr) {
		if text, ok := key.(*syntax.Constant); ok && text.Text == "interval" {
			found = found || isText(pass, scope, value, "step")
		}
	}
	for _, stmt := range scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.Dict:
				for i, key := range n.Keys {
					check(key, n.Values[i])
				}
			case *syntax.Assign:
				if sub, ok := n.Targets[0].(*syntax.Subscript); ok {
					check(sub.Slice, n.Value)
				}
			case *syntax.Keyword:
				found = found || n.Arg == "interval" && isText(pass, scope, n.Value, "step")
			}
			return !found
		})
	}
	return found
}

func isText(pass *lint.Pass, scope *pyscan.Scope, e syntax.Expr, text string) bool {
	c, ok := pass.Constant(pass.Expand(pass.Eval(scope, nil, e)))
	is, _ := c.Str()
	return ok && is == text
}

// lightningWindows are what a file gives as accumulate_grad_batches.
func lightningWindows(pass *lint.Pass, m *pyscan.Module) []pyscan.Value {
	var sizes []pyscan.Value
	for _, site := range m.Calls {
		if e := workspace.Argument(site.Call, lightningKey, -1); e != nil {
			sizes = append(sizes, pass.Expand(pass.Eval(site.Scope, nil, e)))
		}
	}
	return sizes
}
