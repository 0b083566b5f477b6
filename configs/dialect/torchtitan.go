package dialect

import (
	"slices"

	"github.com/trainvet/trainvet/configs"
)

// Torchtitan is the TOML of torchtitan, which it read until 2026-02.
var Torchtitan = &Dialect{
	Name:    "torchtitan-toml",
	Title:   "torchtitan config",
	Version: "torchtitan 0.2",
	Batch:   Divides,
	Loader:  configs.LoaderTOML,
	lenient: true,

	recognise: func(d doc) bool {
		sections := d.count("job", "profiling", "metrics", "model", "optimizer", "lr_scheduler", "training", "parallelism", "checkpoint",
			"activation_checkpoint", "compile", "float8", "quantize", "comm", "validation", "experimental")
		if d.has("parallel") || d.format == configs.YAML {
			return false
		}
		if sections >= 3 && d.hasAny("model.flavor", "training.local_batch_size", "training.batch_size", "training.seq_len", "training.steps") {
			return true
		}
		return d.format == configs.TOML && sections > 0 && sections == len(d.root.Items) && slices.ContainsFunc(torchtitanOnly, d.nearly)
	},

	table: []entry{
		{field: "batch.micro", keys: paths("training.local_batch_size", "training.batch_size"), absent: 8},
		{field: "batch.global", keys: paths("training.global_batch_size"), read: positive},
		{field: "batch.seq_length", keys: paths("training.seq_len"), absent: 2048},
		{field: "parallel.tensor", keys: paths("parallelism.tensor_parallel_degree"), absent: 1},
		{field: "parallel.pipeline", keys: paths("parallelism.pipeline_parallel_degree"), absent: 1},
		{field: "parallel.context", keys: paths("parallelism.context_parallel_degree"), absent: 1},
		{field: "parallel.expert", keys: paths("parallelism.expert_parallel_degree"), absent: 1},
		{field: "dtype.compute", keys: paths("training.mixed_precision_param"), read: dtype, absent: "bf16"},
		{field: "dtype.reduce", keys: paths("training.mixed_precision_reduce"), read: dtype, absent: "fp32"},
		{field: "dtype.params", keys: paths("training.dtype"), read: dtype, absent: "fp32"},
		{field: "optimizer.type", keys: paths("optimizer.name"), read: choice(plainOptimizers), absent: "adamw"},
		{field: "optimizer.kernel", keys: paths("optimizer.implementation"), read: choice(map[string]string{
			"fused": "fused", "foreach": "foreach", "for-loop": "loop"}), absent: "fused"},
		{field: "optimizer.in_backward", keys: paths("optimizer.early_step_in_backward"), absent: false},
		{field: "optimizer.lr", keys: paths("optimizer.lr"), absent: 8e-4},
		{field: "optimizer.weight_decay", keys: paths("optimizer.weight_decay"), absent: 0.1},
		{field: "optimizer.beta1", keys: paths("optimizer.beta1"), absent: 0.9},
		{field: "optimizer.beta2", keys: paths("optimizer.beta2"), absent: 0.95},
		{field: "optimizer.eps", keys: paths("optimizer.eps"), absent: 1e-8},
		{field: "optimizer.clip", keys: paths("training.max_norm"), absent: 1.0},
		{field: "schedule.type", keys: paths("lr_scheduler.decay_type"), read: lower, absent: "linear"},
		{field: "schedule.warmup", keys: paths("lr_scheduler.warmup_steps"), absent: 200},
		{field: "schedule.warmup_unit", absent: "optimizer"},
		{field: "schedule.total_steps", keys: paths("training.steps"), absent: 10000},
		{field: "compile", keys: paths("compile.enable", "training.compile"), absent: false},
		{field: "attention.kernel", absent: "sdpa"},
		{field: "stack", absent: "torchtitan"},
		{field: "lora.rank", absent: 0},
		{field: "quantization.kind", absent: "none"},
	},
	after: torchtitanAfter,
}

// torchtitanOnly are long keys that nobody else has in such a section. They tell a file of a few sections, also where they are misspelt.
var torchtitanOnly = []string{
	"training.local_batch_size", "training.mixed_precision_param", "training.mixed_precision_reduce", "training.enable_cpu_offload", "parallelism.data_parallel_replicate_degree",
	"parallelism.data_parallel_shard_degree", "parallelism.tensor_parallel_degree", "parallelism.pipeline_parallel_degree", "parallelism.context_parallel_degree",
	"parallelism.expert_parallel_degree", "activation_checkpoint.selective_ac_option",
}

