package dialect

import "github.com/trainvet/trainvet/configs"

// NanoGPT is the config .py of nanoGPT: assignments that its train.py executes.
var NanoGPT = &Dialect{
	Name:    "nanogpt-py",
	Title:   "nanoGPT config",
	Version: "nanoGPT",
	Batch:   Divides,

	recognise: func(d doc) bool {
		return d.format == configs.Python && d.hasAny("n_layer", "n_head", "n_embd", "block_size") &&
			d.hasAny("gradient_accumulation_steps", "max_iters") && d.count("block_size", "n_layer", "n_head", "n_embd",
			"gradient_accumulation_steps", "max_iters", "batch_size", "learning_rate", "lr_decay_iters", "warmup_iters") >= 3
	},

	table: []entry{
		{field: "model.hidden", keys: paths("n_embd"), absent: 768},
		{field: "model.layers", keys: paths("n_layer"), absent: 12},
		{field: "model.heads", keys: paths("n_head"), absent: 12},
		{field: "model.tied", absent: true},
		{field: "model.family", absent: "gpt2"},
		{field: "batch.seq_length", keys: paths("block_size"), absent: 1024},
		{field: "batch.micro", keys: paths("batch_size"), absent: 12},
		{field: "parallel.tensor", absent: 1},
		{field: "parallel.pipeline", absent: 1},
		{field: "parallel.context", absent: 1},
		{field: "sharding", absent: "ddp"},
		{field: "dtype.compute", keys: paths("dtype"), read: dtype, absent: "bf16"},
		{field: "dtype.params", absent: "fp32"},
		{field: "optimizer.type", absent: "adamw"},
		{field: "optimizer.kernel", absent: "fused"},
		{field: "optimizer.lr", keys: paths("learning_rate"), absent: 6e-4},
		{field: "optimizer.min_lr", keys: paths("min_lr"), absent: 6e-5},
		{field: "optimizer.weight_decay", keys: paths("weight_decay"), absent: 0.1},
		{field: "optimizer.beta1", keys: paths("beta1"), absent: 0.9},
		{field: "optimizer.beta2", keys: paths("beta2"), absent: 0.95},
		{field: "optimizer.clip", keys: paths("grad_clip"), absent: 1.0},
		{field: "schedule.type", absent: "cosine"},
		{field: "schedule.warmup", keys: paths("warmup_iters"), absent: 2000},
		{field: "schedule.warmup_unit", absent: "optimizer"},
		{field: "schedule.total_steps", keys: paths("max_iters"), absent: 600000},
		{field: "checkpointing.kind", absent: "none"},
		{field: "compile", keys: paths("compile"), absent: true},
		{field: "lora.rank", absent: 0},
		{field: "quantization.kind", absent: "none"},
	},
	after: func(r *reader) {
		// gradient_accumulation_steps counts over all ranks: each does its share of them.
		accumulation, micro := r.find("gradient_accumulation_steps"), r.find("batch_size")
		n, ok := r.integer(accumulation)
		if accumulation.state == absent {
			n, ok = 40, true
		}
		if each, ok2 := r.plan.Batch.Micro.Get(); ok && ok2 {
			r.derive("batch.global", n*each, "gradient_accumulation_steps * batch_size, over all ranks", accumulation, micro)
		}
	},
}

// XTuner is the config .py of XTuner, in mmengine's way.
var XTuner = &Dialect{
	Name:    "xtuner-py",
	Title:   "XTuner config",
	Version: "XTuner 0.1",
	Batch:   Computed,

	recognise: func(d doc) bool {
		return d.format == configs.Python && d.has("accumulative_counts") && d.hasAny("max_norm", "optim_type", "batch_size", "optim_wrapper")
	},

	table: []entry{
		{field: "model.name", keys: paths("pretrained_model_name_or_path")},
		{field: "batch.seq_length", keys: paths("max_length"), absent: 2048},
		{field: "batch.micro", keys: paths("batch_size"), absent: 1},
		{field: "batch.accumulation", keys: paths("accumulative_counts")},
		{field: "parallel.tensor", absent: 1},
		{field: "parallel.pipeline", absent: 1},
		{field: "parallel.context", keys: paths("sequence_parallel_size"), absent: 1},
		{field: "dtype.compute", keys: paths("optim_wrapper.dtype"), read: dtype, absent: "fp16"},
		{field: "optimizer.lr", keys: paths("lr"), absent: 2e-4},
		{field: "optimizer.weight_decay", keys: paths("weight_decay")},
		{field: "optimizer.clip", keys: paths("max_norm"), absent: 1.0},
		{field: "schedule.warmup_ratio", keys: paths("warmup_ratio"), absent: 0.03},
		{field: "schedule.epochs", keys: paths("max_epochs")},
		{field: "schedule.total_steps", keys: paths("max_iters")},
		{field: "stack", absent: "hf"},
	},
	after: func(r *reader) {
		if lora := r.find("model.lora"); lora.state == absent {
			r.assume("lora.rank", 0)
		} else {
			r.apply(&entry{field: "lora.rank", keys: paths("model.lora.r"), absent: 8})
			r.targets("model.lora.target_modules")
			r.assumeOf("lora.dtype", "fp32", "PEFT keeps adapters in fp32")
		}
		r.quantization("model.llm.quantization_config.load_in_4bit", "model.llm.quantization_config.load_in_8bit",
			"model.llm.quantization_config.bnb_4bit_use_double_quant")
		f := r.find("use_activation_checkpointing")
		if f.state == absent {
			r.assume("checkpointing.kind", "full")
		} else {
			r.checkpointingSwitch("use_activation_checkpointing")
		}
	},
}

