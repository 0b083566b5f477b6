package dialect

import "github.com/trainvet/trainvet/configs"

// ModelTrainingParallel is the YAML of teams with a trainer of their own: sections model, training and parallel. No
// framework stands behind it, so that what an absent key means is mostly unknown.
var ModelTrainingParallel = &Dialect{
	Name:    "model-training-parallel",
	Title:   "model / training / parallel YAML",
	Version: "the usual meaning of the key",
	Batch:   Unchecked,
	Loader:  configs.LoaderYAML11,

	recognise: func(d doc) bool {
		return d.hasAny("parallel.data_parallel", "parallel.tensor_parallel", "parallel.pipeline_parallel",
			"parallel.tensor_model_parallel_size", "parallel.pipeline_model_parallel_size") &&
			(d.mapping("training") || d.mapping("model"))
	},

	table: append([]entry{
		{field: "model.name", keys: paths("model.name", "model.name_or_path", "model.model_name_or_path")},
		{field: "model.family", keys: paths("model.model_type", "model.family", "model.type"), read: lower},
		{field: "batch.micro", keys: paths("training.batch_size_per_gpu", "training.batch_size_per_device", "training.batch_size_per_npu",
			"training.micro_batch_size", "training.per_device_train_batch_size")},
		{field: "batch.accumulation", keys: paths("training.gradient_accumulation_steps", "training.accumulation_steps"), absent: 1},
		{field: "batch.global", keys: paths("training.total_batch_size", "training.global_batch_size")},
		{field: "batch.seq_length", keys: paths("training.seq_length", "training.sequence_length", "training.seq_len",
			"training.max_seq_length", "training.max_length", "data.seq_length", "model.seq_length")},
		{field: "parallel.data", keys: paths("parallel.data_parallel", "parallel.data_parallel_size"), absent: 1},
		{field: "parallel.tensor", keys: paths("parallel.tensor_parallel", "parallel.tensor_model_parallel_size", "parallel.tensor_parallel_size"), absent: 1},
		{field: "parallel.pipeline", keys: paths("parallel.pipeline_parallel", "parallel.pipeline_model_parallel_size", "parallel.pipeline_parallel_size"), absent: 1},
		{field: "parallel.context", keys: paths("parallel.context_parallel", "parallel.context_parallel_size", "parallel.sequence_parallel_size"), absent: 1},
		{field: "parallel.expert", keys: paths("parallel.expert_parallel", "parallel.expert_model_parallel_size"), absent: 1},
		{field: "parallel.sequence_parallel", keys: paths("parallel.sequence_parallel"), read: boolOnly},
		{field: "dtype.compute", keys: paths("training.precision", "training.mixed_precision", "training.dtype"), read: dtype},
		{field: "optimizer.type", keys: paths("training.optimizer", "training.optimizer_type", "training.optimizer.type"), read: choice(plainOptimizers)},
		{field: "optimizer.lr", keys: paths("training.learning_rate", "training.lr")},
		{field: "optimizer.min_lr", keys: paths("training.min_lr", "training.min_learning_rate")},
		{field: "optimizer.weight_decay", keys: paths("training.weight_decay")},
		{field: "optimizer.clip", keys: paths("training.max_grad_norm", "training.gradient_clipping", "training.grad_clip", "training.clip_grad")},
		{field: "schedule.type", keys: paths("training.lr_schedule", "training.lr_scheduler", "training.lr_scheduler_type"), read: lower},
		{field: "schedule.warmup", keys: paths("training.warmup_steps"), absent: 0},
		{field: "schedule.warmup_ratio", keys: paths("training.warmup_ratio")},
		{field: "schedule.total_steps", keys: paths("training.max_steps", "training.total_steps", "training.train_steps"), read: positive},
		{field: "schedule.epochs", keys: paths("training.num_epochs", "training.epochs")},
		{field: "attention.kernel", keys: paths("model.attn_implementation", "training.attn_implementation"), read: attention},
		{field: "offload.optimizer", keys: paths("parallel.offload_optimizer", "training.offload_optimizer"), read: cpuOrNone},
		{field: "offload.param", keys: paths("parallel.offload_param", "training.offload_param"), read: cpuOrNone},
		{field: "compile", keys: paths("training.compile", "training.torch_compile")},
	}, shapeTable("model.")...),
	after:  modelTrainingParallelAfter,
	models: []string{"model.name", "model.name_or_path", "model.model_name_or_path"},
}

