package distributed

import (
	_ "embed"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed loss-reduced-before-backward.md
var lossReducedBeforeBackwardDoc string

// LossReducedBeforeBackward finds losses that are reduced over the ranks in place and then differentiated.
var LossReducedBeforeBackward = &lint.Rule{
	Name:     "loss-reduced-before-backward",
	Family:   "distributed",
	Since:    "0.1",
	Doc:      lossReducedBeforeBackwardDoc,
	Severity: lint.Warning,
	Mentions: loop.Mentions,
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		backwards := l.Deep(loop.Backward)
		for event := range l.All {
			if event.Kind != loop.Collective || event.Call == nil || event.In(loop.NoGradContext) || pass.WithoutGradients(event.Scope, event.Call) {
				continue
			}
			name := pass.Library(event.Scope, event.Frame, event.Call.Func)
			if name != "torch.distributed.all_reduce" && name != "torch.distributed.reduce" {
				continue // the functions of torch.distributed.nn have gradients
			}
			tensor := workspace.Argument(event.Call, "tensor", 0)
			path := pyscan.Path(tensor)
			if path == "" || strings.HasSuffix(path, ".grad") || strings.HasSuffix(path, ".data") {
				continue
			}
			for _, backward := range backwards {
				if backward.By == loop.Foreign { // a layer's own backward takes the gradient of its output, not a loss
					continue
				}
				if backward.Order > event.Order && backward.Loss != nil && (backward.Scope == event.Scope && same(event.Scope, tensor, backward.Loss, path) || reducedInside(pass, event, tensor, backward)) {
					at := event.At
					if len(event.Via) > 0 && event.Via[0].Path != at.Path {
						at = event.Via[0]
					}
					pass.Reportf(at, "%s is summed over the ranks in place and then differentiated: the collective has no gradient, so backward sees the old graph behind a new value, and what is added to the loss is scaled wrongly", path).
						Note(backward.At, "backward runs here").
						Help("reduce %s.detach().clone() for the log, and call backward on the loss of this rank; gradients are averaged anyway", path)
					return
				}
			}
		}
	},
}

// reducedInside reports whether a helper reduces what it is given and returns it, and a loss is made of what it returns:
// loss = mean(loss), where mean does all_reduce(x) and returns x / world_size.
func reducedInside(pass *lint.Pass, event *loop.Event, tensor syntax.Expr, backward *loop.Event) bool {
	name, ok := tensor.(*syntax.Name)
	if !ok || len(event.Via) == 0 || event.Frame == nil || backward.Scope == event.Scope {
		return false
	}
	def := event.Scope.Def(name)
	call, ok := event.Frame.Caller.Node.(*syntax.Call)
	if !ok || def == nil || def.Kind != pyscan.ParamDef {
		return false
	}
	returned := false
	for _, r := range event.Scope.Returns() {
		returned = returned || r.Value != nil && same(event.Scope, tensor, r.Value, name.ID)
	}
	if !returned {
		return false
	}
	for _, arg := range call.Args {
		if cut(arg) {
			return false
		}
	}
	for _, part := range loop.Sources(backward, pass) {
		if part.Node == syntax.Node(call) {
			return true
		}
	}
	return false
}

// same reports whether the loss of a backward holds the tensor that was reduced, and not another value of that name.
func same(scope *pyscan.Scope, tensor, loss syntax.Expr, path string) bool {
	found := false
	syntax.Inspect(loss, func(n syntax.Node) bool {
		e, ok := n.(syntax.Expr)
		if !ok || pyscan.Path(e) != path {
			return true
		}
		a, aName := tensor.(*syntax.Name)
		b, bName := e.(*syntax.Name)
		switch {
		case aName && bName:
			found = found || scope.Def(a) == scope.Def(b) && !detached(scope.Def(a))
		case !aName && !bName:
			found = true
		}
		return false
	})
	return found
}

// detached reports whether a value is cut from the graph where it is made: that is a copy for the log.
func detached(def *pyscan.Def) bool {
	return def != nil && def.Value != nil && cut(def.Value)
}

// cut reports whether an expression takes a value out of the graph, or copies it.
func cut(e syntax.Expr) bool {
	found := false
	syntax.Inspect(e, func(n syntax.Node) bool {
		if attr, ok := n.(*syntax.Attribute); ok && (attr.Attr == "detach" || attr.Attr == "data" || attr.Attr == "item" || attr.Attr == "clone") {
			found = true
		}
		return !found
	})
	return found
}
