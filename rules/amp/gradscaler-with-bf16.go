package amp

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed gradscaler-with-bf16.md
var docGradscalerWithBf16 string

// GradscalerWithBf16 finds GradScalers in bfloat16 training.
var GradscalerWithBf16 = &lint.Rule{
	Name:     "gradscaler-with-bf16",
	Family:   "amp",
	Since:    "0.1",
	Doc:      docGradscalerWithBf16,
	Severity: lint.Warning,
	Fix:      lint.SometimesFix,
	Hides:    []string{"npu-cuda-api-mix"}, // which says of the same call that it is off
	Mentions: []string{"GradScaler"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		scalerCalls(pass, module, func(scope *pyscan.Scope, call *syntax.Call) { checkScalerDtype(pass, scope, call) })
	},
}

func checkScalerDtype(pass *lint.Pass, scope *pyscan.Scope, call *syntax.Call) {
	position := scalerFlag(pass.Library(scope, nil, call.Func))
	if enabled(pass, scope, nil, call, position) != pyscan.Yes {
		return
	}
	module := scope.Module
	at := module.File.At(call.Span())
	loops := loopsWith(pass, module, call)
	off := switchedOff(pass, scope, call)
	var d *lint.Diagnostic
	if dtype, where := trained(pass, loops); dtype == "torch.bfloat16" {
		if off {
			d = pass.Reportf(at, offOnNPU)
		} else {
			d = pass.Reportf(at, "the parameters are bfloat16: unscaling their gradients raises \"not implemented for 'BFloat16'\", and bfloat16 has the range of fp32, so there is nothing to scale").As(lint.Error)
		}
		d.Note(where, "the parameters become bfloat16 here")
	} else if where, ok := onlyBfloat16(pass, module, loops); ok {
		if off {
			d = pass.Reportf(at, offOnNPU)
		} else {
			d = pass.Reportf(at, "GradScaler does nothing useful for bfloat16, which has the range of fp32: it only costs a check of all gradients, and skips optimizer steps while it looks for a scale")
		}
		d.Note(where, "autocast computes in bfloat16 here")
	} else {
		return
	}
	flag := workspace.Argument(call, "enabled", position)
	switch {
	case flag != nil:
		d.Suggest("disable the scaler", lint.Safe, lint.Edit{At: module.File.At(flag.Span()), Text: "False"})
	case len(call.Args)+len(call.Keywords) == 0:
		end := call.Span().End
		d.Suggest("disable the scaler", lint.Safe, lint.Edit{At: module.File.At(source.Span{Start: end - 1, End: end - 1}), Text: "enabled=False"})
	default:
		end := lastArgument(call)
		d.Suggest("disable the scaler", lint.Safe, lint.Edit{At: module.File.At(source.Span{Start: end, End: end}), Text: ", enabled=False"})
	}
}

// offOnNPU is what is true of a scaler for CUDA in bfloat16 training on an NPU.
const offOnNPU = "this GradScaler is for CUDA and switches itself off on an NPU: it does nothing, and bfloat16, which has the range " +
	"of fp32, needs no scaler"

// switchedOff reports whether a GradScaler for CUDA is made in a file for NPUs: without CUDA it warns and does nothing.
func switchedOff(pass *lint.Pass, scope *pyscan.Scope, call *syntax.Call) bool {
	file := scope.Module.File.Path
	npu := workspace.ImportOf(scope.Module, "torch_npu")
	if npu == nil || npu.Scope.Kind != pyscan.ModuleScope || len(workspace.Around(npu.Scope, npu.Node)) > 1 || // runs elsewhere too
		pass.TransfersToNPU(file) || pass.MayTransfer(file) {
		return false
	}
	name := pass.Library(scope, nil, call.Func)
	if strings.HasPrefix(name, "torch.cuda.") {
		return true
	}
	device := pass.Arg(scope, nil, call, "device", 0)
	if name != "torch.amp.GradScaler" && name != "torch.GradScaler" || device == nil && pass.OpenKeywords(scope, nil, call) {
		return false
	}
	if device == nil {
		return true // "cuda"
	}
	text, ok := pass.Constant(pass.Expand(device))
	given, isText := text.Str()
	return ok && isText && (given == "cuda" || strings.HasPrefix(given, "cuda:"))
}

// lastArgument is where the last argument of a call ends.
func lastArgument(call *syntax.Call) uint32 {
	var end uint32
	for _, arg := range call.Args {
		end = max(end, arg.Span().End)
	}
	for _, k := range call.Keywords {
		end = max(end, k.Value.Span().End)
	}
	return end
}

// onlyBfloat16 reports whether every autocast of the file, and of what its loops run elsewhere, is surely bfloat16, and gives one.
func onlyBfloat16(pass *lint.Pass, module *pyscan.Module, loops []*loop.Loop) (at source.Place, ok bool) {
	type question struct{ module *pyscan.Module }
	list := slices.Clip(lint.Once(pass, question{module}, func() []autocast {
		var list []autocast
		for _, stmt := range module.Tree.Body {
			list = append(list, autocastsIn(pass, module.Root, nil, stmt)...)
		}
		return list
	}))
	for _, l := range loops {
		for event := range l.All {
			if event.In(loop.NoGradContext) {
				continue
			}
			for _, c := range event.Contexts {
				list = append(list, autocastsOf(pass, c)...)
			}
		}
	}
	for _, a := range list {
		if a.enabled == pyscan.No {
			continue
		}
		if a.dtype != "bfloat16" {
			return at, false
		}
		if !ok {
			at, ok = a.place(), true
		}
	}
	return at, ok
}
