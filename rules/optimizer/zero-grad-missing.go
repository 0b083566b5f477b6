// Package optimizer holds the rules about what an optimizer needs of the loop around it.
package optimizer

import (
	_ "embed"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed zero-grad-missing.md
var zeroGradMissingDoc string

// ZeroGradMissing finds training loops in which nothing clears the gradients.
var ZeroGradMissing = &lint.Rule{
	Name:     "zero-grad-missing",
	Family:   "optimizer",
	Since:    "0.1",
	Doc:      zeroGradMissingDoc,
	Severity: lint.Error,
	Fix:      lint.SometimesFix,
	Mentions: loop.Mentions,
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		for _, w := range loop.Windows(l, pass) {
			if len(w.Steps) > 0 {
				checkCleared(pass, l, w)
			}
		}
	},
}

func checkCleared(pass *lint.Pass, root *loop.Loop, w *loop.Window) {
	steps := w.Micro // the loop that steps
	if w.Outer != nil {
		steps = w.Outer
	}
	if len(steps.Deep(loop.ZeroGrad)) > 0 || clearsItself(pass, w) || mayClear(pass, steps, w) {
		return
	}
	severity, where := lint.Error, ""
	switch {
	case steps.Node == nil && steps.Framework == "caller" && stepName(steps.Scope.Name):
		severity, where = lint.Warning, " (neither here nor by a caller that is known)"
	case steps.Node == nil && steps.Framework == "Lightning":
	case steps.Node == nil: // it steps once a call, and the loops of its callers are looked at themselves
		return
	}
	for outer := steps.Outer; outer != nil; outer = outer.Outer {
		if outer.Node != nil && len(outer.Of(loop.ZeroGrad)) > 0 { // once an epoch
			severity, where = lint.Warning, ", only in the loop around it, once for all of its steps"
		}
	}
	backward := w.Backward[0]
	d := pass.Reportf(root.Place(backward), "no gradient is cleared in this loop%s: backward adds to what is there, so that every step follows the sum of all gradients so far", where).As(severity)
	step := w.Steps[len(w.Steps)-1]
	d.Note(step.At, "the optimizer steps here")
	clearAfter(d, step)
}

// clearsItself is what needs no zero_grad: engines that clear when they step, steps that take a closure, second-order
// losses, and optimizers of the project that clear in their step.
func clearsItself(pass *lint.Pass, w *loop.Window) bool {
	for _, b := range w.Backward {
		if b.By == loop.Engine || b.By == loop.Foreign || b.By == loop.Trainer || b.In(loop.NoGradContext) || b.Guard.Has(loop.Evaluation) {
			return true
		}
		if b.Call != nil {
			for _, k := range b.Call.Keywords {
				if k.Arg == "create_graph" || k.Arg == "inputs" {
					return true
				}
			}
		}
	}
	for _, step := range w.Steps {
		if step.By == loop.Engine || step.Call == nil || step.By != loop.Scaler && len(step.Call.Args)+len(step.Call.Keywords) > 0 {
			return true
		}
		for _, one := range pass.Bare(step.On) {
			inst, ok := one.(*pyscan.Instance)
			if !ok {
				continue
			}
			class, ok := inst.Of.(*pyscan.Class)
			if !ok {
				continue
			}
			if method := pass.Method(class, "step"); method != nil {
				if code := method.Module.Code(method.Node.Span()); strings.Contains(code, "grad") && strings.Contains(code, "zero") {
					return true
				}
			}
		}
	}
	return false
}

// mayClear reports whether the loop hands the optimizer or the model to something that cannot be read, or calls something
// that by its name clears gradients.
func mayClear(pass *lint.Pass, l *loop.Loop, w *loop.Window) bool {
	handed := map[string]bool{}
	for _, step := range w.Steps {
		if path := pyscan.Path(optimizerOf(step)); path != "" {
			handed[path] = true
		}
	}
	found := false
	look := func(scope *pyscan.Scope, node syntax.Node) {
		syntax.Inspect(node, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.ExprStmt: // opt.zero_grad without a call does nothing
				_, uncalled := n.Value.(*syntax.Attribute)
				return !uncalled
			case *syntax.Call:
				name := strings.ToLower(pyscan.PathEnd(n.Func))
				if strings.Contains(name, "grad") && (strings.Contains(name, "zero") || strings.Contains(name, "clear") || strings.Contains(name, "reset")) {
					found = true
				}
				for _, arg := range n.Args {
					if handed[pyscan.Path(arg)] && unread(pass, scope, n.Func) {
						found = true
					}
				}
				for _, k := range n.Keywords {
					if handed[pyscan.Path(k.Value)] && unread(pass, scope, n.Func) {
						found = true
					}
				}
			case *syntax.Attribute:
				if n.Attr == "zero_grad" || n.Attr == "set_to_none" || n.Attr == "zero_grads" {
					found = true
				}
			case *syntax.Delete:
				for _, target := range n.Targets {
					found = found || strings.HasSuffix(pyscan.Path(target), ".grad")
				}
			}
			return !found
		})
	}
	seen := map[*pyscan.Scope]bool{}
	if l.Node != nil {
		look(l.Scope, l.Node)
		seen[l.Scope] = true
	}
	for e := range l.All {
		if !seen[e.Scope] {
			seen[e.Scope] = true
			for _, stmt := range e.Scope.Body() {
				look(e.Scope, stmt)
			}
		}
	}
	return found
}

// unread reports whether nothing is known of what a call does with the optimizer that it is given. GradScaler's methods are
// known, and so are functions of torch.
func unread(pass *lint.Pass, scope *pyscan.Scope, callee syntax.Expr) bool {
	if attr, ok := callee.(*syntax.Attribute); ok && (attr.Attr == "step" || attr.Attr == "unscale_" || attr.Attr == "append") {
		return false
	}
	for _, one := range workspace.Alternatives(pass.Eval(scope, nil, callee)) {
		name := pass.ExternalName(one)
		if strings.HasPrefix(name, "torch.") || strings.HasPrefix(name, "builtins.") {
			continue
		}
		if pass.Called(one) == nil {
			return true
		}
	}
	return false
}

func optimizerOf(step *loop.Event) syntax.Expr {
	if step.By == loop.Scaler && step.Call != nil && len(step.Call.Args) > 0 {
		return step.Call.Args[0]
	}
	return step.Receiver
}

// stepName goes by what functions are called that somebody runs once a step.
func stepName(name string) bool {
	name = strings.ToLower(name)
	if strings.HasPrefix(name, "test") {
		return false
	}
	for _, word := range []string{"train_step", "training_step", "train_batch", "train_one", "optimize_step", "update_step", "step_batch", "train_iter", "update_policy", "learn", "optimize_model", "train_epoch"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// clearAfter offers to clear right after the step, where that is a statement on a line of its own.
func clearAfter(d *lint.Diagnostic, step *loop.Event) {
	file, name := step.Scope.Module.File, optimizerOf(step)
	title := "clear the gradients after the step"
	path := pyscan.Path(name)
	_, indent, ok := file.OwnLines(step.At.Span)
	if path == "" || !ok || d.At.Path != file.Path {
		d.Help("%s", title)
		return
	}
	end := source.Span{Start: file.LineEnd(step.At.Span), End: file.LineEnd(step.At.Span)}
	d.Suggest(title, lint.Unsafe, lint.Edit{At: file.At(end), Text: "\n" + indent + path + ".zero_grad()"})
}
