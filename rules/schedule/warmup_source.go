package schedule

import (
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// warmupInLoop compares the unit in which a loop advances a schedule with the one in which the schedule was built.
func warmupInLoop(pass *lint.Pass, l *loop.Loop) {
	for _, w := range loop.Windows(l, pass) {
		framework := pass.Accumulation(w.Backward[0])
		accumulates := w.Accumulates == pyscan.Yes || framework.By == "Accelerate" && framework.More == pyscan.Yes && w.Backward[0].In(loop.AccumulateContext)
		if !accumulates || len(w.Steps) == 0 {
			continue
		}
		n := windowText(w, framework)
		advanced(pass, w, func(sched *loop.Event, how rate) {
			switch {
			case sched.Call != nil && len(sched.Call.Args)+len(sched.Call.Keywords) > 0:
				advancedTo(pass, w, sched, n)
			case how == eachOptimizerStep:
				builtFromBatches(pass, l, w, sched, n)
			}
		})
		handWritten(pass, w, n)
	}
}

// builtFromBatches reports a schedule that is advanced once an optimizer step and was built from micro-batches.
func builtFromBatches(pass *lint.Pass, root *loop.Loop, w *loop.Window, sched *loop.Event, n string) {
	if preparedAtTimes(pass, sched.On) {
		return
	}
	var d *lint.Diagnostic
	for _, c := range countsOf(pass, sched.On) {
		if unitOf(pass, w, c) != workspace.MicroBatches || multiplied(pass, c.value(pass)) && pass.Accumulation(w.Backward[0]).By == "Accelerate" || c.at().Path != root.Place(sched).Path {
			continue
		}
		if d != nil {
			d.Note(c.at(), "%s counts micro-batches too", c.name)
			continue
		}
		if c.warmup {
			d = pass.Reportf(c.at(), "%s counts micro-batches, but the schedule is advanced once in %s of them: the warm-up takes %s times as long as meant", c.name, n, n)
		} else {
			share := n
			if by := pass.Steps(c.value(pass), isN(pass, w)).By; by > 1 {
				share = number(float64(tooLong(windowCount(pass, w), by)))
			}
			d = pass.Reportf(c.at(), "%s counts micro-batches, but the schedule is advanced once in %s of them: only the first 1/%s of the curve is run, and the learning rate never comes down",
				c.name, n, share)
		}
		d.Note(sched.At, "the schedule is advanced here")
		d.Help("divide by %s: count optimizer steps", n)
	}
}

// preparedAtTimes reports whether a schedule is one that a framework prepared or one that it did not, by what the program is told: the two are
// advanced at different times, so that no count is right for both.
func preparedAtTimes(pass *lint.Pass, value pyscan.Value) bool {
	all := workspace.Alternatives(pass.Expand(value))
	for _, one := range all[min(1, len(all)):] {
		if pass.PreparedBy(one) != pass.PreparedBy(all[0]) {
			return true
		}
	}
	return false
}

// advancedTo looks at schedules that are told the step: scheduler.step(global_step), timm's step_update(num_updates=...).
func advancedTo(pass *lint.Pass, w *loop.Window, sched *loop.Event, n string) {
	e := workspace.Argument(sched.Call, "num_updates", 0)
	if e == nil || sched.Scope != w.Micro.Scope || divides(e) {
		return
	}
	if !countsMicroBatches(w, e) && pass.Steps(pass.Eval(sched.Scope, sched.Frame, e), isN(pass, w)).Unit != workspace.MicroBatches {
		return
	}
	severity := lint.Warning
	for _, c := range append(countsOf(pass, sched.On), timmCounts(pass, sched.On)...) {
		switch unitOf(pass, w, c) {
		case workspace.MicroBatches:
			return
		case workspace.OptimizerSteps:
			severity = lint.Error
		}
	}
	file := sched.Scope.Module.File
	d := pass.Reportf(file.At(e.Span()), "%s counts micro-batches, while the optimizer steps once in %s: a warm-up in optimizer steps is over %s times too early", file.Slice(e.Span()), n, n).As(severity)
	d.Help("count the optimizer's steps")
}

// timmCounts are the step counts of a schedule of timm.
func timmCounts(pass *lint.Pass, value pyscan.Value) []count {
	var list []count
	for _, one := range pass.Bare(value) {
		inst, ok := one.(*pyscan.Instance)
		if !ok || inst.Call == nil || inst.At.Module == nil || !strings.HasPrefix(pass.ExternalName(inst.Of), "timm.") {
			continue
		}
		for _, name := range []string{"t_initial", "warmup_t"} {
			if e := workspace.Argument(inst.Call, name, -1); e != nil {
				list = append(list, count{name, name == "warmup_t", e, pyscan.ScopeAt(inst.At.Module, inst.Call), inst.Frame})
			}
		}
	}
	return list
}

func divides(e syntax.Expr) bool {
	found := false
	syntax.Inspect(e, func(n syntax.Node) bool {
		if op, ok := n.(*syntax.BinOp); ok && (op.Op == syntax.Div || op.Op == syntax.FloorDiv) {
			found = true
		}
		return !found
	})
	return found
}

// handWritten looks for rates that the loop sets itself, by a count of micro-batches: group["lr"] = base * min(1, i / warmup).
func handWritten(pass *lint.Pass, w *loop.Window, n string) {
	if w.Micro.Node == nil || boundedByCount(w) {
		return
	}
	syntax.Inspect(w.Micro.Node, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.FunctionDef, *syntax.ClassDef, *syntax.Lambda:
			return false
		case *syntax.Assign:
			sub, ok := node.Targets[0].(*syntax.Subscript)
			if !ok {
				return true
			}
			key, ok := sub.Slice.(*syntax.Constant)
			if !ok || key.Kind != syntax.StrConstant || key.Text != "lr" {
				return true
			}
			checkRate(pass, w, node, n)
		}
		return true
	})
}

