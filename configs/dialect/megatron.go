package dialect

import (
	"strings"

	"github.com/trainvet/trainvet/configs"
)

// Megatron is Megatron-LM's command line, also as written in YAML: its functional tests (MODEL_ARGS) and its own
// experimental form. MindSpeed-LLM takes the same flags.
var Megatron = &Dialect{
	Name:    "megatron",
	Title:   "Megatron-LM arguments",
	Version: "Megatron-LM core 0.14",
	Batch:   Divides,
	Loader:  configs.LoaderYAML11,
	dashes:  true,
	lenient: true,

	recognise: func(d doc) bool {
		if d.mapping("MODEL_ARGS") || d.mapping("language_model") && d.mapping("model_parallel") {
			return true
		}
		if d.format == configs.Flags {
			return d.hasAny("tensor_model_parallel_size", "pipeline_model_parallel_size", "model_parallel_size") && d.hasAny("num_layers", "micro_batch_size", "hidden_size") ||
				d.has("num_layers") && d.has("hidden_size") && d.has("micro_batch_size")
		}
		// Keys that are flags, dashes and all. Vocabularies hold such words too, but not these.
		return d.root.Item("--num-layers") != nil || d.root.Item("--hidden-size") != nil || d.root.Item("--micro-batch-size") != nil ||
			d.root.Item("--tensor-model-parallel-size") != nil
	},

	before: func(r *reader) {
		r.into("MODEL_ARGS")
		megatronExtensions(r)
	},
	table: []entry{
		{field: "model.hidden", keys: megatronKeys("hidden_size")},
		{field: "model.layers", keys: megatronKeys("num_layers")},
		{field: "model.heads", keys: megatronKeys("num_attention_heads")},
		{field: "model.head_dim", keys: megatronKeys("kv_channels")},
		{field: "model.ffn", keys: megatronKeys("ffn_hidden_size")},
		{field: "model.vocab", keys: megatronKeys("padded_vocab_size", "vocab_size")},
		{field: "model.experts", keys: megatronKeys("num_experts", "num_moe_experts"), absent: 0},
		{field: "model.active_experts", keys: megatronKeys("moe_router_topk"), absent: 2},
		{field: "model.expert_ffn", keys: megatronKeys("moe_ffn_hidden_size")},
		{field: "model.shared_ffn", keys: megatronKeys("moe_shared_expert_intermediate_size")},
		{field: "model.max_positions", keys: megatronKeys("max_position_embeddings")},
		{field: "batch.micro", keys: megatronKeys("micro_batch_size")},
		{field: "batch.global", keys: megatronKeys("global_batch_size")},
		{field: "batch.seq_length", keys: megatronKeys("seq_length", "encoder_seq_length")},
		{field: "parallel.tensor", keys: megatronKeys("tensor_model_parallel_size", "model_parallel_size"), absent: 1},
		{field: "parallel.pipeline", keys: megatronKeys("pipeline_model_parallel_size"), absent: 1},
		{field: "parallel.context", keys: megatronKeys("context_parallel_size"), absent: 1},
		{field: "parallel.expert", keys: megatronKeys("expert_model_parallel_size"), absent: 1},
		{field: "parallel.expert_tensor", keys: megatronKeys("expert_tensor_parallel_size")},
		{field: "parallel.virtual_pipeline", keys: megatronKeys("virtual_pipeline_model_parallel_size", "num_virtual_stages_per_pipeline_rank")},
		{field: "optimizer.type", keys: megatronKeys("optimizer"), read: choice(plainOptimizers), absent: "adamw"},
		{field: "optimizer.kernel", absent: "fused"},
		{field: "optimizer.lr", keys: megatronKeys("lr")},
		{field: "optimizer.min_lr", keys: megatronKeys("min_lr"), absent: 0},
		{field: "optimizer.weight_decay", keys: megatronKeys("weight_decay"), absent: 0.01},
		{field: "optimizer.beta1", keys: megatronKeys("adam_beta1"), absent: 0.9},
		{field: "optimizer.beta2", keys: megatronKeys("adam_beta2"), absent: 0.999},
		{field: "optimizer.eps", keys: megatronKeys("adam_eps"), absent: 1e-8},
		{field: "optimizer.clip", keys: megatronKeys("clip_grad"), absent: 1.0},
		{field: "schedule.type", keys: megatronKeys("lr_decay_style"), read: lower, absent: "linear"},
		{field: "schedule.total_steps", keys: megatronKeys("train_iters"), read: positive},
		{field: "schedule.warmup_ratio", keys: megatronKeys("lr_warmup_fraction")},
		{field: "attention.dropout", keys: megatronKeys("attention_dropout"), absent: 0.1},
		{field: "loss_kernel", absent: "vocab_parallel"},
		{field: "fused_norm", absent: true},
		{field: "fused_mlp", absent: true},
		{field: "stack", absent: "megatron"},
		{field: "model.family", absent: "megatron-gpt"},
		{field: "lora.rank", absent: 0},
		{field: "quantization.kind", absent: "none"},
	},
	after: megatronAfter,
}

