package ddp

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed ddp-forward-through-module.md
var ddpForwardThroughModuleDoc string

// DdpForwardThroughModule finds losses that are computed by the model inside a DDP wrapper, past the wrapper.
var DdpForwardThroughModule = &lint.Rule{
	Name:     "ddp-forward-through-module",
	Family:   "ddp",
	Since:    "0.1",
	Doc:      ddpForwardThroughModuleDoc,
	Severity: lint.Error,
	Fix:      lint.SometimesFix,
	Mentions: loop.Mentions,
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		reported := map[source.Place]bool{}
		for event := range l.All {
			if event.Kind == loop.Backward && event.By != loop.Engine && event.By != loop.Foreign && !event.In(loop.NoGradContext) {
				checkLoss(pass, l, event, reported)
			}
		}
	},
}

// past is a call that goes past a wrapper.
type past struct {
	at      loop.Source
	call    *syntax.Call
	wrapper workspace.Wrapper
	model   syntax.Expr // the wrapped model as written, nil where a name stands for the model inside
	certain pyscan.Truth
}

func checkLoss(pass *lint.Pass, l *loop.Loop, backward *loop.Event, reported map[source.Place]bool) {
	var found []past
	for _, part := range loop.Sources(backward, pass) {
		call, ok := part.Node.(*syntax.Call)
		if !ok {
			continue
		}
		if p, ok := goesPast(pass, part, call); ok {
			if !pass.WithoutGradients(part.Scope, call) {
				found = append(found, p)
			}
			continue
		}
		if w, is := pass.Outermost(pass.Eval(part.Scope, part.Frame, call.Func)); is != pyscan.No && w.Kind == workspace.DDP {
			return // the wrapper's own forward makes (a part of) the loss: its reducer is ready
		}
	}
	if len(found) == 0 || reducesByHand(pass, backward) {
		return
	}
	p := found[len(found)-1] // the first to run
	for _, window := range loop.Windows(l, pass) {
		if reducesByHand(pass, window.Steps...) {
			return
		}
	}
	at := p.at.Scope.Module.File.At(p.call.Span())
	if at.Path != l.Function().Scope.Module.File.Path {
		at = l.Place(backward)
	}
	if reported[at] {
		return
	}
	reported[at] = true
	d := pass.Reportf(at, "the loss is computed by the model inside DDP, past the wrapper: its reducer is never armed, so no gradient is all-reduced and each rank trains its own model")
	if p.certain != pyscan.Yes {
		d.As(lint.Warning)
	}
	wrappedAt(d, p.wrapper).Note(backward.At, "backward runs here")
	if attr, ok := p.call.Func.(*syntax.Attribute); ok && attr.Attr == "module" && p.model != nil && at.Path == p.at.Scope.Module.File.Path {
		d.Suggest("call the wrapper", lint.Unsafe, lint.Edit{At: p.at.Scope.Module.File.At(attr.Span()), Text: p.at.Scope.Module.File.Slice(attr.Value.Span())})
		return
	}
	d.Help("compute the loss in the model's forward, and call the wrapper")
}

// goesPast recognises model.module(x), model.module.method(x), and raw(x) where raw was made of model.module.
func goesPast(pass *lint.Pass, part loop.Source, call *syntax.Call) (past, bool) {
	p := past{at: part, call: call, certain: pyscan.Yes}
	if w, model, certain := inside(pass, part.Scope, part.Frame, call.Func, call, 4); certain != pyscan.No {
		p.wrapper, p.model, p.certain = w, model, certain
		return p, true
	}
	if w, ok := keptRaw(pass, part.Scope, call); ok {
		p.wrapper = w
		return p, true
	}
	attr, ok := call.Func.(*syntax.Attribute)
	if !ok || harmless[attr.Attr] {
		return p, false
	}
	w, model, certain := inside(pass, part.Scope, part.Frame, attr.Value, call, 4)
	if certain == pyscan.No {
		return p, false
	}
	p.wrapper, p.model, p.certain = w, model, certain
	return p, true
}