func checkRate(pass *lint.Pass, w *loop.Window, stmt *syntax.Assign, n string) {
	severity := lint.RuleSeverity
	var by *count
	for _, c := range rateCounts(pass, w, stmt.Value, 4) {
		switch unitOf(pass, w, c) {
		case workspace.MicroBatches:
			return
		case workspace.OptimizerSteps:
			severity, by = lint.Error, &c
		case workspace.UnknownUnit, workspace.NoUnit:
			if c.warmup && by == nil && !strings.Contains(strings.ToLower(c.text()), "epoch") {
				severity, by = lint.Warning, &c
			}
		}
	}
	if by == nil {
		return
	}
	file := w.Micro.Scope.Module.File
	d := pass.Reportf(file.At(stmt.Span()), "the learning rate follows a count of micro-batches, while the optimizer steps once in %s: a warm-up of %s optimizer steps is over %s times too early", n, by.text(), n).As(severity)
	d.Note(by.at(), "the count is divided by %s here", by.text())
	d.Help("count the optimizer's steps, or multiply the warm-up by %s", n)
}

// rateCounts are what a rate divides a count of micro-batches by, in the loop or in a function that it hands the count to.
func rateCounts(pass *lint.Pass, w *loop.Window, e syntax.Expr, depth int) []count {
	var list []count
	scope := w.Micro.Scope
	syntax.Inspect(e, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.BinOp:
			if n.Op == syntax.Div && countsMicroBatches(w, n.Left) && !divides(n.Left) {
				name := strings.ToLower(pyscan.PathEnd(n.Right))
				list = append(list, count{name, strings.Contains(name, "warm"), n.Right, scope, w.Micro.Frame})
			}
		case *syntax.Name:
			if def := scope.Def(n); depth > 0 && def != nil && def.Kind == pyscan.AssignDef && len(def.Path()) == 0 && def.Value != nil && w.Micro.Node.Span().Contains(def.Node.Span()) {
				list = append(list, rateCounts(pass, w, def.Value, depth-1)...)
			}
		case *syntax.Call:
			for i, arg := range n.Args {
				if !countsMicroBatches(w, arg) || divides(arg) {
					continue
				}
				for _, one := range workspace.Alternatives(pass.Eval(scope, w.Micro.Frame, n.Func)) {
					f, ok := one.(*pyscan.Func)
					if !ok {
						continue
					}
					p := i
					if f.Self != nil {
						p++
					}
					if p < len(f.Scope.Params) {
						list = append(list, dividedBy(f.Scope, pass.Enter(f, n, scope, w.Micro.Frame), f.Scope.Params[p].Name)...)
					}
				}
			}
		}
		return true
	})
	return list
}

