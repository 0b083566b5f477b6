package checkpointing

import (
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// applied says what the check_fn of apply_activation_checkpointing(model, checkpoint_wrapper_fn, check_fn) lets in that it should not: embeddings, and
// linear layers; "" where it lets in none. A function that is not understood lets in nothing.
func applied(pass *lint.Pass, c *workspace.Checkpoint) (embedding, head string) {
	check := pass.Arg(c.Scope, c.Frame, c.Call, "check_fn", 2)
	if check == nil {
		return "", ""
	}
	f, ok := pass.Expand(check).(*pyscan.Func)
	if !ok {
		return "", ""
	}
	body := answerOf(f)
	if body == nil {
		return "", ""
	}
	if c, ok := pass.Constant(pass.Eval(f.Scope, nil, body)); ok {
		if c.Truth() {
			return "a check_fn that is always true", ""
		}
		return "", ""
	}
	call, ok := body.(*syntax.Call)
	if !ok || len(call.Args) != 2 || pass.Library(f.Scope, nil, call.Func) != "builtins.isinstance" {
		return "", ""
	}
	classes := []pyscan.Value{pass.Eval(f.Scope, nil, call.Args[1])}
	if seq, ok := pass.Expand(classes[0]).(*pyscan.Sequence); ok {
		classes = seq.Elements
	}
	for _, class := range classes {
		switch name := pass.ExternalName(class); {
		case strings.HasSuffix(name, "Embedding"), strings.HasSuffix(name, "EmbeddingBag"):
			embedding = "a check_fn that names " + pyscan.LastPart(name)
		case name == "torch.nn.Linear":
			head = "a check_fn that names Linear"
		case name == "torch.nn.Module":
			embedding = "a check_fn that takes every Module"
		}
	}
	return embedding, head
}

// answerOf is the expression that a function of one statement returns.
func answerOf(f *pyscan.Func) syntax.Expr {
	if lambda, ok := f.Scope.Node.(*syntax.Lambda); ok {
		return lambda.Body
	}
	if returns := f.Scope.Returns(); len(returns) == 1 && len(f.Scope.Body()) == 1 {
		return returns[0].Value
	}
	return nil
}

// appliedReentrant says which variant apply_activation_checkpointing uses: that of its checkpoint_wrapper_fn, which is not reentrant by default.
func appliedReentrant(pass *lint.Pass, c *workspace.Checkpoint) pyscan.Truth {
	wrapper := pass.Arg(c.Scope, c.Frame, c.Call, "checkpoint_wrapper_fn", 1)
	if wrapper == nil {
		return pyscan.No
	}
	partial, ok := pass.Expand(wrapper).(*pyscan.Partial)
	if !ok {
		return pyscan.Maybe
	}
	site := partial.Site()
	if site.Module == nil || partial.Call == nil {
		return pyscan.Maybe
	}
	kind := pass.Arg(pyscan.ScopeAt(site.Module, partial.Call), partial.Frame, partial.Call, "checkpoint_impl", -1)
	if kind == nil {
		return pyscan.No
	}
	name := pass.ExternalName(pass.Expand(kind))
	return pyscan.Truly(strings.HasSuffix(name, "CheckpointImpl.REENTRANT"))
}

func reportApplied(pass *lint.Pass, c *workspace.Checkpoint, what string) {
	if appliedReentrant(pass, c) == pyscan.Yes {
		d := pass.Reportf(at(c), "%s puts a reentrant checkpoint around the embedding, which gets no gradient and silently never trains: its ids are integers", what)
		if strings.Contains(what, "always") || strings.Contains(what, "every") {
			d.As(lint.Warning) // the model may have none
		}
		d.Help("name the blocks in check_fn")
		return
	}
	pass.Reportf(at(c), "%s puts a checkpoint around the embedding too, which is recomputed in backward and saves nothing", what).As(lint.Info).Help("name the blocks in check_fn")
}

const pipelineInterval = "activation_checkpoint_interval"

// pipelineLayers finds LayerSpec(Embedding) in a DeepSpeed pipeline that checkpoints every layer.
func pipelineLayers(pass *lint.Pass, module *pyscan.Module) {
	if !words(module, pipelineInterval) {
		return
	}
	every := false
	var layers []*syntax.Call
	for _, site := range module.Calls {
		call, scope := site.Call, site.Scope
		if e := workspace.Argument(call, pipelineInterval, -1); e != nil {
			if c, ok := pass.Constant(pass.Expand(pass.Eval(scope, nil, e))); ok {
				if n, ok := c.Int(); ok && n == 1 {
					every = true
				}
			}
		}
		if name := workspace.Leaf(call.Func); (name == "LayerSpec" || name == "TiedLayerSpec") && len(call.Args) > 0 {
			for _, arg := range call.Args {
				if strings.HasSuffix(pass.Library(scope, nil, arg), "Embedding") {
					layers = append(layers, call)
					break
				}
			}
		}
	}
	for _, call := range layers {
		if every {
			pass.Reportf(module.File.At(call.Span()), "the pipeline checkpoints every layer, this embedding too: a lookup keeps only its integer ids, so nothing is saved").As(lint.Info).
				Help("put the embedding and the first block into one layer, or checkpoint by a longer interval")
		}
	}
}
