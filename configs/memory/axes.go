package memory

import (
	"fmt"
	"slices"

	"github.com/trainvet/trainvet/configs/plan"
)

// axes are the kinds of changes that lower the peak of today's job.
func (s *search) axes() []axis {
	all := []axis{s.checkpointing(), s.sharding(), s.offload(), s.parallel(), s.sequenceParallel(), s.buckets(), s.loss(), s.sync(),
		s.optimizerStates(), s.precision()}
	return slices.DeleteFunc(all, func(a axis) bool { return len(a.settings) == 0 })
}

// possible are the settings all of whose changes can be made.
func possible(all []axis, can func(Change) bool) []axis {
	var kept []axis
	for _, a := range all {
		if can != nil {
			a.settings = slices.DeleteFunc(a.settings, func(t setting) bool {
				return slices.ContainsFunc(t.changes, func(c Change) bool { return !can(c) })
			})
		}
		if len(a.settings) > 0 {
			kept = append(kept, a)
		}
	}
	return kept
}

func one(apply func(*job), changes ...Change) axis {
	return axis{[]setting{{apply: apply, changes: changes}}}
}

// checkpointing offers the kinds that the stack has and that recompute more than today's.
func (s *search) checkpointing() axis {
	j := s.today
	kinds := []plan.Checkpointing{plan.Half, plan.Full}
	switch {
	case j.stack == plan.Torchtitan:
		kinds = []plan.Checkpointing{plan.SelectiveOp, plan.Half, plan.Full}
	case j.stack == plan.Megatron && j.attention == plan.Eager:
		kinds = []plan.Checkpointing{plan.SelectiveAttention, plan.Full}
	case j.stack == plan.Megatron, j.stack == plan.Torchtune && j.lora != nil:
		kinds = []plan.Checkpointing{plan.Full}
	}
	var a axis
	for _, kind := range kinds {
		changed := *j
		changed.checkpointing = kind
		if changed.recomputed() > j.recomputed() || j.checkpointing == plan.EveryN && j.every > 1 && kind == plan.Full {
			a.settings = append(a.settings, s.checkpointed(kind))
		}
	}
	if j.stack == plan.Megatron && j.checkpointing != plan.EveryN {
		for n := 2.0; n <= maxBlock; n *= 2 {
			if divides(n, j.stageLayers/max(j.virtualPipeline, 1)) {
				a.settings = append(a.settings, setting{apply: func(c *job) { c.checkpointing, c.every = plan.EveryN, n },
					changes: []Change{{"checkpointing.kind", string(j.checkpointing), string(plan.EveryN)}, {"checkpointing.every", whole64(j.every), whole64(n)}}})
			}
		}
	}
	return a
}

// maxBlock bounds the layers that are recomputed together: beyond it the recomputed block outweighs the inputs that are not kept.
const maxBlock = 4

func (s *search) checkpointed(kind plan.Checkpointing) setting {
	return setting{apply: func(c *job) { c.checkpointing = kind }, changes: []Change{{"checkpointing.kind", string(s.today.checkpointing), string(kind)}}}
}

// lessCheckpointing offers the kinds that recompute less than today's.
func (s *search) lessCheckpointing() axis {
	j := s.today
	kinds := []plan.Checkpointing{plan.NoCheckpointing}
	if j.stack == plan.Torchtitan {
		kinds = append(kinds, plan.SelectiveOp, plan.Half)
	}
	var a axis
	for _, kind := range kinds {
		changed := *j
		changed.checkpointing = kind
		if changed.recomputed() < j.recomputed() {
			a.settings = append(a.settings, s.checkpointed(kind))
		}
	}
	return a
}

// lessOffload brings states back from the host.
func (s *search) lessOffload() axis {
	j := s.today
	var changes []Change
	if j.offloadOptimizer != plan.NoOffload {
		changes = append(changes, Change{"offload.optimizer", string(j.offloadOptimizer), string(plan.NoOffload)})
	}
	if j.offloadParam != plan.NoOffload {
		changes = append(changes, Change{"offload.param", string(j.offloadParam), string(plan.NoOffload)})
	}
	if changes == nil {
		return axis{}
	}
	return one(func(c *job) { c.offloadOptimizer, c.offloadParam = plan.NoOffload, plan.NoOffload }, changes...)
}

