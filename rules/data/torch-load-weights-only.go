package data

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed torch-load-weights-only.md
var torchLoadWeightsOnlyDoc string

// TorchLoadWeightsOnly finds torch.load calls that leave open whether a file may run code.
var TorchLoadWeightsOnly = &lint.Rule{
	Name:     "torch-load-weights-only",
	Family:   "data",
	Since:    "0.1",
	Doc:      torchLoadWeightsOnlyDoc,
	Severity: lint.Info,
	Strict:   true,
	Mentions: []string{"load"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		calls(pass, module, loadFunction, func(scope *pyscan.Scope, call *syntax.Call) {
			if workspace.Argument(call, "weights_only", -1) != nil || pass.OpenKeywords(scope, nil, call) {
				return
			}
			at, torch := module.File.At(call.Span()), pass.Pin(module.File.Path, "torch")
			var d *lint.Diagnostic
			switch torch.Since("2.6") {
			case pyscan.No:
				d = pass.Reportf(at, "torch.load leaves weights_only out: with %s the file may run any code when it is loaded", torch).As(lint.Warning)
			case pyscan.Yes:
				d = pass.Reportf(at, "torch.load leaves weights_only out: %s refuses whatever is no tensor or plain container", torch)
			default:
				d = pass.Reportf(at, "torch.load leaves weights_only out: before torch 2.6 the file may run any code when it is loaded, from then on whatever is no tensor or plain container is refused")
			}
			d.Pinned(torch, "2.6").Help("pass weights_only=True, or False for a file that you trust")
		})
	},
}
