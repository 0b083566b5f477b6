// Package zero holds the rules about DeepSpeed engines and ZeRO.
package zero

import (
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
)

// engineOf is the DeepSpeed engine that a value certainly is.
func engineOf(pass *lint.Pass, value pyscan.Value) (workspace.Wrapper, bool) {
	if value == nil {
		return workspace.Wrapper{}, false
	}
	wrappers, _, _ := pass.Wrappers(value)
	list := workspace.Alternatives(pass.Expand(value))
	if len(list) == 1 && len(wrappers) > 0 && wrappers[0].Kind == workspace.DeepSpeedEngine {
		return wrappers[0], true
	}
	return workspace.Wrapper{}, false
}

// engineLoop is the engine whose backward runs in a loop, with that backward.
func engineLoop(pass *lint.Pass, l *loop.Loop) (workspace.Wrapper, *loop.Event) {
	for event := range l.All {
		if event.Kind == loop.Backward && event.By == loop.Engine {
			if w, ok := engineOf(pass, event.On); ok {
				return w, event
			}
		}
	}
	return workspace.Wrapper{}, nil
}

// wrappedAt notes where the engine was made.
func wrappedAt(d *lint.Diagnostic, w workspace.Wrapper) *lint.Diagnostic {
	if w.Call != nil && w.Scope != nil {
		d.Note(w.Scope.Module.File.At(w.Call.Span()), "the engine is made here")
	}
	return d
}

// stageAt notes where the stage is written.
func stageAt(d *lint.Diagnostic, part *workspace.Part) *lint.Diagnostic {
	if part != nil {
		if item := part.Tree.Root.Item("zero_optimization"); item != nil && item.Value != nil {
			at := item.KeyAt
			if stage := item.Value.Item("stage"); stage != nil {
				at = stage.KeyAt
			}
			d.Note(at, "the ZeRO stage is set here")
		}
	}
	return d
}

// sameObject reports whether two values are one object: made by one call, or one parameter.
func sameObject(a, b pyscan.Value) bool {
	switch a := a.(type) {
	case *pyscan.Instance:
		b, ok := b.(*pyscan.Instance)
		return ok && a.Call != nil && a.Call == b.Call
	case *pyscan.Result:
		b, ok := b.(*pyscan.Result)
		return ok && a.Call != nil && a.Call == b.Call
	case *pyscan.ParamValue:
		b, ok := b.(*pyscan.ParamValue)
		return ok && a.Scope == b.Scope && a.Index == b.Index
	}
	return false
}
