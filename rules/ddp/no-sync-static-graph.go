package ddp

import (
	_ "embed"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed no-sync-static-graph.md
var noSyncStaticGraphDoc string

// NoSyncStaticGraph finds static graphs of DDP together with no_sync.
var NoSyncStaticGraph = &lint.Rule{
	Name:     "no-sync-static-graph",
	Family:   "ddp",
	Since:    "0.1",
	Doc:      noSyncStaticGraphDoc,
	Severity: lint.Error,
	Mentions: []string{"static_graph"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		for _, site := range module.Calls {
			call, scope := site.Call, site.Scope
			if attr, ok := call.Func.(*syntax.Attribute); ok && attr.Attr == "_set_static_graph" {
				w, is := pass.Outermost(pass.Eval(scope, nil, attr.Value))
				if is == pyscan.Yes && w.Kind == workspace.DDP {
					checkStatic(pass, module.File.At(call.Span()), module, w.Call)
				}
				continue
			}
			k := keywordAt(call, "static_graph")
			if k == nil || pass.Truthy(pass.Expand(pass.Eval(scope, nil, k.Value))) != pyscan.Yes {
				continue
			}
			switch pass.Library(scope, nil, call.Func) {
			case "torch.nn.parallel.DistributedDataParallel":
				checkStatic(pass, module.File.At(k.Span()), module, call)
			case "accelerate.DistributedDataParallelKwargs":
				checkAccelerated(pass, module.File.At(k.Span()), module, call)
			case "pytorch_lightning.strategies.DDPStrategy", "pytorch_lightning.strategies.ddp.DDPStrategy":
				checkLightning(pass, module.File.At(k.Span()), module, call)
			}
		}
	},
}

// maxElsewhere bounds the other files in which no_sync is looked for.
const maxElsewhere = 8

// checkStatic looks for no_sync on the model of a wrapping call, in this file and in those that call no_sync.
func checkStatic(pass *lint.Pass, at source.Place, module *pyscan.Module, wrap *syntax.Call) {
	files := []string{module.File.Path}
	if elsewhere := pass.Mentioning(module.File.Path, "no_sync"); len(elsewhere) <= maxElsewhere {
		files = append(files, elsewhere...)
	}
	for i, file := range files {
		m := pass.Module(file)
		if m == nil || i > 0 && file == module.File.Path {
			continue
		}
		for _, l := range pass.Loops(m) {
			if forwardOutside(pass, l, wrap) {
				continue
			}
			for event := range l.All {
				if event.Kind != loop.NoSync || event.Call == nil || sparesFirst(event) {
					continue
				}
				w, is := pass.Outermost(event.On)
				if is == pyscan.No || w.Call != wrap {
					continue
				}
				d := pass.Reportf(at, "static_graph=True with no_sync: when the first backward runs inside no_sync, DDP fails an internal assertion, and newer versions never reduce gradients again")
				if is == pyscan.Maybe {
					d.As(lint.Warning)
				}
				d.Note(event.At, "no_sync is used here").Help("drop static_graph, or let the first micro-batch synchronise")
				return
			}
		}
	}
}

// forwardOutside reports whether every forward of a model stands outside of no_sync, and a backward inside: DDP decides in forward, so that
// such a no_sync does nothing, neither harm (no-sync-backward-only).
func forwardOutside(pass *lint.Pass, l *loop.Loop, wrap *syntax.Call) bool {
	forwards, backward := 0, false
	for event := range l.All {
		switch event.Kind {
		case loop.Forward:
			if w, is := pass.Outermost(event.On); is == pyscan.No || w.Call != wrap {
				continue
			}
			if forwards++; event.In(loop.NoSyncContext) {
				return false
			}
		case loop.Backward:
			backward = backward || event.In(loop.NoSyncContext)
		}
	}
	return forwards > 0 && backward
}

// sparesFirst reports whether a no_sync is left out at the first micro-batch: its guard names a first step.
func sparesFirst(event *loop.Event) bool {
	for _, c := range event.Guard {
		if c.Kind == loop.First {
			return true
		}
		if c.Expr != nil && c.Scope != nil && strings.Contains(strings.ToLower(c.Scope.Module.File.Slice(c.Expr.Span())), "first") {
			return true
		}
	}
	return false
}

var (
	accelerators = &pyscan.Words{Alias: true, Names: map[string]bool{"Accelerator": true}}
	trainers     = &pyscan.Words{Alias: true, Names: map[string]bool{"Trainer": true}}
)

// checkAccelerated is DistributedDataParallelKwargs(static_graph=True) given to an Accelerator that accumulates.
func checkAccelerated(pass *lint.Pass, at source.Place, module *pyscan.Module, kwargs *syntax.Call) {
	for _, site := range pass.CallsNear(module, accelerators) {
		call, scope := site.Call, site.Scope
		if pass.Library(scope, nil, call.Func) != "accelerate.Accelerator" {
			continue
		}
		steps := pass.Arg(scope, nil, call, "gradient_accumulation_steps", 3)
		handlers := pass.Arg(scope, nil, call, "kwargs_handlers", -1)
		if steps == nil || handlers == nil {
			continue
		}
		n, ok := pass.Constant(pass.Expand(steps))
		if count, whole := n.Int(); !ok || !whole || count < 2 {
			continue
		}
		for _, handler := range pass.Elements(pass.Expand(handlers)) {
			if made, ok := handler.(*pyscan.Instance); ok && made.Call == kwargs {
				pass.Reportf(at, "static_graph=True with accumulation over %s: accumulate() puts the first backward inside no_sync, where DDP fails an internal assertion, and newer versions never reduce gradients again", n).
					Note(module.File.At(call.Span()), "the Accelerator accumulates").Help("drop static_graph")
				return
			}
		}
	}
}

// checkLightning is DDPStrategy(static_graph=True) of a Trainer that accumulates.
func checkLightning(pass *lint.Pass, at source.Place, module *pyscan.Module, strategy *syntax.Call) {
	for _, site := range pass.CallsNear(module, trainers) {
		call, scope := site.Call, site.Scope
		if pass.Library(scope, nil, call.Func) != "pytorch_lightning.Trainer" {
			continue
		}
		steps, used := pass.Arg(scope, nil, call, "accumulate_grad_batches", -1), pass.Arg(scope, nil, call, "strategy", -1)
		if steps == nil || used == nil {
			continue
		}
		n, ok := pass.Constant(pass.Expand(steps))
		made, is := pass.Expand(used).(*pyscan.Instance)
		if count, whole := n.Int(); !ok || !whole || count < 2 || !is || made.Call != strategy {
			continue
		}
		pass.Reportf(at, "static_graph=True with accumulation over %s batches: Lightning runs the first backward inside no_sync, where DDP fails an internal assertion, and newer versions never reduce gradients again", n).
			Note(module.File.At(call.Span()), "the Trainer accumulates").Help("drop static_graph")
		return
	}
}
