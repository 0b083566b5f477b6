package checkpointing

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed checkpoint-output-head.md
var checkpointOutputHeadDoc string

// CheckpointOutputHead finds output heads that are recomputed for nothing.
var CheckpointOutputHead = &lint.Rule{
	Name:     "checkpoint-output-head",
	Family:   "checkpointing",
	Since:    "0.1",
	Doc:      checkpointOutputHeadDoc,
	Severity: lint.Warning,
	Fix:      lint.SometimesFix,
	Mentions: []string{"checkpoint"},
	Hides:    []string{"checkpoint-missing-use-reentrant", "checkpoint-shared-weights"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		for _, c := range pass.Checkpoints(module) {
			if (c.Function != nil || c.Decorates != nil) && (c.Kind == workspace.CheckpointCall || c.Kind == workspace.CheckpointWrapper) && !pass.WithoutGradients(c.Scope, c.Call) {
				checkHead(pass, c)
			}
			if c.Kind == workspace.CheckpointApply {
				if _, what := applied(pass, c); what != "" {
					severity := lint.Info
					if appliedReentrant(pass, c) == pyscan.Yes {
						severity = lint.Warning
					}
					d := pass.Reportf(at(c), "%s puts a checkpoint around every linear layer, the output head too: the largest matrix product of the model is computed twice, and saves nothing", what).As(severity)
					d.Help("name the blocks in check_fn, not their parts")
				}
			}
		}
	},
}

func checkHead(pass *lint.Pass, c *workspace.Checkpoint) {
	leaf := ""
	if c.Function != nil {
		leaf = workspace.Leaf(c.Function)
	}
	var found *head
	direct := true
	for _, one := range workspace.Alternatives(pass.Target(c)) {
		if h := headOf(pass, c.Scope, one, leaf); h != nil {
			found = h
		} else if f, ok := one.(*pyscan.Func); ok {
			if found, leaf = onlyHead(pass, f); found != nil {
				direct = false
			}
		}
	}
	if found == nil || !found.sure && feedsModule(pass, c.Scope, c.Call) {
		return
	}
	at := c.Scope.Module.File.At(c.Call.Span())
	what := "the output head " + quoted(leaf)
	if found.named {
		what = quoted(leaf) + ", which is the output head by its name"
	}
	if c.Reentrant != pyscan.Yes {
		d := pass.Reportf(at, "%s is computed twice and saves nothing: a linear layer keeps its input, not its output", comma(what)).As(lint.Info)
		d.Help("call the head directly, or checkpoint head and loss in one function: that saves the logits")
		return
	}
	d := pass.Reportf(at, "%s, the largest matrix product of the model, is computed twice and no memory is saved: "+
		"a linear layer keeps its input, not its output", what)
	if tied := tiedWeight(pass, c); tied != nil {
		if w, ok := synchronised(pass, c); ok {
			d.As(lint.Error).Message = fmt.Sprintf("the output head %s shares its weight with the embedding, so a reentrant checkpoint fires its gradient hooks twice: %s marks the parameter ready twice and raises, or lets ranks drift apart", quoted(leaf), w.Kind)
			noteWrapper(d, w)
		}
		d.Note(c.Scope.Module.File.At(tied.Span()), "its weight is shared with the embedding: under DDP or ZeRO-2/3 a reentrant checkpoint then fires gradient hooks twice")
	}
	if !found.named {
		d.Note(found.value.Site().Place(), "the head is made here")
	}
	if found.table != nil {
		d.Note(found.table.Site().Place(), "this embedding has as many rows as the head has outputs")
	}
	if direct && len(c.Inputs) > 0 && c.Kind == workspace.CheckpointCall {
		safety := lint.Safe
		if found.named {
			safety = lint.Unsafe
		}
		fixDirectCall(d, c, safety)
		return
	}
	d.Help("call the head directly, or checkpoint head and loss in one function: that saves the logits")
}

