package dialect

import (
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint/constant"
)

// HFTrainingArguments are the arguments of transformers' Trainer and of the scripts on top of it (TRL, alignment-handbook,
// open-r1, ms-swift), as YAML, JSON, command line or keyword arguments.
var HFTrainingArguments = &Dialect{
	Name:    "hf-training-args",
	Title:   "HF TrainingArguments",
	Version: "transformers 5",
	Batch:   Computed,
	Loader:  configs.LoaderYAML11,

	recognise: func(d doc) bool {
		// Scripts without the Trainer borrow some of its flags, but count their warm-up in num_warmup_steps.
		if d.format == configs.Flags && d.hasAny("num_warmup_steps", "with_tracking", "lora_dim", "train_batch_size", "max_train_steps") {
			return false
		}
		if d.ofHydra() {
			return false // keys of the user's own program, some of them called as the Trainer's are
		}
		known, missed := d.count(trainingArguments...), 0 // misspelt
		anchors := []string{"per_device_train_batch_size", "num_train_epochs", "lr_scheduler_type"}
		if !d.hasAny(anchors...) || known < 3 {
			if d.format == configs.Flags {
				anchors = slices.DeleteFunc(slices.Clone(trainingArguments), func(name string) bool { return len(name) < longName })
			}
			if known < 2 {
				return false
			}
			if missed = d.slips("hf-training-args", anchors); missed == 0 {
				return false
			}
		}
		return known+missed >= 3 &&
			!d.hasAny("base_model", "finetuning_type", "cutoff_len", "template") &&
			!d.mapping("training") && !d.mapping("trainer") && !d.mapping("train")
	},

	table: append(trainerTable(),
		entry{field: "model.name", keys: paths("model_name_or_path", "model")},
		entry{field: "batch.seq_length", keys: paths("packing_length", "max_length", "max_seq_length", "block_size", "model_max_length", "max_seq_len")},
		entry{field: "parallel.tensor", keys: paths("parallelism_config.tp_size", "deepspeed_autotp_size"), read: atLeastOne, absent: 1},
		entry{field: "lora.rank", keys: paths("lora_r", "lora_rank")},
		entry{field: "lora.alpha", keys: paths("lora_alpha")},
		entry{field: "lora.dropout", keys: paths("lora_dropout")},
		entry{field: "lora.dtype", keys: paths("lora_dtype"), read: dtype},
		entry{field: "attention.kernel", keys: paths("attn_implementation", "attn_impl", "model_init_kwargs.attn_implementation"), read: attention},
	),
	before:   hfBefore,
	after:    hfAfter,
	sections: []string{"deepspeed"},
	files:    []string{"deepspeed", "fsdp_config", "accelerate_config_file"},
	models:   []string{"model_name_or_path", "model", "config_name"},
}

// trainingArguments are fields of TrainingArguments that other dialects do not use, or not alone.
var trainingArguments = []string{
	"output_dir", "per_device_train_batch_size", "per_device_eval_batch_size", "per_gpu_train_batch_size", "num_train_epochs",
	"max_steps", "learning_rate", "lr_scheduler_type", "lr_scheduler_kwargs", "warmup_steps", "warmup_ratio", "optim",
	"weight_decay", "gradient_accumulation_steps", "max_grad_norm", "bf16", "fp16", "tf32", "gradient_checkpointing",
	"gradient_checkpointing_kwargs", "torch_compile", "logging_steps", "logging_strategy", "eval_strategy",
	"evaluation_strategy", "eval_steps", "save_strategy", "save_steps", "save_total_limit", "seed", "report_to", "run_name",
	"dataloader_num_workers", "remove_unused_columns", "ddp_find_unused_parameters", "ddp_timeout", "ddp_bucket_cap_mb", "fsdp",
	"fsdp_config", "deepspeed", "do_train", "do_eval", "push_to_hub", "hub_model_id", "overwrite_output_dir", "group_by_length",
	"load_best_model_at_end", "adam_beta1", "adam_beta2", "adam_epsilon",
}

