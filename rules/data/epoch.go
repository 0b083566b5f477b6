package data

import (
	"slices"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// trains says whether a loop over a loader trains: Yes where gradients are computed in it and an optimizer is stepped,
// No where they are off or a model was put into evaluation mode before it.
func trains(pass *lint.Pass, use use) pyscan.Truth {
	for _, root := range pass.Loops(use.scope.Module) {
		if backwardIn(root, use.loop) && len(root.Deep(loop.Step)) > 0 {
			return pyscan.Yes
		}
	}
	if len(use.loop.Body) > 0 && pass.WithoutGradients(use.scope, use.loop.Body[0]) || evaluating(use) {
		return pyscan.No
	}
	return pyscan.Maybe
}

// backwardIn reports whether gradients are computed in a statement that is a loop, or in one that a loop runs.
func backwardIn(l *loop.Loop, node syntax.Stmt) bool {
	if l.Node == syntax.Node(node) {
		return len(l.Deep(loop.Backward)) > 0
	}
	return slices.ContainsFunc(l.Items, func(item loop.Item) bool {
		return item.Loop != nil && backwardIn(item.Loop, node)
	})
}

// evaluating reports whether the last call of eval() or train() before a loop, in its function, is eval().
func evaluating(use use) bool {
	mode := ""
	for _, call := range use.scope.Calls {
		if call.Span().End > use.loop.Span().Start {
			break
		}
		attr, ok := call.Func.(*syntax.Attribute)
		if ok && (attr.Attr == "eval" || attr.Attr == "train") && len(call.Args) == 0 {
			mode = attr.Attr
		}
	}
	return mode == "eval"
}

// setsEpoch reports whether set_epoch may be called on the sampler that a call makes: in a file, in one that imports
// it, or in one that it imports, on what is not known to be something else.
func setsEpoch(pass *lint.Pass, module *pyscan.Module, sampler *syntax.Call) bool {
	for _, file := range slices.Concat(pass.Closure(module.File.Path), pass.Importers(module.File.Path)) {
		m := pass.Module(file)
		if m == nil || !m.Says("set_epoch") {
			continue
		}
		for node := range m.Tree.All() {
			receiver := epochSetter(node)
			if receiver == nil {
				continue
			}
			if maySample(pass, pass.Eval(pyscan.ScopeAt(m, receiver), nil, receiver), sampler, 4) {
				return true
			}
		}
	}
	return false
}

// epochSetter is what set_epoch is taken from by an expression; nil where none is.
func epochSetter(node syntax.Node) syntax.Expr {
	switch n := node.(type) {
	case *syntax.Attribute:
		if n.Attr == "set_epoch" && n.Ctx == syntax.Load {
			return n.Value
		}
	case *syntax.Call: // getattr(sampler, "set_epoch")
		if pyscan.Path(n.Func) == "getattr" && len(n.Args) > 1 {
			if c, is := n.Args[1].(*syntax.Constant); is && c.Text == "set_epoch" {
				return n.Args[0]
			}
		}
	}
	return nil
}

// maySample reports whether a value may be the sampler that a call makes, or hand set_epoch on to it. An object of the
// project hands it on in its own code, which is looked at as well.
func maySample(pass *lint.Pass, value pyscan.Value, sampler *syntax.Call, depth int) bool {
	return slices.ContainsFunc(workspace.Alternatives(pass.Expand(value)), func(one pyscan.Value) bool {
		switch one := one.(type) {
		case *pyscan.Const, *pyscan.Func, *pyscan.Class, *pyscan.Mapping, *pyscan.Sequence:
			return false
		case *pyscan.Instance:
			if one.Call == sampler || pass.ExternalName(one.Of) == loaderClass && fedBy(pass, one, sampler) != nil {
				return true
			}
			_, own := one.Of.(*pyscan.Class)
			name := pass.ExternalName(one.Of)
			return !own && name != samplerClass && name != loaderClass
		case *pyscan.Member: // loader.sampler, loader.batch_sampler.sampler
			base, is := pass.Expand(one.Base).(*pyscan.Instance)
			if is && depth > 0 && pass.ExternalName(base.Of) == loaderClass {
				return maySample(pass, base, sampler, depth-1)
			}
		}
		return true
	})
}
