package data

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed sampler-set-epoch.md
var samplerSetEpochDoc string

// SamplerSetEpoch finds shuffling distributed samplers that give every epoch the same order.
var SamplerSetEpoch = &lint.Rule{
	Name:     "sampler-set-epoch",
	Family:   "data",
	Since:    "0.1",
	Doc:      samplerSetEpochDoc,
	Severity: lint.Warning,
	Fix:      lint.SometimesFix,
	Mentions: []string{"DistributedSampler"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		calls(pass, module, samplerClass, func(scope *pyscan.Scope, call *syntax.Call) { checkSampler(pass, module, scope, call) })
	},
}

func checkSampler(pass *lint.Pass, module *pyscan.Module, scope *pyscan.Scope, call *syntax.Call) {
	if pass.OpenKeywords(scope, nil, call) || workspace.IsTest(module.File.Path) {
		return
	}
	if shuffles(pass, scope, nil, call) == pyscan.No {
		return
	}
	stmt := statement(scope, call)
	if stmt == nil {
		return
	}
	list := uses(pass, module)
	if !slices.ContainsFunc(list, func(use use) bool { return fedBy(pass, use.loader, call) != nil }) {
		list = handedOn(pass, module)
	}
	for _, use := range list {
		made := fedBy(pass, use.loader, call)
		if made == nil || shuffles(pass, scope, made.Frame, call) != pyscan.Yes || passedBy(pass, scope, made.Frame, call) {
			continue
		}
		if use.epochs == nil && !calledInLoop(pass, use.scope) {
			continue
		}
		switch trained := trains(pass, use); {
		case trained == pyscan.No, trained == pyscan.Maybe && evaluates(scope, stmt):
			continue
		}
		loops := use.scope.Module
		if once(pass, use) || restarts(use) || renewed(scope, call, use) {
			return
		}
		if setsEpoch(pass, module, call) || prepared(pass, module) { // other files are asked last
			return
		}
		if loops != module && (setsEpoch(pass, loops, call) || prepared(pass, loops)) {
			return
		}
		d := pass.Reportf(module.File.At(call.Span()), "set_epoch is never called on this sampler: it shuffles with the same seed in every epoch, so each rank sees the same batches in the same order again")
		d.Note(use.scope.Module.File.At(source.Span{Start: use.loop.Span().Start, End: use.loop.Iter.Span().End}), "the epochs loop over it here")
		if !insertSetEpoch(d, module, scope, call, use) {
			d.Help("call set_epoch(epoch) on the sampler at the start of each epoch")
		}
		return
	}
}

// shuffles reports whether a sampler shuffles, in the call that a frame is of: a function may make those of training and of evaluation.
func shuffles(pass *lint.Pass, scope *pyscan.Scope, frame *pyscan.Frame, call *syntax.Call) pyscan.Truth {
	shuffle := pass.Arg(scope, frame, call, "shuffle", 3)
	if shuffle == nil {
		return pyscan.Yes
	}
	if test, ok := shuffle.(*pyscan.Op); ok && len(test.Operands) == 2 { // shuffle=mode == "train"
		a, ok := pass.Constant(test.Operands[0])
		b, ok2 := pass.Constant(test.Operands[1])
		if is, decided := constant.Compare(test.Name, a, b); ok && ok2 && decided {
			return pyscan.Truly(is)
		}
	}
	return pass.Truthy(shuffle)
}

// passedBy reports whether a call is not reached in the call of its function that a frame is of, by the tests around it.
func passedBy(pass *lint.Pass, scope *pyscan.Scope, frame *pyscan.Frame, call *syntax.Call) bool {
	return slices.ContainsFunc(workspace.Around(scope, call), func(stmt syntax.Stmt) bool {
		test, ok := stmt.(*syntax.If)
		if !ok {
			return false
		}
		holds := pass.Truthy(pass.Eval(scope, frame, test.Test))
		within := func(body []syntax.Stmt) bool {
			return slices.ContainsFunc(body, func(s syntax.Stmt) bool { return inside(s, call) })
		}
		return holds == pyscan.No && within(test.Body) || holds == pyscan.Yes && within(test.OrElse)
	})
}

func statement(scope *pyscan.Scope, node syntax.Node) syntax.Stmt {
	if around := workspace.Around(scope, node); len(around) > 0 {
		return around[len(around)-1]
	}
	return nil
}

