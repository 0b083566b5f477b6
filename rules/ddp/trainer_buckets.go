package ddp

import (
	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/catalog"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// checkTrainerBuckets looks at the cap in files and flags that end in TrainingArguments: of the Trainer,
// LLaMA-Factory, axolotl, ms-swift.
func checkTrainerBuckets(pass *lint.Pass, run *workspace.Run) {
	sharding, known := run.Plan.Sharding.Get()
	if !known || sharding != plan.DDP {
		return // FSDP and DeepSpeed have buckets of their own, and one rank has none
	}
	for _, part := range run.Parts {
		table := dialect.Keys(part.Dialect)
		if table == nil || table.Lookup(trainerCap) == nil || part.Tree.Root == nil {
			continue
		}
		for _, item := range part.Tree.Root.Items {
			if part.Dialect.Spelled(part.Tree, item.Key) == trainerCap && item.Value != nil {
				checkTrainerCap(pass, run, part, item)
			}
		}
	}
}

func checkTrainerCap(pass *lint.Pass, run *workspace.Run, part *workspace.Part, item configs.Item) {
	if item.Value.Kind != configs.Scalar || item.Value.Open || part.Tree.Template {
		return
	}
	limit := part.Dialect.LoaderOf(part.Tree).Resolve(item.Value)
	mib, number := limit.Number()
	if text, isText := limit.Str(); isText && part.Tree.Format == configs.Flags {
		limit, _ = constant.Convert("float", constant.MakeString(text))
		mib, number = limit.Number()
	}
	if !number {
		return // invalid-value says so
	}
	var written source.Place
	if item.Value.Via.IsZero() {
		written = item.Value.At
	}
	switch {
	case mib <= 0:
		impossible(pass, item.KeyAt, limit)
	case mib > largestCap:
		inBytes(pass, item.KeyAt, written, mib)
	default:
		rank, known := run.Plan.LoRA.Rank.Get()
		stored, quantized := run.Plan.Quantization.Kind.Get()
		if !known || rank > 0 || quantized && stored != plan.NoQuantization {
			return // the gradients are those of an adapter
		}
		if spec, missing, err := catalog.Shape(&run.Plan); err == nil && len(missing) == 0 && spec != nil {
			judge(pass, item.KeyAt, mib, float64(spec.CountParameters().Total), spec.Name)
		}
	}
}

// trained is the model of the Trainer that arguments are given to; unknown where no Trainer is seen, and nil where
// its gradients are not those of a whole model under DDP: another engine shards it, or it has an adapter.
func trained(pass *lint.Pass, module *pyscan.Module, scope *pyscan.Scope, arguments *syntax.Call) pyscan.Value {
	for _, name := range []string{"deepspeed", "fsdp"} {
		if value := pass.Arg(scope, nil, arguments, name, -1); value != nil {
			if c, ok := pass.Constant(value); !ok || c.Truth() {
				return nil
			}
		}
	}
	for _, site := range module.Calls {
		args := pass.Arg(site.Scope, nil, site.Call, "args", 1)
		if args == nil {
			continue
		}
		if made, is := pass.Expand(args).(*pyscan.Instance); !is || made.Call != arguments {
			continue
		}
		if pass.Arg(site.Scope, nil, site.Call, "peft_config", -1) != nil {
			return nil
		}
		if model := pass.Arg(site.Scope, nil, site.Call, "model", 0); model != nil {
			return model
		}
	}
	return &pyscan.Unknown{}
}