// comma closes a clause that is put after the name of something.
func comma(what string) string {
	if strings.Contains(what, ", ") {
		return what + ","
	}
	return what
}

// head is an output head, and what says that it is one.
type head struct {
	value pyscan.Value
	sure  bool             // by its class beside its name or the vocabulary
	named bool             // its class is not known: by its name alone
	table *pyscan.Instance // by this embedding over the same vocabulary
}

// headOf says whether a module that a scope uses is an output head; nil when it is not.
func headOf(pass *lint.Pass, scope *pyscan.Scope, value pyscan.Value, leaf string) *head {
	if pass.Head(value, leaf) == pyscan.Yes {
		return &head{value: value, sure: true}
	}
	if pass.CalledHead(value, leaf) {
		return &head{value: value, named: true}
	}
	if table := pass.HeadOfTable(scope, value); table != nil {
		return &head{value: value, table: table}
	}
	return nil
}

// feedsModule reports whether what a call gives goes into another module alone: then it is not the last layer. A loss gets
// targets beside it.
func feedsModule(pass *lint.Pass, scope *pyscan.Scope, call *syntax.Call) bool {
	found := false
	holds := func(e syntax.Expr) bool {
		if e.Span().Contains(call.Span()) {
			return true
		}
		name, ok := e.(*syntax.Name)
		if !ok {
			return false
		}
		def := scope.Def(name)
		return def != nil && def.Kind == pyscan.AssignDef && def.Value != nil && def.Value.Span().Contains(call.Span())
	}
	for _, stmt := range scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			outer, ok := n.(*syntax.Call)
			if !ok || found || outer == call || len(outer.Args) != 1 || len(outer.Keywords) > 0 || !holds(outer.Args[0]) {
				return !found
			}
			attr, ok := outer.Func.(*syntax.Attribute)
			if !ok || pyscan.Path(attr) != "self."+attr.Attr {
				return true
			}
			for _, one := range workspace.Alternatives(pass.Expand(pass.Eval(scope, nil, outer.Func))) {
				found = found || holdsParameters(pass, one, 2) != pyscan.No
			}
			return !found
		})
	}
	return found
}

// tiedWeight is the statement that ties the checkpointed module's weight to another one, or nil.
func tiedWeight(pass *lint.Pass, c *workspace.Checkpoint) syntax.Stmt {
	if c.Function == nil {
		return nil
	}
	return pass.TiedEmbedding(c.Scope, c.Function)
}

// onlyHead looks whether a function does nothing with its input but apply an output head: no loss in it, which would make
// the checkpoint worth its while.
func onlyHead(pass *lint.Pass, f *pyscan.Func) (found *head, leaf string) {
	calls := pass.Applies(f)
	if len(calls) == 0 || len(calls) > 2 {
		return nil, ""
	}
	for _, call := range calls {
		for _, one := range workspace.Alternatives(call.Callee) {
			if h := headOf(pass, f.Scope, one, call.Leaf); h != nil {
				found, leaf = h, call.Leaf
			}
		}
		if attr, ok := call.Call.Func.(*syntax.Attribute); ok && attr.Attr == "float" {
			continue
		}
		if found == nil {
			return nil, ""
		}
	}
	return found, leaf
}

// fixDirectCall replaces checkpoint(f, x) by f(x).
func fixDirectCall(d *lint.Diagnostic, c *workspace.Checkpoint, safety lint.Safety) {
	file := c.Scope.Module.File
	text := file.Slice(c.Function.Span()) + "("
	for i, input := range c.Inputs {
		if i > 0 {
			text += ", "
		}
		if star, ok := input.(*syntax.Starred); ok && star.Span() == star.Value.Span() { // a list that a helper spreads
			text += "*"
		}
		text += file.Slice(input.Span())
	}
	d.Suggest("call it directly", safety, lint.Edit{At: file.At(c.Call.Span()), Text: text + ")"})
}