// megatronExtensions: inference trains nothing, and MindSpeed adds ways of saving memory that the plan has no word for.
func megatronExtensions(r *reader) {
	if f := r.find("noop_layers"); f.state == written { // layers that are there for even stages only, and do nothing
		if layers, ok := r.integer(r.find("num_layers")); ok {
			r.derive("model.layers", layers-1-int64(strings.Count(f.node.Raw, ",")), "without noop-layers", r.find("num_layers"), f)
		}
	}
	for i := range r.root.Items {
		key := fold(r.root.Items[i].Key)
		named := func(field string) {
			r.forget(field)
			if f := r.find(r.root.Items[i].Key); r.asks(&effect{}, f) {
				r.cannotModel(key, f)
			}
		}
		switch {
		case strings.Contains(key, "inference"):
			r.trainsNothing()
		case key == "reuse_fp32_param": // 16-bit weights live in the storage of the masters
			named("precision")
		case key == "swap_optimizer":
			named("offload.optimizer")
		case key == "recompute_modules":
			r.forget("checkpointing.kind")
		case strings.Contains(key, "swap_"), strings.Contains(key, "_swap"), strings.HasPrefix(key, "adaptive_"), strings.Contains(key, "zero_memory"),
			strings.HasPrefix(key, "recompute_activation_function"), strings.HasPrefix(key, "recompute_norm"), strings.HasPrefix(key, "recompute_in_"),
			strings.HasSuffix(key, "_recompute"), key == "enable_recompute_layers_per_pp_rank", strings.HasPrefix(key, "cpu_offloading"):
			named("checkpointing.kind")
		}
	}
}

// megatronKeys are the paths of an argument: on the command line, and in the two sections of the YAML form.
func megatronKeys(names ...string) []string {
	var all []string
	for _, name := range names {
		all = append(all, name, "language_model."+name, "model_parallel."+name)
	}
	return all
}

