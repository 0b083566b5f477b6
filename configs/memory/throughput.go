package memory

import "github.com/trainvet/trainvet/configs/plan"

// Costs of a change in throughput, as the share that is kept.
const (
	// keptByAccumulation: smaller matrix products, and all-gathers repeated for each micro-batch.
	keptByAccumulation = 0.97
	// keptByFullSharding: gathering weights moves 3 parameters' worth a step instead of 2 (arXiv 1910.02054, section 7); most
	// of the difference overlaps.
	keptByFullSharding = 0.95
	// keptByOffload: states cross the host link and the CPU steps (arXiv 2101.06840).
	keptByOffload = 0.80
	// keptBySync: gradients are reduced after each micro-batch instead of once a step.
	keptBySync = 0.98
)

// recomputed is the share of the forward pass that activation checkpointing runs again.
func (j *job) recomputed() float64 {
	switch j.checkpointing {
	case plan.Full, plan.EveryN:
		return 1
	case plan.Half:
		return 0.5
	case plan.SelectiveOp:
		return 0.4
	case plan.SelectiveAttention:
		return 0.15
	}
	return 0
}

// throughput is what the changed job keeps of the throughput of today's. A step costs tokens * (6P + 6LHs) * (1 + r/3), with r
// the share of forward that is recomputed: backward is twice forward (Korthikanti et al., arXiv 2205.05198, appendix A).
func (j *job) throughput(today *job) float64 {
	kept := (1 + today.recomputed()/3) / (1 + j.recomputed()/3)
	if j.accumulation > today.accumulation {
		kept *= keptByAccumulation
	}
	if j.sharding.Weights() && !today.sharding.Weights() {
		kept *= keptByFullSharding
	}
	if j.offloadOptimizer != plan.NoOffload && today.offloadOptimizer == plan.NoOffload {
		kept *= keptByOffload
	}
	if today.fsdp.NoSync.Or(false) && !j.fsdp.NoSync.Or(false) {
		kept *= keptBySync
	}
	return kept
}
