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

//go:embed scaled-loss-logged.md
var scaledLossLoggedDoc string

// ScaledLossLogged finds losses that are logged after they were divided for accumulation.
var ScaledLossLogged = &lint.Rule{
	Name:     "scaled-loss-logged",
	Family:   "accumulation",
	Since:    "0.1",
	Doc:      scaledLossLoggedDoc,
	Severity: lint.Info,
	Mentions: loop.Mentions,
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		reported := map[source.Place]bool{}
		for _, w := range loop.Windows(l, pass) {
			if w.Accumulates != pyscan.Yes || len(w.Steps) == 0 {
				continue
			}
			for _, read := range w.Micro.Deep(loop.Sync) {
				checkLogged(pass, l, w, read, reported)
			}
			checkRunning(pass, w, reported)
		}
	},
}

func checkLogged(pass *lint.Pass, root *loop.Loop, w *loop.Window, read *loop.Event, reported map[source.Place]bool) {
	if read.Call == nil || pyscan.Path(read.Receiver) == "" || !logs(read) {
		return
	}
	division, undone := byAccumulation(pass, read.Scope, read.Frame, read.Receiver, isN(pass, w))
	at := root.Place(read)
	if division == nil || undone || !division.On || reported[at] {
		return
	}
	reported[at] = true
	by := division.Scope.Module.File.Slice(division.By.Span())
	d := pass.Reportf(at, "what is logged is the loss divided by %s, so it falls when the accumulation grows and cannot be compared with other runs", by)
	d.Note(division.Scope.Module.File.At(division.Node.Span()), "the loss is divided here").Help("log the loss before it is divided, or its sum over the window")
}

// loggers are functions that show a number as it is.
var loggers = map[string]bool{"print": true, "log": true, "info": true, "debug": true, "add_scalar": true, "set_postfix": true, "set_description": true, "set_postfix_str": true, "log_metrics": true}

// logs reports whether a read of a loss goes into a call that logs it, with no arithmetic on the way.
func logs(read *loop.Event) bool {
	around := workspace.Around(read.Scope, read.Call)
	if len(around) == 0 {
		return false
	}
	stmt, ok := around[len(around)-1].(*syntax.ExprStmt)
	if !ok {
		return false
	}
	call, ok := stmt.Value.(*syntax.Call)
	if !ok || !loggers[pyscan.LastName(call.Func)] {
		return false
	}
	plain := true
	syntax.Inspect(call, func(n syntax.Node) bool {
		if op, ok := n.(*syntax.BinOp); ok && op.Span().Contains(read.Call.Span()) && op.Op != syntax.Mod {
			plain = false
		}
		return plain
	})
	return plain
}