func megatronAfter(r *reader) {
	flag := func(name string) found { return r.first(megatronKeys(name)...) }
	isOn := func(name string) bool {
		on, known := r.truth(flag(name))
		return on && known
	}
	megatronShape(r, flag, isOn)
	switch half, brain := flag("fp16"), flag("bf16"); {
	case isOn("bf16") && !isOn("fp16"):
		r.set("dtype.compute", "bf16", brain)
		r.derive("precision", "megatron_mixed", "16-bit weights, fp32 gradients and masters", brain)
	case isOn("fp16") && !isOn("bf16"):
		r.set("dtype.compute", "fp16", half)
		r.derive("precision", "megatron_mixed", "16-bit weights, fp32 gradients and masters", half)
	case half.state == unknown || brain.state == unknown || isOn("fp16"):
		r.forget("dtype.compute")
	default:
		r.assume("dtype.compute", "fp32")
	}
	switch distributed := flag("use_distributed_optimizer"); {
	case isOn("use_torch_fsdp2"), isOn("use_megatron_fsdp"), isOn("use_custom_fsdp"):
		r.derive("sharding", "fsdp2", "the FSDP flag", r.first(megatronKeys("use_torch_fsdp2", "use_megatron_fsdp", "use_custom_fsdp")...))
	case isOn("use_distributed_optimizer"):
		r.set("sharding", "megatron_dist", distributed)
	case distributed.state == unknown:
		r.forget("sharding")
	default:
		// The gradients of Megatron's own DDP lie in its buckets: no second copy, as no sharding at all.
		r.assumeOf("sharding", "none", "Megatron's DDP with a replicated optimizer")
	}
	if isOn("optimizer_cpu_offload") {
		r.set("offload.optimizer", "cpu", flag("optimizer_cpu_offload"))
	}
	r.assume("offload.optimizer", "none")
	r.assume("offload.param", "none")
	if isOn("sequence_parallel") {
		r.set("parallel.sequence_parallel", true, flag("sequence_parallel"))
	} else if flag("sequence_parallel").state == absent {
		r.assume("parallel.sequence_parallel", false)
	}
	megatronPipeline(r, flag)
	megatronRecompute(r, flag, isOn)
	megatronWarmup(r, flag)
	if hidden, ok := r.number(flag("hidden_dropout")); ok {
		r.set("hidden_dropout", hidden > 0, flag("hidden_dropout"))
	} else if flag("hidden_dropout").state == absent {
		r.assumeOf("hidden_dropout", true, "hidden_dropout 0.1")
	}
	kernel := entry{field: "attention.kernel", keys: megatronKeys("attention_backend"), read: attention}
	r.apply(&kernel)
	if isOn("use_flash_attn") {
		r.set("attention.kernel", "flash", flag("use_flash_attn"))
	}
	r.assumeOf("attention.kernel", "flash", "the attention backend of Transformer Engine")
	if flag("global_batch_size").state == absent && flag("rampup_batch_size").state == absent && r.known("batch.micro") {
		r.assumeOf("batch.accumulation", 1, "no global batch size: one micro-batch on each data-parallel rank")
	}
}

func megatronShape(r *reader, flag func(string) found, isOn func(string) bool) {
	groups := flag("num_query_groups")
	if isOn("group_query_attention") || flag("group_query_attention").state == absent && r.mapping("language_model") {
		kv := entry{field: "model.kv_heads", keys: megatronKeys("num_query_groups")}
		r.apply(&kv)
	}
	if heads, ok := r.plan.Model.Heads.Get(); ok && !(isOn("group_query_attention") && groups.state == unknown) {
		r.derive("model.kv_heads", heads, "as many as attention heads, without group_query_attention", flag("num_attention_heads"))
	}
	activation := flag("activation_func")
	gated := isOn("swiglu") || isOn("gated_linear_unit") || r.text(activation) == "swiglu"
	if f := flag("swiglu"); f.state != unknown {
		r.derive("model.gated", gated, "swiglu", f, activation)
	}
	if hidden, ok := r.plan.Model.Hidden.Get(); ok && flag("ffn_hidden_size").state == absent {
		if gated {
			r.derive("model.ffn", 4*hidden*2/3/64*64, "4 * hidden * 2/3, down to a multiple of 64", flag("hidden_size"), flag("swiglu"))
		} else {
			r.derive("model.ffn", 4*hidden, "4 * hidden size", flag("hidden_size"))
		}
	}
	if isOn("untie_embeddings_and_output_weights") {
		r.set("model.tied", false, flag("untie_embeddings_and_output_weights"))
	} else if flag("untie_embeddings_and_output_weights").state == absent {
		r.assume("model.tied", true)
	}
	norm := flag("normalization")
	switch {
	case r.text(norm) == "rmsnorm":
		r.set("model.norm", "rmsnorm", norm)
	case norm.state == written:
		r.set("model.norm", "layernorm", norm)
	case norm.state == absent:
		r.assume("model.norm", "layernorm")
	}
	bias, known := r.truth(flag("add_bias_linear"))
	off := flag("disable_bias_linear")
	without, known2 := r.truth(off)
	if known && known2 {
		biased := !without && (flag("add_bias_linear").state == absent || bias)
		qkv := isOn("add_qkv_bias")
		for field, has := range map[string]bool{"model.qkv_bias": biased || qkv, "model.output_bias": biased, "model.mlp_bias": biased} {
			r.derive(field, has, "disable_bias_linear", off, flag("add_bias_linear"))
		}
	}
	positions := flag("position_embedding_type")
	if longest, ok := r.plan.Model.MaxPositions.Get(); ok && (positions.state == absent || r.text(positions) == "learned_absolute") && !isOn("use_rotary_position_embeddings") {
		r.derive("model.learned_positions", longest, "learned positions", flag("max_position_embeddings"), positions)
	} else if positions.state == written || isOn("use_rotary_position_embeddings") {
		r.derive("model.learned_positions", 0, "rotary or no positions", positions)
	}
}