// trainerTable is what every front end of HF's Trainer shares: HF itself, LLaMA-Factory, and by other names axolotl.
func trainerTable() []entry {
	return []entry{
		{field: "batch.micro", keys: paths("per_device_train_batch_size", "per_gpu_train_batch_size")},
		{field: "batch.accumulation", keys: paths("gradient_accumulation_steps"), absent: 1},
		{field: "parallel.pipeline", absent: 1},
		{field: "dtype.params", keys: paths("torch_dtype", "dtype", "model_init_kwargs.torch_dtype", "model_init_kwargs.dtype"), read: dtype},
		{field: "optimizer.type", keys: paths("optim"), read: choice(hfOptimizers), absent: "adamw"},
		{field: "optimizer.lr", keys: paths("learning_rate")},
		{field: "optimizer.weight_decay", keys: paths("weight_decay"), absent: 0},
		{field: "optimizer.beta1", keys: paths("adam_beta1"), absent: 0.9},
		{field: "optimizer.beta2", keys: paths("adam_beta2"), absent: 0.999},
		{field: "optimizer.eps", keys: paths("adam_epsilon"), absent: 1e-8},
		{field: "optimizer.clip", keys: paths("max_grad_norm"), absent: 1.0},
		{field: "schedule.type", keys: paths("lr_scheduler_type"), read: lower, absent: "linear"},
		{field: "schedule.total_steps", keys: paths("max_steps"), read: positive},
		{field: "schedule.epochs", keys: paths("num_train_epochs")},
		{field: "compile", keys: paths("torch_compile"), absent: false},
		{field: "checkpointing.reentrant", keys: paths("gradient_checkpointing_kwargs.use_reentrant")},
		{field: "ddp.find_unused", keys: paths("ddp_find_unused_parameters")},
		{field: "buckets.ddp_cap_mb", keys: paths("ddp_bucket_cap_mb")},
		{field: "stack", absent: "hf"},
	}
}

var hfOptimizers = map[string]string{
	"adamw_torch": "adamw", "adamw_torch_fused": "adamw", "adamw_hf": "adamw", "adamw_apex_fused": "adamw", "adamw_torch_xla": "adamw",
	"adamw_torch_npu_fused": "adamw", "adamw_anyprecision": "adamw", "paged_adamw_32bit": "adamw", "paged_adamw": "adamw",
	"adamw_bnb_8bit": "adamw_8bit", "adamw_8bit": "adamw_8bit", "paged_adamw_8bit": "adamw_8bit", "adamw_torch_8bit": "adamw_8bit",
	"adamw_torch_4bit": "adamw_4bit", "adafactor": "adafactor", "lion": "lion", "lion_32bit": "lion", "paged_lion_32bit": "lion",
	"paged_lion": "lion", "muon": "muon", "sgd": "sgd", "ao_adamw_8bit": "adamw_8bit", "ao_adamw_4bit": "adamw_4bit",
	"adopt_adamw": "adamw",
}

// swiftKeys are arguments that only ms-swift has.
var swiftKeys = []string{"tuner_type", "train_type", "sft_type", "rlhf_type", "split_dataset_ratio", "lora_rank", "quant_bits"}

// trlKeys are arguments that only TRL's configs have; their presence means TRL's defaults.
var trlKeys = []string{
	"dataset_text_field", "packing", "packing_strategy", "padding_free", "completion_only_loss", "assistant_only_loss", "beta",
	"max_prompt_length", "max_completion_length", "num_generations", "use_vllm", "vllm_mode", "precompute_ref_log_probs",
	"dataset_kwargs", "eos_token", "chat_template_path",
}

