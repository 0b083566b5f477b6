package memory

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs/catalog"
	"github.com/trainvet/trainvet/configs/plan"
)

// Names of facts about a run that can be missing. Those that a command-line flag gives are called as the flag is.
const (
	MissingModel     = "model"
	MissingSeqLength = "seq-len"
	MissingWorld     = "world-size"
	MissingDevice    = "device"
	MissingMicro     = "micro-batch"
	MissingPrecision = "precision"
	MissingSharding  = "sharding"
	MissingLoss      = "loss-kernel"
	MissingStack     = "stack"
	MissingDType     = "dtype" // of the weights as they are loaded
)

// Missing are the names of facts without which a question has no answer, in the order in which they are best supplied.
type Missing []string

// settable are the names of facts that flags and the settings can say.
var settable = []string{MissingModel, MissingSeqLength, MissingDevice, MissingWorld}

// Supply says what stands between the facts and an answer: flags to set, what the files of the run leave open, and what
// the estimate does not model.
func (m Missing) Supply() string {
	var flags, open, unknown, parts []string
	for _, name := range m {
		fact, _, _ := strings.Cut(name, " ")
		what, how := strings.CutPrefix(name, unmodelledBefore)
		switch flag := "--" + fact; {
		case how:
			unknown = append(unknown, strings.TrimSuffix(what, unmodelledAfter))
		case !slices.Contains(settable, fact):
			open = append(open, "the "+name)
		case !slices.Contains(flags, flag):
			flags = append(flags, flag)
		}
	}
	if len(flags) > 0 {
		parts = append(parts, fmt.Sprintf("set %s (or [run] in trainvet.toml)", listed(flags)))
	}
	if len(open) > 0 {
		parts = append(parts, "the files of the run do not state "+listed(open))
	}
	if len(unknown) > 0 {
		if len(unknown) > maxNamed {
			unknown = append(unknown[:maxNamed-1:maxNamed-1], fmt.Sprintf("%d more features", len(unknown)-maxNamed+1))
		}
		parts = append(parts, "the estimate does not model "+listed(unknown))
	}
	return strings.Join(parts, "; ")
}

// maxNamed is how many features that are not modelled a sentence names.
const maxNamed = 4

