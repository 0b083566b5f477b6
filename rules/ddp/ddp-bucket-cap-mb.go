package ddp

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed ddp-bucket-cap-mb.md
var ddpBucketCapMBDoc string

// Thresholds of the rule. 25 MiB is DDP's default; the rest is what its maintainers say of large models (pytorch/pytorch#118421).
const (
	largestCap      = 100_000 // MiB; a larger number is one of bytes
	manyBuckets     = 1024    // all-reduces a step from which latency decides
	smallCap        = 10      // MiB
	gradientBytes   = 4       // a gradient element, where nothing casts the model
	largeModel      = 1e9     // parameters
	smallModel      = 1e8
	overlapMiB      = 100 // gradients of this size deserve more than one bucket
	worthSayingMiB  = 25
	usualBuckets    = 200 // what a good cap cuts the gradients into
	defaultCap      = 25
	hugeModel       = 1e10
	guideSmallModel = 1e9
	guideLargeModel = 1e10
)

// DdpBucketCapMb checks the size of DDP's gradient buckets against the model.
var DdpBucketCapMb = &lint.Rule{
	Name:     "ddp-bucket-cap-mb",
	Family:   "ddp",
	Since:    "0.1",
	Doc:      ddpBucketCapMBDoc,
	Severity: lint.Warning,
	Fix:      lint.SometimesFix,
	Mentions: []string{"bucket_cap_mb", "bucket-cap-mb", "DistributedDataParallel", "DDP("},
	Options:  []lint.Option{{Name: "table", Doc: "which sizes are right: those of the maintainers (default), or the bands of the common guide", Default: "default", Choices: []string{"default", "guide"}}},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		for _, site := range pass.CallsNear(module, capNames) {
			checkBuckets(pass, module, site.Scope, site.Call)
		}
	},
	Run: checkTrainerBuckets,
}

// trainerCap is the key of the Trainer, which hands it on to DistributedDataParallel, and of the programs on top of the Trainer.
const trainerCap = "ddp_bucket_cap_mb"

// capNames are the last names of caps, and what may carry one of them.
var capNames = &pyscan.Words{Alias: true, Names: map[string]bool{"DistributedDataParallel": true, "replicate": true, "DistributedDataParallelKwargs": true, "TrainingArguments": true,
	"Seq2SeqTrainingArguments": true, "SFTConfig": true, "DDPStrategy": true, "FullyShardedDataParallel": true, "partial": true}}

// caps are the calls that take a bucket size, with its keyword and position (-1: keyword only).
var caps = map[string]struct {
	keyword  string
	position int
}{
	"torch.nn.parallel.DistributedDataParallel":       {"bucket_cap_mb", 6},
	"torch.distributed._composable.replicate":         {"bucket_cap_mb", -1},
	"accelerate.DistributedDataParallelKwargs":        {"bucket_cap_mb", -1},
	"transformers.TrainingArguments":                  {trainerCap, -1},
	"transformers.Seq2SeqTrainingArguments":           {trainerCap, -1},
	"trl.SFTConfig":                                   {trainerCap, -1},
	"pytorch_lightning.strategies.DDPStrategy":        {"bucket_cap_mb", -1},
	"pytorch_lightning.strategies.ddp.DDPStrategy":    {"bucket_cap_mb", -1},
	"lightning_fabric.strategies.DDPStrategy":         {"bucket_cap_mb", -1},
	"lightning.fabric.strategies.ddp.DDPStrategy":     {"bucket_cap_mb", -1},
	"torch.distributed.fsdp.FullyShardedDataParallel": {"bucket_cap_mb", -1},
}

func checkBuckets(pass *lint.Pass, module *pyscan.Module, scope *pyscan.Scope, call *syntax.Call) {
	callee := pass.Eval(scope, nil, call.Func)
	name := pass.ExternalName(callee)
	takes, known := caps[name]
	partial := false
	if name == "functools.partial" && len(call.Args) > 0 {
		if name = pass.Library(scope, nil, call.Args[0]); name != "" {
			takes, known = caps[name]
			takes.position, partial = -1, true
		}
	}
	if !known {
		return
	}
	value := pass.Arg(scope, nil, call, takes.keyword, takes.position)
	if value == nil {
		return
	}
	at := module.File.At(call.Span())
	if e := workspace.Argument(call, takes.keyword, takes.position); e != nil {
		at = module.File.At(e.Span())
		for _, k := range call.Keywords {
			if k.Value == e {
				at = module.File.At(k.Span())
			}
		}
	}
	if name == "torch.distributed.fsdp.FullyShardedDataParallel" {
		pass.Reportf(at, "FSDP has no bucket_cap_mb: this raises TypeError").As(lint.Error)
		return
	}
	limit, ok := pass.Constant(pass.Settled(value))
	if !ok || limit.Kind() == constant.None {
		return
	}
	if impossible(pass, at, limit) {
		return
	}
	mib, _ := limit.Number()
	if mib > largestCap {
		var written source.Place
		if e := workspace.Argument(call, takes.keyword, takes.position); e != nil {
			written = module.File.At(e.Span())
		}
		inBytes(pass, at, written, mib)
		return
	}
	var model pyscan.Value = &pyscan.Unknown{}
	switch {
	case takes.keyword == trainerCap:
		if model = trained(pass, module, scope, call); model == nil {
			return
		}
	case len(call.Args) > 0 && !partial:
		model = pass.Eval(scope, nil, call.Args[0])
	}
	if parameters, how, ok := pass.ModelSize(model, module.File.Path); ok {
		judge(pass, at, mib, float64(parameters), how)
	}
}
