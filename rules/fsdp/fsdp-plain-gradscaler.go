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

//go:embed fsdp-plain-gradscaler.md
var fsdpPlainGradscalerDoc string

// FsdpPlainGradscaler finds a GradScaler over an FSDP1 model that does not know of the other ranks.
var FsdpPlainGradscaler = &lint.Rule{
	Name:     "fsdp-plain-gradscaler",
	Family:   "fsdp",
	Since:    "0.1",
	Doc:      fsdpPlainGradscalerDoc,
	Severity: lint.Error,
	Mentions: []string{"GradScaler"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		reported := map[source.Place]bool{}
		for _, l := range pass.Loops(module) {
			for event := range l.All {
				if event.Kind == loop.Backward && event.By == loop.Scaler {
					checkScaler(pass, module, l, event, reported)
				}
			}
		}
	},
}

var plainScalers = map[string]bool{"torch.cuda.amp.GradScaler": true, "torch.amp.GradScaler": true, "torch.npu.amp.GradScaler": true, "torch.xpu.amp.GradScaler": true}

func checkScaler(pass *lint.Pass, module *pyscan.Module, l *loop.Loop, backward *loop.Event, reported map[source.Place]bool) {
	made := pass.ScalerOf(backward)
	if made == nil || made.At.Module != module || !plainScalers[pass.ExternalName(made.Of)] {
		return
	}
	at := module.File.At(made.Call.Span())
	if reported[at] {
		return
	}
	var w workspace.Wrapper
	certain, autocast := pyscan.No, ""
	for _, part := range loop.Sources(backward, pass) {
		call, ok := part.Node.(*syntax.Call)
		if !ok {
			continue
		}
		if one, is := pass.Outermost(pass.Eval(part.Scope, part.Frame, call.Func)); is != pyscan.No && one.Kind == workspace.FSDP1 {
			w, certain = one, is
		}
	}
	if certain == pyscan.No || strategy(pass, w) == "NO_SHARD" {
		return
	}
	enabled := pyscan.Yes
	if flag := pass.Arg(pyscan.ScopeAt(module, made.Call), made.Frame, made.Call, "enabled", -1); flag != nil {
		enabled = pass.Truthy(pass.Expand(flag))
	}
	for event := range l.All {
		for _, c := range event.Contexts {
			if c.Kind == loop.AutocastContext && event.Kind == loop.Forward {
				autocast = precision(pass, c)
			}
		}
	}
	if enabled == pyscan.No || autocast == "bfloat16" || mixedIn(pass, w) == "bfloat16" {
		return // with bf16 nothing overflows, and no scaler is wanted
	}
	reported[at] = true
	d := pass.Reportf(at, "GradScaler looks for overflow in this rank's shard of the FSDP model only: ranks disagree on whether to skip a step, and hang or drift apart")
	if certain != pyscan.Yes || enabled != pyscan.Yes {
		d.As(lint.Warning)
	}
	wrappedAt(d, w).Help("use torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler")
}

// precision is the type that an autocast context asks for, as far as it is known.
func precision(pass *lint.Pass, c loop.Context) string {
	call, ok := c.Expr.(*syntax.Call)
	if !ok {
		return ""
	}
	if dtype := pass.Arg(c.Scope, c.Frame, call, "dtype", 1); dtype != nil {
		return strings.TrimPrefix(pass.ExternalName(pass.Settled(dtype)), "torch.")
	}
	return ""
}

// mixedIn is the type that FSDP's own mixed precision computes in, "" where there is none or it is not known.
func mixedIn(pass *lint.Pass, w workspace.Wrapper) string {
	value := pass.Keyword(w, "mixed_precision", 6)
	if value == nil {
		return ""
	}
	mixed, ok := pass.Expand(value).(*pyscan.Instance)
	if !ok || mixed.Call == nil || mixed.At.Module == nil {
		return ""
	}
	if dtype := pass.Arg(pyscan.ScopeAt(mixed.At.Module, mixed.Call), mixed.Frame, mixed.Call, "param_dtype", 0); dtype != nil {
		return strings.TrimPrefix(pass.ExternalName(pass.Settled(dtype)), "torch.")
	}
	return ""
}
