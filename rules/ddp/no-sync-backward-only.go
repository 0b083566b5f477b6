package ddp

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
)

//go:embed no-sync-backward-only.md
var noSyncBackwardOnlyDoc string

// NoSyncBackwardOnly finds DDP's no_sync around backward alone.
var NoSyncBackwardOnly = &lint.Rule{
	Name:     "no-sync-backward-only",
	Family:   "ddp",
	Since:    "0.1",
	Doc:      noSyncBackwardOnlyDoc,
	Severity: lint.Warning,
	Mentions: loop.Mentions,
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		reported := map[source.Place]bool{}
		var forwards []*loop.Event
		for event := range l.All {
			switch event.Kind {
			case loop.Forward:
				forwards = append(forwards, event)
			case loop.Backward:
				if event.In(loop.NoGradContext) {
					continue
				}
				for _, c := range event.Contexts {
					_, _, model := noSync(c)
					if w, is := pass.Outermost(model); is != pyscan.No && w.Kind == workspace.DDP {
						checkForward(pass, l, event, c, w, forwards, reported)
					}
				}
			}
		}
	},
}

// checkForward looks for the last forward of the model before its backward.
func checkForward(pass *lint.Pass, l *loop.Loop, backward *loop.Event, c loop.Context, w workspace.Wrapper, forwards []*loop.Event, reported map[source.Place]bool) {
	var last *loop.Event
	for _, f := range forwards {
		if other, is := pass.Outermost(f.On); is != pyscan.No && other.Kind == workspace.DDP && other.Call == w.Call {
			last = f
		}
	}
	if last == nil || c.Item == nil || last.In(loop.NoSyncContext) || last.In(loop.NoGradContext) {
		return
	}
	at := c.At
	if at.Path != l.Function().Scope.Module.File.Path {
		at = l.Place(backward)
	}
	if reported[at] {
		return
	}
	reported[at] = true
	wrappedAt(pass.Reportf(at, "no_sync around backward alone does nothing: DDP decides in forward whether the next backward all-reduces, so every micro-batch does"), w).
		Note(last.At, "forward runs here, outside of it").Help("put the forward into the context too")
}
