package memory

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed loss-graph-accumulated.md
var lossGraphAccumulatedDoc string

// LossGraphAccumulated finds sums and lists that keep the autograd history of every iteration.
var LossGraphAccumulated = &lint.Rule{
	Name:     "loss-graph-accumulated",
	Family:   "memory",
	Since:    "0.1",
	Doc:      lossGraphAccumulatedDoc,
	Severity: lint.Warning,
	Fix:      lint.SometimesFix,
	Mentions: loop.Mentions,
	Loop: func(pass *lint.Pass, root *loop.Loop) {
		reported := map[source.Place]bool{}
		walked := map[[2]any][]keeper{} // by loop and name of the loss: thousands of backward calls can share them
		for backward, in := range root.All {
			if backward.Kind != loop.Backward || backward.By == loop.Foreign || backward.Loss == nil || in.Node == nil || len(backward.Via) > 0 || backward.Scope != in.Scope {
				continue
			}
			path := pyscan.Path(unscaled(backward.Loss))
			if path == "" {
				continue
			}
			where := [2]any{in.Node, path}
			list, known := walked[where]
			if !known {
				list = keepers(in.Node, path)
				walked[where] = list
			}
			for _, kept := range list {
				at := backward.Scope.Module.File.At(kept.stmt.Span())
				if reported[at] || !outlives(backward.Scope, in.Node, kept) || pass.WithoutGradients(backward.Scope, kept.stmt) || !sameValue(backward.Scope, kept.use, unscaled(backward.Loss), path) || feedsBackward(root, backward.Scope, kept.into) {
					continue
				}
				reported[at] = true
				d := pass.Reportf(at, "%s keeps the autograd graph of %s from every iteration: memory grows until the loop ends", kept.into, path).
					Note(backward.At, "the same value is differentiated here")
				use := backward.Scope.Module.File.At(kept.use.Span())
				d.Suggest("detach it", lint.Safe, lint.Edit{At: source.Place{Path: use.Path, Span: source.Span{Start: use.Span.End, End: use.Span.End}}, Text: ".detach()"})
			}
		}
	},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		module.Scopes(func(scope *pyscan.Scope) {
			if keepsOutputs(pass, scope) && !holdsBackward(scope) {
				reported := map[source.Place]bool{}
				for _, root := range pass.LoopsIn(scope) {
					evaluationOutputs(pass, root, reported)
				}
			}
		})
	},
}

// keepsOutputs reports whether a loop of a function puts what a model gave into something that outlives the iteration. It is the
// cheap question before the loops are modelled.
func keepsOutputs(pass *lint.Pass, scope *pyscan.Scope) bool {
	found := false
	mode := sync.OnceValue(func() *syntax.Call { return evalCall(scope) }) // it looks at the whole function
	for _, stmt := range scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.FunctionDef, *syntax.ClassDef:
				return false
			case *syntax.For, *syntax.While:
				found = found || keepsResult(pass, scope, n, mode)
				return false // what an inner loop keeps, the outer one does
			case syntax.Expr:
				return false // no loop stands in one
			}
			return !found
		})
	}
	return found
}

// runsModel reports whether a model is called in an expression, or what the call of mode puts into evaluation mode.
func runsModel(pass *lint.Pass, scope *pyscan.Scope, e syntax.Expr, mode *syntax.Call) bool {
	found := false
	syntax.Inspect(e, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.Call); ok && !found {
			found = mode != nil && pyscan.Path(mode.Func.(*syntax.Attribute).Value) == pyscan.Path(call.Func) || isModule(pass, pass.Expand(pass.Eval(scope, nil, call.Func)))
		}
		return !found
	})
	return found
}

func keepsResult(pass *lint.Pass, scope *pyscan.Scope, l syntax.Node, mode func() *syntax.Call) bool {
	found := false
	adding := byName(additions(l))
	if len(adding) == 0 {
		return false
	}
	asked := map[string]bool{}
	syntax.Inspect(l, func(n syntax.Node) bool {
		switch s := n.(type) {
		case *syntax.FunctionDef, *syntax.ClassDef:
			return false
		case *syntax.Assign:
			if path := pyscan.Path(s.Targets[0]); path != "" && len(s.Targets) == 1 && !found {
				kept, known := asked[path]
				if !known {
					kept = len(keeping(adding[pyscan.LastPart(path)], path)) > 0
					asked[path] = kept
				}
				found = kept && runsModel(pass, scope, s.Value, mode())
			}
		case syntax.Expr:
			return false
		}
		return !found
	})
	return found
}

// unscaled takes scaler.scale(...) and a division off a loss.
func unscaled(e syntax.Expr) syntax.Expr {
	for range 4 {
		switch one := e.(type) {
		case *syntax.Call:
			attr, ok := one.Func.(*syntax.Attribute)
			if !ok || attr.Attr != "scale" || len(one.Args) != 1 {
				return e
			}
			e = one.Args[0]
		case *syntax.BinOp:
			if one.Op != syntax.Div && one.Op != syntax.Mult {
				return e
			}
			e = one.Left
		default:
			return e
		}
	}
	return e
}

