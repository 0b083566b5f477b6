package accumulation

import (
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// checkRunning looks for sums of losses that are divided for accumulation already, and means of such sums over micro-batches: the sum over
// a window is a mean already, so that the mean is too small by the accumulation once more.
func checkRunning(pass *lint.Pass, w *loop.Window, reported map[source.Place]bool) {
	micro := w.Micro
	if micro.Node == nil || micro.Scope == nil {
		return
	}
	scope := micro.Scope
	for _, stmt := range eachIteration(micro.Node) {
		sum, added, list := addition(stmt)
		if sum == "" || reading(added) == nil {
			continue
		}
		division, undone := byAccumulation(pass, scope, micro.Frame, reading(added), isN(pass, w))
		if division == nil || undone || !division.On {
			continue
		}
		file := scope.Module.File
		by := division.Scope.Module.File.Slice(division.By.Span())
		for _, mean := range meansOf(scope, sum, list) {
			at := file.At(mean.Span())
			if op, ok := mean.(*syntax.BinOp); reported[at] || !list && (!ok || !countsMicroBatches(pass, w, scope, op)) {
				continue
			}
			reported[at] = true
			d := pass.Reportf(at, "%s adds up losses that are divided by %s already, and is divided by a number of micro-batches here: "+
				"the mean is %s times too small", sum, by, by)
			if list {
				d.Message = sum + " lists losses that are divided by " + by + " already: their mean over the micro-batches is " + by + " times too small"
			}
			d.Note(division.Scope.Module.File.At(division.Node.Span()), "each loss is divided here").Note(file.At(stmt.Span()), "they are added up here")
			d.Help("divide the sum by the number of optimizer steps, or add up the losses before they are divided")
		}
	}
}

// eachIteration are the statements that run in every iteration of a loop.
func eachIteration(node syntax.Stmt) []syntax.Stmt {
	var list []syntax.Stmt
	var visit func([]syntax.Stmt)
	visit = func(block []syntax.Stmt) {
		for _, stmt := range block {
			if with, ok := stmt.(*syntax.With); ok {
				visit(with.Body)
				continue
			}
			list = append(list, stmt)
		}
	}
	if blocks := workspace.Blocks(node); len(blocks) > 0 {
		visit(blocks[0])
	}
	return list
}

// addition is a statement that adds to a sum or a list: total += x, total = total + x, losses.append(x).
func addition(stmt syntax.Stmt) (sum string, added syntax.Expr, list bool) {
	switch stmt := stmt.(type) {
	case *syntax.AugAssign:
		if stmt.Op == syntax.Add {
			return pyscan.Path(stmt.Target), stmt.Value, false
		}
	case *syntax.Assign:
		plus, ok := stmt.Value.(*syntax.BinOp)
		if !ok || plus.Op != syntax.Add || len(stmt.Targets) != 1 {
			return "", nil, false
		}
		switch sum := pyscan.Path(stmt.Targets[0]); {
		case sum == "":
		case pyscan.Path(plus.Left) == sum:
			return sum, plus.Right, false
		case pyscan.Path(plus.Right) == sum:
			return sum, plus.Left, false
		}
	case *syntax.ExprStmt:
		if call, ok := stmt.Value.(*syntax.Call); ok && len(call.Args) == 1 {
			if attr, ok := call.Func.(*syntax.Attribute); ok && attr.Attr == "append" {
				return pyscan.Path(attr.Value), call.Args[0], true
			}
		}
	}
	return "", nil, false
}

// reading is the tensor of which a value is read, with nothing done to it: loss.item(), float(loss), loss.detach(), loss; nil for others.
func reading(e syntax.Expr) syntax.Expr {
	for range 6 {
		switch inner := e.(type) {
		case *syntax.Name:
			return inner
		case *syntax.Attribute:
			if inner.Attr != "data" {
				return inner
			}
			e = inner.Value
		case *syntax.Call:
			switch attr, method := inner.Func.(*syntax.Attribute); {
			case method && reads[attr.Attr]:
				e = attr.Value
			case pyscan.Path(inner.Func) == "float" && len(inner.Args) == 1:
				e = inner.Args[0]
			default:
				return nil
			}
		default:
			return nil
		}
	}
	return nil
}

// reads are methods of a tensor that leave its value as it is.
var reads = map[string]bool{"item": true, "detach": true, "cpu": true, "float": true, "double": true, "clone": true, "numpy": true,
	"tolist": true, "to": true, "mean": true}

// meansOf are the means of a sum or a list in its function; none where one of them, or the sum itself, is multiplied: that may undo it.
func meansOf(scope *pyscan.Scope, sum string, list bool) (means []syntax.Expr) {
	undone := false
	for _, stmt := range scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.AugAssign:
				undone = undone || n.Op == syntax.Mult && pyscan.Path(n.Target) == sum
			case *syntax.BinOp:
				if n.Op == syntax.Mult {
					undone = undone || isMean(n.Left, sum, list) || isMean(n.Right, sum, list)
				}
			}
			if e, ok := n.(syntax.Expr); ok && isMean(e, sum, list) {
				means = append(means, e)
			}
			return true
		})
	}
	if undone {
		return nil
	}
	return means
}

