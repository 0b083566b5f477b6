package memory

import (
	_ "embed"

	"github.com/trainvet/trainvet/configs/catalog"
	"github.com/trainvet/trainvet/configs/memory"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
)

//go:embed hbm-tight.md
var docHbmTight string

// HbmTight finds runs that leave less of their device than the estimate may be wrong by.
var HbmTight = &lint.Rule{
	Name:     "hbm-tight",
	Family:   "memory",
	Since:    "0.1",
	Doc:      docHbmTight,
	Severity: lint.Warning,
	Fix:      lint.SometimesFix,
	Run: func(pass *lint.Pass, run *workspace.Run) {
		name, known := run.Plan.Device.Get()
		if !known || !run.Trains() || !run.Plan.Optimizer.Type.Known() {
			return // GaLore and the like have states of their own sizes
		}
		device, err := catalog.Device(name)
		if err != nil {
			return
		}
		report, err := run.Memory()
		if err != nil || report.Usage == nil || report.Verdict != memory.Tight || !report.Usage.Near(device) || leastNeed(run, device) != nil {
			return
		}
		n := need{bytes: report.Usage.Needed.Bytes, usage: report.Usage, plan: &run.Plan}
		at, key := n.place(run)
		if at.IsZero() {
			return
		}
		share := 100 * float64(n.bytes) / float64(device.UsableBytes)
		d := pass.Reportf(at, "the run needs about %s on each rank, %.0f %% of the %s that %s has: a longer batch, a larger collective or fragmentation can end it (%s)",
			gigabytes(n.bytes), share, gigabytes(device.UsableBytes), device.Name, partsText(n.usage.Parts))
		d.Key = key
		for _, place := range run.Plan.Device.From() {
			if device.Assumption != "" {
				d.Note(place, "%s", device.Assumption)
			}
		}
		n.advise(d, run, device)
	},
}
