package accumulation

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed loss-scaled-after-backward.md
var lossScaledAfterBackwardDoc string

// LossScaledAfterBackward finds losses that are divided by the accumulation when their backward has run already.
var LossScaledAfterBackward = &lint.Rule{
	Name:     "loss-scaled-after-backward",
	Family:   "accumulation",
	Since:    "0.1",
	Doc:      lossScaledAfterBackwardDoc,
	Severity: lint.Error,
	Mentions: loop.Mentions,
	Hides:    []string{"unscaled-accumulated-loss"},
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		for _, w := range loop.Windows(l, pass) {
			if w.Accumulates != pyscan.No && len(w.Steps) > 0 {
				checkLateScaling(pass, l, w)
			}
		}
	},
}

func checkLateScaling(pass *lint.Pass, root *loop.Loop, w *loop.Window) {
	for _, backward := range w.Backward {
		switch backward.By {
		case loop.Plain, loop.Scaler, loop.Fabric, loop.Lightning:
		default:
			continue
		}
		name := lossName(backward.Loss)
		if name == nil || backward.In(loop.NoGradContext) || w.Scaled(backward, pass) == pyscan.Yes {
			continue
		}
		stmt := laterDivision(pass, w, backward, name)
		if stmt == nil {
			continue
		}
		severity, why := howBad(pass, w, backward)
		if w.Accumulates == pyscan.Maybe {
			severity = lint.Info
		}
		d := pass.Reportf(backward.Scope.Module.File.At(stmt.Span()), "%s is divided after its backward, which changes no gradient: those of %s micro-batches add up to %s times those of one batch of the same size%s",
			name.ID, count(w), count(w), why).As(severity)
		d.From(root.Place(backward)) // where the rule that misses any division points
		d.Note(backward.At, "backward has run here")
		d.Help("divide before backward")
		return
	}
}

// lossName is the name in loss.backward(), scaler.scale(loss).backward().
func lossName(e syntax.Expr) *syntax.Name {
	for range 3 {
		switch one := e.(type) {
		case *syntax.Name:
			return one
		case *syntax.Call:
			if len(one.Args) != 1 {
				return nil
			}
			e = one.Args[0]
		default:
			return nil
		}
	}
	return nil
}

// laterDivision is the statement in the loop, behind the backward, that divides the loss by the accumulation and gives the
// result to the same name.
func laterDivision(pass *lint.Pass, w *loop.Window, backward *loop.Event, loss *syntax.Name) syntax.Stmt {
	is := isN(pass, w)
	byN := func(e syntax.Expr) bool {
		return pass.IsAccumulation(pass.Eval(backward.Scope, backward.Frame, e), is) || loop.WindowName(pyscan.PathEnd(e))
	}
	var found syntax.Stmt
	for _, def := range backward.Scope.Defs(loss.ID) {
		if def.Node == nil || def.Node.Span().Start < backward.At.Span.End || w.Micro.Node != nil && backward.Scope == w.Micro.Scope && !w.Micro.Node.Span().Contains(def.Node.Span()) {
			continue
		}
		switch def.Kind {
		case pyscan.AugDef:
			if def.Op == syntax.Div && byN(def.Value) {
				found = def.Stmt
			}
		case pyscan.AssignDef:
			if op, ok := def.Value.(*syntax.BinOp); ok && op.Op == syntax.Div && pyscan.Path(op.Left) == loss.ID && byN(op.Right) {
				found = def.Stmt
			}
			if call, ok := def.Value.(*syntax.Call); ok && len(call.Args) == 1 && byN(call.Args[0]) {
				if attr, ok := call.Func.(*syntax.Attribute); ok && pyscan.Path(attr.Value) == loss.ID && (attr.Attr == "div" || attr.Attr == "div_") {
					found = def.Stmt
				}
			}
		}
		if found != nil {
			return found
		}
	}
	return nil
}