// hfBefore settles what stands in other words than the table's.
func hfBefore(r *reader) {
	hfMegatron(r)
	if r.swift() {
		for _, e := range []entry{
			{field: "optimizer.weight_decay", keys: paths("weight_decay"), absent: 0.1},
			{field: "optimizer.beta2", keys: paths("adam_beta2"), absent: 0.95},
			{field: "schedule.type", keys: paths("lr_scheduler_type"), read: lower, absent: "cosine"},
		} {
			r.apply(&e)
		}
		if r.find("gradient_accumulation_steps").state == absent {
			r.forget("batch.accumulation") // as many as make 16 sequences over all ranks
		}
	}
	r.findsBatchSize()
	if f := r.first("torch_dtype", "dtype", "model_init_kwargs.torch_dtype", "model_init_kwargs.dtype"); f.state == written && isAuto(r.constant(f)) {
		r.derive("dtype.params", "bf16", "the type of the checkpoint, which is bf16 for most published models", f)
	}
	if f := r.find("adafactor"); r.isOn("adafactor") {
		r.set("optimizer.type", "adafactor", f)
	}
	if f := r.find("use_peft"); f.state == written {
		if on, known := r.truth(f); known && !on {
			r.derive("lora.rank", 0, "use_peft is off", f)
		}
	}
}

func hfAfter(r *reader) {
	swift := r.swift()
	trl := !swift && (r.hasAny(trlKeys...) || strings.HasPrefix(r.class, "trl."))
	version := r.dialect.Version
	switch {
	case swift:
		version = "ms-swift"
		r.assumeOf("batch.micro", 1, version)
		if r.class == "swift.rlhf" && r.find("rlhf_type").state == absent {
			r.plan.CannotModel("dpo training", r.root.At)
		}
	case trl:
		version = "TRL"
	default:
		r.assume("optimizer.lr", 5e-5)
	}
	r.assume("batch.micro", 8)
	r.hfSteps()
	r.hfWarmup()
	if swift {
		r.swiftPrecision()
	}
	r.hfPrecision(trl)
	r.hfKernel("optim")
	r.hfCheckpointing("gradient_checkpointing", trl || swift, version)
	hfAdapter(r, swift)
	r.adapterAutocast()
	if swift {
		r.derive("lora.autocast", true, "ms-swift trains under autocast in the type of the weights", r.first("bf16", "fp16", "torch_dtype"))
	}
	r.hfSharding()
	hfModel(r)
	hfContext(r)
	hfQuantization(r)
	r.liger("use_liger_kernel")
	r.assumeOf("attention.kernel", "sdpa", "transformers where the model supports it")
	if trl && r.find("max_length").state == absent && r.hasAny("dataset_text_field", "packing", "packing_strategy", "completion_only_loss") {
		r.assumeOf("batch.seq_length", 1024, "TRL's SFTConfig")
	}
}

// findsBatchSize: auto_find_batch_size halves the micro-batch until it fits.
func (r *reader) findsBatchSize() {
	if on, known := r.truth(r.find("auto_find_batch_size")); on || !known {
		r.forget("batch.micro")
	}
}

// hfMegatron: ms-swift passes Megatron's sizes through the same flat file.
func hfMegatron(r *reader) {
	if !r.hasAny("micro_batch_size", "global_batch_size", "tensor_model_parallel_size", "pipeline_model_parallel_size") {
		return
	}
	for _, e := range []entry{
		{field: "batch.micro", keys: paths("micro_batch_size")},
		{field: "batch.global", keys: paths("global_batch_size")},
		{field: "parallel.tensor", keys: paths("tensor_model_parallel_size")},
		{field: "parallel.pipeline", keys: paths("pipeline_model_parallel_size")},
		{field: "parallel.context", keys: paths("context_parallel_size")},
		{field: "parallel.expert", keys: paths("expert_model_parallel_size")},
		{field: "optimizer.lr", keys: paths("lr")},
		{field: "optimizer.min_lr", keys: paths("min_lr")},
		{field: "schedule.warmup_ratio", keys: paths("lr_warmup_fraction")},
	} {
		r.apply(&e)
	}
	if r.find("gradient_accumulation_steps").state == absent {
		r.forget("batch.accumulation")
	}
	for _, field := range []string{"stack", "sharding", "precision", "checkpointing.kind", "loss_kernel", "attention.kernel", "batch.micro"} {
		r.forget(field)
	}
}

// hfSteps: max_steps wins over epochs; without either it is three epochs.
func (r *reader) hfSteps() {
	if !r.known("schedule.total_steps") {
		r.assume("schedule.epochs", 3)
	}
}

