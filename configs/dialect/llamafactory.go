package dialect

import (
	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/plan"
)

// LLaMAFactory is the YAML or JSON of LLaMA-Factory: HF's TrainingArguments beside its own.
var LLaMAFactory = &Dialect{
	Name:    "llamafactory",
	Title:   "LLaMA-Factory config",
	Version: "LLaMA-Factory 0.9",
	Batch:   Computed,
	Loader:  configs.LoaderOmegaConf,

	recognise: func(d doc) bool {
		return d.has("finetuning_type") || d.has("stage") && d.has("cutoff_len") ||
			d.has("model_name_or_path") && d.has("template") &&
				d.hasAny("stage", "cutoff_len", "dataset", "dataset_dir", "export_dir", "infer_backend")
	},

	before: llamaFactoryBefore,
	table: append(trainerTable(),
		entry{field: "model.name", keys: paths("model_name_or_path")},
		entry{field: "batch.seq_length", keys: paths("cutoff_len"), absent: 2048},
		entry{field: "parallel.tensor", absent: 1},
		entry{field: "parallel.context", keys: paths("sequence_parallel_size", "hyper_parallel_cp_size"), read: atLeastOne, absent: 1},
		entry{field: "lora.alpha", keys: paths("lora_alpha")},
		entry{field: "lora.dropout", keys: paths("lora_dropout"), absent: 0},
		entry{field: "attention.kernel", keys: paths("flash_attn"), read: attention},
	),
	after:    llamaFactoryAfter,
	sections: []string{"deepspeed"},
	files:    []string{"deepspeed", "fsdp_config"},
	models:   []string{"model_name_or_path"},
}

func llamaFactoryBefore(r *reader) {
	r.findsBatchSize()
	if r.hasAny("infer_backend", "export_dir") && !r.hasAny("learning_rate", "per_device_train_batch_size", "num_train_epochs") {
		r.trainsNothing()
	}
	for _, special := range []string{"use_galore", "use_apollo", "use_badam", "use_adam_mini"} {
		if on, known := r.truth(r.find(special)); on || !known {
			r.forget("optimizer.type")
		}
	}
	if f := r.find("use_muon"); r.isOn("use_muon") {
		r.set("optimizer.type", "muon", f)
	}
	pure := r.find("pure_bf16")
	if on, known := r.truth(pure); on && known {
		r.set("dtype.compute", "bf16", pure)
		r.derive("precision", "pure_16bit", "pure_bf16: weights, gradients and states in bf16", pure)
	}
}

func llamaFactoryAfter(r *reader) {
	r.assume("batch.micro", 8)
	r.assume("optimizer.lr", 5e-5)
	r.hfSteps()
	r.hfWarmup()
	llamaFactoryAdapter(r)
	r.hfPrecision(false)
	r.adapterAutocast()
	// The model is loaded in the compute type; what trains is cast to fp32, except under ZeRO-3 and FSDP.
	if compute, ok := r.plan.DType.Compute.Get(); ok {
		if rank, ok := r.plan.LoRA.Rank.Get(); ok && rank > 0 {
			r.derive("dtype.params", string(compute), "the frozen base is loaded in the compute type", r.first("bf16", "fp16"))
		}
	}
	r.hfKernel("optim")
	disable := r.find("disable_gradient_checkpointing")
	switch off, known := r.truth(disable); {
	case !known:
		r.forget("checkpointing.kind")
	case off:
		r.set("checkpointing.kind", "none", disable)
	default:
		r.assumeOf("checkpointing.kind", "full", "LLaMA-Factory switches it on unless disable_gradient_checkpointing is set")
	}
	r.hfSharding()
	r.assumeOf("attention.kernel", "sdpa", "flash_attn: auto takes what transformers takes")
	llamaFactoryQuantization(r)
	r.liger("enable_liger_kernel")
}

// llamaFactoryAdapter: an absent finetuning_type means LoRA.
func llamaFactoryAdapter(r *reader) {
	kind := r.find("finetuning_type")
	switch name := r.text(kind); {
	case name == "full":
		r.derive("lora.rank", 0, "finetuning_type: full", kind)
	case kind.state == absent || name == "lora":
		rank := entry{field: "lora.rank", keys: paths("lora_rank"), absent: 8}
		r.apply(&rank)
		if r.find("lora_target").state == absent {
			r.assume("lora.targets", plan.AllTargets)
		}
		r.targets("lora_target")
		r.assumeOf("lora.dtype", "fp32", "trainable parameters are cast to fp32 unless pure_bf16 or ZeRO-3")
	default: // freeze and oft train a part of the weights that the plan has no word for
		r.cannotTell("lora.rank", "{} fine-tuning", kind)
	}
}

func llamaFactoryQuantization(r *reader) {
	bits, method := r.find("quantization_bit"), r.find("quantization_method")
	n, ok := r.integer(bits)
	switch {
	case bits.state == absent:
		r.assume("quantization.kind", "none")
	case method.state == written && r.text(method) != "bnb" && r.text(method) != "bitsandbytes":
		r.cannotTell("quantization.kind", "{} quantization", method)
	case ok && n == 4:
		double := r.find("double_quantization")
		if on, known := r.truth(double); double.state == written && known && !on {
			r.set("quantization.kind", "nf4", bits)
		} else {
			r.set("quantization.kind", "nf4_double", bits)
		}
	case ok && n == 8:
		r.set("quantization.kind", "int8", bits)
	default:
		r.cannotTell("quantization.kind", "quantization to {} bits", bits)
	}
}
