package dialect

import (
	"github.com/trainvet/trainvet/configs"
	"strconv"
	"strings"
)

// LLMFoundry is the YAML of llm-foundry on Composer, also as an MCLI job, where it lies under `parameters`.
var LLMFoundry = &Dialect{
	Name:    "llm-foundry",
	Title:   "llm-foundry config",
	Version: "llm-foundry 0.21",
	Batch:   Ceils,
	Loader:  configs.LoaderOmegaConf,

	recognise: func(d doc) bool {
		return d.has("train_loader") && d.hasAny("max_duration", "device_train_microbatch_size", "global_train_batch_size") ||
			d.has("parameters.max_duration")
	},

	before: func(r *reader) {
		if gpus := r.find("compute.gpus"); gpus.state == written {
			if n, ok := r.integer(gpus); ok && n > 0 {
				r.set("parallel.world", n, gpus)
			}
		}
		r.into("parameters")
		if name := r.text(r.find("model.name")); name != "mpt_causal_lm" {
			return
		}
		for i := range mptTable {
			r.apply(&mptTable[i])
		}
	},
	table: []entry{
		{field: "model.name", keys: paths("model.pretrained_model_name_or_path")},
		{field: "batch.micro", keys: paths("device_train_microbatch_size")},
		{field: "batch.global", keys: paths("global_train_batch_size")},
		{field: "batch.seq_length", keys: paths("max_seq_len", "variables.max_seq_len", "model.max_seq_len", "train_loader.dataset.max_seq_len")},
		{field: "parallel.tensor", absent: 1},
		{field: "parallel.pipeline", absent: 1},
		{field: "parallel.context", absent: 1},
		{field: "dtype.compute", keys: paths("precision"), read: dtype, absent: "bf16"},
		{field: "optimizer.type", keys: paths("optimizer.name"), read: choice(composerOptimizers)},
		{field: "optimizer.lr", keys: paths("optimizer.lr")},
		{field: "optimizer.weight_decay", keys: paths("optimizer.weight_decay")},
		{field: "optimizer.eps", keys: paths("optimizer.eps")},
		{field: "optimizer.clip", keys: paths("algorithms.gradient_clipping.clipping_threshold"), absent: 0},
		{field: "schedule.type", keys: paths("scheduler.name"), read: lower},
		{field: "stack", absent: "hf"},
	},
	after: llmFoundryAfter,
}

var mptTable = []entry{
	{field: "model.hidden", keys: paths("model.d_model"), absent: 2048},
	{field: "model.layers", keys: paths("model.n_layers"), absent: 24},
	{field: "model.heads", keys: paths("model.n_heads"), absent: 16},
	{field: "model.kv_heads", keys: paths("model.attn_config.kv_n_heads")},
	{field: "model.vocab", keys: paths("model.vocab_size"), absent: 50368},
	{field: "model.tied", keys: paths("model.tie_word_embeddings"), absent: true},
	{field: "model.experts", keys: paths("model.ffn_config.moe_num_experts"), absent: 0},
	{field: "attention.kernel", keys: paths("model.attn_config.attn_impl"), read: attention, absent: "flash"},
	{field: "model.family", absent: "mpt"},
	{field: "model.norm", absent: "layernorm"},
	{field: "model.gated", absent: false},
}

var composerOptimizers = map[string]string{
	"adamw": "adamw", "decoupled_adamw": "adamw", "lionw": "lion", "decoupled_lionw": "lion", "lion": "lion", "adam": "adamw",
}

func llmFoundryAfter(r *reader) {
	if r.plan.Model.Family.Is("mpt") {
		hidden, _ := r.plan.Model.Hidden.Get()
		ratio := r.find("model.expansion_ratio")
		if n, ok := r.integer(ratio); ok {
			r.derive("model.ffn", n*hidden, "expansion_ratio * d_model", ratio, r.find("model.d_model"))
		} else if ratio.state == absent {
			r.derive("model.ffn", 4*hidden, "4 * d_model", r.find("model.d_model"))
		}
		if heads, ok := r.plan.Model.Heads.Get(); ok {
			r.derive("model.kv_heads", heads, "as many as attention heads", r.find("model.n_heads"))
		}
	}
	if r.find("model.peft_config").state == absent {
		r.assume("lora.rank", 0)
	}
	composerTime(r, "scheduler.t_warmup", "max_duration")
	fsdp := r.find("fsdp_config")
	switch strategy := r.find("fsdp_config.sharding_strategy"); {
	case fsdp.state == absent:
		r.assumeOf("sharding", "ddp", "no fsdp_config")
		r.assume("checkpointing.kind", "none")
		return
	case fsdp.state == unknown || strategy.state == unknown:
		r.forget("sharding")
	case r.text(strategy) == "no_shard":
		r.set("sharding", "ddp", strategy)
	default:
		r.set("sharding", "fsdp1", r.first("fsdp_config.sharding_strategy", "fsdp_config"))
		if r.text(strategy) == "shard_grad_op" {
			r.set("fsdp.reshard_after_forward", false, strategy)
		}
	}
	// Composer's FSDP keeps sharded weights in fp32 whatever its mixed_precision.
	if compute, ok := r.plan.DType.Compute.Get(); ok && compute.Is16() && r.plan.Sharding.Is("fsdp1") {
		r.derive("precision", "fsdp_mixed", "Composer's FSDP keeps fp32 weights", fsdp)
	}
	r.checkpointingSwitch("fsdp_config.activation_checkpointing")
	offload := entry{field: "checkpointing.offload", keys: paths("fsdp_config.activation_cpu_offload"), absent: false}
	r.apply(&offload)
	limit := entry{field: "fsdp.limit_all_gathers", keys: paths("fsdp_config.limit_all_gathers")}
	r.apply(&limit)
}

