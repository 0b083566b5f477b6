package accumulation

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed accumulation-token-mean.md
var accumulationTokenMeanDoc string

// AccumulationTokenMean finds windows that average means over different numbers of tokens.
var AccumulationTokenMean = &lint.Rule{
	Name:     "accumulation-token-mean",
	Family:   "accumulation",
	Since:    "0.1",
	Doc:      accumulationTokenMeanDoc,
	Severity: lint.Info,
	Strict:   true,
	Mentions: loop.Mentions,
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		for _, w := range loop.Windows(l, pass) {
			framework := pass.Accumulation(w.Backward[0])
			if w.Accumulates == pyscan.Yes && len(w.Steps) > 0 || framework.By == "Accelerate" && framework.More == pyscan.Yes {
				checkTokenMean(pass, l, w)
			}
		}
	},
}

func checkTokenMean(pass *lint.Pass, root *loop.Loop, w *loop.Window) {
	for _, backward := range w.Backward {
		if backward.Loss == nil || backward.In(loop.NoGradContext) {
			continue
		}
		list, scaled := loop.Divided(pass, backward.Scope, backward.Frame, backward.Loss)
		if scaled {
			continue
		}
		for _, division := range list { // by tokens of the window, or a sum by its own count
			if !pass.IsAccumulation(pass.Eval(division.Scope, division.Frame, division.By), isN(pass, w)) && !loop.WindowName(pyscan.PathEnd(division.By)) {
				return
			}
		}
		call, scope := tokenLoss(pass, w, backward)
		if call == nil {
			continue
		}
		d := pass.Reportf(scope.Module.File.At(call.Span()), "the mean over the tokens that are not ignored is averaged over micro-batches that hold different numbers of them: tokens of short micro-batches weigh more than in one large batch")
		d.Note(backward.At, "the means are added up here")
		d.Help("sum the loss, and divide by the number of label tokens of the whole window")
		return
	}
}

// tokenLoss is a cross-entropy with a mean and an ignore_index in the function or loop that makes the loss.
func tokenLoss(pass *lint.Pass, w *loop.Window, backward *loop.Event) (*syntax.Call, *pyscan.Scope) {
	var found *syntax.Call
	scope := backward.Scope
	look := func(n syntax.Node) bool {
		call, ok := n.(*syntax.Call)
		if !ok || found != nil {
			return found == nil
		}
		callee := pass.Expand(pass.Eval(scope, backward.Frame, call.Func))
		if pass.ExternalName(callee) == "torch.nn.functional.cross_entropy" && means(pass, scope, backward.Frame, call) {
			found = call
		}
		if inst, ok := callee.(*pyscan.Instance); ok && inst.Call != nil && inst.At.Module != nil && pass.ExternalName(inst.Of) == "torch.nn.CrossEntropyLoss" &&
			means(pass, pyscan.ScopeAt(inst.At.Module, inst.Call), inst.Frame, inst.Call) {
			found = call
		}
		return found == nil
	}
	if w.Micro.Node != nil && scope == w.Micro.Scope {
		syntax.Inspect(w.Micro.Node, look)
	} else {
		for _, stmt := range scope.Body() {
			syntax.Inspect(stmt, look)
		}
	}
	return found, scope
}

// means reports whether a cross-entropy takes the mean over tokens that are not all: it is told an ignore_index.
func means(pass *lint.Pass, scope *pyscan.Scope, frame *pyscan.Frame, call *syntax.Call) bool {
	if pass.Arg(scope, frame, call, "ignore_index", -1) == nil || pass.OpenKeywords(scope, frame, call) {
		return false
	}
	reduction := pass.Arg(scope, frame, call, "reduction", -1)
	if reduction == nil {
		return true
	}
	c, ok := pass.Constant(reduction)
	return ok && c.Equal(constant.MakeString("mean"))
}
