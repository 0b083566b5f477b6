package checkpointing

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed checkpoint-no-grad-input.md
var docCheckpointNoGradInput string

// inputsHooked are words of hooks that make inputs require gradients.
var inputsHooked = []string{"require_grads", "inputs_require_grad"}

// CheckpointNoGradInput finds reentrant checkpoints none of whose inputs requires a gradient.
var CheckpointNoGradInput = &lint.Rule{
	Name:     "checkpoint-no-grad-input",
	Family:   "checkpointing",
	Since:    "0.1",
	Doc:      docCheckpointNoGradInput,
	Severity: lint.Error,
	Fix:      lint.SometimesFix,
	Mentions: []string{"checkpoint"},
	Looks:    inputsHooked,
	Hides:    []string{"checkpoint-missing-use-reentrant"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		if words(module, inputsHooked...) { // a hook of another kind sees to it
			return
		}
		for _, c := range pass.Checkpoints(module) {
			if c.Kind == workspace.CheckpointCall && c.Function != nil && c.Reentrant == pyscan.Yes && !pass.WithoutGradients(c.Scope, c.Call) {
				checkInputs(pass, c)
			}
		}
	},
}

func checkInputs(pass *lint.Pass, c *workspace.Checkpoint) {
	for _, k := range c.Call.Keywords {
		if k.Arg == "" || !flagsOf[k.Arg] {
			return // another mistake, or nobody knows
		}
	}
	answer, contained := pyscan.No, syntax.Expr(nil)
	for _, input := range c.Inputs {
		answer = answer.Or(pass.RequiresGrad(c.Scope, c.Frame, input))
		switch input.(type) {
		case *syntax.Dict, *syntax.List, *syntax.Tuple:
			contained = input
		}
	}
	if answer != pyscan.No || trainable(pass, c) != pyscan.Yes {
		return
	}
	why := "none of its inputs requires one"
	switch {
	case len(c.Inputs) == 0:
		why = "it has no inputs, and what a closure captures does not count"
	case contained != nil:
		why = "tensors inside a dict, list or tuple do not count"
	}
	what := quoted(workspace.Leaf(c.Function))
	if what == "here" {
		what = "the checkpointed function"
	}
	d := pass.Reportf(at(c), "nothing in %s gets a gradient: a reentrant checkpoint%s passes gradients only when a direct tensor argument requires them, and %s", what, omitted(c), why)
	if torchCheckpoint(c) {
		setReentrant(d, c, lint.Safe)
		return
	}
	d.Help("make an input require gradients: x.requires_grad_(True)")
}
