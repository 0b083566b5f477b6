package memory

import (
	_ "embed"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed memory-ratio-of-peak.md
var memoryRatioOfPeakDoc string

// MemoryRatioOfPeak finds tests of memory pressure against the process's own peak.
var MemoryRatioOfPeak = &lint.Rule{
	Name:     "memory-ratio-of-peak",
	Family:   "memory",
	Since:    "0.1",
	Doc:      memoryRatioOfPeakDoc,
	Severity: lint.Warning,
	Mentions: []string{"max_memory_"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		for node := range module.Tree.All() {
			ratio, ok := node.(*syntax.BinOp)
			if !ok || ratio.Op != syntax.Div {
				continue
			}
			scope := pyscan.ScopeAt(module, ratio)
			if now, peak := statistic(pass, scope, ratio.Left, 4), statistic(pass, scope, ratio.Right, 4); isNow(now) && isPeak(peak) && compared(pass, module, scope, ratio, 2) {
				pass.Reportf(module.File.At(ratio.Span()), "%s() is the peak of this process, not what the device holds: the ratio nears 1 in every run, however much memory is free", peak).
					Help("compare with torch.cuda.mem_get_info() or get_device_properties(device).total_memory")
			}
		}
	},
}

func isNow(name string) bool  { return name == "memory_allocated" || name == "memory_reserved" }
func isPeak(name string) bool { return name == "max_memory_allocated" || name == "max_memory_reserved" }

// statistic is the last part of the name of the memory statistic that an expression is, scaled by constants or not.
func statistic(pass *lint.Pass, scope *pyscan.Scope, e syntax.Expr, depth int) string {
	if depth <= 0 {
		return ""
	}
	switch e := e.(type) {
	case *syntax.Call:
		name := pass.Library(scope, nil, e.Func)
		if strings.HasPrefix(name, "torch.") || strings.HasPrefix(name, "deepspeed.") {
			return pyscan.LastPart(name)
		}
		if attr, ok := e.Func.(*syntax.Attribute); ok && (isNow(attr.Attr) || isPeak(attr.Attr)) { // get_accelerator().memory_allocated()
			return attr.Attr
		}
		if path := pyscan.Path(e.Func); len(e.Args) > 0 && (path == "float" || path == "int" || path == "max" || path == "round") {
			return statistic(pass, scope, e.Args[0], depth-1)
		}
	case *syntax.BinOp:
		if _, constant := pass.Constant(pass.Eval(scope, nil, e.Right)); constant || e.Op == syntax.Add {
			return statistic(pass, scope, e.Left, depth-1)
		}
	case *syntax.Name:
		if def := scope.Def(e); def != nil && def.Kind == pyscan.AssignDef && def.Value != nil {
			return statistic(pass, scope, def.Value, depth-1)
		}
	case *syntax.Attribute:
		if def := scope.AttrDef(e); def != nil && def.Kind == pyscan.AssignDef && def.Value != nil {
			return statistic(pass, scope, def.Value, depth-1)
		}
	}
	return ""
}

// compared reports whether a value decides something: it stands in a comparison, or in the value of a name or the result of a
// function that does.
func compared(pass *lint.Pass, module *pyscan.Module, scope *pyscan.Scope, e syntax.Expr, depth int) bool {
	around := workspace.Around(scope, e)
	if len(around) == 0 || depth < 0 {
		return false
	}
	stmt := around[len(around)-1]
	found := false
	syntax.Inspect(stmt, func(n syntax.Node) bool {
		if !n.Span().Contains(e.Span()) {
			return false
		}
		if _, ok := n.(*syntax.Compare); ok {
			found = true
		}
		return !found
	})
	if found {
		return true
	}
	switch s := stmt.(type) {
	case *syntax.Assign:
		path := pyscan.Path(s.Targets[0])
		if path == "" {
			return false
		}
		for _, body := range scope.Body() {
			syntax.Inspect(body, func(n syntax.Node) bool {
				switch n := n.(type) {
				case *syntax.Compare:
					found = found || refers(n, path)
				case *syntax.Return:
					if n.Value != nil && pyscan.Path(n.Value) == path {
						found = found || resultCompared(pass, scope, depth)
					}
				}
				return !found
			})
		}
	case *syntax.Return:
		found = resultCompared(pass, scope, depth)
	}
	return found
}

func refers(n syntax.Node, path string) bool {
	found := false
	syntax.Inspect(n, func(n syntax.Node) bool {
		if e, ok := n.(syntax.Expr); ok && pyscan.Path(e) == path {
			found = true
		}
		return !found
	})
	return found
}

func resultCompared(pass *lint.Pass, scope *pyscan.Scope, depth int) bool {
	for _, site := range pass.Callers(scope) {
		if compared(pass, site.Scope.Module, site.Scope, site.Call, depth-1) {
			return true
		}
	}
	return false
}
