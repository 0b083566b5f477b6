package fsdp

import (
	"fmt"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
)

// preparedNoSync looks at micro-batches that an Accelerator runs without synchronisation: inside its no_sync(model), and inside
// accumulate(model) all but the last of a window (accelerate 0.20 to 1.15, Accelerator.accumulate).
func preparedNoSync(pass *lint.Pass, l *loop.Loop, reported map[source.Place]bool) {
	for event := range l.All {
		if event.Kind != loop.Backward || event.In(loop.NoGradContext) {
			continue
		}
		for _, c := range event.Contexts {
			if c.Kind != loop.AccumulateContext && c.Kind != loop.NoSyncContext {
				continue
			}
			call, acc := acceleratorOf(pass, c)
			if acc == nil || reported[c.At] || c.At.Path != l.Scope.Module.File.Path {
				continue
			}
			if c.Kind == loop.AccumulateContext && pass.Accumulation(event).More != pyscan.Yes {
				continue
			}
			reported[c.At] = true
			d := reportPrepared(pass, c, call, acc)
			if d != nil && c.Kind == loop.AccumulateContext && pass.Accumulation(event).Count == 0 {
				d.As(lint.Info) // a setting, which may be 1
			}
		}
	}
}

// acceleratorOf is the call of a method of an Accelerator that a context is, and the Accelerator.
func acceleratorOf(pass *lint.Pass, c loop.Context) (*pyscan.Result, *pyscan.Instance) {
	for _, value := range c.Values {
		result, ok := value.(*pyscan.Result)
		if !ok || result.Call == nil || result.At.Module == nil {
			continue
		}
		member, ok := result.Of.(*pyscan.Member)
		if !ok {
			continue
		}
		for _, one := range workspace.Alternatives(pass.Expand(member.Base)) {
			if inst, ok := one.(*pyscan.Instance); ok && pass.IsA(inst, "accelerate.Accelerator") == pyscan.Yes {
				return result, inst
			}
		}
	}
	return nil, nil
}

func reportPrepared(pass *lint.Pass, c loop.Context, call *pyscan.Result, acc *pyscan.Instance) *lint.Diagnostic {
	sharding, ok := pass.AcceleratorSharding(acc)
	accelerate := pass.Pin(c.At.Path, "accelerate")
	switch {
	case !ok || sharding.Strategy == "NO_SHARD":
		return nil
	case c.Kind == loop.AccumulateContext && sharding.EachBatch != pyscan.No && accelerate.Since("0.28") != pyscan.No:
		return nil
	case sharding.Kind == workspace.FSDP2 && accelerate.Since("1.11") == pyscan.No:
		return nil // fully_shard has no no_sync(), which accelerate asked for until then: each micro-batch reduces
	}
	what, why := "accumulate() runs all micro-batches but the last of a window", ""
	if c.Kind == loop.NoSyncContext {
		what = "no_sync() runs the micro-batch"
	}
	if sharding.Kind == workspace.FSDP2 && accelerate.Since("1.11") == pyscan.Maybe {
		why = " (accelerate 1.11 and later)"
	}
	d := pass.Reportf(c.At, "%s without gradient synchronisation%s: every rank of %s keeps whole gradients until the last, %s",
		what, why, sharding.Kind, wholeGradients)
	scope := pyscan.ScopeAt(call.At.Module, call.Call)
	if len(call.Call.Args) > 0 {
		sized(pass, d, pass.Eval(scope, call.Frame, call.Call.Args[0]), c.At.Path)
	}
	if sharding.Strategy != "" && sharding.Strategy != "FULL_SHARD" {
		d.As(lint.Info)
	}
	if !sharding.At.IsZero() {
		d.Note(sharding.At, "the models are sharded by this")
	}
	if c.Kind == loop.NoSyncContext {
		return d.Help("let each micro-batch reduce-scatter its gradients: call backward outside of no_sync(), unless there is memory to spare")
	}
	return d.Help("pass gradient_accumulation_plugin=GradientAccumulationPlugin(num_steps=..., sync_each_batch=True) to the Accelerator " +
		"(accelerate 0.28 and later), unless there is memory to spare")
}

// wholeGradients is what whole gradients take: under FSDP1's mixed precision they are of its param_dtype, under FSDP2's of its reduce_dtype.
const wholeGradients = "4 bytes a parameter in fp32, 2 in bf16, instead of its share"

// sized tells the bytes for the model of a value, where it is known. Of a model with adapters only those have gradients.
func sized(pass *lint.Pass, d *lint.Diagnostic, model pyscan.Value, file string) {
	_, inner, _ := pass.Wrappers(model)
	for _, one := range workspace.Alternatives(pass.Expand(inner)) {
		if result, ok := one.(*pyscan.Result); ok && strings.HasPrefix(pass.ExternalName(result.Of), "peft.") {
			d.As(lint.Info)
			return
		}
	}
	if parameters, name, known := pass.ModelSize(inner, file); known {
		tellSize(d, parameters, name)
	}
}

