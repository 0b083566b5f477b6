package fsdp

import (
	_ "embed"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed fsdp-optimizer-before-wrap.md
var fsdpOptimizerBeforeWrapDoc string

// FsdpOptimizerBeforeWrap finds optimizers that were given the parameters of a model before FSDP replaced them.
var FsdpOptimizerBeforeWrap = &lint.Rule{
	Name:     "fsdp-optimizer-before-wrap",
	Family:   "fsdp",
	Since:    "0.1",
	Doc:      fsdpOptimizerBeforeWrapDoc,
	Severity: lint.Error,
	Mentions: []string{"parameters()"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		for _, call := range calls(module) {
			scope := pyscan.ScopeAt(module, call)
			if len(call.Args) > 0 && isOptimizer(pass, pass.Eval(scope, nil, call)) {
				checkOrder(pass, module, scope, call)
			}
		}
	},
}

func isOptimizer(pass *lint.Pass, value pyscan.Value) bool {
	made, ok := value.(*pyscan.Instance)
	if !ok {
		return false
	}
	name := pass.ExternalName(made.Of)
	for _, prefix := range []string{"torch.optim.", "apex.optimizers.", "deepspeed.ops.", "bitsandbytes.optim."} {
		if strings.HasPrefix(name, prefix) {
			return !strings.Contains(name, "lr_scheduler")
		}
	}
	return name == "transformers.AdamW" || name == "transformers.Adafactor"
}

func checkOrder(pass *lint.Pass, module *pyscan.Module, scope *pyscan.Scope, optimizer *syntax.Call) {
	owner, _ := parametersOf(scope, optimizer.Args[0])
	path := pyscan.Path(owner)
	if path == "" {
		return
	}
	if _, is := pass.Outermost(pass.Eval(scope, nil, owner)); is != pyscan.No {
		return
	}
	wrap, w := wrapsLater(pass, scope, optimizer, owner, path)
	if wrap == nil || remade(pass, scope, optimizer, wrap) {
		return
	}
	d := pass.Reportf(module.File.At(optimizer.Span()), "the optimizer is given the parameters of the model before %s replaces them by sharded ones: it steps on tensors that the model no longer uses", w.Kind)
	if w.Kind == workspace.FSDP1 {
		if original := pass.Keyword(w, "use_orig_params", -1); original != nil && pass.Truthy(pass.Settled(original)) != pyscan.No || original == nil && pass.OpenKeywords(w.Scope, w.Frame, w.Call) {
			d.As(lint.Warning)
		}
	}
	d.Note(module.File.At(wrap.Span()), "the model is wrapped here, later").Help("make the optimizer after the wrapping")
}

// wrapsLater is the call after the optimizer's, in the same function, that wraps the same model.
func wrapsLater(pass *lint.Pass, scope *pyscan.Scope, optimizer *syntax.Call, owner syntax.Expr, path string) (wrap *syntax.Call, w workspace.Wrapper) {
	for _, stmt := range scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			switch n.(type) {
			case *syntax.FunctionDef, *syntax.ClassDef, *syntax.Lambda:
				return false
			}
			call, ok := n.(*syntax.Call)
			if !ok || wrap != nil || call.Span().Start < optimizer.Span().End {
				return wrap == nil
			}
			for i, arg := range call.Args {
				if pyscan.Path(arg) != path || !sameDef(scope, owner, arg) || exclusive(scope, optimizer, call) {
					continue
				}
				if one, is := pass.Outermost(pass.Eval(scope, nil, call)); is != pyscan.No && (one.Kind == workspace.FSDP1 || one.Kind == workspace.FSDP2) {
					wrap, w = call, one
				} else if one, ok := pass.ShardsArgument(scope, nil, call, i); ok {
					wrap, w = call, one
				}
			}
			return wrap == nil
		})
	}
	return wrap, w
}

// sameDef reports whether two uses of one path read the same definition.
func sameDef(scope *pyscan.Scope, a, b syntax.Expr) bool {
	switch a := a.(type) {
	case *syntax.Name:
		b, ok := b.(*syntax.Name)
		return ok && scope.Def(a) == scope.Def(b)
	case *syntax.Attribute:
		b, ok := b.(*syntax.Attribute)
		return ok && scope.AttrDef(a) == scope.AttrDef(b)
	}
	return false
}

// remade reports whether an optimizer is made again after the wrapping.
func remade(pass *lint.Pass, scope *pyscan.Scope, optimizer, wrap *syntax.Call) bool {
	found := false
	for _, stmt := range scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			if call, ok := n.(*syntax.Call); ok && call != optimizer && call.Span().Start > wrap.Span().Start && isOptimizer(pass, pass.Eval(scope, nil, call)) {
				found = true
			}
			return !found
		})
	}
	return found
}

// exclusive reports whether two nodes stand in different arms of one if, so that only one of them runs.
func exclusive(scope *pyscan.Scope, a, b syntax.Node) bool {
	for _, stmt := range workspace.Around(scope, a) {
		branch, ok := stmt.(*syntax.If)
		if ok && stmt.Span().Contains(b.Span()) && workspace.Within(branch.Body, a) != workspace.Within(branch.Body, b) {
			return true
		}
		if ok && len(branch.Body) > 0 && workspace.Within(branch.Body, a) && !stmt.Span().Contains(b.Span()) {
			if _, leaves := branch.Body[len(branch.Body)-1].(*syntax.Return); leaves {
				return true
			}
		}
	}
	return false
}
