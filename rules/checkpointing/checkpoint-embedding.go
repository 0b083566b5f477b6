package checkpointing

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed checkpoint-embedding.md
var checkpointEmbeddingDoc string

// CheckpointEmbedding finds embeddings inside an activation checkpoint.
var CheckpointEmbedding = &lint.Rule{
	Name:     "checkpoint-embedding",
	Family:   "checkpointing",
	Since:    "0.1",
	Doc:      checkpointEmbeddingDoc,
	Severity: lint.Error,
	Fix:      lint.SometimesFix,
	Mentions: []string{"checkpoint"},
	Looks:    []string{pipelineInterval},
	Hides:    []string{"checkpoint-no-grad-input", "checkpoint-missing-use-reentrant", "checkpoint-shared-weights"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		for _, c := range pass.Checkpoints(module) {
			if (c.Function != nil || c.Decorates != nil) && !pass.WithoutGradients(c.Scope, c.Call) {
				checkEmbedding(pass, c)
			}
			if c.Kind == workspace.CheckpointApply {
				if what, _ := applied(pass, c); what != "" {
					reportApplied(pass, c, what)
				}
			}
		}
		pipelineLayers(pass, module)
		for _, part := range pass.Parts(module.File.Path) { // arguments of a trainer
			listedEmbedding(pass, part)
		}
	},
	Part: listedEmbedding,
}

func checkEmbedding(pass *lint.Pass, c *workspace.Checkpoint) {
	found, ok := embeddingIn(pass, c)
	if !ok {
		return
	}
	at := c.Scope.Module.File.At(c.Call.Span())
	gradient := pyscan.No // an embedding takes its ids alone
	if !found.direct || len(c.Inputs) != 1 {
		gradient = otherGradient(pass, c, found.input)
	}
	var d *lint.Diagnostic
	switch {
	case c.Reentrant != pyscan.Yes:
		if c.Reentrant == pyscan.Maybe {
			return
		}
		d = pass.Reportf(at, "%s is recomputed in backward and saves nothing: a lookup keeps only its integer ids", found.what).As(lint.Info)
	case found.frozen == pyscan.Yes, c.Function != nil && pass.Frozen(c.Scope, c.Function):
		d = pass.Reportf(at, "%s is frozen and checkpointed: nothing is saved, and what follows gets no gradient through a reentrant checkpoint", found.what).As(lint.Info)
	case gradient == pyscan.Yes:
		d = pass.Reportf(at, "%s keeps its gradient here only because another argument of the reentrant checkpoint requires one; the checkpoint saves nothing", found.what).As(lint.Info)
	case gradient == pyscan.Maybe:
		return
	default:
		d = pass.Reportf(at, "%s gets no gradient and silently never trains: its ids are integers, and a reentrant checkpoint%s passes gradients only when a direct argument requires them",
			found.what, omitted(c))
	}
	d.Note(found.at, "the embedding is made here")
	if c.Kind == workspace.CheckpointCall && found.direct && len(c.Inputs) > 0 && len(workspace.Alternatives(pass.Target(c))) == 1 {
		fixDirectCall(d, c, lint.Safe)
	} else {
		d.Help("call the embedding outside the checkpoint, and checkpoint only the blocks")
	}
}

// omitted says why a call without the flag is reentrant.
func omitted(c *workspace.Checkpoint) string {
	if c.Omitted && c.Callee != "deepspeed.checkpointing.checkpoint" {
		return " (the default when use_reentrant is omitted)"
	}
	return ""
}

// embedded is an embedding found in a checkpointed region.
type embedded struct {
	what   string // as it is called in the file
	at     source.Place
	direct bool // the region is the embedding itself
	input  int  // index of the region's input that the embedding reads
	frozen pyscan.Truth
}

// embeddingIn looks whether the checkpointed callable is an embedding, or applies one to its own input before anything else
// has made a tensor with gradients.
func embeddingIn(pass *lint.Pass, c *workspace.Checkpoint) (embedded, bool) {
	value := pass.Target(c)
	if c.Kind == workspace.CheckpointSequential {
		if elements := pass.Elements(value); len(elements) > 0 {
			value = elements[0]
		}
	}
	for _, one := range workspace.Alternatives(value) {
		if is, frozen := pass.Embedding(one); is == pyscan.Yes {
			return embedded{"the embedding " + quoted(workspace.Leaf(c.Function)), one.Site().Place(), true, 0, frozen}, true
		}
		if found, ok := lookupOf(pass, one, workspace.Leaf(c.Function), 3); ok {
			return found, true
		}
	}
	return embedded{}, false
}

// lookupOf finds an embedding that a callable applies to its first input: at the front of an nn.Sequential, or in what a
// function or forward does.
func lookupOf(pass *lint.Pass, value pyscan.Value, leaf string, depth int) (embedded, bool) {
	if inst, ok := value.(*pyscan.Instance); ok && depth > 0 && pass.Derives(inst.Of, "torch.nn.Sequential") == pyscan.Yes {
		for _, front := range pass.Elements(inst) {
			if modifiesNothing(pass, front) {
				continue
			}
			for _, one := range workspace.Alternatives(front) {
				if is, frozen := pass.Embedding(one); is == pyscan.Yes {
					return embedded{"the embedding at the front of " + quoted(leaf), one.Site().Place(), false, 0, frozen}, true
				}
				if found, ok := lookupOf(pass, one, leaf, depth-1); ok {
					return found, true
				}
			}
			return embedded{}, false
		}
		return embedded{}, false
	}
	if f := pass.Called(value); f != nil {
		return firstLookup(pass, f, depth)
	}
	return embedded{}, false
}

// modifiesNothing reports whether a module hands ids on as they are.
func modifiesNothing(pass *lint.Pass, value pyscan.Value) bool {
	inst, ok := value.(*pyscan.Instance)
	return ok && pass.Derives(inst.Of, "torch.nn.Identity", "torch.nn.Flatten") == pyscan.Yes
}

// firstLookup finds an embedding that a function applies to one of its own parameters.
func firstLookup(pass *lint.Pass, f *pyscan.Func, depth int) (embedded, bool) {
	shift := 0
	if f.Self != nil {
		shift = 1
	}
	for _, call := range pass.Applies(f) {
		if len(call.Params) == 0 {
			continue
		}
		for _, one := range workspace.Alternatives(call.Callee) {
			if is, frozen := pass.Embedding(one); is == pyscan.Yes {
				return embedded{"the embedding " + quoted(call.Leaf), one.Site().Place(), false, call.Params[0] - shift, frozen}, true
			}
			if inner := pass.Called(one); depth <= 0 || inner != nil && inner.Scope == f.Scope {
				continue
			}
			if found, ok := lookupOf(pass, one, call.Leaf, depth-1); ok {
				found.input = call.Params[0] - shift
				return found, true
			}
		}
	}
	return embedded{}, false
}

// otherGradient says whether a direct input of the checkpoint, but the one the embedding reads, requires a gradient.
func otherGradient(pass *lint.Pass, c *workspace.Checkpoint, reads int) pyscan.Truth {
	answer := pyscan.No
	for i, input := range c.Inputs {
		if _, star := input.(*syntax.Starred); star {
			return pyscan.Maybe
		}
		if i != reads {
			answer = answer.Or(pass.RequiresGrad(c.Scope, c.Frame, input))
		}
	}
	return answer
}

func quoted(name string) string {
	if name == "" {
		return "here"
	}
	return "`" + name + "`"
}
