package memory

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/trainvet/trainvet/configs/catalog"
	"github.com/trainvet/trainvet/configs/plan"
)

// Option is a set of changes that lowers the peak and keeps the global batch.
type Option struct {
	Changes    []Change
	PeakBytes  int64 // allocated
	NeedsBytes int64 // what the device must have
	Fits       bool
	Verdict    Verdict
	Throughput float64 // kept of today's, an estimate: 1 is unchanged
}

// Change is one value of the plan that is set anew, by its dotted name.
type Change struct {
	Name     string
	From, To string
}

func (c Change) String() string { return fmt.Sprintf("%s %s -> %s", c.Name, c.From, c.To) }

// maxOptions bounds the answer.
const maxOptions = 8

// Options searches for changes that make a plan fit the device, in the order of throughput kept: smaller micro-batches with
// more accumulation, activation checkpointing, a higher sharding stage, offloaded optimizer states, smaller buckets, a fused
// loss. An option holds no change that it can do without. It is empty where the plan fits as it is, or cannot be estimated;
// where nothing fits, the options are those with the lowest peak. The device given counts, not the one that the plan names.
func Options(p *plan.Plan, device *catalog.DeviceSpec) []Option {
	today, _, err := newJob(p)
	if err != nil || today == nil || device == nil {
		return nil
	}
	today.device = device
	if Fit(today.estimate(), device) == Fits {
		return nil
	}
	found := today.search(device)
	fitting := slices.DeleteFunc(slices.Clone(found), func(c candidate) bool { return !c.option.Fits })
	if len(fitting) == 0 {
		slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.option.PeakBytes, b.option.PeakBytes) })
		return options(found[:min(len(found), 1)])
	}
	fitting = minimal(fitting)
	slices.SortStableFunc(fitting, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.option.Throughput, a.option.Throughput), cmp.Compare(a.changed(), b.changed()),
			cmp.Compare(a.option.NeedsBytes, b.option.NeedsBytes))
	})
	return options(fitting[:min(len(fitting), maxOptions)])
}

func options(found []candidate) []Option {
	all := make([]Option, len(found))
	for i, c := range found {
		all[i] = c.option
	}
	return all
}

// axis is one kind of change with its settings; setting 0 leaves today's.
type axis struct{ settings []setting }

type setting struct {
	apply   func(*job)
	changes []Change
}

// candidate is one setting of each axis, with what it gives.
type candidate struct {
	at     []int
	option Option
}

func (c candidate) changed() int {
	n := 0
	for _, i := range c.at {
		if i > 0 {
			n++
		}
	}
	return n
}

// microAxisIndex is the axis whose settings go further away from today's one by one.
const microAxisIndex = 0

// search tries every combination of settings.
func (j *job) search(device *catalog.DeviceSpec) []candidate {
	axes := []axis{j.microAxis(), j.checkpointingAxis(), j.shardingAxis(), j.offloadAxis(), j.bucketAxis(), j.lossAxis(), j.syncAxis()}
	var found []candidate
	at := make([]int, len(axes))
	for {
		changed := *j
		var changes []Change
		for i, a := range axes {
			if at[i] > 0 {
				s := a.settings[at[i]-1]
				s.apply(&changed)
				changes = append(changes, s.changes...)
			}
		}
		if len(changes) > 0 {
			changed.setModel(changed.model)
			u := changed.estimate()
			found = append(found, candidate{slices.Clone(at), Option{
				Changes: changes, PeakBytes: u.Peak.Bytes, NeedsBytes: u.Needed.Bytes,
				Fits: u.Needed.Bytes <= device.UsableBytes, Verdict: Fit(u, device), Throughput: changed.throughput(j),
			}})
		}
		next := 0
		for ; next < len(axes); next++ {
			if at[next]++; at[next] <= len(axes[next].settings) {
				break
			}
			at[next] = 0
		}
		if next == len(axes) {
			return found
		}
	}
}

// minimal drops each candidate that holds a change it can do without: another one goes less far on every axis, fits as well
// and keeps as much throughput.
func minimal(found []candidate) []candidate {
	better := func(a, b candidate) bool {
		closer := false
		for i := range a.at {
			if a.at[i] == b.at[i] {
				continue
			}
			if a.at[i] != 0 && (i != microAxisIndex || a.at[i] > b.at[i]) {
				return false
			}
			closer = true
		}
		return closer && a.option.Throughput >= b.option.Throughput && (a.option.Verdict == Fits || b.option.Verdict != Fits)
	}
	return slices.DeleteFunc(slices.Clone(found), func(b candidate) bool {
		return slices.ContainsFunc(found, func(a candidate) bool { return better(a, b) })
	})
}

// Bounds of the search over micro-batches.
const (
	maxMicro         = 1024 // sequences
	maxMicroSettings = 12
)

// microAxis trades micro-batch for accumulation at the same global batch, from the largest micro-batch down.
func (j *job) microAxis() axis {
	var a axis
	steps := int64(j.accumulation)
	if j.pipeline > 1 {
		steps = int64(j.microBatches)
	}
	micro := int64(j.micro)
	name := "batch.accumulation"
	if j.pipeline > 1 {
		name = "parallel.pipeline_micro_batches"
	}
	for m := min(micro-1, maxMicro); m >= 1 && len(a.settings) < maxMicroSettings; m-- {
		if micro*steps%m != 0 {
			continue
		}
		more := micro * steps / m
		a.settings = append(a.settings, setting{
			apply: func(c *job) {
				c.micro = float64(m)
				c.microBatches = float64(more)
				if c.pipeline <= 1 || c.accumulation > 1 {
					c.accumulation = float64(more)
				}
			},
			changes: []Change{{"batch.micro", fmt.Sprint(micro), fmt.Sprint(m)}, {name, fmt.Sprint(steps), fmt.Sprint(more)}},
		})
	}
	return a
}

