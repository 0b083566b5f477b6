package config

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
)

//go:embed zero-unsupported.md
var docZeroUnsupported string

// ZeroUnsupported reports what DeepSpeed's engine refuses to combine with ZeRO.
var ZeroUnsupported = &lint.Rule{
	Name:     "zero-unsupported",
	Family:   "config",
	Since:    "0.1",
	Doc:      docZeroUnsupported,
	Severity: lint.Error,
	Mentions: []string{"optimizer", "zero_optimization", "deepspeed"},
	Part: func(pass *lint.Pass, part *workspace.Part) {
		unsupportedInConfig(pass, part)
	},
	Module: unsupportedInScript,
	Run:    indivisibleGroups,
}

func unsupportedInConfig(pass *lint.Pass, part *workspace.Part) {
	if part.Dialect == dialect.GPTNeoX && slices.Contains([]string{"onebitadam", "sgd", "sm3", "madgrad_wd"}, textAt(part, "optimizer", "type")) {
		unsupportedOptimizer(pass, part) // it makes the others of classes that DeepSpeed tested
	}
	if isDeepSpeed(part) {
		unsupportedOptimizer(pass, part)
		unsupportedBeside(pass, part)
	}
}

func isDeepSpeed(part *workspace.Part) bool {
	return part.Dialect == dialect.DeepSpeed && !part.Tree.Template
}

func unsupportedOptimizer(pass *lint.Pass, part *workspace.Part) {
	item := entry(part, "optimizer.type")
	kind := textAt(part, "optimizer", "type")
	if item == nil || kind == "" || isNull(part, item.Value) {
		return
	}
	name, at := item.Value.Raw, valueAt(item)
	if slices.Contains([]string{"lamb", "onebitlamb"}, kind) {
		scale, fixed := numberAt(part, "fp16", "loss_scale")
		if on, known := switchAt(part, "fp16", "enabled"); on && known && fixed && scale != 0 {
			pass.Reportf(at, "%s works with dynamic loss scaling alone, and fp16.loss_scale is %g: DeepSpeed refuses it when the engine starts", name, scale)
		}
	}
	stage, known := zeroStage(part)
	if !known || stage == 0 {
		return
	}
	switch {
	case slices.Contains([]string{"onebitadam", "zerooneadam", "onebitlamb"}, kind):
		pass.Reportf(at, "%s cannot be used with ZeRO, and stage %d is set: DeepSpeed refuses it when the engine starts", name, stage).
			Help("use AdamW with ZeRO, or stage 0 with %s", name)
	case kind == "muon":
		reduce, known := switchAt(part, "zero_optimization", "reduce_scatter")
		if part.Tree.Root.Get("zero_optimization", "reduce_scatter") == nil {
			reduce = true
		}
		if stage == 3 && reduce && known {
			pass.Reportf(at, "Muon at stage 3 needs reduce_scatter: false: DeepSpeed refuses it when the engine starts")
		} else if muonOffloaded(part, stage) {
			pass.Reportf(at, "Muon with offload_optimizer needs reduce_scatter: false: DeepSpeed refuses it when the engine starts")
		}
	case !slices.Contains([]string{"adam", "adamw", "fusedadam", "cpuadam", "deepspeedcpuadam", "adagrad", "lion", "fusedlion"}, kind):
		if allowed, known := switchAt(part, "zero_allow_untested_optimizer"); !allowed && known {
			pass.Reportf(at, "%s is not tested with ZeRO, and stage %d is set: DeepSpeed refuses it when the engine starts", name, stage).
				Help("set zero_allow_untested_optimizer to true, or use AdamW")
		}
	}
}

// unsupportedBeside are the other settings that the engine refuses beside a stage.
func unsupportedBeside(pass *lint.Pass, part *workspace.Part) {
	stage, known := zeroStage(part)
	if !known || stage == 0 {
		return
	}
	if amp := entry(part, "amp.enabled"); isOn(part, amp) {
		pass.Reportf(valueAt(amp), "amp is on, and apex cannot be used with ZeRO (stage %d): DeepSpeed refuses it when the engine starts", stage)
	}
	scatter, known := switchAt(part, "zero_optimization", "reduce_scatter")
	if part.Tree.Root.Get("zero_optimization", "reduce_scatter") == nil {
		scatter = true
	}
	if stage >= 2 && scatter && known {
		if item := entry(part, "prescale_gradients"); isOn(part, item) {
			pass.Reportf(valueAt(item), "prescale_gradients does not work with ZeRO stage %d and reduce_scatter: DeepSpeed refuses it when the engine starts", stage)
		}
		if factor, ok := numberAt(part, "gradient_predivide_factor"); ok && factor != 1 {
			pass.Reportf(valueAt(entry(part, "gradient_predivide_factor")), "gradient_predivide_factor does not work with ZeRO stage %d and reduce_scatter: DeepSpeed refuses it when the engine starts", stage)
		}
	}
	if !scatter && known {
		if item := entry(part, "zero_optimization.zero_quantized_gradients"); stage == 3 && isOn(part, item) {
			pass.Reportf(valueAt(item), "zero_quantized_gradients needs reduce_scatter, which is off: DeepSpeed refuses it when the engine starts")
		}
	}
	if size, ok := numberAt(part, "zero_optimization", "mics_shard_size"); ok && size > 0 {
		for _, section := range []string{"offload_optimizer", "offload_param"} {
			if device, on := offloadDevice(part, section); on {
				pass.Reportf(valueAt(entry(part, "zero_optimization.mics_shard_size")), "MiCS does not offload, and %s goes to %s: DeepSpeed refuses it when the engine starts", section, device)
			}
		}
	}
	expertsAtStage3(pass, part, stage)
	pipelined(pass, part, stage)
}

// pipelined: a config with stages in its section pipeline is for a pipeline module.
func pipelined(pass *lint.Pass, part *workspace.Part, stage int) {
	item := entry(part, "pipeline.stages")
	if item == nil || stage < 2 {
		return
	}
	v, ok := value(part, item.Value)
	n, isNumber := v.Number()
	if !ok || !isNumber || n < 2 {
		return
	}
	at := entry(part, "zero_optimization.stage")
	if at == nil {
		return
	}
	pass.Reportf(valueAt(at), "ZeRO stage %d cannot be used with a pipeline (of %s stages): DeepSpeed refuses it when the engine starts", stage, strings.TrimSuffix(fmt.Sprint(n), ".0")).
		Note(item.KeyAt, "the stages of the pipeline").Help("use stage 1 with a pipeline")
}