// lessSharding offers lower stages, which send less: ZeRO-3 gathers weights for each micro-batch, ZeRO-2 reduces gradients for each, and
// FSDP gathers weights once instead of twice where they stay whole after forward.
func (s *search) lessSharding() axis {
	j := s.today
	var a axis
	lower := func(kinds ...plan.Sharding) {
		for _, kind := range kinds {
			a.settings = append(a.settings, setting{apply: func(c *job) { c.sharding = kind }, changes: []Change{{"sharding", string(j.sharding), string(kind)}}})
		}
	}
	switch {
	case j.shard <= 1, j.offloadParam != plan.NoOffload:
	case j.sharding == plan.ZeRO3:
		lower(plan.ZeRO2, plan.ZeRO1)
	case j.sharding == plan.ZeRO2:
		lower(plan.ZeRO1)
	case j.sharding.FSDP() && !j.fsdp.ReshardAfterForward.Is(false):
		return one(func(c *job) { c.fsdp.ReshardAfterForward = plan.Written(false) }, Change{"fsdp.reshard_after_forward", "true", "false"})
	}
	return a
}

// sharding offers the higher stages of what shards today, and FSDP or ZeRO where nothing does. Hugging Face's Trainer has both built in.
// FSDP flattens parameters of one dtype, and ZeRO-3 does not shard a quantised base.
func (s *search) sharding() axis {
	var a axis
	j := s.today
	offer := func(precision plan.Precision, kinds ...plan.Sharding) {
		for _, kind := range kinds {
			changes := []Change{{"sharding", string(j.sharding), string(kind)}}
			if precision != j.precision && s.plan.Precision.How() > plan.IsDerived {
				changes = append(changes, Change{"precision", string(j.precision), string(precision)})
			}
			a.settings = append(a.settings, setting{apply: func(c *job) { c.sharding, c.precision = kind, precision }, changes: changes})
		}
	}
	if j.shard <= 1 || j.quantization != plan.NoQuantization {
		return a
	}
	hf := j.stack == plan.HF || j.stack == plan.HFBert
	fsdp := plan.FSDP2
	if hf {
		fsdp = plan.FSDP1 // what `fsdp: full_shard` means there
	}
	switch {
	case j.sharding == plan.ZeRO1 && j.precision == plan.DeepSpeedMixed:
		offer(j.precision, plan.ZeRO2, plan.ZeRO3)
	case j.sharding == plan.ZeRO2:
		offer(j.precision, plan.ZeRO3)
	case j.sharding != plan.NoSharding && j.sharding != plan.DDP:
	case j.precision == plan.DeepSpeedMixed:
		offer(j.precision, plan.ZeRO1, plan.ZeRO2, plan.ZeRO3)
	case j.precision == plan.MegatronMixed:
		offer(j.precision, plan.MegatronDist)
	case j.precision == plan.Autocast:
		offer(plan.FSDPMixed, fsdp)
		if hf && j.lora == nil {
			offer(plan.DeepSpeedMixed, plan.ZeRO2, plan.ZeRO3)
		}
	case j.precision == plan.FP32, j.precision == plan.Pure16:
		offer(j.precision, fsdp)
	}
	return a
}

