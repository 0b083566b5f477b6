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
	case found.named != "":
		d = pass.Reportf(at, "%s, which is an embedding by its name and its argument %s, gets no gradient and silently never trains: "+
			"its ids are integers, and a reentrant checkpoint%s passes gradients only when a direct argument requires them",
			found.what, quoted(found.named), omitted(c)).As(lint.Warning)
	default:
		d = pass.Reportf(at, "%s gets no gradient and silently never trains: its ids are integers, and a reentrant checkpoint%s passes gradients only when a direct argument requires them",
			found.what, omitted(c))
	}
	if found.named == "" {
		d.Note(found.at, "the embedding is made here")
	}
	if c.Kind == workspace.CheckpointCall && found.direct && len(c.Inputs) > 0 && len(workspace.Alternatives(pass.Target(c))) == 1 {
		safety := lint.Safe
		if found.named != "" {
			safety = lint.Unsafe
		}
		fixDirectCall(d, c, safety)
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
	named  string // what it is given, where only that and its name say that it is an embedding
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
			return embedded{what: "the embedding " + quoted(workspace.Leaf(c.Function)), at: one.Site().Place(), direct: true, input: 0, frozen: frozen}, true
		}
		if found, ok := lookupOf(pass, one, workspace.Leaf(c.Function), 3); ok {
			return found, true
		}
	}
	return namedEmbedding(pass, c, value)
}

// namedEmbedding goes by the name of what is checkpointed and by its argument, or of what a checkpointed function applies
// to it, where nothing else is known.
func namedEmbedding(pass *lint.Pass, c *workspace.Checkpoint, value pyscan.Value) (embedded, bool) {
	if len(c.Inputs) == 0 || c.Function == nil {
		return embedded{}, false
	}
	leaf := workspace.Leaf(c.Function)
	if pass.CalledEmbedding(value, leaf, c.Scope, c.Frame, c.Inputs[0]) {
		return embedded{what: quoted(leaf), direct: true, named: textOf(c.Scope, c.Inputs[0])}, true
	}
	f, ok := value.(*pyscan.Func)
	if !ok {
		return embedded{}, false
	}
	shift := 0
	if f.Self != nil {
		shift = 1
	}
	for _, call := range pass.Applies(f) {
		if len(call.Params) == 0 || len(call.Call.Args) == 0 || call.Params[0] < shift || call.Params[0]-shift >= len(c.Inputs) {
			continue
		}
		input := call.Params[0] - shift
		found := embedded{what: quoted(call.Leaf), input: input}
		if given := c.Inputs[input]; pass.CalledEmbedding(call.Callee, call.Leaf, c.Scope, c.Frame, given) {
			found.named = textOf(c.Scope, given)
			return found, true
		}
		if given := call.Call.Args[0]; pass.CalledEmbedding(call.Callee, call.Leaf, f.Scope, nil, given) {
			found.named = textOf(f.Scope, given)
			return found, true
		}
	}
	return embedded{}, false
}

func textOf(scope *pyscan.Scope, e syntax.Expr) string { return scope.Module.File.Slice(e.Span()) }

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
					return embedded{what: "the embedding at the front of " + quoted(leaf), at: one.Site().Place(), direct: false, input: 0, frozen: frozen}, true
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
				return embedded{what: "the embedding " + quoted(call.Leaf), at: one.Site().Place(), direct: false, input: call.Params[0] - shift, frozen: frozen}, true
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