// keptRaw is the wrapper that a model was given to under another name, where the name of the model itself is called:
// ddp = DDP(net), and then net(x).
func keptRaw(pass *lint.Pass, scope *pyscan.Scope, call *syntax.Call) (found workspace.Wrapper, ok bool) {
	raw, isName := call.Func.(*syntax.Name)
	if !isName || scope.Kind == pyscan.LambdaScope {
		return found, false
	}
	def := scope.Def(raw)
	if def == nil || def.Kind != pyscan.AssignDef && def.Kind != pyscan.ParamDef {
		return found, false
	}
	for _, stmt := range scope.Body() { // at the top of the function: what wraps under a condition may not
		assign, is := stmt.(*syntax.Assign)
		if !is || stmt.Span().End > call.Span().Start {
			continue
		}
		made, is := assign.Value.(*syntax.Call)
		if !is || len(made.Args) == 0 {
			continue
		}
		given, is := made.Args[0].(*syntax.Name)
		if !is || scope.Def(given) != def || pyscan.Path(assign.Targets[0]) == raw.ID {
			continue
		}
		if w, is := pass.Outermost(pass.Eval(scope, nil, made)); is == pyscan.Yes && w.Kind == workspace.DDP && w.Call == made {
			return w, true
		}
	}
	return found, false
}

// harmless are methods of a model that compute no loss.
var harmless = map[string]bool{"parameters": true, "named_parameters": true, "state_dict": true, "modules": true, "children": true, "buffers": true, "to": true, "cuda": true, "eval": true, "train": true,
	"generate": true, "size": true, "get_input_embeddings": true}

// inside says whether an expression is the model inside a DDP wrapper, and of which.
func inside(pass *lint.Pass, scope *pyscan.Scope, frame *pyscan.Frame, e syntax.Expr, use syntax.Node, depth int) (w workspace.Wrapper, model syntax.Expr, certain pyscan.Truth) {
	if depth <= 0 {
		return w, nil, pyscan.No
	}
	switch e := e.(type) {
	case *syntax.Attribute:
		if e.Attr != "module" {
			if def := scope.AttrDef(e); def != nil && def.Kind == pyscan.AssignDef {
				return inside(pass, scope, frame, def.Value, use, depth-1)
			}
			return insideAttribute(pass, scope, e, depth)
		}
		value := pass.Eval(scope, frame, e.Value)
		if w, is := pass.Outermost(value); is != pyscan.No {
			if w.Kind != workspace.DDP {
				return w, nil, pyscan.No
			}
			return w, e.Value, pyscan.Yes // .module is there only where it is wrapped
		}
		if pass.Opaque(pass.Expand(value)) && testedDDP(pass, scope, e.Value, use) {
			return w, e.Value, pyscan.Yes
		}
	case *syntax.Name:
		if def := scope.Def(e); def != nil {
			return insideDef(pass, scope, frame, def, use, depth)
		}
	case *syntax.IfExp: // model.module if isinstance(model, DDP) else model
		for _, side := range []syntax.Expr{e.Body, e.OrElse} {
			attr, ok := side.(*syntax.Attribute)
			if !ok || attr.Attr != "module" {
				continue
			}
			if w, model, certain := inside(pass, scope, frame, side, use, depth-1); certain != pyscan.No {
				return w, model, certain
			}
			if isDDPTest(pass, scope, e.Test) {
				return w, attr.Value, pyscan.Yes
			}
		}
	case *syntax.Call: // unwrap(model), getattr(model, "module", model)
		if len(e.Args) > 1 && pass.ExternalName(pass.Eval(scope, frame, e.Func)) == "builtins.getattr" {
			if name, ok := pass.Constant(pass.Eval(scope, frame, e.Args[1])); ok {
				if text, _ := name.Str(); text == "module" {
					if w, is := pass.Outermost(pass.Eval(scope, frame, e.Args[0])); is != pyscan.No && w.Kind == workspace.DDP {
						return w, e.Args[0], pyscan.Yes
					}
				}
			}
			return w, nil, pyscan.No
		}
		for _, one := range workspace.Alternatives(pass.Expand(pass.Eval(scope, frame, e.Func))) {
			f, ok := one.(*pyscan.Func)
			if !ok || len(e.Args) == 0 {
				continue
			}
			inner := pass.Enter(f, e, scope, frame)
			for _, r := range f.Scope.Returns() {
				if r.Value == nil || inner == nil {
					continue
				}
				if w, _, certain := inside(pass, f.Scope, inner, r.Value, r, depth-1); certain != pyscan.No {
					return w, nil, certain
				}
			}
		}
	}
	return w, nil, pyscan.No
}

