package memory

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed item-sync-per-micro-batch.md
var itemSyncPerMicroBatchDoc string

// ItemSyncPerMicroBatch finds values that are read from the device in every micro-batch.
var ItemSyncPerMicroBatch = &lint.Rule{
	Name:     "item-sync-per-micro-batch",
	Family:   "memory",
	Since:    "0.1",
	Doc:      itemSyncPerMicroBatchDoc,
	Severity: lint.Info,
	Strict:   true,
	Mentions: loop.Mentions,
	Loop: func(pass *lint.Pass, root *loop.Loop) {
		reported := map[source.Place]bool{}
		read := map[hostRead]bool{}
		report := func(l *loop.Loop, at source.Place, what string) {
			if reported[at] {
				return
			}
			reported[at] = true
			d := pass.Reportf(at, "%s makes the host wait for the device in every micro-batch, so that it cannot queue the next one meanwhile", what)
			if accumulates(pass, root, l) {
				d.As(lint.Warning)
			}
			d.Help("add up a detached tensor on the device, and read it when it is logged")
		}
		for event, in := range root.All {
			if len(in.Via) > 0 {
				continue // the loop stands in another function, and is looked at there
			}
			if event.Kind == loop.Sync && in.Micro == pyscan.Yes && event.Guard.Always() == pyscan.Yes && !event.In(loop.NoGradContext) {
				at := event.At
				if len(event.Via) > 0 {
					at = event.Via[0]
				}
				attr, _ := event.Call.Func.(*syntax.Attribute)
				report(in, at, "."+attr.Attr+"()")
			}
			if event.Kind == loop.Backward && in.Micro == pyscan.Yes && in.Node != nil && len(event.Via) == 0 {
				key := hostRead{in, pyscan.Path(event.Loss)}
				if read[key] || len(read) >= event.Scope.Module.File.Affordable() {
					continue
				}
				read[key] = true
				hostReads(in, event, func(call *syntax.Call, what string) { report(in, event.Scope.Module.File.At(call.Span()), what) })
			}
		}
	},
}

// hostRead is a loss that is looked for in a loop.
type hostRead struct {
	in   *loop.Loop
	path string
}

// hostReads finds float(loss), print(loss), loss.cpu() and loss.numpy() that stand directly in the body of a loop.
func hostReads(l *loop.Loop, backward *loop.Event, visit func(*syntax.Call, string)) {
	path := pyscan.Path(backward.Loss)
	if path == "" {
		return
	}
	for _, stmt := range workspace.Blocks(l.Node)[0] {
		switch stmt := stmt.(type) {
		case *syntax.If:
			if len(stmt.Body) == 0 {
				continue // an unfinished file
			}
			if _, skips := stmt.Body[len(stmt.Body)-1].(*syntax.Continue); skips {
				return // what is behind it runs in some micro-batches only
			}
			continue
		case *syntax.For, *syntax.While, *syntax.Try, *syntax.With, *syntax.FunctionDef, *syntax.ClassDef:
			continue
		}
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			call, ok := n.(*syntax.Call)
			if !ok {
				return true
			}
			if name, ok := call.Func.(*syntax.Name); ok && (name.ID == "float" || name.ID == "print") {
				for _, argument := range call.Args {
					if printed(argument, path) {
						visit(call, name.ID+"("+path+")")
						break
					}
				}
			}
			if attr, ok := call.Func.(*syntax.Attribute); ok && (attr.Attr == "cpu" || attr.Attr == "numpy") {
				value := attr.Value
				if inner, ok := value.(*syntax.Call); ok {
					if detach, ok := inner.Func.(*syntax.Attribute); ok && detach.Attr == "detach" {
						value = detach.Value
					}
				}
				if pyscan.Path(value) == path {
					visit(call, "."+attr.Attr+"()")
				}
			}
			return true
		})
	}
}

// printed reports whether an argument is the value itself, or a text into which it is written.
func printed(e syntax.Expr, path string) bool {
	if pyscan.Path(e) == path {
		return true
	}
	text, ok := e.(*syntax.JoinedStr)
	if !ok {
		return false
	}
	for _, part := range text.Values {
		if field, ok := part.(*syntax.FormattedValue); ok && pyscan.Path(field.Value) == path {
			return true
		}
	}
	return false
}

func accumulates(pass *lint.Pass, root, micro *loop.Loop) bool {
	for _, w := range loop.Windows(root, pass) {
		if w.Micro == micro && w.Accumulates == pyscan.Yes {
			return true
		}
	}
	return false
}
