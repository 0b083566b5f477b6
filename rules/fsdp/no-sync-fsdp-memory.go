package fsdp

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed no-sync-fsdp-memory.md
var noSyncFsdpMemoryDoc string

// NoSyncFsdpMemory finds accumulation under FSDP that keeps whole gradients on every rank.
var NoSyncFsdpMemory = &lint.Rule{
	Name:     "no-sync-fsdp-memory",
	Family:   "fsdp",
	Since:    "0.1",
	Doc:      noSyncFsdpMemoryDoc,
	Severity: lint.Warning,
	Mentions: []string{"no_sync", "set_requires_gradient_sync", "set_is_last_backward", "require_backward_grad_sync", "gradient_accumulation", "accelerate"},
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		reported := map[source.Place]bool{}
		for event := range l.All {
			if event.Kind == loop.NoSync && !pass.TurnsSyncOn(event) {
				checkGradients(pass, l, event, reported)
			}
		}
		preparedNoSync(pass, l, reported)
	},
	Module: func(pass *lint.Pass, module *pyscan.Module) { // TrainingArguments(...)
		if workspace.MayState(module.File) && len(pass.Parts(module.File.Path)) > 0 {
			for _, run := range pass.Runs(module.File.Path) {
				trainerNoSync(pass, run)
			}
		}
	},
	Run: trainerNoSync,
}

// gradientBytes of an element, where nothing says in what type gradients are kept.
const gradientBytes = 4

// Of the memory of the device: below a tenth it is not worth a word. 64 GB where no device is told.
const (
	usualDevice  = 64e9
	worthWarning = 0.1
)

func checkGradients(pass *lint.Pass, l *loop.Loop, event *loop.Event, reported map[source.Place]bool) {
	wrappers, model, certain := pass.Wrappers(event.On)
	if len(wrappers) == 0 {
		w, ok := pass.InPlace(event.Scope, event.Frame, event.Receiver)
		if !ok {
			return
		}
		wrappers = append(wrappers, w)
	}
	w := wrappers[0]
	if w.Kind != workspace.FSDP1 && w.Kind != workspace.FSDP2 {
		return
	}
	known := model
	if pass.Opaque(model) {
		if only := pass.OnlyModel(event.Scope.Module); only != nil {
			known = only
		}
	}
	at := l.Place(event)
	if reported[at] || len(pass.ModelCheckpoints(known)) > 0 {
		return // with checkpoints, no-sync-with-checkpoint speaks
	}
	reported[at] = true
	if attr, ok := calledAttribute(event); ok && w.Kind == workspace.FSDP2 && attr == "no_sync" {
		wrappedAt(pass.Reportf(at, "a model from fully_shard has no no_sync(): this raises AttributeError").As(lint.Error), w).
			Help("call model.set_requires_gradient_sync(False) on all but the last micro-batch")
		return
	}
	sharding := strategy(pass, w)
	if sharding == "NO_SHARD" {
		return
	}
	d := pass.Reportf(at, "without synchronisation every rank of %s keeps the whole gradients until the last micro-batch: 4 bytes a parameter in fp32, instead of its share", w.Kind)
	if parameters, name, sized := pass.ModelSize(model, event.Scope.Module.File.Path); sized {
		bytes := float64(parameters) * gradientBytes
		d.Message += ". For " + name + " that is " + gigabytes(bytes)
		if bytes <= worthWarning*usualDevice {
			d.As(lint.Info)
		}
	}
	if sharding != "" && sharding != "FULL_SHARD" || !certain {
		d.As(lint.Info)
	}
	wrappedAt(d, w).Help("let each micro-batch reduce-scatter its gradients, unless there is memory to spare")
}

func calledAttribute(event *loop.Event) (string, bool) {
	if event.Call == nil {
		return "", false
	}
	attr, ok := event.Call.Func.(*syntax.Attribute)
	if !ok {
		return "", false
	}
	return attr.Attr, true
}
