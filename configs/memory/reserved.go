package memory

import "github.com/trainvet/trainvet/configs/plan"

// defaultHCCLBufferMB is the default of HCCL_BUFFSIZE, MB; each communicator has two such buffers.
const defaultHCCLBufferMB = 200

// communicationBytes is what NCCL keeps on a rank of several, 0.75 GiB: between 0.3 and 1 GiB were seen.
const communicationBytes = 3 << 30 / 4

// fragmentation is what the caching allocator reserves over what is allocated, for memory that comes and goes. Fitted on 284
// runs that report both: expandable segments and stacks with equal shapes in every step waste little; on HF it is the blocks of
// the logits that later requests leave unused, so that a loss without logits wastes little too, and FSDP's streams add to it.
func (j *job) fragmentation() float64 {
	switch {
	case j.expandable, j.stack == plan.Torchtitan, j.stack == plan.Torchtune:
		return 1.05
	case j.stack != plan.HF && j.stack != plan.HFBert:
		return 1.10
	case j.sharding.FSDP() && j.lora == nil:
		return 1.6
	case j.loss == plan.FusedLinear && j.sharding.FSDP():
		return 1.21
	case j.loss == plan.FusedLinear && !j.sharding.ZeRO():
		return 1.11
	case j.loss == plan.Inplace && j.sharding == plan.NoSharding:
		return 1.45
	}
	return 1.30
}

// reserved is what the allocator holds in the course of a step: states do not fragment. DeepSpeed steps on a flat fp32 copy of the
// gradients that no block cached in backward is large enough for, so that both are held; the 16-bit one before it finds a block
// there, though none among those of weights that were gathered.
func (j *job) reserved(allocated, static float64, phases []phase) float64 {
	static = min(allocated, static)
	reserved := static*1.01 + (allocated-static)*j.fragmentation()
	if j.precision == plan.DeepSpeedMixed && j.sharding.ZeRO() {
		step, backward, gathered := 0.0, 0.0, 0.0
		for _, ph := range phases {
			gathered = max(gathered, ph.parts.Gathered)
			if moving := ph.parts.Sum() - static; ph.name == PhaseStep {
				step = ph.parts.Temporaries
			} else if moving > backward {
				backward = moving
			}
		}
		n, flat, _ := j.partition(j.local.trainable / j.shard)
		reserved = max(reserved, static*1.01+step-n*flat+backward*j.fragmentation(), static*1.01+(step+gathered)*j.fragmentation())
	}
	return reserved
}

// ranks is the number of ranks that communicate with this one.
func (j *job) ranks() float64 { return j.data * j.tensor * j.pipeline * j.context }

// communication is what the collective library keeps on this rank, bytes. HCCL keeps two buffers of HCCL_BUFFSIZE for each
// communicator (CANN environment variables reference, HCCL_BUFFSIZE): one of all ranks, and one of each parallel group.
func (j *job) communication() float64 {
	if j.ranks() <= 1 {
		return 0
	}
	if j.device == nil || !j.device.Ascend() {
		return communicationBytes
	}
	communicators := 1.0
	for _, group := range [...]float64{j.data, j.tensor, j.pipeline, j.context, j.expert} {
		if group > 1 {
			communicators++
		}
	}
	return communicators * 2 * j.hcclBufferMB * (1 << 20)
}

// spread is how far measured runs lie from the estimate: shares of what comes and goes, and of the whole peak. A test holds
// that nine in ten measured runs lie between the bounds.
type spread struct{ moving, whole float64 }

// spreads are the bounds below and above. HF's block is known best; above, settings that a plan cannot hold add most.
func (j *job) spreads() (below, above spread) {
	if j.stack == plan.HF || j.stack == plan.HFBert {
		return spread{moving: 0.10}, spread{moving: 0.35, whole: 0.08}
	}
	return spread{moving: 0.25, whole: 0.03}, spread{moving: 0.35, whole: 0.12}
}

// peakRange puts bounds around the allocated peak; never below what the states alone take.
func (j *job) peakRange(peak, static float64) Range {
	moving := peak - min(static, peak)
	below, above := j.spreads()
	return Range{
		Bytes: whole(peak),
		Low:   whole(max(peak-below.moving*moving-below.whole*peak, min(static, peak))),
		High:  whole(peak + above.moving*moving + above.whole*peak),
	}
}

// unavoidableWaste is what the allocator needs over what is allocated, at least: its cache is given back before an allocation
// fails, the gaps inside of segments are not.
const unavoidableWaste = 1.03