// checkpointingAxis offers the kinds that the stack has and that recompute more than today's.
func (j *job) checkpointingAxis() axis {
	kinds := []plan.Checkpointing{plan.Half, plan.Full}
	switch {
	case j.stack == plan.Torchtitan:
		kinds = []plan.Checkpointing{plan.SelectiveOp, plan.Full}
	case j.stack == plan.Megatron && j.attention == plan.Eager:
		kinds = []plan.Checkpointing{plan.SelectiveAttention, plan.Full}
	case j.stack == plan.Megatron:
		kinds = []plan.Checkpointing{plan.Full}
	}
	var a axis
	for _, kind := range kinds {
		changed := *j
		changed.checkpointing = kind
		if changed.recomputed() > j.recomputed() || j.checkpointing == plan.EveryN && j.every > 1 && kind == plan.Full {
			a.settings = append(a.settings, setting{
				apply:   func(c *job) { c.checkpointing = kind },
				changes: []Change{{"checkpointing.kind", string(j.checkpointing), string(kind)}},
			})
		}
	}
	return a
}

// shardingAxis offers the higher stages of what shards today, or FSDP where nothing does.
func (j *job) shardingAxis() axis {
	var a axis
	offer := func(precision plan.Precision, kinds ...plan.Sharding) {
		for _, kind := range kinds {
			changes := []Change{{"sharding", string(j.sharding), string(kind)}}
			if precision != j.precision {
				changes = append(changes, Change{"precision", string(j.precision), string(precision)})
			}
			a.settings = append(a.settings, setting{func(c *job) { c.sharding, c.precision = kind, precision }, changes})
		}
	}
	if j.shard <= 1 {
		return a
	}
	switch {
	case j.sharding == plan.ZeRO1 && j.precision == plan.DeepSpeedMixed:
		offer(j.precision, plan.ZeRO2, plan.ZeRO3)
	case j.sharding == plan.ZeRO2:
		offer(j.precision, plan.ZeRO3)
	case j.sharding != plan.NoSharding && j.sharding != plan.DDP:
	case j.precision == plan.DeepSpeedMixed:
		offer(j.precision, plan.ZeRO1, plan.ZeRO2, plan.ZeRO3)
	case j.precision == plan.MegatronMixed:
		offer(j.precision, plan.MegatronDist)
	case j.precision == plan.Autocast:
		offer(plan.FSDPMixed, plan.FSDP2)
	case j.precision == plan.FP32, j.precision == plan.Pure16:
		offer(j.precision, plan.FSDP2)
	}
	return a
}

// offloadAxis offers optimizer states in host memory, which DeepSpeed has built in.
func (j *job) offloadAxis() axis {
	if !j.sharding.ZeRO() || j.offloadOptimizer != plan.NoOffload || j.precision == plan.DeepSpeedBF16Optimizer {
		return axis{}
	}
	return axis{settings: []setting{{
		apply:   func(c *job) { c.offloadOptimizer = plan.CPU },
		changes: []Change{{"offload.optimizer", string(plan.NoOffload), string(plan.CPU)}},
	}}}
}

// smallBucket is a reduce bucket that still fills the links, elements.
const smallBucket = 5e7

// bucketAxis offers a smaller reduce bucket, which costs gigabytes on small devices.
func (j *job) bucketAxis() axis {
	size := float64(j.buckets.Reduce.Or(defaultBucket))
	if !j.sharding.ZeRO() || size < 4*smallBucket || j.buckets.Auto.Or(false) {
		return axis{}
	}
	return axis{settings: []setting{{
		apply:   func(c *job) { c.buckets.Reduce = plan.Written(int64(smallBucket)) },
		changes: []Change{{"buckets.reduce", fmt.Sprint(int64(size)), fmt.Sprint(int64(smallBucket))}},
	}}}
}

// lossAxis offers head and cross-entropy in one kernel, where the stack can take one.
func (j *job) lossAxis() axis {
	switch j.loss {
	case plan.FusedLinear, plan.NoLogits, plan.VocabParallel:
		return axis{}
	}
	if j.stack == plan.Megatron || j.model.Encoder() {
		return axis{}
	}
	return axis{settings: []setting{{
		apply: func(c *job) {
			c.loss, c.open = plan.FusedLinear, slices.DeleteFunc(slices.Clone(c.open), func(s string) bool { return s == MissingLoss })
		},
		changes: []Change{{"loss_kernel", string(j.loss), string(plan.FusedLinear)}},
	}}}
}

// syncAxis offers to reduce gradients after each micro-batch, so that they stay sharded under accumulation.
func (j *job) syncAxis() axis {
	if !j.sharding.FSDP() || !j.fsdp.NoSync.Or(false) {
		return axis{}
	}
	return axis{settings: []setting{{
		apply:   func(c *job) { c.fsdp.NoSync = plan.Written(false) },
		changes: []Change{{"fsdp.no_sync", "true", "false"}},
	}}}
}
