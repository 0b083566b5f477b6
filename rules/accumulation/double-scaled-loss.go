package accumulation

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed double-scaled-loss.md
var doubleScaledLossDoc string

// DoubleScaledLoss finds losses that are divided by hand although the framework divides them too.
var DoubleScaledLoss = &lint.Rule{
	Name:     "double-scaled-loss",
	Family:   "accumulation",
	Since:    "0.1",
	Doc:      doubleScaledLossDoc,
	Severity: lint.Error,
	Fix:      lint.SometimesFix,
	Mentions: loop.Mentions,
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		if l.Framework != "" && l.Node == nil {
			checkReturnedLoss(pass, l)
		}
		for _, w := range loop.Windows(l, pass) {
			for _, backward := range w.Backward {
				if backward.By == loop.Accelerate || backward.By == loop.Engine {
					checkDoubleScaling(pass, l, w, backward)
				}
			}
		}
	},
}

// takenOver reports whether the function with the backward is handed to another library by a decorator (that of SageMaker's model parallelism
// for one), which runs it in its own way and gives it what it likes.
func takenOver(pass *lint.Pass, backward *loop.Event) bool {
	def := backward.Scope.Function()
	if def == nil || len(backward.Via) == 0 {
		return false
	}
	return slices.ContainsFunc(def.Decorators, func(e syntax.Expr) bool {
		if call, ok := e.(*syntax.Call); ok {
			e = call.Func
		}
		library, _, _ := strings.Cut(pass.Library(backward.Scope.Parent, nil, e), ".")
		return library != "" && !slices.Contains([]string{"builtins", "torch", "functools", "contextlib", "typing", "abc", "accelerate"}, library)
	})
}

func checkDoubleScaling(pass *lint.Pass, root *loop.Loop, w *loop.Window, backward *loop.Event) {
	framework := pass.Accumulation(backward)
	if framework.More != pyscan.Yes || backward.Loss == nil || backward.In(loop.NoGradContext) || takenOver(pass, backward) {
		return
	}
	if backward.By == loop.Engine { // engine.backward(loss, scale_wrt_gas=False)
		if value := pass.Arg(backward.Scope, backward.Frame, backward.Call, "scale_wrt_gas", -1); value != nil && pass.Truthy(value) != pyscan.Yes {
			return
		}
	}
	isCount := func(value pyscan.Value) bool {
		n, ok := pass.Constant(value)
		return ok && framework.Count > 1 && n.Equal(constant.MakeInt(framework.Count))
	}
	division, undone := byAccumulation(pass, backward.Scope, backward.Frame, backward.Loss, isCount)
	if division == nil || undone || !division.On {
		return
	}
	severity, _ := howBad(pass, w, backward)
	by := division.Scope.Module.File.Slice(division.By.Span())
	who := "accelerator.backward"
	if framework.By == "DeepSpeed" {
		who = "the DeepSpeed engine"
	}
	d := pass.Reportf(root.Place(backward), "the loss is divided by %s, and %s divides it by its accumulation steps once more: gradients are that many times too small", by, who).As(severity)
	d.Note(division.Scope.Module.File.At(division.Node.Span()), "it is divided by hand here")
	d.Note(framework.At, "the framework is told of the accumulation here")
	undo(d, division)
}

// undo offers to take a division out, where it is a plain a / b.
func undo(d *lint.Diagnostic, division *loop.Division) {
	op, ok := division.Node.(*syntax.BinOp)
	if !ok || op.Op != syntax.Div || division.Scope.Module.File.Path != d.At.Path {
		d.Help("leave the division to the framework")
		return
	}
	file := division.Scope.Module.File
	d.Suggest("leave the division to the framework", lint.Unsafe, lint.Edit{At: file.At(op.Span()), Text: file.Slice(op.Left.Span())})
}

// checkReturnedLoss looks at functions that give their loss to a framework that divides it: training_step of Lightning's
// automatic optimisation, compute_loss of the Trainer.
func checkReturnedLoss(pass *lint.Pass, l *loop.Loop) {
	class := l.Scope.EnclosingClass()
	if class == nil || len(l.Deep(loop.Backward)) > 0 {
		return
	}
	text := class.Module.Code(class.Node.Span())
	var who string
	switch {
	case l.Framework == "Lightning" && l.Scope.Name == "training_step":
		if strings.Contains(text, "automatic_optimization") {
			return
		}
		who = "Lightning"
	case l.Framework == "transformers.Trainer" && l.Scope.Name == "compute_loss":
		// The Trainer leaves the division out when the model takes num_items_in_batch, which a class may say of itself or test for.
		if strings.Contains(text, "model_accepts_loss_kwargs = True") || uses(l.Scope, "num_items_in_batch") {
			return
		}
		who = "the Trainer"
	default:
		return
	}
	var first *loop.Division
	for _, r := range l.Scope.Returns() {
		if r.Value == nil {
			continue
		}
		division, undone := byAccumulation(pass, l.Scope, nil, r.Value, nil)
		if division == nil || undone || !division.On || pyscan.PathEnd(division.By) == "current_gradient_accumulation_steps" {
			return // whoever divides on one way only, or by what the Trainer counts, knows what it does
		}
		if first == nil {
			first = division
		}
	}
	if division := first; division != nil {
		by := division.Scope.Module.File.Slice(division.By.Span())
		d := pass.Reportf(division.Scope.Module.File.At(division.Node.Span()), "the loss is divided by %s, and %s divides what %s returns once more: gradients are that many times too small", by, who, l.Scope.Name)
		if !plainOptimizer(pass, class) {
			d.As(lint.Warning)
		}
		undo(d, division)
	}
}

// plainOptimizer reports whether configure_optimizers of a Lightning module makes an optimizer whose steps grow with the gradients.
func plainOptimizer(pass *lint.Pass, class *pyscan.Scope) bool {
	method := pass.Method(&pyscan.Class{Origin: pyscan.From(class.Module, class.Node), Scope: class}, "configure_optimizers")
	if method == nil {
		return false
	}
	for _, stmt := range method.Body() {
		found := false
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			if call, ok := n.(*syntax.Call); ok {
				found = found || steepOptimizers[pass.ExternalName(pass.Eval(method, nil, call.Func))]
			}
			return !found
		})
		if found {
			return true
		}
	}
	return false
}

// uses reports whether a function reads a name.
func uses(scope *pyscan.Scope, name string) bool {
	found := false
	for _, stmt := range scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			if id, ok := n.(*syntax.Name); ok && id.ID == name && id.Ctx == syntax.Load {
				found = true
			}
			return !found
		})
	}
	return found
}
