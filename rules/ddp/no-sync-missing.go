package ddp

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
)

//go:embed no-sync-missing.md
var noSyncMissingDoc string

// NoSyncMissing finds accumulation over a DDP model that all-reduces each micro-batch.
var NoSyncMissing = &lint.Rule{
	Name:     "no-sync-missing",
	Family:   "ddp",
	Since:    "0.1",
	Doc:      noSyncMissingDoc,
	Severity: lint.Info,
	Strict:   true,
	Mentions: loop.Mentions,
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		if len(l.Deep(loop.NoSync)) > 0 {
			return
		}
		for _, w := range loop.Windows(l, pass) {
			if w.Accumulates != pyscan.Yes || len(w.Steps) == 0 {
				continue
			}
			backward := w.Backward[0]
			if backward.By != loop.Plain && backward.By != loop.Scaler || backward.In(loop.NoSyncContext) || backward.In(loop.AccumulateContext) {
				continue
			}
			if forward, wrapper := ddpForward(pass, w.Micro); forward != nil {
				wrappedAt(pass.Reportf(l.Place(backward), "DDP all-reduces all gradients at each micro-batch, though only the sum at the optimizer step is used"), wrapper).
					Help("run all but the last micro-batch under model.no_sync(), forward and backward")
				return
			}
		}
	},
}