// hfWarmup: warmup_steps counts optimizer steps; a fraction below 1 is a ratio since transformers 5, and before it a
// warmup_ratio counted only where warmup_steps was 0.
func (r *reader) hfWarmup() {
	steps, ratio := r.find("warmup_steps"), r.find("warmup_ratio")
	n, isNumber := r.number(steps)
	switch {
	case steps.state == unknown || steps.state == written && !isNumber:
		r.forget("schedule.warmup")
		r.forget("schedule.warmup_ratio")
	case steps.state == written && n > 0 && n < 1:
		r.set("schedule.warmup_ratio", n, steps)
	case steps.state == written && n > 0:
		r.set("schedule.warmup", n, steps)
	case ratio.state == unknown:
		r.forget("schedule.warmup")
		r.forget("schedule.warmup_ratio")
	case ratio.state == written:
		if v, ok := r.number(ratio); ok {
			r.set("schedule.warmup_ratio", v, ratio)
		} else {
			r.forget("schedule.warmup")
		}
	case steps.state == written:
		r.set("schedule.warmup", n, steps)
	default:
		r.assume("schedule.warmup", 0)
	}
	r.assumeOf("schedule.warmup_unit", "optimizer", "the Trainer steps the scheduler once for each optimizer step")
}

// hfPrecision: bf16 and fp16 switch autocast on.
func (r *reader) hfPrecision(trl bool) {
	half, halfKnown := r.truth(r.find("fp16"))
	brain, brainKnown := r.truth(r.find("bf16"))
	switch {
	case !halfKnown || !brainKnown || half && brain:
		r.forget("dtype.compute")
	case half:
		r.set("dtype.compute", "fp16", r.find("fp16"))
	case brain:
		r.set("dtype.compute", "bf16", r.find("bf16"))
	case trl && r.find("bf16").state == absent && r.find("fp16").state == absent:
		r.assumeOf("dtype.compute", "bf16", "TRL, where fp16 is not set")
	case r.plan.DType.Params.Known():
		dtype, _ := r.plan.DType.Params.Get()
		r.derive("dtype.compute", string(dtype), "without autocast the model computes in the type it was loaded in", r.first("torch_dtype", "dtype", "model_init_kwargs.torch_dtype", "model_init_kwargs.dtype"))
	default:
		r.assume("dtype.compute", "fp32")
	}
}

// hfKernel is how the optimizer named at path runs.
func (r *reader) hfKernel(path string) {
	f := r.find(path)
	switch name := r.text(f); {
	case f.state == absent:
		r.assumeOf("optimizer.kernel", "fused", "adamw_torch_fused, the default from torch 2.8 on")
	case strings.Contains(name, "fused") || strings.Contains(name, "apex"):
		r.derive("optimizer.kernel", "fused", "by the name of the optimizer", f)
	case name == "adamw_torch" || name == "sgd":
		r.derive("optimizer.kernel", "foreach", "torch's own choice on a device", f)
	}
	if name := r.text(f); strings.HasPrefix(name, "paged_") {
		r.derive("offload.optimizer", "cpu", "paged optimizer states move to host memory under pressure", f)
	}
}

func (r *reader) hfCheckpointing(path string, on bool, version string) {
	f := r.find(path)
	switch enabled, known := r.truth(f); {
	case r.isOn("fsdp_config.activation_checkpointing"):
		r.set("checkpointing.kind", "full", r.find("fsdp_config.activation_checkpointing"))
	case !known:
		r.forget("checkpointing.kind")
	case f.state == written && enabled:
		r.set("checkpointing.kind", "full", f)
	case f.state == written:
		r.set("checkpointing.kind", "none", f)
	case on:
		r.assumeOf("checkpointing.kind", "full", version)
	default:
		r.assumeOf("checkpointing.kind", "none", version)
	}
}

