package checkpointing

import (
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
)

// wrapLists are keys whose value names the classes that FSDP wraps. With activation checkpointing beside them, accelerate and the Trainer put a
// checkpoint around each, not reentrant.
var wrapLists = map[string]bool{"fsdp_transformer_layer_cls_to_wrap": true, "transformer_layer_cls_to_wrap": true}

// listedEmbedding looks for an embedding among the classes that a config has checkpointed.
func listedEmbedding(pass *lint.Pass, part *workspace.Part) {
	if part.Tree == nil || part.Tree.Root == nil || part.Dialect == nil {
		return
	}
	for _, section := range []*configs.Node{part.Tree.Root, part.Tree.Root.Get("fsdp_config")} {
		if section == nil {
			continue
		}
		for _, item := range section.Items {
			if wrapLists[item.Key] && item.Value != nil && onItem(section, part.Dialect.Loader, "activation_checkpointing", "fsdp_activation_checkpointing") != nil {
				listed(pass, item.Value)
			}
		}
	}
}

// listed reports the embedding classes in a list of names: a sequence, or text with commas.
func listed(pass *lint.Pass, list *configs.Node) {
	report := func(name string, node *configs.Node) {
		name = strings.Trim(strings.TrimSpace(name), "'\"")
		if !embeddingClass(name) {
			return
		}
		pass.Reportf(node.At, "%s is put into a checkpoint, which saves nothing: a lookup keeps only its integer ids", name).As(lint.Info).Help("name the blocks only")
	}
	switch list.Kind {
	case configs.Scalar:
		for name := range strings.SplitSeq(list.Raw, ",") {
			report(name, list)
		}
	default:
		for _, item := range list.Items {
			if item.Value != nil && item.Value.Kind == configs.Scalar {
				report(item.Value.Raw, item.Value)
			}
		}
	}
}

// embeddingClass reports whether a name is that of a table of tokens by the ending that such classes have.
func embeddingClass(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	for _, other := range []string{"Rotary", "Patch", "Position", "Timestep", "Sinusoid"} {
		if strings.Contains(last, other) {
			return false
		}
	}
	return strings.HasSuffix(last, "Embedding") || strings.HasSuffix(last, "EmbeddingBag") || strings.HasSuffix(last, "Embeddings")
}
