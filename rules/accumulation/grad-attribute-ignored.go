package accumulation

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed grad-attribute-ignored.md
var docGradAttributeIgnored string

// GradAttributeIgnored finds marks on gradients, and on parameters in the training loop, that nothing reads.
var GradAttributeIgnored = &lint.Rule{
	Name:     "grad-attribute-ignored",
	Family:   "accumulation",
	Since:    "0.1",
	Doc:      docGradAttributeIgnored,
	Severity: lint.Warning,
	Mentions: []string{".grad", "backward"},
	Module:   findGradAttributes,
}

//go:embed tensor_attributes.txt
var tensorAttributesText string

// tensorAttributes are the attributes that libraries read from parameters, gradients and tensors.
var tensorAttributes = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for line := range strings.Lines(tensorAttributesText) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		for _, name := range strings.Fields(line) {
			all[name] = true
		}
	}
	return all
})

// frameworkPrefixes begin the names of marks that frameworks put on parameters for themselves, more than a list has of them.
var frameworkPrefixes = []string{"__", "ds_", "_ds_", "_z3_", "fsdp_", "_fsdp", "_ddp", "_hp_", "_mcore", "_megatron", "megatron_"}

func readByLibraries(name string) bool {
	return tensorAttributes()[name] ||
		slices.ContainsFunc(frameworkPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// mark is an attribute that a statement or setattr puts on something.
type mark struct {
	node  syntax.Node
	on    syntax.Expr
	name  string
	value syntax.Expr
}

func findGradAttributes(pass *lint.Pass, module *pyscan.Module) {
	type once struct {
		scope *pyscan.Scope
		name  string
	}
	reported := map[once]bool{}
	for node := range module.Tree.All() {
		for _, m := range marksOf(node) {
			if readByLibraries(m.name) {
				continue
			}
			scope := pyscan.ScopeAt(module, m.node)
			key := once{scope, m.name}
			if reported[key] {
				continue
			}
			t := &tensors{scope: scope}
			what := "a gradient"
			if !t.gradient(m.on, 4) {
				if what = "a parameter"; !t.parameter(m.on, 4) || !isFlag(m.value) || !inTrainingLoop(pass, module, m.node) {
					continue
				}
			}
			reported[key] = true
			if !pass.ReadsAttribute(module.File.Path, m.name) {
				reportMark(pass, scope, m, what, t.model)
			}
		}
	}
}

func reportMark(pass *lint.Pass, scope *pyscan.Scope, m mark, what string, model syntax.Expr) {
	at := scope.Module.File.At(m.node.Span())
	kind := workspace.NoWrapper
	if model != nil {
		if wrappers, _, _ := pass.Wrappers(pass.Eval(scope, nil, model)); len(wrappers) > 0 {
			kind = wrappers[0].Kind
		}
	}
	switch kind {
	case workspace.FSDP1, workspace.FSDP2, workspace.DDP:
		d := pass.Reportf(at, "nothing reads the attribute %s of %s: %s still reduces the gradients in every backward", m.name, what, kind)
		if kind == workspace.FSDP2 {
			d.Help("call model.set_requires_gradient_sync(False) on all but the last micro-batch, or delete the attribute")
			return
		}
		d.Help("run all but the last micro-batch in model.no_sync(), or delete the attribute")
	default:
		pass.Reportf(at, "nothing reads the attribute %s of %s: backward and the optimizer do the same without it", m.name, what).
			Help("delete it; what a wrapper does between micro-batches is set by its own API (no_sync, set_requires_gradient_sync)")
	}
}

// marksOf are the attributes that a node sets: x.name = value, setattr(x, "name", value).
func marksOf(node syntax.Node) []mark {
	var list []mark
	add := func(target, value syntax.Expr) {
		if attr, ok := target.(*syntax.Attribute); ok {
			list = append(list, mark{attr, attr.Value, attr.Attr, value})
		}
	}
	switch n := node.(type) {
	case *syntax.Assign:
		for _, target := range n.Targets {
			add(target, n.Value)
		}
	case *syntax.AnnAssign:
		if n.Value != nil {
			add(n.Target, n.Value)
		}
	case *syntax.Call:
		if name, ok := n.Func.(*syntax.Name); ok && name.ID == "setattr" && len(n.Args) == 3 {
			if text, ok := n.Args[1].(*syntax.Constant); ok && text.Kind == syntax.StrConstant {
				list = append(list, mark{n, n.Args[0], text.Text, n.Args[2]})
			}
		}
	}
	return list
}

// isFlag reports whether a value is a switch, as far as it is written.
func isFlag(e syntax.Expr) bool {
	switch e := e.(type) {
	case *syntax.Constant:
		return e.Kind == syntax.TrueConstant || e.Kind == syntax.FalseConstant || e.Kind == syntax.IntConstant
	case *syntax.Compare, *syntax.BoolOp:
		return true
	case *syntax.UnaryOp:
		return e.Op == syntax.Not
	}
	return false
}

// inTrainingLoop reports whether a node stands in a loop that runs backward: libraries are told of parameters when the model is made.
func inTrainingLoop(pass *lint.Pass, module *pyscan.Module, node syntax.Node) bool {
	return slices.ContainsFunc(pass.Loops(module), func(l *loop.Loop) bool {
		return l.Node != nil && l.Scope.Module == module && l.Node.Span().Contains(node.Span()) && len(l.Deep(loop.Backward)) > 0
	})
}

// tensors tells parameters and their gradients from other things, by how a function comes to them.
type tensors struct {
	scope *pyscan.Scope
	model syntax.Expr // whose parameters they are
}

// gradient reports whether an expression is the .grad of a parameter.
func (t *tensors) gradient(e syntax.Expr, depth int) bool {
	if depth == 0 {
		return false
	}
	switch e := e.(type) {
	case *syntax.Attribute:
		switch e.Attr {
		case "grad":
			return t.parameter(e.Value, depth) || t.compared(e)
		case "data":
			return t.gradient(e.Value, depth-1)
		}
	case *syntax.NamedExpr:
		return t.gradient(e.Value, depth-1)
	case *syntax.Name:
		def := t.scope.Def(e)
		switch {
		case def == nil || def.Value == nil:
		case def.Kind == pyscan.AssignDef:
			return t.gradient(def.Value, depth-1)
		case def.Kind == pyscan.IterDef: // for g in [p.grad for p in model.parameters()]
			comp, ok := t.written(def.Value).(*syntax.Comp)
			if !ok || len(def.Path()) > 0 {
				return false
			}
			elt, ok := comp.Elt.(*syntax.Attribute)
			return ok && elt.Attr == "grad" && len(comp.Generators) > 0 && t.parameters(comp.Generators[0].Iter, depth)
		}
	}
	return false
}

// parameter reports whether an expression is a parameter: what a loop over parameters gives, or a weight or bias.
func (t *tensors) parameter(e syntax.Expr, depth int) bool {
	if depth == 0 {
		return false
	}
	switch e := e.(type) {
	case *syntax.Name:
		def := t.scope.Def(e)
		switch {
		case def == nil || def.Value == nil:
		case def.Kind == pyscan.AssignDef:
			return t.parameter(def.Value, depth-1)
		case def.Kind == pyscan.IterDef:
			return t.parameters(def.Value, depth)
		}
	case *syntax.Attribute:
		return e.Attr == "weight" || e.Attr == "bias"
	}
	return false
}

// parameters reports whether an expression gives parameters when it is iterated: model.parameters(), named_parameters(), group["params"],
// a list or filter of them.
func (t *tensors) parameters(e syntax.Expr, depth int) bool {
	if depth == 0 {
		return false
	}
	switch e := t.written(e).(type) {
	case *syntax.Call:
		if attr, ok := e.Func.(*syntax.Attribute); ok && (attr.Attr == "parameters" || attr.Attr == "named_parameters") {
			t.model = attr.Value
			return true
		}
		return len(e.Args) > 0 && t.parameters(e.Args[len(e.Args)-1], depth-1) || len(e.Args) > 1 && t.parameters(e.Args[0], depth-1)
	case *syntax.Subscript:
		key, ok := e.Slice.(*syntax.Constant)
		return ok && key.Kind == syntax.StrConstant && key.Text == "params"
	case *syntax.Comp:
		elt, target := pyscan.Path(e.Elt), ""
		if len(e.Generators) > 0 {
			target = pyscan.Path(e.Generators[0].Target)
		}
		return elt != "" && elt == target && t.parameters(e.Generators[0].Iter, depth-1)
	}
	return false
}

// written is the expression that a name was assigned, or the expression itself.
func (t *tensors) written(e syntax.Expr) syntax.Expr {
	if name, ok := e.(*syntax.Name); ok {
		if def := t.scope.Def(name); def != nil && def.Kind == pyscan.AssignDef && def.Value != nil && len(def.Path()) == 0 {
			return def.Value
		}
	}
	return e
}

// compared reports whether the function asks whether an expression is None, as one does of a gradient.
func (t *tensors) compared(e *syntax.Attribute) bool {
	path, found := pyscan.Path(e), false
	for _, stmt := range t.scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			if cmp, ok := n.(*syntax.Compare); ok && len(cmp.Ops) == 1 && (cmp.Ops[0] == syntax.Is || cmp.Ops[0] == syntax.IsNot) {
				none, ok := cmp.Comparators[0].(*syntax.Constant)
				found = found || ok && none.Kind == syntax.NoneConstant && path != "" && pyscan.Path(cmp.Left) == path
			}
			return !found
		})
	}
	return found
}
