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
	if m == nil {
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