// evaluates reports whether a sampler is for evaluation by the names around it. They are asked where the loop over its
// loader does not tell.
func evaluates(scope *pyscan.Scope, stmt syntax.Stmt) bool {
	name := strings.ToLower(scope.Name)
	if assign, ok := stmt.(*syntax.Assign); ok {
		name += " " + strings.ToLower(pyscan.Path(assign.Targets[0]))
	}
	for _, word := range []string{"val", "test", "eval", "infer", "predict"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// fedBy is the sampler that a call makes where a loader takes its samples from it; else nil.
func fedBy(pass *lint.Pass, loader *pyscan.Instance, sampler *syntax.Call) *pyscan.Instance {
	if loader.At.Module == nil {
		return nil
	}
	scope := pyscan.ScopeAt(loader.At.Module, loader.Call)
	value := pass.Arg(scope, loader.Frame, loader.Call, "sampler", 3)
	if value == nil {
		return nil
	}
	for _, one := range workspace.Alternatives(pass.Expand(value)) {
		if inst, ok := one.(*pyscan.Instance); ok && inst.Call == sampler {
			return inst
		}
	}
	return nil
}

func calledInLoop(pass *lint.Pass, function *pyscan.Scope) bool {
	found := false
	for _, site := range pass.Callers(function) {
		for _, stmt := range workspace.Around(site.Scope, site.Call) {
			switch stmt := stmt.(type) {
			case *syntax.For:
				found = found || !inside(stmt.Iter, site.Call) // what a loop goes through is made once
			case *syntax.While:
				found = true
			}
		}
	}
	return found
}

// once reports whether the loop around is known to run one epoch.
func once(pass *lint.Pass, use use) bool {
	loop, ok := use.epochs.(*syntax.For)
	if !ok {
		return false
	}
	call, ok := loop.Iter.(*syntax.Call)
	if !ok || len(call.Args) != 1 {
		return false
	}
	c, ok := pass.Constant(pass.Settled(pass.Eval(use.scope, nil, call.Args[0])))
	n, is := c.Int()
	return ok && is && n <= 1
}

// restarts reports whether the loop around is an endless one, as infinite loaders have.
func restarts(use use) bool {
	loop, ok := use.epochs.(*syntax.While)
	if !ok {
		return false
	}
	c, ok := loop.Test.(*syntax.Constant)
	if !ok || c.Kind != syntax.TrueConstant {
		return false
	}
	yields := false
	for node := range syntax.Preorder(use.loop) {
		if _, ok := node.(*syntax.Yield); ok {
			yields = true
		}
	}
	return yields
}

// renewed reports whether the data set is made anew for each epoch: in the loop over them or in the function that they call, as the
// sampler is, or with the number of the epoch.
// Another data set in the same order is no repetition.
func renewed(scope *pyscan.Scope, sampler *syntax.Call, use use) bool {
	dataset, ok := workspace.Argument(sampler, "dataset", 0).(*syntax.Name)
	if !ok {
		return false
	}
	for _, one := range scope.Defs(dataset.ID) {
		if one.Kind != pyscan.AssignDef && one.Kind != pyscan.UnpackDef || one.Value == nil || one.Node == nil {
			continue
		}
		if workspace.NamesAny(one.Value, "epoch") {
			return true
		}
		if use.epochs == nil && use.scope == scope {
			return true
		}
		if use.epochs != nil && use.scope == scope && inside(use.epochs, sampler) && inside(use.epochs, one.Node) && !inside(use.loop, one.Node) {
			return true
		}
	}
	return false
}

func inside(outer, inner syntax.Node) bool {
	return outer.Span().Start <= inner.Span().Start && inner.Span().End <= outer.Span().End
}

// insertSetEpoch offers the call where the sampler is a plain name in the function of the epoch loop and the epoch has one.
func insertSetEpoch(d *lint.Diagnostic, module *pyscan.Module, scope *pyscan.Scope, call *syntax.Call, use use) bool {
	loop, ok := use.epochs.(*syntax.For)
	assign, ok2 := statement(scope, call).(*syntax.Assign)
	if !ok || !ok2 || use.scope != scope || len(assign.Targets) != 1 || assign.Value != syntax.Expr(call) || len(loop.Body) == 0 {
		return false
	}
	sampler, ok := assign.Targets[0].(*syntax.Name)
	epoch, ok2 := loop.Target.(*syntax.Name)
	if !ok || !ok2 || epoch.ID == "_" {
		return false
	}
	first := loop.Body[0].Span().Start
	line := module.File.LineSpan(module.File.Line(first))
	indent := string(module.File.Text[line.Start:first])
	if strings.TrimSpace(indent) != "" {
		return false
	}
	d.Suggest("call set_epoch at the start of each epoch", lint.Safe, lint.Edit{At: module.File.At(source.Span{Start: first, End: first}), Text: sampler.ID + ".set_epoch(" + epoch.ID + ")\n" + indent})
	return true
}
