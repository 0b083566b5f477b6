package ddp

import (
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// ddpForward is the first forward of a DDP model in a loop, with its wrapper. A model that is wrapped only sometimes, as
// when one process runs alone, counts.
func ddpForward(pass *lint.Pass, l *loop.Loop) (*loop.Event, workspace.Wrapper) {
	for event := range l.All {
		if event.Kind == loop.Forward && !event.In(loop.NoGradContext) {
			if w, is := pass.Outermost(event.On); is != pyscan.No && w.Kind == workspace.DDP {
				return event, w
			}
		}
	}
	return nil, workspace.Wrapper{}
}

// wrappedAt notes where a model is wrapped.
func wrappedAt(d *lint.Diagnostic, w workspace.Wrapper) *lint.Diagnostic {
	if w.Call != nil && w.Scope != nil {
		d.Note(w.Scope.Module.File.At(w.Call.Span()), "the model is wrapped here")
	}
	return d
}

// noSync is the no_sync call that a context is, with the model it belongs to.
func noSync(c loop.Context) (call *syntax.Call, result *pyscan.Result, model pyscan.Value) {
	if c.Kind != loop.NoSyncContext {
		return nil, nil, nil
	}
	for _, value := range c.Values {
		if result, ok := value.(*pyscan.Result); ok {
			if member, ok := result.Of.(*pyscan.Member); ok && member.Name == "no_sync" {
				return result.Call, result, member.Base
			}
		}
	}
	return nil, nil, nil
}

// reducesByHand reports whether the functions around an event hold a call that says it synchronises: then whoever wrote
// them knows what the wrapper leaves undone.
func reducesByHand(pass *lint.Pass, events ...*loop.Event) bool {
	type question struct{ scope *pyscan.Scope }
	return slices.ContainsFunc(events, func(event *loop.Event) bool {
		scope := event.Scope
		for scope.Parent != nil && scope.Kind == pyscan.LambdaScope {
			scope = scope.Parent
		}
		return lint.Once(pass, question{scope}, func() bool { return saysItSynchronises(scope) })
	})
}

func saysItSynchronises(scope *pyscan.Scope) bool {
	found := false
	for _, stmt := range scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			if call, ok := n.(*syntax.Call); ok && synchronises(pyscan.LastName(call.Func)) {
				found = true
			}
			return !found
		})
	}
	return found
}

func synchronises(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"all_reduce", "allreduce", "average_", "reduce_grad", "sync_grad", "grad_sync", "gradient_sync", "synchronize_grad", "sync_param", "diloco", "outer_step",
		"reduce_scatter", "broadcast", "merge_grad", "sync_model"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// keywordAt is the keyword of a call, name and value.
func keywordAt(call *syntax.Call, name string) *syntax.Keyword {
	for _, k := range call.Keywords {
		if k.Arg == name {
			return k
		}
	}
	return nil
}
