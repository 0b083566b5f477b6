package memory

import (
	_ "embed"

	"github.com/trainvet/trainvet/configs/memory"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
)

//go:embed logits-memory.md
var docLogitsMemory string

// logitsShare is the share of the device from which logits are worth a word.
const logitsShare = 0.25

// LogitsMemory finds runs in which what is as wide as the vocabulary takes much of the device.
var LogitsMemory = &lint.Rule{
	Name:     "logits-memory",
	Family:   "memory",
	Since:    "0.1",
	Doc:      docLogitsMemory,
	Severity: lint.Info,
	Run: func(pass *lint.Pass, run *workspace.Run) {
		device, ok := knownDevice(run)
		if !ok || run.Plan.Stack.Is(plan.Megatron) || !plainTraining(run) {
			return
		}
		report, err := run.Memory()
		if err != nil || report.Usage == nil || report.Verdict != memory.Fits && report.Verdict != memory.Tight || report.Usage.Near(device) {
			return // hbm-overflow and hbm-tight name what helps most
		}
		u := report.Usage
		for _, name := range u.Open {
			if name == memory.MissingLoss || name == memory.MissingStack {
				return
			}
		}
		if float64(u.Parts.Logits) < logitsShare*float64(device.UsableBytes) {
			return
		}
		after := run.Plan
		after.Loss = plan.Written(plan.FusedLinear)
		fused, missing, err := memory.Estimate(&after)
		if err != nil || len(missing) > 0 || fused.Needed.Bytes >= u.Needed.Bytes {
			return
		}
		n := need{usage: u, plan: &run.Plan}
		at, key := n.place(run)
		if at.IsZero() {
			return
		}
		d := pass.Reportf(at, "logits, their fp32 copies and gradient take %s of the %s that each rank needs, for a vocabulary of %d", gigabytes(u.Parts.Logits), gigabytes(u.Needed.Bytes), u.Model.Vocab)
		d.Key = key
		d.Help("a loss that computes the head in pieces needs %s in all, and makes room for a larger micro-batch: a fused linear cross-entropy, as in Liger kernels", gigabytes(fused.Needed.Bytes))
	},
}
