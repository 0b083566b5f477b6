package zero

import (
	_ "embed"
	"fmt"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed no-sync-zero.md
var noSyncZeroDoc string

// NoSyncZero finds no_sync on DeepSpeed engines that partition gradients, and steps inside of it.
var NoSyncZero = &lint.Rule{
	Name:     "no-sync-zero",
	Family:   "zero",
	Since:    "0.1",
	Doc:      noSyncZeroDoc,
	Severity: lint.Error,
	Fix:      lint.SometimesFix,
	Mentions: []string{"no_sync"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		reported := map[source.Place]bool{}
		choices := map[syntax.Expr]*syntax.IfExp{} // what stands in an arm of `a if c else b`
		called := map[syntax.Expr]*syntax.Call{}
		for node := range module.Tree.All() {
			switch node := node.(type) {
			case *syntax.IfExp:
				choices[node.Body], choices[node.OrElse] = node, node
			case *syntax.Call:
				called[node.Func] = node
			case *syntax.Attribute:
				if node.Attr == "no_sync" {
					checkNoSync(pass, module, node, called[node], choices, reported)
				}
			}
		}
		for _, l := range pass.Loops(module) {
			for event := range l.All {
				if event.Kind == loop.Step && event.By == loop.Engine {
					stepInside(pass, module, event, reported)
				}
			}
		}
	},
}

func checkNoSync(pass *lint.Pass, module *pyscan.Module, attr *syntax.Attribute, call *syntax.Call, choices map[syntax.Expr]*syntax.IfExp, reported map[source.Place]bool) {
	scope := pyscan.ScopeAt(module, attr)
	w, ok := engineOf(pass, pass.Eval(scope, nil, attr.Value))
	if !ok {
		return
	}
	config := pass.Engine(w)
	stage, part, known := config.Stage()
	if !known || stage < 2 {
		return
	}
	var e syntax.Expr = attr
	if call != nil {
		e = call
	}
	at := module.File.At(e.Span())
	reported[at] = true
	d := pass.Reportf(at, "no_sync() of a DeepSpeed engine at ZeRO stage %d: it asserts that gradients are not partitioned, and stage %d reduces them at each backward by design", stage, stage)
	if !config.Certain {
		d.As(lint.Warning)
	}
	if deepspeed := pass.Pin(module.File.Path, "deepspeed"); deepspeed.Since("0.15.5") == pyscan.No { // deepspeedai/DeepSpeed#6675
		d.Message = fmt.Sprintf("the engine of %s has no no_sync(): the first micro-batch ends in an AttributeError, and later releases assert at ZeRO stage %d that gradients are not partitioned", deepspeed, stage)
		d.Pinned(deepspeed, "0.15.5")
	}
	stageAt(wrappedAt(d, w), part)
	if choice := choices[e]; choice != nil {
		other := choice.Body
		if other == e {
			other = choice.OrElse
		}
		d.Suggest("let every micro-batch reduce its gradients", lint.Safe, lint.Edit{At: module.File.At(choice.Span()), Text: module.File.Slice(other.Span())})
		return
	}
	d.Help("drop no_sync: call engine.backward and engine.step for each micro-batch")
}

// stepInside is engine.step() under engine.no_sync(), which asserts at every stage.
func stepInside(pass *lint.Pass, module *pyscan.Module, event *loop.Event, reported map[source.Place]bool) {
	w, ok := engineOf(pass, event.On)
	if !ok {
		return
	}
	for _, c := range event.Contexts {
		if c.Kind != loop.NoSyncContext || c.Scope.Module != module {
			continue
		}
		for _, value := range c.Values {
			result, ok := value.(*pyscan.Result)
			if !ok {
				continue
			}
			member, ok := result.Of.(*pyscan.Member)
			if !ok || result.Call == nil {
				continue
			}
			if same, ok := engineOf(pass, member.Base); !ok || same.Call != w.Call {
				continue
			}
			at := module.File.At(result.Call.Span())
			if result.At.Module != module || reported[at] {
				continue
			}
			reported[at] = true
			wrappedAt(pass.Reportf(at, "engine.step() runs inside engine.no_sync(): DeepSpeed asserts that it does not"), w).
				Note(event.At, "the engine steps here").Help("step after the context has ended")
		}
	}
}
