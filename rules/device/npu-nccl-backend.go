package device

import (
	_ "embed"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed npu-nccl-backend.md
var npuNcclBackendDoc string

// groupMakers are the last names of what makes the default process group.
var groupMakers = &pyscan.Words{Alias: true, Names: map[string]bool{"init_process_group": true, "init_distributed": true}}

// NpuNcclBackend finds process groups of NPUs that are to talk over NCCL.
var NpuNcclBackend = &lint.Rule{
	Name:     "npu-nccl-backend",
	Family:   "device",
	Since:    "0.1",
	Doc:      npuNcclBackendDoc,
	Severity: lint.Error,
	Fix:      lint.SometimesFix,
	Mentions: []string{"init_process_group", "init_distributed"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		for _, site := range pass.CallsNear(module, groupMakers) {
			call, scope := site.Call, site.Scope
			keyword := ""
			switch pass.Library(scope, nil, call.Func) {
			case "torch.distributed.init_process_group":
				keyword = "backend"
			case "deepspeed.init_distributed":
				keyword = "dist_backend"
			default:
				continue
			}
			argument := workspace.Argument(call, keyword, 0)
			if argument == nil {
				continue
			}
			given := pass.Expand(pass.Eval(scope, nil, argument))
			_, setting := given.(*pyscan.Setting)
			c, known := pass.Constant(pass.Settled(given))
			backend, _ := c.Str()
			if !known || !strings.Contains(strings.ToLower(backend), "nccl") || condition(pass, scope, call) == byDevice || condition(pass, scope, argument) == byDevice || !onNPU(pass, module) {
				continue
			}
			d := pass.Reportf(module.File.At(argument.Span()), "NCCL does not run on NPUs, and without transfer_to_npu nothing replaces it: the first collective fails")
			if pass.Started(module.File.Path) == pyscan.No || condition(pass, scope, call) == sometime || setting {
				d.As(lint.Warning)
			}
			if text, ok := argument.(*syntax.Constant); ok && text.Text == "nccl" {
				d.Suggest("use HCCL", lint.Unsafe, lint.Edit{At: module.File.At(argument.Span()), Text: `"hccl"`})
			} else {
				d.Help("use hccl")
			}
		}
	},
}