// boundedByCount reports whether the training runs for a given number of micro-batches, by its loop or by a while around it that looks at
// their count: then its counts are in that unit, on purpose.
func boundedByCount(w *loop.Window) bool {
	for _, stmt := range workspace.Around(w.Micro.Scope, w.Micro.Node) {
		if outer, ok := stmt.(*syntax.While); ok {
			if test, ok := outer.Test.(*syntax.Compare); ok && (countsMicroBatches(w, test.Left) || countsMicroBatches(w, test.Comparators[0])) {
				return true
			}
		}
	}
	switch node := w.Micro.Node.(type) {
	case *syntax.For:
		call, ok := node.Iter.(*syntax.Call)
		return ok && (pyscan.PathEnd(call.Func) == "range" || pyscan.PathEnd(call.Func) == "trange")
	case *syntax.While:
		_, ok := node.Test.(*syntax.Compare)
		return ok
	}
	return false
}

// warmupKey is the key of DeepSpeed without which its part need not be looked for.
const warmupKey = "warmup_num_steps"

// warmupInModule looks at what says the unit without a loop: schedules that Accelerate prepares, frameworks' own arguments,
// and schedules whose parts are counted differently.
func warmupInModule(pass *lint.Pass, m *pyscan.Module) {
	for _, site := range m.Calls {
		if pyscan.PathEnd(site.Func) == "prepare" {
			preparedSchedule(pass, site.Scope, site.Call)
		} else {
			dividedArgument(pass, site.Scope, site.Call)
		}
	}
	if m.File.Has(warmupKey) {
		for node := range m.Tree.All() {
			if dict, ok := node.(*syntax.Dict); ok {
				dividedKey(pass, pyscan.ScopeAt(m, dict), dict)
			}
		}
	}
	mixedUnits(pass, m)
	lightningCounts(pass, m)
}

// preparedSchedule reports step counts that are multiplied by the accumulation although Accelerate holds back the steps of
// a prepared schedule between the boundaries.
func preparedSchedule(pass *lint.Pass, scope *pyscan.Scope, call *syntax.Call) {
	for _, arg := range call.Args {
		value := pass.Eval(scope, nil, arg)
		var counts []count
		for _, one := range workspace.Alternatives(pass.Expand(value)) {
			if _, again := one.(*pyscan.Wrapped); !again {
				counts = append(counts, countsOf(pass, one)...)
			}
		}
		if len(counts) == 0 || !byAccelerate(pass, scope, call) {
			continue
		}
		var d *lint.Diagnostic
		for _, c := range counts {
			if !multiplied(pass, c.value(pass)) || c.at().Path != scope.Module.File.Path {
				continue
			}
			if d != nil {
				d.Note(c.at(), "%s is multiplied too", c.name)
				continue
			}
			if !holdsBack(pass, scope.Module.File.Path) {
				continue
			}
			d = pass.Reportf(c.at(), "%s is multiplied by the accumulation, but Accelerate advances a prepared schedule once a window only: it takes that many times as long as meant", c.name)
			d.Note(scope.Module.File.At(call.Span()), "the schedule is prepared here")
			d.Help("leave the accumulation out; a prepared schedule is advanced num_processes times at each boundary, so multiply by accelerator.num_processes unless split_batches is set")
		}
		if d == nil && advancesPerProcess(pass, scope, call) {
			withoutProcesses(pass, scope, call, counts)
		}
	}
}

// withoutProcesses reports totals in optimizer steps that a prepared schedule reaches num_processes times too early. The length of
// a loader that is not prepared counts the batches of all processes, and is right as it is.
func withoutProcesses(pass *lint.Pass, scope *pyscan.Scope, call *syntax.Call, counts []count) {
	for _, c := range counts {
		value := c.value(pass)
		if c.warmup || pass.Steps(value, nil).Unit != workspace.OptimizerSteps || c.at().Path != scope.Module.File.Path {
			continue
		}
		for _, one := range workspace.Alternatives(value) {
			switch one.(type) {
			case *pyscan.Setting, *pyscan.ParamValue, *pyscan.Member:
			default:
				return
			}
		}
		d := pass.Reportf(c.at(), "%s counts optimizer steps, but Accelerate advances a prepared schedule num_processes times at each of them: on several processes it ends that many times too early", c.name)
		d.Note(scope.Module.File.At(call.Span()), "the schedule is prepared here")
		d.Help("multiply by accelerator.num_processes, or set step_scheduler_with_optimizer=False and advance it by hand")
		return
	}
}

