package schedule

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed scheduler-double-step.md
var docSchedulerDoubleStep string

// SchedulerDoubleStep finds schedules that a DeepSpeed engine advances and the program advances too.
var SchedulerDoubleStep = &lint.Rule{
	Name:     "scheduler-double-step",
	Family:   "schedule",
	Since:    "0.1",
	Doc:      docSchedulerDoubleStep,
	Severity: lint.Error,
	Fix:      lint.SometimesFix,
	Mentions: loop.Mentions,
	Hides:    []string{"scheduler-step-per-micro-batch", "scheduler-before-optimizer"},
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		for _, sched := range l.Deep(loop.SchedulerStep) {
			engine := false
			for _, step := range l.Deep(loop.Step) {
				engine = engine || step.By == loop.Engine && !exclusive(step.Guard, sched.Guard)
			}
			if !engine || withoutEngine(sched.Guard) {
				continue
			}
			if given, ok := ofEngine(pass, sched); ok {
				d := pass.Reportf(l.Place(sched), "the DeepSpeed engine advances this schedule in its own step() already: the learning rate follows it twice as fast")
				d.Note(given, "the engine gets or makes the schedule here")
				deleteStatement(d, sched)
			}
		}
	},
}

// withoutEngine reports whether a guard says that there is no engine: if not self.deepspeed.
func withoutEngine(guard loop.Guard) bool {
	for _, c := range guard {
		if c.Negated && c.Expr != nil && workspace.NamesAny(c.Expr, "deepspeed", "engine") {
			return true
		}
	}
	return false
}

// exclusive reports whether two guards never hold together: the branches of one if.
func exclusive(a, b loop.Guard) bool {
	for _, x := range a {
		for _, y := range b {
			if x.Expr == y.Expr && x.Negated != y.Negated {
				return true
			}
		}
	}
	return false
}

// ofEngine reports whether a schedule is one that deepspeed.initialize was given or gave back.
func ofEngine(pass *lint.Pass, sched *loop.Event) (source.Place, bool) {
	for _, one := range workspace.Alternatives(pass.Expand(sched.On)) {
		if member, ok := one.(*pyscan.Member); ok && member.Name == "lr_scheduler" { // engine.lr_scheduler.step()
			for _, base := range workspace.Alternatives(pass.Expand(member.Base)) {
				if engine, ok := base.(*pyscan.Wrapped); ok && engine.By == "deepspeed.initialize" {
					return engine.Site().Place(), true
				}
			}
		}
		inst, ok := one.(*pyscan.Instance)
		if !ok {
			if _, result := one.(*pyscan.Result); !result {
				continue
			}
		}
		if ok && inst.Call == nil {
			if call, is := inst.At.Node.(*syntax.Call); is && inst.At.Module != nil && pyscan.PathEnd(call.Func) == "initialize" {
				return inst.Site().Place(), true
			}
			continue
		}
		if at, found := handedOver(pass, one); found {
			return at, true
		}
	}
	return source.Place{}, false
}

// handedOver looks for deepspeed.initialize(lr_scheduler=value) in the file that makes the schedule.
func handedOver(pass *lint.Pass, value pyscan.Value) (source.Place, bool) {
	m := value.Site().Module
	if m == nil {
		return source.Place{}, false
	}
	for _, site := range m.Calls {
		call := site.Call
		if pyscan.PathEnd(call.Func) != "initialize" {
			continue
		}
		scope := pyscan.ScopeAt(m, call)
		if pass.Library(scope, nil, call.Func) != "deepspeed.initialize" {
			continue
		}
		given := pass.Arg(scope, nil, call, "lr_scheduler", 5)
		if given == nil {
			continue
		}
		for _, one := range workspace.Alternatives(pass.Expand(given)) {
			if one.Site().Node != nil && one.Site().Node == value.Site().Node {
				return m.File.At(call.Span()), true
			}
		}
	}
	return source.Place{}, false
}

// deleteStatement offers to delete a call that is a line of its own, where its block keeps another statement.
func deleteStatement(d *lint.Diagnostic, event *loop.Event) {
	const title = "leave the schedule to the engine"
	if block := blockOf(event); len(block) < 2 || event.At.Path != d.At.Path {
		d.Help(title)
		return
	}
	file := event.Scope.Module.File
	lines, _, ok := file.OwnLines(event.At.Span)
	if !ok {
		d.Help(title)
		return
	}
	d.Suggest(title, lint.Unsafe, lint.Edit{At: file.At(lines)})
}

// blockOf are the statements of the block that an event's statement stands in, when it fills a line.
func blockOf(event *loop.Event) []syntax.Stmt {
	var found []syntax.Stmt
	look := func(body []syntax.Stmt) {
		for _, stmt := range body {
			if e, ok := stmt.(*syntax.ExprStmt); ok && e.Value == syntax.Expr(event.Call) {
				found = body
			}
		}
	}
	look(event.Scope.Body())
	for _, stmt := range event.Scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.If:
				look(n.Body)
				look(n.OrElse)
			case *syntax.For:
				look(n.Body)
			case *syntax.While:
				look(n.Body)
			case *syntax.With:
				look(n.Body)
			}
			return found == nil
		})
	}
	return found
}
