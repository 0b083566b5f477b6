package dialect

import (
	"github.com/trainvet/trainvet/configs"
	"strings"
)

// Accelerate is the file that `accelerate config` writes. The batch comes from the script that it launches.
var Accelerate = &Dialect{
	Name:    "accelerate",
	Title:   "accelerate config",
	Version: "accelerate 1",
	Batch:   Computed,
	Loader:  configs.LoaderYAML11,
	lenient: true, // most values reach the program as text of its environment

	recognise: func(d doc) bool {
		return d.has("distributed_type") &&
			d.hasAny("compute_environment", "num_processes", "num_machines", "mixed_precision", "deepspeed_config", "fsdp_config")
	},

	table: []entry{
		{field: "parallel.world", keys: paths("num_processes"), read: positive},
		{field: "parallel.nodes", keys: paths("num_machines"), read: positive, absent: 1},
		{field: "parallel.tensor", keys: paths("parallelism_config.parallelism_config_tp_size", "megatron_lm_config.megatron_lm_tp_degree",
			"tp_config.tp_size"), read: atLeastOne, absent: 1},
		{field: "parallel.pipeline", keys: paths("megatron_lm_config.megatron_lm_pp_degree"), read: atLeastOne, absent: 1},
		{field: "dtype.compute", keys: paths("mixed_precision"), read: dtype, absent: "fp32"},
		{field: "optimizer.clip", keys: paths("deepspeed_config.gradient_clipping")},
	},
	after: accelerateAfter,
	files: []string{"deepspeed_config.deepspeed_config_file"},
}

func accelerateAfter(r *reader) {
	accelerateContext(r)
	switch kind := strings.ToUpper(r.text(r.find("distributed_type"))); kind {
	case "DEEPSPEED":
		accelerateDeepSpeed(r)
	case "FSDP":
		accelerateFSDP(r)
	case "MULTI_GPU", "MULTI_NPU", "MULTI_XPU", "MULTI_HPU", "MULTI_MLU", "MULTI_CPU", "MULTI_SDAA", "MULTI_MUSA":
		if n, ok := r.integer(r.find("num_processes")); ok && n == 1 {
			r.derive("sharding", "none", "accelerate wraps nothing on one process", r.find("distributed_type"), r.find("num_processes"))
		}
		r.set("sharding", "ddp", r.find("distributed_type"))
	case "NO":
		r.set("sharding", "none", r.find("distributed_type"))
		r.assume("parallel.world", 1)
	case "MEGATRON_LM":
		if r.isOn("megatron_lm_config.megatron_lm_use_distributed_optimizer") {
			r.set("sharding", "megatron_dist", r.find("megatron_lm_config.megatron_lm_use_distributed_optimizer"))
		}
	}
	if backend := r.first("dynamo_config.dynamo_backend", "dynamo_backend"); backend.state == written && r.text(backend) != "no" {
		r.set("compile", true, backend)
	}
}

// accelerateContext: the ranks of context and of sequence parallelism both share a sequence.
func accelerateContext(r *reader) {
	cp := r.first("parallelism_config.parallelism_config_cp_size", "megatron_lm_config.megatron_lm_context_parallel_size")
	sp := r.find("parallelism_config.parallelism_config_sp_size")
	product := int64(1)
	for _, f := range []found{cp, sp} {
		n, ok := r.integer(f)
		switch {
		case f.state == absent:
		case !ok || n < 1:
			r.forget("parallel.context")
		default:
			product *= n
		}
	}
	if cp.state == absent && sp.state == absent {
		r.assume("parallel.context", 1)
		return
	}
	r.derive("parallel.context", product, "cp size * sp size", cp, sp)
}

// accelerateDeepSpeed: with a file of its own everything about DeepSpeed stands there.
func accelerateDeepSpeed(r *reader) {
	if r.find("deepspeed_config.deepspeed_config_file").state != absent {
		return
	}
	accumulation := entry{field: "batch.accumulation", keys: paths("deepspeed_config.gradient_accumulation_steps")}
	r.apply(&accumulation)
	stage := r.find("deepspeed_config.zero_stage")
	if stage.state == absent {
		r.assume("sharding", "zero2")
	} else {
		r.zeroStage(stage)
	}
	for _, e := range []entry{
		{field: "offload.optimizer", keys: paths("deepspeed_config.offload_optimizer_device"), read: lower, absent: "none"},
		{field: "offload.param", keys: paths("deepspeed_config.offload_param_device"), read: lower, absent: "none"},
	} {
		r.apply(&e)
	}
	if compute, ok := r.plan.DType.Compute.Get(); ok && compute.Is16() {
		r.derive("precision", "deepspeed_mixed", "DeepSpeed with mixed precision: 16-bit weights and gradients, fp32 masters and states", r.find("mixed_precision"))
	}
}

// fsdpStrategies are the strategies by their numbers.
var fsdpStrategies = [...]string{"", "full_shard", "shard_grad_op", "no_shard", "hybrid_shard", "hybrid_shard_zero2"}

// accelerateFSDP: the keys may lack the prefix fsdp_, which accelerate adds.
func accelerateFSDP(r *reader) {
	key := func(name string) found { return r.first("fsdp_config.fsdp_"+name, "fsdp_config."+name) }
	version, strategy, reshard := key("version"), key("sharding_strategy"), key("reshard_after_forward")
	kind := "fsdp1"
	if n, ok := r.number(version); ok && n == 2 {
		kind = "fsdp2"
	} else if version.state == unknown {
		r.forget("sharding")
		return
	}
	name := r.text(strategy)
	if n, ok := r.integer(strategy); ok && n >= 1 && n <= 5 {
		name = fsdpStrategies[n]
	}
	at := r.first("fsdp_config.fsdp_sharding_strategy", "fsdp_config.sharding_strategy", "fsdp_config.fsdp_reshard_after_forward", "distributed_type")
	switch name {
	case "no_shard":
		r.set("sharding", "ddp", at)
	case "shard_grad_op", "hybrid_shard_zero2":
		r.set("sharding", kind, at)
		r.set("fsdp.reshard_after_forward", false, strategy)
	default:
		r.set("sharding", kind, at)
	}
	if strings.HasPrefix(name, "hybrid_shard") {
		r.forget("parallel.shard_group")
	}
	if on, ok := r.constant(reshard).Bool(); ok {
		r.set("fsdp.reshard_after_forward", on, reshard)
	}
	if f := key("offload_params"); f.state == written {
		if on, known := r.truth(f); known && on {
			r.set("offload.optimizer", "cpu", f)
			r.set("offload.param", "cpu", f)
		}
	}
	r.unreduced()
	r.assume("offload.optimizer", "none")
	r.assume("offload.param", "none")
	if f := key("activation_checkpointing"); f.state == written {
		if on, known := r.truth(f); known && on {
			r.set("checkpointing.kind", "full", f)
		}
	}
	if replicate := r.find("parallelism_config.parallelism_config_dp_replicate_size"); replicate.state == written {
		if n, ok := r.integer(replicate); !ok || n > 1 {
			shard := entry{field: "parallel.shard_group", keys: paths("parallelism_config.parallelism_config_dp_shard_size")}
			r.apply(&shard)
		}
	}
	if compute, ok := r.plan.DType.Compute.Get(); ok && compute.Is16() {
		r.derive("precision", "fsdp_mixed", "accelerate keeps the sharded weights in fp32", at, r.find("mixed_precision"))
	}
}