// advancesPerProcess reports whether the Accelerator is known not to change how often a prepared schedule is advanced.
func advancesPerProcess(pass *lint.Pass, scope *pyscan.Scope, call *syntax.Call) bool {
	attr, ok := call.Func.(*syntax.Attribute)
	if !ok {
		return false
	}
	acc, ok := pass.Expand(pass.Eval(scope, nil, attr.Value)).(*pyscan.Instance)
	if !ok || acc.Call == nil || acc.At.Module == nil {
		return false
	}
	made := pyscan.ScopeAt(acc.At.Module, acc.Call)
	if pass.OpenKeywords(made, acc.Frame, acc.Call) {
		return false
	}
	for _, name := range []string{"split_batches", "step_scheduler_with_optimizer", "dataloader_config", "deepspeed_plugin", "megatron_lm_plugin"} {
		if workspace.Argument(acc.Call, name, -1) != nil {
			return false
		}
	}
	return len(acc.Call.Args) < 2
}

func byAccelerate(pass *lint.Pass, scope *pyscan.Scope, call *syntax.Call) bool {
	attr, ok := call.Func.(*syntax.Attribute)
	if !ok {
		return false
	}
	return pass.IsA(pass.Expand(pass.Eval(scope, nil, attr.Value)), "accelerate.Accelerator") == pyscan.Yes || strings.Contains(strings.ToLower(pyscan.Path(attr.Value)), "accelerator")
}

// holdsBack reports whether Accelerate may hold steps back in the project around a file. Where it runs the backward passes of the project and
// nobody opens accumulate(), each of them ends in a step, of the schedule as well.
func holdsBack(pass *lint.Pass, file string) bool {
	for _, name := range pass.Mentioning(file, "accumulate") {
		for _, call := range callsIn(pass, name, "accumulate") {
			if called := pass.Library(call.Scope, nil, call.Func); called == "" || strings.HasPrefix(called, "accelerate.") {
				return true
			}
		}
	}
	for _, name := range pass.Mentioning(file, "backward") {
		for _, call := range callsIn(pass, name, "backward") {
			if byAccelerate(pass, call.Scope, call.Call) {
				return false
			}
		}
	}
	return true
}

func callsIn(pass *lint.Pass, file, name string) []pyscan.Call {
	module := pass.Module(file)
	if module == nil {
		return nil
	}
	return module.CallsOf(name)
}

// dividedArgument reports TrainingArguments(warmup_steps=x // gradient_accumulation_steps): the Trainer counts optimizer steps.
func dividedArgument(pass *lint.Pass, scope *pyscan.Scope, call *syntax.Call) {
	warmup := workspace.Argument(call, "warmup_steps", -1)
	given := workspace.Argument(call, "gradient_accumulation_steps", -1)
	if warmup == nil {
		return
	}
	trainer := false
	for _, one := range workspace.Alternatives(pass.Eval(scope, nil, call.Func)) {
		name := pass.ExternalName(one)
		trainer = trainer || strings.HasPrefix(name, "transformers.") && strings.HasSuffix(name, "TrainingArguments") || strings.HasPrefix(name, "trl.") && strings.HasSuffix(name, "Config") ||
			pass.Derives(one, "transformers.TrainingArguments") == pyscan.Yes
	}
	if !trainer {
		return
	}
	if given != nil {
		if c, ok := pass.Constant(pass.Eval(scope, nil, given)); ok {
			if n, _ := c.Number(); n <= 1 {
				return
			}
		}
	}
	left, by, where := division(pass, scope, warmup, given, 4)
	if left == nil || !written(pass, where, left) {
		return
	}
	if total := workspace.Argument(call, "max_steps", -1); total != nil {
		if also, _, _ := division(pass, scope, total, given, 4); also != nil { // both are counted in micro-batches, and both divided
			return
		}
	}
	file := scope.Module.File
	d := pass.Reportf(file.At(warmup.Span()), "the Trainer counts warm-up in optimizer steps already: divided by %s it is that many times too short, unless %s counts micro-batches", by, where.Module.File.Slice(left.Span()))
	d.Help("give the number of optimizer steps: %s", where.Module.File.Slice(left.Span()))
}

