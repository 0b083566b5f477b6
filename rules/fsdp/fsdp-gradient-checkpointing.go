package fsdp

import (
	_ "embed"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
)

//go:embed fsdp-gradient-checkpointing.md
var docFsdpGradientCheckpointing string

// FsdpGradientCheckpointing reports the Trainer's own checkpointing under FSDP, which gathers each layer once more.
var FsdpGradientCheckpointing = &lint.Rule{
	Name:     "fsdp-gradient-checkpointing",
	Family:   "fsdp",
	Since:    "0.1",
	Doc:      docFsdpGradientCheckpointing,
	Severity: lint.Warning,
	Mentions: []string{"gradient_checkpointing"},
	Part: func(pass *lint.Pass, part *workspace.Part) {
		root := part.Tree.Root
		if part.Dialect != dialect.HFTrainingArguments || root == nil || part.Tree.Template {
			return
		}
		named := func(name string) (found *configs.Item) {
			for i := range root.Items {
				if part.Dialect.Spelled(part.Tree, root.Items[i].Key) == name {
					found = &root.Items[i] // of several flags the last counts
				}
			}
			return found
		}
		on := func(node *configs.Node) bool {
			b, ok := node.Bool(part.Dialect.LoaderOf(part.Tree))
			return ok && b || part.Tree.Format == configs.Flags && node != nil && node.Bare
		}
		fsdp, checkpointing := named("fsdp"), named("gradient_checkpointing")
		if fsdp == nil || !shards(fsdp.Value) || checkpointing == nil || !on(checkpointing.Value) || on(root.Get("fsdp_config", "activation_checkpointing")) {
			return
		}
		pass.Reportf(checkpointing.KeyAt, "gradient_checkpointing under FSDP's full_shard gathers the weights of each layer once more in backward").
			Help("write fsdp_config.activation_checkpointing: true instead, never both").
			Note(fsdp.KeyAt, "the layers are sharded")
	},
}

// shards reports whether a value of fsdp shards weights: text of options, or a list of them.
func shards(node *configs.Node) bool {
	if node == nil || node.Open {
		return false
	}
	for i := range node.Items {
		if shards(node.Items[i].Value) {
			return true
		}
	}
	return node.Kind == configs.Scalar && strings.Contains(node.Raw, "full_shard")
}
