package checkpointing

import (
	_ "embed"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed checkpoint-frozen-base.md
var docCheckpointFrozenBase string

// gradientsRequired are words of what makes the input of the first block require gradients.
var gradientsRequired = []string{"require_grads", "prepare_model_for", "modules_to_save", "FastLanguageModel", "make_inputs_require_grad"}

// CheckpointFrozenBase finds adapters on a frozen base whose reentrant checkpoints get no input that requires a gradient.
var CheckpointFrozenBase = &lint.Rule{
	Name:     "checkpoint-frozen-base",
	Family:   "checkpointing",
	Since:    "0.1",
	Doc:      docCheckpointFrozenBase,
	Severity: lint.Error,
	Fix:      lint.SometimesFix,
	Mentions: []string{"gradient_checkpointing"},
	Looks:    gradientsRequired,
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		if words(module, gradientsRequired...) {
			return
		}
		for _, e := range enablings(pass, module) {
			if e.reentrant != pyscan.Yes && !e.unsaid || otherCondition(e) {
				continue
			}
			freeze, ok := frozenBefore(pass, module, e)
			if !ok {
				continue
			}
			message := "the base model is frozen, so no checkpointed layer gets an input that requires a gradient: " +
				"backward raises \"element 0 of tensors does not require grad\", or the adapters do not train"
			if e.unsaid {
				message = "under transformers before 5 " + message
			}
			d := pass.Reportf(module.File.At(e.call.Span()), "%s", message)
			switch {
			case e.unsaid:
				d.As(lint.Info)
			case conditional(e.scope, e.call):
				d.As(lint.Warning)
			}
			d.Note(freeze, "the base is frozen here")
			file := module.File
			stmts := workspace.Around(e.scope, e.call)
			if e.model != nil && len(stmts) > 0 {
				start := stmts[len(stmts)-1].Span().Start
				line := file.LineSpan(file.Line(start))
				indent := file.Slice(source.Span{Start: line.Start, End: start})
				if _, simple := stmts[len(stmts)-1].(*syntax.ExprStmt); simple && isBlank(indent) {
					d.Suggest("let the embedding's output require gradients", lint.Safe, lint.Edit{At: file.At(source.Span{Start: start, End: start}), Text: file.Slice(e.model.Span()) + ".enable_input_require_grads()\n" + indent})
					continue
				}
			}
			d.Help("call model.enable_input_require_grads(), or pass gradient_checkpointing_kwargs={\"use_reentrant\": False}")
		}
	},
}

// otherCondition reports whether checkpointing is turned on under a condition that asks for more than that: `if args.checkpointing and not
// args.use_lora`.
func otherCondition(e enabling) bool {
	for _, stmt := range workspace.Around(e.scope, e.call) {
		if branch, ok := stmt.(*syntax.If); ok && !strings.Contains(strings.ToLower(pyscan.Path(branch.Test)), "checkpoint") {
			return true
		}
	}
	return false
}

func isBlank(s string) bool {
	for _, r := range s {
		if r != ' ' && r != '\t' {
			return false
		}
	}
	return true
}

var adapters = &pyscan.Words{Alias: true, Names: map[string]bool{"get_peft_model": true}}

// frozenBefore finds where the base of a model was frozen before its checkpointing is turned on: adapters of PEFT, which looks after checkpointing only if it was
// on by then, or requires_grad switched off for all parameters. Arguments of a trainer turn it on when training starts.
func frozenBefore(pass *lint.Pass, module *pyscan.Module, e enabling) (at source.Place, ok bool) {
	for node := range module.Tree.All() {
		switch n := node.(type) {
		case *syntax.Call:
			scope := pyscan.ScopeAt(module, n)
			attr, method := n.Func.(*syntax.Attribute)
			switch {
			case len(n.Args) > 0 && pass.Near(module, adapters, n.Func) && pass.Library(scope, nil, n.Func) == "peft.get_peft_model":
				if e.model == nil && !enabledBefore(module, n) || scope == e.scope && n.Span().End <= e.call.Span().Start && adapts(module, n, e.model) {
					return module.File.At(n.Span()), true
				}
			case method && attr.Attr == "requires_grad_" && len(n.Args) == 1 && isFalseExpr(n.Args[0]) && e.model != nil:
				if scope == e.scope && pyscan.Path(attr.Value) == pyscan.Path(e.model) && pyscan.Path(e.model) != "" && n.Span().End <= e.call.Span().Start && !thawed(module, e.model) && !conditional(scope, n) {
					return module.File.At(n.Span()), true
				}
			}
		case *syntax.For: // for p in model.parameters(): p.requires_grad = False
			call, is := n.Iter.(*syntax.Call)
			if !is || e.model == nil || len(n.Body) != 1 {
				continue
			}
			attr, is := call.Func.(*syntax.Attribute)
			if !is || attr.Attr != "parameters" || pyscan.Path(attr.Value) != pyscan.Path(e.model) || pyscan.Path(e.model) == "" || pyscan.ScopeAt(module, n) != e.scope {
				continue
			}
			if assign, is := n.Body[0].(*syntax.Assign); is {
				if target, is := assign.Targets[0].(*syntax.Attribute); is && target.Attr == "requires_grad" && isFalseExpr(assign.Value) && !thawed(module, e.model) && !conditional(e.scope, n) {
					return module.File.At(n.Span()), true
				}
			}
		}
	}
	return at, false
}

// enabledBefore reports whether a file turns checkpointing on before it adds adapters: PEFT then sets its hook on the inputs by
// itself (PeftModel.__init__ looks at is_gradient_checkpointing).
func enabledBefore(module *pyscan.Module, adding *syntax.Call) bool {
	for node := range module.Tree.All() {
		if call, ok := node.(*syntax.Call); ok && call.Span().End <= adding.Span().Start {
			if attr, ok := call.Func.(*syntax.Attribute); ok && attr.Attr == "gradient_checkpointing_enable" {
				return true
			}
		}
	}
	return false
}

// adapts reports whether get_peft_model gives the model that is meant: it is assigned to the same name.
func adapts(module *pyscan.Module, call *syntax.Call, model syntax.Expr) bool {
	for node := range module.Tree.All() {
		if assign, ok := node.(*syntax.Assign); ok && assign.Value == syntax.Expr(call) {
			return sameModel(assign.Targets[0], model)
		}
	}
	return false
}

// thawed reports whether a file switches requires_grad on again for some parameter outside of layers, or says nothing about what does train.
func thawed(module *pyscan.Module, model syntax.Expr) bool {
	return words(module, workspace.EmbeddingText()...) || !words(module, "lora", "LoRA", "Lora", "adapter", "Adapter", "requires_grad = True", "requires_grad_(True)", "peft")
}

func isFalseExpr(e syntax.Expr) bool {
	c, ok := e.(*syntax.Constant)
	return ok && c.Kind == syntax.FalseConstant
}
