package workspace

import (
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// WrapperKind is what a model is wrapped into for training.
type WrapperKind uint8

// The wrappers.
const (
	NoWrapper WrapperKind = iota
	DDP
	FSDP1
	FSDP2
	DeepSpeedEngine
	AcceleratePrepared
	FabricSetup
	DataParallel
)

var wrapperNames = [...]string{"no wrapper", "DDP", "FSDP", "FSDP2 (fully_shard)", "DeepSpeed", "Accelerate", "Fabric", "DataParallel"}

func (k WrapperKind) String() string { return wrapperNames[k] }

// Wrapper is one layer around a model.
type Wrapper struct {
	Kind  WrapperKind
	Call  *syntax.Call // that wrapped it; nil where only an annotation says so
	Scope *pyscan.Scope
	Frame *pyscan.Frame
	Value pyscan.Value
}

// Keyword is the value of an argument of the wrapping call, by keyword or position (-1: by keyword only); nil when it is
// not given.
func (v *View) Keyword(w Wrapper, name string, position int) pyscan.Value {
	if w.Call == nil {
		return nil
	}
	if e := v.Arg(w.Scope, w.Frame, w.Call, name, position); e != nil {
		return e
	}
	if made, ok := w.Value.(*pyscan.Instance); ok {
		if partial, ok := made.Of.(*pyscan.Partial); ok && partial.Call != nil && partial.At.Module != nil {
			return v.Arg(v.scopeOfCall(partial), partial.Frame, partial.Call, name, -1)
		}
	}
	return nil
}

// Arg is the value of an argument of a call, by keyword, position or `**` of a known dict; nil when it is not given.
func (v *View) Arg(scope *pyscan.Scope, frame *pyscan.Frame, call *syntax.Call, name string, position int) pyscan.Value {
	if e := Argument(call, name, position); e != nil {
		return v.Eval(scope, frame, e)
	}
	value, _ := v.Spread(scope, frame, call, name)
	return value
}

// Spread is the value of a keyword that a call is handed by `**` of a known dict, with the place of its key; nil where it is not.
func (v *View) Spread(scope *pyscan.Scope, frame *pyscan.Frame, call *syntax.Call, name string) (value pyscan.Value, key pyscan.Site) {
	for _, k := range call.Keywords {
		if k.Arg != "" {
			continue
		}
		m, ok := v.Expand(v.Eval(scope, frame, k.Value)).(*pyscan.Mapping)
		if !ok {
			continue
		}
		for i := len(m.Keys) - 1; i >= 0; i-- {
			if c, ok := v.Constant(m.Keys[i]); ok {
				if text, _ := c.Str(); text == name {
					return m.Values[i], m.Keys[i].Site()
				}
			}
		}
	}
	return nil, key
}

// OpenKeywords reports whether a call has a `**` whose keys are not all known, so that an absent keyword may be set.
func (v *View) OpenKeywords(scope *pyscan.Scope, frame *pyscan.Frame, call *syntax.Call) bool {
	for _, k := range call.Keywords {
		if k.Arg == "" {
			if m, ok := v.Expand(v.Eval(scope, frame, k.Value)).(*pyscan.Mapping); !ok || m.Open {
				return true
			}
		}
	}
	return false
}

// Wrappers takes the wrappers off a model value, outermost first, and gives the model inside. certain is false where the
// value has alternatives that are wrapped otherwise or of which nothing is known.
func (v *View) Wrappers(value pyscan.Value) (wrappers []Wrapper, inner pyscan.Value, certain bool) {
	list := Alternatives(v.Expand(value))
	certain = len(list) == 1
	inner = list[0]
	for _, one := range list { // of several, the wrapped one tells most: `model = DDP(model)` under a condition
		if w, ok := v.wrapper(one); ok && w.Kind != AcceleratePrepared {
			inner = one
			break
		}
	}
	for range 6 {
		w, ok := v.wrapper(inner)
		if !ok {
			return wrappers, inner, certain
		}
		wrappers = append(wrappers, w)
		next := v.Expand(v.inside(inner))
		alternatives := Alternatives(next)
		certain = certain && len(alternatives) == 1
		inner = alternatives[0]
	}
	return wrappers, inner, certain
}

// Outermost is the outermost wrapper of a value. Maybe: of several values that it may have, one at least is wrapped so.
func (v *View) Outermost(value pyscan.Value) (Wrapper, pyscan.Truth) {
	if value == nil {
		return Wrapper{}, pyscan.No
	}
	wrappers, _, _ := v.Wrappers(value)
	switch {
	case len(wrappers) == 0:
		return Wrapper{}, pyscan.No
	case len(Alternatives(v.Expand(value))) > 1:
		return wrappers[0], pyscan.Maybe
	}
	return wrappers[0], pyscan.Yes
}

func (v *View) wrapper(value pyscan.Value) (Wrapper, bool) {
	switch value := value.(type) {
	case *pyscan.Instance:
		kind := NoWrapper
		switch v.ExternalName(pyscan.Made(value)) {
		case "torch.nn.parallel.DistributedDataParallel":
			kind = DDP
		case "torch.nn.DataParallel":
			kind = DataParallel
		case "torch.distributed.fsdp.FullyShardedDataParallel", "fairscale.nn.FullyShardedDataParallel":
			kind = FSDP1
		case "torch.distributed.fsdp.FSDPModule":
			kind = FSDP2
		case "deepspeed.DeepSpeedEngine", "deepspeed.runtime.engine.DeepSpeedEngine":
			kind = DeepSpeedEngine
		}
		if kind == NoWrapper {
			return Wrapper{}, false
		}
		return Wrapper{Kind: kind, Call: value.Call, Scope: v.scopeOfCall(value), Frame: value.Frame, Value: value}, true
	case *pyscan.Wrapped:
		kinds := map[string]WrapperKind{"torch.distributed.fsdp.fully_shard": FSDP2, "torch.distributed._composable.replicate": DDP, "deepspeed.initialize": DeepSpeedEngine,
			"accelerate.prepare": AcceleratePrepared, "fabric.setup": FabricSetup}
		if kind := kinds[value.By]; kind != NoWrapper {
			return Wrapper{Kind: kind, Call: value.Call, Scope: v.scopeOfCall(value), Frame: value.Frame, Value: value}, true
		}
	}
	return Wrapper{}, false
}

// inside is what a wrapper was given.
func (v *View) inside(value pyscan.Value) pyscan.Value {
	switch value := value.(type) {
	case *pyscan.Wrapped:
		return value.Inner
	case *pyscan.Instance:
		if value.Call != nil && len(value.Call.Args) > 0 {
			return v.Eval(v.scopeOfCall(value), value.Frame, value.Call.Args[0])
		}
		if value.Call != nil {
			if e := Argument(value.Call, "module", -1); e != nil {
				return v.Eval(v.scopeOfCall(value), value.Frame, e)
			}
		}
	}
	return &pyscan.Unknown{}
}

// Bare gives the alternatives of a value without what frameworks put around them: the optimizer that was prepared, the
// model that was wrapped.
func (v *View) Bare(value pyscan.Value) []pyscan.Value {
	var list []pyscan.Value
	for _, one := range Alternatives(v.Expand(value)) {
		if _, inner, _ := v.Wrappers(one); inner != nil {
			list = append(list, inner)
		}
	}
	return list
}

// Opaque reports whether nothing is known of a value: an open parameter, or what no file says.
func (v *View) Opaque(value pyscan.Value) bool {
	switch value.(type) {
	case nil, *pyscan.Unknown, *pyscan.ParamValue:
		return true
	}
	return false
}

// OnlyModel is an instance of the one model class that a file defines or imports from the project, where there is just one
// that is no part of another: a model of which nothing else is known is taken to be that one. Nil otherwise.
func (v *View) OnlyModel(m *pyscan.Module) pyscan.Value {
	var classes []*pyscan.Class
	m.Root.Defined(func(name string, _ []*pyscan.Def) {
		value := v.moduleName(m, name)
		if class, ok := value.(*pyscan.Class); ok && v.Derives(class, "torch.nn.Module", "pytorch_lightning.LightningModule") == pyscan.Yes {
			classes = append(classes, class)
		}
	})
	var only *pyscan.Class
	for _, class := range classes {
		part := false
		for _, other := range classes {
			part = part || other.Scope != class.Scope && v.builds(other, class)
		}
		if part {
			continue
		}
		if only != nil && only.Scope != class.Scope {
			return nil
		}
		only = class
	}
	if only == nil {
		return nil
	}
	return v.anyInstance(only)
}

// builds reports whether a class makes instances of another one, or derives from it.
func (v *View) builds(class, part *pyscan.Class) bool {
	for _, base := range v.lineage(class)[1:] {
		if base.Scope == part.Scope {
			return true
		}
	}
	found := false
	syntax.Inspect(class.Scope.Node, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.Call); ok && !found {
			if made, ok := v.Eval(pyscan.ScopeAt(class.Scope.Module, call), nil, call.Func).(*pyscan.Class); ok && made.Scope == part.Scope {
				found = true
			}
		}
		return !found
	})
	return found
}
