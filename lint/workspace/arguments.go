package workspace

import (
	"strings"

	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// Settled is the value that holds when nobody sets anything: the default of a command-line flag, of a dataclass field or of
// a parameter that no known caller gives; any other value stays.
func (v *View) Settled(value pyscan.Value) pyscan.Value {
	for range 4 {
		switch one := v.Expand(value).(type) {
		case *pyscan.Setting:
			if one.Default == nil {
				return one
			}
			value = one.Default
		case *pyscan.ParamValue:
			p := one.Scope.Params[one.Index]
			if p.Default == nil || one.Scope.Parent == nil {
				return one
			}
			value = v.Eval(one.Scope.Parent, nil, p.Default)
		default:
			return one
		}
	}
	return value
}

// parsedArgument is args.name where args comes from argparse, by the add_argument calls in the parser's file; nil for
// anything else.
func (v *View) parsedArgument(args *pyscan.Result, name string, at pyscan.Origin) pyscan.Value {
	method, ok := args.Of.(*pyscan.Member)
	if !ok || method.Name != "parse_args" && method.Name != "parse_known_args" && method.Name != "parse_intermixed_args" {
		return nil
	}
	parser := method.Site().Module
	if inst, ok := v.Expand(method.Base).(*pyscan.Instance); ok && inst.At.Module != nil {
		parser = inst.At.Module
	}
	if parser == nil {
		return nil
	}
	setting := &pyscan.Setting{Origin: at, Name: name}
	if site, declared := v.declared(parser)[name]; declared {
		setting.Origin = pyscan.From(parser, site.Call)
		if e := Argument(site.Call, "default", -1); e != nil {
			setting.Default = v.Eval(site.Scope, nil, e)
		} else if e := Argument(site.Call, "action", -1); e != nil {
			if c, ok := e.(*syntax.Constant); ok && (c.Text == "store_true" || c.Text == "store_false") {
				setting.Default = &pyscan.Const{Origin: setting.Origin, V: boolean(c.Text == "store_false")}
			}
		}
	}
	return setting
}

// declared are the calls of add_argument in a file by the attributes that they make, the first for each.
func (v *View) declared(m *pyscan.Module) map[string]pyscan.Call {
	return answered(&v.eval.declared, m, func() map[string]pyscan.Call {
		by := map[string]pyscan.Call{}
		for _, site := range m.CallsOf("add_argument") {
			for _, name := range attributes(site.Call) {
				if _, taken := by[name]; !taken {
					by[name] = site
				}
			}
		}
		return by
	})
}

// attributes are the names under which the value of an add_argument call may be asked for: that of dest, else those of its options.
func attributes(call *syntax.Call) []string {
	for _, k := range call.Keywords {
		if k.Arg == "dest" {
			if c, ok := k.Value.(*syntax.Constant); ok {
				return []string{c.Text}
			}
			return nil
		}
	}
	var names []string
	for _, arg := range call.Args {
		if c, ok := arg.(*syntax.Constant); ok && c.Kind == syntax.StrConstant {
			names = append(names, strings.ReplaceAll(strings.TrimLeft(c.Text, "-"), "-", "_"))
		}
	}
	return names
}

// parsedDataclasses is HfArgumentParser(...).parse_args_into_dataclasses(): one instance for each dataclass given.
func (v *View) parsedDataclasses(method *pyscan.Member, at pyscan.Origin) pyscan.Value {
	seq := &pyscan.Sequence{Origin: at}
	parser, ok := v.Expand(method.Base).(*pyscan.Instance)
	if !ok || parser.Call == nil || len(parser.Call.Args) == 0 {
		return &pyscan.Unknown{Origin: at}
	}
	types := v.Expand(v.Eval(v.scopeOfCall(parser), parser.Frame, parser.Call.Args[0]))
	list := []pyscan.Value{types}
	if several, ok := types.(*pyscan.Sequence); ok {
		list = several.Elements
	}
	for _, one := range list {
		seq.Elements = append(seq.Elements, &pyscan.Instance{Origin: at, Of: one})
	}
	return seq
}

// field is a field of a dataclass instance: what its call gives, or the default in the class. Where no call is known, the
// instance was filled from outside and the field is a Setting. Nil for what is no dataclass field.
func (v *View) field(class *pyscan.Class, self *pyscan.Instance, name string, at pyscan.Origin) pyscan.Value {
	for _, one := range v.lineage(class) {
		if !hasDecorator(one.Scope, "dataclass") && !isDataclass(one.Scope) {
			continue
		}
		def := one.Scope.Exit(name)
		if def == nil || def.Annotation() == nil {
			continue
		}
		var value pyscan.Value
		if def.Kind == pyscan.AssignDef {
			value = v.fieldDefault(one.Scope, def.Value)
		}
		if self.Call == nil {
			return &pyscan.Setting{Origin: pyscan.From(one.Scope.Module, def.Node), Name: name, Default: value}
		}
		scope := v.scopeOfCall(self)
		if given := v.Arg(scope, self.Frame, self.Call, name, fieldPosition(one.Scope, name)); given != nil {
			return given
		}
		if value == nil || v.OpenKeywords(scope, self.Frame, self.Call) {
			return &pyscan.Setting{Origin: pyscan.From(one.Scope.Module, def.Node), Name: name, Default: value}
		}
		return value
	}
	return nil
}

func isDataclass(scope *pyscan.Scope) bool {
	class := scope.Class()
	if class == nil {
		return false
	}
	for _, d := range class.Decorators {
		if call, ok := d.(*syntax.Call); ok {
			d = call.Func
		}
		if path := pyscan.Path(d); path == "dataclass" || strings.HasSuffix(path, ".dataclass") {
			return true
		}
	}
	return false
}

// fieldPosition is the position of a field among those of its class, as the generated __init__ takes them.
func fieldPosition(scope *pyscan.Scope, name string) int {
	position := 0
	for _, stmt := range scope.Body() {
		if ann, ok := stmt.(*syntax.AnnAssign); ok {
			if target, ok := ann.Target.(*syntax.Name); ok {
				if target.ID == name {
					return position
				}
				position++
			}
		}
	}
	return -1
}

// fieldDefault looks into dataclasses.field(default=...).
func (v *View) fieldDefault(scope *pyscan.Scope, e syntax.Expr) pyscan.Value {
	call, ok := e.(*syntax.Call)
	if ok && pyscan.PathEnd(call.Func) == "field" {
		if d := Argument(call, "default", -1); d != nil {
			return v.Eval(scope, nil, d)
		}
		return nil
	}
	return v.Eval(scope, nil, e)
}

// InPlace looks for a wrapper that was put on a model without a new value: fully_shard(model), also in a project function
// that the model was handed to before. scope is where the model is used.
func (v *View) InPlace(scope *pyscan.Scope, frame *pyscan.Frame, model syntax.Expr) (Wrapper, bool) {
	if model == nil {
		return Wrapper{}, false
	}
	path := pyscan.Path(model)
	for s := scope; s != nil; s = s.Parent {
		if w, ok := v.shards(s, frame, path, 3); ok {
			return w, true
		}
	}
	return Wrapper{}, false
}

func (v *View) shards(scope *pyscan.Scope, frame *pyscan.Frame, path string, depth int) (found Wrapper, ok bool) {
	if path == "" || depth <= 0 {
		return found, false
	}
	for _, stmt := range scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			switch n.(type) {
			case *syntax.FunctionDef, *syntax.ClassDef, *syntax.Lambda:
				return false
			}
			call, is := n.(*syntax.Call)
			if !is || ok {
				return !ok
			}
			for i, arg := range call.Args {
				if pyscan.Path(arg) != path {
					continue
				}
				if found, ok = v.shardsArgument(scope, frame, call, i, depth); ok {
					return false
				}
			}
			return true
		})
	}
	return found, ok
}

