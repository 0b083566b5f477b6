package checkpointing

import (
	_ "embed"
	"fmt"

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
	var head pyscan.Value
	direct := true
	for _, one := range workspace.Alternatives(pass.Target(c)) {
		if pass.Head(one, leaf) == pyscan.Yes {
			head = one
		} else if f, ok := one.(*pyscan.Func); ok {
			if head, leaf = onlyHead(pass, f); head != nil {
				direct = false
			}
		}
	}
	if head == nil {
		return
	}
	at := c.Scope.Module.File.At(c.Call.Span())
	if c.Reentrant != pyscan.Yes {
		d := pass.Reportf(at, "the output head %s is computed twice and saves nothing: a linear layer keeps its input, not its output", quoted(leaf)).As(lint.Info)
		d.Help("call the head directly, or checkpoint head and loss in one function: that saves the logits")
		return
	}
	d := pass.Reportf(at, "the output head %s, the largest matrix product of the model, is computed twice and no memory is saved: a linear layer keeps its input, not its output", quoted(leaf))
	if tied := tiedWeight(pass, c); tied != nil {
		if w, ok := synchronised(pass, c); ok {
			d.As(lint.Error).Message = fmt.Sprintf("the output head %s shares its weight with the embedding, so a reentrant checkpoint fires its gradient hooks twice: %s marks the parameter ready twice and raises, or lets ranks drift apart", quoted(leaf), w.Kind)
			noteWrapper(d, w)
		}
		d.Note(c.Scope.Module.File.At(tied.Span()), "its weight is shared with the embedding: under DDP or ZeRO-2/3 a reentrant checkpoint then fires gradient hooks twice")
	}
	d.Note(head.Site().Place(), "the head is made here")
	if direct && len(c.Inputs) > 0 && c.Kind == workspace.CheckpointCall {
		fixDirectCall(d, c, lint.Safe)
		return
	}
	d.Help("call the head directly, or checkpoint head and loss in one function: that saves the logits")
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
func onlyHead(pass *lint.Pass, f *pyscan.Func) (head pyscan.Value, leaf string) {
	calls := pass.Applies(f)
	if len(calls) == 0 || len(calls) > 2 {
		return nil, ""
	}
	for _, call := range calls {
		for _, one := range workspace.Alternatives(call.Callee) {
			if pass.Head(one, call.Leaf) == pyscan.Yes {
				head, leaf = one, call.Leaf
			}
		}
		if attr, ok := call.Call.Func.(*syntax.Attribute); ok && attr.Attr == "float" {
			continue
		}
		if head == nil {
			return nil, ""
		}
	}
	return head, leaf
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
