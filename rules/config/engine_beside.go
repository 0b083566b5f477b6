package config

import (
	"slices"
	"strconv"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/lint/workspace"
)

// besideFault are values that DeepSpeed refuses beside another setting of the config, or does nothing with (DeepSpeed 0.19.6).
func besideFault(s *setting, v constant.Value) *fault {
	n, isNumber := v.Number()
	isNumber = isNumber && v.Kind() != constant.Bool
	text, isText := v.Str()
	on, _ := switchAt(s.part, strings.Split(s.path(), ".")...)
	stage, known := zeroStage(s.part)
	switch s.path() {
	case "gradient_allreduce_op":
		if !strings.EqualFold(text, "sum") {
			return nil
		}
		if zenflow := s.part.Tree.Root.Get("zero_optimization", "zenflow"); zenflow != nil && zenflow.Kind == configs.Mapping {
			return refused("is sum, which ZenFlow cannot do: DeepSpeed refuses the config")
		}
		if certainlyOn(s.part, "compile", "deepcompile") {
			return refused("is sum, which DeepCompile cannot do: DeepSpeed refuses the config")
		}
	case "managed_gradient_accumulation":
		if is, ok := v.Bool(); !ok || is {
			return nil
		}
		stages, piped := numberAt(s.part, "pipeline", "stages")
		for _, other := range []struct {
			on   bool
			name string
		}{{certainlyOn(s.part, "amp", "enabled"), "amp"}, {certainlyOn(s.part, "compile", "deepcompile"), "DeepCompile"}, {piped && stages > 1, "a pipeline"}} {
			if other.on {
				return refused("is false, which does not work with %s: the engine refuses it when it starts", other.name)
			}
		}
	case "fp16.fp16_master_weights_and_grads":
		if on && certainlyOn(s.part, "fp16", "enabled") && known && stage > 0 && !mayOffload(s.part) {
			return refused("is on, which needs the optimizer on the CPU (offload_optimizer): the engine refuses it when it starts")
		}
	case "vocabulary_size":
		if isNumber && n > 0 && int64(n)%8 != 0 {
			f := refused("is %s, no multiple of 8: matrix products over the vocabulary miss the fast kernels of the GPU, as DeepSpeed warns", v)
			f.severity = lint.Warning
			return f
		}
	case "zero_optimization.elastic_checkpoint":
		if on && known && stage == 3 {
			f := refused("is on, which ZeRO stage 3 no longer does: a checkpoint loads into as many ranks as wrote it; convert it to a universal checkpoint for others")
			f.severity = lint.Warning
			return f
		}
	case "tensor_parallel.tp.tp_size", "tensor_parallel.tensor_parallel.tp_size":
		if size, ok := numberAt(s.part, "tensor_parallel", "autotp_size"); ok && isNumber && size > 0 && n != 1 && n != size {
			return refused("is %s, and tensor_parallel.autotp_size is %s: the engine refuses two sizes when it starts", v, strconv.FormatFloat(size, 'g', -1, 64))
		}
	case "tensor_parallel.autotp_size":
		if isNumber && n > 1 && certainlyOn(s.part, "expert_parallel", "enabled") {
			return lanesFault(s.part, v)
		}
	case "expert_parallel.autoep_size", "expert_parallel.expert_tensor_parallel_size":
		if !certainlyOn(s.part, "expert_parallel", "enabled") || v.Kind() == constant.Bool {
			return nil
		}
		tensor, _ := numberAt(s.part, "tensor_parallel", "autotp_size")
		switch {
		case isNumber && n < 1: // HJSON makes 4 of 4.0
			return refused("is %s, wanted a whole number from 1: the engine refuses it when it starts", v)
		case s.name == "expert_tensor_parallel_size" && isNumber && n != 1:
			return refused("is %s, and DeepSpeed does not yet split single experts: the engine refuses it when it starts", v)
		case s.name == "autoep_size" && n == 1 && tensor > 1:
			return refused("is 1 beside tensor_parallel.autotp_size %g, where every rank would count its experts' gradients twice: the engine refuses it when it starts", tensor)
		}
	case "expert_parallel.load_balance_coeff":
		if isNumber {
			return refused("is %s, wanted null: DeepSpeed refuses a balance of the experts' load in the config", v)
		}
	case "expert_parallel.num_limited_groups", "expert_parallel.num_expert_groups":
		if !certainlyOn(s.part, "expert_parallel", "enabled") || !isNumber {
			return nil
		}
		groups, ok := numberAt(s.part, "expert_parallel", "num_expert_groups")
		switch {
		case n < 1:
			return refused("is %s, wanted at least 1: the engine refuses it when it starts", v)
		case s.name == "num_limited_groups" && ok && n > groups:
			return refused("is %s, more than the %s groups of num_expert_groups: the engine refuses it when it starts", v, strconv.FormatFloat(groups, 'g', -1, 64))
		}
	case "compile.deepcompile":
		if on && known && stage == 0 && !slices.ContainsFunc(passes(s.part), func(name string) bool { return name == "autosp" || name == "autotp" }) {
			f := refused("is on, and ZeRO is off: DeepCompile has nothing to do, and torch.compile runs alone")
			f.severity = lint.Warning
			return f
		}
	case "scheduler.params.warmup_type":
		if isText && isWarmup(s.part) && text != "log" && text != "linear" {
			f := refused("is %q, wanted log or linear: DeepSpeed warns, and warms up logarithmically", text)
			f.severity = lint.Warning
			return f
		}
	}
	return nil
}

