package optimizer

import (
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// between looks at what runs after a clearing and before a step: whether anything there can make gradients anew.
type between struct {
	pass  *lint.Pass
	zero  *loop.Event
	fed   map[*pyscan.Def]bool  // what the forward passes of the loop are fed
	paths map[string]bool       // and the attributes
	runs  map[*syntax.Call]bool // calls that are events of the loop; those that make gradients are looked at before
	spent bool                  // nothing has read the gradients before the clearing: they are lost whatever follows
}

// nothingBetween reports whether a step finds no other gradients than the clearing before it has left. Between the
// two there may be what is known to make none: a schedule, clipping, a scaler, what prints and logs, functions that
// can be read.
func nothingBetween(pass *lint.Pass, l *loop.Loop, backward, zero, step *loop.Event) bool {
	b := &between{pass: pass, zero: zero, fed: map[*pyscan.Def]bool{}, paths: map[string]bool{}, runs: map[*syntax.Call]bool{}}
	for event := range l.All {
		makes := event.Kind == loop.Backward || event.Kind == loop.GradDivide
		if makes && event.Order > zero.Order && event.Order < step.Order {
			return false
		}
		closure := event.Kind == loop.Step && event.By != loop.Scaler && event.Call != nil && len(event.Call.Args) > 0
		if event.Call != nil && !makes && !closure {
			b.runs[event.Call] = true
		}
		if event.Kind == loop.Forward && event.Call != nil && event.Scope == zero.Scope {
			b.feeds(event.Call)
		}
	}
	b.spent = b.lost(backward)
	return b.quiet(source.Span{Start: zero.Node.Span().End, End: step.Node.Span().Start}, b.harmless)
}

// lost reports whether nothing between the backward and the clearing can have kept the gradients for later.
func (b *between) lost(backward *loop.Event) bool {
	end := backward.Node.Span().End
	if backward.Scope != b.zero.Scope {
		if len(backward.Via) == 0 || len(b.zero.Via) > 0 || backward.Via[0].Path != b.zero.At.Path {
			return false
		}
		end = backward.Via[0].Span.End
	}
	passes := func(call *syntax.Call) bool { return b.known(call) || b.plain(call) }
	return b.quiet(source.Span{Start: end, End: b.zero.Node.Span().Start}, passes)
}

// quiet reports whether every call in a part of the function's text passes a test, and no gradient is touched there.
func (b *between) quiet(span source.Span, passes func(*syntax.Call) bool) bool {
	ok := true
	for _, stmt := range b.zero.Scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			at := n.Span()
			if !ok || at.End <= span.Start || at.Start >= span.End {
				return false
			}
			if !span.Contains(at) {
				return true
			}
			switch n := n.(type) {
			case *syntax.FunctionDef, *syntax.ClassDef, *syntax.Lambda:
				return false
			case *syntax.Attribute:
				ok = n.Attr != "grad"
			case *syntax.Call:
				ok = passes(n)
			}
			return ok
		})
	}
	return ok
}

func (b *between) harmless(call *syntax.Call) bool {
	return b.known(call) || b.spent && b.starved(call)
}

// known reports whether it is known what a call runs: a thing of a library, a function that can be read (its events
// are in the loop), an event of training.
func (b *between) known(call *syntax.Call) bool {
	if b.runs[call] || b.pass.Foreign(b.zero.Scope, call.Func) {
		return true
	}
	callee := b.pass.Expand(b.pass.Eval(b.zero.Scope, b.zero.Frame, call.Func))
	if b.pass.Called(callee) != nil {
		return true
	}
	if name := b.pass.ExternalName(callee); name != "" {
		return !strings.HasPrefix(name, "torch.autograd.") && !strings.HasPrefix(name, "torch.func.")
	}
	attr, ok := call.Func.(*syntax.Attribute)
	if !ok {
		return false
	}
	switch attr.Attr { // of tensors, optimizers, schedules and scalers, whatever they are called
	case "item", "tolist", "detach", "cpu", "numpy", "mean", "sum", "size", "format", "get_last_lr", "get_scale",
		"state_dict", "append", "keys", "values", "items", "get", "join", "numel", "dim", "float", "clip_grad_norm_",
		"clip_grad_value_", "unscale_", "unscale_gradients", "parameters", "named_parameters", "modules":
		return true
	case "step", "update":
		return len(call.Args)+len(call.Keywords) == 0
	}
	return false
}