// insideAttribute is self.raw where a method of the class assigned self.raw = self.model.module.
func insideAttribute(pass *lint.Pass, scope *pyscan.Scope, e *syntax.Attribute, depth int) (w workspace.Wrapper, model syntax.Expr, certain pyscan.Truth) {
	for scope.Parent != nil && scope.EnclosingClass() == nil {
		scope = scope.Parent
	}
	class, path := scope.EnclosingClass(), pyscan.Path(e)
	if class == nil || path == "" || len(scope.Params) == 0 || path != scope.Params[0].Name+"."+e.Attr {
		return w, nil, pyscan.No
	}
	for _, method := range class.Children {
		if method.Kind != pyscan.FuncScope || len(method.Params) == 0 {
			continue
		}
		for _, def := range method.Defs(method.Params[0].Name + "." + e.Attr) {
			if def.Kind == pyscan.AssignDef && def.Value != nil {
				if w, _, certain := inside(pass, method, nil, def.Value, def.Stmt, depth-1); certain != pyscan.No {
					return w, nil, certain
				}
			}
		}
	}
	return w, nil, pyscan.No
}

func insideDef(pass *lint.Pass, scope *pyscan.Scope, frame *pyscan.Frame, def *pyscan.Def, use syntax.Node, depth int) (w workspace.Wrapper, model syntax.Expr, certain pyscan.Truth) {
	switch def.Kind {
	case pyscan.AssignDef:
		w, _, certain = inside(pass, scope, frame, def.Value, def.Stmt, depth-1)
		return w, nil, certain
	case pyscan.PhiDef: // if isinstance(model, DDP): raw = model.module
		for _, alternative := range def.Alternatives() {
			if alternative.Kind == pyscan.AssignDef {
				if w, _, certain := insideDef(pass, scope, frame, alternative, use, depth-1); certain != pyscan.No {
					return w, nil, certain
				}
			}
		}
	}
	return w, nil, pyscan.No
}

// isDDPTest reports whether a test is isinstance(x, DistributedDataParallel).
func isDDPTest(pass *lint.Pass, scope *pyscan.Scope, test syntax.Expr) bool {
	call, ok := test.(*syntax.Call)
	if !ok || pyscan.Path(call.Func) != "isinstance" || len(call.Args) != 2 {
		return false
	}
	classes := []syntax.Expr{call.Args[1]}
	if tuple, ok := call.Args[1].(*syntax.Tuple); ok {
		classes = tuple.Elts
	}
	for _, class := range classes {
		if pass.Library(scope, nil, class) == "torch.nn.parallel.DistributedDataParallel" {
			return true
		}
	}
	return false
}

// testedDDP reports whether a use stands under `if isinstance(model, DistributedDataParallel)`.
func testedDDP(pass *lint.Pass, scope *pyscan.Scope, model syntax.Expr, use syntax.Node) bool {
	if use == nil {
		return false
	}
	for _, stmt := range workspace.Around(scope, use) {
		branch, ok := stmt.(*syntax.If)
		if !ok || len(branch.Body) == 0 || use.Span().Start > branch.Body[len(branch.Body)-1].Span().End {
			continue
		}
		if call, ok := branch.Test.(*syntax.Call); ok && isDDPTest(pass, scope, call) && pyscan.Path(call.Args[0]) == pyscan.Path(model) {
			return true
		}
	}
	return false
}
