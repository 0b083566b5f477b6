package zero

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed deepspeed-manual-clip.md
var deepspeedManualClipDoc string

// DeepspeedManualClip finds gradients of an engine that are clipped by hand.
var DeepspeedManualClip = &lint.Rule{
	Name:     "deepspeed-manual-clip",
	Family:   "zero",
	Since:    "0.1",
	Doc:      deepspeedManualClipDoc,
	Severity: lint.Warning,
	Mentions: loop.Mentions,
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		engine, backward := engineLoop(pass, l)
		if backward == nil {
			return
		}
		config := pass.Engine(engine)
		stage, part, known := config.Stage()
		if known && stage == 0 && config.On("fp16", "enabled") == pyscan.No && config.On("bf16", "enabled") == pyscan.No {
			return // gradients are whole and unscaled: clipping works
		}
		reported := map[source.Place]bool{}
		for event := range l.All {
			if event.Kind != loop.Clip || event.Order < backward.Order || len(event.Call.Args) == 0 {
				continue
			}
			if _, method := event.Call.Func.(*syntax.Attribute); method && event.Receiver != nil && pass.Library(event.Scope, event.Frame, event.Call.Func) == "" {
				continue // some object's own clipping
			}
			at := l.Place(event)
			if reported[at] || !parametersOf(pass, event, engine.Value) {
				continue
			}
			reported[at] = true
			d := pass.Reportf(at, "gradients of a DeepSpeed engine are clipped by hand: under ZeRO, fp16 and bf16 the engine keeps them partitioned, scaled or in buffers of its own, so this clips nothing of what it steps on")
			if known && config.Certain && config.Has("gradient_clipping") == pyscan.No {
				d.As(lint.Error)
				d.Message += ", and no gradient_clipping is configured"
			}
			stageAt(wrappedAt(d, engine), part).Help("set gradient_clipping in the DeepSpeed config and drop this call")
		}
	},
}

// parametersOf reports whether the first argument of a clip call is the parameters of an engine or of the model inside.
func parametersOf(pass *lint.Pass, event *loop.Event, engine pyscan.Value) bool {
	call, ok := event.Call.Args[0].(*syntax.Call)
	if !ok {
		return false
	}
	attr, ok := call.Func.(*syntax.Attribute)
	if !ok || attr.Attr != "parameters" {
		return false
	}
	value := pass.Expand(pass.Eval(event.Scope, event.Frame, attr.Value))
	if w, ok := engineOf(pass, value); ok {
		mine, is := engineOf(pass, engine)
		return is && mine.Call == w.Call
	}
	if member, ok := value.(*pyscan.Member); ok && member.Name == "module" {
		w, ok := engineOf(pass, member.Base)
		mine, is := engineOf(pass, engine)
		return ok && is && mine.Call == w.Call
	}
	_, inner, _ := pass.Wrappers(engine)
	return sameObject(value, inner)
}
