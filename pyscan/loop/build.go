package loop

import (
	"slices"

	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// Limits of splicing: how deep calls are followed, how many statements one outermost loop may bring together, and all loops of a file.
const (
	maxSplice     = 5
	maxStatements = 6000
	maxSpliced    = 300_000 // statements and calls of the functions that all loops of a file call
)

// builder walks one function, and the functions it calls, in program order.
type builder struct {
	link     Linker
	scope    *pyscan.Scope
	frame    *pyscan.Frame
	loop     *Loop
	guard    *branch
	contexts []Context
	held     *branch // the guard that stands around the innermost with statement
	via      []source.Place
	active   []*pyscan.Scope // functions being spliced
	order    *int
	budget   *int
	spliced  *int // what this file may still splice in
	asked    *int // while a with item is read: the expressions that may still be
	silence  *silence
	quiet    []uint32 // where the statements of a spliced function begin in which nothing happens, in order
	scratch  *Event   // for a call that may be an event: most are none
}

// branch is a place under a test, behind the tests that stand around it. Most places hold no event, so a Guard is made only where it is
// asked for.
type branch struct {
	outer   *branch
	test    syntax.Expr
	negated bool
	scope   *pyscan.Scope // of the test
	frame   *pyscan.Frame
	conds   []Cond // instead of a test
	made    bool
	guard   Guard
	judged  bool
	never   bool // the conditions contradict each other
}

// when is the branch below this place where a test holds, or does not.
func (b *builder) when(test syntax.Expr, negated bool) *branch {
	return &branch{outer: b.guard, test: test, negated: negated, scope: b.scope, frame: b.frame}
}

// known is the branch below this place under a condition.
func (b *builder) known(c Cond) *branch {
	c.Scope, c.Frame = b.scope, b.frame
	return &branch{outer: b.guard, conds: []Cond{c}}
}

// guardOf gives the conditions of a branch.
func (b *builder) guardOf(at *branch) Guard {
	if at == nil {
		return nil
	}
	if !at.made {
		conds := at.conds
		if at.test != nil {
			there := *b
			there.scope, there.frame = at.scope, at.frame
			conds = there.conditions(at.test, at.negated, 0)
		}
		at.guard, at.made = b.guardOf(at.outer).With(conds...), true
	}
	return at.guard
}

// never reports whether a branch is behind tests that contradict each other: `if due` inside of `if not due`, where a closure is called.
func (b *builder) never(at *branch) bool {
	if at == nil {
		return false
	}
	if !at.judged {
		at.judged, at.never = true, never(b.link, b.guardOf(at))
	}
	return at.never
}

// Mentions are byte strings of which a file must hold at least one for Find to look into it: without any of them neither a
// loop of it trains nor does a framework run a function of it in one.
var Mentions = []string{"backward", "zero_grad", ".step(", "empty_cache", "release_memory", "clear_device_cache", "no_sync", "gradient_sync", "grad_sync", "training_step", "train_step",
	"compute_loss", "on_step", "on_substep", "on_train_batch", "on_before", "on_after", "set_epoch", ".item(", "all_reduce"}

func mentionsAny(file *source.File) bool { return slices.ContainsFunc(Mentions, file.Has) }

// Find gives the outermost loops of a module that matter to training, in order: each loop of the program in which gradients are
// computed, and the functions that a framework runs once a micro-batch.
func Find(m *pyscan.Module, link Linker) []*Loop { return find(m, link, false) }

// FindAll gives in addition the loops that compute no gradients, but in which a named event happens: those of an evaluation.
func FindAll(m *pyscan.Module, link Linker) []*Loop { return find(m, link, true) }

// In gives the outermost loops of one function in which a named event happens, whether they train or not.
func In(scope *pyscan.Scope, link Linker) []*Loop {
	spliced := maxSpliced
	root := build(scope, link, &silence{link, link.Known()}, &spliced)
	classify(root)
	var loops []*Loop
	for _, item := range root.Items {
		if item.Loop != nil && matters(item.Loop) {
			loops = append(loops, item.Loop)
		}
	}
	return loops
}

func find(m *pyscan.Module, link Linker, all bool) []*Loop {
	var loops []*Loop
	if !mentionsAny(m.File) {
		return nil
	}
	trains := &reacher{link: link, words: differentiating, by: differentiating, known: map[*pyscan.Scope]reached{}}
	acts := &reacher{link: link, words: acting, by: voices, known: map[*pyscan.Scope]reached{}}
	hush := &silence{link, link.Known()}
	spliced := maxSpliced
	m.Scopes(func(scope *pyscan.Scope) {
		if scope.Kind == pyscan.ClassScope || scope.Kind == pyscan.LambdaScope || !interesting(scope) {
			return
		}
		hook := framework(scope, link)
		switch {
		case all:
		case hook == "" && !trains.in(scope, maxReach), hook == "module" && !acts.in(scope, maxReach):
			return
		}
		root := build(scope, link, hush, &spliced)
		classify(root)
		for _, item := range root.Items {
			if item.Loop != nil && (trained(item.Loop) || (all || hook != "") && matters(item.Loop)) {
				loops = append(loops, item.Loop)
			}
		}
		switch {
		case hook != "":
			root.Framework, root.Step = hook, stepHooks[scope.Name]
			root.Micro = pyscan.Truly(!root.Step)
			loops = append(loops, root)
		case scope.Kind == pyscan.FuncScope && direct(root, Backward) && !link.HasCallers(scope):
			root.Framework, root.Micro = "caller", pyscan.Maybe
			loops = append(loops, root)
		}
	})
	return loops
}

func matters(l *Loop) bool { return holdsEvent(l, func(kind Kind) bool { return kind != Other }) }

func trained(l *Loop) bool { return holdsEvent(l, func(kind Kind) bool { return kind == Backward }) }

// holdsEvent reports whether an event of the loop or of one inside it is of a kind that is wanted.
func holdsEvent(l *Loop, wanted func(Kind) bool) bool {
	found := false
	l.all(func(e *Event, _ *Loop) bool {
		found = wanted(e.Kind)
		return !found
	})
	return found
}

func direct(l *Loop, kind Kind) bool {
	for _, item := range l.Items {
		if item.Event != nil && item.Event.Kind == kind {
			return true
		}
	}
	return false
}

// classify says for a loop and its inner loops whether one iteration is one micro-batch: backward runs in it and not in a
// loop inside it, and forward runs in it too or the loss comes from outside.
func classify(l *Loop) {
	if l.Micro != pyscan.Yes {
		l.Micro = pyscan.Truly(direct(l, Backward))
	}
	for _, item := range l.Items {
		if item.Loop != nil {
			classify(item.Loop)
		}
	}
}

func build(scope *pyscan.Scope, link Linker, silence *silence, spliced *int) *Loop {
	order, budget := 0, maxStatements
	root := &Loop{Scope: scope, At: place(scope, scope.Node)}
	b := &builder{link: link, scope: scope, loop: root, order: &order, budget: &budget, spliced: spliced, silence: silence, active: []*pyscan.Scope{scope}, scratch: &Event{}}
	b.contexts = b.decorators(scope)
	b.block(scope.Body())
	return root
}

func place(scope *pyscan.Scope, node syntax.Node) source.Place {
	if node == nil {
		return source.Place{Path: scope.Module.File.Path}
	}
	return scope.Module.File.At(node.Span())
}

// decorators gives the contexts that decorators of a function put around its body: @torch.no_grad().
func (b *builder) decorators(scope *pyscan.Scope) []Context {
	contexts := b.contexts
	if def := scope.Function(); def != nil && scope.Parent != nil {
		for _, d := range def.Decorators {
			value := b.link.Eval(scope.Parent, nil, d)
			if kind := contextKind(b.link, value); kind == NoGradContext || kind == AutocastContext {
				contexts = around(contexts, Context{Expr: d, Values: []pyscan.Value{value}, Scope: scope.Parent, Kind: kind})
			}
		}
	}
	return contexts
}

// block walks statements. After a branch that leaves the block, the rest runs only when that branch was not taken.
func (b *builder) block(body []syntax.Stmt) {
	guard := b.guard
	for _, stmt := range body {
		if *b.budget--; *b.budget < 0 || !b.affords() {
			break
		}
		if _, quiet := slices.BinarySearch(b.quiet, stmt.Span().Start); !quiet {
			b.stmt(stmt)
		}
		if s, ok := stmt.(*syntax.If); ok {
			switch {
			case b.skips(s.Body) && !leaves(s.OrElse):
				b.guard = b.when(s.Test, true)
			case b.skips(s.OrElse) && !leaves(s.Body):
				b.guard = b.when(s.Test, false)
			}
		}
	}
	b.guard = guard
}

// skips reports whether a block leaves the rest of the iteration but not the loop: by continue, or by a return from a
// function that the loop calls. What ends the loop says nothing about how often the rest runs.
func (b *builder) skips(body []syntax.Stmt) bool {
	if !leaves(body) {
		return false
	}
	switch body[len(body)-1].(type) {
	case *syntax.Break, *syntax.Raise:
		return false
	case *syntax.Return:
		return len(b.via) > 0
	}
	return true
}

// leaves reports whether a block always ends in continue, break, return or raise.
func leaves(body []syntax.Stmt) bool {
	if len(body) == 0 {
		return false
	}
	switch s := body[len(body)-1].(type) {
	case *syntax.Continue, *syntax.Break, *syntax.Return, *syntax.Raise:
		return true
	case *syntax.If:
		return leaves(s.Body) && leaves(s.OrElse)
	case *syntax.With:
		return leaves(s.Body)
	}
	return false
}

// affords counts a statement or call, and reports whether it can be looked at. Those of the file itself always are.
func (b *builder) affords() bool {
	if len(b.via) == 0 {
		return true
	}
	*b.spliced--
	return *b.spliced >= 0
}

// under lets run walk what stands in a branch below this place.
func (b *builder) under(inner *branch, run func()) {
	guard := b.guard
	b.guard = inner
	run()
	b.guard = guard
}

// maxContexts bounds how many contexts are looked at around one place: Python has room for 20 blocks in each other in a function, and what
// one function enters is handed on maxSplice calls deep.
const maxContexts = 200

// around puts contexts inside others, which events have already taken along.
func around(outer []Context, inner ...Context) []Context {
	return append(outer[:len(outer):len(outer)], inner[:min(len(inner), max(0, maxContexts-len(outer)))]...)
}

func (b *builder) stmt(stmt syntax.Stmt) {
	switch s := stmt.(type) {
	case *syntax.If:
		b.expr(s.Test)
		b.under(b.when(s.Test, false), func() { b.block(s.Body) })
		if len(s.OrElse) > 0 {
			b.under(b.when(s.Test, true), func() { b.block(s.OrElse) })
		}
	case *syntax.For:
		b.expr(s.Iter)
		b.inner(s, nil, s.Body)
		b.block(s.OrElse)
	case *syntax.While:
		b.inner(s, s.Test, s.Body)
		b.block(s.OrElse)
	case *syntax.With:
		contexts := b.contexts
		for _, item := range s.Items {
			b.expr(item.Context)
			made := b.context(item.Context)
			for i := range made {
				made[i].Item, made[i].At = item.Context, place(b.scope, item.Context)
			}
			b.contexts = around(b.contexts, made...)
		}
		held := b.held
		b.held = b.guard
		b.block(s.Body)
		b.contexts, b.held = contexts, held
	case *syntax.Try:
		b.block(s.Body)
		for _, h := range s.Handlers {
			b.under(b.known(Cond{Kind: Exception, Expr: h.Type, Arm: h}), func() { b.block(h.Body) })
		}
		b.block(s.OrElse)
		b.block(s.Final)
	case *syntax.Match:
		b.expr(s.Subject)
		for _, c := range s.Cases {
			b.under(b.known(Cond{Kind: UnknownCond, Expr: s.Subject, Arm: c}), func() { b.block(c.Body) })
		}
	case *syntax.FunctionDef, *syntax.ClassDef:
	case *syntax.Assign:
		b.expr(s.Value)
		for _, target := range s.Targets {
			b.store(target, s.Value, s)
		}
	case *syntax.AugAssign:
		b.expr(s.Value)
		b.augment(s)
	case *syntax.AnnAssign:
		if s.Value != nil {
			b.expr(s.Value)
			b.store(s.Target, s.Value, s)
		}
	case *syntax.ExprStmt:
		b.expr(s.Value)
	case *syntax.Return:
		b.expr(s.Value)
	default:
		b.children(stmt)
	}
}

// children walks the expressions of a simple statement.
func (b *builder) children(node syntax.Node) {
	syntax.Inspect(node, func(n syntax.Node) bool {
		if e, ok := n.(syntax.Expr); ok && n != node {
			b.expr(e)
			return false
		}
		return true
	})
}

func (b *builder) inner(node syntax.Stmt, test syntax.Expr, body []syntax.Stmt) {
	if b.never(b.guard) {
		return
	}
	*b.order++
	l := &Loop{Node: node, Scope: b.scope, Frame: b.frame, Outer: b.loop, Guard: b.guardOf(b.guard), Contexts: b.contexts, At: place(b.scope, node), Via: b.via, Order: *b.order}
	b.loop.Items = append(b.loop.Items, Item{Loop: l})
	guard, outer := b.guard, b.loop
	b.guard, b.loop = nil, l
	if test != nil {
		b.expr(test)
	}
	b.block(body)
	b.guard, b.loop = guard, outer
}

// expr walks an expression in order of evaluation: operands before the call they feed.
func (b *builder) expr(e syntax.Expr) {
	switch e := e.(type) {
	case nil, *syntax.Name, *syntax.Constant:
	case *syntax.Attribute:
		b.expr(e.Value)
	case *syntax.Lambda:
	case *syntax.BoolOp:
		guard := b.guard
		for _, value := range e.Values {
			b.expr(value)
			b.guard = b.when(value, e.Op == syntax.Or)
		}
		b.guard = guard
	case *syntax.IfExp:
		b.expr(e.Test)
		b.under(b.when(e.Test, false), func() { b.expr(e.Body) })
		b.under(b.when(e.Test, true), func() { b.expr(e.OrElse) })
	case *syntax.Comp:
		b.comprehension(e)
	case *syntax.Call:
		b.expr(e.Func)
		b.all(e.Args)
		for _, k := range e.Keywords {
			b.expr(k.Value)
		}
		b.call(e)
	case *syntax.Subscript:
		b.expr(e.Value)
		b.expr(e.Slice)
	case *syntax.BinOp:
		b.expr(e.Left)
		b.expr(e.Right)
	case *syntax.Tuple:
		b.all(e.Elts)
	case *syntax.List:
		b.all(e.Elts)
	case *syntax.Compare:
		b.expr(e.Left)
		b.all(e.Comparators)
	default:
		b.children(e)
	}
}

// all walks expressions in order.
func (b *builder) all(list []syntax.Expr) {
	for _, e := range list {
		b.expr(e)
	}
}

// comprehension is a loop too: `[step(b) for b in loader]`.
func (b *builder) comprehension(c *syntax.Comp) {
	if !hasCall(c.Elt) && (c.Value == nil || !hasCall(c.Value)) {
		for _, g := range c.Generators {
			b.expr(g.Iter)
		}
		return
	}
	*b.order++
	l := &Loop{Scope: b.scope, Frame: b.frame, Outer: b.loop, Guard: b.guardOf(b.guard), Contexts: b.contexts, At: place(b.scope, c), Via: b.via, Order: *b.order}
	outer, guard := b.loop, b.guard
	for _, g := range c.Generators {
		b.expr(g.Iter)
	}
	b.loop, b.guard = l, nil
	b.expr(c.Elt)
	b.expr(c.Value)
	b.loop, b.guard = outer, guard
	if len(l.Items) > 0 && matters(l) {
		b.loop.Items = append(b.loop.Items, Item{Loop: l})
	}
}

func hasCall(e syntax.Expr) bool {
	found := false
	syntax.Inspect(e, func(n syntax.Node) bool {
		_, call := n.(*syntax.Call)
		found = found || call
		return !found
	})
	return found
}

func (b *builder) emit(e *Event) *Event {
	*b.order++
	e.Scope, e.Frame, e.Guard, e.Contexts, e.Via, e.Order = b.scope, b.frame, b.guardOf(b.guard), b.contexts, b.via, *b.order
	e.At = place(b.scope, e.Node)
	if b.never(b.guard) {
		return e
	}
	b.loop.Items = append(b.loop.Items, Item{Event: e})
	return e
}

// call records what a call is, and splices in the project function that it runs.
func (b *builder) call(call *syntax.Call) {
	if !b.affords() {
		return
	}
	b.entered(call)
	if library(b.link, b.scope, call.Func) {
		return
	}
	var callee pyscan.Value
	if attr, ok := call.Func.(*syntax.Attribute); ok && plainMethod(attr) {
		callee = &pyscan.Unknown{Origin: pyscan.From(b.scope.Module, call.Func)}
	} else {
		callee = b.link.Eval(b.scope, b.frame, call.Func)
	}
	if scratch, known := b.recognise(call, callee); known {
		event := *scratch
		b.emit(&event)
		if event.Kind != Forward {
			return
		}
	}
	for _, one := range alternatives(b.link.Expand(callee)) {
		f := b.link.Called(b.unwrap(one))
		if f == nil || f.Scope.Kind == pyscan.LambdaScope && f.Scope.Node == nil {
			continue
		}
		b.splice(f, call)
		return // one alternative stands for all: the others would double the events
	}
}

func alternatives(value pyscan.Value) []pyscan.Value {
	if union, ok := value.(*pyscan.Union); ok {
		return union.Alternatives
	}
	return []pyscan.Value{value}
}

// splice walks the body of a called function in place of the call.
func (b *builder) splice(f *pyscan.Func, call *syntax.Call) {
	if len(b.via) >= maxSplice || *b.spliced < 0 {
		return
	}
	for _, active := range b.active {
		if active == f.Scope {
			return
		}
	}
	if b.silence.of(f.Scope) {
		return
	}
	frame := b.link.Enter(f, call, b.scope, b.frame)
	if frame == nil {
		return
	}
	inner := *b
	inner.scope, inner.frame = f.Scope, frame
	inner.via = append(b.via[:len(b.via):len(b.via)], place(b.scope, call))
	inner.active = append(b.active[:len(b.active):len(b.active)], f.Scope)
	inner.contexts = inner.decorators(f.Scope)
	inner.quiet = b.silence.in(f.Scope)
	if lambda, ok := f.Scope.Node.(*syntax.Lambda); ok {
		inner.expr(lambda.Body)
		return
	}
	inner.block(f.Scope.Body())
}
