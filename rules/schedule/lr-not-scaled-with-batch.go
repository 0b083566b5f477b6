package schedule

import (
	_ "embed"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed lr-not-scaled-with-batch.md
var lrNotScaledWithBatchDoc string

// LrNotScaledWithBatch finds learning rates of data-parallel training that stay the same for any number of ranks.
var LrNotScaledWithBatch = &lint.Rule{
	Name:     "lr-not-scaled-with-batch",
	Family:   "schedule",
	Since:    "0.1",
	Doc:      lrNotScaledWithBatchDoc,
	Severity: lint.Info,
	Strict:   true,
	Mentions: []string{"parameters()"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		if speaksOfScaling(module) || workspace.IsTest(module.File.Path) {
			return
		}
		for node := range module.Tree.All() {
			if call, ok := node.(*syntax.Call); ok && len(call.Args) > 0 {
				checkScaledRate(pass, module, call)
			}
		}
	},
}

func checkScaledRate(pass *lint.Pass, module *pyscan.Module, call *syntax.Call) {
	scope := pyscan.ScopeAt(module, call)
	made, ok := pass.Eval(scope, nil, call).(*pyscan.Instance)
	if !ok || made.Call != call || !strings.HasPrefix(pass.ExternalName(made.Of), "torch.optim.") || strings.Contains(pass.ExternalName(made.Of), "lr_scheduler") {
		return
	}
	rate := workspace.Argument(call, "lr", 1)
	if rate == nil {
		return
	}
	if _, known := pass.Constant(pass.Settled(pass.Eval(scope, nil, rate))); !known {
		return // it may be scaled where it is made
	}
	owner := modelOf(call.Args[0])
	if owner == nil {
		return
	}
	w, is := pass.Outermost(pass.Eval(scope, nil, owner))
	if is != pyscan.Yes || w.Kind != workspace.DDP && w.Kind != workspace.FSDP1 || w.Call == nil {
		return
	}
	pass.Reportf(module.File.At(rate.Span()), "the learning rate is the same for any number of ranks, while the global batch grows with them: the same epochs make fewer steps of the same size").
		Note(w.Scope.Module.File.At(w.Call.Span()), "the model is wrapped here").
		Help("scale it with the global batch (SGD: linearly, with warm-up; Adam: by the square root), or keep the global batch fixed")
}

// modelOf is the model in model.parameters(), also in list(...) of it; nil for anything else.
func modelOf(e syntax.Expr) syntax.Expr {
	for range 2 {
		call, ok := e.(*syntax.Call)
		if !ok {
			return nil
		}
		if attr, ok := call.Func.(*syntax.Attribute); ok && attr.Attr == "parameters" {
			return attr.Value
		}
		if len(call.Args) != 1 {
			return nil
		}
		e = call.Args[0]
	}
	return nil
}

// speaksOfScaling reports whether a file does arithmetic with the number of ranks or of samples, or names a scaled rate: then somebody
// has thought of it.
func speaksOfScaling(module *pyscan.Module) bool {
	text := module.LowerCode()
	for _, word := range []string{"scale_lr", "lr_scale", "scaled_lr", "base_lr", "blr", "linear scaling", "global_batch", "total_batch", "effective_batch", "train_batch_size"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	for node := range module.Tree.All() {
		op, ok := node.(*syntax.BinOp)
		if !ok || op.Op != syntax.Mult && op.Op != syntax.Div && op.Op != syntax.FloorDiv {
			continue
		}
		for _, side := range []syntax.Expr{op.Left, op.Right} {
			if call, ok := side.(*syntax.Call); ok {
				side = call.Func
			}
			switch name := strings.ToLower(pyscan.LastName(side)); {
			case strings.Contains(name, "world"), strings.Contains(name, "num_gpus"), strings.Contains(name, "ngpus"), strings.Contains(name, "device_count"), strings.Contains(name, "num_processes"):
				return true
			}
		}
	}
	return false
}
