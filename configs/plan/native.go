package plan

import (
	"fmt"

	"github.com/trainvet/trainvet/lint/source"
)

// NativeVersion is the version of the native plan file that this package describes; it stands at the first key,
// NativeVersionKey.
const (
	NativeVersion    = 1
	NativeVersionKey = "trainvet_plan"
)

// NativeKey is one key of the native plan file, or of a mapping in it.
type NativeKey struct {
	Key     string
	Type    string      // for people: "tokens", "bool", the choices
	Field   string      // dotted name of the value it sets; "" for a mapping that has no scalar form
	Default any         // what an absent key means; nil: unknown
	Min     int64       // smallest count that is allowed
	Sub     []NativeKey // keys of its mapping form, if it has one
	Meaning string
}

// Set reads a plain Go value (bool, int, int64, float64, string, []any or []string of strings) into the plan.
func (k NativeKey) Set(p *Plan, raw any, places ...source.Place) error {
	if k.Field == "" {
		return wrong("a mapping", raw)
	}
	if f, ok := number(raw); ok && f < float64(k.Min) {
		return wrong(fmt.Sprintf("at least %d", k.Min), raw)
	}
	if k.Fraction() {
		if f, ok := number(raw); ok && (f < 0 || f > 1) {
			return wrong("a fraction from 0 to 1", raw)
		}
	}
	return Set(p, k.Field, raw, IsWritten, "", places...)
}

// Fraction reports whether the value lies between 0 and 1.
func (k NativeKey) Fraction() bool { return k.Type == "fraction" }

// SetDefaults fills in what absent keys mean, for each of these keys whose value is still unknown.
func SetDefaults(p *Plan, keys []NativeKey) {
	for _, k := range keys {
		if k.Default == nil || k.Field == "" {
			continue
		}
		if s := find(p, k.Field); s != nil && !s.Known() {
			// The table is constant and a test sets every default, so this cannot fail.
			_ = s.parse(k.Default, IsDefault, "default of the native plan, version 1", nil)
		}
	}
}

// NativeKeys are the keys of the native plan file, after the version. A reader walks them, reports keys that are not
// among them, and calls SetDefaults for the whole file, and for a mapping where that mapping is written.
func NativeKeys() []NativeKey { return nativeKeys[:] }

// NativeModelKeys are the keys of `model` written as a mapping.
func NativeModelKeys() []NativeKey { return nativeModelKeys[:] }

// NativeLoRAKeys are the keys of `lora`.
func NativeLoRAKeys() []NativeKey { return nativeLoRAKeys[:] }

