package accumulation

import (
	_ "embed"
	"strconv"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed accumulation-off-by-one.md
var accumulationOffByOneDoc string

// AccumulationOffByOne finds windows that end after one micro-batch, because the index is tested one too early or too late.
var AccumulationOffByOne = &lint.Rule{
	Name:     "accumulation-off-by-one",
	Family:   "accumulation",
	Since:    "0.1",
	Doc:      accumulationOffByOneDoc,
	Severity: lint.Warning,
	Fix:      lint.SometimesFix,
	Mentions: loop.Mentions,
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		for _, w := range loop.Windows(l, pass) {
			if w.Boundary != nil && w.Boundary.Kind == loop.Modulo && w.Accumulates == pyscan.Yes {
				checkFirstWindow(pass, l, w)
			}
		}
	},
}

func checkFirstWindow(pass *lint.Pass, root *loop.Loop, w *loop.Window) {
	b := w.Boundary
	for _, step := range w.Steps {
		if len(step.Guard) > 1 {
			for _, c := range step.Guard {
				if c.Kind == loop.First || c.Kind == loop.UnknownCond { // `i > 0 and ...`
					return
				}
			}
		}
		if step.Order < w.Backward[0].Order { // it steps what earlier micro-batches added up
			return
		}
	}
	start, ok := starts(pass, w)
	mod := moduloOf(b.Expr)
	file := b.Scope.Module.File
	if !ok || mod == nil || start+int64(b.Offset) == 1 || file.Path != root.Function().Scope.Module.File.Path {
		return
	}
	at := file.At(b.Expr.Span())
	n := count(w)
	switch {
	case start == 0 && b.Offset == 0 && remainderZero(b.Expr, mod):
		d := pass.Reportf(at, "%s starts at 0, so that this holds in the very first micro-batch: the first step follows one micro-batch whose loss counts as 1 of %s, and every window begins with the last micro-batch of the one meant", b.Counter, n)
		if path, ok := mod.Left.(*syntax.Name); ok {
			d.Suggest("count the micro-batch that has just run", lint.Unsafe, lint.Edit{At: file.At(path.Span()), Text: "(" + path.ID + " + 1)"})
		} else {
			d.Help("test (%s + 1)", b.Counter)
		}
	case start == 1 && b.Offset == 1 && remainderZero(b.Expr, mod):
		d := pass.Reportf(at, "%s starts at 1 already, so that the first window ends after %s - 1 micro-batches, and with it every later one is shifted", b.Counter, n)
		d.Suggest("test the counter itself", lint.Unsafe, lint.Edit{At: file.At(outerParens(file, mod.Left)), Text: b.Counter})
	}
}

// starts is the first value of the loop variable that the boundary counts with.
func starts(pass *lint.Pass, w *loop.Window) (int64, bool) {
	l, ok := w.Micro.Node.(*syntax.For)
	counter := counterOf(w)
	if !ok || counter == "" {
		return 0, false
	}
	target := l.Target
	if pair, ok := target.(*syntax.Tuple); ok && len(pair.Elts) > 0 {
		target = pair.Elts[0]
	}
	if pyscan.Path(target) != counter {
		return countedAfter(w, l, counter)
	}
	for _, def := range w.Micro.Scope.Defs(counter) { // i += 1 in the body
		if def.Kind != pyscan.IterDef && def.Node != nil && l.Span().Contains(def.Node.Span()) {
			return 0, false
		}
	}
	iter := l.Iter
	for range 4 {
		call, ok := iter.(*syntax.Call)
		if !ok {
			if name, ok := iter.(*syntax.Name); ok {
				if def := w.Micro.Scope.Def(name); def != nil && def.Kind == pyscan.AssignDef && def.Value != nil && len(def.Path()) == 0 {
					iter = def.Value
					continue
				}
			}
			return 0, false
		}
		switch pyscan.PathEnd(call.Func) {
		case "enumerate":
			start := pass.Arg(w.Micro.Scope, w.Micro.Frame, call, "start", 1)
			if start == nil {
				return 0, true
			}
			c, ok := pass.Constant(start)
			if !ok {
				return 0, false
			}
			return c.Int()
		case "range", "trange":
			if len(call.Args) < 2 {
				return 0, len(call.Args) == 1
			}
			c, ok := pass.Constant(pass.Eval(w.Micro.Scope, w.Micro.Frame, call.Args[0]))
			if !ok {
				return 0, false
			}
			return c.Int()
		case "tqdm", "track", "progress_bar", "list":
			if len(call.Args) == 0 {
				return 0, false
			}
			iter = call.Args[0]
		default:
			return 0, false
		}
	}
	return 0, false
}

// countedAfter is the first value of a counter that is set once before the loop, and counted up by one in every iteration, behind the test.
func countedAfter(w *loop.Window, l *syntax.For, counter string) (int64, bool) {
	if w.Boundary.Scope != w.Micro.Scope {
		return 0, false
	}
	var set, counted *pyscan.Def
	for _, def := range w.Micro.Scope.Defs(counter) {
		switch {
		case def.Kind == pyscan.AssignDef && set == nil && len(def.Path()) == 0:
			set = def
		case def.Kind == pyscan.AugDef && def.Op == syntax.Add && counted == nil:
			counted = def
		default:
			return 0, false
		}
	}
	if set == nil || counted == nil || set.Node == nil || set.Node.Span().Start > l.Span().Start || counted.Node.Span().Start < w.Boundary.Expr.Span().End || !isOne(counted.Value) {
		return 0, false
	}
	for _, stmt := range l.Body {
		if stmt == counted.Stmt {
			c, ok := set.Value.(*syntax.Constant)
			if !ok || c.Kind != syntax.IntConstant {
				return 0, false
			}
			n, err := strconv.ParseInt(c.Text, 10, 64)
			return n, err == nil
		}
		leaves := false
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			if _, is := n.(*syntax.Continue); is {
				leaves = true
			}
			return !leaves
		})
		if leaves {
			break
		}
	}
	return 0, false
}

func isOne(e syntax.Expr) bool {
	c, ok := e.(*syntax.Constant)
	return ok && c.Kind == syntax.IntConstant && c.Text == "1"
}

// moduloOf is the i % n in a boundary test.
func moduloOf(e syntax.Expr) *syntax.BinOp {
	var found *syntax.BinOp
	syntax.Inspect(e, func(n syntax.Node) bool {
		if op, ok := n.(*syntax.BinOp); ok && op.Op == syntax.Mod && found == nil {
			found = op
		}
		return found == nil
	})
	return found
}

// remainderZero reports whether the test asks whether nothing remains: i % n == 0, not i % n, or the `if i % n: continue`.
func remainderZero(e syntax.Expr, mod *syntax.BinOp) bool {
	zero := true
	syntax.Inspect(e, func(n syntax.Node) bool {
		if cmp, ok := n.(*syntax.Compare); ok && cmp.Span().Contains(mod.Span()) {
			c, ok := cmp.Comparators[0].(*syntax.Constant)
			zero = ok && c.Text == "0"
		}
		return true
	})
	return zero
}

// outerParens is the span of an expression with the parentheses right around it.
func outerParens(file *source.File, e syntax.Expr) source.Span {
	span := e.Span()
	if span.Start > 0 && int(span.End) < len(file.Text) && file.Text[span.Start-1] == '(' && file.Text[span.End] == ')' {
		return source.Span{Start: span.Start - 1, End: span.End + 1}
	}
	return span
}
