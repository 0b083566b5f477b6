package fsdp

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed fsdp-tied-wrap-split.md
var fsdpTiedWrapSplitDoc string

// FsdpTiedWrapSplit finds wrap policies that put the two users of a tied weight into units of their own.
var FsdpTiedWrapSplit = &lint.Rule{
	Name:     "fsdp-tied-wrap-split",
	Family:   "fsdp",
	Since:    "0.1",
	Doc:      fsdpTiedWrapSplitDoc,
	Severity: lint.Error,
	Mentions: []string{"auto_wrap_policy", "ModuleWrapPolicy"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		for _, site := range pass.CallsNear(module, wrapNames) {
			call, scope := site.Call, site.Scope
			if pass.Library(scope, nil, call.Func) != fsdp1 || len(call.Args) == 0 {
				continue
			}
			policy := pass.Arg(scope, nil, call, "auto_wrap_policy", policyPosition)
			if policy == nil {
				continue
			}
			tie, tied := tiedModules(pass, pass.Expand(pass.Eval(scope, nil, call.Args[0])))
			if tie == nil {
				continue
			}
			for _, class := range policyClasses(pass, pass.Expand(policy)) {
				if class.scope.Module != module || !names(pass, class, tied) {
					continue
				}
				wrappedAt(pass.Reportf(module.File.At(class.expr.Span()), "the policy gives %s a unit of its own, but its weight is shared with another module: FSDP flattens the weight away in one unit, and the other fails on its size", module.File.Slice(class.expr.Span())),
					workspace.Wrapper{Call: call, Scope: scope}).Note(tie.scope.Module.File.At(tie.expr.Span()), "the weight is shared here").Help("leave the class out of the policy, so that both stay in the outermost unit")
			}
		}
	},
}

// located is an expression in its scope.
type located struct {
	scope *pyscan.Scope
	frame *pyscan.Frame
	expr  syntax.Expr
}

// tiedModules finds `self.a.weight = self.b.weight` in the class of a model or its bases, and gives the values of a and b.
func tiedModules(pass *lint.Pass, model pyscan.Value) (tie *located, modules []pyscan.Value) {
	for _, one := range workspace.Alternatives(model) {
		made, ok := one.(*pyscan.Instance)
		if !ok {
			continue
		}
		class, ok := made.Of.(*pyscan.Class)
		if !ok {
			continue
		}
		syntax.Inspect(class.Scope.Node, func(n syntax.Node) bool {
			assign, ok := n.(*syntax.Assign)
			if !ok || tie != nil {
				return tie == nil
			}
			target, value := weightOf(assign.Targets[0]), weightOf(assign.Value)
			if target == nil || value == nil {
				return true
			}
			scope := pyscan.ScopeAt(class.Scope.Module, assign)
			tie = &located{scope, nil, assign.Targets[0]}
			modules = append(modules, pass.Expand(pass.Eval(scope, nil, target)), pass.Expand(pass.Eval(scope, nil, value)))
			return false
		})
	}
	return tie, modules
}

// weightOf is the x of x.weight, where x is an attribute of self; nil for anything else.
func weightOf(e syntax.Expr) syntax.Expr {
	attr, ok := e.(*syntax.Attribute)
	if !ok || attr.Attr != "weight" {
		return nil
	}
	if _, ok := attr.Value.(*syntax.Attribute); !ok {
		return nil
	}
	return attr.Value
}

// policyClasses are the classes that a wrap policy names: of ModuleWrapPolicy, of transformer_auto_wrap_policy, and of an
// isinstance in a lambda.
func policyClasses(pass *lint.Pass, policy pyscan.Value) []located {
	switch policy := policy.(type) {
	case *pyscan.Instance:
		if pyscan.LastPart(pass.ExternalName(policy.Of)) == "ModuleWrapPolicy" && policy.Call != nil && policy.At.Module != nil {
			if e := workspace.Argument(policy.Call, "module_classes", 0); e != nil {
				return elements(located{pyscan.ScopeAt(policy.At.Module, policy.Call), policy.Frame, e}, 3)
			}
		}
	case *pyscan.Partial:
		if policy.Call == nil || policy.At.Module == nil {
			return nil
		}
		scope := pyscan.ScopeAt(policy.At.Module, policy.Call)
		switch pyscan.LastPart(pass.ExternalName(policy.Of)) {
		case "transformer_auto_wrap_policy":
			if e := workspace.Argument(policy.Call, "transformer_layer_cls", -1); e != nil {
				return elements(located{scope, policy.Frame, e}, 3)
			}
		case "lambda_auto_wrap_policy":
			if lambda, ok := workspace.Argument(policy.Call, "lambda_fn", -1).(*syntax.Lambda); ok {
				if test, ok := lambda.Body.(*syntax.Call); ok && pyscan.Path(test.Func) == "isinstance" && len(test.Args) == 2 {
					return elements(located{scope, policy.Frame, test.Args[1]}, 3)
				}
			}
		}
	}
	return nil
}

func elements(of located, depth int) []located {
	var list []syntax.Expr
	switch e := of.expr.(type) {
	case *syntax.Set:
		list = e.Elts
	case *syntax.List:
		list = e.Elts
	case *syntax.Tuple:
		list = e.Elts
	case *syntax.Name:
		if def := of.scope.Def(e); def != nil && def.Kind == pyscan.AssignDef && def.Value != nil && depth > 0 {
			switch def.Value.(type) {
			case *syntax.Set, *syntax.List, *syntax.Tuple:
				return elements(located{of.scope, of.frame, def.Value}, depth-1)
			}
		}
		return []located{of}
	case *syntax.Attribute:
		return []located{of}
	}
	var all []located
	for _, e := range list {
		all = append(all, located{of.scope, of.frame, e})
	}
	return all
}

// names reports whether a class is that of one of the tied modules.
func names(pass *lint.Pass, class located, modules []pyscan.Value) bool {
	value := pass.Eval(class.scope, class.frame, class.expr)
	for _, module := range modules {
		for _, one := range workspace.Alternatives(module) {
			made, ok := one.(*pyscan.Instance)
			if !ok {
				continue
			}
			if name := pass.ExternalName(value); name != "" && name == pass.ExternalName(made.Of) {
				return true
			}
			named, ok := value.(*pyscan.Class)
			if of, is := made.Of.(*pyscan.Class); ok && is && of.Scope == named.Scope {
				return true
			}
		}
	}
	return false
}
