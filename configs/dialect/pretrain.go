package dialect

import (
	"strings"

	"github.com/trainvet/trainvet/configs"
)

// Nanotron is the YAML of nanotron.
var Nanotron = &Dialect{
	Name:    "nanotron",
	Title:   "nanotron config",
	Version: "nanotron 0.5",
	Batch:   Computed,
	Loader:  configs.LoaderYAML11,

	recognise: func(d doc) bool {
		return d.mapping("parallelism") && d.mapping("tokens") && d.hasAny("model", "optimizer", "general")
	},

	table: append([]entry{
		{field: "batch.micro", keys: paths("tokens.micro_batch_size")},
		{field: "batch.accumulation", keys: paths("tokens.batch_accumulation_per_replica")},
		{field: "batch.seq_length", keys: paths("tokens.sequence_length")},
		{field: "parallel.data", keys: paths("parallelism.dp")},
		{field: "parallel.tensor", keys: paths("parallelism.tp")},
		{field: "parallel.pipeline", keys: paths("parallelism.pp")},
		{field: "parallel.context", keys: paths("parallelism.context_parallel_size"), absent: 1},
		{field: "parallel.expert", keys: paths("parallelism.expert_parallel_size"), absent: 1},
		{field: "dtype.compute", keys: paths("model.dtype"), read: dtype},
		{field: "dtype.params", keys: paths("model.dtype"), read: dtype},
		{field: "optimizer.type", keys: paths("optimizer.optimizer_factory.name"), read: choice(plainOptimizers)},
		{field: "optimizer.lr", keys: paths("optimizer.learning_rate_scheduler.learning_rate")},
		{field: "optimizer.min_lr", keys: paths("optimizer.learning_rate_scheduler.min_decay_lr")},
		{field: "optimizer.weight_decay", keys: paths("optimizer.weight_decay")},
		{field: "optimizer.beta1", keys: paths("optimizer.optimizer_factory.adam_beta1")},
		{field: "optimizer.beta2", keys: paths("optimizer.optimizer_factory.adam_beta2")},
		{field: "optimizer.eps", keys: paths("optimizer.optimizer_factory.adam_eps")},
		{field: "optimizer.clip", keys: paths("optimizer.clip_grad"), absent: 0},
		{field: "schedule.type", keys: paths("optimizer.learning_rate_scheduler.lr_decay_style"), read: lower},
		{field: "schedule.warmup", keys: paths("optimizer.learning_rate_scheduler.lr_warmup_steps"), absent: 0},
		{field: "schedule.warmup_unit", absent: "optimizer"},
		{field: "schedule.total_steps", keys: paths("tokens.train_steps")},
		{field: "buckets.ddp_cap_mb", keys: paths("model.ddp_bucket_cap_mb")},
		{field: "lora.rank", absent: 0},
		{field: "quantization.kind", absent: "none"},
	}, shapeTable("model.model_config.")...),
	after: func(r *reader) {
		switch n, ok := r.integer(r.find("optimizer.zero_stage")); {
		case ok && n == 1:
			r.set("sharding", "zero1", r.find("optimizer.zero_stage"))
		case ok && n == 0:
			r.set("sharding", "ddp", r.find("optimizer.zero_stage"))
		}
		r.checkpointingSwitch("parallelism.recompute_layer")
		if compute, ok := r.plan.DType.Compute.Get(); ok && compute.Is16() && r.isOn("optimizer.accumulate_grad_in_fp32") {
			r.derive("precision", "megatron_mixed", "16-bit weights, fp32 gradients and masters", r.find("model.dtype"), r.find("optimizer.accumulate_grad_in_fp32"))
		} else if ok && compute.Is16() {
			r.forget("precision")
		}
		if r.isOn("model.model_config.is_llama_config") {
			r.derive("model.family", "llama", "is_llama_config", r.find("model.model_config.is_llama_config"))
		}
		if mode := r.find("parallelism.tp_mode"); mode.state == written {
			r.derive("parallel.sequence_parallel", strings.Contains(r.text(mode), "reduce_scatter"), "tp_mode", mode)
		}
	},
}

