package checkpointing

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
)

//go:embed checkpoint-missing-use-reentrant.md
var docCheckpointMissingUseReentrant string

// CheckpointMissingUseReentrant finds checkpoints that leave it to PyTorch which variant runs.
var CheckpointMissingUseReentrant = &lint.Rule{
	Name:     "checkpoint-missing-use-reentrant",
	Family:   "checkpointing",
	Since:    "0.1",
	Doc:      docCheckpointMissingUseReentrant,
	Severity: lint.Warning,
	Fix:      lint.SometimesFix,
	Mentions: []string{"checkpoint"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		for _, c := range pass.Checkpoints(module) {
			if !c.Omitted || !torchCheckpoint(c) || c.Kind != workspace.CheckpointCall && c.Kind != workspace.CheckpointSequential || pass.WithoutGradients(c.Scope, c.Call) {
				continue
			}
			if torch := pass.Pin(module.File.Path, "torch"); torch.Since("2.0") == pyscan.No {
				d := pass.Reportf(at(c), "use_reentrant is omitted: %s runs the reentrant variant, which drops gradients of whatever gets no direct input that requires one; a later release is to raise instead", torch).As(lint.Info).Pinned(torch, "2.0")
				if torch.Since("1.11") == pyscan.Yes { // which brought the argument
					setReentrant(d, c, lint.Safe)
				}
				continue
			}
			d := pass.Reportf(at(c), "use_reentrant is omitted: PyTorch warns and runs the reentrant variant, which drops gradients of whatever gets no direct input that requires one; a later release is to raise instead")
			setReentrant(d, c, lint.Safe)
		}
	},
}
