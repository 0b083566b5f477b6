package device

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed profiler-without-step.md
var profilerWithoutStepDoc string

// ProfilerWithoutStep finds profilers whose schedule never advances.
var ProfilerWithoutStep = &lint.Rule{
	Name:     "profiler-without-step",
	Family:   "device",
	Since:    "0.1",
	Doc:      profilerWithoutStepDoc,
	Severity: lint.Warning,
	Mentions: []string{"profile"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		for _, site := range pass.CallsNear(module, profilers) {
			call, scope := site.Call, site.Scope
			switch pass.Library(scope, nil, call.Func) {
			case "torch.profiler.profile", "torch_npu.profiler.profile", "torch.profiler.profiler.profile":
			default:
				continue
			}
			schedule := workspace.Argument(call, "schedule", 1)
			if schedule == nil {
				continue
			}
			if inst, ok := pass.Eval(scope, nil, schedule).(*pyscan.Const); ok && inst != nil {
				continue // None
			}
			if path := profilerName(scope, call); path != "" && !steps(pass, module, scope, path) {
				pass.Reportf(module.File.At(call.Span()), "the profiler has a schedule, and nothing calls %s.step(): it stays in its first phase, so it records the warm-up for ever or nothing at all", path).
					Help("call %s.step() at the end of each iteration", path)
			}
		}
	},
}

// profilers are the names of what records a profile.
var profilers = &pyscan.Words{Alias: true, Names: map[string]bool{"profile": true}}

// profilerName is the name by which the profiler can be stepped: of a with statement or an assignment; "" where it goes
// elsewhere, and "the profiler" where nothing can name it.
func profilerName(scope *pyscan.Scope, call *syntax.Call) string {
	stmt := workspaceAround(scope, call)
	switch stmt := stmt.(type) {
	case *syntax.With:
		for _, item := range stmt.Items {
			if item.Context == syntax.Expr(call) {
				if item.Vars == nil {
					return "the profiler"
				}
				return pyscan.Path(item.Vars)
			}
		}
	case *syntax.Assign:
		if stmt.Value == syntax.Expr(call) && len(stmt.Targets) == 1 {
			return pyscan.Path(stmt.Targets[0])
		}
	case *syntax.ExprStmt:
		if stmt.Value == syntax.Expr(call) {
			return "the profiler"
		}
	}
	return ""
}

// steps reports whether a profiler may be stepped: by its name anywhere in the file, or by whoever else it is handed to.
func steps(pass *lint.Pass, module *pyscan.Module, scope *pyscan.Scope, path string) bool {
	found := false
	for node := range module.Tree.All() {
		switch n := node.(type) {
		case *syntax.Call:
			if attr, ok := n.Func.(*syntax.Attribute); ok && attr.Attr == "step" && pyscan.Path(attr.Value) == path {
				return true
			}
			for _, argument := range n.Args {
				found = found || names(argument, path)
			}
			for _, k := range n.Keywords {
				found = found || names(k.Value, path)
			}
		case *syntax.Return:
			found = found || n.Value != nil && names(n.Value, path)
		case *syntax.Yield:
			found = found || n.Value != nil && names(n.Value, path)
		case *syntax.Assign: // another name, or an attribute of something
			found = found || names(n.Value, path)
		case *syntax.With: // another name too
			for _, item := range n.Items {
				if item.Vars == nil || pyscan.Path(item.Context) != path {
					continue
				}
				if other := pyscan.Path(item.Vars); other == "" || other != path && steps(pass, module, scope, other) {
					return true
				}
			}
		case *syntax.Global, *syntax.Nonlocal:
			found = true
		}
	}
	if scope.Kind == pyscan.ModuleScope || path != "the profiler" && len(path) > 5 && path[:5] == "self." {
		for _, importer := range pass.Importers(module.File.Path) {
			if m := pass.Module(importer); m != nil {
				for node := range m.Tree.All() {
					if attr, ok := node.(*syntax.Attribute); ok && attr.Attr == "step" && pyscan.PathEnd(attr.Value) == pyscan.LastPart(path) {
						return true
					}
				}
			}
		}
	}
	return found
}

func names(e syntax.Expr, path string) bool {
	found := false
	syntax.Inspect(e, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.Call); ok { // a method of it is no other place for it
			if attr, ok := call.Func.(*syntax.Attribute); ok && pyscan.Path(attr.Value) == path {
				return false
			}
		}
		if e, ok := n.(syntax.Expr); ok && pyscan.Path(e) == path {
			found = true
		}
		return !found
	})
	return found
}
