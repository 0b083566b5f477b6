package memory

import (
	"math"

	"github.com/trainvet/trainvet/configs/catalog"
	"github.com/trainvet/trainvet/configs/plan"
)

// What the cost model takes for granted. Nothing of it is measured on the user's machines, so that every figure of time is an estimate.
const (
	// Shares of the peak rate of arithmetic that training reaches, recomputation included. Published for Llama-3.1-8B on 8 H100: 37 %
	// compiled, 33 % not (torchtitan, benchmarks); on 8 MI300X 27 % (torchao, training benchmarks); about 33 % on an NPU.
	achievedCompiled = 0.40
	achievedEager    = 0.35
	achievedAMD      = 0.28
	achievedAscend   = 0.33
	// keptByAccumulation is what many small micro-batches keep of one large one: smaller matrix products, more launches.
	keptByAccumulation = 0.97
	// hides is the share of backward behind which communication of gradients and weights can hide.
	hides = 0.8
	// unhidden is the share of it that never does: the first gather, the last bucket.
	unhidden = 0.05

	usualNode      = 8    // devices of a node, where the plan does not say
	betweenNodes   = 25e9 // bytes per second and device, one direction: 200 Gb/s
	hostLink       = 25e9 // bytes per second between host and device: PCIe 4 x16
	hostMemory     = 12e9 // bytes per second of host memory for each device of a node: what the optimizer step on the CPU is bound by
	hostStepBytes  = 28   // read and written by that step for a parameter: fp32 weight, gradient and two states, 16-bit weight
	nominalTFLOPS  = 312  // of the device that stands in for an unknown one, so that plans can be compared
	nominalLinkGBs = 300
)

// Traffic is one kind of communication of a step.
type Traffic struct {
	Name    string
	Bytes   float64 // sent by a rank in one step
	Seconds float64
}

// Cost is what an optimizer step costs. All of it but FLOPs and bytes is an estimate.
type Cost struct {
	TokensPerStep float64 // over all ranks
	FLOPsPerToken float64 // of the model, without recomputation
	Recomputed    float64 // share of the forward pass that runs twice
	Bubble        float64 // share of the time that a pipeline stage waits
	Traffic       []Traffic
	Seconds       float64 // of a step; 0 where the rate of the device is not known
	PerSecond     float64 // tokens per second over all ranks; 0: not known
	MFU           float64 // share of the peak rate that the model's own FLOPs reach; 0: not known
}

// Bytes is what a rank sends in one step.
func (c *Cost) Bytes() float64 {
	sum := 0.0
	for _, t := range c.Traffic {
		sum += t.Bytes
	}
	return sum
}

// Price is the cost of a step of a plan; false where the plan cannot be estimated.
func Price(p *plan.Plan) (Cost, bool) {
	j, _, err := newJob(p)
	if err != nil || j == nil {
		return Cost{}, false
	}
	return j.cost(), true
}

// steps is the number of micro-batches of an optimizer step on one rank.
func (j *job) steps() float64 {
	if j.pipeline > 1 {
		return max(j.microBatches, j.accumulation)
	}
	return j.accumulation
}

// flopsPerToken counts multiplications and additions of one token: 6 for each parameter that it meets, 4 where the parameter is frozen,
// and 6LHs for causal attention (Narayanan et al., arXiv 2104.04473, appendix; half of its 12LHs).
func (j *job) flopsPerToken() float64 {
	parameters := float64(j.counts.Active)
	if j.lora != nil {
		return 4*parameters + 6*j.local.trainable*j.pipeline*j.tensor + 4*j.layers*j.queryDim*j.seq
	}
	return 6*parameters + 6*j.layers*j.queryDim*j.seq
}

// recomputed is the share of the forward pass that activation checkpointing runs again.
func (j *job) recomputed() float64 {
	switch j.checkpointing {
	case plan.Full, plan.EveryN:
		return 1
	case plan.AllButNth:
		return 1 - 1/max(j.every, 1)
	case plan.Half:
		return 0.5
	case plan.SelectiveOp:
		return 0.4
	case plan.SelectiveAttention:
		return 0.15
	}
	return 0
}

