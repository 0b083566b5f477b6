package plan

import (
	"slices"

	"github.com/trainvet/trainvet/lint/source"
)

// Plan is what a run does. Sizes of parallel groups count ranks, batch sizes sequences, lengths tokens, bucket sizes
// elements; what is in other units says so.
type Plan struct {
	Name          Value[string] // label in reports
	Model         Model
	Batch         Batch
	Parallel      Parallel
	Sharding      Value[Sharding]
	Precision     Value[Precision]
	DType         DTypes
	Optimizer     Optimizer
	Schedule      Schedule
	Checkpointing CheckpointingPlan
	Attention     AttentionPlan
	HiddenDropout Value[bool] // dropout after attention and MLP; it saves masks
	MLPActivation Value[MLPActivation]
	FusedNorm     Value[bool]
	FusedMLP      Value[bool]
	Loss          Value[LossKernel]
	Stack         Value[Stack]
	Compile       Value[bool] // torch.compile on layers or loss
	LoRA          LoRA
	Quantization  QuantizationPlan
	Offload       OffloadPlan
	Buckets       Buckets
	FSDP          FSDPPlan
	DDP           DDPPlan
	Device        Value[string] // name or alias in the catalogue, or a size such as 56GB
	Allocator     Allocator
	Communication Communication

	// Unmodelled are the things that the run uses and whose memory no estimate knows. A plan that has one gets no
	// estimate and no verdict: a wrong number is worse than none.
	Unmodelled []Unmodelled
}

// Unmodelled is a thing of a run whose use of memory is not known, as people call it ("GaLore", "a reference model"), and
// where a file asks for it.
type Unmodelled struct {
	What string
	At   source.Place
}

// CannotModel notes a thing whose use of memory is not known; once for each thing, at the first place.
func (p *Plan) CannotModel(what string, at source.Place) {
	for _, u := range p.Unmodelled {
		if u.What == what {
			return
		}
	}
	p.Unmodelled = append(slices.Clip(p.Unmodelled), Unmodelled{what, at})
}

// Model names a model of the catalogue, or gives its shape, or both: what is given wins over the catalogue.
type Model struct {
	Name              Value[string]
	Family            Value[string] // as in HF's model_type, e.g. llama, gpt2; megatron-gpt for Megatron's GPT
	Hidden            Value[int64]  // elements
	Layers            Value[int64]
	Heads             Value[int64]
	KVHeads           Value[int64]
	HeadDim           Value[int64]
	FFN               Value[int64] // intermediate size
	Vocab             Value[int64] // rows of the embedding, padding included
	Tied              Value[bool]  // embedding and head are one weight
	Gated             Value[bool]  // MLP with gate, up and down
	Norm              Value[Norm]
	NormsPerLayer     Value[int64]
	FinalNorm         Value[bool]
	QKVBias           Value[bool]
	OutputBias        Value[bool] // of the attention output projection
	MLPBias           Value[bool]
	HeadBias          Value[bool]
	QKNorm            Value[QKNorm]
	EmbeddingNorm     Value[bool]
	LearnedPositions  Value[int64] // rows of the learned position embedding; 0: none
	MaxPositions      Value[int64] // longest sequence the model was made for, tokens
	TypeVocab         Value[int64] // token types (BERT)
	DecoderLayers     Value[int64] // encoder-decoder models
	Experts           Value[int64] // routed experts; 0: dense
	ActiveExperts     Value[int64] // experts per token
	ExpertFFN         Value[int64]
	SharedFFN         Value[int64] // intermediate size of all shared experts together
	SharedGate        Value[bool]
	RouterBias        Value[bool]
	DenseLayers       Value[int64] // first layers without experts
	QLoRARank         Value[int64] // multi-head latent attention (DeepSeek): rank of the query projection; 0: full
	KVLoRARank        Value[int64] // rank of the key-value projection; known and above 0: the model has latent attention
	NopeDim           Value[int64] // per head, without rotary embedding
	RopeDim           Value[int64] // per head, with rotary embedding
	ValueDim          Value[int64] // per head
	Parameters        Value[int64] // published count, where the shape is not known
	TrainedFromConfig Value[bool]  // initialised at random instead of loaded
}

// Batch says how many sequences go through the model and when.
type Batch struct {
	Micro        Value[int64] // sequences per rank and forward pass
	Accumulation Value[int64] // forward and backward passes per optimizer step, without pipeline parallelism
	Global       Value[int64] // sequences per optimizer step over all ranks
	GlobalTokens Value[int64] // the same in tokens, for dialects that say it so
	SeqLength    Value[int64] // tokens of one sequence, before context parallelism
}

