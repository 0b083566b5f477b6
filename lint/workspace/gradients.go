package workspace

import (
	"strings"

	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// RequiresGrad says whether a tensor expression carries gradients: the output of a trainable module does, integer ids and
// masks do not.
func (v *View) RequiresGrad(scope *pyscan.Scope, frame *pyscan.Frame, e syntax.Expr) pyscan.Truth {
	if star, ok := e.(*syntax.Starred); ok {
		if list, ok := v.Expand(v.Eval(scope, frame, star.Value)).(*pyscan.Sequence); !ok || list.Open {
			return pyscan.Maybe
		}
	}
	if path := pyscan.Path(e); path != "" && v.switchesGradOn(scope, path) || madeWithGrad(scope, e) {
		return pyscan.Yes
	}
	return v.carriesGrad(v.Eval(scope, frame, e), e)
}

// madeWithGrad reports whether the last thing done to an expression is to ask for its gradients: `x.detach().requires_grad_()`.
func madeWithGrad(scope *pyscan.Scope, e syntax.Expr) bool {
	if name, ok := e.(*syntax.Name); ok {
		if def := scope.Def(name); def != nil && def.Kind == pyscan.AssignDef {
			e = def.Value
		}
	}
	call, ok := e.(*syntax.Call)
	if !ok {
		return false
	}
	attr, ok := call.Func.(*syntax.Attribute)
	return ok && attr.Attr == "requires_grad_" && (len(call.Args) == 0 || !isFalse(call.Args[0]))
}

// switchesGradOn reports whether a function asks for gradients of a tensor it was given: x.requires_grad_(), x.requires_grad = True.
func (v *View) switchesGradOn(scope *pyscan.Scope, path string) bool {
	return answered(&v.eval.switched, scope, func() map[string]bool { return switchedOn(scope) })[path]
}

// switchedOn are the paths of which a function asks for gradients.
func switchedOn(scope *pyscan.Scope) map[string]bool {
	var switched map[string]bool
	for _, stmt := range scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			on := ""
			switch n := n.(type) {
			case *syntax.Call:
				if attr, ok := n.Func.(*syntax.Attribute); ok && (attr.Attr == "requires_grad_" || attr.Attr == "retain_grad") && (len(n.Args) == 0 || !isFalse(n.Args[0])) {
					on = pyscan.Path(attr.Value)
				}
			case *syntax.Assign:
				if attr, ok := n.Targets[0].(*syntax.Attribute); ok && attr.Attr == "requires_grad" && !isFalse(n.Value) {
					on = pyscan.Path(attr.Value)
				}
			}
			if on != "" {
				if switched == nil {
					switched = map[string]bool{}
				}
				switched[on] = true
			}
			return true
		})
	}
	return switched
}

// withoutParameters are modules that hand on the gradients of their input and have none of their own.
var withoutParameters = []string{"torch.nn.Identity", "torch.nn.Dropout", "torch.nn.ReLU", "torch.nn.GELU", "torch.nn.SiLU", "torch.nn.Tanh", "torch.nn.Sigmoid", "torch.nn.Softmax",
	"torch.nn.Flatten", "torch.nn.Unflatten", "torch.nn.MaxPool2d", "torch.nn.AvgPool2d", "torch.nn.AdaptiveAvgPool2d", "torch.nn.Upsample", "torch.nn.PixelShuffle", "torch.nn.Dropout2d",
	"torch.nn.LeakyReLU", "torch.nn.ZeroPad2d", "torch.nn.ReflectionPad2d"}

func (v *View) carriesGrad(value pyscan.Value, e syntax.Expr) pyscan.Truth {
	switch value := value.(type) {
	case *pyscan.Union:
		answer := pyscan.No
		for _, one := range value.Alternatives {
			answer = answer.Or(v.carriesGrad(one, e))
		}
		return answer
	case *pyscan.Const, *pyscan.Func, *pyscan.Class, *pyscan.Sequence, *pyscan.Mapping, *pyscan.External:
		return pyscan.No
	case *pyscan.ParamValue:
		return v.paramGrad(value, e)
	case *pyscan.Result:
		return v.resultGrad(value, e)
	case *pyscan.Op:
		answer := pyscan.No
		for _, operand := range value.Operands {
			answer = answer.Or(v.carriesGrad(operand, e))
		}
		return answer
	case *pyscan.Element:
		if v.fromLoader(value.Base) {
			return pyscan.No
		}
		return v.carriesGrad(value.Base, e)
	case *pyscan.Instance:
		if v.ExternalName(value.Of) == "torch.nn.Parameter" {
			return pyscan.Yes
		}
		return pyscan.No
	}
	if path := pyscan.Path(e); path != "" {
		return namedInput(pyscan.LastPart(path))
	}
	return pyscan.Maybe
}

// gradTrail is the way that one question about gradients has come: calls and parameters whose own answers it waits for.
type gradTrail struct {
	open  map[syntax.Node]bool // a call whose result is asked for, a parameter that callers give
	steps int                  // asked since the first of them
}

// maxGradSteps bounds the calls and parameters that one question goes back through: each may be given the results of several others.
const maxGradSteps = 64

// enter begins a step at a node, which ends with leave; it is false where there were too many.
func (t *gradTrail) enter(n syntax.Node) bool {
	if len(t.open) == 0 {
		t.steps = 0
	}
	if t.steps++; t.steps > maxGradSteps {
		return false
	}
	if t.open == nil {
		t.open = map[syntax.Node]bool{}
	}
	t.open[n] = true
	return true
}