// MindSpeedFSDP2 is the YAML of MindSpeed-LLM's FSDP2 trainer.
var MindSpeedFSDP2 = &Dialect{
	Name:    "mindspeed-fsdp2-yaml",
	Title:   "MindSpeed-LLM FSDP2 config",
	Version: "MindSpeed-LLM 26",
	Batch:   Computed,
	Loader:  configs.LoaderYAML11,

	recognise: func(d doc) bool {
		return d.mapping("parallel") && d.mapping("training") && d.mapping("model") &&
			d.hasAny("training.per_device_train_batch_size", "training.micro_batch_size", "training.global_batch_size", "training.lr",
				"training.max_steps", "training.train_iters") &&
			!d.hasAny("parallel.data_parallel", "parallel.tensor_parallel", "parallel.pipeline_parallel") && !ofMindSpeedMM(d)
	},

	table: []entry{
		{field: "model.name", keys: paths("model.model_name_or_path")},
		{field: "batch.micro", keys: paths("training.per_device_train_batch_size", "training.micro_batch_size"), absent: 8},
		{field: "batch.accumulation", keys: paths("training.gradient_accumulation_steps"), absent: 1},
		{field: "batch.global", keys: paths("training.global_batch_size")},
		{field: "batch.seq_length", keys: paths("data.cutoff_len")},
		{field: "parallel.shard_group", keys: paths("parallel.fsdp_size")},
		{field: "parallel.tensor", keys: paths("parallel.tp_size"), absent: 1},
		{field: "parallel.pipeline", absent: 1},
		{field: "parallel.context", keys: paths("parallel.cp_size"), absent: 1},
		{field: "parallel.expert", keys: paths("parallel.ep_size"), absent: 1},
		{field: "dtype.compute", keys: paths("parallel.param_dtype"), read: dtype, absent: "bf16"},
		{field: "dtype.reduce", keys: paths("parallel.reduce_dtype"), read: dtype, absent: "fp32"},
		{field: "optimizer.type", keys: paths("training.optimizer"), read: choice(plainOptimizers), absent: "adamw"},
		{field: "optimizer.lr", keys: paths("training.lr"), absent: 1e-5},
		{field: "optimizer.min_lr", keys: paths("training.min_lr")},
		{field: "optimizer.weight_decay", keys: paths("training.weight_decay"), absent: 0.01},
		{field: "optimizer.clip", keys: paths("training.max_grad_norm"), absent: 1.0},
		{field: "schedule.type", keys: paths("training.lr_scheduler_type"), read: lower},
		{field: "schedule.warmup_ratio", keys: paths("training.warmup_ratio"), absent: 0.03},
		{field: "schedule.total_steps", keys: paths("training.max_steps", "training.train_iters"), read: positive},
		{field: "schedule.epochs", keys: paths("training.num_train_epochs")},
		{field: "sharding", absent: "fsdp2"},
		{field: "stack", absent: "hf"},
	},
	after: func(r *reader) {
		r.checkpointingSwitch("parallel.recompute")
		reshard := entry{field: "fsdp.reshard_after_forward", keys: paths("parallel.reshard_after_forward")}
		r.apply(&reshard)
	},
}

// ofMindSpeedMM: the file has the outline of MindSpeed-LLM's, and names in it that only MindSpeed-MM has.
func ofMindSpeedMM(d doc) bool {
	return d.hasAny("parallel.fully_shard_parallel_size", "parallel.fsdp_plan", "parallel.tensor_parallel_size", "parallel.ulysses_parallel_size",
		"parallel.ring_attention_size", "parallel.expert_parallel_size", "data.dataset_param", "data.dataloader_param")
}

