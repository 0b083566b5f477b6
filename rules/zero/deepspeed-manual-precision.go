package zero

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed deepspeed-manual-precision.md
var deepspeedManualPrecisionDoc string

// DeepspeedManualPrecision finds mixed precision by hand around an engine that does it itself.
var DeepspeedManualPrecision = &lint.Rule{
	Name:     "deepspeed-manual-precision",
	Family:   "zero",
	Since:    "0.1",
	Doc:      deepspeedManualPrecisionDoc,
	Severity: lint.Warning,
	Mentions: append([]string{"autocast", "half()", "bfloat16()", "GradScaler", "deepspeed"}, loop.Mentions...),
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		reported := map[source.Place]bool{}
		for event := range l.All {
			switch {
			case event.Kind == loop.Forward:
				if engine, ok := engineOf(pass, event.On); ok {
					insideAutocast(pass, l, event, engine, reported)
				}
			case event.Kind == loop.Backward && event.By == loop.Scaler:
				scaled(pass, l, event, reported)
			case event.Kind == loop.Backward && event.By == loop.Engine && pass.ScalerOf(event) != nil: // engine.backward(scaler.scale(loss))
				if engine, ok := engineOf(pass, event.On); ok {
					scaledTwice(pass, l, event, engine, reported)
				}
			}
		}
	},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		for _, site := range pass.CallsNear(module, initialize) {
			call, scope := site.Call, site.Scope
			if pass.Library(scope, nil, call.Func) == "deepspeed.initialize" {
				castBefore(pass, module, scope, call)
			}
		}
	},
}

// initialize is the name of what makes an engine.
var initialize = &pyscan.Words{Alias: true, Names: map[string]bool{"initialize": true}}

// mixed is the precision that an engine brings, "" where it brings none or nobody knows.
func mixed(pass *lint.Pass, engine workspace.Wrapper) string {
	config := pass.Engine(engine)
	if !config.Certain || config.Has("torch_autocast") != pyscan.No {
		return ""
	}
	for _, name := range []string{"fp16", "bf16"} {
		if config.On(name, "enabled") == pyscan.Yes {
			return name
		}
	}
	return ""
}

func insideAutocast(pass *lint.Pass, l *loop.Loop, event *loop.Event, engine workspace.Wrapper, reported map[source.Place]bool) {
	own := mixed(pass, engine)
	if own == "" {
		return
	}
	for _, c := range event.Contexts {
		if c.Kind != loop.AutocastContext || c.Scope.Module.File.Path != l.Function().Scope.Module.File.Path {
			continue
		}
		if call, ok := c.Expr.(*syntax.Call); ok {
			if on := pass.Arg(c.Scope, c.Frame, call, "enabled", -1); on != nil && pass.Truthy(pass.Settled(on)) != pyscan.Yes {
				continue
			}
		}
		at := c.Scope.Module.File.At(c.Expr.Span())
		if !reported[at] {
			reported[at] = true
			wrappedAt(pass.Reportf(at, "autocast around a DeepSpeed engine that already runs in %s: the engine has cast the weights, and autocast runs some operations in fp32 again or in another 16-bit type", own), engine).
				Help("drop autocast, or configure torch_autocast instead of %s", own)
		}
	}
}

// scaled is a GradScaler over a loss that an engine made.
func scaled(pass *lint.Pass, l *loop.Loop, event *loop.Event, reported map[source.Place]bool) {
	for _, source := range loop.Sources(event, pass) {
		call, ok := source.Node.(*syntax.Call)
		if !ok {
			continue
		}
		engine, ok := engineOf(pass, pass.Eval(source.Scope, source.Frame, call.Func))
		if !ok {
			continue
		}
		scaledTwice(pass, l, event, engine, reported)
		return
	}
}

func scaledTwice(pass *lint.Pass, l *loop.Loop, event *loop.Event, engine workspace.Wrapper, reported map[source.Place]bool) {
	at := l.Place(event)
	if made := pass.ScalerOf(event); made != nil && made.At.Module == l.Function().Scope.Module {
		at = made.At.Module.File.At(made.Call.Span())
	}
	if own := mixed(pass, engine); own != "" && !reported[at] {
		reported[at] = true
		wrappedAt(pass.Reportf(at, "a GradScaler scales the loss of a DeepSpeed engine that runs in %s: the engine scales and checks gradients itself, and never divides by this scale", own), engine).As(lint.Error).
			Help("call engine.backward(loss) and engine.step() without a GradScaler")
	}
}

// castBefore is model.half() on what an engine with fp16 or bf16 is given.
func castBefore(pass *lint.Pass, module *pyscan.Module, scope *pyscan.Scope, call *syntax.Call) {
	model := workspace.Argument(call, "model", 1)
	if model == nil {
		return
	}
	engine := workspace.Wrapper{Kind: workspace.DeepSpeedEngine, Call: call, Scope: scope}
	own := mixed(pass, engine)
	if own == "" {
		return
	}
	report := func(cast *syntax.Call, name string) {
		wrappedAt(pass.Reportf(module.File.At(cast.Span()), "%s() before a DeepSpeed engine with %s: the engine makes its fp32 master weights from weights that were already rounded to 16 bits", name, own), engine).
			Help("leave the model in fp32; the engine casts it")
	}
	if cast, name := castCall(model); cast != nil {
		report(cast, name)
		return
	}
	path := pyscan.Path(model)
	for _, stmt := range scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			if n == nil || n.Span().Start > call.Span().Start {
				return false
			}
			switch n.(type) {
			case *syntax.FunctionDef, *syntax.ClassDef, *syntax.Lambda:
				return false
			}
			cast, ok := n.(*syntax.Call)
			if !ok || path == "" {
				return true
			}
			if inner, name := castCall(cast); inner != nil {
				if attr, ok := inner.Func.(*syntax.Attribute); ok && pyscan.Path(attr.Value) == path {
					report(inner, name)
				}
			}
			return true
		})
	}
}

// castCall is `x.half()` or `x.bfloat16()`.
func castCall(e syntax.Expr) (*syntax.Call, string) {
	call, ok := e.(*syntax.Call)
	if !ok || len(call.Args) > 0 {
		return nil, ""
	}
	if attr, ok := call.Func.(*syntax.Attribute); ok && (attr.Attr == "half" || attr.Attr == "bfloat16") {
		return call, attr.Attr
	}
	return nil, ""
}
