package ddp

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed ddp-bucket-copy.md
var ddpBucketCopyDoc string

// DdpBucketCopy finds DistributedDataParallel around a large model whose buckets hold the gradients a second time.
var DdpBucketCopy = &lint.Rule{
	Name:     "ddp-bucket-copy",
	Family:   "ddp",
	Since:    "0.1",
	Doc:      ddpBucketCopyDoc,
	Severity: lint.Info,
	Fix:      lint.AlwaysFix,
	Mentions: []string{"DistributedDataParallel", "DDP("},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		sites := pass.CallsNear(module, ddpNames)
		if len(sites) == 0 {
			return
		}
		// What is frozen has no gradients, and how much that is cannot be told.
		code := module.LowerCode()
		for _, word := range []string{"requires_grad", "peft", "lora"} {
			if strings.Contains(code, word) {
				return
			}
		}
		for _, site := range sites {
			checkCopy(pass, module, site.Scope, site.Call)
		}
	},
}

var ddpNames = &pyscan.Words{Alias: true, Names: map[string]bool{"DistributedDataParallel": true}}

func checkCopy(pass *lint.Pass, module *pyscan.Module, scope *pyscan.Scope, call *syntax.Call) {
	if pass.ExternalName(pass.Eval(scope, nil, call.Func)) != "torch.nn.parallel.DistributedDataParallel" || len(call.Args) == 0 {
		return
	}
	if pass.Arg(scope, nil, call, "gradient_as_bucket_view", 9) != nil || pass.OpenKeywords(scope, nil, call) {
		return
	}
	parameters, name, ok := pass.ModelSize(pass.Eval(scope, nil, call.Args[0]), module.File.Path)
	if !ok || float64(parameters) < largeModel {
		return
	}
	last := call.Args[len(call.Args)-1].Span().End
	for _, k := range call.Keywords {
		last = max(last, k.Span().End)
	}
	end := source.Span{Start: last, End: last}
	pass.Reportf(module.File.At(call.Span()), "the buckets of the reducer hold a second copy of the gradients: %s for %s in the type of its weights, %s in fp32",
		gigabytesOf(2*float64(parameters)), name, gigabytesOf(4*float64(parameters))).
		Suggest("let the gradients be views of the buckets", lint.Unsafe, lint.Edit{At: module.File.At(end), Text: ", gradient_as_bucket_view=True"})
}

func gigabytesOf(bytes float64) string { return fmt.Sprintf("%.1f GB", bytes/1e9) }
