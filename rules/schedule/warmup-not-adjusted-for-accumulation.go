package schedule

import (
	_ "embed"
	"math"
	"strconv"

	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
)

//go:embed warmup-not-adjusted-for-accumulation.md
var docWarmupNotAdjustedForAccumulation string

// From these on a warm-up that counts optimizer steps is long enough to ask whether micro-batches were meant.
const (
	askFromAccumulation = 4
	askFromWarmup       = 1000
)

// WarmupNotAdjustedForAccumulation finds warm-ups that are counted in another unit than the scheduler is stepped in.
var WarmupNotAdjustedForAccumulation = &lint.Rule{
	Name:     "warmup-not-adjusted-for-accumulation",
	Family:   "schedule",
	Since:    "0.1",
	Doc:      docWarmupNotAdjustedForAccumulation,
	Severity: lint.Warning,
	Mentions: []string{"warmup", "LR", "sched", `"lr"`, `'lr'`, ".step(", "step_update"}, // a bare lr stands in "already", and takes long to look for
	Looks:    []string{warmupKey, lightningKey},
	Module:   warmupInModule,
	Loop:     warmupInLoop,
	Run:      warmupOfConfig,
}

// warmupOfConfig knows only what files say: a written warm-up beside a written accumulation. Where the framework counts
// optimizer steps it is most likely right; where a training loop of the project decides, most likely not.
func warmupOfConfig(pass *lint.Pass, run *workspace.Run) {
	p := &run.Plan
	warmup, ok := p.Schedule.Warmup.Get()
	accumulation, ok2 := p.Batch.Accumulation.Get()
	if !ok || !ok2 || p.Schedule.Warmup.How() != plan.IsWritten || !stated(p.Batch.Accumulation) || accumulation < 2 || warmup < 1 {
		return
	}
	unit, _ := p.Schedule.WarmupUnit.Get()
	at := p.Schedule.Warmup.From()[0]
	name := "the warm-up"
	if setting, ok := run.Setting(at); ok {
		name = setting.Name()
	}
	divided := number(max(1, math.Round(warmup/float64(accumulation))))
	var d *lint.Diagnostic
	switch {
	case unit == plan.OptimizerSteps && p.Schedule.WarmupUnit.How() == plan.IsFlag:
		return
	case unit == plan.MicroSteps:
		d = pass.Reportf(at, "%s %s counts micro-batches: with %d accumulation steps that is a warm-up of %s optimizer steps, which is what a scheduler counts that is stepped with the optimizer",
			name, number(warmup), accumulation, divided)
	case unit == plan.UnknownUnit:
		d = pass.Reportf(at, "%s %s is not adjusted for %d accumulation steps: counted in micro-batches it is %s optimizer steps, and a scheduler that is stepped with the optimizer warms up %d times as long",
			name, number(warmup), accumulation, divided, accumulation)
	case unit == plan.OptimizerSteps && accumulation >= askFromAccumulation && warmup >= askFromWarmup:
		d = pass.Reportf(at, "%s %s counts optimizer steps, so that the warm-up takes %s micro-batches at %d accumulation steps; if it was chosen without accumulation, the same samples are %s steps, and if it was meant as optimizer steps it is right as it is",
			name, number(warmup), number(warmup*float64(accumulation)), accumulation, divided).As(lint.Info)
	default:
		return
	}
	for _, place := range p.Batch.Accumulation.From() {
		d.Note(place, "%d accumulation steps", accumulation)
	}
	d.Help("divide it: %s %s; or state the unit once: [run] warmup-unit = \"optimizer\" in trainvet.toml", name, divided)
}

func stated(v plan.Value[int64]) bool { return v.How() == plan.IsWritten || v.How() == plan.IsFlag }

// number writes a count without a fraction where it has none.
func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