// PEFTAdapter is the adapter_config.json of PEFT.
var PEFTAdapter = &Dialect{
	Name:    "peft-adapter",
	Title:   "PEFT adapter config",
	Version: "PEFT",
	Loader:  configs.LoaderYAML11,

	recognise: func(d doc) bool {
		return d.has("peft_type") && d.hasAny("r", "lora_alpha", "target_modules", "base_model_name_or_path")
	},

	table: []entry{
		{field: "model.name", keys: paths("base_model_name_or_path")},
		{field: "lora.alpha", keys: paths("lora_alpha")},
		{field: "lora.dropout", keys: paths("lora_dropout"), absent: 0},
	},
	models: []string{"base_model_name_or_path"},
	after: func(r *reader) {
		if kind := r.find("peft_type"); r.text(kind) == "lora" {
			rank := entry{field: "lora.rank", keys: paths("r"), absent: 8}
			r.apply(&rank)
			r.targets("target_modules")
		}
	},
}

// Accelerator are the arguments of accelerate's Accelerator in a script. They say how the script trains, and not what.
var Accelerator = &Dialect{
	Name:    "accelerator",
	Title:   "Accelerator arguments",
	Version: "accelerate 1",
	Batch:   Computed,

	table: []entry{
		{field: "dtype.compute", keys: paths("mixed_precision"), read: dtype},
		{field: "batch.accumulation", keys: paths("gradient_accumulation_steps", "gradient_accumulation_plugin.num_steps")},
	},
	after: func(r *reader) { r.unreduced("gradient_accumulation_plugin.sync_each_batch") },
}

// DeepSpeedPlugin are the arguments of accelerate's plugin for DeepSpeed, in a script. With a config of its own everything
// stands there.
var DeepSpeedPlugin = &Dialect{
	Name:    "deepspeed-plugin",
	Title:   "DeepSpeedPlugin arguments",
	Version: "accelerate 1",
	Batch:   Computed,

	table: []entry{
		{field: "batch.accumulation", keys: paths("gradient_accumulation_steps")},
		{field: "optimizer.clip", keys: paths("gradient_clipping")},
		{field: "offload.optimizer", keys: paths("offload_optimizer_device"), read: lower},
		{field: "offload.param", keys: paths("offload_param_device"), read: lower},
	},
	after:    func(r *reader) { r.zeroStage(r.find("zero_stage")) },
	sections: []string{"hf_ds_config"},
	files:    []string{"hf_ds_config"},
}

// DeepSpeedStrategy are the arguments of Lightning's strategy, in a script. A config of its own takes the place of all of them.
var DeepSpeedStrategy = &Dialect{
	Name:    "deepspeed-strategy",
	Title:   "DeepSpeedStrategy arguments",
	Version: "Lightning 2",
	Batch:   Computed,

	after: func(r *reader) {
		switch config := r.find("config"); {
		case config.state != absent:
			return
		case r.find("stage").state == absent:
			r.assume("sharding", "zero2")
		default:
			r.zeroStage(r.find("stage"))
		}
		for key, field := range map[string]string{"offload_optimizer": "offload.optimizer", "offload_parameters": "offload.param"} {
			if r.isOn(key) {
				r.set(field, "cpu", r.find(key))
			}
		}
	},
	sections: []string{"config"},
	files:    []string{"config"},
}

// FSDPPlugin are the arguments of accelerate's plugin for FSDP, in a script.
var FSDPPlugin = &Dialect{
	Name:    "fsdp-plugin",
	Title:   "FullyShardedDataParallelPlugin arguments",
	Version: "accelerate 1",
	Batch:   Computed,

	table: []entry{
		{field: "fsdp.reshard_after_forward", keys: paths("reshard_after_forward"), read: boolOnly},
	},
	after: func(r *reader) {
		switch n, ok := r.number(r.find("fsdp_version")); {
		case ok && n == 2:
			r.set("sharding", "fsdp2", r.find("fsdp_version"))
		case ok && n == 1 && r.find("sharding_strategy").state == absent:
			r.set("sharding", "fsdp1", r.find("fsdp_version"))
		}
		r.assumeOf("fsdp.no_sync", true, "accelerate reduces gradients once a step, unless sync_each_batch is set")
		if r.isOn("activation_checkpointing") {
			r.set("checkpointing.kind", "full", r.find("activation_checkpointing"))
		}
	},
}