// offload offers optimizer states in host memory, and under ZeRO-3 weights too, which DeepSpeed has built in; under FSDP both go together.
// FSDP1 loses gradients of earlier micro-batches when weights are on the host (torch.distributed.fsdp, CPUOffload), so that it is offered
// there for one micro-batch a step.
func (s *search) offload() axis {
	j := s.today
	if j.sharding == plan.FSDP2 && j.shard > 1 || j.sharding == plan.FSDP1 && j.shard > 1 && j.steps() == 1 {
		if j.offloadParam != plan.NoOffload || j.quantization != plan.NoQuantization {
			return axis{}
		}
		return one(func(c *job) { c.offloadOptimizer, c.offloadParam = plan.CPU, plan.CPU }, Change{"offload.optimizer", string(plan.NoOffload), string(plan.CPU)},
			Change{"offload.param", string(plan.NoOffload), string(plan.CPU)})
	}
	if !j.sharding.ZeRO() || j.precision == plan.DeepSpeedBF16Optimizer {
		return axis{}
	}
	var a axis
	var states []Change
	if j.offloadOptimizer == plan.NoOffload {
		states = []Change{{"offload.optimizer", string(plan.NoOffload), string(plan.CPU)}}
		a.settings = append(a.settings, setting{apply: func(c *job) { c.offloadOptimizer = plan.CPU }, changes: states})
	}
	if j.sharding == plan.ZeRO3 && j.offloadParam == plan.NoOffload {
		a.settings = append(a.settings, setting{apply: func(c *job) { c.offloadOptimizer, c.offloadParam = plan.CPU, plan.CPU },
			changes: append(slices.Clone(states), Change{"offload.param", string(plan.NoOffload), string(plan.CPU)})})
	}
	return a
}

// maxDegree bounds the degrees that are tried.
const maxDegree = 64

// layout are the changes that take ranks from data parallelism, k times fewer of which are left; the global batch is kept by more
// micro-batches. ok is false where the ranks do not divide.
func (s *search) layout(k float64) (apply func(*job), changes []Change, ok bool) {
	j := s.today
	data, shard := j.data/k, max(j.shard/k, 1)
	if data < 1 || data != float64(int64(data)) {
		return nil, nil, false
	}
	steps := j.steps()
	if s.plan.Parallel.Data.How() > plan.IsDerived {
		changes = append(changes, Change{"parallel.data", whole64(j.data), whole64(data)})
	}
	if s.plan.Parallel.ShardGroup.How() > plan.IsDerived {
		changes = append(changes, Change{"parallel.shard_group", whole64(j.shard), whole64(shard)})
	}
	name := "batch.accumulation"
	if s.plan.Parallel.PipelineMicroBatches.How() > plan.IsDerived {
		name = "parallel.pipeline_micro_batches"
	}
	changes = append(changes, Change{name, whole64(steps), whole64(steps * k)})
	return func(c *job) {
		c.data, c.shard = data, shard
		c.accumulation, c.microBatches = steps*k, steps*k
	}, changes, true
}

// parallel offers degrees of tensor parallelism that divide heads, keys and values, MLP and the ranks of a node, and numbers of pipeline
// stages that divide the layers and that the micro-batches of a step can fill, together dividing the ranks.
func (s *search) parallel() axis {
	j := s.today
	var a axis
	if j.stack != plan.Megatron && j.stack != plan.Torchtitan {
		return a
	}
	for stages := 1.0; j.pipeline*stages <= maxDegree; stages *= 2 {
		if stages > 1 && (j.stack != plan.Megatron || j.virtualPipeline > 1 || !divides(j.pipeline*stages, j.layers)) {
			break
		}
		for split := 1.0; j.tensor*split <= min(j.nodeRanks, maxDegree); split *= 2 {
			if split > 1 && !divides(j.tensor*split, j.heads, float64(j.model.KVHeads), j.ffn, j.hidden) {
				break
			}
			if split*stages == 1 || stages > 1 && j.steps()*split*stages < j.pipeline*stages {
				continue
			}
			if next, ok := s.split(split, stages); ok {
				a.settings = append(a.settings, next)
			}
		}
	}
	return a
}