// MindSpeedMMFSDP2 is the YAML of MindSpeed-MM's FSDP2 trainer. Its classes take every key, models bring settings of their own, and the global
// batch that is written is overwritten with the product of the others: there is no table of its keys.
var MindSpeedMMFSDP2 = &Dialect{
	Name:    "mindspeed-mm-fsdp2-yaml",
	Title:   "MindSpeed-MM FSDP2 config",
	Version: "MindSpeed-MM 26",
	Batch:   Computed,
	Loader:  configs.LoaderPydantic,

	recognise: func(d doc) bool {
		return d.mapping("parallel") && d.mapping("training") && d.mapping("model") && ofMindSpeedMM(d)
	},

	table: []entry{
		{field: "model.name", keys: paths("model.model_name_or_path")},
		{field: "batch.micro", keys: paths("training.micro_batch_size"), absent: 1},
		{field: "batch.accumulation", keys: paths("training.gradient_accumulation_steps"), absent: 1},
		{field: "batch.seq_length", keys: paths("data.dataset_param.basic_parameters.cutoff_len")},
		{field: "parallel.shard_group", keys: paths("parallel.fully_shard_parallel_size")},
		{field: "parallel.tensor", keys: paths("parallel.tensor_parallel_size"), absent: 1},
		{field: "parallel.pipeline", absent: 1},
		{field: "parallel.expert", keys: paths("parallel.expert_parallel_size"), absent: 1},
		{field: "dtype.compute", keys: paths("parallel.fsdp_plan.param_dtype"), read: dtype},
		{field: "dtype.reduce", keys: paths("parallel.fsdp_plan.reduce_dtype"), read: dtype},
		{field: "optimizer.type", keys: paths("training.optimizer"), read: choice(plainOptimizers), absent: "adamw"},
		{field: "optimizer.lr", keys: paths("training.lr"), absent: 5e-5},
		{field: "optimizer.min_lr", keys: paths("training.lr_min")},
		{field: "optimizer.weight_decay", keys: paths("training.weight_decay"), absent: 0.0},
		{field: "optimizer.clip", keys: paths("training.clip_grad"), absent: 1.0},
		{field: "schedule.type", keys: paths("training.lr_decay_style"), read: lower},
		{field: "schedule.warmup_ratio", keys: paths("training.lr_warmup_ratio"), absent: 0.0},
		{field: "schedule.total_steps", keys: paths("training.train_iters"), read: positive},
		{field: "schedule.epochs", keys: paths("training.train_epochs")},
		{field: "sharding", absent: "fsdp2"},
		{field: "stack", absent: "hf"},
	},
	after: func(r *reader) {
		for _, path := range []string{"features.recompute", "parallel.recompute", "model.recompute"} { // it moved from release to release
			if r.isOn(path) {
				r.checkpointingSwitch(path)
			}
		}
		r.checkpointingSwitch("features.recompute")
		ring, ulysses := r.find("parallel.ring_attention_size"), r.find("parallel.ulysses_parallel_size")
		switch n, ok := r.integer(ulysses); {
		case ring.state != absent || ulysses.state != absent && !ok:
			r.forget("parallel.context")
		case ok:
			r.set("parallel.context", n, ulysses)
		default:
			r.assume("parallel.context", 1)
		}
		offload := r.find("parallel.fsdp_plan.cpu_offload")
		if on, known := r.truth(offload); on && known {
			r.set("offload.param", "cpu", offload)
			r.set("offload.optimizer", "cpu", offload)
		}
		reshard := entry{field: "fsdp.reshard_after_forward", keys: paths("parallel.fsdp_plan.reshard_after_forward")}
		r.apply(&reshard)
	},
}

// Lingua is the YAML of Meta's lingua.
var Lingua = &Dialect{
	Name:    "lingua",
	Title:   "lingua config",
	Version: "lingua",
	Batch:   Computed,
	Loader:  configs.LoaderOmegaConf,

	recognise: func(d doc) bool {
		return d.has("distributed.fsdp_type") || d.has("model.dim") && d.has("optim") && d.has("distributed")
	},

	table: []entry{
		{field: "model.hidden", keys: paths("model.dim"), absent: 512},
		{field: "model.layers", keys: paths("model.n_layers"), absent: 8},
		{field: "model.heads", keys: paths("model.n_heads")},
		{field: "model.kv_heads", keys: paths("model.n_kv_heads")},
		{field: "model.vocab", keys: paths("model.vocab_size"), read: positive},
		{field: "model.tied", keys: paths("model.weight_tying"), absent: false},
		{field: "batch.micro", keys: paths("data.batch_size"), absent: 2},
		{field: "batch.accumulation", keys: paths("grad_acc_steps"), absent: 1},
		{field: "batch.seq_length", keys: paths("data.seq_len"), absent: 2048},
		{field: "parallel.tensor", keys: paths("distributed.tp_size"), absent: 1},
		{field: "parallel.pipeline", absent: 1},
		{field: "parallel.context", absent: 1},
		{field: "dtype.compute", keys: paths("distributed.model_dtype"), read: dtype, absent: "bf16"},
		{field: "optimizer.type", absent: "adamw"},
		{field: "optimizer.lr", keys: paths("optim.lr"), absent: 3e-4},
		{field: "optimizer.weight_decay", keys: paths("optim.weight_decay")},
		{field: "optimizer.clip", keys: paths("optim.clip"), absent: 1.0},
		{field: "schedule.warmup", keys: paths("optim.warmup"), absent: 2000},
		{field: "schedule.warmup_unit", absent: "optimizer"},
		{field: "schedule.total_steps", keys: paths("steps"), absent: 1000},
		{field: "compile", keys: paths("distributed.compile"), absent: false},
		{field: "lora.rank", absent: 0},
		{field: "quantization.kind", absent: "none"},
	},
	after: func(r *reader) {
		if heads, ok := r.plan.Model.Heads.Get(); ok {
			r.derive("model.kv_heads", heads, "as many as heads", r.find("model.n_heads"))
		}
		kind := r.find("distributed.fsdp_type")
		switch r.text(kind) {
		case "full_shard":
			r.set("sharding", "fsdp2", kind)
		case "shard_grad_op":
			r.set("sharding", "fsdp2", kind)
			r.set("fsdp.reshard_after_forward", false, kind)
		case "no_shard":
			r.set("sharding", "fsdp2", kind)
			r.derive("parallel.shard_group", 1, "no_shard", kind)
		}
		if r.isOn("distributed.selective_activation_checkpointing") {
			r.set("checkpointing.kind", "selective_op", r.find("distributed.selective_activation_checkpointing"))
		} else if r.find("distributed.selective_activation_checkpointing").state != unknown {
			r.assume("checkpointing.kind", "none")
		}
		r.dataParallel("distributed.dp_replicate", "distributed.dp_shard", 1)
	},
}

