package optimizer

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed optimizer-in-backward-accumulation.md
var optimizerInBackwardAccumulationDoc string

// OptimizerInBackwardAccumulation finds optimizers that step in gradient hooks of a run that accumulates.
var OptimizerInBackwardAccumulation = &lint.Rule{
	Name:     "optimizer-in-backward-accumulation",
	Family:   "optimizer",
	Since:    "0.1",
	Doc:      optimizerInBackwardAccumulationDoc,
	Severity: lint.Error,
	Mentions: []string{"register_post_accumulate_grad_hook", "register_hook", "optimizer_in_bwd"},
	Module:   findSteppingHooks,
	Part:     findFusedOptimizer,
}

// findFusedOptimizer looks at torchtune's optimizer_in_bwd, which its recipes refuse together with accumulation.
func findFusedOptimizer(pass *lint.Pass, part *workspace.Part) {
	fused, steps := part.Tree.Root.Item("optimizer_in_bwd"), part.Tree.Root.Item("gradient_accumulation_steps")
	if fused == nil || steps == nil || fused.Value == nil || steps.Value == nil {
		return
	}
	on, ok := fused.Value.Bool(part.Dialect.Loader)
	n, ok2 := steps.Value.Int(part.Dialect.Loader)
	if !ok || !ok2 || !on || n <= 1 {
		return
	}
	d := pass.Reportf(fused.Value.At, "the optimizer steps inside of backward, which cannot add up %d micro-batches: torchtune refuses the two together when the recipe starts", n)
	d.Note(steps.Value.At, "accumulation is set here")
	d.Help("set one of the two: optimizer_in_bwd: false, or gradient_accumulation_steps: 1")
}

func findSteppingHooks(pass *lint.Pass, m *pyscan.Module) {
	for _, site := range m.Calls {
		call := site.Call
		if len(call.Args) == 0 {
			continue
		}
		attr, ok := call.Func.(*syntax.Attribute)
		if !ok || attr.Attr != "register_post_accumulate_grad_hook" && attr.Attr != "register_hook" {
			continue
		}
		scope := pyscan.ScopeAt(m, call)
		for _, one := range workspace.Alternatives(pass.Eval(scope, nil, call.Args[0])) {
			f := pass.Called(one)
			if f == nil || f.Scope.Module != m {
				continue
			}
			step := unguardedStep(f.Scope)
			if step == nil {
				continue
			}
			n, at := accumulation(pass, m)
			if n == "" {
				continue
			}
			d := pass.Reportf(m.File.At(step.Span()), "the optimizer steps in a gradient hook, so that each backward steps and clears at once: the gradients of %s micro-batches are never added up", n)
			d.Note(m.File.At(call.Span()), "the hook is registered here")
			d.Note(at, "accumulation is set here")
			d.Help("give up accumulation, or step outside of the hook")
		}
	}
}

// unguardedStep is a .step() call in the body of a hook, under no if: one that counts may wait for the boundary.
func unguardedStep(scope *pyscan.Scope) *syntax.Call {
	var found *syntax.Call
	look := func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.If, *syntax.IfExp, *syntax.FunctionDef:
			return false
		case *syntax.Call:
			if attr, ok := n.Func.(*syntax.Attribute); ok && attr.Attr == "step" && found == nil {
				found = n
			}
		}
		return true
	}
	if lambda, ok := scope.Node.(*syntax.Lambda); ok {
		syntax.Inspect(lambda.Body, look)
		return found
	}
	for _, stmt := range scope.Body() {
		if branch, ok := stmt.(*syntax.If); ok { // `if off the boundary: return`
			if len(branch.Body) > 0 {
				if _, returns := branch.Body[len(branch.Body)-1].(*syntax.Return); returns && !aboutGradient(branch.Test) {
					return nil
				}
			}
			continue
		}
		syntax.Inspect(stmt, look)
	}
	return found
}

// aboutGradient reports whether a test only asks whether there is a gradient.
func aboutGradient(test syntax.Expr) bool {
	found := false
	syntax.Inspect(test, func(n syntax.Node) bool {
		if attr, ok := n.(*syntax.Attribute); ok && (attr.Attr == "grad" || attr.Attr == "requires_grad") {
			found = true
		}
		return !found
	})
	return found
}

// accumulation finds what says that the file accumulates: a loss that is divided by the number of micro-batches, a boundary,
// an Accelerator or TrainingArguments with more than one step.
func accumulation(pass *lint.Pass, m *pyscan.Module) (n string, at source.Place) {
	for _, l := range pass.Loops(m) {
		for _, w := range loop.Windows(l, pass) {
			for _, b := range w.Backward {
				if framework := pass.Accumulation(b); framework.More == pyscan.Yes {
					return "several", framework.At
				}
				if b.Loss == nil {
					continue
				}
				list, _ := loop.Divided(pass, b.Scope, b.Frame, b.Loss)
				for _, d := range list {
					value := pass.Eval(d.Scope, d.Frame, d.By)
					if !pass.IsAccumulation(value, nil) && !loop.WindowName(pyscan.PathEnd(d.By)) {
						continue
					}
					if c, ok := pass.Constant(value); ok {
						if number, _ := c.Number(); number <= 1 {
							continue
						}
					}
					return lint.Code(d.Scope.Module.File.Slice(d.By.Span())), d.Scope.Module.File.At(d.Node.Span())
				}
			}
		}
	}
	for _, site := range m.Calls {
		call := site.Call
		e := workspace.Argument(call, "gradient_accumulation_steps", -1)
		if e == nil {
			continue
		}
		if c, ok := pass.Constant(pass.Eval(pyscan.ScopeAt(m, call), nil, e)); ok {
			if number, _ := c.Number(); number > 1 {
				return m.File.Slice(e.Span()), m.File.At(e.Span())
			}
		}
	}
	return "", source.Place{}
}
