package dialect

import (
	"strings"

	"github.com/trainvet/trainvet/configs"
)

// GPTNeoX is the YAML of GPT-NeoX; `-` and `_` are the same in its keys, and DeepSpeed's sections stand among them.
var GPTNeoX = &Dialect{
	Name:    "gpt-neox",
	Title:   "GPT-NeoX config",
	Version: "GPT-NeoX 2",
	Batch:   Checked,
	Loader:  configs.LoaderYAML11,
	dashes:  true,

	recognise: func(d doc) bool {
		if d.format == configs.Flags || d.mapping("model") && d.mapping("training") || d.mapping("parallel") {
			return false
		}
		if d.hasAny("architectures", "auto_map", "transformers_version") {
			return false // the config.json of a model, some of which keep the names that GPT-NeoX gave its shape
		}
		return d.hasAny("pipe_parallel_size", "model_parallel_size") ||
			d.has("num_attention_heads") && d.has("seq_length") && d.hasAny("train_iters", "lr_decay_iters", "attention_config") ||
			d.count("lr_decay_style", "checkpoint_activations", "partition_activations", "pos_emb", "no_weight_tying", "train_data_paths",
				"valid_data_paths", "test_data_paths", "vocab_file", "tokenizer_type", "merge_file", "scaled_upper_triang_masked_softmax_fusion",
				"bias_gelu_fusion", "synchronize_each_layer", "gpt_j_residual", "rotary_pct", "train_iters", "lr_decay_iters",
				"output_layer_parallelism", "output_layer_init_method") >= 2 && !d.hasAny("per_device_train_batch_size", "base_model")
	},

	// A run merges several files, of which those with paths, logging or the cluster say nothing of the rest.
	before: func(r *reader) { r.partial = !r.has("num_layers") },
	table: []entry{
		{field: "model.hidden", keys: paths("hidden_size")},
		{field: "model.layers", keys: paths("num_layers")},
		{field: "model.heads", keys: paths("num_attention_heads")},
		{field: "model.kv_heads", keys: paths("num_kv_heads")},
		{field: "model.ffn", keys: paths("intermediate_size")},
		{field: "model.experts", keys: paths("moe_num_experts"), absent: 0},
		{field: "model.max_positions", keys: paths("max_position_embeddings")},
		{field: "batch.micro", keys: paths("train_micro_batch_size_per_gpu")},
		{field: "batch.accumulation", keys: paths("gradient_accumulation_steps", "gas")},
		{field: "batch.global", keys: paths("train_batch_size")},
		{field: "batch.seq_length", keys: paths("seq_length")},
		{field: "parallel.tensor", keys: paths("model_parallel_size"), absent: 1},
		{field: "parallel.pipeline", keys: paths("pipe_parallel_size"), read: atLeastOne, absent: 1},
		{field: "parallel.context", keys: paths("context_parallel_size"), absent: 1},
		{field: "parallel.expert", keys: paths("moe_expert_parallel_size"), absent: 1},
		{field: "optimizer.type", keys: paths("optimizer.type"), read: choice(deepspeedOptimizers), absent: "adamw"},
		{field: "optimizer.lr", keys: paths("optimizer.params.lr"), absent: 0.001},
		{field: "optimizer.eps", keys: paths("optimizer.params.eps")},
		{field: "optimizer.min_lr", keys: paths("min_lr"), absent: 0},
		{field: "optimizer.weight_decay", keys: paths("weight_decay"), absent: 0.1},
		{field: "optimizer.clip", keys: paths("gradient_clipping"), absent: 1.0},
		{field: "schedule.type", keys: paths("lr_decay_style"), read: lower, absent: "linear"},
		{field: "schedule.total_steps", keys: paths("train_iters")},
		{field: "schedule.warmup_ratio", keys: paths("warmup"), absent: 0.01},
		{field: "attention.dropout", keys: paths("attention_dropout"), absent: 0},
		{field: "lora.rank", absent: 0},
		{field: "quantization.kind", absent: "none"},
		{field: "loss_kernel", absent: "vocab_parallel"},
		{field: "fused_norm", absent: true},
		{field: "stack", absent: "megatron"},
		{field: "model.family", absent: "megatron-gpt"},
	},
	after: neoxAfter,
}

