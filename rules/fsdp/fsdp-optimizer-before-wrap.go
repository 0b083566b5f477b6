package fsdp

import (
	_ "embed"
	"strings"

	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed fsdp-optimizer-before-wrap.md
var fsdpOptimizerBeforeWrapDoc string

// FsdpOptimizerBeforeWrap finds optimizers that were given the parameters of a model before FSDP replaced them.
var FsdpOptimizerBeforeWrap = &lint.Rule{
	Name:     "fsdp-optimizer-before-wrap",
	Family:   "fsdp",
	Since:    "0.1",
	Doc:      fsdpOptimizerBeforeWrapDoc,
	Severity: lint.Error,
	Mentions: []string{"FSDP", "FullyShardedDataParallel", "fully_shard", "prepare("}, // the optimizer may be made in another file
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		for _, site := range module.Calls {
			call, scope := site.Call, site.Scope
			if len(call.Args) == 0 {
				continue
			}
			if owner, _ := parametersOf(scope, call.Args[0]); owner == nil && !pass.Near(module, parameters, call.Func) {
				continue
			}
			made, ok := pass.Eval(scope, nil, call).(*pyscan.Instance)
			if !ok || !isOptimizer(pass, made) {
				continue
			}
			if owner := ownerOf(pass, module, scope, call, made); owner != nil {
				checkOrder(pass, module, scope, call, made, owner)
			}
		}
		preparedApart(pass, module)
	},
}

// parameters are the methods whose results optimizers are made of.
var parameters = &pyscan.Words{Names: map[string]bool{"parameters": true, "named_parameters": true}}

// ownerOf is the model whose parameters a call gives to an optimizer, as it is called where the call stands: model in
// AdamW(model.parameters()), and in make(model) where make does that with its parameter. Nil for anything else.
func ownerOf(pass *lint.Pass, module *pyscan.Module, scope *pyscan.Scope, call *syntax.Call, made *pyscan.Instance) syntax.Expr {
	if made.Call == call {
		owner, _ := parametersOf(scope, call.Args[0])
		return owner
	}
	f, ok := pass.Expand(pass.Eval(scope, nil, call.Func)).(*pyscan.Func)
	if !ok || made.Call == nil || made.At.Module == nil || len(made.Call.Args) == 0 || pyscan.ScopeAt(made.At.Module, made.Call) != f.Scope {
		return nil
	}
	owner, _ := parametersOf(f.Scope, made.Call.Args[0])
	name, ok := owner.(*syntax.Name)
	if !ok {
		return nil
	}
	def := f.Scope.Def(name)
	if def == nil || def.Kind != pyscan.ParamDef {
		return nil
	}
	position := def.Param()
	if f.Self != nil {
		position--
	}
	return workspace.Argument(call, name.ID, position)
}

func isOptimizer(pass *lint.Pass, value pyscan.Value) bool {
	made, ok := value.(*pyscan.Instance)
	if !ok {
		return false
	}
	name := pass.ExternalName(made.Of)
	for _, prefix := range []string{"torch.optim.", "apex.optimizers.", "deepspeed.ops.", "bitsandbytes.optim."} {
		if strings.HasPrefix(name, prefix) {
			return !strings.Contains(name, "lr_scheduler")
		}
	}
	return name == "transformers.AdamW" || name == "transformers.Adafactor"
}

