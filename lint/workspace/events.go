package workspace

import (
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// ScalerOf is what made the GradScaler of a backward; nil when it is not known.
func (v *View) ScalerOf(backward *loop.Event) *pyscan.Instance {
	for e := backward.Loss; ; { // scaler.scale(loss), and what is done to it
		call, ok := e.(*syntax.Call)
		if !ok {
			return nil
		}
		attr, ok := call.Func.(*syntax.Attribute)
		if !ok {
			return nil
		}
		if attr.Attr == "scale" {
			made, ok := v.Expand(v.Eval(backward.Scope, backward.Frame, attr.Value)).(*pyscan.Instance)
			if !ok || made.Call == nil {
				return nil
			}
			return made
		}
		e = attr.Value
	}
}

// TurnsSyncOn reports whether a NoSync event switches gradient synchronisation on again, in every case:
// set_requires_gradient_sync(True), require_backward_grad_sync = True.
func (v *View) TurnsSyncOn(event *loop.Event) bool {
	var value syntax.Expr
	if event.Call != nil {
		attr, ok := event.Call.Func.(*syntax.Attribute)
		if !ok || attr.Attr == "no_sync" || attr.Attr == "no_backward_sync" || len(event.Call.Args) == 0 {
			return false
		}
		value = event.Call.Args[0]
	} else if assign, ok := event.Node.(*syntax.Assign); ok {
		value = assign.Value
	}
	c, ok := v.Constant(v.Eval(event.Scope, event.Frame, value))
	return ok && c.Truth()
}
