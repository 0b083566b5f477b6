package memory

import (
	"math"

	"github.com/trainvet/trainvet/configs/plan"
)

// offloadedKept is the share of offloaded activations that is still on the device: about two layers of 40 in flight.
const offloadedKept = 0.05

// activations are what the layers of a stage keep, and what the segment that is in backward needs besides, bytes.
type activations struct {
	saved, segment float64
	boundary       float64 // input of one layer
	layer          float64 // one layer without checkpointing
	transient      float64
}

// activations applies activation checkpointing and the pipeline schedule.
//
//	none       saved = L*layer                     segment = gradients of one layer
//	full       saved = L*boundary                  segment = one recomputed layer + its gradients
//	every n    saved = L/n*boundary                segment = n layers + gradients
//	all but nth saved = L/n*layer + (L-L/n)*boundary, segment as full
//	half       saved = L/2*(boundary + layer)      segment = as full
//	selective  saved = L*(layer without what is recomputed)
//
// (Chen et al., arXiv 1604.06174; Korthikanti et al., arXiv 2205.05198, section 4). The segment is what simple formulas
// forget: at long sequences one recomputed LLaMA layer is 25 boundaries.
func (j *job) activations() activations {
	b := j.layer()
	layers := j.stageLayers
	act := activations{layer: j.bytes(b), boundary: j.tokens * b.boundary}
	if j.sequenceParallel {
		act.boundary /= j.tensor
	}
	if j.actOffload {
		act.boundary *= offloadedKept
	}
	act.transient = j.tokens * (b.transient + b.transientScores*j.seq) / j.tensor
	inFlight := j.inFlight()
	switch j.checkpointing {
	case plan.Full:
		act.saved = layers * act.boundary * inFlight
		act.segment = act.layer + act.transient
		if j.sharding == plan.FSDP1 && j.lora != nil && j.stack == plan.HF {
			// Measured on HF with frozen FSDP1 weights: all boundaries but two stay twice. The mechanism is not known.
			act.segment += act.saved * max(layers-2, 0) / layers
		}
		if j.stack == plan.Torchtitan && j.tensor > 1 {
			act.segment += j.tokens * 2 * j.element * j.hidden // gathered inputs of column-parallel layers (DTensor)
		}
	case plan.EveryN:
		act.saved = layers / j.every * act.boundary * inFlight
		act.segment = j.every*act.layer + act.transient
	case plan.AllButNth:
		stored := math.Ceil(layers / j.every) // layer 0 and each n-th after it
		act.saved = (stored*act.layer + (layers-stored)*act.boundary) * inFlight
		act.segment = act.transient
		if layers > stored {
			act.segment += act.layer
		}
	case plan.Half:
		act.saved = layers / 2 * (act.boundary + act.layer) * inFlight
		act.segment = act.layer + act.transient
	case plan.SelectiveOp:
		kept := j.tokens * b.selective / j.tensor
		act.saved = layers * kept
		act.segment = max(0, act.layer-kept) + act.transient
	case plan.SelectiveAttention:
		without := b
		without.scores = 0
		kept := j.bytes(without)
		act.saved = layers * kept * inFlight
		act.segment = act.layer - kept + act.transient
	default:
		act.saved = layers * act.layer * inFlight
		act.segment = act.transient
	}
	return act
}

// inFlight is the number of micro-batches whose activations the first stage holds: under the 1F1B schedule as many as there
// are stages (so that pipelining saves it no activations), under the interleaved one 1 + (p-1)/(p*v) times that
// (arXiv 2104.04473, section 2.2).
func (j *job) inFlight() float64 {
	if j.pipeline <= 1 {
		return 1
	}
	n := min(j.pipeline, j.microBatches)
	if j.virtualPipeline > 1 {
		n *= 1 + (j.pipeline-1)/(j.pipeline*j.virtualPipeline)
	}
	return n
}

// inFlightLast is that number on the last stage: one under 1F1B; under the interleaved schedule each of its v-1 first chunks has
// run p micro-batches before its last chunk starts (Megatron-core, pipeline_parallel/schedules.py, warm-up micro-batches).
func (j *job) inFlightLast() float64 {
	if j.pipeline <= 1 || j.virtualPipeline <= 1 {
		return 1
	}
	return ((j.virtualPipeline-1)*min(j.pipeline, j.microBatches) + 1) / j.virtualPipeline
}