func checkOrder(pass *lint.Pass, module *pyscan.Module, scope *pyscan.Scope, optimizer *syntax.Call, made *pyscan.Instance, owner syntax.Expr) {
	path := pyscan.Path(owner)
	if path == "" {
		return
	}
	if _, is := pass.Outermost(pass.Eval(scope, nil, owner)); is != pyscan.No {
		return
	}
	wrap, w := wrapsLater(pass, scope, optimizer, owner, path)
	if wrap == nil || remade(pass, scope, optimizer, wrap) {
		return
	}
	d := pass.Reportf(madeAt(module, made, optimizer), "the optimizer is given the parameters of the model before %s replaces them by sharded ones: it steps on tensors that the model no longer uses", w.Kind)
	if torch := pass.Pin(module.File.Path, "torch"); w.Kind == workspace.FSDP1 && torch.Since("2.0") != pyscan.No {
		if original := pass.Keyword(w, "use_orig_params", -1); original != nil && pass.Truthy(pass.Settled(original)) != pyscan.No || original == nil && pass.OpenKeywords(w.Scope, w.Frame, w.Call) {
			d.As(lint.Warning)
		}
	}
	d.Note(module.File.At(wrap.Span()), "the model is wrapped here, later").Help("make the optimizer after the wrapping")
}

// madeAt is the place of an optimizer's constructor, or of the call that leads to it in another file.
func madeAt(module *pyscan.Module, made *pyscan.Instance, call *syntax.Call) source.Place {
	if made.At.Module == module && made.Call != nil {
		return module.File.At(made.Call.Span())
	}
	return module.File.At(call.Span())
}

// preparedApart finds a model and its optimizer that are handed to accelerator.prepare in different calls, where Accelerate shards by
// FSDP2: it has to exchange the optimizer's parameters, and refuses.
func preparedApart(pass *lint.Pass, module *pyscan.Module) {
	type prepared struct {
		call      *syntax.Call
		model     bool
		optimizer *pyscan.Instance
		owner     pyscan.Value
	}
	apart := map[*pyscan.Scope][]prepared{}
	for _, site := range module.Calls {
		call, scope := site.Call, site.Scope
		attr, ok := call.Func.(*syntax.Attribute)
		if !ok || attr.Attr != "prepare" || len(call.Args) == 0 {
			continue
		}
		one := prepared{call: call}
		value := pass.Eval(scope, nil, call)
		if wrapped, ok := value.(*pyscan.Wrapped); ok {
			value = &pyscan.Sequence{Elements: []pyscan.Value{wrapped}}
		}
		seq, ok := value.(*pyscan.Sequence)
		if !ok || seq.Open || len(seq.Elements) != len(call.Args) {
			continue
		}
		for i, element := range seq.Elements {
			wrapped, ok := element.(*pyscan.Wrapped)
			if !ok || wrapped.By != "accelerate.prepare" {
				continue
			}
			one.owner = wrapped.Owner
			made, is := pass.Expand(wrapped.Inner).(*pyscan.Instance)
			switch {
			case is && isOptimizer(pass, made):
				one.optimizer = made
			case pass.IsA(wrapped.Inner, "torch.nn.Module") == pyscan.Yes, !is && loop.ModelName(pyscan.LastName(call.Args[i])):
				one.model = true
			}
		}
		apart[scope] = append(apart[scope], one)
	}
	for _, list := range apart {
		for _, first := range list {
			for _, second := range list {
				if first.model && first.optimizer == nil && second.optimizer != nil && !second.model && shardsByFSDP2(pass, module, second.owner) {
					d := pass.Reportf(madeAt(module, second.optimizer, second.call), "model and optimizer are prepared in different calls: under FSDP2 Accelerate has to exchange the optimizer's parameters for the sharded ones, and raises a ValueError")
					d.Note(module.File.At(first.call.Span()), "the model is prepared here").Note(module.File.At(second.call.Span()), "the optimizer is prepared here")
					d.Help("prepare both in one call: model, optimizer = accelerator.prepare(model, optimizer)")
				}
			}
		}
	}
}

