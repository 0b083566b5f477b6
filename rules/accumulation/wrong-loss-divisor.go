package accumulation

import (
	_ "embed"
	"fmt"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed wrong-loss-divisor.md
var docWrongLossDivisor string

// WrongLossDivisor finds losses that are divided by another number than that of the micro-batches whose gradients add up.
var WrongLossDivisor = &lint.Rule{
	Name:     "wrong-loss-divisor",
	Family:   "accumulation",
	Since:    "0.1",
	Doc:      docWrongLossDivisor,
	Severity: lint.Error,
	Fix:      lint.SometimesFix,
	Mentions: []string{"backward"},
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		for _, w := range loop.Windows(l, pass) {
			if w.Accumulates != pyscan.Yes || !plainWindow(w) || dividedRate(pass, w) || clearedEachTime(w) || reducedByHand(w) {
				continue
			}
			if n := knownNumber(pass, w.Scope, w.Frame, w.N); n.value > 1 {
				checkDivisor(pass, l, w, n)
			}
		}
	},
}

// plainWindow reports whether one backward runs N times before each step, and no more often.
func plainWindow(w *loop.Window) bool {
	if len(w.Steps) == 0 || w.N == nil || len(w.Backward) > 1 {
		return false
	}
	if w.Outer == nil {
		return true
	}
	if w.Micro.Outer != w.Outer || w.Micro.Guard.Always() != pyscan.Yes {
		return false
	}
	for _, step := range w.Steps {
		if step.Guard.Always() != pyscan.Yes {
			return false // once in several windows
		}
	}
	return true
}

// number is a number that the program says; 0 where it does not.
type number struct {
	value   float64
	certain bool // it is not a default that a caller or a flag may replace
}

// knownNumber is the number that an expression stands for, or the one that it is by default.
func knownNumber(pass *lint.Pass, scope *pyscan.Scope, frame *pyscan.Frame, e syntax.Expr) number {
	value := pass.Eval(scope, frame, e)
	if c, ok := pass.Constant(pass.Expand(value)); ok {
		n, _ := c.Number()
		return number{n, true}
	}
	if c, ok := pass.Constant(pass.Settled(value)); ok {
		n, _ := c.Number()
		return number{n, false}
	}
	return number{}
}

func checkDivisor(pass *lint.Pass, root *loop.Loop, w *loop.Window, n number) {
	for _, backward := range w.Backward {
		switch backward.By {
		case loop.Plain, loop.Scaler, loop.Fabric, loop.Lightning:
		default:
			continue // the framework divides by itself, which double-scaled-loss compares
		}
		if backward.Loss == nil || backward.In(loop.NoGradContext) || recurrent(w.Micro) || dividesGradients(w) ||
			pass.Declared(root, backward, workspace.ScalesLoss) {
			continue
		}
		by := loop.DividedBy(pass, backward.Scope, backward.Frame, backward.Loss)
		division, divisor := onlyDivision(pass, w, by)
		if division == nil || divisor.value <= 1 || divisor.value == n.value || float64(by.Terms) == divisor.value || !divisor.certain && !n.certain {
			continue
		}
		reportDivisor(pass, root, w, backward, division, divisor, n)
		return
	}
}

// onlyDivision is the one division of a loss, by a known number, that is there to average over the window; nil where another one or a
// weight has a part in it, and where what is divided is a sum of its own.
func onlyDivision(pass *lint.Pass, w *loop.Window, by loop.Divisor) (*loop.Division, number) {
	if len(by.Divisions) != 1 || by.Scaled || by.Weighted || by.Terms < 0 || !by.Divisions[0].On {
		return nil, number{}
	}
	division := &by.Divisions[0]
	switch division.By.(type) {
	case *syntax.Constant, *syntax.Name, *syntax.Attribute, *syntax.Subscript:
	default:
		return nil, number{} // computed: from the number of ranks, of losses, of tokens
	}
	_, literal := division.By.(*syntax.Constant)
	if !literal && !loop.WindowName(pyscan.PathEnd(division.By)) && !pass.IsAccumulation(pass.Eval(division.Scope, division.Frame, division.By), nil) {
		return nil, number{} // a number of something else
	}
	if literal && !plainLoss(pass, w, division) || loop.IsWorldSize(pass, division.Scope, division.Frame, division.By) {
		return nil, number{}
	}
	return division, knownNumber(pass, division.Scope, division.Frame, division.By)
}

// plainLoss reports whether what is divided is surely the output of a model or criterion, as far as it can be read.
func plainLoss(pass *lint.Pass, w *loop.Window, division *loop.Division) bool {
	if division.Of != nil {
		return w.Undivided(pass, division.Scope, division.Frame, division.Of)
	}
	aug, ok := division.Node.(*syntax.AugAssign)
	if !ok {
		return false
	}
	name, ok := aug.Target.(*syntax.Name)
	if !ok {
		return false
	}
	for _, def := range division.Scope.Defs(name.ID) { // loss /= 4 divides what was assigned before
		if def.Node != nil && def.Kind == pyscan.AssignDef && def.Value != nil && !w.Undivided(pass, division.Scope, division.Frame, def.Value) {
			return false
		}
	}
	return true
}

// dividesGradients reports whether the gradients themselves are divided.
func dividesGradients(w *loop.Window) bool {
	return len(w.Micro.Deep(loop.GradDivide)) > 0 || w.Outer != nil && len(w.Outer.Deep(loop.GradDivide)) > 0
}

func reportDivisor(pass *lint.Pass, root *loop.Loop, w *loop.Window, backward *loop.Event, division *loop.Division, divisor, n number) {
	file := division.Scope.Module.File
	at := file.At(division.Node.Span())
	if at.Path != root.Scope.Module.File.Path {
		at = root.Place(backward)
	}
	wrong := fmt.Sprintf("%.4g times too large", n.value/divisor.value)
	if divisor.value > n.value {
		wrong = fmt.Sprintf("%.4g times too small", divisor.value/n.value)
	}
	severity, _ := howBad(pass, w, backward)
	if !divisor.certain || !n.certain {
		severity = lint.Warning
	}
	d := pass.Reportf(at, "the loss is divided by %s, but the gradients of %s micro-batches add up before each optimizer step: they are %s",
		spelled(division.Scope, division.By, divisor), spelled(w.Scope, w.N, n), wrong).As(severity)
	d.Note(w.Scope.Module.File.At(w.N.Span()), "the number of micro-batches is given here")
	text := w.Scope.Module.File.Slice(w.N.Span())
	if division.Scope == w.Scope && at.Path == file.Path {
		d.Suggest("divide by "+text, lint.Unsafe, lint.Edit{At: file.At(division.By.Span()), Text: text})
		return
	}
	d.Help("divide by %s", text)
}

// spelled is an expression with the number that it stands for.
func spelled(scope *pyscan.Scope, e syntax.Expr, n number) string {
	text := scope.Module.File.Slice(e.Span())
	if _, literal := e.(*syntax.Constant); literal {
		return text
	}
	if !n.certain {
		return fmt.Sprintf("%s (%.4g by default)", text, n.value)
	}
	return fmt.Sprintf("%s (%.4g)", text, n.value)
}
