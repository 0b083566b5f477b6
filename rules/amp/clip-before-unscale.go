package amp

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

//go:embed clip-before-unscale.md
var docClipBeforeUnscale string

// ClipBeforeUnscale finds gradient clipping between a scaled backward and the scaler's step.
var ClipBeforeUnscale = &lint.Rule{
	Name:     "clip-before-unscale",
	Family:   "amp",
	Since:    "0.1",
	Doc:      docClipBeforeUnscale,
	Severity: lint.Error,
	Fix:      lint.SometimesFix,
	Mentions: loop.Mentions,
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		events := happenings(l)
		done := map[source.Place]bool{}
		var last *loop.Event // the scaler's step that an earlier finding is about
		for i, clip := range events {
			if clip.Kind != loop.Clip || clip.In(loop.NoGradContext) || ownsScaler(pass, clip.Event) {
				continue
			}
			step := scaledStep(pass, events, i)
			if step == nil || step == last {
				continue
			}
			at, ok := spot(l, clip)
			if !ok || done[at] {
				continue
			}
			done[at], last = true, step
			reportClip(pass, at, clip.Event, step)
		}
	},
}

// scaledStep is the scaler's step that applies the gradients clipped by event i, where those are still multiplied by the
// scale; nil where they are not, or nobody knows.
func scaledStep(pass *lint.Pass, events []happening, i int) *loop.Event {
	clip := events[i]
	var backward *loop.Event
	for j := i - 1; j >= 0 && backward == nil; j-- {
		e := events[j]
		if excludes(e.Guard, clip.Guard) {
			continue
		}
		switch e.Kind {
		case loop.Unscale:
			return nil
		case loop.Backward:
			if e.By == loop.Plain && alternative(events, j, clip.Event) {
				continue // the other side of an `if amp`
			}
			if e.By != loop.Scaler || scalerEnabled(pass, e.Event) == pyscan.No {
				return nil
			}
			backward = e.Event
		case loop.Step:
			if e.By == loop.Scaler {
				return nil
			}
		}
	}
	if backward == nil {
		return nil
	}
	for j := i + 1; j < len(events); j++ {
		e := events[j]
		if excludes(e.Guard, clip.Guard) || excludes(e.Guard, backward.Guard) {
			continue
		}
		switch {
		case e.Kind == loop.Step && e.By == loop.Scaler && len(e.Call.Args) > 0:
			return e.Event
		case e.Kind == loop.Step, e.Kind == loop.Backward:
			return nil
		}
	}
	return nil
}

// alternative reports whether a backward that is not scaled stands in for a scaled one before it, on the other side of a
// condition which the clip does not ask.
func alternative(events []happening, j int, clip *loop.Event) bool {
	for k := j - 1; k >= 0 && k >= j-4; k-- {
		if e := events[k]; e.Kind == loop.Backward && e.By == loop.Scaler && excludes(e.Guard, events[j].Guard) && !excludes(e.Guard, clip.Guard) {
			return true
		}
	}
	return false
}

// ownsScaler reports whether a clip unscales by itself, or allows for the scale: Accelerate's and Fabric's do, and so does a limit that is
// computed from scaler.get_scale().
func ownsScaler(pass *lint.Pass, clip *loop.Event) bool {
	if clip.Receiver != nil {
		name := strings.ToLower(pyscan.Path(clip.Receiver))
		if strings.Contains(name, "accelerator") || strings.Contains(name, "fabric") || pass.IsA(clip.On, "accelerate.Accelerator", "lightning_fabric.Fabric", "lightning.Fabric") == pyscan.Yes {
			return true
		}
	}
	for _, e := range append([]syntax.Expr{workspace.Argument(clip.Call, "max_norm", 1)}, workspace.Argument(clip.Call, "clip_value", 1)) {
		if e != nil && mentionsScale(clip.Scope, e, 3) {
			return true
		}
	}
	return false
}

// mentionsScale reports whether an expression, or what its names were assigned, asks for a scale.
func mentionsScale(scope *pyscan.Scope, e syntax.Expr, depth int) bool {
	found := false
	syntax.Inspect(e, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Attribute:
			found = found || strings.Contains(strings.ToLower(n.Attr), "scale")
		case *syntax.Name:
			found = found || strings.Contains(strings.ToLower(n.ID), "scale")
			if def := scope.Def(n); !found && depth > 0 && def != nil && def.Kind == pyscan.AssignDef && def.Value != nil {
				found = mentionsScale(scope, def.Value, depth-1)
			}
		}
		return !found
	})
	return found
}

func reportClip(pass *lint.Pass, at source.Place, clip, step *loop.Event) {
	d := pass.Reportf(at, "gradients are clipped while they are still multiplied by the loss scale (65536 at first): the limit is met by nearly every step, so gradients shrink to almost nothing")
	d.Note(step.At, "the scaler unscales them only here")
	if at != clip.At {
		d.Note(clip.At, "they are clipped here")
	}
	scaler, optimizer := text(step.Scope, step.Receiver), text(step.Scope, step.Call.Args[0])
	if stmt := statement(clip); stmt != nil && clip.Scope == step.Scope && at == clip.At {
		file := clip.Scope.Module.File
		start := stmt.Span().Start
		line := file.LineSpan(file.Line(start))
		if indent := file.Slice(source.Span{Start: line.Start, End: start}); strings.TrimSpace(indent) == "" {
			d.Suggest("unscale first", lint.Safe, lint.Edit{At: file.At(source.Span{Start: start, End: start}), Text: scaler + ".unscale_(" + optimizer + ")\n" + indent})
			return
		}
	}
	d.Help("call %s.unscale_(%s) before clipping", scaler, optimizer)
}

// statement is the simple statement that an event is in, or nil.
func statement(e *loop.Event) syntax.Stmt {
	around := workspace.Around(e.Scope, e.Node)
	if len(around) == 0 {
		return nil
	}
	switch stmt := around[len(around)-1].(type) {
	case *syntax.ExprStmt, *syntax.Assign, *syntax.AnnAssign:
		return stmt
	}
	return nil
}