// shardsByFSDP2 reports whether an Accelerator is set up for FSDP2: by its plugin, or by the config that each launch of the file names.
func shardsByFSDP2(pass *lint.Pass, module *pyscan.Module, owner pyscan.Value) bool {
	if acc, ok := pass.Expand(owner).(*pyscan.Instance); ok && acc.Call != nil && acc.At.Module != nil {
		plugin := pass.Arg(pyscan.ScopeAt(acc.At.Module, acc.Call), acc.Frame, acc.Call, "fsdp_plugin", -1)
		if made, ok := pass.Expand(orUnknown(plugin)).(*pyscan.Instance); ok && made.Call != nil && made.At.Module != nil {
			version := pass.Arg(pyscan.ScopeAt(made.At.Module, made.Call), made.Frame, made.Call, "fsdp_version", 0)
			c, ok := pass.Constant(pass.Expand(orUnknown(version)))
			if n, is := c.Int(); ok && is {
				return n == 2
			}
			return false
		}
	}
	runs := pass.RunsOf(module.File.Path)
	for _, run := range runs {
		if sharding, known := run.Plan.Sharding.Get(); !known || sharding != plan.FSDP2 {
			return false
		}
	}
	return len(runs) > 0
}

func orUnknown(value pyscan.Value) pyscan.Value {
	if value == nil {
		return &pyscan.Unknown{}
	}
	return value
}

// wrapsLater is the call after the optimizer's, in the same function, that wraps the same model.
func wrapsLater(pass *lint.Pass, scope *pyscan.Scope, optimizer *syntax.Call, owner syntax.Expr, path string) (wrap *syntax.Call, w workspace.Wrapper) {
	for _, stmt := range scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			switch n.(type) {
			case *syntax.FunctionDef, *syntax.ClassDef, *syntax.Lambda:
				return false
			}
			call, ok := n.(*syntax.Call)
			if !ok || wrap != nil || call.Span().Start < optimizer.Span().End {
				return wrap == nil
			}
			for i, arg := range call.Args {
				if pyscan.Path(arg) != path || !sameDef(scope, owner, arg) || exclusive(scope, optimizer, call) {
					continue
				}
				if one, is := pass.Outermost(pass.Eval(scope, nil, call)); is != pyscan.No && (one.Kind == workspace.FSDP1 || one.Kind == workspace.FSDP2) {
					wrap, w = call, one
				} else if one, ok := pass.ShardsArgument(scope, nil, call, i); ok {
					wrap, w = call, one
				}
			}
			return wrap == nil
		})
	}
	return wrap, w
}

// sameDef reports whether two uses of one path read the same definition.
func sameDef(scope *pyscan.Scope, a, b syntax.Expr) bool {
	switch a := a.(type) {
	case *syntax.Name:
		b, ok := b.(*syntax.Name)
		return ok && scope.Def(a) == scope.Def(b)
	case *syntax.Attribute:
		b, ok := b.(*syntax.Attribute)
		return ok && scope.AttrDef(a) == scope.AttrDef(b)
	}
	return false
}

// remade reports whether an optimizer is made again after the wrapping.
func remade(pass *lint.Pass, scope *pyscan.Scope, optimizer, wrap *syntax.Call) bool {
	found := false
	for _, stmt := range scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			if call, ok := n.(*syntax.Call); ok && call != optimizer && call.Span().Start > wrap.Span().Start && isOptimizer(pass, pass.Eval(scope, nil, call)) {
				found = true
			}
			return !found
		})
	}
	return found
}

// exclusive reports whether two nodes stand in different arms of one if, so that only one of them runs.
func exclusive(scope *pyscan.Scope, a, b syntax.Node) bool {
	for _, stmt := range workspace.Around(scope, a) {
		branch, ok := stmt.(*syntax.If)
		if ok && stmt.Span().Contains(b.Span()) && workspace.Within(branch.Body, a) != workspace.Within(branch.Body, b) {
			return true
		}
		if ok && len(branch.Body) > 0 && workspace.Within(branch.Body, a) && !stmt.Span().Contains(b.Span()) {
			if _, leaves := branch.Body[len(branch.Body)-1].(*syntax.Return); leaves {
				return true
			}
		}
	}
	return false
}