// keeper is a statement that puts a value with its history into something that lives longer.
type keeper struct {
	stmt syntax.Stmt
	into string      // what keeps it
	use  syntax.Expr // the value
}

// keepers are the statements of a loop that add a value to something: total += loss, total = total + loss, losses.append(loss).
func keepers(l syntax.Node, path string) []keeper { return keeping(additions(l), path) }

// byName sorts additions by the last names of what stands in them, so that those that may add a value are found without a look at all.
func byName(additions []syntax.Stmt) map[string][]syntax.Stmt {
	by := map[string][]syntax.Stmt{}
	for _, stmt := range additions {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			name := pyscan.LastName(n)
			if list := by[name]; name != "" && (len(list) == 0 || list[len(list)-1] != stmt) {
				by[name] = append(list, stmt)
			}
			return true
		})
	}
	return by
}

// additions are the statements of a loop that add any value to something.
func additions(l syntax.Node) []syntax.Stmt {
	var list []syntax.Stmt
	syntax.Inspect(l, func(n syntax.Node) bool {
		switch s := n.(type) {
		case *syntax.FunctionDef, *syntax.Lambda, *syntax.ClassDef:
			return false
		case syntax.Expr:
			return false
		case *syntax.AugAssign:
			if s.Op == syntax.Add {
				list = append(list, s)
			}
		case *syntax.Assign:
			if sum, ok := s.Value.(*syntax.BinOp); ok && sum.Op == syntax.Add && len(s.Targets) == 1 {
				list = append(list, s)
			}
		case *syntax.ExprStmt:
			if call, ok := s.Value.(*syntax.Call); ok && len(call.Args) == 1 {
				if attr, ok := call.Func.(*syntax.Attribute); ok && attr.Attr == "append" {
					list = append(list, s)
				}
			}
		}
		return true
	})
	return list
}

// keeping are those of some additions that add a value.
func keeping(additions []syntax.Stmt, path string) []keeper {
	var list []keeper
	for _, stmt := range additions {
		switch s := stmt.(type) {
		case *syntax.AugAssign:
			if use := graphed(s.Value, path); use != nil && pyscan.Path(s.Target) != path {
				if into := container(s.Target); into != "" {
					list = append(list, keeper{s, into, use})
				}
			}
		case *syntax.Assign:
			sum := s.Value.(*syntax.BinOp)
			into := pyscan.Path(s.Targets[0])
			if into == "" || into == path {
				break
			}
			if use := graphed(sum.Right, path); use != nil && pyscan.Path(sum.Left) == into {
				list = append(list, keeper{s, into, use})
			} else if use := graphed(sum.Left, path); use != nil && pyscan.Path(sum.Right) == into {
				list = append(list, keeper{s, into, use})
			}
		case *syntax.ExprStmt:
			call := s.Value.(*syntax.Call)
			to := call.Func.(*syntax.Attribute).Value
			if use := graphed(call.Args[0], path); use != nil && container(to) != "" {
				list = append(list, keeper{s, container(to), use})
			}
		}
	}
	return list
}

func container(e syntax.Expr) string {
	if sub, ok := e.(*syntax.Subscript); ok {
		e = sub.Value
	}
	return pyscan.Path(e)
}

// graphed is the use of a value in an expression that carries its history on: through arithmetic and through methods that keep it.
func graphed(e syntax.Expr, path string) syntax.Expr {
	switch e := e.(type) {
	case *syntax.Name, *syntax.Attribute:
		if pyscan.Path(e) == path {
			return e
		}
	case *syntax.BinOp:
		if use := graphed(e.Left, path); use != nil {
			return use
		}
		return graphed(e.Right, path)
	case *syntax.UnaryOp:
		return graphed(e.Operand, path)
	case *syntax.Call:
		attr, ok := e.Func.(*syntax.Attribute)
		if !ok {
			return nil
		}
		switch attr.Attr {
		case "mean", "sum", "cpu", "to", "float", "clone", "view", "reshape", "squeeze", "unsqueeze", "double":
			return graphed(attr.Value, path)
		}
	}
	return nil
}

// outlives reports whether what keeps a value was made before the loop.
func outlives(scope *pyscan.Scope, l syntax.Stmt, kept keeper) bool {
	before, inside := false, false
	for _, def := range scope.Defs(kept.into) {
		if def.Kind == pyscan.AugDef || def.Node == nil {
			continue
		}
		switch at := def.Node.Span(); {
		case at.End <= l.Span().Start || def.Kind == pyscan.ParamDef:
			before = true
		case l.Span().Contains(at) && def.Stmt != kept.stmt:
			inside = true // it is made anew in each iteration, or emptied at times
		}
	}
	if len(kept.into) > 5 && kept.into[:5] == "self." && !inside {
		return true
	}
	return before && !inside && !cleared(l, kept.into)
}

// cleared reports whether a list is emptied in the loop.
func cleared(l syntax.Node, path string) bool {
	found := false
	syntax.Inspect(l, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.Call); ok {
			if attr, ok := call.Func.(*syntax.Attribute); ok && (attr.Attr == "clear" || attr.Attr == "pop" || attr.Attr == "popleft") && pyscan.Path(attr.Value) == path {
				found = true
			}
		}
		return !found
	})
	return found
}

