package plan

import (
	"iter"

	"github.com/trainvet/trainvet/lint/source"
)

// field is one value of a plan: its dotted name, and where it lives.
type field struct {
	name string
	at   func(*Plan) slot
}

// Names are the dotted names of all values of a plan, in the order of Values.
func Names() []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return names
}

// Values lists every value of the plan, unknown ones included, by dotted name (batch.micro, parallel.tensor,
// schedule.warmup ...) in a fixed order. The facts are those of the plan itself, not copies.
func Values(p *Plan) iter.Seq2[string, Fact] {
	return func(yield func(string, Fact) bool) {
		for _, f := range fields {
			if !yield(f.name, f.at(p)) {
				return
			}
		}
	}
}

// Lookup is the value of this dotted name; false where no value is called so.
func Lookup(p *Plan, name string) (Fact, bool) {
	if s := find(p, name); s != nil {
		return s.fact(), true
	}
	return nil, false
}

// Known reports whether the value of this dotted name is known.
func Known(p *Plan, name string) bool {
	s := find(p, name)
	return s != nil && s.Known()
}

// AnyKnown reports whether any value of the plan is known.
func AnyKnown(p *Plan) bool {
	for i := range fields {
		if fields[i].at(p).Known() {
			return true
		}
	}
	return false
}

// Set parses a plain Go value (string, bool, any int or float, []string, []any of strings) into the value of this dotted
// name. An unknown name, a wrong type and a value outside of its range are errors that say what is wanted.
func Set(p *Plan, name string, raw any, how How, note string, places ...source.Place) error {
	s := find(p, name)
	if s == nil {
		return &UnknownNameError{name}
	}
	return s.parse(raw, how, note, places)
}

// UnknownNameError says that no value of a plan has this dotted name.
type UnknownNameError struct{ Name string }

func (e *UnknownNameError) Error() string { return "no value of a plan is called " + e.Name }

func find(p *Plan, name string) slot {
	if i, known := numbers[name]; known {
		return fields[i].at(p)
	}
	return nil
}

// numbers are the places of the names in the table of fields.
var numbers = func() map[string]int {
	byName := make(map[string]int, len(fields))
	for i, f := range fields {
		byName[f.name] = i
	}
	return byName
}()