// shapeTable are the sizes of a model as HF's config.json names them, under a prefix.
func shapeTable(prefix string) []entry {
	at := func(keys ...string) []string {
		paths := make([]string, len(keys))
		for i, key := range keys {
			paths[i] = prefix + key
		}
		return paths
	}
	return []entry{
		{field: "model.hidden", keys: at("hidden_size", "n_embd", "d_model", "dim")},
		{field: "model.layers", keys: at("num_hidden_layers", "num_layers", "n_layer", "n_layers")},
		{field: "model.heads", keys: at("num_attention_heads", "n_head", "num_heads", "n_heads")},
		{field: "model.kv_heads", keys: at("num_key_value_heads", "num_kv_heads", "num_query_groups", "n_kv_heads")},
		{field: "model.head_dim", keys: at("head_dim", "d_kv", "kv_channels")},
		{field: "model.ffn", keys: at("intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim", "d_ff")},
		{field: "model.vocab", keys: at("vocab_size", "padded_vocab_size")},
		{field: "model.tied", keys: at("tie_word_embeddings")},
		{field: "model.max_positions", keys: at("max_position_embeddings", "n_positions", "n_ctx", "max_sequence_length")},
	}
}

var plainOptimizers = map[string]string{
	"adam": "adamw", "adamw": "adamw", "fusedadam": "adamw", "fused_adam": "adamw", "fused_adamw": "adamw", "adamw_torch": "adamw",
	"adamw_torch_fused": "adamw", "adamw8bit": "adamw_8bit", "adamw_8bit": "adamw_8bit", "adafactor": "adafactor", "lion": "lion",
	"decoupled_adamw": "adamw", "muon": "muon",
}

// modelTrainingParallelAfter reads checkpoint_every: n as the loops that go with such files have it, `if i % n == 0: layer(x)`, and
// checkpoint(layer, x) otherwise: every n-th layer is stored and the others are recomputed, with 1 none of them.
func modelTrainingParallelAfter(r *reader) {
	r.zeroStage(r.first("parallel.zero_stage", "training.zero_stage", "parallel.zero.stage"))
	checkpoint, every := r.first("training.gradient_checkpointing", "training.activation_checkpointing"), r.find("training.checkpoint_every")
	n, isCount := r.integer(every)
	switch enabled, known := r.truth(checkpoint); {
	case !known || every.state == unknown:
		r.forget("checkpointing.kind")
	case checkpoint.state == written && !enabled:
		r.set("checkpointing.kind", "none", checkpoint)
	case every.state == written && isCount && n > 1:
		r.set("checkpointing.kind", "all_but_nth", every)
		r.set("checkpointing.every", n, every)
	case every.state == written && isCount && n == 1:
		r.set("checkpointing.kind", "none", every)
	case enabled:
		r.set("checkpointing.kind", "full", checkpoint)
	default:
		r.assume("checkpointing.kind", "none")
	}
	if r.find("training.seq_length").state == absent && r.plan.Model.MaxPositions.Known() {
		longest, _ := r.plan.Model.MaxPositions.Get()
		r.derive("batch.seq_length", longest, "no sequence length is given: the longest that the model takes", r.find("model.max_position_embeddings"))
	}
	if hidden, ok := r.plan.Model.Hidden.Get(); ok && r.first("model.intermediate_size", "model.ffn_hidden_size").state == absent {
		r.derive("model.ffn", 4*hidden, "4 * hidden size", r.first("model.hidden_size"))
		r.assumeOf("model.gated", false, "an MLP of 4 * hidden size has no gate")
	}
	if r.known("schedule.warmup") || r.known("schedule.warmup_ratio") {
		r.assumeOf("schedule.warmup_unit", "unknown", "the training loop decides whether a step is a micro-batch or an optimizer step")
	}
}

// zeroStage is a bare stage number; what shards where it is absent is unknown.
func (r *reader) zeroStage(f found) {
	n, ok := r.integer(f)
	switch {
	case f.state == absent:
	case !ok || n < 0 || n > 3:
		r.forget("sharding")
	case n == 0:
		r.set("sharding", "ddp", f)
	default:
		r.set("sharding", [...]string{"", "zero1", "zero2", "zero3"}[n], f)
	}
}
