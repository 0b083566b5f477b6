package checkpointing

import (
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// enabling is a place that turns on the checkpointing of a Hugging Face model.
type enabling struct {
	call      *syntax.Call
	scope     *pyscan.Scope
	model     syntax.Expr     // of model.gradient_checkpointing_enable(); nil for arguments of a trainer
	key       *syntax.Keyword // of gradient_checkpointing=True
	reentrant pyscan.Truth    // which variant runs
	unsaid    bool            // no kwargs are given, and the release, which decides then (unsaidReentrant), is not known
}

// enablings lists where a module turns checkpointing on.
func enablings(pass *lint.Pass, module *pyscan.Module) []enabling {
	var list []enabling
	if !words(module, "gradient_checkpointing") {
		return nil
	}
	for _, site := range module.Calls {
		call, scope := site.Call, site.Scope
		if attr, ok := call.Func.(*syntax.Attribute); ok && attr.Attr == "gradient_checkpointing_enable" {
			e := enabling{call: call, scope: scope, model: attr.Value}
			e.reentrant, e.unsaid = kwargsOf(pass, scope, call, 0)
			list = append(list, e)
			continue
		}
		for _, k := range call.Keywords {
			if k.Arg == "gradient_checkpointing" && pass.Truthy(pass.Expand(pass.Eval(scope, nil, k.Value))) == pyscan.Yes && isArguments(pass, scope, call) {
				e := enabling{call: call, scope: scope, key: k}
				e.reentrant, e.unsaid = kwargsOf(pass, scope, call, -1)
				list = append(list, e)
			}
		}
	}
	return list
}

// isArguments reports whether a call makes the arguments of a Hugging Face trainer.
func isArguments(pass *lint.Pass, scope *pyscan.Scope, call *syntax.Call) bool {
	return strings.HasSuffix(pass.Library(scope, nil, call.Func), "TrainingArguments") || isTRL(pass, scope, call)
}

// isTRL reports whether a call makes TRL's own arguments, which default to the non-reentrant variant.
func isTRL(pass *lint.Pass, scope *pyscan.Scope, call *syntax.Call) bool {
	name := pass.Library(scope, nil, call.Func)
	return strings.HasPrefix(name, "trl.") && strings.HasSuffix(name, "Config")
}

// kwargsOf reports whether gradient_checkpointing_kwargs choose the reentrant variant; unsaid, that they do not choose, and that the
// release which would is not known.
func kwargsOf(pass *lint.Pass, scope *pyscan.Scope, call *syntax.Call, position int) (reentrant pyscan.Truth, unsaid bool) {
	given := pass.Arg(scope, nil, call, "gradient_checkpointing_kwargs", position)
	if given == nil && pass.OpenKeywords(scope, nil, call) {
		return pyscan.Maybe, false
	}
	if given == nil && isTRL(pass, scope, call) {
		return pyscan.No, false
	}
	if given != nil {
		if mapping, ok := pass.Expand(given).(*pyscan.Mapping); ok {
			return reentrantIn(pass, mapping), false
		}
		if c, ok := pass.Constant(pass.Expand(given)); !ok || c.Truth() { // not None
			return pyscan.Maybe, false
		}
	}
	reentrant = unsaidReentrant(pass, scope.Module.File.Path)
	return reentrant, reentrant == pyscan.Maybe
}

// reentrantIn is use_reentrant of a dict of kwargs, which torch.utils.checkpoint takes for True where it is left out.
func reentrantIn(pass *lint.Pass, mapping *pyscan.Mapping) pyscan.Truth {
	for i, key := range mapping.Keys {
		if c, ok := pass.Constant(key); ok {
			if name, _ := c.Str(); name == "use_reentrant" {
				return pass.Truthy(pass.Expand(mapping.Values[i]))
			}
		}
	}
	if mapping.Open {
		return pyscan.Maybe
	}
	return pyscan.Yes
}

// unsaidReentrant reports whether checkpoints are reentrant where gradient_checkpointing_kwargs are not given: transformers before 5
// passes use_reentrant=True, and 5.0.0 and later False (PreTrainedModel.gradient_checkpointing_enable). Maybe: the release is not known.
func unsaidReentrant(pass *lint.Pass, path string) pyscan.Truth {
	return pass.Pin(path, "transformers").Since("5").Not()
}

// sameModel reports whether two expressions name the same model, as far as their text says: the same path, or one wrapped in
// attributes of the other (model.base_model, self.model).
func sameModel(a, b syntax.Expr) bool {
	x, y := pyscan.Path(a), pyscan.Path(b)
	return x != "" && (x == y || strings.HasPrefix(x, y+".") || y != "" && strings.HasPrefix(y, x+"."))
}

// isOn reports whether an expression is surely true.
func isOn(pass *lint.Pass, scope *pyscan.Scope, e syntax.Expr) bool {
	return pass.Truthy(pass.Expand(pass.Eval(scope, nil, e))) == pyscan.Yes
}

// conditional reports whether a node stands under an `if` of its function.
func conditional(scope *pyscan.Scope, node syntax.Node) bool {
	for _, stmt := range workspace.Around(scope, node) {
		if _, is := stmt.(*syntax.If); is {
			return true
		}
	}
	return false
}
