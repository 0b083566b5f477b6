package fsdp

import (
	_ "embed"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed fsdp-submodule-forward.md
var fsdpSubmoduleForwardDoc string

// FsdpSubmoduleForward finds losses computed by a part or method of an FSDP1 model, outside of its forward.
var FsdpSubmoduleForward = &lint.Rule{
	Name:     "fsdp-submodule-forward",
	Family:   "fsdp",
	Since:    "0.1",
	Doc:      fsdpSubmoduleForwardDoc,
	Severity: lint.Warning,
	Mentions: loop.Mentions,
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		reported := map[source.Place]bool{}
		for event := range l.All {
			if event.Kind == loop.Backward && event.By != loop.Engine && event.By != loop.Foreign {
				checkParts(pass, l, event, reported)
			}
		}
	},
}

func checkParts(pass *lint.Pass, l *loop.Loop, backward *loop.Event, reported map[source.Place]bool) {
	for _, part := range loop.Sources(backward, pass) {
		call, ok := part.Node.(*syntax.Call)
		if !ok {
			continue
		}
		w, called, ok := partOf(pass, part, call)
		if !ok || pass.WithoutGradients(part.Scope, call) || summoned(part.Scope, call) {
			continue
		}
		if rootRan(pass, part, w, call) && !ownUnit(pass, w, pass.Eval(part.Scope, part.Frame, call.Func)) {
			continue // the outermost unit keeps its weights gathered from its forward to backward
		}
		at := part.Scope.Module.File.At(call.Span())
		if at.Path != l.Function().Scope.Module.File.Path {
			at = l.Place(backward)
		}
		if reported[at] {
			continue
		}
		reported[at] = true
		wrappedAt(pass.Reportf(at, "%s runs outside of the forward of the FSDP model it belongs to: its weights are not gathered there, so it computes with empty or flat shards, and its gradients are not reduced", called), w).
			Help("call it from the model's own forward")
	}
}

// notComputing are methods of a wrapper or model that run no layers.
var notComputing = map[string]bool{"parameters": true, "named_parameters": true, "state_dict": true, "modules": true, "clip_grad_norm_": true, "to": true, "train": true, "eval": true, "no_sync": true,
	"summon_full_params": true, "named_modules": true, "buffers": true, "size": true, "generate": true, "forward": true}

// partOf recognises model.part(x), model.method(x) and model.module.method(x) of an FSDP1 model.
func partOf(pass *lint.Pass, part loop.Source, call *syntax.Call) (w workspace.Wrapper, called string, ok bool) {
	attr, is := call.Func.(*syntax.Attribute)
	if !is || notComputing[attr.Attr] {
		return w, "", false
	}
	for e := attr.Value; ; {
		if w, certain := pass.Outermost(pass.Eval(part.Scope, part.Frame, e)); certain == pyscan.Yes && w.Kind == workspace.FSDP1 {
			return w, part.Scope.Module.File.Slice(call.Func.Span()), computes(pass, part, call.Func)
		}
		inner, is := e.(*syntax.Attribute)
		if !is || part.Scope.AttrDef(inner) != nil {
			return w, "", false
		}
		e = inner.Value
	}
}

// computes reports whether what is called is a module, or a method whose body is not known to be free of layers.
func computes(pass *lint.Pass, part loop.Source, callee syntax.Expr) bool {
	for _, one := range workspace.Alternatives(pass.Expand(pass.Eval(part.Scope, part.Frame, callee))) {
		if member, ok := one.(*pyscan.Member); ok { // FSDP hands attributes through
			if wrappers, inner, _ := pass.Wrappers(member.Base); len(wrappers) > 0 {
				one = pass.Attr(inner, member.Name, member.Origin)
			}
		}
		f, ok := one.(*pyscan.Func)
		if !ok {
			continue
		}
		layers := false
		for _, applied := range pass.Applies(f) {
			if made, ok := applied.Callee.(*pyscan.Instance); ok && (strings.HasPrefix(pass.ExternalName(made.Of), "torch.nn.") || pass.Derives(made.Of, "torch.nn.Module") != pyscan.No) {
				layers = true
			}
		}
		return layers
	}
	return true
}

// rootRan reports whether the arguments of a call come from a forward of the whole model.
func rootRan(pass *lint.Pass, part loop.Source, w workspace.Wrapper, call *syntax.Call) bool {
	for _, arg := range call.Args {
		event := &loop.Event{Loss: arg, Scope: part.Scope, Frame: part.Frame}
		for _, before := range loop.Sources(event, pass) {
			if inner, ok := before.Node.(*syntax.Call); ok {
				if other, is := pass.Outermost(pass.Eval(before.Scope, before.Frame, inner.Func)); is != pyscan.No && other.Call == w.Call {
					return true
				}
			}
		}
	}
	return false
}

// ownUnit reports whether the wrap policy certainly makes a unit of a module.
func ownUnit(pass *lint.Pass, w workspace.Wrapper, module pyscan.Value) bool {
	policy := pass.Keyword(w, "auto_wrap_policy", policyPosition)
	if policy == nil {
		return false
	}
	for _, class := range policyClasses(pass, pass.Expand(policy)) {
		if names(pass, class, []pyscan.Value{pass.Expand(module)}) {
			return true
		}
	}
	return false
}

// summoned reports whether a node stands inside summon_full_params.
func summoned(scope *pyscan.Scope, n syntax.Node) bool {
	for _, stmt := range workspace.Around(scope, n) {
		with, ok := stmt.(*syntax.With)
		if !ok {
			continue
		}
		for _, item := range with.Items {
			if call, ok := item.Context.(*syntax.Call); ok {
				if attr, ok := call.Func.(*syntax.Attribute); ok && attr.Attr == "summon_full_params" {
					return true
				}
			}
		}
	}
	return false
}
