package workspace

import (
	"cmp"
	"slices"
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
	Within    *Checkpoint   // the checkpoint in the project function that Call runs, where that one only hands on what it is given
	made      *pyscan.Result
}

// Target is what a checkpoint runs anew in backward.
func (v *View) Target(c *Checkpoint) pyscan.Value {
	switch {
	case c.Decorates != nil:
		f := &pyscan.Func{Origin: pyscan.From(c.Decorates.Module, c.Decorates.Node), Scope: c.Decorates}
		if class := c.Decorates.EnclosingClass(); class != nil && !isStatic(c.Decorates) {
			f.Self = v.anyInstance(&pyscan.Class{Origin: pyscan.From(class.Module, class.Node), Scope: class})
		}
		return f
	case c.Function == nil:
		return &pyscan.Unknown{}
	case c.made != nil:
		return v.Expand(v.Eval(v.scopeOfCall(c.made), c.made.Frame, c.Function))
	case c.Frame == nil && v.passesThrough(c.Scope) != nil && v.eval.through[c.Scope].inner.Call == c.Call:
		return v.Eval(c.Scope, nil, c.Function) // its callers are checkpoints themselves
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

// checkpointWords are the last names of checkpointCalls, and what switches checkpoints on.
var checkpointWords = &pyscan.Words{Names: map[string]bool{"checkpoint": true, "checkpoint_sequential": true, "non_reentrant_checkpoint": true, "checkpoint_wrapper": true,
	"apply_activation_checkpointing": true, "gradient_checkpointing_enable": true}}

// maxAliases is over how many names a function of a library is followed.
const maxAliases = 2

// Checkpoints lists the activation checkpoints in a module, in order.
func (v *View) Checkpoints(m *pyscan.Module) []*Checkpoint {
	if list, known := v.eval.checkpoints[m]; known {
		return list
	}
	var list []*Checkpoint
	if mayCheckpoint(m) {
		for _, call := range v.CallsNear(m, checkpointWords) {
			if name := pyscan.LastName(call.Func); name != "" && !checkpointWords.Names[name] && !givesFunction(call.Call) {
				continue
			}
			if c := v.CheckpointOf(call.Scope, nil, call.Call); c != nil {
				list = append(list, c)
			}
		}
		m.Scopes(func(inner *pyscan.Scope) {
			if def := inner.Function(); def != nil {
				for _, d := range def.Decorators {
					if c := v.decorator(inner, d); c != nil {
						list = append(list, c)
					}
				}
			}
		})
		slices.SortStableFunc(list, func(a, b *Checkpoint) int { return cmp.Compare(a.Call.Span().Start, b.Call.Span().Start) })
	}
	v.eval.checkpoints[m] = list
	return list
}

// givesFunction reports whether an argument of a call may be a function or module. A checkpoint is given what it runs, and so is who hands it
// on: of the calls by another name, which are many where a file of weights is called a checkpoint too, half are given nothing of the kind.
func givesFunction(call *syntax.Call) bool {
	return slices.ContainsFunc(call.Args, mayBeFunction) || slices.ContainsFunc(call.Keywords, func(k *syntax.Keyword) bool { return mayBeFunction(k.Value) })
}

func mayBeFunction(e syntax.Expr) bool {
	switch e.(type) {
	case *syntax.Constant, *syntax.JoinedStr, *syntax.TemplateStr, *syntax.BinOp, *syntax.UnaryOp, *syntax.Compare, *syntax.Dict, *syntax.Set, *syntax.Slice:
		return false
	}
	return true
}

// decorator reads @checkpoint(use_reentrant=False), @partial(checkpoint, use_reentrant=False) and @checkpoint.
func (v *View) decorator(f *pyscan.Scope, d syntax.Expr) *Checkpoint {
	call, called := d.(*syntax.Call)
	if !v.nearDecorator(f.Module, d) {
		return nil
	}
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

// nearDecorator is the cheap question before a decorator is read.
func (v *View) nearDecorator(m *pyscan.Module, d syntax.Expr) bool {
	call, called := d.(*syntax.Call)
	if !called {
		return v.Near(m, checkpointWords, d)
	}
	return v.Near(m, checkpointWords, call.Func) || len(call.Args) > 0 && v.Near(m, checkpointWords, call.Args[0]) // partial(checkpoint)
}

func mayCheckpoint(m *pyscan.Module) bool { return m.File.Has("checkpoint") }

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
	if !is {
		return v.throughHelper(c, callee)
	}
	if len(args) == 0 {
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
		} else if scope != nil && v.arg(scope, frame, call, "checkpoint_impl", 1) == nil && v.Pin(scope.Module.File.Path, "torch").Since("2.2") == pyscan.No {
			c.Reentrant = pyscan.Yes // its default until then
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

// passing is a project function that checkpoints a function it was given on arguments it was given:
// `def _ckpt(self, fn, *args): return checkpoint(fn, *args, use_reentrant=False)`.
type passing struct {
	inner  *Checkpoint
	callee int          // the parameter that is checkpointed
	inputs []int        // the parameters that are its inputs, a *args among them
	spread map[int]bool // of these, the ones that hold several: checkpoint(fn, *inputs)
}

// passesThrough reads a function as one that hands a checkpoint on; nil when it is none.
func (v *View) passesThrough(scope *pyscan.Scope) *passing {
	if scope == nil || scope.Kind != pyscan.FuncScope || len(scope.Params) == 0 || !mayCheckpoint(scope.Module) {
		return nil
	}
	if p, known := v.eval.through[scope]; known {
		return p
	}
	if v.eval.through == nil {
		v.eval.through = map[*pyscan.Scope]*passing{}
	}
	v.eval.through[scope] = nil // a function that calls itself hands nothing on
	var found *passing
	for _, stmt := range scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.FunctionDef, *syntax.ClassDef, *syntax.Lambda:
				return false
			case *syntax.Call:
				if found == nil && len(n.Args) > 0 && v.Near(scope.Module, checkpointWords, n.Func) && parameter(scope, n.Args[0]) >= 0 {
					found = v.handedOn(scope, n)
				}
			}
			return found == nil
		})
	}
	v.eval.through[scope] = found
	return found
}

