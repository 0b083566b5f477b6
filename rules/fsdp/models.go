// Package fsdp holds the rules about PyTorch's fully sharded data parallelism, both versions.
package fsdp

import (
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// wrapNames are the last names of what wraps a model in FSDP1, and of what wraps its layers.
var wrapNames = &pyscan.Words{Alias: true, Names: map[string]bool{"FullyShardedDataParallel": true, "wrap": true, "enable_wrap": true, "partial": true}}

const fsdp1 = "torch.distributed.fsdp.FullyShardedDataParallel"

// Positions of FSDP1's parameters.
const (
	strategyPosition = 2
	offloadPosition  = 3
	policyPosition   = 4
)

// wrappedAt notes where a model is wrapped.
func wrappedAt(d *lint.Diagnostic, w workspace.Wrapper) *lint.Diagnostic {
	if w.Call != nil && w.Scope != nil {
		d.Note(w.Scope.Module.File.At(w.Call.Span()), "the model is wrapped here")
	}
	return d
}

// strategy is the last name of the sharding strategy of FSDP1; "" for the default, which shards everything, "?" where it
// is not known.
func strategy(pass *lint.Pass, w workspace.Wrapper) string {
	value := pass.Keyword(w, "sharding_strategy", strategyPosition)
	if value == nil {
		if w.Call != nil && pass.OpenKeywords(w.Scope, w.Frame, w.Call) {
			return "?"
		}
		return ""
	}
	if c, ok := pass.Constant(pass.Expand(value)); ok && c.Kind() == constant.None {
		return ""
	}
	name := pass.ExternalName(pass.Expand(value))
	if name == "" {
		return "?"
	}
	return pyscan.LastPart(name)
}

// parametersOf is the model whose parameters an expression lists: model.parameters(), a list or filter of them, a name that
// was assigned one; nil for anything else.
func parametersOf(scope *pyscan.Scope, e syntax.Expr) (owner syntax.Expr, plain bool) {
	if name, ok := e.(*syntax.Name); ok {
		def := scope.Def(name)
		if def == nil || def.Kind != pyscan.AssignDef || def.Value == nil {
			return nil, false
		}
		owner, _ = parametersOf(scope, def.Value)
		return owner, false
	}
	if call, ok := e.(*syntax.Call); ok {
		if attr, ok := call.Func.(*syntax.Attribute); ok && attr.Attr == "parameters" && len(call.Args)+len(call.Keywords) == 0 {
			return attr.Value, true
		}
	}
	syntax.Inspect(e, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.Call); ok && owner == nil {
			if attr, ok := call.Func.(*syntax.Attribute); ok && (attr.Attr == "parameters" || attr.Attr == "named_parameters") {
				owner = attr.Value
			}
		}
		return owner == nil
	})
	return owner, false
}

// fsdpForward is the wrapper of the first model in a loop whose forward runs under FSDP1 and with gradients.
func fsdpForward(pass *lint.Pass, l *loop.Loop) (workspace.Wrapper, pyscan.Truth) {
	for event := range l.All {
		if event.Kind == loop.Forward && !event.In(loop.NoGradContext) {
			if w, is := pass.Outermost(event.On); is != pyscan.No && w.Kind == workspace.FSDP1 {
				return w, is
			}
		}
	}
	return workspace.Wrapper{}, pyscan.No
}

// mentionsFSDP reports whether a node stands in a branch whose test speaks of FSDP, so that the author tells the cases apart.
func mentionsFSDP(scope *pyscan.Scope, n syntax.Node) bool {
	for _, stmt := range workspace.Around(scope, n) {
		if branch, ok := stmt.(*syntax.If); ok && strings.Contains(strings.ToLower(scope.Module.File.Slice(branch.Test.Span())), "fsdp") {
			return true
		}
	}
	return false
}

// ruledOut reports whether a node stands where `isinstance(model, FSDP)` was answered with no.
func ruledOut(scope *pyscan.Scope, n syntax.Node, model syntax.Expr) bool {
	for _, stmt := range workspace.Around(scope, n) {
		branch, ok := stmt.(*syntax.If)
		if !ok || len(branch.OrElse) == 0 || n.Span().Start < branch.OrElse[0].Span().Start {
			continue
		}
		test, ok := branch.Test.(*syntax.Call)
		if ok && pyscan.Path(test.Func) == "isinstance" && len(test.Args) == 2 && pyscan.Path(test.Args[0]) == pyscan.Path(model) && pyscan.Path(model) != "" &&
			(workspace.NamesAny(test.Args[1], "fsdp") || workspace.NamesAny(test.Args[1], "fullysharded")) {
			return true
		}
	}
	return false
}

func keywordAt(call *syntax.Call, name string) *syntax.Keyword {
	for _, k := range call.Keywords {
		if k.Arg == name {
			return k
		}
	}
	return nil
}

func calls(module *pyscan.Module) []*syntax.Call {
	var list []*syntax.Call
	for _, call := range module.Calls {
		list = append(list, call.Call)
	}
	return list
}
