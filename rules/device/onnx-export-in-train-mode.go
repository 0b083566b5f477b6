package device

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed onnx-export-in-train-mode.md
var onnxExportInTrainModeDoc string

// OnnxExportInTrainMode finds exports of models that are in training mode.
var OnnxExportInTrainMode = &lint.Rule{
	Name:     "onnx-export-in-train-mode",
	Family:   "device",
	Since:    "0.1",
	Doc:      onnxExportInTrainModeDoc,
	Severity: lint.Warning,
	Mentions: []string{"export"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		sites := slices.DeleteFunc(pass.CallsNear(module, exporters), func(site pyscan.Call) bool {
			return len(site.Args)+len(site.Keywords) < 2 // it is given a model and its inputs
		})
		if len(sites) > 0 && !pass.HasName(module, "onnx") && !pass.Importing(module.File.Path, "onnx") {
			return // nothing can be torch's exporter
		}
		for _, site := range sites {
			checkExport(pass, module, site.Scope, site.Call)
		}
	},
}

var exporters = &pyscan.Words{Alias: true, Names: map[string]bool{"export": true, "dynamo_export": true}}

func checkExport(pass *lint.Pass, module *pyscan.Module, scope *pyscan.Scope, call *syntax.Call) {
	switch pass.Library(scope, nil, call.Func) {
	case "torch.onnx.export", "torch.onnx.dynamo_export", "torch.onnx.utils.export":
	default:
		return
	}
	model := workspace.Argument(call, "model", 0)
	if model == nil || workspace.Argument(call, "training", -1) != nil || pass.OpenKeywords(scope, nil, call) {
		return
	}
	if dynamo := pass.Arg(scope, nil, call, "dynamo", -1); dynamo != nil && pass.Truthy(dynamo) == pyscan.No {
		return // the exporter of TorchScript switches the model to evaluation by itself
	}
	torch := pass.Pin(module.File.Path, "torch")
	if torch.Since("2.9") == pyscan.No && workspace.Argument(call, "dynamo", -1) == nil && pass.ExternalName(pass.Eval(scope, nil, call.Func)) != "torch.onnx.dynamo_export" {
		return // its default is the exporter of TorchScript
	}
	last := modeCall(module, scope, model, call)
	switch {
	case last == "train":
		pass.Reportf(module.File.At(call.Span()), "%s is exported in training mode, which train() set before: the exporter of torch 2.9 and later (dynamo=True before) keeps dropout and batch statistics", module.File.Slice(model.Span())).
			Help("call %s.eval() before the export", module.File.Slice(model.Span()))
	case last == "" && bornTraining(pass, scope, model):
		pass.Reportf(module.File.At(call.Span()), "%s is exported as it was made, in training mode: the exporter of torch 2.9 and later (dynamo=True before) keeps dropout and batch statistics", module.File.Slice(model.Span())).
			Help("call %s.eval() before the export", module.File.Slice(model.Span()))
	}
}

// modeCall is the last call of eval or train before a call, on the model or, in another function of the file, on anything; "?"
// where something else may set the mode.
func modeCall(module *pyscan.Module, scope *pyscan.Scope, model syntax.Expr, before *syntax.Call) string {
	path := pyscan.Path(model)
	last := ""
	if path == "" {
		syntax.Inspect(model, func(n syntax.Node) bool { // export(model.eval(), ...)
			if attr, ok := n.(*syntax.Attribute); ok && attr.Attr == "eval" {
				last = "eval"
			}
			return true
		})
	}
	for _, site := range module.Calls {
		call := site.Call
		attr, ok := call.Func.(*syntax.Attribute)
		if !ok || attr.Attr != "eval" && attr.Attr != "train" && attr.Attr != "requires_grad_" {
			continue
		}
		switch {
		case pyscan.ScopeAt(module, call) == scope && call.Span().End <= before.Span().Start:
			same := path != "" && pyscan.Path(attr.Value) == path
			switch {
			case attr.Attr == "requires_grad_":
			case attr.Attr == "train" && len(call.Args) == 1:
				last = "?"
			case same:
				last = attr.Attr
			case attr.Attr == "eval":
				last = "eval" // perhaps under another name
			}
		case attr.Attr == "eval" && last == "":
			last = "eval"
		}
	}
	return last
}

// bornTraining reports whether a model is certainly one that was just made: modules start in training mode.
func bornTraining(pass *lint.Pass, scope *pyscan.Scope, model syntax.Expr) bool {
	value := pass.Expand(pass.Eval(scope, nil, model))
	inst, ok := value.(*pyscan.Instance)
	if !ok || inst.Call == nil || pass.IsA(value, "torch.nn.Module") != pyscan.Yes {
		return false
	}
	if class, ok := inst.Of.(*pyscan.Class); ok {
		if init := pass.Method(class, "__init__"); init != nil && strings.Contains(init.Module.Code(init.Node.Span()), ".eval()") {
			return false
		}
		return modeMatters(pass, class, 3)
	}
	return false
}

// modeLayers are the layers that do something else in training.
var modeLayers = []string{"torch.nn.Dropout", "torch.nn.Dropout1d", "torch.nn.Dropout2d", "torch.nn.Dropout3d", "torch.nn.AlphaDropout", "torch.nn.BatchNorm1d", "torch.nn.BatchNorm2d",
	"torch.nn.BatchNorm3d", "torch.nn.SyncBatchNorm", "torch.nn.InstanceNorm2d", "torch.nn.TransformerEncoderLayer", "torch.nn.TransformerEncoder", "torch.nn.MultiheadAttention", "torch.nn.Transformer"}

// modeMatters reports whether a class, or a class of the project that it makes, has a layer whose output depends on the mode.
func modeMatters(pass *lint.Pass, class *pyscan.Class, depth int) bool {
	module := class.Scope.Module
	found := false
	syntax.Inspect(class.Scope.Node, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.Call); ok && !found {
			value := pass.Eval(pyscan.ScopeAt(module, call), nil, call)
			if inst, ok := value.(*pyscan.Instance); ok {
				if inner, ok := inst.Of.(*pyscan.Class); ok && depth > 0 && inner.Scope != class.Scope {
					found = pass.Derives(inner, "torch.nn.Module") == pyscan.Yes && modeMatters(pass, inner, depth-1)
				}
				found = found || pass.Derives(inst.Of, modeLayers...) == pyscan.Yes
			}
			if name := pass.Library(pyscan.ScopeAt(module, call), nil, call.Func); name == "torch.nn.functional.dropout" {
				found = true
			}
		}
		return !found
	})
	return found
}
