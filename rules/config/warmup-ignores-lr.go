package config

import (
	_ "embed"

	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
)

//go:embed warmup-ignores-lr.md
var docWarmupIgnoresLr string

// WarmupIgnoresLr reports DeepSpeed schedules that warm up to a default of their own instead of the optimizer's rate.
var WarmupIgnoresLr = &lint.Rule{
	Name:     "warmup-ignores-lr",
	Family:   "config",
	Since:    "0.1",
	Doc:      docWarmupIgnoresLr,
	Severity: lint.Error,
	Mentions: []string{"WarmupDecayLR", "WarmupLR"},
	Part: func(pass *lint.Pass, part *workspace.Part) {
		const assumed = 0.001 // of DeepSpeed's WarmupDecayLR
		params := entry(part, "scheduler.params")
		kind := map[string]string{"warmupdecaylr": "WarmupDecayLR", "warmuplr": "WarmupLR"}[textAt(part, "scheduler", "type")]
		if part.Dialect != dialect.DeepSpeed || part.Tree.Template || kind == "" || params == nil || !lacks(params.Value, "warmup_max_lr") {
			return
		}
		rate, known := numberAt(part, "optimizer", "params", "lr")
		if !known || rate == assumed {
			return
		}
		var deepspeed workspace.Pin
		if kind == "WarmupLR" { // takes the optimizer's rate from 0.17 on (deepspeedai/DeepSpeed#7303)
			if deepspeed = pass.Pin(part.Path, "deepspeed"); deepspeed.Since("0.17") != pyscan.No {
				return
			}
			kind = "WarmupLR of " + deepspeed.String()
		}
		d := pass.Reportf(params.KeyAt, "scheduler.params has no warmup_max_lr: %s then rises to %g, whatever the optimizer's lr says (%g)", kind, assumed, rate).Pinned(deepspeed, "0.17")
		d.Note(entry(part, "optimizer.params.lr").KeyAt, "the rate that is not used")
		d.Help("write warmup_max_lr: %g", rate)
	},
}