// lanesFault are settings that automatic tensor parallelism refuses beside automatic expert parallelism.
func lanesFault(part *workspace.Part, size constant.Value) *fault {
	sequence, _ := numberAt(part, "sequence_parallel_size")
	_, optimizer := offloadDevice(part, "offload_optimizer")
	_, parameters := offloadDevice(part, "offload_param")
	other := ""
	switch {
	case part.Tree.Root.Get("expert_parallel", "autoep_size") == nil && !part.Tree.Root.Get("expert_parallel").Open:
		other = "expert_parallel.autoep_size left out (1)"
	case certainlyOn(part, "compile", "deepcompile"):
		other = "compile.deepcompile"
	case sequence > 1:
		other = "sequence_parallel_size"
	case optimizer:
		other = "offload_optimizer"
	case parameters:
		other = "offload_param"
	default:
		return nil
	}
	return refused("is %s beside expert_parallel and %s, which do not work together: the engine refuses it when it starts", size, other)
}

// certainlyOn reports whether the switch at a path is written and on.
func certainlyOn(part *workspace.Part, path ...string) bool {
	on, known := switchAt(part, path...)
	return on && known
}

// mayOffload reports whether the optimizer is kept on the CPU, or may be.
func mayOffload(part *workspace.Part) bool {
	zero := part.Tree.Root.Get("zero_optimization")
	if zero == nil || zero.Open || zero.Kind != configs.Mapping {
		return true
	}
	for _, old := range []string{"cpu_offload", "cpu_offload_params"} {
		if zero.Get(old) != nil {
			return true
		}
	}
	section := zero.Get("offload_optimizer")
	if section == nil {
		return false
	}
	if section.Open || section.Kind != configs.Mapping {
		return true
	}
	if device := section.Get("device"); device != nil {
		if v, known := value(part, device); !known || isAuto(v) {
			return true
		}
	}
	_, offloads := offloadDevice(part, "offload_optimizer")
	return offloads
}

// passes are the names in compile.passes.
func passes(part *workspace.Part) []string {
	var names []string
	if node := part.Tree.Root.Get("compile", "passes"); node != nil {
		for i := range node.Items {
			if v, ok := value(part, node.Items[i].Value); ok {
				name, _ := v.Str()
				names = append(names, name)
			}
		}
	}
	return names
}

// expertsAtStage3 are settings that automatic expert parallelism cannot do at ZeRO stage 3.
func expertsAtStage3(pass *lint.Pass, part *workspace.Part, stage int) {
	if stage != 3 || !certainlyOn(part, "expert_parallel", "enabled") {
		return
	}
	for _, setting := range []struct {
		path, what string
		above      float64 // the largest number that works
	}{
		{"zero_optimization.zero_quantized_gradients", "zero_quantized_gradients", 0}, {"zero_optimization.mics_shard_size", "MiCS", 0}, {"zero_optimization.zero_hpz_partition_size", "hpZeRO", 1},
		{"tensor_parallel.autotp_size", "automatic tensor parallelism", 1}, {"expert_parallel.expert_tensor_parallel_size", "tensor parallelism of the experts", 1},
	} {
		item := entry(part, setting.path)
		if item == nil {
			continue
		}
		n, ok := numberAt(part, strings.Split(setting.path, ".")...)
		if isOn(part, item) && setting.above == 0 || ok && n > setting.above {
			pass.Reportf(valueAt(item), "%s does not work with expert_parallel at ZeRO stage 3: DeepSpeed refuses it when the engine starts", setting.what)
		}
	}
}

// muonOffloaded: below stage 3 Muon cannot scatter the gradients of an offloaded optimizer.
func muonOffloaded(part *workspace.Part, stage int) bool {
	scatter, known := switchAt(part, "zero_optimization", "reduce_scatter")
	if part.Tree.Root.Get("zero_optimization", "reduce_scatter") == nil {
		scatter = true
	}
	_, offloads := offloadDevice(part, "offload_optimizer")
	return known && scatter && offloads && stage < 3
}
