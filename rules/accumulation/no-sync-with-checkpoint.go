package accumulation

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed no-sync-with-checkpoint.md
var noSyncWithCheckpointDoc string

// NoSyncWithCheckpoint finds accumulation without synchronisation on models that checkpoint activations, where the wrapper
// makes that an error or costs the memory that checkpointing saves.
var NoSyncWithCheckpoint = &lint.Rule{
	Name:     "no-sync-with-checkpoint",
	Family:   "accumulation",
	Since:    "0.1",
	Doc:      noSyncWithCheckpointDoc,
	Severity: lint.Warning,
	Mentions: []string{"no_sync", "require_backward_grad_sync", "set_requires_gradient_sync", "set_is_last_backward"},
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		done := map[source.Place]bool{}
		for event := range l.All {
			if at := l.Place(event); event.Kind == loop.NoSync && !pass.TurnsSyncOn(event) && !done[at] {
				done[at] = true
				checkNoSync(pass, event, at)
			}
		}
	},
}

func checkNoSync(pass *lint.Pass, event *loop.Event, at source.Place) {
	wrappers, model, certain := pass.Wrappers(event.On)
	if len(wrappers) == 0 {
		w, ok := pass.InPlace(event.Scope, event.Frame, event.Receiver)
		if !ok {
			return
		}
		wrappers = append(wrappers, w)
	}
	if pass.Opaque(model) {
		if only := pass.OnlyModel(event.Scope.Module); only != nil {
			model = only
		}
	}
	checkpoints := pass.ModelCheckpoints(model)
	if len(checkpoints) == 0 {
		return
	}
	var reentrant, first *workspace.Checkpoint
	for _, c := range checkpoints {
		if first == nil {
			first = c
		}
		if c.Reentrant == pyscan.Yes && reentrant == nil {
			reentrant = c
		}
	}
	var d *lint.Diagnostic
	switch w := wrappers[0]; w.Kind {
	case workspace.DDP:
		unused, static := flag(pass, w, "find_unused_parameters"), flag(pass, w, "static_graph")
		switch {
		case static == pyscan.Yes:
			d = pass.Reportf(at, "DDP with static_graph=True and no_sync: the first backward inside no_sync fails an internal assertion, and newer versions stop synchronising silently").As(lint.Error)
		case reentrant == nil:
			return // right as it is
		case unused == pyscan.Yes:
			d = pass.Reportf(at, "DDP with find_unused_parameters=True and reentrant checkpoints: the micro-batch that synchronises raises, since recomputed parameters are marked ready twice").As(lint.Error)
			first = reentrant
		default:
			d = pass.Reportf(at, "no_sync with reentrant checkpoints works under DDP only while no block or weight is used twice").As(lint.Info)
			first = reentrant
		}
		if reentrant != nil {
			d.Help("pass use_reentrant=False to the checkpoints")
		}
	case workspace.FSDP1, workspace.FSDP2:
		d = shardedNoSync(pass, w, event, at)
		if d == nil {
			return
		}
	default:
		return
	}
	if !certain && d.Severity != lint.Info {
		d.As(lint.Warning)
	}
	d.Note(first.Scope.Module.File.At(first.Call.Span()), "activations are checkpointed here")
	if call := wrappers[0].Call; call != nil {
		d.Note(wrappers[0].Scope.Module.File.At(call.Span()), "the model is wrapped here")
	}
}

// shardedNoSync is the FSDP row: without synchronisation every rank keeps whole gradients.
func shardedNoSync(pass *lint.Pass, w workspace.Wrapper, event *loop.Event, at source.Place) *lint.Diagnostic {
	if w.Kind == workspace.FSDP2 && event.Call != nil {
		if attr, ok := event.Call.Func.(*syntax.Attribute); ok && attr.Attr == "no_sync" {
			return pass.Reportf(at, "a model from fully_shard has no no_sync(): this raises AttributeError").As(lint.Error).
				Help("call model.set_requires_gradient_sync(False) on all but the last micro-batch")
		}
	}
	strategy := pass.ExternalName(orUnknown(pass.Keyword(w, "sharding_strategy", 2)))
	d := pass.Reportf(at, "without gradient synchronisation every rank of %s keeps the whole gradients until the last micro-batch (4 bytes a parameter in fp32), more than checkpointing is meant to save", w.Kind)
	switch pyscan.LastPart(strategy) {
	case "NO_SHARD":
		return nil
	case "SHARD_GRAD_OP", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2":
		d.As(lint.Info)
	}
	return d.Help("let each micro-batch reduce-scatter its gradients: drop no_sync (in Accelerate: sync_each_batch=True)")
}

func orUnknown(value pyscan.Value) pyscan.Value {
	if value == nil {
		return &pyscan.Unknown{}
	}
	return value
}

func flag(pass *lint.Pass, w workspace.Wrapper, name string) pyscan.Truth {
	value := pass.Keyword(w, name, -1)
	if value == nil {
		return pyscan.No
	}
	return pass.Truthy(pass.Expand(value))
}
