package memory

import (
	_ "embed"
	"math"
	"slices"

	"github.com/trainvet/trainvet/configs/catalog"
	"github.com/trainvet/trainvet/configs/memory"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

//go:embed offload-without-need.md
var docOffloadWithoutNeed string

// OffloadWithoutNeed finds states on the host that the device has room for.
var OffloadWithoutNeed = &lint.Rule{
	Name:     "offload-without-need",
	Family:   "memory",
	Since:    "0.1",
	Doc:      docOffloadWithoutNeed,
	Severity: lint.Info,
	Mentions: []string{"offload"},
	Run: func(pass *lint.Pass, run *workspace.Run) {
		device, ok := knownDevice(run)
		if !ok || !plainTraining(run) {
			return
		}
		before := run.Plan
		at := offloaded(run, before.Offload.Optimizer)
		if at.IsZero() {
			at = offloaded(run, before.Offload.Param)
		}
		if at.IsZero() {
			return
		}
		after := before
		after.Offload.Optimizer, after.Offload.Param = plan.Written(plan.NoOffload), plan.Written(plan.NoOffload)
		usage, missing, err := memory.Estimate(&after)
		if err != nil || len(missing) > 0 || usage.Device == nil || memory.Fit(usage, device) != memory.Fits || usage.Needed.High > device.UsableBytes {
			return
		}
		d := pass.Reportf(at, "with its states on the device the run needs about %s on each rank, at most %s, of the %s that %s has: the optimizer step on the CPU and the way over the host link are paid for nothing",
			gigabytes(usage.Needed.Bytes), gigabytes(usage.Needed.High), gigabytes(device.UsableBytes), device.Name)
		with, known := memory.Price(&before)
		without, known2 := memory.Price(&after)
		if known && known2 && with.Seconds > 0 && without.Seconds > 0 && without.Seconds < with.Seconds {
			d.Help("keep the states on the device: about %.0f %% more tokens a second, by a rough estimate", math.Round(100*(with.Seconds/without.Seconds-1)))
		} else {
			d.Help("keep the states on the device")
		}
	},
}

// offloaded is the key that puts a state elsewhere.
func offloaded(run *workspace.Run, v plan.Value[plan.Offload]) source.Place {
	where, ok := v.Get()
	if !ok || where == plan.NoOffload || v.How() != plan.IsWritten {
		return source.Place{}
	}
	at, _, ok := run.Written(v)
	if !ok {
		return source.Place{}
	}
	return at
}

// others are keys of runs that compute something else than the loss of a language model, or that share the device with another program:
// classifiers and reward models, reinforcement learning with its generation, distillation, prediction.
var others = [...]string{"task_type", "num_labels", "rlhf_type", "reward_model", "process_reward_model", "use_vllm", "teacher_model", "ref_model", "do_predict",
	"predict_with_generate", "num_generations", "rl"}

// plainTraining reports whether nothing says that the run is of another kind.
func plainTraining(run *workspace.Run) bool {
	for _, item := range run.Keys() {
		key := workspace.PlainKey(item.Key)
		if slices.Contains(others[:], key) && (item.Value == nil || !slices.Contains([]string{"causal_lm", "CAUSAL_LM", "false", "False", ""}, item.Value.Raw)) {
			return false
		}
		if key == "stage" && item.Value != nil && slices.Contains([]string{"rm", "ppo", "dpo", "kto"}, item.Value.Raw) {
			return false
		}
	}
	return true
}

// knownDevice is the device of a run that trains.
func knownDevice(run *workspace.Run) (*catalog.DeviceSpec, bool) {
	name, known := run.Plan.Device.Get()
	if !known || !run.Trains() {
		return nil, false
	}
	device, err := catalog.Device(name)
	return device, err == nil
}
