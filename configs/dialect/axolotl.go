package dialect

import (
	"github.com/trainvet/trainvet/configs"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs/plan"
)

// Axolotl is axolotl's YAML. Pydantic reads it, so that text which spells a number is one.
var Axolotl = &Dialect{
	Name:    "axolotl",
	Title:   "axolotl config",
	Version: "axolotl 0.13",
	Batch:   Computed,
	Loader:  configs.LoaderPydantic,

	recognise: func(d doc) bool {
		return d.has("base_model") && d.hasAny("datasets", "micro_batch_size", "sequence_len", "adapter", "num_epochs",
			"pretraining_dataset", "rl", "load_in_4bit")
	},

	before: axolotlBefore,
	table: []entry{
		{field: "model.name", keys: paths("base_model")},
		{field: "batch.micro", keys: paths("micro_batch_size"), absent: 1},
		{field: "batch.accumulation", keys: paths("gradient_accumulation_steps"), absent: 1},
		{field: "batch.seq_length", keys: paths("sequence_len"), absent: 512},
		{field: "parallel.tensor", keys: paths("tensor_parallel_size"), absent: 1},
		{field: "parallel.pipeline", absent: 1},
		{field: "parallel.context", keys: paths("context_parallel_size", "sequence_parallel_degree"), absent: 1},
		{field: "parallel.expert", keys: paths("expert_parallel_size"), absent: 1},
		{field: "optimizer.type", keys: paths("optimizer"), read: choice(hfOptimizers), absent: "adamw"},
		{field: "optimizer.lr", keys: paths("learning_rate")},
		{field: "optimizer.weight_decay", keys: paths("weight_decay"), absent: 0},
		{field: "optimizer.beta1", keys: paths("adam_beta1")},
		{field: "optimizer.beta2", keys: paths("adam_beta2")},
		{field: "optimizer.eps", keys: paths("adam_epsilon")},
		{field: "optimizer.clip", keys: paths("max_grad_norm"), absent: 1.0},
		{field: "schedule.type", keys: paths("lr_scheduler"), read: lower, absent: "cosine"},
		{field: "schedule.warmup", keys: paths("warmup_steps")},
		{field: "schedule.warmup_ratio", keys: paths("warmup_ratio")},
		{field: "schedule.warmup_unit", absent: "optimizer"},
		{field: "schedule.total_steps", keys: paths("max_steps"), read: positive},
		{field: "schedule.epochs", keys: paths("num_epochs"), absent: 1.0},
		{field: "lora.alpha", keys: paths("lora_alpha")},
		{field: "lora.dropout", keys: paths("lora_dropout"), absent: 0},
		{field: "compile", keys: paths("torch_compile"), absent: false},
		{field: "checkpointing.reentrant", keys: paths("gradient_checkpointing_kwargs.use_reentrant")},
		{field: "ddp.find_unused", keys: paths("ddp_find_unused_parameters")},
		{field: "buckets.ddp_cap_mb", keys: paths("ddp_bucket_cap_mb")},
		{field: "stack", absent: "hf"},
	},
	after:    axolotlAfter,
	sections: []string{"deepspeed"},
	files:    []string{"deepspeed"},
	models:   []string{"base_model", "base_model_config"},
}

// axolotlBefore: batch_size counts sequences of one rank and stands in place of the accumulation.
func axolotlBefore(r *reader) {
	r.findsBatchSize()
	if r.has("hatchery") { // a service trains, with adapters of its own
		r.forget("lora.rank")
		r.forget("sharding")
	}
	whole, micro := r.find("batch_size"), r.find("micro_batch_size")
	if whole.state == absent || r.find("gradient_accumulation_steps").state != absent {
		return
	}
	total, ok := r.integer(whole)
	each, ok2 := r.integer(micro)
	if ok && ok2 && each > 0 && total >= each {
		r.derive("batch.accumulation", total/each, "batch_size / micro_batch_size", whole, micro)
		return
	}
	r.forget("batch.accumulation")
}