// hfSharding reads `fsdp` and `fsdp_config`. With `deepspeed` the sharding stands in that file. Without either the
// launcher decides: DDP, unless accelerate's own config says otherwise.
func (r *reader) hfSharding() {
	fsdp, config := r.find("fsdp"), r.find("fsdp_config")
	r.reducesEach()
	if deepspeed := r.find("deepspeed"); deepspeed.state != absent {
		r.zeroByName(deepspeed)
		r.forget("sharding")
		return
	}
	options, known := r.fsdpOptions(fsdp)
	switch {
	case !known:
		r.forget("sharding")
		return
	case len(options) == 0 && fsdp.state == absent && config.state == written && config.node.Kind == configs.Mapping && r.version2():
		options = []string{"full_shard"}
		fsdp = config
	case len(options) == 0:
		r.assumeOf("sharding", "ddp", "no fsdp and no deepspeed; accelerate's own config may say otherwise")
		r.assumeOf("offload.optimizer", "none", "no fsdp and no deepspeed")
		r.assumeOf("offload.param", "none", "no fsdp and no deepspeed")
		return
	}
	r.unreduced(syncEachBatch, "sync_each_batch")
	if slices.Contains(options, "fsdp2") { // ms-swift's own settings
		r.set("sharding", "fsdp2", fsdp)
		r.derive("checkpointing.kind", "full", "ms-swift's fsdp2 recomputes every layer", fsdp)
	}
	version := "fsdp1"
	if r.version2() {
		version = "fsdp2"
	}
	if !r.find("fsdp_config").known() || !r.find("fsdp_config.fsdp_version").known() || !r.find("fsdp_config.version").known() {
		r.forget("sharding")
		return
	}
	for _, option := range options {
		switch option {
		case "full_shard", "hybrid_shard", "true":
			r.set("sharding", version, fsdp)
		case "shard_grad_op", "hybrid_shard_zero2":
			r.set("sharding", version, fsdp)
			r.set("fsdp.reshard_after_forward", false, fsdp)
		case "no_shard":
			r.set("sharding", "ddp", fsdp)
		case "offload":
			r.set("offload.optimizer", "cpu", fsdp)
			r.set("offload.param", "cpu", fsdp)
		}
		if strings.HasPrefix(option, "hybrid_shard") {
			r.forget("parallel.shard_group")
		}
	}
	if !r.known("sharding") {
		r.assume("sharding", version)
	}
	reshard := entry{field: "fsdp.reshard_after_forward", keys: paths("fsdp_config.reshard_after_forward"), read: boolOnly}
	r.apply(&reshard)
	limit := entry{field: "fsdp.limit_all_gathers", keys: paths("fsdp_config.limit_all_gathers")}
	r.apply(&limit)
	if f := r.find("fsdp_config.offload_params"); r.isOn("fsdp_config.offload_params") {
		r.set("offload.optimizer", "cpu", f)
		r.set("offload.param", "cpu", f)
	} else if f.state != unknown {
		r.assume("offload.optimizer", "none")
		r.assume("offload.param", "none")
	}
	if compute, ok := r.plan.DType.Compute.Get(); ok && compute.Is16() && r.plan.LoRA.Rank.Is(0) {
		r.derive("precision", "fsdp_mixed", "accelerate keeps the sharded weights in fp32", fsdp, r.first("bf16", "fp16"))
	}
}

const syncEachBatch = "accelerator_config.gradient_accumulation_kwargs.sync_each_batch"

// reducesEach reads sync_each_batch also where nothing of FSDP is written here: accelerate's own config may say that it shards.
func (r *reader) reducesEach() {
	if on, known := r.truth(r.find(syncEachBatch)); on && known {
		r.set("fsdp.no_sync", false, r.find(syncEachBatch))
	}
}

// unreduced: under accumulation Hugging Face's Trainer and accelerate's accumulate() skip the reduction of all micro-batches but the
// last (Accelerator.no_sync; for FSDP2 from accelerate 1.11 on), unless sync_each_batch is set. That is read by the Trainer up to
// transformers 4.46 and from 5.0 on. The paths are where sync_each_batch may be.
func (r *reader) unreduced(paths ...string) {
	config, each := r.find("accelerator_config"), r.first(paths...)
	switch on, known := r.truth(each); {
	case !known, config.state == written && config.node.Kind == configs.Scalar && !isBlank(r.constant(config)):
		r.forget("fsdp.no_sync")
	case each.state == written:
		r.set("fsdp.no_sync", !on, each)
	default:
		r.assumeOf("fsdp.no_sync", true, "accelerate reduces gradients at the last micro-batch alone; for FSDP2 from 1.11 on")
	}
}

