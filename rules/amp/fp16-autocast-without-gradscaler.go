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

//go:embed fp16-autocast-without-gradscaler.md
var docFp16AutocastWithoutGradscaler string

// Fp16AutocastWithoutGradscaler finds training in float16 whose loss nobody scales.
var Fp16AutocastWithoutGradscaler = &lint.Rule{
	Name:     "fp16-autocast-without-gradscaler",
	Family:   "amp",
	Since:    "0.1",
	Doc:      docFp16AutocastWithoutGradscaler,
	Severity: lint.Warning,
	Mentions: loop.Mentions,
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		if l.Framework != "" && l.Framework != "caller" {
			return
		}
		done := map[source.Place]bool{}
		for _, w := range loop.Windows(l, pass) {
			checkUnscaled(pass, l, w, done)
		}
	},
}

func checkUnscaled(pass *lint.Pass, l *loop.Loop, w *loop.Window, done map[source.Place]bool) {
	if !plainTraining(pass, l, w) {
		return
	}
	backward := w.Backward[0]
	list := autocastsFor(pass, w.Micro, backward)
	if len(list) == 0 {
		return
	}
	for _, a := range list {
		if a.enabled == pyscan.No || a.dtype != "float16" {
			return
		}
	}
	a := list[0]
	at, here := a.place(), true
	if at.Path != l.Scope.Module.File.Path {
		if at, here = spot(l, happening{backward, w.Micro}); !here {
			return
		}
		here = false
	}
	if done[at] {
		return
	}
	done[at] = true
	what := "written"
	if !a.written {
		what = "the default of this autocast"
	}
	d := pass.Reportf(at, "float16 (%s) without a GradScaler: gradients below 6e-8 become zero in backward, silently, and the model learns worse or not at all", what)
	switch {
	case a.enabled == pyscan.Maybe:
		d.As(lint.Info)
	case a.written:
		d.As(lint.Error)
	}
	d.Note(backward.At, "the loss is not scaled here")
	if !here {
		d.Note(a.place(), "autocast computes in float16 here")
	}
	d.Help("pass dtype=torch.bfloat16, or scale the loss with torch.amp.GradScaler")
}

// plainTraining reports whether a window surely trains, with plain backward and plain optimizer steps only, and nothing around it
// may scale.
func plainTraining(pass *lint.Pass, l *loop.Loop, w *loop.Window) bool {
	if len(w.Steps) == 0 {
		return false
	}
	for _, step := range w.Steps {
		if step.By != loop.Plain || ownLoss(pass, step) {
			return false
		}
	}
	asked := map[*pyscan.Scope]bool{} // thousands of backward calls can stand in one function
	for _, backward := range w.Backward {
		if backward.By != loop.Plain || backward.In(loop.NoGradContext) || backward.Loss == nil || scaledByHand(pass, backward.Scope, backward.Loss, 3) {
			return false
		}
		if !asked[backward.Scope] && mayScale(pass, backward.Scope) {
			return false
		}
		asked[backward.Scope] = true
	}
	if mayScale(pass, l.Scope) || mayScale(pass, w.Micro.Scope) {
		return false
	}
	for event := range l.All {
		switch {
		case event.By == loop.Scaler, event.Kind == loop.ScalerUpdate, event.Kind == loop.Unscale:
			return false
		case event.Kind == loop.Forward:
			wrappers, _, _ := pass.Wrappers(event.On)
			for _, wrapper := range wrappers {
				switch wrapper.Kind {
				case workspace.DeepSpeedEngine, workspace.AcceleratePrepared, workspace.FabricSetup:
					return false
				}
			}
		}
	}
	return true
}

// ownLoss reports whether an optimizer is one of a framework or of the project, which may scale by itself.
func ownLoss(pass *lint.Pass, step *loop.Event) bool {
	for _, one := range workspace.Alternatives(pass.Expand(orUnknown(step.On))) {
		switch one := one.(type) {
		case *pyscan.Wrapped:
			return true
		case *pyscan.Instance:
			name := pass.ExternalName(one.Of)
			return name == "" || strings.Contains(name, "FP16") || strings.HasPrefix(name, "deepspeed.runtime")
		}
	}
	return false
}

// scaledByHand reports whether a loss is multiplied by something that may be a static scale.
func scaledByHand(pass *lint.Pass, scope *pyscan.Scope, loss syntax.Expr, depth int) bool {
	switch e := loss.(type) {
	case *syntax.BinOp:
		if e.Op == syntax.Mult {
			for _, side := range []syntax.Expr{e.Left, e.Right} {
				if c, ok := pass.Constant(pass.Eval(scope, nil, side)); ok {
					if f, ok := c.Number(); ok && f >= 8 {
						return true
					}
				}
				if strings.Contains(strings.ToLower(pyscan.Path(side)), "scale") {
					return true
				}
			}
		}
		return scaledByHand(pass, scope, e.Left, depth) || scaledByHand(pass, scope, e.Right, depth)
	case *syntax.Name:
		if def := scope.Def(e); def != nil && depth > 0 {
			if def.Kind == pyscan.AugDef {
				return def.Op == syntax.Mult
			}
			if def.Value != nil && len(def.Path()) == 0 {
				return scaledByHand(pass, scope, def.Value, depth-1)
			}
		}
	}
	return false
}

// autocastsFor lists the autocasts under which the loss of a backward may be computed: those in the same iteration, those around the
// loop, and those that its calls bring.
func autocastsFor(pass *lint.Pass, micro *loop.Loop, backward *loop.Event) []autocast {
	var list []autocast
	seen := map[*syntax.Call]bool{}
	add := func(found []autocast) {
		for _, a := range found {
			if !seen[a.call] {
				seen[a.call] = true
				list = append(list, a)
			}
		}
	}
	if micro.Node != nil && micro.Scope == backward.Scope {
		add(autocastsIn(pass, micro.Scope, micro.Frame, micro.Node))
	} else if backward.Scope.Node != nil {
		add(autocastsIn(pass, backward.Scope, backward.Frame, backward.Scope.Node))
	}
	for event := range micro.All {
		if event.Order > backward.Order || event.In(loop.NoGradContext) {
			continue
		}
		for _, c := range event.Contexts {
			add(autocastsOf(pass, c))
		}
	}
	return list
}
