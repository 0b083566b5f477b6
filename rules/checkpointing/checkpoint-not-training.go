package checkpointing

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed checkpoint-not-training.md
var docCheckpointNotTraining string

// CheckpointNotTraining finds models that are trained in evaluation mode with gradient checkpointing on.
var CheckpointNotTraining = &lint.Rule{
	Name:     "checkpoint-not-training",
	Family:   "checkpointing",
	Since:    "0.1",
	Doc:      docCheckpointNotTraining,
	Severity: lint.Info,
	Strict:   true,
	Mentions: []string{"gradient_checkpointing_enable", "enable_gradient_checkpointing"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		for _, site := range module.Calls {
			call := site.Call
			attr, ok := call.Func.(*syntax.Attribute)
			if !ok || attr.Attr != "gradient_checkpointing_enable" && attr.Attr != "enable_gradient_checkpointing" {
				continue
			}
			scope := pyscan.ScopeAt(module, call)
			if eval, ok := leftInEvaluation(scope, pyscan.Path(attr.Value)); ok && trainsIn(scope) {
				pass.Reportf(module.File.At(call.Span()), "the model is in evaluation mode when it trains: its layers checkpoint only while self.training holds, so this saves nothing").
					Note(eval, "evaluation mode begins here").Help("call %s.train() before the loop", pyscan.Path(attr.Value))
			}
		}
	},
}

// leftInEvaluation finds a .eval() of a model in a function that never calls .train() of it.
func leftInEvaluation(scope *pyscan.Scope, path string) (at source.Place, ok bool) {
	back := false
	for _, stmt := range scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			call, is := n.(*syntax.Call)
			if !is {
				return true
			}
			attr, is := call.Func.(*syntax.Attribute)
			if !is || path == "" || pyscan.Path(attr.Value) != path {
				return true
			}
			off := attr.Attr == "train" && len(call.Args) == 1 && isFalseExpr(call.Args[0])
			switch {
			case conditional(scope, call) && attr.Attr != "train":
			case attr.Attr == "eval" || off:
				at, ok = scope.Module.File.At(call.Span()), true
			case attr.Attr == "train":
				back = true
			}
			return true
		})
	}
	return at, ok && !back
}

// trainsIn reports whether a function computes gradients.
func trainsIn(scope *pyscan.Scope) bool {
	found := false
	for _, stmt := range scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			if attr, ok := n.(*syntax.Attribute); ok && attr.Attr == "backward" {
				found = true
			}
			return !found
		})
	}
	return found
}
