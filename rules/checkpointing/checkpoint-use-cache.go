package checkpointing

import (
	_ "embed"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed checkpoint-use-cache.md
var docCheckpointUseCache string

// CheckpointUseCache finds key-value caches that are on while activations are recomputed.
var CheckpointUseCache = &lint.Rule{
	Name:     "checkpoint-use-cache",
	Family:   "checkpointing",
	Since:    "0.1",
	Doc:      docCheckpointUseCache,
	Severity: lint.Warning,
	Fix:      lint.SometimesFix,
	Mentions: []string{"use_cache"},
	Module:   checkUseCache,
	Part:     checkUseCachePart,
}

const cacheMessage = "the key-value cache is on while activations are checkpointed: it is for generation, keeps what checkpointing frees, and Transformers turns it off with a warning or ignores the checkpoints"

func checkUseCache(pass *lint.Pass, module *pyscan.Module) {
	on := enablings(pass, module)
	if len(on) == 0 {
		return
	}
	var found []syntax.Expr
	off := false
	trains := map[*pyscan.Scope]uint32{} // where a trainer has run
	for node := range module.Tree.All() {
		switch n := node.(type) {
		case *syntax.Assign:
			if attr, ok := n.Targets[0].(*syntax.Attribute); ok && attr.Attr == "use_cache" {
				if c, ok := n.Value.(*syntax.Constant); ok && c.Kind == syntax.TrueConstant {
					found = append(found, n.Value)
				} else {
					off = true
				}
			}
		case *syntax.Call:
			attr, method := n.Func.(*syntax.Attribute)
			if method && (attr.Attr == "train" && len(n.Args) == 0 && isTrainer(pass, module, attr.Value)) {
				scope := pyscan.ScopeAt(module, n)
				if at, seen := trains[scope]; !seen || n.Span().Start < at {
					trains[scope] = n.Span().Start
				}
			}
			if !takesCache(n) {
				continue
			}
			for _, k := range n.Keywords {
				if k.Arg == "use_cache" && !pass.WithoutGradients(pyscan.ScopeAt(module, n), n) {
					if c, ok := k.Value.(*syntax.Constant); ok && c.Kind == syntax.TrueConstant {
						found = append(found, k.Value)
					} else {
						off = true
					}
				}
			}
		}
	}
	if off {
		return
	}
	for _, value := range found {
		scope := pyscan.ScopeAt(module, value)
		if at, ran := trains[scope]; ran && value.Span().Start > at || conditional(scope, value) {
			continue
		}
		d := pass.Reportf(start(module, value), cacheMessage)
		d.Note(module.File.At(on[0].call.Span()), "checkpointing is turned on here")
		d.Suggest("turn the cache off", lint.Unsafe, lint.Edit{At: module.File.At(value.Span()), Text: "False"})
	}
}

// start is where the assignment or keyword begins that ends in a value.
func start(module *pyscan.Module, value syntax.Expr) source.Place {
	var at source.Place
	for node := range module.Tree.All() {
		switch n := node.(type) {
		case *syntax.Assign:
			if n.Value == value {
				at = module.File.At(n.Span())
			}
		case *syntax.Keyword:
			if n.Value == value {
				at = module.File.At(n.Span())
			}
		case *syntax.Call:
			for _, k := range n.Keywords {
				if k.Value == value {
					at = module.File.At(k.Span())
				}
			}
		}
	}
	return at
}

// takesCache reports whether the keyword of a call switches the cache of a model on: one that loads or calls it, or makes its config. Trainers that
// generate take a keyword of that name too.
func takesCache(call *syntax.Call) bool {
	name := strings.ToLower(workspace.Leaf(call.Func))
	return name == "from_pretrained" || name == "from_config" || strings.HasSuffix(name, "model") || strings.HasSuffix(name, "forcausallm")
}

// isTrainer reports whether a value runs training by train(): a Hugging Face Trainer, or what is called so.
func isTrainer(pass *lint.Pass, module *pyscan.Module, e syntax.Expr) bool {
	name := workspace.Leaf(e)
	return name == "trainer" || len(name) > 8 && name[len(name)-8:] == "_trainer"
}

func checkUseCachePart(pass *lint.Pass, part *workspace.Part) {
	if part.Tree == nil || part.Tree.Root == nil || part.Dialect == nil || part.Tree.Format == configs.Flags {
		return
	}
	checkCacheKeys(pass, part, part.Tree.Root, 3)
}

// checkCacheKeys compares the two keys where they stand in one mapping.
func checkCacheKeys(pass *lint.Pass, part *workspace.Part, node *configs.Node, depth int) {
	var cache *configs.Item
	checkpoints := false
	for i := range node.Items {
		item := &node.Items[i]
		if item.Value == nil {
			continue
		}
		on, known := item.Value.Bool(part.Dialect.Loader)
		switch {
		case item.Key == "use_cache" && known && on:
			cache = item
		case (item.Key == "gradient_checkpointing" || item.Key == "activation_checkpointing") && known && on:
			checkpoints = true
		}
		if depth > 0 && len(item.Value.Items) > 0 {
			checkCacheKeys(pass, part, item.Value, depth-1)
		}
	}
	if cache != nil && checkpoints {
		pass.Reportf(cache.KeyAt, cacheMessage).Help("set use_cache: false")
	}
}