// sameValue reports whether two uses of a name are of one definition: `loss = loss.detach()` between them makes another.
func sameValue(scope *pyscan.Scope, a, b syntax.Expr, path string) bool {
	x, ok1 := a.(*syntax.Name)
	y, ok2 := b.(*syntax.Name)
	if ok1 && ok2 {
		return scope.Def(x) != nil && scope.Def(x) == scope.Def(y)
	}
	return !ok1 && !ok2
}

// feedsBackward reports whether what is kept is itself differentiated: somewhere in the function it goes into the loss of a
// backward.
func feedsBackward(root *loop.Loop, scope *pyscan.Scope, into string) bool {
	found := false
	seen := map[string]bool{}
	var uses func(e syntax.Node, depth int)
	uses = func(e syntax.Node, depth int) {
		syntax.Inspect(e, func(n syntax.Node) bool {
			expr, ok := n.(syntax.Expr)
			if !ok || found {
				return !found
			}
			path := pyscan.Path(expr)
			if path == into {
				found = true
				return false
			}
			if path != "" && depth > 0 && !seen[path] {
				seen[path] = true
				for _, def := range scope.Defs(path) {
					if def.Value != nil {
						uses(def.Value, depth-1)
					}
				}
			}
			return true
		})
	}
	for _, stmt := range scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			if call, ok := n.(*syntax.Call); ok {
				if attr, ok := call.Func.(*syntax.Attribute); ok && (attr.Attr == "backward" || attr.Attr == "manual_backward" || attr.Attr == "grad") {
					uses(attr.Value, 3)
					for _, argument := range call.Args {
						uses(argument, 3)
					}
				}
			}
			return !found
		})
	}
	return found
}

// evaluationOutputs looks at loops without any backward whose model outputs are kept with their whole graphs.
func evaluationOutputs(pass *lint.Pass, root *loop.Loop, reported map[source.Place]bool) {
	if len(root.Deep(loop.Backward)) > 0 {
		return
	}
	for forward, in := range root.All {
		if forward.Kind != loop.Forward || forward.Call == nil || in.Node == nil || len(forward.Via) > 0 || forward.In(loop.NoGradContext) || forward.Scope != in.Scope {
			continue
		}
		around := workspace.Around(forward.Scope, forward.Call)
		if len(around) == 0 || !isModule(pass, forward.On) && !evaluated(forward) || gradients(pass, forward.Scope, forward.Call, callerDepth) != pyscan.Yes {
			continue
		}
		assign, ok := around[len(around)-1].(*syntax.Assign)
		if !ok || len(assign.Targets) != 1 || !madeFrom(pass, forward, assign.Value) {
			continue
		}
		path := pyscan.Path(assign.Targets[0])
		if path == "" {
			continue
		}
		for _, kept := range keepers(in.Node, path) {
			at := forward.Scope.Module.File.At(kept.stmt.Span())
			if reported[at] || !outlives(forward.Scope, in.Node, kept) || pass.WithoutGradients(forward.Scope, kept.stmt) || !sameDef(forward.Scope, kept.use, assign) {
				continue
			}
			reported[at] = true
			d := pass.Reportf(at, "%s keeps all activations of every iteration: gradients are on here and no backward frees them", kept.into).As(lint.Error).
				Note(forward.At, "the model runs here")
			d.Help("run the loop under torch.no_grad(), or detach what is kept")
		}
	}
}

// evaluated reports whether what a forward calls is put into evaluation mode in the same function: it is a model then.
func evaluated(forward *loop.Event) bool {
	mode := evalCall(forward.Scope)
	return mode != nil && pyscan.Path(mode.Func.(*syntax.Attribute).Value) == pyscan.Path(forward.Call.Func)
}

// madeFrom reports whether an expression is what a forward gives, or a criterion of torch over it, or a mean or sum of it.
func madeFrom(pass *lint.Pass, forward *loop.Event, e syntax.Expr) bool {
	for range 4 {
		if e == syntax.Expr(forward.Call) {
			return true
		}
		switch one := e.(type) {
		case *syntax.Call:
			if name := pass.ExternalName(pass.Eval(forward.Scope, forward.Frame, one.Func)); strings.HasPrefix(name, "torch.nn.functional.") && len(one.Args) > 0 {
				e = one.Args[0]
				continue
			}
			attr, ok := one.Func.(*syntax.Attribute)
			if !ok || attr.Attr != "mean" && attr.Attr != "sum" {
				return false
			}
			e = attr.Value
		case *syntax.Attribute: // model(**batch).loss
			if one.Attr != "loss" && one.Attr != "logits" {
				return false
			}
			e = one.Value
		default:
			return false
		}
	}
	return false
}

func sameDef(scope *pyscan.Scope, use syntax.Expr, assign *syntax.Assign) bool {
	name, ok := use.(*syntax.Name)
	if !ok {
		return false
	}
	def := scope.Def(name)
	return def != nil && def.Stmt == syntax.Stmt(assign)
}