// rates are the speed of arithmetic, FLOP/s, and of the links inside of a node, bytes per second and direction.
func (j *job) rates() (flops, link float64, known bool) {
	flops, link = nominalTFLOPS*1e12, nominalLinkGBs*1e9
	if d := j.device; d != nil && max(d.BF16TFLOPS, d.FP16TFLOPS) > 0 {
		flops, known = max(d.BF16TFLOPS, d.FP16TFLOPS)*1e12, true
		if d.LinkGBs > 0 {
			link = d.LinkGBs * 1e9
		}
	}
	if j.precision == plan.FP32 {
		flops /= 8 // without TF32
	}
	return flops, link, known
}

// achieved is the share of the peak rate that arithmetic reaches.
func (j *job) achieved() float64 {
	share := achievedEager
	if j.compile || j.stack == plan.Megatron {
		share = achievedCompiled
	}
	if j.device != nil {
		switch j.device.Vendor {
		case "AMD":
			share = min(share, achievedAMD)
		case "Huawei":
			share = min(share, achievedAscend)
		}
	}
	return share
}

// linkOf is the rate of a group of so many ranks of which neighbours are stride ranks apart.
func (j *job) linkOf(link, group, stride float64) float64 {
	if group*stride <= j.nodeRanks {
		return link
	}
	return min(link, betweenNodes)
}

// cost adds up a step: tokens * FLOPs * (1 + r/3), with r the share of forward that is recomputed, since backward is twice forward
// (Korthikanti et al., arXiv 2205.05198, appendix A); what communication cannot hide; and the bubble (p-1)/(mv) of the pipeline.
func (j *job) cost() Cost {
	flops, link, known := j.rates()
	steps := j.steps()
	c := Cost{TokensPerStep: j.tokens * j.context * steps * j.data, FLOPsPerToken: j.flopsPerToken(), Recomputed: j.recomputed()}
	ranks := j.ranks()
	compute := c.TokensPerStep * c.FLOPsPerToken / ranks / (flops * j.achieved())
	time := compute * (1 + c.Recomputed/3) / (keptByAccumulation + (1-keptByAccumulation)/max(steps, 1))
	behind, inFront := j.traffic(&c, link, steps)
	time += inFront + max(behind*unhidden, behind-hides*2/3*time)
	if j.pipeline > 1 {
		bubble := (j.pipeline - 1) / (max(steps, 1) * max(j.virtualPipeline, 1))
		c.Bubble = bubble / (1 + bubble)
		time *= 1 + bubble
	}
	c.Seconds = time
	if known && time > 0 {
		c.PerSecond = c.TokensPerStep / time
		c.MFU = c.PerSecond * c.FLOPsPerToken / (ranks * flops)
	}
	return c
}