func axolotlAfter(r *reader) {
	axolotlPrecision(r)
	r.hfKernel("optimizer")
	checkpointing := r.find("gradient_checkpointing")
	switch name := r.text(checkpointing); {
	case strings.HasPrefix(name, "offload"), name == "unsloth":
		r.set("checkpointing.kind", "full", checkpointing)
		r.set("checkpointing.offload", true, checkpointing)
	default:
		r.hfCheckpointing("gradient_checkpointing", false, r.dialect.Version)
	}
	if f := r.find("activation_offloading"); f.state == written && r.text(f) != "disk" && r.text(f) != "legacy" {
		offload := entry{field: "checkpointing.offload", keys: paths("activation_offloading")}
		r.apply(&offload)
	}
	r.reducesEach()
	axolotlAdapter(r)
	r.adapterAutocast()
	if f := r.find("fsdp_config.activation_checkpointing"); f.state == absent && r.find("fsdp").state == absent && r.find("fsdp_config").state == absent && r.find("deepspeed").state == absent {
		r.assumeOf("sharding", "ddp", "no fsdp and no deepspeed")
		r.assumeOf("offload.optimizer", "none", "no fsdp and no deepspeed")
		r.assumeOf("offload.param", "none", "no fsdp and no deepspeed")
	} else {
		r.hfSharding()
	}
	r.quantization("load_in_4bit", "load_in_8bit", "bnb_config_kwargs.bnb_4bit_use_double_quant")
	axolotlAttention(r)
	fused := r.first("liger_fused_linear_cross_entropy", "cut_cross_entropy")
	plugins, _ := r.list(r.find("plugins"))
	cut := fused.state == absent && slices.ContainsFunc(plugins, func(name string) bool { return strings.HasSuffix(name, "CutCrossEntropyPlugin") })
	switch on, known := r.truth(fused); {
	case cut:
		r.derive("loss_kernel", "fused_linear", "the plugin's head and loss in one kernel", r.find("plugins"))
	case !known:
		r.forget("loss_kernel")
	case on:
		r.derive("loss_kernel", "fused_linear", "head and loss in one kernel", fused)
	case r.isOn("chunked_cross_entropy"):
		r.derive("loss_kernel", "chunked", "loss in chunks", r.find("chunked_cross_entropy"))
	default:
		r.assumeOf("loss_kernel", "fp32_copy", "transformers from 4.45 on")
	}
	norm, mlp := r.find("liger_rms_norm"), r.first("liger_glu_activation", "liger_swiglu")
	if r.isOn("liger_rms_norm") {
		r.derive("fused_norm", true, "Liger kernel", norm)
	}
	if on, known := r.truth(mlp); on && known {
		r.derive("fused_mlp", true, "Liger kernel", mlp)
	}
}

// axolotlPrecision: bf16 defaults to auto, which is on wherever the device has it; the weights are loaded in that type.
func axolotlPrecision(r *reader) {
	brain, half := r.first("bf16", "bfloat16"), r.first("fp16", "float16")
	name := r.text(brain)
	onBrain, knownBrain := r.truth(brain)
	onHalf, knownHalf := r.truth(half)
	switch {
	case name == "full":
		r.set("dtype.compute", "bf16", brain)
		r.derive("precision", "pure_16bit", "bf16: full", brain)
	case name == "auto" || brain.state == absent && half.state == absent && !r.isOn("float32"):
		r.assumeOf("dtype.compute", "bf16", "bf16: auto, where the device has bf16")
	case !knownBrain || !knownHalf:
		r.forget("dtype.compute")
		return
	case onBrain:
		r.set("dtype.compute", "bf16", brain)
	case onHalf:
		r.set("dtype.compute", "fp16", half)
	default:
		r.assumeOf("dtype.compute", "fp32", "neither bf16 nor fp16")
	}
	if compute, ok := r.plan.DType.Compute.Get(); ok && compute.Is16() && compute != "fp16" {
		r.derive("dtype.params", string(compute), "the weights are loaded in this type", brain)
	}
}

func axolotlAdapter(r *reader) {
	adapter := r.find("adapter")
	switch r.text(adapter) {
	case "lora", "qlora":
		rank := entry{field: "lora.rank", keys: paths("lora_r")}
		r.apply(&rank)
	case "":
		if adapter.state == absent {
			r.assume("lora.rank", 0)
		}
	}
	if on, known := r.truth(r.find("lora_target_linear")); known && on {
		r.set("lora.targets", plan.AllTargets, r.find("lora_target_linear"))
	}
	r.targets("lora_target_modules")
}

func axolotlAttention(r *reader) {
	kernel := entry{field: "attention.kernel", keys: paths("attn_implementation"), read: attention}
	r.apply(&kernel)
	for _, key := range []struct{ path, kernel string }{{"flash_attention", "flash"}, {"flex_attention", "flash"},
		{"xformers_attention", "flash"}, {"sage_attention", "flash"}, {"sdp_attention", "sdpa"}, {"eager_attention", "eager"}} {
		if r.isOn(key.path) {
			r.set("attention.kernel", key.kernel, r.find(key.path))
		}
	}
	r.assumeOf("attention.kernel", "sdpa", "transformers where the model supports it")
}
