package loop

import (
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// maxAsked bounds the expressions that are read for one with item: names stand for choices between names, and helpers enter what
// other helpers make.
const maxAsked = 64

// context reads what a with item puts around its body. `a() if c else b()` gives each side with its guard.
func (b *builder) context(e syntax.Expr) []Context {
	if b.asked == nil {
		left := maxAsked
		b.asked = &left
		defer func() { b.asked = nil }()
	}
	if *b.asked--; *b.asked < 0 {
		return nil
	}
	switch e := e.(type) {
	case *syntax.IfExp:
		var list []Context
		for _, side := range []struct {
			e       syntax.Expr
			negated bool
		}{{e.Body, false}, {e.OrElse, true}} {
			for _, c := range b.context(side.e) {
				c.Guard = c.Guard.With(b.conditions(e.Test, side.negated, 0)...)
				list = append(list, c)
			}
		}
		return list
	case *syntax.Name:
		if def, at := b.assigned(e); def != nil && def.Value != nil {
			switch def.Value.(type) {
			case *syntax.IfExp, *syntax.Call:
				return at.context(def.Value)
			}
		}
	}
	value := b.link.Expand(b.link.Eval(b.scope, b.frame, e))
	if call, ok := e.(*syntax.Call); ok {
		if list := b.helped(call, value); list != nil {
			return list
		}
	}
	if call, ok := e.(*syntax.Call); ok && len(call.Args)+len(call.Keywords) == 0 { // ctx = model.no_sync if c else nullcontext; with ctx():
		maker, at := call.Func, b
		if def, there := b.assigned(maker); def != nil && len(def.Path()) == 0 && def.Value != nil {
			maker, at = def.Value, there
		}
		if choice, ok := maker.(*syntax.IfExp); ok { // also (model.no_sync if c else nullcontext)()
			return at.chosen(call, choice)
		}
	}
	return []Context{{Expr: e, Values: alternatives(value), Scope: b.scope, Frame: b.frame, Kind: contextKind(b.link, value)}}
}

// assigned is the assignment that gives a name its value, in this function or the one around it, with a builder that reads it there.
func (b *builder) assigned(e syntax.Expr) (*pyscan.Def, *builder) {
	if def := b.defOf(e); def != nil {
		if def.Kind != pyscan.AssignDef {
			return nil, b
		}
		return def, b
	}
	name, ok := e.(*syntax.Name)
	if !ok {
		return nil, b
	}
	def, scope, frame := closed(name.ID, b.scope, b.frame)
	if def == nil || def.Kind != pyscan.AssignDef {
		return nil, b
	}
	outer := *b
	outer.scope, outer.frame = scope, frame
	return def, &outer
}

// chosen is a context whose maker was chosen before: each side with its guard.
func (b *builder) chosen(call *syntax.Call, choice *syntax.IfExp) []Context {
	var list []Context
	for _, side := range []struct {
		e       syntax.Expr
		negated bool
	}{{choice.Body, false}, {choice.OrElse, true}} {
		maker := b.link.Expand(b.link.Eval(b.scope, b.frame, side.e))
		var value pyscan.Value = &pyscan.Result{Origin: pyscan.From(b.scope.Module, side.e), Of: maker, Call: call, Frame: b.frame}
		list = append(list, Context{Expr: side.e, Values: []pyscan.Value{value}, Scope: b.scope, Frame: b.frame, Kind: contextKind(b.link, value),
			Guard: b.conditions(choice.Test, side.negated, 0)})
	}
	return list
}

func contextKind(link Linker, value pyscan.Value) ContextKind {
	for _, one := range alternatives(value) {
		name := ""
		switch one := one.(type) {
		case *pyscan.External:
			name = one.Name
		case *pyscan.Instance:
			name = link.ExternalName(one.Of)
		case *pyscan.Result:
			name = link.ExternalName(one.Of)
			if member, ok := one.Of.(*pyscan.Member); ok {
				switch member.Name {
				case "no_sync", "no_backward_sync":
					return NoSyncContext
				case "accumulate":
					return AccumulateContext
				case "autocast":
					return AutocastContext
				}
			}
		}
		switch name {
		case "torch.no_grad", "torch.inference_mode":
			return NoGradContext
		case "torch.autocast", "torch.cuda.amp.autocast", "torch.npu.amp.autocast", "torch.cpu.amp.autocast":
			return AutocastContext
		}
	}
	return OtherContext
}

// helped is what a project function puts around the body of a with statement: a function under @contextmanager, by the with
// statements around its yield, or one that returns a context which stops synchronisation. Each comes with the guard under which
// the function gets there. Nil for any other call.
func (b *builder) helped(call *syntax.Call, value pyscan.Value) []Context {
	f, manager := b.manager(value)
	if f == nil && contextKind(b.link, value) == NoSyncContext {
		f, _ = b.link.Expand(b.link.Eval(b.scope, b.frame, call.Func)).(*pyscan.Func)
	}
	if f == nil || f.Scope.Kind != pyscan.FuncScope || len(b.active) > 2*maxSplice || len(b.via) >= maxSplice {
		return nil
	}
	for _, active := range b.active {
		if active == f.Scope {
			return nil
		}
	}
	frame := b.link.Enter(f, call, b.scope, b.frame)
	if frame == nil {
		return nil
	}
	inner := *b
	inner.scope, inner.frame, inner.guard, inner.contexts = f.Scope, frame, nil, nil
	inner.active = append(b.active[:len(b.active):len(b.active)], f.Scope)
	var list []Context
	inner.exits(f.Scope.Body(), manager, &list)
	return list
}

// manager is the generator function under contextlib.contextmanager that a call of it gave a value of, or nil.
func (b *builder) manager(value pyscan.Value) (*pyscan.Func, bool) {
	result, ok := value.(*pyscan.Result)
	if !ok {
		return nil, false
	}
	f, ok := result.Of.(*pyscan.Func)
	if !ok || f.Scope.Parent == nil || f.Scope.Function() == nil {
		return nil, false
	}
	for _, d := range f.Scope.Function().Decorators {
		if b.link.ExternalName(b.link.Eval(f.Scope.Parent, nil, d)) == "contextlib.contextmanager" {
			return f, true
		}
	}
	return nil, false
}

// exits adds to list what holds where a function yields (a context manager) or what it returns (any other function).
func (b *builder) exits(body []syntax.Stmt, manager bool, list *[]Context) {
	guard, contexts := b.guard, b.contexts
	for _, stmt := range body {
		switch s := stmt.(type) {
		case *syntax.If:
			b.under(b.when(s.Test, false), func() { b.exits(s.Body, manager, list) })
			b.under(b.when(s.Test, true), func() { b.exits(s.OrElse, manager, list) })
			switch {
			case leaves(s.Body) && !leaves(s.OrElse):
				b.guard = b.when(s.Test, true)
			case leaves(s.OrElse) && !leaves(s.Body):
				b.guard = b.when(s.Test, false)
			}
		case *syntax.With:
			outer := b.contexts
			for _, item := range s.Items {
				b.contexts = around(b.contexts, b.context(item.Context)...)
			}
			b.exits(s.Body, manager, list)
			b.contexts = outer
		case *syntax.Try:
			b.exits(s.Body, manager, list)
			b.exits(s.OrElse, manager, list)
		case *syntax.Return:
			if !manager && s.Value != nil {
				b.add(b.context(s.Value), list)
			}
		case *syntax.ExprStmt:
			if _, yields := s.Value.(*syntax.Yield); yields && manager {
				b.add(b.contexts, list)
			}
		}
	}
	b.guard, b.contexts = guard, contexts
}

// add adds contexts under the guard of this place in the function.
func (b *builder) add(contexts []Context, list *[]Context) {
	for _, c := range contexts[:min(len(contexts), max(0, maxContexts-len(*list)))] {
		c.Guard = b.guardOf(b.guard).With(c.Guard...)
		*list = append(*list, c)
	}
}

// entered is stack.enter_context(model.no_sync()) on an ExitStack: the context is around the rest of the with statement that
// holds the stack.
func (b *builder) entered(call *syntax.Call) {
	attr, ok := call.Func.(*syntax.Attribute)
	if !ok || attr.Attr != "enter_context" || len(call.Args) != 1 {
		return
	}
	stack, ok := b.link.Expand(b.link.Eval(b.scope, b.frame, attr.Value)).(*pyscan.Instance)
	if !ok || b.link.ExternalName(stack.Of) != "contextlib.ExitStack" {
		return
	}
	for _, c := range b.context(call.Args[0]) {
		if held, guard := len(b.guardOf(b.held)), b.guardOf(b.guard); held <= len(guard) {
			c.Guard = guard[held:].With(c.Guard...)
		}
		c.Item, c.At = call.Args[0], place(b.scope, call.Args[0])
		b.contexts = around(b.contexts, c)
	}
}
