package ddp

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
)

//go:embed no-sync-never-syncs.md
var noSyncNeverSyncsDoc string

// NoSyncNeverSyncs finds windows of micro-batches none of which synchronises gradients, or all but the last.
var NoSyncNeverSyncs = &lint.Rule{
	Name:     "no-sync-never-syncs",
	Family:   "ddp",
	Since:    "0.1",
	Doc:      noSyncNeverSyncsDoc,
	Severity: lint.Error,
	Mentions: loop.Mentions,
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		reported := map[source.Place]bool{}
		for _, w := range loop.Windows(l, pass) {
			checkWindow(pass, l, w, reported)
			checkFlags(pass, l, w, reported)
		}
	},
}

func checkWindow(pass *lint.Pass, l *loop.Loop, w *loop.Window, reported map[source.Place]bool) {
	if len(w.Steps) == 0 || w.Steps[0].By == loop.Engine {
		return
	}
	var guilty *loop.Context
	var backward *loop.Event
	always, inverted := true, false
	for _, event := range w.Backward {
		one := unconditional(event)
		switch {
		case one != nil && matches(event.Guard, w): // the last micro-batch alone, in its own branch
			inverted, guilty, backward = true, one, event
		case one != nil:
			if guilty == nil {
				guilty, backward = one, event
			}
			continue
		}
		always = false
		for i := range event.Contexts {
			c := &event.Contexts[i]
			if call, _, _ := noSync(*c); call != nil && len(c.Guard) > 0 && len(c.Values) == 1 && len(w.Backward) == 1 && matches(c.Guard, w) {
				inverted, guilty, backward = true, c, event
			}
		}
	}
	if guilty == nil || !always && !inverted || always && syncsElsewhere(l, w) || reducesByHand(pass, append(w.Steps, backward)...) {
		return
	}
	call, result, model := noSync(*guilty)
	wrapper, is := pass.Outermost(model)
	switch {
	case is == pyscan.No && !pass.Opaque(pass.Expand(model)):
		return // an object with a no_sync of its own
	case is != pyscan.No && wrapper.Kind != workspace.DDP && wrapper.Kind != workspace.FSDP1:
		return
	}
	at := result.Site().Place()
	if result.At.Node != call { // chosen before it was called
		at = guilty.Scope.Module.File.At(guilty.Expr.Span())
	}
	if at.Path != l.Function().Scope.Module.File.Path {
		at = l.Place(backward)
	}
	if reported[at] {
		return
	}
	reported[at] = true
	message := "every backward of the window is inside no_sync, the last one too: gradients are never reduced between ranks, and each rank trains its own model"
	if inverted {
		message = "the condition is the wrong way round: the last micro-batch of the window is the one inside no_sync, so the gradients that the optimizer steps on differ between ranks"
	}
	d := pass.Reportf(at, "%s", message)
	if is == pyscan.No {
		d.As(lint.Warning)
	}
	wrappedAt(d, wrapper).Note(w.Steps[0].At, "the optimizer steps here")
	if inverted {
		d.Help("swap the two sides")
	} else {
		d.Help("leave no_sync for the last micro-batch: model.no_sync() if not last else nullcontext()")
	}
}

// checkFlags looks at flags that switch synchronisation: model.require_backward_grad_sync = not last.
func checkFlags(pass *lint.Pass, l *loop.Loop, w *loop.Window, reported map[source.Place]bool) {
	if len(w.Steps) == 0 || reducesByHand(pass, w.Steps...) {
		return
	}
	for _, event := range w.Micro.Of(loop.NoSync) {
		if event.Guard.Always() == pyscan.No || len(event.Sync) != 1 || !event.Sync[0].Negated {
			continue
		}
		on := event.Sync[0]
		on.Negated = false
		if !matches(loop.Guard{on}, w) {
			continue
		}
		wrapper, is := pass.Outermost(event.On)
		at := l.Place(event)
		if is == pyscan.No && !pass.Opaque(pass.Expand(event.On)) || is != pyscan.No && wrapper.Kind != workspace.DDP && wrapper.Kind != workspace.FSDP1 && wrapper.Kind != workspace.FSDP2 || reported[at] {
			continue
		}
		reported[at] = true
		d := pass.Reportf(at, "the flag is the wrong way round: synchronisation is off for the last micro-batch of the window, so the gradients that the optimizer steps on differ between ranks")
		if is == pyscan.No {
			d.As(lint.Warning)
		}
		wrappedAt(d, wrapper).Note(w.Steps[0].At, "the optimizer steps here").Help("switch synchronisation on for the last micro-batch")
	}
}

// unconditional is a no_sync context that is around a backward whenever it runs, or nil.
func unconditional(event *loop.Event) *loop.Context {
	for i := range event.Contexts {
		c := &event.Contexts[i]
		if call, _, _ := noSync(*c); call != nil && len(c.Guard) == 0 && len(c.Values) == 1 && len(call.Args)+len(call.Keywords) == 0 {
			return c
		}
	}
	return nil
}

// matches reports whether a guard holds just where the window ends.
func matches(guard loop.Guard, w *loop.Window) bool {
	c := guard.Boundary()
	if c == nil || len(guard) != 1 {
		return false
	}
	end := w.Boundary
	if end == nil && w.Outer == nil { // the step shares its branch with a backward
		end = w.Steps[0].Guard.Boundary()
	}
	if end == nil {
		return w.Outer != nil && c.Kind == loop.LastOf
	}
	if c.Expr == end.Expr && c.Scope == end.Scope {
		return true
	}
	return c.Kind == end.Kind && c.Counter == end.Counter && c.Offset == end.Offset && c.Scope == end.Scope &&
		(c.N == nil) == (end.N == nil) && (c.N == nil || c.Scope.Module.File.Slice(c.N.Span()) == c.Scope.Module.File.Slice(end.N.Span()))
}

// syncsElsewhere reports whether some other backward of the same function runs outside of no_sync.
func syncsElsewhere(l *loop.Loop, w *loop.Window) bool {
	roots := []*loop.Loop{l, l.Function()}
	if w.Outer != nil {
		roots = append(roots, w.Outer)
	}
	for _, root := range roots {
		for event := range root.All {
			if event.Kind == loop.Backward && !event.In(loop.NoSyncContext) {
				return true
			}
			if event.Kind == loop.Collective || event.Kind == loop.GradDivide {
				return true
			}
		}
	}
	return false
}
