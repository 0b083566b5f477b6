package memory

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed retain-graph.md
var retainGraphDoc string

// RetainGraph finds graphs that are kept after the only backward through them.
var RetainGraph = &lint.Rule{
	Name:     "retain-graph",
	Family:   "memory",
	Since:    "0.1",
	Doc:      retainGraphDoc,
	Severity: lint.Warning,
	Fix:      lint.SometimesFix,
	Mentions: []string{"retain_graph"},
	Loop: func(pass *lint.Pass, root *loop.Loop) {
		for event, in := range root.All {
			if event.Kind != loop.Backward || event.Call == nil || in.Node == nil {
				continue
			}
			switch {
			case len(event.Via) == 0 && event.Scope == in.Scope:
				checkRetained(pass, root, in.Node, event)
			case len(event.Via) > 0 && event.At.Path == root.Function().Scope.Module.File.Path && event.Scope.Function() != nil: // a step function of this file
				checkRetained(pass, root, event.Scope.Function(), event)
			}
		}
	},
}

// checkRetained looks at a backward in the statement that runs once an iteration: the loop, or the function that it calls.
func checkRetained(pass *lint.Pass, root *loop.Loop, in syntax.Stmt, event *loop.Event) {
	var keyword *syntax.Keyword
	for _, k := range event.Call.Keywords {
		switch k.Arg {
		case "retain_graph":
			keyword = k
		case "create_graph", "inputs":
			return
		}
	}
	if keyword == nil || pass.Truthy(pass.Eval(event.Scope, event.Frame, keyword.Value)) != pyscan.Yes {
		return
	}
	if len(root.Deep(loop.Backward)) != 1 || !madeInside(event.Scope, in, event.Loss) || reused(pass, event.Scope, in) {
		return
	}
	file := event.Scope.Module.File
	d := pass.Reportf(file.At(keyword.Span()), "the graph is kept after the only backward through it in an iteration: all its activations stay allocated until the next loss replaces this one")
	if only := len(event.Call.Keywords) == 1 && len(event.Call.Args) == 0; only {
		d.Suggest("leave it out", lint.Unsafe, lint.Edit{At: file.At(keyword.Span())})
		return
	}
	if len(event.Call.Args) > 0 && event.Call.Keywords[0] == keyword {
		last := event.Call.Args[len(event.Call.Args)-1].Span().End
		d.Suggest("leave it out", lint.Unsafe, lint.Edit{At: file.At(source.Span{Start: last, End: keyword.Span().End})})
		return
	}
	d.Help("leave retain_graph out")
}

// madeInside reports whether a loss is made in the loop: one from before is differentiated several times.
func madeInside(scope *pyscan.Scope, l syntax.Stmt, loss syntax.Expr) bool {
	inside := true
	any := false
	if loss == nil {
		return false
	}
	syntax.Inspect(loss, func(n syntax.Node) bool {
		name, ok := n.(*syntax.Name)
		if !ok {
			return true
		}
		def := scope.Def(name)
		if def == nil || def.Node == nil && def.Kind != pyscan.PhiDef {
			return true
		}
		any = true
		if _, function := l.(*syntax.FunctionDef); function && def.Kind == pyscan.ParamDef {
			inside = inside && expectedOutside(n, loss) // the caller may use its graph again
			return true
		}
		if def.Kind == pyscan.PhiDef {
			for _, one := range def.Alternatives() {
				if one.Node == nil || !l.Span().Contains(one.Node.Span()) {
					inside = false
				}
			}
		} else if !l.Span().Contains(def.Node.Span()) {
			if _, isCall := def.Value.(*syntax.Call); isCall || def.Kind == pyscan.ParamDef {
				inside = inside && expectedOutside(n, loss)
			}
		}
		return true
	})
	return inside && any
}

// expectedOutside reports whether a name in a loss is a callee or a receiver (scaler, criterion), which may come from before.
func expectedOutside(name syntax.Node, loss syntax.Expr) bool {
	callee := false
	syntax.Inspect(loss, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.Call); ok && call.Func.Span().Contains(name.Span()) {
			callee = true
		}
		return true
	})
	return callee
}

// reused reports whether something with history lives on from one iteration to the next, or comes from before the loop: then the
// graph is used again.
func reused(pass *lint.Pass, scope *pyscan.Scope, l syntax.Stmt) bool {
	found := false
	syntax.Inspect(l, func(n syntax.Node) bool {
		if found {
			return false
		}
		switch n := n.(type) {
		case *syntax.Attribute:
			if n.Attr == "autograd" || n.Attr == "grad" && pyscan.Path(n) != "" && pyscan.PathEnd(n.Value) == "autograd" {
				found = true
			}
			if n.Ctx == syntax.Store && pyscan.Path(n) != "" && n.Attr != "grad" { // self.state = ... lives on
				found = true
			}
		case *syntax.Name:
			if n.Ctx != syntax.Load {
				break
			}
			def := scope.Def(n)
			switch {
			case def == nil:
			case def.Kind == pyscan.PhiDef && def.InLoop:
				for _, one := range def.Alternatives() {
					if one.Node != nil && l.Span().Contains(one.Node.Span()) && one.Kind != pyscan.AugDef && one.Kind != pyscan.IterDef {
						found = found || carries(pass, scope, one)
					}
				}
			case def.Node != nil && def.Node.Span().End <= l.Span().Start && (def.Kind == pyscan.AssignDef || def.Kind == pyscan.UnpackDef):
				found = found || carries(pass, scope, def)
			}
		}
		return !found
	})
	return found
}

// carries reports whether a definition may hold a tensor with history: what a call of something unknown, or of a module, gives.
func carries(pass *lint.Pass, scope *pyscan.Scope, def *pyscan.Def) bool {
	if def.Value == nil {
		return false
	}
	value := pass.EvalDef(scope, nil, def)
	switch one := value.(type) {
	case *pyscan.Const, *pyscan.Instance, *pyscan.Wrapped, *pyscan.Func, *pyscan.Class, *pyscan.External, *pyscan.Mapping, *pyscan.Sequence, *pyscan.Setting:
		return false
	case *pyscan.Result:
		switch name := pass.ExternalName(one.Of); name {
		case "":
		default:
			return pass.RequiresGrad(scope, nil, def.Value) == pyscan.Yes // a library's function: only of tensors with history
		}
		if member, ok := one.Of.(*pyscan.Member); ok {
			switch member.Name {
			case "to", "cuda", "npu", "train", "eval", "parse_args", "parameters", "item", "detach", "get", "clone":
				return false
			}
		}
	}
	_, call := def.Value.(*syntax.Call)
	return call
}
