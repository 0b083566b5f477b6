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
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
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
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		for _, site := range pass.CallsNear(module, schedulers) {
			compareCall(pass, module, site.Call)
		}
		for _, run := range pass.Runs(module.File.Path) { // arguments of the Trainer
			compareRun(pass, run)
		}
	},
	Run: compareRun,
}

// schedulers are the functions of Transformers that take a warm-up and a total.
var schedulers = &pyscan.Words{Alias: true, Names: map[string]bool{"get_scheduler": true, "get_linear_schedule_with_warmup": true, "get_cosine_schedule_with_warmup": true,
	"get_polynomial_decay_schedule_with_warmup": true, "get_cosine_with_hard_restarts_schedule_with_warmup": true, "get_cosine_with_min_lr_schedule_with_warmup": true,
	"get_cosine_with_min_lr_schedule_with_warmup_lr_rate": true, "get_constant_schedule_with_warmup": true, "get_wsd_schedule": true}}

func compareRun(pass *lint.Pass, run *workspace.Run) {
	if ignoresWarmup(run) {
		return
	}
	seen := map[source.Place]bool{}
	for _, part := range run.Parts {
		compareWarmup(pass, run, part.Plan.Schedule, seen)
	}
	compareWarmup(pass, run, run.Plan.Schedule, seen)
}

// compareCall compares the numbers in get_linear_schedule_with_warmup(optimizer, warm-up, total) and its kin, where both are known.
func compareCall(pass *lint.Pass, module *pyscan.Module, call *syntax.Call) {
	scope := pyscan.ScopeAt(module, call)
	name := pass.ExternalName(pass.Eval(scope, nil, call.Func))
	last := pyscan.LastPart(name)
	warmupAt, totalAt := 1, 2
	switch {
	case !strings.HasPrefix(name, "transformers."):
		return
	case strings.HasPrefix(last, "get_") && strings.HasSuffix(last, "_schedule_with_warmup"), strings.HasPrefix(last, "get_cosine_with_"):
	case last == "get_scheduler":
		warmupAt, totalAt = 2, 3
	default:
		return
	}
	argument := workspace.Argument(call, "num_warmup_steps", warmupAt)
	if argument == nil {
		return
	}
	warmup, ok := steps(pass, pass.Eval(scope, nil, argument))
	total, ok2 := steps(pass, pass.Arg(scope, nil, call, "num_training_steps", totalAt))
	if !ok || !ok2 || warmup < 1 || total < 1 || warmup < total {
		return
	}
	at := module.File.At(argument.Span())
	if warmup > total {
		pass.Reportf(at, "the warm-up counts %d steps, and the schedule has %d: training ends, or the schedule does, before the learning rate has reached its peak", warmup, total)
	} else {
		pass.Reportf(at, "the warm-up counts %d steps, and the schedule has as many: the learning rate rises to its peak at the last step and never decays", warmup)
	}
}

func steps(pass *lint.Pass, value pyscan.Value) (int64, bool) {
	if value == nil {
		return 0, false
	}
	c, ok := pass.Constant(pass.Expand(value))
	if !ok {
		return 0, false
	}
	return c.Int()
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
	if length <= trialSteps && !run.Has("megatron") { // which stops
		d.As(lint.Info)
	}
	for _, place := range lengthAt {
		d.Note(place, "%s steps in all", number(length))
	}
}

// trialSteps is the length, in optimizer steps, up to which a run is a trial: what becomes of its learning rate is of no interest.
const trialSteps = 10

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
