package schedule

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

//go:embed warmup-exceeds-total.md
var docWarmupExceedsTotal string

// WarmupExceedsTotal finds warm-ups that last as long as the training, or longer.
var WarmupExceedsTotal = &lint.Rule{
	Name:     "warmup-exceeds-total",
	Family:   "schedule",
	Since:    "0.1",
	Doc:      docWarmupExceedsTotal,
	Severity: lint.Warning,
	Mentions: []string{"warmup"},
	Run: func(pass *lint.Pass, run *workspace.Run) {
		if ignoresWarmup(run) {
			return
		}
		seen := map[source.Place]bool{}
		for _, part := range run.Parts {
			compareWarmup(pass, run, part.Plan.Schedule, seen)
		}
		compareWarmup(pass, run, run.Plan.Schedule, seen)
	},
}

// compareWarmup compares a written warm-up with a written length of the training, each in optimizer steps.
func compareWarmup(pass *lint.Pass, run *workspace.Run, s plan.Schedule, seen map[source.Place]bool) {
	warmup, ok := s.Warmup.Get()
	total, ok2 := s.TotalSteps.Get()
	if !ok || !ok2 || s.Warmup.How() != plan.IsWritten || !stated(s.TotalSteps) || warmup < 1 || total < 1 {
		return
	}
	at, name, ok := run.Written(s.Warmup)
	if !ok || seen[at] {
		return
	}
	lasts := "counts " + number(warmup) + " steps"
	steps := warmup
	switch unit, _ := s.WarmupUnit.Get(); unit {
	case plan.OptimizerSteps:
	case plan.MicroSteps, plan.UnknownUnit, "": // at least so many optimizer steps
		accumulation, known := run.Plan.Batch.Accumulation.Get()
		if !known || accumulation < 1 {
			return
		}
		if steps = warmup / float64(accumulation); accumulation > 1 {
			lasts = fmt.Sprintf("is %s optimizer steps at %d accumulation steps", number(steps), accumulation)
		}
	default:
		return
	}
	length, lengthAt := float64(total), s.TotalSteps.From()
	if decay, place, ok := decaySteps(run); ok {
		length, lengthAt = decay, []source.Place{place}
	}
	if steps < length {
		return
	}
	seen[at] = true
	var d *lint.Diagnostic
	if steps > length {
		d = pass.Reportf(at, "%s %s, and the schedule has %s: training ends, or the schedule does, before the learning rate has reached its peak", name, lasts, number(length))
	} else {
		d = pass.Reportf(at, "%s %s, and the schedule has as many: the learning rate rises to its peak at the last step and never decays", name, lasts)
	}
	for _, place := range lengthAt {
		d.Note(place, "%s steps in all", number(length))
	}
}

// decaySteps is the length of the schedule where it is written apart from that of the training.
func decaySteps(run *workspace.Run) (steps float64, at source.Place, ok bool) {
	for part, item := range run.Keys() {
		if workspace.PlainKey(item.Key) != "lr_decay_iters" || item.Value == nil || item.Value.Open || !part.Dialect.Trains() {
			continue
		}
		if n, err := strconv.ParseFloat(item.Value.Raw, 64); err == nil && n > 0 {
			return n, item.KeyAt, true
		}
	}
	return 0, at, false
}

// ignoresWarmup: HF's constant schedule has none, and nanoGPT's switch turns the whole schedule off.
func ignoresWarmup(run *workspace.Run) bool {
	if kind, ok := run.Plan.Schedule.Type.Get(); ok && kind == "constant" && run.Plan.Schedule.Type.How() == plan.IsWritten && run.Has("hf-training-args", "llamafactory", "axolotl") {
		return true
	}
	for _, item := range run.Keys() {
		if item.Key == "decay_lr" && item.Value != nil && strings.EqualFold(item.Value.Raw, "false") {
			return true
		}
	}
	return false
}
