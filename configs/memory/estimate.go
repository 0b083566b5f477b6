// Package memory computes the peak device memory of a training run, per rank, from its plan alone: nothing is run.
//
// The estimate is a maximum over the phases of a step, each with its own parts. Formulas state their source; those that were
// fitted to measured runs say so. testdata/measured.json holds the measured runs, and a test holds the error against them.
// GB is 1e9 bytes and GiB 2^30 throughout.
package memory

import (
	"math"

	"github.com/trainvet/trainvet/configs/catalog"
	"github.com/trainvet/trainvet/configs/plan"
)

// Usage is the memory of the most loaded rank.
type Usage struct {
	Model      *catalog.ModelSpec
	Device     *catalog.DeviceSpec // nil where the plan names none
	Parameters int64               // on this rank, before sharding over data-parallel ranks
	Trainable  int64

	Peak     Range  // allocated by tensors (max_memory_allocated)
	Phase    string // where the peak is
	Reserved int64  // held by the allocator (max_memory_reserved)
	Total    Range  // seen from outside (nvidia-smi, npu-smi): with context and communication buffers
	Needed   Range  // what the device must have: the cache is given back before an allocation fails
	Static   int64  // states that are there at every moment of a step; never an over-estimate

	Context       int64 // of the process on the device
	Communication int64
	Phases        []Phase
	Parts         Bytes    // of the peak
	Assumed       []string // dotted names of values that were not stated, for which the common case was taken
	Open          Missing  // facts about the software that were not stated; the bounds cover every case of them
}

// Range is an estimate with the bounds between which about nine in ten measured runs lie, bytes.
type Range struct{ Bytes, Low, High int64 }

// Phase is one point of a step at which memory can peak.
type Phase struct {
	Name  string
	Bytes int64
	Parts Bytes
}

// Bytes is a breakdown in whole bytes.
type Bytes struct {
	Weights     int64 `json:"weights"`
	Gathered    int64 `json:"gathered"` // unsharded weights and 16-bit copies of weights
	Gradients   int64 `json:"gradients"`
	Optimizer   int64 `json:"optimizer"`
	Activations int64 `json:"activations"`
	Logits      int64 `json:"logits"`
	Buffers     int64 `json:"buffers"` // communication buckets of the framework
	Temporaries int64 `json:"temporaries"`
}

// Estimate computes the memory of a plan. Where a fact is missing without which there is no estimate, usage is nil and missing
// names it. The error is of a model or device that the catalogue does not know.
func Estimate(p *plan.Plan) (usage *Usage, missing Missing, err error) {
	j, missing, err := newJob(p)
	if j == nil {
		return nil, missing, err
	}
	return j.estimate(), nil, nil
}

// estimate is the usage with bounds that cover the facts that are open.
func (j *job) estimate() *Usage {
	u := j.usage()
	u.Assumed, u.Open = j.assumed, j.open
	if len(j.open) > 0 || j.likely != (likely{}) {
		low, high := j.favourable().usage(), j.adverse().usage()
		u.Peak.widen(low.Peak, high.Peak)
		u.Total.widen(low.Total, high.Total)
		u.Needed.widen(low.Needed, high.Needed)
	}
	return u
}

func (r *Range) widen(low, high Range) {
	r.Low, r.High = min(r.Low, low.Low), max(r.High, high.High)
}

// usage runs all formulas.
func (j *job) usage() *Usage {
	s, act, g := j.states(), j.activations(), j.gathered()
	phases := j.phases(s, act, g)
	u := &Usage{Model: j.model, Device: j.device, Parameters: whole(j.local.all), Trainable: whole(j.local.trainable), Phases: make([]Phase, len(phases))}
	peak := 0.0
	for i, ph := range phases {
		size := ph.parts.Sum()
		u.Phases[i] = Phase{ph.name, whole(size), ph.parts.bytes()}
		if size > peak {
			peak, u.Phase, u.Parts = size, ph.name, u.Phases[i].Parts
		}
	}
	static := s.weights + s.optimizer
	u.Static = whole(static)
	if u.Phase == PhaseStep || u.Phase == PhaseBackward || j.persistentGradients(s) > 0 {
		if !j.inBackward {
			static += s.gradients
		}
	}
	reserved := j.reserved(peak, static, phases)
	context := float64(catalog.DefaultContextBytes)
	if j.device != nil {
		context = float64(j.device.ContextBytes)
	}
	communication := j.communication()
	u.Reserved, u.Context, u.Communication = whole(reserved), whole(context), whole(communication)
	u.Peak = j.peakRange(peak, static)
	fixed := context + communication
	u.Needed = Range{whole(peak*unavoidableWaste + fixed), whole(float64(u.Peak.Low)*unavoidableWaste + fixed), whole(float64(u.Peak.High)*unavoidableWaste + fixed)}
	u.Total = Range{whole(reserved + fixed), whole(float64(u.Peak.Low) + fixed), whole(float64(u.Peak.High) + reserved - peak + fixed)}
	return u
}

func (p Parts) bytes() Bytes {
	return Bytes{whole(p.Weights), whole(p.Gathered), whole(p.Gradients), whole(p.Optimizer), whole(p.Activations), whole(p.Logits), whole(p.Buffers),
		whole(p.Temporaries)}
}

// whole rounds to bytes, within int64.
func whole(x float64) int64 {
	if !(x > 0) {
		return 0
	}
	return int64(math.Min(math.Round(x), 1<<62))
}