func (v *View) handedOn(scope *pyscan.Scope, call *syntax.Call) *passing {
	c := v.CheckpointOf(scope, nil, call)
	if c == nil || c.Kind != CheckpointCall || c.made != nil {
		return nil
	}
	p := &passing{inner: c, callee: parameter(scope, c.Function), spread: map[int]bool{}}
	if p.callee < 0 {
		return nil
	}
	for _, input := range c.Inputs {
		i := parameter(scope, input)
		if i < 0 {
			return nil
		}
		p.inputs = append(p.inputs, i)
		if _, star := input.(*syntax.Starred); star && scope.Params[i].Kind != pyscan.VarArgs {
			p.spread[i] = true
		}
	}
	return p
}

// parameter is the index of the parameter that an expression (also behind a star) is, as it came in; -1 for anything else.
func parameter(scope *pyscan.Scope, e syntax.Expr) int {
	if star, ok := e.(*syntax.Starred); ok {
		e = star.Value
	}
	if name, ok := e.(*syntax.Name); ok {
		if def := scope.Def(name); def != nil && def.Kind == pyscan.ParamDef {
			return def.Param()
		}
	}
	return -1
}

// throughHelper reads a call of a project function that hands a checkpoint on as that checkpoint.
func (v *View) throughHelper(c *Checkpoint, callee pyscan.Value) *Checkpoint {
	f, ok := callee.(*pyscan.Func)
	if !ok {
		return nil
	}
	p := v.passesThrough(f.Scope)
	if p == nil {
		return nil
	}
	given := func(i int) []syntax.Expr {
		param := f.Scope.Params[i]
		at := i - shift(f)
		switch {
		case param.Kind == pyscan.VarArgs:
			if at < len(c.Call.Args) {
				return c.Call.Args[at:]
			}
		case param.Kind <= pyscan.Positional || param.Kind == pyscan.KeywordOnly:
			if e := Argument(c.Call, param.Name, at); e != nil {
				return []syntax.Expr{e}
			}
		}
		return nil
	}
	function := given(p.callee)
	if len(function) != 1 {
		return nil
	}
	inner := p.inner
	if frame := v.Enter(f, c.Call, c.Scope, c.Frame); frame != nil {
		if !v.mayReach(f.Scope.Body(), frame, f.Scope, inner.Call) {
			return nil // told not to
		}
		if bound := v.CheckpointOf(f.Scope, frame, inner.Call); bound != nil {
			inner = bound
		}
	}
	c.Kind, c.Function, c.Reentrant, c.Omitted, c.Within = CheckpointCall, function[0], inner.Reentrant, inner.Omitted, inner
	for _, i := range p.inputs {
		list := given(i)
		if p.spread[i] && len(list) == 1 { // run(fn, (x, y)), which does checkpoint(fn, *inputs)
			switch e := list[0].(type) {
			case *syntax.Tuple:
				list = e.Elts
			case *syntax.List:
				list = e.Elts
			default:
				list = []syntax.Expr{&syntax.Starred{Base: syntax.Base{At: e.Span()}, Value: e}}
			}
		}
		c.Inputs = append(c.Inputs, list...)
	}
	return c
}

