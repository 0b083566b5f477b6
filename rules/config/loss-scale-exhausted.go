package config

import (
	_ "embed"
	"math"

	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
)

//go:embed loss-scale-exhausted.md
var docLossScaleExhausted string

// fewHalvings are so few that the overflows of the first steps use them up.
const fewHalvings = 6

// LossScaleExhausted reports dynamic loss scales that start so low that a few overflows end the run.
var LossScaleExhausted = &lint.Rule{
	Name:     "loss-scale-exhausted",
	Family:   "config",
	Since:    "0.1",
	Doc:      docLossScaleExhausted,
	Severity: lint.Info,
	Mentions: []string{"initial_scale_power"},
	Part: func(pass *lint.Pass, part *workspace.Part) {
		item := entry(part, "fp16.initial_scale_power")
		power, ok := numberAt(part, "fp16", "initial_scale_power")
		if part.Dialect != dialect.DeepSpeed && part.Dialect != dialect.GPTNeoX || !ok || power < 0 || power > 64 || !isOn(part, entry(part, "fp16.enabled")) {
			return
		}
		if scale, fixed := numberAt(part, "fp16", "loss_scale"); fixed && scale != 0 {
			return
		}
		least := 1.0
		if written, ok := numberAt(part, "fp16", "min_loss_scale"); ok {
			least = written
		}
		if left := power - math.Log2(least); least > 0 && left < fewHalvings {
			pass.Reportf(valueAt(item), "the loss scale starts at %g, %g halvings above min_loss_scale: after as many overflows DeepSpeed stops, for it cannot scale down further", math.Exp2(power), max(left, 0)).
				Help("leave it at the default of 16")
			pass.Reportf(entry(part, "fp16").KeyAt, "fp16 overflows above 65504 whatever the scale; bf16 has the range of fp32 and needs no loss scale: prefer it on devices that have it, and for models that were trained in it")
		}
	},
}