// division finds x // n in an expression that may round it, or in the definition of a name; n is the accumulation.
func division(pass *lint.Pass, scope *pyscan.Scope, e, accumulation syntax.Expr, depth int) (left syntax.Expr, by string, where *pyscan.Scope) {
	if depth <= 0 {
		return nil, "", nil
	}
	switch e := e.(type) {
	case *syntax.BinOp:
		if e.Op != syntax.Div && e.Op != syntax.FloorDiv {
			return nil, "", nil
		}
		path := pyscan.Path(e.Right)
		if accumulation != nil && path != "" && path == pyscan.Path(accumulation) || pass.IsAccumulation(pass.Eval(scope, nil, e.Right), nil) || loop.WindowName(pyscan.LastPart(path)) {
			return e.Left, scope.Module.File.Slice(e.Right.Span()), scope
		}
	case *syntax.Call:
		switch pyscan.PathEnd(e.Func) {
		case "int", "round", "ceil", "floor", "max", "min":
			for _, arg := range e.Args {
				if left, by, where = division(pass, scope, arg, accumulation, depth-1); left != nil {
					return left, by, where
				}
			}
		}
	case *syntax.Name:
		if def := scope.Def(e); def != nil && def.Kind == pyscan.AssignDef && len(def.Path()) == 0 && def.Value != nil {
			return division(pass, scope, def.Value, accumulation, depth-1)
		}
		if scope.Def(e) == nil && scope.Parent != nil {
			root := scope.Module.Root
			if def := root.Exit(e.ID); def != nil && def.Kind == pyscan.AssignDef && len(def.Path()) == 0 && def.Value != nil {
				return division(pass, root, def.Value, accumulation, depth-1)
			}
		}
	}
	return nil, "", nil
}

// dividedKey reports {"warmup_num_steps": x // gas} in a DeepSpeed config: the engine counts optimizer steps.
func dividedKey(pass *lint.Pass, scope *pyscan.Scope, dict *syntax.Dict) {
	for i, key := range dict.Keys {
		c, ok := key.(*syntax.Constant)
		if !ok || c.Kind != syntax.StrConstant || c.Text != "warmup_num_steps" || i >= len(dict.Values) {
			continue
		}
		left, by, where := division(pass, scope, dict.Values[i], nil, 4)
		if left == nil || !written(pass, where, left) {
			continue
		}
		d := pass.Reportf(scope.Module.File.At(dict.Values[i].Span()), "the DeepSpeed engine counts warm-up in optimizer steps already: divided by %s it is that many times too short, unless %s counts micro-batches", by, where.Module.File.Slice(left.Span()))
		d.Help("give the number of optimizer steps: %s", where.Module.File.Slice(left.Span()))
	}
}

// mixedUnits reports a step count that one part of a schedule takes as it is, and another one divides.
func mixedUnits(pass *lint.Pass, m *pyscan.Module) {
	byScope := map[*pyscan.Scope][]count{}
	var scopes []*pyscan.Scope
	constructors(pass, m, func(scope *pyscan.Scope, _ *syntax.Call, counts []count) {
		if byScope[scope] == nil {
			scopes = append(scopes, scope)
		}
		byScope[scope] = append(byScope[scope], counts...)
	})
	for _, scope := range scopes {
		for _, c := range byScope[scope] {
			plain := c.value(pass)
			switch plain.(type) {
			case *pyscan.Const, *pyscan.Op, *pyscan.Unknown:
				continue
			}
			for _, other := range byScope[scope] {
				by := dividing(pass, other.value(pass), plain, 8)
				if by == nil {
					continue
				}
				d := pass.Reportf(c.at(), "%s is counted in micro-batches here and divided by the accumulation in another part of the same schedule: the parts do not meet", c.text())
				d.Note(other.at(), "it is divided here")
				d.Help("count all parts in optimizer steps")
				break
			}
		}
	}
}

// dividing is the accumulation that a value divides another one by, somewhere in it; nil when it does not.
func dividing(pass *lint.Pass, value, part pyscan.Value, depth int) pyscan.Value {
	op, ok := value.(*pyscan.Op)
	if !ok || depth <= 0 {
		return nil
	}
	if (op.Name == "//" || op.Name == "/") && len(op.Operands) == 2 && holds(pass, op.Operands[0], part, depth) {
		by := op.Operands[1]
		name := strings.ToLower(workspace.NameOf(pass.View, by))
		switch by.(type) {
		case *pyscan.ParamValue, *pyscan.Setting, *pyscan.Member:
			if loop.WindowName(name) || name == "n" || name == "k" {
				return by
			}
		}
		if pass.IsAccumulation(by, nil) {
			return by
		}
	}
	for _, operand := range op.Operands {
		if by := dividing(pass, operand, part, depth-1); by != nil {
			return by
		}
	}
	return nil
}

func holds(pass *lint.Pass, value, part pyscan.Value, depth int) bool {
	if pass.Same(value, part) {
		return true
	}
	op, ok := value.(*pyscan.Op)
	if !ok || depth <= 0 || op.Name == "*" || op.Name == "/" || op.Name == "//" {
		return false
	}
	for _, operand := range op.Operands {
		if holds(pass, operand, part, depth-1) {
			return true
		}
	}
	return false
}