func torchtitanAfter(r *reader) {
	name, flavor := r.find("model.name"), r.find("model.flavor")
	if family, ok := r.constant(name).Str(); ok && flavor.state == written {
		size, _ := r.constant(flavor).Str()
		r.derive("model.name", family+" "+size, "name and flavor", name, flavor)
	}
	if global := r.find("training.global_batch_size"); global.state == absent {
		r.assumeOf("batch.accumulation", 1, "no global_batch_size: the local batches of one step")
	} else if n, ok := r.integer(global); ok && n < 0 {
		r.derive("batch.accumulation", 1, "global_batch_size -1: the local batches of one step", global)
	}
	r.dataParallel("parallelism.data_parallel_replicate_degree", "parallelism.data_parallel_shard_degree", 1)
	torchtitanSharding(r)
	torchtitanCheckpointing(r)
	torchtitanLoss(r)
}

// torchtitanLoss: with compile.enable the loss is compiled too, unless compile.components leaves it out; it then holds nothing as wide as the
// vocabulary in fp32. Otherwise 16-bit and fp32 logits are both held.
func torchtitanLoss(r *reader) {
	enable, components := r.first("compile.enable", "training.compile"), r.find("compile.components")
	on, known := r.truth(enable)
	names, listed := r.list(components)
	switch {
	case enable.state != written || known && !on:
		r.assumeOf("loss_kernel", "fp32_held", r.dialect.Version)
	case !known || components.state == unknown || components.state == written && !listed:
		r.forget("loss_kernel")
	case components.state == written && !slices.Contains(names, "loss"):
		r.derive("loss_kernel", "fp32_held", "compile.components leaves the loss out", components)
	default:
		r.derive("loss_kernel", "compiled", "compile covers the loss", enable)
	}
}

func torchtitanSharding(r *reader) {
	shard, replicate := r.find("parallelism.data_parallel_shard_degree"), r.find("parallelism.data_parallel_replicate_degree")
	n, ok := r.integer(shard)
	copies, known := r.integer(replicate)
	switch {
	case shard.state == unknown || shard.state == written && !ok:
		r.forget("sharding")
	case shard.state == written && n == 1 && known && copies > 1:
		r.derive("sharding", "ddp", "one shard and several replicas", shard, replicate)
	case shard.state == written:
		r.derive("sharding", "fsdp2", "fully_shard over the shard group", shard)
	default:
		r.assume("sharding", "fsdp2")
	}
	if f := r.find("training.enable_cpu_offload"); r.isOn("training.enable_cpu_offload") {
		r.set("offload.optimizer", "cpu", f)
		r.set("offload.param", "cpu", f)
	} else if f.state != unknown {
		r.assume("offload.optimizer", "none")
		r.assume("offload.param", "none")
	}
	reshard := r.find("parallelism.fsdp_reshard_after_forward")
	switch r.text(reshard) {
	case "always":
		r.set("fsdp.reshard_after_forward", true, reshard)
	case "never":
		r.set("fsdp.reshard_after_forward", false, reshard)
	case "", "default":
		if stages, ok := r.plan.Parallel.Pipeline.Get(); ok {
			r.derive("fsdp.reshard_after_forward", stages == 1, "default: always, unless there is a pipeline", reshard)
		}
	}
}

func torchtitanCheckpointing(r *reader) {
	mode, option := r.find("activation_checkpoint.mode"), r.find("activation_checkpoint.selective_ac_option")
	name := r.text(mode)
	if mode.state == absent {
		name = "selective"
	}
	settle := func(kind string) {
		if mode.state == written {
			r.set("checkpointing.kind", kind, mode)
		} else {
			r.assume("checkpointing.kind", kind)
		}
	}
	switch name {
	case "none", "full":
		settle(name)
	case "selective":
		every := r.text(option)
		if n, ok := r.integer(option); ok {
			every = [...]string{"", "1", "2"}[min(max(n, 0), 2)]
			if n > 2 {
				every = ""
			}
		}
		switch {
		case every == "2" || option.state == absent:
			settle("half")
		case every == "op":
			settle("selective_op")
		case every == "1":
			settle("full")
		default:
			r.cannotTell("checkpointing.kind", "selective_ac_option {}", option)
		}
	default:
		r.forget("checkpointing.kind")
	}
}