// traffic lists what a rank sends, and gives the seconds that hide behind arithmetic and those that do not. A ring sends (n-1)/n of what is
// gathered or scattered, and twice that of what is reduced everywhere (ZeRO, arXiv 1910.02054, section 7: 2 parameters' worth a step, and
// 3 where weights are sharded).
func (j *job) traffic(c *Cost, link, steps float64) (behind, inFront float64) {
	add := func(name string, bytes, rate float64, overlaps bool) {
		if bytes <= 0 {
			return
		}
		seconds := bytes / rate
		c.Traffic = append(c.Traffic, Traffic{name, bytes, seconds})
		if overlaps {
			behind += seconds
		} else {
			inFront += seconds
		}
	}
	if n := j.shard; n > 1 || j.data > 1 {
		n = max(n, j.data)
		ring, rate := (n-1)/n, j.linkOf(link, n, j.tensor)
		gradients := j.local.trainable * max(min(j.dtypes.gradient, 4), 2)
		if j.precision == plan.FSDPMixed || j.precision == plan.DeepSpeedMixed {
			gradients = j.local.trainable * 2
		}
		weights := j.local.all * j.gatherBytes()
		rounds := 1.0
		switch {
		case j.sharding.Weights():
			if !j.fsdp.NoSync.Or(false) {
				rounds = steps
			}
			gathers := 2.0
			if j.fsdp.ReshardAfterForward.Is(false) {
				gathers = 1
			}
			add("weights, all-gather", weights*ring*gathers*steps, rate, true)
			add("gradients, reduce-scatter", gradients*ring*rounds, rate, true)
		case j.sharding.States():
			if j.sharding == plan.ZeRO2 {
				rounds = steps
			}
			add("gradients, reduce-scatter", gradients*ring*rounds, rate, true)
			add("weights, all-gather", j.local.trainable*2*ring, rate, true)
		default:
			add("gradients, all-reduce", 2*gradients*ring, rate, true)
		}
	}
	hidden := j.tokens * j.hidden * j.element * steps
	if j.tensor > 1 {
		passes := 4 + 2*j.recomputed() // two of forward and two of backward, each an all-reduce or its two halves
		add("tensor parallel, all-reduce", 2*(j.tensor-1)/j.tensor*hidden*passes*j.stageLayers, j.linkOf(link, j.tensor, 1), false)
	}
	if j.context > 1 {
		add("context parallel, keys and values", 3*(j.context-1)*j.tokens*2*j.kvDim*j.element/j.tensor*steps*j.stageLayers, j.linkOf(link, j.context, j.tensor), true)
	}
	if j.model.Experts > 0 && j.expert > 1 {
		add("experts, all-to-all", 4*(j.expert-1)/j.expert*hidden*float64(j.model.ActiveExperts)/j.tensor*j.stageLayers, j.linkOf(link, j.expert, j.tensor), false)
	}
	if j.pipeline > 1 {
		add("pipeline, point to point", 2*hidden*max(j.virtualPipeline, 1)/j.tensor, j.linkOf(link, j.pipeline, j.tensor*j.data), true)
	}
	j.hostTraffic(add, steps)
	return behind, inFront
}

// hostTraffic is what offloading moves: gradients down and weights up with optimizer states on the host, where the CPU steps at the speed of
// its memory (ZeRO-Offload, arXiv 2101.06840); weights up for forward and backward of each micro-batch where they live there.
func (j *job) hostTraffic(add func(name string, bytes, rate float64, overlaps bool), steps float64) {
	own := j.local.trainable
	if j.sharding.States() {
		own /= j.shard
	}
	if j.offloadOptimizer != plan.NoOffload {
		rounds := 1.0
		if j.sharding == plan.ZeRO2 || j.sharding == plan.ZeRO3 {
			rounds = steps
		}
		add("host, gradients and weights", own*2*(rounds+1), hostLink, false)
		add("host, optimizer step", own*hostStepBytes, hostMemory, false)
	}
	if j.offloadParam != plan.NoOffload {
		add("host, weights", j.local.all/j.shard*j.gatherBytes()*2*steps, hostLink, true)
	}
}

// keeps is what the changed job keeps of the throughput of today's; 1: unchanged.
func (j *job) keeps(today float64) float64 {
	c := j.cost()
	if c.Seconds <= 0 || c.TokensPerStep <= 0 {
		return 1
	}
	kept := today / (c.Seconds / c.TokensPerStep)
	if math.IsNaN(kept) || math.IsInf(kept, 0) {
		return 1
	}
	return kept
}

// secondsPerToken is the time of a token of the whole run.
func (j *job) secondsPerToken() float64 {
	c := j.cost()
	if c.TokensPerStep <= 0 {
		return 0
	}
	return c.Seconds / c.TokensPerStep
}

// Train is what a number of tokens costs.
type Train struct {
	Tokens, FLOPs, Days float64 // Days 0: not known
}

// Train is the cost of training on so many tokens.
func (c *Cost) Train(tokens float64) Train {
	t := Train{Tokens: tokens, FLOPs: tokens * c.FLOPsPerToken}
	if c.PerSecond > 0 {
		t.Days = tokens / c.PerSecond / 86400
	}
	return t
}

// fullness is the share of the device that a run needs, at most 9.99.
func fullness(u *Usage, device *catalog.DeviceSpec) float64 {
	if u == nil || device == nil || device.UsableBytes <= 0 {
		return 0
	}
	return min(float64(u.Needed.Bytes)/float64(device.UsableBytes), 9.99)
}