// VERL is the Hydra YAML of verl. What it says of the actor is read: the part of it that trains.
var VERL = &Dialect{
	Name:    "verl",
	Title:   "verl config",
	Version: "verl 0.6",
	Batch:   Computed,
	Loader:  configs.LoaderOmegaConf,

	recognise: func(d doc) bool {
		if d.format == configs.Flags { // key=value words, as Hydra takes them
			for i := range d.root.Items {
				if strings.HasPrefix(d.root.Items[i].Key, "actor_rollout_ref.") {
					return true
				}
			}
			return false
		}
		return d.has("actor_rollout_ref")
	},

	table: []entry{
		{field: "model.name", keys: paths("actor_rollout_ref.model.path")},
		{field: "batch.micro", keys: paths("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu")},
		{field: "batch.global", keys: paths("actor_rollout_ref.actor.ppo_mini_batch_size"), absent: 256},
		{field: "parallel.devices_per_node", keys: paths("trainer.n_gpus_per_node")},
		{field: "parallel.nodes", keys: paths("trainer.nnodes")},
		{field: "parallel.tensor", keys: paths("actor_rollout_ref.actor.megatron.tensor_model_parallel_size"), absent: 1},
		{field: "parallel.pipeline", keys: paths("actor_rollout_ref.actor.megatron.pipeline_model_parallel_size"), absent: 1},
		{field: "parallel.context", keys: paths("actor_rollout_ref.actor.ulysses_sequence_parallel_size",
			"actor_rollout_ref.actor.megatron.context_parallel_size"), absent: 1},
		{field: "optimizer.lr", keys: paths("actor_rollout_ref.actor.optim.lr"), absent: 1e-6},
		{field: "optimizer.weight_decay", keys: paths("actor_rollout_ref.actor.optim.weight_decay")},
		{field: "optimizer.clip", keys: paths("actor_rollout_ref.actor.grad_clip"), absent: 1.0},
		{field: "stack", absent: "hf"},
	},
	before: func(r *reader) {
		// A mini-batch counts prompts, and each gives that many sequences.
		if n := r.find("actor_rollout_ref.rollout.n"); n.state != absent {
			if k, ok := r.integer(n); !ok || k != 1 {
				r.forget("batch.global")
			}
		}
	},
	after: func(r *reader) {
		prompt, response := r.find("data.max_prompt_length"), r.find("data.max_response_length")
		length := func(f found) (int64, bool) {
			if f.state == absent {
				return 512, true
			}
			return r.integer(f)
		}
		n, ok := length(prompt)
		m, ok2 := length(response)
		if ok && ok2 {
			r.derive("batch.seq_length", n+m, "max_prompt_length + max_response_length", prompt, response)
		}
		recompute := r.find("actor_rollout_ref.model.enable_gradient_checkpointing")
		if recompute.state == absent {
			r.assume("checkpointing.kind", "full")
		} else {
			r.checkpointingSwitch("actor_rollout_ref.model.enable_gradient_checkpointing")
		}
		strategy := r.find("actor_rollout_ref.actor.strategy")
		switch r.text(strategy) {
		case "fsdp":
			r.set("sharding", "fsdp1", strategy)
		case "fsdp2":
			r.set("sharding", "fsdp2", strategy)
		case "megatron":
			r.set("sharding", "megatron_dist", strategy)
		case "":
			if strategy.state == absent {
				r.assume("sharding", "fsdp1")
			}
		}
		for _, e := range []struct{ field, key string }{{"offload.param", "param_offload"}, {"offload.optimizer", "optimizer_offload"}} {
			f := r.find("actor_rollout_ref.actor.fsdp_config." + e.key)
			if on, known := r.truth(f); known && on {
				r.set(e.field, "cpu", f)
			} else if known {
				r.assume(e.field, "none")
			}
		}
	},
}

