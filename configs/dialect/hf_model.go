package dialect

import (
	"strings"

	"github.com/trainvet/trainvet/configs/plan"
)

// swift reports whether ms-swift reads the arguments.
func (r *reader) swift() bool {
	return strings.HasPrefix(r.class, "swift.") || r.hasAny(swiftKeys...)
}

// swiftPrecision: without torch_dtype ms-swift loads the model in the type that its own config.json names, and
// switches the mixed precision of that type on (model_args.py, _init_mixed_precision): fp16 for fp32 weights.
// Published models are bf16.
func (r *reader) swiftPrecision() {
	r.assumeOf("dtype.params", "bf16", "ms-swift takes the type of the model's config.json")
	params, ok := r.plan.DType.Params.Get()
	if !ok || r.find("bf16").state != absent || r.find("fp16").state != absent {
		return
	}
	compute := "fp16"
	if params == plan.BFloat16 {
		compute = "bf16"
	}
	r.derive("dtype.compute", compute, "ms-swift trains in the type of the weights", r.find("torch_dtype"))
}

// hfAdapter: LoRA only where it is asked for. TRL's rank is 16.
func hfAdapter(r *reader, swift bool) {
	peft := r.find("use_peft")
	tuner := r.first("tuner_type", "train_type", "sft_type")
	switch on, known := r.truth(peft); {
	case !known:
		r.forget("lora.rank")
	case on:
		r.assumeOf("lora.rank", 16, "TRL")
	case tuner.state == written:
		if r.text(tuner) == "lora" {
			r.assumeOf("lora.rank", 8, "ms-swift")
		} else if r.text(tuner) == "full" {
			r.set("lora.rank", 0, tuner)
		}
	case swift:
		r.assumeOf("lora.rank", 8, "ms-swift, whose tuner_type is lora")
	default:
		r.assume("lora.rank", 0)
	}
	r.targets("lora_target_modules", "target_modules", "lora_target")
	if f := r.first("lora_r", "lora_rank"); f.state == unknown && f.node != nil {
		r.cannotModel("LoRA of a rank that is not known", f)
	}
	if r.has("trained_model.adapted") {
		r.assumeOf("lora.dtype", "fp32", "PEFT keeps adapters in fp32")
	}
	if rank, ok := r.plan.LoRA.Rank.Get(); swift && ok && rank > 0 {
		if r.first("target_modules", "target_regex").state == absent {
			r.assumeOf("lora.targets", plan.AllTargets, "ms-swift: all-linear")
		}
		r.assumeOf("lora.dropout", 0.05, "ms-swift")
		r.assumeOf("lora.dtype", "fp32", "PEFT keeps adapters in fp32")
	}
}

// hfModel: a classifier on top of a decoder has no output as wide as the vocabulary, whatever its loss. TRL's
// classes of arguments say what is trained: a second model, or the policy that generates.
func hfModel(r *reader) {
	labels, task, class := r.find("num_labels"), r.find("task_type"), r.find("trained_model.class")
	switch {
	case strings.Contains(r.text(class), "forsequenceclassification"):
		r.classifier(class)
	case r.swift() && (r.text(task) == "seq_cls" || task.state == absent && labels.state == written):
		r.classifier(r.first("task_type", "num_labels"))
	}
	if of, ok := strings.CutPrefix(r.class, "trl."); ok && of != "" {
		name := strings.TrimSuffix(of[strings.LastIndexByte(of, '.')+1:], "Config")
		if !strings.EqualFold(name, "SFT") {
			r.plan.CannotModel(name+" training", r.root.At)
		}
	}
	if f := r.find("trained_model.kbit"); r.isOn("trained_model.kbit") {
		r.derive("quantization.fp32_residual", true, "prepare_model_for_kbit_training", f)
	}
	f := r.find("activation_offloading")
	switch on, known := r.truth(f); {
	case on && known && r.plan.Checkpointing.Kind.Is(plan.Full):
		r.set("checkpointing.offload", true, f)
	case on || !known && f.node != nil:
		r.cannotModel("activation offload", f)
	}
}

func (r *reader) classifier(f found) {
	r.set("loss_kernel", "none", f)
}