// megatronPipeline: the layers of a virtual stage give the number of chunks.
func megatronPipeline(r *reader, flag func(string) found) {
	each := flag("num_layers_per_virtual_pipeline_stage")
	n, ok := r.integer(each)
	layers, hasLayers := r.plan.Model.Layers.Get()
	stages, hasStages := r.plan.Parallel.Pipeline.Get()
	switch {
	case each.state == absent:
		r.assume("parallel.virtual_pipeline", 1)
	case ok && hasLayers && hasStages && n > 0 && stages > 0 && layers%(stages*n) == 0:
		r.derive("parallel.virtual_pipeline", layers/(stages*n), "layers / stages / layers of a virtual stage", each, flag("num_layers"))
	default:
		r.forget("parallel.virtual_pipeline")
	}
}

func megatronRecompute(r *reader, flag func(string) found, isOn func(string) bool) {
	granularity, method, count := flag("recompute_granularity"), flag("recompute_method"), flag("recompute_num_layers")
	n, counted := r.integer(count)
	switch {
	case granularity.state == unknown || method.state == unknown || count.state == unknown:
		r.forget("checkpointing.kind")
	case isOn("recompute_activations"):
		r.set("checkpointing.kind", "selective_attention", flag("recompute_activations"))
	case granularity.state == absent:
		r.assume("checkpointing.kind", "none")
	case r.text(granularity) == "selective":
		r.set("checkpointing.kind", "selective_attention", granularity)
	case r.text(granularity) == "full" && r.text(method) == "uniform" && counted && n > 1:
		r.set("checkpointing.kind", "every_n", granularity)
		r.set("checkpointing.every", n, count)
	case r.text(granularity) == "full" && r.text(method) == "uniform":
		r.set("checkpointing.kind", "full", granularity)
	case r.text(granularity) == "full" && r.text(method) == "block":
		layers, hasLayers := r.plan.Model.Layers.Get()
		stages, hasStages := r.plan.Parallel.Pipeline.Get()
		if counted && hasLayers && hasStages && stages > 0 && n*stages >= layers {
			r.set("checkpointing.kind", "full", granularity)
		} else {
			r.cannotTell("checkpointing.kind", "recomputation of some layers", count)
		}
	default:
		r.forget("checkpointing.kind")
	}
}

// megatronWarmup: iterations are optimizer steps; samples are samples.
func megatronWarmup(r *reader, flag func(string) found) {
	iterations, samples := flag("lr_warmup_iters"), flag("lr_warmup_samples")
	if n, ok := r.number(samples); ok && n > 0 {
		r.set("schedule.warmup", n, samples)
		r.derive("schedule.warmup_unit", "samples", "lr-warmup-samples", samples)
		return
	}
	if n, ok := r.number(iterations); ok {
		r.set("schedule.warmup", n, iterations)
	} else if iterations.state == absent && flag("lr_warmup_fraction").state == absent {
		r.assume("schedule.warmup", 0)
	}
	r.assumeOf("schedule.warmup_unit", "optimizer", "an iteration is an optimizer step")
}