// isMean reports whether an expression is total / n, or of a list sum(losses) / len(losses) or mean(losses).
func isMean(e syntax.Expr, sum string, list bool) bool {
	call, called := e.(*syntax.Call)
	if list && called {
		return pyscan.LastName(call.Func) == "mean" && len(call.Args) == 1 && pyscan.Path(call.Args[0]) == sum
	}
	op, ok := e.(*syntax.BinOp)
	if !ok || op.Op != syntax.Div {
		return false
	}
	if !list {
		of := reading(op.Left)
		return of != nil && pyscan.Path(of) == sum
	}
	return ofList(op.Left, "sum", sum) && ofList(op.Right, "len", sum)
}

// ofList reports whether an expression is function(list).
func ofList(e syntax.Expr, function, list string) bool {
	call, ok := e.(*syntax.Call)
	return ok && pyscan.Path(call.Func) == function && len(call.Args) == 1 && pyscan.Path(call.Args[0]) == list
}

// countsMicroBatches reports whether a sum is divided by a number of micro-batches: one that the accumulation is a factor of, the length of
// the loader, the counter of the loop, or the period of a test of that counter around it.
func countsMicroBatches(pass *lint.Pass, w *loop.Window, scope *pyscan.Scope, mean *syntax.BinOp) bool {
	by := mean.Right
	if call, ok := by.(*syntax.Call); ok && pyscan.Path(call.Func) == "max" && len(call.Args) == 2 { // max(1, n)
		for _, arg := range call.Args {
			if _, constant := arg.(*syntax.Constant); !constant {
				by = arg
			}
		}
	}
	value := pass.Eval(scope, w.Micro.Frame, by)
	if pass.IsAccumulation(value, isN(pass, w)) || loop.WindowName(pyscan.PathEnd(by)) {
		return true
	}
	if steps := pass.Steps(value, isN(pass, w)); steps.Times > 0 || steps.Unit == workspace.MicroBatches && steps.Times == 0 {
		return true
	}
	counter := counterName(w.Micro)
	return counter != "" && (plusOne(by) == counter || testedBy(scope, mean, counter, scope.Module.File.Slice(by.Span())))
}

// counterName is the counter of `for i, batch in enumerate(loader)`.
func counterName(l *loop.Loop) string {
	node, ok := l.Node.(*syntax.For)
	if !ok {
		return ""
	}
	target, ok := node.Target.(*syntax.Tuple)
	if !ok || len(target.Elts) != 2 {
		return ""
	}
	enumerated := false
	syntax.Inspect(node.Iter, func(n syntax.Node) bool {
		call, ok := n.(*syntax.Call)
		enumerated = enumerated || ok && pyscan.Path(call.Func) == "enumerate"
		return !enumerated
	})
	if !enumerated {
		return ""
	}
	return pyscan.Path(target.Elts[0])
}

// plusOne is the name in i, i + 1 and 1 + i.
func plusOne(e syntax.Expr) string {
	if plus, ok := e.(*syntax.BinOp); ok && plus.Op == syntax.Add {
		if _, constant := plus.Left.(*syntax.Constant); constant {
			return pyscan.Path(plus.Right)
		}
		return pyscan.Path(plus.Left)
	}
	return pyscan.Path(e)
}

// testedBy reports whether a node runs once in so many iterations, by a test of the counter around it.
func testedBy(scope *pyscan.Scope, node syntax.Node, counter, period string) bool {
	for _, stmt := range workspace.Around(scope, node) {
		branch, ok := stmt.(*syntax.If)
		if !ok {
			continue
		}
		found := false
		syntax.Inspect(branch.Test, func(n syntax.Node) bool {
			mod, ok := n.(*syntax.BinOp)
			found = found || ok && mod.Op == syntax.Mod && plusOne(mod.Left) == counter && scope.Module.File.Slice(mod.Right.Span()) == period
			return !found
		})
		if found {
			return true
		}
	}
	return false
}
