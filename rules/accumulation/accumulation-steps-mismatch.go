package accumulation

import (
	_ "embed"
	"fmt"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
)

//go:embed accumulation-steps-mismatch.md
var docAccumulationStepsMismatch string

// AccumulationStepsMismatch compares the accumulation steps that two places state for one run.
var AccumulationStepsMismatch = &lint.Rule{
	Name:     "accumulation-steps-mismatch",
	Family:   "accumulation",
	Since:    "0.1",
	Doc:      docAccumulationStepsMismatch,
	Severity: lint.Error,
	Fix:      lint.SometimesFix,
	Mentions: []string{"gradient_accumulation_steps"},
	Run: func(pass *lint.Pass, run *workspace.Run) {
		if config, _ := run.Integrated(); config != nil {
			againstTrainer(pass, run, config, config.Tree.Root.Item("gradient_accumulation_steps"))
			lightningSteps(pass, run, config)
			return
		}
		for _, part := range run.Parts {
			switch part.Dialect {
			case dialect.Accelerate:
				if part.Tree.Root.Get("deepspeed_config", "deepspeed_config_file") == nil {
					item := part.Tree.Root.Get("deepspeed_config").Item("gradient_accumulation_steps")
					againstTrainer(pass, run, part, item)
					againstAccelerator(pass, run, part, item)
				}
			case dialect.DeepSpeed:
				lightningSteps(pass, run, part)
			}
		}
	},
}

// againstTrainer compares with HF's Trainer, which refuses a number of its own that differs, and text that spells a number.
func againstTrainer(pass *lint.Pass, run *workspace.Run, part *workspace.Part, item *configs.Item) {
	steps := run.Trainer("batch.accumulation")
	if steps == nil || item == nil || item.Value == nil {
		return
	}
	theirs, ok := steps.(plan.Value[int64])
	if !ok {
		return
	}
	n, _ := theirs.Get()
	who := "the Trainer's gradient_accumulation_steps"
	if at, key, ok := run.Written(theirs); ok {
		who = fmt.Sprintf("%s in %s", key, at.Path)
	} else if theirs.How() == plan.IsDefault {
		who += ", its default,"
	}
	var d *lint.Diagnostic
	here, known := part.Plan.Batch.Accumulation.Get()
	text := item.Value
	switch {
	case known && here != n && part.Plan.Batch.Accumulation.How() == plan.IsWritten:
		d = pass.Reportf(item.KeyAt, "gradient_accumulation_steps is %d here and %s is %d: HF's integration refuses the config when the Trainer starts", here, who, n)
		if theirs.How() == plan.IsDefault {
			d.As(lint.Warning)
		}
	case text.Kind == configs.Scalar && (text.Style == configs.DoubleQuoted || text.Style == configs.SingleQuoted) && digits(text.Raw):
		d = pass.Reportf(item.KeyAt, "gradient_accumulation_steps is the text %q and not a number: HF's integration compares it with %d and refuses the config", text.Raw, n)
	default:
		return
	}
	for _, place := range theirs.From() {
		d.Note(place, "%d steps", n)
	}
	if part.Dialect == dialect.DeepSpeed && text.Via.IsZero() && text.At.Span.Len() > 0 {
		d.Suggest(`set it to "auto", which takes the Trainer's number`, lint.Unsafe, lint.Edit{At: text.At, Text: `"auto"`})
	} else {
		d.Help("state the number in one of the two places only")
	}
}

// againstAccelerator compares the file of accelerate with what a script hands to its Accelerator, which the file overrides.
func againstAccelerator(pass *lint.Pass, run *workspace.Run, part *workspace.Part, item *configs.Item) {
	here, known := part.Plan.Batch.Accumulation.Get()
	if item == nil || !known || part.Plan.Batch.Accumulation.How() != plan.IsWritten {
		return
	}
	for _, other := range run.Parts {
		steps := other.Plan.Batch.Accumulation
		if n, ok := steps.Get(); ok && other.Dialect == dialect.Accelerator && steps.How() == plan.IsWritten && n != here {
			d := pass.Reportf(item.KeyAt, "gradient_accumulation_steps is %d here and %d in the Accelerator of %s: accelerate takes the number of its file, and the script does not learn of it", here, n, other.Path)
			d.As(lint.Warning).Help("state the number in one of the two places only")
			for _, place := range steps.From() {
				d.Note(place, "%d steps", n)
			}
		}
	}
}

func digits(text string) bool {
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return text != ""
}

// lightningSteps: Lightning writes the number into the DeepSpeed config itself, and refuses one that stands there.
func lightningSteps(pass *lint.Pass, run *workspace.Run, config *workspace.Part) {
	item := config.Tree.Root.Item("gradient_accumulation_steps")
	if item == nil {
		return
	}
	for _, part := range run.Parts {
		if part.Dialect != dialect.LightningCLI {
			continue
		}
		d := pass.Reportf(item.KeyAt, "gradient_accumulation_steps stands in the DeepSpeed config of a Lightning Trainer, which sets it from accumulate_grad_batches and refuses the config")
		for _, place := range part.Plan.Batch.Accumulation.From() {
			d.Note(place, "the Trainer's number")
		}
		d.Help("take it out here, and set accumulate_grad_batches")
		return
	}
}
