package fsdp

import (
	_ "embed"
	"slices"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed fsdp-clip-grad-norm.md
var fsdpClipGradNormDoc string

// FsdpClipGradNorm finds gradients of an FSDP1 model that are clipped by the norm of the local shard.
var FsdpClipGradNorm = &lint.Rule{
	Name:     "fsdp-clip-grad-norm",
	Family:   "fsdp",
	Since:    "0.1",
	Doc:      fsdpClipGradNormDoc,
	Severity: lint.Error,
	Fix:      lint.SometimesFix,
	Mentions: []string{"clip_grad_norm"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		for _, site := range pass.CallsNear(module, clipNames) {
			call, scope := site.Call, site.Scope
			switch pass.Library(scope, nil, call.Func) {
			case "torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_norm":
				checkClip(pass, module, scope, call)
			}
		}
	},
}

var clipNames = &pyscan.Words{Alias: true, Names: map[string]bool{"clip_grad_norm_": true, "clip_grad_norm": true}}

func checkClip(pass *lint.Pass, module *pyscan.Module, scope *pyscan.Scope, call *syntax.Call) {
	parameters := workspace.Argument(call, "parameters", 0)
	if parameters == nil {
		return
	}
	owner, plain := parametersOf(scope, parameters)
	if owner == nil {
		return
	}
	model := owner
	if attr, ok := owner.(*syntax.Attribute); ok && attr.Attr == "module" {
		model, plain = attr.Value, false
	}
	w, is := pass.Outermost(pass.Eval(scope, nil, model))
	if is == pyscan.No || w.Kind != workspace.FSDP1 || is == pyscan.Maybe && (mentionsFSDP(scope, call) || clipsItself(scope, model)) || ruledOut(scope, call, model) {
		return
	}
	switch strategy(pass, w) {
	case "NO_SHARD":
		return
	case "?":
		is = pyscan.Maybe
	}
	d := pass.Reportf(module.File.At(call.Span()), "clip_grad_norm_ of torch.nn.utils sees only this rank's shard of an FSDP model: every rank clips by another norm, each smaller than the true one")
	if is == pyscan.Maybe {
		d.As(lint.Warning)
	}
	wrappedAt(d, w)
	if text, ok := rewritten(module, call, model); ok && plain {
		d.Suggest("let FSDP clip by the norm over all ranks", lint.Safe, lint.Edit{At: module.File.At(call.Span()), Text: text})
		return
	}
	d.Help("call %s.clip_grad_norm_(max_norm)", module.File.Slice(model.Span()))
}

// clipsItself reports whether a function lets the model clip as well: its author knows FSDP's way, and leaves the other to what is no FSDP.
func clipsItself(scope *pyscan.Scope, model syntax.Expr) bool {
	path := pyscan.Path(model)
	return path != "" && slices.ContainsFunc(scope.Calls, func(call *syntax.Call) bool { return pyscan.Path(call.Func) == path+".clip_grad_norm_" })
}

// rewritten is the call as a method of the model; ok is false where it has arguments that the method does not take.
func rewritten(module *pyscan.Module, call *syntax.Call, model syntax.Expr) (string, bool) {
	text := module.File.Slice(model.Span()) + ".clip_grad_norm_("
	n := 0
	add := func(node syntax.Node) {
		if n > 0 {
			text += ", "
		}
		text += module.File.Slice(node.Span())
		n++
	}
	for i, arg := range call.Args {
		if _, star := arg.(*syntax.Starred); star || i > 2 {
			return "", false
		}
		if i > 0 {
			add(arg)
		}
	}
	for _, k := range call.Keywords {
		switch k.Arg {
		case "parameters":
		case "max_norm", "norm_type":
			add(k)
		default:
			return "", false
		}
	}
	return text + ")", n > 0
}
