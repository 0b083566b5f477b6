package amp

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan/loop"
)

//go:embed backward-inside-autocast.md
var docBackwardInsideAutocast string

// BackwardInsideAutocast finds backward passes under autocast.
var BackwardInsideAutocast = &lint.Rule{
	Name:     "backward-inside-autocast",
	Family:   "amp",
	Since:    "0.1",
	Doc:      docBackwardInsideAutocast,
	Severity: lint.Info,
	Strict:   true,
	Mentions: loop.Mentions,
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		done := map[source.Place]bool{}
		for _, h := range happenings(l) {
			if h.Kind != loop.Backward || h.In(loop.NoGradContext) {
				continue
			}
			at, ok := spot(l, h)
			if !ok || done[at] {
				continue
			}
			for _, c := range h.Contexts {
				if c.Kind != loop.AutocastContext {
					continue
				}
				done[at] = true
				d := pass.Reportf(at, "backward runs under autocast, which PyTorch advises against: it takes the dtypes that forward chose, and code that backward runs anew chooses again")
				d.Note(c.Scope.Module.File.At(c.Expr.Span()), "autocast is entered here")
				d.Help("close autocast after the loss, and call backward outside it")
				break
			}
		}
	},
}