func (f found) known() bool { return f.state != unknown }

// version2 reports whether fsdp_config asks for FSDP2.
func (r *reader) version2() bool {
	v, ok := r.number(r.first("fsdp_config.fsdp_version", "fsdp_config.version", "fsdp_version"))
	return ok && v == 2
}

// boolOnly takes a truth value and nothing else: FSDP1 spells the same key as text.
func boolOnly(v constant.Value) (any, bool) {
	b, ok := v.Bool()
	return b, ok
}

// fsdpOptions are the words of `fsdp`: text with blanks between, a list, or true.
func (r *reader) fsdpOptions(f found) (options []string, known bool) {
	switch f.state {
	case absent:
		return nil, true
	case unknown:
		return nil, false
	}
	if f.node.Kind == configs.Sequence {
		return r.list(f)
	}
	v := r.constant(f)
	if on, ok := v.Bool(); ok {
		if on {
			return []string{"true"}, true
		}
		return nil, true
	}
	text, ok := v.Str()
	if !ok || text == "auto" {
		return nil, false
	}
	return strings.Fields(strings.ToLower(strings.ReplaceAll(text, ",", " "))), true
}

// zeroByName: ms-swift and LLaMA-Factory's successors take `zero2` in place of a file.
func (r *reader) zeroByName(f found) {
	switch name := r.text(f); name {
	case "zero0":
		r.set("sharding", "ddp", f)
	case "zero1", "zero2", "zero3":
		r.set("sharding", name, f)
	case "zero2_offload", "zero3_offload":
		r.set("sharding", strings.TrimSuffix(name, "_offload"), f)
		r.set("offload.optimizer", "cpu", f)
	}
}

// hfContext: context (ring) and sequence (Ulysses) parallel ranks share one sequence.
func hfContext(r *reader) {
	cp, sp := r.find("parallelism_config.cp_size"), r.first("parallelism_config.sp_size", "sequence_parallel_size")
	product := int64(1)
	for _, f := range []found{cp, sp} {
		if f.state == absent {
			continue
		}
		n, ok := r.integer(f)
		if !ok || n < 1 {
			r.forget("parallel.context")
			return
		}
		product *= n
	}
	if cp.state == absent && sp.state == absent {
		r.assume("parallel.context", 1)
		return
	}
	r.derive("parallel.context", product, "cp_size * sp_size", cp, sp)
}

// adapterAutocast: bf16 and fp16 run the forward pass of the adapters under autocast.
func (r *reader) adapterAutocast() {
	rank, ok := r.plan.LoRA.Rank.Get()
	f := r.first("bf16", "fp16")
	if on, known := r.truth(f); ok && rank > 0 && on && known {
		r.derive("lora.autocast", true, "the Trainer's mixed precision", f)
	}
}

// targets reads the list of modules that carry an adapter.
func (r *reader) targets(paths ...string) {
	f := r.first(paths...)
	if f.state != written {
		return
	}
	names, ok := r.list(f)
	if !ok {
		text, isText := r.constant(f).Str()
		if !isText {
			r.forget("lora.targets")
			return
		}
		names = strings.Split(text, ",")
	}
	set, ok := targetsOf(names)
	if !ok {
		r.forget("lora.targets")
		return
	}
	r.set("lora.targets", set, f)
}

var moduleTargets = map[string]plan.Targets{
	"q_proj": plan.TargetQ, "k_proj": plan.TargetK, "v_proj": plan.TargetV, "o_proj": plan.TargetO, "out_proj": plan.TargetO,
	"dense": plan.TargetO, "query_key_value": plan.TargetQKV, "qkv_proj": plan.TargetQKV, "c_attn": plan.TargetQKV, "wqkv": plan.TargetQKV,
	"up_proj": plan.TargetUp, "gate_proj": plan.TargetGate, "down_proj": plan.TargetDown, "fc_in": plan.TargetUp, "fc_out": plan.TargetDown,
	"fc1": plan.TargetUp, "fc2": plan.TargetDown, "dense_h_to_4h": plan.TargetUp, "dense_4h_to_h": plan.TargetDown, "lm_head": plan.TargetHead,
	"gate_up_proj": plan.TargetUp | plan.TargetGate, "output_proj": plan.TargetO, "w1": plan.TargetGate, "w2": plan.TargetDown, "w3": plan.TargetUp,
	"all": plan.AllTargets, "all-linear": plan.AllTargets, "all_linear": plan.AllTargets,
}

