package schedule

import (
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// parameter is a step count among the parameters of a schedule's constructor.
type parameter struct {
	name     string
	position int
	warmup   bool
}

// signatures are the step counts that schedules take, by the last part of the constructor's name; as torch.optim.lr_scheduler
// and transformers.optimization declare them.
var signatures = map[string][]parameter{
	"get_linear_schedule_with_warmup":                    {{"num_warmup_steps", 1, true}, {"num_training_steps", 2, false}},
	"get_cosine_schedule_with_warmup":                    {{"num_warmup_steps", 1, true}, {"num_training_steps", 2, false}},
	"get_cosine_with_hard_restarts_schedule_with_warmup": {{"num_warmup_steps", 1, true}, {"num_training_steps", 2, false}},
	"get_cosine_with_min_lr_schedule_with_warmup":        {{"num_warmup_steps", 1, true}, {"num_training_steps", 2, false}},
	"get_polynomial_decay_schedule_with_warmup":          {{"num_warmup_steps", 1, true}, {"num_training_steps", 2, false}},
	"get_constant_schedule_with_warmup":                  {{"num_warmup_steps", 1, true}},
	"get_inverse_sqrt_schedule":                          {{"num_warmup_steps", 1, true}},
	"get_wsd_schedule":                                   {{"num_warmup_steps", 1, true}, {"num_decay_steps", 2, false}, {"num_training_steps", 3, false}},
	"get_scheduler":                                      {{"num_warmup_steps", 2, true}, {"num_training_steps", 3, false}},
	"OneCycleLR":                                         {{"total_steps", 2, false}, {"steps_per_epoch", 4, false}},
	"CosineAnnealingLR":                                  {{"T_max", 1, false}},
	"LinearLR":                                           {{"total_iters", 3, true}},
	"ConstantLR":                                         {{"total_iters", 2, true}},
	"PolynomialLR":                                       {{"total_iters", 1, false}},
	"SequentialLR":                                       {{"milestones", 2, true}},
}

// count is a step count that a schedule was given.
type count struct {
	name   string
	warmup bool
	expr   syntax.Expr
	scope  *pyscan.Scope
	frame  *pyscan.Frame
}

func (c count) at() source.Place { return c.scope.Module.File.At(c.expr.Span()) }
func (c count) text() string     { return c.scope.Module.File.Slice(c.expr.Span()) }
func (c count) value(pass *lint.Pass) pyscan.Value {
	return pass.Eval(c.scope, c.frame, c.expr)
}

// isSchedule says by its name whether a library's callable makes a schedule that the table knows.
func isSchedule(name string) bool {
	if signatures[pyscan.LastPart(name)] == nil {
		return false
	}
	return strings.HasPrefix(name, "torch.") || strings.HasPrefix(name, "transformers.") || strings.HasPrefix(name, "diffusers.")
}

// countsOf are the step counts behind a schedule value: those of its constructor, of the parts of a SequentialLR, and those
// that the function of a LambdaLR divides by.
func countsOf(pass *lint.Pass, value pyscan.Value) []count {
	var list []count
	for _, one := range pass.Bare(value) {
		switch one := one.(type) {
		case *pyscan.Instance:
			list = append(list, countsIn(pass, pass.ExternalName(one.Of), one.Call, one.At.Module, one.Frame, 2)...)
		case *pyscan.Result:
			list = append(list, countsIn(pass, pass.ExternalName(one.Of), one.Call, one.At.Module, one.Frame, 2)...)
		}
	}
	return list
}

func countsIn(pass *lint.Pass, name string, call *syntax.Call, m *pyscan.Module, frame *pyscan.Frame, depth int) []count {
	if call == nil || m == nil || depth <= 0 {
		return nil
	}
	scope := pyscan.ScopeAt(m, call)
	var list []count
	if name == "torch.optim.lr_scheduler.LambdaLR" {
		return lambdaCounts(pass, scope, frame, call)
	}
	if !isSchedule(name) {
		return nil
	}
	for _, p := range signatures[pyscan.LastPart(name)] {
		position := p.position
		if strings.HasPrefix(name, "diffusers.") && pyscan.LastPart(name) == "get_scheduler" {
			position++ // step_rules stands before them
		}
		e := workspace.Argument(call, p.name, position)
		if e == nil {
			continue
		}
		if many, ok := e.(*syntax.List); ok {
			if len(many.Elts) != 1 {
				continue
			}
			e = many.Elts[0]
		}
		list = append(list, count{p.name, p.warmup, e, scope, frame})
	}
	if pyscan.LastPart(name) == "SequentialLR" {
		if parts := workspace.Argument(call, "schedulers", 1); parts != nil {
			for _, part := range pass.Elements(pass.Expand(pass.Eval(scope, frame, parts))) {
				if inst, ok := part.(*pyscan.Instance); ok {
					list = append(list, countsIn(pass, pass.ExternalName(inst.Of), inst.Call, inst.At.Module, inst.Frame, depth-1)...)
				}
			}
		}
	}
	return list
}

// lambdaCounts are what the function of a LambdaLR divides its step by.
func lambdaCounts(pass *lint.Pass, scope *pyscan.Scope, frame *pyscan.Frame, call *syntax.Call) []count {
	e := workspace.Argument(call, "lr_lambda", 1)
	if e == nil {
		return nil
	}
	var list []count
	for _, one := range workspace.Alternatives(pass.Expand(pass.Eval(scope, frame, e))) {
		f, ok := one.(*pyscan.Func)
		if !ok || len(f.Scope.Params) == 0 {
			continue
		}
		list = append(list, dividedBy(f.Scope, pass.Enter(f, nil, nil, nil), f.Scope.Params[0].Name)...)
	}
	return list
}

// dividedBy are the divisors of a name in a function: step / warmup, (step - warmup) / (total - warmup).
func dividedBy(scope *pyscan.Scope, frame *pyscan.Frame, step string) []count {
	var list []count
	look := func(n syntax.Node) bool {
		op, ok := n.(*syntax.BinOp)
		if !ok || op.Op != syntax.Div || !reads(op.Left, step) {
			return true
		}
		by := op.Right
		for {
			call, ok := by.(*syntax.Call)
			if !ok || len(call.Args) == 0 {
				break
			}
			by = call.Args[len(call.Args)-1] // float(max(1, warmup))
		}
		name := strings.ToLower(pyscan.PathEnd(by))
		list = append(list, count{name, strings.Contains(name, "warm"), by, scope, frame})
		return true
	}
	if lambda, ok := scope.Node.(*syntax.Lambda); ok {
		syntax.Inspect(lambda.Body, look)
	} else {
		for _, stmt := range scope.Body() {
			syntax.Inspect(stmt, look)
		}
	}
	return list
}

func reads(e syntax.Expr, name string) bool {
	found := false
	syntax.Inspect(e, func(n syntax.Node) bool {
		if id, ok := n.(*syntax.Name); ok && id.ID == name {
			found = true
		}
		return !found
	})
	return found
}

// rate is how often a schedule is advanced.
type rate uint8

const (
	unknownRate rate = iota
	eachMicroBatch
	eachOptimizerStep
)

// rateOf says how often a schedule is advanced in a loop that accumulates.
func rateOf(pass *lint.Pass, w *loop.Window, sched *loop.Event, inMicro bool) rate {
	if w.Accumulates == pyscan.Yes && (w.Boundary != nil || w.Outer != nil) {
		switch {
		case inMicro && sched.Guard.Boundary() != nil && w.Boundary != nil && sameBoundary(sched.Guard.Boundary(), w.Boundary):
			return eachOptimizerStep
		case inMicro && sched.Guard.Always() == pyscan.Yes:
			return eachMicroBatch
		case !inMicro && w.Outer != nil && sched.Guard.Always() == pyscan.Yes:
			return eachOptimizerStep
		}
		return unknownRate
	}
	framework := pass.Accumulation(w.Backward[0])
	if !inMicro || framework.By != "Accelerate" || framework.More != pyscan.Yes {
		return unknownRate
	}
	switch {
	case sched.Guard.Has(loop.SyncFlag), pass.PreparedBy(sched.On) == "accelerate.prepare":
		return eachOptimizerStep
	case sched.Guard.Always() == pyscan.Yes && sched.In(loop.AccumulateContext) && len(countsOf(pass, sched.On)) > 0:
		return eachMicroBatch
	}
	return unknownRate
}

func sameBoundary(a, b *loop.Cond) bool {
	return a.Kind == b.Kind && (a.N == nil) == (b.N == nil) && (a.N == nil || a.Scope.Module.File.Slice(a.N.Span()) == b.Scope.Module.File.Slice(b.N.Span()))
}

// advanced calls visit for each event that advances a schedule in a loop that accumulates. A parameter that every caller leaves at None is none.
func advanced(pass *lint.Pass, w *loop.Window, visit func(*loop.Event, rate)) {
	each := func(l *loop.Loop, micro bool) {
		for _, sched := range l.Of(loop.SchedulerStep) {
			if on, known := pass.Constant(pass.Expand(sched.On)); known && on.Kind() == constant.None {
				continue
			}
			visit(sched, rateOf(pass, w, sched, micro))
		}
	}
	each(w.Micro, true)
	if w.Outer != nil {
		each(w.Outer, false)
	}
}

// isN names the number of micro-batches of a window: what the loop itself goes by, or what its framework was given.
func isN(pass *lint.Pass, w *loop.Window) func(pyscan.Value) bool {
	if w == nil {
		return nil
	}
	var sizes []pyscan.Value
	if w.N != nil && w.Scope != nil {
		sizes = append(sizes, pass.Eval(w.Scope, w.Frame, w.N))
	}
	if given := pass.Accumulation(w.Backward[0]).Given; given != nil {
		sizes = append(sizes, given)
	}
	n := windowCount(pass, w)
	return func(value pyscan.Value) bool {
		for _, size := range sizes {
			if pass.Same(size, value) || pass.Same(pass.Expand(size), pass.Expand(value)) {
				return true
			}
		}
		c, known := pass.Constant(pass.Expand(value))
		is, number := c.Number()
		return known && number && n > 1 && is == float64(n)
	}
}

// isNamedN is isN without plain numbers that are written a second time.
func isNamedN(pass *lint.Pass, w *loop.Window) func(pyscan.Value) bool {
	is := isN(pass, w)
	var places []source.Place
	if w.N != nil && w.Scope != nil {
		places = append(places, pass.Expand(pass.Eval(w.Scope, w.Frame, w.N)).Site().Place())
	}
	if given := pass.Accumulation(w.Backward[0]).Given; given != nil {
		places = append(places, pass.Expand(given).Site().Place())
	}
	return func(value pyscan.Value) bool {
		c, plain := pass.Expand(value).(*pyscan.Const)
		return is(value) && (!plain || slices.Contains(places, c.Site().Place()))
	}
}

// windowCount is the number of micro-batches of a window where it is known, else 0.
func windowCount(pass *lint.Pass, w *loop.Window) int64 {
	if w.N != nil && w.Scope != nil {
		if c, ok := pass.Constant(pass.Expand(pass.Eval(w.Scope, w.Frame, w.N))); ok {
			n, _ := c.Int()
			return n
		}
	}
	return pass.Accumulation(w.Backward[0]).Count
}

// windowText is the number of micro-batches as the program calls it.
func windowText(w *loop.Window, framework workspace.Accumulation) string {
	if w.N != nil && w.Scope != nil {
		return lint.Code(w.Scope.Module.File.Slice(w.N.Span()))
	}
	if framework.Count > 1 {
		return number(float64(framework.Count))
	}
	return "N"
}

// constructors calls visit for each call in a file that makes a schedule of the table.
func constructors(pass *lint.Pass, m *pyscan.Module, visit func(*pyscan.Scope, *syntax.Call, []count)) {
	for _, site := range pass.CallsNear(m, scheduleWords) {
		call := site.Call
		scope := pyscan.ScopeAt(m, call)
		for _, one := range workspace.Alternatives(pass.Eval(scope, nil, call.Func)) {
			if name := pass.ExternalName(one); isSchedule(name) {
				visit(scope, call, countsIn(pass, name, call, m, nil, 1))
			}
		}
	}
}

// scheduleWords are the names of the signatures.
var scheduleWords = func() *pyscan.Words {
	words := &pyscan.Words{Alias: true, Names: map[string]bool{}}
	for name := range signatures {
		words.Names[name] = true
	}
	return words
}()

// unitOf is the unit of a step count in a loop. Where the loop around a window goes through the loader, a batch of the loader
// is a whole window, and its length counts optimizer steps.
func unitOf(pass *lint.Pass, w *loop.Window, c count) workspace.Unit {
	steps := pass.Steps(c.value(pass), isN(pass, w))
	if steps.Loader && w.Outer != nil && !draws(pass, w.Micro) {
		if steps.Unit == workspace.MicroBatches {
			return workspace.OptimizerSteps
		}
		return workspace.UnknownUnit
	}
	if c.warmup && steps.Unit == workspace.OptimizerSteps && pass.Steps(c.value(pass), isNamedN(pass, w)).Unit == workspace.MicroBatches {
		return workspace.UnknownUnit // a plain number: the accumulation, or a share of the epoch
	}
	if !c.warmup && steps.Unit == workspace.MicroBatches && steps.By > 1 && tooLong(windowCount(pass, w), steps.By) <= 1 {
		return workspace.UnknownUnit // the accumulation as a plain number, or times that of processes; a warm-up may be a share of the run
	}
	return steps.Unit
}

// tooLong is how many times too long a total in micro-batches is that a plain number divides; 0 where that is not known.
func tooLong(n, by int64) int64 {
	if by < 1 {
		return n
	}
	if n%by != 0 {
		return 0
	}
	return n / by
}

// draws reports whether a loop takes its micro-batches from the loader itself: by next, or by going through it.
func draws(pass *lint.Pass, l *loop.Loop) bool {
	if l.Outer != nil && len(l.Via) > len(l.Outer.Via) { // in a function that the loop calls, as a pipeline's schedule is
		return false
	}
	found := false
	if node, ok := l.Node.(*syntax.For); ok {
		syntax.Inspect(node.Iter, func(n syntax.Node) bool {
			if e, ok := n.(syntax.Expr); ok && pyscan.Path(e) != "" && pass.IsLoader(pass.Eval(l.Scope, l.Frame, e)) {
				found = true
			}
			return !found
		})
	}
	if l.Node != nil {
		syntax.Inspect(l.Node, func(n syntax.Node) bool {
			if call, ok := n.(*syntax.Call); ok && (pyscan.Path(call.Func) == "next" || strings.HasPrefix(pyscan.PathEnd(call.Func), "get_batch")) {
				found = true
			}
			return !found
		})
	}
	return found
}

// multiplied reports whether a count is, but for rounding, a product with the accumulation.
func multiplied(pass *lint.Pass, value pyscan.Value) bool {
	for range 4 {
		op, ok := value.(*pyscan.Op)
		if !ok || len(op.Operands) == 0 {
			return false
		}
		if op.Name == "*" && len(op.Operands) == 2 {
			return pass.IsAccumulation(op.Operands[0], nil) || pass.IsAccumulation(op.Operands[1], nil) || multiplied(pass, op.Operands[0]) || multiplied(pass, op.Operands[1])
		}
		value = op.Operands[0]
		if op.Name != "int" && op.Name != "float" {
			return false
		}
	}
	return false
}
