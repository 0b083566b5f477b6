package ddp

import (
	_ "embed"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed ddp-manual-allreduce.md
var ddpManualAllreduceDoc string

// DdpManualAllreduce finds gradients that DDP has averaged already and that are all-reduced once more.
var DdpManualAllreduce = &lint.Rule{
	Name:     "ddp-manual-allreduce",
	Family:   "ddp",
	Since:    "0.1",
	Doc:      ddpManualAllreduceDoc,
	Severity: lint.Error,
	Mentions: []string{"all_reduce"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		if module.Says("no_sync", "require_backward_grad_sync", "set_requires_gradient_sync") {
			return // gradients may be local on purpose
		}
		for _, site := range module.CallsOf("all_reduce") {
			checkAllReduce(pass, module, site.Scope, site.Call)
		}
	},
}

func checkAllReduce(pass *lint.Pass, module *pyscan.Module, scope *pyscan.Scope, call *syntax.Call) {
	if pass.Library(scope, nil, call.Func) != "torch.distributed.all_reduce" {
		return
	}
	reduced := workspace.Argument(call, "tensor", 0)
	if reduced == nil {
		return
	}
	if group := pass.Arg(scope, nil, call, "group", 2); group != nil {
		if c, ok := pass.Constant(pass.Expand(group)); !ok || c.Kind() != constant.None {
			return // of some ranks only
		}
	}
	parameter := gradientOf(scope, reduced)
	if parameter == nil {
		return
	}
	loop, owner := parametersLoop(scope, call, parameter)
	if loop == nil {
		return
	}
	w, is := pass.Outermost(pass.Eval(scope, nil, owner))
	if is == pyscan.No || w.Kind != workspace.DDP && w.Kind != workspace.FSDP1 {
		return
	}
	if path := pyscan.Path(owner); path != "" && scope.Node != nil && strings.Contains(module.Code(scope.Node.Span()), path+".module(") {
		return // the wrapper's forward may never run, so that its reducer does not either
	}
	at := module.File.At(call.Span())
	var d *lint.Diagnostic
	switch {
	case averages(pass, scope, call) || divides(loop, pyscan.Path(parameter)):
		d = pass.Reportf(at, "%s has reduced these gradients in backward already: averaging them again changes nothing and costs another all-reduce for each parameter", w.Kind).As(lint.Warning)
	case w.Kind == workspace.FSDP1:
		d = pass.Reportf(at, "FSDP keeps another shard of each gradient on every rank: this adds gradients of different weights to each other")
	default:
		d = pass.Reportf(at, "DDP has averaged these gradients in backward already: summing them in place makes them larger by the number of ranks")
	}
	if is == pyscan.Maybe && d.Severity != lint.Warning {
		d.As(lint.Warning)
	}
	wrappedAt(d, w).Help("drop it; to look at gradients, reduce a clone")
}

// gradientOf is the p of p.grad, p.grad.data, or of a name that was assigned one of them; nil for anything else.
func gradientOf(scope *pyscan.Scope, e syntax.Expr) syntax.Expr {
	switch e := e.(type) {
	case *syntax.Attribute:
		if e.Attr == "grad" {
			return e.Value
		}
		if e.Attr == "data" {
			return gradientOf(scope, e.Value)
		}
	case *syntax.Name:
		if def := scope.Def(e); def != nil && def.Kind == pyscan.AssignDef {
			if attr, ok := def.Value.(*syntax.Attribute); ok {
				return gradientOf(scope, attr)
			}
		}
	}
	return nil
}

// parametersLoop is the loop over model.parameters() or model.named_parameters() that gives a parameter, and the model.
func parametersLoop(scope *pyscan.Scope, node syntax.Node, parameter syntax.Expr) (*syntax.For, syntax.Expr) {
	for _, stmt := range workspace.Around(scope, node) {
		loop, ok := stmt.(*syntax.For)
		if !ok {
			continue
		}
		found := false
		syntax.Inspect(loop.Target, func(n syntax.Node) bool {
			if name, ok := n.(*syntax.Name); ok && name.ID == pyscan.Path(parameter) {
				found = true
			}
			return !found
		})
		iter := loop.Iter
		if call, ok := iter.(*syntax.Call); ok && len(call.Args) > 0 {
			switch pyscan.LastName(call.Func) {
			case "list", "enumerate", "filter", "tqdm", "reversed":
				iter = call.Args[len(call.Args)-1]
			}
		}
		call, ok := iter.(*syntax.Call)
		if !ok || !found {
			continue
		}
		if attr, ok := call.Func.(*syntax.Attribute); ok && (attr.Attr == "parameters" || attr.Attr == "named_parameters") {
			if inner, ok := attr.Value.(*syntax.Attribute); ok && inner.Attr == "module" {
				return loop, inner.Value
			}
			return loop, attr.Value
		}
	}
	return nil, nil
}

// averages reports whether the operation of an all_reduce is AVG.
func averages(pass *lint.Pass, scope *pyscan.Scope, call *syntax.Call) bool {
	op := pass.Arg(scope, nil, call, "op", 1)
	return op != nil && pyscan.LastPart(pass.ExternalName(op)) == "AVG"
}

// divides reports whether a loop divides the gradient of its parameter: p.grad /= n, p.grad.div_(n), p.grad = p.grad / n.
func divides(loop *syntax.For, parameter string) bool {
	found := false
	mine := func(e syntax.Expr) bool {
		path := pyscan.Path(e)
		return path == parameter+".grad" || path == parameter+".grad.data"
	}
	syntax.Inspect(loop, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.AugAssign:
			found = found || n.Op == syntax.Div && (mine(n.Target) || isName(n.Target)) || n.Op == syntax.Mult && mine(n.Target)
		case *syntax.Call:
			if attr, ok := n.Func.(*syntax.Attribute); ok && (attr.Attr == "div_" || attr.Attr == "mul_") {
				found = true
			}
		case *syntax.Assign:
			if op, ok := n.Value.(*syntax.BinOp); ok && op.Op == syntax.Div && mine(n.Targets[0]) {
				found = true
			}
		}
		return !found
	})
	return found
}

func isName(e syntax.Expr) bool {
	_, ok := e.(*syntax.Name)
	return ok
}
