package memory

import (
	"math"

	"github.com/trainvet/trainvet/configs/catalog"
	"github.com/trainvet/trainvet/configs/plan"
)

// StatesLowerBound is the smallest number of bytes per rank that weights, gradients and optimizer states can take under
// everything that the plan leaves open: sharding, number of ranks, parallel layout, precision, optimizer. What the plan states
// is respected. It is 0 where nothing holds the states up, as under ZeRO-3 on an unknown number of ranks; false where the model
// is not known.
func StatesLowerBound(p *plan.Plan) (int64, bool) {
	m, _, _ := catalog.Shape(p)
	if m == nil || len(p.Unmodelled) > 0 {
		return 0, false
	}
	j := &job{}
	j.choices(p)
	if rank, ok := p.LoRA.Rank.Get(); !ok || rank > 0 {
		return 0, true // an adapter's states are small, and its frozen base can be quantised to little
	}
	total := float64(m.CountParameters().Total)
	model, data := layouts(p)
	best := math.Inf(1)
	for _, recipe := range precisions(p) {
		j.precision = recipe
		b := j.stateBytes()
		if !p.Optimizer.Type.Known() {
			b.optimizer = 0
		}
		for _, sharding := range shardings(p) {
			best = min(best, j.statesOf(total/model, data, sharding, b))
		}
	}
	return whole(math.Floor(best)), true
}

// layouts gives the largest number of ranks that can divide the model, and that can shard the states of such a part; infinite
// where unknown.
func layouts(p *plan.Plan) (model, data float64) {
	world := math.Inf(1)
	if n, ok := p.Parallel.World.Get(); ok && n > 0 {
		world = float64(n)
	}
	model = 1
	for _, group := range []plan.Value[int64]{p.Parallel.Tensor, p.Parallel.Pipeline} {
		n, ok := group.Get()
		if !ok {
			return world, 1 // all ranks may divide the model, and then none is left to shard its states
		}
		model *= float64(max(n, 1))
	}
	data = max(world/model, 1)
	if n, ok := p.Parallel.ShardGroup.Get(); ok && n > 0 {
		data = float64(n)
	} else if n, ok := p.Parallel.Data.Get(); ok && n > 0 {
		data = float64(n) * float64(max(p.Parallel.Context.Or(1), 1))
	}
	return model * float64(max(p.Parallel.Expert.Or(1), 1)), data
}

func precisions(p *plan.Plan) []plan.Precision {
	if recipe, ok := p.Precision.Get(); ok {
		return []plan.Precision{recipe}
	}
	return []plan.Precision{plan.Pure16}
}

func shardings(p *plan.Plan) []plan.Sharding {
	if sharding, ok := p.Sharding.Get(); ok {
		return []plan.Sharding{sharding}
	}
	return []plan.Sharding{plan.NoSharding, plan.ZeRO3}
}

// statesOf is the size of the states of n parameters over a shard group.
func (j *job) statesOf(n, group float64, sharding plan.Sharding, b stateBytes) float64 {
	share := func(sharded bool) float64 {
		if sharded {
			return n / group
		}
		return n
	}
	weights := share(sharding.Weights()) * b.weight
	gradients := share(sharding.Gradients()) * b.gradient
	optimizer := share(sharding.States()) * (b.optimizer + b.master)
	if j.offloadOptimizer != plan.NoOffload {
		optimizer = 0
		if sharding.Gradients() {
			gradients = 0
		}
	}
	if j.offloadParam != plan.NoOffload {
		weights = 0
	}
	if j.inBackward {
		gradients = 0
	}
	return weights + gradients + optimizer
}

// unknownRanks stands for a number of ranks that nothing bounds.
const unknownRanks = 1 << 40

// LowerBound is what the device must have at least, bytes: the lower bound of the need when everything that the plan leaves
// open is as favourable as can be: sharded states, quantised adapters, full checkpointing, fused kernels, one sequence a
// micro-batch, parallel over all ranks. What the plan states, defaults of its dialect included, is respected. Offloading is not
// assumed, since every framework has to be asked for it. False where the model is not known.
func LowerBound(p *plan.Plan) (int64, bool) {
	best := int64(math.MaxInt64)
	for _, sharding := range []plan.Sharding{plan.NoSharding, plan.FSDP2} {
		open := *p
		fillOpen(&open, sharding)
		j, _, err := newJob(&open)
		if err != nil || j == nil {
			return 0, false
		}
		j = j.favourable()
		j.ungathered = !p.Sharding.Known()
		best = min(best, j.usage().Needed.Low)
	}
	return best, true
}

// fillOpen sets what is unknown to what needs the least. sharding is taken where none is stated.
func fillOpen(p *plan.Plan, sharding plan.Sharding) {
	const note = "the most favourable case"
	ranks := int64(unknownRanks)
	if n, ok := p.Parallel.World.Get(); ok && n > 0 {
		ranks = n
	}
	layoutOpen := !p.Parallel.Tensor.Known() || !p.Parallel.Pipeline.Known() || !p.Parallel.Context.Known()
	if layoutOpen && !p.Parallel.Context.Known() {
		// Ranks that share one sequence divide both its activations and, as a shard group, the states.
		fill(&p.Parallel.Context, ranks, note)
	} else if layoutOpen {
		fill(&p.Parallel.Tensor, ranks, note)
		fill(&p.Parallel.SequenceParallel, true, note)
	}
	fill(&p.Parallel.ShardGroup, p.Parallel.Data.Or(ranks), note)
	fill(&p.Parallel.Data, ranks, note)
	fill(&p.Sharding, sharding, note)
	fill(&p.Batch.SeqLength, 1, note)
	fill(&p.Batch.Micro, 1, note)
	if p.DType.Compute.Is(plan.Float32) {
		fill(&p.Precision, plan.FP32, note)
	}
	fill(&p.Precision, plan.Pure16, note)
	fill(&p.Checkpointing.Kind, plan.Full, note)
	fill(&p.Optimizer.Type, plan.SGD, note)
	fill(&p.Optimizer.Kernel, plan.Fused, note)
	fill(&p.Attention.Kernel, plan.Flash, note)
	fill(&p.Buckets.Reduce, 0, note)
	fill(&p.Buckets.MaxLive, 0, note)
	fill(&p.Buckets.GradientAsBucketView, true, note)
	if !p.LoRA.Rank.Known() {
		fill(&p.LoRA.Rank, 1, note)
		fill(&p.LoRA.Targets, plan.TargetQ, note)
		fill(&p.Quantization.Kind, plan.NF4Double, note)
	}
}

func fill[T comparable](v *plan.Value[T], favourable T, note string) {
	if !v.Known() {
		*v = plan.Default(favourable, note)
	}
}