// ShardsArgument looks whether a call puts a wrapper on one of its positional arguments without a new value: fully_shard(model),
// or a project function that does.
func (v *View) ShardsArgument(scope *pyscan.Scope, frame *pyscan.Frame, call *syntax.Call, argument int) (Wrapper, bool) {
	return v.shardsArgument(scope, frame, call, argument, 3)
}

func (v *View) shardsArgument(scope *pyscan.Scope, frame *pyscan.Frame, call *syntax.Call, i, depth int) (Wrapper, bool) {
	for _, callee := range Alternatives(v.Eval(scope, frame, call.Func)) {
		if i == 0 && v.ExternalName(callee) == "torch.distributed.fsdp.fully_shard" {
			return Wrapper{Kind: FSDP2, Call: call, Scope: scope, Frame: frame}, true
		}
		f, is := callee.(*pyscan.Func)
		if !is || f.Scope == scope {
			continue
		}
		if p := i + shift(f); p < len(f.Scope.Params) {
			if w, ok := v.shards(f.Scope, v.Enter(f, call, scope, frame), f.Scope.Params[p].Name, depth-1); ok {
				return w, true
			}
		}
	}
	return Wrapper{}, false
}

// shift is 1 where a call's first argument is the function's second parameter.
func shift(f *pyscan.Func) int {
	if f.Self != nil && !isStatic(f.Scope) {
		return 1
	}
	return 0
}