// plain reports whether a call is handed nothing that holds gradients or may reach them: numbers and texts.
func (b *between) plain(call *syntax.Call) bool {
	if name, ok := receiver(call).(*syntax.Name); ok && name.ID == "self" || len(arguments(call)) == 0 {
		return false // an object may have its own way to the gradients
	}
	return !slices.ContainsFunc(arguments(call), func(e syntax.Expr) bool { return !b.number(e) })
}

func (b *between) number(e syntax.Expr) bool {
	switch e := e.(type) {
	case *syntax.Constant, *syntax.JoinedStr, *syntax.Compare:
		return true
	case *syntax.Call:
		if b.pass.Foreign(b.zero.Scope, e.Func) {
			return true
		}
		attr, ok := e.Func.(*syntax.Attribute)
		return ok && (attr.Attr == "item" || attr.Attr == "format" || attr.Attr == "size")
	case *syntax.BinOp:
		return b.number(e.Left) && b.number(e.Right)
	case *syntax.Dict:
		return !slices.ContainsFunc(e.Values, func(value syntax.Expr) bool { return !b.number(value) })
	case *syntax.Name:
		def := b.zero.Scope.Def(e)
		if def == nil {
			return false
		}
		return def.Kind == pyscan.AugDef || def.Kind == pyscan.IterDef && !b.fed[def] ||
			def.Kind == pyscan.AssignDef && b.number(def.Value)
	}
	return false
}

// starved reports whether a call that is not known is handed nothing of which gradients could be made: what the
// forward pass was fed, or a function. A loss, and what a model gave, have no graph behind them any more.
func (b *between) starved(call *syntax.Call) bool {
	callee, method := call.Func.(*syntax.Attribute)
	if method {
		if name, ok := callee.Value.(*syntax.Name); ok && name.ID == "self" {
			return false
		}
	} else if name, ok := call.Func.(*syntax.Name); !ok || b.handed(name) {
		return false
	}
	return !slices.ContainsFunc(arguments(call), func(e syntax.Expr) bool {
		feeds := false
		syntax.Inspect(e, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.Lambda:
				feeds = true
			case *syntax.Call:
				if attr, ok := n.Func.(*syntax.Attribute); ok && (attr.Attr == "size" || attr.Attr == "item") {
					return false
				}
			case *syntax.Attribute: // self.batch; of self.net nothing else is handed over
				if path := pyscan.Path(n); strings.HasPrefix(path, "self.") {
					feeds = feeds || b.paths[path]
					return false
				}
			case *syntax.Name:
				def := b.zero.Scope.Def(n)
				feeds = feeds || def != nil && (b.fed[def] || def.Kind == pyscan.ScopeDef) || n.ID == "self"
			}
			return !feeds
		})
		return feeds
	})
}

// handed reports whether a name is a parameter: whoever calls the function may hand over anything.
func (b *between) handed(name *syntax.Name) bool {
	def := b.zero.Scope.Def(name)
	return def != nil && def.Kind == pyscan.ParamDef
}

func (b *between) feeds(call *syntax.Call) {
	for _, e := range arguments(call) {
		syntax.Inspect(e, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.Attribute:
				if path := pyscan.Path(n); strings.HasPrefix(path, "self.") {
					b.paths[path] = true
					return false
				}
			case *syntax.Name:
				if def := b.zero.Scope.Def(n); def != nil {
					b.fed[def] = true
				}
			}
			return true
		})
	}
}

func receiver(call *syntax.Call) syntax.Expr {
	if attr, ok := call.Func.(*syntax.Attribute); ok {
		return attr.Value
	}
	return nil
}

func arguments(call *syntax.Call) []syntax.Expr {
	list := slices.Clone(call.Args)
	for _, k := range call.Keywords {
		list = append(list, k.Value)
	}
	return list
}
