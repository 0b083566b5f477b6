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
		var forwards []forward
		for event, in := range l.All {
			if event.In(loop.NoGradContext) {
				continue // DDP prepares no reduction where gradients are off
			}
			switch event.Kind {
			case loop.Forward:
				if w, is := pass.Outermost(event.On); is != pyscan.No && w.Kind == workspace.DDP {
					forwards = append(forwards, forward{event, w, l.PassageOf(event, in, loop.NoSyncContext)})
				}
			case loop.Backward:
				for _, c := range event.Contexts {
					_, _, model := noSync(c)
					if w, is := pass.Outermost(model); is != pyscan.No && w.Kind == workspace.DDP {
						under := l.PassageOf(event, in, loop.NoSyncContext).Guard
						checkForward(pass, l, event, c, under.With(c.Guard...), w, forwards, reported)
					}
				}
			}
		}
	},
}

// forward is a forward pass of a DDP model.
type forward struct {
	*loop.Event
	wrapper workspace.Wrapper
	passage loop.Passage
}

// checkForward looks for the last forward of the model before its backward, on each way that leads to it inside of no_sync.
func checkForward(pass *lint.Pass, l *loop.Loop, backward *loop.Event, c loop.Context, under loop.Guard, w workspace.Wrapper, forwards []forward,
	reported map[source.Place]bool) {
	var last *loop.Event
	var passages []loop.Passage
	for _, f := range forwards {
		if f.wrapper.Call == w.Call {
			passages = append(passages, f.passage)
			if len(f.passage.Inside) == 0 || last == nil {
				last = f.Event
			}
		}
	}
	if last == nil || c.Item == nil {
		return
	}
	if inside, outside := loop.LastBefore(pass, passages, under); inside || !outside {
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
