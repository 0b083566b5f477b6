package custom

import (
	"path"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// module looks at the calls of a Python file, under whatever name the function came in.
func (c *condition) module(pass *lint.Pass, module *pyscan.Module) {
	wanted := workspace.Canonical(c.Call)
	for node := range module.Tree.All() {
		call, ok := node.(*syntax.Call)
		if !ok {
			continue
		}
		scope := pyscan.ScopeAt(module, call)
		callee := pass.Eval(scope, nil, call.Func)
		if name := pass.ExternalName(callee); name != wanted && !isOwn(callee, c.Call) {
			continue
		}
		at := module.File.At(call.Func.Span())
		if c.Keyword == "" {
			c.report(pass, lint.Diagnostic{At: at}, "", "")
			continue
		}
		c.argument(pass, module, scope, call, at)
	}
}

func (c *condition) argument(pass *lint.Pass, module *pyscan.Module, scope *pyscan.Scope, call *syntax.Call, at source.Place) {
	written := workspace.Argument(call, c.Keyword, int(c.Position))
	value := pass.Arg(scope, nil, call, c.Keyword, int(c.Position))
	if written != nil {
		at = module.File.At(written.Span())
	}
	switch {
	case value == nil && c.Required && !pass.OpenKeywords(scope, nil, call) && !starred(call):
		c.report(pass, lint.Diagnostic{At: at}, c.Keyword, "is not given")
	case value != nil && c.Forbidden:
		c.report(pass, lint.Diagnostic{At: at}, c.Keyword, "is given")
	case value != nil && !c.Forbidden:
		if v, ok := pass.Constant(pass.Expand(value)); ok {
			if wrong := c.wrong(v); wrong != "" {
				c.report(pass, lint.Diagnostic{At: at}, c.Keyword, wrong)
			}
		}
	}
}

// starred reports whether a call has `*more`, which may hold any argument that has a position.
func starred(call *syntax.Call) bool {
	for _, arg := range call.Args {
		if _, is := arg.(*syntax.Starred); is {
			return true
		}
	}
	return false
}

// isOwn reports whether a function or class of the project has this dotted name: the module by the end of its path.
func isOwn(callee pyscan.Value, name string) bool {
	var scope *pyscan.Scope
	switch callee := callee.(type) {
	case *pyscan.Func:
		scope = callee.Scope
	case *pyscan.Class:
		scope = callee.Scope
	}
	if scope == nil || scope.Module == nil {
		return false
	}
	file := strings.TrimSuffix(strings.TrimSuffix(scope.Module.File.Path, path.Ext(scope.Module.File.Path)), "/__init__")
	full := strings.ReplaceAll(strings.Trim(file, "./"), "/", ".") + "." + scope.Qualified()
	return full == name || strings.HasSuffix(full, "."+name)
}