// checkpointingSwitch is a plain switch for recomputing every layer, off where it is absent.
func (r *reader) checkpointingSwitch(path string) {
	f := r.find(path)
	switch on, known := r.truth(f); {
	case !known:
		r.forget("checkpointing.kind")
	case on:
		r.set("checkpointing.kind", "full", f)
	case f.state == written:
		r.set("checkpointing.kind", "none", f)
	default:
		r.assume("checkpointing.kind", "none")
	}
}

// composerTime reads Composer's times: a number and its unit, ba(tches, optimizer steps), tok(ens), sp (samples), ep(ochs)
// or dur (a fraction of the run). A bare number counts batches.
func composerTime(r *reader, warmup, duration string) {
	if f := r.find(warmup); f.state == written {
		n, unit, ok := splitTime(r, f)
		switch {
		case !ok:
			r.forget("schedule.warmup")
		case unit == "dur":
			r.set("schedule.warmup_ratio", n, f)
		default:
			if to := map[string]string{"": "optimizer", "ba": "optimizer", "tok": "tokens", "sp": "samples", "ep": "epochs"}[unit]; to != "" {
				r.set("schedule.warmup", n, f)
				r.set("schedule.warmup_unit", to, f)
			}
		}
	}
	f := r.find(duration)
	if f.state != written {
		return
	}
	switch n, unit, ok := splitTime(r, f); {
	case ok && unit == "ep":
		r.set("schedule.epochs", n, f)
	case ok && (unit == "ba" || unit == ""):
		r.set("schedule.total_steps", n, f)
	}
}

func splitTime(r *reader, f found) (n float64, unit string, ok bool) {
	if n, ok := r.number(f); ok {
		return n, "", true
	}
	text := strings.ToLower(strings.TrimSpace(r.text(f)))
	number := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz")
	n, err := strconv.ParseFloat(strings.ReplaceAll(number, "_", ""), 64)
	return n, text[len(number):], err == nil
}

// OLMo is the YAML of OLMo's first trainer.
var OLMo = &Dialect{
	Name:    "olmo",
	Title:   "OLMo config",
	Version: "OLMo 0.6",
	Batch:   Divides,
	Loader:  configs.LoaderOmegaConf,

	recognise: func(d doc) bool {
		return d.has("model.d_model") && d.hasAny("global_train_batch_size", "device_train_microbatch_size", "max_duration") && !d.has("train_loader")
	},

	table: []entry{
		{field: "model.hidden", keys: paths("model.d_model"), absent: 768},
		{field: "model.layers", keys: paths("model.n_layers"), absent: 12},
		{field: "model.heads", keys: paths("model.n_heads"), absent: 12},
		{field: "model.kv_heads", keys: paths("model.n_kv_heads")},
		{field: "model.vocab", keys: paths("model.embedding_size", "model.vocab_size"), absent: 50304},
		{field: "model.tied", keys: paths("model.weight_tying"), absent: true},
		{field: "batch.micro", keys: paths("device_train_microbatch_size"), absent: 16},
		{field: "batch.global", keys: paths("global_train_batch_size"), absent: 512},
		{field: "batch.seq_length", keys: paths("model.max_sequence_length"), absent: 1024},
		{field: "parallel.tensor", absent: 1},
		{field: "parallel.pipeline", absent: 1},
		{field: "parallel.context", absent: 1},
		{field: "dtype.compute", keys: paths("precision"), read: dtype, absent: "fp32"},
		{field: "optimizer.type", keys: paths("optimizer.name"), read: choice(composerOptimizers), absent: "lion"},
		{field: "optimizer.lr", keys: paths("optimizer.learning_rate"), absent: 1e-4},
		{field: "optimizer.weight_decay", keys: paths("optimizer.weight_decay")},
		{field: "optimizer.eps", keys: paths("optimizer.eps")},
		{field: "optimizer.clip", keys: paths("max_grad_norm"), absent: 0},
		{field: "schedule.type", keys: paths("scheduler.name"), read: lower, absent: "cosine_with_warmup"},
		{field: "lora.rank", absent: 0},
		{field: "quantization.kind", absent: "none"},
	},
	after: olmoAfter,
}