func (t *gradTrail) leave(n syntax.Node) { delete(t.open, n) }

// paramGrad is carriesGrad of a parameter: of what callers pass, where that is known and not the word of an annotation, else by its name.
func (v *View) paramGrad(param *pyscan.ParamValue, e syntax.Expr) pyscan.Truth {
	p := param.Scope.Params[param.Index]
	byName := namedInput(p.Name)
	passed := v.Expand(param)
	if _, annotated := passed.(*pyscan.Instance); annotated || vague(passed) || passed == pyscan.Value(param) {
		return byName
	}
	if v.eval.grads.open[p.Arg] || !v.eval.grads.enter(p.Arg) { // functions that hand it to each other say nothing of what comes from outside
		return byName
	}
	defer v.eval.grads.leave(p.Arg)
	return v.carriesGrad(passed, e)
}

// resultGrad is carriesGrad of what a call of something opaque gives.
func (v *View) resultGrad(value *pyscan.Result, e syntax.Expr) pyscan.Truth {
	if value.Call == nil {
		return pyscan.Maybe
	}
	if v.eval.grads.open[value.Call] { // what comes round a loop adds nothing by itself
		return pyscan.No
	}
	if !v.eval.grads.enter(value.Call) {
		return pyscan.Maybe
	}
	defer v.eval.grads.leave(value.Call)
	scope := v.scopeOfCall(value)
	arguments := func() pyscan.Truth {
		answer := pyscan.No
		for _, arg := range value.Call.Args {
			answer = answer.Or(v.RequiresGrad(scope, value.Frame, arg))
		}
		for _, k := range value.Call.Keywords {
			answer = answer.Or(v.RequiresGrad(scope, value.Frame, k.Value))
		}
		return answer
	}
	if flag := v.arg(scope, value.Frame, value.Call, "requires_grad", -1); flag != nil {
		return v.Truthy(flag)
	}
	if member, ok := value.Of.(*pyscan.Member); ok {
		switch member.Name {
		case "detach", "argmax", "long", "int", "item", "size", "numel", "nonzero", "tolist", "new_zeros", "new_ones":
			return pyscan.No
		case "requires_grad_":
			return pyscan.Yes
		}
		if _, module := v.Expand(member.Base).(*pyscan.Instance); !module {
			return v.carriesGrad(member.Base, e)
		}
	}
	switch v.ExternalName(value.Of) {
	case "torch.ones", "torch.zeros", "torch.arange", "torch.tensor", "torch.randn", "torch.rand", "torch.empty", "torch.full", "torch.randint", "torch.ones_like", "torch.zeros_like",
		"torch.randn_like", "torch.from_numpy", "torch.as_tensor":
		return pyscan.No
	}
	if c := v.CheckpointOf(scope, value.Frame, value.Call); c != nil && c.Kind == CheckpointCall {
		if c.Reentrant != pyscan.Yes {
			return pyscan.Maybe
		}
		answer := pyscan.No
		for _, input := range c.Inputs {
			answer = answer.Or(v.RequiresGrad(scope, value.Frame, input))
		}
		return answer
	}
	if inst, ok := v.moduleCall(value); ok { // a module's output
		if v.Derives(inst.Of, withoutParameters...) == pyscan.Yes || v.Frozen(scope, value.Call.Func) {
			return arguments()
		}
		return pyscan.Yes
	}
	return pyscan.Maybe
}

// fromLoader reports whether a value is what a data loader gives, or a batch of it.
func (v *View) fromLoader(value pyscan.Value) bool {
	for range 4 {
		switch one := v.Expand(value).(type) {
		case *pyscan.Element:
			value = one.Base
			continue
		case *pyscan.Instance:
			return v.Derives(one.Of, "torch.utils.data.DataLoader") == pyscan.Yes
		case *pyscan.ParamValue:
			name := strings.ToLower(one.Scope.Params[one.Index].Name)
			return name == "batch" || strings.HasSuffix(name, "loader")
		}
		return false
	}
	return false
}

// moduleCall gives the module whose call a result is.
func (v *View) moduleCall(value *pyscan.Result) (*pyscan.Instance, bool) {
	for _, one := range Alternatives(v.Expand(value.Of)) {
		if inst, ok := one.(*pyscan.Instance); ok {
			return inst, true
		}
	}
	return nil, false
}

// inputNames are names that mean a model's input of integers or of data: they carry no gradients.
var inputNames = map[string]bool{"ids": true, "mask": true, "labels": true, "label": true, "pos": true, "positions": true, "position": true, "idx": true, "index": true, "indices": true,
	"tokens": true, "token": true, "images": true, "image": true, "imgs": true, "img": true, "pixel_values": true, "targets": true, "target": true, "seqlen": true, "seqlens": true,
	"length": true, "lengths": true, "buckets": true, "offsets": true, "pixels": true}

// namedInput goes by the names that model inputs have: ids and masks carry no gradients, of anything else nothing is known.
func namedInput(name string) pyscan.Truth {
	name = strings.ToLower(name)
	if inputNames[name] {
		return pyscan.No
	}
	for _, ending := range []string{"_ids", "_mask", "_labels", "_idx", "_index", "_indices", "_positions", "_pos", "_lengths", "_seqlens", "_len"} {
		if strings.HasSuffix(name, ending) {
			return pyscan.No
		}
	}
	return pyscan.Maybe
}