var nativeKeys = [...]NativeKey{
	{Key: "name", Type: "text", Field: "name", Meaning: "label in reports; the file name where it is left out"},
	{Key: "model", Type: "catalogue name or mapping", Field: "model.name", Sub: nativeModelKeys[:], Meaning: "the model"},
	{Key: "seq_length", Type: "tokens", Field: "batch.seq_length", Min: 1, Meaning: "length of one sequence, before context parallelism"},
	{Key: "micro_batch_size", Type: "sequences", Field: "batch.micro", Min: 1, Meaning: "per rank and forward pass"},
	{Key: "gradient_accumulation_steps", Type: "count", Field: "batch.accumulation", Default: 1, Min: 1,
		Meaning: "forward and backward passes per optimizer step, without pipeline parallelism"},
	{Key: "data_parallel", Type: "ranks", Field: "parallel.data", Default: 1, Min: 1, Meaning: "data-parallel group"},
	{Key: "shard_group_size", Type: "ranks", Field: "parallel.shard_group", Min: 1,
		Meaning: "group that shards states, when it is not the data-parallel group"},
	{Key: "tensor_parallel", Type: "ranks", Field: "parallel.tensor", Default: 1, Min: 1, Meaning: "tensor-parallel group"},
	{Key: "sequence_parallel", Type: "bool", Field: "parallel.sequence_parallel", Default: false,
		Meaning: "norms and residual stream are split over the tensor-parallel group"},
	{Key: "context_parallel", Type: "ranks", Field: "parallel.context", Default: 1, Min: 1,
		Meaning: "each rank holds seq_length / context_parallel tokens"},
	{Key: "expert_parallel", Type: "ranks", Field: "parallel.expert", Default: 1, Min: 1, Meaning: "routed experts are split over this group"},
	{Key: "pipeline_parallel", Type: "stages", Field: "parallel.pipeline", Default: 1, Min: 1, Meaning: "pipeline stages"},
	{Key: "pipeline_micro_batches", Type: "count", Field: "parallel.pipeline_micro_batches", Min: 1,
		Meaning: "micro-batches of one step that pass through the pipeline; gradient_accumulation_steps where it is left out"},
	{Key: "virtual_pipeline", Type: "chunks per stage", Field: "parallel.virtual_pipeline", Default: 1, Min: 1, Meaning: "interleaved schedule"},
	{Key: "sharding", Type: "none ddp zero1 zero2 zero3 fsdp1 fsdp2 megatron_dist", Field: "sharding", Default: "none", Meaning: "who shards what"},
	{Key: "precision", Type: "fp32 autocast pure_16bit fsdp_mixed deepspeed_mixed deepspeed_bf16_optimizer megatron_mixed", Field: "precision",
		Meaning: "dtypes of weights, gradients and states together"},
	{Key: "optimizer", Type: "adamw adamw_8bit adamw_4bit adafactor lion sgd sgd_momentum muon", Field: "optimizer.type", Default: "adamw",
		Meaning: "update rule"},
	{Key: "optimizer_kernel", Type: "foreach fused loop", Field: "optimizer.kernel", Default: "foreach", Meaning: "decides the temporaries of the step"},
	{Key: "optimizer_in_backward", Type: "bool", Field: "optimizer.in_backward", Default: false, Meaning: "each layer is stepped during backward"},
	{Key: "activation_checkpointing", Type: "none full half every_n all_but_nth selective_op selective_attention", Field: "checkpointing.kind", Default: "none",
		Meaning: "what is recomputed in backward"},
	{Key: "activation_checkpointing_every", Type: "layers", Field: "checkpointing.every", Default: 1, Min: 1, Meaning: "for every_n and all_but_nth"},
	{Key: "activation_offload", Type: "bool", Field: "checkpointing.offload", Default: false, Meaning: "checkpointed inputs live in host memory"},
	{Key: "attention", Type: "flash sdpa eager", Field: "attention.kernel", Default: "sdpa", Meaning: "kernel; eager keeps the score matrix"},
	{Key: "attention_dropout", Type: "fraction", Field: "attention.dropout", Default: 0, Meaning: "dropout of attention probabilities"},
	{Key: "hidden_dropout", Type: "bool", Field: "hidden_dropout", Default: false, Meaning: "dropout after attention and MLP (saves masks)"},
	{Key: "mlp_activation", Type: "fused tanh_python", Field: "mlp_activation", Default: "fused", Meaning: "tanh_python: GELU written out in Python"},
	{Key: "loss_kernel", Type: "fp32_copy fp32_copy_shifted fp32_module fp32_held inplace bf16 chunked chunked_head vocab_parallel compiled fused_linear none",
		Field: "loss_kernel", Meaning: "how logits become a loss"},
	{Key: "stack", Type: "hf hf_bert litgpt torchtune torchtitan megatron", Field: "stack", Meaning: "whose model code runs"},
	{Key: "compile", Type: "bool", Field: "compile", Default: false, Meaning: "torch.compile on layers or loss"},
	{Key: "fused_norm", Type: "bool", Field: "fused_norm", Default: false, Meaning: "normalisation in one kernel"},
	{Key: "fused_mlp", Type: "bool", Field: "fused_mlp", Default: false, Meaning: "gate and product of the MLP in one kernel"},
	{Key: "lora", Type: "mapping", Sub: nativeLoRAKeys[:], Meaning: "low-rank adapters on a frozen base"},
	{Key: "quantization", Type: "none nf4 nf4_double int8 gptq", Field: "quantization.kind", Default: "none", Meaning: "of the frozen base"},
	{Key: "quantized_fp32_residual", Type: "bool", Field: "quantization.fp32_residual", Default: false,
		Meaning: "non-quantised parts and the residual stream are fp32"},
	{Key: "quantized_linear_saves_input", Type: "bool", Field: "quantization.linear_saves_input", Default: false,
		Meaning: "the quantised matmul keeps its input for backward"},
	{Key: "offload_optimizer", Type: "none cpu nvme", Field: "offload.optimizer", Default: "none", Meaning: "where optimizer states live"},
	{Key: "offload_param", Type: "none cpu nvme", Field: "offload.param", Default: "none", Meaning: "where parameters live"},
	{Key: "reduce_bucket_size", Type: "elements", Field: "buckets.reduce", Meaning: "gradient bucket; 0: none; 5e8 under ZeRO where it is left out"},
	{Key: "zero_auto_buckets", Type: "bool", Field: "buckets.auto", Default: false,
		Meaning: "bucket sizes are auto and filled in from the hidden size by the HF integration"},
	{Key: "gradient_as_bucket_view", Type: "bool", Field: "buckets.gradient_as_bucket_view", Default: false, Meaning: "DDP: gradients live in the buckets"},
	{Key: "fsdp_live_layers", Type: "layers", Field: "fsdp.live_layers", Default: 2, Min: 1,
		Meaning: "unsharded layers that are alive at once in backward"},
	{Key: "fsdp_separate_embeddings", Type: "bool", Field: "fsdp.separate_embeddings", Default: false,
		Meaning: "embedding and head are sharded units of their own"},
	{Key: "fsdp_keeps_frozen", Type: "bool", Field: "fsdp.keeps_frozen", Default: false,
		Meaning: "unsharded frozen parameters are never freed (PyTorch before 2.2)"},
	{Key: "expandable_segments", Type: "bool", Field: "allocator.expandable_segments", Meaning: "CUDA allocator setting"},
	{Key: "device", Type: "name or alias of a device", Field: "device", Meaning: "the device of a rank"},
}

