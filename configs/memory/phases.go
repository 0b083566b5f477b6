package memory

import "github.com/trainvet/trainvet/configs/plan"

// The names of the phases of a step.
const (
	PhaseLoad      = "load"    // weights, and of a sharded model the unit that is being sharded
	PhaseLoss      = "loss"    // end of forward: all that is saved, and the logits
	PhaseSegment   = "segment" // backward of the last layer, or of the last checkpointed segment
	PhaseLastStage = "last_stage"
	PhaseBackward  = "backward_end" // all gradients are there
	PhaseStep      = "step"         // optimizer step
)

// Parts is a breakdown of memory, bytes.
type Parts struct {
	Weights     float64
	Gathered    float64 // unsharded weights and 16-bit copies of weights
	Gradients   float64
	Optimizer   float64
	Activations float64
	Logits      float64
	Buffers     float64 // communication buckets
	Temporaries float64 // of the optimizer step and of single gradients
}

// Sum is the total.
func (p Parts) Sum() float64 {
	return p.Weights + p.Gathered + p.Gradients + p.Optimizer + p.Activations + p.Logits + p.Buffers + p.Temporaries
}

// phase is the memory that is allocated at one point of a step.
type phase struct {
	name  string
	parts Parts
}

// phases gives the points at which memory can peak. The peak is the largest of them, not their sum: a sum over-predicts small
// batches, states alone under-predict large ones.
func (j *job) phases(s states, act activations, g gathered) []phase {
	logits, final, cast := j.logits(), j.finalNorm(), j.castWeights()
	persist := Parts{Weights: s.weights, Optimizer: s.optimizer}
	gradients := j.persistentGradients(s)
	all := s.gradients
	if j.inBackward {
		all = 0
	}

	loss := persist
	loss.Gradients = gradients
	loss.Gathered = g.root + cast
	switch {
	case j.sharding.Weights():
		loss.Gathered += g.final
	case g.ddp:
		loss.Buffers = g.live // the reducer keeps its buckets from its construction on
	}
	unpacked, unpackedHead := j.dequantized()
	loss.Temporaries = unpackedHead + j.workspace()
	loss.Activations = act.saved + final
	if j.pipeline <= 1 {
		loss.Logits = logits
	}

	segment := persist
	segment.Gradients = gradients
	if !j.inBackward {
		segment.Gradients = max(gradients, s.gradients/max(j.layers, 1))
	}
	segment.Gathered = g.root + cast
	segment.addLive(j, g.live)
	segment.Temporaries = unpacked + j.workspace()
	segment.Activations = act.saved + act.segment + final/2

	backward := persist
	backward.Gradients = max(all, gradients)
	backward.Temporaries = j.embeddingGradient() + j.workspace()
	if j.sharding.FSDP() {
		backward.Gathered = g.root
	}
	if !j.sharding.Weights() {
		backward.Buffers = g.live
	}
	backward.Activations = act.boundary + act.segment/2

	step := persist
	step.Gradients = all
	step.Temporaries = j.workspace()
	if !j.inBackward {
		step.Temporaries += j.stepTemporaries()
	}
	if g.ddp {
		step.Buffers = g.live
	}

	load := Parts{Weights: s.weights, Gathered: g.root}
	if j.sharding.Weights() {
		load.Gathered = max(g.root, j.local.layer*j.gatherBytes())
	}

	phases := []phase{{PhaseLoad, load}, {PhaseLoss, loss}, {PhaseSegment, segment}, {PhaseBackward, backward}, {PhaseStep, step}}
	if j.pipeline > 1 {
		phases = append(phases, phase{PhaseLastStage, j.lastStage(s, act, logits, final, gradients)})
	}
	return phases
}

func (p *Parts) addLive(j *job, live float64) {
	if j.sharding.Weights() {
		p.Gathered += live
	} else {
		p.Buffers += live
	}
}

// lastStage is the last pipeline stage: fewer micro-batches in flight, but the logits.
func (j *job) lastStage(s states, act activations, logits, final, gradients float64) Parts {
	share := (j.local.body + j.local.head) / j.local.all
	return Parts{Weights: share * s.weights, Optimizer: share * s.optimizer, Gradients: share * gradients, Temporaries: j.workspace(),
		Activations: act.saved*j.inFlightLast()/j.inFlight() + final, Logits: logits}
}

// unreducedBytes is the size of one gradient that no_sync leaves unreduced: whole gradients gather on every rank, in FSDP1 in the
// type of the unsharded weights (_runtime_utils.py, _post_backward_hook returns before the cast to the type of reduction), in
// FSDP2 in that type (_fsdp_param.py, to_accumulated_grad_if_needed).
func (j *job) unreducedBytes() float64 {
	if j.sharding == plan.FSDP2 && j.reduceElement > 0 {
		return j.reduceElement
	}
	if j.precision == plan.FSDPMixed {
		return 2
	}
	return j.dtypes.gradient
}

// persistentGradients are gradients that exist during forward: those of earlier micro-batches under accumulation, and always
// where they live in buffers of their own (Megatron, DeepSpeed's BF16_Optimizer, DDP's buckets).
func (j *job) persistentGradients(s states) float64 {
	switch {
	case j.inBackward:
		return 0
	case j.accumulation > 1 && j.sharding.FSDP() && j.shard > 1 && j.fsdp.NoSync.Or(false):
		return j.local.trainable * j.unreducedBytes()
	case j.sharding == plan.ZeRO3 && j.offloadOptimizer == plan.NoOffload:
		return s.gradients // one flat buffer from the first step on (stage3.py, grad_partitions_flat_buffer)
	case j.accumulation > 1, j.precision == plan.MegatronMixed, j.precision == plan.DeepSpeedBF16Optimizer,
		j.sharding == plan.DDP && j.buckets.GradientAsBucketView.Or(false):
		return s.gradients
	}
	return 0
}