// listed joins names as a sentence does.
func listed(names []string) string {
	last := len(names) - 1
	if last <= 0 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

func (m *Missing) add(name string) {
	if !slices.Contains(*m, name) {
		*m = append(*m, name)
	}
}

// What is said before and after the name of a thing that is not modelled.
const (
	unmodelledBefore = "how "
	unmodelledAfter  = " uses memory"
)

// unmodelled names what a plan uses and these formulas do not know. Nothing is said about such a run, not even a lower bound.
func unmodelled(p *plan.Plan) (missing Missing) {
	for _, u := range p.Unmodelled {
		missing.add(unmodelledBefore + u.What + unmodelledAfter)
	}
	return missing
}

// job is a plan with everything resolved to numbers. Sizes are float64, since they are multiplied freely and no byte count
// comes near 2^53.
type job struct {
	model  *catalog.ModelSpec
	counts catalog.Counts
	device *catalog.DeviceSpec // nil: not known

	hidden, layers, heads, ffn, vocab float64
	queryDim, kvDim                   float64
	headDim                           float64

	seq, micro, accumulation               float64
	data, shard, tensor, pipeline, context float64
	expert, expertTensor                   float64 // ranks over which experts, and the matrices of one, are divided
	virtualPipeline, microBatches          float64
	nodeRanks                              float64 // devices of a node
	sequenceParallel                       bool
	tokens                                 float64 // of one micro-batch on one rank
	stageLayers                            float64 // layers on one stage

	sharding      plan.Sharding
	precision     plan.Precision
	half          bool // the 16-bit type is known to be fp16
	optimizer     plan.OptimizerType
	kernel        plan.Kernel
	inBackward    bool
	checkpointing plan.Checkpointing
	every         float64
	actOffload    bool
	attention     plan.Attention
	attnDropout   bool
	hiddenDropout bool
	tanhPython    bool
	loss          plan.LossKernel
	stack         plan.Stack
	compile       bool
	fusedNorm     bool
	fusedMLP      bool
	lora          *loraJob
	quantization  plan.Quantization
	fp32Residual  bool
	savesInput    bool

	offloadOptimizer, offloadParam plan.Offload
	buckets                        plan.Buckets
	fsdp                           plan.FSDPPlan
	expandable                     bool
	hcclBufferMB                   float64

	open    Missing  // facts about the software that were not stated; the bounds cover every case of them
	likely  likely   // what is taken for granted and may be otherwise; the bounds cover that too, and a verdict is still given
	assumed []string // dotted names of values that were not stated and for which the common case was taken

	frozenElement float64 // bytes of one weight of a frozen base that is not quantised
	reduceElement float64 // bytes of one gradient that waits unsharded for its reduction (FSDP, no_sync); 0: the compute type
	wrapped       bool    // DDP wraps the model, on one rank too
	adamCopies    float64 // lists of the size of a state that torch's foreach Adam makes for a moment

	ungathered bool // leave communication buffers and gathered weights out, where who shards is open

	element float64 // bytes of one activation element: 4 in fp32, else 2
	dtypes  stateBytes
	local   localParameters
}

// likely are defaults that depend on a release or on the number of ranks, which nothing states.
type likely struct {
	alone  bool // DDP by default, on an unknown number of ranks: one rank has no buckets
	kernel bool // the kernel of the optimizer step is a default
	reduce bool // the type in which FSDP2 reduces
	synced bool // FSDP2 under a release of accelerate that has no no_sync for it, or code of one's own that does not call accumulate()
}

// loraJob is a low-rank adapter, resolved.
type loraJob struct {
	rank     float64
	targets  plan.Targets
	dropout  bool
	bytes    float64 // of one adapter element
	autocast bool
}

// newJob resolves a plan. What has one answer in the framework that runs it is filled in; what has not and cannot be told is
// missing.
func newJob(p *plan.Plan) (j *job, missing Missing, err error) {
	if missing = unmodelled(p); len(missing) > 0 {
		return nil, missing, nil
	}
	j = &job{}
	model, absent, err := catalog.Shape(p)
	if model == nil {
		for _, name := range absent {
			if name != "model" {
				name = MissingModel + " (" + name + ")"
			}
			missing.add(name)
		}
	}
	if err != nil && model == nil {
		return nil, missing, err
	}
	if name, ok := p.Device.Get(); ok {
		if j.device, err = catalog.Device(name); err != nil {
			return nil, nil, err
		}
	}
	need := func(v plan.Value[int64], name string) float64 {
		n, ok := v.Get()
		if !ok || n < 1 {
			missing.add(name)
			return 1
		}
		return float64(n)
	}
	j.seq = need(p.Batch.SeqLength, MissingSeqLength)
	j.micro = need(p.Batch.Micro, MissingMicro)
	var known bool
	if j.precision, known = p.Precision.Get(); !known {
		missing.add(MissingPrecision)
	}
	if j.sharding, known = p.Sharding.Get(); !known {
		if world, ok := p.Parallel.World.Get(); ok && world == 1 {
			j.sharding = plan.NoSharding
		} else {
			missing.add(MissingSharding)
		}
	}
	count := func(v plan.Value[int64], name string) float64 {
		n, ok := v.Get()
		if !ok && name != "" {
			j.assumed = append(j.assumed, name)
		}
		return float64(max(n, 1))
	}
	j.tensor = count(p.Parallel.Tensor, "parallel.tensor")
	j.pipeline = count(p.Parallel.Pipeline, "parallel.pipeline")
	j.context = count(p.Parallel.Context, "parallel.context")
	j.expert = count(p.Parallel.Expert, "")
	j.expertTensor = 1
	if p.Stack.Is(plan.Megatron) {
		j.expertTensor = float64(max(p.Parallel.ExpertTensor.Or(int64(j.tensor)), 1))
	}
	j.virtualPipeline = count(p.Parallel.VirtualPipeline, "")
	j.accumulation = count(p.Batch.Accumulation, "batch.accumulation")
	j.microBatches = j.accumulation
	if n, ok := p.Parallel.PipelineMicroBatches.Get(); ok && n > 0 {
		j.microBatches = float64(n)
	}
	if n, ok := p.Parallel.Data.Get(); ok && n > 0 {
		j.data = float64(n)
	} else {
		j.data = 1
		j.likely.alone = j.sharding == plan.DDP && p.Sharding.How() < plan.IsWritten
		if j.sharding != plan.NoSharding && j.sharding != plan.DDP {
			missing.add(MissingWorld)
		}
	}
	j.shard = j.data
	if n, ok := p.Parallel.ShardGroup.Get(); ok && n > 0 {
		j.shard = float64(n)
	}
	j.choices(p)
	j.setDTypes(p)
	// Only a wrapper that the files or the code ask for is there on one rank; Hugging Face's and Lightning's own choice is none.
	j.wrapped = j.data > 1 || !p.Parallel.Data.Known() || p.Sharding.How() >= plan.IsWritten
	if rank, ok := p.LoRA.Rank.Get(); ok && rank > 0 {
		targets, known := p.LoRA.Targets.Get()
		if !known {
			targets = plan.TargetQ | plan.TargetV // PEFT's choice for LLaMA-like models
			j.assumed = append(j.assumed, "lora.targets")
		}
		dtype := p.LoRA.DType.Or(plan.BFloat16)
		j.lora = &loraJob{rank: float64(rank), targets: targets, dropout: p.LoRA.Dropout.Or(0) > 0, bytes: 2, autocast: p.LoRA.Autocast.Or(false)}
		if dtype == plan.Float32 {
			j.lora.bytes = 4
		}
	}
	if len(missing) > 0 {
		return nil, missing, nil
	}
	j.setSoftware(p, model)
	j.setModel(model)
	return j, nil, nil
}

// setDTypes takes over in what types weights lie and gradients are reduced. Releases of transformers before 5 load weights in
// fp32 and later ones in the type of the checkpoint, so that a run that states no type of its weights is open.
func (j *job) setDTypes(p *plan.Plan) {
	params, stated := p.DType.Params.Get()
	rank, _ := p.LoRA.Rank.Get()
	j.frozenElement = 2
	byDefault := p.DType.Compute.How() == plan.IsDefault
	if stated && params == plan.Float32 || !stated && j.precision == plan.FP32 && !byDefault {
		j.frozenElement = 4
	}
	quantized := rank > 0 && j.quantization != plan.NoQuantization
	if !stated && !quantized && p.Precision.How() == plan.IsDerived && p.Stack.Is(plan.HF) &&
		(j.precision == plan.Autocast || j.precision == plan.FP32 && byDefault) {
		j.open.add(MissingDType)
	}
	unreduced := j.sharding.FSDP() && j.accumulation > 1 && j.fsdp.NoSync.Or(false)
	j.likely.synced = unreduced && j.fsdp.NoSync.How() == plan.IsDefault && (j.sharding == plan.FSDP2 || !p.Stack.Known())
	switch reduce, known := p.DType.Reduce.Get(); {
	case known && reduce == plan.Float32:
		j.reduceElement = 4
	case !known:
		j.likely.reduce = unreduced && j.sharding == plan.FSDP2
	}
}

// setSoftware takes over whose model code and loss run. Where the plan does not say so, the common case is taken, and the job
// is open: its bounds then cover the other cases too.
func (j *job) setSoftware(p *plan.Plan, m *catalog.ModelSpec) {
	var known bool
	if j.stack, known = p.Stack.Get(); !known {
		j.stack = plan.HF
		if m.Encoder() {
			j.stack = plan.HFBert
		}
		j.open.add(MissingStack)
	}
	if j.loss, known = p.Loss.Get(); known {
		return
	}
	j.open.add(MissingLoss)
	switch j.stack {
	case plan.HFBert:
		j.loss = plan.NoLogits
	case plan.LitGPT:
		j.loss = plan.ChunkedHead
	case plan.Torchtune:
		j.loss = plan.Chunked
	case plan.Torchtitan:
		j.loss = plan.FP32Held
	case plan.Megatron:
		j.loss = plan.VocabParallel
	default:
		j.loss = plan.FP32Copy
	}
}

// favourable is the job with the open choices made so that it needs the least; adverse so that it needs the most.
func (j *job) favourable() *job {
	c := *j
	c.wrapped = c.wrapped && !c.likely.alone
	if c.likely.kernel {
		c.kernel = plan.Fused
	}
	if c.likely.synced {
		c.fsdp.NoSync = plan.Written(false)
	}
	if slices.Contains(c.open, MissingDType) {
		c.frozenElement, c.precision = 2, plan.Pure16
		c.resize()
	}
	if slices.Contains(c.open, MissingLoss) {
		c.loss = plan.FusedLinear
	}
	if slices.Contains(c.open, MissingStack) {
		c.fusedNorm, c.fusedMLP, c.kernel = true, true, plan.Fused
	}
	return &c
}

func (j *job) adverse() *job {
	c := *j
	if c.likely.kernel {
		c.kernel, c.adamCopies = plan.Foreach, 2
	}
	if c.likely.reduce {
		c.reduceElement = 4
	}
	if slices.Contains(c.open, MissingDType) {
		c.frozenElement = 4
	}
	if slices.Contains(c.open, MissingLoss) && !c.model.Encoder() {
		c.loss = plan.FP32CopyShifted
	}
	return &c
}

// choices takes over the settings that have a common default.
func (j *job) choices(p *plan.Plan) {
	j.nodeRanks = float64(max(p.Parallel.DevicesPerNode.Or(usualNode), 1))
	j.sequenceParallel = p.Parallel.SequenceParallel.Or(false)
	j.optimizer = p.Optimizer.Type.Or(plan.AdamW)
	j.kernel = p.Optimizer.Kernel.Or(plan.Foreach)
	if j.megatron() && p.Optimizer.Kernel.How() <= plan.IsDefault {
		j.kernel = plan.Fused // Megatron steps with the fused Adam of Transformer Engine or Apex
	}
	j.adamCopies = 1
	how := p.Optimizer.Kernel.How()
	j.likely.kernel = how == plan.IsDefault && p.Stack.Is(plan.HF) && j.optimizer == plan.AdamW
	j.half = p.DType.Compute.Is(plan.Float16)
	j.inBackward = p.Optimizer.InBackward.Or(false)
	j.checkpointing = p.Checkpointing.Kind.Or(plan.NoCheckpointing)
	j.every = float64(max(p.Checkpointing.Every.Or(1), 1))
	j.actOffload = p.Checkpointing.Offload.Or(false)
	j.attention = p.Attention.Kernel.Or(plan.SDPA)
	j.attnDropout = p.Attention.Dropout.Or(0) > 0
	j.hiddenDropout = p.HiddenDropout.Or(false)
	j.tanhPython = p.MLPActivation.Is(plan.TanhPython)
	j.compile = p.Compile.Or(false)
	j.fusedNorm = p.FusedNorm.Or(false)
	j.fusedMLP = p.FusedMLP.Or(false)
	j.quantization = p.Quantization.Kind.Or(plan.NoQuantization)
	// FSDP flattens parameters of one dtype, so that an fp32 part beside 16-bit storage cannot be.
	j.fp32Residual = p.Quantization.FP32Residual.Or(false) && !j.sharding.FSDP()
	j.savesInput = p.Quantization.LinearSavesInput.Or(false)
	j.offloadOptimizer = p.Offload.Optimizer.Or(plan.NoOffload)
	j.offloadParam = p.Offload.Param.Or(plan.NoOffload)
	j.buckets = p.Buckets
	j.fsdp = p.FSDP
	j.expandable = p.Allocator.ExpandableSegments.Or(false)
	j.hcclBufferMB = float64(p.Communication.HCCLBufferMB.Or(defaultHCCLBufferMB))
}

func (j *job) setModel(m *catalog.ModelSpec) {
	if j.stack == plan.LitGPT && m.Tied {
		// LitGPT keeps embedding and head apart; its checkpoints of tied models hold the weight twice.
		untied := *m
		untied.Tied = false
		m = &untied
	}
	j.model, j.counts = m, m.CountParameters()
	j.hidden, j.layers, j.heads = float64(m.Hidden), float64(m.Layers+m.DecoderLayers), float64(m.Heads)
	j.ffn, j.vocab, j.headDim = float64(m.FFN), float64(m.Vocab), float64(m.HeadDim)
	j.queryDim, j.kvDim = float64(m.QueryDim()), float64(m.KVDim())
	j.resize()
}

// resize sets what follows from batch, layout, precision and optimizer.
func (j *job) resize() {
	j.tokens = j.seq * j.micro / j.context
	j.stageLayers = j.layers / j.pipeline
	j.element = 2
	if j.precision == plan.FP32 {
		j.element = 4
	}
	j.local = j.localParameters()
	j.dtypes = j.stateBytes()
}

// megatron reports whether Megatron's own optimizer and buffers are at work.
func (j *job) megatron() bool { return j.precision == plan.MegatronMixed }

// autocast reports whether fp32 weights are used under torch.autocast: the residual stream is then fp32.
func (j *job) autocast() bool { return j.precision == plan.Autocast }