var nativeModelKeys = [...]NativeKey{
	{Key: "name", Type: "text", Field: "model.name", Meaning: "label of a model given by its shape"},
	{Key: "family", Type: "text", Field: "model.family", Meaning: "e.g. llama, megatron-gpt"},
	{Key: "hidden_size", Type: "elements", Field: "model.hidden", Min: 1},
	{Key: "num_layers", Type: "count", Field: "model.layers", Min: 1},
	{Key: "num_attention_heads", Type: "count", Field: "model.heads", Min: 1},
	{Key: "num_key_value_heads", Type: "count", Field: "model.kv_heads", Min: 1, Meaning: "num_attention_heads where it is left out"},
	{Key: "head_dim", Type: "elements", Field: "model.head_dim", Min: 1, Meaning: "hidden_size / num_attention_heads where it is left out"},
	{Key: "intermediate_size", Type: "elements", Field: "model.ffn", Min: 1},
	{Key: "vocab_size", Type: "rows", Field: "model.vocab", Min: 1},
	{Key: "tie_word_embeddings", Type: "bool", Field: "model.tied", Default: false},
	{Key: "gated_mlp", Type: "bool", Field: "model.gated", Default: true},
	{Key: "norm", Type: "rmsnorm layernorm", Field: "model.norm", Default: "rmsnorm"},
	{Key: "qkv_bias", Type: "bool", Field: "model.qkv_bias", Default: false},
	{Key: "attention_output_bias", Type: "bool", Field: "model.output_bias", Default: false},
	{Key: "mlp_bias", Type: "bool", Field: "model.mlp_bias", Default: false},
	{Key: "embedding_norm", Type: "bool", Field: "model.embedding_norm", Default: false},
	{Key: "learned_positions", Type: "rows", Field: "model.learned_positions", Default: 0, Meaning: "rows of a learned position embedding; 0: none"},
}

var nativeLoRAKeys = [...]NativeKey{
	{Key: "rank", Type: "elements", Field: "lora.rank", Min: 1},
	{Key: "targets", Type: "list of q k v o qkv up gate down head", Field: "lora.targets"},
	{Key: "dropout", Type: "fraction", Field: "lora.dropout", Default: 0},
	{Key: "dtype", Type: "bf16 or fp32", Field: "lora.dtype", Default: "bf16", Meaning: "of the adapters"},
	{Key: "autocast", Type: "bool", Field: "lora.autocast", Default: false, Meaning: "the forward pass runs under autocast"},
}