func tellSize(d *lint.Diagnostic, parameters int64, name string) {
	bytes := float64(parameters) * gradientBytes
	d.Message += fmt.Sprintf(". For %s that is %s in fp32", name, gigabytes(bytes))
	if bytes <= worthWarning*usualDevice {
		d.As(lint.Info)
	}
}

// trainerNoSync looks at runs of HF's Trainer that accumulate under FSDP. It runs all micro-batches but the last of a window in no_sync:
// by accelerator.accumulate until 4.46.1, by accelerator.no_sync since (trainer.py).
func trainerNoSync(pass *lint.Pass, run *workspace.Run) {
	sharding, known := run.Plan.Sharding.Get()
	if !known || sharding != plan.FSDP1 && sharding != plan.FSDP2 {
		return
	}
	steps, ok := run.Trainer("batch.accumulation").(plan.Value[int64])
	if !ok {
		return
	}
	n, _ := steps.Get()
	at, key, isWritten := run.Written(steps)
	if n < 2 || !isWritten || adapts(run) {
		return
	}
	if world, ok := run.Plan.Parallel.World.Get(); ok && world == 1 {
		return
	}
	transformers, accelerate := pass.Pin(at.Path, "transformers"), pass.Pin(at.Path, "accelerate")
	if transformers.Since("4.28") == pyscan.No || sharding == plan.FSDP2 && accelerate.Since("1.11") == pyscan.No {
		return
	}
	ignored := transformers.Since("4.46.2") == pyscan.Yes && transformers.Since("5.2") == pyscan.No
	each, open := syncEachBatch(run)
	if open || each != nil && !ignored {
		return
	}
	kind := workspace.FSDP1
	if sharding == plan.FSDP2 {
		kind = workspace.FSDP2
	}
	d := pass.Reportf(at, "%s is %d under FSDP: the Trainer runs all micro-batches but the last in no_sync, so that every rank of %s "+
		"keeps whole gradients until then, %s", key, n, kind, wholeGradients)
	if parameters, name, ok := run.Parameters(); ok {
		tellSize(d, parameters, name)
	}
	if partlySharded(run) || pass.ImportedAnywhere(at.Path, "peft") {
		d.As(lint.Info) // perhaps only adapters have gradients
	}
	if from, _, ok := run.Written(run.Plan.Sharding); ok {
		d.Note(from, "the model is sharded by this")
	}
	if each != nil {
		d.Note(each.KeyAt, "transformers 4.46.2 to 5.1 do not read this")
		d.Help("accumulate less, or use transformers 5.2 or later, which reads sync_each_batch again")
		return
	}
	d.Help("set accelerator_config.gradient_accumulation_kwargs.sync_each_batch: true (transformers 5.2 and later, or below 4.46.2), or a larger micro-batch " +
		"with less accumulation, unless there is memory to spare")
}

// adapts reports whether only adapters are trained: their gradients are small.
func adapts(run *workspace.Run) bool {
	rank, known := run.Plan.LoRA.Rank.Get()
	return known && rank > 0 || !known && run.Plan.LoRA.Alpha.Known()
}

// syncEachBatch is the entry sync_each_batch: true of the Trainer's accelerator_config; open where an entry is there that cannot be read.
func syncEachBatch(run *workspace.Run) (found *configs.Item, open bool) {
	for _, part := range run.Parts {
		if !part.OfTrainer() || part.Tree.Root == nil {
			continue
		}
		config := part.Tree.Root.Get("accelerator_config")
		if config == nil {
			continue
		}
		item := config.Get("gradient_accumulation_kwargs").Item("sync_each_batch")
		if config.Kind != configs.Mapping || config.Open {
			return nil, true // a file of its own
		}
		if item == nil {
			continue
		}
		on, known := item.Value.Bool(part.Dialect.LoaderOf(part.Tree))
		if !known {
			return nil, true
		}
		if on {
			found = item
		}
	}
	return found, false
}

// partlySharded reports whether gradients are kept whole within a node anyway, or the strategy says so of weights.
func partlySharded(run *workspace.Run) bool {
	for part, item := range run.Keys() {
		switch {
		case item.Value == nil || part.Tree.Root == nil:
		case strings.HasSuffix(item.Key, "fsdp") || strings.HasSuffix(item.Key, "sharding_strategy"):
			text := strings.ToLower(item.Value.Raw)
			if strings.Contains(text, "hybrid") || strings.Contains(text, "shard_grad_op") {
				return true
			}
		}
	}
	return false
}