func olmoAfter(r *reader) {
	if on, known := r.truth(r.find("model.multi_query_attention")); known && on {
		r.derive("model.kv_heads", 1, "multi_query_attention", r.find("model.multi_query_attention"))
	}
	if heads, ok := r.plan.Model.Heads.Get(); ok {
		r.derive("model.kv_heads", heads, "as many as attention heads", r.find("model.n_heads"))
	}
	olmoMLP(r)
	switch norm := r.find("model.layer_norm_type"); r.text(norm) {
	case "rms":
		r.set("model.norm", "rmsnorm", norm)
	case "default":
		affine := r.find("model.layer_norm_with_affine")
		if on, known := r.truth(affine); affine.state == written && known && !on {
			r.set("model.norm", "non_parametric", affine)
		} else {
			r.set("model.norm", "layernorm", norm)
		}
	}
	if flash := r.find("model.flash_attention"); r.isOn("model.flash_attention") {
		r.set("attention.kernel", "flash", flash)
	} else if flash.state != unknown {
		r.assume("attention.kernel", "sdpa")
	}
	units, warmup := r.find("scheduler.units"), r.find("scheduler.t_warmup")
	n, unit, ok := splitTime(r, warmup)
	switch {
	case warmup.state == absent:
		r.assume("schedule.warmup", 100)
	case !ok || unit != "":
		r.forget("schedule.warmup")
	default:
		r.set("schedule.warmup", n, warmup)
	}
	if r.text(units) == "tokens" {
		r.set("schedule.warmup_unit", "tokens", units)
	} else if units.state != unknown {
		r.assume("schedule.warmup_unit", "optimizer")
	}
	if f := r.find("max_duration"); f.state == written {
		switch n, unit, ok := splitTime(r, f); {
		case ok && unit == "ep":
			r.set("schedule.epochs", n, f)
		case ok && unit == "":
			r.set("schedule.total_steps", n, f)
		}
	}
	strategy := r.first("distributed_strategy", "fsdp.sharding_strategy")
	switch r.text(r.find("distributed_strategy")) {
	case "ddp":
		r.set("sharding", "ddp", strategy)
	case "single":
		r.set("sharding", "none", strategy)
	default:
		if name := r.text(r.find("fsdp.sharding_strategy")); name == "shard_grad_op" {
			r.derive("fsdp.reshard_after_forward", false, name, r.find("fsdp.sharding_strategy"))
		}
		if strategy.state == written {
			r.set("sharding", "fsdp1", strategy)
		} else if strategy.state == absent {
			r.assume("sharding", "fsdp1")
		}
		if compute, ok := r.plan.DType.Compute.Get(); ok && compute.Is16() {
			r.derive("precision", "fsdp_mixed", "FSDP keeps fp32 weights", strategy, r.find("precision"))
		}
	}
	checkpointing := r.find("activation_checkpointing")
	kinds := map[string]string{"whole_layer": "full", "one_in_two": "half"}
	switch kind, ok := kinds[r.text(checkpointing)]; {
	case checkpointing.state == absent:
		r.assume("checkpointing.kind", "none")
	case ok:
		r.set("checkpointing.kind", kind, checkpointing)
	default:
		r.forget("checkpointing.kind")
	}
}

// olmoMLP: swiglu halves the inner size after the first product, which holds gate and up projection together.
func olmoMLP(r *reader) {
	kind := r.find("model.activation_type")
	gated := kind.state == absent || strings.HasSuffix(r.text(kind), "glu")
	inner, written := r.integer(r.find("model.mlp_hidden_size"))
	if !written {
		ratio, ok := r.integer(r.find("model.mlp_ratio"))
		if r.find("model.mlp_ratio").state == absent {
			ratio, ok = 4, true
		}
		hidden, ok2 := r.plan.Model.Hidden.Get()
		if !ok || !ok2 {
			return
		}
		inner = ratio * hidden
	}
	if gated {
		inner /= 2
	}
	r.derive("model.ffn", inner, "mlp_hidden_size or mlp_ratio * d_model; half of it with a gate", r.first("model.mlp_hidden_size", "model.mlp_ratio", "model.d_model"), kind)
	r.derive("model.gated", gated, "activation_type", kind)
}
