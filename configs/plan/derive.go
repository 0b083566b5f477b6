package plan

import (
	"math"
	"math/bits"
	"slices"

	"github.com/trainvet/trainvet/lint/source"
)

// Derive fills in unknown values that follow from known ones, until nothing more follows. A value that is known is never
// touched, not even where it disagrees: to say that is for rules. A quotient that is no whole number derives nothing.
func Derive(p *Plan) {
	for derive(p) {
	}
}

// derive is one round; it reports whether it added a value. Each round adds one at least, so that rounds are bounded by
// the number of values.
func derive(p *Plan) bool {
	before := known(p)
	deriveRanks(&p.Parallel)
	deriveBatch(p)
	deriveWarmup(&p.Schedule)
	derivePrecision(p)
	return known(p) != before
}

func known(p *Plan) int {
	n := 0
	for i := range fields {
		if fields[i].at(p).Known() {
			n++
		}
	}
	return n
}

// deriveRanks: world = nodes * devices per node = data * tensor * pipeline * context. Expert-parallel ranks lie inside of
// the data-parallel group and take no part.
func deriveRanks(r *Parallel) {
	quotient(&r.DevicesPerNode, "ranks / nodes", r.World, r.Nodes)
	quotient(&r.Nodes, "ranks / devices per node", r.World, r.DevicesPerNode)
	product(&r.World, "nodes * devices per node", r.Nodes, r.DevicesPerNode)
	quotient(&r.Data, "ranks / (tensor * pipeline * context parallel)", r.World, r.Tensor, r.Pipeline, r.Context)
	product(&r.World, "data * tensor * pipeline * context parallel", r.Data, r.Tensor, r.Pipeline, r.Context)
}

// deriveBatch: global = micro * accumulation * data. Under pipeline parallelism the micro-batches that fill the pipeline
// are the accumulation, unless they are given apart.
func deriveBatch(p *Plan) {
	b, r := &p.Batch, &p.Parallel
	quotient(&b.Global, "tokens of the global batch / sequence length", b.GlobalTokens, b.SeqLength)
	if stages, ok := r.Pipeline.Get(); ok && stages > 1 {
		product(&r.PipelineMicroBatches, "as many as accumulation steps", b.Accumulation)
	}
	passes := &b.Accumulation
	if r.PipelineMicroBatches.Known() && !b.Accumulation.Known() {
		passes = &r.PipelineMicroBatches
	}
	if n, ok := r.PipelineMicroBatches.Get(); ok && b.Accumulation.Is(1) && n > 1 && b.Accumulation.How() == IsDefault {
		passes = &r.PipelineMicroBatches
	}
	product(&b.Global, "micro-batch * accumulation * data parallel", b.Micro, *passes, r.Data)
	quotient(&b.Accumulation, "global batch / (micro-batch * data parallel)", b.Global, b.Micro, r.Data)
	quotient(&b.Micro, "global batch / (accumulation * data parallel)", b.Global, *passes, r.Data)
	product(&b.GlobalTokens, "global batch * sequence length", b.Global, b.SeqLength)
}

// deriveWarmup turns a ratio into optimizer steps, rounded up as HF does.
func deriveWarmup(s *Schedule) {
	ratio, ok := s.WarmupRatio.Get()
	total, ok2 := s.TotalSteps.Get()
	if !ok || !ok2 || s.Warmup.Known() || ratio < 0 || ratio > 1 {
		return
	}
	places := places(s.WarmupRatio, s.TotalSteps)
	s.Warmup = Derived(math.Ceil(ratio*float64(total)), places...).WithNote("warm-up ratio * steps")
	if !s.WarmupUnit.Known() {
		s.WarmupUnit = Derived(OptimizerSteps, places...)
	}
}

// derivePrecision finds the recipe from the dtypes and from who shards. A 16-bit compute dtype over parameters of the same
// dtype is the pure recipe only outside of DeepSpeed and Megatron, which keep fp32 masters whatever the model was loaded as.
func derivePrecision(p *Plan) {
	compute, ok := p.DType.Compute.Get()
	if !ok || p.Precision.Known() {
		return
	}
	set := func(recipe Precision, note string, from ...Fact) {
		p.Precision = Derived(recipe, places(append(from, p.DType.Compute)...)...).WithNote(note)
	}
	sharding, known := p.Sharding.Get()
	params, stated := p.DType.Params.Get()
	switch {
	case compute == Float32 && (!stated || params == Float32):
		set(FP32, "compute dtype fp32")
	case !compute.Is16() && compute != Float8, !known:
	case sharding.ZeRO():
		set(DeepSpeedMixed, "16-bit compute under DeepSpeed", p.Sharding)
	case sharding == MegatronDist, p.Stack.Is(Megatron):
		set(MegatronMixed, "16-bit compute under Megatron", p.Sharding, p.Stack)
	case stated && params.Is16():
		set(Pure16, "16-bit compute over 16-bit parameters", p.Sharding, p.DType.Params)
	case sharding.FSDP():
		set(FSDPMixed, "16-bit compute over sharded fp32 parameters", p.Sharding)
	default:
		set(Autocast, "16-bit compute over fp32 parameters", p.Sharding)
	}
}

// product sets an unknown value to the product of the factors, if all are known and nothing overflows.
func product(into *Value[int64], note string, factors ...Value[int64]) {
	if into.Known() {
		return
	}
	n, ok := multiply(factors)
	if ok {
		*into = Derived(n, placesOf(factors)...).WithNote(note)
	}
}

// quotient sets an unknown value to dividend / product of divisors, if all are known and it is a whole number from 1 on.
func quotient(into *Value[int64], note string, dividend Value[int64], divisors ...Value[int64]) {
	if into.Known() {
		return
	}
	n, ok := dividend.Get()
	d, ok2 := multiply(divisors)
	if ok && ok2 && d > 0 && n > 0 && n%d == 0 {
		*into = Derived(n/d, placesOf(append([]Value[int64]{dividend}, divisors...))...).WithNote(note)
	}
}

func multiply(factors []Value[int64]) (int64, bool) {
	n := uint64(1)
	for _, factor := range factors {
		v, ok := factor.Get()
		if !ok || v < 0 {
			return 0, false
		}
		hi, lo := bits.Mul64(n, uint64(v))
		if hi != 0 || lo > MaxCount {
			return 0, false
		}
		n = lo
	}
	return int64(n), true
}

func placesOf(values []Value[int64]) []source.Place {
	facts := make([]Fact, len(values))
	for i, v := range values {
		facts[i] = v
	}
	return places(facts...)
}

// places collects where the inputs stand, each place once.
func places(inputs ...Fact) []source.Place {
	var all []source.Place
	for _, input := range inputs {
		for _, place := range input.From() {
			if !slices.Contains(all, place) {
				all = append(all, place)
			}
		}
	}
	return all
}