func targetsOf(names []string) (plan.Targets, bool) {
	var set plan.Targets
	for _, name := range names {
		target, ok := moduleTargets[strings.ToLower(strings.TrimSpace(name))]
		if !ok {
			return 0, false
		}
		set |= target
	}
	return set, set != 0
}

// hfQuantization: scripts have their own names for the switches; a word of quantisation that is not known leaves it open.
func hfQuantization(r *reader) {
	bits := r.find("quant_bits")
	switch n, ok := r.integer(bits); {
	case bits.state == absent:
	case ok && n == 4:
		r.set("quantization.kind", "nf4", bits)
	case ok && n == 8:
		r.set("quantization.kind", "int8", bits)
	default:
		r.cannotTell("quantization.kind", "quantization to {} bits", bits)
	}
	if r.hasAny("use_4bit_quantization", "use_8bit_quantization") {
		r.quantization("use_4bit_quantization", "use_8bit_quantization", "use_nested_quant")
	}
	known := map[string]bool{"load_in_4bit": true, "load_in_8bit": true, "quant_bits": true, "quant_method": true, "use_4bit_quantization": true,
		"use_8bit_quantization": true, "bnb_4bit_quant_type": true, "use_bnb_nested_quant": true, "bnb_4bit_use_double_quant": true,
		"bnb_4bit_compute_dtype": true, "bnb_4bit_quant_storage": true, "use_8bit_adam": true}
	for i := range r.root.Items {
		key := fold(r.root.Items[i].Key)
		if !known[key] && (strings.Contains(key, "4bit") || strings.Contains(key, "8bit") || strings.HasPrefix(key, "quant")) && !r.has("load_in_4bit") {
			r.forget("quantization.kind")
			if f := r.find(key); f.state != absent && f.node != nil && r.asks(&effect{}, f) {
				r.cannotModel("quantization ("+key+")", f)
			}
		}
	}
	r.quantization("load_in_4bit", "load_in_8bit", "use_bnb_nested_quant", "bnb_4bit_use_double_quant")
}

// quantization reads bitsandbytes' switches.
func (r *reader) quantization(four, eight string, double ...string) {
	four4, known4 := r.truth(r.find(four))
	eight8, known8 := r.truth(r.find(eight))
	switch {
	case !known4:
		r.cannotTell("quantization.kind", "quantization ({})", r.find(four))
	case !known8:
		r.cannotTell("quantization.kind", "quantization ({})", r.find(eight))
	case four4: // nf4 or fp4: both store 4 bits and a scale for each block
		to := "nf4"
		if f := r.first(double...); f.state == written {
			if on, _ := r.truth(f); on {
				to = "nf4_double"
			}
		}
		r.set("quantization.kind", to, r.find(four))
	case eight8:
		r.set("quantization.kind", "int8", r.find(eight))
	default:
		r.assume("quantization.kind", "none")
	}
}

// liger: the kernels fuse norms, MLP and the loss with the head.
func (r *reader) liger(path string) {
	f := r.find(path)
	switch on, known := r.truth(f); {
	case !known:
		r.forget("loss_kernel")
	case on:
		r.derive("loss_kernel", "fused_linear", "Liger kernels fuse head and loss", f)
		r.derive("fused_norm", true, "Liger kernels", f)
		r.derive("fused_mlp", true, "Liger kernels", f)
	default:
		r.assumeOf("loss_kernel", "fp32_copy", "transformers from 4.45 on")
		r.assumeOf("fused_norm", false, "transformers without kernels")
		r.assumeOf("fused_mlp", false, "transformers without kernels")
	}
}
