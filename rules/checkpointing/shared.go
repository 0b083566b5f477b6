package checkpointing

import (
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// torchCheckpoint reports whether a checkpoint is torch's own, which takes use_reentrant.
func torchCheckpoint(c *workspace.Checkpoint) bool {
	return strings.HasPrefix(c.Callee, "torch.utils.checkpoint.")
}

// at is the place of a checkpoint.
func at(c *workspace.Checkpoint) source.Place { return c.Scope.Module.File.At(c.Call.Span()) }

// setReentrant offers to write use_reentrant=False in a call of torch's checkpoint.
func setReentrant(d *lint.Diagnostic, c *workspace.Checkpoint, safety lint.Safety) {
	const title = "pass use_reentrant=False"
	file := c.Scope.Module.File
	for _, k := range c.Call.Keywords {
		if k.Arg == "use_reentrant" {
			d.Suggest(title, safety, lint.Edit{At: file.At(k.Value.Span()), Text: "False"})
			return
		}
	}
	end := uint32(0)
	for _, arg := range c.Call.Args {
		end = max(end, arg.Span().End)
	}
	for _, k := range c.Call.Keywords {
		end = max(end, k.Span().End)
	}
	direct := strings.HasSuffix(strings.TrimSuffix(file.Slice(c.Call.Func.Span()), "_sequential"), "checkpoint") || c.Omitted
	if !torchCheckpoint(c) || end == 0 || c.Decorates != nil || !direct || end > c.Call.Span().End {
		d.Help(title)
		return
	}
	if len(c.Call.Args) == 1 && len(c.Call.Keywords) == 0 {
		if comp, ok := c.Call.Args[0].(*syntax.Comp); ok && comp.Span().End == c.Call.Span().End {
			d.Help(title)
			return
		}
	}
	d.Suggest(title, safety, lint.Edit{At: file.At(source.Span{Start: end, End: end}), Text: ", use_reentrant=False"})
}

// trainable says whether what a checkpoint runs has parameters that train: a module, or a function that applies one.
func trainable(pass *lint.Pass, c *workspace.Checkpoint) pyscan.Truth {
	if c.Function != nil && pass.Frozen(c.Scope, c.Function) {
		return pyscan.No
	}
	answer := pyscan.No
	for _, one := range workspace.Alternatives(pass.Target(c)) {
		answer = answer.Or(holdsParameters(pass, one, 3))
	}
	return answer
}

// bareModules are modules of torch without parameters.
var bareModules = []string{"torch.nn.Identity", "torch.nn.Dropout", "torch.nn.ReLU", "torch.nn.GELU", "torch.nn.SiLU", "torch.nn.Tanh", "torch.nn.Sigmoid", "torch.nn.Softmax", "torch.nn.LogSoftmax",
	"torch.nn.Flatten", "torch.nn.MaxPool2d", "torch.nn.AvgPool2d", "torch.nn.AdaptiveAvgPool2d", "torch.nn.Upsample"}

func holdsParameters(pass *lint.Pass, value pyscan.Value, depth int) pyscan.Truth {
	switch value := value.(type) {
	case *pyscan.Instance:
		switch {
		case pass.Derives(value.Of, bareModules...) == pyscan.Yes:
			return pyscan.No
		case !strings.HasPrefix(pass.ExternalName(value.Of), "torch.nn.") && pass.Derives(value.Of, "torch.nn.Module") != pyscan.Yes:
			return pyscan.Maybe
		}
		return pyscan.Yes
	case *pyscan.Partial:
		return holdsParameters(pass, value.Of, depth)
	case *pyscan.Func:
		if depth <= 0 {
			return pyscan.Maybe
		}
		if inst, ok := value.Self.(*pyscan.Instance); ok && value.Scope.Name == "forward" {
			return holdsParameters(pass, inst, depth)
		}
		answer := pyscan.Maybe
		for _, call := range pass.Applies(value) {
			for _, one := range workspace.Alternatives(call.Callee) {
				switch one := one.(type) {
				case *pyscan.Instance, *pyscan.Partial:
					answer = answer.Or(holdsParameters(pass, one, depth-1))
				case *pyscan.Func:
					if one.Scope != value.Scope {
						answer = answer.Or(holdsParameters(pass, one, depth-1))
					}
				}
			}
		}
		return answer
	}
	return pyscan.Maybe
}

// synchronised is the wrapper around a checkpoint's model under which hooks that fire twice are an error: DDP without a static graph, ZeRO-2 or
// 3. ok is false where none is known.
func synchronised(pass *lint.Pass, c *workspace.Checkpoint) (w workspace.Wrapper, ok bool) {
	for _, w := range pass.WrappersAround(c) {
		switch w.Kind {
		case workspace.DDP:
			if static := pass.Keyword(w, "static_graph", -1); static == nil || pass.Truthy(pass.Expand(static)) == pyscan.No {
				return w, true
			}
		case workspace.DeepSpeedEngine:
			if stage, _, known := pass.Engine(w).Stage(); known && stage >= 2 {
				return w, true
			}
		}
	}
	return w, false
}

// noteWrapper tells where a model is wrapped.
func noteWrapper(d *lint.Diagnostic, w workspace.Wrapper) {
	if w.Call != nil && w.Scope != nil {
		d.Note(w.Scope.Module.File.At(w.Call.Span()), "the model is wrapped here")
	}
}

// words reports whether a file holds one of the words.
func words(m *pyscan.Module, list ...string) bool {
	return slices.ContainsFunc(list, m.File.Has)
}