// fields is the one table of all values; its order is that of every listing.
var fields = [...]field{
	{"name", func(p *Plan) slot { return &p.Name }},
	{"model.name", func(p *Plan) slot { return &p.Model.Name }},
	{"model.family", func(p *Plan) slot { return &p.Model.Family }},
	{"model.hidden", func(p *Plan) slot { return &p.Model.Hidden }},
	{"model.layers", func(p *Plan) slot { return &p.Model.Layers }},
	{"model.heads", func(p *Plan) slot { return &p.Model.Heads }},
	{"model.kv_heads", func(p *Plan) slot { return &p.Model.KVHeads }},
	{"model.head_dim", func(p *Plan) slot { return &p.Model.HeadDim }},
	{"model.ffn", func(p *Plan) slot { return &p.Model.FFN }},
	{"model.vocab", func(p *Plan) slot { return &p.Model.Vocab }},
	{"model.tied", func(p *Plan) slot { return &p.Model.Tied }},
	{"model.gated", func(p *Plan) slot { return &p.Model.Gated }},
	{"model.norm", func(p *Plan) slot { return &p.Model.Norm }},
	{"model.norms_per_layer", func(p *Plan) slot { return &p.Model.NormsPerLayer }},
	{"model.final_norm", func(p *Plan) slot { return &p.Model.FinalNorm }},
	{"model.qkv_bias", func(p *Plan) slot { return &p.Model.QKVBias }},
	{"model.output_bias", func(p *Plan) slot { return &p.Model.OutputBias }},
	{"model.mlp_bias", func(p *Plan) slot { return &p.Model.MLPBias }},
	{"model.head_bias", func(p *Plan) slot { return &p.Model.HeadBias }},
	{"model.qk_norm", func(p *Plan) slot { return &p.Model.QKNorm }},
	{"model.embedding_norm", func(p *Plan) slot { return &p.Model.EmbeddingNorm }},
	{"model.learned_positions", func(p *Plan) slot { return &p.Model.LearnedPositions }},
	{"model.max_positions", func(p *Plan) slot { return &p.Model.MaxPositions }},
	{"model.type_vocab", func(p *Plan) slot { return &p.Model.TypeVocab }},
	{"model.decoder_layers", func(p *Plan) slot { return &p.Model.DecoderLayers }},
	{"model.experts", func(p *Plan) slot { return &p.Model.Experts }},
	{"model.active_experts", func(p *Plan) slot { return &p.Model.ActiveExperts }},
	{"model.expert_ffn", func(p *Plan) slot { return &p.Model.ExpertFFN }},
	{"model.shared_ffn", func(p *Plan) slot { return &p.Model.SharedFFN }},
	{"model.shared_gate", func(p *Plan) slot { return &p.Model.SharedGate }},
	{"model.router_bias", func(p *Plan) slot { return &p.Model.RouterBias }},
	{"model.dense_layers", func(p *Plan) slot { return &p.Model.DenseLayers }},
	{"model.q_lora_rank", func(p *Plan) slot { return &p.Model.QLoRARank }},
	{"model.kv_lora_rank", func(p *Plan) slot { return &p.Model.KVLoRARank }},
	{"model.nope_dim", func(p *Plan) slot { return &p.Model.NopeDim }},
	{"model.rope_dim", func(p *Plan) slot { return &p.Model.RopeDim }},
	{"model.value_dim", func(p *Plan) slot { return &p.Model.ValueDim }},
	{"model.parameters", func(p *Plan) slot { return &p.Model.Parameters }},
	{"model.trained_from_config", func(p *Plan) slot { return &p.Model.TrainedFromConfig }},
	{"batch.micro", func(p *Plan) slot { return &p.Batch.Micro }},
	{"batch.accumulation", func(p *Plan) slot { return &p.Batch.Accumulation }},
	{"batch.global", func(p *Plan) slot { return &p.Batch.Global }},
	{"batch.global_tokens", func(p *Plan) slot { return &p.Batch.GlobalTokens }},
	{"batch.seq_length", func(p *Plan) slot { return &p.Batch.SeqLength }},
	{"parallel.world", func(p *Plan) slot { return &p.Parallel.World }},
	{"parallel.nodes", func(p *Plan) slot { return &p.Parallel.Nodes }},
	{"parallel.devices_per_node", func(p *Plan) slot { return &p.Parallel.DevicesPerNode }},
	{"parallel.data", func(p *Plan) slot { return &p.Parallel.Data }},
	{"parallel.tensor", func(p *Plan) slot { return &p.Parallel.Tensor }},
	{"parallel.pipeline", func(p *Plan) slot { return &p.Parallel.Pipeline }},
	{"parallel.context", func(p *Plan) slot { return &p.Parallel.Context }},
	{"parallel.expert", func(p *Plan) slot { return &p.Parallel.Expert }},
	{"parallel.expert_tensor", func(p *Plan) slot { return &p.Parallel.ExpertTensor }},
	{"parallel.virtual_pipeline", func(p *Plan) slot { return &p.Parallel.VirtualPipeline }},
	{"parallel.shard_group", func(p *Plan) slot { return &p.Parallel.ShardGroup }},
	{"parallel.pipeline_micro_batches", func(p *Plan) slot { return &p.Parallel.PipelineMicroBatches }},
	{"parallel.sequence_parallel", func(p *Plan) slot { return &p.Parallel.SequenceParallel }},
	{"sharding", func(p *Plan) slot { return &p.Sharding }},
	{"precision", func(p *Plan) slot { return &p.Precision }},
	{"dtype.compute", func(p *Plan) slot { return &p.DType.Compute }},
	{"dtype.params", func(p *Plan) slot { return &p.DType.Params }},
	{"dtype.reduce", func(p *Plan) slot { return &p.DType.Reduce }},
	{"optimizer.type", func(p *Plan) slot { return &p.Optimizer.Type }},
	{"optimizer.kernel", func(p *Plan) slot { return &p.Optimizer.Kernel }},
	{"optimizer.in_backward", func(p *Plan) slot { return &p.Optimizer.InBackward }},
	{"optimizer.lr", func(p *Plan) slot { return &p.Optimizer.LR }},
	{"optimizer.min_lr", func(p *Plan) slot { return &p.Optimizer.MinLR }},
	{"optimizer.weight_decay", func(p *Plan) slot { return &p.Optimizer.WeightDecay }},
	{"optimizer.beta1", func(p *Plan) slot { return &p.Optimizer.Beta1 }},
	{"optimizer.beta2", func(p *Plan) slot { return &p.Optimizer.Beta2 }},
	{"optimizer.eps", func(p *Plan) slot { return &p.Optimizer.Eps }},
	{"optimizer.clip", func(p *Plan) slot { return &p.Optimizer.Clip }},
	{"schedule.type", func(p *Plan) slot { return &p.Schedule.Type }},
	{"schedule.warmup", func(p *Plan) slot { return &p.Schedule.Warmup }},
	{"schedule.warmup_unit", func(p *Plan) slot { return &p.Schedule.WarmupUnit }},
	{"schedule.warmup_ratio", func(p *Plan) slot { return &p.Schedule.WarmupRatio }},
	{"schedule.total_steps", func(p *Plan) slot { return &p.Schedule.TotalSteps }},
	{"schedule.epochs", func(p *Plan) slot { return &p.Schedule.Epochs }},
	{"checkpointing.kind", func(p *Plan) slot { return &p.Checkpointing.Kind }},
	{"checkpointing.every", func(p *Plan) slot { return &p.Checkpointing.Every }},
	{"checkpointing.offload", func(p *Plan) slot { return &p.Checkpointing.Offload }},
	{"checkpointing.reentrant", func(p *Plan) slot { return &p.Checkpointing.Reentrant }},
	{"attention.kernel", func(p *Plan) slot { return &p.Attention.Kernel }},
	{"attention.dropout", func(p *Plan) slot { return &p.Attention.Dropout }},
	{"hidden_dropout", func(p *Plan) slot { return &p.HiddenDropout }},
	{"mlp_activation", func(p *Plan) slot { return &p.MLPActivation }},
	{"fused_norm", func(p *Plan) slot { return &p.FusedNorm }},
	{"fused_mlp", func(p *Plan) slot { return &p.FusedMLP }},
	{"loss_kernel", func(p *Plan) slot { return &p.Loss }},
	{"stack", func(p *Plan) slot { return &p.Stack }},
	{"compile", func(p *Plan) slot { return &p.Compile }},
	{"lora.rank", func(p *Plan) slot { return &p.LoRA.Rank }},
	{"lora.alpha", func(p *Plan) slot { return &p.LoRA.Alpha }},
	{"lora.targets", func(p *Plan) slot { return &p.LoRA.Targets }},
	{"lora.dropout", func(p *Plan) slot { return &p.LoRA.Dropout }},
	{"lora.dtype", func(p *Plan) slot { return &p.LoRA.DType }},
	{"lora.autocast", func(p *Plan) slot { return &p.LoRA.Autocast }},
	{"quantization.kind", func(p *Plan) slot { return &p.Quantization.Kind }},
	{"quantization.fp32_residual", func(p *Plan) slot { return &p.Quantization.FP32Residual }},
	{"quantization.linear_saves_input", func(p *Plan) slot { return &p.Quantization.LinearSavesInput }},
	{"offload.optimizer", func(p *Plan) slot { return &p.Offload.Optimizer }},
	{"offload.param", func(p *Plan) slot { return &p.Offload.Param }},
	{"buckets.reduce", func(p *Plan) slot { return &p.Buckets.Reduce }},
	{"buckets.all_gather", func(p *Plan) slot { return &p.Buckets.AllGather }},
	{"buckets.prefetch", func(p *Plan) slot { return &p.Buckets.Prefetch }},
	{"buckets.max_live", func(p *Plan) slot { return &p.Buckets.MaxLive }},
	{"buckets.persistence", func(p *Plan) slot { return &p.Buckets.Persistence }},
	{"buckets.sub_group", func(p *Plan) slot { return &p.Buckets.SubGroup }},
	{"buckets.auto", func(p *Plan) slot { return &p.Buckets.Auto }},
	{"buckets.overlap_comm", func(p *Plan) slot { return &p.Buckets.OverlapComm }},
	{"buckets.contiguous_gradients", func(p *Plan) slot { return &p.Buckets.ContiguousGradients }},
	{"buckets.gradient_as_bucket_view", func(p *Plan) slot { return &p.Buckets.GradientAsBucketView }},
	{"buckets.ddp_cap_mb", func(p *Plan) slot { return &p.Buckets.DDPCapMB }},
	{"fsdp.live_layers", func(p *Plan) slot { return &p.FSDP.LiveLayers }},
	{"fsdp.separate_embeddings", func(p *Plan) slot { return &p.FSDP.SeparateEmbeddings }},
	{"fsdp.keeps_frozen", func(p *Plan) slot { return &p.FSDP.KeepsFrozen }},
	{"fsdp.reshard_after_forward", func(p *Plan) slot { return &p.FSDP.ReshardAfterForward }},
	{"fsdp.no_sync", func(p *Plan) slot { return &p.FSDP.NoSync }},
	{"fsdp.limit_all_gathers", func(p *Plan) slot { return &p.FSDP.LimitAllGathers }},
	{"ddp.find_unused", func(p *Plan) slot { return &p.DDP.FindUnused }},
	{"ddp.static_graph", func(p *Plan) slot { return &p.DDP.StaticGraph }},
	{"device", func(p *Plan) slot { return &p.Device }},
	{"allocator.expandable_segments", func(p *Plan) slot { return &p.Allocator.ExpandableSegments }},
	{"communication.hccl_buffer_mb", func(p *Plan) slot { return &p.Communication.HCCLBufferMB }},
}
