package memory

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed eval-without-no-grad.md
var evalWithoutNoGradDoc string

// EvalWithoutNoGrad finds evaluation loops that build autograd graphs.
var EvalWithoutNoGrad = &lint.Rule{
	Name:     "eval-without-no-grad",
	Family:   "memory",
	Since:    "0.1",
	Doc:      evalWithoutNoGradDoc,
	Severity: lint.Warning,
	Mentions: evaluationWords,
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		if !slices.ContainsFunc(evaluationWords, module.File.Has) || workspace.IsTest(module.File.Path) {
			return
		}
		torch := sync.OnceValue(func() bool { return usesTorch(pass, module) })
		module.Scopes(func(scope *pyscan.Scope) {
			if scope.Kind == pyscan.FuncScope && (evalCall(scope) != nil || evaluationName(scope.Name)) && torch() {
				checkEvaluation(pass, module, scope)
			}
		})
	},
}

// evaluationWords are parts of what evaluationName and evalCall know.
var evaluationWords = []string{"eval", "valid", "test", "val(", "val_epoch"}

// otherFrameworks have models with eval() and losses with backward() of their own.
var otherFrameworks = []string{
	"paddle", "oneflow", "jittor", "mindspore", "megengine", "tensorflow", "keras", "flax", "jax", "mxnet",
	"chainer", "tinygrad", "mlx",
}

// usesTorch reports whether the models of a file are those of PyTorch: the file speaks of it, or it or a file that runs
// with it imports it or computes gradients, and none of them another framework.
func usesTorch(pass *lint.Pass, module *pyscan.Module) bool {
	if module.File.Has("torch") {
		return true
	}
	computes := false
	for _, file := range slices.Concat(pass.Closure(module.File.Path), pass.Importers(module.File.Path)) {
		if pass.ImportsAny(file, otherFrameworks...) {
			return false
		}
		computes = computes || pass.ImportsAny(file, "torch")
		if text := pass.Text(file); !computes && text != nil && text.Has(".backward(") {
			m := pass.Module(file)
			computes = m != nil && m.Says(".backward(")
		}
	}
	return computes
}

// frameworkClasses run their hooks with gradients switched off by themselves.
var frameworkClasses = []string{"pytorch_lightning.LightningModule", "pytorch_lightning.Callback", "transformers.Trainer", "transformers.TrainerCallback", "torch.nn.Module"}

func checkEvaluation(pass *lint.Pass, module *pyscan.Module, scope *pyscan.Scope) {
	mode := evalCall(scope)
	if mode == nil && !evaluationName(scope.Name) || holdsBackward(scope) || strings.HasPrefix(scope.Name, "test_") && len(pass.Callers(scope)) == 0 {
		return
	}
	if class := scope.EnclosingClass(); class != nil {
		value := &pyscan.Class{Origin: pyscan.From(class.Module, class.Node), Scope: class}
		if pass.Derives(value, frameworkClasses...) != pyscan.No {
			return
		}
	}
	call := modelCall(pass, module, scope, mode)
	if call == nil {
		return
	}
	switch gradients(pass, scope, call, callerDepth) {
	case pyscan.No:
		return
	case pyscan.Maybe:
		if module.Says("set_grad_enabled") || len(pass.Callers(scope)) > 0 {
			return
		}
		report(pass, module, scope, call).As(lint.Info) // nobody is seen to call it
	default:
		report(pass, module, scope, call)
	}
}

func report(pass *lint.Pass, module *pyscan.Module, scope *pyscan.Scope, call *syntax.Call) *lint.Diagnostic {
	return pass.Reportf(module.File.At(call.Span()), "%s evaluates with gradients on: every forward pass keeps the activations for a backward that never comes, several times the memory it needs", scope.Name).
		Help("decorate the function with @torch.no_grad(), or run the loop under torch.inference_mode()")
}

func evaluationName(name string) bool {
	name = strings.ToLower(strings.Trim(name, "_"))
	switch name {
	case "eval", "evaluate", "evaluation", "validate", "validation", "valid", "val", "test", "run_eval", "run_evaluation", "run_validation", "do_eval":
		return true
	}
	for _, prefix := range []string{"evaluate_", "eval_", "validate_", "val_epoch", "test_epoch", "valid_epoch"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// evalCall is the call that puts a model into evaluation mode in a function, without one that puts it back before a model runs.
func evalCall(scope *pyscan.Scope) *syntax.Call {
	for _, call := range scope.Calls {
		if attr, ok := call.Func.(*syntax.Attribute); ok && attr.Attr == "eval" && len(call.Args) == 0 && pyscan.Path(attr.Value) != "" {
			return call
		}
	}
	return nil
}

// modelCall is the first call of a model in a loop of an evaluation function: of a module, or of the thing that eval() was called
// on, before train() is called.
func modelCall(pass *lint.Pass, module *pyscan.Module, scope *pyscan.Scope, mode *syntax.Call) *syntax.Call {
	path := ""
	if mode != nil {
		path = pyscan.Path(mode.Func.(*syntax.Attribute).Value)
	}
	var found *syntax.Call
	done := false
	look := func(call *syntax.Call) {
		if found != nil || done {
			return
		}
		if attr, ok := call.Func.(*syntax.Attribute); ok && attr.Attr == "train" && found == nil && mode != nil && mode.Span().End < call.Span().Start {
			done = true
			return
		}
		if mode != nil && call.Span().End <= mode.Span().Start {
			return
		}
		callee := pyscan.Path(call.Func)
		if callee != path && !(mode == nil && modelNames[callee]) {
			return
		}
		if callee == "" || !workspace.InLoop(scope, call) || pass.Library(scope, nil, call.Func) != "" {
			return
		}
		value := pass.Expand(pass.Eval(scope, nil, call.Func))
		if callee == path && !otherwise(pass, value) || mode == nil && modelNames[callee] && isModule(pass, value) {
			if len(call.Args)+len(call.Keywords) > 0 {
				found = call
			}
		}
	}
	for _, call := range scope.Calls {
		look(call)
	}
	return found
}

// modelNames are what functions for evaluation call their model.
var modelNames = map[string]bool{"model": true, "net": true, "self.model": true, "self.net": true, "network": true, "unet": true, "ddp_model": true}

// otherwise reports whether a value is known to be something else than a module.
func otherwise(pass *lint.Pass, value pyscan.Value) bool {
	switch value.(type) {
	case *pyscan.Func, *pyscan.Class, *pyscan.Const, *pyscan.Sequence, *pyscan.Mapping:
		return true
	case *pyscan.Instance:
		return pass.IsA(value, "torch.nn.Module") == pyscan.No && !isModule(pass, value)
	}
	return false
}