// split takes so many times more tensor-parallel ranks and pipeline stages from the data-parallel ranks.
func (s *search) split(split, stages float64) (setting, bool) {
	j := s.today
	apply, changes, ok := s.layout(split * stages)
	if !ok {
		return setting{}, false
	}
	tensor, pipeline := j.tensor*split, j.pipeline*stages
	sequence := j.stack == plan.Torchtitan && split > 1 && !j.sequenceParallel
	var first []Change
	if split > 1 {
		first = append(first, Change{"parallel.tensor", whole64(j.tensor), whole64(tensor)})
	}
	if sequence {
		first = append(first, Change{"parallel.sequence_parallel", "false", "true"})
	}
	if stages > 1 {
		first = append(first, Change{"parallel.pipeline", whole64(j.pipeline), whole64(pipeline)})
	}
	return setting{apply: func(c *job) {
		apply(c)
		if c.stack == plan.Megatron && !s.plan.Parallel.ExpertTensor.Known() {
			c.expertTensor *= split
		}
		c.tensor, c.pipeline = tensor, pipeline
		c.sequenceParallel = c.sequenceParallel || sequence
	}, changes: append(first, changes...)}, true
}

func divides(n float64, sizes ...float64) bool {
	return !slices.ContainsFunc(sizes, func(size float64) bool { return int64(size)%int64(n) != 0 })
}

// sequenceParallel splits what tensor parallelism leaves whole.
func (s *search) sequenceParallel() axis {
	j := s.today
	if j.stack != plan.Megatron || j.tensor <= 1 || j.sequenceParallel || !divides(j.tensor, j.seq) {
		return axis{}
	}
	return one(func(c *job) { c.sequenceParallel = true }, Change{"parallel.sequence_parallel", "false", "true"})
}

// smallBucket is a reduce bucket that still fills the links, elements.
const smallBucket = 5e7

// buckets offers a smaller reduce bucket, which costs gigabytes on small devices.
func (s *search) buckets() axis {
	j := s.today
	size := float64(j.buckets.Reduce.Or(defaultBucket))
	if !j.sharding.ZeRO() || size < 4*smallBucket || j.buckets.Auto.Or(false) {
		return axis{}
	}
	return one(func(c *job) { c.buckets.Reduce = plan.Written(int64(smallBucket)) },
		Change{"buckets.reduce", fmt.Sprint(int64(size)), fmt.Sprint(int64(smallBucket))})
}

// loss offers head and cross-entropy in one kernel, where the stack can take one.
func (s *search) loss() axis {
	j := s.today
	switch j.loss {
	case plan.FusedLinear, plan.NoLogits, plan.VocabParallel, plan.CompiledLoss:
		return axis{}
	}
	if j.stack == plan.Megatron || j.model.Encoder() {
		return axis{}
	}
	return one(func(c *job) {
		c.loss, c.open = plan.FusedLinear, slices.DeleteFunc(slices.Clone(c.open), func(s string) bool { return s == MissingLoss })
	}, Change{"loss_kernel", string(j.loss), string(plan.FusedLinear)})
}

// sync offers to reduce gradients after each micro-batch, so that they stay sharded under accumulation.
func (s *search) sync() axis {
	if !s.today.sharding.FSDP() || !s.today.fsdp.NoSync.Or(false) {
		return axis{}
	}
	return one(func(c *job) { c.fsdp.NoSync = plan.Written(false) }, Change{"fsdp.no_sync", "true", "false"})
}

// optimizerStates offers Adam's moments in 8 bits, where a stack takes an optimizer of another library. The update is rounded.
func (s *search) optimizerStates() axis {
	j := s.today
	if j.optimizer != plan.AdamW || j.lora != nil || j.sharding.ZeRO() || j.stack == plan.Megatron || j.offloadOptimizer != plan.NoOffload {
		return axis{}
	}
	a := one(func(c *job) { c.optimizer = plan.AdamW8bit }, Change{"optimizer.type", string(j.optimizer), string(plan.AdamW8bit)})
	a.settings[0].numerics = true
	return a
}

// precision offers weights, gradients and states in 16 bits without an fp32 copy, outside of DeepSpeed and Megatron. Small updates are lost.
func (s *search) precision() axis {
	j := s.today
	if j.precision != plan.FSDPMixed && j.precision != plan.Autocast || j.lora != nil {
		return axis{}
	}
	a := one(func(c *job) { c.precision = plan.Pure16 }, Change{"precision", string(j.precision), string(plan.Pure16)})
	a.settings[0].numerics = true
	return a
}
