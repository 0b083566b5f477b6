package workspace

import (
	"strings"

	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// call is what a call gives.
func (v *View) call(scope *pyscan.Scope, frame *pyscan.Frame, call *syntax.Call, at pyscan.Origin) pyscan.Value {
	if name, ok := call.Func.(*syntax.Name); ok && name.ID == "super" && scope.Def(name) == nil {
		return v.super(scope, frame, at)
	}
	return v.each(v.Eval(scope, frame, call.Func), at, func(callee pyscan.Value) pyscan.Value {
		return v.invoke(callee, call, scope, frame, at)
	})
}

// invoke applies a callee to the arguments of a call, which stand in scope and frame. A nil call has no arguments.
func (v *View) invoke(callee pyscan.Value, call *syntax.Call, scope *pyscan.Scope, frame *pyscan.Frame, at pyscan.Origin) pyscan.Value {
	switch callee := callee.(type) {
	case *pyscan.Func:
		return v.enterFunc(callee, call, scope, frame, at)
	case *pyscan.Class:
		return &pyscan.Instance{Origin: at, Of: callee, Call: call, Frame: frame}
	case *pyscan.Partial:
		return v.each(callee.Of, at, func(inner pyscan.Value) pyscan.Value {
			switch inner := inner.(type) {
			case *pyscan.Func:
				return v.enterFunc(inner, call, scope, frame, at)
			case *pyscan.Class:
				return &pyscan.Instance{Origin: at, Of: callee, Call: call, Frame: frame}
			case *pyscan.External:
				if isClassName(pyscan.LastPart(inner.Name)) {
					return &pyscan.Instance{Origin: at, Of: callee, Call: call, Frame: frame}
				}
			}
			return &pyscan.Result{Origin: at, Of: callee, Call: call, Frame: frame}
		})
	case *pyscan.External:
		return v.library(callee, call, scope, frame, at)
	case *pyscan.Instance:
		if class, ok := callee.Of.(*pyscan.Class); ok {
			for _, name := range []string{"forward", "__call__"} {
				if method := v.method(class, name); method != nil {
					return v.enterFunc(&pyscan.Func{Origin: at, Scope: method, Self: callee}, call, scope, frame, at)
				}
			}
		}
	case *pyscan.Member:
		if callee.Name == "parse_args_into_dataclasses" {
			return v.parsedDataclasses(callee, at)
		}
		if call != nil && len(call.Args) > 0 {
			switch callee.Name {
			case "prepare":
				if v.IsA(callee.Base, "accelerate.Accelerator") == pyscan.Yes || strings.Contains(siteName(callee), "accelerator") {
					return v.prepared(callee.Base, "accelerate.prepare", call, scope, frame, at)
				}
			case "setup", "setup_module", "setup_optimizers":
				if v.IsA(callee.Base, "lightning_fabric.Fabric", "lightning.Fabric") == pyscan.Yes || strings.Contains(siteName(callee), "fabric") {
					return v.prepared(callee.Base, "fabric.setup", call, scope, frame, at)
				}
			}
		}
		if keepsReceiver[callee.Name] && call != nil {
			return callee.Base
		}
		if callee.Name == "get" && call != nil && len(call.Args) > 0 {
			if m, ok := v.Expand(callee.Base).(*pyscan.Mapping); ok {
				return v.get(m, call, scope, frame, at)
			}
		}
	}
	return &pyscan.Result{Origin: at, Of: callee, Call: call, Frame: frame}
}

// get is mapping.get(key, default).
func (v *View) get(m *pyscan.Mapping, call *syntax.Call, scope *pyscan.Scope, frame *pyscan.Frame, at pyscan.Origin) pyscan.Value {
	key := v.Eval(scope, frame, call.Args[0])
	if found, missing := v.index(m, key, at).(*pyscan.Element); !missing || found.Base != pyscan.Value(m) {
		return v.index(m, key, at)
	}
	if m.Open {
		return &pyscan.Unknown{Origin: at}
	}
	if len(call.Args) > 1 {
		return v.Eval(scope, frame, call.Args[1])
	}
	return &pyscan.Const{Origin: at}
}

// siteName is the dotted text of the receiver of a method, in lower case, for values of unknown type.
func siteName(m *pyscan.Member) string {
	if attr, ok := m.Site().Node.(*syntax.Attribute); ok {
		return strings.ToLower(pyscan.Path(attr.Value))
	}
	return ""
}

// keepsReceiver are methods of modules and tensors that give back what they were called on, as far as any rule cares.
var keepsReceiver = map[string]bool{"to": true, "cuda": true, "npu": true, "cpu": true, "xpu": true, "half": true, "bfloat16": true, "float": true, "double": true, "train": true,
	"requires_grad_": true, "contiguous": true, "share_memory": true, "type": true, "to_empty": true}

// library is what calling a thing of a library gives.
func (v *View) library(callee *pyscan.External, call *syntax.Call, scope *pyscan.Scope, frame *pyscan.Frame, at pyscan.Origin) pyscan.Value {
	arg := func(i int) pyscan.Value {
		if call == nil || i >= len(call.Args) {
			return &pyscan.Unknown{Origin: at}
		}
		return v.Eval(scope, frame, call.Args[i])
	}
	switch callee.Name {
	case "functools.partial":
		if call != nil && len(call.Args) > 0 {
			return &pyscan.Partial{Origin: at, Of: arg(0), Call: call, Frame: frame}
		}
	case "builtins.getattr":
		if name, ok := v.Constant(arg(1)); ok {
			if text, ok := name.Str(); ok {
				found := v.Attr(arg(0), text, at)
				if call != nil && len(call.Args) == 3 {
					if _, opaque := found.(*pyscan.Member); opaque {
						return v.union(at, found, arg(2))
					}
				}
				return found
			}
		}
		return &pyscan.Unknown{Origin: at}
	case "builtins.int", "builtins.float", "builtins.str", "builtins.bool":
		if c, ok := v.Constant(arg(0)); ok {
			if made, ok := constant.Convert(pyscan.LastPart(callee.Name), c); ok {
				return &pyscan.Const{Origin: at, V: made}
			}
		}
		if call != nil && len(call.Args) == 1 && callee.Name != "builtins.str" {
			return &pyscan.Op{Origin: at, Name: pyscan.LastPart(callee.Name), Operands: []pyscan.Value{arg(0)}}
		}
	case "builtins.max", "builtins.min":
		if call != nil && len(call.Args) > 1 {
			operands := make([]pyscan.Value, len(call.Args))
			for i := range call.Args {
				operands[i] = arg(i)
			}
			return &pyscan.Op{Origin: at, Name: pyscan.LastPart(callee.Name), Operands: operands}
		}
	case "builtins.list", "builtins.tuple":
		if call != nil && len(call.Args) == 1 {
			given := v.Expand(arg(0))
			if seq, ok := given.(*pyscan.Sequence); ok {
				return &pyscan.Sequence{Origin: at, Elements: seq.Elements, Open: seq.Open}
			}
			if elements := v.elements(given); len(elements) > 0 {
				return &pyscan.Sequence{Origin: at, Elements: elements, Open: true}
			}
		}
	case "builtins.dict":
		if call != nil && len(call.Args) == 0 {
			m := &pyscan.Mapping{Origin: at}
			for _, k := range call.Keywords {
				if k.Arg == "" {
					m.Open = true
					continue
				}
				m.Keys = append(m.Keys, &pyscan.Const{Origin: pyscan.From(scope.Module, k), V: constant.MakeString(k.Arg)})
				m.Values = append(m.Values, v.Eval(scope, frame, k.Value))
			}
			return m
		}
	case "torch.compile", "copy.deepcopy", "copy.copy", "torch.jit.script":
		if call != nil && len(call.Args) > 0 {
			return arg(0)
		}
	case "torch.distributed.fsdp.fully_shard", "torch.distributed._composable.replicate", "peft.get_peft_model", "torch.nn.parallel.replicate":
		if call != nil && len(call.Args) > 0 {
			return &pyscan.Wrapped{Origin: at, By: callee.Name, Inner: arg(0), Call: call, Frame: frame}
		}
	case "deepspeed.initialize":
		return v.initialize(call, scope, frame, at)
	case "torch.nn.SyncBatchNorm.convert_sync_batchnorm":
		return arg(0)
	}
	if isClassName(pyscan.LastPart(callee.Name)) {
		return &pyscan.Instance{Origin: at, Of: callee, Call: call, Frame: frame}
	}
	return &pyscan.Result{Origin: at, Of: callee, Call: call, Frame: frame}
}

// initialize is what deepspeed.initialize gives: (engine, optimizer, dataloader, scheduler).
func (v *View) initialize(call *syntax.Call, scope *pyscan.Scope, frame *pyscan.Frame, at pyscan.Origin) pyscan.Value {
	if call == nil {
		return &pyscan.Unknown{Origin: at}
	}
	element := func(position int, keyword string) pyscan.Value {
		if e := Argument(call, keyword, position); e != nil {
			return v.Eval(scope, frame, e)
		}
		return &pyscan.Unknown{Origin: at}
	}
	wrap := func(inner pyscan.Value, by string) pyscan.Value {
		return &pyscan.Wrapped{Origin: at, By: by, Inner: inner, Call: call, Frame: frame}
	}
	return &pyscan.Sequence{Origin: at, Elements: []pyscan.Value{
		wrap(element(1, "model"), "deepspeed.initialize"),
		&pyscan.Instance{Origin: at, Of: &pyscan.External{Origin: at, Name: "deepspeed.runtime.DeepSpeedOptimizer"}},
		&pyscan.Instance{Origin: at, Of: &pyscan.External{Origin: at, Name: "torch.utils.data.DataLoader"}},
		&pyscan.Instance{Origin: at, Of: &pyscan.External{Origin: at, Name: "torch.optim.lr_scheduler.LRScheduler"}},
	}}
}

// Argument is the expression that a call gives for a parameter, by keyword or position (-1: by keyword only); nil when it
// gives none, or when a star argument before the position hides which it is.
func Argument(call *syntax.Call, keyword string, position int) syntax.Expr {
	for _, k := range call.Keywords {
		if k.Arg == keyword {
			return k.Value
		}
	}
	if position < 0 || position >= len(call.Args) {
		return nil
	}
	for _, arg := range call.Args[:position+1] {
		if _, star := arg.(*syntax.Starred); star {
			return nil
		}
	}
	return call.Args[position]
}

// prepared is what accelerator.prepare and fabric.setup give: their arguments, wrapped; several as a tuple.
func (v *View) prepared(owner pyscan.Value, by string, call *syntax.Call, scope *pyscan.Scope, frame *pyscan.Frame, at pyscan.Origin) pyscan.Value {
	seq := &pyscan.Sequence{Origin: at}
	for _, arg := range call.Args {
		if _, star := arg.(*syntax.Starred); star {
			seq.Open = true
			continue
		}
		seq.Elements = append(seq.Elements, &pyscan.Wrapped{Origin: at, By: by, Owner: owner, Inner: v.Eval(scope, frame, arg), Call: call, Frame: frame})
	}
	if len(seq.Elements) == 1 && !seq.Open {
		return seq.Elements[0]
	}
	return seq
}

// isClassName goes by PEP 8: a library's CapWords name is a class. Names all in capitals are constants or short classes
// such as SGD and DDP.
func isClassName(name string) bool { return name != "" && name[0] >= 'A' && name[0] <= 'Z' }

// super is super() in a method.
func (v *View) super(scope *pyscan.Scope, frame *pyscan.Frame, at pyscan.Origin) pyscan.Value {
	method := scope
	for method != nil && method.EnclosingClass() == nil {
		method = method.Parent
	}
	if method == nil || len(method.Params) == 0 {
		return &pyscan.Unknown{Origin: at}
	}
	class := method.EnclosingClass()
	return &pyscan.Super{Origin: at, Class: &pyscan.Class{Origin: pyscan.From(class.Module, class.Node), Scope: class}, Self: v.param(method, frame, 0, at)}
}

// Enter binds the parameters of a function to the arguments of a call that stands in scope and frame.
// It is nil where calls are nested too deeply; then parameters are open.
func (v *View) Enter(f *pyscan.Func, call *syntax.Call, scope *pyscan.Scope, frame *pyscan.Frame) *pyscan.Frame {
	depth := 1
	if frame != nil {
		depth = frame.Depth + 1
	}
	if depth > maxFrames {
		v.cut()
		return nil
	}
	var node syntax.Node
	if call != nil {
		node = call
	}
	key := frameKey{f.Scope, node, frame, f.Self}
	if made := v.eval.frames[key]; made != nil {
		return made
	}
	made := &pyscan.Frame{Scope: f.Scope, Self: f.Self, Outer: f.Frame, Depth: depth}
	if call != nil && scope != nil {
		made.Caller, made.From, made.In = pyscan.Site{Module: scope.Module, Node: call}, scope, frame
		v.bindArguments(made, f, call, scope, frame)
	}
	v.eval.frames[key] = made
	return made
}

// bindArguments fills a frame. A star argument leaves what it may fill open.
func (v *View) bindArguments(made *pyscan.Frame, f *pyscan.Func, call *syntax.Call, scope *pyscan.Scope, frame *pyscan.Frame) {
	params := f.Scope.Params
	next := 0
	if f.Self != nil && !isStatic(f.Scope) {
		next = 1
	}
	open := false
	for _, arg := range call.Args {
		if star, ok := arg.(*syntax.Starred); ok {
			if seq, ok := v.Eval(scope, frame, star.Value).(*pyscan.Sequence); ok && !seq.Open {
				for _, element := range seq.Elements {
					if next < len(params) && params[next].Kind <= pyscan.Positional {
						made.Bind(next, pyscan.Argument{Value: element})
						next++
					}
				}
				continue
			}
			open = true
			continue
		}
		if open || next >= len(params) || params[next].Kind > pyscan.Positional {
			continue
		}
		made.Bind(next, pyscan.Argument{Expr: arg})
		next++
	}
	var numbers map[string]int
	if len(call.Keywords) > 0 {
		numbers = numbersOf(params)
	}
	for _, k := range call.Keywords {
		if k.Arg == "" {
			if m, ok := v.Expand(v.Eval(scope, frame, k.Value)).(*pyscan.Mapping); ok {
				for i, key := range m.Keys {
					if c, ok := v.Constant(key); ok {
						if name, ok := c.Str(); ok {
							bindKeyword(made, params, numbers, name, pyscan.Argument{Value: m.Values[i]})
						}
					}
				}
				open = open || m.Open
				continue
			}
			open = true
			continue
		}
		bindKeyword(made, params, numbers, k.Arg, pyscan.Argument{Expr: k.Value})
	}
	if open { // what a star may have filled is not the default
		for i, p := range params {
			if made.Arg(i) == (pyscan.Argument{}) && p.Kind != pyscan.VarArgs && p.Kind != pyscan.VarKeywords && !(i == 0 && f.Self != nil) {
				made.Bind(i, pyscan.Argument{Value: &pyscan.ParamValue{Origin: pyscan.From(f.Scope.Module, p.Arg), Scope: f.Scope, Index: i}})
			}
		}
	}
}

// Passed is what the call of a frame gives for a parameter; given is false when it leaves the default.
func (v *View) Passed(frame *pyscan.Frame, index int) (value pyscan.Value, given bool) {
	arg := frame.Arg(index)
	if arg.Value == nil && arg.Expr != nil {
		return v.Eval(frame.From, frame.In, arg.Expr), true
	}
	return arg.Value, arg.Value != nil
}

// manyParams is from how many on the parameters of a function are found by a map.
const manyParams = 64

func fills(p *pyscan.Param) bool { return p.Kind == pyscan.Positional || p.Kind == pyscan.KeywordOnly }

// numbersOf are the parameters that keywords can fill, by name; nil where there are so few that looking through them is faster.
func numbersOf(params []pyscan.Param) map[string]int {
	if len(params) < manyParams {
		return nil
	}
	numbers := make(map[string]int, len(params))
	for i := range params {
		if fills(&params[i]) {
			numbers[params[i].Name] = i
		}
	}
	return numbers
}

func bindKeyword(made *pyscan.Frame, params []pyscan.Param, numbers map[string]int, name string, arg pyscan.Argument) {
	if numbers != nil {
		if i, known := numbers[name]; known {
			made.Bind(i, arg)
		}
		return
	}
	for i := range params {
		if p := &params[i]; p.Name == name && fills(p) {
			made.Bind(i, arg)
		}
	}
}

// enterFunc is what a call of a project function gives: the union of its return values, read in the frame of this call.
func (v *View) enterFunc(f *pyscan.Func, call *syntax.Call, scope *pyscan.Scope, frame *pyscan.Frame, at pyscan.Origin) pyscan.Value {
	opaque := &pyscan.Result{Origin: at, Of: f, Call: call, Frame: frame}
	inner := v.Enter(f, call, scope, frame)
	if inner == nil {
		return opaque
	}
	if lambda, ok := f.Scope.Node.(*syntax.Lambda); ok {
		return v.Eval(f.Scope, inner, lambda.Body)
	}
	if len(f.Scope.Yields()) > 0 {
		return opaque
	}
	var list []pyscan.Value
	for _, r := range f.Scope.Returns() {
		if r.Value == nil {
			continue
		}
		value := v.Eval(f.Scope, inner, r.Value)
		if _, none := value.(*pyscan.Unknown); none {
			value = opaque
		}
		list = append(list, value)
	}
	if len(list) == 0 {
		return opaque
	}
	value := v.union(at, list...)
	if _, unknown := value.(*pyscan.Unknown); unknown {
		if def := f.Scope.Function(); def != nil && def.Returns != nil {
			return v.annotated(f.Scope.Parent, nil, def.Returns, opaque, at)
		}
		return opaque
	}
	return value
}

// Attr is an attribute of a value.
func (v *View) Attr(value pyscan.Value, name string, at pyscan.Origin) pyscan.Value {
	if v.eval.attrs >= maxAttrs { // a parameter whose callers pass what is made of it
		v.cut()
		return &pyscan.Unknown{Origin: at}
	}
	v.eval.attrs++
	defer func() { v.eval.attrs-- }()
	return v.each(value, at, func(one pyscan.Value) pyscan.Value { return v.attr(one, name, at) })
}

func (v *View) attr(value pyscan.Value, name string, at pyscan.Origin) pyscan.Value {
	switch value := value.(type) {
	case *pyscan.ModuleValue:
		if at.At.Module != nil && len(v.knownIn(at.At.Module)) > 0 {
			if meaning := v.meaningIn(at.At.Module, value.Path, name); meaning != "" {
				return v.external(at, meaning)
			}
		}
		if member := v.ModuleMember(value.Path, name); member != nil {
			return member
		}
		return &pyscan.Unknown{Origin: at}
	case *pyscan.External:
		if at.At.Module != nil && len(v.knownIn(at.At.Module)) > 0 {
			if meaning := v.meaning(at.At.Module, value.Name+"."+name); meaning != "" {
				return v.external(at, meaning)
			}
		}
		return v.external(at, value.Name+"."+name)
	case *pyscan.ParamValue:
		return v.each(v.Expand(value), at, func(one pyscan.Value) pyscan.Value {
			if _, open := one.(*pyscan.ParamValue); open {
				return &pyscan.Member{Origin: at, Base: one, Name: name}
			}
			return v.Attr(one, name, at)
		})
	case *pyscan.Class:
		if found := v.classAttr(value, name, nil, at); found != nil {
			return found
		}
	case *pyscan.Result:
		if found := v.parsedArgument(value, name, at); found != nil {
			return found
		}
	case *pyscan.Element: // args, rest = parser.parse_known_args()
		if result, ok := value.Base.(*pyscan.Result); ok {
			if found := v.parsedArgument(result, name, at); found != nil {
				return found
			}
		}
	case *pyscan.Wrapped:
		inner := v.Expand(value.Inner)
		if name == "module" {
			return inner
		}
		if value.By == "torch.distributed.fsdp.fully_shard" || value.By == "peft.get_peft_model" {
			if found, opaque := v.Attr(inner, name, at).(*pyscan.Member); !opaque || found.Base != inner {
				return v.Attr(inner, name, at)
			}
		}
	case *pyscan.Super:
		for _, base := range v.Bases(value.Class) {
			if class, ok := base.(*pyscan.Class); ok {
				if found := v.classAttr(class, name, value.Self, at); found != nil {
					return found
				}
			}
		}
	case *pyscan.Instance:
		if at.At.Module != nil && len(v.knownIn(at.At.Module)) > 0 {
			if meaning := v.meaningOfMethod(at.At.Module, value.Of, name); meaning != "" {
				return v.external(at, meaning)
			}
		}
		if class, ok := value.Of.(*pyscan.Class); ok {
			if found := v.field(class, value, name, at); found != nil {
				return found
			}
			if found := v.instanceAttr(class, value, name, at); found != nil {
				return found
			}
		}
		if found := v.moduleEntry(value, name); found != nil {
			return found
		}
		if name == "module" && wraps[v.ExternalName(pyscan.Made(value))] && value.Call != nil && len(value.Call.Args) > 0 {
			return v.Eval(v.scopeOfCall(value), value.Frame, value.Call.Args[0])
		}
	}
	return &pyscan.Member{Origin: at, Base: value, Name: name}
}

// dottedModule is the dotted name of a module file, as far as its path tells.
func dottedModule(file string) string {
	file = strings.TrimSuffix(strings.TrimSuffix(file, ".py"), "/__init__")
	return strings.ReplaceAll(strings.TrimPrefix(file, "src/"), "/", ".")
}

// wraps are the wrappers whose .module is the model that they were given first.
var wraps = map[string]bool{"torch.nn.parallel.DistributedDataParallel": true, "torch.nn.DataParallel": true, "torch.distributed.fsdp.FullyShardedDataParallel": true}

// method finds a method in a class of the project or its bases; nil when it has none there.
func (v *View) method(class *pyscan.Class, name string) *pyscan.Scope {
	for _, one := range v.lineage(class) {
		if child := one.Scope.Child(name); child != nil && child.Kind == pyscan.FuncScope {
			return child
		}
	}
	return nil
}

// Method is the method of a class of the project, its own or inherited, or nil.
func (v *View) Method(class *pyscan.Class, name string) *pyscan.Scope { return v.method(class, name) }

// classAttr is a name in the body of a class or its bases; self, when given, binds methods. Nil when there is none.
func (v *View) classAttr(class *pyscan.Class, name string, self pyscan.Value, at pyscan.Origin) pyscan.Value {
	for _, one := range v.lineage(class) {
		def := one.Scope.Exit(name)
		if def == nil {
			continue
		}
		value := v.EvalDef(one.Scope, one.Frame, def)
		f, ok := value.(*pyscan.Func)
		if !ok || f.Scope.Parent != one.Scope {
			if _, unknown := value.(*pyscan.Unknown); unknown && def.Annotation() == nil {
				return nil
			}
			return value
		}
		switch {
		case isStatic(f.Scope):
			return value
		case isClassMethod(f.Scope):
			return &pyscan.Func{Origin: f.Origin, Scope: f.Scope, Self: class, Frame: f.Frame}
		case self == nil:
			return value
		}
		bound := &pyscan.Func{Origin: f.Origin, Scope: f.Scope, Self: self, Frame: f.Frame}
		if isProperty(f.Scope) {
			return v.enterFunc(bound, nil, nil, nil, at)
		}
		return bound
	}
	return nil
}

// instanceAttr is the union of what the methods of a class and its bases assign to self.name, or a class attribute. A
// method's parameters are open, but those of __init__ have the arguments of the call that made the instance.
func (v *View) instanceAttr(class *pyscan.Class, self *pyscan.Instance, name string, at pyscan.Origin) pyscan.Value {
	var list []pyscan.Value
	for _, one := range v.lineage(class) {
		setters := v.setters(one.Scope, name)
		if len(setters) > maxSetters {
			return &pyscan.Unknown{Origin: at}
		}
		for _, method := range setters {
			if method.Kind != pyscan.FuncScope || len(method.Params) == 0 || !method.MayAssign(name) {
				continue
			}
			path := method.Params[0].Name + "." + name
			defs := method.Defs(path)
			if len(defs) == 0 || isStatic(method) {
				continue
			}
			if last := method.Exit(path); method.Name == "__init__" && last != nil {
				defs = []*pyscan.Def{last} // what __init__ assigned before is gone when it returns
			}
			frame := v.methodFrame(method, one, self)
			for _, def := range defs {
				if def.Kind == pyscan.AugDef || def.Kind == pyscan.DelDef {
					continue
				}
				list = append(list, v.EvalDef(method, frame, def))
			}
		}
	}
	if len(list) > 0 {
		return v.union(at, list...)
	}
	return v.classAttr(class, name, self, at)
}

// manyMethods is from how many on the methods of a class are listed by what they assign to: each attribute that is read asks for them.
const manyMethods = 64

// setters are functions in a class among which are all those that assign to an attribute of their first parameter.
func (v *View) setters(class *pyscan.Scope, name string) []*pyscan.Scope {
	if len(class.Children) < manyMethods {
		return class.Children
	}
	return answered(&v.eval.setters, class, func() map[string][]*pyscan.Scope {
		by := map[string][]*pyscan.Scope{}
		for _, method := range class.Children {
			if len(method.Params) == 0 {
				continue
			}
			self := method.Params[0].Name + "."
			method.Defined(func(path string, _ []*pyscan.Def) {
				if attr, ok := strings.CutPrefix(path, self); ok {
					by[attr] = append(by[attr], method)
				}
			})
		}
		return by
	})[name]
}

// methodFrame is the frame in which a method of an instance is read when no call of it is looked at.
func (v *View) methodFrame(method *pyscan.Scope, of *pyscan.Class, self *pyscan.Instance) *pyscan.Frame {
	if method.Name != "__init__" || self.Call == nil {
		return v.selfFrame(method, self)
	}
	class, _ := self.Of.(*pyscan.Class)
	if class == nil || class.Scope != of.Scope && v.method(class, "__init__") != method {
		return v.selfFrame(method, self)
	}
	return v.Enter(&pyscan.Func{Scope: method, Self: self}, self.Call, v.scopeOfCall(self), self.Frame)
}

// selfFrame knows only the receiver; parameters stay open.
func (v *View) selfFrame(method *pyscan.Scope, self pyscan.Value) *pyscan.Frame {
	key := frameKey{method, nil, nil, self}
	if made := v.eval.frames[key]; made != nil {
		return made
	}
	made := &pyscan.Frame{Scope: method, Self: self, Depth: 1}
	if len(method.Params) > 0 {
		made.Bind(0, pyscan.Argument{Value: self})
	}
	for i := 1; i < len(method.Params); i++ {
		made.Bind(i, pyscan.Argument{Value: &pyscan.ParamValue{Origin: pyscan.From(method.Module, method.Params[i].Arg), Scope: method, Index: i}})
	}
	v.eval.frames[key] = made
	return made
}

// Bases are the direct bases of a class: classes of the project, externals, or unknown.
func (v *View) Bases(class *pyscan.Class) []pyscan.Value {
	def := class.Scope.Class()
	if def == nil {
		return nil
	}
	list := make([]pyscan.Value, 0, len(def.Bases))
	for _, base := range def.Bases {
		if sub, ok := base.(*syntax.Subscript); ok { // Generic[T], Base[T]
			base = sub.Value
		}
		list = append(list, v.Eval(class.Scope.Parent, class.Frame, base))
	}
	return list
}

// lineage is a class and its bases in the project, in the order in which attributes are looked up (depth first).
func (v *View) lineage(class *pyscan.Class) []*pyscan.Class {
	key := instanceKey{class.Scope, class.Frame}
	if known, ok := v.eval.lineages[key]; ok {
		return known
	}
	outer := v.eval.heads
	v.eval.heads = 0
	list := v.ancestors(class)
	if v.eval.heads == 0 { // of a class whose bases are being asked for, nothing is kept
		v.eval.lineages[key] = list
	}
	v.eval.heads |= outer
	return list
}

func (v *View) ancestors(class *pyscan.Class) []*pyscan.Class {
	var list []*pyscan.Class
	seen := map[*pyscan.Scope]bool{}
	var visit func(*pyscan.Class)
	visit = func(c *pyscan.Class) {
		if seen[c.Scope] || len(list) >= 32 {
			return
		}
		seen[c.Scope] = true
		list = append(list, c)
		for _, base := range v.Bases(c) {
			for _, one := range Alternatives(base) {
				if inner, ok := one.(*pyscan.Class); ok {
					visit(inner)
				}
			}
		}
	}
	visit(class)
	return list
}

// ExternalName is the dotted name of a library thing; "" for anything else.
func (v *View) ExternalName(value pyscan.Value) string {
	if ext, ok := value.(*pyscan.External); ok {
		return ext.Name
	}
	return ""
}

// ExternalBase is the dotted name of the library class that a class is or derives from first; "" when it has none.
func (v *View) ExternalBase(class pyscan.Value) string {
	switch class := class.(type) {
	case *pyscan.External:
		return class.Name
	case *pyscan.Class:
		for _, one := range v.lineage(class) {
			for _, base := range v.Bases(one) {
				if name := v.ExternalName(base); name != "" && name != "builtins.object" && !strings.HasPrefix(name, "typing.") && !strings.HasPrefix(name, "abc.") {
					return name
				}
			}
		}
	}
	return ""
}

// IsA reports whether a value is an instance of one of the library classes (or of a project class derived from one).
// A union of some that are and some that are not is Maybe, as is what nothing is known of.
func (v *View) IsA(value pyscan.Value, names ...string) pyscan.Truth {
	answer, first := pyscan.Maybe, true
	for _, one := range Alternatives(v.Expand(value)) {
		is := v.isOne(one, names)
		if first {
			answer, first = is, false
		} else if is != answer {
			return pyscan.Maybe
		}
	}
	return answer
}

func (v *View) isOne(value pyscan.Value, names []string) pyscan.Truth {
	inst, ok := value.(*pyscan.Instance)
	if !ok {
		switch value.(type) {
		case *pyscan.Const, *pyscan.Sequence, *pyscan.Mapping, *pyscan.Func, *pyscan.Class, *pyscan.ModuleValue, *pyscan.External, *pyscan.Op:
			return pyscan.No
		}
		return pyscan.Maybe
	}
	return v.Derives(inst.Of, names...)
}

// Derives reports whether a class is, or derives from, one of the library classes.
func (v *View) Derives(class pyscan.Value, names ...string) pyscan.Truth {
	if partial, ok := class.(*pyscan.Partial); ok {
		class = partial.Of
	}
	has := func(name string) bool {
		for _, n := range names {
			if n == name {
				return true
			}
		}
		return false
	}
	switch class := class.(type) {
	case *pyscan.External:
		return pyscan.Truly(has(class.Name))
	case *pyscan.Class:
		answer := pyscan.No
		for _, one := range v.lineage(class) {
			for _, base := range v.Bases(one) {
				switch base := base.(type) {
				case *pyscan.External:
					if has(base.Name) {
						return pyscan.Yes
					}
				case *pyscan.Class:
				default:
					answer = pyscan.Maybe
				}
			}
		}
		return answer
	}
	return pyscan.Maybe
}
