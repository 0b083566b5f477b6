package checkpointing

import (
	_ "embed"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
)

//go:embed checkpoint-fsdp-double-or-order.md
var docCheckpointFsdpDoubleOrOrder string

// CheckpointFsdpDoubleOrOrder finds activation checkpointing that is asked for twice under FSDP, or put inside its units.
var CheckpointFsdpDoubleOrOrder = &lint.Rule{
	Name:     "checkpoint-fsdp-double-or-order",
	Family:   "checkpointing",
	Since:    "0.1",
	Doc:      docCheckpointFsdpDoubleOrOrder,
	Severity: lint.Error,
	Mentions: []string{"activation_checkpointing", "checkpoint_wrapper"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		for _, e := range enablings(pass, module) {
			if e.key != nil {
				checkBoth(pass, module, e)
			}
		}
		for _, c := range pass.Checkpoints(module) {
			if c.Kind == workspace.CheckpointApply && len(c.Call.Args) > 0 {
				checkOrder(pass, c)
			}
		}
	},
	Part: func(pass *lint.Pass, part *workspace.Part) {
		if part.Tree == nil || part.Tree.Root == nil || part.Dialect == nil || part.Dialect.Name == "axolotl" { // which keeps one of the two
			return
		}
		loader := part.Dialect.Loader
		if part.Tree.Format == configs.Flags {
			loader = configs.LoaderFlags
		}
		model := onItem(part.Tree.Root, loader, "gradient_checkpointing", "--gradient_checkpointing")
		for _, item := range part.Tree.Root.Items {
			if item.Key != "fsdp_config" || item.Value == nil {
				continue
			}
			sharded := onItem(item.Value, loader, "activation_checkpointing", "fsdp_activation_checkpointing")
			if model != nil && sharded != nil {
				first, second := model.KeyAt, sharded.KeyAt
				if second.Span.Start < first.Span.Start {
					first, second = second, first
				}
				pass.Reportf(second, bothMessage).Note(first, "the other flag").Help("leave gradient_checkpointing out, and keep FSDP's activation_checkpointing")
			}
		}
	},
}

const bothMessage = "FSDP's activation_checkpointing and gradient_checkpointing are both on: the Trainer raises a ValueError, since each layer would gather its parameters twice for backward"

// onItem is the item of one of the keys that is switched on, or nil.
func onItem(node *configs.Node, loader configs.Loader, keys ...string) *configs.Item {
	for i := range node.Items {
		item := &node.Items[i]
		for _, key := range keys {
			if item.Key == key && item.Value != nil {
				if on, known := item.Value.Bool(loader); known && on {
					return item
				}
			}
		}
	}
	return nil
}

// checkBoth looks at TrainingArguments(gradient_checkpointing=True, fsdp_config={"activation_checkpointing": True}).
func checkBoth(pass *lint.Pass, module *pyscan.Module, e enabling) {
	mapping, ok := pass.Expand(orNothing(pass.Arg(e.scope, nil, e.call, "fsdp_config", -1))).(*pyscan.Mapping)
	if !ok || pass.Arg(e.scope, nil, e.call, "fsdp", -1) == nil {
		return
	}
	for i, key := range mapping.Keys {
		c, ok := pass.Constant(key)
		if !ok {
			continue
		}
		if name, _ := c.Str(); name != "activation_checkpointing" && name != "fsdp_activation_checkpointing" || pass.Truthy(pass.Expand(mapping.Values[i])) != pyscan.Yes {
			continue
		}
		first, second := module.File.At(e.key.Span()), key.Site().Place()
		if second.Path != first.Path || second.Span.Start < first.Span.Start {
			first, second = second, first
		}
		pass.Reportf(second, bothMessage).Note(first, "the other flag").Help("leave gradient_checkpointing out, and keep FSDP's activation_checkpointing")
	}
}

func orNothing(value pyscan.Value) pyscan.Value {
	if value == nil {
		return &pyscan.Unknown{}
	}
	return value
}

// checkOrder looks for FSDP(model) after apply_activation_checkpointing(model) in the same function.
func checkOrder(pass *lint.Pass, c *workspace.Checkpoint) {
	module := c.Scope.Module
	path := pyscan.Path(c.Call.Args[0])
	if path == "" {
		return
	}
	var before, after source.Place
	for _, site := range module.Calls {
		call := site.Call
		if len(call.Args) == 0 || pyscan.Path(call.Args[0]) != path || pyscan.ScopeAt(module, call) != c.Scope {
			continue
		}
		if !strings.HasSuffix(pass.Library(c.Scope, nil, call.Func), ".FullyShardedDataParallel") {
			continue
		}
		if call.Span().Start < c.Call.Span().Start {
			before = module.File.At(call.Span())
		} else if after.IsZero() {
			after = module.File.At(call.Span())
		}
	}
	if after.IsZero() || !before.IsZero() {
		return
	}
	d := pass.Reportf(after, "FSDP wraps what is already in checkpoints, so its units lie inside them: each recomputation gathers the parameters once more").As(lint.Warning)
	d.Note(at(c), "activation checkpointing is applied here")
	d.Help("wrap with FSDP first, then call apply_activation_checkpointing")
}