// Parallel says how the ranks are laid out.
type Parallel struct {
	World                Value[int64]
	Nodes                Value[int64]
	DevicesPerNode       Value[int64]
	Data                 Value[int64] // ranks that read different data
	Tensor               Value[int64]
	Pipeline             Value[int64] // stages
	Context              Value[int64] // ranks that share one sequence (context parallelism, Ulysses)
	Expert               Value[int64]
	ExpertTensor         Value[int64] // ranks that divide the matrices of an expert (Megatron: the tensor-parallel group, unless it is told otherwise)
	VirtualPipeline      Value[int64] // chunks per stage; 1: not interleaved
	ShardGroup           Value[int64] // ranks that shard states, where it is not the data-parallel group
	PipelineMicroBatches Value[int64] // micro-batches of one step that pass through the pipeline
	SequenceParallel     Value[bool]  // norms and residual stream are split over the tensor-parallel group
}

// DTypes are element types that were stated, from which the precision recipe may follow.
type DTypes struct {
	Compute Value[DType] // of matrix products: autocast, mixed precision
	Params  Value[DType] // of the weights as loaded or kept
	Reduce  Value[DType] // of gradient reduction
}

// Optimizer is the update rule and its numbers.
type Optimizer struct {
	Type        Value[OptimizerType]
	Kernel      Value[Kernel]
	InBackward  Value[bool] // each layer is stepped during backward
	LR          Value[float64]
	MinLR       Value[float64]
	WeightDecay Value[float64]
	Beta1       Value[float64]
	Beta2       Value[float64]
	Eps         Value[float64]
	Clip        Value[float64] // largest gradient norm; 0: no clipping
}

// Schedule is the learning-rate schedule and the length of training.
type Schedule struct {
	Type        Value[string] // lower case, as the framework names it
	Warmup      Value[float64]
	WarmupUnit  Value[WarmupUnit]
	WarmupRatio Value[float64] // of all steps
	TotalSteps  Value[int64]   // optimizer steps
	Epochs      Value[float64]
}

// CheckpointingPlan is activation checkpointing (recomputation).
type CheckpointingPlan struct {
	Kind      Value[Checkpointing]
	Every     Value[int64] // layers in a block, for every_n; for all_but_nth one layer in so many is stored
	Offload   Value[bool]  // checkpointed inputs live in host memory
	Reentrant Value[bool]
}

// AttentionPlan is how attention is computed.
type AttentionPlan struct {
	Kernel  Value[Attention]
	Dropout Value[float64]
}

// LoRA is low-rank adaptation of a frozen base. Rank 0: full fine-tuning or pre-training.
type LoRA struct {
	Rank     Value[int64]
	Alpha    Value[float64]
	Targets  Value[Targets]
	Dropout  Value[float64]
	DType    Value[DType] // of the adapters
	Autocast Value[bool]  // the forward pass runs under autocast
}

// QuantizationPlan is how the frozen base is stored.
type QuantizationPlan struct {
	Kind             Value[Quantization]
	FP32Residual     Value[bool] // what is not quantised and the residual stream are fp32 (prepare_model_for_kbit_training)
	LinearSavesInput Value[bool] // the quantised matrix product keeps its input for backward
}

// OffloadPlan is what lives outside of the device.
type OffloadPlan struct {
	Optimizer Value[Offload]
	Param     Value[Offload]
}

// Buckets are the communication buffers, in elements unless said otherwise.
type Buckets struct {
	Reduce               Value[int64] // gradient reduction; 0: none
	AllGather            Value[int64] // ZeRO-1 and -2
	Prefetch             Value[int64] // ZeRO-3
	MaxLive              Value[int64] // ZeRO-3: unsharded parameters that may be alive
	Persistence          Value[int64] // ZeRO-3: parameters up to this size stay whole
	SubGroup             Value[int64] // ZeRO-3: parameters stepped at once
	Auto                 Value[bool]  // sizes are "auto", filled in from the hidden size by the HF integration
	OverlapComm          Value[bool]
	ContiguousGradients  Value[bool]
	GradientAsBucketView Value[bool] // DDP: gradients live in the buckets
	DDPCapMB             Value[float64]
}

// FSDPPlan is what FSDP keeps unsharded.
type FSDPPlan struct {
	LiveLayers          Value[int64] // unsharded layers alive at once in backward
	SeparateEmbeddings  Value[bool]  // embedding and head are units of their own, not part of the root
	KeepsFrozen         Value[bool]  // unsharded frozen parameters are never freed (PyTorch before 2.2)
	ReshardAfterForward Value[bool]
	NoSync              Value[bool] // gradients are not reduced on inner micro-batches, so that they stay unsharded
	LimitAllGathers     Value[bool]
}

// DDPPlan is how DistributedDataParallel was built.
type DDPPlan struct {
	FindUnused  Value[bool]
	StaticGraph Value[bool]
}

// Allocator is the caching allocator of the device.
type Allocator struct {
	ExpandableSegments Value[bool]
}

// Communication is what the collective library keeps.
type Communication struct {
	HCCLBufferMB Value[int64] // HCCL_BUFFSIZE, MB
}
