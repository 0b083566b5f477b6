package workspace

import (
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

func (v *View) external(at pyscan.Origin, name string) pyscan.Value {
	return &pyscan.External{Origin: at, Name: canonical(name)}
}

// union joins alternatives: nested unions are flattened, equal ones count once, and more than pyscan.MaxAlternatives are
// Unknown. The order of the arguments decides only the order inside.
func (v *View) union(at pyscan.Origin, values ...pyscan.Value) pyscan.Value {
	var room [pyscan.MaxAlternatives + 1]pyscan.Value
	list := room[:0] // most unions turn out to be one value
	for _, value := range values {
		for _, one := range Alternatives(value) {
			if slices.ContainsFunc(list, func(have pyscan.Value) bool { return same(have, one) }) {
				continue
			}
			if list = append(list, one); len(list) > pyscan.MaxAlternatives {
				return &pyscan.Unknown{Origin: at}
			}
		}
	}
	switch {
	case len(list) == 0:
		return &pyscan.Unknown{Origin: at}
	case len(list) == 1:
		return list[0]
	}
	return &pyscan.Union{Origin: at, Alternatives: slices.Clone(list)}
}

// Alternatives are the members of a Union, or the value itself.
func Alternatives(value pyscan.Value) []pyscan.Value {
	if union, ok := value.(*pyscan.Union); ok {
		return union.Alternatives
	}
	return []pyscan.Value{value}
}

// same reports whether two values say the same thing.
func same(a, b pyscan.Value) bool {
	if a == b {
		return true
	}
	switch a := a.(type) {
	case *pyscan.Const:
		b, ok := b.(*pyscan.Const)
		return ok && a.V.Kind() == b.V.Kind() && a.V.Equal(b.V)
	case *pyscan.External:
		b, ok := b.(*pyscan.External)
		return ok && a.Name == b.Name
	case *pyscan.ModuleValue:
		b, ok := b.(*pyscan.ModuleValue)
		return ok && a.Path == b.Path
	case *pyscan.Func:
		b, ok := b.(*pyscan.Func)
		return ok && a.Scope == b.Scope && a.Frame == b.Frame && (a.Self == b.Self || a.Self != nil && b.Self != nil && same(a.Self, b.Self))
	case *pyscan.Class:
		b, ok := b.(*pyscan.Class)
		return ok && a.Scope == b.Scope
	case *pyscan.ParamValue:
		b, ok := b.(*pyscan.ParamValue)
		return ok && a.Scope == b.Scope && a.Index == b.Index
	case *pyscan.Unknown:
		b, ok := b.(*pyscan.Unknown)
		return ok && a.At.Node == b.At.Node
	case *pyscan.Instance:
		b, ok := b.(*pyscan.Instance)
		return ok && a.Call == b.Call && a.Frame == b.Frame && same(a.Of, b.Of)
	case *pyscan.Result:
		b, ok := b.(*pyscan.Result)
		return ok && a.Call == b.Call && a.Frame == b.Frame
	case *pyscan.Member:
		b, ok := b.(*pyscan.Member)
		return ok && a.Name == b.Name && same(a.Base, b.Base)
	case *pyscan.Element:
		b, ok := b.(*pyscan.Element)
		return ok && same(a.Base, b.Base) && (a.Key == b.Key || a.Key != nil && b.Key != nil && same(a.Key, b.Key))
	case *pyscan.Setting:
		b, ok := b.(*pyscan.Setting)
		return ok && a.Name == b.Name && a.At.Module == b.At.Module
	case *pyscan.Op:
		b, ok := b.(*pyscan.Op)
		if !ok || a.Name != b.Name || len(a.Operands) != len(b.Operands) {
			return false
		}
		for i := range a.Operands {
			if !same(a.Operands[i], b.Operands[i]) {
				return false
			}
		}
		return true
	}
	return false
}

// Constant is the value of a constant; ok is false for anything else, a union included.
func (v *View) Constant(value pyscan.Value) (c constant.Value, ok bool) {
	if known, ok := value.(*pyscan.Const); ok {
		return known.V, true
	}
	return c, false
}

// operate applies an operator, on constants at once.
func (v *View) operate(at pyscan.Origin, name string, operands ...pyscan.Value) pyscan.Value {
	constants := make([]constant.Value, 0, len(operands))
	for _, operand := range operands {
		if c, ok := v.Constant(operand); ok {
			constants = append(constants, c)
		}
	}
	if len(constants) == len(operands) {
		var result constant.Value
		ok := false
		switch len(constants) {
		case 1:
			result, ok = constant.Unary(name, constants[0])
		case 2:
			result, ok = constant.Binary(name, constants[0], constants[1])
		}
		if ok {
			return &pyscan.Const{Origin: at, V: result}
		}
	}
	if name == "+" && len(operands) == 2 {
		if joined := v.concatenated(at, operands[0], operands[1]); joined != nil {
			return joined
		}
	}
	return &pyscan.Op{Origin: at, Name: name, Operands: operands}
}

// concatenated is a + b where one of them is a list display and the elements of the other are known too, as of
// `[self.embed] + list(self.blocks)`; nil for anything else.
func (v *View) concatenated(at pyscan.Origin, a, b pyscan.Value) pyscan.Value {
	first, display := a.(*pyscan.Sequence)
	second, other := b.(*pyscan.Sequence)
	if display && other {
		return &pyscan.Sequence{Origin: at, Elements: append(first.Elements[:len(first.Elements):len(first.Elements)], second.Elements...), Open: first.Open || second.Open}
	}
	if !display && !other {
		return nil
	}
	before, after := v.elements(a), v.elements(b)
	if len(before) == 0 || len(after) == 0 {
		return nil
	}
	return &pyscan.Sequence{Origin: at, Elements: append(before[:len(before):len(before)], after...), Open: true}
}

// Elements are the known elements of a container: of a display, or of an nn.ModuleList, nn.Sequential and their like.
func (v *View) Elements(value pyscan.Value) []pyscan.Value { return v.elements(value) }

func (v *View) elements(value pyscan.Value) []pyscan.Value {
	switch value := value.(type) {
	case *pyscan.Sequence:
		return value.Elements
	case *pyscan.Mapping:
		return value.Values
	case *pyscan.Instance:
		name := v.ExternalBase(value.Of)
		if value.Call == nil || value.Site().Module == nil {
			return nil
		}
		if v.eval.listed[value.Call] { // self.blocks = nn.Sequential(*self.blocks, head): what it held before is not known
			return nil
		}
		if v.eval.listed == nil {
			v.eval.listed = map[*syntax.Call]bool{}
		}
		v.eval.listed[value.Call] = true
		defer delete(v.eval.listed, value.Call)
		scope := v.scopeOfCall(value)
		switch name {
		case "torch.nn.ModuleList", "torch.nn.ModuleDict", "torch.nn.ParameterList":
			if len(value.Call.Args) == 1 {
				return v.elements(v.Expand(v.Eval(scope, value.Frame, value.Call.Args[0])))
			}
		case "torch.nn.Sequential", "torch.nn.modules.container.Sequential":
			var list []pyscan.Value
			if len(value.Call.Args) == 1 {
				if list := v.namedModules(v.Expand(v.Eval(scope, value.Frame, value.Call.Args[0]))); list != nil {
					return list
				}
			}
			for _, arg := range value.Call.Args {
				if star, ok := arg.(*syntax.Starred); ok {
					list = append(list, v.elements(v.Expand(v.Eval(scope, value.Frame, star.Value)))...)
					continue
				}
				list = append(list, v.Eval(scope, value.Frame, arg))
			}
			return list
		}
	case *pyscan.Op:
		if value.Name == "*" { // [x] * n
			for _, operand := range value.Operands {
				if seq, ok := operand.(*pyscan.Sequence); ok {
					return seq.Elements
				}
			}
		}
	}
	return nil
}

// namedModules are the values of an OrderedDict of modules, made from pairs or from a dict; nil for anything else.
func (v *View) namedModules(value pyscan.Value) []pyscan.Value {
	if m, ok := value.(*pyscan.Mapping); ok {
		return m.Values
	}
	dict, ok := value.(*pyscan.Instance)
	if !ok || v.ExternalName(dict.Of) != "collections.OrderedDict" || dict.Call == nil || len(dict.Call.Args) != 1 {
		return nil
	}
	var list []pyscan.Value
	given := v.Expand(v.Eval(v.scopeOfCall(dict), dict.Frame, dict.Call.Args[0]))
	if m, ok := given.(*pyscan.Mapping); ok {
		return m.Values
	}
	for _, pair := range v.elements(given) {
		if both, ok := pair.(*pyscan.Sequence); ok && len(both.Elements) == 2 {
			list = append(list, both.Elements[1])
		}
	}
	return list
}

// scopeOfCall is the scope in which the arguments of a value's call stand.
func (v *View) scopeOfCall(value pyscan.Value) *pyscan.Scope {
	site := value.Site()
	if site.Module == nil || site.Node == nil {
		return nil
	}
	return pyscan.ScopeAt(site.Module, site.Node)
}

// elementAt is the element of a value at a constant position; -1 stands for the rest that a star takes.
func (v *View) elementAt(value pyscan.Value, i int, at pyscan.Origin) pyscan.Value {
	return v.each(value, at, func(one pyscan.Value) pyscan.Value {
		if seq, ok := one.(*pyscan.Sequence); ok && i >= 0 && i < len(seq.Elements) && !seq.Open {
			return seq.Elements[i]
		}
		if i < 0 {
			return &pyscan.Unknown{Origin: at}
		}
		return &pyscan.Element{Origin: at, Base: one, Key: &pyscan.Const{Origin: at, V: constant.MakeInt(int64(i))}}
	})
}

// each applies a function to every alternative of a value and joins the results.
func (v *View) each(value pyscan.Value, at pyscan.Origin, apply func(pyscan.Value) pyscan.Value) pyscan.Value {
	list := Alternatives(value)
	if len(list) == 1 {
		return apply(list[0])
	}
	results := make([]pyscan.Value, len(list))
	for i, one := range list {
		results[i] = apply(one)
	}
	return v.union(at, results...)
}

// index is value[key].
func (v *View) index(value, key pyscan.Value, at pyscan.Origin) pyscan.Value {
	return v.each(v.Expand(value), at, func(one pyscan.Value) pyscan.Value {
		c, constantKey := v.Constant(key)
		if m, ok := one.(*pyscan.Mapping); ok && constantKey {
			for i := len(m.Keys) - 1; i >= 0; i-- {
				if have, ok := v.Constant(m.Keys[i]); ok && have.Equal(c) {
					return m.Values[i]
				}
			}
		}
		if dict, ok := one.(*pyscan.Instance); ok && constantKey {
			if name, text := c.Str(); text {
				if found := v.moduleEntry(dict, name); found != nil {
					return found
				}
			}
		}
		if seq, ok := one.(*pyscan.Sequence); ok && !seq.Open && constantKey {
			if i, ok := c.Int(); ok {
				if i < 0 {
					i += int64(len(seq.Elements))
				}
				if i >= 0 && i < int64(len(seq.Elements)) {
					return seq.Elements[i]
				}
			}
		}
		if elements := v.elements(one); len(elements) > 0 {
			if i, ok := c.Int(); ok && constantKey && i >= 0 && i < int64(len(elements)) {
				if inst, ok := one.(*pyscan.Instance); ok && v.ExternalBase(inst.Of) == "torch.nn.Sequential" {
					return elements[i]
				}
			}
			return v.union(at, elements...)
		}
		return &pyscan.Element{Origin: at, Base: one, Key: key}
	})
}

// moduleEntry is the module that an nn.ModuleDict was given under a name, as an attribute or by key; nil when it is not known.
func (v *View) moduleEntry(dict *pyscan.Instance, name string) pyscan.Value {
	if v.ExternalName(dict.Of) != "torch.nn.ModuleDict" || dict.Call == nil || len(dict.Call.Args) != 1 || dict.Site().Module == nil {
		return nil
	}
	m, ok := v.Expand(v.Eval(v.scopeOfCall(dict), dict.Frame, dict.Call.Args[0])).(*pyscan.Mapping)
	if !ok {
		return nil
	}
	for i := len(m.Keys) - 1; i >= 0; i-- {
		if c, ok := v.Constant(m.Keys[i]); ok {
			if key, _ := c.Str(); key == name {
				return m.Values[i]
			}
		}
	}
	return nil
}

// iterate is what a loop over an expression gives its target. enumerate, zip, tqdm, reversed, sorted, list, tuple and iter are looked through.
func (v *View) iterate(scope *pyscan.Scope, frame *pyscan.Frame, e syntax.Expr, at pyscan.Origin) pyscan.Value {
	if call, ok := e.(*syntax.Call); ok && len(call.Args) > 0 {
		arg := func(i int) pyscan.Value { return v.iterate(scope, frame, call.Args[i], at) }
		switch name := v.ExternalName(v.Eval(scope, frame, call.Func)); name {
		case "builtins.enumerate":
			return &pyscan.Sequence{Origin: at, Elements: []pyscan.Value{&pyscan.Unknown{Origin: at}, arg(0)}}
		case "builtins.zip":
			seq := &pyscan.Sequence{Origin: at}
			for i := range call.Args {
				seq.Elements = append(seq.Elements, arg(i))
			}
			return seq
		case "tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.notebook.tqdm", "rich.progress.track", "builtins.reversed", "builtins.sorted", "builtins.list", "builtins.tuple", "builtins.iter", "builtins.set",
			"itertools.islice", "itertools.cycle":
			return arg(0)
		}
		if attr, ok := call.Func.(*syntax.Attribute); ok && attr.Attr == "items" && len(call.Args) == 0 {
			return &pyscan.Sequence{Origin: at, Elements: []pyscan.Value{&pyscan.Unknown{Origin: at}, &pyscan.Element{Origin: at, Base: v.Eval(scope, frame, attr.Value)}}}
		}
	}
	return v.each(v.Expand(v.Eval(scope, frame, e)), at, func(one pyscan.Value) pyscan.Value {
		if elements := v.elements(one); len(elements) > 0 {
			return v.union(at, elements...)
		}
		return &pyscan.Element{Origin: at, Base: one}
	})
}

// enter is what `with value as name` gives the name.
func (v *View) enter(value pyscan.Value, at pyscan.Origin) pyscan.Value {
	return v.each(value, at, func(one pyscan.Value) pyscan.Value {
		if inst, ok := one.(*pyscan.Instance); ok {
			if class, ok := inst.Of.(*pyscan.Class); ok {
				if enter := v.method(class, "__enter__"); enter != nil {
					return v.invoke(&pyscan.Func{Origin: at, Scope: enter, Self: inst}, nil, nil, nil, at)
				}
			}
		}
		return one
	})
}

// annotated is a value of which only an annotation speaks. Optional and unions give their members; what is no class in the
// project or a library stays as it was.
func (v *View) annotated(scope *pyscan.Scope, frame *pyscan.Frame, annotation syntax.Expr, otherwise pyscan.Value, at pyscan.Origin) pyscan.Value {
	switch a := annotation.(type) {
	case *syntax.Constant: // "ForwardReference"
		if a.Kind != syntax.StrConstant || a.Text == "" || strings.ContainsAny(a.Text, "[]| ") {
			return otherwise
		}
		value := v.outside(scope, frame, firstPart(a.Text), at)
		if _, rest, dotted := strings.Cut(a.Text, "."); dotted {
			for _, name := range strings.Split(rest, ".") {
				value = v.Attr(value, name, at)
			}
		}
		return v.instanceOf(value, otherwise, at)
	case *syntax.Subscript:
		switch name := pyscan.PathEnd(a.Value); name {
		case "Optional", "Annotated", "ClassVar", "Final":
			inner := a.Slice
			if tuple, ok := inner.(*syntax.Tuple); ok && len(tuple.Elts) > 0 {
				inner = tuple.Elts[0]
			}
			return v.annotated(scope, frame, inner, otherwise, at)
		case "Union":
			if tuple, ok := a.Slice.(*syntax.Tuple); ok {
				var list []pyscan.Value
				for _, e := range tuple.Elts {
					if c, ok := e.(*syntax.Constant); !ok || c.Kind != syntax.NoneConstant {
						list = append(list, v.annotated(scope, frame, e, otherwise, at))
					}
				}
				return v.union(at, list...)
			}
		}
		return otherwise
	case *syntax.BinOp:
		if a.Op == syntax.BitOr {
			var list []pyscan.Value
			for _, e := range []syntax.Expr{a.Left, a.Right} {
				if c, ok := e.(*syntax.Constant); !ok || c.Kind != syntax.NoneConstant {
					list = append(list, v.annotated(scope, frame, e, otherwise, at))
				}
			}
			return v.union(at, list...)
		}
		return otherwise
	case *syntax.Name, *syntax.Attribute:
		return v.instanceOf(v.Eval(scope, frame, annotation), otherwise, at)
	}
	return otherwise
}

func (v *View) instanceOf(value, otherwise pyscan.Value, at pyscan.Origin) pyscan.Value {
	switch value := value.(type) {
	case *pyscan.Class:
		return &pyscan.Instance{Origin: at, Of: value}
	case *pyscan.External:
		if vagueTypes[value.Name] || strings.HasPrefix(value.Name, "typing.") || strings.HasPrefix(value.Name, "builtins.") {
			return otherwise
		}
		return &pyscan.Instance{Origin: at, Of: value}
	case *pyscan.Union:
		return v.each(value, at, func(one pyscan.Value) pyscan.Value { return v.instanceOf(one, otherwise, at) })
	}
	return otherwise
}

// vagueTypes say nothing about what the value really is: anything may be inside.
var vagueTypes = map[string]bool{"torch.nn.Module": true, "torch.Tensor": true, "builtins.object": true, "typing.Any": true, "torch.optim.Optimizer": true,
	"torch.utils.data.DataLoader": false}

func firstPart(dotted string) string {
	first, _, _ := strings.Cut(dotted, ".")
	return first
}

func boolean(b bool) constant.Value { return constant.MakeBool(b) }