func neoxAfter(r *reader) {
	deepspeedBatch(r)
	deepspeedZero(r)
	precision := r.find("precision")
	switch r.text(precision) {
	case "bfloat16":
		r.set("dtype.compute", "bf16", precision)
		deepspeedBF16(r, precision)
	case "fp16":
		r.set("dtype.compute", "fp16", precision)
		r.derive("precision", "deepspeed_mixed", "DeepSpeed's fp16", precision)
	case "fp32":
		r.set("dtype.compute", "fp32", precision)
	default:
		if kind := r.find("fp16.type"); r.text(kind) == "bfloat16" {
			r.set("dtype.compute", "bf16", kind)
			deepspeedBF16(r, kind)
		} else {
			deepspeedPrecision(r)
		}
	}
	if betas, ok := r.numbers("optimizer.params.betas"); ok && len(betas) == 2 {
		r.set("optimizer.beta1", betas[0], r.find("optimizer.params.betas"))
		r.set("optimizer.beta2", betas[1], r.find("optimizer.params.betas"))
	}
	neoxShape(r)
	checkpoint, every := r.find("checkpoint_activations"), r.find("checkpoint_num_layers")
	n, counted := r.integer(every)
	switch on, known := r.truth(checkpoint); {
	case !known || every.state == unknown:
		r.forget("checkpointing.kind")
	case on && counted && n > 1:
		r.set("checkpointing.kind", "every_n", checkpoint)
		r.set("checkpointing.every", n, every)
	case on:
		r.set("checkpointing.kind", "full", checkpoint)
	case checkpoint.state == written:
		r.set("checkpointing.kind", "none", checkpoint)
	default:
		r.assume("checkpointing.kind", "none")
	}
	if hidden, ok := r.number(r.find("hidden_dropout")); ok {
		r.set("hidden_dropout", hidden > 0, r.find("hidden_dropout"))
	}
	neoxAttention(r)
	neoxRanks(r)
}

// neoxRanks: the launcher takes num_gpus of each node. How many nodes a hostfile lists is not known.
func neoxRanks(r *reader) {
	if all := r.find("global_num_gpus"); all.state == written {
		if n, ok := r.integer(all); ok && n > 0 {
			r.set("parallel.world", n, all)
		}
		return
	}
	each, nodes := r.find("num_gpus"), r.find("num_nodes")
	if r.find("include").state != absent || r.find("exclude").state != absent {
		return
	}
	if n, ok := r.integer(each); ok && n > 0 && each.state == written {
		r.set("parallel.devices_per_node", n, each)
	}
	if n, ok := r.integer(nodes); ok && n > 0 && nodes.state == written {
		r.set("parallel.nodes", n, nodes)
	} else if each.state == written && nodes.state == absent && r.find("hostfile").state == absent {
		r.assumeOf("parallel.nodes", 1, "GPT-NeoX without a hostfile")
	}
}

func neoxShape(r *reader) {
	if heads, ok := r.plan.Model.Heads.Get(); ok {
		r.derive("model.kv_heads", heads, "as many as attention heads", r.find("num_attention_heads"))
	}
	kind, activation := r.find("mlp_type"), r.find("activation")
	gated := r.text(kind) == "llama" || strings.HasSuffix(r.text(activation), "glu")
	if kind.state != unknown {
		r.derive("model.gated", gated, "mlp_type and activation", kind, activation)
	}
	if hidden, ok := r.plan.Model.Hidden.Get(); ok && !gated {
		r.derive("model.ffn", 4*hidden, "4 * hidden size", r.find("hidden_size"))
	}
	untied := r.find("no_weight_tying")
	if off, known := r.truth(untied); known && untied.state == written {
		r.set("model.tied", !off, untied)
	} else if known {
		r.assume("model.tied", true)
	}
	norm := r.find("norm")
	switch {
	case r.text(norm) == "rmsnorm":
		r.set("model.norm", "rmsnorm", norm)
	case norm.state == absent:
		r.assume("model.norm", "layernorm")
	}
	positions := r.find("pos_emb")
	if longest, ok := r.plan.Model.MaxPositions.Get(); ok && (positions.state == absent || r.text(positions) == "learned") {
		r.derive("model.learned_positions", longest, "learned positions", positions, r.find("max_position_embeddings"))
	} else if positions.state == written {
		r.derive("model.learned_positions", 0, "no learned positions", positions)
	}
}

// neoxAttention: attention_config is a list of [[kinds], layers]; only a single kind for all layers is read.
func neoxAttention(r *reader) {
	f := r.find("attention_config")
	if f.state == absent {
		r.assumeOf("attention.kernel", "eager", "attention_config: global")
		return
	}
	kinds := map[string]bool{}
	var visit func(*configs.Node)
	visit = func(n *configs.Node) {
		if n == nil {
			return
		}
		if n.Kind == configs.Scalar && !isNumber(n.Raw) && n.Raw != "all" {
			kinds[n.Raw] = true
		}
		for _, item := range n.Items {
			visit(item.Value)
		}
	}
	if f.state == written {
		visit(f.node)
	}
	switch {
	case len(kinds) == 1 && kinds["flash"]:
		r.set("attention.kernel", "flash", f)
	case len(kinds) == 1 && kinds["global"]:
		r.set("attention.kernel", "eager", f)
	default:
		r.cannotTell("attention.kernel", "attention of several kinds", f)
	}
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