// Kohya are the files of kohya-ss sd-scripts: its TOML, the TOML of a dataset, and what the GUI saves.
var Kohya = &Dialect{
	Name:    "kohya",
	Title:   "kohya sd-scripts config",
	Version: "sd-scripts 0.9",
	Batch:   Computed,
	Loader:  configs.LoaderTOML,
	lenient: true,
	grouped: true,

	recognise: func(d doc) bool {
		if datasets := d.node("datasets"); datasets != nil && datasets.Kind == configs.Sequence && d.format == configs.TOML {
			for _, item := range datasets.Items {
				if item.Value.Item("subsets") != nil {
					return true
				}
			}
		}
		flat := d.has("pretrained_model_name_or_path") && d.hasAny("network_module", "train_batch_size", "optimizer_type")
		if flat && (d.format == configs.TOML || d.has("network_module")) {
			return true
		}
		if d.format == configs.JSON || d.format == configs.YAML {
			return d.has("LoRA_type") || d.hasAny("max_resolution") && d.has("train_batch_size")
		}
		return false
	},

	table: []entry{
		{field: "batch.micro", keys: paths("train_batch_size")},
		{field: "batch.accumulation", keys: paths("gradient_accumulation_steps"), absent: 1},
		{field: "parallel.world", keys: paths("num_processes")},
		{field: "parallel.tensor", absent: 1},
		{field: "parallel.pipeline", absent: 1},
		{field: "parallel.context", absent: 1},
		{field: "dtype.compute", keys: paths("mixed_precision"), read: dtype, absent: "fp32"},
		{field: "optimizer.type", keys: paths("optimizer_type", "optimizer"), read: choice(plainOptimizers)},
		{field: "optimizer.lr", keys: paths("learning_rate", "unet_lr")},
		{field: "optimizer.clip", keys: paths("max_grad_norm"), absent: 1.0},
		{field: "schedule.type", keys: paths("lr_scheduler"), read: lower, absent: "constant"},
		{field: "schedule.total_steps", keys: paths("max_train_steps"), read: positive},
		{field: "schedule.epochs", keys: paths("max_train_epochs"), read: positive},
		{field: "lora.rank", keys: paths("network_dim")},
		{field: "lora.alpha", keys: paths("network_alpha")},
		{field: "compile", keys: paths("torch_compile"), absent: false},
	},
	after: func(r *reader) {
		// A warm-up is a number of steps, or a ratio where it has a fraction.
		f := r.find("lr_warmup_steps")
		switch n, ok := r.number(f); {
		case ok && n > 0 && n < 1:
			r.set("schedule.warmup_ratio", n, f)
		case ok:
			r.set("schedule.warmup", n, f)
		}
		r.assume("schedule.warmup_unit", "optimizer")
		r.checkpointingSwitch("gradient_checkpointing")
		for _, path := range []string{"full_bf16", "full_fp16"} {
			if r.isOn(path) {
				r.derive("dtype.params", strings.TrimPrefix(path, "full_"), path, r.find(path))
			}
		}
		if on, known := r.truth(r.find("deepspeed")); on && known {
			if stage := r.find("zero_stage"); stage.state == absent {
				r.assume("sharding", "zero2")
			} else {
				r.zeroStage(stage)
			}
		}
	},
}
