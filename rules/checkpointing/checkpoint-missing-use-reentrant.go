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
			d := reportOmitted(pass, c)
			if takesReentrant(pass, c) {
				setReentrant(d, c, lint.Safe)
			}
		}
	},
}

// reportOmitted says what the release of torch makes of an omitted use_reentrant. All run the reentrant variant;
// warnings came with 2.1, for
// checkpoint_sequential with 2.2, and announce an exception from 2.3 on. The release they name for that has been put
// off each time.
func reportOmitted(pass *lint.Pass, c *workspace.Checkpoint) *lint.Diagnostic {
	const loses = "the reentrant variant, which gives no gradients unless a direct input requires them"
	warns := "2.1"
	if c.Kind == workspace.CheckpointSequential {
		warns = "2.2"
	}
	torch := pass.Pin(c.Scope.Module.File.Path, "torch")
	switch {
	case torch.Since(warns) == pyscan.No:
		return pass.Reportf(at(c), "use_reentrant is omitted: %s runs %s; it does not warn yet, releases from %s on do",
			torch, loses, warns).As(lint.Info).Pinned(torch, warns)
	case torch.Since("2.3") == pyscan.No:
		return pass.Reportf(at(c), "use_reentrant is omitted: %s warns that the default will change to False, and runs %s",
			torch, loses).Pinned(torch, "2.3")
	}
	return pass.Reportf(at(c), "use_reentrant is omitted: PyTorch warns and runs %s; its warning announces an exception for a later release",
		loses)
}

// takesReentrant reports whether the release of torch has the argument.
func takesReentrant(pass *lint.Pass, c *workspace.Checkpoint) bool {
	since := "1.11"
	if c.Kind == workspace.CheckpointSequential {
		since = "2.0"
	}
	return pass.Pin(c.Scope.Module.File.Path, "torch").Since(since) != pyscan.No
}
