package checkpointing

import (
	_ "embed"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed checkpoint-reentrant-kwargs.md
var docCheckpointReentrantKwargs string

// CheckpointReentrantKwargs finds keywords that a reentrant checkpoint rejects.
var CheckpointReentrantKwargs = &lint.Rule{
	Name:     "checkpoint-reentrant-kwargs",
	Family:   "checkpointing",
	Since:    "0.1",
	Doc:      docCheckpointReentrantKwargs,
	Severity: lint.Error,
	Fix:      lint.SometimesFix,
	Mentions: []string{"checkpoint"},
	Hides:    []string{"checkpoint-missing-use-reentrant"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		for _, c := range pass.Checkpoints(module) {
			if c.Reentrant == pyscan.Yes && (c.Kind == workspace.CheckpointCall || c.Kind == workspace.CheckpointSequential) && c.Callee != "" && c.Function != nil {
				checkKeywords(pass, c)
			}
		}
	},
}

// flagsOf are the keywords of torch's checkpoint itself (torch/utils/checkpoint.py); whatever else is an input of the function.
var flagsOf = map[string]bool{"use_reentrant": true, "preserve_rng_state": true, "context_fn": true, "determinism_check": true, "debug": true, "early_stop": true, "function": true}

func checkKeywords(pass *lint.Pass, c *workspace.Checkpoint) {
	for _, k := range c.Call.Keywords {
		place := c.Scope.Module.File.At(k.Span())
		sequential := c.Kind == workspace.CheckpointSequential
		switch {
		case k.Arg == "":
		case sequential && (k.Arg == "functions" || k.Arg == "segments" || k.Arg == "input" || k.Arg == "use_reentrant" || k.Arg == "preserve_rng_state"):
		case sequential:
			pass.Reportf(place, "checkpoint_sequential takes no %s: it raises \"ValueError: Unexpected keyword arguments\"", k.Arg).Help("leave it out")
			return
		case !torchCheckpoint(c):
			if k.Arg == "function" || k.Arg == "distribute_saved_activations" {
				continue
			}
			pass.Reportf(place, "%s takes its inputs by position only: this raises a TypeError", c.Callee).Help("pass it by position")
			return
		case k.Arg == "context_fn" && !isNoop(pass, c, k.Value), k.Arg == "debug" && pass.Truthy(pass.Expand(pass.Eval(c.Scope, c.Frame, k.Value))) == pyscan.Yes:
			d := pass.Reportf(place, "a reentrant checkpoint%s takes no %s: it raises \"ValueError: Passing `context_fn` or `debug` is only supported when use_reentrant=False\"", omitted(c), k.Arg)
			setReentrant(d, c, lint.Safe)
			return
		case !flagsOf[k.Arg]:
			d := pass.Reportf(place, "a reentrant checkpoint%s takes no inputs by keyword: it raises \"ValueError: Unexpected keyword arguments: %s\"", omitted(c), k.Arg)
			setReentrant(d, c, lint.Safe)
			return
		}
	}
}

// isNoop reports whether a context_fn is the one that does nothing, which the reentrant variant takes too.
func isNoop(pass *lint.Pass, c *workspace.Checkpoint, e syntax.Expr) bool {
	value := pass.Expand(pass.Eval(c.Scope, c.Frame, e))
	return strings.HasSuffix(pass.ExternalName(value), "noop_context_fn") || pass.Opaque(value)
}