// mayReach reports whether a node of a function may run, as far as constant tests in a frame tell: not behind `if not enabled: return`
// where enabled is True.
func (v *View) mayReach(body []syntax.Stmt, frame *pyscan.Frame, scope *pyscan.Scope, node syntax.Node) bool {
	for _, stmt := range body {
		branch, is := stmt.(*syntax.If)
		var test pyscan.Truth
		if is {
			test = v.Truthy(v.Expand(v.Eval(scope, frame, branch.Test)))
		}
		if !stmt.Span().Contains(node.Span()) {
			if stmt.Span().Start > node.Span().Start {
				return true
			}
			if is && (test == pyscan.Yes && returns(branch.Body) || test == pyscan.No && returns(branch.OrElse)) {
				return false
			}
			continue
		}
		for i, block := range Blocks(stmt) {
			if !Within(block, node) {
				continue
			}
			if is && (i == 0 && test == pyscan.No || i == 1 && test == pyscan.Yes) {
				return false
			}
			return v.mayReach(block, frame, scope, node)
		}
		return true
	}
	return true
}

// returns reports whether a block ends in a return.
func returns(block []syntax.Stmt) bool {
	if len(block) == 0 {
		return false
	}
	_, is := block[len(block)-1].(*syntax.Return)
	return is
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
			if !ok && depth == 0 {
				list = append(list, v.enabledOn(one)...)
			}
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

// enabledOn lists the calls of gradient_checkpointing_enable on a model of a library, in the file that makes it. None where it is
// switched off again.
func (v *View) enabledOn(model pyscan.Value) []*Checkpoint {
	m := model.Site().Module
	if m == nil || !mayCheckpoint(m) || !v.opaqueModel(model) {
		return nil
	}
	on := func(scope *pyscan.Scope, call *syntax.Call) bool {
		attr, ok := call.Func.(*syntax.Attribute)
		if !ok {
			return false
		}
		for _, one := range v.Bare(v.Eval(scope, nil, attr.Value)) {
			if same(one, model) {
				return true
			}
		}
		return false
	}
	for _, site := range m.CallsOf("gradient_checkpointing_disable") {
		if on(site.Scope, site.Call) {
			return nil
		}
	}
	var list []*Checkpoint
	for _, c := range v.Checkpoints(m) {
		if c.Kind == CheckpointEnable && on(c.Scope, c.Call) {
			list = append(list, c)
		}
	}
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
