package amp

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed gradscaler-fp16-params.md
var docGradscalerFp16Params string

// GradscalerFp16Params finds GradScalers whose optimizer trains float16 parameters.
var GradscalerFp16Params = &lint.Rule{
	Name:     "gradscaler-fp16-params",
	Family:   "amp",
	Since:    "0.1",
	Doc:      docGradscalerFp16Params,
	Severity: lint.Error,
	Mentions: []string{"GradScaler"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		scalerCalls(pass, module, func(scope *pyscan.Scope, call *syntax.Call) {
			if enabled(pass, scope, nil, call, scalerFlag(pass.Library(scope, nil, call.Func))) != pyscan.Yes {
				return
			}
			dtype, where := trained(pass, loopsWith(pass, scope.Module, call))
			if dtype != "torch.float16" {
				return
			}
			d := pass.Reportf(module.File.At(call.Span()), "the trained parameters are float16: the first step through the scaler raises \"Attempting to unscale FP16 gradients\"")
			d.Note(where, "the parameters become float16 here")
			d.Help("keep the parameters in fp32 and let autocast compute in float16")
		})
	},
}
