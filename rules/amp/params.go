package amp

import (
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// scalerCalls calls visit for each call in the module that makes a GradScaler.
func scalerCalls(pass *lint.Pass, module *pyscan.Module, visit func(*pyscan.Scope, *syntax.Call)) {
	for _, call := range pass.CallsNear(module, scalers) {
		if isScaler(pass, call.Scope, nil, call.Call) {
			visit(call.Scope, call.Call)
		}
	}
}

// scalers are the names of what scales a loss.
var scalers = &pyscan.Words{Alias: true, Names: map[string]bool{"GradScaler": true, "ShardedGradScaler": true}}

// maxReceivers bounds the files that import one with a function which makes a scaler.
const maxReceivers = 8

// loopsWith lists the loops that a GradScaler, made by a call in the module, goes through: those of the module, of the files whose functions
// it is handed to, and, where a function makes it, of the files that import that.
func loopsWith(pass *lint.Pass, module *pyscan.Module, made *syntax.Call) []*loop.Loop {
	files := append([]*pyscan.Module{module}, handedTo(pass, module)[made]...)
	if maker := pyscan.ScopeAt(module, made); maker != nil && maker.Function() != nil {
		importers := pass.ImportersOf(module.File.Path, maker.Name)
		for _, name := range importers[:min(len(importers), maxReceivers)] {
			if m := pass.Module(name); m != nil && !slices.Contains(files, m) {
				files = append(files, m)
			}
		}
	}
	var list []*loop.Loop
	for _, m := range files {
		list = append(list, scaledLoops(pass, m)[made]...)
	}
	return list
}

// scaledLoops are the loops of a file that scale a loss, by the calls that may have made what scales it.
func scaledLoops(pass *lint.Pass, module *pyscan.Module) map[*syntax.Call][]*loop.Loop {
	type question struct{ module *pyscan.Module }
	return lint.Once(pass, question{module}, func() map[*syntax.Call][]*loop.Loop {
		by := map[*syntax.Call][]*loop.Loop{}
		for _, l := range pass.Loops(module) {
			for event := range l.All {
				if !scaled(event) {
					continue
				}
				expr := scalerOf(event)
				if expr == nil {
					continue
				}
				for _, made := range makers(pass, pass.Eval(event.Scope, event.Frame, expr)) {
					if list := by[made]; len(list) == 0 || list[len(list)-1] != l {
						by[made] = append(list, l)
					}
				}
			}
		}
		return by
	})
}

// handedTo lists for each call that makes a scaler the other files of which a function is called with that.
func handedTo(pass *lint.Pass, module *pyscan.Module) map[*syntax.Call][]*pyscan.Module {
	type question struct{ module *pyscan.Module }
	return lint.Once(pass, question{module}, func() map[*syntax.Call][]*pyscan.Module {
		by := map[*syntax.Call][]*pyscan.Module{}
		scalerCalls(pass, module, func(_ *pyscan.Scope, made *syntax.Call) { by[made] = nil })
		for _, site := range module.Calls {
			call, scope := site.Call, site.Scope
			args := slices.Clone(call.Args)
			for _, k := range call.Keywords {
				args = append(args, k.Value)
			}
			for _, arg := range args {
				if workspace.Leaf(arg) == "" {
					continue
				}
				for _, made := range makers(pass, pass.Eval(scope, nil, arg)) {
					list, is := by[made]
					if !is {
						continue
					}
					if f := pass.Called(pass.Eval(scope, nil, call.Func)); f != nil && f.Scope.Module != module && !slices.Contains(list, f.Scope.Module) {
						by[made] = append(list, f.Scope.Module)
					}
				}
			}
		}
		return by
	})
}

// makers are the calls that may have made a value.
func makers(pass *lint.Pass, value pyscan.Value) []*syntax.Call {
	var list []*syntax.Call
	for _, one := range pass.Bare(value) {
		if inst, ok := one.(*pyscan.Instance); ok && inst.Call != nil {
			list = append(list, inst.Call)
		}
	}
	return list
}

// trained are the dtypes of the parameters that the loops train ("torch.float16"), with where each was chosen: of the models whose parameters
// the scaled optimizers hold, or where no optimizer is known, of the one model that runs forward.
func trained(pass *lint.Pass, loops []*loop.Loop) (dtype string, at source.Place) {
	type expr struct {
		scope *pyscan.Scope
		frame *pyscan.Frame
		e     syntax.Expr
	}
	var held, called []expr
	names := map[string]bool{}
	for _, l := range loops {
		for event := range l.All {
			switch {
			case event.Kind == loop.Step && event.By == loop.Scaler && len(event.Call.Args) > 0:
				for _, one := range pass.Bare(pass.Eval(event.Scope, event.Frame, event.Call.Args[0])) {
					inst, ok := one.(*pyscan.Instance)
					if !ok || inst.Call == nil || inst.At.Module == nil {
						continue
					}
					if unscalesItself(pass, inst) {
						return "", source.Place{}
					}
					scope := pyscan.ScopeAt(inst.At.Module, inst.Call)
					for _, model := range parametersOf(inst.Call) {
						held = append(held, expr{scope, inst.Frame, model})
					}
				}
			case event.Kind == loop.Forward && event.Call != nil && !event.In(loop.NoGradContext):
				called = append(called, expr{event.Scope, event.Frame, event.Call.Func})
				names[pyscan.Path(event.Call.Func)] = true
			}
		}
	}
	if len(held) == 0 && len(names) == 1 {
		held = called
	}
	for _, model := range held {
		if adapted(pass, model.scope.Module) {
			return "", source.Place{}
		}
		name, where := pass.ParameterType(model.scope, model.frame, model.e)
		if name == "" || dtype != "" && name != dtype {
			return "", source.Place{}
		}
		dtype, at = name, where
	}
	return dtype, at
}

// unscalesItself reports whether an optimizer of the project takes scaled gradients and divides them itself, which it tells the scaler by
// an attribute; one of a class that is not known may.
func unscalesItself(pass *lint.Pass, inst *pyscan.Instance) bool {
	class, ok := pass.Expand(inst.Of).(*pyscan.Class)
	return ok && class.Scope.Module.File.Has("_step_supports_amp_scaling")
}

// parametersOf lists the models in Optimizer(model.parameters(), ...).
func parametersOf(call *syntax.Call) []syntax.Expr {
	var list []syntax.Expr
	if len(call.Args) == 0 {
		return nil
	}
	syntax.Inspect(call.Args[0], func(n syntax.Node) bool {
		if inner, ok := n.(*syntax.Call); ok {
			if attr, ok := inner.Func.(*syntax.Attribute); ok && (attr.Attr == "parameters" || attr.Attr == "named_parameters") {
				list = append(list, attr.Value)
			}
		}
		return true
	})
	return list
}

// adapted reports whether a file freezes parameters or puts adapters on models: what trains then has a dtype of its own.
func adapted(pass *lint.Pass, module *pyscan.Module) bool {
	type question struct{ module *pyscan.Module }
	return lint.Once(pass, question{module}, func() bool {
		text := module.LowerCode()
		return slices.ContainsFunc([]string{"lora", "peft", "requires_grad", "adapter"}, func(word string) bool { return strings.Contains(text, word) })
	})
}
