package workspace

import (
	"sort"
	"strings"

	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// CheckpointKind says how an activation checkpoint is made.
type CheckpointKind uint8

// The kinds.
const (
	CheckpointCall       CheckpointKind = iota // checkpoint(fn, *args)
	CheckpointSequential                       // checkpoint_sequential(functions, segments, input)
	CheckpointWrapper                          // checkpoint_wrapper(module)
	CheckpointApply                            // apply_activation_checkpointing(model, check_fn=...)
	CheckpointEnable                           // model.gradient_checkpointing_enable()
)

// Checkpoint is a place where activations are recomputed instead of kept.
type Checkpoint struct {
	Kind      CheckpointKind
	Callee    string // canonical dotted name; "" for a method
	Call      *syntax.Call
	Scope     *pyscan.Scope
	Frame     *pyscan.Frame
	Function  syntax.Expr   // what is checkpointed; nil for Apply and Enable
	Inputs    []syntax.Expr // its direct arguments
	Reentrant pyscan.Truth  // an omitted flag is Yes: that is what torch does (a warning announces a change)
	Omitted   bool          // the flag is not written
	Decorates *pyscan.Scope // the function, where the checkpoint is its decorator; Function is then nil
	made      *pyscan.Result
}

// Target is what a checkpoint runs anew in backward.
func (v *View) Target(c *Checkpoint) pyscan.Value {
	switch {
	case c.Decorates != nil:
		f := &pyscan.Func{Origin: pyscan.From(c.Decorates.Module, c.Decorates.Node), Scope: c.Decorates}
		if class := c.Decorates.EnclosingClass(); class != nil && !isStatic(c.Decorates) {
			f.Self = &pyscan.Instance{Origin: f.Origin, Of: &pyscan.Class{Origin: pyscan.From(class.Module, class.Node), Scope: class}}
		}
		return f
	case c.Function == nil:
		return &pyscan.Unknown{}
	case c.made != nil:
		return v.Expand(v.Eval(v.scopeOfCall(c.made), c.made.Frame, c.Function))
	}
	return v.Expand(v.Eval(c.Scope, c.Frame, c.Function))
}

// checkpointCalls are the functions that checkpoint their first argument. The value says which variant runs when no flag
// decides: torch's default is reentrant in every release so far; DeepSpeed's and Megatron's have no other.
var checkpointCalls = map[string]struct {
	kind      CheckpointKind
	reentrant pyscan.Truth
	flag      bool // takes use_reentrant
	skip      int  // arguments between the function and its inputs
}{
	"torch.utils.checkpoint.checkpoint":                                                          {CheckpointCall, pyscan.Yes, true, 0},
	"torch.utils.checkpoint.checkpoint_sequential":                                               {CheckpointSequential, pyscan.Yes, true, 1},
	"deepspeed.checkpointing.checkpoint":                                                         {CheckpointCall, pyscan.Yes, false, 0},
	"deepspeed.checkpointing.non_reentrant_checkpoint":                                           {CheckpointCall, pyscan.No, false, 0},
	"megatron.core.tensor_parallel.checkpoint":                                                   {CheckpointCall, pyscan.Yes, false, 1},
	"megatron.mpu.checkpoint":                                                                    {CheckpointCall, pyscan.Yes, false, 0},
	"fairscale.nn.checkpoint.checkpoint_wrapper":                                                 {CheckpointWrapper, pyscan.Yes, false, 0},
	"fairscale.nn.checkpoint_wrapper":                                                            {CheckpointWrapper, pyscan.Yes, false, 0},
	"torch.distributed.algorithms._checkpoint.checkpoint_wrapper.checkpoint_wrapper":             {CheckpointWrapper, pyscan.No, false, 0},
	"torch.distributed.algorithms._checkpoint.checkpoint_wrapper.apply_activation_checkpointing": {CheckpointApply, pyscan.No, false, 0},
}

// Checkpoints lists the activation checkpoints in a module, in order.
func (v *View) Checkpoints(m *pyscan.Module) []*Checkpoint {
	if list, known := v.eval.checkpoints[m]; known {
		return list
	}
	var list []*Checkpoint
	if mayCheckpoint(m) {
		for _, stmt := range m.Tree.Body {
			syntax.Inspect(stmt, func(n syntax.Node) bool {
				switch n := n.(type) {
				case *syntax.Call:
					if c := v.CheckpointOf(pyscan.ScopeAt(m, n), nil, n); c != nil {
						list = append(list, c)
					}
				case *syntax.FunctionDef:
					if inner := m.ScopeOf(n); inner != nil && inner.Parent != nil {
						for _, d := range n.Decorators {
							if c := v.decorator(inner, d); c != nil {
								list = append(list, c)
							}
						}
					}
				}
				return true
			})
		}
	}
	v.eval.checkpoints[m] = list
	return list
}

// decorator reads @checkpoint(use_reentrant=False), @partial(checkpoint, use_reentrant=False) and @checkpoint.
func (v *View) decorator(f *pyscan.Scope, d syntax.Expr) *Checkpoint {
	call, called := d.(*syntax.Call)
	value := v.Eval(f.Parent, nil, d)
	if called {
		switch made := value.(type) {
		case *pyscan.Result:
			if len(call.Args) > 0 {
				return nil
			}
			value = made.Of
		case *pyscan.Partial:
			value = made.Of
		default:
			return nil
		}
	} else {
		call = &syntax.Call{Base: syntax.Base{At: d.Span()}, Func: d}
	}
	name := v.ExternalName(value)
	if known, is := checkpointCalls[name]; !is || !known.flag || known.kind != CheckpointCall {
		return nil
	}
	c := &Checkpoint{Kind: CheckpointCall, Callee: name, Call: call, Scope: f.Parent, Decorates: f, Reentrant: pyscan.Yes, Omitted: true}
	if flag := v.arg(f.Parent, nil, call, "use_reentrant", -1); flag != nil {
		c.Omitted, c.Reentrant = false, v.Truthy(flag)
	} else if v.OpenKeywords(f.Parent, nil, call) {
		c.Omitted, c.Reentrant = false, pyscan.Maybe
	}
	return c
}

func mayCheckpoint(m *pyscan.Module) bool { return strings.Contains(string(m.File.Text), "checkpoint") }

// CheckpointOf reads a call as an activation checkpoint; nil when it is none.
func (v *View) CheckpointOf(scope *pyscan.Scope, frame *pyscan.Frame, call *syntax.Call) *Checkpoint {
	c := &Checkpoint{Call: call, Scope: scope, Frame: frame}
	if attr, ok := call.Func.(*syntax.Attribute); ok && attr.Attr == "gradient_checkpointing_enable" {
		c.Kind, c.Reentrant, c.Omitted = CheckpointEnable, pyscan.Maybe, true
		if kwargs, ok := v.arg(scope, frame, call, "gradient_checkpointing_kwargs", 0).(*pyscan.Mapping); ok {
			c.Reentrant, c.Omitted = v.reentrantKey(kwargs)
		}
		return c
	}
	callee := v.Eval(scope, frame, call.Func)
	var given []pyscan.Value
	args := call.Args
	for {
		partial, ok := callee.(*pyscan.Partial)
		if !ok {
			break
		}
		if flag := v.Arg(v.scopeOfCall(partial), partial.Frame, partial.Call, "use_reentrant", -1); flag != nil {
			given = append(given, flag)
		}
		callee = partial.Of
	}
	if result, ok := callee.(*pyscan.Result); ok { // checkpoint(use_reentrant=False)(fn)(x): the curried form of 2026
		return v.curried(c, result, call)
	}
	name := v.ExternalName(callee)
	known, is := checkpointCalls[name]
	if !is || len(args) == 0 {
		return nil
	}
	c.Kind, c.Callee, c.Function, c.Reentrant, c.Omitted = known.kind, name, args[0], known.reentrant, true
	if len(args) > 1+known.skip {
		c.Inputs = args[1+known.skip:]
	}
	if input := Argument(call, "input", -1); input != nil && known.kind == CheckpointSequential {
		c.Inputs = append(c.Inputs, input)
	}
	switch {
	case known.kind == CheckpointApply:
		c.Function = nil
	case known.kind == CheckpointWrapper:
		if strings.Contains(v.text(v.arg(scope, frame, call, "checkpoint_impl", 1)), "CheckpointImpl.REENTRANT") {
			c.Reentrant, c.Omitted = pyscan.Yes, false
		}
	case known.flag:
		flag := v.arg(scope, frame, call, "use_reentrant", -1)
		if flag == nil && len(given) > 0 {
			flag = given[0]
		}
		if flag != nil {
			c.Omitted = false
			c.Reentrant = v.Truthy(flag)
		} else if v.OpenKeywords(scope, frame, call) {
			c.Omitted, c.Reentrant = false, pyscan.Maybe
		}
	}
	return c
}

// curried reads checkpoint(use_reentrant=False)(fn)(x): call applies what the inner call made.
func (v *View) curried(c *Checkpoint, made *pyscan.Result, call *syntax.Call) *Checkpoint {
	outer, ok := made.Of.(*pyscan.Result)
	if !ok || made.Call == nil || outer.Call == nil || len(outer.Call.Args) > 0 || len(made.Call.Args) == 0 {
		return nil
	}
	known, is := checkpointCalls[v.ExternalName(outer.Of)]
	if !is || !known.flag {
		return nil
	}
	c.Callee, c.Kind, c.made = v.ExternalName(outer.Of), known.kind, made
	c.Function, c.Inputs, c.Reentrant, c.Omitted = made.Call.Args[0], call.Args, pyscan.Yes, true
	if flag := v.arg(v.scopeOfCall(outer), outer.Frame, outer.Call, "use_reentrant", -1); flag != nil {
		c.Omitted, c.Reentrant = false, v.Truthy(flag)
	}
	return c
}

func (v *View) reentrantKey(kwargs *pyscan.Mapping) (pyscan.Truth, bool) {
	for i, key := range kwargs.Keys {
		if c, ok := v.Constant(key); ok {
			if name, _ := c.Str(); name == "use_reentrant" {
				return v.Truthy(kwargs.Values[i]), false
			}
		}
	}
	return pyscan.Maybe, true
}

// arg is Arg with parameters expanded; nil when it is not given.
func (v *View) arg(scope *pyscan.Scope, frame *pyscan.Frame, call *syntax.Call, name string, position int) pyscan.Value {
	if value := v.Arg(scope, frame, call, name, position); value != nil {
		return v.Expand(value)
	}
	return nil
}

// text is the dotted name of a library value, else "".
func (v *View) text(value pyscan.Value) string {
	if value == nil {
		return ""
	}
	return v.ExternalName(value)
}

// Truthy is what bool() of a value gives, as far as it is known.
func (v *View) Truthy(value pyscan.Value) pyscan.Truth {
	answer, first := pyscan.Maybe, true
	for _, one := range Alternatives(value) {
		c, ok := v.Constant(one)
		if !ok {
			return pyscan.Maybe
		}
		is := pyscan.Truly(c.Truth())
		if !first && is != answer {
			return pyscan.Maybe
		}
		answer, first = is, false
	}
	return answer
}

// ModelCheckpoints lists the checkpoints that run in a model: in the methods of its class, of the classes of its
// attributes and their elements, and by a call of gradient_checkpointing_enable on it.
func (v *View) ModelCheckpoints(model pyscan.Value) []*Checkpoint {
	var list []*Checkpoint
	seen := map[*pyscan.Scope]bool{}
	var visit func(pyscan.Value, int)
	visit = func(value pyscan.Value, depth int) {
		for _, one := range Alternatives(v.Expand(value)) {
			inst, ok := one.(*pyscan.Instance)
			if !ok || depth > 4 {
				continue
			}
			for _, element := range v.elements(inst) {
				visit(element, depth+1)
			}
			class, ok := inst.Of.(*pyscan.Class)
			if !ok {
				continue
			}
			for _, base := range v.lineage(class) {
				if seen[base.Scope] {
					continue
				}
				seen[base.Scope] = true
				span := base.Scope.Node.Span()
				for _, c := range v.Checkpoints(base.Scope.Module) {
					if span.Contains(c.Call.Span()) {
						list = append(list, c)
					}
				}
				for _, name := range v.attributes(base) {
					visit(v.Attr(inst, name, inst.Origin), depth+1)
				}
			}
		}
	}
	visit(model, 0)
	return list
}

// attributes lists the names that a class's __init__ assigns on self.
func (v *View) attributes(class *pyscan.Class) []string {
	init := class.Scope.Child("__init__")
	if init == nil || len(init.Params) == 0 {
		return nil
	}
	prefix := init.Params[0].Name + "."
	var names []string
	init.Defined(func(name string, _ []*pyscan.Def) {
		if rest, ok := strings.CutPrefix(name, prefix); ok && !strings.Contains(rest, ".") {
			names = append(names, rest)
		}
	})
	sort.Strings(names)
	return names
}
