package memory

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/trainvet/trainvet/configs/catalog"
	"github.com/trainvet/trainvet/configs/plan"
)

// Option is a set of changes that keeps the global batch, and what the run is with them.
type Option struct {
	Changes    []Change
	PeakBytes  int64 // allocated
	NeedsBytes int64 // what the device must have
	Fits       bool
	Verdict    Verdict
	Throughput float64 // kept of today's, an estimate: 1 is unchanged
	Numerics   bool    // the changes touch what is computed, not only how
	Usage      *Usage
	Cost       Cost
}

// Change is one value of the plan that is set anew, by its dotted name.
type Change struct {
	Name     string
	From, To string
}

func (c Change) String() string { return fmt.Sprintf("%s %s -> %s", c.Name, c.From, c.To) }

// noteworthy is the share of today's need above which a change saves too little to be offered.
const noteworthy = 0.98

// maxOptions bounds the answer, and maxFaster that about a device with room to spare.
const (
	maxOptions = 8
	maxFaster  = 3
)

// Options searches for changes that make a plan fit the device, in the order of throughput kept: smaller micro-batches with
// more accumulation, activation checkpointing, a higher sharding stage, offloaded states, tensor and pipeline parallelism of a degree
// that divides model and ranks, sequence parallelism, smaller buckets, a fused loss, and last what changes the numbers: optimizer
// states in 8 bits, weights in 16. An option holds no change that it can do without. It is empty where the plan fits as it is, or
// cannot be estimated; where nothing fits, the option is the one with the lowest peak. The device given counts, not the one that the
// plan names.
func Options(p *plan.Plan, device *catalog.DeviceSpec) []Option { return OptionsOf(p, device, nil) }

// OptionsOf is Options among the changes that can be made; nil: all can.
func OptionsOf(p *plan.Plan, device *catalog.DeviceSpec, can func(Change) bool) []Option {
	today, _, err := newJob(p)
	if err != nil || today == nil || device == nil {
		return nil
	}
	today.device = device
	u := today.estimate()
	if Fit(u, device) == Fits {
		return nil
	}
	s := search{today: today, plan: p, device: device, perToken: today.secondsPerToken()}
	found := s.run(possible(s.axes(), can))
	less := noteworthy * float64(u.Needed.Bytes) // a tight run is not helped by what needs as much
	fitting := slices.DeleteFunc(slices.Clone(found), func(c candidate) bool { return !c.fits || c.needs > less })
	if len(fitting) == 0 {
		slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.peak, b.peak) })
		return s.options(found[:min(len(found), 1)])
	}
	slices.SortStableFunc(fitting, cheaper)
	return s.options(minimal(fitting, maxOptions))
}

// fullEnough is the share of the device above which there is little room to go faster.
const fullEnough = 0.60

// Faster searches for changes that use the room of a device that a plan leaves empty: larger micro-batches with less accumulation,
// less recomputation, a lower sharding stage, states on the device instead of the host. It is empty where the device is full enough, or
// nothing is faster.
func Faster(p *plan.Plan, device *catalog.DeviceSpec) []Option { return FasterOf(p, device, nil) }

// FasterOf is Faster among the changes that can be made; nil: all can.
func FasterOf(p *plan.Plan, device *catalog.DeviceSpec, can func(Change) bool) []Option {
	today, _, err := newJob(p)
	if err != nil || today == nil || device == nil {
		return nil
	}
	today.device = device
	u := today.estimate()
	if Fit(u, device) != Fits || fullness(u, device) >= fullEnough {
		return nil
	}
	s := search{today: today, plan: p, device: device, perToken: today.secondsPerToken(), up: true}
	found := s.run(possible([]axis{s.lessCheckpointing(), s.lessOffload(), s.lessSharding()}, can))
	found = slices.DeleteFunc(found, func(c candidate) bool { return !c.fits || c.tight || c.throughput < 1.005 })
	slices.SortStableFunc(found, cheaper)
	return s.options(minimal(found, maxFaster))
}

// cheaper orders candidates: what keeps more throughput first, what changes the numbers last.
func cheaper(a, b candidate) int {
	numbers := func(c candidate) int {
		if c.numerics {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(numbers(a), numbers(b)), -cmp.Compare(rounded(a.throughput), rounded(b.throughput)), cmp.Compare(len(a.taken), len(b.taken)),
		-cmp.Compare(a.throughput, b.throughput), cmp.Compare(a.needs, b.needs))
}

// rounded keeps differences that the cost model cannot tell out of the order.
func rounded(throughput float64) int { return int(throughput*200 + 0.5) }

// options makes whole options of candidates.
func (s *search) options(found []candidate) []Option {
	all := make([]Option, len(found))
	for i, c := range found {
		j := s.apply(c.taken)
		changes := j.changes
		if c.micro != j.job.micro {
			changes = merged(append(changes, s.microChanges(&j.job, c.micro)...))
			j.job.setMicro(c.micro)
		}
		j.job.resize()
		u := j.job.estimate()
		all[i] = Option{Changes: changes, PeakBytes: u.Peak.Bytes, NeedsBytes: u.Needed.Bytes, Fits: u.Needed.Bytes <= s.device.UsableBytes, Verdict: Fit(u, s.device),
			Throughput: j.job.keeps(s.perToken), Numerics: c.numerics, Usage: u, Cost: j.job.cost()}
	}
	return all
}

// merged makes one of several changes to a value.
func merged(changes []Change) []Change {
	var all []Change
	for _, c := range changes {
		if i := slices.IndexFunc(all, func(other Change) bool { return other.Name == c.Name }); i >= 0 {
			all[i].To = c.To
		} else {
			all = append(all, c)
		}
	}
	return slices.DeleteFunc(all, func(c Change) bool { return c.From == c.To })
}
