package memory

import (
	"fmt"
	"math"
	"slices"

	"github.com/trainvet/trainvet/configs/catalog"
	"github.com/trainvet/trainvet/configs/plan"
)

// search tries changes to a job.
type search struct {
	today    *job
	plan     *plan.Plan
	device   *catalog.DeviceSpec
	perToken float64 // seconds of a token today
	up       bool    // larger micro-batches instead of smaller ones
}

// axis is one kind of change; each setting is a way of making it.
type axis struct{ settings []setting }

type setting struct {
	apply    func(*job)
	changes  []Change
	numerics bool
}

// candidate is what was tried: settings, and the micro-batch that goes with them.
type candidate struct {
	taken       []*setting
	micro       float64
	peak, needs float64 // bytes
	fits, tight bool
	numerics    bool
	throughput  float64
}

// changed is a job with changes made.
type changed struct {
	job      job
	changes  []Change
	numerics bool
}

func (s *search) apply(taken []*setting) changed {
	c := changed{job: *s.today}
	for _, t := range taken {
		t.apply(&c.job)
		c.changes = append(c.changes, t.changes...)
		c.numerics = c.numerics || t.numerics
	}
	return c
}

// maxTaken bounds how many kinds of changes go together, besides the micro-batch.
const maxTaken = 3

// run tries every combination of up to maxTaken settings of different axes, each with the largest micro-batches that fit.
func (s *search) run(axes []axis) []candidate {
	var found []candidate
	var taken []*setting
	var visit func(from int)
	visit = func(from int) {
		found = s.try(found, taken)
		if len(taken) == maxTaken {
			return
		}
		for i := from; i < len(axes); i++ {
			for k := range axes[i].settings {
				next := &axes[i].settings[k]
				if next.numerics && slices.ContainsFunc(taken, func(t *setting) bool { return t.numerics }) {
					continue // one such change is enough to think about
				}
				taken = append(taken, next)
				visit(i + 1)
				taken = taken[:len(taken)-1]
			}
		}
	}
	visit(0)
	return found
}

// try adds the largest micro-batch that fits, the largest that fits with room to spare, and where none fits the smallest. Less
// memory goes with a smaller micro-batch, so that halving the range finds them.
func (s *search) try(found []candidate, taken []*setting) []candidate {
	c := s.apply(taken)
	var sizes [maxMicroSettings + 1]float64
	n := s.micros(&c.job, sizes[:])
	usable := float64(s.device.UsableBytes)
	at := func(i int) (needs, most, peak float64) {
		j := c.job
		j.setMicro(sizes[i])
		j.resize()
		peak, most = j.peak()
		return peak*unavoidableWaste + j.fixed(), most*unavoidableWaste + j.fixed(), peak
	}
	roomy := func(needs, most, _ float64) bool { return needs <= tightShare*usable && most <= usable }
	first := func(enough func(needs, most, peak float64) bool) int {
		low, high := 0, n
		for low < high {
			if middle := (low + high) / 2; enough(at(middle)) {
				high = middle
			} else {
				low = middle + 1
			}
		}
		return low
	}
	add := func(i int) {
		needs, most, peak := at(i)
		if len(taken) == 0 && sizes[i] == s.today.micro {
			return // today's
		}
		j := c.job
		j.setMicro(sizes[i])
		j.resize()
		found = append(found, candidate{taken: append([]*setting(nil), taken...), micro: sizes[i], peak: peak, needs: needs, fits: needs <= usable,
			tight: !roomy(needs, most, peak), numerics: c.numerics, throughput: j.keeps(s.perToken)})
	}
	largest := first(func(needs, _, _ float64) bool { return needs <= usable })
	if largest == n {
		add(n - 1)
		return found
	}
	add(largest)
	if spacious := first(roomy); spacious != largest && spacious < n {
		add(spacious)
	}
	return found
}

// peak is the largest phase, and its upper bound, bytes.
func (j *job) peak() (peak, most float64) {
	s := j.states()
	for _, ph := range j.phases(s, j.activations(), j.gathered()) {
		peak = max(peak, ph.parts.Sum())
	}
	return peak, float64(j.peakRange(peak, s.weights+s.optimizer).High)
}

// fixed is what a process needs besides its tensors.
func (j *job) fixed() float64 {
	context := float64(catalog.DefaultContextBytes)
	if j.device != nil {
		context = float64(j.device.ContextBytes)
	}
	return context + j.communication()
}

// setMicro sets the micro-batch and keeps the global batch.
func (j *job) setMicro(micro float64) {
	steps := math.Round(j.micro * j.steps() / micro)
	j.setSteps(steps)
	j.micro = micro
}

// setSteps sets the number of micro-batches of an optimizer step.
func (j *job) setSteps(steps float64) {
	j.microBatches = steps
	if j.pipeline <= 1 || j.accumulation > 1 {
		j.accumulation = steps
	}
}

// Bounds of the search over micro-batches.
const (
	maxMicro         = 1024 // sequences
	maxMicroSettings = 12
)

// micros lists micro-batches from large to small that divide the sequences of a rank's step: today's and smaller ones, or larger ones
// down to today's.
func (s *search) micros(j *job, into []float64) int {
	sequences := int64(j.micro * j.steps())
	micro := int64(j.micro)
	n := 0
	if j.sharding == plan.FSDP1 && j.offloadParam != plan.NoOffload {
		into[0] = float64(sequences) // no accumulation
		return 1
	}
	if s.up {
		for m := min(sequences, maxMicro); m >= micro && n < len(into); m-- {
			if sequences%m == 0 {
				into[n] = float64(m)
				n++
			}
		}
	} else {
		into[0], n = float64(micro), 1
		for m := min(micro-1, maxMicro); m >= 1 && n < len(into); m-- {
			if sequences%m == 0 {
				into[n] = float64(m)
				n++
			}
		}
	}
	if n == 0 {
		into[0], n = float64(micro), 1
	}
	return n
}

// microChanges are the changes that give a job this micro-batch.
func (s *search) microChanges(j *job, micro float64) []Change {
	name, was := "batch.accumulation", s.today.steps()
	if s.plan.Parallel.PipelineMicroBatches.How() > plan.IsDerived {
		name = "parallel.pipeline_micro_batches"
	}
	after := *j
	after.setMicro(micro)
	return []Change{{"batch.micro", whole64(s.today.micro), whole64(micro)}, {name, whole64(was), whole64(after.steps())}}
}

func whole64(x float64) string { return fmt.Sprint(int64(x)) }

// minimal takes candidates in their order, without those that hold a change they can do without: another one takes a part of their
// settings, has no smaller micro-batch and keeps as much throughput.
func minimal(found []candidate, most int) []candidate {
	var kept []candidate
	better := func(a, b *candidate) bool {
		if len(a.taken) > len(b.taken) || a.micro < b.micro || rounded(a.throughput) < rounded(b.throughput) || a.tight && !b.tight {
			return false
		}
		na, nb := 0, 0
		for _, t := range b.taken {
			nb += len(t.changes)
		}
		for _, t := range a.taken {
			na += len(t.changes)
			for _, c := range t.changes {
				if !slices.ContainsFunc(b.taken, func(other *setting) bool { return slices.Contains(other.changes, c) }) {
					return false
				}
			}
		}
		return na < nb || a.micro > b.micro
	}
	for i := range found {
		spare := false
		for k := range found {
			if k != i && better(&found[k], &found[i]) {
				spare = true
				break
			}
		}
		if !spare {
			if kept = append(kept, found[i]); len(kept) == most {
				break
			}
		}
	}
	return kept
}
