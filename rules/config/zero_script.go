package config

import (
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// untested are the optimizers of torch that ZeRO takes only when told to. It knows Adam, AdamW and Adagrad.
var untested = []string{"torch.optim.SGD", "torch.optim.RMSprop", "torch.optim.NAdam", "torch.optim.RAdam", "torch.optim.Adamax", "torch.optim.Adadelta", "torch.optim.ASGD", "torch.optim.LBFGS",
	"torch.optim.Rprop", "torch.optim.Adafactor"}

// onDevice are the others of torch, which work on the GPU where ZeRO-Offload wants an optimizer of DeepSpeed's for the CPU.
var onDevice = append([]string{"torch.optim.Adam", "torch.optim.AdamW", "torch.optim.Adagrad", "deepspeed.ops.adam.FusedAdam", "apex.optimizers.FusedAdam"}, untested...)

// pipelines are the names of the class whose models deepspeed.initialize runs as a pipeline.
var pipelines = []string{"deepspeed.pipe.PipelineModule", "deepspeed.runtime.pipe.PipelineModule", "deepspeed.runtime.pipe.module.PipelineModule"}

// experts are the names of DeepSpeed's layer of experts.
var experts = []string{"deepspeed.moe.layer.MoE"}

var initialize = &pyscan.Words{Alias: true, Names: map[string]bool{"initialize": true}}

// unsupportedInScript compares what a program gives to deepspeed.initialize with the config that goes along.
func unsupportedInScript(pass *lint.Pass, module *pyscan.Module) {
	for _, part := range pass.Parts(module.File.Path) { // the dicts of its engines; a rule with Module is not asked for parts of programs
		unsupportedInConfig(pass, part)
	}
	for _, site := range pass.CallsNear(module, initialize) {
		call, scope := site.Call, site.Scope
		if pass.Library(scope, nil, call.Func) != "deepspeed.initialize" {
			continue
		}
		config := pass.Engine(workspace.Wrapper{Kind: workspace.DeepSpeedEngine, Call: call, Scope: scope})
		stage, part, known := config.Stage()
		if !config.Certain || !known || part == nil || part.Tree.Root.Open || stage == 0 {
			continue
		}
		e := engineCall{pass, module, scope, call, config, part, stage}
		e.optimizer()
		e.model()
	}
}

type engineCall struct {
	pass   *lint.Pass
	module *pyscan.Module
	scope  *pyscan.Scope
	call   *syntax.Call
	config workspace.EngineConfig
	part   *workspace.Part // one that says the stage
	stage  int
}

// report tells of an argument, and of the setting that it goes badly with.
func (e *engineCall) report(argument syntax.Expr, setting, note, format string, args ...any) *lint.Diagnostic {
	at := e.call.Span()
	if argument != nil {
		at = argument.Span()
	}
	d := e.pass.Reportf(e.module.File.At(at), format, args...)
	if item := entry(e.part, setting); item != nil {
		d.Note(item.KeyAt, "%s", note)
	}
	return d
}

func (e *engineCall) optimizer() {
	argument := workspace.Argument(e.call, "optimizer", 2)
	value := e.pass.Arg(e.scope, nil, e.call, "optimizer", 2)
	if value == nil {
		return
	}
	name := "this optimizer"
	for _, known := range onDevice {
		if e.pass.IsA(value, known) == pyscan.Yes {
			name = known
		}
	}
	offload := "zero_optimization.offload_optimizer"
	if device, on := offloadDevice(e.part, "offload_optimizer"); on && len(e.config.Parts) == 1 && e.pass.IsA(value, onDevice...) == pyscan.Yes && e.config.Has("zero_force_ds_cpu_optimizer") == pyscan.No {
		e.report(argument, offload, "the optimizer is offloaded here",
			"%s with offload_optimizer to %s: the engine refuses an optimizer of the program that is not DeepSpeedCPUAdam", name, device).
			Help("make it with deepspeed.ops.adam.DeepSpeedCPUAdam, or leave it to the section optimizer of the config")
		return
	}
	if e.pass.IsA(value, untested...) == pyscan.Yes && e.config.Has("zero_allow_untested_optimizer") == pyscan.No {
		e.report(argument, "zero_optimization.stage", "the ZeRO stage is set here", "%s is not tested with ZeRO, and stage %d is set: DeepSpeed refuses it when the engine starts", name, e.stage).
			Help("set zero_allow_untested_optimizer to true, or use AdamW")
	}
}

func (e *engineCall) model() {
	argument := workspace.Argument(e.call, "model", 1)
	value := e.pass.Arg(e.scope, nil, e.call, "model", 1)
	if value == nil {
		return
	}
	const here = "the ZeRO stage is set here"
	if e.pass.IsA(value, pipelines...) == pyscan.Yes {
		if e.stage >= 2 {
			e.report(argument, "zero_optimization.stage", here, "ZeRO stage %d cannot be used with a pipeline: DeepSpeed refuses it when the engine starts", e.stage).Help("use stage 1 with a pipeline")
		}
		return
	}
	if e.stage < 2 || !e.hasExperts(value, 3) {
		return
	}
	if e.stage == 3 {
		e.report(argument, "zero_optimization.stage", here, "the model has layers of experts (deepspeed.moe.layer.MoE), which do not work with ZeRO stage 3: DeepSpeed refuses it when the engine starts").
			Help("use stage 2, or expert_parallel in the config")
		return
	}
	for _, name := range []string{"reduce_scatter", "contiguous_gradients"} {
		item := entry(e.part, "zero_optimization."+name)
		if item == nil {
			continue
		}
		if on, known := switchAt(e.part, "zero_optimization", name); known && !on {
			e.report(argument, "zero_optimization."+name, "it is switched off here", "the model has layers of experts (deepspeed.moe.layer.MoE), which need %s at ZeRO stage 2: DeepSpeed refuses it when the engine starts", name)
		}
	}
}

// hasExperts reports whether a model of the project certainly makes a layer of experts, in its own constructor or in that of a part.
func (e *engineCall) hasExperts(model pyscan.Value, depth int) bool {
	list := workspace.Alternatives(e.pass.Expand(model))
	if len(list) != 1 {
		return false
	}
	instance, ok := list[0].(*pyscan.Instance)
	if !ok {
		return false
	}
	class, ok := instance.Of.(*pyscan.Class)
	return ok && e.makesExperts(class, depth)
}

func (e *engineCall) makesExperts(class *pyscan.Class, depth int) bool {
	init := e.pass.Method(class, "__init__")
	if init == nil || depth <= 0 {
		return false
	}
	found := false
	for _, stmt := range init.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			if n == nil || found {
				return false
			}
			switch n := n.(type) {
			case *syntax.If, *syntax.IfExp, *syntax.FunctionDef, *syntax.ClassDef, *syntax.Lambda, *syntax.Try, *syntax.Match:
				return false // perhaps
			case *syntax.Call:
				callee := e.pass.Eval(init, nil, n.Func)
				switch callee := callee.(type) {
				case *pyscan.Class:
					found = e.pass.Derives(callee, experts...) == pyscan.Yes || e.makesExperts(callee, depth-1)
				case *pyscan.External:
					found = e.pass.Library(init, nil, n.Func) == experts[0]
				}
			}
			return !found
		})
	}
	return found
}

// indivisibleGroups: the groups of ranks that ZeRO shards over must divide the ranks of the run.
func indivisibleGroups(pass *lint.Pass, run *workspace.Run) {
	world, ok := run.Plan.Parallel.World.Get()
	if !ok || world < 1 || run.Plan.Parallel.World.How() == plan.IsDefault || run.Spare(run.Plan.Parallel.World) {
		return
	}
	for _, part := range run.Parts {
		if !isDeepSpeed(part) {
			continue
		}
		stage, known := zeroStage(part)
		if !known || stage != 3 {
			continue
		}
		for _, name := range []string{"zero_hpz_partition_size", "mics_shard_size"} {
			n, ok := numberAt(part, "zero_optimization", name)
			size := int64(n)
			if !ok || size < 2 || float64(size) != n || world%size == 0 || name == "zero_hpz_partition_size" && size > world {
				continue // hpZ of more ranks than there are takes them all
			}
			d := pass.Reportf(valueAt(entry(part, "zero_optimization."+name)), "%s is %d, which does not divide the %s of the run: DeepSpeed refuses it when the engine starts", name, size, count(world, "rank"))
			for _, place := range run.Plan.Parallel.World.From() {
				d.Note(place, "the ranks follow from this")
			}
		}
	}
}
